//! From names to types: one line per algorithm, from which every engine and every table takes it.

use alloc::vec::Vec;

use quorate_core::{Algorithm, Family, Message, Meta};

/// A family whose algorithms can be named.
pub trait Catalogued: Family {
    /// Its algorithms, in the order of the lectures.
    const CATALOGUE: &'static [&'static Meta];

    /// Calls the visitor with the type of the algorithm of this name; none if there is none.
    fn visit<V: Visitor<Self>>(name: &str, visitor: V) -> Option<V::Output>;
}

/// Something to be done with an algorithm whose name is known only at run time.
pub trait Visitor<F: Family> {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<A>(self) -> Self::Output
    where
        A: Algorithm<Family = F>,
        A::Msg: Portable;
}

/// Something that can be put on a wire, if the feature `serde` is on.
#[cfg(feature = "serde")]
pub trait Carried: serde::Serialize + serde::de::DeserializeOwned {}
#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Carried for T {}

/// Something that can be put on a wire, if the feature `serde` is on.
#[cfg(not(feature = "serde"))]
pub trait Carried {}
#[cfg(not(feature = "serde"))]
impl<T> Carried for T {}

/// A message of a catalogued algorithm.
pub trait Portable: Message + Carried {}
impl<M: Message + Carried> Portable for M {}

/// A family's catalogue: one line per algorithm.
macro_rules! catalogue {
    ($family:ty: $($algorithm:ty,)+) => {
        impl $crate::Catalogued for $family {
            const CATALOGUE: &'static [&'static quorate_core::Meta] =
                &[$(&<$algorithm as quorate_core::Algorithm>::META,)+];

            fn visit<V: $crate::Visitor<Self>>(name: &str, visitor: V) -> Option<V::Output> {
                $(if name == <$algorithm as quorate_core::Algorithm>::META.name {
                    return Some(visitor.visit::<$algorithm>());
                })+
                None
            }
        }
    };
}
pub(crate) use catalogue;

/// More kinds of messages than any algorithm has.
pub(crate) const KINDS_MAX: usize = 32;

/// The kinds of an algorithm, then those of what carries it; what is left over is empty.
pub(crate) const fn joined(
    inner: &[&'static str],
    outer: &[&'static str],
) -> [&'static str; KINDS_MAX] {
    let mut kinds = [""; KINDS_MAX];
    let mut count = 0;
    while count < inner.len() + outer.len() {
        kinds[count] = if count < inner.len() { inner[count] } else { outer[count - inner.len()] };
        count += 1;
    }
    kinds
}

/// Of the given names the one that `name` was probably meant to be, if any comes near.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let cost = |known: &'a str| {
        let tail = known.rsplit('/').next().unwrap_or(known);
        (distance(name, known).min(distance(name, tail)), known)
    };
    let (distance, best) = known.into_iter().map(cost).min()?;
    (distance <= 1 + name.len() / 3).then_some(best)
}

/// Levenshtein's distance: how many letters must be added, dropped or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let known = ["mutex/ricart-agrawala", "election/bully", "election/chang-roberts"];
        let nearest = |name| nearest(name, known);
        assert_eq!(nearest("mutex/ricard-agrawala"), Some(known[0]));
        assert_eq!(nearest("election/buly"), Some(known[1]));
        assert_eq!(nearest("chang-roberts"), Some(known[2]));
        assert_eq!(nearest("xyz"), None);
    }
}
