//! Data-parallel primitives: which lane's value each lane reads (CDNA4 ISA section 13.3.9).

use std::sync::LazyLock;

use isa::Dpp;

use crate::wave::{LANES, Vreg};

/// Lanes of a row.
const ROW: usize = 16;

/// What the lanes read under one control.
struct Pattern {
    from: [u8; LANES],
    /// Lanes that have a lane to read from.
    valid: u64,
}

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| (0..0x200).map(pattern).collect());

fn pattern(ctrl: u16) -> Pattern {
    let mut pattern = Pattern { from: [0; LANES], valid: 0 };
    for lane in 0..LANES {
        if let Some(from) = lane_read(ctrl, lane) {
            pattern.from[lane] = from as u8;
            pattern.valid |= 1 << lane;
        }
    }
    pattern
}

/// Puts what each lane reads of `source` into `out`, and gives the lanes that may be written. A lane whose source is out
/// of bounds or off reads zero with `bound_ctrl`, and is not written without.
pub(super) fn permute(dpp: &Dpp, source: &Vreg, exec: u64, out: &mut Vreg) -> u64 {
    let pattern = &PATTERNS[dpp.ctrl as usize & 0x1ff];
    for (out, &from) in out.0.iter_mut().zip(&pattern.from) {
        *out = source.0[from as usize & (LANES - 1)];
    }
    let mut valid = pattern.valid;
    if exec != u64::MAX {
        for (lane, from) in pattern.from.iter().enumerate() {
            valid &= !((!exec >> from & 1) << lane);
        }
    }
    if valid != u64::MAX {
        for (lane, out) in out.0.iter_mut().enumerate() {
            *out &= 0u32.wrapping_sub((valid >> lane) as u32 & 1);
        }
    }
    (if dpp.bound_ctrl { u64::MAX } else { valid }) & rows_and_banks(dpp)
}

/// The lanes that the row and bank masks let be written.
fn rows_and_banks(dpp: &Dpp) -> u64 {
    if dpp.row_mask & dpp.bank_mask == 0xf {
        return u64::MAX;
    }
    (0..LANES).fold(0, |mask, lane| {
        let on = dpp.row_mask >> (lane / ROW) & dpp.bank_mask >> (lane / 4 % 4) & 1;
        mask | u64::from(on) << lane
    })
}

/// The lane that `lane` reads, `None` past the end of its row or the wave.
fn lane_read(ctrl: u16, lane: usize) -> Option<usize> {
    let row = lane / ROW * ROW;
    let at = lane % ROW;
    let amount = (ctrl & 0xf) as usize;
    match ctrl {
        // quad_perm
        0x000..=0x0ff => Some(lane / 4 * 4 + (ctrl >> (2 * (lane % 4)) & 3) as usize),
        // row_shl, row_shr, row_ror
        0x101..=0x10f => (at + amount < ROW).then(|| lane + amount),
        0x111..=0x11f => (at >= amount).then(|| lane - amount),
        0x121..=0x12f => Some(row + (at + ROW - amount) % ROW),
        // wave_shl, wave_rol, wave_shr, wave_ror by one
        0x130 => (lane + 1 < LANES).then(|| lane + 1),
        0x134 => Some((lane + 1) % LANES),
        0x138 => lane.checked_sub(1),
        0x13c => Some((lane + LANES - 1) % LANES),
        // row_mirror, row_half_mirror
        0x140 => Some(row + ROW - 1 - at),
        0x141 => Some(row + at / 8 * 8 + 7 - at % 8),
        // row_bcast:15 and row_bcast:31: the last lane of the row, or of the half, before
        0x142 => row.checked_sub(1),
        0x143 => (lane >= 32).then_some(31),
        // row_newbcast: one lane of the row to all of it
        0x150..=0x15f => Some(row + amount),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered() -> Vreg {
        Vreg(std::array::from_fn(|lane| lane as u32 + 100))
    }

    fn read(ctrl: u16, bound_ctrl: bool) -> (Vreg, u64) {
        let mut out = Vreg::default();
        let dpp = Dpp { ctrl, row_mask: 0xf, bank_mask: 0xf, bound_ctrl };
        let writable = permute(&dpp, &numbered(), u64::MAX, &mut out);
        (out, writable)
    }

    #[test]
    fn shifts_leave_the_lanes_without_a_source_alone() {
        let (out, writable) = read(0x111, false);
        assert_eq!(out.0[5], 104);
        assert_eq!(writable, !0x0001_0001_0001_0001);
        let (out, writable) = read(0x111, true);
        assert_eq!((out.0[16], writable), (0, u64::MAX));
    }

    #[test]
    fn rotations_and_mirrors_stay_in_their_row() {
        assert_eq!(read(0x121, false).0.0[16], 131);
        assert_eq!(read(0x140, false).0.0[17], 130);
        assert_eq!(read(0x141, false).0.0[9], 114);
        assert_eq!(read(0x13c, false).0.0[0], 163);
    }

    #[test]
    fn broadcasts_read_the_row_before() {
        let (out, writable) = read(0x142, false);
        assert_eq!((out.0[16], out.0[63]), (115, 147));
        assert_eq!(writable & 0xffff, 0);
        assert_eq!(read(0x143, false).1, 0xffff_ffff_0000_0000);
        assert_eq!(read(0x155, false).0.0[20], 121);
    }

    #[test]
    fn a_lane_that_is_off_is_no_source() {
        let dpp = Dpp { ctrl: 0x101, row_mask: 0xf, bank_mask: 0xf, bound_ctrl: false };
        let writable = permute(&dpp, &numbered(), 0b110, &mut Vreg::default());
        assert_eq!(writable & 0b111, 0b011);
    }
}
