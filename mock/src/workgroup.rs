//! A workgroup on its way through a compute unit: its waves and their local data share.

use std::fmt;
use std::sync::Arc;

use crate::code::Code;
use crate::exec::{self, Cx, HostLevel, Outside, Stop, WaveFault};
use crate::machine::launch::{LDS_GRANULE, Launch, Placement};
use crate::memory::{PageMap, View};
use crate::observe::{Observers, WorkgroupObserver, WorkgroupStart};
use crate::wave::Wave;

/// The local data share of one workgroup, in bytes from 0 to its allocation. Reads past the end give zero, and writes
/// there are dropped (CDNA4 ISA section 3.6.1).
pub(crate) struct Lds {
    quadwords: Box<[u64]>,
    bytes: u32,
}

impl Lds {
    /// LDS of `bytes` bytes.
    #[must_use]
    pub(crate) fn new(bytes: u32) -> Self {
        Self { quadwords: vec![0; bytes.div_ceil(8) as usize].into_boxed_slice(), bytes }
    }

    /// Bytes the workgroup may address.
    #[inline]
    #[must_use]
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// All of it.
    #[inline]
    #[must_use]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.quadwords)[..self.bytes as usize]
    }

    /// All of it, to be written; aligned to eight bytes.
    #[inline]
    #[must_use]
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.quadwords)[..self.bytes as usize]
    }

    /// The dword at byte address `address`, which need not be aligned.
    #[inline]
    #[must_use]
    pub(crate) fn read_u32(&self, address: u32) -> u32 {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Reads the bytes at `address`: all of them zero if not all are inside.
    #[inline]
    pub(crate) fn read(&self, address: u32, into: &mut [u8]) {
        let start = address as usize;
        match self.as_bytes().get(start..start + into.len()) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => into.fill(0),
        }
    }

    /// Writes the bytes at `address`: none of them if not all are inside.
    #[inline]
    pub(crate) fn write(&mut self, address: u32, from: &[u8]) {
        let start = address as usize;
        if let Some(bytes) = self.as_bytes_mut().get_mut(start..start + from.len()) {
            bytes.copy_from_slice(from);
        }
    }
}

/// What became of a workgroup's turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// All its waves have ended.
    Done,
    /// It wants another turn.
    Again,
    /// A wave faulted; the workgroup is dead.
    Fault(Box<FaultReport>),
}

/// A fault with the place it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultReport {
    /// What happened.
    pub fault: WaveFault,
    /// Address of the instruction.
    pub pc: u64,
    /// Its text.
    pub instruction: String,
    /// Workgroup id in the grid.
    pub workgroup: [u32; 3],
    /// Wave in the workgroup.
    pub wave: u32,
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(
            f,
            "{} (at {:#x}: `{}`, workgroup {x},{y},{z}, wave {})",
            self.fault, self.pc, self.instruction, self.wave
        )
    }
}

/// A workgroup that holds its place on a compute unit. Its registers exist from its first turn on.
pub(crate) struct Workgroup {
    pub(crate) launch: Arc<Launch>,
    /// Number in the grid, x fastest.
    pub(crate) flat: u64,
    pub(crate) placement: Placement,
    pub(crate) gpu: usize,
    pub(crate) first_simd: usize,
    pub(crate) code: Arc<Code>,
    started: Option<Started>,
}

struct Started {
    waves: Vec<(Wave, WaveState)>,
    lds: Lds,
    observers: Vec<Box<dyn WorkgroupObserver>>,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.observers.iter_mut().for_each(|observer| observer.end());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaveState {
    Ready,
    AtBarrier,
    /// Had its turn.
    Waiting,
    Ended,
}

impl Workgroup {
    pub(crate) fn new(
        launch: Arc<Launch>,
        flat: u64,
        placement: Placement,
        gpu: usize,
        first_simd: usize,
        code: Arc<Code>,
    ) -> Self {
        Self { launch, flat, placement, gpu, first_simd, code, started: None }
    }

    /// Instructions that all waves have executed.
    pub(crate) fn executed(&self) -> u64 {
        self.started.as_ref().map_or(0, |s| s.waves.iter().map(|(wave, _)| wave.executed).sum())
    }

    fn start(&self, observers: &Observers) -> Started {
        let shape = &self.launch.shape;
        let waves = shape.start_waves(self.flat, self.placement);
        // The hardware holds accesses to what is allocated, not to what was asked for.
        let lds = Lds::new(shape.lds_bytes.next_multiple_of(LDS_GRANULE));
        let observers = observers.workgroup(&WorkgroupStart {
            gpu: self.gpu,
            launch: &self.launch,
            placement: self.placement,
            id: shape.workgroup_id(self.flat),
            flat: self.flat,
            waves: &waves,
            lds_bytes: lds.bytes(),
        });
        Started { waves: waves.into_iter().map(|wave| (wave, WaveState::Ready)).collect(), lds, observers }
    }

    /// Runs each wave until it ends, yields or has executed `quantum` instructions, starting with wave `first`; waves
    /// that meet at a barrier go on within the turn.
    pub(crate) fn turn(
        &mut self,
        map: &PageMap,
        level: HostLevel,
        outside: &dyn Outside,
        observers: &Observers,
        quantum: u32,
        first: usize,
    ) -> Turn {
        if self.started.is_none() {
            self.started = Some(self.start(observers));
        }
        let Some(started) = &mut self.started else { return Turn::Done };
        let count = started.waves.len();
        for (_, state) in &mut started.waves {
            if *state == WaveState::Waiting {
                *state = WaveState::Ready;
            }
        }
        loop {
            let mut ran = false;
            for i in 0..count {
                let (wave, state) = &mut started.waves[(first + i) % count];
                if *state != WaveState::Ready {
                    continue;
                }
                ran = true;
                *state = loop {
                    let code = Arc::clone(&self.code);
                    let mut cx = Cx::new(wave, &mut started.lds, View::new(map), &code, outside, quantum);
                    let stop = match started.observers.as_mut_slice() {
                        [] => exec::run(&mut cx),
                        observers => exec::run_observed(&mut cx, observers),
                    };
                    match stop {
                        Stop::End => break WaveState::Ended,
                        Stop::Barrier => break WaveState::AtBarrier,
                        Stop::Yield | Stop::Quantum => break WaveState::Waiting,
                        Stop::Undecoded(address) => {
                            let mut extended = Code::clone(&self.code);
                            wave.pc = extended.extend(address, map, level);
                            self.code = Arc::new(extended);
                        }
                        Stop::Fault(fault) => {
                            let (pc, instruction) = code.describe(wave.pc.saturating_sub(1));
                            let workgroup = self.launch.shape.workgroup_id(self.flat);
                            let wave = wave.index;
                            return Turn::Fault(Box::new(FaultReport { fault, pc, instruction, workgroup, wave }));
                        }
                    }
                };
            }
            let at = |wanted| started.waves.iter().filter(|(_, state)| *state == wanted).count();
            let ended = at(WaveState::Ended);
            if ended == count {
                return Turn::Done;
            }
            // Waves that have ended no longer take part in barriers (CDNA4 ISA, S_BARRIER).
            if at(WaveState::AtBarrier) + ended == count {
                started.observers.iter_mut().for_each(|observer| observer.barrier());
                for (_, state) in &mut started.waves {
                    if *state == WaveState::AtBarrier {
                        *state = WaveState::Ready;
                    }
                }
            } else if !ran {
                return Turn::Again;
            }
        }
    }
}
