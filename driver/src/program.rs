//! A code object in GPU memory, and the packets and arguments that launch its kernels.

use std::sync::Arc;

use firmware_tools::code_object::{self, CodeObject, Kernel, SymbolKind, ValueKind};

use crate::Gpu;
use crate::address::{Bytes, GpuVa};
use crate::memory::{self, Access, Allocation, Buffer};
use crate::packets::aql::{FenceScope, KernelDispatch};
use crate::queue::ScratchLayout;

/// Why a code object can't be loaded or a kernel of it launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no code object for this GPU, or have no such kernel.
    #[error(transparent)]
    CodeObject(#[from] code_object::Error),
    /// GPU memory for it.
    #[error("loading a code object: {0}")]
    Memory(#[from] memory::Error),
    /// A hidden argument that only a full language runtime can provide.
    #[error("kernel {kernel} takes the hidden argument {kind}, which needs a language runtime behind it")]
    HiddenArgument {
        /// Which kernel.
        kernel: String,
        /// Which argument.
        kind: String,
    },
    /// More scratch than the hardware addresses.
    #[error("{bytes} bytes of scratch a work-item are more than a wave can have")]
    Scratch {
        /// Bytes asked for.
        bytes: u32,
    },
    /// The arguments don't fit the kernel.
    #[error("kernel {kernel} takes {expected} bytes of arguments, {found} were given")]
    ArgumentBytes {
        /// Which kernel.
        kernel: String,
        /// Bytes it takes, hidden arguments included.
        expected: u32,
        /// Bytes given.
        found: u32,
    },
}

/// A loaded code object. The memory lives as long as this does, so it must outlive all launches.
pub struct Program {
    object: CodeObject,
    memory: Buffer,
}

/// Grid and workgroup of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// Workgroups per dimension.
    pub workgroups: [u32; 3],
    /// Work-items of a workgroup per dimension.
    pub workgroup: [u16; 3],
}

impl Dimensions {
    /// A grid in one dimension.
    #[must_use]
    pub const fn linear(workgroups: u32, workgroup: u16) -> Self {
        Self { workgroups: [workgroups, 1, 1], workgroup: [workgroup, 1, 1] }
    }

    /// Work-items of the whole grid per dimension.
    #[must_use]
    pub fn items(&self) -> [u32; 3] {
        std::array::from_fn(|d| self.workgroups[d] * u32::from(self.workgroup[d]))
    }
}

impl Program {
    /// Copies the code object to memory of `gpu`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn load(gpu: &Arc<Gpu>, bytes: &[u8]) -> Result<Self, Error> {
        let object = CodeObject::parse(bytes)?;
        let wanted = Allocation::vram(Bytes::new(object.image().len()), "code").with(Access::HOST | Access::EXECUTE);
        let memory = gpu.allocate(&wanted)?;
        memory.host()?.write(0, &object.image().at(memory.va().get())?)?;
        let system = gpu.process().kfd().system();
        for (name, symbol) in object.symbols().filter(|(_, symbol)| symbol.kind == SymbolKind::Function) {
            system.name_memory(GpuVa::new(memory.va().get() + symbol.offset), Bytes::new(symbol.bytes), name);
        }
        Ok(Self { object, memory })
    }

    /// The kernel called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn kernel(&self, name: &str) -> Result<&Kernel, Error> {
        Ok(self.object.kernel(name)?)
    }

    /// Where the kernel's descriptor is: what a dispatch packet names it by.
    #[must_use]
    pub fn kernel_object(&self, kernel: &Kernel) -> GpuVa {
        GpuVa::new(self.memory.va().get() + kernel.descriptor_offset)
    }

    /// The packet that launches `kernel` with the arguments at `kernargs`. It waits for earlier packets of the queue and
    /// acquires and releases at system scope; `completion_signal` is null.
    #[must_use]
    pub fn dispatch(
        &self,
        kernel: &Kernel,
        dimensions: &Dimensions,
        dynamic_lds: Bytes,
        kernargs: GpuVa,
    ) -> KernelDispatch {
        let [grid_size_x, grid_size_y, grid_size_z] = dimensions.items();
        let [workgroup_size_x, workgroup_size_y, workgroup_size_z] = dimensions.workgroup;
        KernelDispatch {
            barrier: true,
            acquire: FenceScope::System,
            release: FenceScope::System,
            dimensions: 3,
            workgroup_size_x,
            workgroup_size_y,
            workgroup_size_z,
            grid_size_x,
            grid_size_y,
            grid_size_z,
            private_segment_size: kernel.descriptor.private_segment_fixed_size,
            group_segment_size: kernel.descriptor.group_segment_fixed_size + dynamic_lds.get() as u32,
            kernel_object: self.kernel_object(kernel),
            kernarg_address: kernargs,
            completion_signal: GpuVa::NULL,
        }
    }
}

/// Scratch memory for dispatches of up to `bytes` a work-item, and its layout; `None` for kernels without.
///
/// # Errors
/// It is more than a wave can have, or than the GPU.
pub fn allocate_scratch(gpu: &Arc<Gpu>, bytes: u32) -> Result<Option<(ScratchLayout, Buffer)>, Error> {
    if bytes == 0 {
        return Ok(None);
    }
    let layout = ScratchLayout::new(gpu.node(), bytes).ok_or(Error::Scratch { bytes })?;
    let memory = gpu.allocate(&Allocation::vram(layout.total, "scratch"))?;
    Ok(Some((layout, memory)))
}

/// Fills the hidden arguments of `kernel` in `kernargs` (AMDGPUUsage, "Code Object V5 Metadata").
///
/// Those that name services of a language runtime (heap, printf, host calls) are left zero if a kernel may do without
/// them, as ROCr's clients leave them.
///
/// # Errors
/// The segment is too short, or a hidden argument has a kind this runtime does not know.
pub fn fill_hidden_arguments(
    kernel: &Kernel,
    dimensions: &Dimensions,
    dynamic_lds: Bytes,
    queue: GpuVa,
    kernargs: &mut [u8],
) -> Result<(), Error> {
    let expected = kernel.metadata.kernarg_segment_size;
    if kernargs.len() < expected as usize {
        let (kernel, found) = (kernel.name.clone(), kernargs.len() as u32);
        return Err(Error::ArgumentBytes { kernel, expected, found });
    }
    let grid_dims = 3 - dimensions.workgroups.iter().rev().take_while(|&&n| n == 1).count().min(2) as u64;
    for argument in kernel.metadata.arguments.iter().filter(|argument| argument.kind.is_hidden()) {
        let count = |d: usize| u64::from(dimensions.workgroups[d]);
        let size = |d: usize| u64::from(dimensions.workgroup[d]);
        let value = match argument.kind {
            ValueKind::HiddenBlockCountX => count(0),
            ValueKind::HiddenBlockCountY => count(1),
            ValueKind::HiddenBlockCountZ => count(2),
            ValueKind::HiddenGroupSizeX => size(0),
            ValueKind::HiddenGroupSizeY => size(1),
            ValueKind::HiddenGroupSizeZ => size(2),
            ValueKind::HiddenGridDims => grid_dims,
            // The high halves of the aperture bases of gfx9 (`kfd_flat_memory.c`).
            ValueKind::HiddenPrivateBase => 2 << 16,
            ValueKind::HiddenSharedBase => 1 << 16,
            ValueKind::HiddenQueuePtr => queue.get(),
            ValueKind::HiddenDynamicLdsSize => dynamic_lds.get(),
            // Whole workgroups only, no offsets, and no runtime services.
            ValueKind::HiddenRemainderX
            | ValueKind::HiddenRemainderY
            | ValueKind::HiddenRemainderZ
            | ValueKind::HiddenGlobalOffsetX
            | ValueKind::HiddenGlobalOffsetY
            | ValueKind::HiddenGlobalOffsetZ
            | ValueKind::HiddenNone
            | ValueKind::HiddenPrintfBuffer
            | ValueKind::HiddenHostcallBuffer
            | ValueKind::HiddenDefaultQueue
            | ValueKind::HiddenCompletionAction
            | ValueKind::HiddenMultigridSyncArg
            | ValueKind::HiddenHeapV1 => 0,
            _ => {
                let (kernel, kind) = (kernel.name.clone(), argument.kind.text().to_string());
                return Err(Error::HiddenArgument { kernel, kind });
            }
        };
        let bytes = value.to_le_bytes();
        let size = argument.size.min(8) as usize;
        kernargs[argument.offset as usize..][..size].copy_from_slice(&bytes[..size]);
    }
    Ok(())
}
