//! What the users at the nodes do: in given times when simulated, in every order when checked.

use core::fmt::Debug;
use core::hash::Hash;

use crate::{NodeId, Span};

/// How long a user waits before its next command. The checker ignores it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wait {
    /// So long.
    For(Span),
    /// Until this time, counted from the start of the run; at once if it is past.
    Until(Span),
    /// An exponentially distributed time with this mean.
    Exponential(Span),
}

/// The users of a run, as a state machine: the simulator asks *when*, the checker tries all.
pub trait Workload<C, E>: Clone + Eq + Hash + Debug + Send + Sync {
    /// What the user at `node` does next, if anything, and after how long. Asked at the start and
    /// whenever that user gave a command, was told something, or was named as having its turn.
    fn next(&self, node: NodeId) -> Option<(C, Wait)>;

    /// The command of the user at `node` was accepted. Returns another node whose turn it now is.
    fn gave(&mut self, node: NodeId, command: &C) -> Option<NodeId>;

    /// The user at `node` was told something. Returns another node whose turn it now is.
    fn told(&mut self, node: NodeId, event: &E) -> Option<NodeId>;

    /// The node crashed with its user: an open wish is dropped. Returns another node whose turn it
    /// now is.
    fn crashed(&mut self, node: NodeId) -> Option<NodeId>;

    /// The node came up again, and its user with it. Returns another node whose turn it now is.
    fn recovered(&mut self, _node: NodeId) -> Option<NodeId> {
        None
    }

    /// To whom the user at `node` writes when this command of it was accepted. A letter goes the way
    /// of messages, which do not know of it: only engines that follow causes carry letters.
    fn writes(&self, _node: NodeId, _command: &C) -> Option<NodeId> {
        None
    }

    /// Have all users done what they ever will? Asked only where an algorithm never comes to rest.
    fn finished(&self) -> bool {
        false
    }
}
