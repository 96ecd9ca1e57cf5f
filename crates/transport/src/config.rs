//! What a transport is given: who this process is, how it is secured, its times and its limits.

use std::ops::RangeInclusive;

use quorate_core::Span;

use crate::Name;
use crate::tls::Credentials;

/// All that a transport is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who this process is.
    pub identity: Identity,
    /// How peers are told from strangers.
    pub security: Security,
    /// The wire versions that this process can speak. The highest that both sides can is spoken.
    pub versions: RangeInclusive<u16>,
    /// What the other side is told in every handshake, at most 64 KiB; [`Io::set_hello`] changes it.
    ///
    /// [`Io::set_hello`]: crate::Io::set_hello
    pub hello: Vec<u8>,
    /// How long things take.
    pub timing: Timing,
    /// How much there may be of everything.
    pub limits: Limits,
}

impl Config {
    /// With the usual times and limits.
    #[must_use]
    pub fn new(identity: Identity, security: Security) -> Self {
        let (timing, limits) = (Timing::default(), Limits::default());
        Self { identity, security, versions: 1..=1, hello: Vec::new(), timing, limits }
    }
}

/// Who a process is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The member's name.
    pub name: Name,
    /// The cluster's name, as it stands in certificates.
    pub cluster_name: Name,
    /// The cluster's id; none before it is founded or joined.
    pub cluster: Option<u128>,
    /// What no other process has, nor this one after a restart; see [`nonce`](crate::nonce).
    pub nonce: u128,
}

/// How peers are told from strangers.
#[derive(Clone, Debug)]
pub enum Security {
    /// By TLS 1.3 and certificates of both sides.
    Tls(Credentials),
    /// Not at all: every name is believed. Only with loopback addresses, unless it is allowed anywhere.
    Plain {
        /// With other addresses, too.
        anywhere: bool,
    },
}

/// How long things take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// A connection on which nothing was sent for so long gets a keepalive.
    pub tick: Span,
    /// A connection on which nothing came for so long is dead. At least two ticks of the other side.
    pub silence: Span,
    /// A handshake that takes longer is given up, and so is an attempt to connect.
    pub handshake: Span,
    /// How soon an attempt to connect follows a failed one, at first. It doubles.
    pub redial_min: Span,
    /// How long it is waited between attempts at most.
    pub redial_max: Span,
    /// How long the receipt of frames may stay unacknowledged if nothing else is sent.
    pub acknowledge: Span,
    /// How often the files of certificates are looked at.
    pub reload: Span,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            tick: Span::units(100),
            silence: Span::units(1_000),
            handshake: Span::units(3_000),
            redial_min: Span::units(5),
            redial_max: Span::units(1_000),
            acknowledge: Span::units(50),
            reload: Span::units(10_000),
        }
    }
}

/// How much there may be of everything. All lengths are in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Control frames that are not acknowledged. More makes the peer lost.
    pub control_queue: usize,
    /// Data that is not acknowledged. More makes the peer lost.
    pub data_queue: usize,
    /// The longest control frame.
    pub control_frame: usize,
    /// The longest data frame.
    pub data_frame: usize,
    /// Accepted connections that have not said who they are.
    pub strangers: usize,
    /// Those among them from one address.
    pub strangers_per_address: usize,
    /// Peers of this process, now and in the past.
    pub peers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            control_queue: 8 << 20,
            data_queue: 64 << 20,
            control_frame: 1 << 20,
            data_frame: 64 << 20,
            strangers: 128,
            strangers_per_address: 32,
            peers: 1_024,
        }
    }
}
