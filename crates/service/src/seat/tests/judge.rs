//! The judge of a run of seats: what no schedule may break.
//!
//! | promise | what is looked at |
//! |---|---|
//! | V1 one history | every epoch is decided once, and epochs grow |
//! | V2 lives | a life that a view has left out never sits or presides again |
//! | V4 stop before decide | who comes from the last view has stopped in it before the next one is decided |
//! | V5 guard before grant | who begins to preside, when the last one's time is over *by its own clock*, or its process is dead |

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_core::{Fact, Life, NodeId, Time};
use quorate_sim::{Faults, Observer};

use crate::register::Epoch;
use crate::seat::{Command, Event};

/// What is known of a run.
pub(super) struct Judge<'a> {
    faults: &'a Faults,
    decided: BTreeMap<Epoch, Vec<Life>>,
    /// The last view of each life, and whether it has stopped there.
    sits: BTreeMap<Life, (Epoch, bool)>,
    at: BTreeMap<NodeId, Life>,
    over: BTreeSet<Life>,
    /// Until when each node may act as the one that presides, by its own clock.
    guards: BTreeMap<NodeId, Time>,
    pub(super) broken: Option<String>,
    /// When each view was decided, and how many were in it.
    pub(super) history: Vec<(Time, usize)>,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(faults: &'a Faults) -> Self {
        Self {
            faults,
            decided: BTreeMap::new(),
            sits: BTreeMap::new(),
            at: BTreeMap::new(),
            over: BTreeSet::new(),
            guards: BTreeMap::new(),
            broken: None,
            history: Vec::new(),
        }
    }

    fn object(&mut self, now: Time, text: String) {
        self.broken.get_or_insert(format!("at {now:?}: {text}"));
    }

    fn on_decided(&mut self, now: Time, epoch: Epoch, members: &[Life]) {
        let last = self.decided.last_key_value().map(|(last, members)| (*last, members.clone()));
        if let Some((last, former)) = last {
            if last >= epoch {
                self.object(now, format!("V1: epoch {epoch:?} after {last:?}"));
            }
            for life in members.iter().filter(|life| former.contains(life)) {
                if self.sits.get(life) == Some(&(last, false)) {
                    self.object(now, format!("V4: life {life:?} has not stopped in {last:?}"));
                }
            }
            self.over.extend(former.iter().filter(|life| !members.contains(life)));
        }
        self.decided.insert(epoch, members.into());
        self.history.push((now, members.len()));
    }

    fn on_presides(&mut self, now: Time, at: NodeId, epoch: Option<Epoch>, until: Time) {
        let others = self.guards.iter().filter(|(node, _)| **node != at);
        let valid = others.filter(|(node, until)| self.faults.clock(**node, now) < **until);
        if let Some((node, until)) = valid.map(|(node, until)| (*node, *until)).next() {
            let clock = self.faults.clock(node, now);
            let text =
                format!("V5: {at} presides, {node} may until {until:?}, its clock is {clock:?}");
            self.object(now, text);
        }
        if let Some(epoch) = epoch {
            let last = self.decided.last_key_value().map(|(last, _)| *last);
            let mine = self.at.get(&at).copied();
            if last != Some(epoch) {
                self.object(now, format!("V4: {at} begins to preside over {epoch:?}"));
            }
            if mine.is_some_and(|life| self.over.contains(&life)) {
                self.object(now, format!("V2: life {mine:?} is over, and presides"));
            }
        }
        let guard = self.guards.entry(at).or_insert(until);
        *guard = (*guard).max(until);
    }

    /// Do all of these sit in the last view that was decided, with no more than so many, and does one
    /// preside?
    pub(super) fn settled(
        &self,
        now: Time,
        most: usize,
        all: &BTreeSet<NodeId>,
    ) -> Result<(), String> {
        // Whoever left last leaves a view behind that nobody is there to end.
        if all.is_empty() {
            return Ok(());
        }
        let Some((epoch, members)) = self.decided.last_key_value() else {
            return Err("no view was ever decided".into());
        };
        for node in all {
            let life = self.at.get(node);
            let sits =
                life.is_some_and(|life| self.sits.get(life).is_some_and(|it| it.0 == *epoch));
            if !sits || !life.is_some_and(|life| members.contains(life)) {
                return Err(format!("{node} does not sit in {epoch:?} {members:?}"));
            }
        }
        let presides = self.guards.iter().any(|(at, until)| self.faults.clock(*at, now) < *until);
        if members.len() > most || !presides {
            return Err(format!("{members:?} sit, {all:?} should; presided over: {presides}"));
        }
        Ok(())
    }
}

impl Observer<Command, Event> for Judge<'_> {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Decided { epoch, members }) => self.on_decided(now, *epoch, members),
            Fact::Event(Event::Installed { epoch, life, members }) => {
                if self.decided.get(epoch) != Some(members) {
                    self.object(now, format!("V1: {at} installs {epoch:?} {members:?}"));
                }
                if !members.contains(life) {
                    self.object(now, format!("V2: life {life:?} installs a view without it"));
                }
                self.at.insert(at, *life);
                self.sits.insert(*life, (*epoch, false));
            }
            Fact::Event(Event::Stopped(epoch)) => {
                if let Some(life) = self.at.get(&at) {
                    self.sits.insert(*life, (*epoch, true));
                }
            }
            Fact::Event(Event::Presides { epoch, until }) => {
                self.on_presides(now, at, Some(*epoch), *until);
            }
            Fact::Event(Event::Until(until)) => self.on_presides(now, at, None, *until),
            Fact::Crashed => _ = self.guards.remove(&at),
            Fact::Event(Event::Lost | Event::Out(_) | Event::Left)
            | Fact::Command(_)
            | Fact::Recovered => {}
        }
    }
}
