//! The task that owns the node: one input at a time, and what it wants done, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_core::trace::{Happening, Parcel, Record, Recorder};
use quorate_core::{Input, Node, NodeId, NodeSet, Output, PerNode, Refusal, Solution};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::dice::Dice;
use crate::events::EventSink;
use crate::frame::{self, TooLong};
use crate::hearsay::Hearsay;
use crate::intake::Batch;
use crate::lane::{Lane, Load};
use crate::shared::{Phase, Shared, reached};
use crate::{CommandError, End, Store};

/// A command, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Order<C> {
    pub(crate) command: C,
    pub(crate) answer: oneshot::Sender<Result<(), CommandError>>,
}

/// Where the node's inputs come from.
#[derive(Debug)]
pub(crate) struct Inputs<A: Solution> {
    pub(crate) inbound: mpsc::Receiver<Batch<A::Msg>>,
    pub(crate) orders: mpsc::Receiver<Order<A::Command>>,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Where what the node says goes, and whom it hears about others from.
pub(crate) struct Outlets<A: Solution> {
    pub(crate) events: EventSink<A::Event>,
    pub(crate) store: Box<dyn Store<A::Stable>>,
    pub(crate) hearsay: Option<Hearsay>,
}

/// The task that owns the node.
pub(crate) struct Actor<A: Solution> {
    me: NodeId,
    node: Node<A>,
    dice: Dice,
    shared: Arc<Shared>,
    lanes: Arc<PerNode<Option<Arc<Lane>>>>,
    /// Messages of the node to itself, which no network carries.
    to_self: VecDeque<(u64, A::Msg)>,
    events: EventSink<A::Event>,
    store: Box<dyn Store<A::Stable>>,
    /// What the node was told of its peers, if it listens.
    hearsay: Option<Hearsay>,
    recorder: Recorder,
    /// Steps that were taken and not told yet.
    steps: Vec<Record>,
    /// What is to be done, emptied whenever it has been.
    outputs: Vec<Output<A>>,
    /// To whom something was sent since the writers were last told.
    filled: NodeSet,
    /// Whose queues were half full when something was last put into them.
    crowded: NodeSet,
    scratch: Vec<u8>,
}

impl<A: Solution> Actor<A>
where
    A::Msg: Serialize,
{
    pub(crate) fn new(
        me: NodeId,
        protocol: A,
        seed: u64,
        shared: Arc<Shared>,
        lanes: Arc<PerNode<Option<Arc<Lane>>>>,
        outlets: Outlets<A>,
    ) -> Self {
        let Outlets { events, store, hearsay } = outlets;
        Self {
            me,
            node: Node::new(me, protocol),
            dice: Dice::new(seed),
            to_self: VecDeque::new(),
            events,
            store,
            hearsay,
            recorder: Recorder::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            filled: NodeSet::with_room(lanes.len()),
            crowded: NodeSet::with_room(lanes.len()),
            scratch: Vec::new(),
            shared,
            lanes,
        }
    }

    /// Runs the node until it is told to halt, or cannot go on.
    pub(crate) async fn run(mut self, mut inputs: Inputs<A>) -> End {
        // A command that waits for room.
        let mut held = None;
        self.start();
        loop {
            if let Err(end) = self.carry_out() {
                return end;
            }
            // Looked at when a command is there, not when one was waited for.
            if let Some(order) = held.take_if(|_| !self.is_congested()) {
                self.obey(order);
                continue;
            }
            let deadline = self.node.next_deadline().and_then(|at| self.shared.clock.instant(at));
            let listens = self.hearsay.is_some();
            let overdue = self.hearsay.as_ref().and_then(Hearsay::deadline);
            tokio::select! {
                () = reached(&mut inputs.phase, Phase::Halting) => return End::Shutdown,
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.ring();
                }
                () = self.shared.links.notified(), if listens => self.listen(),
                () = sleep_until(overdue.unwrap_or_else(Instant::now)), if overdue.is_some() => {
                    self.listen();
                }
                () = yield_now(), if !self.to_self.is_empty() => {
                    if let Some((id, msg)) = self.to_self.pop_front() {
                        self.receive(self.me, id, msg);
                    }
                }
                Some(order) = inputs.orders.recv(), if held.is_none() => held = Some(order),
                () = self.shared.room.notified(), if held.is_some() => {}
                Some(batch) = next(&mut inputs.inbound, &self.events) => self.take_in(batch),
            }
        }
    }

    fn start(&mut self) {
        let first = self.shared.config.life.is_first();
        let happening = if first { Happening::Start } else { Happening::Recover };
        let note = self.is_watched().then_some(happening);
        self.happen(Input::Start, note);
    }

    /// Tells the node what is new about its peers.
    fn listen(&mut self) {
        let Some(hearsay) = &mut self.hearsay else { return };
        for (peer, now) in hearsay.news(&self.lanes, Instant::now()) {
            let note = self.is_watched().then_some(Happening::Liveness(peer, now));
            self.happen(Input::Liveness { peer, now }, note);
        }
    }

    fn is_watched(&self) -> bool {
        self.shared.config.trace.is_some()
    }

    fn obey(&mut self, Order { command, answer }: Order<A::Command>) {
        let note = self.is_watched().then(|| Happening::Command(format!("{command:?}")));
        let result = self.step(Input::Command(command), note);
        // Whoever gave it may have stopped waiting for the answer.
        let _ = answer.send(result.map_err(CommandError::Refused));
    }

    fn take_in(&mut self, Batch { from, messages }: Batch<A::Msg>) {
        for (id, msg) in messages {
            self.receive(from, id, msg);
        }
    }

    fn receive(&mut self, from: NodeId, id: u64, msg: A::Msg) {
        let note = || Happening::Receive(Parcel::new(from, id, &msg));
        let note = self.is_watched().then(note);
        self.happen(Input::Message { from, msg }, note);
    }

    /// Hands in a timer that is due. If there are more, they are next.
    fn ring(&mut self) {
        if let Some(timer) = self.node.due(self.shared.clock.now()) {
            let note = self.is_watched().then(|| Happening::Timer(format!("{timer:?}")));
            self.happen(Input::Timer(timer), note);
        }
    }

    /// A step that cannot be refused.
    fn happen(&mut self, input: Input<A>, note: Option<Happening>) {
        let result = self.step(input, note);
        assert!(result.is_ok(), "only commands can be refused");
    }

    /// One step of the node; written down if it is noted what happens.
    fn step(&mut self, input: Input<A>, note: Option<Happening>) -> Result<(), Refusal> {
        let now = self.shared.clock.now();
        let Some(happening) = note else {
            return self.node.handle(now, &mut self.dice, input, None);
        };
        let recorder = &mut self.recorder;
        recorder.begin(now, self.me, happening);
        let result = self.node.handle(now, &mut self.dice, input, Some(recorder));
        if let Err(refusal) = result {
            recorder.refused(refusal);
        }
        self.steps.extend(recorder.end());
        result
    }

    /// Does what the node wants done, in order; then tells the writers, once each. Records are kept
    /// first: to have kept one and not said what was said before it is to have lost that on the way.
    fn carry_out(&mut self) -> Result<(), End> {
        let mut outputs = std::mem::take(&mut self.outputs);
        while let Some(output) = self.node.poll() {
            match output {
                Output::Persist(record) => {
                    self.store.put(&record).map_err(|error| End::Store(error.kind()))?;
                }
                output => outputs.push(output),
            }
        }
        if let Some(witness) = &self.shared.config.trace {
            self.steps.drain(..).for_each(|record| witness.take(record));
        }
        for output in outputs.drain(..) {
            match output {
                Output::Send { id, to, msg } if to == self.me => self.to_self.push_back((id, msg)),
                Output::Send { id, to, msg } => {
                    let frame = self.encode(id, &msg);
                    self.post(to, frame.as_ref().map_err(|too_long| *too_long));
                }
                Output::Multicast { id, to, msg } => self.multicast(id, &to, msg),
                Output::Persist(_) => unreachable!("records have been kept"),
                Output::Emit(event) => self.events.tell(event),
            }
        }
        self.outputs = outputs;
        for node in &self.filled {
            if let Some(lane) = &self.lanes[node] {
                lane.filled.notify_one();
            }
        }
        self.filled.clear();
        Ok(())
    }

    /// Encodes once, however many it goes to.
    fn multicast(&mut self, id: u64, to: &NodeSet, msg: A::Msg) {
        let frame = self.encode(id, &msg);
        let me = self.me;
        for node in to.iter().filter(|&node| node != me) {
            self.post(node, frame.as_ref().map_err(|too_long| *too_long));
        }
        if to.contains(self.me) {
            self.to_self.push_back((id, msg));
        }
    }

    fn encode(&mut self, id: u64, msg: &A::Msg) -> Result<Arc<[u8]>, TooLong> {
        frame::seal(&mut self.scratch, &[], &(id, msg), self.shared.config.frame_max)?;
        Ok(Arc::from(self.scratch.as_slice()))
    }

    fn post(&mut self, to: NodeId, frame: Result<&Arc<[u8]>, TooLong>) {
        let lane = self.lanes[to].as_ref().expect("an algorithm sends only to its neighbours");
        if lane.push(frame, &self.shared.counters) {
            self.crowded.insert(to);
        }
        self.filled.insert(to);
    }

    /// Is a queue so full that commands should wait?
    fn is_congested(&mut self) -> bool {
        if self.crowded.is_empty() {
            return false;
        }
        let grace = self.shared.config.outage_grace;
        let lanes = &self.lanes;
        let load = |node| lanes[node].as_ref().map_or(Load::Light, |lane| lane.load(grace));
        self.crowded = self.crowded.iter().filter(|&node| load(node) != Load::Light).collect();
        self.crowded.iter().any(|node| load(node) == Load::Heavy)
    }
}

/// The next batch, once the user has not fallen too far behind.
async fn next<M, E>(
    inbound: &mut mpsc::Receiver<Batch<M>>,
    events: &EventSink<E>,
) -> Option<Batch<M>> {
    events.caught_up().await;
    inbound.recv().await
}
