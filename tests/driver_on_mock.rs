//! The driver against the emulated machine: packets of every kind, queues across XCCs and GPUs, and what the kernel refuses.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/machine.rs"]
mod machine;

use driver::address::{Bytes, GpuVa};
use driver::kfd::Command;
use driver::kfd::memory::{AllocFlags, AllocMemoryOfGpu, FreeMemoryOfGpu, MapMemoryToGpu, UnmapMemoryFromGpu};
use driver::kfd::queue::CreateQueue;
use driver::memory::{Access, Allocation, Buffer};
use driver::packets::aql::{Aql, BarrierAnd, BarrierOr, FenceScope, Pm4Ib};
use driver::packets::pm4::{
    AtomicMem, CopyData, CopyDst, CopySrc, DispatchDirect, DmaData, DmaSrc, EventWrite, PollOperation, PollSpace,
    PredExec, ReleaseData, ReleaseMem, WaitRegMem, WriteData, WriteDst, event,
};
use driver::packets::sdma::{
    Atomic, ConstantFill, CopyLinear, CopyLinearSubWindow, ElementSize, Fence, FillSize, PollRegMem, TimestampGetGlobal,
};
use driver::packets::{AtomicOp, Compare, Count};
use driver::queue::{AqlQueue, Pm4Queue, QueueOptions, SdmaEngine, SdmaQueue};
use driver::signal::{Patience, Signal, SignalPool, WaitError};
use machine::{Machine, short};

/// Host-visible memory for packets to act on, mapped on all GPUs of the machine.
fn shared(machine: &Machine, bytes: u64) -> Buffer {
    let buffer = machine.gpus[0].allocate(&Allocation::shared(Bytes::new(bytes), "test")).unwrap();
    buffer.map_to(&machine.gpus.iter().collect::<Vec<_>>()).unwrap();
    buffer
}

fn signal(machine: &Machine, value: u64) -> Signal {
    SignalPool::new(&machine.gpus[0], 1).unwrap().take_with_event(value).unwrap()
}

fn at(buffer: &Buffer, offset: u64) -> GpuVa {
    GpuVa::new(buffer.va().get() + offset)
}

fn dword(buffer: &Buffer, offset: u64) -> u32 {
    buffer.host().unwrap().dword(offset).unwrap().load(std::sync::atomic::Ordering::Acquire)
}

/// Submits SDMA packets and waits until they are done.
fn sdma(machine: &Machine, packets: &[u32]) {
    let mut queue = SdmaQueue::create(&machine.gpus[0], SdmaEngine::Any, QueueOptions::default()).unwrap();
    let done = signal(machine, 0);
    let mut dwords = packets.to_vec();
    Fence { address: done.value_va(), data: 1 }.encode(&mut dwords).unwrap();
    queue.submit(&dwords).unwrap();
    done.wait(Compare::Equal, 1, Patience::default(), &[&queue]).unwrap();
}

/// Runs `commands` as an indirect buffer of an AQL queue, on every XCC, and waits for its end.
fn aql_ib(machine: &Machine, commands: &[u32]) {
    let mut queue = AqlQueue::create(&machine.gpus[0], QueueOptions::default()).unwrap();
    let ib = shared(machine, 4096);
    ib.host().unwrap().write_dwords(0, commands).unwrap();
    let done = signal(machine, 1);
    let packet = Pm4Ib {
        barrier: true,
        acquire: FenceScope::System,
        release: FenceScope::System,
        ib_address: ib.va(),
        ib_dwords: commands.len() as u32,
        ib_valid: true,
        completion_signal: done.va(),
    };
    queue.submit(&[Aql::Pm4Ib(packet)]).unwrap();
    done.wait(Compare::Equal, 0, Patience::default(), &[&queue]).unwrap();
}

fn add_one(address: GpuVa) -> Vec<u32> {
    let mut dwords = Vec::new();
    AtomicMem { op: AtomicOp::ADD_32, address, source: 1, ..AtomicMem::default() }.encode(&mut dwords).unwrap();
    dwords
}

#[test]
fn an_atomic_in_an_indirect_buffer_happens_once_on_each_xcc() {
    let machine = Machine::start("gpus=1");
    let memory = shared(&machine, 4096);
    aql_ib(&machine, &add_one(memory.va()));
    assert_eq!(dword(&memory, 0), 8);
}

#[test]
fn under_pred_exec_for_one_xcc_it_happens_once() {
    let machine = Machine::start("gpus=1");
    let memory = shared(&machine, 4096);
    let add = add_one(memory.va());
    let mut commands = Vec::new();
    PredExec { exec_count: add.len() as u16, xcc_mask: 1 }.encode(&mut commands).unwrap();
    commands.extend(add);
    aql_ib(&machine, &commands);
    assert_eq!(dword(&memory, 0), 1);
}

#[test]
fn xccs_meet_at_an_atomic_counter_with_a_wait() {
    let machine = Machine::start("gpus=1,seed=5");
    let memory = shared(&machine, 4096);
    let mut commands = add_one(memory.va());
    WaitRegMem {
        function: Compare::GreaterOrEqual,
        mem_space: PollSpace::Memory,
        operation: PollOperation::Poll,
        poll: memory.va().get(),
        reference: 8,
        mask: u32::MAX,
        ..WaitRegMem::default()
    }
    .encode(&mut commands)
    .unwrap();
    // Every XCC copies what the counter holds after the barrier to a place of its own: all must have seen 8.
    for xcc in 0..8 {
        let mut copy = Vec::new();
        CopyData {
            src_sel: CopySrc::Memory,
            dst_sel: CopyDst::Memory,
            src: memory.va().get(),
            dst: at(&memory, 64 + 4 * xcc).get(),
            ..CopyData::default()
        }
        .encode(&mut copy)
        .unwrap();
        PredExec { exec_count: copy.len() as u16, xcc_mask: 1 << xcc }.encode(&mut commands).unwrap();
        commands.extend(copy);
    }
    aql_ib(&machine, &commands);
    for xcc in 0..8 {
        assert_eq!(dword(&memory, 64 + 4 * xcc), 8);
    }
}

#[test]
fn a_pm4_queue_runs_on_its_one_target_xcc() {
    let machine = Machine::start("gpus=1");
    let memory = shared(&machine, 4096);
    let done = signal(&machine, 0);
    let mut queue = Pm4Queue::create(&machine.gpus[0], 3, QueueOptions::default()).unwrap();
    let mut commands = add_one(memory.va());
    WriteData {
        dst_sel: WriteDst::Memory,
        wr_confirm: true,
        dst: at(&memory, 8).get(),
        data: &[7, 9],
        ..WriteData::default()
    }
    .encode(&mut commands)
    .unwrap();
    DmaData {
        src_sel: DmaSrc::Address,
        src: at(&memory, 8).get(),
        dst: at(&memory, 32),
        byte_count: 8,
        ..DmaData::default()
    }
    .encode(&mut commands)
    .unwrap();
    EventWrite { event_type: event::CS_PARTIAL_FLUSH, event_index: 4, ..EventWrite::default() }
        .encode(&mut commands)
        .unwrap();
    ReleaseMem {
        event_type: event::CACHE_FLUSH_AND_INV_TS,
        event_index: 5,
        data_sel: ReleaseData::Full64,
        address: done.value_va(),
        data: 1,
        ..ReleaseMem::default()
    }
    .encode(&mut commands)
    .unwrap();
    queue.submit(&commands).unwrap();
    done.wait(Compare::Equal, 1, Patience::default(), &[&queue]).unwrap();
    assert_eq!(dword(&memory, 0), 1);
    assert_eq!([dword(&memory, 32), dword(&memory, 36)], [7, 9]);
}

#[test]
fn barrier_packets_wait_for_all_or_for_one_of_their_signals() {
    let machine = Machine::start("gpus=1");
    let (a, b, both, one) = (signal(&machine, 1), signal(&machine, 1), signal(&machine, 1), signal(&machine, 1));
    let mut first = AqlQueue::create(&machine.gpus[0], QueueOptions::default()).unwrap();
    let mut second = AqlQueue::create(&machine.gpus[0], QueueOptions::default()).unwrap();
    let and = BarrierAnd {
        dep_signal_0: a.va(),
        dep_signal_4: b.va(),
        completion_signal: both.va(),
        ..BarrierAnd::default()
    };
    let or =
        BarrierOr { dep_signal_1: a.va(), dep_signal_2: b.va(), completion_signal: one.va(), ..BarrierOr::default() };
    first.submit(&[Aql::BarrierAnd(and)]).unwrap();
    second.submit(&[Aql::BarrierOr(or)]).unwrap();
    b.store(0).unwrap();
    one.wait(Compare::Equal, 0, Patience::default(), &[&second]).unwrap();
    assert!(matches!(both.wait(Compare::Equal, 0, short(), &[&first]), Err(WaitError::Timeout { .. })));
    a.store(0).unwrap();
    both.wait(Compare::Equal, 0, Patience::default(), &[&first]).unwrap();
}

#[test]
fn a_wait_that_times_out_names_the_queue_the_last_packet_and_both_values() {
    let machine = Machine::start("gpus=1");
    let (never, done) = (signal(&machine, 1), signal(&machine, 5));
    let mut queue = AqlQueue::create(&machine.gpus[0], QueueOptions::default()).unwrap();
    let packet = BarrierAnd { dep_signal_0: never.va(), completion_signal: done.va(), ..BarrierAnd::default() };
    queue.submit(&[Aql::BarrierAnd(packet)]).unwrap();
    let error = done.wait(Compare::Equal, 4, short(), &[&queue]).unwrap_err().to_string();
    for part in ["0x5", "0x4", "BARRIER_AND", "AQL queue"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let what = machine.mock.describe_queues().join("\n");
    assert!(what.contains("the signals of BARRIER_AND"), "{what}");
}

#[test]
fn sdma_copies_between_gpus_and_fills() {
    let machine = Machine::start("gpus=2");
    let here = machine.gpus[0].allocate(&Allocation::vram(Bytes::new(1 << 16), "here").with(Access::HOST)).unwrap();
    let there = machine.gpus[1].allocate(&Allocation::vram(Bytes::new(1 << 16), "there").with(Access::HOST)).unwrap();
    there.map_to(&[&machine.gpus[0]]).unwrap();
    let pattern: Vec<u8> = (0..1 << 16).map(|i: u32| (i * 7 + i / 251) as u8).collect();
    here.host().unwrap().write(0, &pattern).unwrap();
    let mut packets = Vec::new();
    // Odd addresses and lengths are allowed for linear copies.
    CopyLinear { bytes: Count(12_345), src: at(&here, 3), dst: at(&there, 1001), ..CopyLinear::default() }
        .encode(&mut packets)
        .unwrap();
    ConstantFill {
        fill_size: FillSize::B4,
        dst: at(&there, 32_768),
        data: 0xdead_beef,
        bytes: Count(4096),
        ..ConstantFill::default()
    }
    .encode(&mut packets)
    .unwrap();
    sdma(&machine, &packets);
    let mut found = vec![0; 1 << 16];
    there.host().unwrap().read(0, &mut found).unwrap();
    assert_eq!(found[1001..1001 + 12_345], pattern[3..3 + 12_345]);
    assert_eq!((found[1000], found[1001 + 12_345]), (0, 0));
    assert!(found[32_768..32_768 + 4096].chunks(4).all(|dword| dword == [0xef, 0xbe, 0xad, 0xde]));
    assert_eq!(found[32_768 + 4096], 0);
}

#[test]
fn sdma_copies_a_window_of_a_pitched_surface() {
    let machine = Machine::start("gpus=1");
    let memory = shared(&machine, 1 << 16);
    let pattern: Vec<u8> = (0..1 << 15).map(|i: u32| (i ^ i >> 7) as u8).collect();
    memory.host().unwrap().write(0, &pattern).unwrap();
    let mut packets = Vec::new();
    CopyLinearSubWindow {
        element: ElementSize::B4,
        src: memory.va(),
        src_x: 3,
        src_y: 2,
        src_pitch: Count(64),
        src_slice_pitch: Count(64 * 32),
        dst: at(&memory, 1 << 15),
        dst_pitch: Count(16),
        dst_slice_pitch: Count(16 * 32),
        rect_x: Count(10),
        rect_y: Count(20),
        rect_z: Count(1),
        ..CopyLinearSubWindow::default()
    }
    .encode(&mut packets)
    .unwrap();
    sdma(&machine, &packets);
    let mut found = vec![0; 1 << 15];
    memory.host().unwrap().read(1 << 15, &mut found).unwrap();
    for row in 0..20 {
        let from = (row + 2) * 256 + 12;
        assert_eq!(found[row * 64..row * 64 + 40], pattern[from..from + 40], "row {row}");
        assert_eq!(found[row * 64 + 40..row * 64 + 64], [0; 24], "row {row}");
    }
}

#[test]
fn sdma_polls_memory_counts_and_tells_the_time() {
    let machine = Machine::start("gpus=1");
    let memory = shared(&machine, 4096);
    let mut queue = SdmaQueue::create(&machine.gpus[0], SdmaEngine::Any, QueueOptions::default()).unwrap();
    let done = signal(&machine, 0);
    let mut packets = Vec::new();
    PollRegMem {
        function: Compare::Equal,
        memory: true,
        address: memory.va().get(),
        reference: 3,
        mask: 0xf,
        ..PollRegMem::default()
    }
    .encode(&mut packets)
    .unwrap();
    Atomic { op: AtomicOp::ADD_64, address: at(&memory, 8), source: 5, ..Atomic::default() }
        .encode(&mut packets)
        .unwrap();
    TimestampGetGlobal { address: at(&memory, 16) }.encode(&mut packets).unwrap();
    Fence { address: done.value_va(), data: 1 }.encode(&mut packets).unwrap();
    queue.submit(&packets).unwrap();
    assert!(done.wait(Compare::Equal, 1, short(), &[&queue]).is_err(), "it must wait for the polled value");
    memory.host().unwrap().dword(0).unwrap().store(0x13, std::sync::atomic::Ordering::Release);
    done.wait(Compare::Equal, 1, Patience::default(), &[&queue]).unwrap();
    assert_eq!(dword(&memory, 8), 5);
    assert_ne!(dword(&memory, 16), 0);
}

#[test]
fn a_doorbell_that_is_used_again_rings_only_its_new_queue() {
    let machine = Machine::start("gpus=1");
    for round in 0..5 {
        let memory = shared(&machine, 4096);
        let mut packets = Vec::new();
        ConstantFill {
            fill_size: FillSize::B4,
            dst: memory.va(),
            data: round + 1,
            bytes: Count(4),
            ..ConstantFill::default()
        }
        .encode(&mut packets)
        .unwrap();
        sdma(&machine, &packets);
        assert_eq!(dword(&memory, 0), round + 1);
    }
}

#[test]
fn a_dispatch_without_a_program_is_a_fault_not_a_hang() {
    let machine = Machine::start("gpus=1");
    let done = signal(&machine, 0);
    let mut queue = Pm4Queue::create(&machine.gpus[0], 0, QueueOptions::default()).unwrap();
    let mut commands = Vec::new();
    DispatchDirect { dim_x: 1, dim_y: 1, dim_z: 1, initiator: 5 }.encode(&mut commands).unwrap();
    queue.submit(&commands).unwrap();
    let error = done.wait(Compare::Equal, 1, Patience::default(), &[&queue]).unwrap_err();
    assert!(matches!(error, WaitError::Event(_)), "{error}");
    assert!(machine.mock.faults()[0].contains("COMPUTE_NUM_THREAD"), "{:?}", machine.mock.faults());
    // The fault is sticky: nothing of this process can be trusted any more.
    assert!(done.wait(Compare::Equal, 1, Patience::default(), &[]).is_err());
}

#[test]
fn an_engine_that_touches_unmapped_memory_faults_with_the_address() {
    let machine = Machine::start("gpus=2");
    // Mapped on GPU 1 only.
    let there = machine.gpus[1].allocate(&Allocation::vram(Bytes::new(4096), "there")).unwrap();
    let done = signal(&machine, 0);
    let mut queue = SdmaQueue::create(&machine.gpus[0], SdmaEngine::Any, QueueOptions::default()).unwrap();
    let mut packets = Vec::new();
    Fence { address: at(&there, 64), data: 1 }.encode(&mut packets).unwrap();
    queue.submit(&packets).unwrap();
    let error = done.wait(Compare::Equal, 1, Patience::default(), &[&queue]).unwrap_err().to_string();
    assert!(error.contains(&format!("{}", there.va())), "{error}");
}

#[test]
fn the_kernel_refuses_what_it_refuses_on_a_real_machine() {
    let machine = Machine::start("gpus=1,vram=1048576");
    let id = machine.gpus[0].id();
    let vram = (AllocFlags::VRAM | AllocFlags::WRITABLE).bits();
    let alloc = |va_addr, size, flags| AllocMemoryOfGpu { va_addr, size, gpu_id: id, flags, ..Default::default() };
    let va = 0x7000_0000_0000;
    for (what, mut arguments, errno) in [
        ("no size", alloc(va, 0, vram), libc::EINVAL),
        ("a misaligned address", alloc(va + 8, 4096, vram), libc::EINVAL),
        ("two kinds of memory", alloc(va, 4096, vram | AllocFlags::GTT.bits()), libc::EINVAL),
        ("a size that overflows", alloc(va, u64::MAX - 100, vram), libc::EINVAL),
        ("more than there is", alloc(va, 2 << 20, vram), libc::ENOMEM),
        ("a doorbell of another size", alloc(va, 4096, AllocFlags::DOORBELL.bits()), libc::EINVAL),
        ("a user pointer of nothing", alloc(va, 4096, AllocFlags::USERPTR.bits()), libc::EINVAL),
    ] {
        assert_eq!(machine.ioctl(Command::AllocMemoryOfGpu, &mut arguments), Err(errno), "{what}");
    }
    let mut one = alloc(va, 4096, vram);
    let mut other = alloc(va, 8192, vram);
    machine.ioctl(Command::AllocMemoryOfGpu, &mut one).unwrap();
    machine.ioctl(Command::AllocMemoryOfGpu, &mut other).unwrap();
    let ids = [id];
    let map = |handle| MapMemoryToGpu { handle, device_ids_array_ptr: ids.as_ptr() as u64, n_devices: 1, n_success: 0 };
    let mut mapped = map(one.handle);
    machine.ioctl(Command::MapMemoryToGpu, &mut mapped).unwrap();
    assert_eq!(mapped.n_success, 1);
    assert_eq!(
        machine.ioctl(Command::MapMemoryToGpu, &mut map(other.handle)),
        Err(libc::EINVAL),
        "overlapping addresses"
    );
    let mut free = FreeMemoryOfGpu { handle: one.handle };
    assert_eq!(machine.ioctl(Command::FreeMemoryOfGpu, &mut free), Err(libc::EBUSY), "memory that is still mapped");
    let mut unmap = UnmapMemoryFromGpu {
        handle: one.handle,
        device_ids_array_ptr: ids.as_ptr() as u64,
        n_devices: 1,
        n_success: 0,
    };
    machine.ioctl(Command::UnmapMemoryFromGpu, &mut unmap).unwrap();
    machine.ioctl(Command::FreeMemoryOfGpu, &mut free).unwrap();
    assert_eq!(machine.ioctl(Command::FreeMemoryOfGpu, &mut free), Err(libc::EINVAL), "a second free");
}

#[test]
fn queues_need_exactly_the_buffers_the_kernel_asks_for() {
    let machine = Machine::start("gpus=1");
    // Whatever ring it names, a compute queue without pointers, EOP buffer and save area is refused.
    let mut queue = CreateQueue {
        ring_base_address: 0x7000_0000_0000,
        ring_size: 4096,
        gpu_id: machine.gpus[0].id(),
        queue_type: 2,
        queue_percentage: 100,
        queue_priority: 7,
        ..Default::default()
    };
    assert_eq!(machine.ioctl(Command::CreateQueue, &mut queue), Err(libc::EINVAL));
    let good = QueueOptions::default();
    for options in [
        QueueOptions { ring: Bytes::new(5000), ..good },
        QueueOptions { priority: 16, ..good },
        QueueOptions { percentage: 101, ..good },
    ] {
        assert!(AqlQueue::create(&machine.gpus[0], options).is_err(), "{options:?}");
    }
    assert!(Pm4Queue::create(&machine.gpus[0], 8, good).is_err(), "there is no XCC 8");
}

#[test]
fn a_machine_that_nobody_uses_any_more_is_gone() {
    let machine = Machine::start("gpus=2");
    sdma(&machine, &[]);
    aql_ib(&machine, &[]);
    let mock = std::sync::Arc::downgrade(&machine.mock);
    drop(machine);
    assert!(mock.upgrade().is_none(), "its threads would run on");
}
