//! Sizes of the memory that a compute queue's waves are saved to when the queue is preempted (CWSR).
//!
//! The kernel computes the same numbers and refuses a queue whose own differ (`kfd_queue_ctx_save_restore_size`,
//! `kfd_queue_acquire_buffers` of `kfd_queue.c`); newer kernels also show them in the topology.

use crate::address::Bytes;
use crate::topology::{GfxTarget, GpuNode};

/// `SIZEOF_HSA_USER_CONTEXT_SAVE_AREA_HEADER`.
const HEADER: u32 = 40;
/// `CNTL_STACK_BYTES_PER_WAVE` before gfx10.
const CONTROL_STACK_PER_WAVE: u32 = 8;
/// `DEBUGGER_BYTES_PER_WAVE`.
const DEBUG_PER_WAVE: u32 = 32;
/// `DEBUGGER_BYTES_ALIGN`.
const DEBUG_ALIGNMENT: u32 = 64;
/// `kfd_get_sgpr_size_per_cu`.
const SGPR_PER_CU: u32 = 0x4000;
/// `kfd_get_hwreg_size_per_cu`.
const HWREG_PER_CU: u32 = 0x1000;
/// Waves a CU holds, and a shader engine, in the formula of `get_num_waves`.
const WAVES_PER_CU: u32 = 40;
const WAVES_PER_ENGINE: u32 = 512;
const PAGE: u32 = 4096;

/// Sizes of one compute queue, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveArea {
    /// Control stack of one XCC: the `ctl_stack_size` of `CREATE_QUEUE`.
    pub control_stack: u32,
    /// Control stack and wave data of one XCC: its `ctx_save_restore_size`.
    pub context: u32,
    /// Debugger memory of one XCC, not part of `context`.
    pub debug: u32,
    /// What to allocate: context and debugger memory of all XCCs.
    pub total: Bytes,
}

/// Bytes of the end-of-pipe event buffer (`eop_buffer_size`).
pub(super) const EOP: Bytes = Bytes::PAGE;

impl SaveArea {
    /// The sizes for a GPU. `None` if its numbers are absurd enough to overflow.
    pub fn of(node: &GpuNode) -> Option<Self> {
        let cu = node.cu_per_xcc();
        let per_engines = (node.array_count / node.simd_arrays_per_engine).checked_mul(WAVES_PER_ENGINE)?;
        let waves = cu.checked_mul(WAVES_PER_CU)?.min(per_engines);

        let (vgpr_per_cu, lds_per_cu) = match node.target {
            GfxTarget::Gfx950 => (0x8_0000, node.lds_kib.checked_mul(1024)?),
        };
        let per_cu = u32::checked_add(vgpr_per_cu + SGPR_PER_CU + HWREG_PER_CU, lds_per_cu)?;
        let wave_data = round_up(cu.checked_mul(per_cu)?, PAGE)?;
        let control_stack = waves.checked_mul(CONTROL_STACK_PER_WAVE)?.checked_add(8 + HEADER)?;
        let control_stack = listed(node.ctl_stack_bytes).map_or_else(|| round_up(control_stack, PAGE), Some)?;
        let context = round_up(control_stack.checked_add(wave_data)?, PAGE)?.max(node.cwsr_bytes.unwrap_or(0));
        let debug = round_up(waves.checked_mul(DEBUG_PER_WAVE)?, DEBUG_ALIGNMENT)?;
        let total = (u64::from(context) + u64::from(debug)).checked_mul(node.xcc_count.into())?;
        Some(Self { control_stack, context, debug, total: Bytes::new(total).align_up(Bytes::PAGE)? })
    }
}

/// A size of the topology, which the kernel compares for equality; older kernels list none, or zero.
fn listed(bytes: Option<u32>) -> Option<u32> {
    bytes.filter(|&bytes| bytes != 0)
}

fn round_up(value: u32, unit: u32) -> Option<u32> {
    value.checked_next_multiple_of(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::example_node;

    #[test]
    fn the_sizes_of_a_whole_mi350x_are_those_two_clients_and_the_kernel_compute() {
        let area = SaveArea::of(&example_node()).unwrap();
        assert_eq!(area.control_stack, 0x3000);
        assert_eq!(area.context, 0x15a_3000);
        assert_eq!(area.debug, 0xa000);
        assert_eq!(area.total.get(), 0xad6_8000);
    }

    #[test]
    fn what_the_topology_lists_is_taken_from_it() {
        let node = GpuNode { ctl_stack_bytes: Some(0x4000), cwsr_bytes: Some(0x200_0000), ..example_node() };
        let area = SaveArea::of(&node).unwrap();
        assert_eq!((area.control_stack, area.context), (0x4000, 0x200_0000));
        let unlisted = GpuNode { ctl_stack_bytes: Some(0), cwsr_bytes: Some(0), ..example_node() };
        assert_eq!(SaveArea::of(&unlisted), SaveArea::of(&example_node()));
    }

    #[test]
    fn a_partition_of_one_xcc_needs_an_eighth() {
        let whole = SaveArea::of(&example_node()).unwrap();
        let part = GpuNode { xcc_count: 1, simd_count: 128, array_count: 4, ..example_node() };
        let part = SaveArea::of(&part).unwrap();
        assert_eq!((part.context, part.total.get() * 8), (whole.context, whole.total.get()));
    }

    #[test]
    fn absurd_numbers_overflow_into_nothing() {
        let absurd = GpuNode { lds_kib: u32::MAX, ..example_node() };
        assert_eq!(SaveArea::of(&absurd), None);
        assert_eq!(SaveArea::of(&GpuNode { simd_count: u32::MAX, simd_per_cu: 1, ..example_node() }), None);
    }
}
