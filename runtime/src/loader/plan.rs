//! Which bytes of which files are read, and where they go.

use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use model::layout::WeightCopy;
use model::tensor::TensorId;
use model::{Checkpoint, Layout};

/// One file and the weights in it.
#[derive(Clone, Debug)]
pub(crate) struct PlannedFile {
    pub(crate) path: PathBuf,
    /// Length when its header was read.
    pub(crate) len: u64,
    /// When it was last written to, as its header was read; unknown where nobody asked.
    pub(crate) modified: Option<SystemTime>,
    /// Bytes of each wanted tensor, in the order of the file.
    pub(crate) pieces: Vec<Range<u64>>,
    /// The same, joined where they touch.
    pub(crate) extents: Vec<Range<u64>>,
}

impl PlannedFile {
    pub(crate) fn new(path: PathBuf, len: u64, pieces: Vec<Range<u64>>) -> Self {
        let mut extents: Vec<Range<u64>> = Vec::new();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            match extents.last_mut() {
                Some(last) if last.end == piece.start => last.end = piece.end,
                _ => extents.push(piece.clone()),
            }
        }
        Self { path, len, modified: None, pieces, extents }
    }

    /// Numbers of the pieces that have bytes in `window`.
    pub(crate) fn pieces_in(&self, window: &Range<u64>) -> Range<usize> {
        let first = self.pieces.partition_point(|piece| piece.end <= window.start);
        let behind = self.pieces.partition_point(|piece| piece.start < window.end);
        first..behind.max(first)
    }
}

/// Weights in files, and their places in the arenas of the ranks.
pub(crate) trait Weights {
    /// The files.
    fn files(&self) -> &[PlannedFile];

    /// Appends the copies for those bytes of piece `piece` of file `file` that lie in `window` of the file.
    fn copies(&self, file: usize, piece: usize, window: &Range<u64>, out: &mut Vec<WeightCopy>);

    /// Name of the piece.
    fn name(&self, file: usize, piece: usize) -> String;

    /// Which layer the piece belongs to, for people who watch.
    fn layer(&self, file: usize, piece: usize) -> Option<u16>;

    /// Bytes of all pieces: what has to be read.
    fn bytes(&self) -> u64 {
        self.files().iter().flat_map(|file| &file.extents).map(|extent| extent.end - extent.start).sum()
    }
}

/// The weights of a checkpoint, all of them or those of its first layers.
pub(crate) struct ModelWeights<'a> {
    layout: &'a Layout,
    files: Vec<PlannedFile>,
    /// Which tensor each piece of each file is.
    tensors: Vec<Vec<TensorId>>,
}

impl<'a> ModelWeights<'a> {
    /// With a limit, layers from that number on are left out; what belongs to no layer stays.
    pub(crate) fn new(checkpoint: &Checkpoint, layout: &'a Layout, layers: Option<usize>) -> Self {
        let limit = layers.unwrap_or(usize::MAX);
        let wanted = |id: TensorId| layer_of(id).is_none_or(|layer| usize::from(layer) < limit);
        let inventory = layout.inventory();
        let (mut files, mut tensors) = (Vec::new(), Vec::new());
        for shard in checkpoint.shards() {
            let (ids, pieces): (Vec<_>, Vec<_>) = shard
                .tensors
                .iter()
                .filter(|tensor| wanted(tensor.id))
                .filter_map(|tensor| {
                    let bytes = inventory.spec(tensor.id)?.bytes();
                    Some((tensor.id, tensor.begin..tensor.begin + bytes))
                })
                .unzip();
            if !ids.is_empty() {
                let file = PlannedFile::new(shard.path.clone(), shard.file_len, pieces);
                files.push(PlannedFile { modified: shard.modified, ..file });
                tensors.push(ids);
            }
        }
        Self { layout, files, tensors }
    }
}

impl Weights for ModelWeights<'_> {
    fn files(&self) -> &[PlannedFile] {
        &self.files
    }

    fn copies(&self, file: usize, piece: usize, window: &Range<u64>, out: &mut Vec<WeightCopy>) {
        let begin = self.files[file].pieces[piece].start;
        let copies = self.layout.copies(self.tensors[file][piece], begin);
        out.extend(copies.flat_map(|copy| copy.within(window.clone())));
    }

    fn name(&self, file: usize, piece: usize) -> String {
        self.tensors[file][piece].to_string()
    }

    fn layer(&self, file: usize, piece: usize) -> Option<u16> {
        layer_of(self.tensors[file][piece])
    }
}

fn layer_of(id: TensorId) -> Option<u16> {
    match id {
        TensorId::Model(_) => None,
        TensorId::Layer(layer, _) => Some(layer),
        TensorId::Expert(tensor) => Some(tensor.layer),
    }
}

/// One read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) file: usize,
    /// The weights it brings.
    pub(crate) window: Range<u64>,
    /// What is read for them: the window, rounded out to what O_DIRECT demands. May end behind the file.
    pub(crate) read: Range<u64>,
}

/// Walks the files of one disk, read by read.
#[derive(Debug)]
pub(crate) struct Cursor {
    files: Vec<usize>,
    file: usize,
    extent: usize,
    /// How much of the current extent is behind it.
    done: u64,
}

impl Cursor {
    /// Over these files, in this order.
    pub(crate) fn new(files: Vec<usize>) -> Self {
        Self { files, file: 0, extent: 0, done: 0 }
    }

    /// Whether there is nothing left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.file == self.files.len()
    }

    /// The next read, of at most `bytes` bytes and aligned as `alignment(file)` says.
    pub(crate) fn next(
        &mut self,
        files: &[PlannedFile],
        bytes: u64,
        alignment: impl Fn(usize) -> u64,
    ) -> Option<Block> {
        let &file = self.files.get(self.file)?;
        let extents = &files[file].extents;
        let extent = &extents[self.extent];
        let unit = alignment(file);
        let start = extent.start + self.done;
        let from = start / unit * unit;
        let end = extent.end.min(from + bytes.max(unit) / unit * unit);
        self.done = end - extent.start;
        if end == extent.end {
            (self.extent, self.done) = (self.extent + 1, 0);
            if self.extent == extents.len() {
                (self.file, self.extent) = (self.file + 1, 0);
            }
        }
        Some(Block { file, window: start..end, read: from..end.next_multiple_of(unit) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(pieces: impl IntoIterator<Item = Range<u64>>) -> PlannedFile {
        PlannedFile::new("shard".into(), 1 << 20, pieces.into_iter().collect())
    }

    #[test]
    fn pieces_that_touch_are_one_extent_and_empty_ones_are_none() {
        let file = file([8..20, 20..20, 20..40, 50..50, 60..61]);
        assert_eq!(file.extents, [8..40, 60..61]);
        assert_eq!((file.pieces_in(&(0..20)), file.pieces_in(&(20..61))), (0..1, 2..5));
    }

    #[test]
    fn a_read_is_rounded_out_to_the_alignment() {
        let files = [file(std::iter::once(1000..9000))];
        let mut cursor = Cursor::new(vec![0]);
        let first = cursor.next(&files, 8192, |_| 4096).unwrap();
        assert_eq!((first.window, first.read), (1000..8192, 0..8192));
        let last = cursor.next(&files, 8192, |_| 4096).unwrap();
        assert_eq!((last.window, last.read), (8192..9000, 8192..12288));
        assert!(cursor.is_at_end() && cursor.next(&files, 8192, |_| 4096).is_none());
    }

    proptest! {
        #[test]
        fn reads_bring_every_byte_of_every_extent_once_and_never_more_than_a_block(
            lengths in prop::collection::vec((0u64..70, 0u64..9), 1..12),
            start in 0u64..40,
            block in 16u64..64,
            unit in prop::sample::select(vec![1u64, 2, 8, 16]),
        ) {
            let mut at = start;
            let pieces: Vec<_> = lengths.iter().map(|(length, gap)| {
                let piece = at..at + length;
                at = piece.end + gap;
                piece
            }).collect();
            let files = [file([]), file(pieces)];
            let wanted: u64 = files[1].extents.iter().map(|e| e.end - e.start).sum();
            let mut cursor = Cursor::new(if files[1].extents.is_empty() { vec![] } else { vec![1] });
            let (mut brought, mut last) = (0, 0);
            while let Some(Block { file, window, read }) = cursor.next(&files, block, |_| unit) {
                prop_assert_eq!(file, 1);
                prop_assert!(window.start >= last && !window.is_empty());
                prop_assert!(read.start <= window.start && window.end <= read.end);
                prop_assert!(read.start % unit == 0 && read.end % unit == 0 && read.end - read.start <= block);
                prop_assert!(files[1].extents.iter().any(|e| e.start <= window.start && window.end <= e.end));
                brought += window.end - window.start;
                last = window.end;
            }
            prop_assert_eq!(brought, wanted);
        }
    }
}
