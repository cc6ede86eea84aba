use driver::kfd::memory::AllocFlags;

use super::bench::{CheckBench, Grid, ONE, differ};
use crate::check::{ReportKind, Scope};
use crate::observe::{CacheAction, OrderEvent};

const TWO: Grid = Grid { workgroups: 2, ..ONE };
const FIRST: Grid = ONE;
/// The same GPU, the next XCC.
const NEXT: Grid = Grid { xcc: 1, ..ONE };
const PEER: Grid = Grid { gpu: 1, ..ONE };

const STORE: &str = "v_lshlrev_b32 v1, 2, v0\nglobal_store_dword v1, v0, s[0:1]";
const LOAD: &str = "v_lshlrev_b32 v1, 2, v0\nglobal_load_dword v2, v1, s[0:1]\ns_waitcnt vmcnt(0)";

fn zeroed() -> CheckBench {
    let mut bench = CheckBench::new();
    bench.zeroed("numbers", 4096);
    bench
}

#[test]
fn two_workgroups_that_write_one_dword_race_unless_they_use_atomics() {
    let zero = "v_mov_b32 v1, 0\nv_mov_b32 v2, 1";
    let store = format!("{zero}\nglobal_store_dword v1, v2, s[0:1]");
    let atomic = format!("{zero}\nglobal_atomic_add v1, v2, s[0:1]");
    let reports = differ(zeroed, TWO, ReportKind::MemoryRace, &store, &atomic);
    assert!(reports.iter().all(|report| report.buffer.as_deref() == Some("\"numbers\" + 0x0")));
}

#[test]
fn waves_of_one_workgroup_are_ordered_by_barriers() {
    let exchange = |between: &str| {
        format!(
            "v_lshlrev_b32 v1, 2, v0\nv_xor_b32 v2, 0x100, v1\nglobal_store_dword v1, v0, s[0:1]\ns_waitcnt vmcnt(0)\n\
             {between}\nglobal_load_dword v3, v2, s[0:1]\ns_waitcnt vmcnt(0)"
        )
    };
    let mut bench = zeroed();
    let grid = Grid { waves: 2, ..ONE };
    if bench.launch(&exchange("s_barrier"), grid) {
        assert_eq!(bench.reports(), []);
        assert!(bench.launch(&exchange("s_nop 0"), grid));
        assert!(bench.kinds().contains(&ReportKind::MemoryRace), "{:?}", bench.reports());
    }
}

/// Workgroup 0 writes a number and then a flag; workgroup 1, on another XCC, waits for the flag and reads the number.
fn handover(write_back: &str, wait: &str, invalidate: &str, scope: &str) -> String {
    format!(
        "s_cmp_eq_u32 s2, 0\n\
         s_cbranch_scc0 consumer\n\
         v_mov_b32 v1, 0\n\
         v_mov_b32 v2, 7\n\
         global_store_dword v1, v2, s[0:1] offset:256\n\
         {write_back}\n\
         {wait}\n\
         global_store_dword v1, v2, s[0:1] {scope}\n\
         s_endpgm\n\
         consumer:\n\
         v_mov_b32 v1, 0\n\
         poll:\n\
         global_load_dword v2, v1, s[0:1] {scope}\n\
         s_waitcnt vmcnt(0)\n\
         v_readfirstlane_b32 s20, v2\n\
         s_cmp_eq_u32 s20, 7\n\
         s_cbranch_scc0 poll\n\
         {invalidate}\n\
         global_load_dword v3, v1, s[0:1] offset:256\n\
         s_waitcnt vmcnt(0)"
    )
}

#[test]
fn a_flag_hands_data_over_only_with_all_of_release_and_acquire() {
    let wait = "s_waitcnt vmcnt(0)";
    let good = handover("buffer_wbl2 sc1", wait, "buffer_inv sc1", "sc1");
    let without_write_back = handover("s_nop 0", wait, "buffer_inv sc1", "sc1");
    differ(zeroed, TWO, ReportKind::StaleMemory, &without_write_back, &good);
    let without_wait = handover("buffer_wbl2 sc1", "s_nop 0", "buffer_inv sc1", "sc1");
    differ(zeroed, TWO, ReportKind::MemoryRace, &without_wait, &good);
    let without_invalidate = handover("buffer_wbl2 sc1", wait, "s_nop 0", "sc1");
    differ(zeroed, TWO, ReportKind::MemoryRace, &without_invalidate, &good);
}

/// A store on XCC 0, packets, a load on XCC 1.
fn launches(prepare: impl Fn(&mut CheckBench), then: Grid, packets: &[&dyn Fn(&CheckBench)]) -> Option<CheckBench> {
    let mut bench = CheckBench::new();
    prepare(&mut bench);
    if !bench.launch(STORE, FIRST) {
        return None;
    }
    packets.iter().for_each(|packet| packet(&bench));
    assert!(bench.launch(LOAD, then));
    Some(bench)
}

fn barrier(bench: &CheckBench) {
    bench.order(0, OrderEvent::Waited);
}

fn release(bench: &CheckBench) {
    bench.cache(0, CacheAction::WriteBack, Scope::Agent);
}

fn acquire(bench: &CheckBench) {
    bench.cache(0, CacheAction::Invalidate, Scope::Agent);
}

#[test]
fn launches_are_ordered_by_barriers_and_seen_through_release_and_acquire() {
    let kinds = |packets: &[&dyn Fn(&CheckBench)]| {
        let prepare = |bench: &mut CheckBench| {
            bench.zeroed("numbers", 4096);
        };
        launches(prepare, NEXT, packets).map(|bench| bench.kinds())
    };
    let Some(good) = kinds(&[&release, &barrier, &acquire]) else { return };
    assert_eq!(good, []);
    assert_eq!(kinds(&[&release, &acquire]).unwrap(), [ReportKind::MemoryRace]);
    assert_eq!(kinds(&[&barrier, &acquire]).unwrap(), [ReportKind::StaleMemory]);
    assert_eq!(kinds(&[&release, &barrier]).unwrap(), [ReportKind::StaleMemory]);
}

#[test]
fn a_launch_on_the_same_xcc_needs_no_cache_maintenance() {
    let prepare = |bench: &mut CheckBench| {
        bench.zeroed("numbers", 4096);
    };
    if let Some(bench) = launches(prepare, FIRST, &[&barrier]) {
        assert_eq!(bench.reports(), []);
    }
}

/// GPU 0 stores, GPU 1 waits for its signal and loads.
fn between_gpus(flags: AllocFlags, scope: Scope) -> Option<Vec<ReportKind>> {
    const SIGNAL: u64 = 0x5000;
    let prepare = |bench: &mut CheckBench| {
        let at = bench.allocate("mailbox", 4096, flags | AllocFlags::VRAM | AllocFlags::WRITABLE);
        bench.memory(at).fill(0);
    };
    let release = |bench: &CheckBench| bench.cache(0, CacheAction::WriteBack, scope);
    let signal = |bench: &CheckBench| {
        bench.order(0, OrderEvent::Told { address: SIGNAL, launch: None });
        bench.order(1, OrderEvent::Heard(SIGNAL));
    };
    let acquire = |bench: &CheckBench| bench.cache(1, CacheAction::Invalidate, scope);
    Some(launches(prepare, PEER, &[&barrier, &release, &signal, &acquire])?.kinds())
}

#[test]
fn gpus_see_each_others_cached_memory_only_through_system_scope() {
    let Some(agent) = between_gpus(AllocFlags::empty(), Scope::Agent) else { return };
    assert_eq!(agent, [ReportKind::StalePeerMemory]);
    assert_eq!(between_gpus(AllocFlags::empty(), Scope::System).unwrap(), []);
    assert_eq!(between_gpus(AllocFlags::COHERENT, Scope::Agent).unwrap(), [ReportKind::StalePeerMemory]);
    assert_eq!(between_gpus(AllocFlags::UNCACHED, Scope::Agent).unwrap(), []);
}

#[test]
fn data_with_its_flag_in_one_word_needs_system_scope_between_gpus() {
    let text = |scope: &str| {
        format!("v_mov_b32 v1, 0\nv_mov_b32 v2, 7\nv_mov_b32 v3, 1\nglobal_store_dwordx2 v1, v[2:3], s[0:1] {scope}")
    };
    let load =
        |scope: &str| format!("v_mov_b32 v1, 0\nglobal_load_dwordx2 v[2:3], v1, s[0:1] {scope}\ns_waitcnt vmcnt(0)");
    let run = |scope: &str| {
        let mut bench = CheckBench::new();
        let flags = AllocFlags::VRAM | AllocFlags::WRITABLE | AllocFlags::UNCACHED;
        let at = bench.allocate("mailbox", 4096, flags);
        bench.memory(at).fill(0);
        (bench.launch(&text(scope), FIRST) && bench.launch(&load(scope), PEER)).then(|| bench.kinds())
    };
    let Some(system) = run("sc0 sc1") else { return };
    assert_eq!(system, []);
    assert_eq!(run("sc1").unwrap(), [ReportKind::MemoryRace]);
}
