//! Which half of the checkpoint a tensor belongs to.

use crate::tensor::TensorId;

/// Prefixes of the vision half, which a text run skips.
const VISION_PREFIXES: [&str; 2] = ["vision_tower.", "mm_projector."];

/// What a name in a header or an index stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorName {
    /// A tensor of the text model, if the model has a layer and an expert of that number.
    Text(TensorId),
    /// A tensor of the vision half.
    Vision,
    /// Nothing Kimi K3 has.
    Unknown,
}

impl TensorName {
    /// Classifies a name.
    pub fn classify(name: &str) -> Self {
        match name.parse() {
            Ok(id) => Self::Text(id),
            Err(_) if VISION_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) => Self::Vision,
            Err(_) => Self::Unknown,
        }
    }
}
