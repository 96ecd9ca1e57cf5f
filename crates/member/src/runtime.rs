//! The member on the thread of its transport: it tells the state machines what happens, and does what
//! they want.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_authority::etcd::{ConnectError, Etcd};
use quorate_authority::{Answer, Authority as _, Committed, Order, Register, raft};
use quorate_core::trace::{Happening, Parcel};
use quorate_core::{Choices, Input, Life, Node, NodeId, Output, Sole, Span, Time};
use quorate_service::founding::{self, Founding, Instance, Seeds};
use quorate_service::lease::{beat, since};
use quorate_service::locks::Limits;
use quorate_service::seat::{self, Party, Seat};
use quorate_service::service::{self, Service};
use quorate_service::{Host, Settings, Start};
use quorate_transport::{Down, Handler, Hello, Io, Lane, Lost, Name, Peer, Remote, Scope, Watch};
use tokio::sync::oneshot;
use tracing::{debug, error, info, warn};

use crate::bridge::Bridge;
use crate::calendar::Calendar;
use crate::config::{Config, Engine};
use crate::consensus::{self, Consensus};
use crate::heart::{Calls, Heart, ME, Shared, Way};
use crate::place::Place;
use crate::process::{self, Sight};
use crate::report::Report;
use crate::spaces::{Definition, founded};
use crate::words::{Frame, GROUPS_SINCE, Introduction};

/// So often an etcd is tried again that does not answer at first.
const ETCD_ATTEMPTS: u32 = 20;

/// So many namespaces may be waited for.
const DEFINITIONS: usize = 1024;

/// Who gave an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asker {
    /// This process.
    Seat,
    /// Another member.
    Peer(Peer),
}

/// What other threads tell the member.
#[derive(Debug)]
pub(crate) enum Command {
    /// The consensus wants this said to one of its voters.
    Word { to: u64, bytes: Vec<u8> },
    /// An order was done.
    Answered { asker: Asker, number: u64, answer: Answer, after: Committed },
    /// The register was changed.
    Committed(Committed),
    /// The own voter knows something new.
    Consensus(raft::Status),
    /// The own voter is ready to be introduced.
    Introduce { peer: Peer, number: u64, introduction: Introduction },
    /// The own voter says whether another one can be believed.
    Trusted { peer: Peer, id: u64, trusted: bool },
    /// There is an etcd, or why there is none.
    Etcd(Result<Arc<Etcd>, String>),
    /// Leave, and say so when that is done.
    Leave(oneshot::Sender<()>),
    /// It acts for processes that outlive it, and wants to hear when all know that; or no more.
    Host(bool, oneshot::Sender<()>),
    /// See to it that there is this namespace, and say so.
    Define(Definition),
    /// Renew the lease now.
    Renew,
    /// A timer is due that was set by another thread.
    Wake,
    /// Cut the link to a member, or heal it.
    Cut(Name, bool),
    /// Read certificates again.
    Reload,
    /// End.
    Stop,
}

/// The cluster that a standing is in.
pub(crate) fn cluster_of(standing: Option<founding::Standing>) -> Option<u128> {
    match standing {
        Some(founding::Standing::Belongs(Instance(cluster))) => Some(cluster),
        _ => None,
    }
}

/// A member, as its transport's thread has it.
pub(crate) struct Runtime {
    config: Config,
    place: Place,
    /// The start of this process.
    start: Start,
    lock_file: (u64, u64),
    nonce: u128,
    bridge: Bridge,
    remote: Remote<Command>,
    founding: Option<Node<Founding>>,
    shared: Arc<Shared>,
    consensus: Consensus,
    /// Whom there is a session with, and which version of the wire is spoken in it.
    sessions: BTreeMap<Peer, u16>,
    /// For pauses of the whole machine.
    calendar: Calendar,
    /// Where members are looked for.
    dialled: BTreeMap<Name, Vec<String>>,
    /// Processes that the kernel watches.
    sights: BTreeMap<Start, Option<Watch>>,
    /// How often a place has refused connections since its session broke without a word.
    refusals: BTreeMap<Name, u32>,
    leaving: Vec<oneshot::Sender<()>>,
    /// Does it act for processes that outlive it? And who wants to hear when all know.
    hosts: bool,
    hosting: Vec<oneshot::Sender<()>>,
    /// Namespaces that are to be.
    defining: Vec<Definition>,
    dice: Lots,
    report: Report,
    /// When it looks after what no timer is for.
    rounds: Time,
}

impl Runtime {
    pub(crate) fn new(
        config: Config,
        (place, lock_file): (Place, (u64, u64)),
        (start, nonce): (Start, u128),
        bridge: Bridge,
        remote: Remote<Command>,
        (shared, report): (Arc<Shared>, Report),
    ) -> Self {
        Self {
            report,
            config,
            place,
            start,
            lock_file,
            nonce,
            bridge,
            remote,
            founding: None,
            shared,
            consensus: Consensus::new(),
            sessions: BTreeMap::new(),
            calendar: Calendar::new(quorate_transport::calendar_ahead()),
            dialled: BTreeMap::new(),
            sights: BTreeMap::new(),
            refusals: BTreeMap::new(),
            leaving: Vec::new(),
            hosts: false,
            hosting: Vec::new(),
            defining: Vec::new(),
            dice: Lots,
            rounds: Time::ZERO,
        }
    }

    /// The lease, as it is set.
    fn lease(&self) -> Span {
        let known = self.with_seat(|seat| seat.known().register.settings().lease);
        known.filter(|lease| lease.0 > 0).unwrap_or_else(|| self.config.timers.span())
    }

    fn with_seat<R>(&self, look: impl FnOnce(&Seat) -> R) -> Option<R> {
        self.shared.lock().as_ref().and_then(Heart::seat).map(look)
    }

    /// The register, as the seat knows it.
    fn register(&self) -> Option<Arc<Register>> {
        self.with_seat(|seat| Arc::clone(&seat.known().register))
    }

    // Founding

    fn start_founding(&mut self, io: &mut Io<'_>) {
        let Some(place) = self.config.seat_among_seeds() else { return };
        let seeds = Seeds {
            count: self.config.seeds.len(),
            list: self.config.list(),
            found: self.config.found,
            patience: beat(self.config.timers.span()),
        };
        let me = NodeId::at(place);
        let fresh = Instance(quorate_transport::nonce());
        let founding = Founding::new(me, fresh, Arc::new(seeds), self.place.standing());
        self.founding = Some(Node::new(me, founding));
        self.found(io, Input::Start);
    }

    fn found(&mut self, io: &mut Io<'_>, input: Input<Founding>) {
        let Some(node) = &mut self.founding else { return };
        // Only commands are refused, and there are none.
        let _ = node.handle(io.now(), &mut self.dice, input, None);
        while let Some(output) = self.founding.as_mut().and_then(Node::poll) {
            match output {
                Output::Send { to, msg, .. } => self.send_to_seed(io, to, msg),
                Output::Multicast { to, msg, .. } => {
                    to.iter().for_each(|to| self.send_to_seed(io, to, msg));
                }
                Output::Persist(Sole(standing)) => {
                    if let Err(why) = self.keep(standing) {
                        return self.give_up(&why);
                    }
                }
                Output::Emit(event) => self.on_founding(io, event),
            }
        }
    }

    /// Keeps where it belongs. Who founds a cluster has its disk ready before it says so.
    fn keep(&mut self, standing: founding::Standing) -> Result<(), String> {
        let before = self.place.standing();
        if let founding::Standing::Belongs(instance) = standing
            && before == Some(founding::Standing::Asking(instance))
        {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let begin = since.map_or(1, |since| u64::try_from(since.as_millis()).unwrap_or(1));
            Consensus::found(&self.place, &self.config, begin)?;
        }
        self.place.keep(Some(standing)).map_err(|error| error.to_string())
    }

    fn send_to_seed(&self, io: &mut Io<'_>, to: NodeId, msg: founding::Msg) {
        let seed = &self.config.seeds[to.index()];
        if let Some(peer) = io.peer(&seed.name) {
            // Without a session it is asked again later.
            let _ = io.send(peer, Lane::Founding, &Frame::Founding(msg).encode());
        }
    }

    fn on_founding(&mut self, io: &mut Io<'_>, event: founding::Event) {
        let seed = |node: NodeId| self.config.seeds[node.index()].name.clone();
        match event {
            founding::Event::Founded(cluster) | founding::Event::Joined(cluster) => {
                info!(cluster = %format_args!("{:032x}", cluster.0), "belongs to a cluster");
                self.belong(io, cluster);
            }
            founding::Event::Pledged(instance) => info!(
                to = %format_args!("{:032x}", instance.0),
                "is pledged to the first seed, and follows nobody else"
            ),
            founding::Event::Taken(node, instance) => warn!(
                seed = %seed(node),
                to = %format_args!("{:032x}", instance.0),
                "nothing can be founded: a seed is pledged to another founder"
            ),
            founding::Event::OtherList(node) => {
                warn!(seed = %seed(node), "a seed was told of other seeds: the lists must be equal");
            }
        }
        self.report.changed();
    }

    /// From now on it belongs to this cluster.
    fn belong(&mut self, io: &mut Io<'_>, Instance(cluster): Instance) {
        if let Err(error) = io.set_cluster(cluster) {
            return self.give_up(&error.to_string());
        }
        self.enter(io);
    }

    /// Takes its part in the cluster that it belongs to.
    fn enter(&mut self, io: &mut Io<'_>) {
        let seed = self.config.seat_among_seeds().is_some();
        if self.config.engine == Engine::Embedded && seed {
            let Self { consensus, place, config, bridge, remote, .. } = self;
            // Its seat waits until its disk votes: so whoever founded the cluster is not alone with it.
            if let Err(why) = consensus.start(place, config, bridge, remote) {
                self.give_up(&why);
            } else if let Some(syncs) = self.consensus.syncs() {
                // There is one disk.
                let _ = self.shared.syncs.set(syncs);
            }
            return;
        }
        self.start_seat(io);
    }

    fn start_seat(&mut self, io: &mut Io<'_>) {
        let name = self.config.name.as_str();
        let settings = Settings { lease: self.config.timers.span() };
        let config = seat::Config {
            trust_refusal: self.config.trust_refusal,
            ..seat::Config::alone(name, settings)
        };
        let identity = seat::Identity {
            name: name.to_owned(),
            start: self.start,
            nonce: self.nonce,
            lock_file: self.lock_file,
            address: self.config.address().to_owned(),
        };
        let party = Party::seat(ME, identity, Arc::new(config));
        let diary = self.report.diary();
        self.shared.begin(Service::of(party, Limits::default()), self.nonce as u64, diary);
        for (peer, version) in &self.sessions {
            self.reach(io, *peer, *version);
        }
        self.step(io, Input::Start);
        for (peer, version) in self.sessions.clone() {
            self.learn_version(io, peer, version);
        }
    }

    /// It cannot go on: whoever runs it is told, and ends the process.
    fn give_up(&mut self, why: &str) {
        error!("{why}");
        self.report.fail(why);
    }

    // The service

    fn step(&mut self, io: &mut Io<'_>, input: Input<Service>) {
        self.step_by(io, |_| Some(input));
    }

    /// A frame of a member. Whoever is not in the register as it is known here says it again.
    fn hear(&mut self, io: &mut Io<'_>, peer: Peer, msg: service::Msg) {
        let name = io.name(peer).clone();
        self.step_by(io, |heart| {
            let from = heart.seat()?.node(name.as_str())?;
            Some(Input::Message { from, msg })
        });
    }

    /// A step, if there is one to take: all of it while the heart is had once.
    fn step_by(&mut self, io: &mut Io<'_>, input: impl FnOnce(&Heart) -> Option<Input<Service>>) {
        let (now, mut calls, mut outputs) = (io.now(), Calls::new(), Vec::new());
        let mut left = false;
        let news = {
            let mut heart = self.shared.lock();
            let Some(heart) = heart.as_mut() else { return };
            let Some(input) = input(heart) else { return };
            let written = happening(&input);
            let (outcome, record) = heart.handle(now, input, written);
            if let Err(refusal) = outcome {
                debug!(%refusal, "the seat refused");
            }
            if let (Some(record), Some(seat)) = (record, heart.seat()) {
                self.report.log(&record, seat);
            }
            let until = heart.look_at_lease(now);
            while let Some(output) = heart.node.poll() {
                match output {
                    Output::Send { to, msg: service::Msg::Lock(frame), .. } => {
                        let frame = Frame::Lock(frame);
                        if let Some(way) = heart.way(to, &frame) {
                            // A session that is lost ends the view, and with it what was said in it.
                            let _ = io.send(way.peer(), Lane::Data, &frame.encode());
                        }
                    }
                    Output::Emit(service::Event::Lock(event)) => heart.on_lock(event, &mut calls),
                    // Written down in the order in which it happens, between what is said of locks.
                    Output::Emit(service::Event::Seat(event)) => {
                        self.report.event(&event);
                        left |= matches!(event, seat::Event::Left);
                        if matches!(event, seat::Event::Installed { .. }) {
                            self.shared.counts.installed();
                        }
                    }
                    Output::Multicast { to, msg: service::Msg::Group(frame), .. } => {
                        let frame = Frame::Group(frame);
                        let bytes = frame.encode();
                        for way in to.iter().filter_map(|to| heart.way(to, &frame)) {
                            // As with locks.
                            let _ = io.send(way.peer(), Lane::Data, &bytes);
                        }
                    }
                    Output::Emit(service::Event::Group(event)) => heart.on_group(now, event),
                    output => outputs.push(output),
                }
            }
            if let Some(until) = until {
                self.shared.until.send_replace(until);
            }
            let known = heart.seat().map(Seat::known);
            let news = known.filter(|known| self.report.is_news(known.revision));
            news.map(|known| Arc::clone(&known.register))
        };
        calls.into_iter().for_each(|call| call());
        for output in outputs {
            // Seats say nothing to several at once, and only where the register is, is anything kept.
            if let Output::Send { to, msg: service::Msg::Seat(msg), .. } = output {
                self.send(io, to, msg);
            }
        }
        if left {
            for told in self.leaving.drain(..) {
                // Whoever asked may have stopped waiting.
                let _ = told.send(());
            }
        }
        if let Some(register) = news {
            self.look_after_register(io, &register);
        }
    }

    fn send(&mut self, io: &mut Io<'_>, to: NodeId, msg: seat::Msg) {
        if let seat::Msg::Order { number, order } = msg {
            let patience = beat(self.lease());
            let Self { consensus, bridge, remote, .. } = self;
            return consensus.order(io, bridge, remote, (Asker::Seat, number), *order, patience);
        }
        let name = self.with_seat(|seat| seat.name(to).and_then(|name| name.parse::<Name>().ok()));
        let name = name.flatten();
        let peer = name.and_then(|name| io.peer(&name)).filter(|peer| io.is_up(*peer));
        if let Some(peer) = peer {
            // What does not arrive is said again.
            let _ = io.send(peer, Lane::Control, &Frame::Seat(msg).encode());
        }
    }

    /// The own voter knows something new.
    fn hear_consensus(&mut self, io: &mut Io<'_>, status: raft::Status) {
        let before = &self.consensus.status;
        if before.leader != status.leader {
            info!(term = status.term, leader = ?status.leader, "the consensus is led");
        }
        if let Some(why) = &status.stopped {
            self.report.fail(why);
        }
        self.consensus.status = status;
        self.report.changed();
        if self.shared.lock().is_none() && self.consensus.votes() {
            self.start_seat(io);
        }
        self.mind_voters(io);
    }

    /// The register has changed: who is to be reached, and whose process is to be watched.
    fn look_after_register(&mut self, io: &mut Io<'_>, register: &Arc<Register>) {
        self.report.look(register);
        self.dial(io, register);
        if let Some(heart) = self.shared.lock().as_mut() {
            heart.find_ways();
        }
        self.see_to_hosting(io);
        self.see_to_definitions(io);
        let over = self.watch_processes(io, register);
        for start in over {
            self.exited(io, start);
        }
    }

    /// Orders the namespaces that users want, until the register has them.
    fn see_to_definitions(&mut self, io: &mut Io<'_>) {
        let Some(register) = self.register().filter(|_| !self.defining.is_empty()) else { return };
        let patience = beat(self.lease());
        for definition in std::mem::take(&mut self.defining) {
            if let Some(outcome) = definition.outcome(&register) {
                (definition.told)(outcome);
                continue;
            }
            if io.now() >= definition.until {
                continue;
            }
            let (name, space) = (definition.name.clone(), definition.space.clone());
            let Self { consensus, bridge, remote, .. } = self;
            let order = Order::Space { name, space };
            consensus.order(io, bridge, remote, (Asker::Seat, 0), order, patience);
            self.defining.push(definition);
        }
    }

    /// Users of this process reach a peer by this session, in which this version of the wire is spoken.
    fn reach(&self, io: &Io<'_>, peer: Peer, version: u16) {
        let way = io.direct(peer).map(|direct| Way::new(direct, version));
        if let Some(heart) = self.shared.lock().as_mut() {
            heart.reach(io.name(peer).as_str(), way);
        }
    }

    /// The service is told what the program of a peer can do.
    fn learn_version(&mut self, io: &mut Io<'_>, peer: Peer, version: u16) {
        let name = io.name(peer).as_str().to_owned();
        let knows = service::Command::KnowsGroups(name, version >= GROUPS_SINCE);
        self.step(io, Input::Command(knows));
    }

    fn dial(&mut self, io: &mut Io<'_>, register: &Register) {
        let mut wanted: BTreeMap<Name, Vec<String>> = BTreeMap::new();
        for seed in &self.config.seeds {
            wanted.entry(seed.name.clone()).or_default().push(seed.address.clone());
        }
        for (_, member) in register.members() {
            let Ok(name) = member.name.parse() else { continue };
            let places: &mut Vec<String> = wanted.entry(name).or_default();
            if !places.contains(&member.process.address) {
                places.push(member.process.address.clone());
            }
        }
        wanted.remove(&self.config.name);
        for name in self.dialled.keys().filter(|name| !wanted.contains_key(*name)) {
            io.disconnect(name);
        }
        for (name, places) in &wanted {
            if self.dialled.get(name) != Some(places) {
                io.connect(name, places);
            }
        }
        self.dialled = wanted;
    }

    /// Has the kernel watch the processes of members; those that are over already.
    fn watch_processes(&mut self, io: &mut Io<'_>, register: &Register) -> Vec<Start> {
        let starts: Vec<Start> = register.members().map(|(_, it)| it.process.start()).collect();
        self.sights.retain(|start, watch| {
            let stays = starts.contains(start);
            watch.filter(|_| !stays).into_iter().for_each(|watch| io.unwatch(watch));
            stays
        });
        let mut over = Vec::new();
        for start in starts {
            if start == self.start || self.sights.contains_key(&start) {
                continue;
            }
            let watched = match process::look(&self.start, &start) {
                Sight::Runs(fd) => io.watch(fd).ok(),
                Sight::Over => {
                    over.push(start);
                    None
                }
                Sight::Unknown => None,
            };
            self.sights.insert(start, watched);
        }
        over
    }

    /// The kernel says that a process is over.
    fn exited(&mut self, io: &mut Io<'_>, start: Start) {
        let register = self.register();
        let members = register.iter().flat_map(|register| register.members());
        let dead = members.filter(|(_, member)| member.process.start() == start);
        for (life, member) in dead {
            info!(member = %member.name, life = life.0, pid = start.pid, "its process has ended");
            let peer = member.name.parse().ok().and_then(|name: Name| io.peer(&name));
            if let Some(peer) = peer {
                self.consensus.dead(peer);
            }
        }
        self.step(io, wish(seat::Command::Exited(start)));
    }

    /// The life of a member that sits in the view.
    fn life_of(&self, name: &Name) -> Option<Life> {
        let register = self.register()?;
        let of = |life: &&Life| register.member(**life).is_some_and(|it| it.name == name.as_str());
        register.view().iter().find(of).copied()
    }

    // Frames

    fn on_seat(&mut self, io: &mut Io<'_>, peer: Peer, msg: seat::Msg) {
        match msg {
            seat::Msg::Order { number, order } => {
                let patience = beat(self.lease());
                let Self { consensus, bridge, remote, .. } = self;
                let asker = (Asker::Peer(peer), number);
                consensus.order(io, bridge, remote, asker, *order, patience);
            }
            seat::Msg::Answer { .. } | seat::Msg::Changed(_) => {
                self.consensus.answered(io.now());
                self.hear_authority(io, msg);
            }
            msg => self.hear(io, peer, service::Msg::Seat(msg)),
        }
    }

    fn hear_authority(&mut self, io: &mut Io<'_>, msg: seat::Msg) {
        let msg = service::Msg::Seat(msg);
        self.step(io, Input::Message { from: seat::Config::ELSEWHERE, msg });
    }

    // What no timer is for

    fn make_rounds(&mut self, io: &mut Io<'_>) {
        let every = Span(self.lease().0 / 8);
        self.rounds = io.now() + every;
        self.mind_voters(io);
        self.see_to_hosting(io);
        self.see_to_definitions(io);
        self.report.changed();
    }

    /// Says in the register whether it acts for processes that outlive it, until that is so there.
    fn see_to_hosting(&mut self, io: &mut Io<'_>) {
        let Some(life) = self.shared.lock().as_ref().and_then(Heart::life) else { return };
        let register = self.register();
        let Some(member) = register.as_ref().and_then(|it| it.member(life)) else { return };
        if member.hosts == self.hosts {
            for told in self.hosting.drain(..) {
                // Whoever asked may have stopped waiting.
                let _ = told.send(());
            }
        } else if member.standing == quorate_service::Standing::Seated {
            let host = if self.hosts { Host::Begins } else { Host::Ends };
            let patience = beat(self.lease());
            let Self { consensus, bridge, remote, .. } = self;
            let order = Order::Host(life, host);
            consensus.order(io, bridge, remote, (Asker::Seat, 0), order, patience);
        }
    }

    fn mind_voters(&self, io: &Io<'_>) {
        let Self { consensus, config, bridge, remote, .. } = self;
        consensus.mind_voters(io, config, bridge, remote);
    }

    fn due(&self, now: Time) -> Option<service::Timer> {
        self.shared.lock().as_mut().and_then(|heart| heart.node.due(now))
    }

    fn publish(&mut self, io: &Io<'_>) {
        if !self.report.is_dirty() {
            return;
        }
        let reached = self.consensus.is_reached(io.now(), self.lease());
        let heart = self.shared.lock();
        let seat = heart.as_ref().and_then(Heart::seat);
        self.report.publish(io, seat, &self.consensus, reached);
    }
}

impl Handler for Runtime {
    type Command = Command;

    fn started(&mut self, io: &mut Io<'_>) {
        for seed in self.config.seeds.iter().filter(|seed| seed.name != self.config.name) {
            let places = vec![seed.address.clone()];
            io.connect(&seed.name, &places);
            self.dialled.insert(seed.name.clone(), places);
        }
        if let Engine::Etcd { endpoints, key } = self.config.engine.clone() {
            let settings = Settings { lease: self.config.timers.span() };
            let (patience, found) = (self.config.timers.lease, self.config.found);
            return self.bridge.ask(&self.remote, async move {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                let begin = since.map_or(1, |it| u64::try_from(it.as_millis()).unwrap_or(1));
                let founding = found.then(|| founded(begin, settings));
                let place = quorate_authority::etcd::Place { endpoints, key, patience };
                let mut etcd = Etcd::connect(place.clone(), founding.clone()).await;
                // One that was started together with this process needs its time.
                for _ in 0..ETCD_ATTEMPTS {
                    if !matches!(etcd, Err(ConnectError::Unavailable(_))) {
                        break;
                    }
                    tokio::time::sleep(patience / 4).await;
                    etcd = Etcd::connect(place.clone(), founding.clone()).await;
                }
                Some(Command::Etcd(etcd.map(Arc::new).map_err(|error| error.to_string())))
            });
        }
        let belongs = cluster_of(self.place.standing()).is_some();
        self.start_founding(io);
        if belongs {
            self.enter(io);
        }
    }

    fn up(&mut self, io: &mut Io<'_>, peer: Peer, hello: &Hello<'_>) {
        self.refusals.remove(hello.name);
        self.report.link(hello.name, "up");
        match (hello.scope, hello.cluster) {
            (Scope::Cluster, _) => {
                self.sessions.insert(peer, hello.version);
                self.reach(io, peer, hello.version);
                self.learn_version(io, peer, hello.version);
                let Self { consensus, bridge, remote, .. } = self;
                consensus.introduce(io, peer, bridge, remote);
            }
            // Seeds ask for more than one's word; whoever joins is told where it belongs.
            (Scope::Founding, Some(cluster))
                if self.founding.is_none() && io.identity().cluster.is_none() =>
            {
                let standing = founding::Standing::Belongs(Instance(cluster));
                match self.place.keep(Some(standing)) {
                    Ok(()) => self.belong(io, Instance(cluster)),
                    Err(error) => self.give_up(&error.to_string()),
                }
            }
            (Scope::Founding, _) => {}
        }
    }

    fn frame(&mut self, io: &mut Io<'_>, peer: Peer, lane: Lane, bytes: &[u8]) {
        let frame = Frame::decode(bytes);
        if let Some(frame) = &frame {
            self.shared.counts.came(frame, bytes.len());
            self.report.heard(io.name(peer), frame);
        }
        match (lane, frame) {
            (Lane::Founding, Some(Frame::Founding(msg))) => {
                let name = io.name(peer);
                let seed = self.config.seeds.iter().position(|seed| seed.name == *name);
                if let Some(from) = seed.map(NodeId::at) {
                    self.found(io, Input::Message { from, msg });
                }
            }
            (Lane::Control, Some(Frame::Introduction(introduction))) => {
                let Self { consensus, bridge, remote, .. } = self;
                consensus.introduced(peer, introduction, bridge, remote);
                self.report.changed();
            }
            (Lane::Control, Some(Frame::Seat(msg))) => self.on_seat(io, peer, msg),
            (Lane::Control, Some(Frame::Consensus(word))) => self.consensus.hear(peer, word),
            (Lane::Data, Some(Frame::Lock(frame))) => {
                self.hear(io, peer, service::Msg::Lock(frame));
            }
            (Lane::Data, Some(Frame::Group(frame))) => {
                self.hear(io, peer, service::Msg::Group(frame));
            }
            _ => io.close(peer, "a frame that cannot be read"),
        }
    }

    fn down(&mut self, io: &mut Io<'_>, peer: Peer, why: &Down) {
        let name = io.name(peer).clone();
        info!(peer = %name, %why, "the connection has ended");
        self.report.link(&name, "down");
        self.consensus.down(peer);
        match why {
            // Who ends its process says so. It may lie: then whoever is to lead is voted on once more.
            Down::Closed(_) => self.consensus.dead(peer),
            Down::Broken(_) => _ = self.refusals.insert(name, 0),
            Down::Silent | Down::Malformed(_) | Down::Here(_) | Down::Replaced => {}
        }
    }

    fn lost(&mut self, io: &mut Io<'_>, peer: Peer, why: &Lost) {
        let name = io.name(peer).clone();
        warn!(peer = %name, %why, "the session is lost");
        self.report.link(&name, "away");
        self.consensus.forget(peer);
        self.sessions.remove(&peer);
        if let Some(heart) = self.shared.lock().as_mut() {
            heart.reach(name.as_str(), None);
        }
        // Another process of that name has another life. This one goes on with a gap in what was said, if
        // it is in the view: who waits to come in has missed nothing of it.
        let sits = self.with_seat(|seat| seat.sits().is_some()).unwrap_or(false);
        if let (false, true, Some(life)) = (*why == Lost::Restarted, sits, self.life_of(&name)) {
            self.step(io, wish(seat::Command::Severed(life)));
        }
    }

    fn refused(&mut self, io: &mut Io<'_>, name: &Name, address: SocketAddr) {
        let Some(count) = self.refusals.get_mut(name) else { return };
        *count += 1;
        let twice = *count == 2;
        debug!(peer = %name, %address, count, "refused a connection");
        if let Some(peer) = io.peer(name) {
            self.consensus.dead(peer);
        }
        if let (true, true, Some(life)) = (twice, self.config.trust_refusal, self.life_of(name)) {
            self.step(io, wish(seat::Command::Refused(life)));
        }
    }

    fn command(&mut self, io: &mut Io<'_>, command: Command) {
        match command {
            Command::Word { to, bytes } => self.consensus.say(io, to, &bytes),
            Command::Answered { asker: Asker::Peer(peer), number, answer, after } => {
                let msg = seat::Msg::Answer { number, answer, after };
                // If it does not arrive, it is asked for again.
                let _ = io.send(peer, Lane::Control, &Frame::Seat(msg).encode());
            }
            Command::Answered { asker: Asker::Seat, number, answer, after } => {
                self.consensus.answered(io.now());
                self.hear_authority(io, seat::Msg::Answer { number, answer, after });
            }
            Command::Committed(committed) => {
                self.consensus.committed(io, &committed);
                self.report.committed(&committed.register);
                self.hear_authority(io, seat::Msg::Changed(committed));
                self.mind_voters(io);
            }
            Command::Consensus(status) => self.hear_consensus(io, status),
            Command::Introduce { peer, number, introduction } => {
                if self.consensus.is_due(peer, number) {
                    consensus::send_introduction(io, peer, introduction);
                }
            }
            Command::Trusted { peer, id, trusted } => {
                self.consensus.trusted(io, peer, id, trusted);
                self.make_rounds(io);
            }
            Command::Etcd(Ok(etcd)) => {
                let founded = etcd.watch().borrow().register.founded_at();
                let Self { consensus, bridge, remote, .. } = self;
                consensus.start_etcd(etcd, bridge, remote);
                // Who was founded elsewhere or at another time is another cluster, whatever its name.
                let id = u128::from(self.config.list()) << 64 | u128::from(founded);
                if let Err(error) = io.set_cluster(id) {
                    return self.give_up(&error.to_string());
                }
                self.start_seat(io);
            }
            Command::Etcd(Err(why)) => self.give_up(&why),
            Command::Leave(told) => {
                self.leaving.push(told);
                self.step(io, wish(seat::Command::Leave));
            }
            Command::Host(hosts, told) => {
                self.hosts = hosts;
                self.hosting.push(told);
                self.see_to_hosting(io);
            }
            // Who asked for so many waits for none of them any more.
            Command::Define(_) if self.defining.len() >= DEFINITIONS => {}
            Command::Define(definition) => {
                self.defining.push(definition);
                self.see_to_definitions(io);
            }
            Command::Renew => self.step(io, wish(seat::Command::Renew)),
            // The timer is looked at next.
            Command::Wake => self.shared.is_awake(),
            Command::Cut(name, cut) => {
                warn!(peer = %name, cut, "somebody has the link cut, or healed");
                io.cut(&name, cut);
            }
            Command::Reload => io.reload(),
            Command::Stop => {
                self.report.ended();
                io.stop();
            }
        }
    }

    fn readable(&mut self, io: &mut Io<'_>, watch: Watch) {
        let start = self.sights.iter().find(|(_, known)| **known == Some(watch));
        if let Some(start) = start.map(|(start, _)| *start) {
            self.sights.insert(start, None);
            io.unwatch(watch);
            self.exited(io, start);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let timers = [
            self.founding.as_ref().and_then(Node::next_deadline),
            self.shared.lock().as_ref().and_then(|heart| heart.node.next_deadline()),
            Some(self.rounds),
        ];
        timers.into_iter().flatten().min()
    }

    fn expired(&mut self, io: &mut Io<'_>) {
        let now = io.now();
        if let Some(jump) = self.calendar.jumped(quorate_transport::calendar_ahead()) {
            warn!(
                ?jump,
                "the calendar jumped: the machine may have stood still, and with it its clock"
            );
            self.step(io, wish(seat::Command::StoodStill));
        }
        while let Some(()) = self.founding.as_mut().and_then(|node| node.due(now)) {
            self.found(io, Input::Timer(()));
        }
        while let Some(timer) = self.due(now) {
            self.step(io, Input::Timer(timer));
        }
        if self.rounds <= now {
            self.make_rounds(io);
        }
    }

    fn turned(&mut self, io: &mut Io<'_>) {
        self.publish(io);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.consensus.stop();
        if let Some(heart) = self.shared.lock().as_mut() {
            heart.end_groups();
        }
    }
}

/// A wish of the process for its seat.
const fn wish(command: seat::Command) -> Input<Service> {
    Input::Command(service::Command::Seat(command))
}

/// What a step is written down under. There are too many about locks to write all down.
fn happening(input: &Input<Service>) -> Option<Happening> {
    Some(match input {
        Input::Start => Happening::Start,
        Input::Command(service::Command::Seat(command)) => {
            Happening::Command(format!("{command:?}"))
        }
        Input::Message { from, msg: service::Msg::Seat(msg) } => {
            Happening::Receive(Parcel::new(*from, 0, msg))
        }
        Input::Timer(service::Timer::Seat(timer)) => Happening::Timer(format!("{timer:?}")),
        _ => return None,
    })
}

/// Founding draws no lots, and waits as long as it says.
struct Lots;

impl Choices for Lots {
    fn choose(&mut self, _: u32) -> u32 {
        0
    }
}

/// How long ago a renewal may have been answered before a member is in jeopardy.
pub(crate) const fn is_late(left: Span, lease: Span) -> bool {
    left.0 < lease.0 / 10 * 4
}

/// The time that is left.
pub(crate) const fn left(now: Time, until: Time) -> Span {
    since(now, until)
}
