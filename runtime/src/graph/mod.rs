//! Command buffers over several GPUs: built once, replayed by submitting the same packets again.
//!
//! A graph is a list of AQL dispatch packets for each rank, with all kernel arguments resident in GPU memory. What changes
//! from run to run is in device memory and advanced by the graph's own last kernel, so nothing is patched: a replay stores
//! the packets to the rings, which their processors have emptied, and rings one doorbell a GPU.

use std::sync::Arc;

use driver::address::{Bytes, GpuVa};
use driver::memory::{self, Access, Allocation, Buffer};
use driver::packets::EncodeError;
use driver::packets::aql::{FenceScope, KernelDispatch, Slot};
use driver::queue::{self, AqlQueue};
use driver::signal::Signal;
use driver::{Gpu, packets};

use crate::forward::{CollectiveName, KernelLaunch, Launches};

mod programs;

pub use programs::{KernelSet, Programs, ProgramsError};

/// Kernel-argument segments start at multiples of this (AMDGPUUsage: 16; a cache line keeps them apart).
const KERNARG_ALIGN: usize = 64;

/// What went wrong with building or submitting a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory of the kernel arguments.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// A packet.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A queue.
    #[error(transparent)]
    Queue(#[from] queue::Error),
}

/// One rank's packets and arguments.
struct RankGraph {
    /// All kernel arguments, read-only for the GPU.
    kernargs: Buffer,
    slots: Vec<Slot>,
}

/// A command buffer for all ranks.
pub struct Graph {
    ranks: Vec<RankGraph>,
    collectives: Vec<CollectiveName>,
}

/// What building a graph takes from a rank.
pub struct GraphRank<'a> {
    /// Its GPU.
    pub gpu: &'a Arc<Gpu>,
    /// Its code.
    pub programs: &'a Programs,
    /// The signal that each run decrements when it is done.
    pub timeline: &'a Signal,
}

impl Graph {
    /// Builds the graph of `launches`, one list a rank.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn build(ranks: &[GraphRank<'_>], launches: &[Launches]) -> Result<Self, Error> {
        let graphs = ranks
            .iter()
            .zip(launches)
            .map(|(rank, launches)| RankGraph::build(rank, &launches.kernels))
            .collect::<Result<_, _>>()?;
        let collectives = launches.first().map(|launches| launches.collectives.clone()).unwrap_or_default();
        Ok(Self { ranks: graphs, collectives })
    }

    /// Submits a run: to each rank's queue its packets, with one doorbell.
    ///
    /// # Errors
    /// A queue has no room or is lost.
    pub fn submit<'q>(&self, queues: impl Iterator<Item = &'q mut AqlQueue>) -> Result<(), Error> {
        for (rank, queue) in self.ranks.iter().zip(queues) {
            queue.submit_slots(&rank.slots)?;
        }
        Ok(())
    }

    /// Dispatches of one rank in one run.
    #[must_use]
    pub fn dispatches(&self) -> usize {
        self.ranks.first().map_or(0, |rank| rank.slots.len())
    }

    /// Collectives by their number in the graph.
    #[must_use]
    pub fn collectives(&self) -> &[CollectiveName] {
        &self.collectives
    }

    /// The memory of each rank's kernel arguments.
    pub fn kernargs(&self) -> impl Iterator<Item = &Buffer> {
        self.ranks.iter().map(|rank| &rank.kernargs)
    }
}

impl RankGraph {
    fn build(rank: &GraphRank<'_>, launches: &[KernelLaunch]) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let mut offsets = Vec::new();
        for launch in launches {
            bytes.resize(bytes.len().next_multiple_of(KERNARG_ALIGN), 0);
            offsets.push(bytes.len() as u64);
            bytes.extend_from_slice(&launch.kernarg);
        }
        let wanted = Allocation::vram(Bytes::new(bytes.len().max(1) as u64), "kernel arguments")
            .with(Access::HOST | Access::GPU_READ_ONLY);
        let kernargs = rank.gpu.allocate(&wanted)?;
        kernargs.host()?.write(0, &bytes)?;
        let mut slots = Vec::with_capacity(launches.len());
        for (i, (launch, offset)) in launches.iter().zip(offsets).enumerate() {
            let last = i + 1 == launches.len();
            let signal = if last { rank.timeline.va() } else { GpuVa::NULL };
            let kernargs = GpuVa::new(kernargs.va().get() + offset);
            slots.push(dispatch(launch, rank.programs, kernargs, signal).encode()?);
        }
        Ok(Self { kernargs, slots })
    }
}

/// A kernel that waits for the one before and sees all it wrote. Scopes are system: collectives cross GPUs, and on this
/// part even kernels of one GPU need the write-back between the L2 caches of its XCCs.
fn dispatch(
    launch: &KernelLaunch,
    programs: &Programs,
    kernarg_address: GpuVa,
    completion_signal: GpuVa,
) -> packets::aql::KernelDispatch {
    let workgroup = launch.kernel.workgroup;
    KernelDispatch {
        barrier: true,
        acquire: FenceScope::System,
        release: FenceScope::System,
        dimensions: 3,
        workgroup_size_x: workgroup as u16,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        grid_size_x: launch.workgroups[0] * workgroup,
        grid_size_y: launch.workgroups[1],
        grid_size_z: launch.workgroups[2],
        private_segment_size: programs.private_bytes(launch.kernel),
        group_segment_size: launch.kernel.lds_bytes,
        kernel_object: programs.kernel_object(launch.kernel),
        kernarg_address,
        completion_signal,
    }
}
