//! Data-parallel primitives: which lane's value each lane reads (CDNA4 ISA, "DPP").

use isa::Dpp;

use crate::wave::{LANES, Vreg};

/// Lanes of a row.
const ROW: usize = 16;

/// What each lane reads of `source`, and the lanes that may be written. A lane whose source is out of bounds or off
/// reads zero with `bound_ctrl`, and is not written without.
pub(super) fn permute(dpp: &Dpp, source: &Vreg, exec: u64) -> (Vreg, u64) {
    let mut out = Vreg::default();
    let mut writable = 0;
    for lane in 0..LANES {
        let row_on = dpp.row_mask >> (lane / ROW) & 1 == 1;
        let bank_on = dpp.bank_mask >> (lane / 4 % 4) & 1 == 1;
        let from = lane_read(dpp.ctrl, lane).filter(|&from| exec >> from & 1 == 1);
        if row_on && bank_on && (from.is_some() || dpp.bound_ctrl) {
            writable |= 1 << lane;
        }
        out.0[lane] = from.map_or(0, |from| source.0[from]);
    }
    (out, writable)
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
        permute(&Dpp { ctrl, row_mask: 0xf, bank_mask: 0xf, bound_ctrl }, &numbered(), u64::MAX)
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
        let (_, writable) = permute(&dpp, &numbered(), 0b110);
        assert_eq!(writable & 0b111, 0b011);
    }
}
