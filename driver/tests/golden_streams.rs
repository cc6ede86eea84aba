//! The encoders against dwords that an independent client wrote: see `data/README.md`.
//!
//! Each test writes the client's commands with this crate's packets, takes only the run's pointers from the capture, and
//! compares every dword.

use driver::address::GpuVa;
use driver::packets::aql::{self, Aql, FenceScope, KernelDispatch, PacketType, Pm4Ib, Slot};
use driver::packets::pm4::{
    self, AcquireMem, CoherCntl, DispatchDirect, EventWrite, IndirectBuffer, Nop, Pm4, PollOperation, PollSpace,
    PredExec, ReleaseData, ReleaseInterrupt, ReleaseMem, SetShReg, WaitRegMem, event,
};
use driver::packets::registers::{GPU_HDP_FLUSH_DONE, GPU_HDP_FLUSH_REQ, ShRegister, dispatch_initiator};
use driver::packets::sdma::{self, CopyLinear, Fence, PollRegMem, Sdma, Trap};
use driver::packets::{Compare, Count};

const PM4_QUEUE: &str = include_str!("data/tg_kfd_aql0.trace");
const AQL_QUEUE: &str = include_str!("data/tg_kfd_aql1.trace");

/// The dwords of every line that has `mark`. A logged ioctl may stand between the mark and its dwords.
fn dwords_of(trace: &str, mark: &str) -> Vec<Vec<u32>> {
    let parse = |text: &str| -> Vec<u32> {
        text.split_whitespace().map(|word| u32::from_str_radix(word, 16).expect("a hexadecimal dword")).collect()
    };
    let mut lines = trace.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some((_, rest)) = line.split_once(mark) else { continue };
        let text = rest.rsplit_once(": ").map_or(rest, |(_, text)| text);
        found.push(match lines.peek() {
            Some(next) if rest.contains("KFD") => parse(next),
            _ => parse(text),
        });
    }
    assert!(!found.is_empty(), "no line with {mark:?}");
    found
}

fn pointer(dwords: &[u32], at: usize) -> GpuVa {
    GpuVa::new(u64::from(dwords[at + 1]) << 32 | u64::from(dwords[at]))
}

/// The pointers of one submission, which differ from run to run.
struct Pointers {
    signal: GpuVa,
    mailbox: GpuVa,
    code: u64,
    scratch: [u64; 8],
    kernarg: GpuVa,
}

/// Waits for the copies, flushes HDP, drops stale cache lines.
fn prologue(signal: GpuVa) -> Vec<Pm4<'static>> {
    vec![
        WaitRegMem {
            function: Compare::GreaterOrEqual,
            mem_space: PollSpace::Memory,
            poll: signal.get(),
            reference: 3,
            mask: u32::MAX,
            poll_interval: 4,
            ..Default::default()
        }
        .into(),
        WaitRegMem {
            function: Compare::GreaterOrEqual,
            operation: PollOperation::WriteThenPoll,
            poll: u64::from(GPU_HDP_FLUSH_DONE) << 32 | u64::from(GPU_HDP_FLUSH_REQ),
            reference: u32::MAX,
            mask: u32::MAX,
            poll_interval: 4,
            ..Default::default()
        }
        .into(),
        AcquireMem {
            coher_cntl: CoherCntl::TC_WB
                | CoherCntl::TCL1
                | CoherCntl::TC
                | CoherCntl::SH_KCACHE
                | CoherCntl::SH_ICACHE,
            size: u64::MAX,
            poll_interval: 10,
            ..Default::default()
        }
        .into(),
    ]
}

/// Signals value 4 and interrupts, from one XCC only.
fn epilogue(signal: GpuVa, mailbox: GpuVa) -> Vec<Pm4<'static>> {
    let release = ReleaseMem {
        event_type: event::CACHE_FLUSH_AND_INV_TS,
        event_index: event::INDEX_END_OF_PIPE,
        data_sel: ReleaseData::Low32,
        ..Default::default()
    };
    vec![
        PredExec { exec_count: 16, xcc_mask: 1 }.into(),
        ReleaseMem { tc_wb_action: true, tc_nc_action: true, address: signal, data: 4, ..release }.into(),
        ReleaseMem { int_sel: ReleaseInterrupt::AfterConfirm, address: mailbox, data: 2, ..release }.into(),
    ]
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

fn append(out: &mut Vec<u32>, packets: &[Pm4<'_>]) {
    for packet in packets {
        packet.encode(out).expect("every value fits its field");
    }
}

fn set(out: &mut Vec<u32>, register: ShRegister, values: &[u32]) {
    SetShReg { register, values, ..Default::default() }.encode(out).expect("few values");
}

fn indirect_buffer(p: &Pointers) -> Vec<u32> {
    let mut out = Vec::new();
    append(&mut out, &prologue(p.signal));
    let before_dispatch = CoherCntl::SH_KCACHE | CoherCntl::TCL1;
    let acquire = AcquireMem { coher_cntl: before_dispatch, size: u64::MAX, poll_interval: 10, ..Default::default() };
    append(&mut out, &[acquire.into()]);
    set(&mut out, ShRegister::COMPUTE_PGM_LO, &halves(p.code));
    set(&mut out, ShRegister::COMPUTE_PGM_RSRC1, &[0x00af_0040, 0x84]);
    set(&mut out, ShRegister::COMPUTE_PGM_RSRC3, &[0]);
    set(&mut out, ShRegister::COMPUTE_TMPRING_SIZE, &[0x8 << 12 | 0x400]);
    for (xcc, scratch) in p.scratch.into_iter().enumerate() {
        append(&mut out, &[PredExec { exec_count: 4, xcc_mask: 1 << xcc }.into()]);
        set(&mut out, ShRegister::COMPUTE_DISPATCH_SCRATCH_BASE_LO, &halves(scratch));
    }
    set(&mut out, ShRegister::COMPUTE_RESTART_X, &[0; 3]);
    set(&mut out, ShRegister::COMPUTE_USER_DATA_0, &halves(p.kernarg.get()));
    set(&mut out, ShRegister::COMPUTE_RESOURCE_LIMITS, &[0]);
    set(&mut out, ShRegister::COMPUTE_START_X, &[0, 0, 0, 3, 1, 1, 0, 0]);
    let initiator = dispatch_initiator::COMPUTE_SHADER_EN | dispatch_initiator::FORCE_START_AT_000;
    append(
        &mut out,
        &[
            DispatchDirect { dim_x: 1, dim_y: 1, dim_z: 1, initiator }.into(),
            EventWrite {
                event_type: event::CS_PARTIAL_FLUSH,
                event_index: event::INDEX_PARTIAL_FLUSH,
                ..Default::default()
            }
            .into(),
        ],
    );
    append(&mut out, &epilogue(p.signal, p.mailbox));
    out
}

#[test]
fn a_pm4_submission_is_encoded_as_the_independent_client_encoded_it() {
    let golden = dwords_of(PM4_QUEUE, "PM4 q1 dw").remove(0);
    let (ib, code) = (&golden[5..], golden.windows(2).position(|pair| pair == [0xc002_7600, 0x20c]).unwrap());
    let scratch_at =
        |xcc: usize| golden.windows(2).position(|pair| pair == [0xc000_2300, 1 << (24 + xcc) | 4]).unwrap();
    let kernarg = golden.windows(2).position(|pair| pair == [0xc002_7600, 0x240]).unwrap();
    let pointers = Pointers {
        signal: pointer(ib, 2),
        mailbox: pointer(&golden, golden.len() - 5),
        code: pointer(&golden, code + 2).get(),
        scratch: std::array::from_fn(|xcc| pointer(&golden, scratch_at(xcc) + 4).get()),
        kernarg: pointer(&golden, kernarg + 2),
    };
    let stride: Vec<u64> = pointers.scratch.windows(2).map(|pair| (pair[1] - pair[0]) << 8).collect();
    assert_eq!(stride, [0x80_0000; 7], "scratch of one XCC after the other");

    let buffer = indirect_buffer(&pointers);
    let mut ring = Vec::new();
    let launch =
        IndirectBuffer { address: pointer(&golden, 1), dwords: buffer.len() as u32, valid: true, ..Default::default() };
    append(&mut ring, &[launch.into(), Nop { payload: &buffer }.into()]);
    assert_eq!(ring, golden);
}

#[test]
fn an_aql_submission_is_encoded_as_the_independent_client_encoded_it() {
    let slots = dwords_of(AQL_QUEUE, "type=0 hdr=0x1500");
    let buffers = dwords_of(AQL_QUEUE, "  PM4 IB ");
    let [first, last] = &slots[..] else { panic!("two PM4 indirect buffers") };
    let [waits, signals] = &buffers[..] else { panic!("their content") };

    for (slot, buffer) in [(first, waits), (last, signals)] {
        let packet = Pm4Ib {
            barrier: true,
            acquire: FenceScope::System,
            release: FenceScope::System,
            ib_address: pointer(slot, 2),
            ib_dwords: buffer.len() as u32,
            ib_valid: true,
            completion_signal: GpuVa::NULL,
        };
        assert_eq!(packet.encode().unwrap(), slot[..]);
    }

    let (signal, mailbox) = (pointer(waits, 2), pointer(signals, 13));
    let mut encoded = Vec::new();
    append(&mut encoded, &prologue(signal));
    assert_eq!(encoded, *waits);
    encoded.clear();
    append(&mut encoded, &epilogue(signal, mailbox));
    assert_eq!(encoded, *signals);
}

#[test]
fn a_kernel_dispatch_packet_has_the_header_and_fields_the_capture_names() {
    let line = AQL_QUEUE.lines().find(|line| line.contains(" DISPATCH ")).unwrap();
    let field = |name: &str| {
        let text = line.split_whitespace().find_map(|word| word.strip_prefix(name)).unwrap();
        u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
    };
    let packet = KernelDispatch {
        barrier: true,
        acquire: FenceScope::System,
        release: FenceScope::System,
        dimensions: 3,
        workgroup_size_x: 3,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        grid_size_x: 3,
        grid_size_y: 1,
        grid_size_z: 1,
        kernel_object: GpuVa::new(field("kobj=")),
        kernarg_address: GpuVa::new(field("kernarg=")),
        ..Default::default()
    };
    let slot: Slot = packet.encode().unwrap();
    assert_eq!(u64::from(slot[0]), field("setup=") << 16 | field("hdr="));
    assert_eq!(slot[1..6], [3 | 1 << 16, 1, 3, 1, 1]);
    assert_eq!(pointer(&slot, 8), packet.kernel_object);
    assert_eq!(pointer(&slot, 10), packet.kernarg_address);
    assert_eq!(Aql::decode(&slot), Ok(Aql::KernelDispatch(packet)));
}

#[test]
fn sdma_submissions_are_encoded_as_the_independent_client_encoded_them() {
    let captured = [PM4_QUEUE, AQL_QUEUE].map(|trace| dwords_of(trace, "SDMA q2 type=1")).concat();
    assert_eq!(captured.len(), 6);
    for (index, golden) in captured.iter().enumerate() {
        let step = index as u32 % 3;
        let bytes = [12, 12, 0x480][index % 3];
        let signal = pointer(golden, 1);
        let packets: [Sdma<'_>; 5] = [
            PollRegMem {
                function: Compare::GreaterOrEqual,
                memory: true,
                address: signal.get(),
                reference: step,
                mask: u32::MAX,
                interval: 4,
                retry_count: 0xfff,
                ..Default::default()
            }
            .into(),
            CopyLinear { bytes: Count(bytes), src: pointer(golden, 9), dst: pointer(golden, 11), ..Default::default() }
                .into(),
            Fence { address: signal, data: step + 1 }.into(),
            Fence { address: pointer(golden, 18), data: golden[20] }.into(),
            Trap { int_context: golden[20] }.into(),
        ];
        let mut encoded = Vec::new();
        for packet in packets {
            packet.encode(&mut encoded).unwrap();
        }
        assert_eq!(encoded, *golden);
    }
}

#[test]
fn every_captured_stream_decodes_and_encodes_to_itself() {
    let mut pm4_streams = dwords_of(AQL_QUEUE, "  PM4 IB ");
    let ring = dwords_of(PM4_QUEUE, "PM4 q1 dw").remove(0);
    pm4_streams.push(ring[5..].to_vec());
    pm4_streams.push(ring);
    for stream in pm4_streams {
        let mut again = Vec::new();
        for located in pm4::packets(&stream) {
            located.unwrap().packet.encode(&mut again).unwrap();
        }
        assert_eq!(again, stream);
    }
    for stream in [PM4_QUEUE, AQL_QUEUE].map(|trace| dwords_of(trace, "SDMA q2 type=1")).concat() {
        let mut again = Vec::new();
        for located in sdma::packets(&stream) {
            located.unwrap().packet.encode(&mut again).unwrap();
        }
        assert_eq!(again, stream);
    }
    for slot in dwords_of(AQL_QUEUE, "type=0 hdr=0x1500") {
        let slot: Slot = slot.try_into().unwrap();
        assert_eq!(PacketType::of(slot[0]), Some(PacketType::VendorSpecific));
        assert_eq!(Aql::decode(&slot).unwrap().encode().unwrap(), slot);
    }
    assert_eq!(aql::BYTES, size_of::<Slot>() as u64);
}

#[test]
fn rocr_s_first_indirect_buffer_decodes() {
    let rocr = [0xc005_5800, 0x2884_0000, 0x30, 0, 0x7f5f_e9d1, 0x7f, 0];
    let packet = Pm4::decode(&rocr).unwrap();
    let Pm4::AcquireMem(acquire) = packet else { panic!("{packet}") };
    assert_eq!(
        acquire.coher_cntl,
        CoherCntl::SH_ICACHE | CoherCntl::SH_KCACHE | CoherCntl::TC | CoherCntl::TC_WB,
        "{packet}"
    );
    assert_eq!((acquire.size, acquire.base), (0x30, 0x7f_7f5f_e9d1));
}
