//! Rows of bytes as SDMA packets.

use driver::address::GpuVa;
use driver::packets::sdma::{
    CopyLinear, CopyLinearSubWindow, ElementSize, MAX_COPY_BYTES, MAX_SUB_WINDOW_EXTENT, MAX_SUB_WINDOW_PITCH,
};
use driver::packets::{Count, EncodeError};

/// Rows of bytes to copy between two places in GPU address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) src: u64,
    /// From row to row; at least `row_bytes`.
    pub(crate) src_pitch: u64,
    pub(crate) dst: u64,
    /// From row to row; at least `row_bytes`.
    pub(crate) dst_pitch: u64,
    pub(crate) rows: u64,
    pub(crate) row_bytes: u64,
}

/// Bits of a slice pitch (`SDMA_PKT_COPY_LINEAR_SUBWIN` DW_5), which counts one more than they say.
const MAX_SLICE_PITCH: u64 = 1 << 28;

impl Rows {
    /// Hands the packets that copy the rows to `emit`, each as its dwords.
    ///
    /// One linear copy if there are no gaps, sub-window copies where a window's limits allow them, else a linear copy a
    /// row.
    pub(crate) fn packets<E: From<EncodeError>>(&self, mut emit: impl FnMut(&[u32]) -> Result<(), E>) -> Result<(), E> {
        let mut packet = Vec::with_capacity(16);
        if self.rows == 0 || self.row_bytes == 0 {
            return Ok(());
        }
        if self.rows == 1 || (self.src_pitch == self.row_bytes && self.dst_pitch == self.row_bytes) {
            return linear(self.src, self.dst, self.rows * self.row_bytes, &mut packet, &mut emit);
        }
        let Some(element) = self.element() else {
            for row in 0..self.rows {
                let (src, dst) = (self.src + row * self.src_pitch, self.dst + row * self.dst_pitch);
                linear(src, dst, self.row_bytes, &mut packet, &mut emit)?;
            }
            return Ok(());
        };
        let bytes = u64::from(element.bytes());
        let slice = MAX_SLICE_PITCH * bytes / self.src_pitch.max(self.dst_pitch);
        let most = u64::from(MAX_SUB_WINDOW_EXTENT).min(slice);
        let mut row = 0;
        while row < self.rows {
            let rows = most.min(self.rows - row);
            packet.clear();
            self.window(element, row, rows).encode(&mut packet)?;
            emit(&packet)?;
            row += rows;
        }
        Ok(())
    }

    /// The largest element that divides everything, if a sub-window of it can describe the rows: base addresses and
    /// pitches on dwords, extents and pitches within their fields.
    fn element(&self) -> Option<ElementSize> {
        use ElementSize::{B1, B2, B4, B8, B16};
        let everything = self.src | self.dst | self.src_pitch | self.dst_pitch | self.row_bytes;
        let element = [B16, B8, B4, B2, B1]
            .into_iter()
            .find(|element| everything.is_multiple_of(u64::from(element.bytes())))
            .unwrap_or(B1);
        let bytes = u64::from(element.bytes());
        let on_dwords = (self.src_pitch | self.dst_pitch).is_multiple_of(4);
        // The first element of a row may lie up to three bytes behind the dword that is the base.
        let narrow = self.row_bytes / bytes <= u64::from(MAX_SUB_WINDOW_EXTENT);
        let near = self.src_pitch.max(self.dst_pitch) / bytes <= u64::from(MAX_SUB_WINDOW_PITCH);
        (on_dwords && narrow && near).then_some(element)
    }

    fn window(&self, element: ElementSize, first: u64, rows: u64) -> CopyLinearSubWindow {
        let bytes = u64::from(element.bytes());
        // `element` made sure that every one of these fits its field.
        let count = |value: u64| Count((value / bytes) as u32);
        let place = |start: u64| (GpuVa::new(start & !3), ((start & 3) / bytes) as u16);
        let (src, src_x) = place(self.src + first * self.src_pitch);
        let (dst, dst_x) = place(self.dst + first * self.dst_pitch);
        CopyLinearSubWindow {
            element,
            src,
            src_x,
            src_y: 0,
            src_z: 0,
            src_pitch: count(self.src_pitch),
            src_slice_pitch: count(self.src_pitch * rows),
            dst,
            dst_x,
            dst_y: 0,
            dst_z: 0,
            dst_pitch: count(self.dst_pitch),
            dst_slice_pitch: count(self.dst_pitch * rows),
            rect_x: count(self.row_bytes),
            rect_y: Count(rows as u32),
            rect_z: Count(1),
            dst_swap: 0,
            src_swap: 0,
        }
    }
}

fn linear<E: From<EncodeError>>(
    mut src: u64,
    mut dst: u64,
    mut bytes: u64,
    packet: &mut Vec<u32>,
    emit: &mut impl FnMut(&[u32]) -> Result<(), E>,
) -> Result<(), E> {
    while bytes > 0 {
        let part = bytes.min(u64::from(MAX_COPY_BYTES));
        packet.clear();
        let copy = CopyLinear {
            bytes: Count(part as u32),
            dst_swap: 0,
            src_swap: 0,
            src: GpuVa::new(src),
            dst: GpuVa::new(dst),
        };
        copy.encode(packet)?;
        emit(packet)?;
        (src, dst, bytes) = (src + part, dst + part, bytes - part);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use driver::packets::sdma::{self, Sdma};
    use proptest::prelude::*;

    use super::*;

    fn packets(rows: &Rows) -> Vec<u32> {
        let mut dwords = Vec::new();
        rows.packets(|packet| {
            dwords.extend_from_slice(packet);
            Ok::<_, EncodeError>(())
        })
        .unwrap();
        dwords
    }

    /// Which source byte each packet brings to which destination byte, by the meaning of the packets' fields.
    fn moved(dwords: &[u32]) -> Vec<(u64, u64)> {
        let mut moved = Vec::new();
        for located in sdma::packets(dwords) {
            match located.unwrap().packet {
                Sdma::CopyLinear(copy) => {
                    moved.extend((0..u64::from(copy.bytes.0)).map(|i| (copy.src.get() + i, copy.dst.get() + i)));
                }
                Sdma::CopyLinearSubWindow(w) => {
                    let element = u64::from(w.element.bytes());
                    let pitches = [w.src_pitch, w.dst_pitch].map(|pitch| u64::from(pitch.0) * element);
                    assert!(pitches.iter().chain(&[w.src.get(), w.dst.get()]).all(|value| value % 4 == 0), "{w:?}");
                    for y in 0..u64::from(w.rect_y.0) {
                        let src = w.src.get() + u64::from(w.src_x) * element + y * pitches[0];
                        let dst = w.dst.get() + u64::from(w.dst_x) * element + y * pitches[1];
                        moved.extend((0..u64::from(w.rect_x.0) * element).map(|i| (src + i, dst + i)));
                    }
                }
                other => panic!("{other}"),
            }
        }
        moved
    }

    fn naive(rows: &Rows) -> Vec<(u64, u64)> {
        let row = |row| {
            (0..rows.row_bytes).map(move |i| (rows.src + row * rows.src_pitch + i, rows.dst + row * rows.dst_pitch + i))
        };
        (0..rows.rows).flat_map(row).collect()
    }

    fn any_rows() -> impl Strategy<Value = Rows> {
        let unit = prop::sample::select(vec![1u64, 2, 4, 8, 16]);
        (unit, 0u64..64, 0u64..64, 0u64..9, 0u64..9, 1u64..40, 1u64..40).prop_map(
            |(unit, src, dst, src_gap, dst_gap, rows, row)| Rows {
                src: 4096 + src * unit,
                src_pitch: (row + src_gap) * unit,
                dst: 1 << 20 | (dst * unit),
                dst_pitch: (row + dst_gap) * unit,
                rows,
                row_bytes: row * unit,
            },
        )
    }

    proptest! {
        #[test]
        fn packets_bring_every_byte_to_its_place(rows in any_rows()) {
            prop_assert_eq!(moved(&packets(&rows)), naive(&rows));
        }
    }

    #[test]
    fn rows_without_gaps_are_one_linear_copy() {
        let rows = Rows { src: 1, src_pitch: 3, dst: 1 << 20, dst_pitch: 3, rows: 7, row_bytes: 3 };
        assert_eq!(packets(&rows).len(), 7);
    }

    #[test]
    fn a_column_shard_of_the_official_model_is_one_window_of_wide_elements() {
        let rows = Rows { src: 1 << 21, src_pitch: 24576, dst: 1 << 30, dst_pitch: 3072, rows: 170, row_bytes: 3072 };
        let dwords = packets(&rows);
        let Sdma::CopyLinearSubWindow(window) = Sdma::decode(&dwords).unwrap() else { panic!() };
        assert_eq!((window.element, window.rect_x, window.rect_y), (ElementSize::B16, Count(192), Count(170)));
    }

    #[test]
    fn a_window_is_cut_at_the_rows_its_field_can_count() {
        let rows = Rows { src: 4096, src_pitch: 8, dst: 1 << 30, dst_pitch: 4, rows: 40_000, row_bytes: 1 };
        let dwords = packets(&rows);
        assert_eq!(sdma::packets(&dwords).count(), 3);
        assert_eq!(moved(&dwords), naive(&rows));
    }

    #[test]
    fn a_window_is_cut_where_its_slice_pitch_would_overflow() {
        let rows = Rows { src: 4, src_pitch: 1 << 19, dst: 1 << 40, dst_pitch: 4, rows: 600, row_bytes: 1 };
        let dwords = packets(&rows);
        assert_eq!(sdma::packets(&dwords).count(), 2);
        assert_eq!(moved(&dwords), naive(&rows));
    }

    #[test]
    fn rows_too_wide_too_far_apart_or_not_on_dwords_are_copied_one_by_one() {
        let fits =
            Rows { src: 4096, src_pitch: 1 << 15, dst: 1 << 40, dst_pitch: 1 << 15, rows: 3, row_bytes: 1 << 14 };
        let wide = Rows { row_bytes: (1 << 14) + 1, ..fits };
        let far = Rows { src_pitch: (1 << 19) + 4, row_bytes: 1, ..fits };
        let odd = Rows { src_pitch: (1 << 15) + 2, ..fits };
        assert_eq!(packets(&fits).len(), 13);
        for rows in [wide, far, odd] {
            let dwords = packets(&rows);
            assert_eq!(dwords.len(), 3 * 7, "{rows:?}");
            assert_eq!(moved(&dwords), naive(&rows));
        }
    }

    #[test]
    fn a_linear_copy_is_cut_at_the_bytes_its_field_can_count() {
        let bytes = u64::from(MAX_COPY_BYTES) + 5;
        let rows = Rows { src: 0, src_pitch: bytes, dst: 1 << 40, dst_pitch: bytes, rows: 1, row_bytes: bytes };
        let dwords = packets(&rows);
        let copies: Vec<_> = sdma::packets(&dwords).map(|located| located.unwrap().packet).collect();
        let [Sdma::CopyLinear(first), Sdma::CopyLinear(last)] = copies[..] else { panic!("{copies:?}") };
        assert_eq!((first.bytes.0, last.bytes.0, last.src.get()), (MAX_COPY_BYTES, 5, u64::from(MAX_COPY_BYTES)));
    }
}
