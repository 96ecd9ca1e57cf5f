//! Who takes note of what nodes do.

use std::fmt;
use std::sync::Arc;

use quorate_core::trace::Record;
use tokio::sync::mpsc::UnboundedSender;

/// Takes note of every step of a node, one call for each.
///
/// A step is told when what it persists is kept, and before anything else that it wants done is
/// done. So where several nodes have the same witness, the order of the calls does not contradict
/// that of cause and effect, whatever the clocks say.
#[derive(Clone)]
pub struct Witness(Arc<dyn Fn(Record) + Send + Sync>);

impl Witness {
    /// A witness that does this for every step. The node waits for it.
    pub fn new(take: impl Fn(Record) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(crate) fn take(&self, record: Record) {
        (self.0)(record);
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").finish_non_exhaustive()
    }
}

impl From<UnboundedSender<Record>> for Witness {
    /// Nobody listening is no error.
    fn from(sender: UnboundedSender<Record>) -> Self {
        Self::new(move |record| {
            let _ = sender.send(record);
        })
    }
}
