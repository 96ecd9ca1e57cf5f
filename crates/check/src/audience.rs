//! The audience of a run, which is its users and its monitor: told of the same facts, they change
//! together.

use std::hash::Hash;

use quorate_core::{Fact, Monitor, NodeId, Violation, Workload};

use crate::found::Found;
use crate::intern::Interner;
use crate::local::KeptFact;
use crate::tables::{AudienceSummary, Heard, Tables};

/// The users and the monitor of a run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Audience<W, M> {
    pub(crate) users: W,
    pub(crate) monitor: M,
}

/// What an audience is told of one step: where it was, and the facts in their order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct News<C, E> {
    pub(crate) at: NodeId,
    pub(crate) facts: Vec<KeptFact<C, E>>,
}

impl<W, M> Audience<W, M> {
    /// The audience after it was told the news.
    fn after<C, E>(&self, news: &News<C, E>) -> Result<Self, Violation>
    where
        W: Workload<C, E>,
        M: Monitor<C, E>,
    {
        let mut audience = self.clone();
        let Self { users, monitor } = &mut audience;
        let at = news.at;
        for fact in &news.facts {
            // Whose turn it is by now shows when all users are asked for their next command.
            let fact = match fact {
                KeptFact::Command(command) => {
                    users.gave(at, command);
                    Fact::Command(command)
                }
                KeptFact::Event(event) => {
                    users.told(at, event);
                    Fact::Event(event)
                }
                KeptFact::Crashed => {
                    users.crashed(at);
                    Fact::Crashed
                }
                KeptFact::Recovered => {
                    users.recovered(at);
                    Fact::Recovered
                }
            };
            monitor.observe(at, fact)?;
        }
        Ok(audience)
    }
}

/// All audiences that were met, with the commands that their users have and the news they were told.
pub(crate) struct Audiences<C, E, W, M> {
    pub(crate) commands: Interner<C>,
    pub(crate) news: Interner<News<C, E>>,
    audiences: Interner<Audience<W, M>>,
    found: Found<Hearing<W, M>>,
}

/// What an audience makes of news.
struct Hearing<W, M> {
    audience: u32,
    news: u32,
    result: Result<Audience<W, M>, Violation>,
}

impl<C, E, W, M> Default for Audiences<C, E, W, M> {
    fn default() -> Self {
        let (commands, news) = (Interner::default(), Interner::default());
        Self { commands, news, audiences: Interner::default(), found: Found::default() }
    }
}

impl<C: Eq + Hash, E: Eq + Hash, W: Workload<C, E>, M: Monitor<C, E>> Audiences<C, E, W, M> {
    /// Finds out what an audience makes of news.
    pub(crate) fn find(&self, share: usize, audience: u32, news: u32) {
        let result = self.audiences[audience].after(&self.news[news]);
        self.found.add(share, Hearing { audience, news, result });
    }

    /// Puts what was found out in a share into the tables; `count` nodes have users.
    pub(crate) fn keep(&mut self, share: usize, count: usize, tables: &mut Tables) {
        for Hearing { audience, news, result } in self.found.take(share) {
            if tables.heard(audience, news).is_some() {
                continue;
            }
            let heard = match result {
                Ok(audience) => Heard::Fine(self.add(audience, count, tables)),
                Err(violation) => Heard::Broken(tables.violations.number(violation).0),
            };
            tables.add_heard(audience, news, heard);
        }
    }

    /// The number of an audience; `count` nodes have users.
    pub(crate) fn add(
        &mut self,
        audience: Audience<W, M>,
        count: usize,
        tables: &mut Tables,
    ) -> u32 {
        let (number, new) = self.audiences.number(audience);
        if new {
            let Audience { users, monitor } = &self.audiences[number];
            let next = |node| users.next(node).map(|(command, _)| self.commands.number(command).0);
            let commands = NodeId::first(count).map(next).collect();
            let settled = monitor.settle().into_iter().next().map_or(Ok(()), Err);
            tables.add_audience(AudienceSummary::new(commands, &monitor.owed(), settled));
        }
        number
    }
}
