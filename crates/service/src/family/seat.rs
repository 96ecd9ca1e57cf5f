//! Whoever is seated may act until its lease runs out, and nobody takes the seat from it by mistake.
//!
//! # Idea
//! A register, which durable consensus keeps, says who is a member. A process asks it for a *life*,
//! renews that every quarter of a lease, and may act for nine tenths of a lease from when a renewal was
//! *begun* that the register has answered. Whoever wants to take it for gone waits for eleven tenths
//! since it saw that renewal, on its own clock, and names the renewal: the register has no clock and only
//! compares, so a message that was late dooms nobody. The most senior member leads the change to the next
//! view, after everybody who will be missing has a ground for it and everybody else has stopped.
//!
//! # Paper
//! C. G. Gray, D. R. Cheriton: Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache
//! Consistency. 12th ACM Symposium on Operating Systems Principles, 1989, 202–210. That a member is heard
//! to stop before the next view begins is K. P. Birman's flush (ISIS).
//!
//! # Assumptions
//! A complete graph. The last node keeps the register and stands for consensus: what it has answered
//! survives its crashes. Messages may be lost, doubled, late and out of order. No clock is off by more
//! than a tenth. Where evidence is believed, the kernel tells the truth about processes, and nobody else
//! has the disk of a process that runs.
//!
//! # Messages
//! | kind | from | to | carries |
//! |---|---|---|---|
//! | ADMIT | a process | the register | its name, and what its kernel knows it by |
//! | RENEW | a life | the register | a number, whom it does not reach, whose place refuses connections |
//! | BAR | a member | the register | lives that shall renew no more: their links are broken |
//! | DOOM | a life | the register | who was silent, and since which beat |
//! | LEAVE | a life | the register | itself |
//! | DECIDE | the coordinator | the register | the next view, and why who is missing may be |
//! | FORGIVE | the coordinator | the register | a name that has behaved |
//! | SET | a process | the register | how long leases are from now on |
//! | ANSWER | the register | who ordered | what became of it, and the register |
//! | CHANGED | the register | everybody else | the register |
//! | PING, PONG | lives | each other | whether they hear; for a change, which |
//! | FLUSH | the coordinator | who stays | that the view is to end |
//! | FLUSH-OK | who stays | the coordinator | that it grants nothing more |
//!
//! # State
//! The register: the epoch and its view; of each life its member, process, beat, the longest lease it may
//! be acting on, and whether it left, is barred or doomed. A seat: its life, its lease and the renewals
//! that are under way, the register as it last heard of it and when it first saw each beat, whom it hears,
//! and the change that it leads.
//!
//! # Safety
//! One history: an epoch is decided once. A life that is missing from a view never acts again. It is
//! missing only if it left, is dead, or may not act any more by its own clock: 0.9 L on a clock that is
//! slow by a tenth and 1.1 L on one that is fast by a tenth meet, and the second is counted from later.
//! So whoever begins to preside finds that nobody else may.
//!
//! # Liveness
//! When all reach each other and the register, and nobody fails any more, everybody who wants to is seated
//! in one view, and its most senior member presides. Who was doomed again and again waits longer each
//! time, from one lease to 64.
//!
//! # Cost
//! Each member sends 4 RENEW in a lease and hears as many ANSWERs: one write to disk for all that arrive
//! together. A change of view costs PING, PONG, FLUSH, FLUSH-OK with each member, DECIDE, and CHANGED to
//! all. N(N-1) PING and PONG ten times in a lease find broken links; over connections that tell of their
//! end themselves they cost less.
//!
//! # Deviations
//! Gray and Cheriton have the server measure, which must then not forget over a restart; here whoever
//! waits measures, and the server compares. Their lease ends at a time; here it is a length that both
//! sides count for themselves, so that clocks need not agree on the time but only on its rate.
//!
//! # Known limits
//! Clocks that are off by more than a tenth break it: `--clock 1*0.8` with `--pause-node` shows that. A
//! process that stands still while it acts may act too late, as with every lease: what it does is
//! then a matter of fences. In a check no time passes, so a seat is simulated and not checked; the register
//! and the founding, which read no clock, are.

use alloc::sync::Arc;

use quorate_core::{
    Algorithm, BadOption, Boot, Channels, Cost, Ctx, Effect, Kept, Meta, NodeId, Paper, Protocol,
    Refusal, Scene, Shape, Sole, Timed, Timing, Waking,
};

use super::{Command, Event, Promise, Service};
use crate::seat::{Config, Msg, Party, Record, Timer};

/// The most members that a run may have: each of them hears of each.
const MEMBERS_MAX: usize = 256;

impl Algorithm for SeatNode {
    type Family = Service;
    type Config = ();
    const META: Meta = Meta {
        name: "service/seat",
        summary: "Members hold leases, and whoever is missing from a view has stopped before it began",
        paper: Paper {
            authors: "C. G. Gray, D. R. Cheriton",
            title: "Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache Consistency",
            venue: "12th ACM Symposium on Operating Systems Principles",
            year: 1989,
            doi: "10.1145/74850.74870",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Timed,
        survives: "crashes and restarts of one, many and all; pauses; lost, late and doubled messages; \
                   cuts and partitions; clocks off by up to a tenth",
        // Those of [`seat::KINDS`](crate::seat::KINDS) that seats send by themselves.
        kinds: &[
            "ADMIT", "RENEW", "BAR", "DOOM", "LEAVE", "DECIDE", "FORGIVE", "SET", "ANSWER",
            "CHANGED", "PING", "PONG", "FLUSH", "FLUSH-OK",
        ],
        options: &[],
        costs: &[Cost::of("messages in a lease at rest", "20 n (n - 1) + 8 n", |n| {
            20.0 * n * (n - 1.0) + 8.0 * n
        })],
        source: include_str!("seat.rs"),
    };
    const RESTLESS: bool = true;

    fn promise((): &()) -> Promise {
        Promise::Seats
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        match scene.count() {
            2..=MEMBERS_MAX => Ok(()),
            0 | 1 => Err(BadOption::because(
                "nodes",
                "there is a node for the register, and at least one member".into(),
            )),
            _ => Err(BadOption::because(
                "nodes",
                alloc::format!("at most {} members can be seated", MEMBERS_MAX - 1),
            )),
        }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, view, setup, life, kept, .. } = boot;
        let members = view.members().len() - 1;
        let config = Config {
            evidence: setup.evidence,
            trust_refusal: setup.trust_refusal,
            ..Config::of(members, setup.lease)
        };
        let kept: &Kept<Sole<Record>> = kept;
        let party = Party::boot(&Arc::new(config), Waking { me, life, kept });
        let outside = life.is_first() && setup.outside.contains(me);
        Self { party, outside }
    }
}

/// A member, or the node of the register.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SeatNode {
    party: Party,
    /// It comes up without asking for a seat.
    outside: bool,
}

impl SeatNode {
    /// What it is.
    #[must_use]
    pub const fn party(&self) -> &Party {
        &self.party
    }

    fn step<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        run: impl FnOnce(&mut Party, &mut Ctx<'_, Party>) -> R,
    ) -> R {
        cx.mapped(&mut |effect| Some(of_seat(effect)), |cx| run(&mut self.party, cx))
    }
}

/// An effect in the words of the family.
fn of_seat(effect: Effect<Party>) -> Effect<SeatNode> {
    match effect {
        Effect::Send { to, msg } => Effect::Send { to, msg },
        Effect::Multicast { to, msg } => Effect::Multicast { to, msg },
        Effect::SetTimer { timer, after } => Effect::SetTimer { timer, after },
        Effect::CancelTimer(timer) => Effect::CancelTimer(timer),
        Effect::Persist(record) => Effect::Persist(record),
        Effect::Emit(event) => Effect::Emit(Event::Seat(event)),
    }
}

impl Protocol for SeatNode {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Sole<Record>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        let outside = self.outside;
        self.step(cx, |party, cx| match outside {
            true => party.on_start_outside(cx),
            false => party.on_start(cx),
        });
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let command = command.to_seat().ok_or(Refusal::NotMember)?;
        self.step(cx, |party, cx| party.on_command(cx, command))
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        self.step(cx, |party, cx| party.on_message(cx, from, msg));
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        self.step(cx, |party, cx| party.on_timer(cx, timer));
    }
}

impl Timed for SeatNode {}
