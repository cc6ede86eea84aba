//! Transposing reads, which bring matrix operands from LDS in the layout of MFMA (CDNA4 ISA section 11.4).
//!
//! The manual does not say how. What is known from code that runs on the part (rocRoller's `TransposeLoads` tests, Triton,
//! HipKittens): each group of 16 lanes works for itself. The elements that its lanes read, one lane after the other, are the
//! rows of a matrix of 16 columns; lane `n` of the group gets column `n`, from the first row down.

use super::access::{addresses, read};
use crate::exec::level::Body;
use crate::exec::memory::item::Dwords;
use crate::exec::memory::transfer::{destination, lanes};
use crate::exec::{Cx, Micro};
use crate::wave::Vreg;

/// Lanes that exchange rows.
const GROUP: usize = 16;

/// Reads `DWORDS` dwords a lane, as elements of `BITS` bits.
pub(super) struct ReadTransposed<const BITS: usize, const DWORDS: usize>;

impl<const BITS: usize, const DWORDS: usize> Body for ReadTransposed<BITS, DWORDS> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let mut rows = [Vreg::default(); DWORDS];
        // SAFETY: `translate` checked the registers; `rows` holds an item.
        unsafe {
            let at = addresses(cx, m, m.imm as u32);
            read::<Dwords<DWORDS>>(cx, &at, rows.as_mut_ptr());
            let elements = 32 * DWORDS / BITS;
            let row = |lane: usize| (0..DWORDS).fold(0u128, |row, i| row | u128::from(rows[i].0[lane]) << (32 * i));
            let to = destination(cx, m);
            for lane in lanes(cx.exec()) {
                let (group, column) = (lane / GROUP * GROUP, lane % GROUP);
                let mut out = 0u128;
                for element in 0..elements {
                    let index = GROUP * element + column;
                    let value = row(group + index / elements) >> (index % elements * BITS) & ((1 << BITS) - 1);
                    out |= value << (element * BITS);
                }
                for i in 0..DWORDS {
                    (*to.add(i)).0[lane] = (out >> (32 * i)) as u32;
                }
            }
        }
    }
}
