//! Tests a kernel on an emulated GPU: `cargo run --release -p mock --example histogram`.
//!
//! The same from the command line: `kimi-hcq mock exec mock/examples/histogram`.

use mock::launch::{Argument, Device, Error, Launch};

/// What the kernel should compute, the obvious way.
fn expected(values: &[u8]) -> [u32; 256] {
    let mut bins = [0; 256];
    for &value in values {
        bins[usize::from(value)] += 1;
    }
    bins
}

fn main() -> Result<(), Error> {
    let values: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 & 0x3f).collect();

    let mut device = Device::new()?;
    let program = device.load(include_bytes!("kernels/histogram.hsaco"))?;
    let input = device.upload("values", &values)?;
    let bins = device.zeroed("bins", 256 * size_of::<u32>())?;
    let launch = Launch::new(&program, "histogram")?.workgroups([16, 1, 1]).workgroup([256, 1, 1]).arguments([
        Argument::from(&input),
        (values.len() as u32).into(),
        Argument::from(&bins),
    ])?;
    let outcome = device.launch(&launch)?;

    assert_eq!(bins.read::<u32>()?, expected(&values));
    println!("{} values counted right, in {} wave instructions", values.len(), outcome.wave_instructions);
    Ok(())
}
