//! From the records of a trace to a picture.

use std::collections::BTreeMap;

use quorate_core::trace::{Happening, Outcome, Parcel, Record};
use quorate_core::{Liveness, NodeId, Time};

use super::{Arrow, Bar, Event, Fate, Fault, Mark, Outage, Phase, Picture, What};

/// What a mark changes in what its node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Begin(Phase),
    End,
    Down,
    Up,
}

/// The change that a mark with this text brings, if any: the words of the families.
pub(super) fn change(mark: Mark, text: &str) -> Option<Change> {
    let word = text.split('(').next().unwrap_or_default();
    match (mark, word) {
        (Mark::Crash, _) => Some(Change::Down),
        (Mark::Recover, _) => Some(Change::Up),
        (Mark::Wish, "Acquire") => Some(Change::Begin(Phase::Wanting)),
        (Mark::Wish, "Release") | (Mark::Told, "Following" | "Lost") => Some(Change::End),
        (Mark::Told, "Granted" | "Fenced") => Some(Change::Begin(Phase::Inside)),
        (Mark::Told, "Leading") => Some(Change::Begin(Phase::Leading)),
        (Mark::Told, "left" | "excluded") => Some(Change::End),
        (Mark::Told, _) if word.starts_with("install ") => Some(Change::Begin(Phase::Member)),
        _ => None,
    }
}

pub(super) fn read(nodes: usize, records: &[Record]) -> Picture {
    let known = || records.iter().filter(|record| names_only(nodes, record));
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
        events: Vec::new(),
        violation: None,
    };
    let mut reader =
        Reader { picture, sent: BTreeMap::new(), doing: BTreeMap::new(), down: BTreeMap::new() };
    for record in known() {
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
    picture: Picture,
    /// The arrow of each sending, by sender, number and receiver.
    sent: BTreeMap<(NodeId, u64, NodeId), usize>,
    /// What each node is doing, as an index of the bars.
    doing: BTreeMap<NodeId, usize>,
    /// Since when nodes are down, as an index of the outages.
    down: BTreeMap<NodeId, usize>,
}

impl Reader {
    fn record(&mut self, record: &Record) {
        let first = self.picture.events.len();
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
            self.mark(
                record,
                Mark::Violation,
                &format!("violates {}: {}", fault.property, fault.text),
            );
            self.picture.violation = Some(fault);
        }
    }

    fn input(&mut self, record: &Record) {
        match &record.input {
            Happening::Start | Happening::Settle => {}
            Happening::Recover => self.mark(record, Mark::Recover, "recovers"),
            Happening::Crash => self.mark(record, Mark::Crash, "crashes"),
            Happening::Pause => self.mark(record, Mark::Pause, "does nothing for a while"),
            Happening::Resume => self.mark(record, Mark::Pause, "goes on"),
            Happening::Command(command) => self.mark(record, Mark::Wish, command),
            Happening::Refused(command, why) => {
                self.mark(record, Mark::Refused, &format!("{command} refused: {why}"));
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
                self.mark(record, Mark::Timer, &format!("timer {timer} runs out"));
            }
            Happening::Liveness(peer, now) => {
                let now = if *now == Liveness::Up { "up" } else { "down" };
                self.mark(record, Mark::Detector, &format!("hears that {peer} is {now}"));
            }
        }
    }

    fn effect(&mut self, record: &Record, effect: &Outcome) {
        match effect {
            Outcome::Emit(event) => self.mark(record, Mark::Told, event),
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
                        fate: Fate::InFlight,
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
                return index;
            }
            let copy = Arrow { fate, copy_of: original, ..arrow.clone() };
            self.picture.arrows.push(copy);
            return next;
        }
        let kind = self.kind(&parcel.kind);
        self.picture.arrows.push(Arrow {
            from: parcel.from,
            to: record.node,
            id: parcel.id,
            sent: None,
            fate,
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

    fn mark(&mut self, record: &Record, mark: Mark, text: &str) {
        self.event(record, What::Mark(mark, text.to_string()));
        match change(mark, text) {
            Some(Change::Begin(phase)) => self.begin(record, phase, text),
            Some(Change::End) if text == "Release" && !self.doing.contains_key(&record.node) => {
                self.was_inside_from_the_start(record);
            }
            Some(Change::End) => self.end(record),
            Some(Change::Down) => {
                self.end(record);
                self.down.insert(record.node, self.picture.outages.len());
                let outage = Outage { node: record.node, from: record.at, until: None };
                self.picture.outages.push(outage);
            }
            Some(Change::Up) => {
                if let Some(outage) = self.down.remove(&record.node) {
                    self.picture.outages[outage].until = Some(record.at);
                }
            }
            None => {}
        }
    }

    fn begin(&mut self, record: &Record, phase: Phase, text: &str) {
        self.end(record);
        self.doing.insert(record.node, self.picture.bars.len());
        self.picture.bars.push(Bar {
            node: record.node,
            phase,
            from: record.at,
            until: self.picture.end,
            is_open: true,
            text: text.to_string(),
        });
    }

    fn end(&mut self, record: &Record) {
        if let Some(bar) = self.doing.remove(&record.node) {
            let bar = &mut self.picture.bars[bar];
            bar.until = record.at;
            bar.is_open = false;
        }
    }

    /// A node that leaves without having entered was booted as the holder.
    fn was_inside_from_the_start(&mut self, record: &Record) {
        let start = Record { at: self.picture.start, ..record.clone() };
        self.begin(&start, Phase::Inside, "holds from the start");
        self.end(record);
    }

    fn event(&mut self, record: &Record, what: What) {
        let Record { at, node, .. } = *record;
        self.picture.events.push(Event { at, node, what, steps: Vec::new() });
    }

    fn finish(mut self) -> Picture {
        let is_wish_granted_at_once =
            |bar: &Bar| bar.phase == Phase::Wanting && bar.from == bar.until && !bar.is_open;
        self.picture.bars.retain(|bar| !is_wish_granted_at_once(bar));
        self.picture
    }
}
