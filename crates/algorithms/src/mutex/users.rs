//! The users of a mutex: when they want to enter, and how long they stay.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode, Span, Wait, Workload};

use super::{Command, Event, Setup};

/// A load: when users wish to enter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Load {
    /// One user at a time, each after the one before has been out for so long.
    Light {
        /// How long nobody wants.
        gap: Span,
    },
    /// Everybody always wants.
    Heavy,
    /// Everybody wants again after an exponentially distributed time with this mean.
    Poisson {
        /// The mean time between leaving and wanting again.
        mean: Span,
    },
    /// As Poisson, but one user wants so many times as often as each of the others, and as soon.
    Hot {
        /// Who.
        node: NodeId,
        /// How many times as often.
        factor: u32,
        /// The mean time between leaving and wanting again of the others.
        mean: Span,
    },
    /// At given times, or as soon after as the user is out.
    Script(Arc<PerNode<Vec<Span>>>),
}

/// The users: each wants to enter a number of times and stays inside for a while.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Users {
    load: Load,
    stay: Span,
    wishes_left: PerNode<u32>,
    doing: PerNode<Doing>,
    /// With light load: whose turn it is.
    turn: NodeId,
    /// By node, what its user will want after a recovery; nothing unless users wish again.
    postponed: Option<PerNode<u32>>,
    /// Do they write to each other of their wishes?
    talking: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Other,
    Waiting,
    Inside,
}

impl Users {
    /// `count` users that each want to enter `wishes` times and stay inside for `stay`; the holder
    /// given at boot is inside already. A script says itself how often each user wants.
    #[must_use]
    pub fn new(count: usize, setup: &Setup, wishes: u32, load: Load, stay: Span) -> Self {
        let wishes_left = PerNode::new(count, |node| match &load {
            Load::Script(script) => script[node].len() as u32,
            Load::Hot { node: hot, factor, .. } if *hot == node => wishes.saturating_mul(*factor),
            _ => wishes,
        });
        let doing = |node| if setup.holder == Some(node) { Doing::Inside } else { Doing::Other };
        let doing = PerNode::new(count, doing);
        Self {
            load,
            stay,
            wishes_left,
            doing,
            turn: NodeId::at(0),
            postponed: None,
            talking: false,
        }
    }

    /// The same users, but these never want to enter.
    #[must_use]
    pub fn without(mut self, bystanders: &NodeSet) -> Self {
        for node in bystanders {
            self.wishes_left[node] = 0;
        }
        let mut nodes = NodeId::first(self.wishes_left.len());
        self.turn = nodes.find(|&node| self.wishes_left[node] > 0).unwrap_or(self.turn);
        self
    }

    /// The same users, who wish again when their node has come up again: what they had not been
    /// granted before the crash, and all that was still to come.
    #[must_use]
    pub fn wishing_again(mut self) -> Self {
        self.postponed = Some(PerNode::new(self.wishes_left.len(), |_| 0));
        self
    }

    /// The same users, who each write to the one before whenever they wish to enter.
    #[must_use]
    pub fn talking(mut self) -> Self {
        self.talking = true;
        self
    }

    fn wait(&self, node: NodeId) -> Option<Wait> {
        match &self.load {
            Load::Light { gap } => (self.turn == node).then_some(Wait::For(*gap)),
            Load::Heavy => Some(Wait::For(Span::ZERO)),
            Load::Poisson { mean } => Some(Wait::Exponential(*mean)),
            Load::Hot { node: hot, factor, mean } if *hot == node => {
                Some(Wait::Exponential(Span(mean.0 / u64::from((*factor).max(1)))))
            }
            Load::Hot { mean, .. } => Some(Wait::Exponential(*mean)),
            Load::Script(script) => {
                let done = script[node].len() - self.wishes_left[node] as usize;
                Some(Wait::Until(script[node][done]))
            }
        }
    }

    /// Under light load, passes the turn on to the next user who still wants.
    fn pass_turn(&mut self, node: NodeId) -> Option<NodeId> {
        if !matches!(self.load, Load::Light { .. }) || node != self.turn {
            return None;
        }
        let count = self.wishes_left.len();
        let after = (1..=count).map(|step| NodeId::at((node.index() + step) % count));
        self.turn = after.into_iter().find(|&node| self.wishes_left[node] > 0)?;
        Some(self.turn)
    }
}

impl Workload<Command, Event> for Users {
    fn writes(&self, node: NodeId, command: &Command) -> Option<NodeId> {
        // Against the way of a token, which would otherwise always be there before the letter.
        let count = self.doing.len();
        let before = NodeId::at((node.index() + count - 1) % count);
        (self.talking && *command == Command::Acquire && before != node).then_some(before)
    }

    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        match self.doing[node] {
            Doing::Other if self.wishes_left[node] > 0 => {
                Some((Command::Acquire, self.wait(node)?))
            }
            Doing::Inside => Some((Command::Release, Wait::For(self.stay))),
            Doing::Other | Doing::Waiting => None,
        }
    }

    fn gave(&mut self, node: NodeId, command: &Command) -> Option<NodeId> {
        match command {
            Command::Acquire => {
                self.wishes_left[node] -= 1;
                self.doing[node] = Doing::Waiting;
                None
            }
            Command::Release => {
                self.doing[node] = Doing::Other;
                self.pass_turn(node)
            }
        }
    }

    fn told(&mut self, node: NodeId, event: &Event) -> Option<NodeId> {
        match event {
            Event::Granted(_) | Event::Entered(..) | Event::Fenced(_) => {
                self.doing[node] = Doing::Inside;
                None
            }
            Event::Lost => {
                self.doing[node] = Doing::Other;
                self.pass_turn(node)
            }
        }
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        if let Some(postponed) = &mut self.postponed {
            let waiting = u32::from(self.doing[node] == Doing::Waiting);
            postponed[node] = self.wishes_left[node] + waiting;
        }
        self.doing[node] = Doing::Other;
        self.wishes_left[node] = 0;
        self.pass_turn(node)
    }

    fn recovered(&mut self, node: NodeId) -> Option<NodeId> {
        if let Some(postponed) = &mut self.postponed {
            self.wishes_left[node] = core::mem::take(&mut postponed[node]);
        }
        None
    }

    fn finished(&self) -> bool {
        self.doing.iter().all(|(node, doing)| *doing == Doing::Other && self.wishes_left[node] == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    #[test]
    fn a_user_wishes_again_if_it_was_told_to() {
        let plain = Users::new(2, &Setup::new(2), 3, Load::Heavy, Span::ZERO);
        for (mut users, left) in [(plain.clone(), 0), (plain.wishing_again(), 3)] {
            users.gave(node(1), &Command::Acquire);
            users.crashed(node(1));
            assert_eq!(users.next(node(1)), None);
            users.recovered(node(1));
            assert_eq!(users.wishes_left[node(1)], left);
        }
    }

    #[test]
    fn a_hot_user_wants_more_often_and_sooner() {
        let hot = Load::Hot { node: node(2), factor: 10, mean: Span::UNIT };
        let users = Users::new(2, &Setup::new(2), 3, hot, Span::ZERO);
        assert_eq!((users.wishes_left[node(1)], users.wishes_left[node(2)]), (3, 30));
        let sooner = Wait::Exponential(Span(Span::UNIT.0 / 10));
        assert_eq!(users.next(node(2)), Some((Command::Acquire, sooner)));
    }

    #[test]
    fn light_users_take_turns_and_heavy_ones_do_not_wait() {
        let setup = Setup::new(2);
        let light = Load::Light { gap: Span::UNIT };
        let mut users = Users::new(2, &setup, 1, light, Span::ZERO);
        assert_eq!(users.next(node(1)), Some((Command::Acquire, Wait::For(Span::UNIT))));
        assert_eq!(users.next(node(2)), None);
        assert_eq!(users.gave(node(1), &Command::Acquire), None);
        users.told(node(1), &Event::Granted(None));
        assert_eq!(users.gave(node(1), &Command::Release), Some(node(2)));
        assert!(users.next(node(1)).is_none() && users.next(node(2)).is_some());

        let users = Users::new(2, &setup, 1, Load::Heavy, Span::ZERO);
        assert!(NodeId::first(2).all(|node| users.next(node).is_some()));
        let users = users.without(&NodeSet::first(1));
        assert!(users.next(node(1)).is_none() && users.next(node(2)).is_some());
    }
}
