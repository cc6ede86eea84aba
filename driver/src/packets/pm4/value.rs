//! What the fields of PM4 packets may hold (`soc15d.h`, `kfd_pm4_headers_ai.h`).

use super::super::value::named_values;
use super::super::wire::FieldValue;

named_values! {
    /// How L2 keeps a line.
    CachePolicy {
        /// Least recently used goes first.
        Lru = 0 "lru",
        /// Goes soon.
        Stream = 1 "stream",
        /// Not allocated.
        NoAllocate = 2 "noa",
        /// Not cached.
        Bypass = 3 "bypass",
    }
}

named_values! {
    /// How an [`AtomicMem`](super::AtomicMem) runs.
    AtomicCommand {
        /// Once.
        SinglePass = 0 "single-pass",
        /// Until the comparison succeeds.
        LoopUntilCompare = 1 "loop",
        /// Once, and waits until it has arrived.
        WaitForConfirm = 2 "confirm",
        /// Once, and goes on at once.
        SendAndContinue = 3 "send",
    }
}

named_values! {
    /// Where a [`WriteData`](super::WriteData) goes.
    WriteDst {
        /// A register.
        Register = 0 "register",
        /// Memory, through L2.
        L2 = 2 "l2",
        /// Global data share.
        Gds = 3 "gds",
        /// Memory.
        Memory = 5 "memory",
        /// A register, persistent state.
        PersistentRegister = 6 "persistent-register",
    }
}

named_values! {
    /// What a [`MemSemaphore`](super::MemSemaphore) does.
    SemaphoreSelect {
        /// Signals it.
        Signal = 6 "signal",
        /// Waits for it.
        Wait = 7 "wait",
    }
}

named_values! {
    /// What a wait polls.
    PollSpace {
        /// A register.
        Register = 0 "register",
        /// Memory.
        Memory = 1 "memory",
    }
}

named_values! {
    /// What a wait does.
    PollOperation {
        /// Polls.
        Poll = 0 "poll",
        /// Writes the reference to one register, then polls another.
        WriteThenPoll = 1 "write-then-poll",
        /// Polls memory and may be preempted meanwhile.
        PollPreemptable = 3 "poll-preemptable",
    }
}

named_values! {
    /// Where a [`CopyData`](super::CopyData) reads.
    CopySrc {
        /// A register.
        Register = 0 "register",
        /// Memory.
        Memory = 1 "memory",
        /// Memory, through L2.
        L2 = 2 "l2",
        /// Global data share.
        Gds = 3 "gds",
        /// A performance counter.
        PerfCounter = 4 "perfcounter",
        /// The packet.
        Immediate = 5 "immediate",
        /// What the last atomic returned.
        AtomicReturn = 6 "atomic-return",
        /// What the last GDS atomic returned, first half.
        GdsAtomicReturn0 = 7 "gds-atomic-return-0",
        /// What the last GDS atomic returned, second half.
        GdsAtomicReturn1 = 8 "gds-atomic-return-1",
        /// The 100 MHz counter.
        GpuClock = 9 "gpu-clock",
    }
}

named_values! {
    /// Where a [`CopyData`](super::CopyData) writes.
    CopyDst {
        /// A register.
        Register = 0 "register",
        /// Memory, through L2.
        L2 = 2 "l2",
        /// Global data share.
        Gds = 3 "gds",
        /// A performance counter.
        PerfCounter = 4 "perfcounter",
        /// Memory.
        Memory = 5 "memory",
        /// A register, of the display core.
        DcRegister = 6 "dc-register",
    }
}

named_values! {
    /// Where a [`ReleaseMem`](super::ReleaseMem) writes.
    ReleaseDst {
        /// Memory.
        Memory = 0 "memory",
        /// Memory, through L2.
        L2 = 1 "l2",
        /// The queue's write pointer register.
        WritePointer = 2 "write-pointer",
        /// The queue's write pointer poll mask.
        WritePointerPollMask = 3 "write-pointer-poll-mask",
    }
}

named_values! {
    /// Whether and when a [`ReleaseMem`](super::ReleaseMem) interrupts.
    ReleaseInterrupt {
        /// Never.
        None = 0 "none",
        /// At once, without a write.
        Only = 1 "only",
        /// When the write has arrived.
        AfterConfirm = 2 "after-confirm",
        /// Never; the write is sent after an earlier one has arrived.
        DataAfterConfirm = 3 "data-after-confirm",
        /// Always, with the context id.
        Always = 4 "always",
        /// If 32 bits compare.
        Compare32 = 5 "compare-32",
        /// If 64 bits compare.
        Compare64 = 6 "compare-64",
    }
}

named_values! {
    /// What a [`ReleaseMem`](super::ReleaseMem) writes.
    ReleaseData {
        /// Nothing.
        None = 0 "none",
        /// The low 32 bits of the data.
        Low32 = 1 "low-32",
        /// The data.
        Full64 = 2 "full-64",
        /// The 100 MHz counter.
        GpuClock = 3 "gpu-clock",
        /// The command processor's performance counter.
        CpPerfCounter = 4 "cp-perfcounter",
        /// Global data share.
        Gds = 5 "gds",
    }
}

named_values! {
    /// Where a [`DmaData`](super::DmaData) reads.
    DmaSrc {
        /// The source address.
        Address = 0 "address",
        /// Global data share.
        Gds = 1 "gds",
        /// The packet: fills.
        Data = 2 "data",
        /// The source address, through L2.
        L2 = 3 "l2",
    }
}

named_values! {
    /// Where a [`DmaData`](super::DmaData) writes.
    DmaDst {
        /// The destination address.
        Address = 0 "address",
        /// Global data share.
        Gds = 1 "gds",
        /// Nowhere: prefetches.
        Nowhere = 2 "nowhere",
        /// The destination address, through L2.
        L2 = 3 "l2",
    }
}

bitflags::bitflags! {
    /// Which caches an [`AcquireMem`](super::AcquireMem) acts on (`PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_*` of `soc15d.h`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CoherCntl: u32 {
        /// L2: non-coherent lines.
        const TC_NC = 1 << 3;
        /// L2: write-combined lines.
        const TC_WC = 1 << 4;
        /// L2: metadata.
        const TC_INV_METADATA = 1 << 5;
        /// L1: volatile lines.
        const TCL1_VOL = 1 << 15;
        /// Writes L2 back.
        const TC_WB = 1 << 18;
        /// Invalidates L1.
        const TCL1 = 1 << 22;
        /// Invalidates L2.
        const TC = 1 << 23;
        /// Colour cache.
        const CB = 1 << 25;
        /// Depth cache.
        const DB = 1 << 26;
        /// Invalidates the scalar cache.
        const SH_KCACHE = 1 << 27;
        /// Scalar cache: volatile lines.
        const SH_KCACHE_VOL = 1 << 28;
        /// Invalidates the instruction cache.
        const SH_ICACHE = 1 << 29;
        /// Writes the scalar cache back.
        const SH_KCACHE_WB = 1 << 30;
    }
}

impl FieldValue for CoherCntl {
    fn to_bits(self) -> u64 {
        u64::from(self.bits())
    }
    fn from_bits(bits: u64) -> Option<Self> {
        Self::from_bits(u32::try_from(bits).ok()?)
    }
    fn show(self, name: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, " {name}=")?;
        bitflags::parser::to_writer(&self, f)
    }
}

/// Events of [`EventWrite`](super::EventWrite) and [`ReleaseMem`](super::ReleaseMem) (`enum VGT_EVENT_TYPE` of `vega10_enum.h`) and their groups.
pub mod event {
    /// All waves of earlier dispatches are done; [`INDEX_PARTIAL_FLUSH`].
    pub const CS_PARTIAL_FLUSH: u8 = 0x07;
    /// End of pipe with cache actions; [`INDEX_END_OF_PIPE`].
    pub const CACHE_FLUSH_AND_INV_TS: u8 = 0x14;
    /// End of pipe without cache actions; [`INDEX_END_OF_PIPE`].
    pub const BOTTOM_OF_PIPE_TS: u8 = 0x28;
    /// Group of the partial flushes.
    pub const INDEX_PARTIAL_FLUSH: u8 = 4;
    /// Group of end-of-pipe events.
    pub const INDEX_END_OF_PIPE: u8 = 5;
}
