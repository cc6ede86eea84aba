//! Before a model is served every kernel computes known bits on every GPU, and a machine or code object that gives others
//! is refused.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;
#[path = "support/damage.rs"]
mod damage;

use std::collections::BTreeSet;

use cli::run;
use damage::{instructions, without};
use firmware_tools::code_object::CodeObject;
use kernels::kernels::{ALL, EMBED};
use kimi_hcq::failure::Failure;
use kimi_hcq::graph::KernelSet;
use kimi_hcq::platform::Platform;
use kimi_hcq::self_test::{SelfTestError, check, known, record, to_text};

fn machine(gpus: usize) -> Platform {
    Platform::open_mock(mock::Config { gpus, ..mock::Config::default() }).unwrap()
}

#[test]
fn the_known_bits_are_those_of_the_committed_kernels() {
    let found = record(&machine(1)).unwrap();
    assert_eq!(
        to_text(&found),
        to_text(&known()),
        "after a change of kernels: MOCKKFD=1 kimi-hcq self-test --record runtime/src/self_test/known.txt"
    );
}

#[test]
fn every_kernel_is_among_them() {
    let tested: BTreeSet<&str> = known().iter().map(|bits| bits.kernel).collect();
    assert_eq!(tested, ALL.iter().map(|kernel| kernel.name).collect());
}

#[test]
fn every_gpu_gives_the_known_bits() {
    check(&machine(8), 8, &KernelSet::default()).unwrap();
}

/// Instructions of `kernel` that compute or store, evenly spread: many are for sizes that the test does not have.
fn candidates(object: &CodeObject, kernel: &kernels::Kernel) -> Vec<(u64, isa::Inst)> {
    const TRIES: usize = 24;
    let start = object.kernel(kernel.name).unwrap().entry_offset;
    let (_, function) = object.symbols().find(|(_, symbol)| symbol.offset == start).unwrap();
    let all = instructions(object, start, function.bytes as usize / 4);
    let matters = |inst: &isa::Inst| {
        let name = inst.op.info().name;
        ["v_mfma", "v_add_f32", "v_fma", "global_store"].iter().any(|kind| name.starts_with(kind))
    };
    let own = all.into_iter().filter(|(at, inst)| *at < start + function.bytes && matters(inst));
    let own: Vec<_> = own.collect();
    let step = own.len().div_ceil(TRIES);
    own.into_iter().step_by(step.max(1)).collect()
}

/// Damages `kernel` until the self-test refuses, which names it.
fn refused_when_damaged(kernel: &'static kernels::Kernel) {
    let platform = machine(1);
    let object = CodeObject::parse(kernel.code_object.bytes).unwrap();
    let refusal = candidates(&object, kernel).into_iter().find_map(|candidate| {
        let damaged = without(kernel.code_object.bytes, &object, &candidate);
        let bytes = |object: &kernels::CodeObject| {
            if object.name == kernel.code_object.name { damaged.clone() } else { object.bytes.to_vec() }
        };
        let refusal = check(&platform, 1, &KernelSet { bytes: &bytes, ..KernelSet::default() }).err();
        println!("{} without {}: {}", kernel.name, candidate.1, if refusal.is_some() { "refused" } else { "good" });
        refusal
    });
    let error = refusal.unwrap_or_else(|| panic!("no damage to {} is found", kernel.name));
    let text = error.to_string();
    assert!(matches!(error, SelfTestError::Differs { .. }), "{}: {text}", kernel.name);
    assert!(text.contains(&format!("kernel {} ", kernel.name)) && text.contains("GPU 0x"), "{text}");
    assert_eq!(Failure::from(error).exit_code(), 1);
}

#[test]
#[ignore = "a minute; .ci/sweep runs it"]
fn a_damaged_instruction_of_any_kernel_is_refused_by_the_name_of_the_kernel() {
    ALL.iter().for_each(|kernel| refused_when_damaged(kernel));
}

#[test]
fn a_gpu_that_adds_in_another_order_is_refused_unless_told_otherwise() {
    let arguments = ["run", "--json", "--devices", "1", "--prompt", "Hello", "--max-tokens", "1"];
    let refused = run("gpus=1,mfma=sequential", &arguments);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("fails the self-test"), "{text}");
    let served = run("gpus=1,mfma=sequential", &[&arguments[..], &["--no-self-test"]].concat());
    assert_eq!(served.status.code(), Some(0));
}

#[test]
fn a_store_less_in_the_embedding_is_refused() {
    refused_when_damaged(&EMBED);
}
