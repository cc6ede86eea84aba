use std::collections::{BTreeMap, BTreeSet};

use isa::Class;
use serde::Serialize;

use super::profile::{Site, Sites, has_lanes, unit};
use super::traffic::{LdsTraffic, Traffic};
use crate::exec::branch_target;

/// Instructions in a row that are entered at the first and left at the last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// Address of the first instruction, from the kernel's entry point.
    pub offset: i64,
    /// Its text.
    pub first: String,
    /// Instructions in the block.
    pub length: usize,
    /// Times a wave went through it.
    pub count: u64,
    /// Executed instructions by the unit that executes them.
    pub units: BTreeMap<&'static str, u64>,
    /// Lanes on, on average over its instructions that have lanes; `None` if it has none.
    pub active_lanes: Option<f64>,
    /// Loads from memory, scalar ones too.
    pub loaded: Traffic,
    /// Stores and atomics.
    pub stored: Traffic,
    /// LDS.
    pub lds: LdsTraffic,
}

/// The blocks of the kernel at `entry`.
///
/// A block starts where a branch goes or might have gone on, and where the count changes: there, some wave came by a jump
/// through a register, or ended.
pub(super) fn blocks(entry: u64, sites: &Sites) -> Vec<Block> {
    let targets: BTreeSet<u64> = sites.iter().filter_map(|(&at, site)| branch_target(&site.inst, at)).collect();
    let mut groups: Vec<Vec<(u64, &Site)>> = Vec::new();
    for (&address, site) in sites {
        let goes_on = groups.last().and_then(|group| group.last()).is_some_and(|&(before, last)| {
            before + 4 * u64::from(last.inst.dwords) == address
                && last.count == site.count
                && last.inst.op.info().class != Class::Branch
                && !targets.contains(&address)
        });
        match groups.last_mut() {
            Some(group) if goes_on => group.push((address, site)),
            _ => groups.push(vec![(address, site)]),
        }
    }
    groups.iter().map(|group| Block::of(entry, group)).collect()
}

impl Block {
    fn of(entry: u64, sites: &[(u64, &Site)]) -> Self {
        let (start, first) = sites[0];
        let mut block = Self {
            offset: start.wrapping_sub(entry) as i64,
            first: first.inst.to_string(),
            length: sites.len(),
            count: first.count,
            units: BTreeMap::new(),
            active_lanes: None,
            loaded: Traffic::default(),
            stored: Traffic::default(),
            lds: LdsTraffic::default(),
        };
        let (mut lanes, mut with_lanes) = (0, 0);
        for (_, site) in sites {
            let class = site.inst.op.info().class;
            *block.units.entry(unit(class)).or_default() += site.count;
            if has_lanes(class) {
                lanes += site.lanes;
                with_lanes += site.count;
            }
            block.loaded += site.accesses.loaded;
            block.stored += site.accesses.stored;
            block.lds += site.accesses.lds;
        }
        block.active_lanes = (with_lanes > 0).then(|| lanes as f64 / with_lanes as f64);
        block
    }
}
