//! Nodes and messages with their types: each is kept once, and here it is found out what a node
//! makes of a cause.

use quorate_core::trace::Recorder;
use quorate_core::{Choices, Liveness, NodeId, Protocol};

use crate::audience::News;
use crate::choices::{Odometer, Script};
use crate::found::Found;
use crate::intern::Interner;
use crate::local::{Cause, Envelope, Local, Response, Setting, State};
use crate::tables::{Code, LocalSummary, NewResponse, Presence, Route, Tables, Word};

/// All commands that users gave.
pub(crate) type Commands<P> = Interner<<P as Protocol>::Command>;
/// All news that were told.
pub(crate) type NewsTold<P> = Interner<News<<P as Protocol>::Command, <P as Protocol>::Event>>;

/// All nodes' states and all messages that were met.
pub(crate) struct Nodes<'a, P: Protocol> {
    setting: Setting<'a, P>,
    pub(crate) locals: Interner<Local<P>>,
    pub(crate) messages: Interner<Envelope<P::Msg>>,
    found: Found<Responses<P>>,
}

/// What a node in this state makes of a cause.
struct Responses<P: Protocol> {
    local: u32,
    code: Code,
    /// The cause is a message that the node claims to be outdated.
    outdated: bool,
    /// The choices and what they lead to, for every way to choose.
    ways: Vec<(Vec<u32>, Response<P>)>,
}

impl<'a, P: Protocol> Nodes<'a, P> {
    /// No node was met yet.
    pub(crate) fn new(setting: Setting<'a, P>) -> Self {
        let (locals, messages) = (Interner::default(), Interner::default());
        Self { setting, locals, messages, found: Found::default() }
    }

    /// How many nodes take part.
    pub(crate) const fn count(&self) -> usize {
        self.setting.topology.count()
    }

    /// Finds out what a node in this state makes of a cause, for every way to choose.
    pub(crate) fn find(&self, commands: &Commands<P>, share: usize, local: u32, code: Code) {
        let mut odometer = Odometer::default();
        let mut ways = Vec::new();
        loop {
            if let Some(response) = self.respond(commands, local, code, &mut odometer, 0, None) {
                ways.push((odometer.chosen().collect(), response));
            }
            if !odometer.advance() {
                break;
            }
        }
        let outdated = code.as_message().is_some_and(|message| self.is_outdated(local, message));
        self.found.add(share, Responses { local, code, outdated, ways });
    }

    /// Repeats what a node in this state made of a cause with these choices, for the record; the
    /// numbers of its sendings, of which there were `sent` before.
    pub(crate) fn repeat(
        &self,
        commands: &Commands<P>,
        (local, code): (u32, Code),
        choices: &[u32],
        sent: u64,
        recorder: &mut Recorder,
    ) -> Vec<u64> {
        let script = &mut Script(choices);
        let response = self.respond(commands, local, code, script, sent, Some(recorder));
        let sends = response.expect("a step that was taken is not refused").sends;
        sends.into_iter().map(|(id, _)| id).collect()
    }

    /// Does a node in this state claim that the message is outdated?
    pub(crate) fn is_outdated(&self, local: u32, message: u32) -> bool {
        let Envelope { from, msg, .. } = &self.messages[message];
        match &self.locals[local].state {
            State::Up(node) => node.is_outdated(*from, msg),
            State::Asleep | State::Down => false,
        }
    }

    fn respond(
        &self,
        commands: &Commands<P>,
        local: u32,
        code: Code,
        choices: &mut dyn Choices,
        sent: u64,
        recorder: Option<&mut Recorder>,
    ) -> Option<Response<P>> {
        let payload = code.payload();
        let peer = NodeId::at(payload as usize);
        let cause = match code.kind() {
            0 => Cause::Start,
            1 => Cause::Recover,
            2 => Cause::Crash,
            3 => Cause::Command(&commands[payload]),
            4 => Cause::Message(&self.messages[payload]),
            5 => Cause::Timer(payload as usize),
            6 => Cause::Word(payload as usize),
            7 => Cause::Noticed(peer, Liveness::Up),
            8 => Cause::Noticed(peer, Liveness::Down),
            kind => unreachable!("no cause has the kind {kind}"),
        };
        self.locals[local].respond(&self.setting, cause, choices, sent, recorder)
    }

    /// Puts what was found out in a share into the tables.
    pub(crate) fn keep(&mut self, share: usize, news: &mut NewsTold<P>, tables: &mut Tables) {
        for Responses { local, code, outdated, ways } in self.found.take(share) {
            if tables.responses(local, code).is_some() {
                continue;
            }
            let mut responses = Vec::new();
            for (choices, Response { local, sends, facts, silent }) in ways {
                let at = local.me;
                let local = self.add(local, tables);
                let news = (!facts.is_empty()).then(|| news.number(News { at, facts }).0);
                let message = |(_, envelope)| self.add_message(envelope, tables);
                let sends = sends.into_iter().map(message).collect();
                responses.push(NewResponse { local, news, silent, outdated, sends, choices });
            }
            tables.add_responses(local, code, responses);
        }
    }

    /// The number of a node's state.
    pub(crate) fn add(&mut self, local: Local<P>, tables: &mut Tables) -> u32 {
        let (number, new) = self.locals.number(local);
        if new {
            let local = &self.locals[number];
            let presence = match local.state {
                State::Asleep => Presence::Asleep,
                State::Up(_) => Presence::Up,
                State::Down => Presence::Down,
            };
            let words = Word::next(&local.words);
            let timers = local.timers.len() as u32;
            tables.add_local(LocalSummary { presence, timers, words });
        }
        number
    }

    fn add_message(&mut self, envelope: Envelope<P::Msg>, tables: &mut Tables) -> u32 {
        let Envelope { from, to, .. } = envelope;
        let (number, new) = self.messages.number(envelope);
        if new {
            let link = self.setting.topology.link(from, to).expect("only neighbours send");
            let (from, to) = (from.index() as u32, to.index() as u32);
            tables.add_route(Route { from, to, link: link as u32 });
        }
        number
    }
}
