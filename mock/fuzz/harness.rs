//! What the fuzz targets and the test `robustness` have in common: any bytes at all become code, packets or a code object,
//! and the machine has to take them without a panic. A kernel that never ends is given up, and the machine has to stop.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::address::{Bytes, GpuVa};
use driver::memory::{Access, Allocation};
use driver::packets::Compare;
use driver::packets::aql::Aql;
use driver::program::Dimensions;
use driver::queue::{AqlQueue, QueueOptions, SdmaEngine, SdmaQueue};
use driver::signal::{Patience, SignalPool};
use goblin::elf::Elf;
use mock::Config;
use mock::launch::{Argument, Device, Launch};

/// A code object with one kernel, and room behind it.
const TEMPLATE: &[u8] = include_bytes!("../examples/kernels/histogram.hsaco");
const KERNEL: &str = "histogram";
/// How long random work may run.
const LIMIT: Duration = Duration::from_millis(30);

static PANICKED: AtomicBool = AtomicBool::new(false);

/// Runs `body`, and fails if any thread panics meanwhile: the machine's threads have nobody else to tell.
fn watched(body: impl FnOnce()) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name().is_some_and(|name| name.starts_with("mock-")) {
                PANICKED.store(true, Ordering::SeqCst);
            }
            before(info);
        }));
    });
    body();
    assert!(!PANICKED.swap(false, Ordering::SeqCst), "a thread of the machine panicked");
}

fn device() -> Device {
    Device::start(Config { gpus: 1, xccs: 2, threads: 1, ..Config::default() }).expect("a machine of one GPU starts")
}

/// Launches the kernel `name` of a code object, if it is one and has it, on buffers of 4 KiB.
fn launch(object: &[u8], name: &str) {
    let mut device = device();
    let Ok(program) = device.load(object) else { return };
    let Ok(launch) = Launch::new(&program, name) else { return };
    let buffers: Vec<_> = (0..4).filter_map(|_| device.allocate("fuzz", 4096).ok()).collect();
    let launch = buffers.iter().zip(0..).fold(launch, |launch, (buffer, i)| launch.argument_at(8 * i, buffer.into()));
    // Whether it completes, faults or is given up is its own affair.
    let _ = device.launch(&launch.argument_at(32, Argument::value(7_u32)).workgroup([128, 1, 1]).limit(LIMIT));
}

/// `code` is executed, by waves that have every register there is.
pub(crate) fn code(code: &[u8]) {
    let elf = Elf::parse(TEMPLATE).expect("the template is an ELF file");
    let symbol = |wanted: &str| {
        let found = elf.dynsyms.iter().find(|symbol| elf.dynstrtab.get_at(symbol.st_name) == Some(wanted));
        let address = found.expect("the template has the kernel").st_value;
        let segment = elf.program_headers.iter().find(|segment| segment.vm_range().contains(&(address as usize)));
        let segment = segment.expect("symbols lie in segments");
        (address - segment.p_vaddr + segment.p_offset, segment.p_offset + segment.p_filesz)
    };
    let (descriptor, _) = symbol(&format!("{KERNEL}.kd"));
    let (entry, end) = symbol(KERNEL);
    let mut object = TEMPLATE.to_vec();
    // COMPUTE_PGM_RSRC1: 512 vector registers. COMPUTE_PGM_RSRC3: AccVGPRs from 256 on.
    object[descriptor as usize + 48] |= 0x3f;
    object[descriptor as usize + 44] |= 0x3f;
    let room = &mut object[entry as usize..end as usize];
    let length = code.len().min(room.len());
    room[..length].copy_from_slice(&code[..length]);
    watched(|| launch(&object, KERNEL));
}

/// `bytes` are a code object, or, if the first byte is even, changes to one: offset and value in turn.
pub(crate) fn code_object(bytes: &[u8]) {
    let object = match bytes.split_first() {
        Some((first, changes)) if first % 2 == 0 => {
            let mut object = TEMPLATE.to_vec();
            for change in changes.chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % object.len();
                object[at] = change[2];
            }
            object
        }
        _ => bytes.to_vec(),
    };
    watched(|| launch(&object, KERNEL));
}

fn dwords(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|dword| u32::from_le_bytes([dword[0], dword[1], dword[2], dword[3]])).collect()
}

/// The opcodes that the command processor knows (`amd-interfaces`: NOP to SET_UCONFIG_REG).
const PM4_OPCODES: [u32; 21] = [
    0x10, 0x11, 0x15, 0x16, 0x1e, 0x22, 0x23, 0x37, 0x39, 0x3c, 0x3f, 0x40, 0x46, 0x49, 0x50, 0x58, 0x76, 0x79, 0x8b,
    0x93, 0xa0,
];

/// `bytes` become packets. The first byte chooses: dispatch packets with fields changed, PM4, SDMA.
pub(crate) fn packets(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    watched(|| {
        let device = device();
        let gpu = device.gpu();
        let wanted = Allocation::vram(Bytes::new(1 << 16), "fuzz").with(Access::HOST);
        let memory = gpu.allocate(&wanted).expect("the machine has memory");
        let va = memory.va().get();
        // Dwords that start with a magic byte become an address in the buffer, so that packets get somewhere.
        let mut words = dwords(rest);
        for at in 1..words.len() {
            if words[at] >> 24 == 0xaa {
                words[at - 1] = va as u32 + (words[at] & 0xfffc);
                words[at] = (va >> 32) as u32;
            }
        }
        match kind % 3 {
            0 => aql(&device, rest),
            1 => pm4(&device, &memory, words),
            _ => {
                if let Ok(mut queue) = SdmaQueue::create(gpu, SdmaEngine::Any, QueueOptions::default()) {
                    let _ = queue.submit(&words[..words.len().min(512)]);
                    std::thread::sleep(LIMIT);
                }
            }
        }
    });
}

fn aql(device: &Device, changes: &[u8]) {
    let Ok(program) = device.load(TEMPLATE) else { return };
    let Ok(kernel) = program.kernel(KERNEL) else { return };
    let Ok(signals) = SignalPool::new(device.gpu(), 1) else { return };
    let Ok(done) = signals.take_with_event(1) else { return };
    let Ok(mut queue) = AqlQueue::create(device.gpu(), QueueOptions::default()) else { return };
    let mut dispatch = program.dispatch(kernel, &Dimensions::linear(1, 64), Bytes::default(), GpuVa::NULL);
    dispatch.completion_signal = done.va();
    let Ok(mut slot) = Aql::KernelDispatch(dispatch).encode() else { return };
    for change in changes.chunks_exact(5) {
        let dword = usize::from(change[0]) % slot.len();
        slot[dword] = u32::from_le_bytes([change[1], change[2], change[3], change[4]]);
    }
    if queue.submit_slots(&[slot]).is_ok() {
        let _ = done.wait(Compare::Equal, 0, Patience { limit: LIMIT, ..Patience::default() }, &[&queue]);
    }
}

fn pm4(device: &Device, memory: &driver::memory::Buffer, payload: Vec<u32>) {
    let mut stream = Vec::new();
    let mut rest = payload.as_slice();
    while let [head, more @ ..] = rest {
        let length = (*head as usize >> 8 & 0xf).min(more.len());
        let (body, later) = more.split_at(length);
        let opcode = PM4_OPCODES[*head as usize % PM4_OPCODES.len()];
        stream.push(3 << 30 | (length.max(1) as u32 - 1) << 16 | opcode << 8);
        stream.extend(body);
        rest = later;
    }
    stream.truncate(4096);
    let Ok(host) = memory.host() else { return };
    let bytes: Vec<u8> = stream.iter().flat_map(|dword| dword.to_le_bytes()).collect();
    if host.write(0, &bytes).is_err() {
        return;
    }
    let Ok(mut queue) = driver::queue::Pm4Queue::create(device.gpu(), 0, QueueOptions::default()) else { return };
    if queue.submit_indirect(memory.va(), stream.len() as u32).is_ok() {
        std::thread::sleep(LIMIT);
    }
}
