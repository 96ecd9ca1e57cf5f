//! One node of the explored system, and what it makes of whatever happens to it.

use quorate_core::trace::{Recorder, Recording};
use quorate_core::{
    Choices, Ctx, Effect, Input, Kept, Life, Liveness, NodeId, Protocol, Time, Topology,
};

/// What the nodes of a run have in common.
pub(crate) struct Setting<'a, P: Protocol> {
    /// Who can talk to whom.
    pub(crate) topology: &'a Topology,
    /// Does the protocol want the word of a failure detector?
    pub(crate) listens: bool,
    /// Makes the state of a node before its start: who it is, in which life, and what it kept.
    pub(crate) boot: &'a Boot<'a, P>,
}

/// Makes the state of a node before its start.
type Boot<'a, P> = dyn Fn(NodeId, Life, &Kept<<P as Protocol>::Stable>) -> P + Sync + 'a;

/// Everything that belongs to one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Local<P: Protocol> {
    pub(crate) me: NodeId,
    pub(crate) state: State<P>,
    life: Life,
    kept: Kept<P::Stable>,
    /// The timers that are set, in order.
    pub(crate) timers: Vec<P::Timer>,
    /// What the failure detector has not told it yet: by peer, and for each peer in order.
    pub(crate) words: Vec<(NodeId, Liveness)>,
}

/// The state of a node's protocol, if the node is there.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum State<P> {
    /// It has not come up yet.
    Asleep,
    /// It is there.
    Up(P),
    /// It has crashed.
    Down,
}

/// A message on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Envelope<M> {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) msg: M,
}

/// What can happen to a node.
#[derive(Debug)]
pub(crate) enum Cause<'a, P: Protocol> {
    Start,
    Recover,
    Crash,
    Command(&'a P::Command),
    Message(&'a Envelope<P::Msg>),
    /// The timer in this position fires.
    Timer(usize),
    /// The detector's word in this position arrives.
    Word(usize),
    /// The detector finds out something that it will tell.
    Noticed(NodeId, Liveness),
}

/// A fact, as monitors are told it, to be kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum KeptFact<C, E> {
    Command(C),
    Event(E),
    Crashed,
    Recovered,
}

/// What a node makes of a cause.
#[derive(Clone, Debug)]
pub(crate) struct Response<P: Protocol> {
    /// The node afterwards.
    pub(crate) local: Local<P>,
    /// What it sent, each with the number of the sending.
    pub(crate) sends: Vec<(u64, Envelope<P::Msg>)>,
    /// What its audience is told, in order.
    pub(crate) facts: Vec<KeptFact<P::Command, P::Event>>,
    /// It had no effects at all.
    pub(crate) silent: bool,
}

impl<P: Protocol> Local<P> {
    /// The node before it comes up.
    pub(crate) fn asleep(me: NodeId) -> Self {
        let (timers, words) = (Vec::new(), Vec::new());
        Self { me, state: State::Asleep, life: Life::FIRST, kept: Kept::new(), timers, words }
    }

    /// What the node makes of a cause; none if it refuses the command. `sent` counts its sendings
    /// so far.
    pub(crate) fn respond(
        &self,
        setting: &Setting<'_, P>,
        cause: Cause<'_, P>,
        choices: &mut dyn Choices,
        sent: u64,
        recorder: Option<&mut Recorder>,
    ) -> Option<Response<P>> {
        let mut local = self.clone();
        let mut facts = Vec::new();
        let input = match cause {
            Cause::Crash => {
                local.state = State::Down;
                local.timers.clear();
                local.words.clear();
                let facts = [KeptFact::Crashed].into();
                return Some(Response { local, sends: Vec::new(), facts, silent: true });
            }
            Cause::Noticed(peer, now) => {
                let place = local.words.partition_point(|(other, _)| *other <= peer);
                local.words.insert(place, (peer, now));
                return Some(Response { local, sends: Vec::new(), facts, silent: true });
            }
            Cause::Recover => {
                local.life = local.life.next();
                facts.push(KeptFact::Recovered);
                Input::Start
            }
            Cause::Start => Input::Start,
            Cause::Command(command) => {
                facts.push(KeptFact::Command(command.clone()));
                Input::Command(command.clone())
            }
            Cause::Message(Envelope { from, msg, .. }) => {
                Input::Message { from: *from, msg: msg.clone() }
            }
            Cause::Timer(place) => Input::Timer(local.timers.remove(place)),
            Cause::Word(place) => {
                let (peer, now) = local.words.remove(place);
                Input::Liveness { peer, now }
            }
        };
        local.take_in(setting, input, choices, (sent, recorder), facts)
    }

    fn take_in(
        mut self,
        setting: &Setting<'_, P>,
        input: Input<P>,
        choices: &mut dyn Choices,
        (sent, mut recorder): (u64, Option<&mut Recorder>),
        facts: Vec<KeptFact<P::Command, P::Event>>,
    ) -> Option<Response<P>> {
        if matches!(input, Input::Start) {
            self.state = State::Up((setting.boot)(self.me, self.life, &self.kept));
        }
        let State::Up(protocol) = &mut self.state else { panic!("{input:?} at a node not there") };
        let before = matches!(input, Input::Command(_)).then(|| protocol.clone());
        let (mut effects, mut counted) = (Vec::new(), sent);
        let recording = recorder.as_deref_mut();
        let mut sink = Recording { sink: &mut effects, sent: &mut counted, recorder: recording };
        let mut cx = Ctx::new(self.me, Time::ZERO, choices, &mut sink);
        let result = protocol.step(&mut cx, input);
        protocol.assert_invariants();
        if let Err(refusal) = result {
            let unchanged = before.as_ref() == Some(&*protocol) && effects.is_empty();
            assert!(unchanged, "a refusal changes something: {protocol:?}");
            if let Some(recorder) = recorder {
                recorder.refused(refusal);
            }
            return None;
        }
        Some(self.carry_out(setting, effects, sent, facts))
    }

    fn carry_out(
        mut self,
        setting: &Setting<'_, P>,
        effects: Vec<Effect<P>>,
        mut sent: u64,
        mut facts: Vec<KeptFact<P::Command, P::Event>>,
    ) -> Response<P> {
        let from = self.me;
        let mut sends = Vec::new();
        let silent = effects.is_empty();
        for effect in effects {
            match effect {
                Effect::Send { to, msg } => {
                    sent += 1;
                    sends.push((sent, Envelope { from, to, msg }));
                }
                Effect::Multicast { to, msg } => {
                    sent += 1;
                    let each = |to| (sent, Envelope { from, to, msg: msg.clone() });
                    sends.extend(to.iter().map(each));
                }
                Effect::SetTimer { timer, .. } => {
                    if let Err(place) = self.timers.binary_search(&timer) {
                        self.timers.insert(place, timer);
                    }
                }
                Effect::CancelTimer(timer) => self.timers.retain(|&other| other != timer),
                Effect::Persist(record) => {
                    self.kept.put(record);
                }
                Effect::Emit(event) => facts.push(KeptFact::Event(event)),
            }
        }
        for (_, Envelope { to, msg, .. }) in &sends {
            let linked = setting.topology.link(from, *to).is_some();
            assert!(linked, "node {from} sends {msg:?} to node {to}, which is not its neighbour");
        }
        Response { local: self, sends, facts, silent }
    }
}
