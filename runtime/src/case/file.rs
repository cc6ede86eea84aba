//! `case.json`: read into an unverified form, then checked.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::compare::ElementType;

/// Bytes that one buffer of a case may have: a typo should not take the host's memory.
const MAX_BUFFER_BYTES: u64 = 1 << 36;

/// A case that can be run.
#[derive(Debug)]
pub struct Case {
    /// Label.
    pub name: String,
    /// The code object's bytes.
    pub code_object: Vec<u8>,
    /// Name of the kernel in it.
    pub entry: String,
    /// Workgroups per dimension.
    pub grid_workgroups: [u32; 3],
    /// Work-items of a workgroup per dimension.
    pub workgroup: [u16; 3],
    /// LDS on top of the kernel's own, in bytes.
    pub dynamic_lds_bytes: u32,
    /// Size of the kernel-argument segment.
    pub kernarg_bytes: u32,
    /// Arguments.
    pub arguments: Vec<KernelArgument>,
    /// What buffers hold afterwards.
    pub expect: Vec<Expectation>,
    /// How close.
    pub tolerance: Tolerance,
}

/// One kernel argument.
#[derive(Debug)]
pub struct KernelArgument {
    /// Name, unique in the case.
    pub name: String,
    /// Byte offset in the kernel-argument segment.
    pub offset: u32,
    /// What is passed.
    pub value: Value,
}

/// What an argument passes.
#[derive(Debug)]
pub enum Value {
    /// The address of a device buffer of `bytes` bytes that starts out as `content`, rest zero.
    Buffer {
        /// Size.
        bytes: u64,
        /// Initial content.
        content: Vec<u8>,
        /// Type of its elements, if the case says.
        element: Option<ElementType>,
    },
    /// A null address.
    Null,
    /// Bytes as they are.
    Scalar(Vec<u8>),
}

/// What one buffer must hold.
#[derive(Debug)]
pub struct Expectation {
    /// Index into [`Case::arguments`].
    pub argument: usize,
    /// Expected bytes.
    pub content: Vec<u8>,
    /// Type of the expected elements.
    pub element: ElementType,
}

/// The largest error allowed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Tolerance {
    /// Absolute.
    Abs(f64),
    /// Relative to the largest absolute expected value.
    RelToMax(f64),
}

/// Why a folder is no case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file can't be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// `case.json` is no JSON of the right form.
    #[error("{path}: {error}")]
    Json {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// A field makes no sense.
    #[error("{path}: {problem}")]
    Field {
        /// Which file.
        path: PathBuf,
        /// Which field, and what is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
struct RawCase {
    name: String,
    hsaco: String,
    entry: String,
    grid_workgroups: [u32; 3],
    workgroup: [u16; 3],
    #[serde(default)]
    grid_items: Option<[u64; 3]>,
    #[serde(default)]
    dynamic_lds_bytes: u32,
    kernarg_bytes: u32,
    kernargs: Vec<RawArgument>,
    expect: Vec<RawExpectation>,
    tolerance: Tolerance,
}

#[derive(Deserialize)]
struct RawArgument {
    arg: String,
    offset: u32,
    size: u32,
    kind: String,
    file: Option<String>,
    bytes: Option<u64>,
    #[serde(default)]
    zeroed: bool,
    hex: Option<String>,
    dtype: Option<String>,
}

#[derive(Deserialize)]
struct RawExpectation {
    arg: String,
    file: String,
    dtype: String,
    shape: Vec<u64>,
}

impl Case {
    /// Reads the case in `folder`.
    ///
    /// # Errors
    /// What about it is missing or makes no sense.
    pub fn read(folder: &Path) -> Result<Self, CaseError> {
        let path = folder.join("case.json");
        let raw: RawCase =
            serde_json::from_slice(&read(&path)?).map_err(|error| CaseError::Json { path: path.clone(), error })?;
        let field = |problem: String| CaseError::Field { path: path.clone(), problem };
        if let Some(items) = raw.grid_items {
            let product = |d: usize| u64::from(raw.grid_workgroups[d]) * u64::from(raw.workgroup[d]);
            if items != [product(0), product(1), product(2)] {
                return Err(field("grid_items is not grid_workgroups times workgroup".into()));
            }
        }
        if raw.grid_workgroups.contains(&0) || raw.workgroup.contains(&0) {
            return Err(field("a grid or workgroup of zero".into()));
        }
        if (0..3).any(|d| raw.grid_workgroups[d].checked_mul(raw.workgroup[d].into()).is_none()) {
            return Err(field("grid_workgroups times workgroup does not fit 32 bits".into()));
        }
        let (Tolerance::Abs(bound) | Tolerance::RelToMax(bound)) = raw.tolerance;
        if bound < 0.0 {
            return Err(field("a tolerance below zero".into()));
        }
        let arguments = raw
            .kernargs
            .iter()
            .map(|argument| argument.verify(folder, raw.kernarg_bytes, &field))
            .collect::<Result<Vec<_>, _>>()?;
        let expect = raw
            .expect
            .iter()
            .map(|expectation| expectation.verify(folder, &arguments, &field))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name: raw.name,
            code_object: read(&inside(folder, &raw.hsaco, &field)?)?,
            entry: raw.entry,
            grid_workgroups: raw.grid_workgroups,
            workgroup: raw.workgroup,
            dynamic_lds_bytes: raw.dynamic_lds_bytes,
            kernarg_bytes: raw.kernarg_bytes,
            arguments,
            expect,
            tolerance: raw.tolerance,
        })
    }
}

impl RawArgument {
    fn verify(
        &self,
        folder: &Path,
        kernarg_bytes: u32,
        field: &impl Fn(String) -> CaseError,
    ) -> Result<KernelArgument, CaseError> {
        let refuse = |problem: &str| Err(field(format!("argument {}: {problem}", self.arg)));
        if self.offset.checked_add(self.size).is_none_or(|end| end > kernarg_bytes) {
            return refuse("lies outside kernarg_bytes");
        }
        let value = match self.kind.as_str() {
            "buffer" => {
                let Some(bytes) = self.bytes else { return refuse("a buffer needs `bytes`") };
                if bytes == 0 || bytes > MAX_BUFFER_BYTES {
                    return refuse("`bytes` must be 1 to 64 GiB");
                }
                if self.size != 8 {
                    return refuse("a buffer's address has size 8");
                }
                let content = match &self.file {
                    Some(file) => read(&inside(folder, file, field)?)?,
                    None if self.zeroed => Vec::new(),
                    None => return refuse("a buffer needs `file` or `zeroed`"),
                };
                if content.len() as u64 > bytes {
                    return refuse("its file is longer than `bytes`");
                }
                // Only a buffer that is compared needs a type that is known here.
                let element = self.dtype.as_deref().and_then(|dtype| dtype.parse().ok());
                Value::Buffer { bytes, content, element }
            }
            "null_pointer" => Value::Null,
            _ => {
                let bytes = self.hex.as_deref().and_then(unhex);
                match bytes {
                    Some(bytes) if bytes.len() == self.size as usize => Value::Scalar(bytes),
                    _ => return refuse("a scalar needs `hex` of `size` bytes"),
                }
            }
        };
        Ok(KernelArgument { name: self.arg.clone(), offset: self.offset, value })
    }
}

impl RawExpectation {
    fn verify(
        &self,
        folder: &Path,
        arguments: &[KernelArgument],
        field: &impl Fn(String) -> CaseError,
    ) -> Result<Expectation, CaseError> {
        let refuse = |problem: String| Err(field(format!("expectation of {}: {problem}", self.arg)));
        let element: ElementType = self.dtype.parse().map_err(field)?;
        let content = read(&inside(folder, &self.file, field)?)?;
        let elements = self.shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let Some(bytes) = elements.and_then(|n| n.checked_mul(element.bytes() as u64)) else {
            return refuse(format!("shape {:?} is too large", self.shape));
        };
        if bytes != content.len() as u64 {
            return refuse(format!("{} has {} bytes, shape and dtype say {bytes}", self.file, content.len()));
        }
        let Some(argument) = arguments.iter().position(|argument| argument.name == self.arg) else {
            return refuse("there is no such argument".into());
        };
        let Value::Buffer { bytes: held, element: own, .. } = &arguments[argument].value else {
            return refuse("the argument is no buffer".into());
        };
        // A narrower buffer is widened element by element before it is compared.
        let needed =
            elements.unwrap_or(0) * own.filter(|own| own.bytes() < element.bytes()).unwrap_or(element).bytes() as u64;
        if needed > *held {
            return refuse(format!("{needed} bytes are compared, the buffer has {held}"));
        }
        Ok(Expectation { argument, content, element })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CaseError> {
    std::fs::read(path).map_err(|error| CaseError::Read { path: path.into(), error })
}

/// The path of a file that the case names, which must lie in its folder.
fn inside(folder: &Path, name: &str, field: &impl Fn(String) -> CaseError) -> Result<PathBuf, CaseError> {
    let plain = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if name.is_empty() || !plain {
        return Err(field(format!("`{name}` is not a file in the case's folder")));
    }
    Ok(folder.join(name))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
