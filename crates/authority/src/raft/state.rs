//! What the entries of the log do: the register, and which orders were done.

use std::collections::BTreeMap;

use quorate_core::Span;
use quorate_service::{Answer, Order, Register, Settings};
use serde::{Deserialize, Serialize};

use super::wire::Members;

/// What tells one order from any other one. Those of one voter grow, also over its restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct OrderId {
    /// The voter that it was given to.
    pub voter: u64,
    /// Which start of that voter.
    pub boot: u64,
    /// Its number since then.
    pub number: u64,
}

/// The state that all voters have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct State {
    /// The register.
    pub register: Register,
    /// The last order of each voter that was done. An order is done only if it is later than this, so
    /// one that was doubled on its way is done once, and one that was overtaken never. Those of voters
    /// that were removed stay: a second copy of an order may still be under way.
    done: BTreeMap<u64, (u64, u64)>,
}

impl State {
    /// A state that begins with this register.
    #[must_use]
    pub const fn new(register: Register) -> Self {
        Self { register, done: BTreeMap::new() }
    }

    /// The state of who has not heard from anybody yet: before every founding.
    #[must_use]
    pub const fn blank() -> Self {
        Self::new(Register::founded(0, Settings { lease: Span(0) }))
    }

    /// Does an order, unless it was done or overtaken.
    pub fn apply(&mut self, id: OrderId, order: &Order) -> Option<Answer> {
        let now = (id.boot, id.number);
        let last = self.done.entry(id.voter).or_default();
        if now <= *last {
            return None;
        }
        *last = now;
        Some(self.register.apply(order))
    }

    /// The boot and the number of the last order of this voter that was done.
    pub(super) fn last_of(&self, voter: u64) -> (u64, u64) {
        self.done.get(&voter).copied().unwrap_or_default()
    }
}

/// How far the log was applied, and what came of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// The last index that is in it.
    pub index: u64,
    /// Who takes part as of there.
    pub members: Members,
    /// The state there.
    pub state: State,
}
