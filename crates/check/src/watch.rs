//! The users and the monitor: told of the same news, they change together.

use quorate_core::{Fact, Monitor, NodeId, Violation, Workload};

use crate::local::News;

/// The users and the monitor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Watch<W, M> {
    pub(crate) users: W,
    pub(crate) monitor: M,
}

/// What happened at a node in one step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tale<C, E> {
    pub(crate) at: NodeId,
    pub(crate) news: Vec<News<C, E>>,
}

impl<W, M> Watch<W, M> {
    /// Users and monitor after they were told of what happened.
    pub(crate) fn after<C, E>(&self, tale: &Tale<C, E>) -> Result<Self, Violation>
    where
        W: Workload<C, E>,
        M: Monitor<C, E>,
    {
        let mut watch = self.clone();
        let Self { users, monitor } = &mut watch;
        let at = tale.at;
        for one in &tale.news {
            // Whose turn it is by now shows when all users are asked for their next command.
            let fact = match one {
                News::Gave(command) => {
                    users.gave(at, command);
                    Fact::Command(command)
                }
                News::Told(event) => {
                    users.told(at, event);
                    Fact::Event(event)
                }
                News::Crashed => {
                    users.crashed(at);
                    Fact::Crashed
                }
                News::Recovered => Fact::Recovered,
            };
            monitor.observe(at, fact)?;
        }
        Ok(watch)
    }
}
