//! Transposing reads, which bring matrix operands from LDS in the layout of MFMA (CDNA4 ISA section 11.4).
//!
//! The manual does not say how. What is known from code that runs on the part (rocRoller's `TransposeLoads` tests, Triton,
//! HipKittens): each group of 16 lanes works for itself. The elements that its lanes read, one lane after the other, are the
//! rows of a matrix of 16 columns; lane `n` of the group gets column `n`, from the first row down.

use super::access::addresses;
use crate::exec::level::Body;
use crate::exec::memory::transfer::{destination, lanes};
use crate::exec::{Cx, Micro};
use crate::observe::{AccessKind, Space};
use crate::wave::LANES;

/// Lanes that exchange rows, and elements of a row.
const GROUP: usize = 16;

/// Reads `DWORDS` dwords a lane, as elements of `BITS` bits: `ELEMENTS` of them.
pub(super) struct ReadTransposed<const BITS: usize, const DWORDS: usize, const ELEMENTS: usize>;

impl<const BITS: usize, const DWORDS: usize, const ELEMENTS: usize> Body for ReadTransposed<BITS, DWORDS, ELEMENTS> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        const { assert!(BITS * ELEMENTS == 32 * DWORDS) };
        let exec = cx.exec();
        // Lanes that are off have nothing to give.
        let mut given = [[[0u32; DWORDS]; GROUP]; LANES / GROUP];
        // SAFETY: `translate` checked the registers.
        unsafe {
            let at = addresses(cx, m, m.imm as u32);
            for lane in lanes(exec) {
                cx.saw(Space::Lds, AccessKind::Read, lane, at.0[lane].into(), 4 * DWORDS);
                let into = &mut given[lane / GROUP][lane % GROUP];
                cx.lds.read(at.0[lane], bytemuck::cast_slice_mut(into));
            }
            let to = destination(cx, m);
            for (group, given) in given.iter().enumerate() {
                let columns = columns::<BITS, DWORDS, ELEMENTS>(given);
                for (i, column) in columns.iter().enumerate() {
                    let register = &mut (&mut (*to.add(i)).0)[GROUP * group..GROUP * (group + 1)];
                    let on = exec >> (GROUP * group);
                    for lane in 0..GROUP {
                        register[lane] = if on >> lane & 1 == 1 { column[lane] } else { register[lane] };
                    }
                }
            }
        }
    }
}

/// The columns of a group's matrix, as registers.
#[inline(always)]
fn columns<const BITS: usize, const DWORDS: usize, const ELEMENTS: usize>(
    given: &[[u32; DWORDS]; GROUP],
) -> [[u32; GROUP]; DWORDS] {
    let mut columns = [[0u32; GROUP]; DWORDS];
    for row in 0..ELEMENTS {
        let elements = self::row::<BITS>(bytemuck::cast_slice(given.as_flattened()), row);
        let (register, low) = (row * BITS / 32, row * BITS % 32);
        for lane in 0..GROUP {
            columns[register][lane] |= elements[lane] << low;
            if low + BITS > 32 {
                columns[register + 1][lane] |= elements[lane] >> (32 - low);
            }
        }
    }
    columns
}

/// Row `row` of the matrix that lies in `bytes`.
#[inline(always)]
fn row<const BITS: usize>(bytes: &[u8], row: usize) -> [u32; GROUP] {
    let bytes = &bytes[row * GROUP * BITS / 8..];
    std::array::from_fn(|i| match BITS {
        16 => u32::from(bytes[2 * i]) | u32::from(bytes[2 * i + 1]) << 8,
        8 => bytes[i].into(),
        4 => u32::from(bytes[i / 2]) >> (4 * (i % 2)) & 0xf,
        _ => {
            // An element lies in one byte or two; the last one ends with the row.
            let (first, low) = (i * BITS / 8, i * BITS % 8);
            let next = if low + BITS > 8 { u32::from(bytes[first + 1]) } else { 0 };
            (u32::from(bytes[first]) | next << 8) >> low & ((1 << BITS) - 1)
        }
    })
}
