//! The tensor-parallel layout: totals of the official model, and every byte of K3-nano.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use model::layout::{Indivisible, Share, TENSOR_ALIGN, WeightGroup};
use model::tensor::{ExpertMatrix, ExpertPart, ExpertTensor, Inventory, LayerTensor, ModelTensor, TensorId};
use model::{Checkpoint, Config, Layout, LayoutError};
use proptest::prelude::*;

const RANKS: [usize; 4] = [1, 2, 4, 8];

fn nano() -> (Config, Checkpoint) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano");
    let config = Config::read(&folder).unwrap();
    let checkpoint = Checkpoint::open(&folder, &config).unwrap();
    (config, checkpoint)
}

fn layer(layer: u16, tensor: LayerTensor) -> TensorId {
    TensorId::Layer(layer, tensor)
}

#[test]
fn eight_ranks_of_the_official_model_keep_the_published_bytes_each() {
    let sizes = Layout::new(&Config::official(), 8).unwrap().sizes();
    assert_eq!(sizes.weights, 196_784_365_296);
    assert_eq!(sizes.row_padding, 0);
    assert_eq!(sizes.groups.values().sum::<u64>(), sizes.weights);
    assert_eq!(sizes.groups[&WeightGroup::Routed] * 8, 92 * 896 * 17_547_264);
}

#[test]
fn one_rank_keeps_the_whole_official_model_but_the_zeros_behind_a_log() {
    let sizes = Layout::new(&Config::official(), 1).unwrap().sizes();
    assert_eq!(sizes.weights, 1_559_965_606_912 - 69 * (128 - 96) * 4);
}

#[test]
fn matrices_that_read_the_same_vector_are_one_matrix_in_the_official_arena() {
    use LayerTensor as T;
    for ranks in RANKS {
        let layout = Layout::new(&Config::official(), ranks).unwrap();
        let groups: [(u16, &[T]); 3] = [
            (1, &[T::QProj, T::KProj, T::VProj, T::GProj, T::FAProj, T::BProj]),
            (3, &[T::QAProj, T::KvAProj, T::GProj]),
            (3, &[T::Router, T::LatentDown, T::SharedGate, T::SharedUp]),
        ];
        for (index, tensors) in groups {
            let regions: Vec<_> = tensors.iter().map(|t| layout.region(layer(index, *t)).unwrap()).collect();
            assert!(regions.windows(2).all(|pair| pair[0].end() == pair[1].offset && pair[0].pitch == pair[1].pitch));
        }
    }
}

#[test]
fn experts_follow_each_other_in_numeric_order_with_one_stride() {
    let layout = Layout::new(&Config::official(), 8).unwrap();
    let table = layout.experts(1).unwrap();
    assert_eq!((table.count, table.stride), (896, 17_547_264 / 8));
    for expert in [0, 1, 10, 895] {
        let region = table.region(expert, ExpertMatrix::W2, ExpertPart::Scale);
        let inside = table.inside(ExpertMatrix::W2, ExpertPart::Scale);
        assert_eq!(region.offset, table.offset + u64::from(expert) * table.stride + inside.offset);
        assert_eq!((region.rows, region.row_bytes, region.pitch), (3584, 12, 12));
    }
    assert_eq!(layout.experts(0), None);
}

#[test]
fn every_rank_keeps_the_share_the_split_gives_it() {
    let layout = Layout::new(&Config::official(), 8).unwrap();
    let share = |id, rank| layout.share(id, rank).unwrap();
    assert_eq!(share(TensorId::Model(ModelTensor::EmbedTokens), 7), Share::Rows(143_360..163_840));
    assert_eq!(share(layer(1, LayerTensor::QProj), 1), Share::Rows(1536..3072));
    assert_eq!(share(layer(1, LayerTensor::ALog), 7), Share::Rows(84..96));
    assert_eq!(share(layer(1, LayerTensor::LatentDown), 2), Share::Rows(896..1344));
    assert_eq!(share(layer(1, LayerTensor::LatentUp), 2), Share::Columns(896..1344));
    assert_eq!(share(layer(3, LayerTensor::QBProj), 0), Share::Rows(0..2304));
    assert_eq!(share(layer(3, LayerTensor::OProj), 3), Share::Columns(4608..6144));
    assert_eq!(share(layer(3, LayerTensor::Router), 3), Share::Replicated);
    let w2 = |part| TensorId::Expert(ExpertTensor { layer: 1, expert: 5, matrix: ExpertMatrix::W2, part });
    assert_eq!(share(w2(ExpertPart::Packed), 1), Share::Columns(192..384));
    assert_eq!(share(w2(ExpertPart::Scale), 1), Share::Columns(12..24));
    assert_eq!(layout.share(layer(1, LayerTensor::QProj), 8), None);
    assert_eq!(layout.share(layer(93, LayerTensor::QProj), 0), None);
}

#[test]
fn rows_of_inner_axis_shards_are_padded_to_dwords_and_the_padding_is_reported() {
    let (config, _) = nano();
    let layout = Layout::new(&config, 8).unwrap();
    let scale = layout.experts(1).unwrap().inside(ExpertMatrix::W2, ExpertPart::Scale);
    assert_eq!((scale.rows, scale.row_bytes, scale.pitch), (128, 1, 4));
    assert_eq!(layout.sizes().row_padding, 4 * 16 * 128 * 3);
}

/// How many of the bytes of one tensor each copy of all ranks reads, by byte.
fn readers(layout: &Layout, id: TensorId, bytes: u64) -> Vec<u8> {
    let mut readers = vec![0; bytes as usize];
    for copy in layout.copies(id, 0) {
        for row in 0..copy.rows {
            let begin = (copy.source + row * copy.source_pitch) as usize;
            readers[begin..begin + copy.row_bytes as usize].iter_mut().for_each(|count| *count += 1);
        }
    }
    readers
}

/// Every byte of every tensor is read by one rank, or by all if it is replicated; zeros behind A_log by none.
fn assert_covered(config: &Config, ranks: usize) {
    let inventory = Inventory::new(config);
    let layout = Layout::new(config, ranks).unwrap();
    for id in inventory.iter() {
        let spec = inventory.spec(id).unwrap();
        let times = if layout.share(id, 0) == Some(Share::Replicated) { ranks as u8 } else { 1 };
        let used = match id {
            TensorId::Layer(_, LayerTensor::ALog) => config.kda.heads * 4,
            _ => spec.bytes() as usize,
        };
        let readers = readers(&layout, id, spec.bytes());
        assert!(readers[..used].iter().all(|count| *count == times), "{id} over {ranks}");
        assert!(readers[used..].iter().all(|count| *count == 0), "{id} over {ranks}");
    }
}

/// No two regions of the arena share a byte, all are aligned, and they and the paddings fill it.
fn assert_disjoint(layout: &Layout) {
    let mut regions: Vec<_> = layout.inventory().iter().filter_map(|id| layout.region(id)).collect();
    let layers = 0..layout.inventory().config().layers.len();
    regions.extend(layers.filter_map(|layer| layout.kv_b(layer)).flat_map(|kv_b| [kv_b.key, kv_b.value]));
    regions.sort_by_key(|region| region.offset);
    assert!(regions.iter().all(|region| region.offset % TENSOR_ALIGN == 0));
    assert!(regions.windows(2).all(|pair| pair[0].end() <= pair[1].offset));
    assert!(regions.last().unwrap().end() <= layout.arena_bytes());
    let sizes = layout.sizes();
    assert_eq!(sizes.weights + sizes.row_padding + sizes.alignment, layout.arena_bytes());
}

#[test]
fn the_ranks_together_read_every_byte_of_k3_nano() {
    let (config, _) = nano();
    RANKS.into_iter().for_each(|ranks| assert_covered(&config, ranks));
}

#[test]
fn regions_of_the_official_arena_are_disjoint() {
    RANKS.into_iter().for_each(|ranks| assert_disjoint(&Layout::new(&Config::official(), ranks).unwrap()));
}

/// Small models of odd sizes that still divide by 8.
fn any_config() -> impl Strategy<Value = Config> {
    let widths = (1usize..20, 1usize..5, 1usize..5, 1usize..4, 1usize..3);
    let dims = (1usize..4, 1usize..7, 1usize..7, 1usize..7, 1usize..5, 1usize..9);
    (widths, dims).prop_map(|((hidden, vocab, dense, latent, experts), (heads, dim, nope, v, rope, rank))| {
        let mut config = nano().0;
        config.hidden_size = hidden;
        config.vocab_size = vocab * 8;
        config.dense_width = dense * 8;
        config.moe.latent_size = latent * 32;
        config.moe.experts = experts;
        config.moe.expert_width = 256;
        config.moe.shared_width = heads * 8;
        (config.kda.heads, config.kda.head_dim) = (heads * 8, dim);
        (config.mla.heads, config.mla.nope_dim, config.mla.v_dim) = (heads * 8, nope, v);
        (config.mla.rope_dim, config.mla.kv_rank, config.mla.q_rank) = (rope, rank, rank + 1);
        config
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn models_of_any_even_size_are_covered_without_overlap(config in any_config(), ranks in prop::sample::select(RANKS.to_vec())) {
        assert_covered(&config, ranks);
        assert_disjoint(&Layout::new(&config, ranks).unwrap());
    }
}

#[test]
fn copies_of_the_official_model_add_up_to_the_arenas() {
    let config = Config::official();
    let inventory = Inventory::new(&config);
    let layout = Layout::new(&config, 8).unwrap();
    let mut by_rank = [0; 8];
    for id in inventory.iter() {
        layout.copies(id, 0).for_each(|copy| by_rank[copy.rank] += copy.bytes());
    }
    assert_eq!(by_rank, [196_784_365_296; 8]);
}

/// Fills the arenas from the files as a loader would, window by window.
fn load(checkpoint: &Checkpoint, layout: &Layout, window: u64) -> Vec<Vec<u8>> {
    let mut arenas = vec![vec![0u8; layout.arena_bytes() as usize]; layout.ranks()];
    let mut written = arenas.clone();
    for shard in checkpoint.shards() {
        let file = std::fs::read(&shard.path).unwrap();
        for start in (0..shard.file_len).step_by(window as usize) {
            for tensor in &shard.tensors {
                for copy in layout.copies(tensor.id, tensor.begin).flat_map(|c| c.within(start..start + window)) {
                    for row in 0..copy.rows {
                        let from = (copy.source + row * copy.source_pitch) as usize;
                        let to = (copy.destination + row * copy.destination_pitch) as usize;
                        let len = copy.row_bytes as usize;
                        arenas[copy.rank][to..to + len].copy_from_slice(&file[from..from + len]);
                        written[copy.rank][to..to + len].iter_mut().for_each(|count| *count += 1);
                    }
                }
            }
        }
    }
    let weights = layout.sizes().weights;
    for written in written {
        assert!(written.iter().all(|count| *count <= 1), "two tensors share a byte");
        assert_eq!(written.iter().filter(|count| **count == 1).count() as u64, weights);
    }
    arenas
}

#[test]
fn arenas_loaded_in_odd_windows_hold_the_shares_of_every_tensor() {
    let (config, checkpoint) = nano();
    let layout = Layout::new(&config, 8).unwrap();
    let arenas = load(&checkpoint, &layout, 1_000_003);
    let inventory = checkpoint.inventory();
    for id in inventory.iter() {
        let Some(region) = layout.region(id) else { continue };
        assert_eq!((region.offset % TENSOR_ALIGN, region.pitch % 2), (0, 0), "{id}");
        let spec = inventory.spec(id).unwrap();
        let stored = checkpoint.read(id).unwrap().unwrap();
        for (rank, arena) in arenas.iter().enumerate() {
            let (rows, columns) = match layout.share(id, rank).unwrap() {
                Share::Replicated => (0..spec.rows(), 0..spec.columns()),
                Share::Rows(rows) => (rows, 0..spec.columns()),
                Share::Columns(columns) => (0..spec.rows(), columns),
            };
            for (i, row) in rows.enumerate() {
                let from = row * spec.row_bytes() + columns.start * spec.element_bytes();
                let expected = &stored[from as usize..][..region.row_bytes as usize];
                let at = region.offset + i as u64 * region.pitch;
                assert_eq!(&arena[at as usize..][..region.row_bytes as usize], expected, "{id} rank {rank}");
            }
        }
    }
}

#[test]
fn kv_b_is_taken_apart_by_head() {
    let (config, checkpoint) = nano();
    let layout = Layout::new(&config, 4).unwrap();
    let arenas = load(&checkpoint, &layout, u64::MAX);
    let id = layer(3, LayerTensor::KvBProj);
    let stored = checkpoint.read(id).unwrap().unwrap();
    let kv_b = layout.kv_b(3).unwrap();
    let head_bytes = 128 * 512 * 2;
    for head in 0..8 {
        let arena = &arenas[head / 2];
        let halves = [(kv_b.key, 2 * head), (kv_b.value, 2 * head + 1)];
        for (region, block) in halves {
            let at = region.offset as usize + head % 2 * head_bytes;
            assert_eq!(arena[at..at + head_bytes], stored[block * head_bytes..(block + 1) * head_bytes]);
        }
    }
    assert_eq!(layout.region(id), None);
    assert_eq!(layout.kv_b(0), None);
}

#[test]
fn numbers_of_ranks_that_do_not_fit_are_refused_with_every_reason() {
    let config = Config::official();
    for ranks in [0, 3, 16] {
        assert_eq!(Layout::new(&config, ranks).unwrap_err(), LayoutError::CountRanks(ranks));
    }
    let mut odd = config;
    odd.kda.heads = 90;
    odd.moe.expert_width = 3072 + 32;
    let LayoutError::Divide { ranks: 8, indivisible } = Layout::new(&odd, 8).unwrap_err() else { panic!() };
    assert_eq!(
        indivisible,
        [
            Indivisible { what: "KDA heads", size: 90, by: 8 },
            Indivisible { what: "routed expert channels (in MXFP4 groups)", size: 3104, by: 256 },
        ]
    );
}
