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
