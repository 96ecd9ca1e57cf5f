//! One cluster is founded, after every seed has pledged itself to its founder, and never a second one.
//!
//! # Idea
//! A cluster has 1, 3 or 5 *seeds*, listed in the same order everywhere. Only the first one founds it, and
//! only after every other one has pledged itself to it: blank, with the same list, and durably. Whoever
//! has a cluster says so, and the asker joins that one. So there is no second cluster as long as one disk
//! of the first is left: a blank disk under a known name is a replacement, never a founder.
//!
//! # Paper
//! J. N. Gray: Notes on Data Base Operating Systems. Operating Systems: An Advanced Course, Lecture Notes
//! in Computer Science 60, 1978, 393–481: its two-phase commit, in which the second phase is joining.
//!
//! # Assumptions
//! Seeds crash and come up again with what they kept. Disks may be lost, but not the last one that knows
//! of a cluster, or has pledged itself to it. Messages may be lost, doubled, late and out of order.
//!
//! # Messages
//! | kind | from | to | carries |
//! |---|---|---|---|
//! | ASK | who belongs to no cluster | all other seeds | what it is about to found or pledged to; the list |
//! | PLEDGE | a blank seed | the first seed | what it has pledged itself to |
//! | TAKEN | a pledged seed | the first seed | what it has pledged itself to instead |
//! | OTHER-LIST | a seed | who asks | that it was told of other seeds |
//! | CLUSTER | who belongs to one | who asks | which |
//! | INSTEAD | the first seed | who is pledged to what will never be | where both belong |
//!
//! # State
//! On disk: blank, asking for pledges to an instance, pledged to one, or belonging to one. In memory: who
//! has pledged itself.
//!
//! # Safety
//! An instance is founded only when all others have pledged themselves to it, and a pledge holds until its
//! instance is founded or its founder says that it never will be. Two instances would need two pledges of
//! one disk.
//!
//! # Liveness
//! If all seeds are up for long enough, all belong to one cluster; unless the founder's disk was lost after
//! somebody had pledged itself to it. Then that seed says to what it is pledged, and a person has to clear
//! that: only a person knows that the founder did not succeed.
//!
//! # Cost
//! Where all are up: everybody asks everybody, the others pledge themselves, and the founder tells all.
//!
//! # Deviations
//! There is no abort: a coordinator that fails is waited for, and its participants are told by whom. The
//! votes are kept by the instance, so that a founder that has lost its disk cannot count those that were
//! given to its predecessor.
//!
//! # Known limits
//! All disks at once: if every disk that knows of a cluster is lost, nothing is left that could object to
//! another one.

use alloc::sync::Arc;

use quorate_core::{
    Algorithm, BadOption, Boot, Channels, Cost, Ctx, Effect, Life, Meta, NodeId, OptionSpec,
    Options, Paper, Protocol, Refusal, Scene, Shape, Sole, Span, Timing,
};

use super::{Command, Event, Promise, Service};
use crate::founding::{self, Founding, Instance, KINDS, Msg, Seeds, Standing};

impl Algorithm for SeedNode {
    type Family = Service;
    type Config = Patience;
    const META: Meta = Meta {
        name: "service/founding",
        summary: "Seeds pledge themselves to the first of them, which founds the only cluster",
        paper: Paper {
            authors: "J. N. Gray",
            title: "Notes on Data Base Operating Systems",
            venue: "Operating Systems: An Advanced Course, LNCS 60",
            year: 1978,
            doi: "10.1007/3-540-08755-9_9",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crashes and restarts of all, lost disks but the last that knows, lost and late messages",
        kinds: KINDS,
        options: &[OptionSpec {
            name: "patience",
            values: "TIME",
            default: "10",
            help: "How long a seed waits for answers before it asks again",
        }],
        costs: &[Cost::of("messages, all up at once", "n (n - 1) + 2 (n - 1)", |n| {
            n * (n - 1.0) + 2.0 * (n - 1.0)
        })],
        source: include_str!("founding.rs"),
    };

    fn promise(_: &Patience) -> Promise {
        Promise::Founding
    }

    fn configure(options: &Options<'_>) -> Result<Patience, BadOption> {
        let Patience(usual) = Patience::default();
        let patience = options.span("patience", usual)?;
        if patience == Span::ZERO {
            return Err(BadOption::new("patience", "0", "a time after which it is asked again"));
        }
        Ok(Patience(patience))
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let seeds = Seeds::admit(scene.count());
        seeds.map_err(|bad| BadOption::because("nodes", alloc::format!("{bad}")))
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, view, setup, config: Patience(patience), life, kept, .. } = boot;
        let (count, patience) = (view.members().len(), *patience);
        let seeds = Arc::new(Seeds { count, list: 1, found: true, patience });
        let standing = kept.sole().copied().flatten();
        let seed = Founding::new(me, fresh(me, life, 0), Arc::clone(&seeds), standing);
        let asks = setup.asks;
        Self { me, life, seeds, seed, replaced: 0, asks }
    }
}

/// How long a seed waits before it asks again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience(pub Span);

impl Default for Patience {
    fn default() -> Self {
        Self(Span::units(10))
    }
}

/// A seed, whose machine may be replaced by a blank one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SeedNode {
    me: NodeId,
    life: Life,
    seeds: Arc<Seeds>,
    seed: Founding,
    /// How often it was replaced since it came up.
    replaced: u8,
    /// How often it may still ask, if not as often as it takes.
    asks: Option<u8>,
}

/// The cluster that a start of a seed founds, if it does. A machine that replaces another one does not
/// know how often that was started.
const fn fresh(me: NodeId, life: Life, replaced: u8) -> Instance {
    Instance((me.number() as u128) << 64 | (life.0 as u128) << 8 | replaced as u128)
}

impl SeedNode {
    fn step<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        run: impl FnOnce(&mut Founding, &mut Ctx<'_, Founding>) -> R,
    ) -> R {
        let asks = &mut self.asks;
        let mut map = |effect| match (&effect, &mut *asks) {
            (Effect::SetTimer { .. }, Some(left)) => {
                *left = left.saturating_sub(1);
                (*left > 0).then(|| of_seed(effect))
            }
            _ => Some(of_seed(effect)),
        };
        cx.mapped(&mut map, |cx| run(&mut self.seed, cx))
    }
}

/// An effect in the words of the family.
fn of_seed(effect: Effect<Founding>) -> Effect<SeedNode> {
    match effect {
        Effect::Send { to, msg } => Effect::Send { to, msg },
        Effect::Multicast { to, msg } => Effect::Multicast { to, msg },
        Effect::SetTimer { timer, after } => Effect::SetTimer { timer, after },
        Effect::CancelTimer(timer) => Effect::CancelTimer(timer),
        Effect::Persist(Sole(standing)) => Effect::Persist(Sole(Some(standing))),
        Effect::Emit(event) => Effect::Emit(Event::Founding(event)),
    }
}

impl Protocol for SeedNode {
    type Msg = Msg;
    type Timer = ();
    type Command = Command;
    type Event = Event;
    /// Nothing, where the disk is blank again.
    type Stable = Sole<Option<Standing>>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.step(cx, |seed, cx| seed.on_start(cx));
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match command {
            Command::ClearPledge => {
                self.step(cx, |seed, cx| seed.on_command(cx, founding::Command::ClearPledge))
            }
            Command::Replace => {
                cx.trace("replace", &[]);
                cx.persist(Sole(None));
                self.replaced = self.replaced.saturating_add(1);
                let fresh = fresh(self.me, self.life, self.replaced);
                self.seed = Founding::new(self.me, fresh, Arc::clone(&self.seeds), None);
                self.step(cx, |seed, cx| seed.on_start(cx));
                Ok(())
            }
            _ => Err(Refusal::NotMember),
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        self.step(cx, |seed, cx| seed.on_message(cx, from, msg));
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, (): ()) {
        self.step(cx, |seed, cx| seed.on_timer(cx, ()));
    }
}
