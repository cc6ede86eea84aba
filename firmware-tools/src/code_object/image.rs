//! The memory image of a code object: what a loader puts into GPU memory.

use super::MAX_IMAGE_BYTES;
use super::elf::Elf;
use super::error::Error;
use super::relocation::Relocation;

/// Page size code objects are linked for, and the granule of the image's length.
const PAGE: u64 = 4096;

/// What the GPU may do with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Load from it.
    pub read: bool,
    /// Store to it.
    pub write: bool,
    /// Fetch instructions from it.
    pub execute: bool,
}

/// One segment of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the image.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// How many of them the file gives; the rest is zero.
    pub initialised: u64,
    /// What the GPU may do with it.
    pub permissions: Permissions,
}

/// The bytes of a code object as they lie in memory, for any load address.
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    relocations: Vec<Relocation>,
}

impl Image {
    /// Lays the loadable segments out. They must be in order, apart from each other and within the size limit.
    pub(super) fn load(elf: &Elf<'_>) -> Result<Self, Error> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut contents = Vec::new();
        for (index, header) in elf.loadable() {
            let refuse = |what| Error::Segment { index, what };
            if header.p_filesz > header.p_memsz {
                return Err(refuse("it is longer in the file than in memory"));
            }
            let end = header.p_vaddr.checked_add(header.p_memsz).ok_or(refuse("its end is beyond 2^64"))?;
            if end > MAX_IMAGE_BYTES {
                return Err(Error::ImageTooLarge { bytes: end, limit: MAX_IMAGE_BYTES });
            }
            if segments.last().is_some_and(|before| before.offset + before.bytes > header.p_vaddr) {
                return Err(refuse("it overlaps the one before it, or is out of order"));
            }
            contents.push(elf.slice("a loadable segment", header.p_offset, header.p_filesz)?);
            segments.push(Segment {
                offset: header.p_vaddr,
                bytes: header.p_memsz,
                initialised: header.p_filesz,
                permissions: Permissions {
                    read: header.is_read(),
                    write: header.is_write(),
                    execute: header.is_executable(),
                },
            });
        }
        let last = segments.last().ok_or(Error::NoSegments)?;
        let length = (last.offset + last.bytes).next_multiple_of(PAGE);
        let mut bytes = vec![0; length as usize];
        for (segment, content) in segments.iter().zip(contents) {
            let start = segment.offset as usize;
            bytes[start..start + content.len()].copy_from_slice(content);
        }
        Ok(Self { bytes, segments, relocations: Vec::new() })
    }

    pub(super) fn with_relocations(self, relocations: Vec<Relocation>) -> Self {
        Self { relocations, ..self }
    }

    /// Length in bytes, a multiple of 4 KiB.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Never: an image has at least one segment.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The segments, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The relocations that [`at`](Self::at) applies; most code objects have none.
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// The bytes for loading at `base`, which must be a multiple of 4 KiB: the image with its relocations applied.
    pub fn at(&self, base: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = self.bytes.clone();
        for relocation in &self.relocations {
            relocation.apply(&mut bytes, base)?;
        }
        Ok(bytes)
    }

    /// Bytes of the image before relocation, or `None` unless all of them come from the file.
    pub fn initial_bytes(&self, offset: u64, bytes: u64) -> Option<&[u8]> {
        let end = offset.checked_add(bytes)?;
        let inside = |segment: &Segment| segment.offset <= offset && end <= segment.offset + segment.initialised;
        self.segments.iter().any(inside).then(|| &self.bytes[offset as usize..end as usize])
    }

    /// The segment that `offset` lies in.
    pub fn segment_at(&self, offset: u64) -> Option<&Segment> {
        self.segments.iter().find(|s| offset.checked_sub(s.offset).is_some_and(|into| into < s.bytes))
    }

    /// Whether instructions may be fetched at `offset`.
    pub fn is_executable(&self, offset: u64) -> bool {
        self.segment_at(offset).is_some_and(|segment| segment.permissions.execute)
    }
}
