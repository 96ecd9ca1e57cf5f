//! What can go wrong, from the user's side.

use std::error::Error;
use std::fmt;
use std::io;

use quorate_core::{BadOption, BadTopology, NodeId, Refusal};

/// Why a driver does not start.
#[derive(Debug)]
pub enum StartError {
    /// The algorithm cannot run on the scene's topology.
    Topology(BadTopology),
    /// An option of the algorithm makes no sense in the scene.
    Option(BadOption),
    /// The node that is to run is not in the scene's view.
    NotMember(NodeId),
    /// No address is given for a node that this one has a link to.
    NoAddress(NodeId),
    /// A value of the configuration makes no sense.
    Config(&'static str),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(bad) => write!(f, "{bad}"),
            Self::Option(bad) => write!(f, "{bad}"),
            Self::NotMember(node) => write!(f, "node {node} is not in the view"),
            Self::NoAddress(node) => write!(f, "no address is given for node {node}"),
            Self::Config(wrong) => f.write_str(wrong),
        }
    }
}

impl Error for StartError {}

/// Why a command was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandError {
    /// The algorithm refused it; nothing has changed.
    Refused(Refusal),
    /// The node does not run any more. If it stopped just now, it may have taken the command.
    Stopped,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
            Self::Stopped => f.write_str("the node does not run any more"),
        }
    }
}

impl Error for CommandError {}

/// Why a node does not run any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was shut down.
    Shutdown,
    /// Its store could not keep a record. Nothing that was to be done afterwards has been done.
    Store(io::ErrorKind),
    /// The algorithm broke an invariant of its own.
    Panicked,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("shut down"),
            Self::Store(kind) => write!(f, "a record could not be kept: {kind}"),
            Self::Panicked => f.write_str("the algorithm broke an invariant"),
        }
    }
}
