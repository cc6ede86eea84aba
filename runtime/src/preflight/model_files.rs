//! Config, tokenizer, index, headers, and the memory they ask for.

use std::time::Instant;

use driver::address::Bytes;
use model::checkpoint::CheckpointError;
use model::config::{Attention, FeedForward};
use model::{Checkpoint, Config, ConfigError, Layout, Tokenizer};

use super::{Report, Request, Topic, size};
use crate::failure::Failure;
use crate::plan::{MemoryPlan, Sizes};

/// What the files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// Shards.
    pub shards: usize,
    /// Tensors of the text half.
    pub text_tensors: usize,
    /// Their bytes.
    pub text_bytes: u64,
    /// Tensors of the vision half, which is not loaded.
    pub vision_tensors: usize,
    /// Their bytes.
    pub vision_bytes: u64,
    /// Bytes of weights on each GPU, padding apart; zero if the model cannot be split as asked for.
    pub bytes_per_gpu: u64,
    /// VRAM of a GPU that the plan was made for.
    pub vram_bytes: u64,
    /// The longest context that fits, if any does.
    pub largest_context: Option<u32>,
}

/// One use of a GPU's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    /// For what.
    pub name: &'static str,
    /// How much. Negative only for head-room that is not there.
    pub bytes: i64,
}

/// Checks the files and plans memory; gives back the checkpoint if it is one.
pub(super) fn check(report: &mut Report, request: &Request, vram: Bytes) -> Option<Checkpoint> {
    let config = check_config(report, request)?;
    match Tokenizer::read(&request.folder, &config) {
        Ok(tokenizer) => {
            report.ok(Topic::Model, format!("tokenizer: {} tokens, as config.json says", tokenizer.size()))
        }
        Err(error) => report.warn(
            Topic::Model,
            format!("tokenizer: {}", Failure::input(error)),
            "a load starts without it, answers do not: download tiktoken.model and tokenizer_config.json again",
        ),
    }
    let checkpoint = check_tensors(report, request, &config);
    let layout = match Layout::new(&config, request.sizes.ranks) {
        Ok(layout) => layout,
        Err(error) => {
            report.fail(Topic::Memory, error.to_string());
            return checkpoint;
        }
    };
    let checkpoint = checkpoint?;
    let inventory = checkpoint.inventory();
    let sizes = layout.sizes();
    let plan = MemoryPlan::new(&config, &layout, request.sizes);
    report.plan = rows(&plan, &layout, vram);
    let largest_context = largest_context(&config, &layout, request.sizes, vram);
    report.model = Some(ModelFacts {
        shards: checkpoint.shards().len(),
        text_tensors: inventory.len(),
        text_bytes: inventory.iter().filter_map(|id| inventory.spec(id)).map(|spec| spec.bytes()).sum(),
        vision_tensors: checkpoint.vision().tensors,
        vision_bytes: checkpoint.vision().bytes,
        bytes_per_gpu: sizes.weights,
        vram_bytes: vram.get(),
        largest_context,
    });
    check_memory(report, &plan, vram, largest_context);
    Some(checkpoint)
}

fn check_config(report: &mut Report, request: &Request) -> Option<Config> {
    let config = match Config::read(&request.folder) {
        Ok(config) => config,
        Err(ConfigError::Verify(wrong)) => {
            for field in wrong.0 {
                report.fail_with(
                    Topic::Model,
                    format!("config.json: {} is {}", field.field, field.found),
                    format!("it must be {}: this program runs Kimi K3 only", field.expected),
                );
            }
            return None;
        }
        Err(error) => {
            report.fail(Topic::Model, Failure::input(error).to_string());
            return None;
        }
    };
    let count = |kind| config.layers.iter().filter(|layer| layer.attention == kind).count();
    let moe = config.layers.iter().filter(|layer| layer.feed_forward == FeedForward::Moe).count();
    let (kda, mla) = (&config.kda, &config.mla);
    let lines = [
        format!(
            "{} layers of width {}, vocabulary {}, context {}",
            config.layers.len(),
            config.hidden_size,
            config.vocab_size,
            config.max_context
        ),
        format!("{} KDA layers: {} heads of {}", count(Attention::Kda), kda.heads, kda.head_dim),
        format!(
            "{} MLA layers: {} heads, ranks {} and {}, {} + {} and {} a head",
            count(Attention::Mla),
            mla.heads,
            mla.q_rank,
            mla.kv_rank,
            mla.nope_dim,
            mla.rope_dim,
            mla.v_dim
        ),
        format!(
            "{moe} layers of {} experts, {} a token, width {}, latent {}, shared {}; MXFP4 in groups of {}",
            config.moe.experts,
            config.moe.experts_per_token,
            config.moe.expert_width,
            config.moe.latent_size,
            config.moe.shared_width,
            model::config::MXFP4_GROUP
        ),
    ];
    for line in lines {
        report.ok(Topic::Model, format!("config.json: {line}"));
    }
    if request.sizes.max_context as usize > config.max_context {
        report.fail_with(
            Topic::Memory,
            format!("--max-context {} is more than the model's {}", request.sizes.max_context, config.max_context),
            "ask for less",
        );
    }
    Some(config)
}

fn check_tensors(report: &mut Report, request: &Request, config: &Config) -> Option<Checkpoint> {
    let start = Instant::now();
    match Checkpoint::open(&request.folder, config) {
        Ok(checkpoint) => {
            let (text, vision) = (checkpoint.inventory().len(), checkpoint.vision());
            report.ok(
                Topic::Model,
                format!(
                    "index and headers of {} shards agree: {} tensors, {text} of text and {} of vision, each once, of \
                     the right type and shape ({:.1} s)",
                    checkpoint.shards().len(),
                    text + vision.tensors,
                    vision.tensors,
                    start.elapsed().as_secs_f64()
                ),
            );
            Some(checkpoint)
        }
        Err(CheckpointError::MatchTensors(found)) => {
            for disagreement in &found.first {
                report.fail_with(Topic::Model, disagreement.to_string(), "download index and shards again");
            }
            if found.count > found.first.len() {
                report.fail(Topic::Model, format!("and {} more disagreements", found.count - found.first.len()));
            }
            None
        }
        Err(error) => {
            report.fail(Topic::Model, Failure::input(error).to_string());
            None
        }
    }
}

fn rows(plan: &MemoryPlan, layout: &Layout, vram: Bytes) -> Vec<PlanRow> {
    let sizes = layout.sizes();
    let of = |name, bytes: u64| PlanRow { name, bytes: bytes as i64 };
    vec![
        of("weights", sizes.weights),
        of("row padding", sizes.row_padding),
        of("alignment", sizes.alignment),
        of("MLA cache", plan.cache.bytes().get()),
        of("KDA state", plan.state.bytes().get()),
        of("workspace", plan.workspace.bytes().get()),
        of("mailboxes", plan.exchange.bytes().get()),
        PlanRow { name: "head-room", bytes: vram.get() as i64 - plan.vram_bytes().get() as i64 },
    ]
}

/// The longest context whose plan fits; a plan never gets smaller with more context.
fn largest_context(config: &Config, layout: &Layout, sizes: Sizes, vram: Bytes) -> Option<u32> {
    let fits = |max_context: u32| {
        let chunk = sizes.chunk.min(max_context);
        MemoryPlan::new(config, layout, Sizes { max_context, chunk, ..sizes }).vram_bytes() <= vram
    };
    let (mut fitting, mut too_long) = (0, config.max_context as u32 + 1);
    while too_long - fitting > 1 {
        let middle = fitting + (too_long - fitting) / 2;
        if fits(middle) { fitting = middle } else { too_long = middle }
    }
    (fitting > 0).then_some(fitting)
}

fn check_memory(report: &mut Report, plan: &MemoryPlan, vram: Bytes, largest_context: Option<u32>) {
    let (needed, context) = (plan.vram_bytes(), plan.sizes.max_context);
    let gpus = plan.sizes.ranks;
    if needed <= vram {
        let longest = largest_context.unwrap_or(context);
        report.ok(
            Topic::Memory,
            format!(
                "{} of {} on each of {gpus} GPUs at a context of {context}; up to {longest} fit",
                size(needed),
                size(vram)
            ),
        );
        return;
    }
    let fix = match largest_context {
        Some(longest) => format!("--max-context {longest} fits"),
        None => "use more --devices: the weights alone are too much".into(),
    };
    report.fail_with(
        Topic::Memory,
        format!("{} are needed of {} on each of {gpus} GPUs at a context of {context}", size(needed), size(vram)),
        fix,
    );
}
