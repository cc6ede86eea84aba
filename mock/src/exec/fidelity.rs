//! How sure the result of each instruction is.

use isa::{Class, Kind, Op};

/// What is known about an instruction's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// They are the bits that the ISA defines.
    Exact,
    /// They are within this bound of the function's true value, as the hardware's are, which need not be the same bits.
    WithinBound(&'static str),
    /// The ISA leaves open what this model decides.
    Modelled(&'static str),
    /// The instruction is not executed, for this reason.
    Unsupported(&'static str),
}

impl Fidelity {
    /// The bound, the model or the reason; empty if exact.
    #[must_use]
    pub fn note(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::WithinBound(note) | Self::Modelled(note) | Self::Unsupported(note) => note,
        }
    }

    /// One word for the table of instructions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::WithinBound(_) => "within bound",
            Self::Modelled(_) => "modelled",
            Self::Unsupported(_) => "left out",
        }
    }
}

/// What is known about the results of `op`.
#[must_use]
pub fn fidelity(op: Op) -> Fidelity {
    use Fidelity::{Modelled, Unsupported, WithinBound};
    match op {
        Op::SRfeB64 | Op::SRfeRestoreB64 => return Unsupported("returns from a trap handler; there is none"),
        Op::VMfmaLdScaleB32 => return Unsupported("the first half of v_mfma_scale, never alone"),
        Op::VScreenPartition4seB32 => return Unsupported("for graphics; the ISA document does not describe it"),
        Op::SEndpgmOrderedPsDone => return Unsupported("ends waves of pixel shaders"),
        Op::STrap => return Modelled("stops the queue, as with no trap handler installed"),
        Op::SMemtime | Op::SMemrealtime => return Modelled("the clock is the host's"),
        Op::SIncperflevel | Op::SDecperflevel | Op::STtracedata => {
            return Modelled("does nothing: no performance counters, no thread trace");
        }
        Op::VSinF32 | Op::VCosF32 => {
            return WithinBound("1 ULP for operands in the documented range; AMD states no bound");
        }
        Op::VSinF16 | Op::VCosF16 => return WithinBound("1 ULP; AMD states no bound"),
        _ => {}
    }
    let info = op.info();
    match info.class {
        Class::Gws => Unsupported("global wave sync, which KFD gives to a queue on request only"),
        Class::Transcendental if info.dst.ty.bits == 64 => {
            WithinBound("2^29 ULP (CDNA4 ISA 12.8); correctly rounded here")
        }
        Class::Transcendental => WithinBound("1 ULP (CDNA4 ISA 12.8)"),
        Class::Mfma(_) | Class::Smfmac(_) if info.dst.ty.kind == Kind::Float => {
            Modelled("order and width of accumulation (`mfma=` of MOCKKFD)")
        }
        Class::Mtbuf => Modelled("format conversions as in Direct3D"),
        Class::Mubuf if op.name().contains("_format_") => Modelled("format conversions as in Direct3D"),
        Class::Lds if op.name().contains("_tr_") => Modelled("lane layout as in code that runs on the part"),
        _ => Fidelity::Exact,
    }
}
