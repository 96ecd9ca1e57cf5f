//! What raft wants done, in the order it has to be done in.

use std::sync::Arc;

use ::raft::Ready;
use ::raft::eraftpb::{self, EntryType};
use quorate_service::{Answer, Committed, Order, Revision};

use super::super::disk::{Disk, Hard, Point, Write};
use super::super::state::{Applied, OrderId};
use super::super::wire::{Conf, Entry, Members, Snapshot, decode};
use super::{Out, Stopped, Voter};

impl<D: Disk> Voter<D> {
    /// One Ready, to the letter.
    pub(super) fn ready(&mut self, out: &mut dyn FnMut(Out)) -> Result<(), Stopped> {
        let mut ready = self.node.ready();
        // A leader's may go before its own disk has it.
        self.send(ready.take_messages(), out);
        self.reads.answered(ready.take_read_states());
        self.persist(&ready, out)?;
        self.send(ready.take_persisted_messages(), out);
        self.apply(ready.take_committed_entries(), out)?;
        let mut light = self.node.advance(ready);
        self.send(light.take_messages(), out);
        self.apply(light.take_committed_entries(), out)?;
        self.node.advance_apply();
        Ok(())
    }

    /// Writes what a Ready has in one transaction, and what was applied before it.
    fn persist(&mut self, ready: &Ready, out: &mut dyn FnMut(Out)) -> Result<(), Stopped> {
        let taken = Some(ready.snapshot()).filter(|snapshot| !snapshot.is_empty());
        let taken = taken.map(|snapshot| take(&Snapshot::of(snapshot))).transpose()?;
        let log = self.node.store();
        let applied = taken.as_ref().map(|(_, applied)| applied);
        let applied = applied.or_else(|| self.unwritten.then_some(&log.applied));
        let promised =
            ready.hs().map(|hs| Hard { term: hs.term, vote: hs.vote, commit: hs.commit });
        let mut hard = promised.unwrap_or(log.hard);
        hard.commit = hard.commit.max(applied.map_or(0, |applied| applied.index));
        // How far the log is committed need not be durable: what is applied of it is saved in the end.
        if ready.must_sync() {
            let entries: Vec<_> = ready.entries().iter().map(Entry::of).collect();
            let reset = taken.as_ref().map(|(point, _)| *point);
            let (entries, hard, sync) = (&entries[..], Some(hard), true);
            self.disk.write(&Write { reset, entries, hard, applied, compact: None, sync })?;
            (self.unwritten, self.members_changed) = (false, false);
        }
        let log = self.node.mut_store();
        log.hard = hard;
        let restored = taken.is_some();
        if let Some((point, applied)) = taken {
            log.reset(point, applied);
        }
        log.append(ready.entries().clone());
        if restored {
            let overtaken = self.orders.overtaken(self.applied().state.last_of(self.id));
            out(Out::Members(self.applied().members.clone()));
            self.publish(Vec::new(), overtaken, out);
        }
        Ok(())
    }

    /// Does what committed entries say.
    fn apply(
        &mut self,
        entries: Vec<eraftpb::Entry>,
        out: &mut dyn FnMut(Out),
    ) -> Result<(), Stopped> {
        let (mut answers, mut overtaken, mut any) = (Vec::new(), Vec::new(), false);
        for entry in entries {
            match entry.get_entry_type() {
                EntryType::EntryNormal if entry.data.is_empty() => {}
                EntryType::EntryNormal => {
                    let orders: Option<Vec<(OrderId, Order)>> = decode(&entry.data);
                    let orders = orders
                        .ok_or_else(|| Stopped::Corrupt("an entry cannot be read".to_owned()))?;
                    for (id, order) in orders {
                        let answer = self.node.mut_store().applied.state.apply(id, &order);
                        let ticket = self.orders.done(id);
                        if let (Some(answer), Some(ticket)) = (answer, ticket) {
                            answers.push((ticket, answer));
                        } else {
                            overtaken.extend(ticket);
                        }
                    }
                    any = true;
                }
                EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
                    let conf = decode(&entry.context);
                    let conf =
                        conf.ok_or_else(|| Stopped::Corrupt("a change cannot be read".to_owned()))?;
                    self.change_members(conf, out);
                }
            }
            self.node.mut_store().applied.index = entry.index;
            self.unwritten = true;
        }
        if any {
            // Numbers grow in the sequence: whatever is behind is not in it, and never will be.
            let last = self.applied().state.last_of(self.id);
            overtaken.extend(self.orders.overtaken(last));
            self.publish(answers, overtaken, out);
        }
        Ok(())
    }

    fn change_members(&mut self, conf: Conf, out: &mut dyn FnMut(Out)) {
        if conf == Conf::Remove(self.id) && self.leads() {
            // Raft panics in a leader that is not a member. What it has to say it may still say.
            let messages = std::mem::take(&mut self.node.raft.msgs);
            self.send(messages, out);
            let term = self.term();
            self.node.raft.become_follower(term, ::raft::INVALID_ID);
        }
        // A change that cannot be made is none, for everybody alike.
        let Ok(members) = self.node.apply_conf_change(&conf.raft()) else { return };
        let members = Members::of(&members);
        let applied = &mut self.node.mut_store().applied;
        applied.members = members.clone();
        if let Conf::Remove(id) = conf {
            self.snapshots.remove(&id);
        }
        self.members_changed = true;
        out(Out::Members(members));
    }

    /// The register first, so that who is answered finds what was done in it.
    fn publish(&mut self, answers: Vec<(u64, Answer)>, lost: Vec<u64>, out: &mut dyn FnMut(Out)) {
        let applied = &self.node.store().applied;
        if applied.state.register != *self.current.register {
            let register = Arc::new(applied.state.register.clone());
            self.current = Committed { revision: Revision(applied.index), register };
            out(Out::Committed(self.current.clone()));
        }
        for (ticket, answer) in answers {
            out(Out::Answer { ticket, answer });
        }
        for ticket in lost {
            out(Out::Unknown { ticket });
        }
    }

    /// Writes what was applied since the last transaction, and drops what the log has too much of. It
    /// need not be durable, as it can be done again, unless it says who takes part: who was removed may
    /// go when a majority of the others can no longer forget it.
    pub(super) fn save(&mut self) -> Result<(), Stopped> {
        if !self.unwritten {
            return Ok(());
        }
        let tail = self.options.tail;
        let log = self.node.mut_store();
        let long = log.applied.index - log.point.index >= 2 * tail;
        let compact = if long { log.compact(log.applied.index - tail) } else { None };
        log.hard.commit = log.hard.commit.max(log.applied.index);
        let (hard, applied) = (Some(log.hard), Some(&self.node.store().applied));
        let sync = self.members_changed;
        self.disk.write(&Write { reset: None, entries: &[], hard, applied, compact, sync })?;
        (self.unwritten, self.members_changed) = (false, false);
        Ok(())
    }
}

/// What a snapshot says: where the log begins behind it, and what is applied there.
fn take(snapshot: &Snapshot) -> Result<(Point, Applied), Stopped> {
    let state = decode(&snapshot.state);
    let state = state.ok_or_else(|| Stopped::Corrupt("a snapshot cannot be read".to_owned()))?;
    let (index, members) = (snapshot.index, snapshot.members.clone());
    Ok((Point { index, term: snapshot.term }, Applied { index, members, state }))
}
