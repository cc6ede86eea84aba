//! The code of a code object as text, laid out as `llvm-objdump -d` lays it out.

use std::fmt;

use firmware_tools::code_object::{CodeObject, Segment, SymbolKind};
use isa::{Inst, Op};

/// The code from one function symbol to the next, or before the first.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Name of the symbol; empty for code before the first.
    pub symbol: String,
    /// Offset of the first instruction in the code object's image.
    pub offset: u64,
    /// What stands there, in order.
    pub lines: Vec<Line>,
}

/// One instruction, or a dword that is none.
#[derive(Clone, Debug)]
pub struct Line {
    /// Offset in the code object's image.
    pub offset: u64,
    /// The dwords, one if they are no instruction.
    pub words: Vec<u32>,
    /// The instruction, if it is one.
    pub inst: Option<Inst>,
    /// Where a direct branch goes: a symbol and the bytes from it.
    pub target: Option<(String, u64)>,
}

/// What LLVM's tools print for bytes that are no instruction.
pub const INVALID: &str = "invalid";

impl Line {
    fn decode(bytes: &[u8], offset: u64) -> Self {
        let mut words: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().take(5).map(|word| u32::from_le_bytes(*word)).collect();
        let inst = isa::decode(&words).ok();
        words.truncate(inst.map_or(1, |inst| usize::from(inst.dwords)));
        Self { offset, words, inst, target: None }
    }

    /// Bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        4 * self.words.len() as u64
    }

    /// What LLVM prints for it.
    #[must_use]
    pub fn text(&self) -> String {
        self.inst.map_or_else(|| INVALID.into(), |inst| inst.to_string())
    }

    /// Image offset that a direct branch goes to.
    fn branch(&self) -> Option<u64> {
        let inst = self.inst?;
        let is_branch = matches!(
            inst.op,
            Op::SBranch
                | Op::SCbranchScc0
                | Op::SCbranchScc1
                | Op::SCbranchVccz
                | Op::SCbranchVccnz
                | Op::SCbranchExecz
                | Op::SCbranchExecnz
                | Op::SCallB64
        );
        let next = self.offset + self.bytes();
        is_branch.then(|| next.wrapping_add_signed(4 * i64::from(inst.mods.simm16.cast_signed())))
    }
}

/// Everything in the executable segments of `object`, function by function.
#[must_use]
pub fn listings(object: &CodeObject) -> Vec<Listing> {
    let mut starts: Vec<(u64, &str)> = object
        .symbols()
        .filter(|(_, symbol)| symbol.kind == SymbolKind::Function)
        .map(|(name, symbol)| (symbol.offset, name))
        .collect();
    starts.sort_unstable();
    let executable = object.image().segments().iter().filter(|segment| segment.permissions.execute);
    let mut listings: Vec<Listing> = executable.flat_map(|segment| split(object, segment, &starts)).collect();
    for line in listings.iter_mut().flat_map(|listing| &mut listing.lines) {
        line.target = line.branch().and_then(|to| {
            let &(start, name) = starts.iter().rev().find(|(start, _)| *start <= to)?;
            Some((name.to_owned(), to - start))
        });
    }
    listings
}

/// The code of one segment, cut at the symbols.
fn split(object: &CodeObject, segment: &Segment, starts: &[(u64, &str)]) -> Vec<Listing> {
    let end = segment.offset + segment.initialised;
    let inside = |offset: u64| (segment.offset..end).contains(&offset);
    let mut cuts: Vec<(u64, &str)> = starts.iter().copied().filter(|(offset, _)| inside(*offset)).collect();
    cuts.dedup_by_key(|(offset, _)| *offset);
    if cuts.first().is_none_or(|(offset, _)| *offset > segment.offset) {
        cuts.insert(0, (segment.offset, ""));
    }
    let ends = cuts.iter().skip(1).map(|(offset, _)| *offset).chain([end]);
    cuts.iter()
        .zip(ends)
        .filter_map(|(&(offset, symbol), end)| {
            let bytes = object.image().initial_bytes(offset, end - offset)?;
            Some(Listing { symbol: symbol.to_owned(), offset, lines: lines(bytes, offset) })
        })
        .collect()
}

/// The instructions of `bytes`, of which the first stands at `offset`. Bytes at the end that make no dword are left out.
#[must_use]
pub fn lines(bytes: &[u8], offset: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= 4) {
        let line = Line::decode(rest, offset + at as u64);
        at += line.bytes() as usize;
        lines.push(line);
    }
    lines
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.symbol.is_empty() {
            writeln!(f, "{:016x} <{}>:", self.offset, self.symbol)?;
        }
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\t{:<59}// {:012X}:", self.text(), self.offset)?;
        for word in &self.words {
            write!(f, " {word:08X}")?;
        }
        match &self.target {
            Some((symbol, 0)) => write!(f, " <{symbol}>"),
            Some((symbol, past)) => write!(f, " <{symbol}+{past:#x}>"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_looks_like_objdumps() {
        let code = [0xbe82_206a_u32, 0xbf88_0016].map(u32::to_le_bytes).concat();
        let mut lines = lines(&code, 0x1618);
        assert_eq!(lines[1].branch(), Some(0x1678));
        lines[1].target = Some(("vadd".into(), 0x78));
        let pad = |text: &str| format!("\t{text:<59}");
        assert_eq!(lines[0].to_string(), pad("s_and_saveexec_b64 s[2:3], vcc") + "// 000000001618: BE82206A");
        assert_eq!(lines[1].to_string(), pad("s_cbranch_execz 22") + "// 00000000161C: BF880016 <vadd+0x78>");
    }

    #[test]
    fn a_dword_that_is_no_instruction_is_invalid_and_the_next_is_tried() {
        let code = [0xffff_ffff_u32, 0xbf81_0000].map(u32::to_le_bytes).concat();
        let texts: Vec<String> = lines(&code, 0).iter().map(Line::text).collect();
        assert_eq!(texts, [INVALID, "s_endpgm"]);
    }

    #[test]
    fn an_instruction_cut_short_at_the_end_is_invalid() {
        // s_mov_b32 s0, literal without its literal.
        let texts: Vec<String> = lines(&0xbe80_00ff_u32.to_le_bytes(), 0).iter().map(Line::text).collect();
        assert_eq!(texts, [INVALID]);
    }
}
