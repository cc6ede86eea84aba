//! `mock::launch` as a user of the crate sees it.

#![allow(clippy::unwrap_used)]

use mock::Config;
use mock::launch::{Argument, Device, Error, Launch, Program};

const SAXPY: &[u8] = include_bytes!("../examples/kernels/saxpy.hsaco");
const HISTOGRAM: &[u8] = include_bytes!("../examples/kernels/histogram.hsaco");

fn device() -> Device {
    Device::start(Config { gpus: 1, xccs: 2, threads: 1, ..Config::default() }).unwrap()
}

/// A launch over `n` elements, all arguments apart.
fn saxpy(program: &Program, n: u32) -> Launch<'_> {
    Launch::new(program, "saxpy").unwrap().workgroups([n.div_ceil(256), 1, 1]).workgroup([256, 1, 1])
}

#[test]
fn a_kernel_computes_what_its_source_says_up_to_the_last_element() {
    let mut device = device();
    let program = device.load(SAXPY).unwrap();
    for n in [1, 255, 256, 1000] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let y: Vec<f32> = (0..n + 8).map(|i| 0.5 * i as f32).collect();
        let (xs, ys) = (device.upload("x", &x).unwrap(), device.upload("y", &y).unwrap());
        let launch = saxpy(&program, n).arguments([(&ys).into(), (&xs).into(), (-2.0_f32).into(), n.into()]).unwrap();
        assert!(device.launch(&launch).unwrap().wave_instructions > 0);
        let mut expected = y.clone();
        expected.iter_mut().zip(&x).for_each(|(y, x)| *y += -2.0 * x);
        assert_eq!(ys.read::<f32>().unwrap(), expected);
    }
}

#[test]
fn a_device_runs_programs_in_turn_and_counts_each_launch_alone() {
    let mut device = device();
    let (saxpy_program, histogram) = (device.load(SAXPY).unwrap(), device.load(HISTOGRAM).unwrap());
    let x = device.upload("x", &[1.0_f32; 64]).unwrap();
    let counted: Vec<u64> = (0..2)
        .map(|_| {
            let launch = saxpy(&saxpy_program, 64).arguments([(&x).into(), (&x).into(), 1.0_f32.into(), 64_u32.into()]);
            let instructions = device.launch(&launch.unwrap()).unwrap().wave_instructions;
            let bins = device.zeroed("bins", 1024).unwrap();
            let values = device.upload("values", &[7_u8; 300]).unwrap();
            let launch = Launch::new(&histogram, "histogram").unwrap().workgroup([256, 1, 1]).workgroups([2, 1, 1]);
            let launch = launch.arguments([(&values).into(), 300_u32.into(), (&bins).into()]).unwrap();
            device.launch(&launch).unwrap();
            assert_eq!(bins.read::<u32>().unwrap()[6..9], [0, 300, 0]);
            instructions
        })
        .collect();
    assert_eq!(counted[0], counted[1]);
    assert_eq!(x.read::<f32>().unwrap(), [4.0; 64]);
}

#[test]
fn arguments_by_offset_are_the_same_as_arguments_in_order() {
    let mut device = device();
    let program = device.load(SAXPY).unwrap();
    let (x, y) = (device.upload("x", &[1.0_f32; 4]).unwrap(), device.upload("y", &[1.0_f32; 4]).unwrap());
    let launch = saxpy(&program, 4)
        .argument_at(0, (&y).into())
        .argument_at(8, (&x).into())
        .argument_at(16, Argument::bytes(&[2.0_f32.to_le_bytes(), 4_u32.to_le_bytes()].concat()));
    device.launch(&launch).unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [3.0; 4]);
}

#[test]
fn arguments_that_are_not_the_kernels_are_refused_by_name_and_size() {
    let device = device();
    let program = device.load(SAXPY).unwrap();
    let buffer = device.allocate("x", 64).unwrap();
    let few = saxpy(&program, 1).arguments([Argument::from(&buffer)]);
    assert!(matches!(few, Err(Error::ArgumentCount { declared: 4, given: 1, .. })));
    let wide = saxpy(&program, 1).arguments([(&buffer).into(), (&buffer).into(), 1.0_f64.into(), 1_u32.into()]);
    assert!(matches!(wide, Err(Error::ArgumentSize { ref name, declared: 4, given: 8, .. }) if name == "2"));
    let unknown = Launch::new(&program, "daxpy").map(drop).unwrap_err();
    assert!(unknown.is_refusal() && unknown.to_string().contains("saxpy"), "{unknown}");
}

#[test]
fn what_the_kernel_or_the_hardware_cannot_take_is_refused_before_it_runs() {
    let mut device = device();
    let (saxpy_program, histogram) = (device.load(SAXPY).unwrap(), device.load(HISTOGRAM).unwrap());
    let of =
        |program| Launch::new(program, if std::ptr::eq(program, &histogram) { "histogram" } else { "saxpy" }).unwrap();
    let refused = [
        of(&saxpy_program).workgroups([0, 1, 1]),
        of(&saxpy_program).workgroup([1, 0, 1]),
        of(&saxpy_program).workgroup([1025, 1, 1]),
        of(&saxpy_program).workgroups([1 << 28, 1, 1]).workgroup([64, 1, 1]),
        of(&histogram).workgroup([512, 1, 1]),
        of(&histogram).workgroup([256, 1, 1]).dynamic_lds(159 << 10 | 1),
    ];
    for launch in &refused {
        let error = device.launch(launch).unwrap_err();
        assert!(matches!(error, Error::Dimensions { .. }), "{error}");
    }
    assert_eq!(device.mock().counters().dispatches.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn a_fault_names_the_instruction_and_the_device_stays_faulted() {
    let mut device = device();
    let program = device.load(SAXPY).unwrap();
    let y = device.upload("y", &[1.0_f32; 4]).unwrap();
    let launch = |x| saxpy(&program, 4).arguments([(&y).into(), x, 1.0_f32.into(), 4_u32.into()]).unwrap();
    let error = device.launch(&launch(Argument::null())).unwrap_err();
    assert!(!error.is_refusal());
    let text = error.to_string();
    assert!(text.contains("global_load_dword") && text.contains("no memory is mapped"), "{text}");
    let again = device.launch(&launch(Argument::from(&y))).unwrap_err();
    assert!(matches!(again, Error::Wait { .. }), "{again}");
}

#[test]
fn a_buffer_takes_no_more_than_it_holds() {
    let device = device();
    let buffer = device.upload("x", &[1_u16, 2, 3]).unwrap();
    assert_eq!((buffer.len(), buffer.is_empty()), (6, false));
    assert_eq!(buffer.read::<u32>().unwrap(), [0x0002_0001]);
    assert!(matches!(buffer.write(&[0_u32; 2]), Err(Error::BufferTooShort { held: 6, given: 8, .. })));
    buffer.write(&[9_u8]).unwrap();
    assert_eq!(buffer.read::<u16>().unwrap(), [9, 2, 3]);
}

#[test]
fn bytes_that_are_no_code_object_are_refused() {
    let error = device().load(b"not a code object").map(drop).unwrap_err();
    assert!(error.is_refusal(), "{error}");
}
