//! Dynamic relocations (AMDGPUUsage, "Relocation Records"): the few a loader meets.

use std::collections::BTreeMap;

use super::Symbol;
use super::elf::Elf;
use super::error::Error;
use super::image::Image;

/// A relocation that loading applies. Names and formulas are LLVM's: S symbol, A addend, P place, B load address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationKind {
    /// `R_AMDGPU_ABS32_LO`: low half of S + A.
    Abs32Lo,
    /// `R_AMDGPU_ABS32_HI`: high half of S + A.
    Abs32Hi,
    /// `R_AMDGPU_ABS64`: S + A.
    Abs64,
    /// `R_AMDGPU_REL64`: S + A - P.
    Rel64,
    /// `R_AMDGPU_ABS32`: S + A, which must fit 32 bits.
    Abs32,
    /// `R_AMDGPU_RELATIVE64`: B + A.
    Relative64,
}

/// One relocation of an image, its target already found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The formula.
    pub kind: RelocationKind,
    /// Offset of the field in the image.
    pub offset: u64,
    /// S + A or A, without the load address.
    pub target: u64,
}

impl RelocationKind {
    const fn from_elf(kind: u32) -> Option<Self> {
        Some(match kind {
            1 => Self::Abs32Lo,
            2 => Self::Abs32Hi,
            3 => Self::Abs64,
            5 => Self::Rel64,
            6 => Self::Abs32,
            13 => Self::Relative64,
            _ => return None,
        })
    }

    /// Width of the field in bytes.
    const fn bytes(self) -> u32 {
        match self {
            Self::Abs32Lo | Self::Abs32Hi | Self::Abs32 => 4,
            Self::Abs64 | Self::Rel64 | Self::Relative64 => 8,
        }
    }
}

/// Collects and checks the dynamic relocations of a code object.
pub(super) fn collect(
    elf: &Elf<'_>,
    symbols: &BTreeMap<String, Symbol>,
    image: &Image,
) -> Result<Vec<Relocation>, Error> {
    /// `R_AMDGPU_NONE`.
    const NONE: u32 = 0;

    let mut relocations = Vec::new();
    for (index, entry) in elf.relocations()?.into_iter().enumerate().filter(|(_, entry)| entry.kind != NONE) {
        let refuse = |what: String| Error::Relocation { index, kind: entry.kind, offset: entry.offset, what };
        let kind = RelocationKind::from_elf(entry.kind).ok_or_else(|| {
            refuse("a loader does not know this type, only NONE, ABS32*, ABS64, REL64, RELATIVE64".into())
        })?;
        if image.initial_bytes(entry.offset, kind.bytes().into()).is_none() {
            return Err(refuse("its field is not in initialised memory of the image".into()));
        }
        let symbol = if kind == RelocationKind::Relative64 {
            0
        } else {
            let name = elf.symbol_name(entry.symbol)?.ok_or_else(|| refuse("its symbol has no name".into()))?;
            symbols.get(name).ok_or_else(|| refuse(format!("its symbol {name} is not defined")))?.offset
        };
        let target = symbol.wrapping_add_signed(entry.addend);
        relocations.push(Relocation { kind, offset: entry.offset, target });
    }
    Ok(relocations)
}

impl Relocation {
    /// Writes the field for an image at `base`.
    pub(super) fn apply(&self, image: &mut [u8], base: u64) -> Result<(), Error> {
        let absolute = base.wrapping_add(self.target);
        let at = self.offset as usize;
        let (value, bytes) = match self.kind {
            RelocationKind::Abs32Lo => (absolute & 0xffff_ffff, 4),
            RelocationKind::Abs32Hi => (absolute >> 32, 4),
            RelocationKind::Abs32 => (absolute, 4),
            RelocationKind::Abs64 | RelocationKind::Relative64 => (absolute, 8),
            // The load address is in both S and P.
            RelocationKind::Rel64 => (self.target.wrapping_sub(self.offset), 8),
        };
        if bytes == 4 && value > u64::from(u32::MAX) {
            return Err(Error::RelocationOverflow { base, offset: self.offset, bytes });
        }
        // Collecting made sure that the field lies in the image.
        image[at..at + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(kind: RelocationKind, target: u64, base: u64) -> Result<u64, Error> {
        let mut image = [0; 16];
        Relocation { kind, offset: 4, target }.apply(&mut image, base)?;
        assert_eq!((&image[..4], &image[12..]), (&[0; 4][..], &[0; 4][..]), "only the field changes");
        Ok(u64::from_le_bytes(*image[4..].first_chunk().unwrap()))
    }

    #[test]
    fn each_formula_gives_what_llvm_documents() {
        let base = 0x7f12_3456_7000;
        assert_eq!(applied(RelocationKind::Abs64, 0x10, base).unwrap(), base + 0x10);
        assert_eq!(applied(RelocationKind::Relative64, 0x10, base).unwrap(), base + 0x10);
        assert_eq!(applied(RelocationKind::Abs32Lo, 0x10, base).unwrap(), 0x3456_7010);
        assert_eq!(applied(RelocationKind::Abs32Hi, 0x10, base).unwrap(), 0x7f12);
        assert_eq!(applied(RelocationKind::Rel64, 0x10, base).unwrap(), 0x10 - 4);
        assert_eq!(applied(RelocationKind::Abs32, 0x10, 0x1000).unwrap(), 0x1010);
    }

    #[test]
    fn a_32_bit_field_that_cannot_hold_the_address_is_an_error() {
        assert!(matches!(
            applied(RelocationKind::Abs32, 0x10, 1 << 40),
            Err(Error::RelocationOverflow { offset: 4, .. })
        ));
    }
}
