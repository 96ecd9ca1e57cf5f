//! A gate that remembers for as long as its process lives.

use std::sync::Arc;
use std::time::Duration;

use crate::Fence;
use crate::doors::Doors;
use crate::gate::{Gate, NAMES_DEFAULT, NAMES_MAX, Pass, Refusal};
use crate::names::Names;

/// A gate in memory. It forgets everything when its process ends: it is for resources that do so too, a
/// connection to a device for instance. What outlives the process wants a [`FileGate`](crate::FileGate)
/// or a table beside the data ([`sql`](crate::sql)).
///
/// It knows so many names and no more. A gate that forgot one to make room for another would let the
/// forgotten one's old holders in, so it refuses the new name instead. [`raise_floor`](Self::raise_floor)
/// makes room.
///
/// ```
/// use std::time::Duration;
/// use quorate_fence::{Fence, Gate, MemoryGate, Refusal};
///
/// let gate = MemoryGate::new();
/// let (old, new) = (Fence::new(1, 7), Fence::new(1, 8));
///
/// let pass = gate.enter("turntable", old, Duration::ZERO)?;
/// // While the first one is at it, the next one waits; and from now on the first one is old.
/// let refused = gate.enter("turntable", new, Duration::ZERO).unwrap_err();
/// assert_eq!(refused, Refusal::Busy { inside: old });
/// drop(pass);
/// gate.enter("turntable", new, Duration::ZERO)?;
/// assert_eq!(gate.admit("turntable", old), Err(Refusal::Stale { seen: new }));
/// # Ok::<(), Refusal>(())
/// ```
#[derive(Debug)]
pub struct MemoryGate {
    doors: Arc<Doors>,
}

impl MemoryGate {
    /// A gate that knows nothing yet, and [`NAMES_DEFAULT`] names at most.
    #[must_use]
    pub fn new() -> Self {
        Self::with_names_max(NAMES_DEFAULT)
    }

    /// A gate that knows nothing yet, and so many names at most ([`NAMES_MAX`] if that is less).
    #[must_use]
    pub fn with_names_max(names_max: usize) -> Self {
        Self { doors: Doors::new(Names::new(names_max.min(NAMES_MAX)), None) }
    }

    /// Refuses everything below this from now on, whatever the name, and forgets the names for which
    /// that is enough.
    ///
    /// This refuses holders who have had their lock for long: a guard keeps the fence of its grant. Who
    /// is inside stays inside.
    pub fn raise_floor(&self, floor: Fence) {
        self.doors.lock().raise_floor(floor);
        self.doors.notify();
    }

    /// How many names it knows.
    #[must_use]
    pub fn names(&self) -> usize {
        self.doors.lock().len()
    }
}

impl Default for MemoryGate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate for MemoryGate {
    fn admit(&self, name: &str, fence: Fence) -> Result<(), Refusal> {
        self.doors.lock().admit(name, fence).map(|_| ())
    }

    fn enter(&self, name: &str, fence: Fence, wait: Duration) -> Result<Pass, Refusal> {
        self.admit(name, fence)?;
        self.doors.enter(name, fence, wait)
    }

    fn seen(&self, name: &str) -> Option<Fence> {
        self.doors.lock().seen(name)
    }

    fn highest(&self) -> Option<Fence> {
        self.doors.lock().highest()
    }
}
