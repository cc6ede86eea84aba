//! The resident form of a graph: one PM4 indirect buffer in GPU memory that all XCCs run, each for itself.
//!
//! Nothing orders one XCC after another in an indirect buffer unless the buffer does. So between dependent kernels every
//! XCC waits for its own waves, writes its L2 back, meets the other XCCs at a counter, and invalidates its caches. Replay
//! is one AQL packet. Unproven on hardware: multi-XCC parts are commonly driven by AQL dispatches (`super`).

use driver::address::GpuVa;
use driver::packets::pm4::{
    AcquireMem, AtomicMem, CoherCntl, DispatchDirect, EventWrite, PollOperation, PollSpace, PredExec, SetShReg,
    WaitRegMem, event,
};
use driver::packets::registers::{ShRegister, dispatch_initiator};
use driver::packets::{AtomicOp, Compare, EncodeError};
use firmware_tools::code_object::KernelDescriptor;

/// Bytes of one unit of `LDS_SIZE` in COMPUTE_PGM_RSRC2 on gfx950: 320 dwords (LLVM AMDGPUUsage).
const LDS_UNIT: u32 = 1280;
/// Bits of `LDS_SIZE`.
const LDS_SHIFT: u32 = 15;
/// A cache action on everything: the largest size, from address 0.
const EVERYTHING: u64 = 0x00ff_ffff_ffff;
/// Clocks between polls, in units of 16: what tinygrad uses.
const POLL_INTERVAL: u16 = 4;

/// What a dispatch needs from its code object and its place in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// Address of the first instruction.
    pub(super) entry: GpuVa,
    /// The kernel descriptor.
    pub(super) descriptor: KernelDescriptor,
}

/// One dispatch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatch {
    pub(super) program: Program,
    pub(super) workgroups: [u32; 3],
    /// Work-items of a workgroup, all in x.
    pub(super) workgroup: u32,
    pub(super) kernarg: GpuVa,
}

/// Scratch memory of the queue, as each XCC has to be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scratch {
    /// Start of the part of XCC 0.
    pub(super) base: GpuVa,
    /// Bytes from one XCC's part to the next.
    pub(super) stride: u64,
    /// Value of COMPUTE_TMPRING_SIZE.
    pub(super) tmpring_size: u32,
}

/// Why a kernel can't be part of an indirect buffer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IbError {
    /// It asks for user SGPRs that only a dispatch packet's processor fills.
    #[error("kernel {0} asks for more than its arguments' address in user SGPRs")]
    UserSgprs(&'static str),
    /// A packet.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Writes an indirect buffer for `xccs` XCCs, a power of two.
pub(super) struct Writer {
    dwords: Vec<u32>,
    xccs: u32,
    /// Two counters used in turn: an XCC reaches the next meeting only when all have left the one before, so a counter is
    /// never added to while somebody still looks at it. They count up for ever; a meeting is a multiple of `xccs`.
    counters: [GpuVa; 2],
    barriers: usize,
}

impl Writer {
    /// Starts the buffer: whatever ran before is visible to its first kernel.
    pub(super) fn new(xccs: u32, counters: [GpuVa; 2], scratch: Option<Scratch>) -> Result<Self, IbError> {
        let mut writer = Self { dwords: Vec::new(), xccs, counters, barriers: 0 };
        writer.acquire()?;
        writer.set(ShRegister::COMPUTE_START_X, &[0, 0, 0])?;
        writer.set(ShRegister::COMPUTE_RESOURCE_LIMITS, &[0])?;
        writer.set(ShRegister::COMPUTE_TMPRING_SIZE, &[scratch.map_or(0, |scratch| scratch.tmpring_size)])?;
        if let Some(scratch) = scratch {
            for xcc in 0..xccs {
                let base = (scratch.base.get() + u64::from(xcc) * scratch.stride) >> 8;
                let mut own = Vec::new();
                let values = [base as u32, (base >> 32) as u32];
                let register = ShRegister::COMPUTE_DISPATCH_SCRATCH_BASE_LO;
                SetShReg { register, values: &values, ..SetShReg::default() }.encode(&mut own)?;
                let exec_count = own.len() as u16;
                PredExec { exec_count, xcc_mask: 1 << xcc }.encode(&mut writer.dwords)?;
                writer.dwords.extend(own);
            }
        }
        Ok(writer)
    }

    /// Adds a dispatch that waits for everything before it.
    pub(super) fn dispatch(&mut self, name: &'static str, dispatch: &Dispatch) -> Result<(), IbError> {
        let Dispatch { program: Program { entry, descriptor }, workgroups, workgroup, kernarg } = *dispatch;
        let sgprs = descriptor.user_sgprs();
        if sgprs.kernarg_segment_ptr != Some(0) || sgprs.count != 2 {
            return Err(IbError::UserSgprs(name));
        }
        let pgm = entry.get() >> 8;
        self.set(ShRegister::COMPUTE_PGM_LO, &[pgm as u32, (pgm >> 32) as u32])?;
        let scratch = u32::from(descriptor.private_segment_fixed_size > 0);
        let rsrc2 = descriptor.rsrc2.0 | scratch | descriptor.group_segment_fixed_size.div_ceil(LDS_UNIT) << LDS_SHIFT;
        self.set(ShRegister::COMPUTE_PGM_RSRC1, &[descriptor.rsrc1.0, rsrc2])?;
        self.set(ShRegister::COMPUTE_PGM_RSRC3, &[descriptor.rsrc3.0])?;
        self.set(ShRegister::COMPUTE_NUM_THREAD_X, &[workgroup, 1, 1])?;
        self.set(ShRegister::COMPUTE_USER_DATA_0, &[kernarg.low(), kernarg.high()])?;
        let [dim_x, dim_y, dim_z] = workgroups;
        let initiator = dispatch_initiator::COMPUTE_SHADER_EN | dispatch_initiator::FORCE_START_AT_000;
        DispatchDirect { dim_x, dim_y, dim_z, initiator }.encode(&mut self.dwords)?;
        self.xcc_barrier()
    }

    /// Waits for this XCC's waves, makes what they wrote visible, and goes on when all XCCs have.
    fn xcc_barrier(&mut self) -> Result<(), IbError> {
        EventWrite { event_type: event::CS_PARTIAL_FLUSH, event_index: 4, ..EventWrite::default() }
            .encode(&mut self.dwords)?;
        // RELEASE_MEM writes back too, but at the end of the pipe, with nothing to tell when; this waits for it.
        self.cache(CoherCntl::TC_WB)?;
        let counter = self.counters[self.barriers % 2];
        self.barriers += 1;
        AtomicMem { op: AtomicOp::ADD_32, address: counter, source: 1, ..AtomicMem::default() }
            .encode(&mut self.dwords)?;
        WaitRegMem {
            function: Compare::Equal,
            mem_space: PollSpace::Memory,
            operation: PollOperation::Poll,
            poll: counter.get(),
            reference: 0,
            mask: self.xccs - 1,
            poll_interval: POLL_INTERVAL,
            ..WaitRegMem::default()
        }
        .encode(&mut self.dwords)?;
        self.acquire()
    }

    fn acquire(&mut self) -> Result<(), IbError> {
        self.cache(CoherCntl::TC | CoherCntl::TCL1 | CoherCntl::SH_KCACHE | CoherCntl::SH_ICACHE)
    }

    fn cache(&mut self, coher_cntl: CoherCntl) -> Result<(), IbError> {
        let packet = AcquireMem { coher_cntl, size: EVERYTHING, base: 0, poll_interval: 10 };
        Ok(packet.encode(&mut self.dwords)?)
    }

    fn set(&mut self, register: ShRegister, values: &[u32]) -> Result<(), IbError> {
        Ok(SetShReg { register, values, ..SetShReg::default() }.encode(&mut self.dwords)?)
    }

    /// The buffer, and the meetings of XCCs in it.
    pub(super) fn finish(self) -> (Vec<u32>, usize) {
        (self.dwords, self.barriers)
    }
}

#[cfg(test)]
mod tests;
