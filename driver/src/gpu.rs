//! An open GPU.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use crate::address::{Bytes, GpuVa};
use crate::doorbell::DoorbellSlice;
use crate::event;
use crate::kfd::process::{Apertures, GetClockCounters};
use crate::kfd::{IoctlError, Kfd};
use crate::memory::{self, Allocation, Buffer};
use crate::process::Process;
use crate::system::Fd;
use crate::topology::GpuNode;

/// Why a GPU cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its render node cannot be opened.
    #[error("cannot open {} of GPU {gpu_id:#x} (node {node}, PCI {pci}): {source}; {}", path.display(), advice(source))]
    Render {
        /// Id of the GPU.
        gpu_id: u32,
        /// Its node.
        node: u32,
        /// Its PCI address.
        pci: String,
        /// The render node.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its address space is taken.
    #[error("GPU {gpu_id:#x} is already open in this process, but not by this driver: only one may drive it")]
    InUse {
        /// Which GPU.
        gpu_id: u32,
    },
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] IoctlError),
    /// The kernel does not list its address windows.
    #[error("the kernel lists no apertures for GPU {gpu_id:#x}")]
    NoApertures {
        /// Which GPU.
        gpu_id: u32,
    },
    /// Its events cannot be set up.
    #[error("cannot set up events for GPU {gpu_id:#x}: {source}")]
    Events {
        /// Which GPU.
        gpu_id: u32,
        /// Why.
        source: event::Error,
    },
}

/// What to do about a failed open of a render node.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "in a container, pass this render node too: --device=/dev/dri",
        Some(libc::EACCES) | Some(libc::EPERM) => {
            "the user may not, though /dev/kfd is open: join the group that owns it (stat -c %G on the node) and log in \
             again; in a container give that group's number, --group-add $(stat -c %g on the node)"
        }
        Some(libc::ENODEV) | Some(libc::ENXIO) => "the GPU was unplugged or its driver failed to start; see dmesg",
        Some(libc::EBUSY) | Some(libc::EAGAIN) => "the GPU is being reset; try again",
        Some(libc::EMFILE) | Some(libc::ENFILE) => "too many open files: raise the limit (ulimit -n)",
        _ => "see dmesg | grep amdgpu",
    }
}

/// A GPU whose address space belongs to this process.
pub struct Gpu {
    process: Arc<Process>,
    node: GpuNode,
    render: Fd,
    apertures: Apertures,
    doorbells: Mutex<Weak<DoorbellSlice>>,
}

impl Gpu {
    /// Opens a GPU, or opens it again: its render node stays open as long as the process object lives.
    pub fn open(process: &Arc<Process>, node: GpuNode) -> Result<Arc<Self>, OpenError> {
        let kfd = process.kfd();
        let gpu_id = node.gpu_id;
        let mut renders = process.renders();
        let render = match renders.get(&gpu_id) {
            Some(&render) => render,
            None => {
                let render = acquire(kfd, &node)?;
                renders.insert(gpu_id, render);
                render
            }
        };
        let apertures = kfd.apertures()?.into_iter().find(|apertures| apertures.gpu_id == gpu_id);
        let apertures = apertures.ok_or(OpenError::NoApertures { gpu_id })?;
        let gpu = Self { process: process.clone(), node, render, apertures, doorbells: Mutex::default() };
        process.events().add_gpu(kfd, &gpu).map_err(|source| OpenError::Events { gpu_id, source })?;
        Ok(Arc::new(gpu))
    }

    /// The kernel's id of it.
    pub fn id(&self) -> u32 {
        self.node.gpu_id
    }

    /// What the kernel says about it.
    pub fn node(&self) -> &GpuNode {
        &self.node
    }

    /// What it shares with the other GPUs.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Its address windows: where LDS and scratch appear to code.
    pub fn apertures(&self) -> &Apertures {
        &self.apertures
    }

    /// Allocates memory and maps it to this GPU.
    pub fn allocate(self: &Arc<Self>, what: &Allocation<'_>) -> Result<Buffer, memory::Error> {
        Buffer::allocate(self, what)
    }

    /// VRAM left.
    pub fn available_memory(&self) -> Result<Bytes, IoctlError> {
        self.process.kfd().available_memory(self.id())
    }

    /// Its clock and the host's, read together: to place timestamps of packets on the host's time line.
    pub fn clocks(&self) -> Result<GetClockCounters, IoctlError> {
        self.process.kfd().clock_counters(self.id())
    }

    /// What lies at an address, for messages.
    pub fn place_of(&self, va: GpuVa) -> memory::Place {
        self.process.addresses().place_of(va)
    }

    pub(crate) fn render(&self) -> Fd {
        self.render
    }

    /// The doorbells of this process on this GPU, mapped while a queue uses them.
    pub(crate) fn doorbells(&self, offset: u64) -> io::Result<Arc<DoorbellSlice>> {
        // A panic elsewhere leaves the reference whole.
        let mut current = self.doorbells.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(slice) = current.upgrade() {
            return Ok(slice);
        }
        let slice = Arc::new(DoorbellSlice::map(self.process.kfd(), offset)?);
        *current = Arc::downgrade(&slice);
        Ok(slice)
    }
}

/// Opens the render node of a GPU and makes its address space this process'.
fn acquire(kfd: &Kfd, node: &GpuNode) -> Result<Fd, OpenError> {
    let (gpu_id, path) = (node.gpu_id, node.render_path());
    let render = kfd.system().open(&path).map_err(|source| OpenError::Render {
        gpu_id,
        node: node.node,
        pci: node.pci_address(),
        path,
        source,
    })?;
    kfd.acquire_vm(gpu_id, render).map(|()| render).map_err(|error| {
        kfd.system().close(render);
        match error.errno() {
            Some(libc::EBUSY) => OpenError::InUse { gpu_id },
            _ => error.into(),
        }
    })
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "GPU {:#x} ({}, node {}, PCI {})",
            self.id(),
            self.node.target,
            self.node.node,
            self.node.pci_address()
        )
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_that_a_render_node_fails_names_gpu_node_and_fix() {
        let errnos = [libc::ENOENT, libc::EACCES, libc::ENODEV, libc::EBUSY, libc::EMFILE, libc::EIO];
        let messages = errnos.map(|errno| {
            let source = io::Error::from_raw_os_error(errno);
            let (path, pci) = (PathBuf::from("/dev/dri/renderD131"), "0000:05:00.0".into());
            OpenError::Render { gpu_id: 3, node: 4, pci, path, source }.to_string()
        });
        for (index, message) in messages.iter().enumerate() {
            assert!(message.starts_with("cannot open /dev/dri/renderD131 of GPU 0x3 (node 4, PCI 0000:05:00.0): "));
            assert!(!messages[..index].contains(message), "{message}");
        }
    }
}
