//! What a handler can do: the transport, as seen from its thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use quorate_core::Time;

use crate::core::Core;
use crate::{Direct, Identity, Lane, Name, Peer, Scope, SendError, Stats, Watch};

/// The transport, as a handler sees it during a turn.
#[derive(Debug)]
pub struct Io<'a> {
    pub(crate) core: &'a mut Core,
}

impl Io<'_> {
    /// Now. It is read once per turn, so it does not move while a handler runs.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// Who this process is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.core.config.identity
    }

    /// The name of a peer.
    #[must_use]
    pub fn name(&self, peer: Peer) -> &Name {
        self.core.name(peer)
    }

    /// The peer of that name, if there ever was one.
    #[must_use]
    pub fn peer(&self, name: &Name) -> Option<Peer> {
        self.core.find(name)
    }

    /// What may be sent to a peer now; none if there is no session.
    #[must_use]
    pub fn scope(&self, peer: Peer) -> Option<Scope> {
        self.core.scope(peer)
    }

    /// Is there a connection to the peer now?
    #[must_use]
    pub fn is_up(&self, peer: Peer) -> bool {
        self.core.is_up(peer)
    }

    /// Sends a frame. It goes out at the end of the turn, or, if the connection is broken, with the next
    /// one.
    ///
    /// # Errors
    /// If it cannot be sent. If the queue is full or the frame too long, the peer is lost, and
    /// [`Handler::lost`](crate::Handler::lost) follows in the same turn.
    pub fn send(&mut self, peer: Peer, lane: Lane, bytes: &[u8]) -> Result<(), SendError> {
        self.core.send(peer, lane, bytes)
    }

    /// Sends a frame to several peers. Who cannot be sent to is passed over, and the rest is not: what
    /// became of each is told by `lost` and `up`.
    pub fn multicast(&mut self, peers: &[Peer], lane: Lane, bytes: &[u8]) {
        for peer in peers {
            // A peer without a session has had its `lost`, or will have its first `up`.
            let _ = self.core.send(*peer, lane, bytes);
        }
    }

    /// Stays connected to the member of that name, at any of these addresses (`host:port`), which are
    /// resolved at every attempt. Asked again, the addresses are replaced, and the next attempt is made at
    /// once.
    pub fn connect(&mut self, name: &Name, addresses: &[String]) -> Peer {
        self.core.connect(name, addresses)
    }

    /// No more attempts to connect to that member. An established session goes on.
    pub fn disconnect(&mut self, name: &Name) {
        self.core.disconnect(name);
    }

    /// Cuts the link to a member, or heals it: a fault, for tests and demonstrations. While it is cut nothing
    /// is passed on in either direction, as if the network were; `down` follows, and `lost` only if the
    /// session does not survive it.
    pub fn cut(&mut self, name: &Name, cut: bool) {
        self.core.cut(name, cut);
    }

    /// Ends the session with a peer, and says why to the other side. `down` and `lost` follow in the same
    /// turn. If the peer is to be connected to, that is tried again.
    pub fn close(&mut self, peer: Peer, why: &str) {
        self.core.close(peer, why);
    }

    /// This process belongs to a cluster now. Connections that were made before are made again (`down`,
    /// then `up`); their sessions go on.
    ///
    /// # Errors
    /// If it belongs to another one already.
    pub fn set_cluster(&mut self, cluster: u128) -> Result<(), OtherCluster> {
        self.core.set_cluster(cluster)
    }

    /// What the other side is told from the next handshake on.
    ///
    /// # Errors
    /// If it is longer than 64 KiB.
    pub fn set_hello(&mut self, payload: Vec<u8>) -> Result<(), SendError> {
        self.core.set_hello(payload)
    }

    /// A handle by which any thread can send in the present session with that peer.
    #[must_use]
    pub fn direct(&self, peer: Peer) -> Option<Direct> {
        self.core.direct(peer)
    }

    /// Calls [`Handler::readable`](crate::Handler::readable) when this becomes readable, once each time
    /// that it does. A pidfd becomes readable when its process has ended.
    ///
    /// # Errors
    /// If it cannot be watched.
    pub fn watch(&mut self, what: OwnedFd) -> io::Result<Watch> {
        self.core.watch(what)
    }

    /// Watches it no longer, and closes it.
    pub fn unwatch(&mut self, watch: Watch) {
        self.core.unwatch(watch);
    }

    /// Reads the files of the certificates again, now.
    pub fn reload(&mut self) {
        self.core.reload();
    }

    /// What is counted.
    #[must_use]
    pub fn stats(&self) -> &Arc<Stats> {
        &self.core.stats
    }

    /// Ends the thread after this turn: every peer is told and all that fits into the sockets is written.
    pub fn stop(&mut self) {
        self.core.stopping = true;
    }
}

/// The process belongs to another cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OtherCluster;

impl std::fmt::Display for OtherCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this process belongs to another cluster already")
    }
}

impl std::error::Error for OtherCluster {}
