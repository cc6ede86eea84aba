//! Code objects with one instruction less.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use firmware_tools::code_object::CodeObject;

/// Instructions of a kernel: offset in the image, and the instruction.
pub(crate) fn instructions(object: &CodeObject, start: u64, count: usize) -> Vec<(u64, isa::Inst)> {
    let mut offset = start;
    let mut decode = || {
        let left = (1..=5).rev().find_map(|dwords| object.image().initial_bytes(offset, 4 * dwords))?;
        let words: Vec<u32> = left.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let inst = isa::decode(&words).ok()?;
        let at = offset;
        offset += 4 * u64::from(inst.dwords);
        Some((at, inst))
    };
    (0..count).map_while(|_| decode()).collect()
}

/// The file with `s_nop` in place of one instruction of the image.
pub(crate) fn without(file: &[u8], object: &CodeObject, (at, inst): &(u64, isa::Inst)) -> Vec<u8> {
    const S_NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();
    let kernel = object.kernels().filter(|kernel| kernel.entry_offset <= *at).max_by_key(|k| k.entry_offset).unwrap();
    let bytes = u64::from(inst.dwords) * 4;
    let function = object.image().initial_bytes(kernel.entry_offset, at + bytes - kernel.entry_offset).unwrap();
    let start = file.windows(function.len()).position(|window| window == function).unwrap();
    let mut file = file.to_vec();
    let end = start + function.len();
    file[end - bytes as usize..end].as_chunks_mut().0.fill(S_NOP);
    file
}
