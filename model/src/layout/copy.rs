//! One rectangle of bytes from a shard to a rank's arena.

use std::ops::Range;

/// A copy of `rows` runs of `row_bytes` bytes from a file to the weight arena of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightCopy {
    /// Whose arena.
    pub rank: usize,
    /// First byte in the file.
    pub source: u64,
    /// From one run to the next in the file.
    pub source_pitch: u64,
    /// First byte in the arena.
    pub destination: u64,
    /// From one run to the next in the arena.
    pub destination_pitch: u64,
    /// Number of runs.
    pub rows: u64,
    /// Bytes of a run.
    pub row_bytes: u64,
}

impl WeightCopy {
    /// Whether it is one run.
    pub fn is_contiguous(&self) -> bool {
        self.rows == 1
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.rows * self.row_bytes
    }

    /// The same copy as one run where source and destination have no gaps.
    pub(super) fn joined(self) -> Self {
        if self.source_pitch != self.row_bytes || self.destination_pitch != self.row_bytes {
            return self;
        }
        let bytes = self.bytes();
        Self { rows: 1, row_bytes: bytes, source_pitch: bytes, destination_pitch: bytes, ..self }
    }

    /// The parts of the copy whose source lies in `window` of the file: the rest of a row that was cut, whole rows, the
    /// beginning of a row that is cut; the copy itself if all of it does. Over windows that tile the file, the parts add
    /// up to the copy.
    pub fn within(&self, window: Range<u64>) -> impl Iterator<Item = Self> + use<> {
        let start = window.start.max(self.source) - self.source;
        let end = window.end.max(self.source) - self.source;
        let first = start / self.source_pitch;
        let skipped = start - first * self.source_pitch;
        let whole_from = if skipped == 0 { first } else { first + 1 };
        let whole_to = end.checked_sub(self.row_bytes).map_or(0, |last| last / self.source_pitch + 1).min(self.rows);
        let head = if skipped == 0 { None } else { self.cut(first, skipped, end) };
        let body = self.whole_rows(whole_from..whole_to);
        let tail = self.cut(whole_to.max(whole_from), 0, end);
        [head, body, tail].into_iter().flatten()
    }

    /// Bytes `from` on of one row, up to byte `end` of the source.
    fn cut(&self, row: u64, from: u64, end: u64) -> Option<Self> {
        if row >= self.rows {
            return None;
        }
        let to = end.saturating_sub(row * self.source_pitch).min(self.row_bytes);
        let part = Self {
            source: self.source + row * self.source_pitch + from,
            destination: self.destination + row * self.destination_pitch + from,
            rows: 1,
            row_bytes: to.saturating_sub(from),
            ..*self
        };
        (part.row_bytes > 0).then_some(part)
    }

    fn whole_rows(&self, rows: Range<u64>) -> Option<Self> {
        (rows.start < rows.end).then(|| Self {
            source: self.source + rows.start * self.source_pitch,
            destination: self.destination + rows.start * self.destination_pitch,
            rows: rows.end - rows.start,
            ..*self
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Which file byte ends at which arena byte.
    fn bytes_of(copies: impl IntoIterator<Item = WeightCopy>) -> Vec<(u64, u64)> {
        let mut moved = Vec::new();
        for copy in copies {
            for row in 0..copy.rows {
                for byte in 0..copy.row_bytes {
                    let source = copy.source + row * copy.source_pitch + byte;
                    moved.push((source, copy.destination + row * copy.destination_pitch + byte));
                }
            }
        }
        moved.sort_unstable();
        moved
    }

    fn any_copy() -> impl Strategy<Value = WeightCopy> {
        (0u64..40, 1u64..6, 1u64..9, 0u64..5, 0u64..5, 0u64..40).prop_map(
            |(source, rows, row_bytes, gap, pad, destination)| WeightCopy {
                rank: 0,
                source,
                source_pitch: row_bytes + gap,
                destination,
                destination_pitch: row_bytes + pad,
                rows,
                row_bytes,
            },
        )
    }

    proptest! {
        #[test]
        fn windows_that_tile_the_file_move_every_byte_once(copy in any_copy(), window in 1u64..30) {
            let parts = (0..150 / window + 1).flat_map(|i| copy.within(i * window..(i + 1) * window).collect::<Vec<_>>());
            prop_assert_eq!(bytes_of(parts), bytes_of([copy]));
        }

        #[test]
        fn a_part_reads_nothing_outside_its_window(copy in any_copy(), start in 0u64..80, len in 0u64..40) {
            for part in copy.within(start..start + len) {
                let reads = bytes_of([part]);
                prop_assert!(!reads.is_empty());
                prop_assert!(reads.iter().all(|(source, _)| (start..start + len).contains(source)));
            }
        }

        #[test]
        fn joining_keeps_every_byte(copy in any_copy()) {
            prop_assert_eq!(bytes_of([copy.joined()]), bytes_of([copy]));
        }
    }

    #[test]
    fn a_window_around_a_copy_gives_the_copy() {
        let copy = WeightCopy {
            rank: 3,
            source: 10,
            source_pitch: 8,
            destination: 0,
            destination_pitch: 4,
            rows: 10,
            row_bytes: 3,
        };
        assert!(copy.within(0..200).eq([copy]) && copy.within(10..85).eq([copy]));
        assert!(copy.within(0..10).chain(copy.within(85..200)).chain(copy.within(13..18)).next().is_none());
    }

    #[test]
    fn a_window_with_many_rows_gives_at_most_three_parts() {
        let copy = WeightCopy {
            rank: 3,
            source: 10,
            source_pitch: 8,
            destination: 0,
            destination_pitch: 4,
            rows: 10,
            row_bytes: 3,
        };
        let parts: Vec<_> = copy.within(11..60).collect();
        assert_eq!(
            parts.iter().map(|part| (part.source, part.rows, part.row_bytes)).collect::<Vec<_>>(),
            [(11, 1, 2), (18, 5, 3), (58, 1, 2),]
        );
        let moved: BTreeMap<_, _> = bytes_of(parts).into_iter().collect();
        assert_eq!(moved[&58], 24);
    }
}
