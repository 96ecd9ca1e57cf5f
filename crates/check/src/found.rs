//! Things found out while the tables can only be read, until they are put into them.

use std::sync::{Mutex, PoisonError};

/// How many shares of work there are at most: each keeps apart what it finds out.
pub(crate) const SHARES: usize = 16;

/// Things that were found out, apart for each share of the work, so that they can be put into the
/// tables in an order that does not depend on who did which share.
#[derive(Debug)]
pub(crate) struct Found<T>(Vec<Mutex<Vec<T>>>);

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self((0..SHARES).map(|_| Mutex::default()).collect())
    }
}

impl<T> Found<T> {
    /// Adds what was found out in a share.
    pub(crate) fn add(&self, share: usize, found: T) {
        self.0[share].lock().unwrap_or_else(PoisonError::into_inner).push(found);
    }

    /// Takes all that was found out in a share, in order.
    pub(crate) fn take(&mut self, share: usize) -> Vec<T> {
        std::mem::take(self.0[share].get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}
