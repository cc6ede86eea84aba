use bytemuck::NoUninit;
use driver::address::GpuVa;

use super::Buffer;

/// One kernel argument: an address or a value, as its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(pub(super) Vec<u8>);

impl Argument {
    /// A value of any plain type, structures passed by value included.
    pub fn value<T: NoUninit>(value: T) -> Self {
        Self(bytemuck::bytes_of(&value).to_vec())
    }

    /// Bytes as they are.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// A null pointer.
    #[must_use]
    pub fn null() -> Self {
        Self::value(0_u64)
    }
}

impl From<&Buffer> for Argument {
    fn from(buffer: &Buffer) -> Self {
        buffer.address().into()
    }
}

impl From<GpuVa> for Argument {
    fn from(address: GpuVa) -> Self {
        Self::value(address.get())
    }
}

macro_rules! from_value {
    ($($type:ty)*) => {
        $(impl From<$type> for Argument {
            fn from(value: $type) -> Self {
                Self::value(value)
            }
        })*
    };
}

from_value! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }
