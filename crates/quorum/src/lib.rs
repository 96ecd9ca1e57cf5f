//! Quorum systems: sets of nodes of which any two intersect.
//!
//! A [`Kind`] names a construction, as on the command line; a [`System`] is one for so many nodes.
//! It can be listed as [`Quorums`] (refused, not tried, where there are too many), given to an
//! algorithm as an assignment of one quorum per node ([`System::assignment`]), verified with a
//! witness for every property that does not hold ([`verify`]), and measured: [`load`] with the best
//! strategy as exact fractions, [`resilience`], [`availability`], [`probes`]. [`examine`] does all of
//! it.
//!
//! Measures are those of the minimal quorums: a quorum that contains another one changes nothing.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod assign;
pub mod availability;
mod examine;
mod field;
mod grid;
mod kind;
mod listed;
pub mod load;
mod plane;
pub mod probes;
mod quorums;
pub mod resilience;
mod simplex;
mod system;
mod tree;
mod truth;
pub mod verify;
mod votes;
mod wall;

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod random;

use alloc::string::String;
use core::fmt;

pub use availability::Chance;
pub use examine::{Examined, examine};
pub use grid::Grid;
pub use kind::{Kind, NAMES};
pub use listed::nucleus;
pub use load::Load;
pub use num_rational::Ratio;
pub use plane::Plane;
pub use quorums::{Quorums, written};
pub use system::{NODES_MAX, QUORUMS_MAX, Structure, System};
pub use tree::Tree;
pub use votes::Votes;
pub use wall::Wall;

/// Why there is no such quorum system, or why something is not computed: one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSystem(pub String);

impl fmt::Display for BadSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BadSystem {}
