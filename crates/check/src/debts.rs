//! Debts that can never be paid.

/// Which states lead where, and what is owed in them. Faults are no links: nobody may count on one.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Where the links of each state end in `targets`.
    ends: Vec<usize>,
    targets: Vec<u32>,
    /// The audience of each state.
    audiences: Vec<u32>,
}

impl Links {
    /// The next state is met: it has this audience.
    pub(crate) fn meet(&mut self, audience: u32) {
        self.audiences.push(audience);
    }

    /// The next state is expanded: it leads to these states.
    pub(crate) fn expand(&mut self, targets: impl Iterator<Item = u32>) {
        self.targets.extend(targets);
        self.ends.push(self.targets.len());
    }

    /// The audience of a state.
    pub(crate) fn audience(&self, state: u32) -> u32 {
        self.audiences[state as usize]
    }

    /// The first state after which something that is owed to a node is owed for ever, and that
    /// node's position. `owed` says to whom something is owed, one bit for each node.
    pub(crate) fn first_unpayable(&self, owed: impl Fn(u32) -> u64) -> Option<(u32, u32)> {
        let owed = |state: usize| owed(self.audiences[state]);
        // To whom nothing is owed in a state or in one that can follow.
        let mut paid: Vec<u64> = (0..self.ends.len()).map(|state| !owed(state)).collect();
        loop {
            let mut changed = false;
            // Most links lead forward, so going backward most of it is done in one pass.
            for state in (0..self.ends.len()).rev() {
                let start = if state == 0 { 0 } else { self.ends[state - 1] };
                let targets = &self.targets[start..self.ends[state]];
                let sum = targets.iter().fold(paid[state], |sum, &to| sum | paid[to as usize]);
                changed |= sum != paid[state];
                paid[state] = sum;
            }
            if !changed {
                break;
            }
        }
        let unpayable = |(state, paid): (usize, &u64)| {
            (*paid != u64::MAX).then(|| (state as u32, (!paid).trailing_zeros()))
        };
        paid.iter().enumerate().find_map(unpayable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links of states in which nodes, given as bits, are owed something: the audience is the debt.
    fn first_unpayable(states: &[(u32, &[u32])]) -> Option<(u32, u32)> {
        let mut links = Links::default();
        states.iter().for_each(|&(owed, _)| links.meet(owed));
        states.iter().for_each(|(_, targets)| links.expand(targets.iter().copied()));
        links.first_unpayable(u64::from)
    }

    #[test]
    fn a_cycle_with_a_way_out_is_no_starvation() {
        assert_eq!(first_unpayable(&[(0, &[1]), (1, &[2]), (1, &[1, 3]), (0, &[])]), None);
    }

    #[test]
    fn a_cycle_without_one_is() {
        let states: [(u32, &[u32]); 4] = [(0, &[1, 3]), (2, &[2]), (2, &[1]), (0, &[])];
        assert_eq!(first_unpayable(&states), Some((1, 1)));
    }

    #[test]
    fn debts_of_different_nodes_may_be_paid_on_different_ways() {
        assert_eq!(first_unpayable(&[(3, &[1, 2]), (1, &[0]), (2, &[0])]), None);
    }
}
