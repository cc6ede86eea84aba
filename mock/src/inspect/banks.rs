//! The LDS bank model.
//!
//! LDS has 64 banks, each a dword wide, dwords placed in them serially; every bank serves one address at a time, and accesses
//! that meet in a bank are served one after another (CDNA4 ISA section 11.1). An instruction without conflicts takes at least
//! two cycles (section 11.3.1), as 32 dwords are accessed concurrently. So lanes are taken in order, as many at a time as
//! fill the banks: 32 with one or two dwords each, 16 with three or four. Which lanes the hardware really takes together is
//! not documented for wide accesses. Lanes that read the same dword share it; lanes that write or change it do not.

use crate::observe::{Access, AccessKind};

const BANKS: usize = 64;

/// Cycles that an instruction with these accesses takes, and how many of them are due to conflicts.
pub(super) fn cycles(accesses: &[Access]) -> (u64, u64) {
    let widest = accesses.iter().map(|access| access.bytes).max().unwrap_or(0);
    let at_once = if widest <= 8 { 32 } else { 16 };
    let (mut cycles, mut ideal) = (0, 0);
    let mut rest = accesses;
    while let Some(first) = rest.first() {
        let group = lane(first) / at_once;
        let length = rest.iter().take_while(|access| lane(access) / at_once == group).count();
        let (now, later) = rest.split_at(length);
        cycles += busiest_bank(now);
        ideal += 1;
        rest = later;
    }
    (cycles, cycles - ideal)
}

fn lane(access: &Access) -> usize {
    access.lane.unwrap_or(0).into()
}

/// Accesses that the busiest bank has to serve.
fn busiest_bank(accesses: &[Access]) -> u64 {
    let dwords = |access: &Access| access.address / 4..(access.address + u64::from(access.bytes)).div_ceil(4);
    let mut words: Vec<u64> = accesses.iter().flat_map(dwords).collect();
    if accesses.iter().all(|access| access.kind == AccessKind::Read) {
        words.sort_unstable();
        words.dedup();
    }
    let mut banks = [0_u64; BANKS];
    for word in words {
        banks[(word % BANKS as u64) as usize] += 1;
    }
    banks.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Space;

    fn reads(bytes: u8, address: impl Fn(u64) -> u64) -> Vec<Access> {
        let access = |lane| Access {
            address: address(lane),
            bytes,
            lane: Some(lane as u8),
            space: Space::Lds,
            kind: AccessKind::Read,
        };
        (0..64).map(access).collect()
    }

    #[test]
    fn consecutive_dwords_take_two_cycles_and_no_conflict() {
        assert_eq!(cycles(&reads(4, |lane| 4 * lane)), (2, 0));
        assert_eq!(cycles(&reads(8, |lane| 8 * lane)), (2, 0));
        assert_eq!(cycles(&reads(16, |lane| 16 * lane)), (4, 0));
    }

    #[test]
    fn a_column_of_a_matrix_with_64_columns_is_all_in_one_bank() {
        assert_eq!(cycles(&reads(4, |lane| 256 * lane)), (64, 62));
    }

    #[test]
    fn padding_each_row_by_a_dword_ends_the_conflict() {
        assert_eq!(cycles(&reads(4, |lane| 260 * lane)), (2, 0));
    }

    #[test]
    fn lanes_that_read_the_same_dword_share_it_and_lanes_that_write_it_wait() {
        let same = reads(4, |_| 128);
        assert_eq!(cycles(&same), (2, 0));
        let written: Vec<_> = same.iter().map(|&read| Access { kind: AccessKind::Atomic, ..read }).collect();
        assert_eq!(cycles(&written), (64, 62));
    }

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(cycles(&[]), (0, 0));
    }
}
