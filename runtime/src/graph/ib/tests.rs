//! The XCC barriers of a resident buffer: what orders one dispatch after another on XCCs that run it each for itself.

use driver::packets::pm4::{self, Pm4};
use firmware_tools::code_object::CodeObject;
use model::config::Config;

use super::*;
use crate::bench::pass::{Pass, PassSizes};

const XCCS: u32 = 8;
const COUNTERS: [GpuVa; 2] = [GpuVa::new(0x1000), GpuVa::new(0x1080)];

/// What an XCC has still to do before it may start the next dispatch, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    WaitForWaves,
    WriteBack,
    Arrive,
    Meet,
    Invalidate,
    Nothing,
}

/// Follows the buffer as an XCC does; names the first dispatch that starts, or the end that comes, too early, and what is
/// missing before it.
fn first_gap(dwords: &[u32]) -> Result<usize, (usize, Left)> {
    let mut left = Left::Invalidate;
    let mut dispatches = 0;
    let mut meetings = 0;
    for located in pm4::packets(dwords) {
        let counter = COUNTERS[meetings % 2];
        left = match (located.unwrap().packet, left) {
            (Pm4::DispatchDirect(_), Left::Nothing) => {
                dispatches += 1;
                Left::WaitForWaves
            }
            (Pm4::DispatchDirect(_), missing) => return Err((dispatches, missing)),
            (Pm4::EventWrite(event), Left::WaitForWaves) if event.event_type == event::CS_PARTIAL_FLUSH => {
                Left::WriteBack
            }
            (Pm4::AcquireMem(acquire), Left::WriteBack) if acquire.coher_cntl.contains(CoherCntl::TC_WB) => {
                Left::Arrive
            }
            (Pm4::AtomicMem(atomic), Left::Arrive) if (atomic.op, atomic.address) == (AtomicOp::ADD_32, counter) => {
                Left::Meet
            }
            (Pm4::WaitRegMem(wait), Left::Meet)
                if (wait.poll, wait.reference, wait.mask) == (counter.get(), 0, XCCS - 1)
                    && wait.function == Compare::Equal =>
            {
                meetings += 1;
                Left::Invalidate
            }
            (Pm4::AcquireMem(acquire), Left::Invalidate)
                if acquire.coher_cntl.contains(CoherCntl::TC | CoherCntl::TCL1 | CoherCntl::SH_KCACHE) =>
            {
                Left::Nothing
            }
            (_, left) => left,
        };
    }
    if left == Left::Nothing { Ok(dispatches) } else { Err((dispatches, left)) }
}

/// The buffer of a token of K3-nano on one of eight GPUs.
fn token() -> Vec<u32> {
    let json = include_bytes!("../../../../tests/fixtures/k3-nano/config.json");
    let config: Config = model::config::parse(json).and_then(|config| config.verify()).unwrap();
    let pass = Pass::new(&config, PassSizes { ranks: 8, tokens: 1, max_context: 4096 }).unwrap();
    let mut writer = Writer::new(XCCS, COUNTERS, None).unwrap();
    for launch in &pass.launches.kernels {
        let object = CodeObject::parse(launch.kernel.code_object.bytes).unwrap();
        let descriptor = object.kernel(launch.kernel.name).unwrap().descriptor;
        let dispatch = Dispatch {
            program: Program { entry: GpuVa::new(0x10000), descriptor },
            workgroups: launch.workgroups,
            workgroup: launch.kernel.workgroup,
            kernarg: GpuVa::new(0x20000),
        };
        writer.dispatch(launch.kernel.name, &dispatch).unwrap();
    }
    let (dwords, barriers) = writer.finish();
    assert_eq!(barriers, pass.launches.kernels.len());
    dwords
}

#[test]
fn xccs_meet_between_all_dispatches_and_before_the_end() {
    let dispatches = first_gap(&token()).unwrap();
    assert!(dispatches > 20, "{dispatches}");
}

#[test]
fn without_any_one_packet_of_any_barrier_a_dispatch_starts_too_early() {
    let dwords = token();
    let is_of_barrier = |packet: &Pm4<'_>| {
        matches!(packet, Pm4::EventWrite(_) | Pm4::AcquireMem(_) | Pm4::AtomicMem(_) | Pm4::WaitRegMem(_))
    };
    let places: Vec<_> = pm4::packets(&dwords).map(|located| located.unwrap()).collect();
    let mut removed = 0;
    for located in places.iter().filter(|located| is_of_barrier(&located.packet)) {
        let mut without = dwords.clone();
        without.drain(located.at..located.at + located.dwords);
        assert!(first_gap(&without).is_err(), "nothing misses the packet at dword {}", located.at);
        removed += 1;
    }
    let dispatches = first_gap(&dwords).unwrap();
    assert_eq!(removed, 5 * dispatches + 1, "five packets a barrier, and the acquire at the start");
}

#[test]
fn a_meeting_at_the_counter_of_the_one_before_is_no_meeting() {
    let mut dwords = token();
    let places: Vec<_> = pm4::packets(&dwords).map(|located| located.unwrap()).collect();
    let waits: Vec<_> = places.iter().filter(|located| matches!(located.packet, Pm4::WaitRegMem(_))).collect();
    let (first, second) = (waits[0].at..waits[0].at + waits[0].dwords, waits[1].at);
    let copy = dwords[first].to_vec();
    dwords[second..second + copy.len()].copy_from_slice(&copy);
    assert_eq!(first_gap(&dwords), Err((2, Left::Meet)));
}
