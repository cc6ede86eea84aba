//! What memory holds until somebody writes it.
//!
//! Host writes go to mapped memory, past the emulator, so no shadow can record them. Instead fresh memory is filled with a
//! pattern that differs from dword to dword: a dword that still holds its pattern has not been written. A program that
//! writes just that value there is taken for one that has not: one dword in 2^32.
//!
//! Of a dword that was written in part, one byte in 256 is what it was. So a part counts as unwritten only if both neighbours
//! hold their patterns too.

/// The longest allocation that is filled; of larger ones, which may be sparse, all counts as written.
pub(crate) const LONGEST_FILL: u64 = 256 << 20;

/// What the dword at `address` holds before it is written.
pub(crate) fn word(address: u64) -> u32 {
    ((address >> 2) as u32).wrapping_mul(0x9e37_79b1) ^ 0xa5c3_5a3c
}

/// Whether bytes of the dword at address `4 * index` look unwritten; `bytes` has a bit for each of them. `read` gives the
/// dword at an address, if there is one.
pub(crate) fn is_unwritten(index: u64, bytes: u8, mut read: impl FnMut(u64) -> Option<u32>) -> bool {
    let mut holds = |index: u64| read(4 * index).map(|held| held == word(4 * index));
    let is_whole = bytes == 0xf;
    holds(index) == Some(true)
        && (is_whole || [index.wrapping_sub(1), index + 1].into_iter().all(|near| holds(near) != Some(false)))
}
