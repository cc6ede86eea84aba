//! All of the crate's kernels in one GPU's memory.

use std::collections::HashMap;
use std::sync::Arc;

use driver::Gpu;
use driver::address::GpuVa;
use driver::program;
use firmware_tools::code_object::KernelDescriptor;
use kernels::Kernel;

use super::ib::Program;

/// Why the kernels can't be loaded.
#[derive(Debug, thiserror::Error)]
#[error("loading kernels/{name}.hsaco: {error}")]
pub struct ProgramsError {
    /// Which code object.
    pub name: &'static str,
    /// What is wrong.
    pub error: program::Error,
}

/// The loaded code objects of one GPU, and where each kernel is.
pub struct Programs {
    /// Keeps the code's memory.
    _programs: Vec<program::Program>,
    loaded: HashMap<&'static str, Loaded>,
}

/// A kernel in GPU memory.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    object: GpuVa,
    program: Program,
}

/// Which code objects to load: the committed ones, or in tests others in their place.
pub struct KernelSet<'a> {
    /// The code object to load for one of the crate's.
    pub bytes: &'a dyn Fn(&kernels::CodeObject) -> Vec<u8>,
    /// The name of one of the crate's kernels in it.
    pub symbol: &'a dyn Fn(&Kernel) -> String,
}

impl Default for KernelSet<'_> {
    /// The committed code objects.
    fn default() -> Self {
        Self { bytes: &|object| object.bytes.to_vec(), symbol: &|kernel| kernel.name.to_string() }
    }
}

impl Programs {
    /// Loads a code object for each of the `kernels` crate.
    ///
    /// # Errors
    /// See [`ProgramsError`].
    pub fn load(gpu: &Arc<Gpu>, set: &KernelSet<'_>) -> Result<Self, ProgramsError> {
        let mut programs = HashMap::new();
        for object in kernels::CODE_OBJECTS {
            let program = program::Program::load(gpu, &(set.bytes)(object))
                .map_err(|error| ProgramsError { name: object.name, error })?;
            programs.insert(object.name, program);
        }
        let mut loaded = HashMap::new();
        for kernel in kernels::kernels::ALL {
            let name = kernel.code_object.name;
            let program = &programs[name];
            let found = program.kernel(&(set.symbol)(kernel)).map_err(|error| ProgramsError { name, error })?;
            let object = program.kernel_object(found);
            let descriptor = found.descriptor;
            let entry = GpuVa::new(object.get().wrapping_add_signed(descriptor.code_entry_byte_offset));
            loaded.insert(kernel.name, Loaded { object, program: Program { entry, descriptor } });
        }
        Ok(Self { _programs: programs.into_values().collect(), loaded })
    }

    /// Where the descriptor of `kernel` is.
    #[must_use]
    pub fn kernel_object(&self, kernel: &Kernel) -> GpuVa {
        self.loaded(kernel).object
    }

    /// Scratch bytes that a work-item of `kernel` needs: none, for the committed code objects.
    #[must_use]
    pub fn private_bytes(&self, kernel: &Kernel) -> u32 {
        self.loaded(kernel).program.descriptor.private_segment_fixed_size
    }

    /// Scratch bytes of the kernel that needs most.
    #[must_use]
    pub fn most_private_bytes(&self) -> u32 {
        self.loaded.values().map(|loaded| loaded.program.descriptor.private_segment_fixed_size).max().unwrap_or(0)
    }

    /// The descriptor of `kernel`.
    #[must_use]
    pub fn descriptor(&self, kernel: &Kernel) -> KernelDescriptor {
        self.loaded(kernel).program.descriptor
    }

    /// What an indirect buffer launches `kernel` with.
    pub(super) fn program(&self, kernel: &Kernel) -> Program {
        self.loaded(kernel).program
    }

    fn loaded(&self, kernel: &Kernel) -> Loaded {
        self.loaded.get(kernel.name).copied().expect("`load` looked up every kernel of the crate")
    }
}
