//! Command buffers over several GPUs: built once, replayed by submitting the same packets again.
//!
//! All kernel arguments are resident in GPU memory. What changes from run to run is in device memory and advanced by the
//! graph's own last kernel, so nothing is patched: a replay stores packets to the rings, which their processors have
//! emptied, and rings one doorbell a GPU. There are two forms with the same results ([`Form`]).

use std::sync::Arc;

use driver::address::{Bytes, GpuVa};
use driver::memory::{self, Access, Allocation, Buffer};
use driver::packets::EncodeError;
use driver::packets::aql::{FenceScope, KernelDispatch, Pm4Ib, Slot};
use driver::queue::{self, ScratchLayout};
use driver::signal::{self, Signal};
use driver::{Gpu, packets};

use crate::forward::{CollectiveName, KernelLaunch, Launches};

mod ib;
mod programs;
mod stamps;

pub use ib::IbError;
pub use programs::{KernelSet, Programs, ProgramsError};
pub use stamps::Stamp;
use stamps::Stamps;

/// How a run is submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// One AQL dispatch packet a kernel: what multi-XCC parts are commonly driven by.
    #[default]
    Aql,
    /// One AQL packet a run, which has all XCCs run a resident PM4 indirect buffer.
    Ib,
}

/// Kernel-argument segments start at multiples of this (AMDGPUUsage: 16; a cache line keeps them apart).
const KERNARG_ALIGN: usize = 64;
/// Counters of XCCs are this far apart: a line of the L2 each.
const COUNTER_STRIDE: u64 = 128;

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
    /// An indirect buffer.
    #[error(transparent)]
    Ib(#[from] IbError),
    /// Signals that time dispatches.
    #[error(transparent)]
    Signal(#[from] signal::Error),
}

/// One rank's packets and arguments.
struct RankGraph {
    /// All kernel arguments, read-only for the GPU.
    kernargs: Buffer,
    /// What a run stores to the ring.
    slots: Vec<Slot>,
    /// The indirect buffer, in that form.
    ib: Option<ResidentIb>,
    /// What times its dispatches, if they are timed.
    stamps: Option<Stamps>,
}

/// An indirect buffer in GPU memory.
struct ResidentIb {
    commands: Buffer,
    dwords: usize,
    xcc_barriers: usize,
    /// Counters that XCCs meet at, in memory no cache holds back.
    _counters: Buffer,
}

/// A command buffer for all ranks.
pub struct Graph {
    ranks: Vec<RankGraph>,
    dispatches: usize,
    collectives: Vec<CollectiveName>,
}

/// What building a graph takes from a rank.
pub struct GraphRank<'a> {
    /// Its GPU.
    pub gpu: &'a Arc<Gpu>,
    /// Its code.
    pub programs: &'a Programs,
    /// Scratch memory of its queue, if its kernels need some.
    pub scratch: Option<(&'a ScratchLayout, GpuVa)>,
    /// The signal that each run decrements when it is done.
    pub timeline: &'a Signal,
    /// Time each dispatch of the AQL form.
    pub timed: bool,
}

impl Graph {
    /// Builds the graph of `launches`, one list a rank.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn build(ranks: &[GraphRank<'_>], launches: &[Launches], form: Form) -> Result<Self, Error> {
        let graphs = ranks
            .iter()
            .zip(launches)
            .map(|(rank, launches)| RankGraph::build(rank, &launches.kernels, form))
            .collect::<Result<_, _>>()?;
        let collectives = launches.first().map(|launches| launches.collectives.clone()).unwrap_or_default();
        let dispatches = launches.first().map_or(0, |launches| launches.kernels.len());
        Ok(Self { ranks: graphs, dispatches, collectives })
    }

    /// By rank: the packets that a run stores to its queue's ring.
    pub fn packets(&self) -> impl Iterator<Item = &[Slot]> {
        self.ranks.iter().map(|rank| rank.slots.as_slice())
    }

    /// When the dispatches of rank 0 ran in the last run, whose last packet completed `timeline`; nothing if they are not
    /// timed.
    pub fn stamps<'a>(&'a self, timeline: &'a Signal) -> impl Iterator<Item = Stamp> + 'a {
        self.ranks.first().and_then(|rank| rank.stamps.as_ref()).into_iter().flat_map(|stamps| stamps.read(timeline))
    }

    /// Dispatches of one rank in one run.
    #[must_use]
    pub fn dispatches(&self) -> usize {
        self.dispatches
    }

    /// Packets that one run stores to one rank's ring.
    #[must_use]
    pub fn ring_packets(&self) -> usize {
        self.ranks.first().map_or(0, |rank| rank.slots.len())
    }

    /// Dwords of the indirect buffer, and how often XCCs meet in it; `None` in the AQL form.
    #[must_use]
    pub fn ib_size(&self) -> Option<(usize, usize)> {
        let ib = self.ranks.first()?.ib.as_ref()?;
        Some((ib.dwords, ib.xcc_barriers))
    }

    /// The memory of each rank's indirect buffer, in that form.
    pub fn ib_memory(&self) -> impl Iterator<Item = &Buffer> {
        self.ranks.iter().filter_map(|rank| rank.ib.as_ref()).map(|ib| &ib.commands)
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
    fn build(rank: &GraphRank<'_>, launches: &[KernelLaunch], form: Form) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let mut offsets = Vec::new();
        for launch in launches {
            bytes.resize(bytes.len().next_multiple_of(KERNARG_ALIGN), 0);
            offsets.push(bytes.len() as u64);
            bytes.extend_from_slice(&launch.kernarg);
        }
        // Kernels load arguments eight dwords at a time, past the last of them too.
        bytes.resize(bytes.len().next_multiple_of(KERNARG_ALIGN), 0);
        let kernargs = resident(rank.gpu, "kernel arguments", &bytes)?;
        let place = |offset: u64| GpuVa::new(kernargs.va().get() + offset);
        let stamps = if rank.timed && form == Form::Aql { Some(Stamps::new(rank.gpu, launches)?) } else { None };
        let (slots, ib) = match form {
            Form::Aql => {
                let packets = launches.iter().zip(&offsets).enumerate().map(|(i, (launch, &offset))| {
                    let last = i + 1 == launches.len();
                    let stamp = stamps.as_ref().map_or(GpuVa::NULL, |stamps| stamps.signal(i));
                    let signal = if last { rank.timeline.va() } else { stamp };
                    dispatch(launch, rank.programs, place(offset), signal).encode()
                });
                (packets.collect::<Result<_, _>>()?, None)
            }
            Form::Ib => {
                let places: Vec<GpuVa> = offsets.into_iter().map(place).collect();
                let ib = ResidentIb::build(rank, launches, &places)?;
                (vec![ib.packet(rank.timeline).encode()?], Some(ib))
            }
        };
        Ok(Self { kernargs, slots, ib, stamps })
    }
}

impl ResidentIb {
    fn build(rank: &GraphRank<'_>, launches: &[KernelLaunch], kernargs: &[GpuVa]) -> Result<Self, Error> {
        let counters = rank.gpu.allocate(&Allocation::shared(Bytes::new(2 * COUNTER_STRIDE), "XCC counters"))?;
        let places = [0, 1].map(|i| GpuVa::new(counters.va().get() + i * COUNTER_STRIDE));
        let scratch = rank.scratch.map(|(layout, base)| ib::Scratch {
            base,
            stride: layout.bytes_per_xcc,
            tmpring_size: layout.tmpring_size(),
        });
        let writer = ib::Writer::new(rank.gpu.node().xcc_count, places, scratch)?;
        let (dwords, xcc_barriers) = write(writer, rank.programs, launches, kernargs)?;
        let commands = resident(rank.gpu, "indirect buffer", zerocopy::IntoBytes::as_bytes(dwords.as_slice()))?;
        Ok(Self { commands, dwords: dwords.len(), xcc_barriers, _counters: counters })
    }

    /// The packet that runs it.
    fn packet(&self, timeline: &Signal) -> Pm4Ib {
        Pm4Ib {
            barrier: true,
            acquire: FenceScope::System,
            release: FenceScope::System,
            ib_address: self.commands.va(),
            ib_dwords: self.dwords as u32,
            ib_valid: true,
            completion_signal: timeline.va(),
        }
    }
}

/// Writes all of `launches`; gives the buffer and the meetings of XCCs in it.
fn write(
    mut writer: ib::Writer,
    programs: &Programs,
    launches: &[KernelLaunch],
    kernargs: &[GpuVa],
) -> Result<(Vec<u32>, usize), IbError> {
    for (launch, &kernarg) in launches.iter().zip(kernargs) {
        let dispatch = ib::Dispatch {
            program: programs.program(launch.kernel),
            workgroups: launch.workgroups,
            workgroup: launch.kernel.workgroup,
            kernarg,
        };
        writer.dispatch(launch.kernel.name, &dispatch)?;
    }
    Ok(writer.finish())
}

/// Dwords of an indirect buffer of `launches` for a GPU of `xccs` XCCs, wherever it may be.
///
/// # Errors
/// A launch can't be part of one.
pub fn ib_dwords(programs: &Programs, xccs: u32, launches: &[KernelLaunch]) -> Result<usize, Error> {
    let nowhere = vec![GpuVa::NULL; launches.len()];
    let writer = ib::Writer::new(xccs, [GpuVa::NULL; 2], None)?;
    Ok(write(writer, programs, launches, &nowhere)?.0.len())
}

/// Bytes in GPU memory that no GPU changes.
fn resident(gpu: &Arc<Gpu>, label: &str, bytes: &[u8]) -> Result<Buffer, Error> {
    let wanted =
        Allocation::vram(Bytes::new(bytes.len().max(1) as u64), label).with(Access::HOST | Access::GPU_READ_ONLY);
    let buffer = gpu.allocate(&wanted)?;
    buffer.host()?.write(0, bytes)?;
    Ok(buffer)
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
        group_segment_size: programs.descriptor(launch.kernel).group_segment_fixed_size,
        kernel_object: programs.kernel_object(launch.kernel),
        kernarg_address,
        completion_signal,
    }
}
