//! Families own problems; algorithms solve them.

use core::fmt::Debug;
use core::hash::Hash;

use crate::{BadOption, Boot, Meta, Monitor, Options, Protocol, Scene, Traits};

/// A problem: what its users say and hear, and what counts as a solution.
pub trait Family: Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;
    /// What users wish.
    type Command: Clone + Eq + Hash + Debug + Send + Sync;
    /// What users are told.
    type Event: Clone + Eq + Hash + Debug + Send + Sync;
    /// What is given to all nodes alike: ranks, a holder, quorums.
    type Setup: Clone + Debug + Send + Sync;
    /// What an algorithm promises beyond what all of the family do.
    type Promise: Clone + Debug;
    /// The oracle.
    type Monitor: Monitor<Self::Command, Self::Event>;

    /// The oracle for a run of `count` nodes.
    fn monitor(count: usize, setup: &Self::Setup, promise: &Self::Promise) -> Self::Monitor;

    /// The command that prints as `text`; the other half of its `Debug`, for replay.
    fn command(text: &str) -> Option<Self::Command>;

    /// The event that prints as `text`; the other half of its `Debug`, for judging traces.
    fn event(text: &str) -> Option<Self::Event>;
}

/// A solution of a family's problem: behaviour (as a [`Protocol`]), and what a scene must know.
///
/// Every [`Algorithm`] is one. So is whatever runs an algorithm in another way: over links, in
/// views, beside a detector, or as one of several that is chosen when a run begins. What such a
/// wrapper changes about an algorithm is said in its [`Solution::traits`], and nowhere else.
pub trait Solution:
    Protocol<Command = <Self::Family as Family>::Command, Event = <Self::Family as Family>::Event>
{
    /// The problem that it solves.
    type Family: Family;
    /// Its options, the same at all nodes.
    type Config: Clone + Debug + Send + Sync;

    /// What engines have to know of it with these options.
    fn traits(config: &Self::Config) -> Traits;

    /// The same algorithm with all options as usual.
    fn usual(config: &Self::Config) -> Self::Config;

    /// What it promises with these options.
    fn promise(config: &Self::Config) -> <Self::Family as Family>::Promise;

    /// Can it run in this scene? Asked before any node is booted; the shape of the topology has
    /// been checked.
    ///
    /// # Errors
    /// The option that makes no sense here, and why.
    fn admit(scene: &Scene<Self>) -> Result<(), BadOption>;

    /// Does this timer watch for a failure? Where nobody fails by definition, as within a view, it
    /// is not set.
    fn watches(timer: Self::Timer) -> bool;

    /// The node's state before its start.
    fn boot(boot: Boot<'_, Self>) -> Self;
}

/// A published algorithm, as the catalogues list it: a [`Solution`] with its description.
pub trait Algorithm:
    Protocol<Command = <Self::Family as Family>::Command, Event = <Self::Family as Family>::Event>
{
    /// The problem that it solves.
    type Family: Family;
    /// Its own options, the same at all nodes.
    type Config: Clone + Debug + Default + Send + Sync;
    /// Everything about it that is not its behaviour.
    const META: Meta;
    /// It wants the word of a failure detector.
    const LISTENS: bool = false;
    /// It goes on when nobody wants anything any more: its runs end when users have nothing to do.
    const RESTLESS: bool = false;
    /// It runs on any graph and is meant for those without a cycle.
    const ACYCLIC: bool = false;

    /// What it promises with these options.
    fn promise(config: &Self::Config) -> <Self::Family as Family>::Promise;

    /// Reads its options; those not given keep their defaults.
    ///
    /// # Errors
    /// The first option that is unknown or has a value that it cannot take.
    fn configure(_options: &Options<'_>) -> Result<Self::Config, BadOption> {
        Ok(Self::Config::default())
    }

    /// Can it run in this scene? Asked before any node is booted; the shape of the topology has
    /// been checked.
    ///
    /// # Errors
    /// The option that makes no sense here, and why.
    fn admit(_scene: &Scene<Self>) -> Result<(), BadOption> {
        Ok(())
    }

    /// Does this timer watch for a failure? Where nobody fails by definition, as within a view, it
    /// is not set.
    fn watches(_timer: Self::Timer) -> bool {
        false
    }

    /// The node's state before its start.
    fn boot(boot: Boot<'_, Self>) -> Self;
}

impl<A: Algorithm> Solution for A {
    type Family = A::Family;
    type Config = A::Config;

    fn traits(_: &A::Config) -> Traits {
        let Meta { name, kinds, shape, channels, timing, .. } = A::META;
        let (listens, restless) = (A::LISTENS, A::RESTLESS);
        Traits { name, kinds: kinds.into(), shape, channels, timing, listens, restless }
    }

    fn usual(_: &A::Config) -> A::Config {
        A::Config::default()
    }

    fn promise(config: &A::Config) -> <A::Family as Family>::Promise {
        A::promise(config)
    }

    fn admit(scene: &Scene<A>) -> Result<(), BadOption> {
        A::admit(scene)
    }

    fn watches(timer: A::Timer) -> bool {
        A::watches(timer)
    }

    fn boot(boot: Boot<'_, A>) -> A {
        A::boot(boot)
    }
}
