//! `MOCKKFD`: what machine the mock is.

use std::num::ParseIntError;

use crate::exec::MfmaOrder;
use crate::inspect::Inspect;

/// The machine to emulate, from the words of `MOCKKFD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// GPUs in the machine (`gpus=N`, 8 by default).
    pub gpus: usize,
    /// XCCs of each GPU (`xcc=N`, 8 by default).
    pub xccs: usize,
    /// Compute units of each XCC.
    pub compute_units: u32,
    /// Bytes of VRAM of each GPU (`vram=BYTES`, 288 GB by default).
    pub vram_bytes: u64,
    /// Order in which GPUs, XCCs, workgroups and waves advance (`seed=N`; 0 is first come, first served).
    pub seed: u64,
    /// Host threads that emulate (`threads=N`; all the host's processors by default).
    pub threads: usize,
    /// How matrix instructions accumulate, which is undocumented on gfx950 (`mfma=exact|sequential|pairwise|cdna3`).
    pub mfma: MfmaOrder,
    /// Consume packets and write signals, but execute no wave (`null`).
    pub null: bool,
    /// What to record for [`Mock::inspection`](crate::Mock::inspection); no word asks for it.
    pub inspect: Inspect,
    /// Look for what hardware would not tell (`check`); see [`crate::Mock::reports`].
    pub check: bool,
}

/// Words of `MOCKKFD` that make no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The word is not known.
    #[error(
        "MOCKKFD: unknown word `{0}`; known are 1, null, check, gpus=N, xcc=N, vram=BYTES, seed=N, threads=N, mfma=ORDER"
    )]
    UnknownWord(String),
    /// The value is no number.
    #[error("MOCKKFD: `{word}`: {error}")]
    NotANumber {
        /// The word.
        word: String,
        /// What is wrong with its value.
        error: ParseIntError,
    },
    /// The same is said twice.
    #[error("MOCKKFD: `{0}` is said twice")]
    Twice(String),
    /// There is no word at all.
    #[error("MOCKKFD is empty; set it to 1, or unset it for the host's own GPUs")]
    Empty,
    /// The value is a number this machine can't have.
    #[error("MOCKKFD: `{word}`: must be {allowed}")]
    OutOfRange {
        /// The word.
        word: String,
        /// What it may be.
        allowed: &'static str,
    },
}

impl Default for Config {
    fn default() -> Self {
        Self {
            gpus: 8,
            xccs: 8,
            compute_units: 32,
            // rocjitsu's MI350X configuration: 288 GiB of HBM3E less what firmware keeps.
            vram_bytes: 309_220_868_096,
            seed: 0,
            threads: std::thread::available_parallelism().map_or(1, Into::into),
            mfma: MfmaOrder::default(),
            null: false,
            inspect: Inspect::default(),
            check: false,
        }
    }
}

impl Config {
    /// Reads a comma-separated list such as `1` or `gpus=2,seed=7`.
    ///
    /// # Errors
    /// A word that is unknown or has an impossible value.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        if text.trim().is_empty() {
            return Err(ConfigError::Empty);
        }
        let mut known = std::collections::HashSet::new();
        for word in text.split(',').map(str::trim) {
            if !known.insert(word.split('=').next()) {
                return Err(ConfigError::Twice(word.into()));
            }
            let number = |value: &str| {
                value.parse::<u64>().map_err(|error| ConfigError::NotANumber { word: word.into(), error })
            };
            let within = |value: u64, allowed: std::ops::RangeInclusive<u64>, text| {
                if allowed.contains(&value) {
                    Ok(value)
                } else {
                    Err(ConfigError::OutOfRange { word: word.into(), allowed: text })
                }
            };
            match word.split_once('=') {
                None if word == "1" => {}
                None if word == "null" => config.null = true,
                None if word == "check" => config.check = true,
                Some(("gpus", value)) => config.gpus = within(number(value)?, 1..=8, "1 to 8")? as usize,
                Some(("xcc", value)) => {
                    let xccs = within(number(value)?, 1..=8, "1, 2, 4 or 8")?;
                    config.xccs = within(xccs, xccs.next_power_of_two()..=8, "1, 2, 4 or 8")? as usize;
                }
                Some(("vram", value)) => {
                    config.vram_bytes = within(number(value)?, 1 << 20..=1 << 40, "1 MiB to 1 TiB")?;
                }
                Some(("seed", value)) => config.seed = number(value)?,
                Some(("threads", value)) => config.threads = within(number(value)?, 1..=64, "1 to 64")? as usize,
                Some(("mfma", value)) => {
                    let allowed = "exact (the default), sequential, pairwise or cdna3";
                    config.mfma = value.parse().map_err(|()| ConfigError::OutOfRange { word: word.into(), allowed })?;
                }
                _ => return Err(ConfigError::UnknownWord(word.into())),
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_the_whole_machine() {
        assert_eq!(Config::parse("1"), Ok(Config::default()));
    }

    #[test]
    fn words_change_the_machine() {
        let config = Config::parse("gpus=2, xcc=1,vram=1048576,seed=9,threads=1,mfma=pairwise,null,check").unwrap();
        assert_eq!((config.gpus, config.xccs, config.vram_bytes), (2, 1, 1 << 20));
        assert_eq!((config.seed, config.threads, config.null, config.check), (9, 1, true, true));
        assert_eq!(config.mfma, MfmaOrder::Pairwise);
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        assert_eq!(Config::parse("gpu=2"), Err(ConfigError::UnknownWord("gpu=2".into())));
        assert_eq!(Config::parse("2"), Err(ConfigError::UnknownWord("2".into())));
        assert_eq!(Config::parse("1,,check"), Err(ConfigError::UnknownWord(String::new())));
        assert_eq!(Config::parse("gpus=2,gpus=3"), Err(ConfigError::Twice("gpus=3".into())));
        assert_eq!(Config::parse(""), Err(ConfigError::Empty));
        assert!(matches!(Config::parse("gpus=many"), Err(ConfigError::NotANumber { .. })));
        for word in ["gpus=0", "gpus=9", "xcc=3", "xcc=0", "threads=0", "vram=0", "mfma=fast"] {
            assert!(matches!(Config::parse(word), Err(ConfigError::OutOfRange { .. })), "{word}");
        }
    }
}
