//! The ioctl commands of `/dev/kfd`: number, direction and argument structure in one table.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{event, memory, process, queue, share};

/// `AMDKFD_IOCTL_BASE`.
const BASE: u32 = b'K' as u32;

/// Which way the kernel copies the argument structure (`asm-generic/ioctl.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `_IOW`: from the caller to the kernel.
    Write = 1,
    /// `_IOR`: from the kernel to the caller.
    Read = 2,
    /// `_IOWR`: both.
    ReadWrite = 3,
}

/// The argument structure of one command.
///
/// The kernel accepts other sizes than its own: it takes the command number, copies the smaller of the two sizes and
/// zeroes the rest (`kfd_ioctl` in `kfd_chardev.c`). Clients built against other headers rely on it.
pub trait Arguments: FromBytes + IntoBytes + Immutable + KnownLayout {
    /// The command that takes this structure.
    const COMMAND: Command;
}

macro_rules! commands {
    ($($name:ident = $number:literal, $direction:ident, $arguments:ty;)*) => {
        /// One ioctl command.
        #[allow(missing_docs, reason = "each variant is documented at its argument structure")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Command { $($name = $number),* }

        impl Command {
            /// Every command, by number.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The command numbered `number`.
            pub const fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// Which way the argument structure goes.
            pub const fn direction(self) -> Direction {
                match self { $(Self::$name => Direction::$direction),* }
            }

            /// Size of the argument structure in bytes, without a variable tail.
            pub const fn bytes(self) -> usize {
                match self { $(Self::$name => size_of::<$arguments>()),* }
            }

            /// The Rust name of the command, for messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }

        $(impl Arguments for $arguments { const COMMAND: Command = Command::$name; })*
    };
}

commands! {
    GetVersion             = 0x01, Read,      process::GetVersion;
    CreateQueue            = 0x02, ReadWrite, queue::CreateQueue;
    DestroyQueue           = 0x03, ReadWrite, queue::DestroyQueue;
    SetMemoryPolicy        = 0x04, Write,     process::SetMemoryPolicy;
    GetClockCounters       = 0x05, ReadWrite, process::GetClockCounters;
    GetProcessApertures    = 0x06, Read,      process::GetProcessApertures;
    UpdateQueue            = 0x07, Write,     queue::UpdateQueue;
    CreateEvent            = 0x08, ReadWrite, event::CreateEvent;
    DestroyEvent           = 0x09, Write,     event::DestroyEvent;
    SetEvent               = 0x0a, Write,     event::SetEvent;
    ResetEvent             = 0x0b, Write,     event::ResetEvent;
    WaitEvents             = 0x0c, ReadWrite, event::WaitEvents;
    SetScratchBackingVa    = 0x11, ReadWrite, process::SetScratchBackingVa;
    GetTileConfig          = 0x12, ReadWrite, process::GetTileConfig;
    SetTrapHandler         = 0x13, Write,     process::SetTrapHandler;
    GetProcessAperturesNew = 0x14, ReadWrite, process::GetProcessAperturesNew;
    AcquireVm              = 0x15, Write,     process::AcquireVm;
    AllocMemoryOfGpu       = 0x16, ReadWrite, memory::AllocMemoryOfGpu;
    FreeMemoryOfGpu        = 0x17, Write,     memory::FreeMemoryOfGpu;
    MapMemoryToGpu         = 0x18, ReadWrite, memory::MapMemoryToGpu;
    UnmapMemoryFromGpu     = 0x19, ReadWrite, memory::UnmapMemoryFromGpu;
    SetCuMask              = 0x1a, Write,     queue::SetCuMask;
    GetQueueWaveState      = 0x1b, ReadWrite, queue::GetQueueWaveState;
    GetDmabufInfo          = 0x1c, ReadWrite, share::GetDmabufInfo;
    ImportDmabuf           = 0x1d, ReadWrite, share::ImportDmabuf;
    AllocQueueGws          = 0x1e, ReadWrite, queue::AllocQueueGws;
    SmiEvents              = 0x1f, ReadWrite, process::SmiEvents;
    Svm                    = 0x20, ReadWrite, share::Svm;
    SetXnackMode           = 0x21, ReadWrite, process::SetXnackMode;
    AvailableMemory        = 0x23, ReadWrite, memory::AvailableMemory;
    ExportDmabuf           = 0x24, ReadWrite, share::ExportDmabuf;
    RuntimeEnable          = 0x25, ReadWrite, process::RuntimeEnable;
    DbgTrap                = 0x26, ReadWrite, process::DbgTrap;
}

impl Command {
    /// The command number (`_IOC_NR`).
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The request a client of this header passes to `ioctl`: direction, size, base and number.
    pub const fn request(self) -> u32 {
        (self.direction() as u32) << 30 | (self.bytes() as u32) << 16 | BASE << 8 | self as u32
    }

    /// The command of a request of any client, whose structure may have another size; see [`Arguments`].
    pub const fn from_request(request: u32) -> Option<Self> {
        if request >> 8 & 0xff == BASE { Self::from_number(request as u8) } else { None }
    }

    /// The size of the argument structure that `request` states, in bytes.
    pub const fn request_bytes(request: u32) -> usize {
        (request >> 16 & 0x3fff) as usize
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by a C program compiled against the header.
    const REQUESTS: [(Command, u32); 33] = [
        (Command::GetVersion, 0x8008_4b01),
        (Command::CreateQueue, 0xc060_4b02),
        (Command::DestroyQueue, 0xc008_4b03),
        (Command::SetMemoryPolicy, 0x4020_4b04),
        (Command::GetClockCounters, 0xc028_4b05),
        (Command::GetProcessApertures, 0x8190_4b06),
        (Command::UpdateQueue, 0x4018_4b07),
        (Command::CreateEvent, 0xc020_4b08),
        (Command::DestroyEvent, 0x4008_4b09),
        (Command::SetEvent, 0x4008_4b0a),
        (Command::ResetEvent, 0x4008_4b0b),
        (Command::WaitEvents, 0xc018_4b0c),
        (Command::SetScratchBackingVa, 0xc010_4b11),
        (Command::GetTileConfig, 0xc028_4b12),
        (Command::SetTrapHandler, 0x4018_4b13),
        (Command::GetProcessAperturesNew, 0xc010_4b14),
        (Command::AcquireVm, 0x4008_4b15),
        (Command::AllocMemoryOfGpu, 0xc028_4b16),
        (Command::FreeMemoryOfGpu, 0x4008_4b17),
        (Command::MapMemoryToGpu, 0xc018_4b18),
        (Command::UnmapMemoryFromGpu, 0xc018_4b19),
        (Command::SetCuMask, 0x4010_4b1a),
        (Command::GetQueueWaveState, 0xc018_4b1b),
        (Command::GetDmabufInfo, 0xc020_4b1c),
        (Command::ImportDmabuf, 0xc018_4b1d),
        (Command::AllocQueueGws, 0xc010_4b1e),
        (Command::SmiEvents, 0xc008_4b1f),
        (Command::Svm, 0xc018_4b20),
        (Command::SetXnackMode, 0xc004_4b21),
        (Command::AvailableMemory, 0xc010_4b23),
        (Command::ExportDmabuf, 0xc010_4b24),
        (Command::RuntimeEnable, 0xc010_4b25),
        (Command::DbgTrap, 0xc020_4b26),
    ];

    #[test]
    fn every_request_number_is_the_one_the_c_header_gives() {
        assert_eq!(REQUESTS.len(), Command::ALL.len());
        for (command, request) in REQUESTS {
            assert_eq!(command.request(), request, "{command}: {:#x}", command.request());
            assert_eq!(Command::from_request(request), Some(command));
        }
    }

    #[test]
    fn a_request_of_another_size_is_still_its_command() {
        assert_eq!(Command::from_request(0xc058_4b02), Some(Command::CreateQueue));
        assert_eq!(Command::request_bytes(0xc058_4b02), 0x58);
    }

    #[test]
    fn a_request_of_another_device_is_no_command_of_this_one() {
        assert_eq!(Command::from_request(0xc010_6401), None, "DRM_IOCTL_GET_UNIQUE, base 'd'");
    }
}
