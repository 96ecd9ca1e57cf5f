//! Groups joined by links that a test lets through one by one.

use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

use quorate_core::{Life, Message as _, NodeId, NodeSet, Span, Time};

use crate::groups::{Command, Event, Frame, Groups, Limits, Order, Outlet, Pack, Refused};
use crate::locks::{Gate, Text};
use crate::register::Epoch;

/// Processes with groups.
pub(super) struct Net {
    spaces: Vec<Groups>,
    /// What is under way on each link.
    pub(super) links: BTreeMap<(usize, usize), VecDeque<Frame>>,
    /// What each was told.
    pub(super) told: Vec<Vec<Event>>,
    /// How many frames were sent, by kind.
    pub(super) sent: BTreeMap<&'static str, u64>,
    /// Whose programs know no groups; and who is known for that from the start of a view.
    pub(super) mute: Vec<usize>,
    pub(super) older: Vec<usize>,
    now: Time,
    epoch: u64,
}

struct Out<'a> {
    from: usize,
    links: &'a mut BTreeMap<(usize, usize), VecDeque<Frame>>,
    told: &'a mut Vec<Event>,
    sent: &'a mut BTreeMap<&'static str, u64>,
}

impl Outlet for Out<'_> {
    fn send(&mut self, to: NodeSet, frame: Frame) {
        for to in to.iter() {
            *self.sent.entry(frame.kind()).or_default() += 1;
            self.links.entry((self.from, to.index())).or_default().push_back(frame.clone());
        }
    }

    fn tell(&mut self, event: Event) {
        self.told.push(event);
    }
}

pub(super) fn group() -> Text {
    "g".into()
}

impl Net {
    /// So many processes in one view and in one group.
    pub(super) fn of(count: usize, limits: Limits) -> Self {
        let mut net = Self {
            spaces: (0..count).map(|_| Groups::new(limits)).collect(),
            links: BTreeMap::new(),
            told: std::iter::repeat_with(Vec::new).take(count).collect(),
            sent: BTreeMap::new(),
            mute: Vec::new(),
            older: Vec::new(),
            now: Time(1_000_000),
            epoch: 0,
        };
        let all: Vec<usize> = (0..count).collect();
        net.install(&all);
        net.run();
        for at in all {
            net.command(at, Command::Join { group: group(), stateful: false }).expect("it joins");
            net.run();
        }
        net.told.iter_mut().for_each(Vec::clear);
        net.sent.clear();
        net
    }

    fn on<R>(&mut self, at: usize, act: impl FnOnce(&mut Groups, Time, &mut dyn Outlet) -> R) -> R {
        let Self { spaces, links, told, sent, now, .. } = self;
        act(&mut spaces[at], *now, &mut Out { from: at, links, told: &mut told[at], sent })
    }

    pub(super) fn command(&mut self, at: usize, command: Command) -> Result<(), Refused> {
        self.on(at, |groups, now, out| groups.command(now, command, out))
    }

    pub(super) fn send(&mut self, at: usize, order: Order, text: &str) -> Result<(), Refused> {
        let pack = Pack::new(order, text.as_bytes());
        self.command(at, Command::Send { group: group(), pack })
    }

    /// Time passes: what waited goes out.
    pub(super) fn turn(&mut self, at: usize) {
        self.now += Span(100_000);
        self.on(at, Groups::turn);
    }

    /// A view of these begins; what those say who are not in it is lost, if it has not come.
    pub(super) fn install(&mut self, members: &[usize]) {
        self.epoch += 1;
        let gone = |at: &usize| !members.contains(at);
        self.links.retain(|(from, to), _| !gone(from) && !gone(to));
        let lives: Vec<Life> = members.iter().map(|at| Life(10 + *at as u64)).collect();
        let nodes: Vec<NodeId> = members.iter().map(|at| NodeId::at(*at)).collect();
        let mute = self.mute.clone();
        let older: Vec<Life> = self.older.iter().map(|at| Life(10 + *at as u64)).collect();
        let speaks = |(_, at): &(usize, &usize)| !mute.contains(at);
        for (rank, at) in members.iter().enumerate().filter(speaks) {
            let gate = Gate::new(self.now, Epoch(self.epoch), rank, &lives, &nodes, false);
            self.on(*at, |groups, now, out| {
                groups.install(now, &gate, |life| !older.contains(&life), out);
                groups.lease(now, Some(now + Span::units(1_000_000)), out);
            });
        }
    }

    /// It is learned that the program of one knows no groups.
    pub(super) fn learn(&mut self, older: usize) {
        let life = Life(10 + older as u64);
        for at in (0..self.spaces.len()).filter(|at| *at != older) {
            self.on(at, |groups, now, out| groups.exclude(now, life, out));
        }
    }

    /// Lets the next frame of a link through. False if there is none.
    pub(super) fn pass(&mut self, from: usize, to: usize) -> bool {
        let frame = self.links.get_mut(&(from, to)).and_then(VecDeque::pop_front);
        let Some(frame) = frame else { return false };
        self.on(to, |groups, now, out| groups.receive(now, NodeId::at(from), frame, out));
        true
    }

    /// Lets everything through on a link, and what comes of it on that link.
    pub(super) fn drain(&mut self, from: usize, to: usize) {
        while self.pass(from, to) {}
    }

    /// Everything arrives, and everybody answers.
    pub(super) fn run(&mut self) {
        loop {
            let links: Vec<(usize, usize)> = self.links.keys().copied().collect();
            let passed =
                links.into_iter().fold(false, |any, (from, to)| self.pass(from, to) || any);
            if !passed {
                let due: Vec<usize> =
                    (0..self.spaces.len()).filter(|at| self.spaces[*at].is_due()).collect();
                if due.is_empty() {
                    return;
                }
                due.into_iter().for_each(|at| self.turn(at));
            }
        }
    }

    /// The messages that somebody was told, and views as their sizes.
    pub(super) fn stream(&self, at: usize) -> Vec<std::string::String> {
        let mut stream = Vec::new();
        for event in &self.told[at] {
            match event {
                Event::View { members, .. } => {
                    stream.push(std::format!("view of {}", members.len()));
                }
                Event::Unit { unit, .. } => {
                    let text = |bytes| std::string::String::from_utf8_lossy(bytes).into_owned();
                    stream.extend(unit.messages().map(text));
                }
                _ => {}
            }
        }
        stream
    }
}
