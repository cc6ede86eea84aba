//! Planning the official checkpoint, 497,220 tensors in 96 shards, on a sparse stand-in: how much memory it takes.
//! A test binary of its own, because it counts every allocation of the process.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use model::checkpoint::{Vision, write_sparse};
use model::{Checkpoint, Config, Layout};

struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system allocator unchanged; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        PEAK.fetch_max(IN_USE.fetch_add(block.size(), Relaxed) + block.size(), Relaxed);
        // SAFETY: the caller upholds GlobalAlloc's contract, which is the system allocator's.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, at: *mut u8, block: Block) {
        IN_USE.fetch_sub(block.size(), Relaxed);
        // SAFETY: `at` came from `alloc` above, that is from the system allocator, with this block.
        unsafe { System.dealloc(at, block) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn planning_the_official_checkpoint_takes_less_than_200_mebibytes() {
    let config = Config::official();
    let folder = tempfile::tempdir().unwrap();
    write_sparse(folder.path(), &config, Vision::Published).unwrap();

    let before = IN_USE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let checkpoint = Checkpoint::open(folder.path(), &config).unwrap();
    let layout = Layout::new(&config, 8).unwrap();
    let (mut tensors, mut bytes) = (0, 0);
    for shard in checkpoint.shards() {
        for tensor in &shard.tensors {
            tensors += 1;
            bytes += layout.copies(tensor.id, tensor.begin).map(|copy| copy.bytes()).sum::<u64>();
        }
    }
    assert_eq!((checkpoint.shards().len(), tensors), (96, 497_052));
    assert_eq!(bytes, 8 * 196_784_365_296);
    assert_eq!((checkpoint.vision().tensors, checkpoint.vision().bytes), (168, 894_717_952));
    let (peak, kept) = (PEAK.load(Relaxed) - before, IN_USE.load(Relaxed) - before);
    assert!(peak < 200 << 20, "planning peaked at {peak} bytes");
    assert!(kept < 40 << 20, "the plan keeps {kept} bytes");
    println!("peak {} KiB, kept {} KiB", peak >> 10, kept >> 10);
}
