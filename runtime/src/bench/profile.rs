//! Where the time of runs went, kernel by kernel.

use super::work::{Catalogue, Run, Work};
use crate::engine::{Engine, Span};

/// What one kernel took in all runs that were timed.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct KernelTime {
    /// Its name.
    pub kernel: &'static str,
    /// Its dispatches.
    pub count: usize,
    /// From start to end, in microseconds, added up.
    pub microseconds: f64,
    /// Bytes that its dispatches must move at least.
    pub bytes: u64,
    /// Its part of the time of all kernels.
    pub share: f64,
    /// Microseconds in which the GPU had nothing to do before its dispatches, within runs.
    pub idle_microseconds: f64,
}

/// Adds spans up, the longest kernel first.
#[must_use]
pub fn by_kernel(engine: &Engine, spans: &[Span]) -> Vec<KernelTime> {
    let mut kernels: Vec<KernelTime> = Vec::new();
    let catalogue = Catalogue::new(engine.config(), engine.layout(), engine.plan(), &engine.ranks()[0].memory);
    let (decode, prefill) = (engine.launches(1), engine.launches(engine.plan().sizes.chunk));
    let work = |span: &Span| {
        let run = Run::with_random_choice(engine.config(), span.tokens, span.position);
        // A chunk of one token may have run either graph; the one with that kernel there is it.
        let lists = if span.tokens == 1 { [&decode, &prefill] } else { [&prefill, &decode] };
        let launches = lists.into_iter().filter_map(|list| list.kernels.get(span.index));
        let mut launches = launches.filter(|launch| launch.kernel.name == span.kernel);
        launches.next().map_or(Work::default(), |launch| catalogue.work(launch, run))
    };
    let mut before: Option<&Span> = None;
    for span in spans {
        let idle = before.filter(|_| span.index > 0).map_or(0.0, |before| span.idle_after(before));
        before = Some(span);
        let at = kernels.iter().position(|kernel| kernel.kernel == span.kernel).unwrap_or_else(|| {
            let kernel = span.kernel;
            kernels.push(KernelTime {
                kernel,
                count: 0,
                microseconds: 0.0,
                bytes: 0,
                share: 0.0,
                idle_microseconds: 0.0,
            });
            kernels.len() - 1
        });
        let kernel = &mut kernels[at];
        kernel.count += 1;
        kernel.microseconds += span.microseconds();
        kernel.bytes += work(span).bytes();
        kernel.idle_microseconds += idle;
    }
    let all: f64 = kernels.iter().map(|kernel| kernel.microseconds).sum();
    kernels.iter_mut().for_each(|kernel| kernel.share = kernel.microseconds / all.max(f64::MIN_POSITIVE));
    kernels.sort_by(|a, b| b.microseconds.total_cmp(&a.microseconds));
    kernels
}
