use std::fmt;

use serde::Serialize;

/// What kind of mistake a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ReportKind {
    /// An access to an address where this GPU has no memory.
    Unmapped,
    /// An access that starts inside a buffer, or in the rest of its last page, and goes past its end; or past the end of LDS.
    PastEnd,
    /// An access to memory that has been freed.
    FreedMemory,
    /// An address that is not aligned as the hardware demands.
    Misaligned,
    /// A write to memory that is mapped read-only.
    ReadOnly,
    /// A read of device memory that nobody has written.
    UnwrittenMemory,
    /// A read of LDS that no wave of the workgroup has written.
    UnwrittenLds,
    /// A read of a register that the wave has not written.
    UnwrittenRegister,
    /// A result used before the wave waited for it.
    MissingWait,
    /// Two waves of a workgroup access the same LDS, one of them writing, with no barrier or atomic between.
    LdsRace,
    /// Two waves access the same memory, one of them writing, and nothing orders them.
    MemoryRace,
    /// Memory written on one XCC is accessed on another, with no write-back and invalidate between.
    StaleMemory,
    /// Memory written on one GPU is accessed on another, though it may sit in a cache of either.
    StalePeerMemory,
    /// An instruction follows another too soon.
    Hazard,
}

impl ReportKind {
    /// In words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unmapped => "access to unmapped memory",
            Self::PastEnd => "access past the end",
            Self::FreedMemory => "access to freed memory",
            Self::Misaligned => "misaligned access",
            Self::ReadOnly => "write to read-only memory",
            Self::UnwrittenMemory => "read of memory never written",
            Self::UnwrittenLds => "read of LDS never written",
            Self::UnwrittenRegister => "read of a register never written",
            Self::MissingWait => "missing wait",
            Self::LdsRace => "race in LDS",
            Self::MemoryRace => "race in memory",
            Self::StaleMemory => "stale memory between XCCs",
            Self::StalePeerMemory => "stale memory between GPUs",
            Self::Hazard => "hazard",
        }
    }
}

/// One mistake the sanitizer has seen, where it was seen first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// What it is.
    pub kind: ReportKind,
    /// The kernel, by its symbol, or by the address of its entry if nobody has named it.
    pub kernel: String,
    /// Address of the instruction.
    pub pc: u64,
    /// The instruction as LLVM prints it.
    pub instruction: String,
    /// GPU, by its index.
    pub gpu: usize,
    /// Workgroup id in the grid.
    pub workgroup: [u32; 3],
    /// Wave in the workgroup.
    pub wave: u32,
    /// The first lane concerned, unless it concerns the wave as a whole.
    pub lane: Option<u8>,
    /// The address in memory or LDS, if it is about one.
    pub address: Option<u64>,
    /// The buffer that owns the address: its label and the offset in it.
    pub buffer: Option<String>,
    /// What exactly is wrong.
    pub detail: String,
    /// How often it was seen.
    pub count: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        writeln!(f, "{}: {}", self.kind.as_str(), self.detail)?;
        writeln!(f, "  at {:#x} in kernel {}: `{}`", self.pc, self.kernel, self.instruction)?;
        write!(f, "  GPU {}, workgroup {x},{y},{z}, wave {}", self.gpu, self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        if let Some(address) = self.address {
            write!(f, ", address {address:#x}")?;
        }
        if let Some(buffer) = &self.buffer {
            write!(f, " ({buffer})")?;
        }
        if self.count > 1 {
            write!(f, "; seen {} times", self.count)?;
        }
        Ok(())
    }
}
