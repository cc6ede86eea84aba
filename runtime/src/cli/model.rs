//! What commands that load a model have in common.

use std::path::PathBuf;

use model::checkpoint::Checkpoint;
use model::config::Config;
use model::tokenizer::Tokenizer;

use super::load::Bar;
use crate::engine::{Engine, Options};
use crate::failure::Failure;
use crate::forward::Collectives;
use crate::graph::{Form, KernelSet};
use crate::platform::Platform;
use crate::self_test;

/// Which model, on how many GPUs, with how much context.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct ModelArguments {
    /// Folder of a Kimi K3 checkpoint. On an emulated machine the bundled K3-nano is the default.
    #[arg(long, env = "KIMI_HCQ_MODEL")]
    model: Option<PathBuf>,
    /// GPUs to split the model over.
    #[arg(long, default_value_t = 8, value_parser = parse_devices)]
    pub(super) devices: usize,
    /// Tokens of context, prompt and answer together.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(super) max_context: u32,
    /// Tokens of a prefill run.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=2048))]
    chunk: u32,
    /// How runs are submitted: a packet a kernel, or one packet that runs a resident indirect buffer (unproven on
    /// hardware).
    #[arg(long, value_enum, default_value_t = SubmitForm::Aql)]
    submit: SubmitForm,
    /// How GPUs exchange values: in one launch with a flag on every value, or in two with a signal a peer (slower; a
    /// fallback and a check).
    #[arg(long, value_enum, default_value_t = CollectiveForm::OneShot)]
    collectives: CollectiveForm,
    /// Tokens worked on ahead of the one waited for, at most; those after a stop token are thrown away.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    run_ahead: u16,
    /// Serve without comparing what the kernels compute with known bits first.
    #[arg(long)]
    no_self_test: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SubmitForm {
    Aql,
    Ib,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CollectiveForm {
    OneShot,
    Signals,
}

pub(super) fn parse_devices(text: &str) -> Result<usize, String> {
    match text {
        "1" | "2" | "4" | "8" => text.parse().map_err(|error| format!("{error}")),
        _ => Err("1, 2, 4 or 8".into()),
    }
}

/// The checkpoint that comes with the source.
const BUNDLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/k3-nano");

impl ModelArguments {
    /// The folder of the model.
    pub(super) fn folder(&self, platform: &Platform) -> Result<PathBuf, Failure> {
        self.folder_on(platform.is_emulated())
    }

    /// The folder of the model, on an emulated machine or not.
    pub(super) fn folder_on(&self, emulated: bool) -> Result<PathBuf, Failure> {
        match &self.model {
            Some(folder) => Ok(folder.clone()),
            None if emulated => Ok(BUNDLED.into()),
            None => Err(Failure::Input("which model? Give --model DIR or set KIMI_HCQ_MODEL".into())),
        }
    }

    /// Tokens of a prefill run.
    pub(super) fn chunk(&self) -> u32 {
        self.chunk.min(self.max_context)
    }

    /// That the model was made for so much context.
    pub(super) fn check_context(&self, config: &Config) -> Result<(), Failure> {
        if self.max_context as usize > config.max_context {
            return Err(Failure::Input(format!(
                "--max-context {} is more than the model's {}",
                self.max_context, config.max_context
            )));
        }
        Ok(())
    }

    /// Reads everything about the model that is not weights.
    pub(super) fn open(&self, platform: &Platform) -> Result<(Checkpoint, Tokenizer), Failure> {
        let folder = self.folder(platform)?;
        let config = Config::read(&folder).map_err(Failure::input)?;
        self.check_context(&config)?;
        let checkpoint = Checkpoint::open(&folder, &config).map_err(Failure::input)?;
        let tokenizer = Tokenizer::read(&folder, &config).map_err(Failure::input)?;
        Ok((checkpoint, tokenizer))
    }

    /// How the engine is to be set up.
    pub(super) fn options(&self) -> Options {
        Options {
            devices: self.devices,
            max_context: self.max_context,
            chunk: self.chunk(),
            form: match self.submit {
                SubmitForm::Aql => Form::Aql,
                SubmitForm::Ib => Form::Ib,
            },
            collectives: match self.collectives {
                CollectiveForm::OneShot => Collectives::OneShot,
                CollectiveForm::Signals => Collectives::Signals,
            },
            run_ahead: self.run_ahead.into(),
            ..Options::default()
        }
    }

    /// Tests the GPUs and loads the model.
    pub(super) fn start(
        &self,
        platform: &Platform,
        checkpoint: &Checkpoint,
        options: Options,
    ) -> Result<Engine, Failure> {
        if !self.no_self_test {
            self_test::check(platform, self.devices, &KernelSet::default())?;
        }
        let bar = Bar::default();
        let engine = Engine::start(platform, checkpoint, options, &bar)?;
        bar.end();
        Ok(engine)
    }
}
