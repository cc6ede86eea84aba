//! What a load tells those who wait for it.

/// Watches a load, and may stop it.
pub trait Progress: Sync {
    /// The load starts; `bytes` of weights have to be read.
    fn begin(&self, bytes: u64) {
        let _ = bytes;
    }

    /// `bytes` of them are in place. `layer` is the one being read, if it is one of a layer.
    fn advance(&self, bytes: u64, layer: Option<u16>) {
        let _ = (bytes, layer);
    }

    /// Something goes on in another way than asked for or hoped.
    fn notice(&self, text: &str) {
        tracing::warn!("{text}");
    }

    /// Whether to stop: asked ten times a second at least.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
