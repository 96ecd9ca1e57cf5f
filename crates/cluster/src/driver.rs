//! A running node, as its user sees it.

use std::fmt;
use std::sync::Arc;

use quorate_core::trace::{Happening, Recorder};
use quorate_core::{Kept, NodeId, PerNode, Scene, Solution};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::actor::{Actor, Inputs, Order, Outlets};
use crate::clock::Clock;
use crate::dialler::Dialler;
use crate::dice::entropy;
use crate::events::{self, EventSource};
use crate::hearsay::Hearsay;
use crate::hello::Identity;
use crate::intake::{BATCHES, Intake};
use crate::lane::Lane;
use crate::shared::{Phase, Shared};
use crate::stats::Counters;
use crate::{CommandError, Config, End, Member, Memory, PeerStatus, StartError, Stats, Store};

/// How many commands may wait before whoever gives another one has to.
const ORDERS: usize = 1024;

/// A node of an algorithm, running over TCP. Dropped, it ends at once, without sending what still
/// waits; see [`Driver::shutdown`].
pub struct Driver<A: Solution> {
    handle: Handle<A>,
    events: Option<EventSource<A::Event>>,
    lanes: Arc<PerNode<Option<Arc<Lane>>>>,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    actor: JoinHandle<End>,
    /// Why the node ended, once that was asked.
    end: Option<End>,
    intake: JoinHandle<()>,
    diallers: JoinSet<()>,
}

impl<A: Solution> fmt::Debug for Driver<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("identity", &self.shared.identity).finish_non_exhaustive()
    }
}

/// Gives commands to a running node; as many of these as users.
pub struct Handle<A: Solution> {
    orders: mpsc::Sender<Order<A::Command>>,
}

impl<A: Solution> Clone for Handle<A> {
    fn clone(&self) -> Self {
        Self { orders: self.orders.clone() }
    }
}

impl<A: Solution> fmt::Debug for Handle<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl<A: Solution> Handle<A> {
    /// Gives a command, and waits until the node has taken it. It waits for its turn while a queue
    /// to a peer is half full.
    ///
    /// # Errors
    /// If the algorithm refuses it, or the node does not run any more.
    pub async fn command(&self, command: A::Command) -> Result<(), CommandError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.orders.send(Order { command, answer }).await;
        sent.map_err(|_| CommandError::Stopped)?;
        answered.await.map_err(|_| CommandError::Stopped)?
    }

    /// Gives a command, and does not wait until the node has taken it.
    pub(crate) async fn order(&self, command: A::Command) {
        let (answer, _) = oneshot::channel();
        let _ = self.orders.send(Order { command, answer }).await;
    }
}

impl<A: Solution> Driver<A>
where
    A::Msg: Serialize + DeserializeOwned,
{
    /// Starts node `me` of the scene behind this listener. `peers` must name every node that this
    /// one has a link to; they need not be up yet. What it persists is kept as long as it runs.
    ///
    /// # Errors
    /// If the scene, the peers and the configuration do not go together.
    pub async fn start(
        scene: &Scene<A>,
        me: NodeId,
        listener: TcpListener,
        peers: &[Member],
        config: Config,
    ) -> Result<Self, StartError> {
        let (kept, store) = (Kept::new(), Memory::new());
        Self::start_with(scene, me, listener, peers, config, &kept, store).await
    }

    /// As [`Driver::start`], with what it kept of an earlier life, and where it keeps more.
    ///
    /// # Errors
    /// As [`Driver::start`].
    pub async fn start_with(
        scene: &Scene<A>,
        me: NodeId,
        listener: TcpListener,
        peers: &[Member],
        config: Config,
        kept: &Kept<A::Stable>,
        store: impl Store<A::Stable> + 'static,
    ) -> Result<Self, StartError> {
        config.check()?;
        let lanes = Arc::new(lanes(scene, me, peers, &config)?);
        let (algorithm, view) = (scene.traits.name, scene.view.id());
        let identity = Identity { me, life: config.life, algorithm, view };
        let shared = Arc::new(Shared {
            identity,
            topology: scene.topology.clone(),
            clock: Clock::since(config.epoch),
            config,
            counters: Counters::default(),
            room: tokio::sync::Notify::new(),
            links: tokio::sync::Notify::new(),
        });
        let (phase, phases) = watch::channel(Phase::Running);
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (batches, inbound) = mpsc::channel(BATCHES);

        let intake = Intake::new(Arc::clone(&shared), batches).run(listener, phases.clone());
        let intake = tokio::spawn(intake);
        let mut diallers = JoinSet::new();
        for lane in lanes.iter().filter_map(|(_, lane)| lane.as_ref()) {
            let dialler = Dialler::new(Arc::clone(lane), Arc::clone(&shared), phases.clone());
            diallers.spawn(dialler.run());
        }
        // Nodes that are given the same seed shall not choose alike.
        let seed = shared.config.seed.unwrap_or_else(entropy) ^ u64::from(me.number()) << 32;
        let protocol = scene.reboot(me, shared.config.life, kept);
        let (sink, source) = events::stream(shared.config.events_max);
        let detect = shared.config.detect.filter(|_| scene.traits.listens);
        let hearsay = detect.map(|after| Hearsay::new(lanes.len(), after));
        let outlets = Outlets { events: sink, store: Box::new(store), hearsay };
        let (shared_too, lanes_too) = (Arc::clone(&shared), Arc::clone(&lanes));
        let actor = Actor::new(me, protocol, seed, shared_too, lanes_too, outlets);
        let actor = tokio::spawn(actor.run(Inputs { inbound, orders: ordered, phase: phases }));
        Ok(Self {
            handle: Handle { orders },
            events: Some(source),
            lanes,
            shared,
            phase,
            actor,
            end: None,
            intake,
            diallers,
        })
    }
}

impl<A: Solution> Driver<A> {
    /// Gives a command; see [`Handle::command`].
    ///
    /// # Errors
    /// If the algorithm refuses it, or the node does not run any more.
    pub async fn command(&self, command: A::Command) -> Result<(), CommandError> {
        self.handle.command(command).await
    }

    /// Something to give commands with while somebody else waits for events.
    #[must_use]
    pub fn handle(&self) -> Handle<A> {
        self.handle.clone()
    }

    /// The next thing that the node tells its user, in order; none when it has ended. May be
    /// dropped while waiting without missing any.
    pub async fn event(&mut self) -> Option<A::Event> {
        self.events.as_mut()?.next().await
    }

    /// What has happened so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// How it stands with those whom this node can send to.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatus> {
        let lanes = self.lanes.iter().filter_map(|(_, lane)| lane.as_ref());
        lanes.map(|lane| lane.status()).collect()
    }

    /// The same, with nobody waiting for its events: it does not matter how many there are.
    #[must_use]
    pub fn unheard(mut self) -> Self {
        self.events = None;
        self
    }

    /// Why the node does not run any more; none if it runs.
    pub async fn ended(&mut self) -> Option<End> {
        if self.end.is_none() && self.actor.is_finished() {
            self.end = Some((&mut self.actor).await.unwrap_or(End::Panicked));
        }
        self.end
    }

    /// Ends it as a crash would: at once, in the middle of whatever it does, with nothing sent any
    /// more. The crash stands in the trace after all that the node did, and before anybody can have
    /// noticed.
    pub async fn crash(mut self) {
        if self.end.is_none() {
            self.actor.abort();
            let _ = (&mut self.actor).await;
        }
        if let Some(witness) = &self.shared.config.trace {
            let mut recorder = Recorder::new();
            recorder.begin(self.shared.clock.now(), self.shared.identity.me, Happening::Crash);
            recorder.end().into_iter().for_each(|record| witness.take(record));
        }
        self.intake.abort();
        let _ = (&mut self.intake).await;
        self.diallers.shutdown().await;
    }

    /// Ends it: takes nothing in any more, sends what waits for peers that can be reached (for as
    /// long as the configuration allows), closes all connections. When this returns, no task of it
    /// is left. Says why the node ended, which may have been earlier.
    pub async fn shutdown(mut self) -> End {
        self.phase.send_replace(Phase::Halting);
        let end = match self.end {
            Some(end) => end,
            None => (&mut self.actor).await.unwrap_or(End::Panicked),
        };
        self.phase.send_replace(Phase::Flushing);
        let _ = (&mut self.intake).await;
        let flushed = async { while self.diallers.join_next().await.is_some() {} };
        if timeout(self.shared.config.flush_timeout, flushed).await.is_err() {
            self.diallers.shutdown().await;
        }
        end
    }
}

impl<A: Solution> Drop for Driver<A> {
    fn drop(&mut self) {
        self.actor.abort();
        self.intake.abort();
    }
}

/// A lane to every neighbour.
fn lanes<A: Solution>(
    scene: &Scene<A>,
    me: NodeId,
    peers: &[Member],
    config: &Config,
) -> Result<PerNode<Option<Arc<Lane>>>, StartError> {
    scene.fits().map_err(StartError::Topology)?;
    A::admit(scene).map_err(StartError::Option)?;
    if !scene.view.set().contains(me) || me.index() >= scene.count() {
        return Err(StartError::NotMember(me));
    }
    let mut lanes = PerNode::new(scene.count(), |_| None);
    for node in scene.topology.neighbours(me).iter().filter(|&node| node != me) {
        let member = peers.iter().find(|member| member.id == node);
        let member = member.ok_or(StartError::NoAddress(node))?;
        lanes[node] = Some(Arc::new(Lane::new(node, member.addr, config)));
    }
    Ok(lanes)
}
