use std::sync::Arc;

use crate::machine::launch::Launch;

/// Something that happens outside of waves.
pub(crate) enum Event<'a> {
    /// A dispatch has started: its workgroups are about to be admitted.
    LaunchStarted(&'a Arc<Launch>),
    /// All of a dispatch's workgroups have ended.
    LaunchEnded(&'a Arc<Launch>),
}
