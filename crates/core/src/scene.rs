//! What is given to a run before it begins: nodes that can be booted, links between them, an oracle.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Debug};

use crate::{
    BadTopology, Channels, Family, Kept, Life, Monitor, Neighbours, NodeId, Protocol, Shape,
    Solution, Timing, Topology, View,
};

/// What an engine needs in order to run a protocol: whom there is to boot, who can talk to whom, and
/// who judges.
///
/// [`Scene`] is the system of an algorithm of a family, [`Own`] one of a protocol of one's own.
pub trait System: Sync {
    /// The state machine at each node.
    type Protocol: Protocol;
    /// The oracle; `()` judges nothing.
    type Monitor: Monitor<CommandOf<Self>, EventOf<Self>>;

    /// Who can talk to whom.
    fn topology(&self) -> &Topology;

    /// What else there is to know of the protocol.
    fn traits(&self) -> &Traits;

    /// The state of a node before its start, in this life, with what it kept of the last one.
    fn boot(&self, me: NodeId, life: Life, kept: &KeptBy<Self>) -> Self::Protocol;

    /// The oracle at the beginning of a run.
    fn monitor(&self) -> Self::Monitor;

    /// How many nodes there are.
    fn count(&self) -> usize {
        self.topology().count()
    }
}

/// What the users of a system wish.
pub type CommandOf<S> = <<S as System>::Protocol as Protocol>::Command;
/// What the users of a system are told.
pub type EventOf<S> = <<S as System>::Protocol as Protocol>::Event;
/// What a node of a system keeps over a crash.
pub type KeptBy<S> = Kept<<<S as System>::Protocol as Protocol>::Stable>;

/// What engines ask about a protocol, beyond its behaviour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traits {
    /// As typed: `family/name`.
    pub name: &'static str,
    /// The kinds of its messages; others are refused by engines that count them.
    pub kinds: Vec<&'static str>,
    /// The topology it runs on.
    pub shape: Shape,
    /// What it needs of its channels.
    pub channels: Channels,
    /// What it needs of time.
    pub timing: Timing,
    /// It wants the word of a failure detector.
    pub listens: bool,
    /// It goes on when nobody wants anything any more: its runs end when users have nothing to do.
    pub restless: bool,
}

impl Traits {
    /// A protocol on any graph that needs nothing, listens to nobody and comes to rest.
    #[must_use]
    pub fn of(name: &'static str, kinds: &[&'static str]) -> Self {
        Self {
            name,
            kinds: kinds.into(),
            shape: Shape::Graph,
            channels: Channels::Unordered,
            timing: Timing::Asynchronous,
            listens: false,
            restless: false,
        }
    }

    /// The family's part of the name.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.name.split_once('/').map_or("", |(family, _)| family)
    }
}

/// The system of a protocol of one's own, without a family: nodes are booted by a function.
///
/// ```
/// use core::convert::Infallible;
/// use quorate_core::{Ctx, Message, NodeId, NodeSet, Own, Protocol, Refusal, System, Topology};
///
/// /// Counts the greetings that reach it.
/// #[derive(Clone, PartialEq, Eq, Hash, Debug)]
/// struct Greeter { peers: NodeSet, heard: u32 }
///
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
/// struct Hello;
///
/// impl Message for Hello {
///     fn kind(&self) -> &'static str { "HELLO" }
/// }
///
/// impl Protocol for Greeter {
///     type Msg = Hello;
///     type Timer = Infallible;
///     type Command = ();
///     type Event = u32;
///     type Stable = Infallible;
///
///     fn on_command(&mut self, cx: &mut Ctx<'_, Self>, (): ()) -> Result<(), Refusal> {
///         cx.multicast(self.peers.clone(), Hello);
///         Ok(())
///     }
///
///     fn on_message(&mut self, cx: &mut Ctx<'_, Self>, _: NodeId, _: Hello) {
///         self.heard += 1;
///         cx.emit(self.heard);
///     }
/// }
///
/// let system = Own::new("own/greeter", &["HELLO"], Topology::complete(3), |waking| {
///     let mut peers = NodeSet::first(3);
///     peers.remove(waking.me);
///     Greeter { peers, heard: 0 }
/// });
/// assert_eq!(system.count(), 3);
/// ```
///
/// The simulator and the checker take it from there.
#[derive(Clone)]
pub struct Own<P: Protocol, M = ()> {
    /// Who can talk to whom.
    pub topology: Topology,
    /// What else there is to know of the protocol.
    pub traits: Traits,
    boot: Arc<BootOwn<P>>,
    monitor: M,
}

/// Makes the state of a node when it comes up.
type BootOwn<P> = dyn Fn(Waking<'_, P>) -> P + Send + Sync;

/// What a node of a system of one's own knows when it comes up.
#[derive(Debug)]
pub struct Waking<'a, P: Protocol> {
    /// Itself.
    pub me: NodeId,
    /// Which of its lives begins.
    pub life: Life,
    /// What it kept of the last one.
    pub kept: &'a Kept<P::Stable>,
}

impl<P: Protocol> Own<P> {
    /// A system whose nodes come up as `boot` says, and which nobody judges.
    pub fn new(
        name: &'static str,
        kinds: &[&'static str],
        topology: Topology,
        boot: impl Fn(Waking<'_, P>) -> P + Send + Sync + 'static,
    ) -> Self {
        let traits = Traits::of(name, kinds);
        Self { topology, traits, boot: Arc::new(boot), monitor: () }
    }

    /// The same, judged by an oracle.
    pub fn judged_by<M: Monitor<P::Command, P::Event>>(self, monitor: M) -> Own<P, M> {
        let Self { topology, traits, boot, .. } = self;
        Own { topology, traits, boot, monitor }
    }
}

impl<P: Protocol, M: Debug> Debug for Own<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topology, traits, monitor, .. } = self;
        f.debug_struct("Own")
            .field("topology", topology)
            .field("traits", traits)
            .field("monitor", monitor)
            .finish_non_exhaustive()
    }
}

impl<P: Protocol, M: Monitor<P::Command, P::Event>> System for Own<P, M> {
    type Protocol = P;
    type Monitor = M;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn boot(&self, me: NodeId, life: Life, kept: &Kept<P::Stable>) -> P {
        (self.boot)(Waking { me, life, kept })
    }

    fn monitor(&self) -> M {
        self.monitor.clone()
    }
}

/// What a node knows when it comes up.
#[derive(Debug)]
pub struct Boot<'a, A: Solution> {
    /// Itself.
    pub me: NodeId,
    /// Who takes part.
    pub view: &'a View,
    /// Whom it can send to.
    pub neighbours: Neighbours<'a>,
    /// What the family tells all nodes.
    pub setup: &'a <A::Family as Family>::Setup,
    /// The algorithm's options.
    pub config: &'a A::Config,
    /// Which of its lives begins.
    pub life: Life,
    /// What it kept of the last one.
    pub kept: &'a Kept<A::Stable>,
}

/// The system of an algorithm: everything that is given to a run, the same for every engine.
pub struct Scene<A: Solution> {
    /// Who can talk to whom.
    pub topology: Topology,
    /// Who takes part.
    pub view: View,
    /// What the family tells all nodes.
    pub setup: <A::Family as Family>::Setup,
    /// The algorithm's options.
    pub config: A::Config,
    /// What engines have to know of the algorithm with these options.
    pub traits: Traits,
}

// Derived, these would ask the same of the family, which is only a name.
impl<A: Solution> Clone for Scene<A> {
    fn clone(&self) -> Self {
        Self {
            topology: self.topology.clone(),
            view: self.view.clone(),
            setup: self.setup.clone(),
            config: self.config.clone(),
            traits: self.traits.clone(),
        }
    }
}

impl<A: Solution> Debug for Scene<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene")
            .field("topology", &self.topology)
            .field("view", &self.view)
            .field("setup", &self.setup)
            .field("config", &self.config)
            .field("traits", &self.traits)
            .finish()
    }
}

impl<A: Solution> Scene<A> {
    /// All nodes of the topology take part, in a founding view.
    pub fn new(topology: Topology, setup: <A::Family as Family>::Setup, config: A::Config) -> Self {
        let view = View::founding(topology.count());
        let traits = A::traits(&config);
        Self { topology, view, setup, config, traits }
    }

    /// How many nodes take part.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.topology.count()
    }

    /// The state of a node before its start, when it comes up for the first time.
    pub fn boot(&self, me: NodeId) -> A {
        self.reboot(me, Life::FIRST, &Kept::new())
    }

    /// The state of a node before its start, in this life, with what it kept of the last one.
    pub fn reboot(&self, me: NodeId, life: Life, kept: &Kept<A::Stable>) -> A {
        let neighbours = self.topology.neighbours(me);
        let Self { view, setup, config, .. } = self;
        A::boot(Boot { me, view, neighbours, setup, config, life, kept })
    }

    /// The same scene for what runs inside of a wrapper.
    pub fn inner<C>(&self, config: C::Config) -> Scene<C>
    where
        C: Solution<Family = A::Family>,
    {
        let Self { topology, view, setup, .. } = self.clone();
        Scene { view, ..Scene::new(topology, setup, config) }
    }

    /// Can the algorithm run on this topology?
    ///
    /// # Errors
    /// What it needs, in words.
    pub fn fits(&self) -> Result<(), BadTopology> {
        let Traits { name, shape, .. } = self.traits;
        let text = || alloc::format!("{name} needs {}", shape.words());
        if shape.fits(&self.topology) { Ok(()) } else { Err(BadTopology(text())) }
    }
}

impl<A: Solution> System for Scene<A> {
    type Protocol = A;
    type Monitor = <A::Family as Family>::Monitor;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn boot(&self, me: NodeId, life: Life, kept: &Kept<A::Stable>) -> A {
        self.reboot(me, life, kept)
    }

    fn monitor(&self) -> Self::Monitor {
        A::Family::monitor(self.count(), &self.setup, &A::promise(&self.config))
    }
}
