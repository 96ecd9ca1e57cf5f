//! The states that were met: fingerprints and where each was reached from.

use hashbrown::HashTable;

/// No state.
pub(crate) const NONE: u32 = u32::MAX;

/// All states met so far, numbered in the order in which they were met.
#[derive(Debug, Default)]
pub(crate) struct Visited {
    entries: HashTable<Entry>,
    parents: Vec<u32>,
}

/// A fingerprint in two halves and the number of its state: twelve bytes rather than sixteen.
#[derive(Clone, Copy, Debug)]
struct Entry {
    high: u32,
    low: u32,
    state: u32,
}

impl Entry {
    const fn fingerprint(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }
}

impl Visited {
    /// How many states were met.
    pub(crate) const fn len(&self) -> usize {
        self.parents.len()
    }

    /// The number of a state.
    pub(crate) fn find(&self, fingerprint: u64) -> Option<u32> {
        let same = |entry: &Entry| entry.fingerprint() == fingerprint;
        self.entries.find(fingerprint, same).map(|entry| entry.state)
    }

    /// The number of a state, and whether it is new.
    ///
    /// # Panics
    /// If there are more states than 32 bits can number.
    pub(crate) fn insert(&mut self, fingerprint: u64, parent: u32) -> (u32, bool) {
        let same = |entry: &Entry| entry.fingerprint() == fingerprint;
        let known = self.entries.entry(fingerprint, same, |entry| entry.fingerprint());
        match known {
            hashbrown::hash_table::Entry::Occupied(entry) => (entry.get().state, false),
            hashbrown::hash_table::Entry::Vacant(place) => {
                let state = self.parents.len() as u32;
                assert!(state < NONE, "more states than can be numbered");
                let (high, low) = ((fingerprint >> 32) as u32, fingerprint as u32);
                place.insert(Entry { high, low, state });
                self.parents.push(parent);
                (state, true)
            }
        }
    }

    /// The fingerprints of the states on the way to a state, itself included.
    pub(crate) fn path(&self, state: u32) -> Vec<u64> {
        let mut states = Vec::new();
        let mut next = state;
        while next != NONE {
            states.push(next);
            next = self.parents[next as usize];
        }
        // A parent is older than its child, so this is ascending.
        states.reverse();
        let mut path = vec![0; states.len()];
        for entry in &self.entries {
            if let Ok(place) = states.binary_search(&entry.state) {
                path[place] = entry.fingerprint();
            }
        }
        path
    }
}
