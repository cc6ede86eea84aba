//! Checkpoint files: safetensors headers, the index, and the folder that holds them.
//!
//! [`parse_header`] and [`parse_index`] are pure functions over bytes. [`Checkpoint::open`] reads both from a folder and
//! checks that index, headers and config agree on every tensor before anything is loaded.

mod error;
mod folder;
mod header;
mod index;
mod names;
mod published;

pub use error::{CheckpointError, Disagreement, Disagreements};
pub use folder::{Checkpoint, Shard, ShardTensor, VisionHalf};
pub use header::{HEADER_LIMIT, Header, HeaderError, TensorInfo, json_length, parse_header, read_header};
pub use index::{INDEX_FILE, INDEX_LIMIT, Index, IndexError, parse_index};
pub use names::TensorName;
pub use published::{PublishedShard, Vision, published_shards, write_index, write_sparse};
