//! A member's part in the authority: its own voter, or the way to those of others.
//!
//! Orders go to the engine of this process if it knows who leads; else to the voters in turn, which pass
//! them on once. Only who wants something orders it again.
//!
//! The leader makes the consensus be what the list of seeds says: whoever comes with another disk than
//! before listens first, replaces what voted under its name, and votes. A founder begins alone, and the
//! others come to vote in the same way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_authority::etcd::Etcd;
use quorate_authority::raft::{Conf, Members, OpenError, Options, Raft, Redb, Status, Stored};
use quorate_authority::{Authority as _, Committed, Histogram, Order};
use quorate_core::{Span, Time};
use quorate_service::lease::since;
use quorate_service::{Register, Settings, seat};
use quorate_transport::{Direct, Io, Lane, Peer, Remote};
use tracing::{info, warn};

use crate::bridge::Bridge;
use crate::config::Config;
use crate::place::Place;
use crate::runtime::{Asker, Command};
use crate::spaces::founded;
use crate::words::{Frame, Introduction};

/// The engine of this process.
#[derive(Debug, Default)]
enum Engine {
    /// There is none: others vote.
    #[default]
    Elsewhere,
    /// A voter of the embedded one.
    Voter(Arc<Raft>),
    /// A client of etcd.
    Etcd(Arc<Etcd>),
}

/// How a voter's own thread reaches those that are trusted, without waking another one.
#[derive(Clone, Debug, Default)]
struct Ways(Arc<Mutex<BTreeMap<u64, Direct>>>);

impl Ways {
    /// A voter can be reached like this in the present session, or not at all.
    fn set(&self, id: u64, way: Option<Direct>) {
        let mut ways = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match way {
            Some(way) => _ = ways.insert(id, way),
            None => _ = ways.remove(&id),
        }
    }

    /// Says something to a voter, if there is a connection. False if it was not said.
    fn say(&self, to: u64, bytes: &[u8]) -> bool {
        let way = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&to).cloned();
        let way = way.filter(Direct::is_up);
        let frame = Frame::Consensus(bytes);
        way.is_some_and(|way| way.send(Lane::Control, &frame.encode()).is_ok())
    }
}

/// A member's part in the authority.
#[derive(Debug)]
pub(crate) struct Consensus {
    engine: Engine,
    /// What the own voter knows.
    pub(crate) status: Status,
    /// The disks of others, as they introduced themselves and are trusted.
    ids: BTreeMap<Peer, u64>,
    /// How the voter's own thread reaches them.
    ways: Ways,
    /// To whom the own voter was introduced in the present session, and which introduction that was.
    introduced_to: BTreeMap<Peer, u64>,
    introductions: u64,
    /// Who was introduced, whether it votes or not.
    introduced: BTreeMap<Peer, Option<u64>>,
    /// Whose turn it is to be asked.
    turn: usize,
    /// When something was asked of others last, and answered by them.
    asked: Time,
    answered: Time,
    /// The register, as the own engine has it.
    latest: Option<Committed>,
    /// What was told last to those who do not vote.
    told: Option<Committed>,
}

impl Consensus {
    pub(crate) fn new() -> Self {
        Self {
            engine: Engine::Elsewhere,
            status: Status::default(),
            ids: BTreeMap::new(),
            ways: Ways::default(),
            introduced_to: BTreeMap::new(),
            introductions: 0,
            introduced: BTreeMap::new(),
            turn: 0,
            asked: Time::ZERO,
            answered: Time::ZERO,
            latest: None,
            told: None,
        }
    }

    /// Makes the disk of whoever founds the cluster, before it says that it does.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn found(place: &Place, config: &Config, begin: u64) -> Result<(), String> {
        let id = random_id();
        let register = founded(begin, Settings { lease: config.timers.span() });
        let stored = Stored::founding(id, vec![id], register).map_err(|error| error.to_string())?;
        match Redb::create(&place.authority(), &stored) {
            // It crashed after this and before it said so.
            Ok(_) | Err(OpenError::Exists) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Starts the voter on its disk; on a new one if there is none, or if the old one must not be used.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(crate) fn start(
        &mut self,
        place: &Place,
        config: &Config,
        bridge: &Bridge,
        remote: &Remote<Command>,
    ) -> Result<(), String> {
        let directory = place.authority();
        let join = || Redb::create(&directory, &Stored::joining(random_id()));
        let disk = match Redb::open(&directory) {
            Err(OpenError::Format) if !directory.exists() => join(),
            Err(error @ (OpenError::Poisoned(_) | OpenError::NotContinued(_))) => {
                let aside = place.set_authority_aside().map_err(|error| error.to_string())?;
                warn!(%error, aside = %aside.display(), "joins the consensus anew");
                join()
            }
            opened => opened,
        };
        let disk = disk.map_err(|error| format!("{}: {error}", directory.display()))?;
        let timers = &config.timers;
        let options = Options {
            seed: random_id(),
            election: timers.election,
            heartbeat: timers.heartbeat,
            patience: 4 * timers.election as u64,
            ..Options::default()
        };
        let (say, ways) = (remote.clone(), self.ways.clone());
        let send = move |mut words: Vec<(u64, Vec<u8>)>| {
            words.retain(|(to, bytes)| !ways.say(*to, bytes));
            if !words.is_empty() {
                // What cannot be said is lost: raft is made for it.
                let _ = say.tell(Command::Words(words));
            }
        };
        let raft = Raft::start(disk, options, timers.tick, send).map_err(|it| it.to_string())?;
        let raft = Arc::new(raft);
        bridge.follow(remote, raft.watch(), Command::Committed);
        bridge.follow(remote, raft.status(), Command::Consensus);
        self.engine = Engine::Voter(raft);
        Ok(())
    }

    /// Goes by an etcd from now on.
    pub(crate) fn start_etcd(
        &mut self,
        etcd: Arc<Etcd>,
        bridge: &Bridge,
        remote: &Remote<Command>,
    ) {
        bridge.follow(remote, etcd.watch(), Command::Committed);
        self.engine = Engine::Etcd(etcd);
    }

    /// Ends the own voter and closes its disk, whoever still waits for an answer of it.
    pub(crate) fn stop(&mut self) {
        if let Engine::Voter(raft) = std::mem::take(&mut self.engine) {
            raft.stop();
        }
    }

    /// `raft`, `etcd`, or `remote` where others vote.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.engine {
            Engine::Elsewhere => "remote",
            Engine::Voter(_) => "raft",
            Engine::Etcd(_) => "etcd",
        }
    }

    /// The id of the own disk.
    pub(crate) fn id(&self) -> Option<u64> {
        match &self.engine {
            Engine::Voter(raft) => Some(raft.id()),
            Engine::Elsewhere | Engine::Etcd(_) => None,
        }
    }

    /// How long the own disk takes to make something durable.
    pub(crate) fn syncs(&self) -> Option<Arc<Histogram>> {
        self.voter().map(|raft| Arc::clone(raft.syncs()))
    }

    /// Does the own disk vote?
    pub(crate) fn votes(&self) -> bool {
        self.id().is_some_and(|id| self.status.members.voters.contains(&id))
    }

    const fn voter(&self) -> Option<&Arc<Raft>> {
        match &self.engine {
            Engine::Voter(raft) => Some(raft),
            Engine::Elsewhere | Engine::Etcd(_) => None,
        }
    }

    // Words of the consensus

    /// The voter wants this said.
    pub(crate) fn say(&self, io: &mut Io<'_>, to: u64, bytes: &[u8]) {
        let peer = self.ids.iter().find(|(_, id)| **id == to).map(|(peer, _)| *peer);
        let up = peer.filter(|peer| io.is_up(*peer));
        let frame = Frame::Consensus(bytes).encode();
        let sent = up.is_some_and(|peer| io.send(peer, Lane::Control, &frame).is_ok());
        if let (false, Some(raft)) = (sent, self.voter()) {
            raft.unreachable(to);
        }
    }

    /// Another voter says this. Before it is trusted, nothing that it says counts.
    pub(crate) fn hear(&self, peer: Peer, bytes: &[u8]) {
        if let (Some(raft), Some(id)) = (self.voter(), self.ids.get(&peer)) {
            raft.receive(*id, bytes);
        }
    }

    // Introductions

    /// A session is there, or its connection is there again: says whose disk votes here, and where that
    /// stands. Once in a session: what is said after that goes beyond it, and may come first.
    pub(crate) fn introduce(
        &mut self,
        io: &mut Io<'_>,
        peer: Peer,
        bridge: &Bridge,
        remote: &Remote<Command>,
    ) {
        let Some(raft) = self.voter().cloned() else {
            return send_introduction(io, peer, Introduction::default());
        };
        if self.introduced_to.contains_key(&peer) {
            return;
        }
        self.introductions += 1;
        let number = self.introductions;
        self.introduced_to.insert(peer, number);
        bridge.ask(remote, async move {
            let standing = raft.standing().await.ok()?;
            let introduction = Introduction { voter: Some((raft.id(), standing)) };
            Some(Command::Introduce { peer, number, introduction })
        });
    }

    /// Is this introduction for the session that there is now?
    pub(crate) fn is_due(&self, peer: Peer, number: u64) -> bool {
        self.introduced_to.get(&peer) == Some(&number)
    }

    /// Somebody says whose disk votes there: is that where it can stand, after what it promised?
    pub(crate) fn introduced(
        &mut self,
        peer: Peer,
        introduction: Introduction,
        bridge: &Bridge,
        remote: &Remote<Command>,
    ) {
        self.introduced.insert(peer, introduction.voter.map(|(id, _)| id));
        let Some((id, standing)) = introduction.voter else {
            return self.know(peer, None);
        };
        let Some(raft) = self.voter().cloned() else {
            return self.know(peer, Some(id));
        };
        bridge.ask(remote, async move {
            let trusted = raft.trusts(id, standing).await;
            Some(Command::Trusted { peer, id, trusted })
        });
    }

    /// What the own voter says of another one that introduced itself.
    pub(crate) fn trusted(&mut self, io: &mut Io<'_>, peer: Peer, id: u64, trusted: bool) {
        if trusted {
            self.know(peer, Some(id));
            self.ways.set(id, io.direct(peer));
        } else {
            let name = io.name(peer).clone();
            warn!(peer = %name, "its disk went back behind what it promised: no session with it");
            self.know(peer, None);
            io.close(peer, "your disk went back behind what it promised: join with a new one");
        }
    }

    /// Whose disk votes there, if one does: nothing is said to another one there any more.
    fn know(&mut self, peer: Peer, id: Option<u64>) {
        let before = match id {
            Some(id) => self.ids.insert(peer, id),
            None => self.ids.remove(&peer),
        };
        if let Some(before) = before {
            self.ways.set(before, None);
        }
    }

    /// There is a connection to it: it is not dead, or no longer.
    pub(crate) fn up(&mut self, peer: Peer) {
        if let (Some(raft), Some(id)) = (self.voter(), self.ids.get(&peer)) {
            raft.lives(*id);
        }
    }

    /// A session has broken: words to it are lost for now.
    pub(crate) fn down(&mut self, peer: Peer) {
        if let (Some(raft), Some(id)) = (self.voter(), self.ids.get(&peer)) {
            raft.unreachable(*id);
        }
    }

    /// A session is over: whoever comes next introduces itself.
    pub(crate) fn forget(&mut self, peer: Peer) {
        self.know(peer, None);
        self.introduced.remove(&peer);
        self.introduced_to.remove(&peer);
    }

    /// Whoever is there is dead, or has ended: if it led, somebody else is to.
    pub(crate) fn dead(&self, peer: Peer) {
        if let (Some(raft), Some(id)) = (self.voter(), self.ids.get(&peer)) {
            raft.dead(*id);
        }
    }

    // Orders

    /// Gives an order.
    pub(crate) fn order(
        &mut self,
        io: &mut Io<'_>,
        bridge: &Bridge,
        remote: &Remote<Command>,
        (asker, number): (Asker, u64),
        order: Order,
        patience: Span,
    ) {
        let leads = self.status.leader.is_some() || matches!(asker, Asker::Peer(_));
        match &self.engine {
            Engine::Etcd(etcd) => bridge.order(remote, etcd, (asker, number), order),
            Engine::Voter(raft) if leads => bridge.order(remote, raft, (asker, number), order),
            Engine::Voter(_) | Engine::Elsewhere if matches!(asker, Asker::Seat) => {
                let others: Vec<Peer> =
                    self.ids.keys().copied().filter(|it| io.is_up(*it)).collect();
                let now = io.now();
                if self.answered < self.asked && since(self.answered, now) > patience {
                    self.turn += 1;
                }
                if others.is_empty() {
                    return;
                }
                self.asked = now;
                let msg = seat::Msg::Order { number, order: Box::new(order) };
                let to = others[self.turn % others.len()];
                // If it is lost, whoever wants it orders it again.
                let _ = io.send(to, Lane::Control, &Frame::Seat(msg).encode());
            }
            Engine::Voter(_) | Engine::Elsewhere => {}
        }
    }

    /// Another member's voter has answered.
    pub(crate) fn answered(&mut self, now: Time) {
        self.answered = now;
    }

    /// Does anybody answer orders, as far as is known?
    pub(crate) fn is_reached(&self, now: Time, patience: Span) -> bool {
        match &self.engine {
            Engine::Voter(_) if self.status.leader.is_some() => true,
            Engine::Etcd(_) => true,
            Engine::Voter(_) | Engine::Elsewhere => since(self.answered, now) <= patience,
        }
    }

    /// A state of the register was committed: those who do not vote hear of it from here, if there is
    /// anything new in it.
    pub(crate) fn committed(&mut self, io: &mut Io<'_>, committed: &Committed) {
        self.latest = Some(committed.clone());
        let told = self.told.as_ref();
        if told.is_some_and(|told| !committed.register.is_news_after(&told.register)) {
            return;
        }
        self.told = Some(committed.clone());
        let frame = Frame::Seat(seat::Msg::Changed(committed.clone())).encode();
        let listening = self.introduced.iter().filter(|(_, voter)| voter.is_none());
        let peers: Vec<Peer> = listening.map(|(peer, _)| *peer).collect();
        io.multicast(&peers, Lane::Control, &frame);
    }

    // Who votes

    /// The names of disks, as far as they are known: of those that were introduced, and of those that the
    /// register knows.
    pub(crate) fn name_of(&self, io: &Io<'_>, register: &Register, id: u64) -> Option<String> {
        let peer = self.ids.iter().find(|(_, known)| **known == id);
        let introduced = peer.map(|(peer, _)| io.name(*peer).as_str().to_owned());
        let known = || register.voters().iter().find(|(_, known)| **known == id);
        introduced.or_else(|| known().map(|(name, _)| name.clone()))
    }

    /// The leader brings who votes one step nearer to what the seeds are.
    pub(crate) fn mind_voters(
        &self,
        io: &Io<'_>,
        config: &Config,
        bridge: &Bridge,
        remote: &Remote<Command>,
    ) {
        let leads = |raft: &&Arc<Raft>| self.status.leader == Some(raft.id());
        let (Some(raft), Some(latest)) = (self.voter().filter(leads), &self.latest) else { return };
        let mut present = BTreeMap::from([(config.name.as_str(), raft.id())]);
        for seed in &config.seeds {
            if let Some(id) = io.peer(&seed.name).and_then(|peer| self.ids.get(&peer)) {
                present.insert(seed.name.as_str(), *id);
            }
        }
        match next_step(&present, latest.register.voters(), &self.status.members) {
            None => {}
            Some(Step::Note(name, id)) => {
                let order = Order::Voter { name, id };
                bridge.order(remote, raft, (Asker::Seat, 0), order);
            }
            Some(Step::Change(conf)) => {
                info!(?conf, "who votes is changed");
                let raft = Arc::clone(raft);
                // If it cannot be begun now, it is tried again.
                bridge.ask(remote, async move { raft.change(conf).await.ok().and(None) });
            }
        }
    }
}

/// What brings who votes nearer to what the seeds are.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// The register is to know that this disk votes for this name.
    Note(String, u64),
    /// The consensus is to change.
    Change(Conf),
}

/// The next step: `present` are the seeds that are here with their disks, `noted` those that the register
/// knows, `members` those that take part.
fn next_step(
    present: &BTreeMap<&str, u64>,
    noted: &BTreeMap<String, u64>,
    members: &Members,
) -> Option<Step> {
    for (name, id) in present {
        if noted.get(*name) != Some(id) {
            return Some(Step::Note((*name).to_owned(), *id));
        }
        if !members.contains(*id) {
            return Some(Step::Change(Conf::Learn(*id)));
        }
    }
    // A disk that no name stands for any more: whoever replaces it is here and listens.
    let all = members.voters.iter().chain(&members.learners);
    let replaced = all.copied().find(|id| !noted.values().any(|known| known == id));
    if let Some(id) = replaced {
        return Some(Step::Change(Conf::Remove(id)));
    }
    let listens = present.values().copied().find(|id| members.learners.contains(id));
    listens.map(|id| Step::Change(Conf::Promote(id)))
}

pub(crate) fn send_introduction(io: &mut Io<'_>, peer: Peer, introduction: Introduction) {
    // A session that is gone by now is introduced to when it is there again.
    let _ = io.send(peer, Lane::Control, &Frame::Introduction(introduction).encode());
}

/// A number that no other disk has. Zero is nobody's.
pub(crate) fn random_id() -> u64 {
    (quorate_transport::nonce() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_founder_is_joined_one_by_one_and_a_replaced_disk_goes_first() {
        let mut noted = BTreeMap::new();
        let mut members = Members { voters: vec![1], learners: Vec::new() };
        let all = BTreeMap::from([("a", 1), ("b", 2), ("c", 3)]);
        let mut steps = 0;
        while let Some(step) = next_step(&all, &noted, &members) {
            steps += 1;
            carry_out(step, &mut noted, &mut members);
        }
        assert_eq!((steps, &members.voters[..]), (7, &[1, 2, 3][..]));
        // b comes back with another disk.
        let replaced = BTreeMap::from([("a", 1), ("b", 9), ("c", 3)]);
        let mut confs = Vec::new();
        while let Some(step) = next_step(&replaced, &noted, &members) {
            confs.push(step.clone());
            carry_out(step, &mut noted, &mut members);
        }
        let change = |conf| Step::Change(conf);
        let expected = [
            Step::Note("b".to_owned(), 9),
            change(Conf::Learn(9)),
            change(Conf::Remove(2)),
            change(Conf::Promote(9)),
        ];
        assert_eq!(confs, expected);
        // Who is away keeps its vote.
        assert_eq!(next_step(&BTreeMap::from([("a", 1)]), &noted, &members), None);
    }

    fn carry_out(step: Step, noted: &mut BTreeMap<String, u64>, members: &mut Members) {
        match step {
            Step::Note(name, id) => _ = noted.insert(name, id),
            Step::Change(Conf::Learn(id)) => members.learners.push(id),
            Step::Change(Conf::Promote(id)) => {
                members.learners.retain(|it| *it != id);
                members.voters.push(id);
                members.voters.sort_unstable();
            }
            Step::Change(Conf::Remove(id)) => members.voters.retain(|it| *it != id),
        }
    }
}
