//! Small kernels under the sanitizer: buffers, a grid of workgroups over XCCs and GPUs, and the reports.

use std::cell::Cell;
use std::sync::Arc;

use driver::address::GpuVa;
use driver::kfd::memory::AllocFlags;

use crate::check::{Checker, Report, ReportKind, Scope, poison};
use crate::code::CodeCache;
use crate::exec::HostLevel;
use crate::machine::QueueId;
use crate::machine::launch::{Launch, LaunchShape, Placement, ProgramResources, Stream};
use crate::memory::{Mapping, PageMap};
use crate::observe::{Allocated, CacheAction, Event, Observer, Observers, OrderEvent};
use crate::testbench::{FixedOutside, assemble};
use crate::workgroup::{Turn, Workgroup};

const CODE: u64 = 0x20_0000;
const PAGE: u64 = 4096;

/// GPUs that run kernels under the sanitizer; each sees all buffers.
pub(super) struct CheckBench {
    checker: Arc<Checker>,
    map: PageMap,
    buffers: Vec<(u64, Vec<u32>)>,
    next: Cell<u64>,
}

/// How a kernel is launched.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) workgroups: u32,
    pub(super) waves: u32,
    pub(super) lds: u32,
    pub(super) gpu: usize,
    /// XCC of the first workgroup; the others follow in turn.
    pub(super) xcc: u32,
}

/// One wave on XCC 0 of GPU 0.
pub(super) const ONE: Grid = Grid { workgroups: 1, waves: 1, lds: 0, gpu: 0, xcc: 0 };

impl CheckBench {
    pub(super) fn new() -> Self {
        Self { checker: Arc::default(), map: PageMap::default(), buffers: Vec::new(), next: Cell::new(0x100_0000) }
    }

    /// VRAM of `bytes` bytes that nobody has written; kernels find its address in the next pair of SGPRs.
    pub(super) fn buffer(&mut self, label: &str, bytes: u64) -> u64 {
        self.allocate(label, bytes, AllocFlags::VRAM | AllocFlags::WRITABLE)
    }

    /// VRAM that the host has set to zero.
    pub(super) fn zeroed(&mut self, label: &str, bytes: u64) -> u64 {
        let at = self.buffer(label, bytes);
        self.memory(at)[..(bytes / 4) as usize].fill(0);
        at
    }

    pub(super) fn allocate(&mut self, label: &str, bytes: u64, flags: AllocFlags) -> u64 {
        let whole = bytes.next_multiple_of(PAGE);
        let va = self.next.get();
        // The pages between belong to nobody.
        self.next.set(va + whole + PAGE);
        let mut memory: Vec<u32> = (0..whole / 4).map(|dword| poison::word(va + 4 * dword)).collect();
        self.checker.event(&Event::Allocated(Allocated { gpu: 0, va, bytes: whole, flags, poisoned: true }));
        self.checker.event(&Event::Named { at: va, bytes, label });
        self.map
            .map(Mapping {
                start: va,
                end: va + whole,
                host: memory.as_mut_ptr().cast(),
                writable: flags.contains(AllocFlags::WRITABLE),
                executable: false,
            })
            .unwrap();
        self.buffers.push((va, memory));
        va
    }

    /// Frees the buffer at `va`, whose address kernels still get.
    pub(super) fn free(&mut self, va: u64) {
        self.map.unmap(GpuVa::new(va)).unwrap();
        self.checker.event(&Event::Freed(va));
    }

    pub(super) fn memory(&mut self, va: u64) -> &mut [u32] {
        &mut self.buffers.iter_mut().find(|(at, _)| *at == va).unwrap().1
    }

    /// Tells the sanitizer how packets of a GPU's queue order work.
    pub(super) fn order(&self, gpu: usize, event: OrderEvent) {
        self.checker.event(&Event::Order(stream(gpu), event));
    }

    /// Tells the sanitizer what packets do to the L2s of a GPU.
    pub(super) fn cache(&self, gpu: usize, action: CacheAction, scope: Scope) {
        self.checker.event(&Event::Cache { gpu, xcc: None, action, scope });
    }

    /// Runs a kernel to its end, or to a fault. s[0:1], s[2:3] and so on hold the buffers' addresses, the SGPR after them
    /// the workgroup's number, v0 the work-item. `false` if there is no assembler.
    #[must_use]
    pub(super) fn launch(&mut self, text: &str, grid: Grid) -> bool {
        let Some(mut code) = assemble(text) else { return false };
        let user_data: Vec<u32> = self.buffers.iter().flat_map(|(va, _)| [*va as u32, (*va >> 32) as u32]).collect();
        let mut map = self.map.clone();
        map.map(Mapping {
            start: CODE,
            end: CODE + 4 * code.len() as u64,
            host: code.as_mut_ptr().cast(),
            writable: false,
            executable: true,
        })
        .unwrap();
        let resources = ProgramResources {
            // 512 registers, denormals kept, IEEE; workgroup id x enabled; AccVGPRs from 256 on.
            rsrc1: 63 | 0xf0 << 12 | 1 << 21 | 1 << 23,
            rsrc2: (user_data.len() as u32) << 1 | 1 << 7,
            rsrc3: 63,
        };
        let shape = LaunchShape {
            entry: GpuVa::new(CODE),
            resources,
            workgroup: [64 * grid.waves, 1, 1],
            grid: [64 * grid.waves * grid.workgroups, 1, 1],
            start: [0; 3],
            user_data,
            lds_bytes: grid.lds,
            scratch: Vec::new(),
        };
        let code = CodeCache::default().get(grid.gpu, shape.entry, resources.limits(), &map, HostLevel::Baseline);
        let launch = Arc::new(Launch::new(shape, stream(grid.gpu), u64::from(grid.workgroups)));
        let observers = Observers::new(vec![Arc::clone(&self.checker) as Arc<dyn Observer>]);
        observers.event(&Event::LaunchStarted(&launch));
        let place = |flat: u32| Placement { xcc: (grid.xcc + flat) % 8, cu: 0, scratch: None };
        let start =
            |flat: u32| Workgroup::new(Arc::clone(&launch), flat.into(), place(flat), grid.gpu, 0, Arc::clone(&code));
        let mut running: Vec<Workgroup> = (0..grid.workgroups).map(start).collect();
        let outside = FixedOutside::default();
        for _ in 0..1000 {
            // Few instructions a turn, so that workgroups and waves run between each other.
            running.retain_mut(|workgroup| {
                matches!(workgroup.turn(&map, HostLevel::Baseline, &outside, &observers, 4, 0), Turn::Again)
            });
        }
        assert!(running.is_empty(), "{text}: does not end");
        observers.event(&Event::LaunchEnded(&launch));
        true
    }

    pub(super) fn reports(&self) -> Vec<Report> {
        self.checker.reports()
    }

    pub(super) fn kinds(&self) -> Vec<ReportKind> {
        self.reports().iter().map(|report| report.kind).collect()
    }
}

fn stream(gpu: usize) -> Stream {
    Stream { queue: QueueId { gpu, number: gpu as u32 }, xcc: None }
}

/// Runs `bad`, which must give reports of `kind` and no others, and `good`, which must give none. Each starts from the
/// bench that `prepare` makes.
pub(super) fn differ(
    prepare: impl Fn() -> CheckBench,
    grid: Grid,
    kind: ReportKind,
    bad: &str,
    good: &str,
) -> Vec<Report> {
    let mut bench = prepare();
    if !bench.launch(good, grid) {
        return Vec::new();
    }
    assert_eq!(bench.reports(), [], "{good}");
    let mut bench = prepare();
    assert!(bench.launch(bad, grid));
    let reports = bench.reports();
    // The same mistake may be seen from both sides.
    assert!(!reports.is_empty() && bench.kinds().iter().all(|&seen| seen == kind), "{bad}: {reports:#?}");
    reports
}
