//! Why bytes are not a code object that can be loaded.

use super::metadata::MetadataError;
use crate::bundle;

/// What is wrong with a code object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bundle or host program around it cannot be read.
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    /// A bundle without one for this GPU.
    #[error("the bundle has no gfx950 code object, only: {}; build it with --offload-arch=gfx950", found.join(", "))]
    NotInBundle {
        /// Ids of its entries.
        found: Vec<String>,
    },
    /// A bundle with more than one for this GPU.
    #[error("the bundle has several gfx950 code objects ({one} and {other}, perhaps more); extract one of them")]
    SeveralInBundle {
        /// Id of the first.
        one: String,
        /// Id of the second.
        other: String,
    },
    /// The ELF structure is broken.
    #[error("not an ELF file: {0}")]
    Elf(String),
    /// It is an ELF file of another kind.
    #[error("not an AMDGPU code object: {what} is {found:#x}, not {expected:#x}")]
    Kind {
        /// Which header field.
        what: &'static str,
        /// What it holds.
        found: u64,
        /// What it must hold.
        expected: u64,
    },
    /// An ABI version this crate does not know.
    #[error("code object ABI version {0} is not supported: 1 to 4 are (code object v3 to v6)")]
    AbiVersion(u8),
    /// A GPU this crate does not know, or whose descriptors differ.
    #[error("the code object is for {name} (e_flags machine {machine:#x}); gfx90a, gfx942 and gfx950 are supported")]
    Target {
        /// Its name, or "an unknown GPU".
        name: &'static str,
        /// `EF_AMDGPU_MACH`.
        machine: u32,
    },
    /// A part of the file that lies outside of it.
    #[error("{what} at {offset:#x}, {bytes:#x} bytes, lies outside the file of {file:#x} bytes")]
    OutsideFile {
        /// Which part.
        what: &'static str,
        /// Where it should be.
        offset: u64,
        /// How long it should be.
        bytes: u64,
        /// Length of the file.
        file: u64,
    },
    /// There is nothing to load.
    #[error("the code object has no loadable segment")]
    NoSegments,
    /// A segment that cannot be loaded.
    #[error("segment {index} cannot be loaded: {what}")]
    Segment {
        /// Number of the program header.
        index: usize,
        /// Why.
        what: &'static str,
    },
    /// The image is larger than this crate allows.
    #[error("the image would take {bytes:#x} bytes, the limit is {limit:#x}")]
    ImageTooLarge {
        /// Bytes it would take.
        bytes: u64,
        /// The limit, [`MAX_IMAGE_BYTES`](super::MAX_IMAGE_BYTES).
        limit: u64,
    },
    /// A symbol whose name, place or length is wrong.
    #[error("dynamic symbol {index} {what}")]
    Symbol {
        /// Its number.
        index: usize,
        /// Why.
        what: &'static str,
    },
    /// A name that two symbols have.
    #[error("symbol {name} is defined twice")]
    SymbolTwice {
        /// Which.
        name: String,
    },
    /// A relocation that loading cannot apply.
    #[error("relocation {index} of type {kind} at {offset:#x} cannot be applied: {what}")]
    Relocation {
        /// Its number.
        index: usize,
        /// `R_AMDGPU_*`.
        kind: u32,
        /// Where.
        offset: u64,
        /// Why.
        what: String,
    },
    /// The address it should be loaded at makes a relocation overflow.
    #[error("loaded at {base:#x} the relocation at {offset:#x} does not fit its {bytes} bytes")]
    RelocationOverflow {
        /// Load address.
        base: u64,
        /// Where.
        offset: u64,
        /// Width of the field.
        bytes: u32,
    },
    /// No metadata note.
    #[error("the code object has no metadata note (NT_AMDGPU_METADATA): it was stripped, or is older than v3")]
    NoMetadata,
    /// Metadata that says something impossible.
    #[error("code object metadata: {0}")]
    Metadata(#[from] MetadataError),
    /// A kernel with two entries.
    #[error("kernel {kernel} is described twice in the metadata")]
    KernelTwice {
        /// Which.
        kernel: String,
    },
    /// A kernel whose descriptor symbol is not there.
    #[error("kernel {kernel} names descriptor {symbol}, which is not a dynamic symbol")]
    DescriptorMissing {
        /// Which kernel.
        kernel: String,
        /// Which symbol.
        symbol: String,
    },
    /// A kernel whose descriptor is not in a loaded, initialised part of the image.
    #[error("the descriptor of kernel {kernel} at {offset:#x} is not in initialised memory of the image")]
    DescriptorOutside {
        /// Which kernel.
        kernel: String,
        /// Where.
        offset: u64,
    },
    /// A kernel whose descriptor is not 64-byte aligned.
    #[error("the descriptor of kernel {kernel} at {offset:#x} is not aligned to 64 bytes")]
    DescriptorMisaligned {
        /// Which kernel.
        kernel: String,
        /// Where.
        offset: u64,
    },
    /// A descriptor with impossible content.
    #[error("the descriptor of kernel {kernel} is invalid: {what}")]
    DescriptorInvalid {
        /// Which kernel.
        kernel: String,
        /// Why.
        what: String,
    },
    /// A kernel whose code is not in an executable segment.
    #[error("kernel {kernel} enters {from:#x} bytes from its descriptor, which is not in an executable segment")]
    EntryOutside {
        /// Which kernel.
        kernel: String,
        /// The descriptor's entry offset.
        from: i64,
    },
    /// A kernel whose code is not 256-byte aligned.
    #[error("kernel {kernel} enters at {offset:#x}, which is not aligned to 256 bytes")]
    EntryMisaligned {
        /// Which kernel.
        kernel: String,
        /// Where.
        offset: u64,
    },
    /// Descriptor and metadata say different things.
    #[error("kernel {kernel}: {field} is {descriptor} in the descriptor and {metadata} in the metadata")]
    Disagreement {
        /// Which kernel.
        kernel: String,
        /// About what.
        field: &'static str,
        /// One.
        descriptor: u32,
        /// The other.
        metadata: u32,
    },
    /// A kernel that was asked for and is not there.
    #[error("no kernel {kernel}; the code object has: {}", available.join(", "))]
    NoSuchKernel {
        /// Which was asked for.
        kernel: String,
        /// Which there are.
        available: Vec<String>,
    },
}
