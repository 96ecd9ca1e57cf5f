//! Orders come in any sequence, and the register keeps one history of views in which nobody is missing
//! without a ground.
//!
//! # Idea
//! The register is the one record that durable consensus keeps for a cluster: who was admitted, who is
//! seated, how often each has renewed. It has no clock: an order that rests on something that somebody saw
//! names it, and is refused if that has changed since. Here it is alone, and is ordered whatever its members
//! could ever order, true or not, which the checker does in every sequence.
//!
//! # Paper
//! F. B. Schneider: Implementing Fault-Tolerant Services Using the State Machine Approach: A Tutorial. ACM
//! Computing Surveys 22(4), 1990, 299–319.
//!
//! # Assumptions
//! Something else puts the orders into one sequence and keeps them: Raft, etcd, a lock. There is one
//! process for each node, and the first node has the register.
//!
//! # Messages
//! None: whoever may order stands for all who could.
//!
//! # State
//! The epoch, the view and its proposal; of each life its member, process, beat, lease, whom it does not
//! reach, and whether it left, is barred or doomed; strikes by name; settings.
//!
//! # Safety
//! Views change one at a time, and only by DECIDE in the epoch that it names. A life that has left, is
//! barred or doomed gets no more beats, and is in no later view. It is missing from a view only if it has
//! left, is doomed at its last beat, or is said to be dead at its last beat and acts for nobody.
//!
//! # Liveness
//! None: it answers.
//!
//! # Cost
//! An order is a few look-ups.
//!
//! # Deviations
//! Leases are not kept as times at which they end, but as lengths that those count who act on them.
//!
//! # Known limits
//! An order that is true when it is given and false when it arrives is refused only if it names what has
//! changed: evidence of a death names the beat, so that whoever has renewed since is not dead.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::{
    Algorithm, Boot, Channels, Ctx, Life, Message, Meta, NodeId, Paper, Protocol, Refusal, Shape,
    Timing,
};

use super::{Command, Event, Promise, Service};
use crate::deed::Deed;
use crate::register::{
    Beat, Epoch, Gone, Ground, Host, Nonce, Order, Process, ProposalId, Register, Renewal, Settings,
};

impl Algorithm for RegisterNode {
    type Family = Service;
    type Config = ();
    const META: Meta = Meta {
        name: "service/register",
        summary: "A record that is ordered anything, and never loses a member without a ground",
        paper: Paper {
            authors: "F. B. Schneider",
            title: "Implementing Fault-Tolerant Services Using the State Machine Approach: A Tutorial",
            venue: "ACM Computing Surveys 22(4)",
            year: 1990,
            doi: "10.1145/98163.98167",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "whatever it is ordered",
        kinds: &[],
        options: &[],
        costs: &[],
        source: include_str!("register.rs"),
    };
    const RESTLESS: bool = true;

    fn promise((): &()) -> Promise {
        Promise::Register
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, view, setup, .. } = boot;
        if me != NodeId::at(0) {
            return Self::Idle;
        }
        let register = Register::founded(0, Settings { lease: setup.lease });
        Self::Keeps(Box::new(Keeping {
            register,
            processes: view.members().len(),
            bounds: setup.bounds,
        }))
    }
}

/// How far a register is taken that is ordered everything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// How many lives are given, at most; as many as there are processes if none is said.
    pub lives: Option<u64>,
    /// A life with so many beats does not renew.
    pub beats: u64,
    /// How many views are decided.
    pub views: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { lives: None, beats: 1, views: 2 }
    }
}

/// The register, at the first node; the others only count.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RegisterNode {
    /// It has the register.
    Keeps(Box<Keeping>),
    /// It is a process that could be admitted.
    Idle,
}

/// A register, and what may be ordered of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Keeping {
    register: Register,
    processes: usize,
    bounds: Bounds,
}

/// It sends nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NoMessage {}

impl Message for NoMessage {
    fn kind(&self) -> &'static str {
        match *self {}
    }
}

impl Protocol for RegisterNode {
    type Msg = NoMessage;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let Self::Keeps(keeping) = self else { return Err(Refusal::NotMember) };
        if command != Command::Order {
            return Err(Refusal::NotMember);
        }
        let mut orders = keeping.orders();
        if orders.is_empty() {
            return Err(Refusal::NotHeld);
        }
        let chosen = cx.choose(u32::try_from(orders.len()).unwrap_or(u32::MAX)) as usize;
        let (by, order) = orders.swap_remove(chosen);
        keeping.take(cx, by, &order);
        Ok(())
    }

    fn on_message(&mut self, _: &mut Ctx<'_, Self>, _: NodeId, msg: NoMessage) {
        match msg {}
    }
}

impl Keeping {
    fn take(&mut self, cx: &mut Ctx<'_, RegisterNode>, by: NodeId, order: &Order) {
        let before = self.register.clone();
        let answer = self.register.apply(order);
        cx.trace(word(order), &[]);
        if self.register != before {
            Deed::tell(order, by, &answer, &self.register, |deed| cx.emit(Event::deed(deed)));
        }
    }

    /// Everything that can be ordered in this state, and by whom.
    fn orders(&self) -> Vec<(NodeId, Order)> {
        let Self { register, processes, bounds } = self;
        let most = bounds.lives.unwrap_or(*processes as u64);
        let given = |nonce: Nonce| register.members().any(|(_, it)| it.process.nonce == nonce);
        let mut all = Vec::new();
        for by in NodeId::first(*processes) {
            let admit = admit(by);
            let Order::Admit { process, .. } = &admit else { continue };
            // Lives are numbered on for ever.
            if register.next_life().0 < most || given(process.nonce) {
                all.push((by, admit));
            }
        }
        let mut push = |order| all.push((NodeId::at(0), order));
        let epoch = register.epoch().0;
        for (life, member) in register.members() {
            if member.beat.0 < bounds.beats {
                push(Order::Renew([Renewal::new(life, 1)].into()));
            }
            for beat in 0..=bounds.beats {
                push(Order::Doom { life, beat: Beat(beat) });
            }
            push(Order::Leave(life));
            for host in [Host::Begins, Host::Ends] {
                push(Order::Host(life, host));
            }
            for after in [epoch, epoch.saturating_sub(1)] {
                push(Order::Bar { after: Epoch(after), lives: BTreeSet::from([life]) });
            }
        }
        if epoch < bounds.views {
            self.decisions(&mut push);
        }
        all
    }

    /// Every view that could be asked for: any of the lives, and the others gone for any ground.
    fn decisions(&self, push: &mut impl FnMut(Order)) {
        /// More lives than these are not all combined.
        const LIVES_MAX: usize = 8;
        let epoch = self.register.epoch();
        let lives: Vec<Life> =
            self.register.members().map(|(life, _)| life).take(LIVES_MAX).collect();
        for chosen in 1..1_usize << lives.len() {
            let is_in = |place: &usize| chosen & (1 << place) != 0;
            let places = 0..lives.len();
            let next: Vec<Life> = places.clone().filter(is_in).map(|it| lives[it]).collect();
            // A proposal is told by what it says, so that the same one twice is the same.
            let members = next.iter().fold(0, |id: u128, life| (id << 4) + u128::from(life.0) + 1);
            let id = ProposalId(u128::from(epoch.0) << 64 | members);
            for ground in [Ground::Left, Ground::Doomed, Ground::Dead(Beat(1))] {
                let out = places.clone().filter(|place| !is_in(place));
                let gone = out.map(|place| Gone { life: lives[place], ground }).collect();
                push(Order::Decide { after: epoch, id, next: next.clone(), gone });
            }
        }
    }
}

/// The process at a node asks for a life.
fn admit(by: NodeId) -> Order {
    let nonce = by.index() as u128;
    let process = Process {
        nonce: Nonce(nonce),
        boot: 1,
        pid_namespace: 1,
        pid: by.number(),
        started: 1,
        lock_file: (1, by.number().into()),
        address: format!("{by}"),
    };
    Order::Admit { name: format!("m{by}"), process }
}

const fn word(order: &Order) -> &'static str {
    match order {
        Order::Admit { .. } => "admit",
        Order::Renew(_) => "renew",
        Order::Bar { .. } => "bar",
        Order::Doom { .. } => "doom",
        Order::Leave(_) => "leave",
        Order::Host(..) => "host",
        Order::Decide { .. } => "decide",
        Order::Forgive(_) => "forgive",
        Order::Set(_) => "set",
        Order::Voter { .. } => "voter",
        Order::Space { .. } => "space",
    }
}
