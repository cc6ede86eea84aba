//! Memory instructions.

mod atomic;
mod buffer;
mod combine;
mod four;
mod global;
mod item;
pub(super) mod lds;
pub(super) mod scalar;
mod scratch;
mod space;
#[cfg(test)]
mod tests;
mod to_lds;
mod transfer;

use isa::{Class, Memory, Op};

use super::Micro;
use super::level::{Baseline, Level};
use super::translate::{Builder, Unsupported};
use global::{FLAT, Global};
use item::{Dwords, HIGH, I8, I16, LOW, Narrow, U8, U16};
use scratch::Scratch;
use space::{Load, Space, Store};
use to_lds::LoadToLds;

/// Global, flat, scratch and buffer instructions.
pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    match b.info.class {
        Class::Flat | Class::Global if b.info.memory == Memory::Atomic => addressed(b, atomic::translate::<Global>(b)),
        Class::Flat | Class::Global => addressed(b, flat_family::<L, Global>(b)),
        // Private memory is for spills: not worth a copy of its code for each level.
        Class::Scratch => flat_family::<Baseline, Scratch>(b),
        Class::Mubuf | Class::Mtbuf => buffer::translate::<L>(b),
        _ => Err(Unsupported::Instruction),
    }
}

fn addressed(b: &Builder<'_>, micro: Result<Micro, Unsupported>) -> Result<Micro, Unsupported> {
    let mut micro = micro?;
    micro.aux |= if b.info.class == Class::Flat { FLAT } else { 0 };
    Ok(micro)
}

fn flat_family<L: Level, S: Space>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    use Op::*;
    match b.inst.op {
        FlatLoadUbyte | GlobalLoadUbyte | ScratchLoadUbyte => b.body::<L, Load<S, U8>>(),
        FlatLoadSbyte | GlobalLoadSbyte | ScratchLoadSbyte => b.body::<L, Load<S, I8>>(),
        FlatLoadUshort | GlobalLoadUshort | ScratchLoadUshort => b.body::<L, Load<S, U16>>(),
        FlatLoadSshort | GlobalLoadSshort | ScratchLoadSshort => b.body::<L, Load<S, I16>>(),
        FlatLoadDword | GlobalLoadDword | ScratchLoadDword => b.body::<L, Load<S, Dwords<1>>>(),
        FlatLoadDwordx2 | GlobalLoadDwordx2 | ScratchLoadDwordx2 => b.body::<L, Load<S, Dwords<2>>>(),
        FlatLoadDwordx3 | GlobalLoadDwordx3 | ScratchLoadDwordx3 => b.body::<L, Load<S, Dwords<3>>>(),
        FlatLoadDwordx4 | GlobalLoadDwordx4 | ScratchLoadDwordx4 => b.body::<L, Load<S, Dwords<4>>>(),
        FlatLoadUbyteD16 | GlobalLoadUbyteD16 | ScratchLoadUbyteD16 => b.body::<L, Load<S, Narrow<1, false, LOW>>>(),
        FlatLoadUbyteD16Hi | GlobalLoadUbyteD16Hi | ScratchLoadUbyteD16Hi => {
            b.body::<L, Load<S, Narrow<1, false, HIGH>>>()
        }
        FlatLoadSbyteD16 | GlobalLoadSbyteD16 | ScratchLoadSbyteD16 => b.body::<L, Load<S, Narrow<1, true, LOW>>>(),
        FlatLoadSbyteD16Hi | GlobalLoadSbyteD16Hi | ScratchLoadSbyteD16Hi => {
            b.body::<L, Load<S, Narrow<1, true, HIGH>>>()
        }
        FlatLoadShortD16 | GlobalLoadShortD16 | ScratchLoadShortD16 => b.body::<L, Load<S, Narrow<2, false, LOW>>>(),
        FlatLoadShortD16Hi | GlobalLoadShortD16Hi | ScratchLoadShortD16Hi => {
            b.body::<L, Load<S, Narrow<2, false, HIGH>>>()
        }
        FlatStoreByte | GlobalStoreByte | ScratchStoreByte => b.body::<L, Store<S, U8>>(),
        FlatStoreByteD16Hi | GlobalStoreByteD16Hi | ScratchStoreByteD16Hi => {
            b.body::<L, Store<S, Narrow<1, false, HIGH>>>()
        }
        FlatStoreShort | GlobalStoreShort | ScratchStoreShort => b.body::<L, Store<S, U16>>(),
        FlatStoreShortD16Hi | GlobalStoreShortD16Hi | ScratchStoreShortD16Hi => {
            b.body::<L, Store<S, Narrow<2, false, HIGH>>>()
        }
        FlatStoreDword | GlobalStoreDword | ScratchStoreDword => b.body::<L, Store<S, Dwords<1>>>(),
        FlatStoreDwordx2 | GlobalStoreDwordx2 | ScratchStoreDwordx2 => b.body::<L, Store<S, Dwords<2>>>(),
        FlatStoreDwordx3 | GlobalStoreDwordx3 | ScratchStoreDwordx3 => b.body::<L, Store<S, Dwords<3>>>(),
        FlatStoreDwordx4 | GlobalStoreDwordx4 | ScratchStoreDwordx4 => b.body::<L, Store<S, Dwords<4>>>(),
        GlobalLoadLdsUbyte | ScratchLoadLdsUbyte => b.body::<L, LoadToLds<S, U8>>(),
        GlobalLoadLdsSbyte | ScratchLoadLdsSbyte => b.body::<L, LoadToLds<S, I8>>(),
        GlobalLoadLdsUshort | ScratchLoadLdsUshort => b.body::<L, LoadToLds<S, U16>>(),
        GlobalLoadLdsSshort | ScratchLoadLdsSshort => b.body::<L, LoadToLds<S, I16>>(),
        GlobalLoadLdsDword | ScratchLoadLdsDword => b.body::<L, LoadToLds<S, Dwords<1>>>(),
        GlobalLoadLdsDwordx3 => b.body::<L, LoadToLds<S, Dwords<3>>>(),
        GlobalLoadLdsDwordx4 => b.body::<L, LoadToLds<S, Dwords<4>>>(),
        _ => Err(Unsupported::Instruction),
    }
}
