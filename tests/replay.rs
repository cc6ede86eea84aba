//! A graph is built once and replayed: nothing of it is written again, a token costs one doorbell a GPU, and what one
//! request leaves behind does not reach the next.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cli::{k3_nano, objects, requests_file, run};
use kimi_hcq::engine::{Engine, Options, Sampling};
use kimi_hcq::loader::Silent;
use kimi_hcq::platform::Platform;
use mock::Mock;
use model::checkpoint::Checkpoint;
use model::config::Config;
use model::golden::{GreedyCase, greedy};

const DEVICES: usize = 8;

fn start() -> (Engine, Arc<Mock>, Vec<GreedyCase>) {
    let config = Config::read(&k3_nano()).unwrap();
    let checkpoint = Checkpoint::open(&k3_nano(), &config).unwrap();
    let platform = Platform::open_mock(mock::Config::default()).unwrap();
    let engine = Engine::start(&platform, &checkpoint, Options::default(), &Silent).unwrap();
    (engine, platform.mock.unwrap(), greedy(&k3_nano()).unwrap())
}

/// Takes away this process's right to write to the kernel arguments.
fn make_read_only(engine: &Engine) {
    for graph in [engine.decode_graph(), engine.prefill_graph()] {
        for kernargs in graph.kernargs() {
            let view = kernargs.host().unwrap();
            let bytes = view.len().get().next_multiple_of(4096) as usize;
            // SAFETY: the range is the buffer's own mapping, which nobody writes to from here on: that is the test.
            unsafe {
                nix::sys::mman::mprotect(view.pointer().cast(), bytes, nix::sys::mman::ProtFlags::PROT_READ).unwrap();
            }
        }
    }
}

#[test]
fn fifty_tokens_replay_with_read_only_arguments_and_one_doorbell_a_gpu_each() {
    let (mut engine, mock, cases) = start();
    make_read_only(&engine);
    let counters = mock.counters();
    let count = || {
        (
            counters.doorbells.load(Ordering::Relaxed),
            counters.ring_packets.load(Ordering::Relaxed),
            counters.sdma_bytes.load(Ordering::Relaxed),
        )
    };
    let case = &cases[0];
    let mut after_first = None;
    let mut made = 0;
    let generation = engine
        .generate(&case.prompt_tokens, Sampling::default(), &[], 51, &mut |_| {
            made += 1;
            after_first.get_or_insert_with(count);
            true
        })
        .unwrap();
    assert_eq!((generation.tokens.len(), made), (51, 51));
    let (before, after) = (after_first.unwrap(), count());
    let dispatches = engine.decode_graph().dispatches() as u64;
    assert_eq!(after.0 - before.0, 50 * DEVICES as u64, "doorbells");
    assert_eq!(after.1 - before.1, 50 * DEVICES as u64 * dispatches, "packets stored to rings");
    assert_eq!(after.2, before.2, "nothing is copied to or from a GPU while greedy tokens are made");
}

#[test]
fn a_second_request_gives_the_same_tokens_as_in_a_fresh_process() {
    let (mut engine, _mock, cases) = start();
    let mut answer = |case: &GreedyCase| {
        engine.generate(&case.prompt_tokens, Sampling::default(), &[], case.tokens.len(), &mut |_| true).unwrap().tokens
    };
    // A long one first, so that caches and states hold something.
    let long = cases.iter().max_by_key(|case| case.prompt_tokens.len()).unwrap();
    assert_eq!(answer(long), long.tokens);
    for case in &cases[..2] {
        assert_eq!(answer(case), case.tokens, "{}", case.name);
    }
}

#[test]
fn drawn_tokens_depend_on_the_seed_alone() {
    let request = serde_json::json!({ "messages": [{ "role": "user", "content": "Tell me a story." }] });
    let file = requests_file([&request, &request]);
    let path = file.path().to_str().unwrap();
    let draw = |seed: &str| {
        let arguments =
            ["run", "--json", "--devices", "2", "--temperature", "1.5", "--seed", seed, "--max-tokens", "12"];
        let arguments = [&arguments[..], &["--requests", path]].concat();
        objects(&run("1", &arguments)).iter().map(|answer| answer["tokens"].clone()).collect::<Vec<_>>()
    };
    let seven = draw("7");
    assert_eq!(seven[0], seven[1], "each request starts the draws anew");
    assert_eq!(seven, draw("7"));
    assert_ne!(seven, draw("8"), "at this temperature twelve tokens do not come out alike by chance");
}

#[test]
fn a_machine_that_executes_nothing_gives_host_times_and_no_tokens() {
    for form in ["aql", "ib"] {
        let output = run("null", &["run", "--json", "--raw", "x", "--max-tokens", "20", "--submit", form]);
        let answer = &objects(&output)[0];
        assert_eq!(answer["executed"], false);
        assert_eq!((&answer["tokens"], &answer["text"]), (&serde_json::json!([]), &serde_json::json!("")));
        assert!(answer["timings"]["decode_tokens_per_second"].is_null());
        assert!(answer["timings"]["host_microseconds_per_token"].as_f64().unwrap() > 0.0);
        assert_eq!(answer["timings"]["wave_instructions"], 0);
        assert!(String::from_utf8_lossy(&output.stderr).contains("no tokens"));
    }
}
