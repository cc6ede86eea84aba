//! A workgroup on its way through a compute unit: its waves and their local data share.

use std::fmt;
use std::sync::Arc;

use crate::code::Code;
use crate::exec::{self, Cx, HostLevel, Stop, WaveFault};
use crate::machine::launch::{Launch, Placement};
use crate::memory::{PageMap, View};
use crate::wave::Wave;

/// The local data share of one workgroup, in bytes from 0 to its allocation.
pub struct Lds {
    dwords: Box<[u32]>,
}

impl Lds {
    /// LDS of `bytes` bytes, rounded up to a dword.
    #[must_use]
    pub fn new(bytes: u32) -> Self {
        Self { dwords: vec![0; bytes.div_ceil(4) as usize].into_boxed_slice() }
    }

    /// Bytes the workgroup may address.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.dwords.len() as u32 * 4
    }

    /// The dword at byte address `address`, which need not be aligned.
    ///
    /// # Errors
    /// [`WaveFault::Lds`] outside the allocation.
    #[inline]
    pub fn read_u32(&self, address: u32) -> Result<u32, WaveFault> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.range(address, 4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    /// The `bytes` bytes at `address`.
    ///
    /// # Errors
    /// [`WaveFault::Lds`] outside the allocation.
    #[inline]
    pub fn range(&self, address: u32, bytes: u32) -> Result<&[u8], WaveFault> {
        let all: &[u8] = bytemuck::cast_slice(&self.dwords);
        let size = all.len() as u32;
        let end = address as usize + bytes as usize;
        all.get(address as usize..end).ok_or(WaveFault::Lds { address, bytes, size })
    }

    /// The `bytes` bytes at `address`, to be written.
    ///
    /// # Errors
    /// [`WaveFault::Lds`] outside the allocation.
    #[inline]
    pub fn range_mut(&mut self, address: u32, bytes: u32) -> Result<&mut [u8], WaveFault> {
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut self.dwords);
        let size = all.len() as u32;
        let end = address as usize + bytes as usize;
        all.get_mut(address as usize..end).ok_or(WaveFault::Lds { address, bytes, size })
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

    /// Runs each wave until it ends, yields or has executed `quantum` instructions, starting with wave `first`; waves
    /// that meet at a barrier go on within the turn.
    pub(crate) fn turn(&mut self, map: &PageMap, level: HostLevel, quantum: u32, first: usize) -> Turn {
        let started = self.started.get_or_insert_with(|| Started {
            waves: self
                .launch
                .shape
                .start_waves(self.flat, self.placement)
                .into_iter()
                .map(|wave| (wave, WaveState::Ready))
                .collect(),
            lds: Lds::new(self.launch.shape.lds_bytes),
        });
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
                    let mut cx = Cx::new(wave, &mut started.lds, View::new(map), &code, quantum);
                    match exec::run(&mut cx) {
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
