//! The catalogues: one line per algorithm, from which every engine and every table takes it.

use alloc::vec::Vec;

use quorate_core::{Algorithm, BadOption, Family, Message, Meta, Options, Solution};

use crate::{BadStack, Layer};

/// A family whose algorithms can be named.
pub trait Catalogued: Family {
    /// Its algorithms, in the order of the lectures.
    const CATALOGUE: &'static [&'static Meta];

    /// Any one of its algorithms, chosen when a run begins.
    type Any: Solution<Family = Self, Msg: Portable, Stable: Storable>;

    /// Any one of its algorithms, over any of the layers that the family can do with.
    type Stack: Solution<Family = Self, Msg: Portable, Stable: Storable>;

    /// The algorithm of this name with these options; none if there is none of this name.
    fn configure(
        name: &str,
        options: &Options<'_>,
    ) -> Option<Result<<Self::Any as Solution>::Config, BadOption>>;

    /// The algorithm over these layers, the uppermost first.
    ///
    /// # Errors
    /// A layer that the family cannot do with, and why.
    fn stack(
        config: <Self::Any as Solution>::Config,
        layers: &[Layer],
    ) -> Result<<Self::Stack as Solution>::Config, BadStack>;

    /// What a maker makes of each algorithm, in the order of the catalogue.
    fn each<M: Maker<Self>>() -> Vec<M::Made>;
}

/// Something to be made of the type of every algorithm of a family, such as a table of functions.
pub trait Maker<F: Family> {
    /// What is made.
    type Made;

    /// Makes it.
    fn make<A>() -> Self::Made
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

/// A record that can be written to a disk, if the feature `serde` is on.
#[cfg(feature = "serde")]
pub trait Storable: quorate_core::Stored {}
#[cfg(feature = "serde")]
impl<R: quorate_core::Stored> Storable for R {}

/// A record that can be written to a disk, if the feature `serde` is on.
#[cfg(not(feature = "serde"))]
pub trait Storable: quorate_core::Durable {}
#[cfg(not(feature = "serde"))]
impl<R: quorate_core::Durable> Storable for R {}

/// A message of a catalogued algorithm.
pub trait Portable: Message + Carried {}
impl<M: Message + Carried> Portable for M {}

/// A family's catalogue: one line per algorithm. Families of other crates have theirs by it, too.
#[macro_export]
#[doc(hidden)]
macro_rules! catalogue {
    ($family:ident: $($algorithm:ident,)+) => {
        $crate::sum! {
            /// Any algorithm of the family, chosen when a run begins.
            any: $family { $($algorithm($algorithm),)+ }
        }

        impl $crate::Catalogued for $family {
            const CATALOGUE: &'static [&'static quorate_core::Meta] =
                &[$(&<$algorithm as quorate_core::Algorithm>::META,)+];

            type Any = any::Any;
            type Stack = stack::Any;

            fn configure(
                name: &str,
                options: &quorate_core::Options<'_>,
            ) -> Option<Result<any::Config, quorate_core::BadOption>> {
                $(if name == <$algorithm as quorate_core::Algorithm>::META.name {
                    let config = <$algorithm as quorate_core::Algorithm>::configure(options);
                    return Some(config.map(any::Config::$algorithm));
                })+
                None
            }

            fn stack(
                config: any::Config,
                layers: &[$crate::Layer],
            ) -> Result<stack::Config, $crate::BadStack> {
                Self::layered(config, layers)
            }

            fn each<M: $crate::Maker<Self>>() -> alloc::vec::Vec<M::Made> {
                alloc::vec![$(M::make::<$algorithm>(),)+]
            }
        }
    };
}
pub(crate) use catalogue;

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
