//! A state as a row of numbers, with a fingerprint that follows every change.
//!
//! A row holds the number of the audience, the faults still allowed, the number of each node's
//! state, and the messages in flight. Its fingerprint is the sum, modulo 2^64, of one well mixed
//! word for each entry and its place, so that a step that changes three entries costs three words
//! and not a pass over the state. Pieces are named exactly (equal numbers mean equal pieces), so only
//! the sum itself can collide: with n states about n²/2^65 times, which for the default bound of
//! fifty million states is less than once in ten thousand searches.

use crate::plan::{Network, Plan};
use crate::tables::Route;

/// Where in a row the number of the audience stands.
pub(crate) const AUDIENCE: usize = 0;
/// Where in a row the faults still allowed stand, one byte each.
pub(crate) const BUDGET: usize = 1;
/// Where in a row the nodes begin; after them come the messages.
pub(crate) const NODES: usize = 2;

/// A kind of fault or repair that a plan limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limited {
    Crash,
    Recovery,
    Loss,
    Duplicate,
}

impl Limited {
    const fn unit(self) -> u32 {
        1 << (8 * self as u32)
    }

    /// How many are still allowed.
    pub(crate) const fn left(self, budget: u32) -> u32 {
        budget / self.unit() % (1 << 8)
    }

    /// So many of them, in the form of a budget.
    ///
    /// # Panics
    /// If there are more than a byte can count.
    pub(crate) const fn times(self, count: u32) -> u32 {
        assert!(count < 1 << 8, "at most 255 faults of a kind can be explored");
        count * self.unit()
    }
}

/// A state in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) row: Vec<u32>,
    pub(crate) fingerprint: u64,
}

impl Draft {
    /// The state in which nobody has come up, with this audience and these nodes.
    ///
    /// # Panics
    /// If the plan allows more than 255 faults of a kind.
    pub(crate) fn asleep(audience: u32, plan: &Plan, nodes: impl Iterator<Item = u32>) -> Self {
        let mut row = vec![0; NODES];
        row[AUDIENCE] = audience;
        row[BUDGET] = Limited::Crash.times(plan.crashes)
            + Limited::Recovery.times(plan.recoveries)
            + Limited::Loss.times(plan.losses)
            + Limited::Duplicate.times(plan.duplicates);
        row.extend(nodes);
        Self::new(row)
    }

    /// A state without messages.
    fn new(row: Vec<u32>) -> Self {
        let fingerprint = row
            .iter()
            .enumerate()
            .fold(0u64, |sum, (place, &entry)| sum.wrapping_add(mixed(place as u32, entry)));
        Self { row, fingerprint }
    }

    /// Becomes a copy of a state.
    pub(crate) fn copy(&mut self, row: &[u32], fingerprint: u64) {
        self.row.clear();
        self.row.extend_from_slice(row);
        self.fingerprint = fingerprint;
    }

    /// Changes an entry that is not a message.
    pub(crate) fn set(&mut self, place: usize, entry: u32) {
        let before = std::mem::replace(&mut self.row[place], entry);
        self.subtract(place as u32, before);
        self.add(place as u32, entry);
    }

    /// Takes one from the faults still allowed.
    pub(crate) fn spend(&mut self, what: Limited) {
        self.set(BUDGET, self.row[BUDGET] - what.unit());
    }

    fn add(&mut self, place: u32, entry: u32) {
        self.fingerprint = self.fingerprint.wrapping_add(mixed(place, entry));
    }

    fn subtract(&mut self, place: u32, entry: u32) {
        self.fingerprint = self.fingerprint.wrapping_sub(mixed(place, entry));
    }
}

/// How messages stand in a row: sorted, so that equal sets of messages are equal rows; with links
/// that keep the order, by link and then in the order of sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mail {
    /// Where in a row the messages begin.
    pub(crate) start: usize,
    pub(crate) network: Network,
}

/// The place of a message in a fingerprint, beyond those of all other entries; behind it, so many
/// places in a queue can be told apart.
const MESSAGES: u32 = 1 << 24;

impl Mail {
    /// Puts a message into the state.
    pub(crate) fn put(self, draft: &mut Draft, message: u32, route: impl Fn(u32) -> Route) {
        let mail = &draft.row[self.start..];
        let (place, ahead) = match self.network {
            Network::Unordered => (mail.partition_point(|&other| other <= message), 0),
            Network::Fifo => {
                let link = route(message).link;
                let first = mail.partition_point(|&other| route(other).link < link);
                let end = mail.partition_point(|&other| route(other).link <= link);
                (end, (end - first) as u32)
            }
        };
        draft.row.insert(self.start + place, message);
        draft.add(MESSAGES + ahead, message);
    }

    /// Takes the message in a place of the row out of the state; with links that keep the order,
    /// one that is the first on its link.
    pub(crate) fn take(self, draft: &mut Draft, place: usize, route: impl Fn(u32) -> Route) {
        let message = draft.row.remove(place);
        draft.subtract(MESSAGES, message);
        if self.network == Network::Unordered {
            return;
        }
        let link = route(message).link;
        for (moved, behind) in (place..draft.row.len()).enumerate() {
            let message = draft.row[behind];
            if route(message).link != link {
                break;
            }
            draft.subtract(MESSAGES + moved as u32 + 1, message);
            draft.add(MESSAGES + moved as u32, message);
        }
    }

    /// Puts a second copy of the message in a place of the row beside it, under the same condition.
    pub(crate) fn double(self, draft: &mut Draft, place: usize, route: impl Fn(u32) -> Route) {
        let message = draft.row[place];
        if self.network == Network::Fifo {
            let link = route(message).link;
            for (ahead, behind) in (place..draft.row.len()).enumerate() {
                let message = draft.row[behind];
                if route(message).link != link {
                    break;
                }
                draft.subtract(MESSAGES + ahead as u32, message);
                draft.add(MESSAGES + ahead as u32 + 1, message);
            }
        }
        draft.row.insert(place, message);
        draft.add(MESSAGES, message);
    }
}

/// A word that depends on all bits of place and entry: the finaliser of SplitMix64 (Steele, Lea,
/// Flood 2014), twice, so that sums of neighbouring entries show no pattern.
const fn mixed(place: u32, entry: u32) -> u64 {
    let once = finalised((place as u64) << 32 | entry as u64);
    finalised(once ^ 0x9e37_79b9_7f4a_7c15)
}

const fn finalised(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: usize = NODES + 2;

    /// Even messages run on one link, odd ones on the other.
    fn route(message: u32) -> Route {
        Route { from: 0, to: 0, link: message % 2 }
    }

    fn state(network: Network, messages: &[u32]) -> Draft {
        let mut draft = Draft::new(vec![7, 0, 3, 4]);
        let mail = Mail { start: START, network };
        messages.iter().for_each(|&message| mail.put(&mut draft, message, route));
        draft
    }

    #[test]
    fn unordered_messages_are_a_multiset() {
        let (one, other) = ([5, 2, 5, 4], [4, 5, 5, 2]);
        let (one, other) = (state(Network::Unordered, &one), state(Network::Unordered, &other));
        assert_eq!((&one.row, one.fingerprint), (&other.row, other.fingerprint));
        assert_ne!(one.fingerprint, state(Network::Unordered, &[5, 2, 4]).fingerprint);
    }

    #[test]
    fn links_keep_their_order_and_no_other() {
        let one = state(Network::Fifo, &[4, 2, 5]);
        let other = state(Network::Fifo, &[5, 4, 2]);
        assert_eq!((&one.row, one.fingerprint), (&other.row, other.fingerprint));
        assert_ne!(one.fingerprint, state(Network::Fifo, &[2, 4, 5]).fingerprint);
    }

    #[test]
    fn fingerprints_follow_every_change() {
        for network in [Network::Unordered, Network::Fifo] {
            let mail = Mail { start: START, network };
            let mut draft = state(network, &[4, 6, 8, 5]);
            mail.take(&mut draft, START, route);
            let taken = draft.row[START..].to_vec();
            assert_eq!(draft.fingerprint, state(network, &taken).fingerprint);
            mail.double(&mut draft, START, route);
            let doubled = draft.row[START..].to_vec();
            assert_eq!(draft.fingerprint, state(network, &doubled).fingerprint);
            draft.set(NODES, 9);
            draft.set(NODES, 3);
            assert_eq!(draft.fingerprint, state(network, &doubled).fingerprint);
        }
    }
}
