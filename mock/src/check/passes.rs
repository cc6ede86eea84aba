use isa::{Class, Inst, Kind, Matrix};

/// The part of the matrix core that executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// Everything but f32 and f64 operands (`isXDL` of `SIInstrInfo`).
    Xdl,
    /// f32.
    Single,
    /// f64.
    Double,
}

/// Which engine executes `inst`, if it is a matrix instruction.
pub(super) fn engine(inst: &Inst) -> Option<Engine> {
    let info = inst.op.info();
    let (Class::Mfma(_) | Class::Smfmac(_)) = info.class else { return None };
    let a = info.src[0].ty;
    Some(match (a.kind, a.bits) {
        (Kind::Float, 64) => Engine::Double,
        (Kind::Float, 32) => Engine::Single,
        _ => Engine::Xdl,
    })
}

/// Passes, of four cycles, that a matrix instruction takes (`SISchedule.td`, SIDPGFX940FullSpeedModel and
/// SIDPGFX950FullSpeedModel).
pub(super) fn passes(inst: &Inst) -> u32 {
    let info = inst.op.info();
    let (Class::Mfma(shape) | Class::Smfmac(shape)) = info.class else { return 0 };
    let Matrix { m, k, .. } = shape;
    if engine(inst) == Some(Engine::Double) {
        // The larger takes 16 on gfx950, which asks for no more here.
        return if m == 4 { 4 } else { 8 };
    }
    if info.src[0].ty.kind == Kind::F8F6F4 {
        // Formats 0 and 1 are the ones of eight bits.
        let eight_bits = inst.mods.cbsz < 2 || inst.mods.blgp < 2;
        return if m == 16 { 4 } else { 8 } << u32::from(eight_bits);
    }
    match (m, k) {
        (4, _) => 2,
        (16, ..=4) => 8,
        (16, _) => 4,
        (_, ..=4) => 16,
        _ => 8,
    }
}
