//! What clients, an operator and misfortune do to a world.

use std::collections::BTreeMap;

use quorate_authority::Order;
use quorate_authority::raft::{Conf, Out, Stored, Voter};
use quorate_core::{Life, Span};
use quorate_service::{Renewal, Settings};

use super::{Node, Wish, World, admit};
use crate::platter::Flaw;

impl World {
    pub(super) fn client(&mut self) -> Result<(), String> {
        let living = self.living();
        let Some(id) = self.dice.one_of(&living) else { return Ok(()) };
        self.tickets += 1;
        let (ticket, then) = (self.tickets, self.judge.seen());
        let (wish, order) = match self.dice.below(10) {
            0..4 => (Wish::Beat, Some(renew(ticket))),
            4 => (Wish::Life, Some(admit(u128::from(ticket)))),
            5..7 => {
                let settings = Settings { lease: Span(ticket) };
                (Wish::Other, Some(Order::Set(settings)))
            }
            _ => (Wish::Read, None),
        };
        if self.healed {
            // A new order commits: this one, or one of those that follow it.
            self.last_wish.get_or_insert(ticket);
        }
        self.wishes.insert(ticket, (wish, then));
        let node = self.nodes.get_mut(&id).expect("it lives");
        let voter = node.voter.as_mut().expect("it lives");
        match order {
            Some(order) => voter.order(ticket, order),
            None if self.flaw == Flaw::LeaderReadsAlone && voter.leads() => {
                let register = voter.committed().register.clone();
                return self.out(id, Out::Read { ticket, register });
            }
            None => voter.read(ticket),
        }
        self.turn(id)
    }

    /// Changes who takes part, by whoever believes that it leads.
    pub(super) fn operator(&mut self) -> Result<(), String> {
        let leads = |node: &Node| node.voter.as_ref().is_some_and(Voter::leads);
        let leaders: Vec<_> =
            self.nodes.iter().filter(|(_, node)| leads(node)).map(|(id, _)| *id).collect();
        let Some(leader) = self.dice.one_of(&leaders) else { return Ok(()) };
        let voter = self.nodes[&leader].voter.as_ref().expect("it leads");
        let members = voter.applied().members.clone();
        let conf = if let Some(learner) = self.dice.one_of(&members.learners) {
            if self.dice.percent(80) { Conf::Promote(learner) } else { Conf::Remove(learner) }
        } else if members.voters.len() > 3 && self.dice.percent(60) {
            // Two voters tolerate nothing, so there are three at least.
            Conf::Remove(self.dice.one_of(&members.voters).expect("voters"))
        } else if self.nodes.len() < 9 && members.voters.len() < 6 {
            let id = self.nodes.len() as u64 + 1;
            self.add(id, Stored::joining(id));
            Conf::Learn(id)
        } else {
            // Who was added and never became a member, if its change got lost.
            let known = |id: &&u64| !members.contains(**id);
            let strangers: Vec<_> = self.nodes.keys().filter(known).copied().collect();
            let Some(id) = self.dice.one_of(&strangers) else { return Ok(()) };
            if self.nodes[&id].voter.as_ref().is_none_or(|voter| voter.applied().index > 0) {
                return Ok(());
            }
            Conf::Learn(id)
        };
        let voter = self.nodes.get_mut(&leader).and_then(|node| node.voter.as_mut());
        let _ = voter.expect("it leads").change(conf);
        self.turn(leader)
    }

    pub(super) fn mishap(&mut self) -> Result<(), String> {
        let all: Vec<_> = self.nodes.keys().copied().collect();
        let living = self.living();
        let Some(id) = self.dice.one_of(&living) else { return Ok(()) };
        match self.dice.below(12) {
            0..3 => self.crash(id),
            3 => {
                let after = self.dice.below(4);
                self.nodes[&id].disk.0.borrow_mut().fails_in = Some(after);
            }
            4 if self.dice.percent(40) => living.into_iter().for_each(|id| self.crash(id)),
            5 => {
                let other = self.dice.one_of(&all).expect("nodes");
                self.cut.insert((id, other));
            }
            6 => {
                for other in &all {
                    self.cut.extend([(id, *other), (*other, id)]);
                }
            }
            7 => {
                let sides: BTreeMap<_, _> =
                    all.iter().map(|id| (*id, self.dice.percent(50))).collect();
                for (one, other) in all.iter().flat_map(|one| all.iter().map(move |o| (*one, *o))) {
                    if sides[&one] != sides[&other] {
                        self.cut.insert((one, other));
                    }
                }
            }
            8 | 9 => self.cut.clear(),
            _ => return self.evidence(id),
        }
        Ok(())
    }

    /// Somebody is said to be dead, and is or is not; all hear it, or one.
    fn evidence(&mut self, id: u64) -> Result<(), String> {
        let Some(leader) = self.nodes[&id].voter.as_ref().and_then(Voter::leader) else {
            return Ok(());
        };
        self.tally.forced += 1;
        if self.dice.percent(50) {
            self.crash(leader);
        }
        let told = if self.dice.percent(70) { self.living() } else { vec![id] };
        for id in told.into_iter().filter(|id| *id != leader) {
            if let Some(voter) = self.nodes.get_mut(&id).and_then(|node| node.voter.as_mut()) {
                voter.dead(leader);
                self.turn(id)?;
            }
        }
        Ok(())
    }
}

fn renew(number: u64) -> Order {
    Order::Renew(vec![Renewal::new(Life(100), number)])
}
