//! What all launch arguments have in common.

use bytemuck::{Pod, Zeroable};

use crate::Kernel;

/// An address as the GPU sees it; null where a kernel takes a buffer as optional.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
pub struct GpuVa(pub u64);

impl GpuVa {
    /// No buffer.
    pub const NULL: Self = Self(0);
}

/// One argument of a kernel: a parameter of the C function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the parameter.
    pub name: &'static str,
    /// Where it is in the kernel-argument segment.
    pub offset: usize,
    /// Its length in bytes.
    pub size: usize,
}

/// Kernel arguments: the bytes of the kernel-argument segment.
pub trait Arguments: Pod {
    /// The parameters of the kernel, in order: the first fields of the struct.
    const FIELDS: &[Field];

    /// Every kernel that takes these arguments.
    const KERNELS: &[&Kernel];
}

/// Arguments that know their launch.
pub trait Launch: Arguments {
    /// The kernel to launch.
    fn kernel(&self) -> &'static Kernel;

    /// Workgroups in x, y and z. Work-items are these times [`Kernel::workgroup`] in x.
    fn workgroups(&self) -> [u32; 3];

    /// The kernel-argument segment.
    fn kernarg(&self) -> &[u8] {
        let end = Self::FIELDS.iter().map(|field| field.offset + field.size).max().unwrap_or(0);
        &bytemuck::bytes_of(self)[..end]
    }
}

/// Declares the arguments of kernels: a `#[repr(C)]` struct whose first fields are the parameters, and their table.
macro_rules! arguments {
    ($(#[$doc:meta])* $name:ident for [$($kernel:ident),+] {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)+
    } $(not passed { $($(#[$rest_doc:meta])* $rest:ident: $rest_type:ty,)+ })?) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
            $($($(#[$rest_doc])* pub $rest: $rest_type,)+)?
        }

        impl $crate::Arguments for $name {
            const FIELDS: &[$crate::Field] = &[$($crate::Field {
                name: stringify!($field),
                offset: std::mem::offset_of!($name, $field),
                size: std::mem::size_of::<$type>(),
            }),+];
            const KERNELS: &[&$crate::Kernel] = &[$(&$crate::kernels::$kernel),+];
        }
    };
}
pub(crate) use arguments;
