//! The users of a group: some send, some join, some leave.

use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode, Span, Wait, Workload};

use super::{Command, Event, Order, Wish};

/// A pattern: what the users do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// The time that a sender waits before each message.
    pub gap: Span,
    /// The orders that each sender asks for, one after the other and then from the beginning.
    pub orders: Vec<Order>,
    /// Does it ask for uniform delivery?
    pub uniform: bool,
    /// The number of its own messages that a sender may be waiting for before it sends another.
    pub ahead_max: u32,
    /// The nodes that join, and when.
    pub joins: Vec<(NodeId, Span)>,
    /// The nodes that leave, and when.
    pub leaves: Vec<(NodeId, Span)>,
}

impl Default for Pattern {
    fn default() -> Self {
        Self {
            gap: Span::UNIT,
            orders: [Order::Fifo].into(),
            uniform: false,
            ahead_max: 8,
            joins: Vec::new(),
            leaves: Vec::new(),
        }
    }
}

/// The users: each sends a number of messages while it is a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Senders {
    pattern: Pattern,
    users: PerNode<User>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct User {
    standing: Standing,
    messages_left: u32,
    /// How many messages it has sent.
    sent: u32,
    /// Of its own messages, how many it has not seen yet.
    ahead: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
    Outside,
    Joining,
    Member,
    Leaving,
    /// Left or crashed. A node that comes up again rejoins by itself, and its user goes on then.
    Gone,
}

impl Senders {
    /// Users of `count` nodes of which `members` belong to the group at the beginning, and each of
    /// the `senders` sends so many messages.
    #[must_use]
    pub fn new(
        count: usize,
        members: &NodeSet,
        senders: &NodeSet,
        messages: u32,
        pattern: Pattern,
    ) -> Self {
        let user = |node| User {
            standing: if members.contains(node) { Standing::Member } else { Standing::Outside },
            messages_left: if senders.contains(node) { messages } else { 0 },
            sent: 0,
            ahead: 0,
        };
        Self { pattern, users: PerNode::new(count, user) }
    }

    fn when(list: &[(NodeId, Span)], node: NodeId) -> Option<Wait> {
        let entry = list.iter().find(|(other, _)| *other == node);
        entry.map(|&(_, at)| Wait::Until(at))
    }
}

impl Workload<Command, Event> for Senders {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        let (user, pattern) = (&self.users[node], &self.pattern);
        match user.standing {
            Standing::Outside => Some((Command::Join, Self::when(&pattern.joins, node)?)),
            Standing::Member if user.messages_left > 0 && user.ahead < pattern.ahead_max => {
                let order = pattern.orders[user.sent as usize % pattern.orders.len()];
                let wish = Wish { number: user.sent + 1, order, uniform: pattern.uniform };
                Some((Command::Multicast(wish), Wait::For(pattern.gap)))
            }
            Standing::Member if user.messages_left == 0 => {
                Some((Command::Leave, Self::when(&pattern.leaves, node)?))
            }
            _ => None,
        }
    }

    fn gave(&mut self, node: NodeId, command: &Command) -> Option<NodeId> {
        let user = &mut self.users[node];
        match command {
            Command::Multicast(_) => {
                user.sent += 1;
                user.ahead += 1;
                user.messages_left -= 1;
            }
            Command::Join => user.standing = Standing::Joining,
            Command::Leave => user.standing = Standing::Leaving,
        }
        None
    }

    fn told(&mut self, node: NodeId, event: &Event) -> Option<NodeId> {
        let user = &mut self.users[node];
        match event {
            Event::Delivered(id) if id.sender == node => user.ahead = user.ahead.saturating_sub(1),
            Event::Delivered(_) | Event::Transitional { .. } => {}
            Event::Installed { .. } if user.standing != Standing::Leaving => {
                user.standing = Standing::Member;
            }
            Event::Installed { .. } => {}
            Event::Joined => user.standing = Standing::Member,
            Event::Left => (user.standing, user.ahead) = (Standing::Gone, 0),
            Event::Excluded => (user.standing, user.ahead) = (Standing::Joining, 0),
        }
        None
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        let user = &mut self.users[node];
        (user.standing, user.ahead) = (Standing::Gone, 0);
        None
    }

    fn finished(&self) -> bool {
        let idle = |(node, user): (NodeId, &User)| match user.standing {
            Standing::Member => {
                let leaves = Self::when(&self.pattern.leaves, node).is_some();
                user.messages_left == 0 && user.ahead == 0 && !leaves
            }
            Standing::Outside => Self::when(&self.pattern.joins, node).is_none(),
            Standing::Gone => true,
            Standing::Joining | Standing::Leaving => false,
        };
        self.users.iter().all(idle)
    }
}
