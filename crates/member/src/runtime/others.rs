//! The others, as the register has them: whom to reach, whose process to watch, what all have to know.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_authority::{Order, Register};
use quorate_core::{Input, Life};
use quorate_service::lease::beat;
use quorate_service::seat;
use quorate_service::{Start, service};
use quorate_transport::{Io, Name, Peer};
use tracing::info;

use super::{Asker, Runtime, wish};
use crate::heart::Way;
use crate::process::{self, Sight};
use crate::words::GROUPS_SINCE;

impl Runtime {
    /// The register has changed: who is to be reached, and whose process is to be watched.
    pub(super) fn look_after_register(&mut self, io: &mut Io<'_>, register: &Arc<Register>) {
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
    pub(super) fn see_to_definitions(&mut self, io: &mut Io<'_>) {
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
    pub(super) fn reach(&self, io: &Io<'_>, peer: Peer, version: u16) {
        let way = io.direct(peer).map(|direct| Way::new(direct, version));
        if let Some(heart) = self.shared.lock().as_mut() {
            heart.reach(io.name(peer).as_str(), way);
        }
    }

    /// The service is told what the program of a peer can do.
    pub(super) fn learn_version(&mut self, io: &mut Io<'_>, peer: Peer, version: u16) {
        let name = io.name(peer).as_str().to_owned();
        let knows = service::Command::KnowsGroups(name, version >= GROUPS_SINCE);
        self.step(io, Input::Command(knows));
    }

    pub(super) fn dial(&mut self, io: &mut Io<'_>, register: &Register) {
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
    pub(super) fn watch_processes(&mut self, io: &mut Io<'_>, register: &Register) -> Vec<Start> {
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
    pub(super) fn exited(&mut self, io: &mut Io<'_>, start: Start) {
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
    pub(super) fn life_of(&self, name: &Name) -> Option<Life> {
        let register = self.register()?;
        let of = |life: &&Life| register.member(**life).is_some_and(|it| it.name == name.as_str());
        register.view().iter().find(of).copied()
    }
}
