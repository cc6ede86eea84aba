//! Checkpoint folders that are broken in one way each, and the one line that refuses each of them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";
const SHARD: &str = "model-00006-of-000006.safetensors";
const OTHER: &str = "model-00001-of-000006.safetensors";
const HEAD: &str = "language_model.lm_head.weight";
const NORM: &str = "language_model.model.norm.weight";

/// One way to break a folder.
struct Case {
    name: &'static str,
    /// Breaks the folder, a copy of K3-nano.
    damage: fn(&Path),
    /// What the line that refuses it must say.
    says: &'static [&'static str],
}

const fn case(name: &'static str, damage: fn(&Path), says: &'static [&'static str]) -> Case {
    Case { name, damage, says }
}

/// K3-nano, with files of its own where they may be broken.
fn nano() -> TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano");
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let path: PathBuf = entry.unwrap().path().canonicalize().unwrap();
        let copy = folder.path().join(path.file_name().unwrap());
        if path.file_name().unwrap() == SHARD || path.extension().is_none_or(|end| end != "safetensors") {
            _ = fs::copy(&path, copy);
        } else {
            symlink(&path, copy).unwrap();
        }
    }
    folder
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    fs::write(folder.join(name), bytes).unwrap();
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn edit(folder: &Path, name: &str, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&text(folder, name)).unwrap();
    change(&mut value);
    write(folder, name, value.to_string());
}

/// Changes a field of the text half of the config.
fn set(folder: &Path, pointer: &str, value: Value) {
    edit(folder, CONFIG, |config| *config["text_config"].pointer_mut(pointer).unwrap() = value);
}

/// Places a tensor in another shard, or one more tensor in some shard.
fn place(folder: &Path, tensor: &str, shard: &str) {
    edit(folder, INDEX, |index| index["weight_map"][tensor] = json!(shard));
}

/// Replaces the JSON of the shard's header; the length in front of it and the data behind it fit.
fn header(folder: &Path, change: impl FnOnce(&str) -> String) {
    let bytes = fs::read(folder.join(SHARD)).unwrap();
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let (json, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let json = change(str::from_utf8(json).unwrap());
    write(folder, SHARD, [&(json.len() as u64).to_le_bytes(), json.as_bytes(), data].concat());
}

/// Changes the entry of the final norm in the shard's header.
fn norm(folder: &Path, change: impl FnOnce(&mut Value)) {
    header(folder, |json| {
        let mut value: Value = serde_json::from_str(json).unwrap();
        change(&mut value[NORM]);
        value.to_string()
    });
}

fn length(folder: &Path, claimed: u64) {
    let mut bytes = fs::read(folder.join(SHARD)).unwrap();
    bytes[..8].copy_from_slice(&claimed.to_le_bytes());
    write(folder, SHARD, bytes);
}

const CONFIGS: &[Case] = &[
    case("empty", |f| write(f, CONFIG, ""), &["config file is not valid", "EOF"]),
    case("cut", |f| write(f, CONFIG, &text(f, CONFIG)[..500]), &["config file is not valid", "EOF"]),
    case("a list", |f| write(f, CONFIG, "[]"), &["config.json", "model_type", "more, which preflight lists"]),
    case("not UTF-8", |f| write(f, CONFIG, b"{\"a\":\"\xff\"}"), &["config file is not valid"]),
    case("deep", |f| write(f, CONFIG, "[".repeat(1 << 19)), &["config file is not valid", "recursion limit"]),
    case("huge", |f| write(f, CONFIG, " ".repeat(2 << 20)), &["cannot read", "config.json", "longer than the"]),
    case("missing", |f| fs::remove_file(f.join(CONFIG)).unwrap(), &["cannot read", "config.json", "No such file"]),
    case(
        "a folder",
        |f| {
            fs::remove_file(f.join(CONFIG)).unwrap();
            fs::create_dir(f.join(CONFIG)).unwrap();
        },
        &["config.json", "not a regular file"],
    ),
    case("another model", |f| edit(f, CONFIG, |c| c["model_type"] = json!("llama")), &["model_type", "llama"]),
    case("rotary positions", |f| set(f, "/mla_use_nope", json!(false)), &["mla_use_nope: expected true, found false"]),
    case("no heads", |f| set(f, "/num_attention_heads", json!(0)), &["num_attention_heads", "an integer of 1 to"]),
    case("negative width", |f| set(f, "/hidden_size", json!(-256)), &["hidden_size", "found -256"]),
    case("a fraction", |f| set(f, "/hidden_size", json!(256.5)), &["hidden_size", "found 256.5"]),
    case("too many layers", |f| set(f, "/num_hidden_layers", json!(1_u64 << 40)), &["num_hidden_layers", "1 to 512"]),
    case("a layer twice", |f| set(f, "/linear_attn_config/kda_layers", json!(vec![1; 9000])), &["layer 1 named once"]),
    case("no such layer", |f| set(f, "/linear_attn_config/kda_layers", json!([77])), &["layer numbers of 1 to"]),
    case("infinite eps", |f| write(f, CONFIG, text(f, CONFIG).replace("1e-05", "1e39")), &["rms_norm_eps"]),
    case("another width", |f| set(f, "/moe_intermediate_size", json!(768)), &["the config implies", "more"]),
    case(
        "heads that do not divide",
        |f| set(f, "/linear_attn_config/num_heads", json!(6)),
        &["cannot be split over 8"],
    ),
];

const INDEXES: &[Case] = &[
    case("empty", |f| write(f, INDEX, ""), &[INDEX, "the index is not valid", "EOF"]),
    case("cut", |f| write(f, INDEX, &text(f, INDEX)[..500]), &[INDEX, "the index is not valid"]),
    case("a list", |f| write(f, INDEX, "[]"), &[INDEX, "the index is not valid"]),
    case("deep", |f| write(f, INDEX, "[".repeat(1 << 20)), &[INDEX, "the index is not valid"]),
    case("missing", |f| fs::remove_file(f.join(INDEX)).unwrap(), &["cannot read", INDEX, "No such file"]),
    case("no sizes", |f| edit(f, INDEX, |i| i["metadata"] = json!({})), &[INDEX, "total_size"]),
    case("no tensors", |f| edit(f, INDEX, |i| i["weight_map"] = json!({})), &["the index does not list", "more"]),
    case("a number", |f| edit(f, INDEX, |i| i["weight_map"][NORM] = json!(6)), &[INDEX, "invalid type"]),
    case("a wrong sum", |f| edit(f, INDEX, |i| i["metadata"]["total_size"] = json!(7)), &["states a total of 7 bytes"]),
    case("a parent", |f| place(f, NORM, "../x.safetensors"), &["\"../x.safetensors\"", "inside the folder"]),
    case("an absolute path", |f| place(f, NORM, "/etc/passwd"), &["\"/etc/passwd\"", "inside the folder"]),
    case("a subfolder", |f| place(f, NORM, "a/b.safetensors"), &["\"a/b.safetensors\"", "inside the folder"]),
    case("a pickle", |f| place(f, NORM, "x.bin"), &["\"x.bin\"", "`*.safetensors`"]),
    case("no such shard", |f| place(f, NORM, "x.safetensors"), &["lacks 1 shard(s)", "x.safetensors"]),
    case("another shard", |f| place(f, NORM, OTHER), &[NORM, "where the index places it", OTHER]),
    case("no such tensor", |f| place(f, "lm_head.bias", SHARD), &["lm_head.bias", "is no tensor of this model"]),
    case("no such layer", |f| place(f, "language_model.model.layers.99.mlp.up_proj.weight", SHARD), &["layers.99"]),
    case(
        "a tensor missing",
        |f| edit(f, INDEX, |i| _ = i["weight_map"].as_object_mut().unwrap().remove(NORM)),
        &["the index does not list", NORM],
    ),
    case(
        "a tensor twice",
        |f| {
            let again = format!("\"weight_map\": {{\"{NORM}\": \"{SHARD}\",");
            write(f, INDEX, text(f, INDEX).replacen("\"weight_map\": {", &again, 1));
        },
        &[NORM, "twice"],
    ),
];

const HEADERS: &[Case] = &[
    case("empty", |f| write(f, SHARD, ""), &[SHARD, "has 0 bytes"]),
    case("seven bytes", |f| write(f, SHARD, [0; 7]), &[SHARD, "has 7 bytes"]),
    case("zeros", |f| write(f, SHARD, [0; 4096]), &[SHARD, "does not begin with '{'"]),
    case("an HTML page", |f| write(f, SHARD, "<!DOCTYPE html><html>"), &[SHARD, "the header claims"]),
    case("an LFS pointer", |f| write(f, SHARD, "version https://git-lfs.github.com/spec/v1\n"), &[SHARD, "claims"]),
    case("a length of everything", |f| length(f, u64::MAX), &[SHARD, "claims 18446744073709551615 bytes"]),
    case("a length too long", |f| length(f, 1 << 26), &[SHARD, "claims 67108864 bytes"]),
    case("a length too short", |f| length(f, 40), &[SHARD, "not a valid safetensors object", "EOF"]),
    case("no object", |f| header(f, |j| format!("[{}]", " ".repeat(j.len() - 2))), &[SHARD, "does not begin with"]),
    case("deep", |f| header(f, |_| format!("{{\"a\":{}", "[".repeat(1 << 20))), &[SHARD, "not a valid safetensors"]),
    case("a comma too many", |f| header(f, |j| j.replacen("},", "},,", 1)), &[SHARD, "not a valid safetensors"]),
    case("another type", |f| norm(f, |t| t["dtype"] = json!("F17")), &[SHARD, "unknown variant `F17`"]),
    case("another shape", |f| norm(f, |t| t["shape"] = json!([1, 256])), &[NORM, "the config implies BF16 [256]"]),
    case("a shape too large", |f| norm(f, |t| t["shape"] = json!([7_u64 << 61, 256])), &[SHARD, NORM, "below 2^64"]),
    case("a shape of other bytes", |f| norm(f, |t| t["shape"] = json!([255])), &[NORM, "510 bytes", "span 512"]),
    case("many dimensions", |f| norm(f, |t| t["shape"] = json!(vec![1; 99])), &[SHARD, "at most 8 sizes"]),
    case("negative size", |f| norm(f, |t| t["shape"] = json!([-256])), &[SHARD, "not a valid safetensors"]),
    case("offsets backwards", |f| norm(f, |t| t["data_offsets"] = json!([512, 0])), &[NORM, "before it begins"]),
    case(
        "offsets far away",
        |f| norm(f, |t| t["data_offsets"] = json!([1_u64 << 60, (1_u64 << 60) + 512])),
        &["begins at"],
    ),
    case("an overlap", |f| norm(f, |t| t["data_offsets"] = json!([0, 512])), &[SHARD, "the data before it ends at"]),
    case("one more field", |f| norm(f, |t| t["strides"] = json!([1])), &[SHARD, "unknown field `strides`"]),
    case("a name twice", |f| header(f, |j| j.replace(HEAD, NORM)), &[NORM, "described twice"]),
    case("another name", |f| header(f, |j| j.replace(HEAD, "lm_head.weight")), &["lm_head.weight", HEAD]),
    case("metadata that is none", |f| header(f, |j| j.replacen("{\"format\":\"pt\"}", "{\"format\":7}", 1)), &[SHARD]),
    case(
        "a byte too many",
        |f| write(f, SHARD, [&fs::read(f.join(SHARD)).unwrap()[..], b"x"].concat()),
        &[SHARD, "is the download complete?"],
    ),
    case(
        "cut in the middle",
        |f| write(f, SHARD, &fs::read(f.join(SHARD)).unwrap()[..9000]),
        &[SHARD, "is the download complete?"],
    ),
];

const TOKENIZERS: &[Case] = &[
    case("empty", |f| write(f, "tiktoken.model", ""), &["tiktoken.model", "single byte 0x00"]),
    case("no base64", |f| write(f, "tiktoken.model", "!!! 0\n"), &["tiktoken.model line 1", "not base64"]),
    case("no rank", |f| write(f, "tiktoken.model", "IQ==\n"), &["tiktoken.model line 1", "no space"]),
    case("ranks with a hole", |f| write(f, "tiktoken.model", "IQ== 0\nIg== 2\n"), &["line 2", "count up from 0"]),
    case("a token twice", |f| write(f, "tiktoken.model", "IQ== 0\nIQ== 1\n"), &["line 2", "occurs twice"]),
    case("not text", |f| write(f, "tiktoken.model", [0xff; 99]), &["line 1", "not UTF-8"]),
    case("missing", |f| fs::remove_file(f.join("tiktoken.model")).unwrap(), &["tiktoken.model", "No such file"]),
    case(
        "a token too few",
        |f| {
            let lines = text(f, "tiktoken.model");
            let all: Vec<_> = lines.lines().collect();
            write(f, "tiktoken.model", all[..all.len() - 1].join("\n"));
        },
        &["tokenizer_config.json", "none of the 256"],
    ),
    case("no control tokens", |f| write(f, "tokenizer_config.json", "{}"), &["tokenizer_config.json is not valid"]),
    case(
        "no end of message",
        |f| write(f, "tokenizer_config.json", text(f, "tokenizer_config.json").replace("<|end_of_msg|>", "<|end|>")),
        &["tokenizer_config.json", "<|end_of_msg|>"],
    ),
];

/// Everything that does not refuse a broken folder with one line that says why, with exit code 2 and nothing else done.
fn not_refused(cases: &[Case], arguments: &[&str]) -> Vec<String> {
    let refused = |case: &Case| {
        let folder = nano();
        (case.damage)(folder.path());
        let files = fs::read_dir(folder.path()).unwrap().count();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kimi-hcq"));
        let output = command.args(arguments).arg("--model").arg(folder.path()).env("MOCKKFD", "1").output().unwrap();
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        let good = output.status.code() == Some(2)
            && output.stdout.is_empty()
            && line.starts_with("kimi-hcq: ")
            && line.lines().count() == 1
            && line.len() < 4096
            && case.says.iter().all(|words| line.contains(words))
            && fs::read_dir(folder.path()).unwrap().count() == files;
        (!good).then(|| format!("{}, {:?}: {:?} {line}", case.name, case.says, output.status.code()))
    };
    cases.iter().filter_map(refused).collect()
}

#[test]
fn broken_configs_are_refused() {
    assert_eq!(not_refused(CONFIGS, &["load", "--null-devices"]), Vec::<String>::new());
}

#[test]
fn broken_indexes_are_refused() {
    assert_eq!(not_refused(INDEXES, &["load", "--null-devices"]), Vec::<String>::new());
}

#[test]
fn broken_headers_are_refused() {
    assert_eq!(not_refused(HEADERS, &["load", "--null-devices"]), Vec::<String>::new());
}

#[test]
fn broken_tokenizers_are_refused() {
    assert_eq!(not_refused(TOKENIZERS, &["run", "--prompt", "x"]), Vec::<String>::new());
}
