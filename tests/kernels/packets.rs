//! What the header of a dispatch packet has to say where one kernel needs what another wrote.

use driver::packets::aql::{FenceScope, KernelDispatch};

use crate::support::{REPORTED, Removal};

/// What is done to a packet before it is queued.
type Change = fn(&mut KernelDispatch);

/// Runs dependent kernels with changed packets; gives the reports of the sanitizer.
fn reports(change: Change) -> String {
    let _removal = Removal::of_packets(change);
    match std::panic::catch_unwind(crate::mla::exercise_attention) {
        Ok(()) => String::new(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
    }
}

#[test]
fn dependent_kernels_need_the_barrier_bit_and_fences_of_agent_scope() {
    let agent: Change = |packet| {
        (packet.acquire, packet.release) = (FenceScope::Agent, FenceScope::Agent);
    };
    assert_eq!(reports(agent), "", "one GPU needs no more");
    let lacks: [(Change, &str); 3] = [
        (|packet| packet.barrier = false, "nothing orders that after the write"),
        (|packet| packet.release = FenceScope::None, "whose L2 has not been written back"),
        (|packet| packet.acquire = FenceScope::None, "this L2 has not been invalidated since"),
    ];
    for (change, reason) in lacks {
        let found = reports(change);
        assert!(found.starts_with(REPORTED) && found.contains(reason), "{reason}: {found}");
    }
}
