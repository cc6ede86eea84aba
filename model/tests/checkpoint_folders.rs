//! Whole folders: what [`Checkpoint::open`] accepts and what it refuses.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use model::checkpoint::{
    CheckpointError, Disagreement, INDEX_FILE, IndexError, Vision, parse_header, parse_index, published_shards,
    write_index,
};
use model::tensor::TensorId;
use model::{Checkpoint, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

fn nano() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano")
}

fn config() -> Config {
    Config::read(&nano()).unwrap()
}

/// A folder of symbolic links to K3-nano, as in the Hugging Face cache, with the index as a file of its own.
fn linked_nano() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(nano()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "safetensors") {
            symlink(path.canonicalize().unwrap(), folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::copy(nano().join(INDEX_FILE), folder.path().join(INDEX_FILE)).unwrap();
    folder
}

fn edit_index(folder: &TempDir, edit: impl FnOnce(&mut Value)) {
    let path = folder.path().join(INDEX_FILE);
    let mut index: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut index);
    fs::write(path, index.to_string()).unwrap();
}

fn disagreements(folder: &TempDir) -> Vec<Disagreement> {
    match Checkpoint::open(folder.path(), &config()) {
        Err(CheckpointError::MatchTensors(found)) => found.first,
        other => panic!("expected disagreements, got {other:?}"),
    }
}

const SHARD_1: &str = "model-00001-of-000006.safetensors";
const SHARD_2: &str = "model-00002-of-000006.safetensors";

#[test]
fn k3_nano_opens_through_symbolic_links() {
    let folder = linked_nano();
    let checkpoint = Checkpoint::open(folder.path(), &config()).unwrap();
    assert_eq!(checkpoint.shards().len(), 6);
    assert_eq!(checkpoint.shards().iter().map(|shard| shard.tensors.len()).sum::<usize>(), 512);
    let id: TensorId = "language_model.model.layers.1.self_attn.A_log".parse().unwrap();
    let bytes = checkpoint.read(id).unwrap().unwrap();
    assert_eq!(bytes.len(), 512);
    assert!(bytes[..32].iter().any(|b| *b != 0) && bytes[32..].iter().all(|b| *b == 0));
}

#[test]
fn every_missing_shard_is_listed_and_none_is_created() {
    let folder = linked_nano();
    fs::remove_file(folder.path().join(SHARD_1)).unwrap();
    fs::remove_file(folder.path().join(SHARD_2)).unwrap();
    match Checkpoint::open(folder.path(), &config()) {
        Err(CheckpointError::FindShards { mut names, .. }) => {
            names.sort();
            assert_eq!(names, [SHARD_1, SHARD_2]);
        }
        other => panic!("{other:?}"),
    }
    assert!(!folder.path().join(SHARD_1).exists());
}

#[test]
fn a_dangling_link_is_a_missing_shard_and_a_folder_is_no_shard() {
    let folder = linked_nano();
    let path = folder.path().join(SHARD_1);
    fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert!(matches!(Checkpoint::open(folder.path(), &config()), Err(CheckpointError::FindShards { .. })));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(Checkpoint::open(folder.path(), &config()), Err(CheckpointError::OpenShard { .. })));
}

#[test]
fn a_folder_without_index_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let error = Checkpoint::open(folder.path(), &config()).unwrap_err();
    assert!(matches!(&error, CheckpointError::ReadIndex { .. }) && error.to_string().contains(INDEX_FILE));
}

#[test]
fn a_truncated_shard_is_refused() {
    let folder = linked_nano();
    let path = folder.path().join(SHARD_1);
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = Checkpoint::open(folder.path(), &config()).unwrap_err().to_string();
    assert!(error.contains(SHARD_1) && error.contains("is the download complete?"), "{error}");
}

#[test]
fn an_index_that_places_a_tensor_in_another_shard_is_refused() {
    let folder = linked_nano();
    let name = "language_model.model.layers.0.self_attn.dt_bias";
    edit_index(&folder, |index| index["weight_map"][name] = json!(SHARD_2));
    let found = disagreements(&folder);
    let (name, shard) = (name.to_owned(), SHARD_1.to_owned());
    assert!(found.contains(&Disagreement::MisplacedInShard { name: name.clone(), shard }));
    assert!(found.contains(&Disagreement::MissingFromShard { name, shard: SHARD_2.to_owned() }));
}

#[test]
fn an_index_that_omits_a_tensor_or_a_whole_shard_is_refused() {
    let folder = linked_nano();
    let name = "language_model.model.norm.weight";
    edit_index(&folder, |index| _ = index["weight_map"].as_object_mut().unwrap().remove(name));
    assert_eq!(disagreements(&folder)[0], Disagreement::MissingFromIndex(name.parse().unwrap()));

    let folder = linked_nano();
    edit_index(&folder, |index| index["weight_map"].as_object_mut().unwrap().retain(|_, shard| shard != SHARD_1));
    assert!(disagreements(&folder).iter().any(|d| matches!(d, Disagreement::MissingFromIndex(_))));
}

#[test]
fn a_tensor_in_two_shards_is_refused() {
    let folder = linked_nano();
    let copy = "model-00007-of-000006.safetensors";
    fs::copy(nano().join("model-00006-of-000006.safetensors"), folder.path().join(copy)).unwrap();
    edit_index(&folder, |index| index["weight_map"]["language_model.lm_head.weight"] = json!(copy));
    let twice = "language_model.model.norm.weight".to_owned();
    assert!(disagreements(&folder).contains(&Disagreement::MisplacedInShard { name: twice, shard: copy.to_owned() }));
}

#[test]
fn unknown_tensors_wrong_shapes_and_wrong_totals_are_refused() {
    let folder = linked_nano();
    edit_index(&folder, |index| {
        index["weight_map"]["language_model.model.layers.9.input_layernorm.weight"] = json!(SHARD_1);
        index["metadata"]["total_size"] = json!(1);
    });
    let found = disagreements(&folder);
    assert!(
        matches!(&found[0], Disagreement::Unknown { name, file } if name.contains("layers.9") && file == INDEX_FILE)
    );
    assert!(found.contains(&Disagreement::WrongTotal { stated: 1, found: 27032832 }));

    let mut config = config();
    config.kda.head_dim = 64;
    let error = Checkpoint::open(&nano(), &config).unwrap_err().to_string();
    assert!(error.contains("F32 [1024]; the config implies F32 [512]"), "{error}");
    assert!(error.contains("and ") && error.contains(" more"), "{error}");
}

#[test]
fn an_a_log_with_a_value_behind_the_last_head_is_refused() {
    let folder = linked_nano();
    let path = folder.path().join(SHARD_1);
    let mut bytes = fs::read(&path).unwrap();
    let header = parse_header(&bytes, bytes.len() as u64).unwrap();
    let a_log = header.tensors.iter().find(|t| t.name.ends_with("A_log")).unwrap().begin as usize;
    bytes[a_log + 4 * 100..][..4].copy_from_slice(&0.25f32.to_le_bytes());
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    let refused = Checkpoint::open(folder.path(), &config());
    assert!(matches!(refused, Err(CheckpointError::CheckALog { entry: 100, value: 0.25, heads: 8, .. })));
}

#[test]
fn shard_names_that_leave_the_folder_are_refused() {
    for name in [
        "../x.safetensors",
        "/x.safetensors",
        "a/b.safetensors",
        "a\\b.safetensors",
        "..",
        "",
        ".safetensors",
        "x.bin",
        "x\u{0}.safetensors",
        "C:x.safetensors",
    ] {
        let index = json!({"metadata": {"total_size": 0}, "weight_map": {"a": name}}).to_string();
        assert!(matches!(parse_index(index.as_bytes()), Err(IndexError::AcceptShardName { .. })), "{name:?}");
    }
}

#[test]
fn an_index_that_is_malformed_or_names_a_tensor_twice_is_refused() {
    let twice = r#"{"metadata":{"total_size":0},"weight_map":{"a":"x.safetensors","\u0061":"y.safetensors"}}"#;
    assert!(matches!(parse_index(twice.as_bytes()), Err(IndexError::Deduplicate { name }) if name == "a"));
    let deep = format!(r#"{{"metadata":{{"total_size":0}},"weight_map":{}"#, "[".repeat(100_000));
    for index in [
        "",
        "[]",
        "{}",
        r#"{"weight_map":{}}"#,
        r#"{"metadata":{"total_size":-1},"weight_map":{}}"#,
        r#"{"metadata":{"total_size":0},"weight_map":{"a":1}}"#,
        r#"{"metadata":{"total_size":0},"weight_map":[]}"#,
        r#"{"metadata":{"total_size":0},"weight_map":{},"weight_map":{}}"#,
        &deep,
    ] {
        assert!(matches!(parse_index(index.as_bytes()), Err(IndexError::ParseJson(_))), "{:.60}", index);
    }
}

#[test]
fn the_published_layout_made_from_the_config_is_k3_nanos_to_the_byte() {
    let mut count = 0;
    for shard in published_shards(&config(), Vision::Absent) {
        let file = fs::read(nano().join(&shard.file_name)).unwrap();
        assert_eq!(file[..shard.header.len()], shard.header, "{}", shard.file_name);
        assert_eq!(file.len() as u64, shard.header.len() as u64 + shard.data_len);
        count += 1;
    }
    assert_eq!(count, 6);
    let mut written = Vec::new();
    write_index(&config(), Vision::Absent, &mut written).unwrap();
    let original: Value = serde_json::from_slice(&fs::read(nano().join(INDEX_FILE)).unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), original);
}

#[test]
fn the_official_layout_has_the_published_counts_and_bytes() {
    let (mut entries, mut bytes, mut text_bytes, mut shards) = (0, 0, 0, 0);
    for shard in published_shards(&Config::official(), Vision::Published) {
        let header = parse_header(&shard.header, shard.header.len() as u64 + shard.data_len).unwrap();
        entries += header.tensors.len();
        bytes += shard.data_len;
        if shard.names[0].starts_with("language_model.") {
            text_bytes += shard.data_len;
        }
        shards += 1;
        if shards == 2 {
            assert_eq!(shard.file_name, "model-00002-of-000096.safetensors");
            let experts = shard.names.iter().filter(|name| name.contains(".experts.")).step_by(6);
            let order: Vec<_> = experts.take(4).map(|name| name.split('.').nth(6).unwrap()).collect();
            assert_eq!(order, ["0", "1", "10", "100"]);
        }
    }
    assert_eq!((shards, entries), (96, 497_220));
    assert_eq!((text_bytes, bytes), (1_559_965_606_912, 1_560_860_324_864));
}
