//! An emulated machine with its GPUs opened.

#![allow(clippy::unwrap_used, dead_code, reason = "a test panics, and each test target uses its own part")]

use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use driver::kfd::{Arguments, Command};
use driver::signal::Patience;
use driver::system::{Fd, System};
use driver::{Gpu, Process};
use mock::{Config, Mock};

pub(crate) struct Machine {
    pub(crate) gpus: Vec<Arc<Gpu>>,
    pub(crate) mock: Arc<Mock>,
    kfd: Fd,
}

impl Machine {
    /// Starts the machine that the words of `MOCKKFD` describe.
    pub(crate) fn start(words: &str) -> Self {
        let mock = Arc::new(Mock::start(Config::parse(words).unwrap()).unwrap());
        let process = Process::open(Arc::clone(&mock) as Arc<dyn System>).unwrap();
        let nodes = process.topology().unwrap().gpus;
        let gpus = nodes.into_iter().map(|node| Gpu::open(&process, node).unwrap()).collect();
        let kfd = mock.open(Path::new("/dev/kfd")).unwrap();
        Self { gpus, mock, kfd }
    }

    /// One ioctl past the driver; the errno if it fails.
    pub(crate) fn ioctl<A: Arguments>(&self, command: Command, arguments: &mut A) -> Result<(), i32> {
        assert_eq!(command, A::COMMAND);
        let at = std::ptr::from_mut(arguments).cast::<c_void>();
        // SAFETY: `arguments` is the structure of the command and lives through the call.
        let result = unsafe { self.mock.ioctl(self.kfd, command.request(), at) };
        result.map(drop).map_err(|error| error.raw_os_error().unwrap())
    }
}

/// Patience for what is not to come.
pub(crate) fn short() -> Patience {
    Patience { spin: Duration::ZERO, limit: Duration::from_millis(60) }
}
