//! What the transport tells.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_authority::Authority as _;
use quorate_authority::etcd::{ConnectError, Etcd};
use quorate_core::{Input, Node, NodeId, Time};
use quorate_service::founding::{self, Instance};
use quorate_service::seat;
use quorate_service::{Settings, service};
use quorate_transport::{Down, Handler, Hello, Io, Lane, Lost, Name, Peer, Scope, Watch};
use tracing::{debug, info, warn};

use super::{Asker, Command, Runtime, cluster_of, wish};
use crate::config::Engine;
use crate::consensus;
use crate::spaces::founded;
use crate::words::Frame;

/// So often an etcd is tried again that does not answer at first.
const ETCD_ATTEMPTS: u32 = 20;

/// So many namespaces may be waited for.
const DEFINITIONS: usize = 1024;

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
                consensus.up(peer);
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
            Command::Words(words) => {
                words.iter().for_each(|(to, bytes)| self.consensus.say(io, *to, bytes));
            }
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
