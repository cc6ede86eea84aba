//! Stored weights, widened.

use std::collections::HashMap;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::config::MXFP4_GROUP;
use crate::tensor::{Dtype, ExpertMatrix, ExpertPart, ExpertTensor, TensorId};

/// All weights in FP32, MXFP4 matrices under the id of their nibbles.
#[derive(Debug)]
pub(super) struct Weights(HashMap<TensorId, Vec<f32>>);

impl Weights {
    pub(super) fn load(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        let mut weights = HashMap::new();
        for id in checkpoint.inventory().iter() {
            let (Some(spec), Some(bytes)) = (checkpoint.inventory().spec(id), checkpoint.read(id)) else { continue };
            let bytes = bytes?;
            let values = match id {
                TensorId::Expert(ExpertTensor { part: ExpertPart::Scale, .. }) => continue,
                TensorId::Expert(tensor) => {
                    let scale = TensorId::Expert(ExpertTensor { part: ExpertPart::Scale, ..tensor });
                    let Some(scales) = checkpoint.read(scale) else { continue };
                    decode_mxfp4(&bytes, &scales?)
                }
                _ if spec.dtype == Dtype::BF16 => {
                    let widen = |bits: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*bits)) << 16);
                    bytes.as_chunks().0.iter().map(widen).collect()
                }
                _ => bytes.as_chunks().0.iter().map(|bits| f32::from_le_bytes(*bits)).collect(),
            };
            weights.insert(id, values);
        }
        Ok(Self(weights))
    }

    pub(super) fn of(&self, id: TensorId) -> &[f32] {
        self.0.get(&id).unwrap_or_else(|| panic!("the model has no tensor {id}"))
    }

    pub(super) fn expert(&self, layer: usize, expert: usize, matrix: ExpertMatrix) -> &[f32] {
        let (layer, expert) = (layer as u16, expert as u16);
        self.of(TensorId::Expert(ExpertTensor { layer, expert, matrix, part: ExpertPart::Packed }))
    }
}

/// Values of MXFP4 nibbles (E2M1, the even element low) and E8M0 scales, one scale per 32 elements.
pub fn decode_mxfp4(packed: &[u8], scales: &[u8]) -> Vec<f32> {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let element = |nibble: u8| {
        let magnitude = MAGNITUDES[usize::from(nibble & 7)];
        if nibble & 8 == 0 { magnitude } else { -magnitude }
    };
    let mut values = Vec::with_capacity(packed.len() * 2);
    for (bytes, scale) in packed.chunks(MXFP4_GROUP / 2).zip(scales) {
        let scale = if *scale == u8::MAX { f32::NAN } else { f64::from(i16::from(*scale) - 127).exp2() as f32 };
        values.extend(bytes.iter().flat_map(|byte| [element(byte & 15) * scale, element(byte >> 4) * scale]));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mxfp4_is_decoded_low_nibble_first_with_one_scale_per_32() {
        let mut packed = [0u8; 32];
        packed[..8].copy_from_slice(&[0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]);
        packed[16] = 0x0f;
        let values = decode_mxfp4(&packed, &[127, 129]);
        let positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        assert_eq!(values[..8], positive);
        assert_eq!(values[8..16], positive.map(|v: f32| -v));
        assert_eq!((values[32], values[33]), (-24.0, 0.0));
        assert_eq!(decode_mxfp4(&[0x02; 16], &[0])[0], 2f32.powi(-127));
        assert!(decode_mxfp4(&[0x02; 16], &[255])[0].is_nan());
    }
}
