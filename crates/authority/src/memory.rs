//! The engine in memory: one lock around one register. Nothing survives the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_service::{Answer, Order, Register};
use tokio::sync::watch;

use crate::{Authority, Unknown};

/// A register in memory. Clones are the same register.
#[derive(Clone, Debug)]
pub struct Memory {
    register: Arc<Mutex<Register>>,
    committed: watch::Sender<Arc<Register>>,
}

impl Memory {
    /// An authority that begins with this register.
    #[must_use]
    pub fn new(register: Register) -> Self {
        let (committed, _) = watch::channel(Arc::new(register.clone()));
        Self { register: Arc::new(Mutex::new(register)), committed }
    }

    /// The register. An order cannot leave it half done: whoever panicked did so elsewhere.
    fn lock(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authority for Memory {
    fn watch(&self) -> watch::Receiver<Arc<Register>> {
        self.committed.subscribe()
    }

    async fn read(&self) -> Result<Arc<Register>, Unknown> {
        Ok(Arc::new(self.lock().clone()))
    }

    async fn order(&self, order: Order) -> Result<Answer, Unknown> {
        let mut register = self.lock();
        let answer = register.apply(&order);
        // Still under the lock, so that watchers see registers in the order they were made in.
        self.committed.send_replace(Arc::new(register.clone()));
        Ok(answer)
    }
}
