//! Clang offload bundles: several code objects in one file, and host programs that carry such bundles.
//!
//! ```text
//! "__CLANG_OFFLOAD_BUNDLE__"  u64 entries  { u64 offset  u64 size  u64 id length  id } ...  code objects
//! ```
//!
//! Offsets count from the magic. A host program built by hipcc has a `.hip_fatbin` section of one bundle after another.
//! Source: LLVM, "Clang Offload Bundler".

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{EI_CLASS, EI_DATA, ELFCLASS64, ELFDATA2LSB};
use goblin::elf::{Elf, SectionHeader};

const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_MAGIC: &[u8] = b"CCOB";
const ELF_MAGIC: &[u8] = b"\x7fELF";
/// Section of a host program that hipcc puts bundles in.
const FATBIN_SECTION: &[u8] = b".hip_fatbin";
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
/// Most code objects of one bundle: one per GPU and setting.
const MAX_ENTRIES: u64 = 1024;
/// Longest id.
const MAX_ID_BYTES: u64 = 1024;

/// What is wrong with a bundle or a host program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A bundle that must be decompressed first.
    #[error("the offload bundle is compressed (CCOB), which is not supported; build with --no-offload-compress")]
    Compressed,
    /// The list of entries is cut off or absurd.
    #[error("the offload bundle's list of entries is broken: {0}")]
    Entries(&'static str),
    /// An entry that lies outside the bundle.
    #[error("entry {id} of the offload bundle, {size:#x} bytes at {offset:#x}, lies outside its {bundle:#x} bytes")]
    Outside {
        /// Its id.
        id: String,
        /// Where it should be.
        offset: u64,
        /// How long it should be.
        size: u64,
        /// Length of the bundle.
        bundle: u64,
    },
    /// A host program whose ELF structure is broken.
    #[error("the host program is not a readable ELF file: {0}")]
    Host(String),
    /// A host program without device code.
    #[error("the host program has no .hip_fatbin section, so no device code")]
    NoFatbin,
}

/// One code object of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its id: kind, triple and target, as in `hipv4-amdgcn-amd-amdhsa--gfx950:xnack-`.
    pub id: String,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl Entry<'_> {
    /// The processor the id ends in, without feature settings; `None` for host code.
    pub fn processor(&self) -> Option<&str> {
        let (_, environment_and_target) = self.id.split_once("amdgcn-amd-amdhsa-")?;
        let (_, target) = environment_and_target.split_once('-')?;
        Some(target.split_once(':').map_or(target, |(processor, _)| processor))
    }
}

/// Whether `bytes` are something code objects are packed in, rather than one.
pub fn is_container(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(COMPRESSED_MAGIC) || is_host_program(bytes)
}

fn is_host_program(bytes: &[u8]) -> bool {
    // e_machine, at 18 in both ELF classes.
    bytes.starts_with(ELF_MAGIC)
        && bytes.get(18..20).is_some_and(|machine| {
            let machine = u16::from_le_bytes([machine[0], machine[1]]);
            machine == EM_X86_64 || machine == EM_AARCH64
        })
}

/// The code objects in a bundle or in all bundles of a host program, empty ones left out.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, Error> {
    let fatbin = if is_host_program(bytes) { fatbin_of(bytes)? } else { bytes };
    let mut entries = Vec::new();
    let mut rest = fatbin;
    // Bundles follow each other at page boundaries, zeroes between; the first is at the start.
    while let Some(start) = rest.iter().position(|&byte| byte != 0) {
        rest = &rest[start..];
        let end = one_bundle(rest, &mut entries)?;
        rest = &rest[end..];
    }
    Ok(entries)
}

/// Reads the bundle at the start of `bytes`; returns where its last entry ends.
fn one_bundle<'a>(bytes: &'a [u8], entries: &mut Vec<Entry<'a>>) -> Result<usize, Error> {
    if bytes.starts_with(COMPRESSED_MAGIC) {
        return Err(Error::Compressed);
    }
    let mut list = bytes.strip_prefix(MAGIC).ok_or(Error::Entries("it does not start with its magic"))?;
    let count = take_u64(&mut list)?;
    if count > MAX_ENTRIES {
        return Err(Error::Entries("there are more than 1024"));
    }
    let mut end = bytes.len() - list.len();
    for _ in 0..count {
        let (offset, size, id_bytes) = (take_u64(&mut list)?, take_u64(&mut list)?, take_u64(&mut list)?);
        if id_bytes > MAX_ID_BYTES {
            return Err(Error::Entries("an id is longer than 1024 bytes"));
        }
        let (id, rest) = list.split_at_checked(id_bytes as usize).ok_or(Error::Entries("an id is cut off"))?;
        list = rest;
        let id = String::from_utf8(id.to_vec()).map_err(|_| Error::Entries("an id is not UTF-8"))?;
        end = end.max(bytes.len() - list.len());
        let range =
            offset.checked_add(size).and_then(|end| Some(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
        let Some((content, range)) = range.and_then(|range| Some((bytes.get(range.clone())?, range))) else {
            return Err(Error::Outside { id, offset, size, bundle: bytes.len() as u64 });
        };
        end = end.max(range.end);
        if !content.is_empty() {
            entries.push(Entry { id, bytes: content });
        }
    }
    Ok(end)
}

fn take_u64(bytes: &mut &[u8]) -> Result<u64, Error> {
    let (value, rest) = bytes.split_first_chunk().ok_or(Error::Entries("it is cut off"))?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*value))
}

/// The section with the bundles of a host program.
fn fatbin_of(bytes: &[u8]) -> Result<&[u8], Error> {
    let broken = |error: goblin::error::Error| Error::Host(error.to_string());
    let outside = || Error::Host("a section lies outside the file".into());
    let header = Elf::parse_header(bytes).map_err(broken)?;
    if header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB {
        return Err(Error::Host("it is not 64-bit little-endian".into()));
    }
    let context = Ctx::new(Container::Big, Endian::Little);
    let at = usize::try_from(header.e_shoff).map_err(|_| outside())?;
    let sections = SectionHeader::parse(bytes, at, header.e_shnum.into(), context).map_err(broken)?;
    let content = |section: &SectionHeader| {
        let start = usize::try_from(section.sh_offset).ok()?;
        bytes.get(start..start.checked_add(usize::try_from(section.sh_size).ok()?)?)
    };
    let names = sections.get(usize::from(header.e_shstrndx)).and_then(content).ok_or_else(outside)?;
    let fatbin = sections.iter().find(|section| {
        names
            .get(section.sh_name..)
            .is_some_and(|name| name.strip_prefix(FATBIN_SECTION).is_some_and(|after| after.first() == Some(&0)))
    });
    content(fatbin.ok_or(Error::NoFatbin)?).ok_or_else(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let list: usize = entries.iter().map(|(id, _)| 24 + id.len()).sum();
        let mut offset = (MAGIC.len() + 8 + list) as u64;
        let mut bytes = [MAGIC, &(entries.len() as u64).to_le_bytes()].concat();
        for (id, content) in entries {
            for number in [offset, content.len() as u64, id.len() as u64] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(id.as_bytes());
            offset += content.len() as u64;
        }
        bytes.extend(entries.iter().flat_map(|(_, content)| *content));
        bytes
    }

    #[test]
    fn entries_are_found_with_their_processor_and_the_empty_host_one_is_left_out() {
        let bytes = bundle(&[
            ("host-x86_64-unknown-linux--", b""),
            ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", b"one"),
            ("hip-amdgcn-amd-amdhsa-unknown-gfx950", b"?"),
            ("hipv4-amdgcn-amd-amdhsa--gfx950", b"two"),
        ]);
        let found = entries(&bytes).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].processor(), found[0].bytes), (Some("gfx942"), &b"one"[..]));
        assert_eq!(found[1].processor(), Some("gfx950"));
        assert_eq!((found[2].processor(), found[2].bytes), (Some("gfx950"), &b"two"[..]));
    }

    #[test]
    fn bundles_may_follow_each_other() {
        let mut bytes = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx950", b"one")]);
        bytes.resize(4096, 0);
        bytes.extend(bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx950", b"two")]));
        assert_eq!(entries(&bytes).unwrap().iter().map(|entry| entry.bytes).collect::<Vec<_>>(), [b"one", b"two"]);
    }

    #[test]
    fn a_compressed_bundle_says_how_to_get_one_that_is_not() {
        let error = entries(b"CCOB\x03\0\0\0").unwrap_err();
        assert!(error.to_string().contains("--no-offload-compress"), "{error}");
    }

    #[test]
    fn broken_lists_are_refused() {
        let good = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx950", b"one")]);
        for length in MAGIC.len()..good.len() {
            assert!(entries(&good[..length]).is_err(), "cut to {length}");
        }
        let at = |offset: usize, value: u64| {
            let mut bytes = good.clone();
            bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
            entries(&bytes).map(|_| ()).unwrap_err().to_string()
        };
        assert!(at(24, u64::MAX).contains("more than 1024"));
        assert!(at(32, u64::MAX).contains("lies outside"));
        assert!(at(40, u64::MAX).contains("lies outside"));
        assert!(at(48, u64::MAX).contains("longer than 1024"));
    }
}
