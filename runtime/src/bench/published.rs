//! The one published run that the model of time can be held against: the tinygrad branch this project started from.

use super::cost::Constants;
use super::pass::Pass;
use super::work::Work;
use crate::graph::Form;

/// Kernel events of one GPU in a token: 6,304 in four tokens.
const KERNELS_PER_TOKEN: f64 = 6304.0 / 4.0;
/// Measured seconds of an attention half of a layer.
const ATTENTION: f64 = 0.63e-3;
/// Measured seconds of a whole layer.
const BLOCK: f64 = 1.37e-3;
/// Collectives of a layer there: the attention's output and the layer's.
const COLLECTIVES: usize = 2;

/// A published time beside the modelled one.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Point {
    /// What took it.
    pub what: &'static str,
    /// Seconds that were published.
    pub published: f64,
    /// Seconds that the model gives for as many kernels and the same bytes.
    pub modelled: f64,
    /// The first over the second.
    pub times: f64,
    /// HBM bandwidth that the published time comes to, as a share of the peak, if kernels cost what the model says.
    pub bandwidth_share: f64,
}

/// What the model says of a layer of the official model, cut into as many kernels as the branch had.
#[must_use]
pub fn points(official_token: &Pass, position: u32, constants: &Constants) -> [Point; 2] {
    let kinds = official_token.by_kind(position);
    let layers: usize = official_token.config().layers.len();
    let work: Work = kinds.iter().filter(|kind| kind.name != "start and head").map(|kind| kind.work).sum();
    let kernels = KERNELS_PER_TOKEN / layers as f64;
    let attention: u64 = official_token.attention_bytes(position) / layers as u64;
    let point = |what, published, bytes, kernels: f64, collectives| {
        let fixed = constants.time(&vec![Work::default(); kernels.round() as usize], collectives, Form::Aql).total();
        let streaming = constants.streaming(bytes);
        Point {
            what,
            published,
            modelled: fixed + streaming,
            times: published / (fixed + streaming),
            bandwidth_share: streaming / (published - fixed) * constants.bandwidth_share,
        }
    };
    [
        point("attention of a layer", ATTENTION, attention, kernels / 2.0, COLLECTIVES / 2),
        point("a layer", BLOCK, work.bytes() / layers as u64, kernels, COLLECTIVES),
    ]
}

/// Why the model is so far off.
pub const WHY: &str = "The model takes kernels to stream at a fixed share of the HBM peak. The branch's generated kernels \
do not: with launches paid for, its times come to the bandwidth in the last column. Many small kernels with few waves in \
flight never fill the memory pipes, and no count of dispatches or collectives explains the rest. So the modelled time is \
a lower bound that a kernel has to earn, not a forecast for any kernel.";
