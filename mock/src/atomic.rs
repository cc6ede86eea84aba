//! Atomic operations of packets (`ATOMIC_MEM`, SDMA `ATOMIC`).

use std::sync::atomic::Ordering;

use driver::packets::{AtomicKind, AtomicOp};

use crate::memory::{MemoryFault, View};

/// Applies `op` to memory at `address` and gives what was there before.
///
/// # Errors
/// The fault of the access.
pub(crate) fn apply(
    view: &mut View<'_>,
    op: AtomicOp,
    address: u64,
    source: u64,
    compare: u64,
) -> Result<u64, MemoryFault> {
    let update = |old| value(op, old, source, compare);
    // AcqRel: an atomic of a packet orders what the engine did before it and does after it.
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    Ok(if op.is_wide() {
        let cell = view.atomic_u64(address)?;
        cell.fetch_update(success, failure, |old| Some(update(old))).unwrap_or_else(|old| old)
    } else {
        let cell = view.atomic_u32(address)?;
        let update = |old: u32| Some(update(old.into()) as u32);
        cell.fetch_update(success, failure, update).unwrap_or_else(|old| old).into()
    })
}

fn value(op: AtomicOp, old: u64, source: u64, compare: u64) -> u64 {
    let wide = op.is_wide();
    let narrow = |value: u64| if wide { value } else { value & 0xffff_ffff };
    let (source, compare) = (narrow(source), narrow(compare));
    let signed = |value: u64| if wide { value as i64 } else { i64::from(value as u32 as i32) };
    let signed_less = |a, b| signed(a) < signed(b);
    match op.kind() {
        AtomicKind::Swap => source,
        AtomicKind::CompareSwap => {
            if old == compare {
                source
            } else {
                old
            }
        }
        AtomicKind::Add => narrow(old.wrapping_add(source)),
        AtomicKind::Sub => narrow(old.wrapping_sub(source)),
        AtomicKind::SignedMin => {
            if signed_less(source, old) {
                source
            } else {
                old
            }
        }
        AtomicKind::SignedMax => {
            if signed_less(old, source) {
                source
            } else {
                old
            }
        }
        AtomicKind::UnsignedMin => old.min(source),
        AtomicKind::UnsignedMax => old.max(source),
        AtomicKind::And => old & source,
        AtomicKind::Or => old | source,
        AtomicKind::Xor => old ^ source,
        AtomicKind::Increment => {
            if old >= source {
                0
            } else {
                old + 1
            }
        }
        AtomicKind::Decrement => {
            if old == 0 || old > source {
                source
            } else {
                old - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(kind: AtomicKind, old: u32, source: u32, compare: u32) -> u32 {
        value(AtomicOp::new(kind, false, true), old.into(), source.into(), compare.into()) as u32
    }

    #[test]
    fn narrow_operations_wrap_and_compare_in_32_bits() {
        assert_eq!(narrow(AtomicKind::Add, u32::MAX, 2, 0), 1);
        assert_eq!(narrow(AtomicKind::Sub, 0, 1, 0), u32::MAX);
        assert_eq!(narrow(AtomicKind::SignedMin, 1, u32::MAX, 0), u32::MAX);
        assert_eq!(narrow(AtomicKind::UnsignedMin, 1, u32::MAX, 0), 1);
        assert_eq!(narrow(AtomicKind::SignedMax, u32::MAX, 1, 0), 1);
    }

    #[test]
    fn increment_and_decrement_wrap_at_the_operand() {
        assert_eq!(narrow(AtomicKind::Increment, 4, 5, 0), 5);
        assert_eq!(narrow(AtomicKind::Increment, 5, 5, 0), 0);
        assert_eq!(narrow(AtomicKind::Decrement, 0, 5, 0), 5);
        assert_eq!(narrow(AtomicKind::Decrement, 6, 5, 0), 5);
        assert_eq!(narrow(AtomicKind::Decrement, 5, 5, 0), 4);
    }

    #[test]
    fn compare_and_swap_needs_the_comparand() {
        assert_eq!(narrow(AtomicKind::CompareSwap, 3, 9, 3), 9);
        assert_eq!(narrow(AtomicKind::CompareSwap, 4, 9, 3), 4);
    }
}
