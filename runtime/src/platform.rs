//! The machine the program runs on: the host's own GPUs, or an emulated one.

use std::sync::Arc;

use driver::Process;
use driver::system::System;

use crate::bench::block::Tally;
use crate::failure::Failure;

/// The environment variable that asks for an emulated machine.
pub const MOCK_VARIABLE: &str = "MOCKKFD";

/// An open KFD, and the emulated machine behind it if it is not the kernel's.
pub struct Platform {
    /// KFD, opened.
    pub process: Arc<Process>,
    /// The emulated machine, for its counters and reports. Code that drives GPUs does not ask for it.
    #[cfg(feature = "mock")]
    pub mock: Option<Arc<mock::Mock>>,
}

impl Platform {
    /// Opens the machine: the one `MOCKKFD` describes if the variable is set, else the host's.
    ///
    /// # Errors
    /// `MOCKKFD` is refused; or there is neither a mock nor a usable `/dev/kfd`, and how to get either.
    pub fn open() -> Result<Self, Failure> {
        match std::env::var(MOCK_VARIABLE) {
            Ok(words) => Self::open_mock_named(&words),
            Err(_) => Self::open_host(),
        }
    }

    /// Opens the emulated machine that `MOCKKFD` describes, and records what `inspect` asks for.
    ///
    /// # Errors
    /// `MOCKKFD` is not set or is refused.
    #[cfg(feature = "mock")]
    pub fn open_inspected(inspect: mock::inspect::Inspect) -> Result<Self, Failure> {
        let words = std::env::var(MOCK_VARIABLE).map_err(|_| {
            Failure::Input(format!("only an emulated machine can be looked into; set {MOCK_VARIABLE}=1"))
        })?;
        let config = mock::Config::parse(&words).map_err(Failure::input)?;
        Self::open_mock(mock::Config { inspect, ..config })
    }

    #[cfg(feature = "mock")]
    fn open_mock_named(words: &str) -> Result<Self, Failure> {
        Self::open_mock(mock::Config::parse(words).map_err(Failure::input)?)
    }

    #[cfg(not(feature = "mock"))]
    fn open_mock_named(_: &str) -> Result<Self, Failure> {
        Err(Failure::Input(format!("{MOCK_VARIABLE} is set, but this binary was built without the `mock` feature")))
    }

    /// Starts an emulated machine and opens it.
    ///
    /// # Errors
    /// The host does not give it memory or threads.
    #[cfg(feature = "mock")]
    pub fn open_mock(config: mock::Config) -> Result<Self, Failure> {
        let mock = Arc::new(mock::Mock::start(config).map_err(Failure::run)?);
        let system: Arc<dyn System> = Arc::clone(&mock) as Arc<dyn System>;
        let process = Process::open(system).map_err(Failure::run)?;
        Ok(Self { process, mock: Some(mock) })
    }

    /// Whether an emulated machine answers.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        #[cfg(feature = "mock")]
        return self.mock.is_some();
        #[cfg(not(feature = "mock"))]
        return false;
    }

    /// Whether the machine takes packets and executes nothing (`MOCKKFD=null`): what it gives are no tokens.
    #[must_use]
    pub fn executes_nothing(&self) -> bool {
        #[cfg(feature = "mock")]
        return self.mock.as_ref().is_some_and(|mock| mock.config().null);
        #[cfg(not(feature = "mock"))]
        return false;
    }

    /// What the emulated machine counts of its first GPU, if it was opened to.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        #[cfg(feature = "mock")]
        return self.mock.as_ref().and_then(|mock| mock.tally());
        #[cfg(not(feature = "mock"))]
        return None;
    }

    /// Opens the machine; an emulated one keeps a tally of its first GPU.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_tallied() -> Result<Self, Failure> {
        #[cfg(feature = "mock")]
        if std::env::var_os(MOCK_VARIABLE).is_some() {
            return Self::open_inspected(mock::inspect::Inspect { tally: Some(0), ..Default::default() });
        }
        Self::open()
    }

    /// Host memory that the emulated machine's device memory takes; zero on a real one.
    ///
    /// # Errors
    /// The system does not say.
    pub fn touched_bytes(&self) -> std::io::Result<u64> {
        #[cfg(feature = "mock")]
        return self.mock.as_ref().map_or(Ok(0), |mock| mock.touched_bytes());
        #[cfg(not(feature = "mock"))]
        return Ok(0);
    }

    fn open_host() -> Result<Self, Failure> {
        let system: Arc<dyn System> = Arc::new(driver::linux::Linux);
        let process = Process::open(system).map_err(|error| {
            Failure::Run(format!(
                "{error}. Run on a host with AMD GPUs and amdgpu loaded, or set {MOCK_VARIABLE}=1 for an emulated machine"
            ))
        })?;
        Ok(Self {
            process,
            #[cfg(feature = "mock")]
            mock: None,
        })
    }
}
