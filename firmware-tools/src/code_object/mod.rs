//! AMDGPU code objects: ELF files with kernels, as LLVM's AMDGPUUsage describes them ("Code Object").
//!
//! [`CodeObject::parse`] takes the bytes of an executable code object (`.hsaco`), or of a bundle or host program that
//! holds exactly one for gfx950. What comes out is checked: segments lie inside the image, every kernel has a
//! descriptor and metadata that agree, its entry is in an executable segment, and relocations are ones that loading can
//! apply.

mod descriptor;
mod elf;
mod error;
mod image;
mod metadata;
mod relocation;
mod target;

use std::collections::BTreeMap;

pub use descriptor::{ComputePgmRsrc1, ComputePgmRsrc2, ComputePgmRsrc3, KernelDescriptor, UserSgprs};
pub use error::Error;
pub use image::{Image, Permissions, Segment};
pub use metadata::{Argument, KernelMetadata, ValueKind};
pub use relocation::{Relocation, RelocationKind};
pub use target::{AbiVersion, FeatureSetting, Processor, Target};

use crate::bundle;

/// Largest memory image of a code object, in bytes. The largest libraries of kernels known need half of it.
pub const MAX_IMAGE_BYTES: u64 = 256 << 20;
/// Most kernels of a code object.
pub const MAX_KERNELS: usize = 1 << 16;

/// A checked code object: where its bytes go, and which kernels it has.
#[derive(Clone, Debug)]
pub struct CodeObject {
    target: Target,
    abi: AbiVersion,
    image: Image,
    kernels: BTreeMap<String, Kernel>,
    symbols: BTreeMap<String, Symbol>,
}

/// One kernel of a code object.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name of the function, as a launch names it.
    pub name: String,
    /// Offset of the 64-byte kernel descriptor in the image: what an AQL dispatch calls the kernel object.
    pub descriptor_offset: u64,
    /// Offset of the first instruction in the image. With preloaded arguments hardware enters 256 bytes further on.
    pub entry_offset: u64,
    /// The descriptor.
    pub descriptor: KernelDescriptor,
    /// What the compiler says about the kernel.
    pub metadata: KernelMetadata,
}

/// A defined symbol of a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Offset in the image.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// What it names.
    pub kind: SymbolKind,
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Code: `STT_FUNC`.
    Function,
    /// Data, descriptors included: `STT_OBJECT`.
    Object,
    /// Anything else.
    Other,
}

impl CodeObject {
    /// Parses a code object, alone or as the only one for gfx950 of an offload bundle or of a host program.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if !bundle::is_container(bytes) {
            return Self::parse_elf(bytes);
        }
        let entries = bundle::entries(bytes)?;
        let mut fitting = entries.iter().filter(|entry| entry.processor() == Some(Processor::Gfx950.name()));
        match (fitting.next(), fitting.next()) {
            (Some(entry), None) => Self::parse_elf(entry.bytes),
            (None, _) => Err(Error::NotInBundle { found: entries.iter().map(|entry| entry.id.clone()).collect() }),
            (Some(one), Some(other)) => Err(Error::SeveralInBundle { one: one.id.clone(), other: other.id.clone() }),
        }
    }

    fn parse_elf(bytes: &[u8]) -> Result<Self, Error> {
        let elf = elf::Elf::parse(bytes)?;
        let target = Target::from_elf_flags(elf.flags, elf.abi)?;
        let image = Image::load(&elf)?;
        let symbols = elf.symbols()?;
        let relocations = relocation::collect(&elf, &symbols, &image)?;
        let image = image.with_relocations(relocations);
        let mut named: BTreeMap<String, KernelMetadata> = BTreeMap::new();
        for kernel in metadata::parse(elf.metadata()?, target)? {
            if let Some(twice) = named.insert(kernel.symbol.clone(), kernel) {
                return Err(Error::KernelTwice { kernel: twice.name });
            }
        }

        let mut kernels = BTreeMap::new();
        for (descriptor_symbol, metadata) in named {
            let kernel = Kernel::check(metadata, symbols.get(&descriptor_symbol), &image)?;
            if let Some(twice) = kernels.insert(kernel.name.clone(), kernel) {
                return Err(Error::KernelTwice { kernel: twice.name });
            }
        }
        Ok(Self { target, abi: elf.abi, image, kernels, symbols })
    }

    /// The processor it is for, and what it assumes of it.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The version of the code-object format.
    pub fn abi(&self) -> AbiVersion {
        self.abi
    }

    /// What to put into GPU memory.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The kernel `name`, without `.kd`.
    pub fn kernel(&self, name: &str) -> Result<&Kernel, Error> {
        self.kernels.get(name).ok_or_else(|| Error::NoSuchKernel {
            kernel: name.to_owned(),
            available: self.kernels.keys().cloned().collect(),
        })
    }

    /// All kernels, by name.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = &Kernel> {
        self.kernels.values()
    }

    /// The defined symbol `name`.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    /// All defined symbols with their names.
    pub fn symbols(&self) -> impl ExactSizeIterator<Item = (&str, Symbol)> {
        self.symbols.iter().map(|(name, symbol)| (name.as_str(), *symbol))
    }

    /// The function or object that `offset` of the image lies in, for messages about addresses.
    pub fn symbol_at(&self, offset: u64) -> Option<(&str, Symbol)> {
        self.symbols().find(|(_, symbol)| offset.checked_sub(symbol.offset).is_some_and(|into| into < symbol.bytes))
    }
}

impl Kernel {
    /// Ties metadata, descriptor symbol and image together, or says which of them disagree.
    fn check(metadata: KernelMetadata, symbol: Option<&Symbol>, image: &Image) -> Result<Self, Error> {
        let kernel = || metadata.name.clone();
        let symbol =
            symbol.ok_or_else(|| Error::DescriptorMissing { kernel: kernel(), symbol: metadata.symbol.clone() })?;
        let descriptor_offset = symbol.offset;
        let raw = image
            .initial_bytes(descriptor_offset, KernelDescriptor::BYTES)
            .and_then(|bytes| bytes.first_chunk::<{ KernelDescriptor::BYTES as usize }>())
            .ok_or_else(|| Error::DescriptorOutside { kernel: kernel(), offset: descriptor_offset })?;
        if !descriptor_offset.is_multiple_of(KernelDescriptor::BYTES) {
            return Err(Error::DescriptorMisaligned { kernel: kernel(), offset: descriptor_offset });
        }
        let descriptor =
            KernelDescriptor::from_bytes(raw).map_err(|what| Error::DescriptorInvalid { kernel: kernel(), what })?;

        let entry_offset = descriptor_offset
            .checked_add_signed(descriptor.code_entry_byte_offset)
            .filter(|offset| image.is_executable(*offset))
            .ok_or_else(|| Error::EntryOutside { kernel: kernel(), from: descriptor.code_entry_byte_offset })?;
        if !entry_offset.is_multiple_of(256) {
            return Err(Error::EntryMisaligned { kernel: kernel(), offset: entry_offset });
        }

        let agree = |field: &'static str, descriptor: u32, metadata: u32| {
            if descriptor == metadata {
                Ok(())
            } else {
                Err(Error::Disagreement { kernel: kernel(), field, descriptor, metadata })
            }
        };
        agree("kernarg segment size", descriptor.kernarg_size, metadata.kernarg_segment_size)?;
        agree("group segment size", descriptor.group_segment_fixed_size, metadata.group_segment_fixed_size)?;
        agree("private segment size", descriptor.private_segment_fixed_size, metadata.private_segment_fixed_size)?;
        Ok(Self { name: metadata.name.clone(), descriptor_offset, entry_offset, descriptor, metadata })
    }
}
