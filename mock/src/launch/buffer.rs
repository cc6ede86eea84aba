use bytemuck::{AnyBitPattern, NoUninit};
use driver::address::GpuVa;
use driver::memory;

use super::Error;

/// Device memory that a test writes and reads. Freed when dropped: no launch may still use it.
pub struct Buffer {
    memory: memory::Buffer,
    bytes: usize,
}

impl Buffer {
    pub(super) fn new(memory: memory::Buffer, bytes: usize) -> Self {
        Self { memory, bytes }
    }

    /// Where it is for the GPU, at the start of a page.
    #[must_use]
    pub fn address(&self) -> GpuVa {
        self.memory.va()
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Overwrites the beginning.
    ///
    /// # Errors
    /// `data` is longer than the buffer.
    pub fn write<T: NoUninit>(&self, data: &[T]) -> Result<(), Error> {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        if bytes.len() > self.bytes {
            let (label, held) = (self.memory.label().to_owned(), self.bytes);
            return Err(Error::BufferTooShort { label, held, given: bytes.len() });
        }
        Ok(self.memory.host()?.write(0, bytes)?)
    }

    /// Sets every byte to zero.
    pub(super) fn zero(&self) -> Result<(), Error> {
        self.memory.host()?.fill(0);
        Ok(())
    }

    /// What it holds now, in whole values of `T`; bytes at the end that are none are left out.
    ///
    /// # Errors
    /// The host can't read it.
    pub fn read<T: AnyBitPattern + NoUninit>(&self) -> Result<Vec<T>, Error> {
        let mut values = vec![T::zeroed(); self.bytes / size_of::<T>().max(1)];
        self.memory.host()?.read(0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }
}
