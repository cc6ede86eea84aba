//! Why a checkpoint folder cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{HeaderError, IndexError};
use crate::tensor::{Dtype, TensorId};

/// Why a checkpoint folder cannot be used. Nothing has been loaded when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The index could not be read.
    #[error("cannot read {}: {source}; name a folder that holds a published Kimi K3 checkpoint", path.display())]
    ReadIndex {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The index was refused.
    #[error("{}: {source}", path.display())]
    ParseIndex {
        /// The file.
        path: PathBuf,
        /// Why.
        source: IndexError,
    },
    /// Shards that the index names are not in the folder.
    #[error("{} lacks {} shard(s) its index names: {}; download them again", folder.display(), names.len(), names.join(", "))]
    FindShards {
        /// The folder.
        folder: PathBuf,
        /// Every missing file name.
        names: Vec<String>,
    },
    /// A shard could not be opened.
    #[error("cannot open shard {}: {source}", path.display())]
    OpenShard {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A shard's header was refused.
    #[error("shard {}: {source}", path.display())]
    ReadHeader {
        /// The file.
        path: PathBuf,
        /// Why.
        source: HeaderError,
    },
    /// Index, headers and config do not describe the same tensors.
    #[error("index, shard headers and config.json disagree: {0}")]
    MatchTensors(Disagreements),
    /// A tensor's bytes could not be read.
    #[error("cannot read tensor {tensor} from {}: {source}", path.display())]
    ReadTensor {
        /// The tensor.
        tensor: TensorId,
        /// The shard.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An entry of A_log behind the last head is not zero: the file uses some other axis.
    #[error("{tensor}: entry {entry} is {value}, but entries from {heads} (the number of heads) on must be 0.0")]
    CheckALog {
        /// The tensor.
        tensor: TensorId,
        /// Which entry.
        entry: usize,
        /// Its value.
        value: f32,
        /// Number of heads.
        heads: usize,
    },
}

/// One point where index, headers and config differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// The config implies the tensor, the index does not list it.
    #[error("the index does not list {0}")]
    MissingFromIndex(TensorId),
    /// The index lists it, the shard's header does not.
    #[error("{name} is not in {shard}, where the index places it")]
    MissingFromShard {
        /// The tensor.
        name: String,
        /// The shard.
        shard: String,
    },
    /// The header has it, the index places it elsewhere or nowhere.
    #[error("{name} is in {shard}, where the index does not place it")]
    MisplacedInShard {
        /// The tensor.
        name: String,
        /// The shard.
        shard: String,
    },
    /// The config implies no such tensor.
    #[error("{name} in {file} is no tensor of this model")]
    Unknown {
        /// The name.
        name: String,
        /// Index or shard.
        file: String,
    },
    /// Element type or shape differ from what the config implies.
    #[error("{tensor} is {found_dtype:?} {found_shape:?}; the config implies {dtype:?} {shape:?}")]
    WrongSpec {
        /// The tensor.
        tensor: TensorId,
        /// Implied element type.
        dtype: Dtype,
        /// Implied shape.
        shape: Vec<u64>,
        /// Stored element type.
        found_dtype: Dtype,
        /// Stored shape.
        found_shape: Vec<u64>,
    },
    /// The index's sum of sizes is wrong.
    #[error("the index states a total of {stated} bytes, the headers {found}")]
    WrongTotal {
        /// From the index.
        stated: u64,
        /// From the headers.
        found: u64,
    },
}

/// How many disagreements are kept; one wrong number in a config touches half a million tensors.
const KEPT: usize = 16;

/// Every disagreement: the first few in full, the others counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disagreements {
    /// The first ones.
    pub first: Vec<Disagreement>,
    /// How many there are in all.
    pub count: usize,
}

impl Disagreements {
    pub(super) fn add(&mut self, disagreement: Disagreement) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(disagreement);
        }
    }
}

impl fmt::Display for Disagreements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, disagreement) in self.first.iter().enumerate() {
            write!(f, "{}{disagreement}", if i == 0 { "" } else { "; " })?;
        }
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
