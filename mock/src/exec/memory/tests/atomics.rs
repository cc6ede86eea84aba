//! Atomic operations, in memory and in LDS, against definitions over exact numbers.

use crate::exec::WaveFault;
use crate::memory::{Mapping, MemoryFaultReason, PageMap, View};
use crate::random::Random;
use crate::testbench::{BUFFER, Bench};
use crate::wave::{LANES, Mode, sreg};

use super::super::combine::Word;
use super::exact::{BF16, F16, F32, F64, add, add_f64, bitwise, by_sign, extreme, halves, number};
use super::forms::{RAW, describe};

/// One operation: its name in memory instructions and in DS instructions ("" if there is none), bits, and the new value
/// from the old one and the operands (for comparisons: new value, then comparand).
struct Row(&'static str, &'static str, u32, fn(u64, u64, u64) -> u64);

const ROWS: [Row; 38] = [
    Row("swap", "wrxchg_rtn_b32", 32, |_, a, _| a),
    Row("cmpswap", "cmpst_b32", 32, |old, a, b| if old == b { a } else { old }),
    Row("add", "add_u32", 32, |old, a, _| (old + a) % (1 << 32)),
    Row("sub", "sub_u32", 32, |old, a, _| ((1 << 32) + old - a) % (1 << 32)),
    Row("", "rsub_u32", 32, |old, a, _| ((1 << 32) + a - old) % (1 << 32)),
    Row("smin", "min_i32", 32, |old, a, _| by_sign(32, old, a, i128::min)),
    Row("smax", "max_i32", 32, |old, a, _| by_sign(32, old, a, i128::max)),
    Row("umin", "min_u32", 32, |old, a, _| old.min(a)),
    Row("umax", "max_u32", 32, |old, a, _| old.max(a)),
    Row("and", "and_b32", 32, |old, a, _| bitwise(old, a, |x, y| x && y)),
    Row("or", "or_b32", 32, |old, a, _| bitwise(old, a, |x, y| x || y)),
    Row("xor", "xor_b32", 32, |old, a, _| bitwise(old, a, |x, y| x != y)),
    Row("inc", "inc_u32", 32, |old, a, _| if old < a { old + 1 } else { 0 }),
    Row("dec", "dec_u32", 32, |old, a, _| if (1..=a).contains(&old) { old - 1 } else { a }),
    Row("", "mskor_b32", 32, |old, a, b| bitwise(bitwise(old, a, |x, y| x && !y), b, |x, y| x || y)),
    Row("", "wrap_rtn_b32", 32, |old, a, b| if old >= a { old - a } else { (old + b) % (1 << 32) }),
    Row("swap_x2", "wrxchg_rtn_b64", 64, |_, a, _| a),
    Row("cmpswap_x2", "cmpst_b64", 64, |old, a, b| if old == b { a } else { old }),
    Row("add_x2", "add_u64", 64, |old, a, _| (u128::from(old) + u128::from(a)) as u64),
    Row("sub_x2", "sub_u64", 64, |old, a, _| ((1 << 64) + u128::from(old) - u128::from(a)) as u64),
    Row("", "rsub_u64", 64, |old, a, _| ((1 << 64) + u128::from(a) - u128::from(old)) as u64),
    Row("smin_x2", "min_i64", 64, |old, a, _| by_sign(64, old, a, i128::min)),
    Row("smax_x2", "max_i64", 64, |old, a, _| by_sign(64, old, a, i128::max)),
    Row("umin_x2", "min_u64", 64, |old, a, _| old.min(a)),
    Row("umax_x2", "max_u64", 64, |old, a, _| old.max(a)),
    Row("and_x2", "and_b64", 64, |old, a, _| bitwise(old, a, |x, y| x && y)),
    Row("or_x2", "or_b64", 64, |old, a, _| bitwise(old, a, |x, y| x || y)),
    Row("xor_x2", "xor_b64", 64, |old, a, _| bitwise(old, a, |x, y| x != y)),
    Row("inc_x2", "inc_u64", 64, |old, a, _| if old < a { old + 1 } else { 0 }),
    Row("dec_x2", "dec_u64", 64, |old, a, _| if (1..=a).contains(&old) { old - 1 } else { a }),
    Row("", "mskor_b64", 64, |old, a, b| bitwise(bitwise(old, a, |x, y| x && !y), b, |x, y| x || y)),
    Row("add_f32", "add_f32", 32, |old, a, _| add(F32, old, a)),
    Row("add_f64", "add_f64", 64, |old, a, _| add_f64(old, a)),
    Row("pk_add_f16", "pk_add_f16", 32, |old, a, _| halves(old, a, |x, y| add(F16, x, y))),
    Row("pk_add_bf16", "pk_add_bf16", 32, |old, a, _| halves(old, a, |x, y| add(BF16, x, y))),
    Row("min_f64", "min_f64", 64, |old, a, _| extreme(F64, old, a, -1)),
    Row("max_f64", "max_f64", 64, |old, a, _| extreme(F64, old, a, 1)),
    Row("", "min_f32", 32, |old, a, _| extreme(F32, old, a, -1)),
];

const LDS_ROWS: [Row; 3] = [
    Row("", "max_f32", 32, |old, a, _| extreme(F32, old, a, 1)),
    Row("", "cmpst_f32", 32, |old, a, b| if number(F32, old) == number(F32, b) { a } else { old }),
    Row("", "cmpst_f64", 64, |old, a, b| if f64::from_bits(old) == f64::from_bits(b) { a } else { old }),
];

fn edges(bits: u32) -> Vec<u64> {
    let mut random = Random::new(3);
    let mut word = || u64::from(random.next()) | u64::from(random.next()) << 32;
    let mut all = vec![0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    if bits == 32 {
        all.extend([
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc1_2345,
            0x7f81_2345,
            0x0080_0000,
            0x807f_ffff,
        ]);
        all.extend([
            0x3c00_bc00,
            0x7c00_fc00,
            0x7e01_7d01,
            0x0001_8400,
            0x7bff_7bff,
            0x3380_3f80,
            0x4b80_0001,
            0x3f80_0001,
        ]);
    } else {
        all.extend([1 << 63, u64::MAX, i64::MAX as u64, 1.0f64.to_bits(), (-1.0f64).to_bits(), f64::MAX.to_bits()]);
        all.extend([0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000, 0x7ff8_0000_0001_2345, 0x7ff0_0000_0001_2345]);
        all.extend([0x000f_ffff_ffff_ffff, 0x8010_0000_0000_0000, 0x3ca0_0000_0000_0000, 0x3ca0_0000_0000_0001]);
    }
    all.extend((0..6).map(|_| word()));
    // Numbers near one, where sums round and cancel.
    let ones = [1.0f64.to_bits() >> 52 << 52, u64::from(1.0f32.to_bits())];
    all.extend((0..6).map(|i| ones[usize::from(bits == 32)] ^ word() >> (64 - bits + 9) ^ (i % 2) << (bits - 1)));
    all.into_iter().map(|value| if bits == 32 { value & 0xffff_ffff } else { value }).collect()
}

/// Values before, first and second operands: all pairs of edges, comparands equal to the value before half the time.
fn inputs(bits: u32) -> Vec<[u64; 3]> {
    let edges = edges(bits);
    let mut all = Vec::new();
    for (i, &old) in edges.iter().enumerate() {
        for (k, &a) in edges.iter().enumerate() {
            all.push([old, a, if (i + k) % 2 == 0 { old } else { edges[(i + 3 * k) % edges.len()] }]);
        }
    }
    all
}

/// A way to apply an operation: instruction text by operation name and width, and whether it returns the value before.
type Way = (fn(&str, u32) -> String, bool);

const MEMORY: [Way; 6] = [
    (|name, bits| format!("global_atomic_{name} v[2:3], {}, off", operands(bits, name)), false),
    (|name, bits| format!("global_atomic_{name} {}, v[2:3], {}, off sc0", result(bits), operands(bits, name)), true),
    (|name, bits| format!("global_atomic_{name} {}, v4, {}, s[2:3] sc0", result(bits), operands(bits, name)), true),
    (|name, bits| format!("buffer_atomic_{name} {}, v4, s[8:11], 0 offen sc0", operands(bits, name)), true),
    (|name, bits| format!("flat_atomic_{name} v[2:3], {}", operands(bits, name)), false),
    (|name, bits| format!("flat_atomic_{name} {}, v[2:3], {} sc0", result(bits), operands(bits, name)), true),
];

fn register(first: usize, dwords: u32) -> String {
    if dwords == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + dwords as usize - 1) }
}

fn result(bits: u32) -> String {
    register(20, bits / 32)
}

fn operands(bits: u32, name: &str) -> String {
    register(10, bits / 32 * if name.starts_with("cmpswap") { 2 } else { 1 })
}

fn set(bench: &mut Bench, register: usize, bits: u32, values: impl Fn(usize) -> u64) {
    for dword in 0..bits as usize / 32 {
        *bench.v(register + dword) = std::array::from_fn(|lane| (values(lane) >> (32 * dword)) as u32);
    }
}

fn get(bench: &mut Bench, register: usize, bits: u32, lane: usize) -> u64 {
    (0..bits as usize / 32).map(|dword| u64::from(bench.v(register + dword)[lane]) << (32 * dword)).sum()
}

#[test]
fn memory_atomics_leave_the_defined_value_and_return_the_one_before() {
    for Row(name, _, bits, define) in ROWS.iter().filter(|row| !row.0.is_empty()) {
        for (text, returns) in MEMORY {
            for group in inputs(*bits).chunks(LANES) {
                let input = |lane: usize| group[lane % group.len()];
                let mut bench = Bench::new();
                let step = *bits as usize / 8;
                bench.set_v64(2, |lane| BUFFER + (step * lane) as u64);
                *bench.v(4) = std::array::from_fn(|lane| (step * lane) as u32);
                bench.set_s64(2, BUFFER);
                describe(&mut bench, BUFFER, 0, 64 * 1024, RAW);
                set(&mut bench, 10, *bits, |lane| input(lane)[1]);
                set(&mut bench, 10 + step / 4, *bits, |lane| input(lane)[2]);
                set(&mut bench, 20, *bits, |_| 77);
                for lane in 0..LANES {
                    for dword in 0..step / 4 {
                        bench.buffer[lane * step / 4 + dword] = (input(lane)[0] >> (32 * dword)) as u32;
                    }
                }
                if !bench.run(&text(name, *bits)) {
                    return;
                }
                for lane in 0..LANES {
                    let [old, a, b] = input(lane);
                    let words = &bench.buffer[lane * step / 4..];
                    let after: u64 = (0..step / 4).map(|i| u64::from(words[i]) << (32 * i)).sum();
                    assert_eq!(after, define(old, a, b), "{}: {old:#x}, {a:#x}, {b:#x}", text(name, *bits));
                    let text = text(name, *bits);
                    // Buffer instructions return to their first operand.
                    let result = if text.starts_with("buffer") { 10 } else { 20 };
                    let expected = if returns { old } else { 77 };
                    assert_eq!(get(&mut bench, result, *bits, lane), expected, "{text}");
                }
            }
        }
    }
}

#[test]
fn scalar_atomics_leave_the_defined_value_and_return_the_one_before() {
    let integers = |row: &&Row| !row.0.is_empty() && !row.0.contains("_f") && !row.0.contains("pk_");
    for Row(name, _, bits, define) in ROWS.iter().filter(integers) {
        let dwords = *bits as usize / 32;
        let scalars = |count: usize| if count == 1 { "s20".into() } else { format!("s[20:{}]", 19 + count) };
        let data = scalars(if name.starts_with("cmpswap") { 2 * dwords } else { dwords });
        for text in [
            format!("s_atomic_{name} {data}, s[2:3], 0x10 glc"),
            format!("s_buffer_atomic_{name} {data}, s[8:11], 0x10 glc"),
        ] {
            for [old, a, b] in inputs(*bits).into_iter().step_by(7) {
                let mut bench = Bench::new();
                bench.set_s64(2, BUFFER);
                describe(&mut bench, BUFFER, 0, 64, RAW);
                for dword in 0..dwords {
                    *bench.s(20 + dword) = (a >> (32 * dword)) as u32;
                    *bench.s(20 + dwords + dword) = (b >> (32 * dword)) as u32;
                    bench.buffer[4 + dword] = (old >> (32 * dword)) as u32;
                }
                if !bench.run(&text) {
                    return;
                }
                let after: u64 = (0..dwords).map(|i| u64::from(bench.buffer[4 + i]) << (32 * i)).sum();
                let returned: u64 = (0..dwords).map(|i| u64::from(*bench.s(20 + i)) << (32 * i)).sum();
                assert_eq!((after, returned), (define(old, a, b), old), "{text}: {old:#x}, {a:#x}, {b:#x}");
            }
        }
    }
}

/// Text of a DS atomic; comparisons take the comparand first, other operations with two operands as defined.
fn ds_text(name: &str, bits: u32, returns: bool) -> String {
    let (first, second) = (register(10, bits / 32), register(12, bits / 32));
    let data = match name {
        _ if name.starts_with("cmpst") => format!("{second}, {first}"),
        _ if name.starts_with("mskor") || name.starts_with("wrap") => format!("{first}, {second}"),
        _ => first,
    };
    if !returns {
        return format!("ds_{name} v4, {data} offset:64");
    }
    let name = if name.contains("_rtn_") {
        name.to_owned()
    } else {
        let (verb, ty) = name.rsplit_once('_').expect("names end with a type");
        format!("{verb}_rtn_{ty}")
    };
    format!("ds_{name} {}, v4, {data} offset:64", result(bits))
}

#[test]
fn lds_atomics_leave_the_defined_value_and_return_the_one_before() {
    for Row(_, name, bits, define) in ROWS.iter().chain(&LDS_ROWS) {
        for returns in [false, true] {
            if name.contains("_rtn_") && !returns {
                continue;
            }
            for group in inputs(*bits).chunks(LANES) {
                let input = |lane: usize| group[lane % group.len()];
                let mut bench = Bench::new();
                let step = *bits as usize / 8;
                *bench.v(4) = std::array::from_fn(|lane| (step * lane) as u32);
                set(&mut bench, 10, *bits, |lane| input(lane)[1]);
                set(&mut bench, 12, *bits, |lane| input(lane)[2]);
                set(&mut bench, 20, *bits, |_| 77);
                for lane in 0..LANES {
                    bench.lds.write((64 + lane * step) as u32, &input(lane)[0].to_le_bytes()[..step]);
                }
                let text = ds_text(name, *bits, returns);
                if !bench.run(&text) {
                    return;
                }
                for lane in 0..LANES {
                    let [old, a, b] = input(lane);
                    let mut after = [0; 8];
                    bench.lds.read((64 + lane * step) as u32, &mut after[..step]);
                    assert_eq!(u64::from_le_bytes(after), define(old, a, b), "{text}: {old:#x}, {a:#x}, {b:#x}");
                    assert_eq!(get(&mut bench, 20, *bits, lane), if returns { old } else { 77 }, "{text}");
                }
            }
        }
    }
}

#[test]
fn lds_float_atomics_flush_denormals_as_mode_says_and_memory_does_not() {
    let (denormal, one) = (0x0000_0001u32, 0x0080_0000u32);
    // MODE, instruction, value before, operand, value after.
    let cases = [
        (0x300, "ds_add_f32 v4, v10", denormal, 0x8000_0003, 0x0),
        (0x320, "ds_add_f32 v4, v10", denormal, one, one),
        (0x310, "ds_add_f32 v4, v10", one, 0x8080_0001u32, 0x8000_0000),
        (0x300, "ds_min_f32 v4, v10", 0x0000_0005, denormal, 0x0000_0005),
        (0x300, "ds_max_f32 v4, v10", 0x8000_0005, 0x0000_0001, 0x0000_0001),
        (0x330, "ds_pk_add_f16 v4, v10", 0x0001_0001, 0x0400_0001, 0x0400_0000),
        (0x300, "global_atomic_add_f32 v[2:3], v10, off", denormal, 0x8000_0003, 0x8000_0002),
    ];
    for (mode, text, old, a, after) in cases {
        let mut bench = Bench::new();
        bench.wave.mode = Mode(mode);
        bench.set_s64(sreg::EXEC_LO, 1);
        bench.set_v64(2, |_| BUFFER);
        *bench.v(10) = [a; LANES];
        bench.buffer[0] = old;
        bench.lds.write(0, &old.to_le_bytes());
        if bench.run(text) {
            let found = if text.starts_with("ds") { bench.lds.read_u32(0) } else { bench.buffer[0] };
            assert_eq!(found, after, "{text} in mode {mode:#x}");
        }
    }
}

#[test]
fn lanes_that_share_an_address_take_turns() {
    for (text, lds) in [("global_atomic_add v1, v[2:3], v10, off sc0", false), ("ds_add_rtn_u32 v1, v4, v10", true)] {
        let mut bench = Bench::new();
        bench.set_v64(2, |_| BUFFER + 40);
        *bench.v(4) = [40; LANES];
        *bench.v(10) = [3; LANES];
        bench.set_s64(sreg::EXEC_LO, 0xffff_0000_0000_ffff);
        if bench.run(text) {
            let total = if lds { bench.lds.read_u32(40) } else { bench.buffer[10] };
            assert_eq!(total, 3 * 32);
            let mut before: Vec<u32> =
                (0..LANES).filter(|lane| !(16..48).contains(lane)).map(|lane| bench.v(1)[lane]).collect();
            before.sort_unstable();
            assert_eq!(before, (0..32).map(|i| 3 * i).collect::<Vec<u32>>());
            assert_eq!(bench.v(1)[20], 0, "a lane that is off gets nothing");
        }
    }
}

#[test]
fn misaligned_atomics_fault() {
    let mut bench = Bench::new();
    bench.set_v64(2, |lane| BUFFER + 8 * lane as u64 + if lane == 9 { 4 } else { 0 });
    *bench.v(4) = std::array::from_fn(|lane| 8 * lane as u32 + if lane == 9 { 2 } else { 0 });
    if let Some(Err(WaveFault::Memory(fault))) = bench.try_run("global_atomic_add_x2 v[2:3], v[10:11], off") {
        assert_eq!((fault.address.get(), fault.reason), (BUFFER + 76, MemoryFaultReason::Misaligned));
    }
    if let Some(result) = bench.try_run("ds_add_u32 v4, v10") {
        assert_eq!(result.unwrap_err(), WaveFault::MisalignedLds { address: 74, bytes: 4 });
    }
}

#[test]
fn an_atomic_outside_the_lds_changes_nothing_and_returns_zero() {
    let mut bench = Bench::new();
    *bench.v(4) = [64 * 1024; LANES];
    *bench.v(1) = [5; LANES];
    if bench.run("ds_add_rtn_u32 v1, v4, v10") {
        assert_eq!(bench.v(1)[0], 0);
    }
}

#[test]
fn updates_from_several_host_threads_all_count() {
    const EACH: u32 = 20_000;
    let mut memory = [0u64; 2];
    let mut map = PageMap::default();
    map.map(Mapping {
        start: BUFFER,
        end: BUFFER + 16,
        host: memory.as_mut_ptr().cast(),
        writable: true,
        executable: false,
    })
    .unwrap();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut view = View::new(&map);
                for _ in 0..EACH {
                    u32::update(&mut view, BUFFER, |old| old + 1).unwrap();
                    u64::update(&mut view, BUFFER + 8, |old| old + (1 << 32)).unwrap();
                }
            });
        }
    });
    assert_eq!(memory, [u64::from(4 * EACH), u64::from(4 * EACH) << 32]);
}
