//! A forward pass that is only listed: the launches of one rank over memory that nobody has allocated.

use driver::address::GpuVa;
use kernels::limits::MAX_RANKS;
use model::config::{Attention, Config, FeedForward};
use model::layout::{Layout, LayoutError};
use model::tensor::{ModelTensor, TensorId};

use super::cost::{Constants, Seconds};
use super::work::{Catalogue, Run, Work};
use crate::forward::{Builder, Launches, Logits, RankMemory};
use crate::graph::Form;
use crate::plan::{MemoryPlan, Sizes};

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassSizes {
    /// GPUs the model is split over.
    pub ranks: usize,
    /// Tokens of a run.
    pub tokens: u32,
    /// Tokens that the caches hold.
    pub max_context: u32,
}

/// The launches of one rank, and what each has to do.
pub struct Pass {
    config: Config,
    layout: Layout,
    plan: MemoryPlan,
    memory: RankMemory,
    /// Tokens of a run.
    pub tokens: u32,
    /// The launches.
    pub launches: Launches,
}

/// Where sections would be: addresses that no number in an argument is mistaken for.
const NOWHERE: u64 = 0x7e57_0000_0000_0000;
/// From one section to the next: more than any has.
const APART: u64 = 1 << 44;

impl Pass {
    /// Lists the pass of rank 0.
    ///
    /// # Errors
    /// The model can't be split over that many GPUs.
    pub fn new(config: &Config, sizes: PassSizes) -> Result<Self, LayoutError> {
        let PassSizes { ranks, tokens, max_context } = sizes;
        let layout = Layout::new(config, ranks)?;
        let plan = MemoryPlan::new(config, &layout, Sizes { ranks, chunk: tokens, max_context, all_logits: false });
        let memory = memory_nowhere(&layout, &plan);
        let launches = Builder::new(config, &layout, &plan, &memory, tokens).forward(Logits::Last);
        Ok(Self { config: config.clone(), layout, plan, memory, tokens, launches })
    }

    /// The model.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Launch by launch: the work of a run of the most tokens, `position` tokens into a context.
    #[must_use]
    pub fn works(&self, position: u32) -> Vec<Work> {
        let run = Run::with_random_choice(&self.config, self.tokens, position);
        let catalogue = Catalogue::new(&self.config, &self.layout, &self.plan, &self.memory);
        self.launches.kernels.iter().map(|launch| catalogue.work(launch, run)).collect()
    }

    /// The modelled time of such a run.
    #[must_use]
    pub fn time(&self, position: u32, constants: &Constants, form: Form) -> Seconds {
        constants.time(&self.works(position), self.launches.collectives.len(), form)
    }

    /// What each kind of layer takes, `position` tokens into a context.
    #[must_use]
    pub fn by_kind(&self, position: u32) -> Vec<LayerKind> {
        let works = self.works(position);
        let mut kinds: Vec<LayerKind> = Vec::new();
        let places = (0..self.config.layers.len()).map(Some).chain([None]);
        for layer in places {
            let name = self.kind_name(layer);
            let of_layer = self.launches.kernels.iter().zip(&works).filter(|(launch, _)| launch.layer == layer);
            let dispatches = of_layer.clone().count();
            let work: Work = of_layer.map(|(_, work)| *work).sum();
            let collectives = self.launches.collectives.iter().filter(|name| name.layer == layer).count();
            match kinds.iter_mut().find(|kind| kind.name == name) {
                Some(kind) => {
                    kind.layers += 1;
                    kind.most_dispatches = kind.most_dispatches.max(dispatches);
                    kind.work += work;
                }
                None => kinds.push(LayerKind { name, layers: 1, most_dispatches: dispatches, collectives, work }),
            }
        }
        kinds
    }

    /// Bytes of all attention blocks, up to the collective that ends each.
    #[must_use]
    pub fn attention_bytes(&self, position: u32) -> u64 {
        let catalogue = Catalogue::new(&self.config, &self.layout, &self.plan, &self.memory);
        let run = Run::with_random_choice(&self.config, self.tokens, position);
        let layers = 0..self.config.layers.len();
        let lists = layers.map(|layer| {
            Builder::new(&self.config, &self.layout, &self.plan, &self.memory, self.tokens).attention_alone(layer)
        });
        lists.flat_map(|list| list.kernels).map(|launch| catalogue.work(&launch, run).bytes()).sum()
    }

    fn kind_name(&self, layer: Option<usize>) -> &'static str {
        match layer.map(|layer| self.config.layers[layer]) {
            None => "start and head",
            Some(layer) => match (layer.attention, layer.feed_forward) {
                (Attention::Kda, FeedForward::Dense) => "KDA + dense",
                (Attention::Kda, FeedForward::Moe) => "KDA + MoE",
                (Attention::Mla, FeedForward::Dense) => "MLA + dense",
                (Attention::Mla, FeedForward::Moe) => "MLA + MoE",
            },
        }
    }

    /// Work and number of launches, by kernel, in the order of first use.
    #[must_use]
    pub fn by_kernel(&self, position: u32) -> Vec<(&'static str, usize, Work)> {
        let mut kernels: Vec<(&'static str, usize, Work)> = Vec::new();
        for (launch, work) in self.launches.kernels.iter().zip(self.works(position)) {
            let name = launch.kernel.name;
            match kernels.iter_mut().find(|(other, ..)| *other == name) {
                Some((_, count, sum)) => {
                    *count += 1;
                    *sum += work;
                }
                None => kernels.push((name, 1, work)),
            }
        }
        kernels
    }
}

/// Layers of one kind.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LayerKind {
    /// What they are made of.
    pub name: &'static str,
    /// How many there are.
    pub layers: usize,
    /// Dispatches of the one that has most.
    pub most_dispatches: usize,
    /// Collectives of one, which are among the dispatches.
    pub collectives: usize,
    /// What all of them have to do.
    pub work: Work,
}

fn memory_nowhere(layout: &Layout, plan: &MemoryPlan) -> RankMemory {
    let section = |index: u64| GpuVa::new(NOWHERE + index * APART);
    let kernel_va = |va: GpuVa| kernels::GpuVa(va.get());
    let embedding = layout.region(TensorId::Model(ModelTensor::EmbedTokens)).map_or(0, |region| region.offset);
    let (mut embeddings, mut mailboxes) = ([kernels::GpuVa::NULL; MAX_RANKS], [kernels::GpuVa::NULL; MAX_RANKS]);
    embeddings[0] = kernels::GpuVa(section(0).get() + embedding);
    mailboxes[0] = kernel_va(section(4));
    for rank in 1..layout.ranks() {
        embeddings[rank] = kernel_va(section(8 + rank as u64));
        mailboxes[rank] = kernel_va(section(16 + rank as u64));
    }
    RankMemory {
        rank: 0,
        weights: section(0),
        cache: section(1),
        state: section(2),
        workspace: section(3),
        places: plan.places,
        embeddings,
        mailboxes,
        ring: kernel_va(section(5)),
        timeout: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cost::FIRST;

    fn official(tokens: u32) -> Pass {
        Pass::new(&Config::official(), PassSizes { ranks: 8, tokens, max_context: 4096 }).unwrap()
    }

    #[test]
    fn a_token_streams_every_weight_it_needs_once() {
        let pass = official(1);
        let layout = Layout::new(pass.config(), 8).unwrap();
        let config = pass.config();
        let experts: u64 = (0..93).filter_map(|layer| layout.experts(layer)).map(|table| table.count).sum();
        let table = layout.experts(1).unwrap();
        let expert: u64 = [ExpertMatrix::W1, ExpertMatrix::W2, ExpertMatrix::W3]
            .into_iter()
            .flat_map(|matrix| {
                [ExpertPart::Packed, ExpertPart::Scale].map(|part| table.inside(matrix, part).weight_bytes())
            })
            .sum();
        let moe_layers = 92;
        let row = 7168 * 2;
        let embedding = config.vocab_size as u64 / 8 * row;
        // Layer 0 mixes nothing before its attention: the pair of weights for it is loaded and never used.
        let unused = 2 * row;
        let expected = 196_784_365_296 - experts * expert + moe_layers * 16 * expert - embedding + row;
        let weights: u64 = pass.works(4095).iter().map(|work| work.weight_bytes).sum();
        assert!((expected - unused..=expected).contains(&weights), "{weights} of {expected}");
    }

    #[test]
    fn a_token_reads_all_latents_and_moves_every_state_twice() {
        let pass = official(1);
        let state: u64 = pass.works(4095).iter().map(|work| work.state_bytes).sum();
        let (latents, appended) = (24 * 4096 * 1152, 24 * 1152);
        let kda = 69 * 2 * 12 * (128 * 128 * 4 + 3 * 3 * 128 * 2);
        assert_eq!(state, latents + appended + kda);
    }

    #[test]
    fn the_kinds_of_layers_add_up_to_the_pass() {
        let pass = official(1);
        let kinds = pass.by_kind(4095);
        assert_eq!(
            kinds.iter().map(|kind| (kind.name, kind.layers)).collect::<Vec<_>>(),
            [("KDA + dense", 1), ("KDA + MoE", 68), ("MLA + MoE", 24), ("start and head", 1)]
        );
        let sum: Work = kinds.iter().map(|kind| kind.work).sum();
        assert_eq!(sum, pass.works(4095).into_iter().sum());
        let by_kernel: Work = pass.by_kernel(4095).into_iter().map(|(.., work)| work).sum();
        assert_eq!(by_kernel, sum);
    }

    #[test]
    fn flops_are_twice_the_parameters_a_token_touches_and_more_for_attention() {
        let pass = official(1);
        let flops: u64 = pass.works(0).iter().map(|work| work.flops).sum();
        // 105.3 G parameters touched, without the embedding's 1.2 G; what is replicated counts on every GPU.
        let least = 2.0 * 104.1e9 / 8.0;
        assert!((least..1.15 * least).contains(&(flops as f64)), "{flops}");
    }

    #[test]
    fn a_chunk_computes_as_much_as_its_tokens_do_one_by_one() {
        let (one, chunk) = (official(1), official(128));
        let flops = |pass: &Pass, position| pass.works(position).iter().map(|work| work.flops).sum::<u64>();
        let head = 2 * 163_840 / 8 * 7168;
        let single: u64 = (0..128).map(|position| flops(&one, position)).sum();
        assert_eq!(flops(&chunk, 0) - head, single - 128 * head, "but the chunk has logits of its last token alone");
    }

    #[test]
    fn the_fixed_costs_follow_the_counts() {
        let pass = official(1);
        let seconds = pass.time(4095, &FIRST, Form::Aql);
        assert!((seconds.dispatches - pass.launches.kernels.len() as f64 * 0.9e-6).abs() < 1e-9);
        assert!((seconds.collectives - pass.launches.collectives.len() as f64 * 4.4e-6).abs() < 1e-9);
        assert!(seconds.bytes > 18.9e9 / 6.4e12, "the roofline's bytes are among them: {seconds:?}");
    }

    use model::tensor::{ExpertMatrix, ExpertPart};
}
