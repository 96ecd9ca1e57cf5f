//! Quorum systems by name.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use quorate_core::NodeSet;

use crate::quorums::written;
use crate::{BadSystem, Quorums, listed};

/// The names as shown in help.
pub const NAMES: &str = "singleton, all, majority, weighted:WEIGHTS, grid, projective-plane, \
                         crumbling-wall[:WIDTHS], tree, nucleus, custom:QUORUMS";

/// A construction, before the number of nodes is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Node 1 alone.
    Singleton,
    /// All nodes.
    All,
    /// More than half of the nodes.
    Majority,
    /// More than half of the weight: by position, what a node weighs.
    Weighted(Vec<u32>),
    /// A row and a column of a grid.
    Grid,
    /// A line of a projective plane.
    ProjectivePlane,
    /// A row of a wall and a node of every row below; the widths, or those of `CWlog`.
    CrumblingWall(Option<Vec<usize>>),
    /// A path down a tree, or paths around a node of it.
    Tree,
    /// Most of a core, or half of it and one more.
    Nucleus,
    /// As listed.
    Custom(Vec<NodeSet>),
}

impl Kind {
    /// The name without parameters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Singleton => "singleton",
            Self::All => "all",
            Self::Majority => "majority",
            Self::Weighted(_) => "weighted",
            Self::Grid => "grid",
            Self::ProjectivePlane => "projective-plane",
            Self::CrumblingWall(_) => "crumbling-wall",
            Self::Tree => "tree",
            Self::Nucleus => "nucleus",
            Self::Custom(_) => "custom",
        }
    }

    /// How many nodes the parameters are about, if they say.
    #[must_use]
    pub fn nodes(&self) -> Option<usize> {
        match self {
            Self::Weighted(weights) => Some(weights.len()),
            Self::CrumblingWall(Some(widths)) => {
                Some(widths.iter().fold(0, |sum: usize, &width| sum.saturating_add(width)))
            }
            Self::Custom(sets) => sets.iter().flat_map(NodeSet::iter).max().map(|n| n.index() + 1),
            _ => None,
        }
    }

    /// All that need no parameters and exist for so many nodes.
    #[must_use]
    pub fn usual(nodes: usize) -> Vec<Self> {
        let mut kinds = alloc::vec![
            Self::Singleton,
            Self::All,
            Self::Majority,
            Self::Grid,
            Self::CrumblingWall(None),
            Self::Tree,
        ];
        if nodes <= crate::plane::NODES_MAX {
            kinds.insert(4, Self::ProjectivePlane);
        }
        if listed::nucleus(nodes).is_some() {
            kinds.push(Self::Nucleus);
        }
        kinds
    }
}

impl FromStr for Kind {
    type Err = BadSystem;

    fn from_str(text: &str) -> Result<Self, BadSystem> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let kind = match (name, parameter) {
            ("singleton", None) => Self::Singleton,
            ("all", None) => Self::All,
            ("majority", None) => Self::Majority,
            ("weighted", Some(weights)) => Self::Weighted(numbers(weights, "weights")?),
            ("weighted", None) => return Err(missing(text, "weights", "weighted:3,1,1,1,1")),
            ("grid", None) => Self::Grid,
            ("projective-plane", None) => Self::ProjectivePlane,
            ("crumbling-wall", None) => Self::CrumblingWall(None),
            ("crumbling-wall", Some(widths)) => {
                Self::CrumblingWall(Some(numbers(widths, "widths")?))
            }
            ("tree", None) => Self::Tree,
            ("nucleus", None) => Self::Nucleus,
            ("custom", Some(quorums)) => Self::Custom(Quorums::read(quorums)?),
            ("custom", None) => return Err(missing(text, "quorums", "custom:1,2;2,3;1,3")),
            _ => return Err(BadSystem(format!("{text} is none of {NAMES}"))),
        };
        Ok(kind)
    }
}

fn missing(text: &str, what: &str, example: &str) -> BadSystem {
    BadSystem(format!("{text} needs its {what}, such as {example}"))
}

fn numbers<N: FromStr>(text: &str, what: &str) -> Result<Vec<N>, BadSystem> {
    let number = |word: &str| word.trim().parse().ok();
    let numbers: Option<Vec<N>> = text.split(',').map(number).collect();
    numbers.ok_or_else(|| BadSystem(format!("{text} are not {what} such as 3,2,1")))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>, between: &str| items.join(between);
        f.write_str(self.name())?;
        match self {
            Self::Weighted(weights) => {
                write!(f, ":{}", list(weights.iter().map(u32::to_string).collect(), ","))
            }
            Self::CrumblingWall(Some(widths)) => {
                write!(f, ":{}", list(widths.iter().map(usize::to_string).collect(), ","))
            }
            Self::Custom(sets) => {
                let plain = |set| written(set).trim_matches(['{', '}']).to_string();
                write!(f, ":{}", list(sets.iter().map(plain).collect(), ";"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in [
            "singleton",
            "all",
            "majority",
            "weighted:3,1,1",
            "grid",
            "projective-plane",
            "crumbling-wall",
            "crumbling-wall:1,2,3",
            "tree",
            "nucleus",
            "custom:1,2;2,3;1,3",
        ] {
            assert_eq!(text.parse::<Kind>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_kind_is_said() {
        let error = |text: &str| text.parse::<Kind>().unwrap_err().to_string();
        assert!(error("gird").starts_with("gird is none of singleton, all"));
        assert!(error("grid:3").starts_with("grid:3 is none of"));
        assert_eq!(error("weighted:1,x"), "1,x are not weights such as 3,2,1");
        assert_eq!(error("weighted"), "weighted needs its weights, such as weighted:3,1,1,1,1");
    }
}
