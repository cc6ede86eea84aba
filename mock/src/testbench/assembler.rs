//! LLVM's gfx950 assembler, loaded from the Rust toolchain's libLLVM.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use goblin::elf::Elf;
use libloading::Library;

use super::Cache;

type Handle = *mut c_void;
type Diagnostic = unsafe extern "C" fn(Handle, Handle);

/// Words of `text`, with `s_endpgm` behind them; `None` if this machine has no libLLVM.
///
/// # Panics
/// If LLVM refuses the text, or libLLVM is missing where `CI` is set.
pub(crate) fn assemble(text: &str) -> Option<Vec<u32>> {
    static LLVM: OnceLock<Option<Mutex<(Llvm, Cache)>>> = OnceLock::new();
    let llvm = LLVM.get_or_init(|| Llvm::load().map(|llvm| Mutex::new((llvm, Cache::new()))));
    let Some(llvm) = llvm else {
        assert!(std::env::var_os("CI").is_none(), "libLLVM is missing, and tests may not be skipped in CI");
        println!("SKIPPED: the Rust toolchain's libLLVM, which assembles the code of this test, was not found");
        return None;
    };
    let mut guard = llvm.lock().unwrap_or_else(PoisonError::into_inner);
    let (llvm, cache) = &mut *guard;
    if !cache.contains_key(text) {
        let words = llvm.assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        cache.insert(text.into(), words);
    }
    cache.get(text).cloned()
}

struct Llvm {
    library: Library,
    machine: Handle,
}

// SAFETY: LLVM's objects may be used from one thread at a time, which the mutex around them sees to.
unsafe impl Send for Llvm {}

const TRIPLE: &CStr = c"amdgcn-amd-amdhsa";

impl Llvm {
    fn load() -> Option<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
        let lib = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()).join("lib");
        let is_llvm =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libLLVM"));
        let mut candidates: Vec<PathBuf> =
            std::fs::read_dir(lib).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_llvm).collect();
        candidates.sort_by_key(|path| path.metadata().map_or(0, |meta| meta.len()));
        // SAFETY: initialisers of the toolchain's own library, which this process trusts as much as its compiler; the
        // signatures below are those of llvm-c/Target.h and llvm-c/TargetMachine.h.
        unsafe {
            let library = Library::new(candidates.pop()?).ok()?;
            for part in ["TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"] {
                let name = format!("LLVMInitializeAMDGPU{part}");
                library.get::<unsafe extern "C" fn()>(name.as_bytes()).ok()?();
            }
            let mut target: Handle = ptr::null_mut();
            let mut error: *mut c_char = ptr::null_mut();
            let find = library
                .get::<unsafe extern "C" fn(*const c_char, *mut Handle, *mut *mut c_char) -> c_int>(
                    b"LLVMGetTargetFromTriple",
                )
                .ok()?;
            if find(TRIPLE.as_ptr(), &mut target, &mut error) != 0 {
                return None;
            }
            let create =
                library
                    .get::<unsafe extern "C" fn(
                        Handle,
                        *const c_char,
                        *const c_char,
                        *const c_char,
                        c_int,
                        c_int,
                        c_int,
                    ) -> Handle>(b"LLVMCreateTargetMachine")
                    .ok()?;
            // Optimisation level default, position-independent code, default code model.
            let machine = create(target, TRIPLE.as_ptr(), c"gfx950".as_ptr(), c"".as_ptr(), 2, 2, 0);
            Some(Self { library, machine })
        }
    }

    fn assemble(&self, text: &str) -> Result<Vec<u32>, String> {
        // The AMDGPU printer pads .text with s_nop; a section of one's own stays as written.
        let source = format!(".section .enc,\"ax\",@progbits\n{text}\ns_endpgm\n");
        let source = CString::new(source).map_err(|error| error.to_string())?;
        let object = self.emit(&source)?;
        let elf = Elf::parse(&object).map_err(|error| error.to_string())?;
        let section = elf
            .section_headers
            .iter()
            .find(|header| elf.shdr_strtab.get_at(header.sh_name) == Some(".enc"))
            .and_then(|header| object.get(header.file_range()?))
            .ok_or("no .enc section in LLVM's object")?;
        Ok(section.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
    }

    fn emit(&self, source: &CStr) -> Result<Vec<u8>, String> {
        let missing = |error: libloading::Error| error.to_string();
        // SAFETY: signatures of llvm-c/Core.h and llvm-c/TargetMachine.h; every object is made, used and disposed of
        // here, and the diagnostic handler's context outlives the LLVM context.
        unsafe {
            let get = |name: &str| {
                self.library.get::<unsafe extern "C" fn(Handle) -> Handle>(name.as_bytes()).map_err(missing)
            };
            let dispose =
                |name: &str| self.library.get::<unsafe extern "C" fn(Handle)>(name.as_bytes()).map_err(missing);
            let context =
                self.library.get::<unsafe extern "C" fn() -> Handle>(b"LLVMContextCreate").map_err(missing)?();
            let mut errors: Vec<String> = Vec::new();
            let mut diagnostics = (&self.library, &mut errors);
            self.library
                .get::<unsafe extern "C" fn(Handle, Diagnostic, Handle)>(b"LLVMContextSetDiagnosticHandler")
                .map_err(missing)?(context, on_diagnostic, (&raw mut diagnostics).cast());
            let module = self
                .library
                .get::<unsafe extern "C" fn(*const c_char, Handle) -> Handle>(b"LLVMModuleCreateWithNameInContext")
                .map_err(missing)?(c"test".as_ptr(), context);
            self.library.get::<unsafe extern "C" fn(Handle, *const c_char)>(b"LLVMSetTarget").map_err(missing)?(
                module,
                TRIPLE.as_ptr(),
            );
            let layout = get("LLVMCreateTargetDataLayout")?(self.machine);
            self.library.get::<unsafe extern "C" fn(Handle, Handle)>(b"LLVMSetModuleDataLayout").map_err(missing)?(
                module, layout,
            );
            self.library
                .get::<unsafe extern "C" fn(Handle, *const c_char, usize)>(b"LLVMSetModuleInlineAsm2")
                .map_err(missing)?(module, source.as_ptr(), source.to_bytes().len());
            let mut buffer: Handle = ptr::null_mut();
            let mut message: *mut c_char = ptr::null_mut();
            let failed = self
                .library
                .get::<unsafe extern "C" fn(Handle, Handle, c_int, *mut *mut c_char, *mut Handle) -> c_int>(
                    b"LLVMTargetMachineEmitToMemoryBuffer",
                )
                .map_err(missing)?(self.machine, module, 1, &mut message, &mut buffer);
            let object = if failed == 0 {
                let start = get("LLVMGetBufferStart")?(buffer).cast::<u8>();
                let size = self
                    .library
                    .get::<unsafe extern "C" fn(Handle) -> usize>(b"LLVMGetBufferSize")
                    .map_err(missing)?(buffer);
                let bytes = std::slice::from_raw_parts(start, size).to_vec();
                dispose("LLVMDisposeMemoryBuffer")?(buffer);
                bytes
            } else {
                errors.push("LLVM could not emit an object".into());
                Vec::new()
            };
            dispose("LLVMDisposeTargetData")?(layout);
            dispose("LLVMDisposeModule")?(module);
            dispose("LLVMContextDispose")?(context);
            if errors.is_empty() { Ok(object) } else { Err(errors.join("; ")) }
        }
    }
}

unsafe extern "C" fn on_diagnostic(info: Handle, context: Handle) {
    // SAFETY: `context` is the pair that `emit` registered and keeps alive; signatures of llvm-c/Core.h.
    unsafe {
        let (library, errors) = &mut *context.cast::<(&Library, &mut Vec<String>)>();
        let severity = library.get::<unsafe extern "C" fn(Handle) -> c_int>(b"LLVMGetDiagInfoSeverity");
        let describe = library.get::<unsafe extern "C" fn(Handle) -> *const c_char>(b"LLVMGetDiagInfoDescription");
        if let (Ok(severity), Ok(describe)) = (severity, describe)
            && severity(info) == 0
        {
            errors.push(CStr::from_ptr(describe(info)).to_string_lossy().into_owned());
        }
    }
}
