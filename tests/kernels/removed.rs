//! What the tests and the sanitizer notice when a kernel lacks one of its waits, barriers or cache operations.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use kernels::CODE_OBJECTS;

use crate::orders::{Order, orders};
use crate::support::{REPORTED, Removal};
use crate::{collectives, embed, expert, gemm, head, kda, mix_norm, mla, moe, project, sample};

/// Of so many instructions one is taken away, unless `KIMI_HCQ_REMOVE_EVERY` says otherwise; 1 takes each in turn.
const EVERY: usize = 16;
/// Threads that take instructions away start with this name.
const WORKER: &str = "removal";

/// Launches that run through all kernels of a code object, quick ones first.
fn launches(name: &str) -> &'static [fn()] {
    match name {
        "embed" => &[embed::exercise, embed::a_token_beyond_the_vocabulary_is_reported_and_reads_nothing_else],
        "mix_norm" => &[
            mix_norm::exercise,
            mix_norm::every_number_of_blocks_is_mixed_right,
            mix_norm::the_head_gets_the_last_valid_token_alone,
            mix_norm::the_latent_is_normed_at_both_widths,
        ],
        "gemm" => &[gemm::exercise],
        "kda" | "kda_chunk" => &[kda::exercise, kda::state_and_history_carry_over_runs_of_any_length],
        "mla_latent" => &[mla::exercise_latent],
        "mla_query" => {
            &[mla::exercise_query, mla::the_query_of_one_token_is_normed_and_projected_while_its_latent_is_appended]
        }
        "mla_absorb" | "mla_attention" | "mla_value" => &[
            mla::exercise_attention,
            mla::every_number_of_cached_tokens_around_a_block_is_right,
            mla::causal_limits_hold_where_splits_divide_a_chunk,
        ],
        "mix_project" => &[
            project::exercise_start,
            project::any_number_of_blocks_is_mixed_before_the_projections,
            project::a_row_longer_than_a_workgroup_s_waves_take_alone_is_shared_between_them,
            project::workgroups_take_the_tiles_beyond_the_compute_units_in_turn,
        ],
        "project_sum" => &[project::exercise_end, project::a_share_that_is_not_finite_is_blamed_on_its_rank_by_both],
        "expert_up" | "expert_down" => {
            &[expert::exercise, expert::sixteen_of_many_experts_are_chosen_and_summed_in_the_same_bits_every_time]
        }
        "router" | "moe_up" | "moe_down" => &[
            moe::exercise,
            moe::ties_go_to_the_lower_expert,
            moe::logits_that_are_nan_still_choose_experts_that_exist,
            moe::assignments_are_listed_by_expert_in_token_order_and_cut_into_tiles,
            moe::an_expert_that_more_tokens_chose_than_a_tile_holds_is_right,
        ],
        "all_reduce" => &[
            collectives::exercise_sum,
            collectives::a_contribution_that_is_not_finite_is_blamed_on_its_rank_by_both,
            collectives::every_rank_gets_the_same_sum_bit_for_bit,
        ],
        "all_gather" => &[collectives::exercise_gather, collectives::columns_of_all_ranks_are_joined_in_rank_order],
        "signal" => &[collectives::exercise_signals, collectives::every_rank_gets_the_same_sum_bit_for_bit],
        "sample" => &[
            sample::exercise,
            sample::a_nan_among_the_logits_is_a_failure_that_names_its_rank,
            sample::what_is_impossible_is_never_drawn,
            sample::the_largest_logit_over_all_ranks_wins,
        ],
        "advance" => &[
            head::exercise_advance,
            head::a_run_without_a_head_leaves_the_tokens_to_the_host,
            head::a_failed_run_is_reported_and_moves_nothing,
        ],
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

fn outcome(launches: &[fn()]) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| launches.iter().for_each(|launch| launch()))) {
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
                outcome(launches(object.name))
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
    objects.clone().flat_map(|object| launches(object.name)).for_each(|launch| launch());
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
