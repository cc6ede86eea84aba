//! This process as KFD sees it: one open device, one event page, one map of addresses, one fault that ends it all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::{Events, Fault};
use crate::kfd::{Kfd, OpenError};
use crate::memory::AddressMap;
use crate::system::{Fd, System};
use crate::topology::{self, Topology};

/// What all GPUs of a program share. A program has one: the kernel keeps one compute process per address space.
///
/// The event page is never given back: the kernel refuses to free it before the process ends
/// (`kfd_ioctl_free_memory_of_gpu`).
pub struct Process {
    kfd: Kfd,
    events: Events,
    addresses: AddressMap,
    /// Render nodes whose address space is acquired, by GPU. The kernel ties a GPU's address space to one file for the
    /// life of the process, so a file stays open for whoever opens the GPU again.
    renders: Mutex<BTreeMap<u32, Fd>>,
}

impl Process {
    /// Opens `/dev/kfd` of `system`.
    pub fn open(system: Arc<dyn System>) -> Result<Arc<Self>, OpenError> {
        let kfd = Kfd::open(system)?;
        Ok(Arc::new(Self {
            kfd,
            events: Events::default(),
            addresses: AddressMap::default(),
            renders: Mutex::default(),
        }))
    }

    /// The open device.
    pub fn kfd(&self) -> &Kfd {
        &self.kfd
    }

    /// Which GPUs there are.
    pub fn topology(&self) -> Result<Topology, topology::Error> {
        Topology::read(&**self.kfd.system())
    }

    /// The fault that some GPU met, if one did. It stays: nothing of this process can be trusted after it.
    pub fn fault(&self) -> Option<&Fault> {
        self.events.fault()
    }

    /// Asks the kernel whether a GPU met a fault. Cheap enough for a loop that waits, not for one that spins.
    pub fn poll_faults(&self) -> Result<(), crate::event::Error> {
        self.events.poll(self)
    }

    /// The open render nodes; held while a GPU is opened, as the first one brings the event page.
    pub(crate) fn renders(&self) -> MutexGuard<'_, BTreeMap<u32, Fd>> {
        // A panic elsewhere leaves the map whole: a file is entered when its GPU is acquired.
        self.renders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) fn addresses(&self) -> &AddressMap {
        &self.addresses
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for fd in std::mem::take(&mut *self.renders()).into_values() {
            self.kfd.system().close(fd);
        }
    }
}
