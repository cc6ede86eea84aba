use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::caches::{Place, Scope};
use super::foreign::{Group, Known};
use super::waits::Path;

/// Bytes of memory whose shadow is kept together.
const CHUNK: u64 = 4096;
const SHARDS: usize = 64;

/// Who accessed device memory last, dword by dword. Memory that no wave has written has no shadow.
pub(super) struct Shadow {
    shards: [Mutex<Shard>; SHARDS],
}

impl Default for Shadow {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

#[derive(Default)]
pub(super) struct Shard {
    chunks: HashMap<u64, Box<[Word; (CHUNK / 4) as usize]>>,
    /// What came with the value that was last released at a dword, by its number.
    released: HashMap<u64, Arc<Known>>,
}

/// The last accesses to one dword.
#[derive(Clone, Copy, Default)]
pub(super) struct Word {
    pub(super) write: Stamp,
    /// The last reads, of different workgroups if there were several.
    pub(super) reads: [Stamp; 2],
}

/// One access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The launch's number; zero for no access.
    pub(super) launch: u32,
    pub(super) flat: u32,
    /// Time of the wave.
    pub(super) time: u32,
    /// Moment of the caches.
    pub(super) moment: u32,
    gpu: u8,
    xcc: u8,
    pub(super) wave: u8,
    /// Bytes of the dword in 3:0, path in 4, scope in 6:5, atomic instruction in 7.
    bits: u8,
}

impl Stamp {
    #[allow(clippy::too_many_arguments, reason = "all are needed to name an access")]
    pub(super) fn new(
        group: Group,
        wave: usize,
        time: u32,
        path: Path,
        place: Place,
        moment: u32,
        scope: Scope,
        bytes: u8,
    ) -> Self {
        let bits = bytes | (path as u8) << 4 | (scope as u8) << 5;
        let Group { launch, flat } = group;
        Self { launch, flat, time, moment, gpu: place.gpu, xcc: place.xcc, wave: wave as u8, bits }
    }

    pub(super) fn is_none(&self) -> bool {
        self.launch == 0
    }

    pub(super) fn group(&self) -> Group {
        Group { launch: self.launch, flat: self.flat }
    }

    pub(super) fn place(&self) -> Place {
        Place { gpu: self.gpu, xcc: self.xcc }
    }

    pub(super) fn path(&self) -> Path {
        if self.bits >> 4 & 1 == 0 { Path::Lgkm } else { Path::Vm }
    }

    pub(super) fn scope(&self) -> Scope {
        Scope::from_number(self.bits >> 5)
    }

    pub(super) fn bytes(&self) -> u8 {
        self.bits & 0xf
    }

    /// The same access to other bytes.
    pub(super) fn with_bytes(self, bytes: u8) -> Self {
        Self { bits: self.bits & 0xf0 | bytes, ..self }
    }
}

impl Word {
    pub(super) fn read(&mut self, stamp: Stamp) {
        let same = |other: &Stamp| other.is_none() || other.group() == stamp.group();
        let at = self.reads.iter().position(same).unwrap_or(0);
        let bytes = if self.reads[at].group() == stamp.group() { self.reads[at].bytes() } else { 0 };
        self.reads[at] = stamp.with_bytes(stamp.bytes() | bytes);
    }

    pub(super) fn written(&mut self, stamp: Stamp) {
        let together = self.write.group() == stamp.group() && self.write.wave == stamp.wave;
        let bytes = if together { self.write.bytes() } else { 0 };
        self.write = stamp.with_bytes(stamp.bytes() | bytes);
        self.reads = [Stamp::default(); 2];
    }
}

impl Shadow {
    /// The shard that holds the dword with number `word`.
    pub(super) fn shard(&self, word: u64) -> MutexGuard<'_, Shard> {
        let chunk = 4 * word / CHUNK;
        self.shards[chunk as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was at addresses `start..end`.
    pub(super) fn forget(&self, start: u64, end: u64) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.chunks.retain(|chunk, _| !(start / CHUNK..end.div_ceil(CHUNK)).contains(chunk));
            shard.released.retain(|word, _| !(start / 4..end.div_ceil(4)).contains(word));
        }
    }
}

impl Shard {
    /// The last accesses to a dword; `create` makes a shadow for it if there is none.
    pub(super) fn word(&mut self, word: u64, create: bool) -> Option<&mut Word> {
        let (chunk, at) = (4 * word / CHUNK, (word % (CHUNK / 4)) as usize);
        if create {
            let empty = || vec![Word::default(); (CHUNK / 4) as usize].into_boxed_slice().try_into();
            let chunk = self.chunks.entry(chunk).or_insert_with(|| match empty() {
                Ok(words) => words,
                Err(_) => unreachable!("the slice was made with the array's length"),
            });
            return Some(&mut chunk[at]);
        }
        Some(&mut self.chunks.get_mut(&chunk)?[at])
    }

    /// What came with the value at a dword.
    pub(super) fn released(&self, word: u64) -> Option<&Arc<Known>> {
        self.released.get(&word)
    }

    /// A store that replaces the value at a dword, or an atomic that `adds` to it, tells `known`.
    pub(super) fn release(&mut self, word: u64, known: &Arc<Known>, adds: bool) {
        match self.released.get_mut(&word) {
            Some(there) if adds && !Arc::ptr_eq(there, known) => Arc::make_mut(there).join(known),
            _ => drop(self.released.insert(word, Arc::clone(known))),
        }
    }
}
