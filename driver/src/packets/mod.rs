//! The packets that command processors and SDMA engines read, as tables.
//!
//! Each packet is written down once: its fields, where they sit and what they hold. Encoding, decoding, the text of an
//! error message and the tests all come from that one place. Three formats share it: [`pm4`] for the compute command
//! processor (MEC), [`aql`] for HSA queues, [`sdma`] for copy engines.
//!
//! Decoding is strict. A bit no table names must be zero, a field with names must hold one of them, and a length must
//! be the one the table gives: what decodes is understood in full, and encodes to the same dwords again.

pub mod aql;
pub mod pm4;
pub mod registers;
pub mod sdma;
mod stream;
mod value;
mod wire;

pub use stream::{Located, Packets, StreamError};
pub use value::{AtomicKind, AtomicOp, Compare, Count};
pub use wire::{DecodeError, EncodeError, Field, FieldValue, Fixed, Ignored, Layout, Packet};
