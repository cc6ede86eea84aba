//! `bench` reports what launches are made of, and says what it measured and what it modelled.

#[path = "support/cli.rs"]
mod cli;

use cli::{k3_nano, objects, run};

#[test]
fn host_cost_is_measured_in_both_forms_where_nothing_is_executed() {
    let model = k3_nano();
    let arguments = ["bench", "decode", "--json", "--tokens", "20", "--model", model.to_str().unwrap()];
    let report = &objects(&run("null", &arguments))[0];
    let [aql, ib] = report["host"].as_array().unwrap().as_slice() else { panic!("two forms: {report}") };
    let dispatches = report["dispatches"].as_u64().unwrap();
    assert_eq!((&aql["form"], &ib["form"]), (&"aql".into(), &"ib".into()));
    assert_eq!(aql["ring_packets"], dispatches, "every dispatch is armed anew");
    assert_eq!((&ib["ring_packets"], &ib["xcc_barriers"]), (&1.into(), &dispatches.into()));
    for cost in [aql, ib] {
        assert!(cost["microseconds_per_token"].as_f64().unwrap() > 0.0);
        assert_eq!((&cost["executed"], &cost["tokens"]), (&false.into(), &20.into()));
    }
}

#[test]
fn the_released_model_is_modelled_without_any_machine() {
    let report = &objects(&run("", &["bench", "decode", "--json"]))[0];
    assert_eq!((&report["layers"], &report["is_modelled"]), (&93.into(), &true.into()));
    let modelled = report["modelled"].as_array().unwrap();
    assert_eq!(modelled.len(), 4, "two sets of constants, two forms");
    for model in modelled {
        let causes = model["by_cause"].as_object().unwrap();
        let sum: f64 = causes.values().map(|seconds| seconds.as_f64().unwrap()).sum();
        assert!((sum - model["seconds"].as_f64().unwrap()).abs() < 1e-12, "the causes add up: {model}");
    }
    assert!(report["published"]["why"].is_string());
}

#[test]
fn a_prompt_takes_less_time_in_larger_runs() {
    let seconds = |chunk| {
        let report = objects(&run("", &["bench", "prefill", "--json", "--chunk", chunk])).remove(0);
        report["modelled"][0]["seconds"].as_f64().unwrap()
    };
    assert!(seconds("2048") < seconds("512") && seconds("512") < seconds("128"));
}

/// The report of a block.
fn block(width: &str, arguments: &[&str]) -> serde_json::Value {
    let all = [&["bench", "block", "--json", "--width", width], arguments].concat();
    objects(&run("1", &all)).remove(0)
}

#[test]
fn every_block_is_within_one_percent_of_fp32_and_asks_for_all_its_weights() {
    for kind in ["kda", "mla", "moe", "dense"] {
        for tokens in ["1", "20"] {
            let report = block("nano", &["--kind", kind, "--tokens", tokens]);
            let name = format!("{kind}, {tokens} tokens: {report}");
            assert_eq!(report["is_within_tolerance"], true, "{name}");
            let stages = report["numbers"]["stages"].as_array().unwrap();
            assert!(stages.iter().any(|stage| stage["stage"] == "residual stream"), "{name}");
            let kernels = report["kernels"].as_array().unwrap();
            let dispatches: u64 = kernels.iter().map(|kernel| kernel["dispatches"].as_u64().unwrap()).sum();
            assert_eq!(report["dispatches"], dispatches, "{name}");
            let sum = |field: &str| -> u64 {
                kernels.iter().map(|kernel| kernel[field]["weight_bytes"].as_u64().unwrap()).sum()
            };
            let (requested, least) = (sum("counted") as f64, sum("work") as f64);
            assert!(requested >= 0.9 * least, "what is counted as needed is read: {name}");
        }
    }
}

#[test]
fn experts_of_official_width_are_within_one_percent_and_hardly_ask_for_a_weight_twice() {
    let report = block("official", &["--kind", "moe"]);
    assert_eq!(report["is_within_tolerance"], true, "{report}");
    assert_eq!(report["distinct_experts"], 16);
    let experts = report["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|kernel| kernel["name"].as_str().unwrap().starts_with("expert"));
    let mut weights = 0;
    for kernel in experts {
        assert!(kernel["weight_ratio"].as_f64().unwrap() <= 1.1, "{kernel}");
        assert_eq!(kernel["scratch_bytes"], 0);
        weights += kernel["work"]["weight_bytes"].as_u64().unwrap();
    }
    assert!((35_000_000..36_000_000).contains(&weights), "16 experts of 2.19 MB a GPU: {weights}");
}

#[test]
fn one_gpu_and_its_echo_run_the_dispatches_of_eight() {
    for kind in ["kda", "moe"] {
        let [one, eight] = ["1", "8"].map(|devices| block("nano", &["--kind", kind, "--devices", devices]));
        assert_eq!(eight["is_within_tolerance"], true, "{eight}");
        for field in ["dispatches", "collectives", "layer_dispatches", "pm4_dwords"] {
            assert_eq!(one[field], eight[field], "{kind} {field}");
        }
    }
}

#[test]
fn a_profile_times_every_dispatch_and_a_trace_has_an_event_for_each() {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let path = trace.path().to_str().unwrap();
    let arguments = ["run", "--json", "--raw", "x", "--max-tokens", "3", "--devices", "2", "--profile"];
    let report = &objects(&run("gpus=2", &[&arguments[..], &["--profile-trace", path]].concat()))[0];
    let profile = report["profile"].as_array().unwrap();
    let count: u64 = profile.iter().map(|kernel| kernel["count"].as_u64().unwrap()).sum();
    let decode = report["timings"]["dispatches_per_token"].as_u64().unwrap();
    let share: f64 = profile.iter().map(|kernel| kernel["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-9, "{profile:?}");
    assert!(profile.iter().all(|kernel| kernel["microseconds"].as_f64().unwrap() > 0.0), "{profile:?}");
    let trace: serde_json::Value = serde_json::from_reader(trace.reopen().unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.len() as u64, count);
    let of_decode = events.iter().filter(|event| event["args"]["position"].as_u64().unwrap() >= 2).count();
    assert_eq!(of_decode as u64, 2 * decode, "two tokens after the first");
    let starts: Vec<f64> = events.iter().map(|event| event["ts"].as_f64().unwrap()).collect();
    assert!(starts.is_sorted(), "dispatches of one GPU follow each other");
}
