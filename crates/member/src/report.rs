//! What a member says of itself: lines in the log, its status, and its history.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_core::Life;
use quorate_core::trace::{Happening, Record};
use quorate_service::history::Fact;
use quorate_service::seat::{Event, Seat};
use quorate_service::{Register, Revision};
use quorate_transport::{Io, Name, PeerState};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::config::Config;
use crate::consensus::Consensus;
use crate::events::{Events, KEPT, Kind, between};
use crate::heart::Diary;
use crate::history::History;
use crate::runtime::{is_late, left};
use crate::status::{AuthorityStatus, LinkStatus, MemberStatus, Standing, Status};
use crate::words::Frame;

/// Steps that happen all the time, and say little.
const COMMON: [&str; 3] = ["refused", "stray", "stale"];

/// What a member says of itself.
pub(crate) struct Report {
    status: Status,
    tell: watch::Sender<Arc<Status>>,
    /// Is there something new to tell?
    dirty: bool,
    revision: Revision,
    events: VecDeque<String>,
    /// The same, and more, over restarts.
    kept: Arc<Events>,
    /// The register that was looked at last.
    seen: Option<Arc<Register>>,
    left: bool,
    history: History,
}

impl Report {
    pub(crate) fn new(
        config: &Config,
        (history, kept): (History, Arc<Events>),
        tell: watch::Sender<Arc<Status>>,
    ) -> Self {
        let status = Status {
            cluster_name: config.cluster.to_string(),
            name: config.name.to_string(),
            pid: std::process::id(),
            lease_ms: u64::try_from(config.timers.lease.as_millis()).unwrap_or(u64::MAX),
            ..Status::default()
        };
        Self {
            status,
            tell,
            dirty: true,
            revision: Revision(0),
            events: VecDeque::new(),
            kept,
            seen: None,
            left: false,
            history,
        }
    }

    /// Is there something to tell?
    pub(crate) const fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Something may have changed.
    pub(crate) fn changed(&mut self) {
        self.dirty = true;
    }

    /// Is this a later state of the register than the one that was looked at last?
    pub(crate) fn is_news(&mut self, revision: Revision) -> bool {
        let news = revision > self.revision;
        self.revision = self.revision.max(revision);
        self.dirty |= news;
        news
    }

    /// What is written down of guards goes into the same history, if there is one.
    pub(crate) fn diary(&self) -> Option<Diary> {
        let another = self.history.another();
        another
            .unwrap_or_else(|error| {
                warn!(%error, "guards are not written down");
                None
            })
            .map(Diary::new)
    }

    /// The process ends by itself.
    pub(crate) fn ended(&mut self) {
        self.history.note(Fact::Exit);
    }

    /// The consensus has committed this register.
    pub(crate) fn committed(&mut self, register: &Register) {
        self.history.committed(register);
    }

    /// It cannot go on, for this reason.
    pub(crate) fn fail(&mut self, why: &str) {
        self.status.authority.stopped = Some(why.to_owned());
        self.dirty = true;
    }

    /// How somebody is reached has changed.
    pub(crate) fn link(&mut self, name: &Name, state: &str) {
        self.remember(Kind::Link, format!("{name} is {state}"));
    }

    /// The register is this now.
    pub(crate) fn look(&mut self, register: &Arc<Register>) {
        if let Some(before) = self.seen.replace(Arc::clone(register)) {
            for (kind, text) in between(&before, register) {
                info!(what = kind.as_str(), "{text}");
                self.remember(kind, text);
            }
        }
    }

    /// A frame came in from a member.
    pub(crate) fn heard(&mut self, from: &Name, frame: &Frame<'_>) {
        self.history.message(from.as_str(), frame.kind());
    }

    fn remember(&mut self, kind: Kind, line: String) {
        let epoch = self.seen.as_ref().map_or(0, |register| register.epoch().0);
        self.kept.note(kind, epoch, line.clone());
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(line);
        self.dirty = true;
    }

    /// A step of the seat: what it did, why, and what it saw.
    pub(crate) fn log(&mut self, record: &Record, seat: &Seat) {
        for step in &record.steps {
            if let ("live", Some(life)) = (&*step.name, seat.life()) {
                self.history.note(Fact::Life { life });
            }
            let cause = match &record.input {
                Happening::Start => "start".to_owned(),
                Happening::Timer(timer) => format!("timer {timer}"),
                Happening::Command(command) => format!("command {command}"),
                Happening::Receive(parcel) => match seat.name(parcel.from) {
                    Some(name) => format!("{} from {name}", parcel.kind),
                    None => format!("{} from the authority", parcel.kind),
                },
                other => format!("{other:?}"),
            };
            let seen: Vec<String> =
                step.fields.iter().map(|(field, value)| told(seat, field, *value)).collect();
            let seen = seen.join(", ");
            if COMMON.contains(&&*step.name) {
                debug!(step = %step.name, %cause, %seen);
            } else {
                info!(step = %step.name, %cause, %seen);
                let detail = if seen.is_empty() { String::new() } else { format!(" ({seen})") };
                self.remember(Kind::Seat, format!("{}{detail}, on {cause}", step.name));
            }
        }
    }

    /// The seat has told something.
    pub(crate) fn event(&mut self, event: &Event) {
        self.history.event(event);
        self.left = matches!(event, Event::Left) || (self.left && !is_seated(event));
        self.dirty = true;
    }

    /// Tells how things stand.
    pub(crate) fn publish(
        &mut self,
        io: &Io<'_>,
        seat: Option<&Seat>,
        consensus: &Consensus,
        reached: bool,
    ) {
        self.dirty = false;
        let status = &mut self.status;
        status.cluster = io.identity().cluster.map(|id| format!("{id:032x}"));
        status.links = links(io);
        status.events = self.events.iter().cloned().collect();
        if let Some(seat) = seat {
            let (register, now) = (&seat.known().register, io.now());
            let until = seat.until(now);
            status.epoch = register.epoch().0;
            status.lease_ms = register.settings().lease.0 / 1_000_000;
            status.left_ms = until.map(|until| left(now, until).0 / 1_000_000);
            let late =
                until.is_some_and(|until| is_late(left(now, until), register.settings().lease));
            status.standing = match (seat.life(), seat.sits(), until) {
                _ if self.left => Standing::Left,
                (Some(_), Some(_), Some(_)) if late => Standing::Jeopardy,
                (Some(_), Some(_), Some(_)) => Standing::Member,
                _ if !reached => Standing::MajorityLost,
                (Some(_), None, _) | (None, ..) if !seat.was_seated() => Standing::Joining,
                _ => Standing::NotPrimary,
            };
            status.members = members(register);
            status.authority = authority(io, register, consensus, status.authority.stopped.take());
        }
        let status = Arc::new(status.clone());
        self.tell.send_if_modified(|told| {
            let news = *told != status;
            *told = status;
            news
        });
    }
}

const fn is_seated(event: &Event) -> bool {
    matches!(event, Event::Installed { .. })
}

/// A field of a step, with the name of whose life it is.
fn told(seat: &Seat, field: &str, value: u64) -> String {
    let member = (field == "life").then(|| seat.known().register.member(Life(value))).flatten();
    match member {
        Some(member) => format!("{field} {value} of {}", member.name),
        None => format!("{field} {value}"),
    }
}

fn links(io: &Io<'_>) -> Vec<LinkStatus> {
    let link = |peer: quorate_transport::PeerStats| LinkStatus {
        name: peer.name.to_string(),
        state: match peer.state {
            PeerState::Away => "away".to_owned(),
            PeerState::Down => "down".to_owned(),
            PeerState::Up(_) => "up".to_owned(),
        },
        rtt_us: peer.rtt.map(|rtt| rtt.0 / 1_000),
        queued: peer.control_queued + peer.data_queued,
    };
    io.stats().peers().into_iter().map(link).collect()
}

fn members(register: &Register) -> Vec<MemberStatus> {
    let seated = register.view().iter().copied();
    let others = register.members().map(|(life, _)| life);
    let others = others.filter(|life| !register.view().contains(life));
    let name = |life: &Life| register.member(*life).map(|member| member.name.clone());
    let all = seated.chain(others).filter_map(|life| Some((life, register.member(life)?)));
    all.map(|(life, member)| MemberStatus {
        name: member.name.clone(),
        address: member.process.address.clone(),
        life: life.0,
        state: register.state(life).to_owned(),
        unreachable: member.unreachable.iter().filter_map(name).collect(),
    })
    .collect()
}

fn authority(
    io: &Io<'_>,
    register: &Register,
    consensus: &Consensus,
    stopped: Option<String>,
) -> AuthorityStatus {
    let own = consensus.id();
    let named = |id: u64| match own == Some(id) {
        true => io.identity().name.to_string(),
        false => consensus.name_of(io, register, id).unwrap_or_else(|| format!("{id:016x}")),
    };
    let voting = &consensus.status.members.voters;
    let voters = match voting.is_empty() {
        true => register.voters().keys().cloned().collect(),
        false => voting.iter().map(|id| named(*id)).collect(),
    };
    let leader = consensus.status.leader.map(named);
    AuthorityStatus { kind: consensus.kind().to_owned(), leader, voters, stopped }
}
