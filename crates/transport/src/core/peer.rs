//! What is known of a peer, whether it is connected or not.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_core::{Span, Time};

use super::connection::By;
use crate::lane::Incoming;
use crate::link::Link;
use crate::{Name, Scope};

/// How many former processes of a peer are remembered.
const FORMER_MAX: usize = 16;

/// What is known of a peer.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) link: Arc<Link>,
    /// Where it is dialled, if it is.
    pub(super) target: Option<Target>,
    /// The attempt to connect that is going on.
    pub(super) dial: Option<Dial>,
    /// The established connection.
    pub(super) open: Option<usize>,
    /// A connection that it dialled and whose hello was answered.
    pub(super) answered: Option<usize>,
    pub(super) session: Option<Session>,
    /// A session that it was offered and may have begun, while this side has not.
    pub(super) offered: Option<(u128, u128)>,
    /// Its process, as last established.
    pub(super) process: Option<u128>,
    /// Processes that another one has replaced. They are not believed any more.
    pub(super) former: VecDeque<u128>,
    /// The number of the last attempt made here.
    pub(super) attempts: u64,
    /// The last attempt of a process of it that was heard of.
    pub(super) latest: Option<(u128, u64)>,
    /// The last attempt of a process of it that was answered and has ended.
    pub(super) closed: Option<(u128, u64)>,
    pub(super) dirty: bool,
    /// Is nothing passed on between here and there, for a test?
    pub(super) cut: bool,
}

/// A session, as far as it is received.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u128,
    /// The peer's process.
    pub(super) nonce: u128,
    pub(super) scope: Scope,
    pub(super) incoming: [Incoming; 2],
}

/// Where a peer is dialled.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) addresses: Vec<String>,
    /// When the next attempt is made.
    pub(super) next: Option<Time>,
    /// How long it is waited after the next failure.
    pub(super) backoff: Span,
    /// What was last logged of a failure.
    pub(super) complaint: String,
}

/// An attempt to connect.
#[derive(Debug)]
pub(super) struct Dial {
    /// The number of the attempt: what was resolved for another one is not used.
    pub(super) attempt: u64,
    /// The connection; none while names are resolved.
    pub(super) token: Option<usize>,
    /// Where else it can be tried.
    pub(super) candidates: VecDeque<std::net::SocketAddr>,
}

impl Session {
    pub(super) fn new(id: u128, nonce: u128, scope: Scope) -> Self {
        Self { id, nonce, scope, incoming: <[Incoming; 2]>::default() }
    }

    /// How much of the peer's streams has come.
    pub(super) fn received(&self) -> [u64; 2] {
        [self.incoming[0].received(), self.incoming[1].received()]
    }
}

impl Entry {
    pub(super) const fn new(name: Name, link: Arc<Link>) -> Self {
        Self {
            name,
            link,
            target: None,
            dial: None,
            open: None,
            answered: None,
            session: None,
            offered: None,
            process: None,
            former: VecDeque::new(),
            attempts: 0,
            latest: None,
            closed: None,
            dirty: false,
            cut: false,
        }
    }

    /// This process is the peer from now on.
    pub(super) fn set_process(&mut self, nonce: u128) {
        if let Some(before) = self.process.replace(nonce)
            && before != nonce
        {
            self.former.push_back(before);
            if self.former.len() > FORMER_MAX {
                self.former.pop_front();
            }
        }
    }

    /// A connection that this process of the peer dialled in this attempt has ended.
    pub(super) fn note_closed(&mut self, by: By, process: u128, attempt: u64) {
        if by == By::There && self.latest.is_some_and(|(latest, _)| latest == process) {
            let before = self.closed.filter(|(closed, _)| *closed == process);
            self.closed = Some((process, attempt.max(before.map_or(0, |(_, attempt)| attempt))));
        }
    }
}
