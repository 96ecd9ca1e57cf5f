//! From the records of a trace to a picture.

use std::collections::BTreeMap;

use quorate_core::trace::{Happening, Outcome, Parcel, Record};
use quorate_core::{Liveness, NodeId, Time, ViewId};

use super::{
    Arrow, Bar, Change, Entry, Event, Fate, Fault, Mark, Outage, Phase, Picture, Seen, Setting,
    Suspicion, What,
};
use crate::registry::Sight;

/// What the bar of a node says that was a member when the run began.
pub(super) const MEMBER_FROM_START: &str = "is a member from the start";
/// What the bar of a node says that was inside when the run began.
pub(super) const HOLDS_FROM_START: &str = "holds from the start";

/// The step with which a node enters a view, and the number that says which.
const INSTALL: (&str, &str) = ("install", "view");
/// The steps with which a node stops until the next view, each with a number that it tells.
const STOPS: [(&str, &str); 2] = [("stop", "view"), ("stop and report", "to")];

pub(super) fn read(sight: Sight, nodes: usize, records: &[Record], setting: Setting) -> Picture {
    let known = || records.iter().filter(|record| names_only(nodes, record));
    let numbered = records.iter().enumerate().filter(|(_, record)| names_only(nodes, record));
    let start = known().map(|record| record.at).min().unwrap_or(Time::ZERO);
    let end = known().map(|record| record.at).max().unwrap_or(Time::ZERO);
    let picture = Picture {
        nodes,
        start,
        end,
        kinds: Vec::new(),
        arrows: Vec::new(),
        bars: Vec::new(),
        outages: Vec::new(),
        entries: Vec::new(),
        suspicions: Vec::new(),
        events: Vec::new(),
        violation: None,
        guilty: Vec::new(),
        setting,
    };
    let mut reader = Reader {
        sight,
        picture,
        sent: BTreeMap::new(),
        doing: BTreeMap::new(),
        down: BTreeMap::new(),
        still: BTreeMap::new(),
        now: 0,
    };
    reader.members(known());
    for (number, record) in numbered {
        reader.now = number;
        reader.record(record);
    }
    reader.finish()
}

fn names_only(nodes: usize, record: &Record) -> bool {
    let from = match &record.input {
        Happening::Receive(parcel) | Happening::Lose(parcel) => parcel.from,
        _ => record.node,
    };
    record.node.index() < nodes && from.index() < nodes
}

struct Reader {
    sight: Sight,
    picture: Picture,
    /// The arrow of each sending, by sender, number and receiver.
    sent: BTreeMap<(NodeId, u64, NodeId), usize>,
    /// What each node is doing, as an index of the bars.
    doing: BTreeMap<NodeId, usize>,
    /// Since when nodes are down, as an index of the outages.
    down: BTreeMap<NodeId, usize>,
    /// Who has stopped and waits for a view, since when and with which record.
    still: BTreeMap<NodeId, (Time, usize)>,
    /// The number of the record that is being read.
    now: usize,
}

impl Reader {
    /// Draws the first members as such, if there are views at all.
    fn members<'a>(&mut self, mut records: impl Iterator<Item = &'a Record>) {
        let is_view = |outcome: &Outcome| match outcome {
            Outcome::Emit(event) => (self.sight.event)(event).view.is_some(),
            _ => false,
        };
        let members = self.picture.setting.members.clone();
        let outsiders = members.len() < self.picture.nodes;
        if !outsiders && !records.any(|record| record.effects.iter().any(is_view)) {
            return;
        }
        let (start, end) = (self.picture.start, self.picture.end);
        for node in members.into_iter().filter(|node| node.index() < self.picture.nodes) {
            self.doing.insert(node, self.picture.bars.len());
            self.picture.bars.push(Bar {
                node,
                phase: Phase::Member,
                from: start,
                until: end,
                is_open: true,
                begun_by: None,
                ended_by: None,
                text: MEMBER_FROM_START.to_string(),
                view: None,
            });
        }
    }

    /// Views, as steps of the algorithm tell them.
    fn steps(&mut self, record: &Record) {
        for step in &record.steps {
            let node = record.node;
            let told = |number: &str| step.fields.iter().find(|(name, _)| name == number);
            if STOPS.iter().any(|(name, number)| step.name == *name && told(number).is_some()) {
                self.still.entry(node).or_insert((record.at, self.now));
            }
            if let (true, Some((_, view))) = (step.name == INSTALL.0, told(INSTALL.1)) {
                self.go_on(node, record.at);
                let told = record.effects.iter().find_map(|outcome| match outcome {
                    Outcome::Emit(event) if (self.sight.event)(event).view.is_some() => {
                        Some((self.sight.members)(event))
                    }
                    _ => None,
                });
                self.enter(node, record.at, *view, told.unwrap_or_default());
            }
        }
    }

    fn enter(&mut self, node: NodeId, at: Time, view: u64, members: Vec<NodeId>) {
        let entry = Entry { view, node, at, members, by: self.now };
        let is_known =
            |old: &Entry| (old.view, old.node, old.at) == (entry.view, entry.node, entry.at);
        if !self.picture.entries.iter().any(is_known) {
            self.picture.entries.push(entry);
        }
    }

    /// The node does not stand still any more.
    fn go_on(&mut self, node: NodeId, at: Time) {
        if let Some((since, by)) = self.still.remove(&node) {
            self.picture.bars.push(Bar {
                node,
                phase: Phase::Still,
                from: since,
                until: at,
                is_open: false,
                begun_by: Some(by),
                ended_by: Some(self.now),
                text: "stops until the next view".to_string(),
                view: None,
            });
        }
    }

    fn suspect(&mut self, node: NodeId, peer: NodeId, at: Time) {
        let same = |it: &Suspicion| (it.node, it.peer, it.until) == (node, peer, None);
        if !self.picture.suspicions.iter().any(same) {
            let begun_by = self.now;
            let suspicion =
                Suspicion { node, peer, from: at, until: None, begun_by, ended_by: None };
            self.picture.suspicions.push(suspicion);
        }
    }

    fn trust(&mut self, node: NodeId, peer: Option<NodeId>, at: Time) {
        for suspicion in &mut self.picture.suspicions {
            let is_it = suspicion.node == node && peer.is_none_or(|peer| suspicion.peer == peer);
            if is_it && suspicion.until.is_none() {
                suspicion.until = Some(at);
                suspicion.ended_by = Some(self.now);
            }
        }
    }

    fn record(&mut self, record: &Record) {
        let first = self.picture.events.len();
        self.steps(record);
        self.input(record);
        for effect in &record.effects {
            self.effect(record, effect);
        }
        if let Some(event) = self.picture.events.get_mut(first) {
            event.steps = record.steps.iter().map(|step| step.name.to_string()).collect();
        }
        if let (Some((property, text)), None) = (&record.violation, &self.picture.violation) {
            let (property, text) = (property.clone(), text.clone());
            let fault = Fault { at: record.at, node: record.node, property, text };
            let text = format!("violates {}: {}", fault.property, fault.text);
            self.mark(record, Mark::Violation, &text, Seen::default());
            self.picture.violation = Some(fault);
        }
    }

    fn input(&mut self, record: &Record) {
        match &record.input {
            Happening::Start | Happening::Settle => {}
            Happening::Recover => {
                self.mark(record, Mark::Recover, "recovers", Seen::change(Change::Up));
            }
            Happening::Crash => {
                self.mark(record, Mark::Crash, "crashes", Seen::change(Change::Down));
            }
            Happening::Pause => {
                self.mark(record, Mark::Pause, "does nothing for a while", Seen::default());
            }
            Happening::Resume => self.mark(record, Mark::Pause, "goes on", Seen::default()),
            Happening::Command(command) => {
                self.mark(record, Mark::Wish, command, (self.sight.command)(command));
            }
            Happening::Refused(command, why) => {
                let text = format!("{command} refused: {why}");
                self.mark(record, Mark::Refused, &text, Seen::default());
            }
            Happening::Receive(parcel) => {
                let arrow = self.arrival(record, parcel, Fate::Received(record.at));
                self.event(record, What::Receive(arrow));
            }
            Happening::Lose(parcel) => {
                let arrow = self.arrival(record, parcel, Fate::Lost(record.at));
                self.event(record, What::Lose(arrow));
            }
            Happening::Timer(timer) => {
                let text = format!("timer {timer} runs out");
                self.mark(record, Mark::Timer, &text, Seen::default());
            }
            Happening::Liveness(peer, now) => {
                match now {
                    Liveness::Down => self.suspect(record.node, *peer, record.at),
                    Liveness::Up => self.trust(record.node, Some(*peer), record.at),
                }
                let now = if *now == Liveness::Up { "up" } else { "down" };
                let text = format!("hears that {peer} is {now}");
                self.mark(record, Mark::Detector, &text, Seen::default());
            }
        }
    }

    fn effect(&mut self, record: &Record, effect: &Outcome) {
        match effect {
            Outcome::Emit(event) => {
                let seen = (self.sight.event)(event);
                if let Some(ViewId(view)) = seen.view {
                    self.enter(record.node, record.at, view, (self.sight.members)(event));
                }
                if !seen.hushed {
                    self.mark(record, Mark::Told, event, seen);
                }
            }
            Outcome::Send { id, to, kind, text } => {
                let kind = self.kind(kind);
                let first = self.picture.arrows.len();
                for &to in to.iter().filter(|to| to.index() < self.picture.nodes) {
                    self.sent.insert((record.node, *id, to), self.picture.arrows.len());
                    self.picture.arrows.push(Arrow {
                        from: record.node,
                        to,
                        id: *id,
                        sent: Some(record.at),
                        sent_by: Some(self.now),
                        fate: Fate::InFlight,
                        ended_by: None,
                        kind,
                        text: text.clone(),
                        copy_of: None,
                    });
                }
                let arrows = (first..self.picture.arrows.len()).collect();
                self.event(record, What::Send(arrows));
            }
            Outcome::Set(_) | Outcome::Cancel(_) | Outcome::Persist(_) => {}
        }
    }

    /// The arrow that ends here: that of its sending, a further copy of it, or one of which only
    /// the end is known.
    fn arrival(&mut self, record: &Record, parcel: &Parcel, fate: Fate) -> usize {
        let next = self.picture.arrows.len();
        let original = self.sent.get(&(parcel.from, parcel.id, record.node)).copied();
        if let Some(index) = original {
            let arrow = &mut self.picture.arrows[index];
            if arrow.fate == Fate::InFlight {
                arrow.fate = fate;
                arrow.ended_by = Some(self.now);
                return index;
            }
            let ended_by = Some(self.now);
            let copy = Arrow { fate, ended_by, copy_of: original, ..arrow.clone() };
            self.picture.arrows.push(copy);
            return next;
        }
        let kind = self.kind(&parcel.kind);
        self.picture.arrows.push(Arrow {
            from: parcel.from,
            to: record.node,
            id: parcel.id,
            sent: None,
            sent_by: None,
            fate,
            ended_by: Some(self.now),
            kind,
            text: parcel.text.clone(),
            copy_of: None,
        });
        next
    }

    fn kind(&mut self, name: &str) -> usize {
        let known = self.picture.kinds.iter().position(|kind| kind == name);
        known.unwrap_or_else(|| {
            self.picture.kinds.push(name.to_string());
            self.picture.kinds.len() - 1
        })
    }

    fn mark(&mut self, record: &Record, mark: Mark, text: &str, seen: Seen) {
        self.event(record, What::Mark(mark, text.to_string()));
        if let Some(event) = self.picture.events.last_mut() {
            event.seen = seen;
        }
        match seen.change {
            Some(Change::Begin(phase)) => self.begin(record, phase, text, seen.view),
            Some(Change::Leave) if !self.doing.contains_key(&record.node) => {
                self.was_inside_from_the_start(record);
            }
            Some(Change::End | Change::Leave) => self.end(record),
            Some(Change::Down) => {
                self.end(record);
                self.go_on(record.node, record.at);
                self.trust(record.node, None, record.at);
                self.down.insert(record.node, self.picture.outages.len());
                let begun_by = self.now;
                let (node, from) = (record.node, record.at);
                let outage = Outage { node, from, until: None, begun_by, ended_by: None };
                self.picture.outages.push(outage);
            }
            Some(Change::Up) => {
                if let Some(outage) = self.down.remove(&record.node) {
                    let outage = &mut self.picture.outages[outage];
                    outage.until = Some(record.at);
                    outage.ended_by = Some(self.now);
                }
            }
            Some(Change::Suspect(peer)) => self.suspect(record.node, peer, record.at),
            Some(Change::Trust(peer)) => self.trust(record.node, Some(peer), record.at),
            None => {}
        }
    }

    fn begin(&mut self, record: &Record, phase: Phase, text: &str, view: Option<ViewId>) {
        self.end(record);
        self.doing.insert(record.node, self.picture.bars.len());
        self.picture.bars.push(Bar {
            node: record.node,
            phase,
            from: record.at,
            until: self.picture.end,
            is_open: true,
            begun_by: Some(self.now),
            ended_by: None,
            text: text.to_string(),
            view,
        });
    }

    fn end(&mut self, record: &Record) {
        if let Some(bar) = self.doing.remove(&record.node) {
            let bar = &mut self.picture.bars[bar];
            bar.until = record.at;
            bar.ended_by = Some(self.now);
            bar.is_open = false;
        }
    }

    /// A node that leaves without having entered was booted as the holder.
    fn was_inside_from_the_start(&mut self, record: &Record) {
        let start = Record { at: self.picture.start, ..record.clone() };
        self.begin(&start, Phase::Inside, HOLDS_FROM_START, None);
        if let Some(bar) = self.picture.bars.last_mut() {
            bar.begun_by = None;
        }
        self.end(record);
    }

    fn event(&mut self, record: &Record, what: What) {
        let Record { at, node, .. } = *record;
        self.picture.events.push(Event {
            at,
            node,
            what,
            steps: Vec::new(),
            seen: Seen::default(),
        });
    }

    fn finish(mut self) -> Picture {
        let end = self.picture.end;
        for node in self.still.keys().copied().collect::<Vec<_>>() {
            self.go_on(node, end);
        }
        let is_wish_granted_at_once =
            |bar: &Bar| bar.phase == Phase::Wanting && bar.from == bar.until && !bar.is_open;
        self.picture.bars.retain(|bar| !is_wish_granted_at_once(bar));
        self.picture
    }
}
