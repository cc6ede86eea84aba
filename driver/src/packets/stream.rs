//! Walking a buffer of packets.

use super::wire::DecodeError;

/// A packet and where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located<P> {
    /// Index of its header in the buffer, in dwords.
    pub at: usize,
    /// Its length with payload, in dwords.
    pub dwords: usize,
    /// The packet.
    pub packet: P,
}

/// Where and why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("dword {at} ({word:#010x}): {source}")]
pub struct StreamError {
    /// Index of the header in the buffer, in dwords.
    pub at: usize,
    /// The header.
    pub word: u32,
    /// What is wrong with the packet.
    pub source: DecodeError,
}

/// A format whose packets follow each other in a buffer.
pub trait Format<'a>: Sized {
    /// Reads the first packet of `dwords`, which is not empty; returns its length too.
    fn first(dwords: &'a [u32]) -> Result<(Self, usize), DecodeError>;
}

/// The packets of a buffer in order. The first error is the last item: behind it nothing can be located.
#[derive(Clone, Debug)]
pub struct Packets<'a, P> {
    dwords: &'a [u32],
    at: usize,
    format: std::marker::PhantomData<fn() -> P>,
}

impl<'a, P: Format<'a>> Packets<'a, P> {
    pub(super) fn new(dwords: &'a [u32]) -> Self {
        Self { dwords, at: 0, format: std::marker::PhantomData }
    }
}

impl<'a, P: Format<'a>> Iterator for Packets<'a, P> {
    type Item = Result<Located<P>, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.dwords.get(at..)?;
        let &word = rest.first()?;
        Some(match P::first(rest) {
            Ok((packet, dwords)) => {
                self.at += dwords;
                Ok(Located { at, dwords, packet })
            }
            Err(source) => {
                self.at = self.dwords.len();
                Err(StreamError { at, word, source })
            }
        })
    }
}
