//! For tests of instructions: one wave, one buffer, and code written as LLVM assembly.
//!
//! The assembler is LLVM inside the Rust toolchain's own libLLVM. Where that is missing a test prints that it was
//! skipped; with `CI` set in the environment it fails instead.

mod assembler;
mod record;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use driver::address::GpuVa;

use crate::code::CodeCache;
use crate::exec::{self, Cx, HostLevel, MfmaOrder, Outside, RegisterLimits, Stop, WaveFault};
use crate::memory::{Mapping, PageMap, View};
use crate::observe::WorkgroupObserver;
use crate::wave::{LANES, Mode, Vreg, Wave, sreg};
use crate::workgroup::Lds;

pub(crate) use assembler::assemble;

/// Where the bench's buffer is mapped, readable and writable.
pub(crate) const BUFFER: u64 = 0x10_0000;
const CODE: u64 = 0x20_0000;
const REGISTERS: u16 = 256;

/// A wave to prepare, run and look at.
pub(crate) struct Bench {
    pub(crate) wave: Wave,
    /// Mapped at [`BUFFER`].
    pub(crate) buffer: Vec<u32>,
    pub(crate) lds: Lds,
    pub(crate) outside: FixedOutside,
}

/// A clock that stands still, and the interrupts of the last run.
#[derive(Default)]
pub(crate) struct FixedOutside {
    pub(crate) clock: u64,
    pub(crate) interrupts: RefCell<Vec<u32>>,
    pub(crate) mfma_order: MfmaOrder,
}

impl Outside for FixedOutside {
    fn clock(&self) -> u64 {
        self.clock
    }

    fn interrupt(&self, event: u32) {
        self.interrupts.borrow_mut().push(event);
    }

    fn mfma_order(&self) -> MfmaOrder {
        self.mfma_order
    }
}

impl Bench {
    /// All lanes on, registers zero, MODE as compiled kernels have it, 64 KiB of buffer, 64 KiB of LDS.
    pub(crate) fn new() -> Self {
        let mut sgprs = [0; sreg::COUNT];
        sgprs[sreg::EXEC_LO] = u32::MAX;
        sgprs[sreg::EXEC_LO + 1] = u32::MAX;
        let wave = Wave {
            vgprs: vec![Vreg::default(); 2 * REGISTERS as usize].into_boxed_slice(),
            sgprs,
            scc: false,
            // Round to nearest even, denormals kept, DX10_CLAMP, IEEE: what clang puts in kernel descriptors.
            mode: Mode(0x3f0),
            status: 1 << 16,
            pc: 0,
            index: 0,
            hw_id: 0,
            xcc: 0,
            scratch_base: 0,
            executed: 0,
        };
        Self { wave, buffer: vec![0; 16 * 1024], lds: Lds::new(64 * 1024), outside: FixedOutside::default() }
    }

    /// ArchVGPR `n`, one value a lane.
    pub(crate) fn v(&mut self, n: usize) -> &mut [u32; LANES] {
        &mut self.wave.vgprs[n].0
    }

    /// AccVGPR `n`.
    pub(crate) fn a(&mut self, n: usize) -> &mut [u32; LANES] {
        &mut self.wave.vgprs[REGISTERS as usize + n].0
    }

    /// Scalar register `n` (or a special one, by [`sreg`] number).
    pub(crate) fn s(&mut self, n: usize) -> &mut u32 {
        &mut self.wave.sgprs[n]
    }

    /// Sets a scalar register pair.
    pub(crate) fn set_s64(&mut self, n: usize, value: u64) {
        self.wave.sgprs[n] = value as u32;
        self.wave.sgprs[n + 1] = (value >> 32) as u32;
    }

    /// A scalar register pair.
    pub(crate) fn s64(&self, n: usize) -> u64 {
        u64::from(self.wave.sgprs[n]) | u64::from(self.wave.sgprs[n + 1]) << 32
    }

    /// Sets lane values of a register pair.
    pub(crate) fn set_v64(&mut self, n: usize, values: impl Fn(usize) -> u64) {
        for lane in 0..LANES {
            self.wave.vgprs[n].0[lane] = values(lane) as u32;
            self.wave.vgprs[n + 1].0[lane] = (values(lane) >> 32) as u32;
        }
    }

    /// Lane value of a register pair.
    pub(crate) fn v64(&self, n: usize, lane: usize) -> u64 {
        u64::from(self.wave.vgprs[n].0[lane]) | u64::from(self.wave.vgprs[n + 1].0[lane]) << 32
    }

    /// Runs `text` (LLVM assembly, one instruction a line, `s_endpgm` added) to its end on every host level that this
    /// processor has, and with an observer, from the same start, and checks that all agree. `false` if there is no assembler.
    #[must_use]
    pub(crate) fn run(&mut self, text: &str) -> bool {
        match self.try_run(text) {
            Some(Ok(())) => true,
            Some(Err(fault)) => panic!("{text}: {fault}"),
            None => false,
        }
    }

    /// As [`Self::run`], for code that may fault.
    pub(crate) fn try_run(&mut self, text: &str) -> Option<Result<(), WaveFault>> {
        let code = assemble(text)?;
        let start = self.snapshot();
        let mut outcomes = Vec::new();
        for level in HostLevel::available() {
            self.restore(&start);
            let result = self.run_words(&code, level, &mut []);
            outcomes.push((level, result, self.snapshot()));
        }
        self.restore(&start);
        let result = self.run_words(&code, HostLevel::Baseline, &mut [Box::new(Indifferent)]);
        outcomes.push((HostLevel::Baseline, result, self.snapshot()));
        let (_, result, state) = outcomes.remove(0);
        for (level, other, other_state) in outcomes {
            assert_eq!(result, other, "{text}: {level:?} disagrees");
            assert!(state == other_state, "{text}: {level:?} leaves other values");
        }
        Some(result)
    }

    /// Runs `text` as [`Self::run`], with an observer.
    #[must_use]
    pub(crate) fn run_observed(&mut self, text: &str, observer: impl WorkgroupObserver + 'static) -> bool {
        let Some(code) = assemble(text) else { return false };
        let result = self.run_words(&code, HostLevel::Baseline, &mut [Box::new(observer)]);
        result.unwrap_or_else(|fault| panic!("{text}: {fault}"));
        true
    }

    fn run_words(
        &mut self,
        code: &[u32],
        level: HostLevel,
        observers: &mut [Box<dyn WorkgroupObserver>],
    ) -> Result<(), WaveFault> {
        match self.run_bounded(code, level, observers, 1_000_000) {
            Stop::Fault(fault) => Err(fault),
            Stop::End => Ok(()),
            stop => panic!("a test of an instruction does not end: {stop:?}"),
        }
    }

    /// Runs `code` until it ends, faults, or has executed `budget` instructions in a turn.
    pub(crate) fn run_bounded(
        &mut self,
        code: &[u32],
        level: HostLevel,
        observers: &mut [Box<dyn WorkgroupObserver>],
        budget: u32,
    ) -> Stop {
        /// Code that yields for ever is given up after so many turns.
        const TURNS: usize = 1000;
        let mut code = code.to_vec();
        let mut map = PageMap::default();
        for (start, memory, executable) in [(BUFFER, &mut self.buffer, false), (CODE, &mut code, true)] {
            map.map(Mapping {
                start,
                end: start + 4 * memory.len() as u64,
                host: memory.as_mut_ptr().cast(),
                writable: !executable,
                executable,
            })
            .expect("the two ranges are apart");
        }
        let limits = RegisterLimits { arch: REGISTERS, acc: REGISTERS };
        let mut code = CodeCache::default().get(0, GpuVa::new(CODE), limits, &map, level);
        record::executed(&code);
        self.wave.pc = 0;
        for _ in 0..TURNS {
            let mut cx = Cx::new(&mut self.wave, &mut self.lds, View::new(&map), &code, &self.outside, budget);
            let stop = if observers.is_empty() { exec::run(&mut cx) } else { exec::run_observed(&mut cx, observers) };
            match stop {
                Stop::Barrier | Stop::Yield => {}
                Stop::Undecoded(address) => {
                    let mut extended = crate::code::Code::clone(&code);
                    self.wave.pc = extended.extend(address, &map, level);
                    record::executed(&extended);
                    code = Arc::new(extended);
                }
                stop @ (Stop::End | Stop::Quantum | Stop::Fault(_)) => return stop,
            }
        }
        Stop::Yield
    }

    pub(crate) fn snapshot(&self) -> State {
        State {
            vgprs: self.wave.vgprs.iter().map(|register| register.0).collect(),
            sgprs: self.wave.sgprs,
            scc: self.wave.scc,
            mode: self.wave.mode,
            buffer: self.buffer.clone(),
            lds: self.lds.as_bytes().to_vec(),
        }
    }

    fn restore(&mut self, state: &State) {
        for (register, saved) in self.wave.vgprs.iter_mut().zip(&state.vgprs) {
            register.0 = *saved;
        }
        self.wave.sgprs = state.sgprs;
        self.wave.scc = state.scc;
        self.wave.mode = state.mode;
        self.buffer.clone_from(&state.buffer);
        self.lds.as_bytes_mut().copy_from_slice(&state.lds);
        self.outside.interrupts.take();
    }
}

/// Looks on and does nothing: observed execution shall give the same results.
struct Indifferent;

impl WorkgroupObserver for Indifferent {}

/// Everything that instructions can change.
#[derive(PartialEq)]
pub(crate) struct State {
    vgprs: Vec<[u32; LANES]>,
    sgprs: [u32; sreg::COUNT],
    scc: bool,
    mode: Mode,
    buffer: Vec<u32>,
    lds: Vec<u8>,
}

/// Assembled code by its text: tests use the same few instructions over many inputs.
type Cache = HashMap<String, Vec<u32>>;

#[test]
fn a_wave_executes_what_the_assembler_wrote() {
    let mut bench = Bench::new();
    *bench.v(1) = std::array::from_fn(|lane| lane as u32);
    if bench.run("v_mov_b32 v2, 5\nv_add_u32 v3, v1, v2") {
        assert_eq!(bench.v(3)[40], 45);
    }
}
