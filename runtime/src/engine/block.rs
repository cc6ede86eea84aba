//! One block of the model on given input: what tests compare with a reference.

use half::bf16;

use super::{Engine, EngineError, address};
use crate::forward::Builder;
use crate::plan::pitch;

/// A block between two residual sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// The attention block of a layer.
    Attention(usize),
    /// The feed-forward block of a layer.
    FeedForward(usize),
}

impl Engine {
    /// Runs `block` from an empty context on `input`, `[tokens][hidden]` (the normed input of the block), and gives its
    /// output, of the same shape, summed over the ranks. At most a prefill chunk of tokens.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn run_block(&mut self, block: Block, input: &[bf16]) -> Result<Vec<bf16>, EngineError> {
        let width = self.config.hidden_size;
        let graph = self.build(self.options.chunk, |builder: Builder<'_>| match block {
            Block::Attention(layer) => builder.attention_alone(layer),
            Block::FeedForward(layer) => builder.feed_forward_alone(layer),
        })?;
        let tokens = input.len() / width;
        self.reset()?;
        for rank in &mut self.ranks {
            for (row, values) in input.chunks(width).enumerate() {
                let x = rank.memory.x().0 + row as u64 * u64::from(pitch(width, 2));
                rank.transfers.write(address(kernels::GpuVa(x)), bytemuck::cast_slice(values))?;
            }
        }
        // The tokens themselves play no part in a block.
        self.write_run(&vec![0; tokens])?;
        self.run(&graph, false)?;
        self.drain(&graph)?;
        let mut output = vec![bf16::ZERO; input.len()];
        let rank = &mut self.ranks[0];
        for (row, values) in output.chunks_mut(width).enumerate() {
            let h = rank.memory.h().0 + row as u64 * u64::from(pitch(width, 2));
            rank.transfers.read(address(kernels::GpuVa(h)), bytemuck::cast_slice_mut(values))?;
        }
        Ok(output)
    }
}
