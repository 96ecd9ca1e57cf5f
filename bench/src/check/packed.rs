//! The election as a Stateright model packed by hand: one small array, no allocation for a state.

use stateright::{Checker, Model, Property};

const NODES_MAX: usize = 10;

struct Election {
    count: usize,
}

/// Two bits of standing for each node, and for each node the set of ids on their way to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    standings: u32,
    inboxes: [u16; NODES_MAX],
}

const ASLEEP: u32 = 0;
const RUNNING: u32 = 1;
const BEATEN: u32 = 2;
const LEADING: u32 = 3;

impl State {
    const fn standing(&self, node: usize) -> u32 {
        self.standings >> (2 * node) & 3
    }

    const fn set(&mut self, node: usize, standing: u32) {
        self.standings = self.standings & !(3 << (2 * node)) | standing << (2 * node);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Start(u8),
    Deliver(u8, u8),
}

impl Model for Election {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State { standings: 0, inboxes: [0; NODES_MAX] }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for node in 0..self.count {
            if state.standing(node) == ASLEEP {
                actions.push(Action::Start(node as u8));
                continue;
            }
            let mut inbox = state.inboxes[node];
            while inbox != 0 {
                actions.push(Action::Deliver(node as u8, inbox.trailing_zeros() as u8));
                inbox &= inbox - 1;
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Start(node) => {
                let node = node as usize;
                state.set(node, RUNNING);
                state.inboxes[(node + 1) % self.count] |= 1 << node;
            }
            Action::Deliver(node, id) => {
                let (node, id) = (node as usize, id as usize);
                state.inboxes[node] &= !(1 << id);
                if id < node {
                    state.set(node, BEATEN);
                    state.inboxes[(node + 1) % self.count] |= 1 << id;
                } else if id == node {
                    state.set(node, LEADING);
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("uniqueness", |model: &Self, state: &State| {
            (0..model.count).filter(|&node| state.standing(node) == LEADING).count() < 2
        })]
    }
}

/// How many states there are.
pub(crate) fn count(count: usize, threads: usize) -> u64 {
    let checker = Election { count }.checker().threads(threads).spawn_bfs().join();
    checker.assert_properties();
    checker.unique_state_count() as u64
}
