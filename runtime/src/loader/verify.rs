//! Reading back what has landed, and comparing it with the files, byte by byte.
//!
//! The files are read again by plain reads, so that nothing the load did can hide a mistake of its own. A block is brought
//! back from every GPU at once, each to a slot of its own, by the same copies with their ends exchanged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Gpu;
use driver::address::Bytes;
use driver::memory::Buffer;
use model::layout::WeightCopy;

use super::LoadError;
use super::copy::{Copier, SdmaCopier};
use super::file::ShardFile;
use super::plan::{Block, Cursor, Weights};
use super::progress::Progress;
use super::reader::{Read, pread_now};
use super::staging::Staging;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Tensors.
    pub tensors: usize,
    /// Bytes of device memory, replicated ones on every GPU.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Compares all of `weights` with what lies in `arenas`.
pub(crate) fn verify(
    weights: &dyn Weights,
    files: &[ShardFile],
    gpus: &[Arc<Gpu>],
    arenas: &[&Buffer],
    block: u64,
    progress: &dyn Progress,
) -> Result<Verified, LoadError> {
    let start = Instant::now();
    // A slot for the file's bytes, and one a rank.
    let staging = Staging::shared(gpus, Bytes::new(block * (gpus.len() as u64 + 1)))?;
    let copier = SdmaCopier::new(gpus, arenas, staging.va(), progress)?;
    let mut verifier = Verifier { weights, files, staging: &staging, copier, progress, slot_bytes: block };
    let plan = weights.files();
    let mut verified = Verified::default();
    let mut cursor = Cursor::new((0..plan.len()).filter(|file| !plan[*file].extents.is_empty()).collect());
    while let Some(block) = cursor.next(plan, block, |file| files[file].alignment()) {
        if progress.is_cancelled() {
            return Err(LoadError::Interrupted);
        }
        verified.bytes += verifier.compare(&block)?;
        progress.advance(block.window.end - block.window.start, None);
    }
    verified.tensors = plan.iter().map(|file| file.pieces.len()).sum();
    verified.elapsed = start.elapsed();
    Ok(verified)
}

struct Verifier<'a> {
    weights: &'a dyn Weights,
    files: &'a [ShardFile],
    staging: &'a Staging,
    copier: SdmaCopier<'a>,
    progress: &'a dyn Progress,
    slot_bytes: u64,
}

impl Verifier<'_> {
    /// Compares a block; gives back how many bytes of arenas it is.
    fn compare(&mut self, block: &Block) -> Result<u64, LoadError> {
        self.read(block)?;
        let pieces = self.weights.files()[block.file].pieces_in(&block.window);
        let (mut bytes, mut copies, slot_bytes) = (0, Vec::new(), self.slot_bytes);
        let slot = |rank: usize| (rank as u64 + 1) * slot_bytes;
        for piece in pieces {
            copies.clear();
            self.weights.copies(block.file, piece, &block.window, &mut copies);
            let ticket = self.copier.fetch(slot, block.read.start, &copies)?;
            self.copier.wait(&ticket, self.progress)?;
            for copy in &copies {
                bytes += copy.bytes();
                self.compare_rows(block, piece, copy, slot(copy.rank) as usize)?;
            }
        }
        Ok(bytes)
    }

    /// Brings the file's bytes of a block to the first slot.
    fn read(&self, block: &Block) -> Result<(), LoadError> {
        let Block { file, window, read } = block;
        let shard = &self.files[*file];
        let mut at = read.start;
        while at < window.end {
            let part = Read {
                token: 0,
                file: *file as u32,
                fd: shard.fd(),
                offset: at,
                // SAFETY: a block is not longer than a slot.
                to: unsafe { self.staging.pointer().add((at - read.start) as usize) },
                bytes: (read.end - at) as u32,
            };
            // SAFETY: the load has ended, and nobody else uses the staging memory.
            let read_now = match unsafe { pread_now(&part) } {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                other => other,
            };
            let fail = |source| LoadError::Read {
                path: shard.path().to_owned(),
                offset: at,
                bytes: part.bytes.into(),
                source,
            };
            let reached = at + u64::from(read_now.map_err(fail)?);
            if reached == at {
                let (path, missing) = (shard.path().to_owned(), window.end - at);
                return Err(LoadError::Truncated { path, offset: at, missing });
            }
            let again = reached / shard.alignment() * shard.alignment();
            if reached < window.end && again <= at {
                return Err(fail(std::io::Error::other("the kernel returns less than a sector")));
            }
            at = if reached < window.end { again } else { reached };
        }
        Ok(())
    }

    fn compare_rows(&self, block: &Block, piece: usize, copy: &WeightCopy, slot: usize) -> Result<(), LoadError> {
        // SAFETY: reads into and copies to the staging memory have ended, and the slice goes before the next begins.
        let staging = unsafe { std::slice::from_raw_parts(self.staging.pointer().as_ptr(), self.staging.len()) };
        for row in 0..copy.rows {
            let at = (copy.source + row * copy.source_pitch - block.read.start) as usize;
            let length = copy.row_bytes as usize;
            let (expected, found) = (&staging[at..at + length], &staging[slot + at..slot + at + length]);
            if expected == found {
                continue;
            }
            let byte = expected.iter().zip(found).position(|(a, b)| a != b).unwrap_or(0);
            return Err(LoadError::Verify {
                tensor: self.weights.name(block.file, piece),
                rank: copy.rank,
                path: self.weights.files()[block.file].path.clone(),
                offset: block.read.start + (at + byte) as u64,
                arena: copy.destination + row * copy.destination_pitch + byte as u64,
                expected: expected[byte],
                found: found[byte],
            });
        }
        Ok(())
    }
}
