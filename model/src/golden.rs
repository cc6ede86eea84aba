//! K3-nano and its golden files: what an independent FP32 reference says about a small trained checkpoint.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::chat::Request;
use crate::checkpoint::{HeaderError, parse_header};
use crate::tensor::Dtype;

/// Longest golden file, in bytes.
const LIMIT: u64 = 1 << 28;

/// Folder of the K3-nano checkpoint in this repository.
pub fn k3_nano() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano")
}

/// Why golden files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// The system failed.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A JSON file has another form.
    #[error("golden file is not of its form: {0}")]
    Parse(#[from] serde_json::Error),
    /// The trace has a bad header.
    #[error("golden trace: {0}")]
    ParseTrace(#[from] HeaderError),
    /// The trace has no such tensor, or one of another type.
    #[error("the golden trace has no {dtype:?} tensor {name:?}")]
    FindTensor {
        /// Name asked for.
        name: String,
        /// Type asked for.
        dtype: Dtype,
    },
}

fn read(folder: &Path, name: &str) -> Result<Vec<u8>, GoldenError> {
    let path = folder.join("golden").join(name);
    crate::file::read(&path, LIMIT).map_err(|source| GoldenError::Read { path, source })
}

/// A request, its prompt, and the greedy reply.
#[derive(Clone, Debug, Deserialize)]
pub struct GreedyCase {
    /// Name of the case.
    pub name: String,
    /// The request.
    pub request: Request,
    /// What rendering and encoding must give.
    pub prompt_tokens: Vec<u32>,
    /// What greedy decoding must give, the stop token included.
    pub tokens: Vec<u32>,
    /// The same as text, markers spelled out.
    pub text: String,
    /// Least distance in logits between the best and the second-best token over all steps.
    pub min_top1_margin: f32,
}

/// The greedy cases of a checkpoint folder.
pub fn greedy(folder: &Path) -> Result<Vec<GreedyCase>, GoldenError> {
    Ok(serde_json::from_slice(&read(folder, "greedy.json")?)?)
}

/// Held-out documents with their likelihoods.
#[derive(Clone, Debug, Deserialize)]
pub struct Perplexity {
    /// The documents.
    pub documents: Vec<Document>,
    /// Mean negative log-likelihood of all predicted tokens, in nats.
    pub mean_nll: f64,
    /// Number of predicted tokens.
    pub predicted: usize,
}

/// One held-out document.
#[derive(Clone, Debug, Deserialize)]
pub struct Document {
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Summed negative log-likelihood of all but the first, in nats.
    pub nll_sum: f64,
    /// Number of predicted tokens: all but the first.
    pub predicted: usize,
}

/// The perplexity file of a checkpoint folder.
pub fn perplexity(folder: &Path) -> Result<Perplexity, GoldenError> {
    Ok(serde_json::from_slice(&read(folder, "perplexity.json")?)?)
}

/// Inputs, outputs and states of every block for one prompt.
#[derive(Clone, Debug)]
pub struct Trace {
    bytes: Vec<u8>,
}

/// A tensor of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceTensor {
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Values, row by row.
    pub values: Vec<f32>,
}

impl Trace {
    /// The trace of a checkpoint folder.
    pub fn read(folder: &Path) -> Result<Self, GoldenError> {
        let trace = Self { bytes: read(folder, "trace.safetensors")? };
        parse_header(&trace.bytes, trace.bytes.len() as u64)?;
        Ok(trace)
    }

    /// Names of all tensors.
    pub fn names(&self) -> Result<Vec<String>, GoldenError> {
        let header = parse_header(&self.bytes, self.bytes.len() as u64)?;
        Ok(header.tensors.iter().map(|tensor| tensor.name.to_string()).collect())
    }

    /// The prompt.
    pub fn ids(&self) -> Result<Vec<u32>, GoldenError> {
        let (_, bytes) = self.find("ids", Dtype::I64)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|id| i64::from_le_bytes(*id) as u32).collect())
    }

    /// A tensor of F32 values.
    pub fn tensor(&self, name: &str) -> Result<TraceTensor, GoldenError> {
        let (shape, bytes) = self.find(name, Dtype::F32)?;
        let values = bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
        Ok(TraceTensor { shape, values })
    }

    fn find(&self, name: &str, dtype: Dtype) -> Result<(Vec<usize>, &[u8]), GoldenError> {
        let header = parse_header(&self.bytes, self.bytes.len() as u64)?;
        let tensor = header.tensors.into_iter().find(|tensor| tensor.name == name && tensor.dtype == dtype);
        let tensor = tensor.ok_or_else(|| GoldenError::FindTensor { name: name.to_owned(), dtype })?;
        let shape = tensor.shape.iter().map(|dim| *dim as usize).collect();
        Ok((shape, &self.bytes[tensor.begin as usize..tensor.end as usize]))
    }
}
