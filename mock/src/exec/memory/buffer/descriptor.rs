//! The resource descriptor (V#) and addressing through it (CDNA4 ISA sections 9.1.5 and 9.1.8).

/// A decoded descriptor, with what the instruction adds for all lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    /// Base address and the instruction's scalar offset.
    pub(super) base: u64,
    /// Bytes of a record.
    pub(super) stride: u32,
    /// NUM_RECORDS: bytes or records, as `range` says.
    pub(super) records: u32,
    pub(super) range: Range,
    /// The lane number is added to the index.
    add_tid: bool,
    /// For an array of structures stored element by element: records of a group.
    swizzled_group: Option<u64>,
    /// DST_SEL_X to W.
    pub(super) selects: [u8; 4],
    /// Number format of converted data.
    pub(super) number_format: u8,
    /// Data format of converted data.
    pub(super) data_format: u8,
}

/// What NUM_RECORDS bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// The descriptor is unbound: all accesses are out of range.
    Nothing,
    /// Private buffers are not checked.
    Everything,
    /// The index.
    Records,
    /// The byte offset in the record, which is all of the buffer.
    Bytes,
}

/// Bytes that stay together in a swizzled buffer. The descriptor has no field for it since gfx9 (Mesa sets ELEMENT_SIZE
/// up to gfx8 only).
const ELEMENT: u64 = 4;

impl Descriptor {
    pub(super) fn new(words: [u32; 4], soffset: u32, idxen: bool, typed: bool) -> Self {
        let field = |word: usize, low: u32, bits: u32| words[word] >> low & ((1 << bits) - 1);
        let add_tid = field(3, 23, 1) == 1;
        let data_format = field(3, 15, 4);
        // Private buffers need longer strides, for which untyped instructions have the format field free.
        let extends_stride = add_tid && !typed;
        let stride = field(1, 16, 14) | if extends_stride { data_format << 14 } else { 0 };
        let range = if data_format == 0 && !extends_stride {
            Range::Nothing
        } else if add_tid && !idxen {
            Range::Everything
        } else if idxen && stride != 0 {
            Range::Records
        } else {
            Range::Bytes
        };
        Self {
            base: (u64::from(words[0]) | u64::from(field(1, 0, 16)) << 32) + u64::from(soffset),
            stride,
            records: words[2],
            range,
            add_tid,
            swizzled_group: (field(1, 31, 1) == 1).then_some(8 << field(3, 21, 2)),
            selects: [0, 3, 6, 9].map(|low| field(3, low, 3) as u8),
            number_format: field(3, 12, 3) as u8,
            data_format: data_format as u8,
        }
    }

    /// Whether the address grows by one with each byte of the offset, and depends on nothing else but the index.
    pub(super) fn is_linear(&self) -> bool {
        self.swizzled_group.is_none() && !self.add_tid
    }

    /// Address of the dword at `offset` in record `index`, if it is in range.
    pub(super) fn locate(&self, index: u32, offset: u64, lane: usize) -> Option<u64> {
        self.locate_whole(index, offset, lane, 1)
    }

    /// Address of `bytes` bytes at `offset` in record `index`, if all are in range.
    pub(super) fn locate_whole(&self, index: u32, offset: u64, lane: usize, bytes: usize) -> Option<u64> {
        let records = u64::from(self.records);
        let inside = match self.range {
            Range::Nothing => false,
            Range::Everything => true,
            Range::Records => u64::from(index) < records,
            Range::Bytes => offset + bytes as u64 <= records,
        };
        inside.then(|| self.base.wrapping_add(self.buffer_offset(index, offset, lane)))
    }

    fn buffer_offset(&self, index: u32, offset: u64, lane: usize) -> u64 {
        let index = u64::from(index) + if self.add_tid { lane as u64 } else { 0 };
        let stride = u64::from(self.stride);
        match self.swizzled_group {
            None => index * stride + offset,
            Some(group) => {
                let in_group = index % group * ELEMENT + offset % ELEMENT;
                (index / group * stride + offset / ELEMENT * ELEMENT) * group + in_group
            }
        }
    }
}
