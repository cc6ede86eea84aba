//! What the commands print, and how they exit.

use std::path::Path;
use std::process::{Command, Output};

use crate::cli;
use crate::orders::orders;

/// A copy of the vector-add case, without one of its waits if it is `broken`.
fn vadd(broken: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/cases/vadd");
    for entry in std::fs::read_dir(case).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    if broken {
        let path = folder.path().join("kernel.hsaco");
        let file = std::fs::read(&path).unwrap();
        let wait = orders(&file).into_iter().find(|order| order.text.contains("vmcnt(0)")).unwrap();
        std::fs::write(&path, wait.taken_from(&file)).unwrap();
    }
    folder
}

fn exec(broken: bool, arguments: &[&str]) -> Output {
    let case = vadd(broken);
    cli::run("check,gpus=1", &[&["mock", "exec"], arguments, &[case.path().to_str().unwrap()]].concat())
}

#[test]
fn mock_exec_prints_reports_as_text_and_exits_with_1() {
    let output = exec(true, &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("missing wait: v"), "{text}");
    assert!(text.contains("with no wait (vmcnt) for `global_load_dword"), "{text}");
    assert!(text.contains("in kernel vadd: `"), "{text}");
    assert_eq!(output.status.code(), Some(1));

    let output = exec(false, &[]);
    assert_eq!((String::from_utf8_lossy(&output.stderr).as_ref(), output.status.code()), ("", Some(0)));
}

#[test]
fn mock_exec_lists_reports_in_json_and_exits_with_1() {
    let object = |output: &Output| serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    let output = exec(true, &["--json"]);
    let report = object(&output);
    assert_eq!((report["ok"].as_bool(), output.status.code()), (Some(false), Some(1)), "{report}");
    let first = &report["reports"][0];
    assert_eq!((&first["kind"], &first["kernel"]), (&"missing-wait".into(), &"vadd".into()), "{first}");
    for field in ["pc", "instruction", "gpu", "workgroup", "wave", "detail", "count"] {
        assert!(!first[field].is_null(), "{field}: {first}");
    }

    let output = exec(false, &["--json"]);
    assert_eq!((&object(&output)["reports"], output.status.code()), (&serde_json::json!([]), Some(0)));
}

/// The program with a wait taken out of one of the kernels that it carries.
fn broken_program(folder: &Path) -> std::path::PathBuf {
    let program = std::fs::read(env!("CARGO_BIN_EXE_kimi-hcq")).unwrap();
    let object = kernels::CODE_OBJECTS.iter().find(|object| object.name == "embed").unwrap();
    let wait = orders(object.bytes).into_iter().rfind(|order| order.text.contains("vmcnt(0)")).unwrap();
    let at = memchr(&program, object.bytes);
    let changed = [&program[..at], &wait.taken_from(object.bytes), &program[at + object.bytes.len()..]].concat();
    let path = folder.join("kimi-hcq");
    std::fs::write(&path, changed).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn memchr(program: &[u8], object: &[u8]) -> usize {
    program.windows(object.len()).position(|window| window == object).unwrap()
}

#[test]
fn run_prints_reports_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let program = broken_program(folder.path());
    let model = cli::k3_nano();
    let arguments = ["run", "--devices", "1", "--raw", "Hi", "--max-tokens", "1", "--model", model.to_str().unwrap()];
    let output = Command::new(program).args(arguments).env("MOCKKFD", "check,gpus=1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("missing wait: v") && text.contains("in kernel embed: `"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}
