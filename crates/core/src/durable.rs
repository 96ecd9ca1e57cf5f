//! What survives a crash: records under keys.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt::{self, Debug};
use core::hash::Hash;

/// A record that is kept over a crash, and knows under which key.
///
/// A protocol with several things to keep has a sum of records; a part's records are one variant of
/// its owner's, and so are their keys.
pub trait Durable: Clone + Eq + Hash + Debug + Send + Sync {
    /// What tells records apart that are kept side by side.
    type Key: Clone + Ord + Hash + Debug + Send + Sync;

    /// The key of this record: an earlier record with the same one is replaced.
    fn key(&self) -> Self::Key;
}

impl Durable for Infallible {
    type Key = Self;

    fn key(&self) -> Self {
        match *self {}
    }
}

/// The only record of a protocol: always under the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sole<T>(pub T);

impl<T: Debug> Debug for Sole<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Clone + Eq + Hash + Debug + Send + Sync> Durable for Sole<T> {
    type Key = ();

    fn key(&self) {}
}

/// A record that can be written to a disk and read back.
///
/// Nearly that it has both halves of serde, but [`Infallible`] is one too: what is never kept can be
/// written wherever anything else can.
#[cfg(feature = "serde")]
pub trait Stored: Durable {
    /// Writes it.
    ///
    /// # Errors
    /// Those of the serializer.
    fn store<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads it.
    ///
    /// # Errors
    /// Those of the deserializer.
    fn load<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

#[cfg(feature = "serde")]
impl Stored for Infallible {
    fn store<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }

    fn load<'de, D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("nothing of this kind is ever kept"))
    }
}

#[cfg(feature = "serde")]
impl<T> Stored for Sole<T>
where
    Self: Durable,
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    fn store<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }

    fn load<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

/// For `#[serde(with = "quorate_core::stored")]` on a field that is a record.
#[cfg(feature = "serde")]
pub mod stored {
    use super::Stored;

    /// Writes a record.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<R: Stored, S: serde::Serializer>(
        record: &R,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        record.store(serializer)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, R: Stored, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<R, D::Error> {
        R::load(deserializer)
    }
}

/// A record as serde sees it.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stowed<R>(pub R);

#[cfg(feature = "serde")]
impl<R: Stored> serde::Serialize for Stowed<&R> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.store(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de, R: Stored> serde::Deserialize<'de> for Stowed<R> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        R::load(deserializer).map(Self)
    }
}

/// The records that a node finds when it comes up.
///
/// They are few, and most algorithms have none: a list in order does, and costs each of them a fraction
/// of what a tree costs the compiler.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kept<R: Durable>(Vec<(R::Key, R)>);

impl<R: Durable> Kept<R> {
    /// Nothing is kept.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Is nothing kept?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The record under this key.
    #[must_use]
    pub fn get(&self, key: &R::Key) -> Option<&R> {
        let place = self.place(key).ok()?;
        Some(&self.0[place].1)
    }

    /// Where the record under this key is, or would be.
    fn place(&self, key: &R::Key) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(key))
    }

    /// All records, by key.
    pub fn iter(&self) -> impl Iterator<Item = &R> {
        self.0.iter().map(|(_, record)| record)
    }

    /// Keeps a record. Returns the one that it replaces.
    pub fn put(&mut self, record: R) -> Option<R> {
        let key = record.key();
        match self.place(&key) {
            Ok(place) => Some(core::mem::replace(&mut self.0[place].1, record)),
            Err(place) => {
                self.0.insert(place, (key, record));
                None
            }
        }
    }

    /// Loses the record under this key, as a disk may.
    pub fn lose(&mut self, key: &R::Key) -> Option<R> {
        let place = self.place(key).ok()?;
        Some(self.0.remove(place).1)
    }

    /// The records that are of another protocol's, such as those of a part.
    #[must_use]
    pub fn map<C: Durable>(&self, part: impl FnMut(&R) -> Option<C>) -> Kept<C> {
        let mut kept = Kept::new();
        for record in self.iter().filter_map(part) {
            kept.put(record);
        }
        kept
    }
}

impl<R: Durable> Default for Kept<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Kept<Sole<T>>
where
    Sole<T>: Durable<Key = ()>,
{
    /// The value of the only record.
    #[must_use]
    pub fn sole(&self) -> Option<&T> {
        self.get(&()).map(|Sole(value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two records of a protocol, one of them its part's.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    enum Both {
        Own(u8),
        Part(Sole<u8>),
    }

    impl Durable for Both {
        type Key = u8;

        fn key(&self) -> u8 {
            matches!(self, Self::Part(_)).into()
        }
    }

    #[test]
    fn a_record_replaces_the_one_with_its_key_and_no_other() {
        let mut kept = Kept::new();
        assert_eq!(kept.put(Both::Own(1)), None);
        assert_eq!(kept.put(Both::Part(Sole(2))), None);
        assert_eq!(kept.put(Both::Own(3)), Some(Both::Own(1)));
        let part = kept.map(|record| match record {
            Both::Part(record) => Some(*record),
            Both::Own(_) => None,
        });
        assert_eq!((part.sole(), kept.get(&0)), (Some(&2), Some(&Both::Own(3))));
        assert_eq!(kept.lose(&1), Some(Both::Part(Sole(2))));
        assert_eq!(kept.iter().count(), 1);
    }
}
