//! The gfx950 instruction set: decoder and disassembler.
