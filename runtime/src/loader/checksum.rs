//! Checksums of the tensors, and the manifest that keeps them.
//!
//! ```text
//! # xxh3-128, bytes, tensor
//! 5f0c... 88080384 language_model.model.layers.0.self_attn.q_proj.weight
//! ```
//!
//! They tell whether a file is what it was when the manifest was written: after a download, a copy, a year on a disk.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::LoadError;
use super::plan::{Block, Weights};

const HEADER: &str = "# xxh3-128, bytes, tensor";
/// Longest line: a digest, a length, a name.
const LONGEST_LINE: u64 = 512;

/// That a manifest is there and can be read, or could be written: better known before a load than behind it.
pub(crate) fn check_manifest(path: &Path) -> Result<(), LoadError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let check = || match path.metadata() {
        Ok(found) if found.is_file() => parse(BufReader::new(File::open(path)?)).map(drop),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    };
    check().map_err(|source| LoadError::Manifest { path: path.to_owned(), source })
}

/// Checksums of tensors whose bytes come in order.
pub(crate) struct Checksums {
    /// By file and piece. Of no bytes, until there are some.
    digests: Vec<Vec<u128>>,
    /// The tensor each stream is in.
    open: Vec<Option<Open>>,
}

struct Open {
    file: usize,
    piece: usize,
    state: Box<Xxh3>,
}

impl Checksums {
    pub(crate) fn new(weights: &dyn Weights, streams: usize) -> Self {
        let of_nothing = Xxh3::new().digest128();
        let digests = weights.files().iter().map(|file| vec![of_nothing; file.pieces.len()]).collect();
        Self { digests, open: (0..streams).map(|_| None).collect() }
    }

    /// Takes in a block, the next of its stream. `bytes` are those of its read.
    pub(crate) fn add(&mut self, weights: &dyn Weights, stream: usize, block: &Block, bytes: &[u8]) {
        let pieces = &weights.files()[block.file].pieces;
        for piece in weights.files()[block.file].pieces_in(&block.window) {
            let range = &pieces[piece];
            let part = range.start.max(block.window.start)..range.end.min(block.window.end);
            if part.is_empty() {
                continue;
            }
            let from = (part.start - block.read.start) as usize;
            let part_bytes = &bytes[from..from + (part.end - part.start) as usize];
            let state = match self.open[stream].take() {
                Some(open) if (open.file, open.piece) == (block.file, piece) => Some(open.state),
                _ => None,
            };
            let mut state = state.unwrap_or_default();
            state.update(part_bytes);
            if part.end == range.end {
                self.digests[block.file][piece] = state.digest128();
            } else {
                self.open[stream] = Some(Open { file: block.file, piece, state });
            }
        }
    }

    /// Writes the manifest, or compares with it if it is there; says which.
    pub(crate) fn settle(&self, weights: &dyn Weights, path: &Path, partial: bool) -> Result<Manifest, LoadError> {
        let fail = |source| LoadError::Manifest { path: path.to_owned(), source };
        match File::open(path) {
            Ok(file) => self.compare(weights, path, BufReader::new(file), partial),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.write(weights, path).map_err(fail)?;
                Ok(Manifest::Written)
            }
            Err(error) => Err(fail(error)),
        }
    }

    fn tensors<'a>(&'a self, weights: &'a dyn Weights) -> impl Iterator<Item = (usize, usize, u128, u64)> + 'a {
        self.digests.iter().enumerate().flat_map(move |(file, digests)| {
            let pieces = weights.files()[file].pieces.iter();
            let of = move |((piece, digest), range): ((usize, &u128), &std::ops::Range<u64>)| {
                (file, piece, *digest, range.end - range.start)
            };
            digests.iter().enumerate().zip(pieces).map(of)
        })
    }

    /// Beside its place first, so that it is there whole or not at all.
    fn write(&self, weights: &dyn Weights, path: &Path) -> io::Result<()> {
        let beside = PathBuf::from(format!("{}.part", path.display()));
        let mut out = BufWriter::new(File::create(&beside)?);
        let mut write = || {
            writeln!(out, "{HEADER}")?;
            for (file, piece, digest, bytes) in self.tensors(weights) {
                writeln!(out, "{digest:032x} {bytes} {}", weights.name(file, piece))?;
            }
            out.flush()?;
            fs::rename(&beside, path)
        };
        write().inspect_err(|_| _ = fs::remove_file(&beside))
    }

    fn compare(
        &self,
        weights: &dyn Weights,
        path: &Path,
        manifest: impl BufRead,
        partial: bool,
    ) -> Result<Manifest, LoadError> {
        let mut listed = parse(manifest).map_err(|source| LoadError::Manifest { path: path.to_owned(), source })?;
        let mut tensors = 0;
        for (file, piece, digest, bytes) in self.tensors(weights) {
            let tensor = weights.name(file, piece);
            let found = Some((digest, bytes));
            let expected = listed.remove(&tensor);
            if expected != found {
                let show = |entry: Option<(u128, u64)>| {
                    entry.map_or("not listed".to_owned(), |(digest, bytes)| format!("{digest:032x} ({bytes} bytes)"))
                };
                return Err(LoadError::Checksum {
                    tensor,
                    path: weights.files()[file].path.clone(),
                    found: show(found),
                    expected: show(expected),
                });
            }
            tensors += 1;
        }
        match listed.into_keys().min() {
            Some(tensor) if !partial => Err(LoadError::ChecksumOfNothing { tensor, path: path.to_owned() }),
            _ => Ok(Manifest::Compared { tensors }),
        }
    }
}

/// What became of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// There was none: it was written.
    Written,
    /// All of so many tensors are what it says.
    Compared {
        /// How many.
        tensors: usize,
    },
}

fn parse(mut manifest: impl BufRead) -> io::Result<HashMap<String, (u128, u64)>> {
    let mut listed = HashMap::new();
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        if io::Read::take(&mut manifest, LONGEST_LINE).read_line(&mut line)? == 0 {
            break;
        }
        let Some(text) = line.strip_suffix('\n') else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("line {number} is cut or too long")));
        };
        if text.starts_with('#') {
            continue;
        }
        let mut words = text.splitn(3, ' ');
        let (digest, bytes, name) = (words.next(), words.next(), words.next());
        let digest = digest.filter(|d| d.len() == 32).and_then(|digest| u128::from_str_radix(digest, 16).ok());
        let entry = digest.zip(bytes.and_then(|bytes| bytes.parse().ok())).zip(name);
        let Some((value, name)) = entry else {
            let problem = format!("line {number} is not a digest, a length and a name");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        };
        if listed.insert(name.to_owned(), value).is_some() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("line {number} names {name} again")));
        }
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_is_none_is_refused_by_line() {
        let good = format!("{HEADER}\n{:032x} 4 a\n", 7);
        assert_eq!(parse(good.as_bytes()).unwrap()["a"], (7, 4));
        let digest = format!("{:032x}", 7);
        for bad in
            ["x 4 a\n", "7 4 a\n", &format!("{digest} -4 a\n"), &format!("{digest} 4\n"), &format!("{digest} 4 a")]
        {
            let error = parse(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("line 1"), "{bad}: {error}");
        }
        let twice = format!("{digest} 4 a\n{digest} 4 a\n");
        assert!(parse(twice.as_bytes()).unwrap_err().to_string().contains("line 2 names a again"));
        let long = format!("{digest} 4 {}\n", "a".repeat(1 << 20));
        assert!(parse(long.as_bytes()).is_err());
    }
}
