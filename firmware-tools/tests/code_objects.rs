//! Real code objects, and what is left of them when bytes are changed.

use firmware_tools::CodeObject;
use firmware_tools::bundle;
use firmware_tools::code_object::{
    AbiVersion, Error, FeatureSetting, Processor, RelocationKind, SymbolKind, ValueKind,
};
use proptest::prelude::*;

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name))
    };
}

const KERNELS: &[u8] = data!("kernels.hsaco");
const RELOCATIONS: &[u8] = data!("relocations.hsaco");
const SMALL: &[u8] = data!("small-v6.hsaco");
const PRELOAD: &[u8] = data!("small-preload.hsaco");
const VADD: &[u8] = data!("vadd.hsaco");
const BUNDLE: &[u8] = data!("implicit.bundle");
const HOST: &[u8] = data!("implicit-host.o");

fn refusal(bytes: &[u8]) -> Error {
    CodeObject::parse(bytes).expect_err("it is refused")
}

#[test]
fn a_vector_add_of_another_team_reads_as_its_notes_say() {
    let object = CodeObject::parse(VADD).unwrap();
    assert_eq!(object.abi(), AbiVersion::V6);
    assert_eq!(object.target().processor, Processor::Gfx950);
    assert_eq!(object.target().to_string(), "gfx950");

    let kernel = object.kernel("vadd").unwrap();
    assert_eq!((kernel.descriptor_offset, kernel.entry_offset), (0x580, 0x1600));
    assert_eq!((kernel.metadata.kernarg_segment_size, kernel.metadata.kernarg_segment_align), (0x1c, 8));
    assert_eq!((kernel.metadata.sgpr_count, kernel.metadata.vgpr_count), (14, 8));
    assert_eq!(kernel.metadata.max_flat_workgroup_size, 256);
    let arguments: Vec<_> = kernel.metadata.arguments.iter().map(|a| (a.offset, a.size, a.may_write)).collect();
    assert_eq!(arguments, [(0, 8, false), (8, 8, false), (16, 8, true), (24, 4, true)]);
    assert_eq!(kernel.metadata.arguments[0].kind, ValueKind::GlobalBuffer);
    assert_eq!(kernel.metadata.arguments[3].kind, ValueKind::ByValue);
    assert_eq!(kernel.descriptor.user_sgprs().kernarg_segment_ptr, Some(0));

    let segments: Vec<_> = object
        .image()
        .segments()
        .iter()
        .map(|s| (s.offset, s.bytes, s.initialised, s.permissions.write, s.permissions.execute))
        .collect();
    assert_eq!(
        segments,
        [(0, 0x5c0, 0x5c0, false, false), (0x1600, 0x480, 0x480, false, true), (0x2a80, 0x580, 0x70, true, false)]
    );
    assert_eq!(object.image().len(), 0x3000);
    assert_eq!(object.symbol("vadd").map(|s| (s.offset, s.bytes, s.kind)), Some((0x1600, 124, SymbolKind::Function)));
    assert_eq!(object.symbol_at(0x1610).map(|(name, _)| name), Some("vadd"));
    assert_eq!(object.symbol_at(0x1610 + 124), None);
}

#[test]
fn the_image_holds_each_segment_where_the_file_says() {
    let image = CodeObject::parse(VADD).unwrap().image().at(0x10_0000).unwrap();
    assert_eq!(image[..0x5c0], VADD[..0x5c0]);
    assert_eq!(image[0x1600..0x1a80], VADD[0x600..0xa80]);
    assert_eq!(image[0x2a80..0x2af0], VADD[0xa80..0xaf0]);
    assert!(image[0x5c0..0x1600].iter().chain(&image[0x2af0..]).all(|&byte| byte == 0));
}

#[test]
fn lds_scratch_and_accumulators_are_in_descriptor_and_metadata() {
    let object = CodeObject::parse(KERNELS).unwrap();
    assert_eq!(
        object.kernels().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(),
        ["lds_reverse", "many_accumulators", "scratch_sum"]
    );
    let lds = object.kernel("lds_reverse").unwrap();
    assert_eq!(lds.descriptor.group_segment_fixed_size, 4096);
    assert_eq!(lds.metadata.max_flat_workgroup_size, 256);

    let scratch = object.kernel("scratch_sum").unwrap();
    assert!(scratch.descriptor.private_segment_fixed_size >= 32 * 4);
    assert_eq!(scratch.descriptor.rsrc2.enable_private_segment(), 1);

    let accumulators = object.kernel("many_accumulators").unwrap();
    assert_eq!((accumulators.metadata.vgpr_count, accumulators.metadata.agpr_count), (512, 256));
    assert_eq!(accumulators.descriptor.rsrc1.vgpr_count(), 512);
    assert_eq!(accumulators.descriptor.rsrc3.accum_offset(), 256);
}

#[test]
fn versions_4_5_and_6_give_the_same_kernel() {
    let objects: [&[u8]; 3] = [data!("small-v4.hsaco"), data!("small-v5.hsaco"), SMALL];
    let [v4, v5, v6] = objects.map(|bytes| CodeObject::parse(bytes).unwrap());
    assert_eq!([v4.abi(), v5.abi(), v6.abi()], [AbiVersion::V4, AbiVersion::V5, AbiVersion::V6]);
    for older in [&v4, &v5] {
        let (old, new) = (older.kernel("three_dimensional").unwrap(), v6.kernel("three_dimensional").unwrap());
        assert_eq!((&old.metadata, old.descriptor), (&new.metadata, new.descriptor));
    }
    let kernel = v6.kernel("three_dimensional").unwrap();
    let sizes: Vec<_> = kernel.metadata.arguments.iter().map(|a| (a.offset, a.size)).collect();
    assert_eq!(sizes, [(0, 8), (8, 8), (16, 2)]);
    assert_eq!(kernel.descriptor.rsrc2.vgpr_workitem_id(), 2);
    let rsrc2 = kernel.descriptor.rsrc2;
    assert_eq!([rsrc2.enable_sgpr_workgroup_id_x(), rsrc2.enable_sgpr_workgroup_id_y()], [1, 1]);
    assert_eq!(rsrc2.enable_sgpr_workgroup_id_z(), 1);
}

#[test]
fn target_settings_come_from_the_header_and_agree_with_the_note() {
    let object = CodeObject::parse(data!("small-xnack-off.hsaco")).unwrap();
    assert_eq!((object.target().xnack, object.target().sramecc), (FeatureSetting::Off, FeatureSetting::On));
    assert_eq!(object.target().to_string(), "gfx950:sramecc+:xnack-");
}

#[test]
fn preloaded_arguments_follow_the_kernarg_pointer_in_user_sgprs() {
    let object = CodeObject::parse(PRELOAD).unwrap();
    let descriptor = object.kernel("three_dimensional").unwrap().descriptor;
    assert!(descriptor.kernarg_preload_length > 0);
    assert_eq!(descriptor.kernarg_preload_offset, 0);
    let sgprs = descriptor.user_sgprs();
    assert_eq!((sgprs.kernarg_segment_ptr, sgprs.kernarg_preload), (Some(0), Some(2)));
    assert_eq!(sgprs.count, descriptor.rsrc2.user_sgpr_count());
}

#[test]
fn relocations_point_into_the_image_wherever_it_is_loaded() {
    let object = CodeObject::parse(RELOCATIONS).unwrap();
    let kinds: Vec<_> = object.image().relocations().iter().map(|relocation| relocation.kind).collect();
    let (relative, absolute) = (RelocationKind::Relative64, RelocationKind::Abs64);
    assert_eq!(kinds, [relative, relative, absolute, absolute]);
    let (table, first) = (object.symbol("table").unwrap(), object.symbol("first").unwrap());
    assert_eq!((table.bytes, table.kind), (40, SymbolKind::Object));
    for base in [0x1000, 0x7f12_3456_7000] {
        let image = object.image().at(base).unwrap();
        let entry = |index: usize| {
            let at = table.offset as usize + index * 8;
            u64::from_le_bytes(*image[at..].first_chunk().unwrap())
        };
        assert_eq!(entry(0), base + first.offset);
        assert_eq!(entry(1), base + object.symbol("second").unwrap().offset);
        assert_eq!(entry(2), base + first.offset + 12);
        let unnamed = (entry(3) - base) as usize;
        assert_eq!(image[unnamed..unnamed + 4], [3, 0, 0, 0]);
        assert_eq!(entry(4), 0);
    }
}

#[test]
fn the_one_gfx950_object_of_a_bundle_or_host_program_is_found() {
    for container in [BUNDLE, HOST] {
        let object = CodeObject::parse(container).unwrap();
        assert_eq!(object.target().processor, Processor::Gfx950);
        let kernel = object.kernel("scale").unwrap();
        assert_eq!(kernel.metadata.max_flat_workgroup_size, 512);
        let hidden: Vec<_> = kernel.metadata.arguments.iter().filter(|argument| argument.kind.is_hidden()).collect();
        let group_size = hidden.iter().find(|argument| argument.kind == ValueKind::HiddenGroupSizeX).unwrap();
        assert_eq!(group_size.size, 2);
        assert!(!hidden.iter().any(|argument| matches!(argument.kind, ValueKind::Other(_))));
    }
    let processors: Vec<_> =
        bundle::entries(BUNDLE).unwrap().iter().map(|e| e.processor().map(str::to_owned)).collect();
    assert_eq!(processors, [Some("gfx942".to_owned()), Some("gfx950".to_owned())]);
}

#[test]
fn a_compressed_bundle_and_another_gpu_are_refused_by_name() {
    assert!(matches!(refusal(data!("implicit-compressed.bundle")), Error::Bundle(bundle::Error::Compressed)));
    let error = refusal(data!("small-gfx1100.hsaco")).to_string();
    assert!(error.contains("gfx1100"), "{error}");
}

#[test]
fn a_bundle_without_or_with_two_gfx950_objects_says_what_it_has() {
    let with_id = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = BUNDLE.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut bytes = BUNDLE.to_vec();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        refusal(&bytes)
    };
    let without = with_id("--gfx950", "--gfx90a");
    assert!(matches!(&without, Error::NotInBundle { found } if found.len() == 2), "{without}");
    assert!(matches!(with_id("--gfx942", "--gfx950"), Error::SeveralInBundle { .. }));
}

#[test]
fn a_relocation_that_a_loader_cannot_apply_is_refused() {
    // The first entry of .rela.dyn: offset, type in the low half of info, symbol in the high half, addend.
    let first = 0x3b48_u64.to_le_bytes();
    let at = RELOCATIONS.windows(16).position(|w| w[..8] == first && w[8] == 13).unwrap();
    let said = |offset: usize, with: &[u8]| refusal(&patched(RELOCATIONS, at + offset, with)).to_string();
    assert!(said(8, &[7]).contains("does not know this type"), "R_AMDGPU_GOTPCREL is the linker's");
    assert!(said(0, &u64::MAX.to_le_bytes()).contains("not in initialised memory"));
    assert!(said(8, &[3, 0, 0, 0, 99]).contains("its symbol has no name"));
}

#[test]
fn a_kernel_that_is_not_there_is_answered_with_those_that_are() {
    let error = CodeObject::parse(KERNELS).unwrap().kernel("lds").unwrap_err().to_string();
    assert!(error.contains("lds_reverse, many_accumulators, scratch_sum"), "{error}");
}

/// Changes bytes at an offset.
fn patched(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

/// The file offset of the program header of type PT_LOAD number `number`, by the layout every file here has.
fn load_header(number: usize) -> usize {
    64 + 56 * (1 + number)
}

#[test]
fn headers_that_lie_are_refused_with_the_reason() {
    let said = |at: usize, with: &[u8]| refusal(&patched(SMALL, at, with)).to_string();
    assert!(said(0, b"\0").contains("not an ELF file"));
    assert!(said(4, &[1]).contains("ELF class"));
    assert!(said(5, &[2]).contains("not an") && said(7, &[3]).contains("OS ABI"));
    assert!(said(8, &[9]).contains("ABI version 9"));
    assert!(said(16, &[1, 0]).contains("is it linked"));
    assert!(said(18, &[0x3e, 0]).contains(".hip_fatbin"), "an x86 machine is taken for a host program");
    assert!(said(18, &[0x28, 0]).contains("machine"));
    assert!(said(0x30, &[0xff]).contains("does not know"));
    let huge = u64::MAX.to_le_bytes();
    assert!(said(load_header(1) + 8, &huge).contains("outside the file"));
    assert!(said(load_header(1) + 16, &huge).contains("beyond 2^64"));
    assert!(said(load_header(1) + 40, &(1_u64 << 40).to_le_bytes()).contains("the limit is"));
    assert!(said(load_header(1) + 40, &[0; 8]).contains("longer in the file"));
    assert!(said(load_header(1) + 16, &[0; 8]).contains("overlaps"));
    assert!(said(0x20, &huge).contains("not an ELF file"), "program headers beyond the file");
    assert!(said(0x28, &huge).contains("not an ELF file"), "section headers beyond the file");
}

#[test]
fn a_kernel_that_enters_outside_its_code_is_refused() {
    let object = CodeObject::parse(SMALL).unwrap();
    let descriptor = object.kernel("three_dimensional").unwrap().descriptor_offset as usize;
    let entry = |offset: i64| refusal(&patched(SMALL, descriptor + 16, &offset.to_le_bytes()));
    assert!(matches!(entry(0), Error::EntryOutside { .. }));
    assert!(matches!(entry(i64::MIN), Error::EntryOutside { .. }));
    let good = object.kernel("three_dimensional").unwrap().descriptor.code_entry_byte_offset;
    assert!(matches!(entry(good + 4), Error::EntryMisaligned { .. }));
    let kernarg = patched(SMALL, descriptor + 8, &64_u32.to_le_bytes());
    assert!(matches!(refusal(&kernarg), Error::Disagreement { field: "kernarg segment size", .. }));
}

#[test]
fn every_truncation_is_refused_or_whole() {
    for bytes in [SMALL, RELOCATIONS, BUNDLE, HOST] {
        for length in (0..bytes.len()).step_by(7) {
            assert!(CodeObject::parse(&bytes[..length]).is_err(), "cut to {length} of {}", bytes.len());
        }
    }
}

/// What holds of every code object that parses, however it came about.
fn hold_invariants(object: &CodeObject) -> Result<(), TestCaseError> {
    let image = object.image();
    prop_assert!(image.len() <= firmware_tools::code_object::MAX_IMAGE_BYTES + 4096);
    for kernel in object.kernels() {
        prop_assert!(image.is_executable(kernel.entry_offset));
        prop_assert!(image.initial_bytes(kernel.descriptor_offset, 64).is_some());
        for argument in &kernel.metadata.arguments {
            prop_assert!(argument.offset + argument.size <= kernel.metadata.kernarg_segment_size);
        }
    }
    if let Ok(bytes) = image.at(0x7f00_0000_0000) {
        prop_assert_eq!(bytes.len() as u64, image.len());
    }
    Ok(())
}

fn any_file() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(vec![KERNELS, RELOCATIONS, SMALL, PRELOAD, VADD, BUNDLE, HOST])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_bytes_never_panic(file in any_file(), changes in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..8)) {
        let mut bytes = file.to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(object) = CodeObject::parse(&bytes) {
            hold_invariants(&object)?;
        }
    }

    /// Headers, symbols, notes and descriptors are in the first 2 KiB: changes there go deepest.
    #[test]
    fn changed_structure_never_panics(
        file in any_file(),
        changes in prop::collection::vec((0_usize..2048, prop::sample::select(vec![0_u64, 1, 0xff, 0x7fff_ffff, u64::MAX])), 1..4),
        cut in any::<prop::sample::Index>(),
        cut_it in any::<bool>(),
    ) {
        let mut bytes = file.to_vec();
        for (at, value) in changes {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        if cut_it {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(object) = CodeObject::parse(&bytes) {
            hold_invariants(&object)?;
        }
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..512), magic in 0..4) {
        let start: &[u8] = [&b""[..], b"\x7fELF\x02\x01\x01\x40\x04", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"][magic as usize];
        prop_assert!(CodeObject::parse(&[start, &noise].concat()).is_err());
    }
}
