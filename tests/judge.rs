//! Whether the golden cases judge the kernels and nothing else: code that is only compiled otherwise must pass them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use std::path::{Path, PathBuf};
use std::process::Command;

use cli::k3_nano;
use kernels::Kernel;
use kimi_hcq::engine::{Engine, EngineError, Options, Sampling};
use kimi_hcq::graph::KernelSet;
use kimi_hcq::loader::Silent;
use kimi_hcq::platform::Platform;
use model::checkpoint::Checkpoint;
use model::config::Config;
use model::golden::{GreedyCase, greedy};

const DEVICES: usize = 2;

/// The shortest golden case.
fn case() -> GreedyCase {
    let cases = greedy(&k3_nano()).unwrap();
    cases.into_iter().min_by_key(|case| case.prompt_tokens.len() + case.tokens.len()).unwrap()
}

/// Answers the case with the code objects of `set`.
fn answer(set: &KernelSet<'_>, case: &GreedyCase) -> Result<Vec<u32>, EngineError> {
    let config = Config::read(&k3_nano()).unwrap();
    let checkpoint = Checkpoint::open(&k3_nano(), &config).unwrap();
    let machine = mock::Config { gpus: DEVICES, ..mock::Config::default() };
    let platform = Platform::open_mock(machine).unwrap();
    let patience = std::time::Duration::from_secs(20);
    let options = Options { devices: DEVICES, patience, ..Options::default() };
    let mut engine = Engine::start_with(&platform, &checkpoint, options, &Silent, set)?;
    let result = engine.generate(&case.prompt_tokens, Sampling::Greedy, &[], case.tokens.len(), &mut |_| true);
    for fault in platform.mock.as_ref().map(|mock| mock.faults()).unwrap_or_default() {
        println!("{fault}");
    }
    Ok(result?.tokens)
}

/// clang and lld of the version that the manifest names, as commands with their first arguments.
fn compiler() -> Option<(Vec<String>, Vec<String>)> {
    let works = |command: &[String]| {
        let output = Command::new(&command[0]).args(&command[1..]).arg("--version").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("clang version 22.1.8"))
    };
    let clang = (vec!["clang-22".into()], vec!["ld.lld-22".into()]);
    if works(&clang.0) {
        return Some(clang);
    }
    let script = "import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let zig = String::from_utf8(output.stdout).ok()?.trim().to_string();
    let zig = (vec![zig.clone(), "clang".into()], vec![zig, "ld.lld".into()]);
    (output.status.success() && works(&zig.0)).then_some(zig)
}

#[test]
fn kernels_compiled_otherwise_and_renamed_give_the_same_tokens() {
    let Some((compile, link)) = compiler() else {
        assert!(std::env::var_os("CI").is_none(), "clang 22.1.8 is missing, and tests may not be skipped in CI");
        println!("SKIPPED: clang 22.1.8 was not found; see kernels/build");
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let strings = |key: &str| -> Vec<String> {
        manifest[key].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap().to_string()).collect()
    };
    let mut flags = strings("compile_flags");
    *flags.iter_mut().find(|flag| *flag == "-O3").unwrap() = "-O1".into();
    flags.extend(kernels::kernels::ALL.iter().map(|kernel| format!("-D{}=other_{}", kernel.name, kernel.name)));
    let out = tempfile::tempdir().unwrap();
    let sources = folder.join("src/device");
    let run = |command: &[String], arguments: &[String]| {
        let status =
            Command::new(&command[0]).args(&command[1..]).args(arguments).current_dir(&sources).status().unwrap();
        assert!(status.success(), "{command:?} {arguments:?}");
    };
    let path = |name: &str| -> PathBuf { out.path().join(name) };
    for object in kernels::CODE_OBJECTS {
        let (o, hsaco) = (path(&format!("{}.o", object.name)), path(&format!("{}.hsaco", object.name)));
        let text = |path: &Path| path.to_str().unwrap().to_string();
        let compiled = [vec!["-c".into(), format!("{}.c", object.name), "-o".into(), text(&o)], flags.clone()].concat();
        run(&compile, &compiled);
        run(&link, &[strings("link_flags"), vec![text(&o), "-o".into(), text(&hsaco)]].concat());
    }
    let bytes = |object: &kernels::CodeObject| {
        let other = std::fs::read(path(&format!("{}.hsaco", object.name))).unwrap();
        assert_ne!(other, object.bytes, "{} is compiled otherwise", object.name);
        other
    };
    let symbol = |kernel: &Kernel| format!("other_{}", kernel.name);
    let case = case();
    assert_eq!(answer(&KernelSet { bytes: &bytes, symbol: &symbol }, &case).unwrap(), case.tokens);
}
