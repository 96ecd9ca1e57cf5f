//! Who decides which view follows which.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use quorate_core::{NodeId, NodeSet};

use super::{Charter, Content, Majority, MajorityMsg, Member, Register, RegisterMsg};

/// A message of an authority, and whom it is for.
pub type Post<M> = (NodeId, M);

/// A view that somebody would have follow.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Proposal<D> {
    /// The view.
    pub next: Charter<D>,
    /// Who works in the view before it, but the proposer.
    pub reach: NodeSet,
}

/// The view that is to be followed, as its authority sees it.
#[derive(Clone, Copy, Debug)]
pub struct Electorate<'a> {
    /// Who asks.
    pub me: NodeId,
    /// Its members, the most senior first.
    pub members: &'a [Member],
}

/// Decides which view follows which: one register that is compared and set.
///
/// For each number at most one view is ever returned, at any node and by whatever proposal: that is
/// all that the membership protocol relies on, so a consensus engine fits in here as well as the two
/// that stand beside.
pub trait Authority<D>: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// What its parts at different nodes send each other.
    type Msg: AuthorityMessage;

    /// A member proposes a view. Returns what is decided, once it is.
    fn propose(
        &mut self,
        electorate: Electorate<'_>,
        proposal: Proposal<D>,
        post: &mut Vec<Post<Self::Msg>>,
    ) -> Option<Charter<D>>;

    /// A message of another part arrives. `view` is the one that this node is a member of, if it
    /// is. Returns what is decided, to a node that proposed something.
    fn on_message(
        &mut self,
        me: NodeId,
        view: Option<&Charter<D>>,
        from: NodeId,
        msg: Self::Msg,
        post: &mut Vec<Post<Self::Msg>>,
    ) -> Option<Charter<D>>;
}

/// A message of an authority.
pub trait AuthorityMessage: Content {
    /// Its kind, as in reports.
    fn kind(&self) -> &'static str;
}

/// The authority of a run, chosen when it begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Seat<D> {
    /// A majority of the view before.
    Majority(Box<Majority<D>>),
    /// A process of its own.
    Register(Box<Register<D>>),
}

/// What parts of a [`Seat`] send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SeatMsg<D> {
    /// Of a majority.
    Majority(MajorityMsg<D>),
    /// Of a register.
    Register(RegisterMsg<D>),
}

impl<D: Content + 'static> AuthorityMessage for SeatMsg<D> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Majority(msg) => msg.kind(),
            Self::Register(msg) => msg.kind(),
        }
    }
}

fn wrapped<M, D>(
    posted: Vec<Post<M>>,
    wrap: fn(M) -> SeatMsg<D>,
    post: &mut Vec<Post<SeatMsg<D>>>,
) {
    post.extend(posted.into_iter().map(|(to, msg)| (to, wrap(msg))));
}

impl<D: Content + 'static> Authority<D> for Seat<D> {
    type Msg = SeatMsg<D>;

    fn propose(
        &mut self,
        electorate: Electorate<'_>,
        proposal: Proposal<D>,
        post: &mut Vec<Post<SeatMsg<D>>>,
    ) -> Option<Charter<D>> {
        match self {
            Self::Majority(authority) => {
                let mut posted = Vec::new();
                let decided = authority.propose(electorate, proposal, &mut posted);
                wrapped(posted, SeatMsg::Majority, post);
                decided
            }
            Self::Register(authority) => {
                let mut posted = Vec::new();
                let decided = authority.propose(electorate, proposal, &mut posted);
                wrapped(posted, SeatMsg::Register, post);
                decided
            }
        }
    }

    fn on_message(
        &mut self,
        me: NodeId,
        view: Option<&Charter<D>>,
        from: NodeId,
        msg: SeatMsg<D>,
        post: &mut Vec<Post<SeatMsg<D>>>,
    ) -> Option<Charter<D>> {
        match (self, msg) {
            (Self::Majority(authority), SeatMsg::Majority(msg)) => {
                let mut posted = Vec::new();
                let decided = authority.on_message(me, view, from, msg, &mut posted);
                wrapped(posted, SeatMsg::Majority, post);
                decided
            }
            (Self::Register(authority), SeatMsg::Register(msg)) => {
                let mut posted = Vec::new();
                let decided = authority.on_message(me, view, from, msg, &mut posted);
                wrapped(posted, SeatMsg::Register, post);
                decided
            }
            // A message of the other kind comes from a node that was set up otherwise.
            _ => None,
        }
    }
}
