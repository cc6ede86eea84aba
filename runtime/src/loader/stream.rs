//! The files of one disk: which of its reads comes next, and which of its blocks is copied next.

use std::collections::BTreeMap;

use super::plan::{Block, Cursor, PlannedFile};

/// A block that has been read into a slot.
#[derive(Debug)]
pub(crate) struct ReadBlock {
    pub(crate) slot: usize,
    pub(crate) block: Block,
}

/// Reads may end in any order; blocks leave in the order of the files.
#[derive(Debug)]
pub(crate) struct Stream {
    cursor: Cursor,
    in_flight: usize,
    /// Number of the next block to be read.
    next_read: u64,
    /// Number of the next block to be copied.
    next_copied: u64,
    /// Blocks that wait for those before them, by their numbers.
    read: BTreeMap<u64, ReadBlock>,
}

impl Stream {
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self { cursor, in_flight: 0, next_read: 0, next_copied: 0, read: BTreeMap::new() }
    }

    /// Reads in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether one more read could be in flight.
    pub(crate) fn wants(&self, depth: usize) -> bool {
        self.in_flight < depth && !self.cursor.is_at_end()
    }

    /// Takes the next read out, with its number.
    pub(crate) fn next(
        &mut self,
        files: &[PlannedFile],
        bytes: u64,
        alignment: impl Fn(usize) -> u64,
    ) -> Option<(u64, Block)> {
        let block = self.cursor.next(files, bytes, alignment)?;
        let number = self.next_read;
        self.next_read += 1;
        self.in_flight += 1;
        Some((number, block))
    }

    /// A read has ended well.
    pub(crate) fn put(&mut self, number: u64, read: ReadBlock) {
        self.in_flight -= 1;
        self.read.insert(number, read);
    }

    /// A read has ended, and nothing came of it.
    pub(crate) fn give_up(&mut self) {
        self.in_flight -= 1;
    }

    /// The next block to be copied, if it is there.
    pub(crate) fn take(&mut self) -> Option<ReadBlock> {
        let read = self.read.remove(&self.next_copied)?;
        self.next_copied += 1;
        Some(read)
    }

    /// Whether everything has been read and taken.
    pub(crate) fn is_finished(&self) -> bool {
        self.cursor.is_at_end() && self.in_flight == 0 && self.read.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_leave_in_the_order_of_the_file_whatever_order_their_reads_end_in() {
        let files = [PlannedFile::new("shard".into(), 30, std::iter::once(0..30).collect())];
        let mut stream = Stream::new(Cursor::new(vec![0]));
        let mut read = Vec::new();
        while stream.wants(3) {
            read.push(stream.next(&files, 10, |_| 1).unwrap());
        }
        assert_eq!(stream.in_flight(), 3);
        let mut taken = Vec::new();
        for slot in [2, 0, 1] {
            let (number, block) = read[slot].clone();
            stream.put(number, ReadBlock { slot, block });
            taken.extend(std::iter::from_fn(|| stream.take()).map(|block| block.slot));
        }
        assert_eq!(taken, [0, 1, 2]);
        assert!(stream.is_finished());
    }
}
