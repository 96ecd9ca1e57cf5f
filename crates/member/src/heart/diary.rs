//! What is written down of guards, for the judge of faults.

use std::collections::BTreeMap;

use quorate_core::Time;
use quorate_service::history::{self, Fact};
use quorate_service::locks::{Fence, LockId, WishId};

use crate::history::History;
use crate::locks::SPACE;
use crate::roles::Seen;

/// What is written down of guards: when each was granted and given back, in the step that does so.
pub(crate) struct Diary {
    history: History,
    held: BTreeMap<WishId, (LockId, Fence)>,
}

impl Diary {
    pub(crate) const fn new(history: History) -> Self {
        Self { history, held: BTreeMap::new() }
    }

    pub(super) fn granted(&mut self, wish: WishId, lock: LockId, fence: Fence, until: Time) {
        let (space, name) = named(&lock);
        self.history.note(Fact::Granted { space, name, fence: written(fence), until });
        self.held.insert(wish, (lock, fence));
    }

    pub(super) fn dropped(&mut self, wish: WishId) {
        if let Some((lock, fence)) = self.held.remove(&wish) {
            let (space, name) = named(&lock);
            self.history.note(Fact::Dropped { space, name, fence: written(fence) });
        }
    }

    /// Of a role it is told who leads.
    pub(super) fn heard(&mut self, lock: &LockId, after: Option<Fence>, seen: &Seen) {
        let (role, after) = (lock.name.as_str().to_owned(), after.map(written));
        self.history.note(Fact::Heard { role, news: seen.written(after) });
    }
}

/// The name of a lock, and its namespace if it is not that of locks that name none.
fn named(lock: &LockId) -> (Option<String>, String) {
    let space = (lock.space.as_str() != SPACE).then(|| lock.space.as_str().to_owned());
    (space, lock.name.as_str().to_owned())
}

pub(crate) const fn written(fence: Fence) -> history::Fence {
    history::Fence { epoch: fence.epoch, counter: fence.counter }
}
