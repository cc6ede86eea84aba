//! Where one rank's memory is.

use driver::address::GpuVa as Address;
use kernels::GpuVa;
use kernels::collective::Mailbox;
use kernels::limits::MAX_RANKS;
use model::config::Config;

use crate::plan::{MemoryPlan, Offset, Workspace, pitch};

/// The addresses of one rank's sections, as its GPU maps them.
#[derive(Clone, Debug)]
pub struct RankMemory {
    /// The rank.
    pub rank: u32,
    /// Start of the weight arena.
    pub weights: Address,
    /// Start of the MLA latents.
    pub cache: Address,
    /// Start of the KDA states.
    pub state: Address,
    /// Start of the workspace.
    pub workspace: Address,
    /// Parts of the workspace.
    pub places: Workspace,
    /// By rank: its rows of the embedding.
    pub embeddings: [GpuVa; MAX_RANKS],
    /// By rank: its mailbox.
    pub mailboxes: [GpuVa; MAX_RANKS],
    /// The token ring.
    pub ring: GpuVa,
    /// How long a collective waits for a peer, in ticks of 100 MHz.
    pub timeout: u64,
}

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl RankMemory {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(&self) -> GpuVa {
                self.at(self.places.$name)
            })*
        }
    };
}

places! {
    /// The step.
    step;
    /// The error word.
    error;
    /// The tokens of a run.
    ids;
    /// The residual stream.
    h;
    /// The input of a block.
    x;
    /// The ranks' share of a sum.
    partial;
    /// The logits.
    logits;
}

impl RankMemory {
    /// Address of a part of the workspace.
    #[must_use]
    pub fn at(&self, place: Offset) -> GpuVa {
        place.at(self.workspace)
    }

    /// Bytes from one saved block to the next.
    #[must_use]
    pub fn block_stride(&self, plan: &MemoryPlan, config: &Config) -> u64 {
        u64::from(plan.sizes.chunk) * u64::from(pitch(config.hidden_size, 2))
    }

    /// Saved block `index`.
    #[must_use]
    pub fn block(&self, plan: &MemoryPlan, config: &Config, index: u32) -> GpuVa {
        GpuVa(self.at(self.places.blocks).0 + u64::from(index) * self.block_stride(plan, config))
    }

    /// What collectives need.
    #[must_use]
    pub fn mailbox(&self, plan: &MemoryPlan) -> Mailbox {
        Mailbox {
            mailboxes: self.mailboxes,
            error: self.error(),
            words: plan.mailbox_words,
            timeout: self.timeout,
            rank: self.rank,
            ranks: plan.sizes.ranks as u32,
        }
    }
}
