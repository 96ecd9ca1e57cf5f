//! An authority that is a process of its own: one register, reached by messages.
//!
//! The register holds the last view that was decided and takes the next one from whoever asks first
//! (PROPOSE); later ones with the same number are told what it was (DECIDED). It is a single point
//! of failure, by design: while it is down nothing is decided. It persists what it holds. Any part of the group that reaches it may go on, so a
//! group that is cut in two goes on where it is asked first.

use quorate_core::{Ctx, Message, NodeId, Protocol, Refusal, Sole};

use super::majority::Retry;
use super::{Authority, Charter, Content, Proposal};

/// The authority's part at one node; at one node it is the register.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Register<D> {
    /// Where the register is.
    home: NodeId,
    /// There: what was decided last.
    held: Charter<D>,
}

/// What members and register say.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RegisterMsg<D> {
    /// Let this one follow.
    Propose(Charter<D>),
    /// This one follows.
    Decided(Charter<D>),
}

impl<D: Content> Message for RegisterMsg<D> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Propose(_) => "PROPOSE",
            Self::Decided(_) => "DECIDED",
        }
    }
}

impl<D> Register<D> {
    /// A register at this node, which holds what it has kept, or the first view.
    pub fn new(home: NodeId, founding: Charter<D>, kept: Option<Charter<D>>) -> Self {
        Self { home, held: kept.unwrap_or(founding) }
    }
}

impl<D: Content + 'static> Protocol for Register<D> {
    type Msg = RegisterMsg<D>;
    type Timer = Retry;
    type Command = Proposal<D>;
    type Event = Charter<D>;
    type Stable = Sole<Charter<D>>;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, it: Proposal<D>) -> Result<(), Refusal> {
        cx.send(self.home, RegisterMsg::Propose(it.next));
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: RegisterMsg<D>) {
        match msg {
            RegisterMsg::Propose(next) if cx.me() == self.home => {
                if next.id.0 == self.held.id.0 + 1 {
                    cx.persist(Sole(next.clone()));
                    self.held = next;
                }
                cx.send(from, RegisterMsg::Decided(self.held.clone()));
            }
            RegisterMsg::Decided(view) if from == self.home => cx.emit(view),
            RegisterMsg::Propose(_) | RegisterMsg::Decided(_) => {
                cx.trace("foreign", &[("from", from.number().into())]);
            }
        }
    }
}

impl<D: Content + 'static> Authority<D> for Register<D> {
    fn follow(&mut self, _: &Charter<D>) {}

    /// Nothing: members ask the register.
    fn recalled(&self) -> Option<&Charter<D>> {
        None
    }
}
