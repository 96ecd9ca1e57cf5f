//! The border between the search, which knows only numbers, and the types of a protocol.

use std::fmt::Debug;

use quorate_core::trace::{Parcel, Recorder};
use quorate_core::{Monitor, NodeId, Protocol, Workload};

use crate::audience::{Audience, Audiences};
use crate::draft::Draft;
use crate::found::SHARES;
use crate::local::{Local, Setting};
use crate::nodes::Nodes;
use crate::plan::Plan;
use crate::tables::{Code, Tables};
use crate::world::World;

/// The pieces that were met, by their numbers. Asked only where the [`Tables`] do not say what
/// becomes of them, or when a run is written down.
pub(crate) trait Pieces: Sync {
    /// Finds out what a node in this state makes of a cause, for every way to choose.
    fn find_responses(&self, share: usize, local: u32, code: Code);

    /// Finds out what an audience makes of news.
    fn find_heard(&self, share: usize, audience: u32, news: u32);

    /// Puts all that was found out into the tables, share by share.
    fn keep_found(&mut self, tables: &mut Tables);

    /// Does a node in this state claim that the message is outdated?
    fn is_outdated(&self, local: u32, message: u32) -> bool;

    /// Repeats a response for the record: a node's state and a cause with these choices. Gives the
    /// numbers of its sendings, of which there were `sent` before.
    fn repeat(
        &self,
        met: (u32, Code),
        choices: &[u32],
        sent: u64,
        recorder: &mut Recorder,
    ) -> Vec<u64>;

    /// The message as its sender's sending with this number.
    fn parcel(&self, message: u32, id: u64) -> Parcel;

    /// A command, to be printed.
    fn command(&self, command: u32) -> &dyn Debug;

    /// A timer of a node in this state, to be printed.
    fn timer(&self, local: u32, place: u32) -> &dyn Debug;

    /// A message with its sender and receiver, to be printed.
    fn message(&self, message: u32) -> &dyn Debug;

    /// A node's state, to be printed.
    fn node(&self, local: u32) -> &dyn Debug;
}

/// A world of which nothing is known yet. Here the types of protocol, users and monitor are left
/// behind.
pub(crate) fn world<'a, P, W, M>(
    setting: Setting<'a, P>,
    users: W,
    monitor: M,
    plan: &'a Plan,
) -> World<'a>
where
    P: Protocol,
    W: Workload<P::Command, P::Event> + 'a,
    M: Monitor<P::Command, P::Event> + 'a,
{
    let mut tables = Tables::default();
    let listens = setting.listens;
    let mut typed = Typed { nodes: Nodes::new(setting), audiences: Audiences::default() };
    let count = typed.nodes.count();
    let audience = typed.audiences.add(Audience { users, monitor }, count, &mut tables);
    let nodes = NodeId::first(count).map(|me| typed.nodes.add(Local::asleep(me), &mut tables));
    let asleep = Draft::asleep(audience, plan, nodes);
    World { plan, count, listens, asleep, tables, pieces: Box::new(typed) }
}

/// The pieces of states with the types of protocol, users and monitor.
struct Typed<'a, P: Protocol, W, M> {
    nodes: Nodes<'a, P>,
    audiences: Audiences<P::Command, P::Event, W, M>,
}

impl<P, W, M> Pieces for Typed<'_, P, W, M>
where
    P: Protocol,
    W: Workload<P::Command, P::Event>,
    M: Monitor<P::Command, P::Event>,
{
    fn find_responses(&self, share: usize, local: u32, code: Code) {
        self.nodes.find(&self.audiences.commands, share, local, code);
    }

    fn find_heard(&self, share: usize, audience: u32, news: u32) {
        self.audiences.find(share, audience, news);
    }

    fn keep_found(&mut self, tables: &mut Tables) {
        for share in 0..SHARES {
            self.nodes.keep(share, &mut self.audiences.news, tables);
            self.audiences.keep(share, self.nodes.count(), tables);
        }
    }

    fn is_outdated(&self, local: u32, message: u32) -> bool {
        self.nodes.is_outdated(local, message)
    }

    fn repeat(
        &self,
        met: (u32, Code),
        choices: &[u32],
        sent: u64,
        recorder: &mut Recorder,
    ) -> Vec<u64> {
        self.nodes.repeat(&self.audiences.commands, met, choices, sent, recorder)
    }

    fn parcel(&self, message: u32, id: u64) -> Parcel {
        let envelope = &self.nodes.messages[message];
        Parcel::new(envelope.from, id, &envelope.msg)
    }

    fn command(&self, command: u32) -> &dyn Debug {
        &self.audiences.commands[command]
    }

    fn timer(&self, local: u32, place: u32) -> &dyn Debug {
        &self.nodes.locals[local].timers[place as usize]
    }

    fn message(&self, message: u32) -> &dyn Debug {
        &self.nodes.messages[message]
    }

    fn node(&self, local: u32) -> &dyn Debug {
        &self.nodes.locals[local].state
    }
}
