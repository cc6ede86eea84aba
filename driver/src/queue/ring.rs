//! Where a ring is written and read.
//!
//! Positions count up for ever in the ring's own unit (packets, dwords or bytes); the place in the ring is the position
//! modulo its capacity, a power of two. Engines differ in whether they report the position or the place. Comparing
//! modulo the capacity serves both, at the price of one unit that is never filled: else full would look like empty.

/// How far a ring is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    capacity: u64,
    written: u64,
}

impl Position {
    /// An empty ring of `capacity` units, a power of two.
    pub(super) fn new(capacity: u64) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Self { capacity, written: 0 }
    }

    /// The position of the next unit.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// The most units that are ever free.
    pub(super) fn most(&self) -> u64 {
        self.capacity - 1
    }

    /// Units free while the engine has read to `read`.
    pub(super) fn free(&self, read: u64) -> u64 {
        self.most() - (self.written.wrapping_sub(read) & (self.capacity - 1))
    }

    /// The place of a position.
    pub(super) fn place(&self, position: u64) -> u64 {
        position & (self.capacity - 1)
    }

    /// Units from the next one to the end of the ring.
    pub(super) fn until_end(&self) -> u64 {
        self.capacity - self.place(self.written)
    }

    /// Moves on by `units`.
    pub(super) fn advance(&mut self, units: u64) {
        self.written += units;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_ring_has_all_but_one_unit_and_a_full_one_none() {
        let mut position = Position::new(8);
        assert_eq!(position.free(0), 7);
        position.advance(7);
        assert_eq!(position.free(0), 0);
        assert_eq!(position.free(7), 7);
        assert_eq!((position.until_end(), position.place(position.written())), (1, 7));
    }

    proptest! {
        #[test]
        fn an_engine_may_report_its_position_or_its_place(
            bits in 1_u32..20,
            read in 0_u64..1 << 40,
            pending in any::<u64>(),
        ) {
            let capacity = 1 << bits;
            let pending = pending % capacity;
            let mut position = Position::new(capacity);
            position.advance(read + pending);
            prop_assert_eq!(position.free(read), capacity - 1 - pending);
            prop_assert_eq!(position.free(position.place(read)), position.free(read));
            prop_assert!(position.until_end() >= 1 && position.until_end() <= capacity);
        }
    }
}
