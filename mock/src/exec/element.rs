//! The types that operands have in one lane, and how registers hold them.

/// How the modifiers of an instruction read an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// No operand.
    None,
    /// Bits or integers of 32 or 64 bits: `neg`, `abs` and `op_sel` do not apply.
    Bits,
    /// A bit a lane in a pair of scalar registers.
    Mask,
    /// The lane's own number.
    LaneIndex,
    /// Bits or an integer in the low (by `op_sel` high) half of a dword.
    Bits16,
    /// Half precision or bfloat16 in the low (by `op_sel` high) half of a dword.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Two integers of 16 bits.
    PackedI16,
    /// Two half-precision or bfloat16 numbers.
    PackedF16,
    /// Two single-precision numbers in a register pair.
    PackedF32,
    /// Single precision, or half precision where `op_sel_hi` says so (`v_fma_mix`).
    Mixed,
}

/// The type of an operand in one lane: nothing, one dword or two, and perhaps a bit of a mask.
pub(crate) trait Element: Copy + Default {
    /// Registers the operand takes.
    const DWORDS: usize;
    /// What modifiers do to it.
    const NUMBERS: Numbers;
    /// It has a bit of a mask.
    const HAS_BIT: bool = false;
    /// Puts the value together; what the type does not have is zero.
    fn from_parts(low: u32, high: u32, bit: bool) -> Self;
    /// Takes it apart.
    fn to_parts(self) -> (u32, u32, bool);
}

impl Element for () {
    const DWORDS: usize = 0;
    const NUMBERS: Numbers = Numbers::None;
    #[inline(always)]
    fn from_parts(_: u32, _: u32, _: bool) -> Self {}
    #[inline(always)]
    fn to_parts(self) -> (u32, u32, bool) {
        (0, 0, false)
    }
}

/// A bit of a lane mask: VCC or another pair of scalar registers.
impl Element for bool {
    const DWORDS: usize = 0;
    const NUMBERS: Numbers = Numbers::Mask;
    const HAS_BIT: bool = true;
    #[inline(always)]
    fn from_parts(_: u32, _: u32, bit: bool) -> Self {
        bit
    }
    #[inline(always)]
    fn to_parts(self) -> (u32, u32, bool) {
        (0, 0, self)
    }
}

/// Elements of one dword: `$to` and `$from` convert.
macro_rules! dword_elements {
    ($($name:ty: $numbers:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr;)*) => {
        $(impl Element for $name {
            const DWORDS: usize = 1;
            const NUMBERS: Numbers = Numbers::$numbers;
            #[inline(always)]
            fn from_parts($bits: u32, _: u32, _: bool) -> Self {
                $from
            }
            #[inline(always)]
            fn to_parts(self) -> (u32, u32, bool) {
                let $value = self;
                ($to, 0, false)
            }
        })*
    };
}

dword_elements! {
    u32: Bits, |bits| bits, |value| value;
    i32: Bits, |bits| bits as i32, |value| value as u32;
    u16: Bits16, |bits| bits as u16, |value| value.into();
    i16: Bits16, |bits| bits as i16, |value| (value as u16).into();
    f32: F32, |bits| f32::from_bits(bits), |value| value.to_bits();
    Half: F16, |bits| Self(bits as u16), |value| value.0.into();
    Mix: Mixed, |bits| Self(f32::from_bits(bits)), |value| value.0.to_bits();
    [u16; 2]: PackedI16, |bits| [bits as u16, (bits >> 16) as u16], |value| pack(value[0], value[1]);
    [i16; 2]: PackedI16, |bits| [bits as i16, (bits >> 16) as i16], |value| pack(value[0] as u16, value[1] as u16);
    [Half; 2]: PackedF16, |bits| [Half(bits as u16), Half((bits >> 16) as u16)], |value| pack(value[0].0, value[1].0);
}

#[inline(always)]
fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// Elements of two dwords: `$to` and `$from` convert from and to 64 bits.
macro_rules! qword_elements {
    ($($name:ty: $numbers:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr;)*) => {
        $(impl Element for $name {
            const DWORDS: usize = 2;
            const NUMBERS: Numbers = Numbers::$numbers;
            #[inline(always)]
            fn from_parts(low: u32, high: u32, _: bool) -> Self {
                let $bits = u64::from(low) | u64::from(high) << 32;
                $from
            }
            #[inline(always)]
            fn to_parts(self) -> (u32, u32, bool) {
                let $value = self;
                let bits: u64 = $to;
                (bits as u32, (bits >> 32) as u32, false)
            }
        })*
    };
}

qword_elements! {
    u64: Bits, |bits| bits, |value| value;
    i64: Bits, |bits| bits as i64, |value| value as u64;
    f64: F64, |bits| f64::from_bits(bits), |value| value.to_bits();
}

impl Element for [f32; 2] {
    const DWORDS: usize = 2;
    const NUMBERS: Numbers = Numbers::PackedF32;
    #[inline(always)]
    fn from_parts(low: u32, high: u32, _: bool) -> Self {
        [f32::from_bits(low), f32::from_bits(high)]
    }
    #[inline(always)]
    fn to_parts(self) -> (u32, u32, bool) {
        (self[0].to_bits(), self[1].to_bits(), false)
    }
}

/// A result with a bit for a lane mask beside it: carry out, scale flag.
#[derive(Clone, Copy, Default)]
pub(crate) struct WithBit<T>(pub(crate) T, pub(crate) bool);

impl<T: Element> Element for WithBit<T> {
    const DWORDS: usize = T::DWORDS;
    const NUMBERS: Numbers = T::NUMBERS;
    const HAS_BIT: bool = true;
    #[inline(always)]
    fn from_parts(low: u32, high: u32, bit: bool) -> Self {
        Self(T::from_parts(low, high, false), bit)
    }
    #[inline(always)]
    fn to_parts(self) -> (u32, u32, bool) {
        let (low, high, _) = self.0.to_parts();
        (low, high, self.1)
    }
}

/// The number of the lane; no operand of the encoding.
#[derive(Clone, Copy, Default)]
pub(crate) struct LaneIndex(pub(crate) u32);

impl Element for LaneIndex {
    const DWORDS: usize = 1;
    const NUMBERS: Numbers = Numbers::LaneIndex;
    #[inline(always)]
    fn from_parts(low: u32, _: u32, _: bool) -> Self {
        Self(low)
    }
    #[inline(always)]
    fn to_parts(self) -> (u32, u32, bool) {
        (self.0, 0, false)
    }
}

/// A half-precision number as its bits. bfloat16 operands use it too: both have their sign in bit 15.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Half(pub(crate) u16);

/// A source of `v_fma_mix`, brought to single precision.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mix(pub(crate) f32);
