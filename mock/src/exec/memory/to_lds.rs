//! Loads from memory straight into LDS.
//!
//! Lane `n` writes to M0 plus the instruction's offset plus `n` times 4 bytes, or 16 for loads of three and four dwords, of
//! which the former leave out the last (CDNA4 ISA sections 9.1.9 and 10.3). Bytes and halves are extended to dwords.

use std::marker::PhantomData;

use super::item::{Dwords, Item};
use super::lds::write;
use super::space::{Space, load_to};
use super::transfer::are_consecutive;
use crate::exec::level::Body;
use crate::exec::{Cx, Micro};
use crate::memory::AccessKind;
use crate::wave::{LANES, Vreg};

pub(super) struct LoadToLds<S, I>(PhantomData<(S, I)>);

impl<S: Space, I: Item> Body for LoadToLds<S, I> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let step = if I::REGISTERS == 1 { 4 } else { 16 };
        // M0[17:2] is a dword address.
        let first = (cx.m0() & 0x3_fffc).wrapping_add(m.imm as u32);
        let exec = cx.exec();
        if exec == 0 {
            return;
        }
        // SAFETY: `translate` checked the registers; the copies stay in what was resolved and in the LDS.
        unsafe {
            if exec == u64::MAX
                && I::BYTES == step
                && !cx.is_observed()
                && let Some(plan) = S::plan(cx, m, exec, I::BYTES)
                && plan.mask == exec
                && are_consecutive(&(*plan.offset).0, I::BYTES as u32)
                && let start = plan.base.wrapping_add((*plan.offset).0[0].into())
                && let Ok(host) = cx.memory.resolve(start, (I::BYTES * LANES) as u64, AccessKind::Read)
                && let Some(into) = cx.lds.as_bytes_mut().get_mut(first as usize..first as usize + I::BYTES * LANES)
            {
                std::ptr::copy_nonoverlapping(host, into.as_mut_ptr(), into.len());
                return;
            }
            let at = Vreg(std::array::from_fn(|lane| first.wrapping_add((step * lane) as u32)));
            // Lanes that would write outside the LDS do not read either.
            let size = cx.lds.bytes();
            let inside = |lane: usize| u64::from(at.0[lane]) + 4 * I::REGISTERS as u64 <= size.into();
            let exec = (0..LANES).filter(|&lane| inside(lane)).fold(0, |mask, lane| mask | 1 << lane) & exec;
            let mut data = [Vreg::default(); 4];
            load_to::<S, I>(cx, m, exec, data.as_mut_ptr());
            match I::REGISTERS {
                1 => write::<Dwords<1>>(cx, exec, &at, data.as_ptr()),
                3 => write::<Dwords<3>>(cx, exec, &at, data.as_ptr()),
                _ => write::<Dwords<4>>(cx, exec, &at, data.as_ptr()),
            }
        }
    }
}
