//! What time does: handshakes that take too long, connections that are silent, attempts that are due.

use quorate_core::{Span, Time};

use super::Core;
use super::connection::Stage;
use crate::{Down, Peer};

/// How many ticks there are between questions for the time of a round trip.
const PING: u64 = 10;

impl Core {
    /// When something is to be done even if nothing happens.
    pub(crate) fn deadline(&self) -> Time {
        self.wake
    }

    /// Does what is due. To be called after everything that has come was read: who was stopped for a while
    /// must not think that the others were silent.
    pub(crate) fn expire(&mut self) {
        if self.now < self.wake {
            return;
        }
        let overslept = self.now.since(self.wake);
        let mut next = self.now + Span::units(60_000);
        self.wake = next;
        if self.reload_at <= self.now {
            self.reload();
            self.reload_at = self.now + self.config.timing.reload;
        }
        if self.keys.is_some() {
            next = next.min(self.reload_at);
        }
        if let Some(at) = self.accept_at {
            if at <= self.now {
                self.accept_at = None;
                self.unaccepted = true;
            } else {
                next = next.min(at);
            }
        }
        for token in self.connections.keys().copied().collect::<Vec<_>>() {
            if let Some(at) = self.expire_connection(token, overslept) {
                next = next.min(at);
            }
        }
        // What happened meanwhile may have set it, too.
        self.wake = self.wake.min(next);
        if let Some(at) = self.dial_due() {
            self.wake = self.wake.min(at);
        }
    }

    /// Does what is due on a connection. When is the next thing?
    fn expire_connection(&mut self, token: usize, overslept: Span) -> Option<Time> {
        let timing = &self.config.timing;
        let (tick, silence, now) = (timing.tick, timing.silence, self.now);
        let connection = self.connections.get_mut(&token)?;
        let Stage::Open(open) = &mut connection.stage else {
            if now < connection.deadline {
                return Some(connection.deadline);
            }
            if !matches!(connection.stage, Stage::Closing) {
                tracing::debug!(address = %connection.address, "a handshake took too long");
            }
            self.fail(token, Down::Silent);
            return None;
        };
        if overslept > tick {
            // This process was stopped, or the machine was: the others get two ticks more.
            open.heard = open.heard.max(Time((now + tick.times(2)).0.saturating_sub(silence.0)));
        }
        if open.heard + silence <= now {
            self.fail(token, Down::Silent);
            return None;
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
        Some(next.min(self.keep_alive(token, peer)?))
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
