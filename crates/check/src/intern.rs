//! Values that are kept once and named by small numbers.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Keeps each of several equal values once and numbers them in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    numbers: HashTable<u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { numbers: HashTable::new(), values: Vec::new() }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of a value, and whether it is new.
    pub(crate) fn number(&mut self, value: T) -> (u32, bool) {
        let hash = |value: &T| FxBuildHasher.hash_one(value);
        let Self { numbers, values } = self;
        let hashed = hash(&value);
        if let Some(&number) = numbers.find(hashed, |&number| values[number as usize] == value) {
            return (number, false);
        }
        // The upper bits serve to tell the kinds of causes apart.
        let number = u32::try_from(values.len()).expect("fewer than 2^32 parts");
        assert!(number < crate::tables::PAYLOAD_MAX, "more different parts than can be numbered");
        values.push(value);
        numbers.insert_unique(hashed, number, |&number| hash(&values[number as usize]));
        (number, true)
    }
}

impl<T> std::ops::Index<u32> for Interner<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}
