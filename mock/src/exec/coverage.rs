//! Which scalar and memory instructions are executed.

use isa::{Class, DataType, Encoding, Inst, Op, Operand};

use crate::exec::level::Baseline;
use crate::exec::translate::{Builder, RegisterLimits, Unsupported};
use crate::exec::{control, memory, scalar};

/// What is left out, all by name: instructions of trap handlers and graphics, and global wave sync, which needs a resource
/// that KFD gives to a queue on request.
const LEFT_OUT: [Op; 9] = [
    Op::SRfeB64,
    Op::SRfeRestoreB64,
    Op::SEndpgmOrderedPsDone,
    Op::DsGwsSemaReleaseAll,
    Op::DsGwsInit,
    Op::DsGwsSemaV,
    Op::DsGwsSemaBr,
    Op::DsGwsSemaP,
    Op::DsGwsBarrier,
];

fn operand(ty: DataType, scalar: bool) -> Operand {
    let count = ty.dwords();
    match (ty.is_none(), scalar) {
        (true, _) => Operand::None,
        (false, true) => Operand::Sgpr { first: 8, count },
        (false, false) => Operand::Vgpr { first: 8, count },
    }
}

/// An instruction of `op` with some registers as operands.
fn instance(op: Op) -> Inst {
    let info = op.info();
    let scalar_unit = matches!(
        info.encoding,
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp | Encoding::Smem
    );
    let buffer = matches!(info.encoding, Encoding::Mubuf | Encoding::Mtbuf);
    let nop = isa::decode(&[0xbf80_0000]).expect("s_nop 0");
    Inst {
        op,
        encoding: info.encoding,
        dwords: 1,
        dst: operand(info.dst.ty, scalar_unit),
        src: std::array::from_fn(|i| operand(info.src[i].ty, scalar_unit || buffer && (i == 1 || i == 2))),
        ..nop
    }
}

#[test]
fn all_scalar_and_memory_instructions_are_executed_but_those_left_out() {
    let mut executed = 0;
    for &op in Op::ALL {
        let inst = instance(op);
        let limits = RegisterLimits { arch: 256, acc: 256 };
        let b = Builder { inst: &inst, info: op.info(), address: 0, limits };
        let translated = match op.info().class {
            Class::Salu => scalar::translate(&b),
            Class::Branch | Class::Control | Class::Message | Class::Debug => control::translate(&b),
            Class::Smem => memory::scalar::translate(&b),
            Class::Lds => memory::lds::translate::<Baseline>(&b),
            Class::Gws => Err(Unsupported::Instruction),
            Class::Flat | Class::Global | Class::Scratch | Class::Mubuf | Class::Mtbuf => {
                memory::translate::<Baseline>(&b)
            }
            Class::Valu | Class::Transcendental | Class::Mfma(_) | Class::Smfmac(_) => continue,
        };
        assert_eq!(translated.is_err(), LEFT_OUT.contains(&op), "{op:?}");
        executed += usize::from(translated.is_ok());
    }
    println!("{executed} scalar and memory operations are executed");
}
