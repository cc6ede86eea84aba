//! The instructions of a code object that order something, to take them away.

#![allow(clippy::unwrap_used, dead_code, reason = "a test panics, and each test target uses its own part")]

use firmware_tools::code_object::CodeObject;
use mock::listing::listings;

/// `s_nop 0`.
const NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();
/// `s_trap 2`: no program of ours has a handler, so that it ends the queue.
const TRAP: [u8; 4] = 0xbf92_0002_u32.to_le_bytes();

/// A wait, a barrier or a cache operation.
pub(crate) struct Order {
    /// The function it stands in.
    pub(crate) symbol: String,
    /// Bytes from the start of that.
    pub(crate) offset: u64,
    /// What LLVM prints for it.
    pub(crate) text: String,
    /// Where it is in the file.
    at: usize,
    dwords: usize,
}

impl Order {
    /// The file with `s_nop` in its place.
    pub(crate) fn taken_from(&self, file: &[u8]) -> Vec<u8> {
        self.replaced(file, NOP)
    }

    /// The file with something in its place that no run survives.
    pub(crate) fn trapped_in(&self, file: &[u8]) -> Vec<u8> {
        self.replaced(file, TRAP)
    }

    fn replaced(&self, file: &[u8], by: [u8; 4]) -> Vec<u8> {
        let mut file = file.to_vec();
        file[self.at..][..4 * self.dwords].as_chunks_mut().0.fill(by);
        file
    }
}

/// All of them in a code object's file.
pub(crate) fn orders(file: &[u8]) -> Vec<Order> {
    let parsed = CodeObject::parse(file).unwrap();
    let mut orders = Vec::new();
    for function in listings(&parsed) {
        let code: Vec<u8> =
            function.lines.iter().flat_map(|line| &line.words).flat_map(|word| word.to_le_bytes()).collect();
        let start = file.windows(code.len()).position(|window| window == code).unwrap();
        for line in &function.lines {
            let (text, offset) = (line.text(), line.offset - function.offset);
            if ["s_waitcnt", "s_barrier", "buffer_wbl2", "buffer_inv"].iter().any(|name| text.starts_with(name)) {
                let (symbol, at) = (function.symbol.clone(), start + offset as usize);
                orders.push(Order { symbol, offset, text, at, dwords: line.words.len() });
            }
        }
    }
    orders
}
