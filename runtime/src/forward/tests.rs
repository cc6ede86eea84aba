//! Counts over the official config: nothing is allocated, let alone run.

use driver::address::GpuVa as Address;
use kernels::GpuVa;
use kernels::limits::MAX_RANKS;
use model::config::{Attention, Config, FeedForward};
use model::layout::Layout;

use super::{Builder, Launches, Logits, RankMemory};
use crate::plan::{MemoryPlan, Sizes};

const RANKS: usize = 8;

/// The graph of a run of at most `tokens` tokens over eight GPUs, at addresses that only keep sections apart.
fn official(tokens: u32) -> Launches {
    let config = Config::official();
    let layout = Layout::new(&config, RANKS).unwrap();
    let sizes = Sizes { ranks: RANKS, chunk: 128, max_context: 1 << 20, all_logits: false };
    let plan = MemoryPlan::new(&config, &layout, sizes);
    let section = |index: u64| Address::new(index << 40);
    let memory = RankMemory {
        rank: 3,
        weights: section(1),
        cache: section(2),
        state: section(3),
        workspace: section(4),
        places: plan.places,
        embeddings: [GpuVa(5 << 40); MAX_RANKS],
        mailboxes: [GpuVa(6 << 40); MAX_RANKS],
        ring: GpuVa(7 << 40),
        timeout: 1,
    };
    Builder::new(&config, &layout, &plan, &memory, tokens).forward(Logits::Last)
}

fn dispatches(launches: &Launches, layer: Option<usize>) -> Vec<&'static str> {
    launches.kernels.iter().filter(|launch| launch.layer == layer).map(|launch| launch.kernel.name).collect()
}

#[test]
fn a_decoded_token_takes_seven_dispatches_a_kda_layer_and_ten_an_mla_layer() {
    let (config, launches) = (Config::official(), official(1));
    let moe = ["mix_project", "expert_up", "expert_down", "project_sum"];
    let kda = ["mix_project", "kda", "project_sum"];
    let mla = ["mix_project", "mla_query", "mla_absorb", "mla_attention", "mla_value", "project_sum"];
    for (index, layer) in config.layers.iter().enumerate() {
        let attention: &[_] = if layer.attention == Attention::Kda { &kda } else { &mla };
        let dense = ["mix_project", "project_sum"];
        let feed_forward: &[_] = if layer.feed_forward == FeedForward::Moe { &moe } else { &dense };
        let expected = [attention, feed_forward].concat();
        assert_eq!(dispatches(&launches, Some(index)), expected, "layer {index}");
        assert!(expected.len() <= 10);
    }
    assert_eq!(dispatches(&launches, None), ["embed", "mix_norm", "gemm_16", "sample", "advance"]);
    assert_eq!(launches.kernels.len(), 68 * 7 + 5 + 24 * 10 + 5);
    assert!(launches.kernels.len() <= 93 * 10 + 6);
}

#[test]
fn a_token_takes_four_collectives_a_moe_layer_two_the_dense_one_and_one_for_its_choice() {
    for tokens in [1, 128] {
        assert_eq!(official(tokens).collectives.len(), 92 * 4 + 2 + 1);
    }
}
