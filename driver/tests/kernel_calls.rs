//! What the driver asks of the kernel, in which order, and what it leaves behind: also when a call fails.

mod support;

use std::sync::Arc;
use std::time::Duration;

use driver::address::{Bytes, GpuVa};
use driver::event::{self, Fault};
use driver::kfd::event::{HwException, MemoryException};
use driver::kfd::queue::CreateQueue;
use driver::kfd::{Command, OpenError};
use driver::memory::{self, Access, Allocation, Buffer};
use driver::packets::Compare;
use driver::packets::aql::{BarrierAnd, Slot};
use driver::queue::{self, AqlQueue, Pm4Queue, QueueOptions, Report, ScratchLayout, SdmaEngine, SdmaQueue};
use driver::signal::{Patience, SignalPool, WaitError};
use driver::{Gpu, Process};
use support::Kernel;

const NO_PATIENCE: Patience = Patience { spin: Duration::ZERO, limit: Duration::ZERO };

fn open() -> (Arc<Kernel>, Arc<Process>) {
    let kernel = Arc::new(Kernel::default());
    let process = Process::open(kernel.clone()).expect("the kernel side says yes");
    (kernel, process)
}

fn open_gpus() -> (Arc<Kernel>, Vec<Arc<Gpu>>) {
    let (kernel, process) = open();
    let nodes = process.topology().expect("two nodes are listed").gpus;
    let gpus = nodes.into_iter().map(|node| Gpu::open(&process, node).expect("the kernel side says yes")).collect();
    (kernel, gpus)
}

/// What stays for the life of the process: the event page, its two events, and the addresses of the page.
fn assert_only_the_event_page_is_left(kernel: &Kernel) {
    kernel.account(|account| {
        assert!(account.files.is_empty(), "{account:?}");
        assert!(account.queues.is_empty(), "{account:?}");
        assert_eq!((account.memory.len(), account.mappings.len(), account.events.len()), (1, 1, 2), "{account:?}");
    });
}

#[test]
fn the_first_gpu_brings_the_event_page_and_the_others_map_it() {
    let (kernel, process) = open();
    let nodes = process.topology().unwrap().gpus;
    kernel.take_calls();
    let first = Gpu::open(&process, nodes[0].clone()).unwrap();
    assert_eq!(
        kernel.take_calls(),
        [
            Command::AcquireVm,
            Command::GetProcessAperturesNew,
            Command::AllocMemoryOfGpu,
            Command::MapMemoryToGpu,
            Command::CreateEvent,
            Command::CreateEvent
        ]
    );
    assert_eq!(kernel.allocated()[0].flags, 0x9600_0000 | 2 | 0x2000_0000, "GTT, uncached, coherent, public, writable");
    assert_eq!(kernel.allocated()[0].size, 0x8000);
    let second = Gpu::open(&process, nodes[1].clone()).unwrap();
    let calls = kernel.take_calls();
    assert_eq!(calls, [Command::AcquireVm, Command::GetProcessAperturesNew, Command::MapMemoryToGpu]);
    assert_eq!(first.apertures().lds_base, 1 << 48);
    drop(first);
    let again = Gpu::open(&process, nodes[0].clone()).unwrap();
    assert_eq!(kernel.take_calls(), [Command::GetProcessAperturesNew], "its address space is this process' already");
    drop((again, second, process));
    assert_only_the_event_page_is_left(&kernel);
}

#[test]
fn a_gpu_that_another_part_of_the_program_holds_is_refused() {
    let (kernel, process) = open();
    let node = process.topology().unwrap().gpus.remove(0);
    kernel.fail(Command::AcquireVm, 0, libc::EBUSY);
    assert!(matches!(Gpu::open(&process, node.clone()), Err(driver::OpenError::InUse { gpu_id: 0xa1 })));
    kernel.account(|account| assert_eq!(account.files.len(), 1, "only /dev/kfd is open"));
    assert!(Gpu::open(&process, node).is_ok(), "nothing stands in the way of another try");
}

#[test]
fn an_older_kernel_is_refused() {
    let kernel = Arc::new(Kernel::default());
    kernel.set_version((1, 6));
    assert!(matches!(Process::open(kernel.clone()), Err(OpenError::OldKernel { major: 1, minor: 6 })));
    kernel.set_version((2, 0));
    assert!(Process::open(kernel.clone()).is_err());
    kernel.account(|account| assert!(account.files.is_empty()));
}

#[test]
fn memory_is_undone_in_the_opposite_order() {
    let (kernel, gpus) = open_gpus();
    kernel.take_calls();
    let buffer = gpus[0].allocate(&Allocation::vram(Bytes::new(5000), "weights").with(Access::HOST)).unwrap();
    assert_eq!(buffer.len(), Bytes::new(8192));
    buffer.map_to(&[&gpus[0], &gpus[1]]).unwrap();
    kernel
        .account(|account| assert!(account.memory.values().any(|mapped| mapped.len() == 2 && mapped.contains(&0xb2))));
    buffer.host().unwrap().write(8191, &[1]).unwrap();
    drop(buffer);
    assert_eq!(
        kernel.take_calls(),
        [
            Command::AllocMemoryOfGpu,
            Command::MapMemoryToGpu,
            Command::MapMemoryToGpu,
            Command::UnmapMemoryFromGpu,
            Command::FreeMemoryOfGpu
        ]
    );
    drop(gpus);
    assert_only_the_event_page_is_left(&kernel);
}

#[test]
fn each_kind_of_memory_asks_for_what_it_is() {
    let (kernel, gpus) = open_gpus();
    let flags = |what: Allocation<'_>| {
        let buffer = gpus[0].allocate(&what).unwrap();
        let args = *kernel.allocated().last().unwrap();
        assert_eq!(args.va_addr, buffer.va().get());
        (args.flags, args.mmap_offset == args.va_addr)
    };
    let page = Bytes::PAGE;
    assert_eq!(flags(Allocation::vram(page, "v")), (0x9000_0001, false));
    assert_eq!(flags(Allocation::vram(page, "v").with(Access::HOST)), (0xb000_0001, false));
    assert_eq!(flags(Allocation::vram(page, "v").with(Access::EXECUTE)), (0xd000_0001, false));
    assert_eq!(flags(Allocation::vram(page, "v").with(Access::GPU_READ_ONLY)), (0x1000_0001, false));
    assert_eq!(flags(Allocation::vram(page, "v").with(Access::EXT_COHERENT)), (0x9500_0001, false));
    assert_eq!(flags(Allocation::shared(page, "s").with(Access::EXECUTE)), (0xf600_0002, false));
    assert_eq!(flags(Allocation::staging(page, "u")), (0xb000_0004, true), "a userptr is its own host memory");
}

#[test]
fn large_memory_starts_at_a_huge_page_and_private_vram_has_no_host_view() {
    let (_kernel, gpus) = open_gpus();
    let large = gpus[0].allocate(&Allocation::vram(Bytes::new(3 << 20), "large")).unwrap();
    assert!(large.va().is_aligned(Bytes::HUGE_PAGE));
    assert!(matches!(large.host(), Err(memory::Error::NotHostVisible { label }) if label == "large"));
    for bytes in [0, 1 << 47, u64::MAX] {
        let refused = gpus[0].allocate(&Allocation::vram(Bytes::new(bytes), "absurd"));
        assert!(matches!(refused, Err(memory::Error::Length { .. })));
    }
}

#[test]
fn running_over_the_end_of_memory_reaches_no_other() {
    let (_kernel, gpus) = open_gpus();
    let allocate = |bytes| gpus[0].allocate(&Allocation::vram(Bytes::new(bytes), "one of many")).unwrap();
    let mut buffers: Vec<_> = [4096, 8192, 2 << 20, 4096, 4 << 20, 4096].into_iter().map(allocate).collect();
    buffers.sort_by_key(Buffer::va);
    for pair in buffers.windows(2) {
        assert!(pair[0].va().get() + pair[0].len().get() + 4096 <= pair[1].va().get(), "{pair:?}");
    }
}

#[test]
fn a_failed_allocation_leaves_nothing_and_says_what_to_do() {
    let (kernel, gpus) = open_gpus();
    let message = |command, errno, what: Allocation<'_>| {
        let before = kernel.account(|account| (account.memory.len(), account.mappings.len()));
        kernel.fail(command, 0, errno);
        let error = gpus[0].allocate(&what).unwrap_err().to_string();
        assert_eq!(kernel.account(|account| (account.memory.len(), account.mappings.len())), before, "{error}");
        error
    };
    let visible = Allocation::vram(Bytes::PAGE, "activations").with(Access::HOST);
    assert!(message(Command::AllocMemoryOfGpu, libc::EINVAL, visible).contains("large BAR"));
    let private = Allocation::vram(Bytes::PAGE, "activations");
    let full = message(Command::AllocMemoryOfGpu, libc::ENOMEM, private);
    assert!(full.contains("activations") && full.contains("0xa1") && full.contains("make the plan smaller"), "{full}");
    let staging = Allocation::staging(Bytes::PAGE, "staging");
    assert!(message(Command::AllocMemoryOfGpu, libc::ENOMEM, staging).contains("fewer or smaller staging buffers"));
    assert!(message(Command::MapMemoryToGpu, libc::EINVAL, private).contains("cannot map"));
}

#[test]
fn memory_a_gpu_may_still_reach_keeps_its_addresses() {
    let (kernel, gpus) = open_gpus();
    let buffer = gpus[0].allocate(&Allocation::vram(Bytes::PAGE, "stuck")).unwrap();
    let before = kernel.account(|account| (account.memory.len(), account.mappings.len()));
    kernel.fail(Command::UnmapMemoryFromGpu, 0, libc::EBUSY);
    drop(buffer);
    assert_eq!(kernel.account(|account| (account.memory.len(), account.mappings.len())), before);
}

fn args_of(kernel: &Kernel) -> CreateQueue {
    *kernel.created().last().expect("a queue was created")
}

#[test]
fn a_compute_queue_is_created_with_the_sizes_other_clients_compute() {
    let (kernel, gpus) = open_gpus();
    let options = QueueOptions { ring: Bytes::new(16 << 20), ..Default::default() };
    let queue = AqlQueue::create(&gpus[0], options).unwrap();
    // As captured from tinygrad on the same topology; see the golden streams.
    let args = args_of(&kernel);
    assert_eq!((args.queue_type, args.ring_size, args.gpu_id), (2, 0x100_0000, 0xa1));
    assert_eq!((args.queue_percentage, args.queue_priority), (0x64, 7));
    assert_eq!((args.eop_buffer_size, args.ctx_save_restore_size, args.ctl_stack_size), (0x1000, 0x15a_3000, 0x3000));
    assert_eq!((args.read_pointer_address & 0xfff, args.write_pointer_address & 0xfff), (0x80, 0x38));
    let size_at = |va: u64| kernel.allocated().iter().find(|memory| memory.va_addr == va).map(|memory| memory.size);
    assert_eq!(size_at(args.ring_base_address), Some(0x100_0000));
    assert_eq!(size_at(args.ctx_save_restore_address), Some(0xad6_8000));
    assert_eq!(size_at(args.eop_buffer_address), Some(0x1000));
    assert_eq!(size_at(args.write_pointer_address & !0xfff), Some(0x1000));
    assert_eq!(queue.id(), args.queue_id);

    Pm4Queue::create(&gpus[0], 5, QueueOptions::default()).unwrap();
    assert_eq!((args_of(&kernel).queue_type, args_of(&kernel).queue_percentage), (0, 5 << 8 | 100));
    assert!(matches!(
        Pm4Queue::create(&gpus[0], 8, QueueOptions::default()),
        Err(queue::Error::Option { what: "target XCC", value: 8, .. })
    ));

    SdmaQueue::create(&gpus[0], SdmaEngine::Any, QueueOptions::default()).unwrap();
    let sdma = args_of(&kernel);
    assert_eq!((sdma.queue_type, sdma.eop_buffer_address, sdma.ctx_save_restore_address), (1, 0, 0));
    SdmaQueue::create(&gpus[0], SdmaEngine::Xgmi, QueueOptions::default()).unwrap();
    assert_eq!(args_of(&kernel).queue_type, 3);
    SdmaQueue::create(&gpus[0], SdmaEngine::Number(15), QueueOptions::default()).unwrap();
    assert_eq!((args_of(&kernel).queue_type, args_of(&kernel).sdma_engine_id), (4, 15));
    assert!(SdmaQueue::create(&gpus[0], SdmaEngine::Number(16), QueueOptions::default()).is_err());
}

#[test]
fn stopping_a_queue_keeps_its_ring_priority_and_xcc() {
    let (kernel, gpus) = open_gpus();
    let mut queue = Pm4Queue::create(&gpus[0], 5, QueueOptions::default()).unwrap();
    queue.set_percentage(0).unwrap();
    let (created, updated) = (args_of(&kernel), kernel.updated()[0]);
    assert_eq!(updated.queue_percentage, 5 << 8);
    assert_eq!((updated.queue_id, updated.queue_priority), (created.queue_id, created.queue_priority));
    assert_eq!((updated.ring_base_address, updated.ring_size), (created.ring_base_address, created.ring_size));
    assert!(queue.set_percentage(101).is_err());
}

#[test]
fn a_queue_is_destroyed_before_its_memory_goes() {
    let (kernel, gpus) = open_gpus();
    let queue = AqlQueue::create(&gpus[0], QueueOptions::default()).unwrap();
    kernel.take_calls();
    drop(queue);
    let calls = kernel.take_calls();
    assert_eq!(calls[0], Command::DestroyQueue);
    assert_eq!(calls.iter().filter(|call| **call == Command::FreeMemoryOfGpu).count(), 4);
    drop(gpus);
    assert_only_the_event_page_is_left(&kernel);
}

#[test]
fn a_queue_that_cannot_be_destroyed_keeps_its_memory() {
    let (kernel, gpus) = open_gpus();
    let queue = SdmaQueue::create(&gpus[0], SdmaEngine::Any, QueueOptions::default()).unwrap();
    let before = kernel.account(|account| account.memory.len());
    kernel.fail(Command::DestroyQueue, 0, libc::EIO);
    drop(queue);
    assert_eq!(kernel.account(|account| account.memory.len()), before);
}

#[test]
fn whichever_call_of_creating_a_queue_fails_nothing_is_left_and_the_call_is_named() {
    for (command, count) in [(Command::AllocMemoryOfGpu, 4), (Command::MapMemoryToGpu, 4), (Command::CreateQueue, 1)] {
        for nth in 0..count {
            let (kernel, gpus) = open_gpus();
            kernel.fail(command, nth, libc::ENOMEM);
            let error = AqlQueue::create(&gpus[0], QueueOptions::default()).err().expect("a call failed").to_string();
            assert!(error.contains(command.name()), "{error}");
            drop(gpus);
            assert_only_the_event_page_is_left(&kernel);
        }
    }
}

#[test]
fn a_machine_out_of_doorbells_says_so_and_earlier_gpus_are_taken_down() {
    let (kernel, gpus) = open_gpus();
    let first = AqlQueue::create(&gpus[0], QueueOptions::default()).unwrap();
    kernel.fail(Command::CreateQueue, 0, libc::ENOMEM);
    let error = AqlQueue::create(&gpus[1], QueueOptions::default()).err().unwrap();
    assert!(error.to_string().contains("no doorbells or queue slots left"), "{error}");
    drop((first, gpus));
    assert_only_the_event_page_is_left(&kernel);
}

/// The dwords at a GPU address, which is the host's own in this kernel side.
fn memory_at(va: u64, dwords: usize) -> Vec<u32> {
    let start = std::ptr::with_exposed_provenance::<u32>(va as usize);
    // SAFETY: every address asked for is of a ring or pointer page that a live queue owns.
    (0..dwords).map(|index| unsafe { start.add(index).read_volatile() }).collect()
}

fn set_read_pointer(args: &CreateQueue, value: u64) {
    let pointer = std::ptr::with_exposed_provenance_mut::<u64>(args.read_pointer_address as usize);
    // SAFETY: as in `memory_at`; the driver reads the word atomically.
    unsafe { pointer.write_volatile(value) };
}

#[test]
fn aql_packets_are_in_the_ring_before_the_doorbell_says_the_last_index() {
    let (kernel, gpus) = open_gpus();
    let mut queue = AqlQueue::create(&gpus[0], QueueOptions { ring: Bytes::PAGE, ..Default::default() }).unwrap();
    let args = args_of(&kernel);
    assert_eq!(memory_at(args.ring_base_address, 17)[16], 1, "every slot starts invalid");
    let barrier = BarrierAnd { barrier: true, ..Default::default() };
    queue.submit(&[barrier.into(), barrier.into()]).unwrap();
    let slot: Slot = barrier.encode().unwrap();
    assert_eq!(memory_at(args.ring_base_address, 32), [slot, slot].concat());
    assert_eq!(memory_at(args.write_pointer_address, 2), [2, 0]);
    assert_eq!(kernel.doorbell(args.doorbell_offset), 1);
    let report = queue.report();
    assert_eq!((report.written, report.read), (2, 0));
    assert!(report.last_packet.unwrap().starts_with("BARRIER_AND barrier"));

    assert_eq!((queue.most(), queue.free()), (63, 61));
    let rest = vec![barrier.into(); 61];
    queue.submit(&rest).unwrap();
    assert!(matches!(queue.submit(&[barrier.into()]), Err(queue::Error::Full { needed: 1, .. })));
    assert!(matches!(queue.wait_for_room(1, Duration::ZERO), Err(queue::Error::Full { .. })));
    assert!(matches!(queue.wait_for_room(64, Duration::ZERO), Err(queue::Error::TooLong { .. })));
    set_read_pointer(&args, 60);
    queue.wait_for_room(60, Duration::ZERO).unwrap();
    queue.submit(&[barrier.into(), barrier.into()]).unwrap();
    assert_eq!(kernel.doorbell(args.doorbell_offset), 64);
    assert_eq!(queue.next_index(), 65);
}

#[test]
fn pm4_and_sdma_doorbells_count_dwords_and_bytes() {
    let (kernel, gpus) = open_gpus();
    let mut pm4 = Pm4Queue::create(&gpus[0], 0, QueueOptions { ring: Bytes::PAGE, ..Default::default() }).unwrap();
    let args = args_of(&kernel);
    pm4.submit_indirect(GpuVa::new(0x7f72_4c80_0014), 0x89).unwrap();
    assert_eq!(memory_at(args.ring_base_address, 4), [0xc002_3f00, 0x4c80_0014, 0x7f72, 0x0080_0089]);
    assert_eq!(kernel.doorbell(args.doorbell_offset), 4);
    assert!(pm4.report().last_packet.unwrap().contains("INDIRECT_BUFFER address=0x7f724c800014"));

    let mut sdma = SdmaQueue::create(&gpus[0], SdmaEngine::Any, QueueOptions::default()).unwrap();
    let args = args_of(&kernel);
    sdma.submit(&[6, 9]).unwrap();
    assert_eq!(kernel.doorbell(args.doorbell_offset), 8);
    sdma.submit_indirect(GpuVa::new(0x1000), 64).unwrap();
    assert_eq!(memory_at(args.ring_base_address, 8), [6, 9, 4, 0x1000, 0, 64, 0, 0]);
    assert_eq!(kernel.doorbell(args.doorbell_offset), 32);
    assert!(sdma.report().queue.starts_with("SDMA queue"));
}

#[test]
fn scratch_is_described_where_the_command_processor_reads_it() {
    let (kernel, gpus) = open_gpus();
    let mut queue = AqlQueue::create(&gpus[0], QueueOptions::default()).unwrap();
    let layout = ScratchLayout::new(gpus[0].node(), 128).unwrap();
    queue.set_scratch(&layout, GpuVa::new(0x7f12_3456_7000)).unwrap();
    let descriptor = args_of(&kernel).write_pointer_address - 0x38;
    let words = memory_at(descriptor, 64);
    assert_eq!((words[34], words[35]), (0x80, 0x8400), "read pointer offset, COMPUTE_TMPRING_SIZE");
    assert_eq!(words[36..39], [0x3456_7000, 0x8000_7f12, 0x80_0000]);
    assert_eq!((words[40], words[41], words[44]), (0x3456_7000, 0x7f12, 128));
    assert_eq!((words[16], words[17]), (0x1_0000, 0x2_0000), "apertures of LDS and scratch");
    assert_eq!((words[18], words[19]), (255, 31), "highest CU and wave");
}

#[test]
fn a_wait_for_a_value_that_is_there_returns_at_once_and_others_time_out() {
    let (kernel, gpus) = open_gpus();
    let pool = SignalPool::new(&gpus[0], 2).unwrap();
    let queue = AqlQueue::create(&gpus[0], QueueOptions::default()).unwrap();
    let signal = pool.take_with_event(5).unwrap();
    let interrupt = signal.interrupt().unwrap();
    let words = memory_at(signal.va().get(), 16);
    assert_eq!((words[0], words[2], words[6]), (1, 5, interrupt.event_id));
    assert_eq!((words[4], words[5]), (interrupt.mailbox.low(), interrupt.mailbox.high()));

    signal.wait(Compare::GreaterOrEqual, 5, NO_PATIENCE, &[]).unwrap();
    let error = signal.wait(Compare::Equal, 0, NO_PATIENCE, &[&queue]).unwrap_err();
    let WaitError::Timeout { expected, actual, queues, .. } = &error else { panic!("{error}") };
    assert_eq!((*expected, *actual, queues.len()), (0, 5, 1));
    assert!(error.to_string().contains("AQL queue"), "{error}");
    signal.store(0).unwrap();
    signal.wait(Compare::Equal, 0, NO_PATIENCE, &[&queue]).unwrap();

    let polled = pool.take(0).unwrap();
    assert!(pool.take(0).is_err(), "the pool has two");
    drop((polled, signal));
    let again = pool.take(0).unwrap();
    assert_eq!(again.interrupt(), None);
    drop((again, pool, queue, gpus));
    assert_only_the_event_page_is_left(&kernel);
}

#[test]
fn a_memory_fault_ends_every_wait_and_names_the_buffer() {
    let (kernel, gpus) = open_gpus();
    let pool = SignalPool::new(&gpus[0], 2).unwrap();
    let (one, other) = (pool.take(1).unwrap(), pool.take_with_event(1).unwrap());
    let buffer: Buffer = gpus[1].allocate(&Allocation::vram(Bytes::PAGE, "kv latents")).unwrap();
    assert!(gpus[0].process().fault().is_none());

    let va = buffer.va().get() + 0x1000;
    kernel.fault(MemoryException { not_present: 1, va, gpu_id: 0xb2, ..Default::default() });
    let error = one.wait(Compare::Equal, 0, Patience::default(), &[]).unwrap_err();
    assert!(matches!(error, WaitError::Event(event::Error::Fault(Fault::Memory { gpu_id: 0xb2, .. }))), "{error}");
    assert!(error.to_string().contains("0x0 bytes behind \"kv latents\""), "{error}");

    // The fault stays, whatever the kernel says afterwards.
    kernel.fault(MemoryException::default());
    assert_eq!(other.wait(Compare::Equal, 0, Patience::default(), &[]).unwrap_err().to_string(), error.to_string());
    assert!(matches!(gpus[0].process().fault(), Some(Fault::Memory { .. })));
    let queue = AqlQueue::create(&gpus[0], QueueOptions { ring: Bytes::PAGE, ..Default::default() }).unwrap();
    assert!(queue.wait_for_room(1, Duration::ZERO).is_ok(), "room that is there needs no wait");
}

#[test]
fn a_hardware_exception_ends_a_wait_for_room() {
    let (kernel, gpus) = open_gpus();
    let mut queue = AqlQueue::create(&gpus[0], QueueOptions { ring: Bytes::PAGE, ..Default::default() }).unwrap();
    queue.submit(&vec![BarrierAnd::default().into(); 63]).unwrap();
    kernel.hw_fault(HwException { reset_cause: 0, memory_lost: 1, gpu_id: 0xa1, ..Default::default() });
    let error = queue.wait_for_room(1, Duration::from_secs(30)).unwrap_err();
    assert!(matches!(error, queue::Error::Event(event::Error::Fault(Fault::Hardware { .. }))), "{error}");
    assert!(error.to_string().contains("GPU 0xa1 hangs; the whole GPU is reset, its memory is lost"), "{error}");
}
