//! What seats are told, as the oracle sees it: lives, guards, and that nobody passes a view.

use alloc::format;
use alloc::vec::Vec;

use quorate_core::{Clocks, Life, NodeId, Time};

use super::{Found, Living, Promises};
use crate::register::Epoch;
use crate::seat;

impl Promises {
    pub(super) fn on_seat(
        &mut self,
        clocks: &dyn Clocks,
        at: NodeId,
        event: &seat::Event,
        found: &mut Found,
    ) {
        match event {
            seat::Event::Register(deed) => self.on_deed(clocks, deed, found),
            seat::Event::Lives(life) => self.on_lives(at, *life, found),
            seat::Event::Installed { epoch, life, members } => {
                self.on_installed(at, *epoch, *life, members, found);
            }
            seat::Event::Stopped(epoch) => {
                if let Some(living) = self.living(at) {
                    living.sits = Some((*epoch, true));
                }
            }
            seat::Event::Presides { epoch, until } => {
                self.presiding.insert(at);
                self.presided.insert(at);
                if self.last().map(|(last, _)| last) != Some(*epoch) {
                    let text =
                        format!("node {at} begins to preside over view {}, which is over", epoch.0);
                    found.add("stop_before_decide", text);
                }
                self.check_lives(at, "presides", found);
                self.guard(clocks, at, *until, found);
            }
            seat::Event::Until(until) => {
                self.check_lives(at, "renews", found);
                if let Some(living) = self.living(at) {
                    living.until = living.until.max(*until);
                }
                if self.presiding.contains(at) {
                    self.guard(clocks, at, *until, found);
                }
            }
            seat::Event::Lost => _ = self.presiding.remove(at),
            // Whoever is told neither goes on with what it began in its last life.
            seat::Event::Out(_) => self.well = false,
            seat::Event::Left => {}
        }
    }

    /// The life of the process at a node, if it is still one.
    fn living(&mut self, at: NodeId) -> Option<&mut Living> {
        self.at[at].and_then(|life| self.lives.get_mut(&life))
    }

    fn check_lives(&self, at: NodeId, what: &str, found: &mut Found) {
        if let Some(life) = self.at[at].filter(|life| !self.lives.contains_key(life)) {
            found.add("lives", format!("life {life:?} at node {at} is over, and {what}"));
        }
    }

    fn on_lives(&mut self, at: NodeId, life: Life, found: &mut Found) {
        if life >= self.next {
            found.add("lives", format!("node {at} has life {life:?}, which was never given"));
        }
        // Who hears of it too late has a life that is over already, and learns that.
        if let Some(living) = self.lives.get_mut(&life) {
            if living.told || living.by != at {
                let text = format!(
                    "node {at} has life {life:?}, which was given to another process, at node {}",
                    living.by
                );
                found.add("lives", text);
            }
            (living.told, living.dead, living.by) = (true, false, at);
        }
        self.at[at] = Some(life);
    }

    fn on_installed(
        &mut self,
        at: NodeId,
        epoch: Epoch,
        life: Life,
        members: &[Life],
        found: &mut Found,
    ) {
        let view = epoch.0;
        if self.decided.get(&epoch).map(Vec::as_slice) != Some(members) {
            let text =
                format!("node {at} installs view {view} of {members:?}, which was not decided");
            found.add("one_history", text);
        }
        if !members.contains(&life) || self.at[at] != Some(life) {
            let text = format!("node {at} installs view {view} as life {life:?}, which it has not");
            found.add("lives", text);
        }
        let before = self.decided.range(..epoch).next_back();
        let before = before.filter(|(_, members)| members.contains(&life)).map(|(epoch, _)| *epoch);
        let Some(living) = self.lives.get_mut(&life) else { return };
        if let Some(passed) = before.filter(|before| living.sits < Some((*before, false))) {
            let text = format!(
                "node {at} installs view {view}, and was never told of view {}, which it was in",
                passed.0
            );
            found.add("no_silent_gap", text);
        }
        living.sits = Some((epoch, false));
    }

    /// A process presides until then: nobody else may.
    fn guard(&mut self, clocks: &dyn Clocks, at: NodeId, until: Time, found: &mut Found) {
        let others = self.guards.iter().filter(|(node, _)| **node != at);
        for (node, until) in others {
            let clock = clocks.clock(*node);
            if clock < *until {
                let text = format!(
                    "node {at} presides, and node {node} may until {until:?}: its clock shows {clock:?}"
                );
                found.add("guard_before_grant", text);
            }
        }
        let guard = self.guards.entry(at).or_insert(until);
        *guard = (*guard).max(until);
    }
}
