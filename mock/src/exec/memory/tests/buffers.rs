//! Addressing and range checks of buffers, against the formulas of the ISA document.

use super::forms::{RAW, describe};
use crate::random::Random;
use crate::testbench::{BUFFER, Bench};
use crate::wave::LANES;

/// Fields of a descriptor and of an instruction.
#[derive(Clone, Copy, Debug)]
struct Setup {
    stride: u32,
    records: u32,
    swizzle: bool,
    group: u64,
    add_tid: bool,
    idxen: bool,
    offen: bool,
    inst_offset: u32,
    soffset: u32,
}

impl Setup {
    fn random(random: &mut Random) -> Self {
        let mut flag = || random.next() & 1 == 1;
        let (swizzle, add_tid, idxen, offen) = (flag(), flag() && flag(), flag(), flag());
        let stride = [0, 4, 16, 20, 52][random.below(5) as usize];
        let records = if idxen && stride != 0 { random.below(60) } else { random.below(2000) };
        Self {
            stride,
            records,
            swizzle,
            group: 8 << random.below(4),
            add_tid,
            idxen,
            offen,
            inst_offset: random.below(40) * 4,
            soffset: random.below(64) * 4,
        }
    }

    /// Offset from the base of the dword at `extra` of lane `lane`, or `None` out of range.
    fn place(&self, lane: usize, vgpr_index: u32, vgpr_offset: u32, extra: u32) -> Option<u64> {
        let index = if self.idxen { u64::from(vgpr_index) } else { 0 } + if self.add_tid { lane as u64 } else { 0 };
        let offset = if self.offen { u64::from(vgpr_offset) } else { 0 } + u64::from(self.inst_offset + extra);
        let out_of_range = if self.add_tid && !self.idxen {
            false
        } else if self.idxen && self.stride != 0 {
            vgpr_index >= self.records
        } else {
            offset >= self.records.into()
        };
        let stride = u64::from(self.stride);
        let buffer_offset = if self.swizzle {
            let (index_msb, index_lsb) = (index / self.group, index % self.group);
            let (offset_msb, offset_lsb) = (offset / 4, offset % 4);
            (index_msb * stride + offset_msb * 4) * self.group + index_lsb * 4 + offset_lsb
        } else {
            index * stride + offset
        };
        (!out_of_range).then_some(u64::from(self.soffset) + buffer_offset)
    }

    fn text(&self, name: &str, data: &str) -> String {
        let address = match (self.idxen, self.offen) {
            (false, false) => "off",
            (true, true) => "v[2:3]",
            _ => "v2",
        };
        let (idxen, offen) = (if self.idxen { " idxen" } else { "" }, if self.offen { " offen" } else { "" });
        format!("{name} {data}, {address}, s[8:11], s3{idxen}{offen} offset:{}", self.inst_offset)
    }

    fn bench(&self, index: &[u32; LANES], offset: &[u32; LANES]) -> Bench {
        let mut bench = Bench::new();
        let last = RAW | (self.group.ilog2() - 3) << 21 | u32::from(self.add_tid) << 23;
        // With add_tid, the format field extends the stride.
        let last = if self.add_tid { last & !(15 << 15) } else { last };
        describe(&mut bench, BUFFER, self.stride | u32::from(self.swizzle) << 15, self.records, last);
        *bench.s(3) = self.soffset;
        *bench.v(2) = if self.idxen { *index } else { *offset };
        *bench.v(3) = *offset;
        bench
    }
}

#[test]
fn addresses_and_ranges_are_those_of_the_isa_document() {
    let mut random = Random::new(21);
    for _ in 0..400 {
        let setup = Setup::random(&mut random);
        let index: [u32; LANES] = std::array::from_fn(|_| random.below(70));
        let offset: [u32; LANES] = std::array::from_fn(|_| random.below(if setup.swizzle { 40 } else { 300 }) * 4);
        let dwords = 1 + random.below(4);
        let (suffix, data) =
            [("", "v20"), ("x2", "v[20:21]"), ("x3", "v[20:22]"), ("x4", "v[20:23]")][dwords as usize - 1];

        let mut bench = setup.bench(&index, &offset);
        bench.buffer.iter_mut().enumerate().for_each(|(i, word)| *word = 0x8000_0000 + i as u32);
        if !bench.run(&setup.text(&format!("buffer_load_dword{suffix}"), data)) {
            return;
        }
        for lane in 0..LANES {
            for i in 0..dwords {
                let place = setup.place(lane, index[lane], offset[lane], 4 * i);
                let expected = place.map_or(0, |at| bench.buffer[at as usize / 4]);
                assert_eq!(bench.v(20 + i as usize)[lane], expected, "{setup:?}, lane {lane}, dword {i}");
            }
        }

        let mut bench = setup.bench(&index, &offset);
        for i in 0..4 {
            *bench.v(20 + i) = std::array::from_fn(|lane| (1000 * (i + 1) + lane) as u32);
        }
        if bench.run(&setup.text(&format!("buffer_store_dword{suffix}"), data)) {
            let mut expected = vec![0; bench.buffer.len()];
            for lane in 0..LANES {
                for i in 0..dwords {
                    if let Some(at) = setup.place(lane, index[lane], offset[lane], 4 * i) {
                        expected[at as usize / 4] = 1000 * (i + 1) + lane as u32;
                    }
                }
            }
            assert!(bench.buffer == expected, "{setup:?}");
        }
    }
}

#[test]
fn an_unbound_descriptor_reads_zero_and_stores_nothing() {
    let mut bench = Bench::new();
    bench.buffer.fill(7);
    *bench.v(1) = [9; LANES];
    describe(&mut bench, BUFFER, 0, 4096, 0);
    if bench.run("buffer_load_dword v1, off, s[8:11], 0\nbuffer_store_dword v2, off, s[8:11], 0") {
        assert_eq!((bench.v(1)[0], bench.buffer[0]), (0, 7));
    }
}

#[test]
fn an_offset_near_the_end_of_32_bits_does_not_wrap_into_range() {
    let mut bench = Bench::new();
    bench.buffer.fill(7);
    describe(&mut bench, BUFFER, 0, 4096, RAW);
    *bench.v(2) = std::array::from_fn(|lane| if lane % 2 == 0 { u32::MAX - 3 } else { 0 });
    if bench.run("buffer_load_dwordx2 v[4:5], v2, s[8:11], 0 offen offset:8") {
        assert_eq!((bench.v(4)[0], bench.v(4)[1], bench.v(5)[0], bench.v(5)[1]), (0, 7, 0, 7));
    }
}

#[test]
fn private_buffers_have_a_longer_stride_in_the_format_field() {
    let mut bench = Bench::new();
    bench.buffer.iter_mut().enumerate().for_each(|(i, word)| *word = i as u32);
    bench.set_s64(crate::wave::sreg::EXEC_LO, 0b11);
    // Stride 1 << 14 plus 4, the index is the lane number.
    describe(&mut bench, BUFFER, 4, 0, 1 << 15 | 1 << 23);
    if bench.run("buffer_load_dword v1, off, s[8:11], 0 offset:8") {
        assert_eq!((bench.v(1)[0], bench.v(1)[1]), (2, (1 << 14) / 4 + 3));
    }
}

#[test]
fn buffer_atomics_are_in_range_as_a_whole_or_not_at_all() {
    let mut bench = Bench::new();
    describe(&mut bench, BUFFER, 0, 20, RAW);
    *bench.v(2) = std::array::from_fn(|lane| 8 * (lane as u32 % 4));
    bench.set_v64(4, |_| 1 << 32 | 1);
    if bench.run("buffer_atomic_add_x2 v[4:5], v2, s[8:11], 0 offen sc0") {
        // Lanes at 0 and 8 are inside, at 16 the second half is not.
        assert_eq!(bench.buffer[..6], [16, 16, 16, 16, 0, 0]);
        assert_eq!((bench.v64(4, 4), bench.v64(4, 6)), (1 << 32 | 1, 0));
    }
    *bench.v(2) = std::array::from_fn(|lane| if lane == 0 { 4 } else { 1000 });
    (*bench.v(4), *bench.v(5)) = ([33; LANES], [16; LANES]);
    if bench.run("buffer_atomic_cmpswap v[4:5], v2, s[8:11], 0 offen sc0") {
        assert_eq!((bench.buffer[1], bench.v(4)[0], bench.v(4)[1]), (33, 16, 0));
    }
}

#[test]
fn cache_instructions_change_nothing() {
    let mut bench = Bench::new();
    bench.buffer.fill(3);
    if bench.run("buffer_wbl2 sc0 sc1\nbuffer_inv sc1\ns_dcache_inv\ns_dcache_wb\ns_dcache_inv_vol\ns_dcache_wb_vol") {
        assert!(bench.buffer.iter().all(|&word| word == 3));
    }
}
