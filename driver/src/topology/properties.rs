//! The text of a `properties` file: one `key value` per line.

use std::collections::BTreeMap;
use std::path::Path;

use super::node::SkipReason;
use crate::system::System;

/// The numbers of one file. Lines without a key and a number are passed over: newer kernels may add such.
pub(super) struct Properties {
    values: BTreeMap<String, u64>,
}

impl Properties {
    pub(super) fn parse(text: &str) -> Self {
        let values = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        });
        Self { values: values.collect() }
    }

    pub(super) fn read(system: &dyn System, path: &Path) -> Result<Self, SkipReason> {
        Ok(Self::parse(&text(system, path)?))
    }

    pub(super) fn get(&self, key: &str) -> Option<u64> {
        self.values.get(key).copied()
    }

    /// A number that must be there and fit.
    pub(super) fn required<T: TryFrom<u64>>(&self, key: &'static str) -> Result<T, SkipReason> {
        let value = self.get(key).ok_or(SkipReason::MissingKey { key })?;
        T::try_from(value).map_err(|_| SkipReason::Value { key, value })
    }

    /// A number that may be missing and then is zero.
    pub(super) fn optional<T: TryFrom<u64> + Default>(&self, key: &'static str) -> T {
        self.get(key).and_then(|value| T::try_from(value).ok()).unwrap_or_default()
    }
}

/// The whole text of a file of a node.
pub(super) fn text(system: &dyn System, path: &Path) -> Result<String, SkipReason> {
    let content = system
        .read_file(path)
        .map_err(|error| SkipReason::Unreadable { path: path.to_owned(), message: error.to_string() })?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}
