//! Host instruction-set levels: each handler is compiled once per level, and the best level of the processor is chosen
//! at run time, so that one portable binary uses AVX2 or AVX-512 where they exist.

use super::{Cx, Micro};

/// Executes one pre-decoded instruction.
///
/// # Safety
/// The host must have the features of the level it was made for, and the `Micro` must come from `translate` with the
/// register limits of the wave in `Cx`: handlers index registers without a check of their own.
pub(crate) type Handler = unsafe fn(&mut Cx<'_>, &Micro);

/// The semantics of an instruction, level-independent. `go` must be `#[inline(always)]`, so that it is compiled with
/// the features of the level that wraps it.
pub(crate) trait Body {
    /// Executes `m` for the wave of `cx`.
    ///
    /// # Safety
    /// As for [`Handler`], features apart.
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro);
}

/// A set of host features to compile handlers for.
pub(crate) trait Level {
    /// Vector registers that the host has at this level.
    const REGISTERS: usize;
    /// The handler of `B` at this level.
    fn handler<B: Body>() -> Handler;
}

/// Whatever the compilation target guarantees (SSE2 on x86-64).
pub(crate) struct Baseline;

impl Level for Baseline {
    const REGISTERS: usize = 16;

    fn handler<B: Body>() -> Handler {
        unsafe fn run<B: Body>(cx: &mut Cx<'_>, m: &Micro) {
            // SAFETY: passed on from the caller.
            unsafe { B::go(cx, m) }
        }
        run::<B>
    }
}

/// x86-64-v3: AVX2, FMA, F16C and the bit-manipulation sets.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Level for Avx2 {
    const REGISTERS: usize = 16;

    fn handler<B: Body>() -> Handler {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn run<B: Body>(cx: &mut Cx<'_>, m: &Micro) {
            // SAFETY: passed on from the caller.
            unsafe { B::go(cx, m) }
        }
        run::<B>
    }
}

/// x86-64-v4: AVX-512 F, BW, CD, DQ and VL on top of [`Avx2`].
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Level for Avx512 {
    const REGISTERS: usize = 32;

    fn handler<B: Body>() -> Handler {
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn run<B: Body>(cx: &mut Cx<'_>, m: &Micro) {
            // SAFETY: passed on from the caller.
            unsafe { B::go(cx, m) }
        }
        run::<B>
    }
}

/// The levels by name, chosen once per machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLevel {
    /// What the compilation target guarantees.
    Baseline,
    /// x86-64-v3.
    Avx2,
    /// x86-64-v4.
    Avx512,
}

impl HostLevel {
    /// All levels that this processor can run, the lowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let all = [Self::Baseline, Self::Avx2, Self::Avx512];
        let best = Self::detect();
        all.into_iter().take_while(|level| *level as u8 <= best as u8).collect()
    }

    /// The best level of this processor.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let v3 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let v4 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if v3 && v4 {
                return Self::Avx512;
            }
            if v3 {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }
}
