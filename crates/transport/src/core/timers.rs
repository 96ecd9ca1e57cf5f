//! What time does: handshakes that take too long, connections that are silent, attempts that are due.

use quorate_core::{Span, Time};

use super::Core;
use super::connection::Stage;
use crate::{Down, Peer};

/// How many ticks there are between questions for the time of a round trip.
const PING: u64 = 10;
/// What need not be exact may be late by this part of a tick.
const SLACK: u64 = 4;

impl Core {
    /// When something is to be done even if nothing happens.
    pub(crate) fn deadline(&self) -> Time {
        self.wake
    }

    /// Something is due then.
    pub(super) fn wake_by(&mut self, at: Time) {
        self.due = self.due.min(at);
        self.wake = self.wake.min(at);
    }

    /// Something is due then and may wait a little: the thread mostly runs soon for another reason, and what
    /// is told meanwhile may make it needless.
    pub(super) fn wake_about(&mut self, at: Time) {
        self.due = self.due.min(at);
        self.wake = self.wake.min(at + Span(self.config.timing.tick.0 / SLACK));
    }

    /// Does what is due. To be called after everything that has come was read: who was stopped for a while
    /// must not think that the others were silent.
    pub(crate) fn expire(&mut self) {
        if self.now < self.due {
            return;
        }
        let overslept = self.now.since(self.wake);
        let later = self.now + Span::units(60_000);
        (self.due, self.wake) = (later, later);
        if self.reload_at <= self.now {
            self.reload();
            self.reload_at = self.now + self.config.timing.reload;
        }
        if self.keys.is_some() {
            self.wake_by(self.reload_at);
        }
        if let Some(at) = self.accept_at {
            if at <= self.now {
                self.accept_at = None;
                self.unaccepted = true;
            } else {
                self.wake_by(at);
            }
        }
        for token in self.connections.keys().copied().collect::<Vec<_>>() {
            self.expire_connection(token, overslept);
        }
        if let Some(at) = self.dial_due() {
            self.wake_by(at);
        }
    }

    /// Does what is due on a connection.
    fn expire_connection(&mut self, token: usize, overslept: Span) {
        let timing = &self.config.timing;
        let (tick, silence, now) = (timing.tick, timing.silence, self.now);
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Stage::Open(open) = &mut connection.stage else {
            if now < connection.deadline {
                let deadline = connection.deadline;
                return self.wake_by(deadline);
            }
            if !matches!(connection.stage, Stage::Closing) {
                tracing::debug!(address = %connection.address, "a handshake took too long");
            }
            return self.fail(token, Down::Silent);
        };
        if overslept > tick {
            // This process was stopped, or the machine was: the others get two ticks more.
            open.heard = open.heard.max(Time((now + tick.times(2)).0.saturating_sub(silence.0)));
        }
        if open.heard + silence <= now {
            return self.fail(token, Down::Silent);
        }
        let peer = open.peer;
        let mut next = open.heard + silence;
        match open.tell_at {
            Some(at) if at <= now => {
                open.tell_at = None;
                if self.peers[peer.0 as usize].link.tell() {
                    self.soil(peer);
                }
            }
            Some(at) => next = next.min(at),
            None => {}
        }
        if let Some(alive) = self.keep_alive(token, peer) {
            self.wake_about(next.min(alive));
        }
    }

    /// Sends something if nothing was sent for a tick. When is the next one due?
    fn keep_alive(&mut self, token: usize, peer: Peer) -> Option<Time> {
        let (tick, now) = (self.config.timing.tick, self.now);
        let open = self.connections.get_mut(&token)?.open_mut()?;
        let link = &self.peers[peer.0 as usize].link;
        let due = link.written() + tick;
        let ping = open.pinged + tick.times(PING) <= now;
        if due > now && !ping {
            return Some(due.min(open.pinged + tick.times(PING)));
        }
        if ping {
            open.pinged = now;
        }
        link.keep_alive(ping.then_some(now.0));
        self.soil(peer);
        Some(now + tick)
    }
}
