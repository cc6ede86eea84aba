//! What memory holds until somebody writes it.
//!
//! Host writes go to mapped memory, past the emulator, so no shadow can record them. Instead fresh memory is filled with a
//! pattern that differs from dword to dword: a dword that still holds its pattern has not been written by the host. A host
//! that writes just that value there is taken for one that has not: one dword in 2^32. Large uploads come near that number,
//! so in a large allocation a dword counts as unwritten only if one of its neighbours does.
//!
//! Of a dword that was written in part, one byte in 256 is what it was. So a part counts as unwritten only if both neighbours
//! hold their patterns too.

/// The longest allocation that is filled; of larger ones, which may be sparse, all counts as written.
pub(crate) const LONGEST_FILL: u64 = 256 << 20;

/// The longest allocation in which a single dword between written ones can be told to be unwritten: one upload in 16,384
/// that fills it has a dword that is equal to its pattern.
const LONGEST_EXACT: u64 = 1 << 20;

/// What the dword at `address` holds before it is written.
pub(crate) fn word(address: u64) -> u32 {
    ((address >> 2) as u32).wrapping_mul(0x9e37_79b1) ^ 0xa5c3_5a3c
}

/// Whether bytes of the dword at address `4 * index` look unwritten; `bytes` has a bit for each of them. `allocation` is the
/// length in bytes of the memory it is in, and `read` gives the dword at an address, if there is one.
pub(crate) fn is_unwritten(index: u64, bytes: u8, allocation: u64, mut read: impl FnMut(u64) -> Option<u32>) -> bool {
    let mut holds = |index: u64| read(4 * index).is_none_or(|held| held == word(4 * index));
    if !holds(index) {
        return false;
    }
    let mut near = [index.checked_sub(1), Some(index + 1)].into_iter().map(|near| near.is_none_or(&mut holds));
    match bytes {
        0xf => allocation <= LONGEST_EXACT || near.any(|holds| holds),
        _ => near.all(|holds| holds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of dwords `0..8`, of which `written` have been written.
    fn is_unwritten_beside(written: &[u64], index: u64, bytes: u8, allocation: u64) -> bool {
        let held = |at: u64| if written.contains(&(at / 4)) { !word(at) } else { word(at) };
        is_unwritten(index, bytes, allocation, |at| (at < 32).then(|| held(at)))
    }

    #[test]
    fn a_hole_of_one_dword_is_found_in_a_small_allocation_only() {
        assert!(is_unwritten_beside(&[2, 4], 3, 0xf, LONGEST_EXACT));
        assert!(!is_unwritten_beside(&[2, 4], 3, 0xf, LONGEST_EXACT + 1));
        assert!(is_unwritten_beside(&[2], 3, 0xf, LONGEST_EXACT + 1), "two dwords are a hole everywhere");
    }

    #[test]
    fn a_part_is_unwritten_only_between_unwritten_dwords() {
        assert!(is_unwritten_beside(&[], 3, 0b0001, 32));
        assert!(!is_unwritten_beside(&[2], 3, 0b0001, 32));
        assert!(is_unwritten_beside(&[], 0, 0b0001, 32), "there is nothing before the first");
    }
}
