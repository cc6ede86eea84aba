//! The metadata note: what the compiler says about each kernel (AMDGPUUsage, "Code Object Metadata", v3 to v6).
//!
//! A msgpack map with `amdhsa.version`, `amdhsa.target` (from v4) and `amdhsa.kernels`, a list of maps.

use rmpv::Value;

use super::MAX_KERNELS;
use super::error::Error;
use super::target::Target;

/// Deepest nesting read: the format needs 5.
const MAX_DEPTH: usize = 16;
/// Longest note read, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Most arguments of a kernel, hidden ones included.
const MAX_ARGUMENTS: usize = 1 << 14;

/// What metadata says that cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// It is not msgpack, or nested deeper or longer than this crate reads.
    #[error("not readable as msgpack: {0}")]
    Msgpack(String),
    /// A key is missing, or holds something of another type or beyond 32 bits.
    #[error("{owner} has no usable {key} ({expected} expected)")]
    Key {
        /// The map: the root, a kernel, an argument.
        owner: String,
        /// Which key.
        key: &'static str,
        /// What it should hold.
        expected: &'static str,
    },
    /// A version of the metadata this crate does not know.
    #[error("metadata version {major}.{minor} is not supported: 1.0 to 1.2 are")]
    Version {
        /// First number.
        major: u32,
        /// Second number.
        minor: u32,
    },
    /// It names another GPU than the ELF header.
    #[error("it is for {metadata}, the ELF header is for {elf}")]
    Target {
        /// What the metadata names.
        metadata: String,
        /// What the header names.
        elf: String,
    },
    /// More kernels or arguments than this crate reads.
    #[error("{owner} has {found} entries in {key}, the limit is {limit}")]
    TooMany {
        /// The map.
        owner: String,
        /// Which list.
        key: &'static str,
        /// How many.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// An argument that lies outside the kernel arguments.
    #[error("argument {argument} of kernel {kernel} ends at byte {end}, the arguments at {size}")]
    ArgumentOutside {
        /// Which kernel.
        kernel: String,
        /// Number of the argument.
        argument: usize,
        /// Where it ends.
        end: u64,
        /// Where they all end.
        size: u32,
    },
    /// A number that cannot be what it says.
    #[error("kernel {kernel}: {key} is {value}")]
    Value {
        /// Which kernel.
        kernel: String,
        /// Which key.
        key: &'static str,
        /// What it holds.
        value: u32,
    },
}

/// What the compiler says about one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelMetadata {
    /// Name of the function.
    pub name: String,
    /// Name of the descriptor's symbol, usually the function's with `.kd`.
    pub symbol: String,
    /// Bytes of the kernel arguments, hidden ones included.
    pub kernarg_segment_size: u32,
    /// Alignment of the kernel arguments in bytes, a power of two.
    pub kernarg_segment_align: u32,
    /// LDS bytes of a workgroup, what a dispatch adds not included.
    pub group_segment_fixed_size: u32,
    /// Scratch bytes of a work-item.
    pub private_segment_fixed_size: u32,
    /// Work-items of a wave.
    pub wavefront_size: u32,
    /// Scalar registers of a wave.
    pub sgpr_count: u32,
    /// Vector registers of a work-item, AccVGPRs included.
    pub vgpr_count: u32,
    /// AccVGPRs among them; 0 if not stated.
    pub agpr_count: u32,
    /// Most work-items of a workgroup.
    pub max_flat_workgroup_size: u32,
    /// The only workgroup size it may be launched with, if it says one.
    pub required_workgroup_size: Option<[u32; 3]>,
    /// Whether the size of the stack is known only at run time.
    pub uses_dynamic_stack: bool,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Name in the source, if the compiler kept it.
    pub name: Option<String>,
    /// Byte offset in the kernel arguments.
    pub offset: u32,
    /// Length in bytes.
    pub size: u32,
    /// What goes there.
    pub kind: ValueKind,
    /// Whether the kernel may store through it: false if the compiler proved that it only loads.
    pub may_write: bool,
}

macro_rules! value_kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// What an argument holds (`.value_kind`).
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ValueKind {
            $($(#[$doc])* $variant,)*
            /// A kind newer than this crate. Hidden ones need the runtime's help, so a launch should refuse them.
            Other(String),
        }

        impl ValueKind {
            fn from_text(text: &str) -> Self {
                match text { $($text => Self::$variant,)* other => Self::Other(other.to_owned()) }
            }

            /// The word of the metadata.
            pub fn text(&self) -> &str {
                match self { $(Self::$variant => $text,)* Self::Other(text) => text }
            }
        }
    };
}

value_kinds! {
    /// The value itself.
    ByValue = "by_value",
    /// A 64-bit address.
    GlobalBuffer = "global_buffer",
    /// Bytes of LDS to add; the argument itself is not used.
    DynamicSharedPointer = "dynamic_shared_pointer",
    /// An OpenCL sampler.
    Sampler = "sampler",
    /// An OpenCL image.
    Image = "image",
    /// An OpenCL pipe.
    Pipe = "pipe",
    /// An OpenCL queue.
    Queue = "queue",
    /// OpenCL's global offset in x.
    HiddenGlobalOffsetX = "hidden_global_offset_x",
    /// OpenCL's global offset in y.
    HiddenGlobalOffsetY = "hidden_global_offset_y",
    /// OpenCL's global offset in z.
    HiddenGlobalOffsetZ = "hidden_global_offset_z",
    /// Unused.
    HiddenNone = "hidden_none",
    /// Buffer of printf.
    HiddenPrintfBuffer = "hidden_printf_buffer",
    /// Buffer of calls to the host.
    HiddenHostcallBuffer = "hidden_hostcall_buffer",
    /// Queue for enqueued kernels.
    HiddenDefaultQueue = "hidden_default_queue",
    /// Completion of enqueued kernels.
    HiddenCompletionAction = "hidden_completion_action",
    /// Multi-grid synchronisation.
    HiddenMultigridSyncArg = "hidden_multigrid_sync_arg",
    /// Device heap.
    HiddenHeapV1 = "hidden_heap_v1",
    /// Whole workgroups in x, u32.
    HiddenBlockCountX = "hidden_block_count_x",
    /// Whole workgroups in y, u32.
    HiddenBlockCountY = "hidden_block_count_y",
    /// Whole workgroups in z, u32.
    HiddenBlockCountZ = "hidden_block_count_z",
    /// Workgroup size in x, u16.
    HiddenGroupSizeX = "hidden_group_size_x",
    /// Workgroup size in y, u16.
    HiddenGroupSizeY = "hidden_group_size_y",
    /// Workgroup size in z, u16.
    HiddenGroupSizeZ = "hidden_group_size_z",
    /// Size of the last, partial workgroup in x, u16.
    HiddenRemainderX = "hidden_remainder_x",
    /// Size of the last, partial workgroup in y, u16.
    HiddenRemainderY = "hidden_remainder_y",
    /// Size of the last, partial workgroup in z, u16.
    HiddenRemainderZ = "hidden_remainder_z",
    /// Dimensions of the grid, u16.
    HiddenGridDims = "hidden_grid_dims",
    /// High half of the private aperture, u32.
    HiddenPrivateBase = "hidden_private_base",
    /// High half of the shared aperture, u32.
    HiddenSharedBase = "hidden_shared_base",
    /// Address of the queue.
    HiddenQueuePtr = "hidden_queue_ptr",
    /// LDS bytes the dispatch added, u32.
    HiddenDynamicLdsSize = "hidden_dynamic_lds_size",
}

impl ValueKind {
    /// Whether the runtime, not the caller, fills it in.
    pub fn is_hidden(&self) -> bool {
        self.text().starts_with("hidden_")
    }
}

/// Reads the kernels of a metadata note.
pub(super) fn parse(bytes: &[u8], target: Target) -> Result<Vec<KernelMetadata>, Error> {
    if bytes.len() > MAX_BYTES {
        let what = format!("{} bytes, the limit is {MAX_BYTES}", bytes.len());
        return Err(MetadataError::Msgpack(what).into());
    }
    let mut rest = bytes;
    let root = rmpv::decode::read_value_with_max_depth(&mut rest, MAX_DEPTH)
        .map_err(|error| MetadataError::Msgpack(error.to_string()))?;
    let root = Map::new(&root, || "the metadata".into(), "its root")?;
    check_version(&root)?;
    check_target(&root, target)?;
    let kernels = root.list("amdhsa.kernels", MAX_KERNELS)?;
    Ok(kernels
        .iter()
        .enumerate()
        .map(|(index, kernel)| kernel_of(&Map::new(kernel, || format!("kernel {index}"), "amdhsa.kernels")?))
        .collect::<Result<_, MetadataError>>()?)
}

fn check_version(root: &Map<'_>) -> Result<(), MetadataError> {
    match root.list("amdhsa.version", 2)? {
        [major, minor] => {
            let number =
                |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX);
            match (number(major), number(minor)) {
                (1, 0..=2) => Ok(()),
                (major, minor) => Err(MetadataError::Version { major, minor }),
            }
        }
        _ => Err(root.missing("amdhsa.version", "two numbers")),
    }
}

fn check_target(root: &Map<'_>, target: Target) -> Result<(), MetadataError> {
    // Version 3 has no such key; its target is the ELF header alone.
    let Some(metadata) = root.find("amdhsa.target") else { return Ok(()) };
    let metadata = metadata.as_str().ok_or_else(|| root.missing("amdhsa.target", "text"))?;
    let id = target.to_string();
    // Architecture, vendor, system, environment, processor. LLVM up to 22 writes `amdgcn-amd-amdhsa--gfx950`; LLVM 24, which
    // Triton 3.9 builds with, `amdgpu9.50-amd-amdhsa-unknown-gfx950`.
    let is_same = match metadata.splitn(5, '-').collect::<Vec<_>>()[..] {
        [architecture, "amd", "amdhsa", "" | "unknown", named] => {
            (architecture == "amdgcn" || architecture.starts_with("amdgpu")) && named == id
        }
        _ => false,
    };
    if is_same {
        Ok(())
    } else {
        Err(MetadataError::Target { metadata: metadata.into(), elf: format!("amdgcn-amd-amdhsa--{id}") })
    }
}

fn kernel_of(map: &Map<'_>) -> Result<KernelMetadata, MetadataError> {
    let name = map.text(".name")?.to_owned();
    let size = map.number(".kernarg_segment_size")?;
    let empty = [];
    let arguments = if map.find(".args").is_some() { map.list(".args", MAX_ARGUMENTS)? } else { &empty };
    let arguments = arguments
        .iter()
        .enumerate()
        .map(|(index, value)| argument_of(&name, index, size, value))
        .collect::<Result<_, _>>()?;
    let kernel = KernelMetadata {
        symbol: map.text(".symbol")?.to_owned(),
        kernarg_segment_size: size,
        kernarg_segment_align: map.number(".kernarg_segment_align")?,
        group_segment_fixed_size: map.number(".group_segment_fixed_size")?,
        private_segment_fixed_size: map.number(".private_segment_fixed_size")?,
        wavefront_size: map.number(".wavefront_size")?,
        sgpr_count: map.number(".sgpr_count")?,
        vgpr_count: map.number(".vgpr_count")?,
        agpr_count: map.optional(".agpr_count")?.unwrap_or(0),
        max_flat_workgroup_size: map.number(".max_flat_workgroup_size")?,
        required_workgroup_size: map.triple(".reqd_workgroup_size")?,
        uses_dynamic_stack: map.find(".uses_dynamic_stack").and_then(Value::as_bool).unwrap_or(false),
        arguments,
        name,
    };
    let refuse = |key, value| Err(MetadataError::Value { kernel: kernel.name.clone(), key, value });
    if !kernel.kernarg_segment_align.is_power_of_two() || kernel.kernarg_segment_align > 4096 {
        return refuse(".kernarg_segment_align", kernel.kernarg_segment_align);
    }
    if kernel.wavefront_size != 64 {
        return refuse(".wavefront_size", kernel.wavefront_size);
    }
    if kernel.vgpr_count > 512 {
        return refuse(".vgpr_count", kernel.vgpr_count);
    }
    if !(1..=1024).contains(&kernel.max_flat_workgroup_size) {
        return refuse(".max_flat_workgroup_size", kernel.max_flat_workgroup_size);
    }
    Ok(kernel)
}

fn argument_of(kernel: &str, index: usize, kernarg_size: u32, value: &Value) -> Result<Argument, MetadataError> {
    let map = Map::new(value, || format!("argument {index} of kernel {kernel}"), ".args")?;
    let (offset, size) = (map.number(".offset")?, map.number(".size")?);
    let end = u64::from(offset) + u64::from(size);
    if end > kernarg_size.into() {
        let kernel = kernel.to_owned();
        return Err(MetadataError::ArgumentOutside { kernel, argument: index, end, size: kernarg_size });
    }
    let access = map.find(".actual_access").or_else(|| map.find(".access")).and_then(Value::as_str);
    Ok(Argument {
        name: map.find(".name").and_then(Value::as_str).map(str::to_owned),
        offset,
        size,
        kind: ValueKind::from_text(map.text(".value_kind")?),
        may_write: access != Some("read_only"),
    })
}

/// A map with text keys, and a name for messages.
struct Map<'a> {
    entries: &'a [(Value, Value)],
    owner: Box<dyn Fn() -> String + 'a>,
}

impl<'a> Map<'a> {
    fn new(value: &'a Value, owner: impl Fn() -> String + 'a, key: &'static str) -> Result<Self, MetadataError> {
        let owner = Box::new(owner);
        match value.as_map() {
            Some(entries) => Ok(Self { entries, owner }),
            None => Err(MetadataError::Key { owner: owner(), key, expected: "a map" }),
        }
    }

    fn missing(&self, key: &'static str, expected: &'static str) -> MetadataError {
        MetadataError::Key { owner: (self.owner)(), key, expected }
    }

    fn find(&self, key: &str) -> Option<&'a Value> {
        self.entries.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    fn text(&self, key: &'static str) -> Result<&'a str, MetadataError> {
        self.find(key).and_then(Value::as_str).ok_or_else(|| self.missing(key, "text"))
    }

    fn optional(&self, key: &'static str) -> Result<Option<u32>, MetadataError> {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        match self.find(key) {
            Some(value) => number(value).map(Some).ok_or_else(|| self.missing(key, "a 32-bit number")),
            None => Ok(None),
        }
    }

    fn number(&self, key: &'static str) -> Result<u32, MetadataError> {
        self.optional(key)?.ok_or_else(|| self.missing(key, "a 32-bit number"))
    }

    fn triple(&self, key: &'static str) -> Result<Option<[u32; 3]>, MetadataError> {
        let Some(value) = self.find(key) else { return Ok(None) };
        let numbers = value.as_array().and_then(|list| {
            list.iter().map(|n| n.as_u64().and_then(|n| u32::try_from(n).ok())).collect::<Option<Vec<_>>>()
        });
        let triple = numbers.and_then(|numbers| numbers.try_into().ok());
        triple.map(Some).ok_or_else(|| self.missing(key, "three 32-bit numbers"))
    }

    fn list(&self, key: &'static str, limit: usize) -> Result<&'a [Value], MetadataError> {
        let list = self.find(key).and_then(Value::as_array).ok_or_else(|| self.missing(key, "a list"))?;
        if list.len() > limit {
            return Err(MetadataError::TooMany { owner: (self.owner)(), key, found: list.len(), limit });
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FeatureSetting, Processor};
    use super::*;

    const TARGET: Target =
        Target { processor: Processor::Gfx950, xnack: FeatureSetting::Any, sramecc: FeatureSetting::Any };

    fn map(entries: Vec<(&str, Value)>) -> Value {
        Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    fn kernel(change: impl FnOnce(&mut Vec<(&'static str, Value)>)) -> Value {
        let mut entries = vec![
            (".name", "k".into()),
            (".symbol", "k.kd".into()),
            (".kernarg_segment_size", 16.into()),
            (".kernarg_segment_align", 8.into()),
            (".group_segment_fixed_size", 0.into()),
            (".private_segment_fixed_size", 0.into()),
            (".wavefront_size", 64.into()),
            (".sgpr_count", 14.into()),
            (".vgpr_count", 8.into()),
            (".max_flat_workgroup_size", 256.into()),
        ];
        change(&mut entries);
        map(entries)
    }

    fn note(kernel: Value) -> Vec<u8> {
        note_for("amdgcn-amd-amdhsa--gfx950", kernel)
    }

    fn note_for(target: &str, kernel: Value) -> Vec<u8> {
        let root = map(vec![
            ("amdhsa.version", Value::Array(vec![1.into(), 2.into()])),
            ("amdhsa.target", target.into()),
            ("amdhsa.kernels", Value::Array(vec![kernel])),
        ]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &root).unwrap();
        bytes
    }

    fn refusal(change: impl FnOnce(&mut Vec<(&'static str, Value)>)) -> String {
        parse(&note(kernel(change)), TARGET).unwrap_err().to_string()
    }

    fn set(entries: &mut Vec<(&'static str, Value)>, key: &'static str, value: impl Into<Value>) {
        entries.retain(|(name, _)| *name != key);
        entries.push((key, value.into()));
    }

    #[test]
    fn a_kernel_with_every_kind_of_argument_is_read() {
        let argument = |offset: u32, kind: &str| {
            map(vec![(".offset", offset.into()), (".size", 4.into()), (".value_kind", kind.into())])
        };
        let kinds = ["by_value", "global_buffer", "hidden_block_count_x", "hidden_from_the_future"];
        let arguments = kinds.iter().zip([0, 4, 8, 12]).map(|(kind, offset)| argument(offset, kind)).collect();
        let read = parse(&note(kernel(|entries| set(entries, ".args", Value::Array(arguments)))), TARGET).unwrap();
        let read: Vec<_> = read[0].arguments.iter().map(|argument| argument.kind.clone()).collect();
        assert_eq!(read[..3], [ValueKind::ByValue, ValueKind::GlobalBuffer, ValueKind::HiddenBlockCountX]);
        assert_eq!(read[3], ValueKind::Other("hidden_from_the_future".into()));
        assert_eq!(read.iter().map(ValueKind::is_hidden).collect::<Vec<_>>(), [false, false, true, true]);
        assert_eq!(read.iter().map(ValueKind::text).collect::<Vec<_>>(), kinds);
    }

    #[test]
    fn the_target_is_read_as_old_and_new_compilers_write_it() {
        let read = |target| parse(&note_for(target, kernel(|_| {})), TARGET).is_ok();
        for target in
            ["amdgcn-amd-amdhsa--gfx950", "amdgcn-amd-amdhsa-unknown-gfx950", "amdgpu9.50-amd-amdhsa-unknown-gfx950"]
        {
            assert!(read(target), "{target}");
        }
        for target in
            ["amdgcn-amd-amdhsa--gfx942", "amdgcn-amd-amdpal--gfx950", "nvptx64-amd-amdhsa--gfx950", "gfx950", ""]
        {
            assert!(!read(target), "{target}");
        }
    }

    #[test]
    fn what_is_missing_or_impossible_is_named() {
        assert!(refusal(|e| e.retain(|(key, _)| *key != ".symbol")).contains("kernel 0 has no usable .symbol"));
        assert!(refusal(|e| set(e, ".vgpr_count", 513)).contains(".vgpr_count is 513"));
        assert!(refusal(|e| set(e, ".wavefront_size", 32)).contains(".wavefront_size is 32"));
        assert!(refusal(|e| set(e, ".kernarg_segment_align", 3)).contains(".kernarg_segment_align is 3"));
        assert!(refusal(|e| set(e, ".max_flat_workgroup_size", 0)).contains(".max_flat_workgroup_size is 0"));
        assert!(refusal(|e| set(e, ".sgpr_count", u64::MAX)).contains(".sgpr_count (a 32-bit number expected)"));
        let outside = map(vec![(".offset", 12.into()), (".size", 8.into()), (".value_kind", "by_value".into())]);
        let outside = Value::Array(vec![outside]);
        assert!(refusal(|e| set(e, ".args", outside)).contains("ends at byte 20, the arguments at 16"));
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let deep = vec![0x91; 100_000];
        assert!(matches!(parse(&deep, TARGET), Err(Error::Metadata(MetadataError::Msgpack(_)))));
    }

    #[test]
    fn another_target_or_version_than_the_elf_header_s_is_refused() {
        let gfx942 = Target { processor: Processor::Gfx942, ..TARGET };
        let error = parse(&note(kernel(|_| ())), gfx942).unwrap_err().to_string();
        assert!(error.contains("amdgcn-amd-amdhsa--gfx950") && error.contains("gfx942"), "{error}");
        let mut bytes = Vec::new();
        let version = Value::Array(vec![2.into(), 0.into()]);
        rmpv::encode::write_value(&mut bytes, &map(vec![("amdhsa.version", version)])).unwrap();
        assert!(parse(&bytes, TARGET).unwrap_err().to_string().contains("version 2.0"));
    }
}
