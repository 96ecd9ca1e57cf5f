//! What a run of a part of the cluster came to, measured as it goes on.

use std::collections::BTreeMap;

use quorate_core::{Algorithm, Fact, Life, NodeId, NodeSet, Span, Time};
use quorate_service::family::{Command, Event, RegisterNode, SeedNode};
use quorate_service::{Deed, Ground, founding, seat};
use quorate_sim::Observer;

use crate::Figure;
use crate::figures::{Named, by_kind};

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// What happened.
    pub course: Course,
    /// Messages sent, each receiver of a multicast counted.
    pub messages: u64,
    /// Messages by kind, in the order of the description.
    pub by_kind: Vec<(&'static str, u64)>,
}

impl crate::Figures for Figures {
    fn named(&self) -> Named {
        let Course { views, lives, renewals, bars, dooms, leaves, .. } = &self.course;
        let last = views.last().map_or(0, |view| view.members.len() as u64);
        let count = |count: u64| Figure::from(count);
        let time = |span: Option<Span>| Figure::from(span.map(Span::in_units));
        let mut named: Named = match self.course.part {
            Part::Seats | Part::Register => vec![
                ("views", count(views.len() as u64)),
                ("members_at_the_end", count(last)),
                ("lives", count(lives.len() as u64)),
                ("renewals", count(*renewals)),
                ("left", count(*leaves)),
                ("barred", count(*bars)),
                ("doomed", count(*dooms)),
            ],
            Part::Seeds => vec![
                ("founded_at", time(self.course.founded.map(|at| at.since(Time::ZERO)))),
                ("belong_at_the_end", count(self.course.belonging.len() as u64)),
            ],
        };
        if self.course.part == Part::Seats {
            named.extend([
                ("from_crash_to_view", spans(&self.course.replaced)),
                ("stopped_for_a_view", spans(&self.course.stops)),
                ("nobody_presided", spans(&self.course.headless)),
                ("view_history", Figure::Word(self.course.history())),
            ]);
        }
        if self.course.part != Part::Register {
            named.push(("messages", self.messages.into()));
            named.push(("by_kind", by_kind(&self.by_kind)));
        }
        named
    }
}

/// The mean and the longest of some times.
fn spans(spans: &[Span]) -> Figure {
    let units: Vec<f64> = spans.iter().map(|span| span.in_units()).collect();
    let mean = (!units.is_empty()).then(|| units.iter().sum::<f64>() / units.len() as f64);
    let max = units.iter().copied().max_by(f64::total_cmp);
    Figure::Parts(vec![("mean", mean.into()), ("max", max.into())])
}

/// Which part of the cluster is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Seats,
    Seeds,
    Register,
}

/// The course of a run, measured as it goes on.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    part: Part,
    /// The views that were decided.
    views: Vec<Decided>,
    /// Whose life is whose.
    lives: BTreeMap<Life, NodeId>,
    renewals: u64,
    bars: u64,
    dooms: u64,
    leaves: u64,
    /// Members whose process has crashed, and when.
    crashed: BTreeMap<Life, Time>,
    /// From each crash of a member to the view without it.
    replaced: Vec<Span>,
    /// Who has stopped for a change of view, and when.
    stopped: BTreeMap<NodeId, Time>,
    /// From each stop to the next view.
    stops: Vec<Span>,
    presiding: NodeSet,
    /// Nobody has presided since then.
    headless_since: Option<Time>,
    /// How long nobody presided, after somebody had.
    headless: Vec<Span>,
    founded: Option<Time>,
    belonging: NodeSet,
}

/// A view that was decided.
#[derive(Clone, PartialEq, Debug)]
struct Decided {
    at: Time,
    epoch: u64,
    members: Vec<Life>,
    gone: Vec<(Life, &'static str)>,
}

impl Course {
    pub(super) fn new(algorithm: &str) -> Self {
        let part = match algorithm {
            _ if algorithm == SeedNode::META.name => Part::Seeds,
            _ if algorithm == RegisterNode::META.name => Part::Register,
            _ => Part::Seats,
        };
        Self {
            part,
            views: Vec::new(),
            lives: BTreeMap::new(),
            renewals: 0,
            bars: 0,
            dooms: 0,
            leaves: 0,
            crashed: BTreeMap::new(),
            replaced: Vec::new(),
            stopped: BTreeMap::new(),
            stops: Vec::new(),
            presiding: NodeSet::new(),
            headless_since: None,
            headless: Vec::new(),
            founded: None,
            belonging: NodeSet::new(),
        }
    }

    /// As it would be if the run ended now.
    pub(super) fn at(&self, end: Time) -> Self {
        let mut course = self.clone();
        course.headless.extend(course.headless_since.take().map(|since| end.since(since)));
        course
    }

    /// The views one after the other, by the nodes of their members; of many, the last ones.
    fn history(&self) -> String {
        const SHOWN: usize = 6;
        let node = |life: &Life| {
            self.lives.get(life).map_or_else(|| format!("life {life:?}"), ToString::to_string)
        };
        let view = |view: &Decided| {
            let members: Vec<_> = view.members.iter().map(node).collect();
            let gone: Vec<_> =
                view.gone.iter().map(|(life, why)| format!("{} {why}", node(life))).collect();
            let gone =
                if gone.is_empty() { String::new() } else { format!(" ({})", gone.join(", ")) };
            let at = (view.at.in_units() * 10.0).round() / 10.0;
            format!("{} at {at}: {}{gone}", view.epoch, members.join(","))
        };
        let left_off = self.views.len().saturating_sub(SHOWN);
        let more = if left_off > 0 { format!("{left_off} before; ") } else { String::new() };
        let shown: Vec<_> = self.views.iter().skip(left_off).map(view).collect();
        format!("{more}{}", shown.join("; "))
    }

    fn deed(&mut self, now: Time, deed: &Deed) {
        match deed {
            Deed::Admitted { life, by } => _ = self.lives.insert(*life, *by),
            Deed::Renewed(..) => self.renewals += 1,
            Deed::Barred(lives) => self.bars += lives.len() as u64,
            Deed::Doomed(..) => self.dooms += 1,
            Deed::Left(_) => self.leaves += 1,
            Deed::Hosts(..) => {}
            Deed::Decided { epoch, members, gone } => {
                let word = |ground| match ground {
                    Ground::Left => "left",
                    Ground::Doomed => "doomed",
                    Ground::Dead(_) => "dead",
                };
                let gone = gone.iter().map(|gone| (gone.life, word(gone.ground))).collect();
                let missing = self.crashed.keys().filter(|life| !members.contains(life));
                for life in missing.copied().collect::<Vec<_>>() {
                    let crashed = self.crashed.remove(&life);
                    self.replaced.extend(crashed.map(|at| now.since(at)));
                }
                let (epoch, members) = (epoch.0, members.clone());
                self.views.push(Decided { at: now, epoch, members, gone });
            }
        }
    }

    /// A node presides no more.
    fn resign(&mut self, now: Time, node: NodeId) {
        if self.presiding.remove(node) && self.presiding.is_empty() {
            self.headless_since = Some(now);
        }
    }

    fn seat(&mut self, now: Time, at: NodeId, event: &seat::Event) {
        match event {
            seat::Event::Register(deed) => self.deed(now, deed),
            seat::Event::Stopped(_) => _ = self.stopped.entry(at).or_insert(now),
            seat::Event::Installed { .. } => {
                self.stops.extend(self.stopped.remove(&at).map(|since| now.since(since)));
            }
            seat::Event::Presides { .. } => {
                self.presiding.insert(at);
                self.headless.extend(self.headless_since.take().map(|since| now.since(since)));
            }
            seat::Event::Lost | seat::Event::Left => self.resign(now, at),
            seat::Event::Out(_) => {
                self.resign(now, at);
                self.stopped.remove(&at);
            }
            seat::Event::Lives(_) | seat::Event::Until(_) => {}
        }
    }

    fn crash(&mut self, now: Time, node: NodeId) {
        self.resign(now, node);
        self.stopped.remove(&node);
        let members = self.views.last().map_or(&[][..], |view| &view.members);
        let mine = members.iter().filter(|life| self.lives.get(life) == Some(&node));
        self.crashed.extend(mine.map(|life| (*life, now)));
    }
}

impl Observer<Command, Event> for Course {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Seat(event)) => self.seat(now, at, event),
            Fact::Event(Event::Founding(event)) => match event {
                founding::Event::Founded(_) => {
                    self.founded.get_or_insert(now);
                    self.belonging.insert(at);
                }
                founding::Event::Joined(_) => _ = self.belonging.insert(at),
                founding::Event::Pledged(_)
                | founding::Event::Taken(..)
                | founding::Event::OtherList(_) => {}
            },
            Fact::Command(Command::Replace) => _ = self.belonging.remove(at),
            Fact::Crashed => self.crash(now, at),
            Fact::Command(_) | Fact::Recovered => {}
        }
    }
}
