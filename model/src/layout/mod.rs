//! Where every weight goes: the tensor-parallel split and the arena each rank keeps its part in.
//!
//! A rank has one arena of weights. All ranks use the same offsets, because every split is even. Tensors start at
//! multiples of [`TENSOR_ALIGN`]; the experts of a layer follow each other in numeric order with one stride, so that a
//! kernel finds expert e by multiplication. Inside a layer, matrices that read the same vector follow each other in this
//! order, without gap where their sizes are multiples of the alignment (they are in the released model):
//!
//! - KDA input: q, k, v, g, f_a, b
//! - MLA input: q_a, kv_a, g
//! - feed-forward input: router, latent down, shared gate, shared up
//!
//! Offsets only: which device address an arena has is the runtime's business.

mod arena;
mod copy;
mod share;
mod sizes;
mod source;

pub use arena::{ExpertTable, KvB, Layout, Region, TENSOR_ALIGN};
pub use copy::WeightCopy;
pub use share::{ROW_ALIGN, Share};
pub use sizes::{ArenaSizes, WeightGroup};

/// Why a layout cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The number of ranks is none this program was made for.
    #[error("{0} ranks were asked for; 1, 2, 4 and 8 are supported")]
    CountRanks(usize),
    /// Sizes of the model that cannot be split evenly.
    #[error("this model cannot be split over {ranks} ranks: {}", list(indivisible))]
    Divide {
        /// Ranks asked for.
        ranks: usize,
        /// Every size that does not divide.
        indivisible: Vec<Indivisible>,
    },
}

/// A size that must be a multiple of something and is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indivisible {
    /// What is counted.
    pub what: &'static str,
    /// How many there are.
    pub size: usize,
    /// What the number must be a multiple of.
    pub by: usize,
}

fn list(indivisible: &[Indivisible]) -> String {
    let item = |i: &Indivisible| format!("{} {} are no multiple of {}", i.size, i.what, i.by);
    indivisible.iter().map(item).collect::<Vec<_>>().join("; ")
}
