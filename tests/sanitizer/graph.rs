//! What orders the kernels of a token, and makes what one wrote visible to the next, is taken away piece by piece.

use std::time::Duration;

use driver::packets::Compare;
use driver::packets::aql::{Aql, FenceScope, KernelDispatch, Slot};
use driver::packets::pm4::{self, Nop, Pm4};
use driver::signal::Patience;
use kimi_hcq::engine::{Engine, Options, Sampling};
use kimi_hcq::graph::Form;
use kimi_hcq::loader::Silent;
use kimi_hcq::platform::Platform;
use model::checkpoint::Checkpoint;
use model::config::Config;

use crate::cli::k3_nano;

/// Of so many removals one is made, unless `KIMI_HCQ_REMOVE_EVERY` says otherwise; 1 makes each in turn.
const EVERY: usize = 32;

type Change = fn(&mut KernelDispatch);

/// K3-nano on one GPU, which makes token after token.
struct Replay {
    // Before the platform: queues and memory go first.
    engine: Engine,
    platform: Platform,
    slots: Vec<Slot>,
}

impl Replay {
    fn start(form: Form) -> Self {
        let platform = Platform::open_mock(mock::Config { gpus: 1, check: true, ..mock::Config::default() }).unwrap();
        let config = Config::read(&k3_nano()).unwrap();
        let checkpoint = Checkpoint::open(&k3_nano(), &config).unwrap();
        let options = Options { devices: 1, form, ..Options::default() };
        let mut engine = Engine::start(&platform, &checkpoint, options, &Silent).unwrap();
        engine.generate(&[1], Sampling::default(), &[], 2, &mut |_| true).unwrap();
        let slots = engine.decode_graph().packets().next().unwrap().to_vec();
        Self { engine, platform, slots }
    }

    /// Runs packets in place of those of a token, twice; gives how often the sanitizer reported something.
    fn reports(&mut self, slots: &[Slot]) -> u64 {
        let count = |platform: &Platform| -> u64 {
            platform.mock.as_ref().unwrap().reports().iter().map(|report| report.count).sum()
        };
        let before = count(&self.platform);
        let rank = &mut self.engine.ranks_mut()[0];
        let end = rank.timeline.load() - 2;
        rank.queue.submit_slots(slots).unwrap();
        rank.queue.submit_slots(slots).unwrap();
        let patience = Patience { limit: Duration::from_secs(60), ..Patience::default() };
        rank.timeline.wait(Compare::LessOrEqual, end, patience, &[&rank.queue]).unwrap();
        count(&self.platform) - before
    }
}

/// Makes each removal, or some of them evenly spread; at most one of twenty may go unnoticed.
fn check<R>(replay: &mut Replay, removals: &[(String, R)], mut reports: impl FnMut(&mut Replay, &R) -> u64) {
    let every = std::env::var("KIMI_HCQ_REMOVE_EVERY").map_or(EVERY, |every| every.parse().unwrap());
    let slots = replay.slots.clone();
    assert_eq!(replay.reports(&slots), 0, "as it is");
    let (mut made, mut survivors) = (0, Vec::new());
    for (what, removal) in removals.iter().step_by(every) {
        made += 1;
        if reports(replay, removal) == 0 {
            println!("survives: {what}");
            survivors.push(what);
        }
        if made % 20 == 0 {
            println!("{made} removals");
        }
    }
    assert_eq!(replay.reports(&slots), 0, "as it was");
    println!("{made} removals of {}, {} go unnoticed", removals.len(), survivors.len());
    assert!(made > 0 && survivors.len() * 20 <= made, "{survivors:?}");
}

#[test]
#[ignore = "minutes; .ci/sweep runs a part, KIMI_HCQ_REMOVE_EVERY=1 all of it"]
fn without_a_barrier_bit_or_fence_of_a_packet_a_token_is_reported() {
    let mut replay = Replay::start(Form::Aql);
    let parts: [(&str, Change); 3] = [
        ("barrier", |packet| packet.barrier = false),
        ("acquire", |packet| packet.acquire = FenceScope::None),
        ("release", |packet| packet.release = FenceScope::None),
    ];
    let slots = replay.slots.clone();
    let packet = |at: usize| {
        let Ok(Aql::KernelDispatch(packet)) = Aql::decode(&slots[at % slots.len()]) else {
            panic!("only kernels are dispatched")
        };
        packet
    };
    // One workgroup runs on the first XCC: what it leaves in the L2 there the next one finds.
    let is_alone = |at: usize| {
        let packet = packet(at);
        [packet.grid_size_x, packet.grid_size_y] == [packet.workgroup_size_x, packet.workgroup_size_y].map(u32::from)
    };
    let mut removals = Vec::new();
    for at in 0..slots.len() {
        for (part, remove) in parts {
            let before = if part == "release" { at } else { at + slots.len() - 1 };
            if part != "barrier" && is_alone(before) && is_alone(before + 1) {
                continue;
            }
            let (mut packet, mut changed) = (packet(at), slots.clone());
            remove(&mut packet);
            changed[at] = packet.encode().unwrap();
            removals.push((format!("{part} of packet {at} of {}", slots.len()), changed));
        }
    }
    check(&mut replay, &removals, |replay, slots| replay.reports(slots));
}

#[test]
#[ignore = "minutes; .ci/sweep runs a part, KIMI_HCQ_REMOVE_EVERY=1 all of it"]
fn without_a_packet_of_a_barrier_of_the_indirect_buffer_a_token_is_reported() {
    let mut replay = Replay::start(Form::Ib);
    let (dwords, _) = replay.engine.decode_graph().ib_size().unwrap();
    let write = |replay: &Replay, dwords: &[u32]| {
        let memory = replay.engine.decode_graph().ib_memory().next().unwrap();
        memory.host().unwrap().write_dwords(0, dwords).unwrap();
    };
    let whole = {
        let memory = replay.engine.decode_graph().ib_memory().next().unwrap();
        memory.host().unwrap().snapshot(0, dwords).unwrap()
    };
    let mut removals = Vec::new();
    for located in pm4::packets(&whole).map(|located| located.unwrap()) {
        let orders =
            matches!(located.packet, Pm4::EventWrite(_) | Pm4::AcquireMem(_) | Pm4::AtomicMem(_) | Pm4::WaitRegMem(_));
        // The first packet acquires what the AQL packet that runs the buffer has acquired already.
        if orders && located.at > 0 {
            let mut nop = Vec::new();
            Nop { payload: &vec![0; located.dwords - 1] }.encode(&mut nop).unwrap();
            let mut changed = whole.clone();
            changed[located.at..][..located.dwords].copy_from_slice(&nop);
            removals.push((format!("{} at dword {}", located.packet.name(), located.at), changed));
        }
    }
    let slots = replay.slots.clone();
    check(&mut replay, &removals, |replay, changed| {
        write(replay, changed);
        let found = replay.reports(&slots);
        write(replay, &whole);
        found
    });
}
