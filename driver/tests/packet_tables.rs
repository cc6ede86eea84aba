//! What must hold of every packet table, and of decoding whatever comes.

use driver::packets::aql::{Aql, Slot};
use driver::packets::pm4::{self, Pm4};
use driver::packets::sdma::{self, Sdma};
use driver::packets::{DecodeError, EncodeError, Layout};
use proptest::collection::vec;
use proptest::prelude::*;

fn tables() -> impl Iterator<Item = (&'static str, &'static Layout)> {
    let tag = |format| move |layout| (format, layout);
    let (pm4, sdma) = (Pm4::LAYOUTS.iter().map(tag("PM4")), Sdma::LAYOUTS.iter().map(tag("SDMA")));
    pm4.chain(sdma).chain(Aql::LAYOUTS.iter().map(tag("AQL")))
}

#[test]
fn no_two_fields_of_a_packet_overlap_and_none_leaves_it() {
    for (format, layout) in tables() {
        let mut taken = vec![0_u32; layout.dwords];
        let mut take = |name: &str, dword: usize, mask: u32| {
            if mask != 0 {
                assert!(dword < layout.dwords, "{format} {}: {name} leaves the packet", layout.name);
                assert_eq!(taken[dword] & mask, 0, "{format} {}: {name} overlaps another", layout.name);
                taken[dword] |= mask;
            }
        };
        for fixed in layout.fixed {
            assert_eq!(fixed.value & !fixed.mask, 0, "{format} {}: fixed bits outside their mask", layout.name);
            take("the fixed part", fixed.dword, fixed.mask);
        }
        for field in layout.fields {
            take(field.name, field.dword, field.mask_in(field.dword));
            take(field.name, field.dword + 1, field.mask_in(field.dword + 1));
        }
    }
}

#[test]
fn no_two_packets_of_a_format_look_alike() {
    let all: Vec<_> = tables().collect();
    for (index, (format, one)) in all.iter().enumerate() {
        for (_, other) in all[index + 1..].iter().filter(|(other, _)| other == format) {
            let (a, b) = (one.fixed[0], other.fixed[0]);
            let common = a.mask & b.mask;
            assert_ne!(a.value & common, b.value & common, "{format} {} and {}", one.name, other.name);
        }
    }
}

/// Dwords of a packet of `layout` in which fields hold anything and the rest what it must.
fn filled(layout: &'static Layout) -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), layout.dwords).prop_map(move |mut dwords| {
        for (index, word) in dwords.iter_mut().enumerate() {
            *word &= layout.fields.iter().fold(0, |mask, field| mask | field.mask_in(index));
            for fixed in layout.fixed.iter().filter(|fixed| fixed.dword == index) {
                *word = *word & !fixed.mask | fixed.value;
            }
        }
        dwords
    })
}

fn any_of(layouts: &'static [Layout]) -> impl Strategy<Value = (&'static Layout, Vec<u32>, Vec<u32>)> {
    (0..layouts.len()).prop_flat_map(move |index| {
        let layout = &layouts[index];
        let payload = if layout.has_payload { 1..40 } else { 0..1 };
        (Just(layout), filled(layout), vec(any::<u32>(), payload))
    })
}

/// The only way a packet with all its fixed and reserved bits right may fail.
fn is_unnamed_value(error: &DecodeError) -> bool {
    matches!(error, DecodeError::Value { .. })
}

proptest! {
    #[test]
    fn a_pm4_packet_encodes_to_the_dwords_it_was_decoded_from((layout, mut dwords, payload) in any_of(Pm4::LAYOUTS)) {
        dwords.extend(payload);
        dwords[0] |= ((dwords.len() as u32 - 2) & 0x3fff) << 16;
        match Pm4::decode(&dwords) {
            Ok(packet) => {
                let mut again = vec![7];
                packet.encode(&mut again).unwrap();
                prop_assert_eq!(&again[1..], &dwords[..], "{}", packet);
                prop_assert_eq!(packet.name(), layout.name);
                prop_assert!(packet.to_string().starts_with(layout.name));
            }
            Err(error) => prop_assert!(is_unnamed_value(&error), "{error}"),
        }
    }

    #[test]
    fn an_sdma_packet_encodes_to_the_dwords_it_was_decoded_from((layout, mut dwords, payload) in any_of(Sdma::LAYOUTS)) {
        match layout.name {
            "NOP" => dwords[0] |= (payload.len() as u32) << 16,
            "WRITE_LINEAR" => dwords[3] |= payload.len() as u32 - 1,
            _ => {}
        }
        dwords.extend(payload);
        match Sdma::decode(&dwords) {
            Ok(packet) => {
                let mut again = vec![7];
                packet.encode(&mut again).unwrap();
                prop_assert_eq!(&again[1..], &dwords[..], "{}", packet);
                prop_assert_eq!(packet.name(), layout.name);
            }
            Err(error) => prop_assert!(is_unnamed_value(&error), "{error}"),
        }
    }

    #[test]
    fn an_aql_packet_encodes_to_the_slot_it_was_decoded_from((_, dwords, _) in any_of(Aql::LAYOUTS)) {
        let slot: Slot = dwords.try_into().unwrap();
        match Aql::decode(&slot) {
            Ok(packet) => prop_assert_eq!(packet.encode().unwrap(), slot, "{}", packet),
            Err(error) => prop_assert!(is_unnamed_value(&error), "{error}"),
        }
    }

    #[test]
    fn decoding_noise_ends_and_never_panics(noise in vec(any::<u32>(), 0..64), header in any::<u32>()) {
        let mut dwords = vec![3 << 30 | header >> 2];
        dwords.extend(&noise);
        for stream in [&noise, &dwords] {
            prop_assert!(pm4::packets(stream).count() <= stream.len());
            prop_assert!(sdma::packets(stream).count() <= stream.len());
        }
        if let Some(slot) = noise.first_chunk::<16>() {
            let _ = Aql::decode(slot);
        }
    }

    #[test]
    fn a_reserved_bit_is_refused_by_name((layout, mut dwords, payload) in any_of(Pm4::LAYOUTS), at in any::<(usize, u32)>()) {
        let (dword, bit) = (1 + at.0 % (layout.dwords.max(2) - 1), 1 << (at.1 % 32));
        let claimed = layout.fields.iter().any(|field| field.mask_in(dword) & bit != 0);
        prop_assume!(!claimed && layout.dwords > 1);
        dwords[dword] |= bit;
        dwords.extend(payload);
        dwords[0] |= (dwords.len() as u32 - 2) << 16;
        prop_assert_eq!(Pm4::decode(&dwords), Err(DecodeError::ReservedBits { packet: layout.name, dword, bits: bit }));
    }
}

#[test]
fn a_lone_nop_is_one_dword_as_the_kernel_writes_it() {
    let mut out = Vec::new();
    pm4::Nop { payload: &[] }.encode(&mut out).unwrap();
    assert_eq!(out, [0xffff_1000]);
    assert_eq!(pm4::length(0xffff_1000), Ok(1));
    assert_eq!(Pm4::decode(&out), Ok(Pm4::Nop(pm4::Nop { payload: &[] })));
}

#[test]
fn a_truncated_packet_is_named_with_what_it_needs() {
    let wait = [0xc005_3c00, 0x15, 0, 0];
    let error = pm4::packets(&wait).next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "dword 0 (0xc0053c00): WAIT_REG_MEM needs 7 dwords, 4 are left");
    assert_eq!(
        sdma::packets(&[0x2, 0, 0]).next().unwrap().unwrap_err().source,
        DecodeError::Truncated { packet: "WRITE_LINEAR", needed: 4, available: 3 }
    );
}

#[test]
fn a_header_with_the_wrong_length_is_refused() {
    let short_wait = [0xc004_3c00, 0x15, 0, 0, 0, 0];
    assert_eq!(Pm4::decode(&short_wait), Err(DecodeError::Length { packet: "WAIT_REG_MEM", expected: 7, found: 6 }));
}

#[test]
fn a_packet_of_another_type_or_opcode_is_named() {
    assert_eq!(Pm4::decode(&[0x8000_0000]), Err(DecodeError::PacketType(2)));
    assert_eq!(Pm4::decode(&[0xc000_2800, 0]), Err(DecodeError::UnknownOpcode { format: "PM4", opcode: 0x28 }));
    assert_eq!(Sdma::decode(&[0x0301]), Err(DecodeError::UnknownOpcode { format: "SDMA", opcode: 0x301 }));
    let mut slot: Slot = [0; 16];
    slot[0] = 4;
    assert_eq!(Aql::decode(&slot), Err(DecodeError::UnknownOpcode { format: "AQL", opcode: 4 }));
}

#[test]
fn what_does_not_fit_a_field_is_refused_and_leaves_nothing_behind() {
    let mut out = vec![1, 2];
    let too_long = pm4::IndirectBuffer { dwords: 1 << 20, valid: true, ..Default::default() };
    assert_eq!(
        too_long.encode(&mut out),
        Err(EncodeError::FieldTooNarrow { packet: "INDIRECT_BUFFER", field: "dwords", value: 1 << 20, bits: 20 })
    );
    let nothing = sdma::CopyLinear::default();
    assert!(nothing.encode(&mut out).is_err(), "a copy of zero bytes cannot be written");
    assert!(sdma::Write::default().encode(&mut out).is_err(), "nor a write without data");
    let overlong = vec![0; 0x4000];
    assert!(pm4::Nop { payload: &overlong }.encode(&mut out).is_err());
    assert_eq!(out, [1, 2]);
    pm4::Nop { payload: &overlong[1..] }.encode(&mut out).unwrap();
    assert_eq!(out.len(), 2 + 0x4000);
}

#[test]
fn a_decoded_packet_reads_as_a_sentence_of_its_fields() {
    let wait = Pm4::decode(&[0xc005_3c00, 0x15, 0x4f63_dff0, 0x7f72, 3, u32::MAX, 4]).unwrap();
    assert_eq!(
        wait.to_string(),
        "WAIT_REG_MEM function=>= mem_space=memory operation=poll cache_policy=lru poll=0x7f724f63dff0 reference=0x3 \
         mask=0xffffffff poll_interval=0x4"
    );
    let set = Pm4::decode(&[0xc002_7600, 0x20c, 0x10, 0x20]).unwrap();
    assert_eq!(set.to_string(), "SET_SH_REG register=COMPUTE_PGM_LO values=[0x10 0x20]");
}
