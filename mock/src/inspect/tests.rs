use super::*;
use crate::Config;
use crate::launch::{Device, Launch};

const SAXPY: &[u8] = include_bytes!("../../examples/kernels/saxpy.hsaco");
const HISTOGRAM: &[u8] = include_bytes!("../../examples/kernels/histogram.hsaco");

/// What `inspect` shows of saxpy over 300 elements in two workgroups of 256.
fn saxpy(inspect: Inspect) -> (u64, Inspection) {
    let config = Config { gpus: 1, xccs: 2, threads: 1, inspect, ..Config::default() };
    let mut device = Device::start(config).unwrap();
    let program = device.load(SAXPY).unwrap();
    let x = device.upload("x", &[1.0_f32; 300]).unwrap();
    let y = device.upload("y", &[2.0_f32; 300]).unwrap();
    let launch = Launch::new(&program, "saxpy").unwrap().workgroups([2, 1, 1]).workgroup([256, 1, 1]);
    let launch = launch.arguments([(&y).into(), (&x).into(), 3.0_f32.into(), 300_u32.into()]).unwrap();
    let executed = device.launch(&launch).unwrap().wave_instructions;
    (executed, device.mock().inspection())
}

#[test]
fn nothing_is_recorded_unless_asked_for() {
    assert_eq!(saxpy(Inspect::default()).1, Inspection::default());
}

#[test]
fn a_profile_adds_up_to_what_was_executed() {
    let (executed, inspection) = saxpy(Inspect { profile: true, ..Inspect::default() });
    let profile = inspection.profile.unwrap();
    let [kernel] = profile.kernels.as_slice() else { panic!("one kernel ran") };
    assert_eq!((kernel.workgroups, kernel.waves), (2, 8));
    let by_unit: u64 = kernel.blocks.iter().flat_map(|block| block.units.values()).sum();
    assert_eq!(by_unit, executed);
    let by_block: u64 = kernel.blocks.iter().map(|block| block.count * block.length as u64).sum();
    assert_eq!(by_block, executed);
    assert_eq!((kernel.blocks[0].offset, kernel.blocks[0].count), (0, 8), "all waves enter");
}

#[test]
fn a_profile_counts_the_bytes_of_active_lanes() {
    let inspection = saxpy(Inspect { profile: true, ..Inspect::default() }).1;
    let blocks = &inspection.profile.unwrap().kernels[0].blocks;
    let vector: Vec<_> = blocks.iter().filter(|block| block.units.contains_key("global")).collect();
    let [block] = vector.as_slice() else { panic!("one block loads and stores: {blocks:?}") };
    assert_eq!(block.stored, Traffic { asked: 1200, needed: 1200, moved: 1280 });
    assert!(block.loaded.asked >= 2400);
    assert!(block.active_lanes.unwrap() < 64.0, "the last wave has 44 of 64 lanes on");
}

#[test]
fn occupancy_is_limited_by_registers_slots_and_lds() {
    let config =
        Config { gpus: 1, threads: 1, inspect: Inspect { profile: true, ..Inspect::default() }, ..Config::default() };
    let mut device = Device::start(config).unwrap();
    let program = device.load(HISTOGRAM).unwrap();
    let values = device.upload("values", &[7_u8; 300]).unwrap();
    let bins = device.zeroed("bins", 1024).unwrap();
    let launch = Launch::new(&program, "histogram").unwrap().workgroup([256, 1, 1]).dynamic_lds(80 << 10);
    let launch = launch.arguments([(&values).into(), 300_u32.into(), (&bins).into()]).unwrap();
    device.launch(&launch).unwrap();
    let profile = device.mock().inspection().profile.unwrap();
    let kernel = &profile.kernels[0];
    // 80 KiB and the 1 KiB of bins: one workgroup of four waves.
    assert_eq!((kernel.occupancy.by_lds, kernel.occupancy.waves_per_simd), (Some(1), 1));
    assert_eq!(kernel.occupancy.by_slots, 8);
    let conflicts: u64 = kernel.blocks.iter().map(|block| block.lds.conflicts).sum();
    // 300 equal values meet in one bin: all but one of each half of a wave wait.
    assert_eq!(conflicts, 300 - 10);
}

#[test]
fn a_trace_tells_each_change_of_one_wave() {
    let wave = "1.0".parse().unwrap();
    let (_, inspection) = saxpy(Inspect { trace: Some(wave), ..Inspect::default() });
    let trace = inspection.trace.unwrap();
    assert_eq!(trace.instructions[0].offset, 0);
    assert_eq!(trace.instructions.last().unwrap().text, "s_endpgm");
    // 2 + 3 * 1 in the 44 lanes of the last wave.
    let result = |change: &Change| {
        matches!(change, Change::Vector { lanes, .. }
        if lanes.iter().map(|&(lane, _)| lane).eq(0..44) && lanes.iter().all(|&(_, value)| f32::from_bits(value) == 5.0))
    };
    assert!(trace.instructions.iter().any(|traced| traced.changes.iter().any(result)), "{trace:?}");
}

#[test]
fn wave_names_are_two_numbers() {
    assert_eq!("12.3".parse(), Ok(WaveName { workgroup: 12, wave: 3 }));
    for text in ["", "1", "1.", ".1", "a.b", "1.2.3", "-1.0"] {
        assert_eq!(text.parse::<WaveName>(), Err(NoWaveName(text.into())));
    }
}

#[test]
fn a_fidelity_report_counts_every_instruction_once() {
    let (executed, inspection) = saxpy(Inspect { fidelity: true, ..Inspect::default() });
    let report = inspection.fidelity.unwrap();
    let lists = [&report.exact, &report.within_bound, &report.modelled, &report.unsupported];
    assert_eq!(lists.iter().flat_map(|list| list.iter()).map(|judged| judged.count).sum::<u64>(), executed);
    assert!(report.exact.iter().any(|judged| judged.instruction == "global_store_dword"));
}
