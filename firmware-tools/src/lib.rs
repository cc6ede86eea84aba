//! Parsers for AMD binary formats: code objects today.
