//! The words that the tables are written in: data types, one constructor a shape of instruction, and refinements.

use crate::info::*;
use crate::{Encoding, Op};

/// One line of a table.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(super) op: Op,
    pub(super) info: OpInfo,
}

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

const fn read(ty: DataType) -> OperandInfo {
    OperandInfo { ty, access: Access::Read }
}

const fn write(ty: DataType) -> OperandInfo {
    OperandInfo { ty, access: Access::Write }
}

const fn row(encoding: Encoding, opcode: u16, op: Op, name: &'static str, class: Class) -> Row {
    let forms = Forms {
        vop3: None,
        lds: false,
        sdwa: false,
        dpp: false,
        single: false,
        used: ModBits::empty(),
        ignored: ModBits::empty(),
    };
    let info = OpInfo {
        name,
        class,
        dst: OperandInfo::NONE,
        sdst: OperandInfo::NONE,
        src: [OperandInfo::NONE; 5],
        reads: Implicit::empty(),
        writes: Implicit::empty(),
        counters: Counters::empty(),
        memory: Memory::None,
        encoding,
        opcode,
        forms,
    };
    Row { op, info }
}

// Scalar.

pub(super) const fn sop1(opcode: u16, op: Op, name: &'static str, dst: DataType, src: DataType) -> Row {
    row(Encoding::Sop1, opcode, op, name, Class::Salu).dst(dst).src(&[src])
}

pub(super) const fn sop2(opcode: u16, op: Op, name: &'static str, dst: DataType, src: [DataType; 2]) -> Row {
    row(Encoding::Sop2, opcode, op, name, Class::Salu).dst(dst).src(&src)
}

pub(super) const fn sopk(opcode: u16, op: Op, name: &'static str, dst: DataType, src: DataType) -> Row {
    row(Encoding::Sopk, opcode, op, name, Class::Salu).dst(dst).src(&[src])
}

pub(super) const fn sopc(opcode: u16, op: Op, name: &'static str, src: [DataType; 2]) -> Row {
    row(Encoding::Sopc, opcode, op, name, Class::Salu).src(&src).writes(SCC)
}

pub(super) const fn sopp(opcode: u16, op: Op, name: &'static str, class: Class) -> Row {
    row(Encoding::Sopp, opcode, op, name, class)
}

// Scalar memory.

const fn smem(opcode: u16, op: Op, name: &'static str, memory: Memory, base: DataType) -> Row {
    row(Encoding::Smem, opcode, op, name, Class::Smem).memory(memory, Counters::LGKM).src(&[base, B32])
}

pub(super) const fn smem_load(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Load, base).dst(data)
}

pub(super) const fn smem_store(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Store, base).src(&[base, B32, data])
}

pub(super) const fn smem_atomic(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Atomic, base).dst(data).src(&[base, B32, data])
}

pub(super) const fn smem_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Atomic, base).dst(data).src(&[base, B32, vec(data, 2)])
}

pub(super) const fn smem_time(opcode: u16, op: Op, name: &'static str) -> Row {
    smem(opcode, op, name, Memory::None, NONE).dst(U64).src(&[])
}

pub(super) const fn smem_cache(opcode: u16, op: Op, name: &'static str, base: DataType) -> Row {
    let row = smem(opcode, op, name, Memory::Cache, base);
    if base.is_none() { row.src(&[]) } else { row }
}

// Vector ALU.

const fn valu(encoding: Encoding, opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    let mut row = row(encoding, opcode, op, name, Class::Valu).dst(dst).src(src).reads(EXEC);
    if dst.is_float() || (!src.is_empty() && src[0].is_float()) {
        row = row.reads(MODE);
    }
    let mut used = if dst.is_float() { ModBits::CLAMP.union(ModBits::OMOD) } else { ModBits::empty() };
    let mut i = 0;
    while i < src.len() {
        if src[i].is_float() {
            used = used.union(neg_abs_bits(1 << i));
        }
        i += 1;
    }
    row.info.forms.used = used;
    row.info.forms.ignored = ModBits::OP_SEL;
    row
}

const fn has_64_bits(dst: DataType, src: &[DataType]) -> bool {
    let mut wide = dst.dwords() > 1;
    let mut i = 0;
    while i < src.len() {
        wide |= src[i].dwords() > 1;
        i += 1;
    }
    wide
}

pub(super) const fn vop1(opcode: u16, op: Op, name: &'static str, dst: DataType, src: DataType) -> Row {
    let mut row = valu(Encoding::Vop1, opcode, op, name, dst, &[src]);
    row.info.forms.vop3 = Some(0x140 + opcode);
    row.info.forms.sdwa = !has_64_bits(dst, &[src]);
    row.info.forms.dpp = true;
    row
}

pub(super) const fn vop2(opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    let mut row = valu(Encoding::Vop2, opcode, op, name, dst, src);
    row.info.forms.vop3 = Some(0x100 + opcode);
    row.info.forms.sdwa = !has_64_bits(dst, src);
    row.info.forms.dpp = true;
    row
}

pub(super) const fn cmp(opcode: u16, op: Op, name: &'static str, src0: DataType, src1: DataType) -> Row {
    let mut row = valu(Encoding::Vopc, opcode, op, name, NONE, &[src0, src1]).dst(MASK);
    row.info.forms.vop3 = Some(opcode);
    row.info.forms.sdwa = !has_64_bits(src0, &[src1]);
    if src0.is_float() {
        row.info.forms.used = row.info.forms.used.union(ModBits::CLAMP);
    }
    row
}

pub(super) const fn cmpx(opcode: u16, op: Op, name: &'static str, src0: DataType, src1: DataType) -> Row {
    cmp(opcode, op, name, src0, src1).writes(EXEC)
}

pub(super) const fn vop3(opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    let mut row = valu(Encoding::Vop3, opcode, op, name, dst, src);
    row.info.forms.single = true;
    row
}

pub(super) const fn vop3p(opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    valu(Encoding::Vop3p, opcode, op, name, dst, src)
}

const fn matrix(opcode: u16, op: Op, name: &'static str, class: Class, d: DataType, src: &[DataType]) -> Row {
    row(Encoding::Mai, opcode, op, name, class).dst(d).src(src).reads(EXEC.union(MODE))
}

pub(super) const fn mfma(
    opcode: u16,
    op: Op,
    name: &'static str,
    shape: Matrix,
    d: DataType,
    a: DataType,
    b: DataType,
) -> Row {
    let Matrix { m, n, k, blocks } = shape;
    let (m, n, k, blocks) = (m as u16, n as u16, k as u16, blocks as u16);
    let (a, b, d) = (vec(a, m * k * blocks / 64), vec(b, k * n * blocks / 64), vec(d, m * n * blocks / 64));
    matrix(opcode, op, name, Class::Mfma(shape), d, &[a, b, d])
}

pub(super) const fn smfmac(
    opcode: u16,
    op: Op,
    name: &'static str,
    shape: Matrix,
    d: DataType,
    a: DataType,
    b: DataType,
) -> Row {
    let Matrix { m, n, k, blocks } = shape;
    let (m, n, k, blocks) = (m as u16, n as u16, k as u16, blocks as u16);
    let (a, b, d) = (vec(a, m * k * blocks / 128), vec(b, k * n * blocks / 64), vec(d, m * n * blocks / 64));
    matrix(opcode, op, name, Class::Smfmac(shape), d, &[a, b, B32]).keeps_dst()
}

/// The scaled matrix instruction: scales are four E8M0 bytes, of which `op_sel` chooses one.
pub(super) const fn mfma_scale(opcode: u16, op: Op, name: &'static str, shape: Matrix) -> Row {
    let mut row = mfma(opcode, op, name, shape, F32, F8F6F4, F8F6F4);
    row.info.encoding = Encoding::Vop3px2;
    row.info.src[3] = read(PK4_E8M0);
    row.info.src[4] = read(PK4_E8M0);
    row
}

pub(super) const fn accvgpr(opcode: u16, op: Op, name: &'static str) -> Row {
    row(Encoding::Mai, opcode, op, name, Class::Valu).dst(B32).src(&[B32]).reads(EXEC)
}

// Local data share.

const fn ds(opcode: u16, op: Op, name: &'static str, memory: Memory) -> Row {
    row(Encoding::Ds, opcode, op, name, Class::Lds).memory(memory, Counters::LGKM).reads(EXEC)
}

pub(super) const fn ds_nop(opcode: u16, op: Op, name: &'static str) -> Row {
    row(Encoding::Ds, opcode, op, name, Class::Lds)
}

pub(super) const fn ds_read(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Load).dst(data).src(&[U32])
}

pub(super) const fn ds_read2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Load).dst(vec(data, 2)).src(&[U32])
}

pub(super) const fn ds_write(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Store).src(&[U32, data])
}

pub(super) const fn ds_write2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Store).src(&[U32, data, data])
}

/// One data operand; without [`Row::returns`] the value before is lost.
pub(super) const fn ds_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Atomic).src(&[U32, data])
}

/// Two data operands.
pub(super) const fn ds_atomic2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Atomic).src(&[U32, data, data])
}

/// Two addresses, two data operands, two results.
pub(super) const fn ds_exchange2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Atomic).dst(vec(data, 2)).src(&[U32, data, data])
}

/// Lane permutations, which pass through the LDS unit but not its memory.
pub(super) const fn ds_permute(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::None).dst(B32).src(&[U32, B32])
}

pub(super) const fn ds_swizzle(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::None).dst(B32).src(&[B32])
}

/// Append and consume: the address is in M0, the result is the count before.
pub(super) const fn ds_count(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::Atomic).dst(U32).reads(M0)
}

pub(super) const fn ds_read_addtid(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::Load).dst(B32).reads(M0)
}

pub(super) const fn ds_write_addtid(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::Store).src(&[NONE, B32]).reads(M0)
}

pub(super) const fn ds_gws(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    let counters = Counters::LGKM.union(Counters::EXP);
    row(Encoding::Ds, opcode, op, name, Class::Gws).memory(Memory::None, counters).reads(EXEC.union(M0)).src(&[data])
}

// Flat, global and scratch memory.

const FLAT_COUNTERS: Counters = Counters::VM.union(Counters::LGKM);

const fn flat(opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let row = row(Encoding::Flat, opcode, op, name, Class::Flat).memory(memory, FLAT_COUNTERS);
    row.src(&[ADDR, NONE, data]).reads(EXEC.union(Implicit::FLAT_SCRATCH))
}

const fn global(opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let row = row(Encoding::Global, opcode, op, name, Class::Global).memory(memory, Counters::VM);
    row.src(&[ADDR, ADDR, data]).reads(EXEC)
}

const fn scratch(opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let row = row(Encoding::Scratch, opcode, op, name, Class::Scratch).memory(memory, Counters::VM);
    row.src(&[U32, U32, data]).reads(EXEC.union(Implicit::FLAT_SCRATCH))
}

pub(super) const fn flat_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn flat_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Store, data)
}

pub(super) const fn flat_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Atomic, data).dst(data)
}

/// Data is the new value, then the one to compare with.
pub(super) const fn flat_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Atomic, vec(data, 2)).dst(data)
}

pub(super) const fn global_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn global_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Store, data)
}

pub(super) const fn global_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Atomic, data).dst(data)
}

pub(super) const fn global_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Atomic, vec(data, 2)).dst(data)
}

pub(super) const fn scratch_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    scratch(opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn scratch_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    scratch(opcode, op, name, Memory::Store, data)
}

// Buffers.

const fn buffer(encoding: Encoding, opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let class = if matches!(encoding, Encoding::Mubuf) { Class::Mubuf } else { Class::Mtbuf };
    let row = row(encoding, opcode, op, name, class).memory(memory, Counters::VM);
    row.src(&[U32, V_SHARP, U32, data]).reads(EXEC)
}

pub(super) const fn mubuf_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn mubuf_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Store, data)
}

pub(super) const fn mubuf_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Atomic, data).dst(data)
}

pub(super) const fn mubuf_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Atomic, vec(data, 2)).dst(data)
}

pub(super) const fn mubuf_cache(opcode: u16, op: Op, name: &'static str) -> Row {
    row(Encoding::Mubuf, opcode, op, name, Class::Mubuf).memory(Memory::Cache, Counters::VM)
}

pub(super) const fn mtbuf_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mtbuf, opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn mtbuf_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mtbuf, opcode, op, name, Memory::Store, data)
}

const fn neg_abs_bits(sources: u16) -> ModBits {
    ModBits::from_bits_retain(sources | sources << 10)
}

/// Refinements.
impl Row {
    const fn dst(mut self, ty: DataType) -> Self {
        self.info.dst = write(ty);
        self
    }

    const fn src(mut self, types: &[DataType]) -> Self {
        let mut i = 0;
        while i < types.len() {
            self.info.src[i] = read(types[i]);
            i += 1;
        }
        self
    }

    const fn memory(mut self, memory: Memory, counters: Counters) -> Self {
        self.info.memory = memory;
        self.counts(counters)
    }

    pub(super) const fn counts(mut self, counters: Counters) -> Self {
        self.info.counters = counters;
        self
    }

    pub(super) const fn reads(mut self, implicit: Implicit) -> Self {
        self.info.reads = self.info.reads.union(implicit);
        self
    }

    pub(super) const fn writes(mut self, implicit: Implicit) -> Self {
        self.info.writes = self.info.writes.union(implicit);
        self
    }

    pub(super) const fn class(mut self, class: Class) -> Self {
        self.info.class = class;
        self
    }

    /// The destination is an input too, or part of it stays as it was.
    pub(super) const fn keeps_dst(mut self) -> Self {
        self.info.dst.access = Access::ReadWrite;
        self
    }

    /// A compare that leaves SCC alone.
    pub(super) const fn no_scc(mut self) -> Self {
        self.info.writes = self.info.writes.difference(SCC);
        self
    }

    pub(super) const fn no_mode(mut self) -> Self {
        self.info.reads = self.info.reads.difference(MODE);
        self
    }

    /// Acts on one lane whatever EXEC says.
    pub(super) const fn lane(mut self) -> Self {
        self.info.reads = self.info.reads.difference(EXEC);
        self
    }

    /// Exchanges destination and source.
    pub(super) const fn swaps(mut self) -> Self {
        self.info.dst.access = Access::ReadWrite;
        self.info.src[0].access = Access::ReadWrite;
        self
    }

    /// A lane mask (carry in, condition) as the source after the last: VCC unless the encoding names it.
    pub(super) const fn mask_in(mut self) -> Self {
        self.info.src[2] = read(MASK);
        self
    }

    /// A lane mask (carry out, scale flag) as the second destination: VCC unless the encoding names it.
    pub(super) const fn mask_out(mut self) -> Self {
        self.info.sdst = write(MASK);
        self
    }

    /// A 16-bit load that keeps the other half of its destination.
    pub(super) const fn d16(self) -> Self {
        self.keeps_dst()
    }

    /// A load into LDS at M0; no destination register.
    pub(super) const fn to_lds(mut self) -> Self {
        self.info.dst = OperandInfo::NONE;
        self.reads(M0)
    }

    /// A buffer load that can go to LDS.
    pub(super) const fn lds(mut self) -> Self {
        self.info.forms.lds = true;
        self
    }

    /// An LDS atomic that returns the value before.
    pub(super) const fn returns(self) -> Self {
        let data = self.info.src[1].ty;
        self.dst(data)
    }

    /// The only VOP3 modifiers on sources: bit i of `used`: `neg` and `abs` of source i; of `ignored`: they may be set.
    pub(super) const fn neg_abs(mut self, used: u16, ignored: u16) -> Self {
        let all = neg_abs_bits(0b111);
        self.info.forms.used = self.info.forms.used.difference(all).union(neg_abs_bits(used));
        self.info.forms.ignored = self.info.forms.ignored.difference(all).union(neg_abs_bits(ignored));
        self
    }

    /// VOP3 `op_sel` has a meaning for these sources, and bit 3 for the destination; other bits must be 0.
    pub(super) const fn op_sel(mut self, used: u16) -> Self {
        self.info.forms.used = self.info.forms.used.union(ModBits::from_bits_retain(used << 3));
        self.info.forms.ignored = self.info.forms.ignored.difference(ModBits::OP_SEL);
        self
    }

    pub(super) const fn op_sel_ignored(mut self, ignored: u16) -> Self {
        self.info.forms.ignored = self.info.forms.ignored.union(ModBits::from_bits_retain(ignored << 3));
        self
    }

    pub(super) const fn clamps(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.union(ModBits::CLAMP);
        self
    }

    pub(super) const fn no_clamp(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.difference(ModBits::CLAMP);
        self
    }

    /// VOP3 has `omod`.
    pub(super) const fn scales(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.union(ModBits::OMOD);
        self
    }

    pub(super) const fn no_omod(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.difference(ModBits::OMOD);
        self
    }

    pub(super) const fn no_vop3(mut self) -> Self {
        self.info.forms.vop3 = None;
        self.info.forms.single = true;
        self
    }

    /// LLVM prints the mnemonic without `_e32` or `_e64`.
    pub(super) const fn single(mut self) -> Self {
        self.info.forms.single = true;
        self
    }

    pub(super) const fn no_sdwa(mut self) -> Self {
        self.info.forms.sdwa = false;
        self
    }

    pub(super) const fn has_sdwa(mut self) -> Self {
        self.info.forms.sdwa = true;
        self
    }

    pub(super) const fn no_dpp(mut self) -> Self {
        self.info.forms.dpp = false;
        self
    }
}
