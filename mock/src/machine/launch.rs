//! One dispatch: what its workgroups run, and what each wave finds in its registers at the start.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use driver::address::GpuVa;

use super::compute_unit::{ComputeUnit, Needs};
use crate::code::Code;
use crate::exec::RegisterLimits;
use crate::wave::{LANES, Mode, Vreg, Wave, sreg};

/// Fields of COMPUTE_PGM_RSRC1/2/3 (LLVM AMDGPUUsage, "compute_pgm_rsrc1/2 for GFX6-GFX12" and "rsrc3 for GFX90A").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramResources {
    /// COMPUTE_PGM_RSRC1.
    pub rsrc1: u32,
    /// COMPUTE_PGM_RSRC2.
    pub rsrc2: u32,
    /// COMPUTE_PGM_RSRC3.
    pub rsrc3: u32,
}

impl ProgramResources {
    /// Vector registers a wave gets, both kinds together, in granules of eight.
    #[must_use]
    pub(crate) fn vgprs(self) -> u32 {
        ((self.rsrc1 & 0x3f) + 1) * 8
    }

    /// First AccVGPR in the wave's unified file; no more than [`Self::vgprs`].
    #[must_use]
    pub(crate) fn accum_offset(self) -> u32 {
        (((self.rsrc3 & 0x3f) + 1) * 4).min(self.vgprs())
    }

    /// The registers that instructions may name.
    pub(crate) fn limits(self) -> RegisterLimits {
        RegisterLimits { arch: self.accum_offset() as u16, acc: (self.vgprs() - self.accum_offset()) as u16 }
    }

    /// SGPRs filled from user data.
    #[must_use]
    pub(crate) fn user_sgprs(self) -> u32 {
        self.rsrc2 >> 1 & 0x1f
    }

    /// Whether waves get scratch memory.
    #[must_use]
    pub(crate) fn scratch_enabled(self) -> bool {
        self.rsrc2 & 1 == 1
    }

    fn workgroup_id_enabled(self, dimension: usize) -> bool {
        self.rsrc2 >> (7 + dimension) & 1 == 1
    }

    fn workgroup_info_enabled(self) -> bool {
        self.rsrc2 >> 10 & 1 == 1
    }

    /// LDS in the units of gfx950, 320 dwords (LLVM AMDGPUUsage, granulated LDS size).
    #[must_use]
    pub(crate) fn lds_granules(self) -> u32 {
        self.rsrc2 >> 15 & 0x1ff
    }
}

/// Bytes in one unit of LDS allocation on gfx950.
pub(crate) const LDS_GRANULE: u32 = 1280;

/// Private memory of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scratch {
    /// First byte of this XCC's scratch area.
    pub base: u64,
    /// Bytes of one wave's slot, all lanes together.
    pub bytes_per_wave: u32,
    /// Slots in the area: waves that can have scratch at one time.
    pub waves: u32,
}

/// What all workgroups of a launch have in common.
#[derive(Debug)]
pub(crate) struct LaunchShape {
    /// The kernel's entry point.
    pub entry: GpuVa,
    /// The program resource registers.
    pub resources: ProgramResources,
    /// Work-items per workgroup and dimension.
    pub workgroup: [u32; 3],
    /// Work-items of the whole grid per dimension; the last workgroup of a dimension may be partial.
    pub grid: [u32; 3],
    /// Id of the first workgroup (COMPUTE_START_X and so on).
    pub start: [u32; 3],
    /// User data, as many dwords as `resources.user_sgprs()`.
    pub user_data: Vec<u32>,
    /// LDS bytes of a workgroup.
    pub lds_bytes: u32,
    /// Private memory, per XCC.
    pub scratch: Vec<Scratch>,
}

impl LaunchShape {
    /// Workgroups per dimension.
    #[must_use]
    pub(crate) fn workgroups(&self) -> [u32; 3] {
        std::array::from_fn(|d| self.grid[d].div_ceil(self.workgroup[d].max(1)))
    }

    /// Workgroups in all.
    #[must_use]
    pub(crate) fn workgroup_count(&self) -> u64 {
        self.workgroups().iter().map(|&n| u64::from(n)).product()
    }

    /// Waves of a full workgroup.
    #[must_use]
    pub(crate) fn waves_per_workgroup(&self) -> u32 {
        self.workgroup.iter().product::<u32>().div_ceil(LANES as u32)
    }

    /// Whether an empty compute unit holds one of its workgroups.
    #[must_use]
    pub(crate) fn fits_a_compute_unit(&self) -> bool {
        ComputeUnit::default().admit(Needs::of(self), 0)
    }

    /// The id of the workgroup with number `flat`, x fastest.
    #[must_use]
    pub(crate) fn workgroup_id(&self, flat: u64) -> [u32; 3] {
        let [x, y, _] = self.workgroups().map(u64::from);
        [
            (flat % x) as u32 + self.start[0],
            (flat / x % y) as u32 + self.start[1],
            (flat / (x * y)) as u32 + self.start[2],
        ]
    }

    /// Work-items of workgroup `id` per dimension: fewer than `workgroup` at the edge of the grid.
    fn items(&self, id: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|d| self.workgroup[d].min(self.grid[d] - (id[d] - self.start[d]) * self.workgroup[d]))
    }

    /// The waves of workgroup `flat` as the SPI starts them (AMDGPUUsage, "Initial Kernel Execution State").
    #[must_use]
    pub(crate) fn start_waves(&self, flat: u64, place: Placement) -> Vec<Wave> {
        let id = self.workgroup_id(flat);
        let items = self.items(id);
        let total = items.iter().product::<u32>();
        let waves = total.div_ceil(LANES as u32);
        (0..waves).map(|index| self.start_wave(index, waves, id, items, place)).collect()
    }

    fn start_wave(&self, index: u32, waves: u32, id: [u32; 3], items: [u32; 3], place: Placement) -> Wave {
        let resources = self.resources;
        let mut sgprs = [0; sreg::COUNT];
        let mut next = resources.user_sgprs() as usize;
        sgprs[..self.user_data.len()].copy_from_slice(&self.user_data);
        let mut push = |value| {
            sgprs[next] = value;
            next += 1;
        };
        for (d, &id) in id.iter().enumerate() {
            if resources.workgroup_id_enabled(d) {
                push(id);
            }
        }
        if resources.workgroup_info_enabled() {
            // SPI: waves in the group in bits 5:0, this wave's number in 11:6, first wave in bit 31.
            push(waves | index << 6 | u32::from(index == 0) << 31);
        }
        let mut vgprs = vec![Vreg::default(); resources.vgprs() as usize].into_boxed_slice();
        let total = items.iter().product::<u32>();
        let mut exec = 0u64;
        for lane in 0..LANES as u32 {
            let item = index * LANES as u32 + lane;
            if item < total {
                exec |= 1 << lane;
                let [x, y] = [items[0], items[1]];
                // Packed work-item ids (gfx90a and later): x in bits 9:0, y in 19:10, z in 29:20.
                vgprs[0].0[lane as usize] = (item % x) | (item / x % y) << 10 | (item / (x * y)) << 20;
            }
        }
        sgprs[sreg::EXEC_LO] = exec as u32;
        sgprs[sreg::EXEC_LO + 1] = (exec >> 32) as u32;
        let scratch = place.scratch.map_or(0, |slot| slot.base + u64::from(slot.index + index) * u64::from(slot.bytes));
        sgprs[sreg::FLAT_SCRATCH_LO] = scratch as u32;
        sgprs[sreg::FLAT_SCRATCH_LO + 1] = (scratch >> 32) as u32;
        Wave {
            vgprs,
            sgprs,
            scc: false,
            mode: Mode::from_rsrc1(resources.rsrc1),
            // STATUS: IN_TG, VALID, SCRATCH_EN.
            status: u32::from(waves > 1) << 11 | 1 << 16 | u32::from(place.scratch.is_some()) << 28,
            pc: Code::ENTRY,
            index,
            hw_id: place.hw_id(index),
            xcc: place.xcc,
            scratch_base: scratch,
            executed: 0,
        }
    }
}

/// Where a workgroup runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// XCC in its GPU.
    pub xcc: u32,
    /// Compute unit in its XCC.
    pub cu: u32,
    /// Its scratch slots, if the kernel uses scratch.
    pub scratch: Option<ScratchSlot>,
}

impl Placement {
    /// HW_ID of gfx9: WAVE_ID 3:0, SIMD_ID 5:4, CU_ID 11:8, SH_ID 12, SE_ID 15:13 (CDNA ISA, "Hardware registers").
    fn hw_id(self, wave: u32) -> u32 {
        let (se, cu) = (self.cu / 10, self.cu % 10);
        ((wave / 4) & 0xf) | (wave & 3) << 4 | cu << 8 | se << 13
    }
}

/// Scratch slots of one workgroup, one per wave from `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScratchSlot {
    /// First byte of the XCC's scratch area.
    pub base: u64,
    /// Slot of the workgroup's first wave.
    pub index: u32,
    /// Bytes of one slot.
    pub bytes: u32,
}

/// What starts launches one after the other: a queue whose packets all XCCs take together, or one XCC that runs an
/// indirect buffer or a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stream {
    /// The queue.
    pub(crate) queue: super::QueueId,
    /// The XCC that goes its own way.
    pub(crate) xcc: Option<u8>,
}

/// The number of the next launch.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A launch in flight, shared by the XCCs that execute it and the processor that waits for it.
#[derive(Debug)]
pub(crate) struct Launch {
    /// What it runs.
    pub shape: LaunchShape,
    /// The queue it came from.
    pub queue: super::QueueId,
    /// What started it.
    pub(crate) stream: Stream,
    /// Its number, unique in the process and never zero.
    pub(crate) number: u32,
    workgroups_left: AtomicU64,
    instructions: AtomicU64,
}

impl Launch {
    /// A launch of `workgroups` of the shape's workgroups (one XCC's share, or all).
    #[must_use]
    pub(crate) fn new(shape: LaunchShape, stream: Stream, workgroups: u64) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (queue, workgroups_left, instructions) = (stream.queue, workgroups.into(), AtomicU64::new(0));
        Self { shape, queue, stream, number, workgroups_left, instructions }
    }

    /// Whether every workgroup has ended.
    #[must_use]
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the release in `workgroup_done`, so that what the workgroups wrote is visible to the
        // processor that completes the launch, even if other host threads ran them.
        self.workgroups_left.load(Ordering::Acquire) == 0
    }

    /// Workgroups that have not ended.
    pub(super) fn workgroups_left(&self) -> u64 {
        self.workgroups_left.load(Ordering::Acquire)
    }

    /// Counts one workgroup as ended, and the instructions its waves executed.
    pub(super) fn workgroup_done(&self, instructions: u64) {
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
        self.workgroups_left.fetch_sub(1, Ordering::Release);
    }
}
