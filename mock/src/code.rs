//! Pre-decoded code: what a kernel's waves execute.
//!
//! Code is decoded by following control flow from the kernel's entry. An address that control flow reaches only through
//! a register (`s_setpc`, `s_swappc`) is added when a wave first gets there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use driver::address::GpuVa;
use isa::Inst;

use crate::exec::{HostLevel, Micro, RegisterLimits, translate};
use crate::facts::Facts;
use crate::memory::{AccessKind, PageMap, View};

/// Instructions of one kernel at most: bounds what hostile code can make the decoder do.
const MAX_INSTRUCTIONS: usize = 1 << 20;
/// Dwords of the longest instruction.
const LONGEST: usize = 5;

/// The decoded code of one kernel entry, for one set of register limits.
#[derive(Clone)]
pub(crate) struct Code {
    limits: RegisterLimits,
    micros: Vec<Micro>,
    /// Where each micro stands; micros that only join two runs have no instruction.
    places: Vec<Place>,
    index: HashMap<u64, u32>,
    /// The dwords that were decoded, run by run, to see whether memory still holds them.
    sources: Vec<(u64, Vec<u32>)>,
}

#[derive(Clone)]
struct Place {
    address: u64,
    inst: Option<Inst>,
    facts: OnceLock<Arc<Facts>>,
}

impl Code {
    /// Index of the entry point.
    pub(crate) const ENTRY: u32 = 0;

    fn decode(entry: GpuVa, limits: RegisterLimits, map: &PageMap, level: HostLevel) -> Self {
        let mut code =
            Self { limits, micros: Vec::new(), places: Vec::new(), index: HashMap::new(), sources: Vec::new() };
        code.extend(entry.get(), map, level);
        code
    }

    /// The registers that its waves have.
    pub(crate) fn limits(&self) -> RegisterLimits {
        self.limits
    }

    /// The micros; each run of them ends with one that jumps or stops.
    pub(crate) fn micros(&self) -> &[Micro] {
        &self.micros
    }

    /// Index of the instruction at `address`, if it was decoded.
    pub(crate) fn index_of(&self, address: u64) -> Option<u32> {
        self.index.get(&address).copied()
    }

    /// The decoded instruction behind a micro.
    pub(crate) fn inst(&self, index: u32) -> Option<&Inst> {
        self.places.get(index as usize)?.inst.as_ref()
    }

    /// What the instruction behind a micro touches.
    pub(crate) fn facts(&self, index: u32) -> Option<&Arc<Facts>> {
        let place = self.places.get(index as usize)?;
        let inst = place.inst.as_ref()?;
        Some(place.facts.get_or_init(|| Arc::new(Facts::new(inst))))
    }

    /// Address of a micro's instruction.
    pub(crate) fn address(&self, index: u32) -> u64 {
        self.places.get(index as usize).map_or(0, |p| p.address)
    }

    /// Address and text of a micro's instruction, for messages.
    pub(crate) fn describe(&self, index: u32) -> (u64, String) {
        let text = self.inst(index).map_or_else(|| "not an instruction".into(), ToString::to_string);
        (self.address(index), text)
    }

    /// Decodes what is reachable from `address`, and gives the index to go on at.
    pub(crate) fn extend(&mut self, address: u64, map: &PageMap, level: HostLevel) -> u32 {
        let mut work = vec![address];
        let mut branches = Vec::new();
        while let Some(start) = work.pop() {
            if !self.index.contains_key(&start) {
                self.decode_run(start, map, level, &mut work, &mut branches);
            }
        }
        for (micro, target) in branches {
            self.micros[micro].target = self.index[&target];
        }
        self.index[&address]
    }

    fn decode_run(
        &mut self,
        start: u64,
        map: &PageMap,
        level: HostLevel,
        work: &mut Vec<u64>,
        branches: &mut Vec<(usize, u64)>,
    ) {
        let mut view = View::new(map);
        let mut words = Vec::new();
        let mut address = start;
        loop {
            if let Some(&known) = self.index.get(&address) {
                self.push(address, None, translate::join(known));
                break;
            }
            self.index.insert(address, self.micros.len() as u32);
            let window = fetch(&mut view, address);
            let decoded = match window {
                _ if self.micros.len() >= MAX_INSTRUCTIONS => Err(translate::too_long()),
                Ok((ref dwords, n)) => isa::decode(&dwords[..n]).map_err(|_| translate::undecodable()),
                Err(()) => Err(translate::unfetchable()),
            };
            let inst = match decoded {
                Ok(inst) => inst,
                Err(micro) => {
                    self.push(address, None, micro);
                    break;
                }
            };
            let dwords = inst.dwords as usize;
            if let Ok((fetched, _)) = window {
                words.extend_from_slice(&fetched[..dwords]);
            }
            let next = address + 4 * dwords as u64;
            let translated = translate::translate(&inst, address, self.limits, level);
            if let Some(target) = translated.branch {
                branches.push((self.micros.len(), target));
                work.push(target);
            }
            self.push(address, Some(inst), translated.micro);
            if translated.ends_run {
                break;
            }
            address = next;
        }
        self.sources.push((start, words));
    }

    fn push(&mut self, address: u64, inst: Option<Inst>, micro: Micro) {
        self.micros.push(micro);
        self.places.push(Place { address, inst, facts: OnceLock::new() });
    }

    fn is_current(&self, map: &PageMap) -> bool {
        let mut view = View::new(map);
        self.sources.iter().all(|(start, words)| {
            // SAFETY: `resolve` gave that many mapped bytes, dword-aligned as all code is; they may change while they
            // are compared, which only makes the comparison fail.
            words.is_empty()
                || view.resolve(*start, 4 * words.len() as u64, AccessKind::Execute).is_ok_and(|host| unsafe {
                    std::slice::from_raw_parts(host.cast::<u32>(), words.len()) == words.as_slice()
                })
        })
    }
}

/// The dwords from `address` on that one instruction can span, and how many of them are mapped.
fn fetch(view: &mut View<'_>, address: u64) -> Result<([u32; LONGEST], usize), ()> {
    if !address.is_multiple_of(4) {
        return Err(());
    }
    let mut words = [0; LONGEST];
    let mut count = 0;
    for word in &mut words {
        let at = address + 4 * count as u64;
        if view.resolve(at, 4, AccessKind::Execute).is_err() {
            break;
        }
        *word = view.read_u32(at).map_err(|_| ())?;
        count += 1;
    }
    if count == 0 { Err(()) } else { Ok((words, count)) }
}

/// All code decoded so far, by GPU, entry and register limits.
#[derive(Default)]
pub(crate) struct CodeCache {
    codes: Mutex<HashMap<(usize, u64, RegisterLimits), Arc<Code>>>,
}

impl CodeCache {
    /// The code at `entry` as memory holds it now: decoded once, and again only if memory has changed.
    pub(crate) fn get(
        &self,
        gpu: usize,
        entry: GpuVa,
        limits: RegisterLimits,
        map: &PageMap,
        level: HostLevel,
    ) -> Arc<Code> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (gpu, entry.get(), limits);
        if let Some(code) = codes.get(&key)
            && code.is_current(map)
        {
            return Arc::clone(code);
        }
        let code = Arc::new(Code::decode(entry, limits, map, level));
        codes.insert(key, Arc::clone(&code));
        code
    }
}
