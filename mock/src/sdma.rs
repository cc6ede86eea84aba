//! One SDMA queue: copies, fills, fences, polls (SDMA 4.4.x, `vega10_sdma_pkt_open.h`, `sdma_v4_4_2.c`).

use driver::packets::sdma::{self, CopyLinearSubWindow, FillSize, Sdma as Packet};

use crate::atomic;
use crate::doorbell::Doorbell;
use crate::kfd::QueueMemory;
use crate::machine::{Counters, GpuFault, Shared};
use crate::memory::{AccessKind, MemoryFault, PageMap, View};

/// Packets executed before other engines and queues get their turn.
const PACKETS_PER_STEP: usize = 64;
/// Dwords of the longest packet header that states its own length.
const LONGEST_HEADER: u64 = 4;
/// Indirect buffers must end on a multiple of this many dwords.
const INDIRECT_ALIGN: u64 = 8;

/// An indirect buffer being executed.
#[derive(Clone, Copy, Debug)]
struct Indirect {
    base: u64,
    next: u64,
    end: u64,
}

/// What became of a packet.
enum Outcome {
    Executed,
    Waits,
}

/// The processor of one SDMA queue.
pub(crate) struct Sdma {
    memory: QueueMemory,
    doorbell: Doorbell,
    /// Bytes taken from the ring.
    taken: u64,
    indirect: Option<Indirect>,
    skip: u64,
}

impl Sdma {
    pub(crate) fn new(memory: QueueMemory, doorbell: Doorbell) -> Self {
        Self { memory, doorbell, taken: 0, indirect: None, skip: 0 }
    }

    /// Executes packets until one waits, the ring is empty, or others should have a turn.
    pub(crate) fn step(&mut self, shared: &Shared, gpu: usize, map: &PageMap) -> Result<bool, GpuFault> {
        let (rung, changed) = self.doorbell.read();
        let Some(end) = rung else { return Ok(false) };
        if changed {
            Counters::add(&shared.counters.doorbells, 1);
        }
        let mut view = View::new(map);
        let engine = format!("GPU {gpu} SDMA");
        let memory = |fault| GpuFault::Memory { engine: engine.clone(), fault };
        let problem = |problem| GpuFault::Packet { engine: engine.clone(), problem };
        if end > self.taken && end - self.taken > self.memory.ring_bytes {
            return Err(problem(format!("doorbell {end:#x} is more than a ring ahead of {:#x}", self.taken)));
        }
        let mut moved = changed;
        let mut buffer = Vec::new();
        for _ in 0..PACKETS_PER_STEP {
            let available = match self.indirect {
                Some(ib) if ib.next >= ib.end => {
                    self.indirect = None;
                    continue;
                }
                Some(ib) => ib.end - ib.next,
                None if self.taken >= end => {
                    break;
                }
                None => (end - self.taken) / 4,
            };
            buffer.clear();
            for i in 0..available.min(LONGEST_HEADER) {
                buffer.push(view.read_u32(self.address(i)).map_err(memory)?);
            }
            let at = self.address(0);
            let length = sdma::length(&buffer).map_err(|e| problem(format!("at {at:#x}: {e}")))? as u64;
            if length > available {
                return Err(problem(format!("at {at:#x}: a packet of {length} dwords, {available} are left")));
            }
            for i in buffer.len() as u64..length {
                buffer.push(view.read_u32(self.address(i)).map_err(memory)?);
            }
            buffer.truncate(length as usize);
            let packet = Packet::decode(&buffer).map_err(|e| problem(format!("at {at:#x}: {e}")))?;
            let in_indirect = self.indirect.is_some();
            match self.execute(shared, &mut view, &packet).map_err(|stop| match stop {
                Refused::Memory(fault) => GpuFault::Memory { engine: format!("{engine}: {packet}"), fault },
                Refused::Packet(why) => problem(format!("{packet}: {why}")),
            })? {
                Outcome::Waits => {
                    break;
                }
                Outcome::Executed => moved = true,
            }
            let dwords = length + std::mem::take(&mut self.skip);
            match &mut self.indirect {
                Some(ib) if in_indirect => ib.next += dwords,
                _ => self.taken += 4 * dwords,
            }
        }
        if moved {
            view.write_u64(self.memory.read_pointer, self.taken).map_err(memory)?;
        }
        Ok(moved)
    }

    fn address(&self, dword: u64) -> u64 {
        match self.indirect {
            Some(ib) => ib.base + 4 * (ib.next + dword),
            None => self.memory.ring + (self.taken + 4 * dword) % self.memory.ring_bytes,
        }
    }

    fn execute(&mut self, shared: &Shared, view: &mut View<'_>, packet: &Packet<'_>) -> Result<Outcome, Refused> {
        let refuse = |why: &str| Err(Refused::Packet(why.into()));
        match packet {
            Packet::Nop(_) => {}
            Packet::CopyLinear(copy) => {
                if copy.src_swap != 0 || copy.dst_swap != 0 {
                    return refuse("byte swapping is not emulated");
                }
                view.copy(copy.src.get(), copy.dst.get(), copy.bytes.0.into())?;
                Counters::add(&shared.counters.sdma_bytes, copy.bytes.0.into());
            }
            Packet::CopyLinearSubWindow(window) => copy_window(shared, view, window)?,
            Packet::Write(write) => {
                if write.swap != 0 {
                    return refuse("byte swapping is not emulated");
                }
                for (i, &dword) in write.data.iter().enumerate() {
                    view.write_u32(write.dst.get() + 4 * i as u64, dword)?;
                }
            }
            Packet::Indirect(ib) => {
                if self.indirect.is_some() {
                    return refuse("an indirect buffer within another");
                }
                let end = u64::from(ib.ib_dwords);
                let at_end = self.taken / 4 + 6;
                if !at_end.is_multiple_of(INDIRECT_ALIGN) {
                    return refuse("the packet must end on a multiple of 8 dwords");
                }
                if !ib.ib_base.get().is_multiple_of(32) {
                    return refuse("the buffer must start at a multiple of 32 bytes");
                }
                self.indirect = Some(Indirect { base: ib.ib_base.get(), next: 0, end });
            }
            Packet::Fence(fence) => view.write_u32(fence.address.get(), fence.data)?,
            Packet::Trap(trap) => shared.events.signal(trap.int_context),
            Packet::PollRegMem(poll) => {
                if !poll.memory {
                    // The HDP flush form writes and polls registers that the mock's memory does not need.
                    return if poll.hdp_flush { Ok(Outcome::Executed) } else { refuse("only memory can be polled") };
                }
                let value = view.read_u32(poll.address)?;
                if !poll.function.holds((value & poll.mask).into(), poll.reference.into()) {
                    return Ok(Outcome::Waits);
                }
            }
            Packet::CondExe(cond) => {
                if view.read_u32(cond.address.get())? != cond.reference {
                    self.skip = cond.exec_count.into();
                }
            }
            Packet::Atomic(op) => {
                let old = atomic::apply(view, op.op, op.address.get(), op.source, op.compare)?;
                if op.repeat && old != op.compare {
                    return Ok(Outcome::Waits);
                }
            }
            Packet::ConstantFill(fill) => {
                if fill.swap != 0 {
                    return refuse("byte swapping is not emulated");
                }
                let (at, bytes) = (fill.dst.get(), u64::from(fill.bytes.0));
                match fill.fill_size {
                    FillSize::B4 => {
                        if bytes % 4 != 0 || at % 4 != 0 {
                            return refuse("a fill of dwords must be aligned to dwords");
                        }
                        view.fill_u32(at, bytes, fill.data)?;
                    }
                    FillSize::B1 => view.fill_bytes(at, bytes, &fill.data.to_le_bytes()[..1])?,
                    FillSize::B2 => view.fill_bytes(at, bytes, &fill.data.to_le_bytes()[..2])?,
                }
                Counters::add(&shared.counters.sdma_bytes, bytes);
            }
            Packet::TimestampSet(_) => return refuse("setting the clock is not emulated"),
            Packet::TimestampGet(get) => view.write_u64(get.address.get(), shared.clock())?,
            Packet::TimestampGetGlobal(get) => view.write_u64(get.address.get(), shared.clock())?,
        }
        Ok(Outcome::Executed)
    }
}

/// Why a packet was not executed.
enum Refused {
    Memory(MemoryFault),
    Packet(String),
}

impl From<MemoryFault> for Refused {
    fn from(fault: MemoryFault) -> Self {
        Self::Memory(fault)
    }
}

/// Copies a box of elements between two pitched surfaces. Bases and pitches must be multiples of four bytes (ROCr
/// refuses others; the engine drops the low bits).
fn copy_window(shared: &Shared, view: &mut View<'_>, w: &CopyLinearSubWindow) -> Result<(), Refused> {
    let element = u64::from(w.element.bytes());
    let pitches = [w.src_pitch, w.dst_pitch, w.src_slice_pitch, w.dst_slice_pitch].map(|p| u64::from(p.0) * element);
    let bases = [w.src.get(), w.dst.get()];
    if pitches.iter().chain(&bases).any(|value| value % 4 != 0) {
        return Err(Refused::Packet("addresses and pitches must be multiples of 4 bytes".into()));
    }
    if w.src_swap != 0 || w.dst_swap != 0 {
        return Err(Refused::Packet("byte swapping is not emulated".into()));
    }
    let [src_pitch, dst_pitch, src_slice, dst_slice] = pitches;
    let row = u64::from(w.rect_x.0) * element;
    for z in 0..u64::from(w.rect_z.0) {
        for y in 0..u64::from(w.rect_y.0) {
            let at = |base: u64, x: u16, y0: u16, z0: u16, pitch: u64, slice: u64| {
                base + u64::from(x) * element + (u64::from(y0) + y) * pitch + (u64::from(z0) + z) * slice
            };
            let from = at(w.src.get(), w.src_x, w.src_y, w.src_z, src_pitch, src_slice);
            let to = at(w.dst.get(), w.dst_x, w.dst_y, w.dst_z, dst_pitch, dst_slice);
            view.copy(from, to, row)?;
        }
    }
    Counters::add(&shared.counters.sdma_bytes, row * u64::from(w.rect_y.0) * u64::from(w.rect_z.0));
    Ok(())
}

impl View<'_> {
    fn fill_bytes(&mut self, at: u64, bytes: u64, pattern: &[u8]) -> Result<(), MemoryFault> {
        let host = self.resolve(at, bytes, AccessKind::Write)?;
        debug_assert!(!pattern.is_empty());
        for i in 0..bytes as usize {
            // SAFETY: `resolve` gave `bytes` mapped bytes.
            unsafe { host.add(i).write_volatile(pattern[i % pattern.len()]) };
        }
        Ok(())
    }
}
