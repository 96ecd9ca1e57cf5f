//! How a process comes to be a member: it founds its cluster with the other seeds, or finds it, and takes its seat.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_core::{Choices, Input, Node, NodeId, Output, Sole};
use quorate_service::Settings;
use quorate_service::founding::{self, Founding, Instance, Seeds};
use quorate_service::lease::beat;
use quorate_service::locks::Limits;
use quorate_service::seat::{self, Party};
use quorate_service::service::Service;
use quorate_transport::{Io, Lane};
use tracing::{error, info, warn};

use super::Runtime;
use crate::config::Engine;
use crate::consensus::Consensus;
use crate::heart::ME;
use crate::words::Frame;

impl Runtime {
    pub(super) fn start_founding(&mut self, io: &mut Io<'_>) {
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

    pub(super) fn found(&mut self, io: &mut Io<'_>, input: Input<Founding>) {
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
    pub(super) fn keep(&mut self, standing: founding::Standing) -> Result<(), String> {
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

    pub(super) fn send_to_seed(&self, io: &mut Io<'_>, to: NodeId, msg: founding::Msg) {
        let seed = &self.config.seeds[to.index()];
        if let Some(peer) = io.peer(&seed.name) {
            // Without a session it is asked again later.
            let _ = io.send(peer, Lane::Founding, &Frame::Founding(msg).encode());
        }
    }

    pub(super) fn on_founding(&mut self, io: &mut Io<'_>, event: founding::Event) {
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
    pub(super) fn belong(&mut self, io: &mut Io<'_>, Instance(cluster): Instance) {
        if let Err(error) = io.set_cluster(cluster) {
            return self.give_up(&error.to_string());
        }
        self.enter(io);
    }

    /// Takes its part in the cluster that it belongs to.
    pub(super) fn enter(&mut self, io: &mut Io<'_>) {
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

    pub(super) fn start_seat(&mut self, io: &mut Io<'_>) {
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
    pub(super) fn give_up(&mut self, why: &str) {
        error!("{why}");
        self.report.fail(why);
    }
}

/// Founding draws no lots, and waits as long as it says.
pub(super) struct Lots;

impl Choices for Lots {
    fn choose(&mut self, _: u32) -> u32 {
        0
    }
}
