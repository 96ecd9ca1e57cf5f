//! The election as Stateright's documentation would have it written: an actor.

use std::borrow::Cow;

use stateright::actor::{Actor, ActorModel, Id, Network, Out};
use stateright::{Checker, Expectation, Model};

/// A candidate: its own number is its place, and the lowest one wins.
struct Candidate {
    next: Id,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Standing {
    Running,
    Beaten,
    Leading,
}

impl Actor for Candidate {
    type Msg = usize;
    type State = Standing;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, id: Id, _: &Option<()>, out: &mut Out<Self>) -> Standing {
        out.send(self.next, id.into());
        Standing::Running
    }

    fn on_msg(
        &self,
        id: Id,
        state: &mut Cow<'_, Standing>,
        _: Id,
        theirs: usize,
        out: &mut Out<Self>,
    ) {
        let own: usize = id.into();
        if theirs < own {
            if **state != Standing::Beaten {
                *state.to_mut() = Standing::Beaten;
            }
            out.send(self.next, theirs);
        } else if theirs == own {
            *state.to_mut() = Standing::Leading;
        }
    }
}

/// How many states there are.
pub(crate) fn count(count: usize, threads: usize) -> u64 {
    let candidates = (0..count).map(|place| Candidate { next: ((place + 1) % count).into() });
    let checker = ActorModel::new((), ())
        .actors(candidates)
        .init_network(Network::new_unordered_nonduplicating([]))
        .property(Expectation::Always, "uniqueness", |_, state| {
            state.actor_states.iter().filter(|standing| ***standing == Standing::Leading).count()
                < 2
        })
        .checker()
        .threads(threads)
        .spawn_bfs()
        .join();
    checker.assert_properties();
    checker.unique_state_count() as u64
}
