//! Results that arrive late: until the wait that says a load has returned, its registers keep what they held.
//!
//! A kernel that lacks the wait goes on with the old value, as it may on hardware.

use isa::{Memory, RegFile, RegRange};

use crate::facts::Facts;
use crate::wave::{LANES, Wave};

/// The registers of a result.
#[derive(Clone, Copy, Debug)]
struct Place {
    range: RegRange,
    /// First in the wave's registers of that kind.
    first: usize,
}

/// What registers held before a load was executed.
pub(super) struct Before {
    place: Place,
    values: Vec<u32>,
}

/// What a load found.
#[derive(Debug)]
pub(super) struct Late {
    place: Place,
    lanes: u64,
    /// The bits of the last dword that it writes: loads of half a register leave the other half as it is.
    last: u32,
    values: Vec<u32>,
}

impl Before {
    /// Keeps the old values if `facts` are of an instruction whose result has to be waited for. `acc` is the place of the
    /// first AccVGPR.
    pub(super) fn of(facts: &Facts, acc: usize, wave: &Wave) -> Option<Self> {
        let info = facts.inst.op.info();
        if info.counters.is_empty() || info.memory == Memory::Store {
            return None;
        }
        let range = *facts.writes.iter().find(|range| range.file != RegFile::Scc)?;
        let first = usize::from(range.first) + if range.file == RegFile::Acc { acc } else { 0 };
        let place = Place { range, first };
        Some(Self { place, values: place.values(wave)? })
    }

    /// Takes the result out of the registers again; it concerns `lanes`.
    pub(super) fn withhold(self, facts: &Facts, lanes: u64, wave: &mut Wave) -> Option<Late> {
        let values = self.place.values(wave)?;
        self.place.store(&self.values, u64::MAX, u32::MAX, wave);
        let half = if facts.inst.op.info().name.contains("_d16_hi") { 0xffff_0000 } else { 0xffff };
        let last = if facts.reads == facts.inputs { u32::MAX } else { half };
        Some(Late { place: self.place, lanes, last, values })
    }
}

impl Late {
    /// The result arrives.
    pub(super) fn deliver(&self, wave: &mut Wave) {
        self.place.store(&self.values, self.lanes, self.last, wave);
    }
}

impl Place {
    /// `None` if the wave has no such registers.
    fn values(self, wave: &Wave) -> Option<Vec<u32>> {
        let registers = self.first..self.first + usize::from(self.range.count);
        match self.range.file {
            RegFile::Scalar => Some(wave.sgprs.get(registers)?.to_vec()),
            RegFile::Vector | RegFile::Acc => Some(wave.vgprs.get(registers)?.iter().flat_map(|vreg| vreg.0).collect()),
            RegFile::Scc => None,
        }
    }

    fn store(self, values: &[u32], lanes: u64, last: u32, wave: &mut Wave) {
        if self.range.file == RegFile::Scalar {
            wave.sgprs[self.first..][..values.len()].copy_from_slice(values);
            return;
        }
        let count = values.len() / LANES;
        for (i, (vreg, values)) in wave.vgprs[self.first..].iter_mut().zip(values.chunks(LANES)).enumerate() {
            let bits = if i + 1 == count { last } else { u32::MAX };
            for (lane, (held, value)) in vreg.0.iter_mut().zip(values).enumerate() {
                if lanes >> lane & 1 == 1 {
                    *held = *held & !bits | value & bits;
                }
            }
        }
    }
}
