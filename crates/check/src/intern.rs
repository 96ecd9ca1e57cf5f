//! Values that are kept once and named by small numbers.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Keeps each of several equal values once and numbers them in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    numbers: Numbers,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { numbers: Numbers::default(), values: Vec::new() }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of a value, and whether it is new.
    pub(crate) fn number(&mut self, value: T) -> (u32, bool) {
        let hash = FxBuildHasher.hash_one(&value);
        let same = |number: u32| self.values[number as usize] == value;
        let (number, new) = self.numbers.find_or_add(hash, &same);
        if new {
            self.values.push(value);
        }
        (number, new)
    }
}

impl<T> std::ops::Index<u32> for Interner<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

/// The numbers of values by their hashes. Knows nothing of their type, so that a table is compiled
/// once and not for every type of values.
#[derive(Debug, Default)]
struct Numbers {
    table: HashTable<u32>,
    hashes: Vec<u64>,
}

impl Numbers {
    /// The number of the value with this hash that is the `same`, and whether it is new.
    fn find_or_add(&mut self, hash: u64, same: &dyn Fn(u32) -> bool) -> (u32, bool) {
        let Self { table, hashes } = self;
        let equal = |&number: &u32| hashes[number as usize] == hash && same(number);
        if let Some(&number) = table.find(hash, equal) {
            return (number, false);
        }
        // The upper bits serve to tell the kinds of causes apart.
        let number = u32::try_from(hashes.len()).expect("fewer than 2^32 pieces");
        assert!(number < crate::tables::PAYLOAD_MAX, "more different pieces than can be numbered");
        hashes.push(hash);
        table.insert_unique(hash, number, |&number| hashes[number as usize]);
        (number, true)
    }
}
