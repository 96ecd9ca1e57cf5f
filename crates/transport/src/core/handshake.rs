//! From a connection to a session: who the other side is, which of two connections is used, and where
//! the session goes on.
//!
//! The side that dialled says hello, the other one answers, the first one is ready. Only then does the
//! answering side begin: a hello may be all that is left of a process that is dead, and a dead process is
//! never ready. Whether a session goes on or a new one begins is decided by the side that answers.
//!
//! If both dial at once, the attempt of the member with the smaller name is used: it refuses the other
//! one while its own is being made or used. An attempt that the other side knows to have ended does not
//! count, so a connection that is dead on one side only is replaced at once.

use std::sync::Arc;

use super::connection::{Answer, Arrival, By, Established, Stage};
use super::peer::Session;
use super::{Core, Event};
use crate::tls::{Role, Subject};
use crate::wire::{Decoder, Greeting, Hello, Resume, Welcome};
use crate::{Down, Lost, Name, Peer, Scope};

/// Why a hello is not answered.
enum Unwelcome {
    /// It is refused, with a line in the log.
    Refused(String),
    /// The attempt of this side goes first.
    Crossed,
    /// It is a leftover of an attempt that is over.
    Stale,
}

impl From<String> for Unwelcome {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl Core {
    /// A connection can carry greetings now: it is encrypted, or need not be.
    pub(super) fn on_secured(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let By::Here { peer, attempt } = connection.by else {
            connection.stage = Stage::Expecting;
            return;
        };
        let name = self.entry(peer).name.clone();
        if let Err(why) = self.check_certificate(token, &name) {
            return self.dial_failed(token, peer, why);
        }
        let entry = self.entry(peer);
        if entry.open.is_some() || entry.answered.is_some() {
            // The peer was faster.
            return self.abandon(token);
        }
        let mut resume = Vec::new();
        if let Some(session) = &entry.session {
            resume.push(Resume { session: session.id, received: session.received() });
        }
        if let Some((_, session)) = entry.offered {
            resume.push(Resume { session, received: [0; 2] });
        }
        let identity = &self.config.identity;
        let hello = Hello {
            version_min: *self.config.versions.start(),
            version_max: *self.config.versions.end(),
            cluster: identity.cluster,
            cluster_name: identity.cluster_name.clone(),
            from: identity.name.clone(),
            to: name,
            nonce: identity.nonce,
            attempt,
            closed: entry.closed,
            resume: resume.clone(),
            payload: self.config.hello.clone(),
        };
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.stage = Stage::Greeted(resume);
        }
        self.greet(token, &Greeting::Hello(hello));
    }

    /// What was said before the connection is established.
    pub(super) fn on_greeting(&mut self, token: usize, greeting: Greeting) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let stage = std::mem::replace(&mut connection.stage, Stage::Closing);
        match (stage, greeting, connection.by) {
            (Stage::Expecting, Greeting::Hello(hello), By::There) => {
                connection.stage = Stage::Expecting;
                self.on_hello(token, hello);
            }
            (Stage::Greeted(resume), Greeting::Welcome(welcome), By::Here { peer, attempt }) => {
                connection.stage = Stage::Greeted(Vec::new());
                self.on_welcome(token, peer, attempt, &resume, welcome);
            }
            (Stage::Answered(answer), Greeting::Ready, _) => self.on_ready(token, *answer),
            (Stage::Greeted(_), Greeting::Refusal(refusal), By::Here { peer, .. }) => {
                if refusal.crossed {
                    self.abandon(token);
                } else {
                    self.dial_refused(peer);
                    self.dial_failed(token, peer, format!("refused by it: {}", refusal.why));
                }
            }
            (Stage::Answered(answer), Greeting::Refusal(refusal), _) => {
                connection.stage = Stage::Answered(answer);
                let address = connection.address;
                tracing::info!(%address, "the other side wants no session: {}", refusal.why);
                self.abandon(token);
            }
            (stage, _, _) => {
                connection.stage = stage;
                self.fail(token, Down::Malformed("this is not what comes next".to_owned()));
            }
        }
    }

    fn on_hello(&mut self, token: usize, hello: Hello) {
        match self.consider(token, hello) {
            Ok(answer) => {
                let identity = &self.config.identity;
                let resume = Resume { session: answer.session, received: answer.here };
                let welcome = Welcome {
                    version: answer.arrival.version,
                    cluster: identity.cluster,
                    cluster_name: identity.cluster_name.clone(),
                    from: identity.name.clone(),
                    nonce: identity.nonce,
                    resume,
                    payload: self.config.hello.clone(),
                };
                let before = self.entry_mut(answer.peer).answered.replace(token);
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.stage = Stage::Answered(Box::new(answer));
                }
                if let Some(before) = before.filter(|before| *before != token) {
                    self.abandon(before);
                }
                self.greet(token, &Greeting::Welcome(welcome));
            }
            Err(Unwelcome::Refused(why)) => self.refuse(token, &why),
            Err(Unwelcome::Crossed) => {
                self.turn_away(token, true, "the attempt of the other side goes first");
            }
            Err(Unwelcome::Stale) => self.discard(token),
        }
    }

    /// Is there to be a session, and which?
    fn consider(&mut self, token: usize, hello: Hello) -> Result<Answer, Unwelcome> {
        self.check_certificate(token, &hello.from)?;
        self.check_cluster(&hello.cluster_name, hello.cluster)?;
        let identity = &self.config.identity;
        if hello.from == identity.name {
            let same = hello.nonce == identity.nonce;
            let other = "another process has the name of this member";
            return Err((if same { "it is this process itself" } else { other }).to_owned().into());
        }
        if hello.to != identity.name {
            let (to, own) = (&hello.to, &identity.name);
            return Err(format!("it wants to reach member {to}, and this is {own}").into());
        }
        let (min, max) = (*self.config.versions.start(), *self.config.versions.end());
        let version = max.min(hello.version_max);
        if version < min.max(hello.version_min) {
            let (lowest, highest) = (hello.version_min, hello.version_max);
            return Err(format!(
                "it speaks versions {lowest} to {highest} and this member {min} to {max}"
            )
            .into());
        }
        if self.peers.len() >= self.config.limits.peers && self.find(&hello.from).is_none() {
            return Err("there are too many peers".to_owned().into());
        }
        let peer = self.know(&hello.from);
        if self.entry(peer).cut {
            return Err(Unwelcome::Stale);
        }
        self.check_turn(peer, &hello)?;
        let scope = self.scope_with(hello.cluster);
        let entry = self.entry_mut(peer);
        entry.latest = Some((hello.nonce, hello.attempt));
        let has = |session: u128| hello.resume.iter().find(|resume| resume.session == session);
        let current = entry.session.as_ref().filter(|session| session.nonce == hello.nonce);
        let offered = entry.offered.filter(|(nonce, _)| *nonce == hello.nonce);
        let (session, there, here) = if let Some(session) = current
            && let Some(resume) = has(session.id)
        {
            (session.id, resume.received, session.received())
        } else if let Some((_, session)) = offered
            && has(session).is_some()
        {
            (session, [0; 2], [0; 2])
        } else {
            let session = crate::nonce();
            entry.offered = Some((hello.nonce, session));
            (session, [0; 2], [0; 2])
        };
        let Hello { from: name, nonce, cluster, attempt, payload, .. } = hello;
        let arrival = Arrival { name, nonce, cluster, version, scope, payload };
        Ok(Answer { peer, attempt, arrival, session, there, here })
    }

    /// Is it this attempt's turn?
    fn check_turn(&mut self, peer: Peer, hello: &Hello) -> Result<(), Unwelcome> {
        let own = self.config.identity.nonce;
        let first = self.config.identity.name < hello.from;
        let entry = self.entry(peer);
        if entry.former.contains(&hello.nonce) {
            return Err("another process of the same name has taken its place".to_owned().into());
        }
        if entry
            .latest
            .is_some_and(|(process, attempt)| process == hello.nonce && hello.attempt <= attempt)
        {
            return Err(Unwelcome::Stale);
        }
        let by_us = |token: usize| match self.connections.get(&token) {
            Some(connection) => match (connection.by, &connection.stage) {
                (By::Here { attempt, .. }, Stage::Greeted(_)) => Some(attempt),
                (By::Here { attempt, .. }, Stage::Open(open)) if open.nonce == hello.nonce => {
                    Some(attempt)
                }
                _ => None,
            },
            None => None,
        };
        let dialled = entry.dial.as_ref().and_then(|dial| dial.token);
        let Some(token) =
            [entry.open, dialled].into_iter().flatten().find(|at| by_us(*at).is_some())
        else {
            return Ok(());
        };
        let ended = hello.closed.filter(|(process, _)| *process == own).map_or(0, |(_, to)| to);
        if by_us(token).is_some_and(|attempt| attempt > ended) {
            return if first { Err(Unwelcome::Crossed) } else { Ok(()) };
        }
        // The other side has seen the end of it.
        if self.entry(peer).open == Some(token) {
            self.end_open(token, Down::Broken("the other side has seen it end".to_owned()));
        } else {
            self.discard(token);
        }
        Ok(())
    }

    fn on_welcome(
        &mut self,
        token: usize,
        peer: Peer,
        attempt: u64,
        offered: &[Resume],
        welcome: Welcome,
    ) {
        if let Err(why) = self.check_welcome(peer, &welcome) {
            self.turn_away(token, false, &why);
            return self.dial_failed(token, peer, why);
        }
        let there = welcome.resume.received;
        let session = welcome.resume.session;
        let here = offered.iter().find(|resume| resume.session == session);
        let here = here.map_or([0; 2], |resume| resume.received);
        let scope = self.scope_with(welcome.cluster);
        let Welcome { from: name, nonce, cluster, version, payload, .. } = welcome;
        let arrival = Arrival { name, nonce, cluster, version, scope, payload };
        self.greet(token, &Greeting::Ready);
        self.establish(token, Answer { peer, attempt, arrival, session, there, here });
    }

    fn check_welcome(&self, peer: Peer, welcome: &Welcome) -> Result<(), String> {
        let entry = self.entry(peer);
        self.check_cluster(&welcome.cluster_name, welcome.cluster)?;
        if welcome.from != entry.name {
            return Err(format!("member {} is there", welcome.from));
        }
        if !self.config.versions.contains(&welcome.version) {
            return Err(format!("it chose version {}", welcome.version));
        }
        if entry.former.contains(&welcome.nonce) {
            return Err("another process of the same name has taken its place".to_owned());
        }
        Ok(())
    }

    fn on_ready(&mut self, token: usize, answer: Answer) {
        let entry = self.entry_mut(answer.peer);
        entry.answered = entry.answered.filter(|answered| *answered != token);
        self.establish(token, answer);
    }

    /// Both sides know of each other: the connection is used from now on.
    fn establish(&mut self, token: usize, answer: Answer) {
        let Answer { peer, attempt, arrival, session, there, here } = answer;
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let (by, shared) = (connection.by, Arc::clone(&connection.shared));
        let scope = arrival.scope;
        connection.stage = Stage::Open(Established {
            peer,
            nonce: arrival.nonce,
            attempt,
            decoder: Decoder::default(),
            positions: here,
            heard: self.now,
            pinged: self.now,
            tell_at: None,
            spoken: false,
        });
        self.wake_by(self.now);
        if by != By::There {
            self.entry_mut(peer).dial = None;
        }
        if let Some(other) = self.entry(peer).open {
            self.say_bye(other, "another connection is used");
            self.end_open(other, Down::Replaced);
        }
        self.drop_others(peer);
        let entry = self.entry_mut(peer);
        if let Some(target) = &mut entry.target {
            target.next = None;
            target.complaint.clear();
        }
        let resumed = entry.session.as_ref().is_some_and(|known| known.id == session);
        if !resumed {
            let restarted = entry.process.is_some_and(|process| process != arrival.nonce);
            entry.offered = None;
            if entry.session.replace(Session::new(session, arrival.nonce, scope)).is_some() {
                entry.link.end();
                let lost = if restarted { Lost::Restarted } else { Lost::Forgotten };
                self.events.push_back(Event::Lost(peer, lost));
            }
        }
        let entry = self.entry_mut(peer);
        entry.set_process(arrival.nonce);
        if let Some(known) = &mut entry.session {
            known.scope = scope;
        }
        if entry.link.open(session, !resumed, scope, &shared, there, here).is_err() {
            // The other side does not know what it has said: nothing of the session can be trusted.
            self.say_bye(token, "the session cannot go on");
            self.discard(token);
            return self.lose(peer, "", Lost::Forgotten);
        }
        let entry = self.entry_mut(peer);
        entry.open = Some(token);
        tracing::info!(peer = %arrival.name, resumed, "connected");
        self.events.push_back(Event::Up(peer, arrival, resumed));
        self.soil(peer);
    }

    /// Ends all other handshakes with a peer: what was said in them of the session is no longer true.
    pub(super) fn drop_others(&mut self, peer: Peer) {
        let entry = self.entry_mut(peer);
        let dialled = entry.dial.take().and_then(|dial| dial.token);
        for token in dialled.into_iter().chain(entry.answered) {
            self.abandon(token);
        }
    }

    /// Does the certificate belong to that member of this cluster?
    fn check_certificate(&self, token: usize, name: &Name) -> Result<(), String> {
        if self.keys.is_none() {
            return Ok(());
        }
        let cluster = &self.config.identity.cluster_name;
        let Some(connection) = self.connections.get(&token) else { return Ok(()) };
        let Some(channel) = connection.shared.try_lock() else { return Ok(()) };
        let Some(certificate) = channel.certificate() else {
            return Err("it has no certificate".to_owned());
        };
        let subject = Subject::of(certificate).map_err(|error| error.to_string())?;
        if subject.role == Role::Member && subject.name == *name && subject.cluster == *cluster {
            Ok(())
        } else {
            Err(format!(
                "its certificate is for {subject}, and it should be member {name} of cluster {cluster}"
            ))
        }
    }

    /// Members of different clusters never exchange a frame.
    fn check_cluster(&self, name: &Name, id: Option<u128>) -> Result<(), String> {
        let own = &self.config.identity;
        if *name != own.cluster_name {
            return Err(format!(
                "it belongs to cluster {name}, and this member to {}",
                own.cluster_name
            ));
        }
        match (id, own.cluster) {
            (Some(theirs), Some(ours)) if theirs != ours => Err(format!(
                "it belongs to another cluster named {name}: {theirs:032x}, and not {ours:032x}"
            )),
            _ => Ok(()),
        }
    }

    fn scope_with(&self, cluster: Option<u128>) -> Scope {
        let same = cluster.is_some() && cluster == self.config.identity.cluster;
        if same { Scope::Cluster } else { Scope::Founding }
    }

    fn greet(&mut self, token: usize, greeting: &Greeting) {
        let Some(connection) = self.connections.get(&token) else { return };
        let Some(mut channel) = connection.shared.try_lock() else { return };
        greeting.encode(channel.out());
        let wrote = channel.write();
        drop(channel);
        if let Err(error) = wrote {
            self.fail(token, Down::Broken(error.to_string()));
        }
    }
}
