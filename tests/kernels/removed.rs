//! What the tests and the sanitizer notice when a kernel lacks one of its waits, barriers or cache operations.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use kernels::CODE_OBJECTS;

use crate::orders::{Order, orders};
use crate::support::{REPORTED, Removal};

/// Of so many instructions one is taken away, unless `KIMI_HCQ_REMOVE_EVERY` says otherwise; 1 takes each in turn.
const EVERY: usize = 16;
/// Threads that take instructions away start with this name.
const WORKER: &str = "removal";

/// Launches that run through all kernels of a code object.
fn exercise(name: &str) -> fn() {
    match name {
        "embed" => crate::embed::exercise,
        "mix_norm" => crate::mix_norm::exercise,
        "gemm" => crate::gemm::exercise,
        "kda" | "kda_chunk" => crate::kda::exercise,
        "mla_latent" => crate::mla::exercise_latent,
        "mla_query" => crate::mla::exercise_query,
        "mla_absorb" | "mla_attention" | "mla_value" => crate::mla::exercise_attention,
        "mix_project" => crate::project::exercise_start,
        "project_sum" => crate::project::exercise_end,
        "expert_up" | "expert_down" => crate::expert::exercise,
        "router" | "moe_up" | "moe_down" => crate::moe::exercise,
        "all_reduce" => crate::collectives::exercise_sum,
        "all_gather" => crate::collectives::exercise_gather,
        "signal" => crate::collectives::exercise_signals,
        "argmax" => crate::head::exercise_argmax,
        "advance" => crate::head::exercise_advance,
        other => panic!("no launches are known for {other}"),
    }
}

/// How a removal came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The sanitizer has a report.
    Reported,
    /// The output is another, or there is none.
    Changed,
    /// It is not noticed.
    Survived,
    /// These launches do not get to it.
    NotRun,
}

fn outcome(run: fn()) -> Outcome {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => Outcome::Survived,
        Err(panic) => match panic.downcast_ref::<String>() {
            Some(text) if text.starts_with(REPORTED) => Outcome::Reported,
            _ => Outcome::Changed,
        },
    }
}

/// An instruction that is taken away.
struct Site {
    object: &'static kernels::CodeObject,
    order: Order,
}

/// Takes the instruction of each site away, on all processors, and says how far it is from time to time.
fn outcomes(sites: &[Site]) -> Vec<Outcome> {
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    let results = Mutex::new(vec![Outcome::Survived; sites.len()]);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(site) = sites.get(at) else { return };
            let Site { object, order } = site;
            let run = |bytes| {
                let _removal = Removal::of_code(object.name, bytes);
                outcome(exercise(object.name))
            };
            let mut found = run(order.taken_from(object.bytes));
            if found == Outcome::Survived && run(order.trapped_in(object.bytes)) == Outcome::Survived {
                found = Outcome::NotRun;
            }
            results.lock().unwrap()[at] = found;
            if matches!(found, Outcome::Changed | Outcome::Survived) {
                println!("{found:?}: {} + {:#x}: {}", order.symbol, order.offset, order.text);
            }
            if at % 20 == 19 {
                println!("{} of {} removals after {:.0?}", at + 1, sites.len(), start.elapsed());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, Into::into) {
            std::thread::Builder::new().name(WORKER.into()).spawn_scoped(scope, work).unwrap();
        }
    });
    results.into_inner().unwrap()
}

/// Panics of the workers are results; all others are shown.
fn silence_workers() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() != Some(WORKER) {
            before(info);
        }
    }));
}

#[test]
#[ignore = "minutes; .ci/sweep runs a part, KIMI_HCQ_REMOVE_EVERY=1 all of it"]
fn removals_of_waits_barriers_and_cache_operations_are_noticed() {
    let every = std::env::var("KIMI_HCQ_REMOVE_EVERY").map_or(EVERY, |every| every.parse().unwrap());
    let only = std::env::var("KIMI_HCQ_REMOVE_FROM").ok();
    silence_workers();
    let objects = CODE_OBJECTS.iter().filter(|object| only.as_ref().is_none_or(|name| name == object.name));
    // With nothing taken away they pass.
    objects.clone().for_each(|object| exercise(object.name)());
    let of_object = |&object: &&'static kernels::CodeObject| {
        orders(object.bytes).into_iter().map(move |order| Site { object, order })
    };
    let sites: Vec<Site> = objects.flat_map(of_object).step_by(every).collect();
    let outcomes = outcomes(&sites);
    let mut table = String::from(
        "| code object | waits, barriers, cache operations | not run | reported | output changed | survived |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for object in CODE_OBJECTS {
        let mut counts = [0; 4];
        let of_object = sites.iter().zip(&outcomes).filter(|(site, _)| site.object.name == object.name);
        of_object.for_each(|(_, &outcome)| counts[outcome as usize] += 1);
        let [reported, changed, survived, not_run] = counts;
        let total: usize = counts.iter().sum();
        writeln!(table, "| {} | {total} | {not_run} | {reported} | {changed} | {survived} |", object.name).unwrap();
    }
    println!("{table}");
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let (survived, run) = (count(Outcome::Survived), sites.len() - count(Outcome::NotRun));
    // The aim is one of twenty; docs/sanitizer.md says what is missing.
    assert!(run > 0 && survived * 10 <= run, "{survived} of {run} removals go unnoticed");
}
