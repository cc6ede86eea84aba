/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    /// Memory at a GPU virtual address.
    Memory,
    /// The workgroup's LDS.
    Lds,
    /// A lane's private memory; the address is the GPU virtual address behind it.
    Scratch,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AccessKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads, changes and writes in one step.
    Atomic,
}

/// One access of one lane. An item that is not in one piece (scratch, swizzled buffers) is several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// First byte.
    pub(crate) address: u64,
    /// Length in bytes, 1 to 64.
    pub(crate) bytes: u8,
    /// The lane; `None` for scalar memory instructions.
    pub(crate) lane: Option<u8>,
    /// Where.
    pub(crate) space: Space,
    /// What.
    pub(crate) kind: AccessKind,
}
