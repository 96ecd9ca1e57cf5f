//! Users and an oracle for a protocol of one's own, so that a first check takes a few lines.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Debug};
use core::hash::{Hash, Hasher};

use crate::{Fact, Monitor, NodeId, NodeSet, PerNode, Span, Violation, Wait, Workload};

/// Users that each give a list of commands, one after the other, as soon as they may.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Wishes<C> {
    /// By node, the last one first.
    left: PerNode<Vec<C>>,
}

impl<C> Wishes<C> {
    /// The user at each of `count` nodes gives the commands that `of` names.
    pub fn new(count: usize, mut of: impl FnMut(NodeId) -> Vec<C>) -> Self {
        let reversed = |node| {
            let mut commands = of(node);
            commands.reverse();
            commands
        };
        Self { left: PerNode::new(count, reversed) }
    }
}

impl<C: Clone + Eq + Hash + Debug + Send + Sync, E> Workload<C, E> for Wishes<C> {
    fn next(&self, node: NodeId) -> Option<(C, Wait)> {
        Some((self.left[node].last()?.clone(), Wait::For(Span::ZERO)))
    }

    fn gave(&mut self, node: NodeId, _: &C) -> Option<NodeId> {
        self.left[node].pop();
        None
    }

    fn told(&mut self, _: NodeId, _: &E) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        self.left[node].clear();
        None
    }

    fn finished(&self) -> bool {
        self.left.iter().all(|(_, left)| left.is_empty())
    }
}

/// An oracle of one property, `safety`: a state, and a function that takes note of each fact and says
/// what must not happen.
pub struct Safety<S, C, E> {
    state: S,
    observe: Observe<S, C, E>,
}

/// Takes note of a fact at a node; what is wrong with it, in a sentence.
pub type Observe<S, C, E> = fn(&mut S, NodeId, Fact<'_, C, E>) -> Result<(), String>;

impl<S, C, E> Safety<S, C, E> {
    /// The oracle that begins in this state.
    pub const fn new(state: S, observe: Observe<S, C, E>) -> Self {
        Self { state, observe }
    }
}

// Derived, these would ask the same of commands and events; and the function is always the same.
impl<S: Clone, C, E> Clone for Safety<S, C, E> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), observe: self.observe }
    }
}

impl<S: PartialEq, C, E> PartialEq for Safety<S, C, E> {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl<S: Eq, C, E> Eq for Safety<S, C, E> {}

impl<S: Hash, C, E> Hash for Safety<S, C, E> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}

impl<S: Debug, C, E> Debug for Safety<S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Safety").field(&self.state).finish()
    }
}

impl<S: Clone + Eq + Hash + Debug + Send + Sync, C, E> Monitor<C, E> for Safety<S, C, E> {
    const PROPERTIES: &'static [&'static str] = &["safety"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, C, E>) -> Result<(), Violation> {
        (self.observe)(&mut self.state, at, fact)
            .map_err(|text| Violation { property: "safety", text })
    }

    fn owed(&self) -> NodeSet {
        NodeSet::new()
    }

    fn settle(&self) -> Vec<Violation> {
        Vec::new()
    }
}
