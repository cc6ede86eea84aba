use super::MfmaOrder;

/// What a wave reaches besides its compute unit and memory.
pub(crate) trait Outside {
    /// Ticks of the GPU's constant 100 MHz counter.
    fn clock(&self) -> u64;
    /// Interrupts the host (`s_sendmsg`); KFD takes `event` for the id of an event.
    fn interrupt(&self, event: u32);
    /// How the machine's matrix units accumulate.
    fn mfma_order(&self) -> MfmaOrder;
}
