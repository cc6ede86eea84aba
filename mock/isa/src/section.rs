//! A whole code section.

use crate::{DecodeError, Inst, decode};

/// Iterator over the instructions of a code section; see [`disassemble`].
#[derive(Clone, Debug)]
pub struct Disassembly<'a> {
    bytes: &'a [u8],
    offset: usize,
}

/// Decodes `bytes` from start to end. An item is a byte offset and what is there; after bytes that are no instruction the next
/// dword is tried. Up to three bytes at the end that make no dword are left out.
///
/// ```
/// let code = [0x05, 0x00, 0x80, 0xbf, 0x00, 0x00, 0x81, 0xbf];
/// let text: Vec<_> = isa::disassemble(&code).map(|(at, inst)| format!("{at}: {}", inst.unwrap())).collect();
/// assert_eq!(text, ["0: s_nop 5", "4: s_endpgm"]);
/// ```
pub fn disassemble(bytes: &[u8]) -> Disassembly<'_> {
    Disassembly { bytes, offset: 0 }
}

impl Iterator for Disassembly<'_> {
    type Item = (usize, Result<Inst, DecodeError>);

    fn next(&mut self) -> Option<Self::Item> {
        let (dwords, _) = self.bytes.get(self.offset..)?.as_chunks::<4>();
        if dwords.is_empty() {
            return None;
        }
        let mut words = [0; 5];
        let available = dwords.len().min(words.len());
        for (word, bytes) in words.iter_mut().zip(dwords) {
            *word = u32::from_le_bytes(*bytes);
        }
        let offset = self.offset;
        let inst = decode(&words[..available]);
        self.offset += 4 * inst.map_or(1, |inst| usize::from(inst.dwords));
        Some((offset, inst))
    }
}
