//! The tensors of a Kimi K3 text model: names, shapes, element types, and a dense numbering.
//!
//! The official checkpoint has 497,052 of them, so a tensor is a 6-byte [`TensorId`]; its name is written and parsed
//! on demand.

mod id;
mod inventory;
mod spec;

pub use id::{ExpertMatrix, ExpertPart, ExpertTensor, LayerTensor, ModelTensor, TEXT_PREFIX, TensorId};
pub use inventory::Inventory;
pub use spec::{Dtype, Shape, TensorSpec};
