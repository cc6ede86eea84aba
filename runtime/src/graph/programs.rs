//! All of the crate's kernels in one GPU's memory.

use std::collections::HashMap;
use std::sync::Arc;

use driver::Gpu;
use driver::address::GpuVa;
use kernels::Kernel;

use crate::program::{self, Program};

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
    _programs: Vec<Program>,
    objects: HashMap<&'static str, GpuVa>,
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
            let program =
                Program::load(gpu, &(set.bytes)(object)).map_err(|error| ProgramsError { name: object.name, error })?;
            programs.insert(object.name, program);
        }
        let mut objects = HashMap::new();
        for kernel in kernels::kernels::ALL {
            let name = kernel.code_object.name;
            let program = &programs[name];
            let found = program.kernel(&(set.symbol)(kernel)).map_err(|error| ProgramsError { name, error })?;
            objects.insert(kernel.name, program.kernel_object(found));
        }
        Ok(Self { _programs: programs.into_values().collect(), objects })
    }

    /// Where the descriptor of `kernel` is.
    #[must_use]
    pub fn kernel_object(&self, kernel: &Kernel) -> GpuVa {
        self.objects.get(kernel.name).copied().expect("`load` looked up every kernel of the crate")
    }
}
