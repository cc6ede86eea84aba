//! The ELF container, as far as loading a code object needs it. Every place in the file is checked before it is used.

use std::collections::BTreeMap;

use goblin::container::{Container, Ctx};
use goblin::elf::header::{EI_ABIVERSION, EI_CLASS, EI_DATA, EI_OSABI, ELFCLASS64, ELFDATA2LSB, ET_DYN};
use goblin::elf::program_header::{PT_LOAD, PT_NOTE};
use goblin::elf::section_header::{SHT_DYNSYM, SHT_REL, SHT_RELA};
use goblin::elf::{ProgramHeader, SectionHeader, Symtab};

use super::error::Error;
use super::target::AbiVersion;
use super::{Symbol, SymbolKind};

/// `EM_AMDGPU`.
const EM_AMDGPU: u16 = 224;
/// `ELFOSABI_AMDGPU_HSA`.
const OSABI_AMDGPU_HSA: u8 = 64;
/// `NT_AMDGPU_METADATA`, of the owner "AMDGPU".
const NT_AMDGPU_METADATA: u32 = 32;
/// Elf64_Rela.
const RELA_BYTES: u64 = 24;
/// Elf64_Sym.
const SYM_BYTES: u64 = 24;

/// A file whose headers are those of an AMDGPU shared object. Offsets in them are not checked yet.
pub(super) struct Elf<'a> {
    bytes: &'a [u8],
    context: Ctx,
    pub(super) flags: u32,
    pub(super) abi: AbiVersion,
    program_headers: Vec<ProgramHeader>,
    sections: Vec<SectionHeader>,
}

/// One entry of a dynamic relocation section (`Elf64_Rela`).
#[derive(Clone, Copy)]
pub(super) struct Rela {
    pub(super) offset: u64,
    pub(super) kind: u32,
    pub(super) symbol: u32,
    pub(super) addend: i64,
}

impl<'a> Elf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = goblin::elf::Elf::parse_header(bytes).map_err(|error| Error::Elf(error.to_string()))?;
        let must_be = |what, found: u64, expected: u64| {
            if found == expected { Ok(()) } else { Err(Error::Kind { what, found, expected }) }
        };
        must_be("the ELF class", header.e_ident[EI_CLASS].into(), ELFCLASS64.into())?;
        must_be("the data encoding", header.e_ident[EI_DATA].into(), ELFDATA2LSB.into())?;
        must_be("the machine", header.e_machine.into(), EM_AMDGPU.into())?;
        must_be("the OS ABI", header.e_ident[EI_OSABI].into(), OSABI_AMDGPU_HSA.into())?;
        must_be("the file type (is it linked?)", header.e_type.into(), ET_DYN.into())?;
        let abi = AbiVersion::from_elf(header.e_ident[EI_ABIVERSION])?;

        let context = Ctx::new(Container::Big, goblin::container::Endian::Little);
        let broken = |error: goblin::error::Error| Error::Elf(error.to_string());
        let (program_at, section_at) = (index(header.e_phoff)?, index(header.e_shoff)?);
        let program_headers =
            ProgramHeader::parse(bytes, program_at, header.e_phnum.into(), context).map_err(broken)?;
        let sections = SectionHeader::parse(bytes, section_at, header.e_shnum.into(), context).map_err(broken)?;
        Ok(Self { bytes, context, flags: header.e_flags, abi, program_headers, sections })
    }

    /// The program headers to load, with their numbers.
    pub(super) fn loadable(&self) -> impl Iterator<Item = (usize, &ProgramHeader)> {
        self.program_headers.iter().enumerate().filter(|(_, header)| header.p_type == PT_LOAD)
    }

    /// A part of the file.
    pub(super) fn slice(&self, what: &'static str, offset: u64, bytes: u64) -> Result<&'a [u8], Error> {
        let end = offset.checked_add(bytes).and_then(|end| usize::try_from(end).ok());
        usize::try_from(offset)
            .ok()
            .zip(end)
            .and_then(|(start, end)| self.bytes.get(start..end))
            .ok_or(Error::OutsideFile { what, offset, bytes, file: self.bytes.len() as u64 })
    }

    /// The defined dynamic symbols by name.
    pub(super) fn symbols(&self) -> Result<BTreeMap<String, Symbol>, Error> {
        let mut symbols = BTreeMap::new();
        let Some((table, names)) = self.dynamic_symbols()? else { return Ok(symbols) };
        for (index, symbol) in table.iter().enumerate() {
            if symbol.st_shndx == 0 || symbol.st_name == 0 {
                continue;
            }
            let name = name_at(names, symbol.st_name)
                .ok_or(Error::Symbol { index, what: "has a name outside the string table, or not in UTF-8" })?;
            let kind = match symbol.st_type() {
                goblin::elf::sym::STT_FUNC => SymbolKind::Function,
                goblin::elf::sym::STT_OBJECT => SymbolKind::Object,
                _ => SymbolKind::Other,
            };
            let value = Symbol { offset: symbol.st_value, bytes: symbol.st_size, kind };
            if symbols.insert(name.to_owned(), value).is_some() {
                return Err(Error::SymbolTwice { name: name.to_owned() });
            }
        }
        Ok(symbols)
    }

    /// The name of dynamic symbol number `index`, for relocations.
    pub(super) fn symbol_name(&self, index: u32) -> Result<Option<&'a str>, Error> {
        let Some((table, names)) = self.dynamic_symbols()? else { return Ok(None) };
        Ok(usize::try_from(index).ok().and_then(|index| table.get(index)).and_then(|s| name_at(names, s.st_name)))
    }

    fn dynamic_symbols(&self) -> Result<Option<(Symtab<'a>, &'a [u8])>, Error> {
        let Some(section) = self.sections.iter().find(|section| section.sh_type == SHT_DYNSYM) else {
            return Ok(None);
        };
        let bytes = self.slice("the dynamic symbol table", section.sh_offset, section.sh_size)?;
        let names = usize::try_from(section.sh_link).ok().and_then(|link| self.sections.get(link));
        let names = names.ok_or(Error::Elf("the dynamic symbol table names no string table".into()))?;
        let names = self.slice("the dynamic string table", names.sh_offset, names.sh_size)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let count = bytes.len() / SYM_BYTES as usize;
        let table = Symtab::parse(bytes, 0, count, self.context).map_err(|error| Error::Elf(error.to_string()))?;
        Ok(Some((table, names)))
    }

    /// The dynamic relocations. A section without addends is refused: AMDGPU has none.
    pub(super) fn relocations(&self) -> Result<Vec<Rela>, Error> {
        let mut all = Vec::new();
        for section in &self.sections {
            match section.sh_type {
                SHT_RELA => {}
                SHT_REL if section.sh_size > 0 => {
                    return Err(Error::Elf("relocations without addends, which AMDGPU does not have".into()));
                }
                _ => continue,
            }
            let bytes = self.slice("a relocation section", section.sh_offset, section.sh_size)?;
            let (entries, rest) = bytes.as_chunks::<{ RELA_BYTES as usize }>();
            if !rest.is_empty() {
                return Err(Error::Elf("a relocation section ends inside an entry".into()));
            }
            all.extend(entries.iter().map(|entry| {
                let [offset, info, addend] = words(entry);
                Rela { offset, kind: info as u32, symbol: (info >> 32) as u32, addend: addend.cast_signed() }
            }));
        }
        Ok(all)
    }

    /// The metadata note: msgpack.
    pub(super) fn metadata(&self) -> Result<&'a [u8], Error> {
        for header in self.program_headers.iter().filter(|header| header.p_type == PT_NOTE) {
            let mut rest = self.slice("a note segment", header.p_offset, header.p_filesz)?;
            while let Some((note, more)) = Note::first(rest) {
                if note.kind == NT_AMDGPU_METADATA && note.owner == b"AMDGPU\0" {
                    return Ok(note.content);
                }
                rest = more;
            }
        }
        Err(Error::NoMetadata)
    }
}

/// One note: `namesz descsz type`, then the owner and the content, each padded to 4 bytes.
struct Note<'a> {
    kind: u32,
    owner: &'a [u8],
    content: &'a [u8],
}

impl<'a> Note<'a> {
    /// The first note and what follows it; `None` at the end or where the sizes lead outside.
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = bytes.split_first_chunk::<12>()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (owner, rest) = split_padded(rest, word(0))?;
        let (content, rest) = split_padded(rest, word(4))?;
        Some((Self { kind: word(8), owner, content }, rest))
    }
}

fn split_padded(bytes: &[u8], length: u32) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(length).ok()?;
    let taken = bytes.get(..length)?;
    // The last note of a segment may go without its padding.
    Some((taken, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn words(entry: &[u8; RELA_BYTES as usize]) -> [u64; 3] {
    let (words, _) = entry.as_chunks::<8>();
    [0, 1, 2].map(|index| u64::from_le_bytes(words[index]))
}

fn name_at(names: &[u8], offset: usize) -> Option<&str> {
    let tail = names.get(offset..)?;
    let end = tail.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&tail[..end]).ok()
}

fn index(value: u64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| Error::Elf(format!("offset {value:#x} is beyond the address space")))
}
