//! The packets, one by one.

use super::super::registers::{ShRegister, UconfigRegister};
use super::super::value::{AtomicOp, Compare};
use super::value::*;
use super::{COUNT_AND_SHADER_TYPE, TYPE_AND_OPCODE, encode};
use crate::address::GpuVa;
use crate::packets::stream::Format;
use crate::packets::{DecodeError, EncodeError, Packet};

pm4! {
    'a;

    /// Does nothing; its payload is skipped, and may hold data or, for the ring form of an IB, commands.
    Nop<'a> = 0x10 "NOP" [1] {
        .. payload: "Skipped.";
    }

    /// Sets a base address that later packets are relative to.
    SetBase = 0x11 "SET_BASE" [4] {
        /// Which base; 1 is the one of indirect arguments.
        base_index: u8 = 1[3:0];
        /// The base.
        address: GpuVa = 2[63:0];
    }

    /// Starts a grid of the program that the `COMPUTE_*` registers describe.
    DispatchDirect = 0x15 "DISPATCH_DIRECT" [5] {
        /// Workgroups, or work-items if the initiator says so.
        dim_x: u32 = 1[31:0];
        /// See `dim_x`.
        dim_y: u32 = 2[31:0];
        /// See `dim_x`.
        dim_z: u32 = 3[31:0];
        /// Value of `COMPUTE_DISPATCH_INITIATOR`; see [`dispatch_initiator`](crate::packets::registers::dispatch_initiator).
        initiator: u32 = 4[31:0];
    }

    /// Starts a grid whose three dimensions are read from memory.
    DispatchIndirect = 0x16 "DISPATCH_INDIRECT" [4] {
        /// Where the three dwords are.
        address: GpuVa = 1[63:0];
        /// As in [`DispatchDirect`].
        initiator: u32 = 3[31:0];
    }

    /// An atomic operation on memory, in L2.
    AtomicMem = 0x1e "ATOMIC_MEM" [9] {
        /// What it does.
        op: AtomicOp = 1[6:0];
        /// Whether to repeat, and what to wait for.
        command: AtomicCommand = 1[11:8];
        /// How L2 keeps the line.
        cache_policy: CachePolicy = 1[26:25];
        /// The memory.
        address: GpuVa = 2[63:0];
        /// The operand.
        source: u64 = 4[63:0];
        /// The comparand.
        compare: u64 = 6[63:0];
        /// Clocks between repetitions.
        loop_interval: u16 = 8[12:0];
    }

    /// Skips dwords if a dword in memory is zero.
    CondExec = 0x22 "COND_EXEC" [5] {
        /// The dword, 4-byte aligned.
        address: GpuVa = 1[63:0];
        /// How L2 keeps the line.
        cache_policy: CachePolicy = 3[26:25];
        /// How many dwords to skip.
        exec_count: u16 = 4[13:0];
    }

    /// Lets only some XCCs run the next dwords. Obeyed in indirect buffers only.
    PredExec = 0x23 "PRED_EXEC" [2] {
        /// How many dwords the others skip.
        exec_count: u16 = 1[13:0];
        /// Which run them, by virtual XCC id.
        xcc_mask: u8 = 1[31:24];
    }

    /// Writes dwords to memory or registers.
    WriteData<'a> = 0x37 "WRITE_DATA" [4] {
        /// Where to.
        dst_sel: WriteDst = 1[11:8];
        /// Writes all dwords to one address.
        one_address: bool = 1[16];
        /// Resumes a virtual function (MI300).
        resume_vf: bool = 1[19];
        /// Waits until the write has arrived.
        wr_confirm: bool = 1[20];
        /// How L2 keeps the line.
        cache_policy: CachePolicy = 1[26:25];
        /// Memory address, 4-byte aligned, or register number.
        dst: u64 = 2[63:0];
        .. data: "What to write.";
    }

    /// Signals a semaphore in memory or waits for it.
    MemSemaphore = 0x39 "MEM_SEMAPHORE" [4] {
        /// The semaphore, 8-byte aligned.
        address: GpuVa = 1[63:0];
        /// Waits for the mailbox.
        use_mailbox: bool = 3[16];
        /// Writes one rather than increments.
        write_one: bool = 3[20];
        /// Signal or wait.
        select: SemaphoreSelect = 3[31:29];
    }

    /// Waits until a register or a dword in memory compares well; may first write a register.
    WaitRegMem = 0x3c "WAIT_REG_MEM" [7] {
        /// The comparison.
        function: Compare = 1[2:0];
        /// What is polled.
        mem_space: PollSpace = 1[5:4];
        /// Whether something is written first.
        operation: PollOperation = 1[7:6];
        /// How L2 keeps the line.
        cache_policy: CachePolicy = 1[26:25];
        /// Memory: the address, 4-byte aligned. Register: its number in the low half; for
        /// [`PollOperation::WriteThenPoll`] the one to write there, the one to poll in the high half.
        poll: u64 = 2[63:0];
        /// What is compared with, or written first.
        reference: u32 = 4[31:0];
        /// Applied to the polled value.
        mask: u32 = 5[31:0];
        /// Clocks between polls, in units of 16.
        poll_interval: u16 = 6[15:0];
        /// Lets another queue run meanwhile.
        ace_offload: bool = 6[31];
    }

    /// Copies data from one place the command processor reaches to another.
    CopyData = 0x40 "COPY_DATA" [6] {
        /// Where from.
        src_sel: CopySrc = 1[3:0];
        /// Where to.
        dst_sel: CopyDst = 1[11:8];
        /// How L2 keeps the source.
        src_cache_policy: CachePolicy = 1[14:13];
        /// 64 bits rather than 32.
        wide: bool = 1[16];
        /// Waits until the write has arrived.
        wr_confirm: bool = 1[20];
        /// How L2 keeps the destination.
        dst_cache_policy: CachePolicy = 1[26:25];
        /// Marks the queue as executed so far.
        pq_exe_status: bool = 1[29];
        /// Memory address, register number or immediate.
        src: u64 = 2[63:0];
        /// Memory address or register number.
        dst: u64 = 4[63:0];
    }

    /// Runs commands from another place, then goes on here.
    IndirectBuffer = 0x3f "INDIRECT_BUFFER" [4] {
        /// Where, 4-byte aligned.
        address: GpuVa = 1[63:0];
        /// Their length in dwords.
        dwords: u32 = 3[19:0];
        /// Goes on there rather than coming back.
        chain: bool = 3[20];
        /// Polls in the background.
        offload_polling: bool = 3[21];
        /// Must be set.
        valid: bool = 3[23];
        /// Address space, from the kernel driver only.
        vmid: u8 = 3[27:24];
        /// How L2 keeps the commands.
        cache_policy: CachePolicy = 3[29:28];
        /// Privileged, from the kernel driver only.
        privileged: bool = 3[31];
    }

    /// Sends an event down the pipeline.
    EventWrite = 0x46 "EVENT_WRITE" [2] {
        /// Which (`VGT_EVENT_TYPE`); [`event::CS_PARTIAL_FLUSH`] waits for all waves.
        event_type: u8 = 1[5:0];
        /// Its group; 4 for the partial flushes.
        event_index: u8 = 1[11:8];
        /// Waits in the background.
        offload: bool = 1[31];
    }

    /// At the end of the pipe, when all earlier waves are done: cache actions, then a write, then an interrupt.
    ReleaseMem = 0x49 "RELEASE_MEM" [8] {
        /// Which event; [`event::CACHE_FLUSH_AND_INV_TS`] here.
        event_type: u8 = 1[5:0];
        /// 5 for end of pipe.
        event_index: u8 = 1[11:8];
        /// L1, volatile lines.
        tcl1_vol_action: bool = 1[12];
        /// L2, volatile lines.
        tc_vol_action: bool = 1[13];
        /// Writes L2 back.
        tc_wb_action: bool = 1[15];
        /// Invalidates L1.
        tcl1_action: bool = 1[16];
        /// Invalidates L2.
        tc_action: bool = 1[17];
        /// The L2 actions take non-coherent lines.
        tc_nc_action: bool = 1[19];
        /// The L2 actions take write-combined lines.
        tc_wc_action: bool = 1[20];
        /// The L2 actions take metadata.
        tc_md_action: bool = 1[21];
        /// How L2 keeps the written line.
        cache_policy: CachePolicy = 1[26:25];
        /// Marks the queue as executed so far.
        pq_exe_status: bool = 1[28];
        /// Where the write goes.
        dst_sel: ReleaseDst = 2[17:16];
        /// Whether and when to interrupt.
        int_sel: ReleaseInterrupt = 2[26:24];
        /// What to write.
        data_sel: ReleaseData = 2[31:29];
        /// Where to write: 8-byte aligned for 64 bits, else 4.
        address: GpuVa = 3[63:0];
        /// The data.
        data: u64 = 5[63:0];
        /// Context id of the interrupt: for KFD an event id.
        int_context: u32 = 7[31:0];
    }

    /// Copies or fills memory by the command processor's own DMA.
    DmaData = 0x50 "DMA_DATA" [7] {
        /// How L2 keeps the source.
        src_cache_policy: CachePolicy = 1[14:13];
        /// Where to.
        dst_sel: DmaDst = 1[21:20];
        /// How L2 keeps the destination.
        dst_cache_policy: CachePolicy = 1[26:25];
        /// Where from.
        src_sel: DmaSrc = 1[30:29];
        /// Later packets wait for it.
        cp_sync: bool = 1[31];
        /// Address, or in the low half the dword to fill with.
        src: u64 = 2[63:0];
        /// Address.
        dst: GpuVa = 4[63:0];
        /// Length.
        byte_count: u32 = 6[25:0];
        /// The source is a register.
        src_register: bool = 6[26];
        /// The destination is a register.
        dst_register: bool = 6[27];
        /// The source address stays.
        src_fixed: bool = 6[28];
        /// The destination address stays.
        dst_fixed: bool = 6[29];
        /// Waits for the DMA before.
        raw_wait: bool = 6[30];
        /// Does not confirm the write.
        no_write_confirm: bool = 6[31];
    }

    /// Invalidates or writes back caches of this XCC before anything later reads.
    AcquireMem = 0x58 "ACQUIRE_MEM" [7] {
        /// Which caches.
        coher_cntl: CoherCntl = 1[31:0];
        /// Length of the range in units of 256 bytes; all ones for everything.
        size: u64 = 2[63:0];
        /// Start of the range in units of 256 bytes.
        base: u64 = 4[63:0];
        /// Clocks between polls, in units of 16.
        poll_interval: u16 = 6[15:0];
    }

    /// Sets `COMPUTE_*` registers in a row.
    SetShReg<'a> = 0x76 "SET_SH_REG" [2] {
        /// The first.
        register: ShRegister = 1[15:0];
        /// Shifts a VMID into the value, from the kernel driver only.
        vmid_shift: u8 = 1[27:23];
        /// Special forms, from the kernel driver only.
        index: u8 = 1[31:28];
        .. values: "The values.";
    }

    /// Sets user configuration registers in a row.
    SetUconfigReg<'a> = 0x79 "SET_UCONFIG_REG" [2] {
        /// The first.
        register: UconfigRegister = 1[15:0];
        .. values: "The values.";
    }

    /// Switches the constant engine's buffers; graphics only.
    SwitchBuffer = 0x8b "SWITCH_BUFFER" [2] {}

    /// [`WaitRegMem`] on 64 bits.
    WaitRegMem64 = 0x93 "WAIT_REG_MEM64" [9] {
        /// The comparison.
        function: Compare = 1[2:0];
        /// What is polled.
        mem_space: PollSpace = 1[5:4];
        /// Whether something is written first.
        operation: PollOperation = 1[7:6];
        /// How L2 keeps the line.
        cache_policy: CachePolicy = 1[26:25];
        /// As in [`WaitRegMem`], 8-byte aligned.
        poll: u64 = 2[63:0];
        /// What is compared with.
        reference: u64 = 4[63:0];
        /// Applied to the polled value.
        mask: u64 = 6[63:0];
        /// Clocks between polls, in units of 16.
        poll_interval: u16 = 8[15:0];
        /// Lets another queue run meanwhile.
        ace_offload: bool = 8[31];
    }

    /// Gives the scheduler its share of the hardware; kernel driver only.
    SetResources = 0xa0 "SET_RESOURCES" [8] {
        /// Address spaces it may use.
        vmid_mask: u16 = 1[15:0];
        /// How long a queue may take to leave, in units of 100 ms.
        unmap_latency: u8 = 1[23:16];
        /// Checks that XNACK retry is disabled.
        check_xnack_retry_disable: bool = 1[28];
        /// 0 the kernel's queue, 1 the HSA queue, 4 the debug queue.
        queue_type: u8 = 1[31:29];
        /// Hardware queues.
        queue_mask: u64 = 2[63:0];
        /// Global wave sync entries.
        gws_mask: u64 = 4[63:0];
        /// Ordered append counters.
        oac_mask: u16 = 6[15:0];
        /// First GDS heap page.
        gds_heap_base: u16 = 7[9:0];
        /// GDS heap pages.
        gds_heap_size: u16 = 7[20:11];
    }

    /// Puts a queue on the hardware; kernel driver only.
    MapQueues = 0xa2 "MAP_QUEUES" [7] {
        /// Newer engines.
        extended_engine_sel: u8 = 1[3:2];
        /// 0 the slot named, 1 any.
        queue_sel: u8 = 1[5:4];
        /// Address space.
        vmid: u8 = 1[11:8];
        /// It controls global wave sync.
        gws_control_queue: bool = 1[12];
        /// Hardware queue.
        queue: u8 = 1[15:13];
        /// Pipe.
        pipe: u8 = 1[17:16];
        /// Micro engine.
        me: u8 = 1[20:18];
        /// 0 compute, 1 a static compute queue, 3 SDMA as latency hidden.
        queue_type: u8 = 1[23:21];
        /// How its slots are allocated.
        alloc_format: u8 = 1[25:24];
        /// 0 compute, 2 and 3 SDMA 0 and 1, 4 graphics.
        engine_sel: u8 = 1[28:26];
        /// How many.
        num_queues: u8 = 1[31:29];
        /// Skips checks.
        check_disable: bool = 2[1];
        /// Its doorbell, in dwords of the doorbell aperture.
        doorbell_offset: u32 = 2[27:2];
        /// Its memory queue descriptor.
        mqd: GpuVa = 3[63:0];
        /// Its write pointer in memory.
        wptr: GpuVa = 5[63:0];
    }

    /// Takes queues off the hardware; kernel driver only.
    UnmapQueues = 0xa3 "UNMAP_QUEUES" [6] {
        /// 0 preempt, 1 reset, 2 disable the process' queues, 3 preempt without unmapping.
        action: u8 = 1[1:0];
        /// Newer engines.
        extended_engine_sel: u8 = 1[3:2];
        /// 0 by doorbell, 1 by process, 2 all, 3 all but static ones.
        queue_sel: u8 = 1[5:4];
        /// As in [`MapQueues`].
        engine_sel: u8 = 1[28:26];
        /// How many.
        num_queues: u8 = 1[31:29];
        /// Process address space id, or doorbell of the first queue.
        pasid_or_doorbell_0: u32 = 2[31:0];
        /// Doorbell of the second queue.
        doorbell_1: u32 = 3[27:2];
        /// Doorbell of the third queue.
        doorbell_2: u32 = 4[27:2];
        /// Doorbell of the fourth queue.
        doorbell_3: u32 = 5[27:2];
    }
}
