//! The committed code objects are what the sources, the manifest and the Rust side say they are.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use firmware_tools::code_object::{CodeObject, Kernel};
use kernels::collective::{AllGather, AllReduce};
use kernels::embed::Embed;
use kernels::expert::{ExpertDown, ExpertUp};
use kernels::gemm::Gemm;
use kernels::head::{Advance, Sample};
use kernels::kda::Kda;
use kernels::mix_norm::MixNorm;
use kernels::mla::{MlaAbsorb, MlaAttention, MlaLatent, MlaQuery, MlaValue};
use kernels::moe::{MoeDown, MoeGroup, MoeRoute, MoeUp, RouterTopk};
use kernels::project::{MixProject, ProjectSum};
use kernels::signal::{SignalGather, SignalSend, SignalSum};
use kernels::{Arguments, CODE_OBJECTS, Field};
use sha2::{Digest, Sha256};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn manifest() -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifest.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn hashes(manifest: &serde_json::Value, key: &str) -> BTreeMap<String, String> {
    serde_json::from_value(manifest[key].clone()).unwrap()
}

/// Each kernel with what the compiler says about it.
fn parsed() -> Vec<(&'static kernels::Kernel, Kernel)> {
    let parse = |kernel: &&'static kernels::Kernel| {
        let object = CodeObject::parse(kernel.code_object.bytes).unwrap();
        (*kernel, object.kernel(kernel.name).unwrap().clone())
    };
    kernels::kernels::ALL.iter().map(parse).collect()
}

/// Parameters of every kernel, by its name.
fn parameters() -> BTreeMap<&'static str, &'static [Field]> {
    fn of<A: Arguments>() -> impl Iterator<Item = (&'static str, &'static [Field])> {
        A::KERNELS.iter().map(|kernel| (kernel.name, A::FIELDS))
    }
    of::<Embed>()
        .chain(of::<MixNorm>())
        .chain(of::<Gemm>())
        .chain(of::<MixProject>())
        .chain(of::<ProjectSum>())
        .chain(of::<Kda>())
        .chain(of::<MlaLatent>())
        .chain(of::<MlaQuery>())
        .chain(of::<MlaAbsorb>())
        .chain(of::<MlaAttention>())
        .chain(of::<MlaValue>())
        .chain(of::<RouterTopk>())
        .chain(of::<MoeGroup>())
        .chain(of::<MoeRoute>())
        .chain(of::<MoeUp>())
        .chain(of::<MoeDown>())
        .chain(of::<ExpertUp>())
        .chain(of::<ExpertDown>())
        .chain(of::<AllReduce>())
        .chain(of::<AllGather>())
        .chain(of::<SignalSend>())
        .chain(of::<SignalSum>())
        .chain(of::<SignalGather>())
        .chain(of::<Sample>())
        .chain(of::<Advance>())
        .collect()
}

#[test]
fn every_argument_is_where_the_compiler_expects_it() {
    let parameters = parameters();
    for (kernel, compiled) in parsed() {
        let fields = parameters[kernel.name];
        let arguments = &compiled.metadata.arguments;
        assert_eq!(fields.len(), arguments.len(), "parameters of {}", kernel.name);
        for (field, argument) in fields.iter().zip(arguments) {
            let place = (argument.offset as usize, argument.size as usize);
            assert_eq!((field.offset, field.size), place, "{} of {}", field.name, kernel.name);
            // The compiler drops the names of parameters that are structs.
            if let Some(name) = &argument.name {
                assert_eq!(field.name, name, "parameter of {} at {}", kernel.name, field.offset);
            }
        }
        let end = fields.iter().map(|field| field.offset + field.size).max().unwrap();
        assert_eq!(end, compiled.metadata.kernarg_segment_size as usize, "{}", kernel.name);
    }
}

#[test]
fn every_kernel_in_a_code_object_has_its_launch_data() {
    let mut compiled = 0;
    for object in CODE_OBJECTS {
        compiled += CodeObject::parse(object.bytes).unwrap().kernels().len();
    }
    let known = kernels::kernels::ALL;
    assert_eq!(compiled, known.len());
    for (kernel, compiled) in parsed() {
        assert_eq!(kernel.workgroup, compiled.metadata.max_flat_workgroup_size, "{}", kernel.name);
    }
}

#[test]
fn no_kernel_needs_scratch_a_stack_or_hidden_arguments() {
    for (kernel, compiled) in parsed() {
        let metadata = &compiled.metadata;
        assert_eq!(metadata.private_segment_fixed_size, 0, "{}", kernel.name);
        assert!(!metadata.uses_dynamic_stack, "{}", kernel.name);
        assert_eq!(metadata.wavefront_size, 64, "{}", kernel.name);
        let hidden = metadata.arguments.iter().find(|argument| argument.kind.text().starts_with("hidden"));
        assert_eq!(hidden, None, "{}", kernel.name);
    }
}

#[test]
fn no_code_object_needs_relocation() {
    for object in CODE_OBJECTS {
        let parsed = CodeObject::parse(object.bytes).unwrap();
        assert_eq!(parsed.image().relocations().len(), 0, "{}", object.name);
    }
}

#[test]
fn committed_code_objects_are_the_ones_in_the_manifest() {
    let found: BTreeMap<_, _> =
        CODE_OBJECTS.iter().map(|object| (format!("{}.hsaco", object.name), sha256(object.bytes))).collect();
    assert_eq!(found, hashes(&manifest(), "code_objects_sha256"));
}

#[test]
fn no_source_has_changed_since_the_code_objects_were_built() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device");
    let found: BTreeMap<_, _> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), sha256(&std::fs::read(entry.path()).unwrap())))
        .collect();
    assert_eq!(found, hashes(&manifest(), "sources_sha256"), "run kernels/build");
}
