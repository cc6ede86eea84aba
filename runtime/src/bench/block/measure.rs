//! The launches of a block: which they are, what they should do and what they did.

use std::ops::Range;

#[cfg(feature = "mock")]
pub use mock::inspect::Tally;

use model::tensor::{LayerTensor, TensorId};

use super::Plan;
use crate::bench::occupancy::Occupancy;
use crate::bench::work::{Catalogue, Run, Work};
use crate::engine::{Engine, EngineError};
use crate::forward::{KernelLaunch, Launches};

/// What an emulated machine counts; there is none in this build.
#[cfg(not(feature = "mock"))]
pub enum Tally {}

/// The layer whose block is measured.
const LAYER: usize = 0;

/// One kernel in the block of one layer.
#[derive(Clone, Debug, serde::Serialize)]
pub struct KernelUse {
    /// Its name.
    pub name: &'static str,
    /// Dispatches.
    pub dispatches: usize,
    /// Workgroups of all of them.
    pub workgroups: u64,
    /// Waves of all of them.
    pub waves: u64,
    /// Registers, LDS and occupancy.
    #[serde(flatten)]
    pub occupancy: Occupancy,
    /// The least it moves and computes.
    pub work: Work,
    /// What it did, on an emulated machine.
    pub counted: Option<Counted>,
}

/// What a kernel did.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Counted {
    /// Instructions of waves.
    pub wave_instructions: u64,
    /// Of these, matrix instructions.
    pub matrix_instructions: u64,
    /// Bytes of weights and scales requested.
    pub weight_bytes: u64,
    /// Of these, by loads of 16 bytes a lane or more, and by scalar loads.
    pub wide_weight_bytes: u64,
    /// Bytes of latents and states read and written.
    pub state_bytes: u64,
    /// Bytes of activations and of everything else read and written.
    pub other_bytes: u64,
    /// Bytes of scratch.
    pub scratch_bytes: u64,
    /// Cycles of LDS, by a model of its banks.
    pub lds_cycles: u64,
    /// Of these, cycles that conflicts cost.
    pub lds_conflict_cycles: u64,
}

impl Counted {
    /// Requested bytes of weights for each that must move; `None` if none must.
    #[must_use]
    pub fn weight_ratio(&self, work: &Work) -> Option<f64> {
        (work.weight_bytes > 0).then(|| self.weight_bytes as f64 / work.weight_bytes as f64)
    }
}

/// The launches of a run, and which of them are the block's.
pub(super) struct BlockLaunches {
    list: Launches,
    /// The block's in the list.
    block: Range<usize>,
    /// Dispatches of the whole layer.
    pub(super) layer_dispatches: usize,
    pub(super) collectives: usize,
}

/// Half of a layer: its attention, or its feed-forward block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Attention,
    FeedForward,
}

/// To which half of its layer each launch belongs; `None` outside of layers. The second half starts with the launch that is given
/// the norm of its residual mix.
fn halves(engine: &Engine, list: &Launches) -> Vec<Option<Half>> {
    let weights = engine.ranks()[0].memory.weights.get();
    let mut half = Half::Attention;
    let mut layer = None;
    let half_of = |launch: &KernelLaunch| {
        if launch.layer != layer {
            (layer, half) = (launch.layer, Half::Attention);
        }
        let id = TensorId::Layer(launch.layer? as u16, LayerTensor::MlpResNorm);
        let norm = engine.layout().region(id).map(|region| weights + region.offset);
        if launch.kernarg.as_chunks::<8>().0.iter().any(|word| Some(u64::from_le_bytes(*word)) == norm) {
            half = Half::FeedForward;
        }
        Some(half)
    };
    list.kernels.iter().map(half_of).collect()
}

impl BlockLaunches {
    /// The launches of rank 0 without the other half of every layer.
    pub(super) fn of(engine: &Engine, plan: &Plan) -> Self {
        let mut list = engine.launches(plan.tokens);
        let layer_dispatches = list.kernels.iter().filter(|launch| launch.layer == Some(LAYER)).count();
        let of_layer = list.collectives.iter().filter(|name| name.layer == Some(LAYER)).count();
        // An attention block has one exchange, that of its output.
        let collectives = if plan.kind.is_attention() { 1 } else { of_layer - 1 };
        Self::keep_half(engine, plan, &mut list);
        let first = list.kernels.iter().take_while(|launch| launch.layer != Some(LAYER)).count();
        let count = list.kernels.iter().filter(|launch| launch.layer == Some(LAYER)).count();
        Self { list, block: first..first + count, layer_dispatches, collectives }
    }

    /// Takes the launches of the other half of every layer out of a rank's list. What exchanges are left keep their numbers, on
    /// every rank alike.
    pub(super) fn keep_half(engine: &Engine, plan: &Plan, list: &mut Launches) {
        let wanted = if plan.kind.is_attention() { Half::Attention } else { Half::FeedForward };
        let halves = halves(engine, &engine.launches(plan.tokens));
        let (first, last) = (halves.iter().position(Option::is_some), halves.len() - 1);
        // Of what is outside of layers, the embedding and the end of the run stay: the head has an exchange, and numbers of
        // exchanges that follow each other must not both be even or odd, which a gap could make them.
        let stays = |index: usize, half: Option<Half>| match half {
            Some(half) => half == wanted,
            None => Some(index) < first || index == last,
        };
        let mut kept = halves.into_iter().enumerate().map(|(index, half)| stays(index, half));
        list.kernels.retain(|_| kept.next().unwrap_or(true));
    }

    /// The least work of each of the block's launches, if the run's tokens chose so many different experts.
    pub(super) fn works(&self, engine: &Engine, plan: &Plan, experts: usize) -> Vec<Work> {
        let catalogue = Catalogue::new(engine.config(), engine.layout(), engine.plan(), &engine.ranks()[0].memory);
        let run = Run { tokens: plan.tokens, position: plan.context, experts: experts as u64 };
        self.list.kernels[self.block.clone()].iter().map(|launch| catalogue.work(launch, run)).collect()
    }

    /// The kernel that writes to `range`: the block's last that is given an address of it if it is the block's output,
    /// else the first.
    pub(super) fn writer(&self, range: &Range<u64>, is_output: bool) -> Option<&'static str> {
        let names = |launch: &&KernelLaunch| {
            launch.kernarg.as_chunks::<8>().0.iter().any(|word| range.contains(&u64::from_le_bytes(*word)))
        };
        let mut launches = self.list.kernels[self.block.clone()].iter();
        let found = if is_output { launches.rfind(names) } else { launches.find(names) };
        found.map(|launch| launch.kernel.name)
    }

    /// Dwords that the block adds to a resident indirect buffer.
    pub(super) fn pm4_dwords(&self, engine: &Engine) -> Result<usize, EngineError> {
        let dwords = |launches: &[KernelLaunch]| engine.ib_dwords(launches);
        Ok(dwords(&self.list.kernels[self.block.clone()])? - dwords(&[])?)
    }

    /// The block's kernels with their work, and what `tally` saw them do.
    pub(super) fn kernels(&self, engine: &Engine, works: &[Work], counted: Option<Vec<Counted>>) -> Vec<KernelUse> {
        let mut kernels: Vec<KernelUse> = Vec::new();
        for (index, (launch, work)) in self.list.kernels[self.block.clone()].iter().zip(works).enumerate() {
            let kernel = launch.kernel;
            let workgroups: u64 = launch.workgroups.iter().map(|n| u64::from(*n)).product();
            let own = counted.as_ref().map(|counted| counted[self.block.start + index]);
            let found = kernels.iter().position(|other| other.name == kernel.name);
            let at = found.unwrap_or_else(|| {
                let descriptor = engine.ranks()[0].programs.descriptor(kernel);
                kernels.push(KernelUse {
                    name: kernel.name,
                    dispatches: 0,
                    workgroups: 0,
                    waves: 0,
                    occupancy: Occupancy::of(&descriptor, kernel.workgroup),
                    work: Work::default(),
                    counted: own.map(|_| Counted::default()),
                });
                kernels.len() - 1
            });
            let sum = &mut kernels[at];
            sum.dispatches += 1;
            sum.workgroups += workgroups;
            sum.waves += workgroups * u64::from(kernel.workgroup.div_ceil(64));
            sum.work += *work;
            if let (Some(sum), Some(own)) = (&mut sum.counted, own) {
                *sum += own;
            }
        }
        kernels
    }

    /// Has `tally` count bytes by what they are.
    #[cfg(feature = "mock")]
    pub(super) fn watch(engine: &Engine, tally: &Tally) {
        tally.watch(regions_of(engine).into_iter().map(|(range, _)| range).collect());
    }

    /// What `tally` has seen since, launch by launch.
    #[cfg(feature = "mock")]
    pub(super) fn counted(&self, engine: &Engine, tally: &Tally) -> Option<Vec<Counted>> {
        let regions = regions_of(engine);
        let launches = tally.take();
        // A machine that was told to do something else meanwhile is no use.
        (launches.len() == self.list.kernels.len()).then(|| launches.iter().map(|seen| count(seen, &regions)).collect())
    }

    #[cfg(not(feature = "mock"))]
    pub(super) fn watch(_: &Engine, tally: &Tally) {
        match *tally {}
    }

    #[cfg(not(feature = "mock"))]
    pub(super) fn counted(&self, _: &Engine, tally: &Tally) -> Option<Vec<Counted>> {
        match *tally {}
    }
}

/// What a region holds.
#[cfg(feature = "mock")]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Weights,
    States,
}

/// Memory of rank 0 by what it holds, in the order of addresses; what is in none of them are activations.
#[cfg(feature = "mock")]
fn regions_of(engine: &Engine) -> Vec<(Range<u64>, Holds)> {
    let (memory, plan) = (&engine.ranks()[0].memory, engine.plan());
    let range = |start: driver::address::GpuVa, bytes: u64| start.get()..start.get() + bytes;
    let mut regions = vec![
        (range(memory.weights, plan.weights.get()), Holds::Weights),
        (range(memory.cache, plan.cache.bytes().get()), Holds::States),
        (range(memory.state, plan.state.bytes().get()), Holds::States),
    ];
    regions.sort_by_key(|(range, _)| range.start);
    regions
}

#[cfg(feature = "mock")]
fn count(seen: &mock::inspect::LaunchTally, regions: &[(Range<u64>, Holds)]) -> Counted {
    let counts = &seen.counts;
    let mut counted = Counted {
        wave_instructions: counts.instructions,
        matrix_instructions: counts.matrix,
        scratch_bytes: counts.scratch,
        lds_cycles: counts.lds_cycles,
        lds_conflict_cycles: counts.lds_conflicts,
        ..Counted::default()
    };
    for requested in [&counts.read, &counts.written] {
        for (index, requested) in requested.iter().enumerate() {
            match regions.get(index).map(|(_, holds)| *holds) {
                Some(Holds::Weights) => {
                    counted.weight_bytes += requested.bytes;
                    counted.wide_weight_bytes += requested.wide;
                }
                Some(Holds::States) => counted.state_bytes += requested.bytes,
                None => counted.other_bytes += requested.bytes,
            }
        }
    }
    counted
}

impl std::ops::AddAssign for Counted {
    fn add_assign(&mut self, other: Self) {
        self.wave_instructions += other.wave_instructions;
        self.matrix_instructions += other.matrix_instructions;
        self.weight_bytes += other.weight_bytes;
        self.wide_weight_bytes += other.wide_weight_bytes;
        self.state_bytes += other.state_bytes;
        self.other_bytes += other.other_bytes;
        self.scratch_bytes += other.scratch_bytes;
        self.lds_cycles += other.lds_cycles;
        self.lds_conflict_cycles += other.lds_conflict_cycles;
    }
}
