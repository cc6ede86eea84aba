//! What memory holds until somebody writes it.
//!
//! Host writes go to mapped memory, past the emulator, so no shadow can record them. Instead fresh memory is filled with a
//! pattern that differs from dword to dword: a dword that still holds its pattern has not been written. A program that
//! writes just that value there goes unseen (one in 2^32); nothing that was written is ever taken for unwritten otherwise.

/// The longest allocation that is filled; of larger ones, which may be sparse, all counts as written.
pub(crate) const LONGEST_FILL: u64 = 256 << 20;

/// What the dword at `address` holds before it is written.
pub(crate) fn word(address: u64) -> u32 {
    ((address >> 2) as u32).wrapping_mul(0x9e37_79b1) ^ 0xa5c3_5a3c
}
