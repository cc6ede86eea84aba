//! The committed code objects and the kernels in them.

/// A code object: an ELF file for gfx950, as `kernels/build` made it.
#[derive(Debug)]
pub struct CodeObject {
    /// Name of its source in `src/device`, without `.c`.
    pub name: &'static str,
    /// The file.
    pub bytes: &'static [u8],
}

/// One kernel of a code object.
#[derive(Debug)]
pub struct Kernel {
    /// Its name; the descriptor's symbol is this with `.kd`.
    pub name: &'static str,
    /// The code object that holds it.
    pub code_object: &'static CodeObject,
    /// Work-items of a workgroup, all in x.
    pub workgroup: u32,
}

macro_rules! code_objects {
    ($($file:ident { $($(#[$doc:meta])* $constant:ident = $kernel:literal, $workgroup:literal work-items;)+ })+) => {
        mod objects {
            $(#[allow(non_upper_case_globals, reason = "named as the file")]
            pub(super) static $file: super::CodeObject = super::CodeObject {
                name: stringify!($file),
                bytes: include_bytes!(concat!("../code-objects/", stringify!($file), ".hsaco")),
            };)+
        }

        /// Every kernel of the crate.
        pub mod kernels {
            use super::{Kernel, objects};
            $($($(#[$doc])*
            pub static $constant: Kernel = Kernel {
                name: $kernel,
                code_object: &objects::$file,
                workgroup: $workgroup,
            };)+)+

            /// All of them.
            pub static ALL: &[&Kernel] = &[$($(&$constant),+),+];
        }

        /// Every code object of the crate.
        pub static CODE_OBJECTS: &[&CodeObject] = &[$(&objects::$file),+];
    };
}

code_objects! {
    embed {
        /// Rows of the embedding, from the ranks that own them.
        EMBED = "embed", 256 work-items;
    }
    mix_norm {
        /// Attention-residual mix and RMSNorm.
        MIX_NORM = "mix_norm", 256 work-items;
    }
    mix_project {
        /// Mix, norm and projections of one token.
        MIX_PROJECT = "mix_project", 512 work-items;
    }
    project_sum {
        /// Projection of one token and sum over ranks.
        PROJECT_SUM = "project_sum", 512 work-items;
    }
    gemm {
        /// Projections of at most 16 tokens a workgroup.
        GEMM_16 = "gemm_16", 256 work-items;
        /// Projections of 128 tokens a workgroup.
        GEMM_128 = "gemm_128", 256 work-items;
    }
    kda {
        /// Kimi Delta Attention of one token between its projections.
        KDA = "kda", 512 work-items;
    }
    kda_chunk {
        /// The same for many tokens, in blocks of 16.
        KDA_CHUNK = "kda_chunk", 512 work-items;
    }
    mla_latent {
        /// Low-rank norms of MLA and append to the latent cache.
        MLA_LATENT = "mla_latent", 256 work-items;
    }
    mla_query {
        /// Norms, q_b and append to the latent cache for one token.
        MLA_QUERY = "mla_query", 512 work-items;
    }
    mla_absorb {
        /// Key half of kv_b applied to the query.
        MLA_ABSORB = "mla_absorb", 256 work-items;
    }
    mla_attention {
        /// Attention over the cached latents.
        MLA_ATTENTION = "mla_attention", 256 work-items;
    }
    mla_value {
        /// Combination of splits, value half of kv_b and output gate.
        MLA_VALUE = "mla_value", 256 work-items;
    }
    router {
        /// Choice of experts.
        ROUTER_TOPK = "router_topk", 64 work-items;
        /// Assignments by expert.
        MOE_GROUP = "moe_group", 256 work-items;
        /// Both, for few tokens.
        MOE_ROUTE = "moe_route", 256 work-items;
    }
    moe_up {
        /// Gate and up of the routed experts.
        MOE_UP = "moe_up", 256 work-items;
    }
    moe_down {
        /// Down projection of the routed experts.
        MOE_DOWN = "moe_down", 256 work-items;
    }
    expert_up {
        /// Choice of the experts of one token, their gate and up.
        EXPERT_UP = "expert_up", 256 work-items;
    }
    expert_down {
        /// Down projection of the experts of one token, sum over them and over ranks.
        EXPERT_DOWN = "expert_down", 256 work-items;
    }
    all_reduce {
        /// Sum over ranks.
        ALL_REDUCE = "all_reduce", 256 work-items;
    }
    all_gather {
        /// Columns of all ranks.
        ALL_GATHER = "all_gather", 256 work-items;
    }
    signal {
        /// Values of this rank to all mailboxes.
        SIGNAL_SEND = "signal_send", 256 work-items;
        /// Sum over ranks, once all have signalled.
        SIGNAL_SUM = "signal_sum", 256 work-items;
        /// Columns of all ranks, once all have signalled.
        SIGNAL_GATHER = "signal_gather", 256 work-items;
    }
    sample {
        /// Choice of a token over all ranks.
        SAMPLE = "sample", 1024 work-items;
    }
    advance {
        /// End of a run of the graph.
        ADVANCE = "advance", 64 work-items;
    }
}
