//! What each host thread of the machine does.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Shared;

/// Instructions a wave may execute in one turn. Long enough to keep its registers in the host's cache, short enough that
/// a wave polling memory does not hold up what it waits for.
const QUANTUM: u32 = 20_000;

/// A thread with nothing to do looks again at once for this long (doorbells are plain memory, nobody calls) ...
const SPIN: Duration = Duration::from_micros(200);
/// ... then with pauses that grow to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

pub(super) fn work(shared: &Shared) {
    let mut idle_since: Option<Instant> = None;
    while !shared.stopping.load(Ordering::Acquire) {
        if step(shared) {
            idle_since = None;
            continue;
        }
        let idle = idle_since.get_or_insert_with(Instant::now).elapsed();
        if idle < SPIN {
            std::thread::yield_now();
        } else {
            let pause = (idle / 4).min(LONGEST_PAUSE);
            let state = shared.state();
            // Whether it was woken or timed out, the next step looks at everything.
            drop(shared.work.wait_timeout(state, pause));
        }
    }
}

fn step(shared: &Shared) -> bool {
    let maps = shared.maps();
    let mut moved = step_engines(shared, &maps);
    let picked = {
        let mut state = shared.state();
        moved |= state.step(shared, &maps);
        state.pick()
    };
    if let Some((mut workgroup, first)) = picked {
        let map = &maps[workgroup.gpu];
        let turn = workgroup.turn(map, shared.level, shared, &shared.observers, QUANTUM, first as usize);
        shared.state().put_back(shared, workgroup, turn);
        shared.work.notify_all();
        moved = true;
    }
    moved
}

fn step_engines(shared: &Shared, maps: &[crate::memory::PageMap]) -> bool {
    let engines = shared.engines().clone();
    let mut moved = false;
    for (id, engine) in engines {
        // Another thread has it: it will advance there.
        let Ok(mut engine) = engine.try_lock() else { continue };
        match engine.step(shared, id.gpu, &maps[id.gpu]) {
            Ok(advanced) => moved |= advanced,
            Err(fault) => shared.state().fail(shared, id, fault),
        }
    }
    moved
}
