//! `kimi-hcq mock disasm`

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use firmware_tools::code_object::CodeObject;
use mock::listing::{INVALID, Line, lines, listings};
use serde::Serialize;

use super::output::refused;
use crate::failure::Failure;

/// Arguments of the command.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Arguments {
    /// A code object, alone or in a bundle or host program.
    file: Option<PathBuf>,
    /// Instructions in hex, bytes in memory order.
    #[arg(long)]
    hex: Option<String>,
    /// A file with one instruction in hex a line; `-` is standard input. One line of text for each.
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
}

/// One instruction of a code object or of `--hex`.
#[derive(Serialize)]
struct Instruction<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    symbol: &'a str,
    /// Offset in the code object's image, or from the start.
    address: u64,
    bytes: String,
    size: u64,
    text: String,
}

/// One line of `--lines`.
#[derive(Serialize)]
struct Answer<'a> {
    bytes: &'a str,
    /// Bytes of the instruction; zero if there is none.
    size: u64,
    text: &'a str,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    if let Some(path) = &arguments.lines {
        each_line(path, json, &mut out)?;
    } else if let Some(hex) = &arguments.hex {
        let bytes = unhex(hex)
            .ok_or_else(|| Failure::Input("--hex: not pairs of hexadecimal digits, four bytes a dword".into()))?;
        for line in lines(&bytes, 0) {
            write_line(&mut out, "", &line, json)?;
        }
    } else if let Some(path) = &arguments.file {
        let bytes = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
        let object = CodeObject::parse(&bytes).map_err(Failure::input)?;
        code_object(&object, json, &mut out)?;
    }
    out.flush().map_err(|error| refused(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn code_object(object: &CodeObject, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    for (i, listing) in listings(object).iter().enumerate() {
        if json {
            for line in &listing.lines {
                write_line(out, &listing.symbol, line, json)?;
            }
            continue;
        }
        let blank = if i > 0 { "\n" } else { "" };
        write!(out, "{blank}{listing}").map_err(|error| refused(&error))?;
    }
    Ok(())
}

fn write_line(out: &mut impl Write, symbol: &str, line: &Line, json: bool) -> Result<(), Failure> {
    if !json {
        return writeln!(out, "{}", line.text()).map_err(|error| refused(&error));
    }
    let bytes = line.words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect();
    let instruction = Instruction { symbol, address: line.offset, bytes, size: line.bytes(), text: line.text() };
    write_json(out, &instruction)
}

fn each_line(path: &Path, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(std::fs::File::open(path).map_err(|error| cannot_read(path, &error))?))
    };
    for line in input.lines() {
        let line = line.map_err(|error| cannot_read(path, &error))?;
        let first = unhex(&line).and_then(|bytes| lines(&bytes, 0).into_iter().next());
        let decoded = first.filter(|line| line.inst.is_some());
        let (size, text) = decoded.map_or((0, INVALID.into()), |line| (line.bytes(), line.text()));
        if json {
            write_json(out, &Answer { bytes: line.trim(), size, text: &text })?;
        } else {
            writeln!(out, "{text}").map_err(|error| refused(&error))?;
        }
    }
    Ok(())
}

fn write_json(out: &mut impl Write, object: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(object).map_err(Failure::run)?;
    writeln!(out, "{line}").map_err(|error| refused(&error))
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::Input(format!("cannot read {}: {error}", path.display()))
}

/// Whole dwords from hex digits, white space left out.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !digits.len().is_multiple_of(8) {
        return None;
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    digits.as_chunks::<2>().0.iter().map(|&[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect()
}
