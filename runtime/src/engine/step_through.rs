//! A run launch by launch, to look at memory in between.

use super::{Engine, EngineError, graph_of};
use crate::forward::{Builder, Collectives, KernelLaunch, Launches, Logits};

/// Is told how each launch ended.
pub(crate) type AfterLaunch<'a, E> =
    dyn FnMut(&mut Engine, &KernelLaunch, Result<(), EngineError>) -> Result<(), E> + 'a;

impl Engine {
    /// Runs the forward pass on `tokens` behind what caches and states hold, one launch at a time. `after` is told how
    /// each ended, and can look at the idle GPUs.
    ///
    /// # Errors
    /// Those of `after`, and see [`EngineError`].
    pub fn step_through<E: From<EngineError>>(
        &mut self,
        tokens: &[u32],
        collectives: Collectives,
        after: &mut AfterLaunch<'_, E>,
    ) -> Result<(), E> {
        let count = tokens.len() as u32;
        let builder = |memory| Builder::new(&self.config, &self.layout, &self.plan, memory, count).with(collectives);
        let lists: Vec<Launches> = self.ranks.iter().map(|rank| builder(&rank.memory).forward(Logits::Last)).collect();
        let Some(first) = lists.first() else { return Ok(()) };
        self.write_run(tokens)?;
        for (index, launch) in first.kernels.iter().enumerate() {
            let one =
                |list: &Launches| Launches { kernels: vec![list.kernels[index].clone()], collectives: Vec::new() };
            let ones: Vec<Launches> = lists.iter().map(one).collect();
            let graph = graph_of(&self.ranks, &ones, &self.options)?;
            let ended = self.run_part(&graph);
            after(self, launch, ended)?;
        }
        // What the last launch, an advance, did to the step in device memory.
        self.step.position += count;
        self.step.epoch += first.collectives.len() as u32;
        self.step.sequence += 1;
        Ok(())
    }
}
