//! Which instructions are executed.

use isa::{DataType, Encoding, Inst, Op, Operand};

use super::level::Baseline;
use super::translate::{Builder, RegisterLimits, families};
use super::{Fidelity, fidelity};

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
fn all_instructions_are_executed_but_those_that_are_said_to_be_left_out() {
    for &op in Op::ALL {
        let inst = instance(op);
        let limits = RegisterLimits { arch: 256, acc: 256 };
        let builder = Builder { inst: &inst, info: op.info(), address: 0, limits };
        let left_out = matches!(fidelity(op), Fidelity::Unsupported(_));
        assert_eq!(families::<Baseline>(&builder).is_err(), left_out, "{op:?}");
    }
}
