//! How fast one host core emulates: wave instructions a second, and multiply-adds a second for matrix kernels.
//!
//! `cargo bench -p mock`; `docs/speed.md` says what bounds them. Times are processor time, not wall time, so that
//! other work on the host disturbs them little.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mock::Config;
use mock::launch::{Argument, Buffer, Device, Launch, Program};

/// A kernel with its grid and arguments.
struct Bench {
    kernel: &'static str,
    object: &'static [u8],
    workgroups: [u32; 3],
    workgroup: u16,
    /// Lengths of its buffers in bytes, and what they are filled with.
    buffers: &'static [(usize, u8)],
    values: &'static [u32],
    /// Multiply-adds of a launch; zero to count wave instructions.
    multiply_adds: u64,
}

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!("kernels/", $name, ".hsaco"))
    };
}

/// Side of the matrices, and their inner dimension.
const SIDE: usize = 256;
const INNER: usize = 2048;
const MULTIPLY_ADDS: u64 = (SIDE * SIDE * INNER) as u64;
const TILES: [u32; 3] = [SIDE as u32 / 64, SIDE as u32 / 64, 1];

const BENCHES: [Bench; 5] = [
    Bench {
        kernel: "fma_loop",
        object: object!("fma_loop"),
        workgroups: [16, 1, 1],
        workgroup: 256,
        buffers: &[(16 * 256 * 4, 0)],
        // The second is 0.999.
        values: &[2000, 0x3f7f_be77],
        multiply_adds: 0,
    },
    Bench {
        kernel: "vector_add",
        object: object!("vector_add"),
        workgroups: [64, 1, 1],
        workgroup: 256,
        // 4 Mi numbers an array: more than the host's caches.
        buffers: &[(16 << 20, 0), (16 << 20, 0x3f), (16 << 20, 0x40)],
        values: &[1 << 20, 64 * 256],
        multiply_adds: 0,
    },
    Bench {
        kernel: "lds_transpose",
        object: object!("lds_transpose"),
        workgroups: [16, 1, 1],
        workgroup: 256,
        buffers: &[(4 << 20, 0), (4 << 20, 1)],
        values: &[1024, 16],
        multiply_adds: 0,
    },
    Bench {
        kernel: "gemm_bf16",
        object: object!("gemm_bf16"),
        workgroups: TILES,
        workgroup: 64,
        // 0x3f3f is about 0.75.
        buffers: &[(SIDE * SIDE * 4, 0), (SIDE * INNER * 2, 0x3f), (SIDE * INNER * 2, 0x3f)],
        values: &[SIDE as u32, INNER as u32],
        multiply_adds: MULTIPLY_ADDS,
    },
    Bench {
        kernel: "gemm_scaled",
        object: object!("gemm_scaled"),
        workgroups: TILES,
        workgroup: 64,
        buffers: &[
            (SIDE * SIDE * 4, 0),
            (SIDE * INNER / 2, 0x31),
            (SIDE * INNER / 32, 127),
            (SIDE * INNER / 2, 0x9a),
            (SIDE * INNER / 32, 126),
        ],
        values: &[SIDE as u32, INNER as u32],
        multiply_adds: MULTIPLY_ADDS,
    },
];

/// Processor time of all threads of this process, from the first field of each thread's `schedstat` (Linux,
/// `Documentation/scheduler/sched-stats.rst`).
fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("procfs is mounted");
    let nanoseconds = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum::<u64>())
}

fn launch<'a>(bench: &Bench, program: &'a Program, buffers: &[Buffer]) -> Launch<'a> {
    let arguments = buffers.iter().map(Argument::from).chain(bench.values.iter().map(|&value| value.into()));
    Launch::new(program, bench.kernel)
        .and_then(|launch| launch.workgroups(bench.workgroups).workgroup([bench.workgroup, 1, 1]).arguments(arguments))
        .expect("the kernel takes these arguments")
}

fn throughput(criterion: &mut Criterion) {
    // One thread: figures are per core.
    let config = Config { gpus: 1, threads: 1, ..Config::default() };
    let mut device = Device::start(config).expect("the host has memory for the machine");
    for bench in &BENCHES {
        let program = device.load(bench.object).expect("the code object is for gfx950");
        let fill = |&(bytes, value): &(usize, u8)| device.upload(bench.kernel, &vec![value; bytes]);
        let buffers: Vec<Buffer> =
            bench.buffers.iter().map(fill).collect::<Result<_, _>>().expect("the GPU has memory");
        let launch = launch(bench, &program, &buffers);
        let once = device.launch(&launch).expect("the kernel runs");
        let (unit, count) = match bench.multiply_adds {
            0 => ("wave instructions", once.wave_instructions),
            count => ("multiply-adds", count),
        };
        let mut group = criterion.benchmark_group(unit);
        group.throughput(Throughput::Elements(count)).sample_size(20).measurement_time(Duration::from_secs(4));
        group.bench_function(bench.kernel, |bencher| {
            bencher.iter_custom(|rounds| {
                let start = processor_time();
                for _ in 0..rounds {
                    device.launch(&launch).expect("it ran before");
                }
                processor_time() - start
            });
        });
        group.finish();
    }
}

criterion_group!(benches, throughput);
criterion_main!(benches);
