//! `kimi-hcq load` from the outside, and every byte it puts on emulated GPUs.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use driver::address::Bytes;
use driver::memory::Allocation;
use kimi_hcq::engine::Transfers;
use kimi_hcq::loader::{self, Options, ReaderChoice, Silent};
use kimi_hcq::platform::Platform;
use model::{Checkpoint, Config, Layout};
use serde_json::Value;
use tempfile::TempDir;

fn nano() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano")
}

/// `kimi-hcq load` on an emulated machine.
fn load(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kimi-hcq"));
    command.arg("load").args(arguments).env("MOCKKFD", "1").env_remove("KIMI_HCQ_MODEL");
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The command fails with this code, one line that contains all of `words`, and nothing on standard output.
fn assert_refused(command: &mut Command, code: i32, words: &[&str]) {
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.starts_with("kimi-hcq: ") && message.lines().count() == 1, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message} lacks one of {words:?}");
    assert!(output.stdout.is_empty());
}

/// Whether this host lets the test use io_uring; containers often do not.
fn ring_works() -> bool {
    io_uring::IoUring::new(1).is_ok()
}

fn open_nano() -> (Config, Checkpoint) {
    let config = Config::read(&nano()).unwrap();
    let checkpoint = Checkpoint::open(&nano(), &config).unwrap();
    (config, checkpoint)
}

/// Bytes of the files' tensors, and of each rank's share of them.
fn weights(ranks: usize) -> (u64, u64) {
    let (config, checkpoint) = open_nano();
    let inventory = checkpoint.inventory();
    let bytes = inventory.iter().map(|id| inventory.spec(id).unwrap().bytes()).sum();
    (bytes, Layout::new(&config, ranks).unwrap().sizes().weights)
}

#[test]
fn the_report_accounts_for_every_byte_on_any_number_of_gpus() {
    for devices in [1, 2, 4, 8] {
        let reader = if ring_works() { "--io-uring" } else { "--pread" };
        let output = load(&[reader, "--json", "--devices", &devices.to_string()]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        let report = json(&output);
        let number = |key: &str| report[key].as_u64().unwrap();
        let (bytes, per_gpu) = weights(devices);
        assert_eq!(number("weight_bytes"), bytes);
        assert_eq!(number("bytes_read"), bytes + number("padding_bytes"));
        assert!(number("padding_bytes") < 6 * 2 * 4096);
        assert_eq!(report["bytes_per_gpu"], Value::from(vec![per_gpu; devices]));
        assert_eq!(report["reader"], if ring_works() { "io_uring-fixed" } else { "pread" });
        assert_eq!(number("resubmitted_reads"), 0);
        assert!(number("mock_bytes") >= per_gpu * devices as u64);
        assert!(number("peak_rss_bytes") - number("mock_bytes") < 256 << 20, "{report}");
        assert!(report["seconds"].as_f64().unwrap() > 0.0 && report["gb_per_s"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn every_arena_is_what_the_files_say_for_every_tensor_reader_and_number_of_gpus() {
    let (config, checkpoint) = open_nano();
    for ranks in [1, 2, 4, 8] {
        let layout = Layout::new(&config, ranks).unwrap();
        let platform = Platform::open_mock(mock::Config { gpus: ranks, ..mock::Config::default() }).unwrap();
        let nodes = platform.process.topology().unwrap().gpus;
        let gpus: Vec<_> = nodes.into_iter().map(|node| driver::Gpu::open(&platform.process, node).unwrap()).collect();
        let mut expected = vec![vec![0; layout.arena_bytes() as usize]; ranks];
        for id in checkpoint.inventory().iter() {
            let bytes = checkpoint.read(id).unwrap().unwrap();
            for copy in layout.copies(id, 0) {
                for row in 0..copy.rows {
                    let from = (copy.source + row * copy.source_pitch) as usize;
                    let to = (copy.destination + row * copy.destination_pitch) as usize;
                    let length = copy.row_bytes as usize;
                    expected[copy.rank][to..to + length].copy_from_slice(&bytes[from..from + length]);
                }
            }
        }
        let readers = [ReaderChoice::Best, ReaderChoice::Pread];
        for (reader, block) in readers.into_iter().zip([4 << 20, 36 << 10]) {
            let arena = Allocation::vram(Bytes::new(layout.arena_bytes()), "weights");
            let arenas: Vec<_> = gpus.iter().map(|gpu| gpu.allocate(&arena).unwrap()).collect();
            let options = Options { reader, block: Bytes::new(block), ..Options::default() };
            let references: Vec<_> = arenas.iter().collect();
            loader::load(&checkpoint, &layout, &gpus, &references, &options, &Silent).unwrap();
            for ((gpu, arena), expected) in gpus.iter().zip(&arenas).zip(&expected) {
                let mut found = vec![0; expected.len()];
                Transfers::new(gpu).unwrap().read(arena.va(), &mut found).unwrap();
                assert!(&found == expected, "rank of {gpu}, {ranks} ranks, {reader:?}");
            }
        }
    }
}

#[test]
fn null_devices_need_no_gpu_and_read_the_same_bytes() {
    let model = nano();
    let output = load(&["--null-devices", "--json", "--model"]).arg(&model).env_remove("MOCKKFD").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    let (bytes, per_gpu) = weights(8);
    assert_eq!((report["weight_bytes"].as_u64(), report["mock_bytes"].as_u64()), (Some(bytes), Some(0)));
    assert_eq!(report["bytes_per_gpu"], Value::from(vec![per_gpu; 8]));
}

#[test]
fn limited_layers_are_the_first_ones_and_what_belongs_to_none() {
    let report = |limit: &str| json(&load(&["--null-devices", "--json", "--limit-layers", limit]).output().unwrap());
    let bytes = |limit| report(limit)["weight_bytes"].as_u64().unwrap();
    let (_, checkpoint) = open_nano();
    let inventory = checkpoint.inventory();
    let of = |ids: &mut dyn Iterator<Item = _>| ids.map(|id| inventory.spec(id).unwrap().bytes()).sum::<u64>();
    let outside = of(&mut inventory.outside_layers());
    assert_eq!(bytes("0"), outside);
    assert_eq!(bytes("2"), outside + of(&mut inventory.layer(0)) + of(&mut inventory.layer(1)));
    assert_eq!(bytes("99"), weights(8).0);
}

#[test]
fn a_verified_load_compares_every_byte_and_checksums_outlive_it() {
    let folder = tempfile::tempdir().unwrap();
    let sums = folder.path().join("sums");
    let report = |arguments: &[&str]| json(&load(arguments).arg("--checksums").arg(&sums).output().unwrap());
    let first = report(&["--json", "--verify", "--devices", "4"]);
    assert_eq!(first["checksums"], "written");
    assert_eq!(first["verified"]["tensors"], 512);
    assert_eq!(first["verified"]["bytes"].as_u64(), Some(4 * weights(4).1));
    assert_eq!(report(&["--json", "--null-devices"])["checksums"], "equal");
    let manifest = fs::read_to_string(&sums).unwrap();
    assert_eq!(manifest.lines().filter(|line| !line.starts_with('#')).count(), 512);

    let wrong = manifest.replacen('0', "1", 1);
    fs::write(&sums, wrong).unwrap();
    let mut command = load(&["--null-devices", "--checksums"]);
    assert_refused(command.arg(&sums), 1, &["language_model.", "the manifest says"]);
    assert_eq!(load(&["--null-devices", "--verify"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_manifest_that_is_none_or_has_no_place_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none");
    fs::write(&none, "PNG").unwrap();
    for (path, words) in [
        (folder.path().join("missing/sums"), "No such file"),
        (folder.path().to_owned(), "not a regular file"),
        (none, "line 1 is cut or too long"),
    ] {
        let mut command = load(&["--null-devices", "--checksums"]);
        assert_refused(command.arg(&path), 2, &["checksums in", &path.to_string_lossy(), words]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A folder of links to K3-nano, as in the Hugging Face cache.
fn linked_nano() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(nano()).unwrap() {
        let path = entry.unwrap().path().canonicalize().unwrap();
        if path.is_file() {
            symlink(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

/// Makes a link of the folder a file of its own.
fn own(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

const SHARD: &str = "model-00003-of-000006.safetensors";

#[test]
fn a_folder_of_links_loads_like_the_files_themselves() {
    let folder = linked_nano();
    let output = load(&["--json", "--model"]).arg(folder.path()).output().unwrap();
    assert_eq!(json(&output)["weight_bytes"].as_u64(), Some(weights(8).0));
}

#[test]
fn shards_spread_over_two_file_systems_are_read_from_both_at_once() {
    use std::os::unix::fs::MetadataExt;
    let folder = linked_nano();
    let device = |path: &Path| path.metadata().unwrap().dev();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    if device(other.path()) == device(&nano()) {
        return;
    }
    let moved = other.path().join(SHARD);
    fs::copy(folder.path().join(SHARD), &moved).unwrap();
    fs::remove_file(folder.path().join(SHARD)).unwrap();
    symlink(&moved, folder.path().join(SHARD)).unwrap();
    let output = load(&["--json", "--verify", "--model"]).arg(folder.path()).output().unwrap();
    let report = json(&output);
    assert_eq!((report["disks"].as_u64(), report["files"].as_u64()), (Some(2), Some(6)));
    assert_eq!(report["verified"]["bytes"].as_u64(), Some(8 * weights(8).1));
}

#[test]
fn a_missing_shard_is_named_before_anything_is_done_and_not_created() {
    let folder = linked_nano();
    fs::remove_file(folder.path().join(SHARD)).unwrap();
    assert_refused(load(&["--model"]).arg(folder.path()), 2, &["lacks 1 shard", SHARD]);
    assert!(!folder.path().join(SHARD).exists());
}

#[test]
fn a_truncated_shard_is_refused_by_name() {
    let folder = linked_nano();
    let path = own(&folder, SHARD);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 4096).unwrap();
    assert_refused(load(&["--model"]).arg(folder.path()), 2, &[SHARD, "is the download complete?"]);
}

#[test]
fn a_wrong_config_is_refused_field_by_field() {
    let folder = linked_nano();
    let path = own(&folder, "config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["text_config"]["mla_use_nope"] = false.into();
    fs::write(&path, config.to_string()).unwrap();
    assert_refused(load(&["--model"]).arg(folder.path()), 2, &["config.json", "mla_use_nope"]);
}

#[test]
fn a_folder_without_a_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(load(&["--model"]).arg(folder.path()), 2, &["config.json"]);
}

#[test]
fn without_gpus_one_line_names_both_ways_to_get_some() {
    if Path::new("/dev/kfd").exists() {
        return;
    }
    assert_refused(load(&[]).env_remove("MOCKKFD"), 1, &["/dev/kfd", "amdgpu", "MOCKKFD=1"]);
}

#[test]
fn too_few_gpus_or_too_little_memory_is_refused_before_reading() {
    assert_refused(load(&["--devices", "8"]).env("MOCKKFD", "gpus=2"), 2, &["8 GPUs are wanted", "has 2"]);
    assert_refused(load(&[]).env("MOCKKFD", "vram=4194304"), 2, &["the model needs", "--devices"]);
}

#[test]
fn unknown_flags_and_numbers_that_do_not_go_together_are_usage_errors() {
    let code = |arguments: &[&str]| load(arguments).output().unwrap().status.code();
    assert_eq!(code(&["--fast"]), Some(2));
    assert_eq!(code(&["--io-uring", "--pread"]), Some(2));
    assert_eq!(code(&["--devices", "3"]), Some(2));
    assert_refused(&mut load(&["--block", "1000"]), 2, &["multiple of 4 KiB"]);
    assert_refused(&mut load(&["--depth", "64"]), 2, &["staging buffer"]);
}

/// Runs the command where a system call fails with `errno`: always, or if its second argument is `argument`.
fn with_failing_call(command: &mut Command, call: libc::c_long, argument: Option<u32>, errno: i32) {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // Offsets of the call's number and of the low half of its second argument in `seccomp_data`.
    let (number, second) = (0, 24);
    let unconditional = u8::from(argument.is_none());
    let mut filter = [
        step(LOAD, 0, 0, number),
        step(JUMP_IF_EQUAL, 0, 3, call as u32),
        step(LOAD, 0, 0, if unconditional == 1 { number } else { second }),
        step(JUMP_IF_EQUAL, 0, 1, argument.unwrap_or(call as u32)),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: two prctl calls, which are async-signal-safe; the program and its filter live across them.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) != 0
        };
        if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: `install` allocates nothing and calls nothing but prctl.
    unsafe { command.pre_exec(install) };
}

#[test]
fn a_host_that_forbids_io_uring_is_named_when_it_was_asked_for_and_lived_with_when_not() {
    for (errno, cause) in [(libc::EPERM, "seccomp"), (libc::ENOSYS, "has no io_uring")] {
        let mut asked = load(&["--io-uring"]);
        with_failing_call(&mut asked, libc::SYS_io_uring_setup, None, errno);
        assert_refused(&mut asked, 1, &["cannot set up io_uring", "io_uring_setup", cause]);
        let mut open = load(&["--json"]);
        with_failing_call(&mut open, libc::SYS_io_uring_setup, None, errno);
        let output = open.output().unwrap();
        let report = json(&output);
        assert_eq!(report["reader"], "pread");
        assert_eq!(report["weight_bytes"].as_u64(), Some(weights(8).0));
        assert!(String::from_utf8_lossy(&output.stderr).contains("reading with pread instead of io_uring"));
    }
}

#[test]
fn buffers_that_cannot_be_registered_are_read_into_with_plain_reads_and_that_is_said() {
    if !ring_works() {
        return;
    }
    const IORING_REGISTER_BUFFERS: u32 = 0;
    let mut command = load(&["--io-uring", "--json"]);
    with_failing_call(&mut command, libc::SYS_io_uring_register, Some(IORING_REGISTER_BUFFERS), libc::ENOMEM);
    let output = command.output().unwrap();
    let report = json(&output);
    assert_eq!(report["reader"], "io_uring");
    assert_eq!(report["weight_bytes"].as_u64(), Some(weights(8).0));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("without registered staging memory") && message.contains("ulimit -l"), "{message}");
}
