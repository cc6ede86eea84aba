//! PM4: what one XCC's command processor does with the packets of a ring or an indirect buffer.

use std::collections::VecDeque;
use std::sync::Arc;

use driver::address::GpuVa;
use driver::packets::pm4::{
    self, CoherCntl, CopyDst, CopySrc, DmaData, DmaDst, DmaSrc, Nop, Pm4, PollOperation, PollSpace, ReleaseData,
    ReleaseDst, ReleaseInterrupt, ReleaseMem, WriteDst, event,
};
use driver::packets::registers::{GPU_HDP_FLUSH_DONE, GPU_HDP_FLUSH_REQ};

use super::bus::Workgroups;
use super::registers::ComputeRegisters;
use super::{Bus, Processor};
use crate::atomic;
use crate::check::Scope;
use crate::doorbell::Doorbell;
use crate::kfd::QueueMemory;
use crate::machine::launch::Launch;
use crate::machine::{Counters, GpuFault};
use crate::memory::MemoryFault;
use crate::observe::{CacheAction, OrderEvent};

/// Packets a context executes before the others get their turn.
const PACKETS_PER_STEP: usize = 256;
/// Indirect buffers within indirect buffers; the hardware has two levels.
const MAX_DEPTH: usize = 2;

/// Where packets come from: dwords `next..end`, of a ring or at an address.
#[derive(Clone, Copy, Debug)]
struct Frame {
    base: u64,
    next: u64,
    end: u64,
    /// Dwords after which the ring starts over; zero for an indirect buffer.
    wrap: u64,
}

impl Frame {
    fn address(&self, ahead: u64) -> u64 {
        let at = self.next + ahead;
        self.base + 4 * if self.wrap == 0 { at } else { at % self.wrap }
    }
}

/// Work sent down the pipe and not known to be finished, in order.
enum Pending {
    Launch(Arc<Launch>),
    Release(ReleaseMem),
}

/// What became of a packet.
enum Outcome {
    Executed,
    /// It waits; the same packet is tried again.
    Waits(String),
}

/// One XCC's view of a queue: registers, position, work in flight.
pub(super) struct Pm4Context {
    xcc: usize,
    workgroups: Workgroups,
    registers: ComputeRegisters,
    frames: Vec<Frame>,
    pending: VecDeque<Pending>,
    indirect_base: u64,
    /// Dwords behind the packet being executed that are not for this XCC.
    skip: u64,
    waits_for: String,
    buffer: Vec<u32>,
}

impl Pm4Context {
    pub(super) fn new(xcc: usize, workgroups: Workgroups) -> Self {
        Self {
            xcc,
            workgroups,
            registers: ComputeRegisters::default(),
            frames: Vec::new(),
            pending: VecDeque::new(),
            indirect_base: 0,
            skip: 0,
            waits_for: String::new(),
            buffer: Vec::new(),
        }
    }

    /// Runs the indirect buffer at `address`.
    pub(super) fn run(&mut self, address: GpuVa, dwords: u32) {
        self.frames.push(Frame { base: address.get(), next: 0, end: dwords.into(), wrap: 0 });
    }

    /// Whether everything has been executed and has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.frames.is_empty() && self.pending.is_empty()
    }

    pub(super) fn describe(&self) -> String {
        let waits = if self.is_idle() { "nothing" } else { &self.waits_for };
        format!("XCC {} waits for {waits}", self.xcc)
    }

    /// Executes packets until one waits, the buffers are through, or others should have a turn.
    pub(super) fn step(&mut self, bus: &mut Bus<'_>) -> Result<bool, GpuFault> {
        let mut moved = self.drain(bus)?;
        for _ in 0..PACKETS_PER_STEP {
            let Some(frame) = self.frames.last().copied() else { break };
            if frame.next >= frame.end {
                self.frames.pop();
                moved = true;
                continue;
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let outcome = self.packet(bus, frame, &mut buffer);
            self.buffer = buffer;
            moved |= self.drain(bus)?;
            match outcome? {
                Outcome::Executed => moved = true,
                Outcome::Waits(what) => {
                    self.waits_for = what;
                    break;
                }
            }
        }
        Ok(moved)
    }

    /// Does what waited at the end of the pipe for work that has ended by now.
    fn drain(&mut self, bus: &mut Bus<'_>) -> Result<bool, GpuFault> {
        let mut moved = false;
        while let Some(front) = self.pending.front() {
            match front {
                Pending::Launch(launch) if !launch.is_done() => break,
                Pending::Launch(_) => {}
                Pending::Release(release) => release_mem(bus, self.xcc, release)?,
            }
            self.pending.pop_front();
            moved = true;
        }
        Ok(moved)
    }

    fn packet(&mut self, bus: &mut Bus<'_>, frame: Frame, buffer: &mut Vec<u32>) -> Result<Outcome, GpuFault> {
        let memory = |fault| GpuFault::Memory { engine: format!("XCC {} command processor", self.xcc), fault };
        let problem = |bus: &Bus<'_>, text: String| bus.packet_fault(format!("XCC {}: {text}", self.xcc));
        let header = bus.view.read_u32(frame.address(0)).map_err(memory)?;
        let length = pm4::length(header)
            .map_err(|error| problem(bus, format!("at {:#x}: {header:#010x}: {error}", frame.address(0))))?;
        if frame.next + length as u64 > frame.end {
            return Err(problem(bus, format!("{header:#010x} needs {length} dwords, past the end of its buffer")));
        }
        // A NOP's payload may be long, and is not looked at.
        let is_nop = header >> 8 & 0xff == Nop::OPCODE;
        buffer.clear();
        for i in 0..if is_nop { 1 } else { length as u64 } {
            buffer.push(bus.view.read_u32(frame.address(i)).map_err(memory)?);
        }
        let outcome = if is_nop {
            Outcome::Executed
        } else {
            let packet =
                Pm4::decode(buffer).map_err(|error| problem(bus, format!("at {:#x}: {error}", frame.address(0))))?;
            self.execute(bus, &packet)?
        };
        if matches!(outcome, Outcome::Executed) {
            // The packet may have pushed the buffer it runs on top of its own frame.
            let depth = self.frames.iter().rposition(|f| f.base == frame.base && f.next == frame.next);
            if let Some(depth) = depth {
                self.frames[depth].next += length as u64 + std::mem::take(&mut self.skip);
            }
        }
        Ok(outcome)
    }

    fn execute(&mut self, bus: &mut Bus<'_>, packet: &Pm4<'_>) -> Result<Outcome, GpuFault> {
        let refuse = |bus: &Bus<'_>, why: &str| Err(bus.packet_fault(format!("{packet}: {why}")));
        let memory = |fault| GpuFault::Memory { engine: packet.to_string(), fault };
        match packet {
            Pm4::Nop(_) => {}
            Pm4::SetShReg(set) => {
                if let Err(number) = self.registers.set(set.register, set.values) {
                    return refuse(bus, &format!("{number:#x} is not a compute register"));
                }
            }
            // GRBM_GFX_INDEX and the like: which instance later register accesses mean. Compute queues have no others.
            Pm4::SetUconfigReg(_) => {}
            Pm4::SetBase(base) => {
                if base.base_index != 1 {
                    return refuse(bus, "only base 1, of indirect arguments, is known");
                }
                self.indirect_base = base.address.get();
            }
            Pm4::DispatchDirect(d) => self.dispatch(bus, [d.dim_x, d.dim_y, d.dim_z], d.initiator)?,
            Pm4::DispatchIndirect(d) => {
                let at = self.indirect_base.wrapping_add(d.address.get());
                let mut dims = [0; 3];
                for (i, dim) in dims.iter_mut().enumerate() {
                    *dim = bus.view.read_u32(at + 4 * i as u64).map_err(memory)?;
                }
                self.dispatch(bus, dims, d.initiator)?;
            }
            Pm4::IndirectBuffer(ib) => {
                if !ib.valid {
                    return refuse(bus, "VALID is not set");
                }
                let depth = self.frames.iter().filter(|frame| frame.wrap == 0).count();
                if depth >= MAX_DEPTH && !ib.chain {
                    return refuse(bus, "indirect buffers are nested too deep");
                }
                let frame = Frame { base: ib.address.get(), next: 0, end: ib.dwords.into(), wrap: 0 };
                if let (true, Some(top)) = (ib.chain, self.frames.last_mut()) {
                    *top = frame;
                } else {
                    self.frames.push(frame);
                }
            }
            Pm4::CondExec(cond) => {
                if bus.view.read_u32(cond.address.get()).map_err(memory)? == 0 {
                    self.skip = cond.exec_count.into();
                }
            }
            Pm4::PredExec(pred) => {
                // Obeyed in indirect buffers only: in a ring every XCC goes on.
                let in_ib = self.frames.last().is_some_and(|frame| frame.wrap == 0);
                if in_ib && pred.xcc_mask >> self.xcc & 1 == 0 {
                    self.skip = pred.exec_count.into();
                }
            }
            Pm4::EventWrite(write) => {
                if write.event_type == event::CS_PARTIAL_FLUSH
                    && self.pending.iter().any(|p| matches!(p, Pending::Launch(launch) if !launch.is_done()))
                {
                    return Ok(Outcome::Waits("its waves to end (CS_PARTIAL_FLUSH)".into()));
                }
                if write.event_type == event::CS_PARTIAL_FLUSH {
                    bus.order(Some(self.xcc), OrderEvent::Waited);
                }
            }
            Pm4::AcquireMem(acquire) => {
                let act = |bits, action| {
                    if acquire.coher_cntl.contains(bits) {
                        bus.cache(Some(self.xcc), action, Scope::System);
                    }
                };
                act(CoherCntl::TC_WB, CacheAction::WriteBack);
                act(CoherCntl::TC, CacheAction::Invalidate);
            }
            Pm4::ReleaseMem(release) => self.pending.push_back(Pending::Release(*release)),
            Pm4::WaitRegMem(wait) => {
                let poll = (wait.mem_space, wait.operation);
                let value = match poll {
                    (PollSpace::Memory, PollOperation::Poll | PollOperation::PollPreemptable) => {
                        bus.view.read_u32(wait.poll).map_err(memory)?
                    }
                    (PollSpace::Register, PollOperation::WriteThenPoll) if is_hdp_flush(wait.poll) => wait.reference,
                    _ => return refuse(bus, "only memory and the HDP flush registers can be polled"),
                };
                if !wait.function.holds((value & wait.mask).into(), wait.reference.into()) {
                    return Ok(Outcome::Waits(format!("{packet}, where memory holds {value:#x}")));
                }
                if wait.mem_space == PollSpace::Memory {
                    bus.order(Some(self.xcc), OrderEvent::Heard(wait.poll));
                }
            }
            Pm4::WaitRegMem64(wait) => {
                if wait.mem_space != PollSpace::Memory || wait.operation == PollOperation::WriteThenPoll {
                    return refuse(bus, "only memory can be polled");
                }
                let value = bus.view.read_u64(wait.poll).map_err(memory)?;
                if !wait.function.holds(value & wait.mask, wait.reference) {
                    return Ok(Outcome::Waits(format!("{packet}, where memory holds {value:#x}")));
                }
                bus.order(Some(self.xcc), OrderEvent::Heard(wait.poll));
            }
            Pm4::WriteData(write) => {
                if !matches!(write.dst_sel, WriteDst::L2 | WriteDst::Memory) {
                    return refuse(bus, "only memory can be written");
                }
                for (i, &dword) in write.data.iter().enumerate() {
                    let at = write.dst + if write.one_address { 0 } else { 4 * i as u64 };
                    bus.view.write_u32(at, dword).map_err(memory)?;
                }
            }
            Pm4::CopyData(copy) => {
                let value = match copy.src_sel {
                    CopySrc::Memory | CopySrc::L2 if copy.wide => bus.view.read_u64(copy.src).map_err(memory)?,
                    CopySrc::Memory | CopySrc::L2 => bus.view.read_u32(copy.src).map_err(memory)?.into(),
                    CopySrc::Immediate => copy.src,
                    CopySrc::GpuClock => bus.shared.clock(),
                    _ => return refuse(bus, "that source is not emulated"),
                };
                match copy.dst_sel {
                    CopyDst::Memory | CopyDst::L2 if copy.wide => bus.view.write_u64(copy.dst, value),
                    CopyDst::Memory | CopyDst::L2 => bus.view.write_u32(copy.dst, value as u32),
                    _ => return refuse(bus, "that destination is not emulated"),
                }
                .map_err(memory)?;
            }
            Pm4::AtomicMem(op) => {
                bus.order(Some(self.xcc), OrderEvent::Told { address: op.address.get(), launch: None });
                if op.command == pm4::AtomicCommand::LoopUntilCompare {
                    let old = atomic::apply(&mut bus.view, op.op, op.address.get(), op.source, op.compare);
                    if old.map_err(memory)? != op.compare {
                        return Ok(Outcome::Waits(format!("{packet}")));
                    }
                } else {
                    atomic::apply(&mut bus.view, op.op, op.address.get(), op.source, op.compare).map_err(memory)?;
                }
            }
            Pm4::DmaData(dma) => {
                if !self.dma(bus, dma).map_err(memory)? {
                    return refuse(bus, "that source or destination is not emulated");
                }
            }
            Pm4::SwitchBuffer(_)
            | Pm4::MemSemaphore(_)
            | Pm4::SetResources(_)
            | Pm4::MapQueues(_)
            | Pm4::UnmapQueues(_) => return refuse(bus, "not a packet of a user compute queue"),
        }
        Ok(Outcome::Executed)
    }

    fn dispatch(&mut self, bus: &mut Bus<'_>, dimensions: [u32; 3], initiator: u32) -> Result<(), GpuFault> {
        let shape = self
            .registers
            .shape(dimensions, initiator, self.xcc, bus.xcc_count())
            .map_err(|why| bus.packet_fault(format!("XCC {}: dispatch: {why}", self.xcc)))?;
        if shape.workgroup_count() > 0 {
            let launch = bus.launch(shape, self.workgroups)?;
            self.pending.push_back(Pending::Launch(launch));
        }
        Ok(())
    }

    fn dma(&self, bus: &mut Bus<'_>, dma: &DmaData) -> Result<bool, MemoryFault> {
        let registers = dma.src_register || dma.dst_register || dma.src_fixed || dma.dst_fixed;
        if registers || matches!(dma.dst_sel, DmaDst::Gds | DmaDst::Nowhere) {
            return Ok(false);
        }
        match dma.src_sel {
            DmaSrc::Address | DmaSrc::L2 => {
                bus.view.copy(dma.src, dma.dst.get(), dma.byte_count.into())?;
            }
            DmaSrc::Data => bus.view.fill_u32(dma.dst.get(), dma.byte_count.into(), dma.src as u32)?,
            DmaSrc::Gds => return Ok(false),
        }
        Ok(true)
    }
}

/// The request and done registers of an HDP flush, which the mock's memory does not need.
fn is_hdp_flush(poll: u64) -> bool {
    poll as u32 == GPU_HDP_FLUSH_REQ && (poll >> 32) as u32 == GPU_HDP_FLUSH_DONE
}

fn release_mem(bus: &mut Bus<'_>, xcc: usize, release: &ReleaseMem) -> Result<(), GpuFault> {
    let refuse = |bus: &Bus<'_>, why: &str| Err(bus.packet_fault(format!("{release}: {why}")));
    if matches!(release.dst_sel, ReleaseDst::WritePointer | ReleaseDst::WritePointerPollMask) {
        return refuse(bus, "only memory can be written");
    }
    let at = release.address.get();
    if release.tc_wb_action {
        bus.cache(Some(xcc), CacheAction::WriteBack, Scope::System);
    }
    if release.tc_action {
        bus.cache(Some(xcc), CacheAction::Invalidate, Scope::System);
    }
    // It is at the end of the pipe: everything before it has ended.
    bus.order(Some(xcc), OrderEvent::Waited);
    bus.order(Some(xcc), OrderEvent::Told { address: at, launch: None });
    let written = match release.data_sel {
        ReleaseData::None => Ok(()),
        ReleaseData::Low32 => bus.view.write_u32(at, release.data as u32),
        ReleaseData::Full64 => bus.view.write_u64(at, release.data),
        ReleaseData::GpuClock => bus.view.write_u64(at, bus.shared.clock()),
        ReleaseData::CpPerfCounter | ReleaseData::Gds => return refuse(bus, "that data is not emulated"),
    };
    written.map_err(|fault| bus.memory_fault(fault))?;
    match release.int_sel {
        ReleaseInterrupt::None | ReleaseInterrupt::DataAfterConfirm => {}
        ReleaseInterrupt::Only | ReleaseInterrupt::AfterConfirm | ReleaseInterrupt::Always => {
            bus.interrupt(release.int_context);
        }
        ReleaseInterrupt::Compare32 | ReleaseInterrupt::Compare64 => {
            return refuse(bus, "conditional interrupts are not emulated");
        }
    }
    Ok(())
}

/// The processor of a queue of type PM4, which runs on one XCC.
pub(crate) struct Pm4Queue {
    memory: QueueMemory,
    doorbell: Doorbell,
    context: Pm4Context,
    /// Dwords taken from the ring.
    taken: u64,
}

impl Pm4Queue {
    pub(crate) fn new(memory: QueueMemory, doorbell: Doorbell, xcc: usize) -> Self {
        Self { memory, doorbell, context: Pm4Context::new(xcc, Workgroups::OnOne(xcc)), taken: 0 }
    }
}

impl Processor for Pm4Queue {
    fn step(&mut self, bus: &mut Bus<'_>) -> Result<bool, GpuFault> {
        let (rung, changed) = self.doorbell.read();
        let mut moved = changed;
        if let Some(end) = rung {
            if changed {
                Counters::add(&bus.shared.counters.doorbells, 1);
                bus.order(Some(self.context.xcc), OrderEvent::Submitted);
            }
            if self.context.frames.is_empty() && end > self.taken {
                let wrap = self.memory.ring_bytes / 4;
                if end - self.taken > wrap {
                    return Err(bus.packet_fault(format!("doorbell {end:#x} is more than a ring ahead")));
                }
                self.context.frames.push(Frame { base: self.memory.ring, next: self.taken, end, wrap });
            }
        }
        moved |= self.context.step(bus)?;
        let at = self.context.frames.first().map_or(rung.unwrap_or(self.taken).max(self.taken), |frame| frame.next);
        if at != self.taken {
            self.taken = at;
            bus.view.write_u64(self.memory.read_pointer, at).map_err(|fault| bus.memory_fault(fault))?;
        }
        Ok(moved)
    }

    fn describe(&self) -> String {
        format!("PM4, {}", self.context.describe())
    }
}
