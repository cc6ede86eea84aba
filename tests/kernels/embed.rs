//! Embedding.

use kernels::embed::Embed;
use kernels::{ErrorWord, Failure, GpuVa, Step};

use crate::support::{Bf16, Gpus, Job, Random};

const HIDDEN: usize = 256;

#[test]
fn a_row_comes_from_the_rank_that_owns_it() {
    for ranks in [1, 2, 4, 8] {
        let gpus = Gpus::new(ranks);
        let mut random = Random::new(ranks as u64);
        let per_rank = 1536 / ranks;
        let table: Vec<_> = (0..ranks).map(|_| random.bf16s(per_rank * HIDDEN, 1.0)).collect();
        let on_gpu: Vec<_> = (0..ranks).map(|rank| gpus.upload(rank, &table[rank])).collect();
        on_gpu.iter().for_each(|rows| gpus.share(rows));
        let ids: Vec<u32> = (0..24).map(|_| random.below(1536)).chain([0, 1535]).collect();
        for rank in 0..ranks {
            let step = gpus.upload(rank, &[Step { count: ids.len() as u32, ..Step::default() }]);
            let (ids_va, error) = (gpus.upload(rank, &ids), gpus.upload(rank, &[0_u64]));
            let h = gpus.fresh(rank, ids.len() * HIDDEN * 2);
            let launch = Embed {
                step: step.va(),
                ids: ids_va.va(),
                table: std::array::from_fn(|rank| on_gpu.get(rank).map_or(GpuVa::NULL, |rows| rows.va())),
                h: h.va(),
                error: error.va(),
                rank: rank as u32,
                rows_per_rank: per_rank as u32,
                ranks: ranks as u32,
                hidden: HIDDEN as u32,
                tokens: 128,
                reserved: 0,
            };
            gpus.run(rank, &[Job::of(&launch)]);
            let expected: Vec<Bf16> = ids
                .iter()
                .flat_map(|&id| table[id as usize / per_rank][id as usize % per_rank * HIDDEN..][..HIDDEN].to_vec())
                .collect();
            assert_eq!(gpus.read::<Bf16>(&h), expected, "rank {rank} of {ranks}");
            assert_eq!(gpus.read::<u64>(&error), [0]);
        }
    }
}

#[test]
pub(crate) fn a_token_beyond_the_vocabulary_is_reported_and_reads_nothing_else() {
    let gpus = Gpus::new(1);
    let table = gpus.upload(0, &vec![0 as Bf16; 16 * HIDDEN]);
    let (step, ids) = (gpus.upload(0, &[Step { count: 2, ..Step::default() }]), gpus.upload(0, &[3_u32, 16]));
    let (h, error) = (gpus.fresh(0, 2 * HIDDEN * 2), gpus.upload(0, &[0_u64]));
    let launch = Embed {
        step: step.va(),
        ids: ids.va(),
        table: std::array::from_fn(|rank| if rank == 0 { table.va() } else { GpuVa::NULL }),
        h: h.va(),
        error: error.va(),
        rank: 0,
        rows_per_rank: 16,
        ranks: 1,
        hidden: HIDDEN as u32,
        tokens: 2,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);
    let failure = ErrorWord(gpus.read::<u64>(&error)[0]).failure();
    assert_eq!(failure, Some(Failure::Token { rank: 0, index: 1, token: 16 }));
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise() {
    a_row_comes_from_the_rank_that_owns_it();
}
