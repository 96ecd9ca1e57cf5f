//! The users and the monitor: told of the same news, they change together.

use std::hash::Hash;

use quorate_core::{Fact, Monitor, NodeId, Violation, Workload};

use crate::found::Found;
use crate::intern::Interner;
use crate::local::News;
use crate::tables::{Heard, Tables, WatchFacts};

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
    fn after<C, E>(&self, tale: &Tale<C, E>) -> Result<Self, Violation>
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

/// All states of users and monitor that were met, with what users said and what was told to them.
pub(crate) struct Watches<C, E, W, M> {
    pub(crate) commands: Interner<C>,
    pub(crate) tales: Interner<Tale<C, E>>,
    watches: Interner<Watch<W, M>>,
    found: Found<Hearing<W, M>>,
}

/// What users and monitor in this state make of a tale.
struct Hearing<W, M> {
    watch: u32,
    tale: u32,
    result: Result<Watch<W, M>, Violation>,
}

impl<C, E, W, M> Default for Watches<C, E, W, M> {
    fn default() -> Self {
        let (commands, tales) = (Interner::default(), Interner::default());
        Self { commands, tales, watches: Interner::default(), found: Found::default() }
    }
}

impl<C: Eq + Hash, E: Eq + Hash, W: Workload<C, E>, M: Monitor<C, E>> Watches<C, E, W, M> {
    /// Finds out what users and monitor in this state make of a tale.
    pub(crate) fn find(&self, share: usize, watch: u32, tale: u32) {
        let result = self.watches[watch].after(&self.tales[tale]);
        self.found.add(share, Hearing { watch, tale, result });
    }

    /// Puts what was found out in a share into the tables; `count` nodes have users.
    pub(crate) fn keep(&mut self, share: usize, count: usize, tables: &mut Tables) {
        for Hearing { watch, tale, result } in self.found.take(share) {
            if tables.heard(watch, tale).is_some() {
                continue;
            }
            let heard = match result {
                Ok(watch) => Heard::Fine(self.add(watch, count, tables)),
                Err(violation) => Heard::Broken(tables.violations.number(violation).0),
            };
            tables.add_heard(watch, tale, heard);
        }
    }

    /// The number of a state of users and monitor; `count` nodes have users.
    pub(crate) fn add(&mut self, watch: Watch<W, M>, count: usize, tables: &mut Tables) -> u32 {
        let (number, new) = self.watches.number(watch);
        if new {
            let Watch { users, monitor } = &self.watches[number];
            let next = |node| users.next(node).map(|(command, _)| self.commands.number(command).0);
            let commands = NodeId::first(count).map(next).collect();
            tables.add_watch(WatchFacts::new(commands, &monitor.owed(), monitor.settle()));
        }
        number
    }
}
