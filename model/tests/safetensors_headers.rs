//! Hostile and honest safetensors headers.

#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::checkpoint::{HEADER_LIMIT, Header, HeaderError, json_length, parse_header};
use model::tensor::Dtype;
use proptest::prelude::*;

/// A file of this JSON and this many bytes of data.
fn parse(json: &str, data_len: u64) -> Result<usize, HeaderError> {
    let bytes = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
    parse_header(&bytes, bytes.len() as u64 + data_len).map(|header| header.tensors.len())
}

/// A file with one tensor `a` described by this JSON.
fn parse_tensor(description: &str, data_len: u64) -> Result<usize, HeaderError> {
    parse(&format!(r#"{{"a":{description}}}"#), data_len)
}

#[test]
fn a_header_length_that_does_not_fit_is_refused_before_any_allocation() {
    assert!(matches!(parse_header(b"", 0), Err(HeaderError::ReadLength { file_len: 0 })));
    assert!(matches!(parse_header(&[0; 7], 7), Err(HeaderError::ReadLength { file_len: 7 })));
    for (length, file_len) in [
        (u64::MAX, 1 << 20),
        (1 << 63, u64::MAX),
        (u64::MAX - 7, u64::MAX),
        (1 << 20, 1 << 20),
        (13, 20),
        (HEADER_LIMIT + 1, u64::MAX),
    ] {
        let refused = json_length(length.to_le_bytes(), file_len);
        assert!(matches!(refused, Err(HeaderError::BoundLength { .. })), "{length} of {file_len}");
    }
    assert_eq!(json_length(12u64.to_le_bytes(), 20).unwrap(), 12);
    assert_eq!(json_length(HEADER_LIMIT.to_le_bytes(), u64::MAX).unwrap() as u64, HEADER_LIMIT);
}

#[test]
fn an_empty_header_or_one_that_is_no_object_is_refused() {
    for json in ["", " ", " {}", "[]", "null", "7", "\"\"", "\u{feff}{}"] {
        assert!(matches!(parse(json, 0), Err(HeaderError::BeginJson)), "{json:?}");
    }
    for json in ["{", "{}x", "{]", "{}{}"] {
        assert!(matches!(parse(json, 0), Err(HeaderError::ParseJson(_))), "{json:?}");
    }
    assert_eq!(parse("{}   ", 0).unwrap(), 0);
    assert_eq!(parse(r#"{"__metadata__":{"format":"pt"}}"#, 0).unwrap(), 0);
}

#[test]
fn a_header_cut_short_of_its_length_is_refused() {
    let bytes = [&4u64.to_le_bytes()[..], b"{}"].concat();
    assert!(matches!(parse_header(&bytes, 12), Err(HeaderError::BoundLength { .. })));
}

#[test]
fn data_offsets_that_are_not_two_counts_are_refused() {
    for offsets in ["[]", "[0]", "[0,4,4]", "[-1,3]", "[0,4.0]", "[0,\"4\"]", "[0,18446744073709551616]", "null", "{}"]
    {
        let tensor = format!(r#"{{"dtype":"F32","shape":[1],"data_offsets":{offsets}}}"#);
        assert!(matches!(parse_tensor(&tensor, 4), Err(HeaderError::ParseJson(_))), "{offsets}");
    }
    let inverted = r#"{"dtype":"F32","shape":[1],"data_offsets":[4,0]}"#;
    assert!(matches!(parse_tensor(inverted, 4), Err(HeaderError::OrderOffsets { begin: 4, end: 0, .. })));
}

#[test]
fn sizes_that_overflow_or_disagree_with_their_span_are_refused() {
    for shape in
        ["[4294967296,4294967296]", "[9223372036854775810,2]", "[18446744073709551615]", "[2305843009213693952]"]
    {
        let tensor = format!(r#"{{"dtype":"F64","shape":{shape},"data_offsets":[0,16]}}"#);
        assert!(matches!(parse_tensor(&tensor, 16), Err(HeaderError::ComputeSize { .. })), "{shape}");
    }
    let short = r#"{"dtype":"F32","shape":[2,2],"data_offsets":[0,12]}"#;
    assert!(matches!(parse_tensor(short, 12), Err(HeaderError::MatchSize { size: 16, span: 12, .. })));
}

#[test]
fn a_sub_byte_type_needs_a_whole_number_of_bytes() {
    let odd = r#"{"dtype":"F4","shape":[3],"data_offsets":[0,2]}"#;
    assert!(matches!(parse_tensor(odd, 2), Err(HeaderError::ComputeSize { .. })));
    assert_eq!(parse_tensor(r#"{"dtype":"F4","shape":[4],"data_offsets":[0,2]}"#, 2).unwrap(), 1);
    assert_eq!(parse_tensor(r#"{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}"#, 3).unwrap(), 1);
}

#[test]
fn holes_overlaps_and_data_of_nobody_are_refused() {
    let two = |a: &str, b: &str| {
        let tensor = |offsets: &str| format!(r#"{{"dtype":"U8","shape":[4],"data_offsets":{offsets}}}"#);
        format!(r#"{{"a":{},"b":{}}}"#, tensor(a), tensor(b))
    };
    assert_eq!(parse(&two("[4,8]", "[0,4]"), 8).unwrap(), 2);
    assert!(matches!(parse(&two("[0,4]", "[5,9]"), 9), Err(HeaderError::TileData { begin: 5, expected: 4, .. })));
    assert!(matches!(parse(&two("[0,4]", "[3,7]"), 7), Err(HeaderError::TileData { begin: 3, expected: 4, .. })));
    assert!(matches!(parse(&two("[0,4]", "[0,4]"), 4), Err(HeaderError::TileData { begin: 0, expected: 4, .. })));
    assert!(matches!(parse(&two("[1,5]", "[5,9]"), 9), Err(HeaderError::TileData { begin: 1, expected: 0, .. })));
    assert!(matches!(parse(&two("[0,4]", "[4,8]"), 7), Err(HeaderError::FillFile { end: 8, data_len: 7 })));
    assert!(matches!(parse(&two("[0,4]", "[4,8]"), 9), Err(HeaderError::FillFile { end: 8, data_len: 9 })));
}

#[test]
fn duplicate_names_are_refused_however_they_are_spelled() {
    let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    for twin in ["a", "\\u0061"] {
        let json = format!(r#"{{"a":{entry},"{twin}":{entry}}}"#);
        assert!(matches!(parse(&json, 0), Err(HeaderError::Deduplicate { name }) if name == "a"));
    }
    let field = r#"{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    assert!(matches!(parse_tensor(field, 0), Err(HeaderError::ParseJson(_))));
    assert!(matches!(parse(r#"{"__metadata__":{},"__metadata__":{}}"#, 0), Err(HeaderError::ParseJson(_))));
}

#[test]
fn fields_that_are_unknown_missing_or_of_the_wrong_type_are_refused() {
    for tensor in [
        r#"{"dtype":"F32","shape":[1]}"#,
        r#"{"dtype":"F32","data_offsets":[0,4]}"#,
        r#"{"shape":[1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F33","shape":[1],"data_offsets":[0,4]}"#,
        r#"{"dtype":0,"shape":[1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":{},"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]}"#,
        "[]",
    ] {
        assert!(matches!(parse_tensor(tensor, 4), Err(HeaderError::ParseJson(_))), "{tensor}");
    }
    for metadata in [r#"{"format":1}"#, r#"{"format":{}}"#, "[]", "\"pt\""] {
        let json = format!(r#"{{"__metadata__":{metadata}}}"#);
        assert!(matches!(parse(&json, 0), Err(HeaderError::ParseJson(_))), "{metadata}");
    }
}

#[test]
fn depth_bombs_and_bytes_that_are_not_utf8_are_refused() {
    let deep = |open: &str| format!("{{\"a\":{}", open.repeat(1_000_000));
    for json in [deep("["), deep("{\"a\":"), format!("{{\"__metadata__\":{}", "[".repeat(1_000_000))] {
        assert!(matches!(parse(&json, 0), Err(HeaderError::ParseJson(_))));
    }
    let bytes = [&8u64.to_le_bytes()[..], b"{\"\xff\":1} "].concat();
    assert!(matches!(parse_header(&bytes, 16), Err(HeaderError::ParseJson(_))));
}

#[test]
fn a_scalar_and_an_empty_tensor_are_allowed() {
    let json = r#"{"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"e":{"dtype":"BF16","shape":[3,0],"data_offsets":[4,4]}}"#;
    assert_eq!(parse(json, 4).unwrap(), 2);
}

/// Names with everything JSON must escape, small shapes, any type.
fn tensors() -> impl Strategy<Value = BTreeMap<String, (Dtype, Vec<usize>)>> {
    let dtype = prop::sample::select(vec![Dtype::U8, Dtype::F32, Dtype::BF16, Dtype::I64, Dtype::BOOL]);
    prop::collection::btree_map("[a-z.\"\\\\\u{1}\u{e9}]{1,12}", (dtype, prop::collection::vec(0usize..5, 0..4)), 0..12)
}

fn peer_dtype(dtype: Dtype) -> safetensors::Dtype {
    match dtype {
        Dtype::U8 => safetensors::Dtype::U8,
        Dtype::F32 => safetensors::Dtype::F32,
        Dtype::BF16 => safetensors::Dtype::BF16,
        Dtype::I64 => safetensors::Dtype::I64,
        _ => safetensors::Dtype::BOOL,
    }
}

proptest! {
    #[test]
    fn files_of_the_safetensors_library_are_read_as_it_reads_them(tensors in tensors()) {
        let sizes: BTreeMap<_, _> = tensors.iter().map(|(name, (dtype, shape))| {
            (name, vec![7u8; shape.iter().product::<usize>() * dtype.bits() as usize / 8])
        }).collect();
        let views = tensors.iter().map(|(name, (dtype, shape))| {
            let data = &sizes[name];
            (name.clone(), safetensors::tensor::TensorView::new(peer_dtype(*dtype), shape.clone(), data).unwrap())
        });
        let file = safetensors::serialize(views, None).unwrap();
        let ours = parse_header(&file, file.len() as u64).unwrap();
        let peer = safetensors::SafeTensors::deserialize(&file).unwrap();
        prop_assert_eq!(ours.tensors.len(), peer.len());
        for tensor in &ours.tensors {
            let theirs = peer.tensor(&tensor.name).unwrap();
            let shape: Vec<u64> = theirs.shape().iter().map(|d| *d as u64).collect();
            prop_assert_eq!(&tensor.shape, &shape);
            prop_assert_eq!(&file[tensor.begin as usize..tensor.end as usize], theirs.data());
        }
    }

    #[test]
    fn what_we_accept_the_safetensors_library_accepts_too(json in r#"\{("[ab]":\{"dtype":"(U8|F32|F4)","shape":\[[0-3]?\],"data_offsets":\[[0-8],[0-8]\]\},?){0,3}\} ?"#, data_len in 0usize..9) {
        let mut file = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
        file.resize(file.len() + data_len, 0);
        if parse_header(&file, file.len() as u64).is_ok() {
            prop_assert!(safetensors::SafeTensors::deserialize(&file).is_ok());
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), file_len: u64) {
        let _ = parse_header(&bytes, file_len);
    }

    #[test]
    fn no_change_of_one_byte_makes_the_parser_panic(at in 8usize..200, byte: u8) {
        let file = include_bytes!("../../tests/fixtures/k3-nano/model-00006-of-000006.safetensors");
        let mut head = file[..8 + 568].to_vec();
        head[at] = byte;
        let _ = parse_header(&head, file.len() as u64);
    }
}

#[test]
fn names_borrow_from_the_header_unless_they_are_escaped() {
    let json = r#"{"plain":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"e\u0073caped":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
    let bytes = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
    let Header { tensors, data_start } = parse_header(&bytes, bytes.len() as u64).unwrap();
    assert_eq!(data_start, bytes.len() as u64);
    let borrowed = |name: &str| tensors.iter().any(|t| t.name == name && matches!(t.name, Cow::Borrowed(_)));
    assert!(borrowed("plain") && !borrowed("escaped"));
}
