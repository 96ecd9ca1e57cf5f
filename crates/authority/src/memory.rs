//! The engine in memory: one lock around one register. Nothing survives the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_service::{Answer, Committed, Order, Register, Revision};
use tokio::sync::watch;

use crate::{Authority, Unknown};

/// A register in memory. Clones are the same register.
#[derive(Clone, Debug)]
pub struct Memory {
    committed: Arc<Mutex<Committed>>,
    told: watch::Sender<Committed>,
}

impl Memory {
    /// An authority that begins with this register.
    #[must_use]
    pub fn new(register: Register) -> Self {
        let committed = Committed { revision: Revision(0), register: Arc::new(register) };
        let (told, _) = watch::channel(committed.clone());
        Self { committed: Arc::new(Mutex::new(committed)), told }
    }

    /// The register. An order cannot leave it half done: whoever panicked did so elsewhere.
    fn lock(&self) -> MutexGuard<'_, Committed> {
        self.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authority for Memory {
    fn watch(&self) -> watch::Receiver<Committed> {
        self.told.subscribe()
    }

    async fn read(&self) -> Result<Arc<Register>, Unknown> {
        Ok(Arc::clone(&self.lock().register))
    }

    async fn order(&self, order: Order) -> Result<Answer, Unknown> {
        let mut committed = self.lock();
        let answer = Arc::make_mut(&mut committed.register).apply(&order);
        committed.revision.0 += 1;
        // Still under the lock, so that watchers see registers in the order they were made in.
        self.told.send_replace(committed.clone());
        Ok(answer)
    }
}
