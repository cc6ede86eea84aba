//! `kimi-hcq perplexity`

use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::model::ModelArguments;
use super::output::{print_json, say};
use super::reports;
use crate::engine::Options;
use crate::failure::Failure;
use crate::perplexity::negative_log_likelihood;
use crate::platform::{MOCK_VARIABLE, Platform};

/// Arguments of the command.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    /// JSON file with `documents`, each with `tokens`.
    #[arg(long, value_name = "FILE")]
    documents: PathBuf,
}

#[derive(Deserialize)]
struct File {
    documents: Vec<Document>,
}

#[derive(Deserialize)]
struct Document {
    tokens: Vec<u32>,
}

#[derive(Serialize)]
struct Report {
    mean_nll: f64,
    predicted: usize,
    documents: Vec<DocumentReport>,
}

#[derive(Serialize)]
struct DocumentReport {
    nll_sum: f64,
    predicted: usize,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let path = &arguments.documents;
    let refuse = |problem: String| Failure::Input(format!("{}: {problem}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
    if !file.documents.iter().any(|document| document.tokens.len() > 1) {
        return Err(refuse("no document has two tokens, so nothing is predicted".into()));
    }
    let platform = Platform::open()?;
    if platform.executes_nothing() {
        return Err(refuse(format!("{MOCK_VARIABLE}=null executes nothing, so nothing is predicted")));
    }
    let result = predict(arguments, &file, &platform, json);
    reports::end(&platform, false, result.map(|()| ExitCode::SUCCESS))
}

fn predict(arguments: &Arguments, file: &File, platform: &Platform, json: bool) -> Result<(), Failure> {
    let (checkpoint, _) = arguments.model.open(platform)?;
    let vocabulary = checkpoint.config().vocab_size;
    let mut tokens = file.documents.iter().flat_map(|document| &document.tokens);
    if let Some(token) = tokens.find(|&&token| token as usize >= vocabulary) {
        return Err(Failure::Input(format!(
            "{}: token {token}; the model has {vocabulary}",
            arguments.documents.display()
        )));
    }
    let options = Options { all_logits: true, ..arguments.model.options() };
    let mut engine = arguments.model.start(platform, &checkpoint, options)?;
    let mut documents = Vec::new();
    for document in &file.documents {
        let (nll_sum, predicted) = negative_log_likelihood(&mut engine, &document.tokens)?;
        if !json {
            say!("{predicted:6} tokens predicted, mean NLL {:.5}", nll_sum / predicted.max(1) as f64);
        }
        documents.push(DocumentReport { nll_sum, predicted });
    }
    let predicted = documents.iter().map(|document| document.predicted).sum();
    let sum: f64 = documents.iter().map(|document| document.nll_sum).sum();
    let mean_nll = sum / predicted as f64;
    if json {
        print_json(&Report { mean_nll, predicted, documents })?;
    } else {
        say!("{predicted:6} tokens predicted in all, mean NLL {mean_nll:.6}, perplexity {:.5}", mean_nll.exp());
    }
    Ok(())
}
