use std::collections::HashMap;

use super::clocks::{Actor, Clocks};
use super::waits::Path;
use crate::observe::AccessKind;

/// Who accessed what last in a workgroup's LDS, dword by dword.
///
/// A dword that some wave has used in an atomic is a means of synchronisation from then on: whoever accesses it knows
/// what the others knew when they did.
pub(super) struct LdsShadow {
    waves: usize,
    writes: Vec<Write>,
    /// The bytes of each dword that any wave has written, bit by bit.
    written: Vec<u8>,
    /// The time of each wave's last read of each dword.
    reads: Vec<u32>,
    meetings: HashMap<usize, Clocks>,
}

#[derive(Clone, Copy, Default)]
struct Write {
    /// The writer's time; zero is never.
    time: u32,
    index: u32,
    wave: u8,
    path: u8,
    /// Bytes of the dword, bit by bit.
    bytes: u8,
}

/// An access that is not ordered after an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// The wave that made the earlier access.
    pub(super) wave: u8,
    /// The index of its instruction, if it was a write.
    pub(super) index: Option<u32>,
}

impl LdsShadow {
    pub(super) fn new(bytes: u32, waves: usize) -> Self {
        let words = bytes.div_ceil(4) as usize;
        let (writes, reads) = (vec![Write::default(); words], vec![0; words * waves]);
        Self { waves, writes, written: vec![0; words], reads, meetings: HashMap::new() }
    }

    /// Whether any of `bytes` (bit by bit) of a dword of this LDS has not been written by a wave of the workgroup.
    pub(super) fn is_unwritten(&self, word: usize, bytes: u8) -> bool {
        self.written.get(word).is_some_and(|written| bytes & !written != 0)
    }

    /// Records an access by `actor` to `bytes` (bit by bit) of a dword, and finds what it is not ordered after.
    pub(super) fn access(
        &mut self,
        actor: &mut Actor<'_>,
        kind: AccessKind,
        word: usize,
        bytes: u8,
        index: u32,
    ) -> Option<Conflict> {
        let write = *self.writes.get(word)?;
        if kind != AccessKind::Read {
            self.written[word] |= bytes;
        }
        if kind == AccessKind::Atomic || self.meetings.contains_key(&word) {
            let meeting = self.meetings.entry(word).or_insert_with(|| Clocks::new(self.waves));
            actor.meet(meeting, kind != AccessKind::Read);
            return None;
        }
        let mut conflict = None;
        if write.time != 0 && write.bytes & bytes != 0 {
            let path = if write.path == 0 { Path::Lgkm } else { Path::Vm };
            if !actor.knows(write.wave.into(), path, write.time) {
                conflict = Some(Conflict { wave: write.wave, index: Some(write.index) });
            }
        }
        let reads = &mut self.reads[word * self.waves..][..self.waves];
        if kind == AccessKind::Read {
            reads[actor.wave] = actor.time;
            return conflict;
        }
        let others = reads.iter().enumerate().filter(|&(wave, &time)| wave != actor.wave && time != 0);
        for (wave, &time) in others {
            if !actor.knows(wave, Path::Lgkm, time) {
                conflict.get_or_insert(Conflict { wave: wave as u8, index: None });
            }
        }
        let together = write.wave as usize == actor.wave && write.time != 0 && write.bytes & bytes == 0;
        let bytes = if together { write.bytes | bytes } else { bytes };
        let wave = actor.wave as u8;
        self.writes[word] = Write { time: actor.time, index, wave, path: actor.path as u8, bytes };
        conflict
    }
}
