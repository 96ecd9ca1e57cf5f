//! A whole system over a real network: users who act, nodes that crash and come back, and the
//! oracle that judges, all driven by what the nodes' steps say.
//!
//! Everything is read from one stream of steps in the order of cause and effect. Where the nodes run
//! is the [`Crew`]'s business: as tasks of this process ([`Local`]), or as processes of their own.

mod crew;
mod judge;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

use quorate_core::trace::{Happening, Outcome as Effect, Record};
use quorate_core::{
    Fact, Family, Life, NodeId, NodeSet, PerNode, Scene, Solution, Span, System, Time, Violation,
    Wait, Workload,
};
use tokio::time::{Instant, sleep_until};

use crate::dice::Dice;
pub use crew::{Crew, Local};
pub use judge::Outcome;
use judge::Tribunal;

/// What happens to a system besides what its users do, and when it ends.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who crashes when; at 0, a node never starts.
    pub crashes: Vec<(NodeId, Duration)>,
    /// Who comes up again when.
    pub recoveries: Vec<(NodeId, Duration)>,
    /// When it ends at the latest.
    pub until: Duration,
    /// Nothing happens any more if nothing has happened for so long.
    pub quiet: Duration,
    /// When it ends otherwise.
    pub ends: Ends,
    /// Where the random waits of users start.
    pub seed: u64,
}

/// When a run ends, unless its time is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// When users have nothing left to do, and nothing happens any more; where the algorithm never
    /// comes to rest, when users have done all that they ever will.
    Quiet,
    /// As soon as all that was to happen has happened, and the oracle is content with such an end.
    Content,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            crashes: Vec::new(),
            recoveries: Vec::new(),
            until: Duration::from_secs(10),
            quiet: Duration::from_millis(250),
            ends: Ends::Quiet,
            seed: 1,
        }
    }
}

/// Who looks on.
pub trait Audience<C, E> {
    /// Something has happened that the oracle is told of.
    fn fact(&mut self, _now: Time, _at: NodeId, _fact: Fact<'_, C, E>) {}

    /// A step was taken, in the order of cause and effect; times do not run backwards.
    fn step(&mut self, _record: Record) {}
}

impl<C, E> Audience<C, E> for () {}

/// Something that happens to a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fate {
    Crash,
    Recover,
}

/// Runs the system to its end; the crew is left as it is then.
///
/// # Errors
/// If a node cannot be started or ended, or says what nobody can read.
pub async fn run<A, W, K>(
    scene: &Scene<A>,
    users: W,
    plan: &Plan,
    crew: &mut K,
    audience: &mut dyn Audience<A::Command, A::Event>,
) -> io::Result<Outcome>
where
    A: Solution,
    W: Workload<A::Command, A::Event>,
    K: Crew<A::Command>,
{
    let mut party = Party::new(scene, users, plan, audience);
    party.begin(crew).await?;
    let epoch = crew.epoch();
    let until = epoch + plan.until;
    let quiet = loop {
        if party.is_over() {
            break true;
        }
        let act = party.next_act();
        let fate = party.fates.front().map(|(at, ..)| epoch + *at);
        let silent = party.silence().map(|at| at.max(Instant::now()));
        let times = [act.map(|(at, _)| at), fate, silent, Some(until)];
        let wake = times.into_iter().flatten().min().unwrap_or(until);
        tokio::select! {
            biased;
            record = crew.next() => party.take(record?, epoch)?,
            () = sleep_until(wake) => {
                if wake == until {
                    break false;
                } else if fate == Some(wake) {
                    party.befall(crew).await?;
                } else if let Some((_, node)) = act.filter(|(at, _)| *at == wake) {
                    party.act(node, crew).await;
                } else if party.is_at_rest() {
                    break true;
                } else {
                    party.unrest = true;
                }
            }
        }
    };
    Ok(party.finish(quiet))
}

/// A run that goes on.
struct Party<'a, A: Solution, W> {
    scene: &'a Scene<A>,
    users: W,
    plan: &'a Plan,
    audience: &'a mut dyn Audience<A::Command, A::Event>,
    judge: Tribunal<<Scene<A> as System>::Monitor>,
    /// When each user acts next, if it does.
    due: PerNode<Option<Instant>>,
    /// Whose command, crash or recovery is on its way.
    given: NodeSet,
    fates: VecDeque<(Duration, Fate, NodeId)>,
    lives: PerNode<Life>,
    up: NodeSet,
    /// The timers that are set, by node.
    timers: PerNode<BTreeSet<String>>,
    dice: Dice,
    now: Time,
    /// When something happened last.
    last: Instant,
    /// It was silent for long enough, and yet it is not over: some timer is still to run out.
    unrest: bool,
    /// Users have nothing left to do, and the algorithm would go on for ever.
    finished: bool,
}

impl<'a, A, W> Party<'a, A, W>
where
    A: Solution,
    W: Workload<A::Command, A::Event>,
{
    fn new(
        scene: &'a Scene<A>,
        users: W,
        plan: &'a Plan,
        audience: &'a mut dyn Audience<A::Command, A::Event>,
    ) -> Self {
        let count = scene.count();
        let crashes = plan.crashes.iter().map(|&(node, at)| (at, Fate::Crash, node));
        let recoveries = plan.recoveries.iter().map(|&(node, at)| (at, Fate::Recover, node));
        let mut fates: Vec<_> = crashes.chain(recoveries).collect();
        fates.sort_unstable();
        Self {
            users,
            plan,
            audience,
            judge: Tribunal::new(scene.monitor(), &scene.traits.kinds, count),
            due: PerNode::new(count, |_| None),
            given: NodeSet::with_room(count),
            fates: fates.into(),
            lives: PerNode::new(count, |_| Life::FIRST),
            up: NodeSet::with_room(count),
            timers: PerNode::new(count, |_| BTreeSet::new()),
            dice: Dice::new(plan.seed),
            now: Time::ZERO,
            last: Instant::now(),
            unrest: false,
            finished: false,
            scene,
        }
    }

    /// Starts all nodes but those that never start, and asks all users.
    async fn begin(&mut self, crew: &mut impl Crew<A::Command>) -> io::Result<()> {
        let mut absent = NodeSet::new();
        while let Some((at, Fate::Crash, node)) = self.fates.front()
            && at.is_zero()
        {
            absent.insert(*node);
            self.fates.pop_front();
        }
        let present: Vec<_> =
            NodeId::first(self.scene.count()).filter(|node| !absent.contains(*node)).collect();
        crew.start(&present).await?;
        self.up.extend(present.iter().copied());
        for node in &absent {
            let record = blank(Time::ZERO, node, Happening::Crash);
            self.take(record, crew.epoch())?;
        }
        for node in present {
            self.ask(node, crew.epoch());
        }
        self.last = Instant::now();
        Ok(())
    }

    /// The user that acts next, and when.
    fn next_act(&self) -> Option<(Instant, NodeId)> {
        self.due.iter().filter_map(|(node, at)| Some(((*at)?, node))).min()
    }

    fn is_idle(&self) -> bool {
        self.given.is_empty() && self.fates.is_empty() && self.next_act().is_none()
    }

    /// When it will have been silent for long enough, if it matters.
    fn silence(&self) -> Option<Instant> {
        (self.is_idle() && !self.unrest).then(|| self.last + self.plan.quiet)
    }

    /// It has been silent for long enough. Is there nothing more to come?
    fn is_at_rest(&self) -> bool {
        self.judge.is_content() || self.up.iter().all(|node| self.timers[node].is_empty())
    }

    fn is_over(&self) -> bool {
        match self.plan.ends {
            Ends::Quiet => self.finished && self.fates.is_empty(),
            Ends::Content => self.is_idle() && self.judge.is_content(),
        }
    }

    /// Lets the user act whose turn it is.
    async fn act(&mut self, node: NodeId, crew: &mut impl Crew<A::Command>) {
        self.due[node] = None;
        if let Some((command, _)) = self.users.next(node) {
            self.given.insert(node);
            crew.command(node, command).await;
        }
    }

    /// Lets happen to a node what is to happen next.
    async fn befall(&mut self, crew: &mut impl Crew<A::Command>) -> io::Result<()> {
        match self.fates.pop_front() {
            Some((_, Fate::Crash, node)) if self.up.remove(node) => {
                self.given.insert(node);
                crew.crash(node).await
            }
            Some((_, Fate::Recover, node)) if !self.up.contains(node) => {
                let life = &mut self.lives[node];
                *life = life.next();
                self.up.insert(node);
                self.given.insert(node);
                crew.restart(node, *life).await
            }
            _ => Ok(()),
        }
    }

    /// Takes the next step of any node.
    fn take(&mut self, mut record: Record, epoch: Instant) -> io::Result<()> {
        let node = record.node;
        // Clocks of several threads, let alone processes, need not agree on the last microsecond.
        self.now = self.now.max(record.at);
        record.at = self.now;
        (self.last, self.unrest) = (Instant::now(), false);
        self.judge.count(&record);
        let mut turns = self.suffer(&mut record)?;
        for effect in std::mem::take(&mut record.effects) {
            match &effect {
                Effect::Set(timer) => {
                    self.timers[node].insert(timer.clone());
                }
                Effect::Cancel(timer) => {
                    self.timers[node].remove(timer);
                }
                Effect::Emit(text) => {
                    let event = A::Family::event(text).ok_or_else(|| unreadable(text))?;
                    self.fact(&mut record, Fact::Event(&event));
                    turns.push(node);
                    turns.extend(self.users.told(node, &event));
                }
                Effect::Send { .. } | Effect::Persist(_) => {}
            }
            record.effects.push(effect);
        }
        if !turns.is_empty() {
            self.finished = self.scene.traits.restless && self.users.finished();
        }
        for node in turns {
            self.ask(node, epoch);
        }
        self.audience.step(record);
        Ok(())
    }

    /// What comes in at a node. Returns whose users may have a turn now.
    fn suffer(&mut self, record: &mut Record) -> io::Result<Vec<NodeId>> {
        let node = record.node;
        let mut turns = Vec::new();
        match &record.input {
            Happening::Crash => {
                self.up.remove(node);
                self.given.remove(node);
                self.due[node] = None;
                self.timers[node].clear();
                self.fact(record, Fact::Crashed);
                turns.extend(self.users.crashed(node));
            }
            Happening::Recover => {
                // The crash may have been heard of after the node was started again.
                self.up.insert(node);
                self.given.remove(node);
                self.fact(record, Fact::Recovered);
                turns.push(node);
                turns.extend(self.users.recovered(node));
            }
            Happening::Command(text) => {
                let command = A::Family::command(text).ok_or_else(|| unreadable(text))?;
                self.given.remove(node);
                self.fact(record, Fact::Command(&command));
                turns.push(node);
                turns.extend(self.users.gave(node, &command));
            }
            Happening::Refused(..) => {
                self.given.remove(node);
            }
            Happening::Timer(timer) => {
                self.timers[node].remove(timer);
            }
            Happening::Start
            | Happening::Pause
            | Happening::Resume
            | Happening::Receive(_)
            | Happening::Lose(_)
            | Happening::Liveness(..)
            | Happening::Settle => {}
        }
        Ok(turns)
    }

    fn fact(&mut self, record: &mut Record, fact: Fact<'_, A::Command, A::Event>) {
        self.audience.fact(self.now, record.node, fact);
        if let Some(violation) = self.judge.fact(self.now, record.node, fact) {
            record.violation = Some(in_words(&violation));
        }
    }

    /// Notes when a user acts next.
    fn ask(&mut self, node: NodeId, epoch: Instant) {
        let busy = self.given.contains(node) || self.due[node].is_some();
        if busy || !self.up.contains(node) {
            return;
        }
        let Some((_, wait)) = self.users.next(node) else { return };
        let long = |span: Span| Duration::from_nanos(span.0);
        let now = Instant::now();
        self.due[node] = Some(match wait {
            Wait::For(span) => now + long(span),
            Wait::Until(span) => now.max(epoch + long(span)),
            Wait::Exponential(mean) => now + self.dice.exponential(long(mean)),
        });
    }

    fn finish(mut self, quiet: bool) -> Outcome {
        let broken = self.judge.settle(self.now, quiet);
        for (at, violation) in broken.iter().flat_map(|(at, all)| all.iter().map(|it| (*at, it))) {
            let record = blank(self.now, at, Happening::Settle);
            self.audience.step(Record { violation: Some(in_words(violation)), ..record });
        }
        self.judge.outcome(self.now, quiet)
    }
}

fn in_words(violation: &Violation) -> (String, String) {
    (violation.property.to_owned(), violation.text.clone())
}

fn blank(at: Time, node: NodeId, input: Happening) -> Record {
    let (choices, steps, effects) = (Vec::new(), Vec::new(), Vec::new());
    Record { at, node, input, choices, steps, effects, violation: None }
}

fn unreadable(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a node said what nobody can read: {text}"))
}
