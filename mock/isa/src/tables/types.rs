//! The words that the tables are written in: data types and registers.

use crate::info::{Access, DataType, Implicit, Kind, Matrix, OperandInfo};

macro_rules! types {
    ($($name:ident = $kind:ident $bits:literal x $count:literal;)*) => {
        $(pub(super) const $name: DataType = DataType::new(Kind::$kind, $bits, $count);)*
    };
}

types! {
    B8 = Bits 8 x 1; B16 = Bits 16 x 1; B32 = Bits 32 x 1; B64 = Bits 64 x 1; B96 = Bits 96 x 1;
    B128 = Bits 128 x 1; B256 = Bits 256 x 1; B512 = Bits 512 x 1;
    U8 = Uint 8 x 1; U16 = Uint 16 x 1; U24 = Uint 24 x 1; U32 = Uint 32 x 1; U64 = Uint 64 x 1;
    I4 = Sint 4 x 1; I8 = Sint 8 x 1; I16 = Sint 16 x 1; I24 = Sint 24 x 1; I32 = Sint 32 x 1; I64 = Sint 64 x 1;
    F16 = Float 16 x 1; F32 = Float 32 x 1; F64 = Float 64 x 1; BF16 = Bfloat 16 x 1;
    FP8 = Fp8 8 x 1; BF8 = Bf8 8 x 1; F8F6F4 = F8F6F4 8 x 1;
    PK_B16 = Bits 16 x 2; PK_B32 = Bits 32 x 2;
    PK_I8 = Sint 8 x 2; PK_U8 = Uint 8 x 2; PK_I16 = Sint 16 x 2; PK_U16 = Uint 16 x 2;
    PK_F16 = Float 16 x 2; PK_BF16 = Bfloat 16 x 2; PK_F32 = Float 32 x 2;
    PK_FP8 = Fp8 8 x 2; PK_BF8 = Bf8 8 x 2; PK_FP4 = Fp4 4 x 2;
    PK4_I8 = Sint 8 x 4; PK4_U8 = Uint 8 x 4; PK4_U16 = Uint 16 x 4; PK4_U32 = Uint 32 x 4;
    PK4_E8M0 = E8M0 8 x 4; PK8_U8 = Uint 8 x 8; PK8_I4 = Sint 4 x 8; PK8_U4 = Uint 4 x 8;
    PK16_F32 = Float 32 x 16; PK32_F16 = Float 16 x 32; PK32_BF16 = Bfloat 16 x 32; PK32_F32 = Float 32 x 32;
    PK32_FP6 = Fp6 6 x 32; PK32_BF6 = Bf6 6 x 32;
    // A 64-bit address, a buffer resource descriptor, an EXEC-wide lane mask.
    ADDR = Bits 64 x 1; V_SHARP = Bits 128 x 1; MASK = Bits 64 x 1;
}
pub(super) const NONE: DataType = DataType::NONE;
pub(super) const SCC: Implicit = Implicit::SCC;
pub(super) const VCC: Implicit = Implicit::VCC;
pub(super) const EXEC: Implicit = Implicit::EXEC;
pub(super) const FLAT_SCRATCH: Implicit = Implicit::FLAT_SCRATCH;
pub(super) const M0: Implicit = Implicit::M0;
pub(super) const MODE: Implicit = Implicit::MODE;
pub(super) const PC: Implicit = Implicit::PC;
pub(super) const VSKIP: Implicit = Implicit::VSKIP;
pub(super) const INDEXED: Implicit = Implicit::INDEXED;
pub(super) const HWREG: Implicit = Implicit::HWREG;

/// `count` elements of the type of `element`.
pub(super) const fn vec(element: DataType, count: u16) -> DataType {
    DataType::new(element.kind, element.bits, count as u8)
}

pub(super) const fn shape(m: u8, n: u8, k: u8, blocks: u8) -> Matrix {
    Matrix { m, n, k, blocks }
}

pub(super) const fn read(ty: DataType) -> OperandInfo {
    OperandInfo { ty, access: Access::Read }
}

pub(super) const fn write(ty: DataType) -> OperandInfo {
    OperandInfo { ty, access: Access::Write }
}
