//! Arguments of memory shared with other drivers (dma-buf) and of shared virtual memory (SVM).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `GET_DMABUF_INFO`: what an exported memory is.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetDmabufInfo {
    /// From KFD: bytes.
    pub size: u64,
    /// To KFD: where to copy the exporter's metadata.
    pub metadata_ptr: u64,
    /// To KFD: capacity; from KFD: bytes.
    pub metadata_size: u32,
    /// From KFD: where the memory lives.
    pub gpu_id: u32,
    /// From KFD: [`AllocFlags`](super::memory::AllocFlags).
    pub flags: u32,
    /// To KFD.
    pub dmabuf_fd: u32,
}

/// `IMPORT_DMABUF`: a handle of this process for memory another driver or process exported.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ImportDmabuf {
    /// To KFD: the GPU address it shall have.
    pub va_addr: u64,
    /// From KFD.
    pub handle: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD.
    pub dmabuf_fd: u32,
}

/// `EXPORT_DMABUF`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ExportDmabuf {
    /// To KFD.
    pub handle: u64,
    /// To KFD: flags of the new file (`O_CLOEXEC`, `O_RDWR`).
    pub flags: u32,
    /// From KFD.
    pub dmabuf_fd: u32,
}

/// `SVM`: attributes of a range of ordinary host memory. An array of [`SvmAttribute`] follows; the request's size
/// counts it.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Svm {
    /// To KFD: page aligned.
    pub start_addr: u64,
    /// To KFD: bytes, a multiple of the page.
    pub size: u64,
    /// To KFD: 0 sets the attributes, 1 reads them.
    pub op: u32,
    /// To KFD: how many attributes follow.
    pub nattr: u32,
}

/// One attribute of [`Svm`].
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SvmAttribute {
    /// `KFD_IOCTL_SVM_ATTR_*`.
    pub kind: u32,
    /// Its value.
    pub value: u32,
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_sharing_structures_are_laid_out_as_the_c_header_lays_them_out() {
        assert_eq!(offset_of!(GetDmabufInfo, metadata_size), 16);
        assert_eq!(offset_of!(GetDmabufInfo, dmabuf_fd), 28);
        assert_eq!(offset_of!(ImportDmabuf, handle), 8);
        assert_eq!(offset_of!(ImportDmabuf, dmabuf_fd), 20);
        assert_eq!(offset_of!(ExportDmabuf, dmabuf_fd), 12);
        assert_eq!((size_of::<Svm>(), size_of::<SvmAttribute>()), (24, 8));
    }
}
