use driver::address::GpuVa;

use super::report::ReportKind;
use crate::exec::WaveFault;
use crate::memory::MemoryFaultReason;
use crate::observe::Space;

/// What a fault that ends a wave is called in a report, and where it was; `None` for faults that are not about memory.
pub(super) fn kind(fault: &WaveFault, freed: impl Fn(GpuVa) -> bool) -> Option<(ReportKind, Space, u64)> {
    let memory = match fault {
        WaveFault::Memory(memory) => memory,
        WaveFault::MisalignedLds { address, .. } => {
            return Some((ReportKind::Misaligned, Space::Lds, u64::from(*address)));
        }
        WaveFault::Trap { .. } | WaveFault::Instruction(_) => return None,
    };
    let kind = match memory.reason {
        MemoryFaultReason::Unmapped if freed(memory.address) => ReportKind::FreedMemory,
        MemoryFaultReason::Unmapped | MemoryFaultReason::Aperture => ReportKind::Unmapped,
        MemoryFaultReason::PastEnd { .. } => ReportKind::PastEnd,
        MemoryFaultReason::ReadOnly | MemoryFaultReason::NotExecutable => ReportKind::ReadOnly,
        MemoryFaultReason::Misaligned => ReportKind::Misaligned,
    };
    Some((kind, Space::Memory, memory.address.get()))
}
