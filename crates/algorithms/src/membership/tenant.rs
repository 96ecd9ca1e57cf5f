//! Who lives in the views of a hall, and what it has to say when they change.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt::Debug;
use core::hash::Hash;

use quorate_core::{Ctx, Message, NodeId, Protocol};

use super::{Authority, Charter};

/// Something that travels in messages about views.
pub trait Content: crate::catalogue::Carried + Clone + Ord + Hash + Debug + Send + Sync {}
impl<T: crate::catalogue::Carried + Clone + Ord + Hash + Debug + Send + Sync> Content for T {}

/// The types of what a tenant asks, reports, agrees on and tells newcomers when a view changes.
pub trait Terms: Copy + Ord + Hash + Debug + Send + Sync + 'static {
    /// What a coordinator tells with its question.
    type Ask: Content;
    /// What a member answers, or a piece of it.
    type Report: Content;
    /// What all agree on at the end of a view; by default nothing, where all of it is lost.
    type Agreed: Content + Default;
    /// What newcomers are told, or a piece of it.
    type State: Content;
    /// Who decides.
    type Authority: Authority<Self::Agreed, Msg = Self::Vote>;
    /// What is said on the way to a decision.
    type Vote: Message + Content;
}

/// What a tenant agrees on at the end of a view.
pub type Agreed<T> = <<T as Tenant>::Terms as Terms>::Agreed;
/// What a tenant tells newcomers.
pub type State<T> = <<T as Tenant>::Terms as Terms>::State;
/// What a tenant reports when it has stopped.
pub type Report<T> = <<T as Tenant>::Terms as Terms>::Report;
/// What a tenant tells with the question.
pub type Ask<T> = <<T as Tenant>::Terms as Terms>::Ask;
/// Who decides on the views of a tenant.
pub type Deciding<T> = <<T as Tenant>::Terms as Terms>::Authority;

/// A protocol that lives in views: it is begun in each of them and stopped at its end.
///
/// Within a view it names members by rank, and so is it named: to it, node 1 is the most senior
/// member. What it sends arrives in the same view or not at all. It is given messages also after it
/// was stopped, for the exchange that comes before a decision.
pub trait Tenant: Protocol<Stable = Infallible> {
    /// The types of what it says when a view changes.
    type Terms: Terms;

    /// A command that is about the seat, and for the hall to obey.
    fn seating(_command: &Self::Command) -> Option<Seating> {
        None
    }

    /// The view before is over, and this one begins. Nothing may be sent in it yet.
    fn begin(&mut self, cx: &mut Ctx<'_, Self>, beginning: Beginning<'_, Self>);

    /// From now on it may send and grant. Not called if the next change has begun already.
    fn open(&mut self, cx: &mut Ctx<'_, Self>);

    /// From now on nothing may be granted or delivered, until the next view. May be said twice.
    fn stop(&mut self, cx: &mut Ctx<'_, Self>);

    /// A coordinator begins a change, or begins it anew, and tells this with its question; it has
    /// been stopped before. An exchange of an earlier change is over.
    fn ask(&mut self) -> Ask<Self>;

    /// What a member answers, in at least one piece; it has been stopped before.
    fn report(&mut self, ask: Ask<Self>) -> Vec<Report<Self>>;

    /// A coordinator hears what the others have reported, piece by piece. It may exchange messages
    /// with them, of this round, until all have the same.
    fn exchange(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        round: u32,
        reports: Vec<(NodeId, Vec<Report<Self>>)>,
    );

    /// What all agree on, once the exchange is over. Asked of a coordinator only.
    fn agreement(&self) -> Option<Agreed<Self>>;

    /// What newcomers are told at the beginning of a view, in at least one piece.
    fn state(&self) -> Vec<State<Self>>;

    /// The user wishes to leave: nothing new may be begun from now on.
    fn wind_down(&mut self);

    /// Is there nothing that a node that leaves would take along: no lock, no unsent message?
    fn is_idle(&self) -> bool;

    /// This node is out of the views. Not called where it leaves before it was a member.
    fn retire(&mut self, cx: &mut Ctx<'_, Self>, exit: Exit<'_, Self>);

    /// A step of the hall ends in a view: sends what has been waiting.
    fn go_on(&mut self, _cx: &mut Ctx<'_, Self>) {}
}

/// How a view begins at a member.
#[derive(Debug)]
pub struct Beginning<'a, T: Tenant> {
    /// The view.
    pub view: &'a Charter<Agreed<T>>,
    /// Its members by rank.
    pub members: &'a Arc<[NodeId]>,
    /// This member's rank, from 0.
    pub rank: usize,
    /// What this member comes into it with.
    pub origin: Origin<State<T>>,
}

/// What a member comes into a view with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin<S> {
    /// The view is the first one.
    Founding,
    /// It was in the view before, with what was agreed at its end.
    Before,
    /// It comes from outside and was told the state, in these pieces.
    Told(Vec<S>),
    /// The state is lost with all who had it, and this member begins anew.
    Nothing,
}

/// How a node gets out of the views.
#[derive(Debug)]
pub enum Exit<'a, T: Tenant> {
    /// As it wished, with what was agreed about its last view if it took part in that.
    Left(Option<&'a Agreed<T>>),
    /// The others go on without it; it is on the way in again.
    Excluded,
}

/// What the user of a node wishes about its seat.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Seating {
    /// To be a member.
    Join,
    /// Not to be one any more.
    Leave,
}
