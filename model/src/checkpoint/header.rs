//! The safetensors header, read strictly.
//!
//! ```text
//! offset 0          8               8+n             file_len
//!        | n: u64 LE | JSON, n bytes | tensor data   |
//! ```
//!
//! The JSON maps each tensor's name to `{"dtype", "shape", "data_offsets": [begin, end]}`, offsets counted from the
//! start of the data; `__metadata__` maps strings to strings. Tensors must tile the data: no hole, no overlap, nothing
//! past the end. The rules are those of the safetensors format; duplicate keys, which serde keeps the last of in
//! silence, are refused as well.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::tensor::Dtype;

/// Longest JSON accepted, in bytes: the limit of the safetensors library.
pub const HEADER_LIMIT: u64 = 100_000_000;

/// Most dimensions of a tensor, twice what any tensor of Kimi K3 has.
const MOST_DIMENSIONS: usize = 8;

/// Bytes of the length in front of the JSON.
const LENGTH_BYTES: u64 = 8;

/// Why a header is refused.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// Shorter than the length field.
    #[error("the file has {file_len} bytes, too few for a safetensors header length")]
    ReadLength {
        /// Size of the file.
        file_len: u64,
    },
    /// The header does not fit in the file or is beyond the format's limit.
    #[error("the header claims {json_len} bytes of a file of {file_len}; at most {HEADER_LIMIT} that fit are accepted")]
    BoundLength {
        /// Claimed length.
        json_len: u64,
        /// Size of the file.
        file_len: u64,
    },
    /// The system failed to read the file.
    #[error("cannot read the header: {0}")]
    Read(#[from] io::Error),
    /// The JSON does not begin with a brace, as the format demands.
    #[error("the header does not begin with '{{'; is this a safetensors file?")]
    BeginJson,
    /// The header is not a JSON object of tensors.
    #[error("the header is not a valid safetensors object: {0}")]
    ParseJson(#[from] serde_json::Error),
    /// A name occurs twice.
    #[error("tensor {name:?} is described twice")]
    Deduplicate {
        /// The name.
        name: String,
    },
    /// A tensor's begin lies behind its end.
    #[error("tensor {name:?} ends at {end}, before it begins at {begin}")]
    OrderOffsets {
        /// The tensor.
        name: String,
        /// First byte.
        begin: u64,
        /// One past the last byte.
        end: u64,
    },
    /// Shape x element size does not fit 64 bits or is no whole number of bytes.
    #[error("the size of tensor {name:?}, {dtype:?} of shape {shape:?}, is not a whole number of bytes below 2^64")]
    ComputeSize {
        /// The tensor.
        name: String,
        /// Its element type.
        dtype: Dtype,
        /// Its shape.
        shape: Vec<u64>,
    },
    /// Shape and byte range disagree.
    #[error("tensor {name:?} needs {size} bytes but its offsets span {span}")]
    MatchSize {
        /// The tensor.
        name: String,
        /// Bytes from shape and element type.
        size: u64,
        /// Bytes from the offsets.
        span: u64,
    },
    /// A hole or an overlap.
    #[error("tensor {name:?} begins at {begin}; the data before it ends at {expected}")]
    TileData {
        /// The tensor.
        name: String,
        /// Where it begins.
        begin: u64,
        /// Where it would have to begin.
        expected: u64,
    },
    /// Data of the file belongs to no tensor, or tensors lie beyond its end.
    #[error("the tensors end at byte {end} of the data, the file at {data_len}; is the download complete?")]
    FillFile {
        /// Where the tensors end.
        end: u64,
        /// Bytes behind the header.
        data_len: u64,
    },
}

/// One tensor of a verified header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo<'a> {
    /// Name, as written.
    pub name: Cow<'a, str>,
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions, outermost first; none for a scalar.
    pub shape: Vec<u64>,
    /// First byte, from the start of the file.
    pub begin: u64,
    /// One past the last byte, from the start of the file.
    pub end: u64,
}

/// A verified header: its tensors tile the data of the file exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The tensors in the order of their data.
    pub tensors: Vec<TensorInfo<'a>>,
    /// Where the data starts in the file.
    pub data_start: u64,
}

/// Length of the JSON, checked against the format's limit and the size of the file: safe to allocate.
pub fn json_length(prefix: [u8; 8], file_len: u64) -> Result<usize, HeaderError> {
    let json_len = u64::from_le_bytes(prefix);
    let rest = file_len.checked_sub(LENGTH_BYTES).ok_or(HeaderError::ReadLength { file_len })?;
    match usize::try_from(json_len) {
        Ok(len) if json_len <= HEADER_LIMIT && json_len <= rest => Ok(len),
        _ => Err(HeaderError::BoundLength { json_len, file_len }),
    }
}

/// Reads the length and the JSON of an open file; give the bytes to [`parse_header`].
pub fn read_header(file: &File, file_len: u64) -> Result<Vec<u8>, HeaderError> {
    if file_len < LENGTH_BYTES {
        return Err(HeaderError::ReadLength { file_len });
    }
    let mut prefix = [0; LENGTH_BYTES as usize];
    file.read_exact_at(&mut prefix, 0)?;
    let mut bytes = vec![0; LENGTH_BYTES as usize + json_length(prefix, file_len)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Parses and verifies a header. `bytes` are the first bytes of a file of `file_len` bytes, at least up to the end of
/// its JSON.
pub fn parse_header(bytes: &[u8], file_len: u64) -> Result<Header<'_>, HeaderError> {
    let (prefix, rest) = bytes.split_first_chunk().ok_or(HeaderError::ReadLength { file_len: bytes.len() as u64 })?;
    let json_len = json_length(*prefix, file_len)?;
    let json = rest
        .get(..json_len)
        .ok_or(HeaderError::BoundLength { json_len: json_len as u64, file_len: bytes.len() as u64 })?;
    if json.first() != Some(&b'{') {
        return Err(HeaderError::BeginJson);
    }
    let unverified: UnverifiedHeader<'_> = serde_json::from_slice(json)?;
    unverified.verify(LENGTH_BYTES + json_len as u64, file_len)
}

/// Names and numbers as written, in the order of the file.
struct UnverifiedHeader<'a>(Vec<(Cow<'a, str>, UnverifiedTensor)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnverifiedTensor {
    dtype: Dtype,
    #[serde(deserialize_with = "dimensions")]
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// A list of sizes, refused before it takes more memory than any tensor needs.
fn dimensions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    struct Dimensions;

    impl<'de> Visitor<'de> for Dimensions {
        type Value = Vec<u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST_DIMENSIONS} sizes")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
            let mut shape = Vec::new();
            while let Some(size) = list.next_element()? {
                if shape.len() == MOST_DIMENSIONS {
                    return Err(A::Error::invalid_length(MOST_DIMENSIONS + 1, &self));
                }
                shape.push(size);
            }
            Ok(shape)
        }
    }

    deserializer.deserialize_seq(Dimensions)
}

impl<'a> UnverifiedHeader<'a> {
    fn verify(self, data_start: u64, file_len: u64) -> Result<Header<'a>, HeaderError> {
        let mut tensors = self.0;
        tensors.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        if let Some(pair) = tensors.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(HeaderError::Deduplicate { name: pair[0].0.to_string() });
        }
        tensors.sort_by_key(|(_, tensor)| tensor.data_offsets);
        let data_len = file_len - data_start; // json_length checked that the header fits
        let mut verified = Vec::with_capacity(tensors.len());
        let mut end_of_previous = 0;
        for (name, UnverifiedTensor { dtype, shape, data_offsets: (begin, end) }) in tensors {
            let own = |name: &str| name.to_owned();
            let span =
                end.checked_sub(begin).ok_or_else(|| HeaderError::OrderOffsets { name: own(&name), begin, end })?;
            let Some(size) = byte_size(dtype, &shape) else {
                return Err(HeaderError::ComputeSize { name: own(&name), dtype, shape });
            };
            if size != span {
                return Err(HeaderError::MatchSize { name: own(&name), size, span });
            }
            if begin != end_of_previous {
                return Err(HeaderError::TileData { name: own(&name), begin, expected: end_of_previous });
            }
            if end > data_len {
                return Err(HeaderError::FillFile { end, data_len });
            }
            end_of_previous = end;
            verified.push(TensorInfo { name, dtype, shape, begin: data_start + begin, end: data_start + end });
        }
        if end_of_previous != data_len {
            return Err(HeaderError::FillFile { end: end_of_previous, data_len });
        }
        Ok(Header { tensors: verified, data_start })
    }
}

fn byte_size(dtype: Dtype, shape: &[u64]) -> Option<u64> {
    let elements = shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))?;
    let bits = elements.checked_mul(dtype.bits())?;
    bits.is_multiple_of(8).then_some(bits / 8)
}

impl<'de: 'a, 'a> Deserialize<'de> for UnverifiedHeader<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Vec<(Cow<'de, str>, UnverifiedTensor)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                let mut metadata = false;
                while let Some(Name(name)) = map.next_key()? {
                    if name != "__metadata__" {
                        entries.push((name, map.next_value()?));
                    } else if std::mem::replace(&mut metadata, true) {
                        return Err(A::Error::duplicate_field("__metadata__"));
                    } else {
                        map.next_value::<StringMap>()?;
                    }
                }
                Ok(entries)
            }
        }

        deserializer.deserialize_map(Entries).map(UnverifiedHeader)
    }
}

/// A string borrowed from the input unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// `__metadata__`: checked to map strings to strings, then forgotten; nothing here depends on it.
struct StringMap;

impl<'de> Deserialize<'de> for StringMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;

        impl<'de> Visitor<'de> for Strings {
            type Value = StringMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings to strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StringMap, A::Error> {
                while map.next_entry::<Name<'de>, Name<'de>>()?.is_some() {}
                Ok(StringMap)
            }
        }

        deserializer.deserialize_map(Strings)
    }
}
