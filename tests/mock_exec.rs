//! `kimi-hcq mock exec` from the outside: the handed conformance cases, exit codes, JSON, and what a user gets wrong.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn exec(arguments: &[&str], case: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kimi-hcq"))
        .args(["mock", "exec"])
        .args(arguments)
        .arg(case)
        .env_remove("MOCKKFD")
        .output()
        .unwrap()
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/cases")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A copy of the vector-add case that a test may spoil.
fn vadd() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(cases().join("vadd")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

fn change_case(folder: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let path = folder.join("case.json");
    let mut case: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut case);
    std::fs::write(path, serde_json::to_vec(&case).unwrap()).unwrap();
}

#[test]
fn every_conformance_case_gives_its_expected_bits() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(cases()).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.join("case.json").exists() {
            continue;
        }
        let output = exec(&["--json"], &folder);
        let report = json(&output);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}: {report} {}",
            folder.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(report["ok"], true);
        assert!(report["wave_instructions"].as_u64().unwrap() > 0);
        names.push(report["name"].as_str().unwrap().to_string());
    }
    assert!(names.len() >= 13, "{names:?}");
}

#[test]
fn a_wrong_result_is_a_mismatch_with_exit_code_1() {
    let folder = vadd();
    let path = folder.path().join("expect_c.bin");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[5] ^= 0x40;
    std::fs::write(path, bytes).unwrap();
    let output = exec(&["--json"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["ok"], false);
    let text = exec(&[], folder.path());
    assert!(String::from_utf8_lossy(&text.stdout).contains("first at 1:"), "{text:?}");
}

#[test]
fn a_null_buffer_is_a_fault_that_names_the_address_and_the_instruction() {
    let folder = vadd();
    change_case(folder.path(), |case| {
        case["kernargs"][0] = serde_json::json!({ "arg": "a", "offset": 0, "size": 8, "kind": "null_pointer" });
    });
    let output = exec(&["--json"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let error = json(&output)["error"].as_str().unwrap().to_string();
    for part in ["read of", "no memory is mapped", "global_load_dword"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_case_that_makes_no_sense_is_refused_with_exit_code_2() {
    type Change = fn(&mut serde_json::Value);
    let changes: [(&str, Change); 8] = [
        ("no such kernel", |case| case["entry"] = "vsub".into()),
        ("an unknown dtype", |case| case["expect"][0]["dtype"] = "<c16".into()),
        ("a file outside the folder", |case| case["hsaco"] = "../kernel.hsaco".into()),
        ("a missing file", |case| case["kernargs"][0]["file"] = "missing.bin".into()),
        ("an argument past the segment", |case| case["kernarg_bytes"] = 16.into()),
        ("an expectation of nothing", |case| case["expect"][0]["arg"] = "d".into()),
        ("too large a workgroup", |case| {
            case["workgroup"] = serde_json::json!([2048, 1, 1]);
            case["grid_items"] = serde_json::Value::Null;
        }),
        ("a shape that is not the file's", |case| case["expect"][0]["shape"] = serde_json::json!([999])),
    ];
    for (what, change) in changes {
        let folder = vadd();
        change_case(folder.path(), change);
        let output = exec(&[], folder.path());
        assert_eq!(output.status.code(), Some(2), "{what}: {output:?}");
        let lines = String::from_utf8_lossy(&output.stderr).lines().count();
        assert_eq!(lines, 1, "{what}: {output:?}");
    }
}

#[test]
fn a_folder_without_a_case_is_refused_with_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let output = exec(&[], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("case.json"));
}

#[test]
fn a_trace_prints_each_instruction_of_a_wave_with_what_it_changed() {
    let text = exec(&["--trace=1.0"], &cases().join("vadd"));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in ["+0x0  ", "v_add_f32", "s_endpgm", "s3 = 0x3e8", "vcc_lo = 0xffffffff"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let report = json(&exec(&["--json", "--trace"], &cases().join("vadd")));
    let instructions = report["trace"]["instructions"].as_array().unwrap();
    assert_eq!(instructions[0]["offset"], 0);
    let sum = instructions.iter().find(|traced| traced["text"].as_str().unwrap().starts_with("v_add_f32")).unwrap();
    let lanes = sum["changes"][0]["lanes"].as_array().unwrap();
    let expected = std::fs::read(cases().join("vadd/expect_c.bin")).unwrap();
    for pair in lanes {
        let (lane, bits) = (pair[0].as_u64().unwrap() as usize, pair[1].as_u64().unwrap() as u32);
        assert_eq!(bits.to_le_bytes(), expected[4 * lane..][..4], "lane {lane}");
    }
}

#[test]
fn a_wave_that_the_launch_does_not_have_is_said_to_be_missing() {
    let output = exec(&["--trace=99999.0"], &cases().join("vadd"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("no such wave"), "{output:?}");
    assert_eq!(exec(&["--trace=first"], &cases().join("vadd")).status.code(), Some(2));
}

#[test]
fn a_profile_counts_traffic_conflicts_and_occupancy_by_basic_block() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mock/examples/histogram");
    let report = json(&exec(&["--json", "--profile"], &folder));
    let kernel = &report["profile"]["kernels"][0];
    let blocks = kernel["blocks"].as_array().unwrap();
    let sum = |field: &dyn Fn(&serde_json::Value) -> u64| blocks.iter().map(field).sum::<u64>();
    let executed = sum(&|block| block["units"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum());
    assert_eq!(executed, report["wave_instructions"].as_u64().unwrap());
    let lds = |field: &str| sum(&|block| block["lds"][field].as_u64().unwrap());
    assert!(lds("cycles") > 0 && lds("conflicts") < lds("cycles"), "{} of {}", lds("conflicts"), lds("cycles"));
    for traffic in ["loaded", "stored"] {
        let (moved, needed) =
            (sum(&|b| b[traffic]["moved"].as_u64().unwrap()), sum(&|b| b[traffic]["needed"].as_u64().unwrap()));
        assert!(moved >= needed && needed > 0, "{traffic}: {moved} moved, {needed} needed");
    }
    assert!((1..=8).contains(&kernel["occupancy"]["waves_per_simd"].as_u64().unwrap()));
    let text = exec(&["--profile"], &folder);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in ["occupancy: ", "conflicts", "lanes on", "LDS cycles", "global"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn a_fidelity_report_sets_apart_what_is_modelled() {
    let report = json(&exec(&["--json", "--fidelity"], &cases().join("mfma_bf16")));
    let count = |list: &str| -> u64 {
        let judged = report["fidelity"][list].as_array().unwrap();
        judged.iter().map(|judged| judged["count"].as_u64().unwrap()).sum()
    };
    assert!(count("modelled") > 0, "matrix instructions are");
    assert_eq!(count("unsupported"), 0);
    let all = ["exact", "within_bound", "modelled"].into_iter().map(count).sum::<u64>();
    assert_eq!(all, report["wave_instructions"].as_u64().unwrap());
    let text = exec(&["--fidelity"], &cases().join("mfma_bf16"));
    assert!(String::from_utf8_lossy(&text.stdout).contains("order and width of accumulation"), "{text:?}");
}

#[test]
fn a_kernel_that_faults_is_traced_up_to_the_fault() {
    let folder = vadd();
    change_case(folder.path(), |case| {
        case["kernargs"][0] = serde_json::json!({ "arg": "a", "offset": 0, "size": 8, "kind": "null_pointer" });
    });
    let report = json(&exec(&["--json", "--trace", "--fidelity"], folder.path()));
    let last = report["trace"]["instructions"].as_array().unwrap().last().unwrap();
    assert!(last["text"].as_str().unwrap().starts_with("global_load_dword"), "{last}");
    assert!(report["fidelity"]["exact"].as_array().unwrap().len() > 1);
}
