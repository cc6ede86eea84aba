//! Reading whole small files, with a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading; symbolic links are followed (the Hugging Face cache is made of them), nothing is
/// ever created, and a FIFO or device is refused before an open could block on it.
pub(crate) fn open(path: &Path) -> io::Result<(File, u64)> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// The whole content of a file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, len) = open(path)?;
    let too_long =
        || io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than the {limit} bytes allowed here"));
    if len > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(len).map_err(io::Error::other)?);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_long());
    }
    Ok(bytes)
}
