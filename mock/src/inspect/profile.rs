use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

use isa::{Class, Inst};
use serde::Serialize;

use super::block::{Block, blocks};
use super::traffic::Accesses;
use crate::machine::compute_unit::{self, Needs};
use crate::machine::launch::LaunchShape;
use crate::observe::{Observer, Step, WorkgroupObserver, WorkgroupStart};

/// What kernels did, by kernel and basic block.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Kernels by the address of their entry point.
    pub kernels: Vec<KernelProfile>,
}

/// What one kernel did in all its launches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelProfile {
    /// Address of its entry point.
    pub entry: u64,
    /// Workgroups that ran.
    pub workgroups: u64,
    /// Waves that ran.
    pub waves: u64,
    /// Vector registers of a wave, AccVGPRs included.
    pub vector_registers: u32,
    /// LDS bytes of a workgroup in its latest launch.
    pub lds_bytes: u32,
    /// How much of a compute unit it can fill.
    pub occupancy: Occupancy,
    /// Its basic blocks that were executed, by address.
    pub blocks: Vec<Block>,
}

/// How many waves a compute unit can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Waves of this kernel on a SIMD, by all limits.
    pub waves_per_simd: u32,
    /// Waves that a SIMD has registers for.
    pub by_registers: u32,
    /// Waves per SIMD that the compute unit has LDS for; `None` if no LDS is used.
    pub by_lds: Option<u32>,
    /// Waves that a SIMD has slots for.
    pub by_slots: u32,
}

impl Occupancy {
    /// Waves per SIMD are rounded up where a compute unit's waves do not spread evenly.
    fn of(shape: &LaunchShape) -> Self {
        let needs = Needs::of(shape);
        let per_simd = |workgroups: u32| (workgroups * needs.waves).div_ceil(compute_unit::SIMDS as u32);
        Self {
            waves_per_simd: per_simd(compute_unit::workgroups(needs)),
            by_registers: compute_unit::VGPRS_PER_SIMD / needs.vgprs,
            by_lds: (needs.lds > 0).then(|| per_simd(compute_unit::LDS_BYTES / needs.lds)),
            by_slots: compute_unit::WAVES_PER_SIMD,
        }
    }
}

/// An instruction, and what became of it each time.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) inst: Inst,
    /// Times a wave executed it.
    pub(super) count: u64,
    /// Lanes that were on, all times together.
    pub(super) lanes: u64,
    pub(super) accesses: Accesses,
}

impl AddAssign for Site {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.lanes += other.lanes;
        self.accesses += other.accesses;
    }
}

/// Executed instructions by address.
pub(super) type Sites = BTreeMap<u64, Site>;

struct Kernel {
    workgroups: u64,
    waves: u64,
    vector_registers: u32,
    lds_bytes: u32,
    occupancy: Occupancy,
    sites: Sites,
}

type Kernels = Arc<Mutex<BTreeMap<u64, Kernel>>>;

/// Counts each instruction of all waves.
#[derive(Default)]
pub(super) struct Recorder(Kernels);

impl Recorder {
    pub(super) fn profile(&self) -> Profile {
        let kernels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = |(&entry, kernel): (&u64, &Kernel)| KernelProfile {
            entry,
            workgroups: kernel.workgroups,
            waves: kernel.waves,
            vector_registers: kernel.vector_registers,
            lds_bytes: kernel.lds_bytes,
            occupancy: kernel.occupancy,
            blocks: blocks(entry, &kernel.sites),
        };
        Profile { kernels: kernels.iter().map(profile).collect() }
    }
}

impl Observer for Recorder {
    fn workgroup(&self, start: &WorkgroupStart<'_>) -> Option<Box<dyn WorkgroupObserver>> {
        let shape = &start.launch.shape;
        let mut kernels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = kernels.entry(shape.entry.get()).or_insert_with(|| Kernel {
            workgroups: 0,
            waves: 0,
            vector_registers: shape.resources.vgprs(),
            lds_bytes: 0,
            occupancy: Occupancy::of(shape),
            sites: Sites::new(),
        });
        kernel.workgroups += 1;
        kernel.waves += start.waves.len() as u64;
        kernel.lds_bytes = shape.lds_bytes;
        kernel.occupancy = Occupancy::of(shape);
        Some(Box::new(Counter { entry: shape.entry.get(), sites: Vec::new(), lanes: 0, kernels: Arc::clone(&self.0) }))
    }
}

/// Counts for one workgroup.
struct Counter {
    entry: u64,
    /// By the instruction's index in the code, with its address.
    sites: Vec<Option<(u64, Site)>>,
    /// Lanes that are on as the instruction starts.
    lanes: u64,
    kernels: Kernels,
}

impl WorkgroupObserver for Counter {
    fn before(&mut self, step: &mut Step<'_, '_>) {
        self.lanes = step.wave.exec().count_ones().into();
    }

    fn after(&mut self, step: &mut Step<'_, '_>) {
        let index = step.index as usize;
        if index >= self.sites.len() {
            self.sites.resize(index + 1, None);
        }
        let blank = || {
            (
                step.code.address(step.index),
                Site { inst: *step.inst, count: 0, lanes: 0, accesses: Accesses::default() },
            )
        };
        let (_, site) = self.sites[index].get_or_insert_with(blank);
        site.count += 1;
        site.lanes += self.lanes;
        if !step.accesses.is_empty() {
            site.accesses += Accesses::of(step.accesses);
        }
    }

    fn end(&mut self) {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kernel) = kernels.get_mut(&self.entry) else { return };
        for (address, site) in self.sites.drain(..).flatten() {
            kernel.sites.entry(address).and_modify(|sum| *sum += site).or_insert(site);
        }
    }
}

/// The name of the unit that executes a class of instructions.
pub(super) fn unit(class: Class) -> &'static str {
    match class {
        Class::Salu => "scalar",
        Class::Branch => "branch",
        Class::Control | Class::Message | Class::Debug | Class::Gws => "control",
        Class::Valu => "vector",
        Class::Transcendental => "transcendental",
        Class::Mfma(_) | Class::Smfmac(_) => "matrix",
        Class::Smem => "scalar memory",
        Class::Lds => "LDS",
        Class::Flat | Class::Global => "global",
        Class::Scratch => "scratch",
        Class::Mubuf | Class::Mtbuf => "buffer",
    }
}

/// Whether EXEC says which lanes take part.
pub(super) fn has_lanes(class: Class) -> bool {
    !matches!(unit(class), "scalar" | "branch" | "control" | "scalar memory" | "matrix")
}
