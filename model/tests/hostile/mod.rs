//! What has to hold for any bytes that a parser is given: it does not panic, and what it accepts is sound.
//!
//! The fuzz targets in `model/fuzz` and the bounded tests in `hostile_bytes.rs` both come here.

use std::collections::HashSet;
use std::path::{Component, Path};

use model::Layout;
use model::checkpoint::{parse_header, parse_index};
use model::config::parse;
use model::tokenizer::{Marker, parse_tiktoken, parse_tokenizer_config};

/// The first eight bytes are the length that the file claims to have, the others its beginning.
pub(crate) fn header(input: &[u8]) {
    let Some((file_len, bytes)) = input.split_first_chunk() else { return };
    let file_len = u64::from_le_bytes(*file_len);
    let Ok(header) = parse_header(bytes, file_len) else { return };
    let mut end = header.data_start;
    let mut names = HashSet::new();
    for tensor in &header.tensors {
        let elements: u64 = tensor.shape.iter().product();
        assert_eq!(tensor.begin, end, "{} does not begin where the data before it ends", tensor.name);
        assert_eq!((tensor.end - tensor.begin) * 8, elements * tensor.dtype.bits(), "{}", tensor.name);
        assert!(names.insert(&tensor.name), "{} is there twice", tensor.name);
        end = tensor.end;
    }
    assert_eq!(end, file_len, "bytes of the file belong to no tensor");
}

/// `model.safetensors.index.json`
pub(crate) fn index(bytes: &[u8]) {
    let Ok(index) = parse_index(bytes) else { return };
    assert!(index.tensors.windows(2).all(|pair| pair[0].0 < pair[1].0), "a tensor is there twice, or out of order");
    assert!(index.tensors.iter().all(|(_, shard)| usize::from(*shard) < index.shards.len()), "a shard has no name");
    for shard in &index.shards {
        let parts: Vec<_> = Path::new(shard.as_ref()).components().collect();
        assert!(matches!(parts[..], [Component::Normal(name)] if name == shard.as_ref()), "{shard} leaves the folder");
    }
}

/// `config.json`
pub(crate) fn config(bytes: &[u8]) {
    let Ok(config) = parse(bytes).and_then(|config| config.verify()) else { return };
    for ranks in [1, 2, 4, 8] {
        // Sizes that do not divide are refused; all others have a plan that no sum overflows.
        if let Ok(layout) = Layout::new(&config, ranks) {
            assert!(layout.arena_bytes() > 0 && layout.arena_bytes() < 1 << 62, "{}", layout.arena_bytes());
        }
    }
}

/// `tiktoken.model`
pub(crate) fn tiktoken(bytes: &[u8]) {
    let Ok(vocabulary) = parse_tiktoken(bytes) else { return };
    assert!(vocabulary.len() >= 256);
    for rank in 0..vocabulary.len() {
        let token = vocabulary.bytes(rank).expect("every rank below the length is a token");
        assert_eq!(vocabulary.rank(token), Some(rank));
    }
}

/// `tokenizer_config.json`, for the vocabulary of K3-nano.
pub(crate) fn tokenizer_config(bytes: &[u8]) {
    const BASE: u32 = 1280;
    let Ok(control) = parse_tokenizer_config(bytes, BASE) else { return };
    for marker in Marker::ALL {
        assert_eq!(control.id(marker.name()), Some(control.marker(marker)));
    }
    assert!((BASE..BASE + 256).all(|id| control.token(id).is_some()));
}
