use std::ops::AddAssign;

use serde::Serialize;

use super::banks;
use crate::observe::{Access, AccessKind, Space};

/// Bytes of a line of the vector L1 cache and of L2 (KFD topology of gfx950, `cache_line_size`): what one transaction moves.
const LINE: u64 = 128;

/// Bytes between lanes and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Bytes that lanes asked for.
    pub asked: u64,
    /// Of these, different bytes: each counted once for an instruction.
    pub needed: u64,
    /// Lines of 128 bytes that an instruction touched, in bytes: what its transactions move if no cache holds them.
    pub moved: u64,
}

impl Traffic {
    /// The traffic of one instruction whose accesses in this direction are `accesses`.
    fn of<'a>(accesses: impl Iterator<Item = &'a Access>) -> Self {
        let mut ranges: Vec<(u64, u64)> =
            accesses.map(|access| (access.address, access.address.wrapping_add(access.bytes.into()))).collect();
        ranges.sort_unstable();
        let asked = ranges.iter().map(|(start, end)| end.wrapping_sub(*start)).sum();
        Self { asked, needed: covered(&ranges, 1), moved: covered(&ranges, LINE) }
    }
}

/// Bytes that sorted ranges cover, in whole units of `unit` bytes.
fn covered(ranges: &[(u64, u64)], unit: u64) -> u64 {
    let (mut total, mut up_to) = (0, 0);
    for (start, end) in ranges {
        let start = (start / unit * unit).max(up_to);
        // Lanes may ask for addresses at the end of the address space; they fault, but are counted first.
        let end = end.checked_next_multiple_of(unit).unwrap_or(u64::MAX);
        if end > start {
            total += end - start;
            up_to = end;
        }
    }
    total
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.needed += other.needed;
        self.moved += other.moved;
    }
}

/// What LDS was busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LdsTraffic {
    /// Bytes that lanes read.
    pub read: u64,
    /// Bytes that lanes wrote; atomics count here.
    pub written: u64,
    /// Cycles, by the bank model.
    pub cycles: u64,
    /// Of these, cycles that bank conflicts cost.
    pub conflicts: u64,
}

impl AddAssign for LdsTraffic {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.written += other.written;
        self.cycles += other.cycles;
        self.conflicts += other.conflicts;
    }
}

/// All accesses of one or more instructions, by where they go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accesses {
    pub(super) loaded: Traffic,
    /// Atomics too.
    pub(super) stored: Traffic,
    pub(super) lds: LdsTraffic,
}

impl Accesses {
    pub(super) fn of(accesses: &[Access]) -> Self {
        let memory = |read| {
            Traffic::of(
                accesses
                    .iter()
                    .filter(move |access| access.space != Space::Lds && (access.kind == AccessKind::Read) == read),
            )
        };
        let lds: Vec<Access> = accesses.iter().filter(|access| access.space == Space::Lds).copied().collect();
        let bytes = |read| -> u64 {
            lds.iter()
                .filter(|access| (access.kind == AccessKind::Read) == read)
                .map(|access| u64::from(access.bytes))
                .sum()
        };
        let (cycles, conflicts) = banks::cycles(&lds);
        let lds = LdsTraffic { read: bytes(true), written: bytes(false), cycles, conflicts };
        Self { loaded: memory(true), stored: memory(false), lds }
    }
}

impl AddAssign for Accesses {
    fn add_assign(&mut self, other: Self) {
        self.loaded += other.loaded;
        self.stored += other.stored;
        self.lds += other.lds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(accesses: &[(u64, u8)]) -> Traffic {
        let accesses: Vec<Access> = accesses
            .iter()
            .map(|&(address, bytes)| Access {
                address,
                bytes,
                lane: Some(0),
                space: Space::Memory,
                kind: AccessKind::Read,
            })
            .collect();
        Traffic::of(accesses.iter())
    }

    #[test]
    fn consecutive_lanes_move_what_they_need() {
        let lanes: Vec<(u64, u8)> = (0..64).map(|lane| (0x1000 + 4 * lane, 4)).collect();
        assert_eq!(traffic(&lanes), Traffic { asked: 256, needed: 256, moved: 256 });
    }

    #[test]
    fn a_lane_in_each_line_moves_whole_lines() {
        let lanes: Vec<(u64, u8)> = (0..64).map(|lane| (0x1000 + 128 * lane, 4)).collect();
        assert_eq!(traffic(&lanes), Traffic { asked: 256, needed: 256, moved: 8192 });
    }

    #[test]
    fn bytes_that_all_lanes_ask_for_are_needed_once() {
        assert_eq!(traffic(&[(0x1040, 4); 64]), Traffic { asked: 256, needed: 4, moved: 128 });
    }

    #[test]
    fn overlapping_and_line_crossing_accesses_count_each_byte_once() {
        assert_eq!(traffic(&[(0x107c, 8), (0x1080, 8)]), Traffic { asked: 16, needed: 12, moved: 256 });
    }
}
