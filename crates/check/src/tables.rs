//! The parts of states, and what becomes of them.
//!
//! A step changes few parts of a state: one node, some messages, now and then what users and
//! monitor know. There are few different parts compared with states, so each is kept once and named
//! by a number, and what a node makes of a cause is found out once and then looked up.

use hashbrown::HashMap;
use quorate_core::{Family, Liveness, Monitor, NodeId, Scene, Solution, Violation, Workload};
use rustc_hash::FxBuildHasher;

use crate::findings::Way;
use crate::intern::Interner;
use crate::local::{Cause, Envelope, Local, Response, Up};
use crate::watch::{Tale, Watch};

/// Numbers of parts stay below this, so that a [`Code`] has room for its kind.
pub(crate) const PAYLOAD_MAX: u32 = 1 << 28;

/// A cause in a word: four bits for its kind, the rest for a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const START: Self = Self(0);
    pub(crate) const RECOVER: Self = Self::new(1, 0);
    pub(crate) const CRASH: Self = Self::new(2, 0);

    const fn new(kind: u32, payload: u32) -> Self {
        assert!(payload < PAYLOAD_MAX);
        Self(kind * PAYLOAD_MAX + payload)
    }

    pub(crate) const fn command(command: u32) -> Self {
        Self::new(3, command)
    }

    pub(crate) const fn message(message: u32) -> Self {
        Self::new(4, message)
    }

    pub(crate) const fn timer(place: u32) -> Self {
        Self::new(5, place)
    }

    pub(crate) const fn word(place: u32) -> Self {
        Self::new(6, place)
    }

    /// The message that arrives, if this is what happens.
    pub(crate) fn as_message(self) -> Option<u32> {
        (self.0 / PAYLOAD_MAX == 4).then_some(self.0 % PAYLOAD_MAX)
    }

    pub(crate) const fn noticed(peer: NodeId, now: Liveness) -> Self {
        let kind = if matches!(now, Liveness::Up) { 7 } else { 8 };
        Self::new(kind, peer.index() as u32)
    }
}

/// Whether a node is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    Asleep,
    Up,
    Down,
}

/// What an expansion has to know of a node's state.
#[derive(Debug)]
pub(crate) struct LocalFacts {
    pub(crate) presence: Presence,
    /// How many timers are set.
    pub(crate) timers: u32,
    /// The words that the detector can tell next: the first one on each peer.
    pub(crate) words: Vec<Word>,
}

/// A word that the detector can tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) place: u32,
    pub(crate) peer: usize,
    pub(crate) now: Liveness,
}

/// Where a message comes from and goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) link: u32,
}

/// What an expansion has to know of users and monitor.
#[derive(Debug)]
pub(crate) struct WatchFacts {
    /// The next command of each node's user.
    pub(crate) commands: Vec<Option<u32>>,
    /// The nodes to which something is owed; those beyond the 64th are left out.
    pub(crate) owed: u64,
    /// What the monitor says if this is the end.
    pub(crate) settled: Result<(), Violation>,
}

/// What a node makes of a cause, in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    pub(crate) local: u32,
    /// What is told of it, if anything.
    pub(crate) tale: Option<u32>,
    /// It had no effects at all.
    pub(crate) silent: bool,
    sends: (u32, u32),
    choices: (u32, u32),
}

/// What users and monitor make of a tale.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    /// They are in this state now.
    Fine(u32),
    /// The monitor finds this violation.
    Broken(u32),
}

/// All parts that were met, and all that is known about them.
pub(crate) struct Tables<A: Solution, W> {
    pub(crate) locals: Interner<Local<A>>,
    local_facts: Vec<LocalFacts>,
    pub(crate) messages: Interner<Envelope<A::Msg>>,
    routes: Vec<Route>,
    pub(crate) commands: Interner<A::Command>,
    pub(crate) tales: Interner<Tale<A::Command, A::Event>>,
    pub(crate) watches: Interner<Watch<W, <A::Family as Family>::Monitor>>,
    watch_facts: Vec<WatchFacts>,
    pub(crate) violations: Interner<Violation>,
    deeds: Vec<Deed>,
    sends: Vec<u32>,
    choices: Vec<u32>,
    /// From a node's state and a cause to a range of deeds, one for each way to choose.
    deeds_known: HashMap<u64, (u32, u32), FxBuildHasher>,
    heard_known: HashMap<u64, Heard, FxBuildHasher>,
}

impl<A: Solution, W: Workload<A::Command, A::Event>> Tables<A, W> {
    /// Tables in which nothing stands yet.
    pub(crate) fn new() -> Self {
        Self {
            locals: Interner::default(),
            local_facts: Vec::new(),
            messages: Interner::default(),
            routes: Vec::new(),
            commands: Interner::default(),
            tales: Interner::default(),
            watches: Interner::default(),
            watch_facts: Vec::new(),
            violations: Interner::default(),
            deeds: Vec::new(),
            sends: Vec::new(),
            choices: Vec::new(),
            deeds_known: HashMap::default(),
            heard_known: HashMap::default(),
        }
    }

    /// What is to be known of a node's state.
    pub(crate) fn local(&self, local: u32) -> &LocalFacts {
        &self.local_facts[local as usize]
    }

    /// What is to be known of a message.
    pub(crate) fn route(&self, message: u32) -> Route {
        self.routes[message as usize]
    }

    /// What is to be known of users and monitor.
    pub(crate) fn watch(&self, watch: u32) -> &WatchFacts {
        &self.watch_facts[watch as usize]
    }

    /// The first node to which something is owed.
    pub(crate) fn owed(&self, watch: u32) -> Option<NodeId> {
        self.watches[watch].monitor.owed().iter().next()
    }

    /// What a node in this state makes of a cause, if that is known: nothing if it refuses, else
    /// one deed for each way to choose.
    pub(crate) fn deeds(&self, local: u32, code: Code) -> Option<&[Deed]> {
        let &(start, end) = self.deeds_known.get(&pair(local, code.0))?;
        Some(&self.deeds[start as usize..end as usize])
    }

    /// What users and monitor in this state make of a tale, if that is known.
    pub(crate) fn heard(&self, watch: u32, tale: u32) -> Option<Heard> {
        self.heard_known.get(&pair(watch, tale)).copied()
    }

    /// Everything that is known to happen to a node in a state, in order.
    pub(crate) fn deeds_all(&self) -> Vec<(u32, Code)> {
        let mut keys: Vec<_> = self.deeds_known.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| ((key >> 32) as u32, Code(key as u32))).collect()
    }

    /// The messages that are sent with a deed.
    pub(crate) fn sends(&self, deed: &Deed) -> &[u32] {
        &self.sends[deed.sends.0 as usize..deed.sends.1 as usize]
    }

    /// The choices that lead to a deed.
    pub(crate) fn choices(&self, deed: &Deed) -> &[u32] {
        &self.choices[deed.choices.0 as usize..deed.choices.1 as usize]
    }

    /// The cause that a code stands for.
    pub(crate) fn cause(&self, code: Code) -> Cause<A> {
        let payload = code.0 % PAYLOAD_MAX;
        let peer = NodeId::at(payload as usize);
        match code.0 / PAYLOAD_MAX {
            0 => Cause::Start,
            1 => Cause::Recover,
            2 => Cause::Crash,
            3 => Cause::Command(self.commands[payload].clone()),
            4 => Cause::Message(self.messages[payload].clone()),
            5 => Cause::Timer(payload as usize),
            6 => Cause::Word(payload as usize),
            7 => Cause::Noticed(peer, Liveness::Up),
            8 => Cause::Noticed(peer, Liveness::Down),
            kind => unreachable!("no cause has the kind {kind}"),
        }
    }

    /// The number of a node's state.
    pub(crate) fn add_local(&mut self, local: Local<A>) -> u32 {
        let presence = match local.presence {
            Up::Asleep => Presence::Asleep,
            Up::Up(_) => Presence::Up,
            Up::Down => Presence::Down,
        };
        let words = local.words.iter().enumerate().filter_map(|(place, &(peer, now))| {
            let first = place == 0 || local.words[place - 1].0 != peer;
            first.then_some(Word { place: place as u32, peer: peer.index(), now })
        });
        let words = words.collect();
        let facts = LocalFacts { presence, timers: local.timers.len() as u32, words };
        let (number, new) = self.locals.number(local);
        if new {
            self.local_facts.push(facts);
        }
        number
    }

    /// The number of users and monitor.
    pub(crate) fn add_watch(
        &mut self,
        count: usize,
        watch: Watch<W, <A::Family as Family>::Monitor>,
    ) -> u32 {
        let command = |node| watch.users.next(node).map(|(command, _)| command);
        let commands: Vec<_> = NodeId::first(count).map(command).collect();
        let owed = watch.monitor.owed();
        let bits = owed.iter().filter(|node| node.index() < 64);
        let owed = bits.fold(0, |owed, node| owed | 1 << node.index());
        let settled = watch.monitor.settle();
        let (number, new) = self.watches.number(watch);
        if new {
            let known = &mut self.commands;
            let commands = commands.into_iter().map(|c| c.map(|c| known.number(c).0)).collect();
            self.watch_facts.push(WatchFacts { commands, owed, settled });
        }
        number
    }

    /// Keeps what a node makes of a cause.
    pub(crate) fn add_deeds(&mut self, scene: &Scene<A>, key: u64, ways: Vec<Way<A>>) {
        if self.deeds_known.contains_key(&key) {
            return;
        }
        let start = self.deeds.len() as u32;
        for Way { choices, response } in ways {
            let Response { local, sends, news, silent } = response;
            let at = local.me;
            let local = self.add_local(local);
            let tale = (!news.is_empty()).then(|| self.tales.number(Tale { at, news }).0);
            let sends_start = self.sends.len() as u32;
            for (_, envelope) in sends {
                let message = self.add_message(scene, envelope);
                self.sends.push(message);
            }
            let sends = (sends_start, self.sends.len() as u32);
            let choices_start = self.choices.len() as u32;
            self.choices.extend(choices);
            let choices = (choices_start, self.choices.len() as u32);
            self.deeds.push(Deed { local, tale, silent, sends, choices });
        }
        self.deeds_known.insert(key, (start, self.deeds.len() as u32));
    }

    fn add_message(&mut self, scene: &Scene<A>, envelope: Envelope<A::Msg>) -> u32 {
        let link = scene.topology.link(envelope.from, envelope.to).expect("only neighbours send");
        let (from, to) = (envelope.from.index() as u32, envelope.to.index() as u32);
        let route = Route { from, to, link: link as u32 };
        let (number, new) = self.messages.number(envelope);
        if new {
            self.routes.push(route);
        }
        number
    }

    /// Keeps what users and monitor make of a tale.
    pub(crate) fn add_heard(
        &mut self,
        count: usize,
        key: u64,
        heard: Result<Watch<W, <A::Family as Family>::Monitor>, Violation>,
    ) {
        if self.heard_known.contains_key(&key) {
            return;
        }
        let heard = match heard {
            Ok(watch) => Heard::Fine(self.add_watch(count, watch)),
            Err(violation) => Heard::Broken(self.violations.number(violation).0),
        };
        self.heard_known.insert(key, heard);
    }
}

/// The key of a part and what happens to it.
pub(crate) const fn pair(part: u32, what: u32) -> u64 {
    (part as u64) << 32 | what as u64
}
