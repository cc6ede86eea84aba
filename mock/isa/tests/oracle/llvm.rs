//! LLVM's disassembler through its C interface (`llvm-c/Disassembler.h`).

use libloading::{Library, Symbol};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::process::Command;

/// The release whose text the disassembler prints.
const MAJOR: c_uint = 22;

type Disassembler = *mut c_void;
type Create = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *mut c_void,
    c_int,
    *mut c_void,
    *mut c_void,
) -> Disassembler;
type Disassemble = unsafe extern "C" fn(Disassembler, *const u8, u64, u64, *mut c_char, usize) -> usize;

/// What a disassembler says of an instruction.
#[derive(PartialEq, Debug)]
pub(crate) struct Disassembled {
    /// Bytes.
    pub(crate) length: usize,
    /// Without LLVM's comments.
    pub(crate) text: String,
    /// LLVM's comment is that a tuple of scalar registers starts at no multiple of its size.
    pub(crate) misaligned: bool,
}

/// A disassembler for gfx950.
pub(crate) struct Llvm {
    disassembler: Disassembler,
    disassemble: Disassemble,
    _library: Library,
}

impl Llvm {
    /// Opens the library of the Rust toolchain, or the one that `ORACLE_LLVM` names.
    pub(crate) fn open() -> Result<Self, String> {
        let path = path()?;
        let fail = |error: libloading::Error| format!("{}: {error}", path.display());
        // SAFETY: the file is LLVM's shared library, whose initialisers only register command line options.
        let library = unsafe { Library::new(&path) }.map_err(fail)?;
        // SAFETY: the types are those of llvm-c/Core.h, Target.h and Disassembler.h, and the initialisers may run more than once.
        unsafe {
            let version: Symbol<unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint)> =
                library.get(b"LLVMGetVersion").map_err(fail)?;
            let (mut major, mut minor, mut patch) = (0, 0, 0);
            version(&mut major, &mut minor, &mut patch);
            if major != MAJOR {
                return Err(format!("{} is LLVM {major}.{minor}.{patch}, not {MAJOR}", path.display()));
            }
            for part in ["TargetInfo", "Target", "TargetMC", "Disassembler"] {
                let name = format!("LLVMInitializeAMDGPU{part}");
                library.get::<unsafe extern "C" fn()>(name.as_bytes()).map_err(fail)?();
            }
            let create: Symbol<Create> = library.get(b"LLVMCreateDisasmCPUFeatures").map_err(fail)?;
            let (triple, cpu, null) = (c"amdgcn-amd-amdhsa", c"gfx950", std::ptr::null_mut());
            let disassembler = create(triple.as_ptr(), cpu.as_ptr(), c"".as_ptr(), null, 0, null, null);
            if disassembler.is_null() {
                return Err(format!("{} has no gfx950", path.display()));
            }
            let disassemble = *library.get::<Disassemble>(b"LLVMDisasmInstruction").map_err(fail)?;
            Ok(Self { disassembler, disassemble, _library: library })
        }
    }

    /// The instruction at the start, if there is one.
    pub(crate) fn disassemble(&self, words: [u32; 5]) -> Option<Disassembled> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut text = [0; 2048];
        // SAFETY: both buffers are given with their lengths, and `self` holds the disassembler and its library. LLVM ends the text
        // with a null byte within the buffer.
        let (length, text) = unsafe {
            let out = text.as_mut_ptr();
            let length = (self.disassemble)(self.disassembler, bytes.as_ptr(), bytes.len() as u64, 0, out, text.len());
            (length, CStr::from_ptr(out))
        };
        let text = text.to_string_lossy();
        let (text, comment) = text.split_once(" ; ").unwrap_or((&text, ""));
        let misaligned = comment.contains("scalar reg isn't aligned");
        (length > 0).then(|| Disassembled { length, text: text.trim().to_owned(), misaligned })
    }
}

fn path() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("ORACLE_LLVM") {
        return Ok(path.into());
    }
    let rustc =
        Command::new("rustc").args(["--print", "sysroot"]).output().map_err(|error| format!("rustc: {error}"))?;
    let lib = PathBuf::from(String::from_utf8_lossy(&rustc.stdout).trim()).join("lib");
    let files = std::fs::read_dir(&lib).map_err(|error| format!("{}: {error}", lib.display()))?;
    let llvm = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libLLVM"));
    // The other file of that name is a linker script of a few bytes.
    let size = |path: &PathBuf| path.metadata().map_or(0, |data| data.len());
    let path = files.flatten().map(|file| file.path()).filter(llvm).max_by_key(size);
    path.ok_or(format!("{} has no libLLVM", lib.display()))
}
