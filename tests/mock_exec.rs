//! `kimi-hcq mock exec` from the outside.
