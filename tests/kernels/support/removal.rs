//! Running the launches of a test with something taken away, to see that it is noticed.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use driver::packets::aql::KernelDispatch;
use kernels::CodeObject;

/// How a panic about reports of the sanitizer begins.
pub(crate) const REPORTED: &str = "the sanitizer reports:";

thread_local! {
    static CODE: RefCell<Option<(&'static str, Vec<u8>)>> = const { RefCell::new(None) };
    static PACKET: Cell<Option<fn(&mut KernelDispatch)>> = const { Cell::new(None) };
}

/// Until it is dropped, launches of this thread use other code or packets.
pub(crate) struct Removal(());

impl Removal {
    /// Other bytes for the code object `name`.
    pub(crate) fn of_code(name: &'static str, bytes: Vec<u8>) -> Self {
        CODE.set(Some((name, bytes)));
        Self(())
    }

    /// Packets with a change.
    pub(crate) fn of_packets(change: fn(&mut KernelDispatch)) -> Self {
        PACKET.set(Some(change));
        Self(())
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        CODE.set(None);
        PACKET.set(None);
    }
}

pub(super) fn code(object: &CodeObject) -> Cow<'static, [u8]> {
    CODE.with_borrow(|changed| match changed {
        Some((name, bytes)) if *name == object.name => Cow::Owned(bytes.clone()),
        _ => Cow::Borrowed(object.bytes),
    })
}

pub(super) fn change_packet(packet: &mut KernelDispatch) {
    if let Some(change) = PACKET.get() {
        change(packet);
    }
}

/// Whether something is taken away, so that a kernel may wait for ever.
pub(super) fn is_active() -> bool {
    PACKET.get().is_some() || CODE.with_borrow(Option::is_some)
}
