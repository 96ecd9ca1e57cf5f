//! A quorum system of so many nodes.

use alloc::format;
use alloc::string::ToString;

use crate::{BadSystem, Grid, Kind, Plane, Quorums, Tree, Votes, Wall, listed, plane};

/// The most nodes of a system.
pub const NODES_MAX: usize = 10_000;
/// The most quorums that are listed.
pub const QUORUMS_MAX: usize = 10_000;
/// The most weight of all votes together.
const WEIGHT_MAX: u64 = 1_000_000;
/// The most weight times nodes: sums are gone through node by node.
const WEIGHING_MAX: u64 = 50_000_000;
/// The most comparing of quorums that are read: pairs, times the words of their sets.
const COMPARING_MAX: usize = 400_000_000;

/// A construction for a number of nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct System {
    kind: Kind,
    nodes: usize,
    structure: Structure,
    /// Of a mere list, its minimal quorums: finding them once is enough.
    reduced: Option<Quorums>,
}

/// What a system is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Structure {
    /// Weights: singleton, all, majority, weighted.
    Votes(Votes),
    /// Rows and columns.
    Grid(Grid),
    /// Points and lines.
    Plane(Plane),
    /// Rows of different widths.
    Wall(Wall),
    /// A binary tree.
    Tree(Tree),
    /// Nothing but a list.
    Listed(Quorums),
}

impl System {
    /// The system of this kind for so many nodes.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(kind: Kind, nodes: usize) -> Result<Self, BadSystem> {
        if nodes == 0 || nodes > NODES_MAX {
            let text = format!("{nodes} is not a number of nodes from 1 to {NODES_MAX}");
            return Err(BadSystem(text));
        }
        let said = kind.nodes().unwrap_or(nodes);
        let may_be_less = matches!(kind, Kind::Custom(_));
        if said > nodes || (said < nodes && !may_be_less) {
            let text = format!("{kind} is about {said} nodes, not {nodes}");
            return Err(BadSystem(text));
        }
        let structure = Structure::new(&kind, nodes)?;
        Ok(Self { kind, nodes, structure, reduced: None }.with_reduced())
    }

    fn with_reduced(mut self) -> Self {
        if let Structure::Listed(quorums) = &self.structure {
            self.reduced = Some(quorums.minimal());
        }
        self
    }

    /// The construction.
    #[must_use]
    pub const fn kind(&self) -> &Kind {
        &self.kind
    }

    /// How many nodes there are.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// What it is made of.
    #[must_use]
    pub const fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The quorums that the construction gives, minimal or not.
    ///
    /// # Errors
    /// If there are more than [`QUORUMS_MAX`].
    pub fn quorums(&self) -> Result<Quorums, BadSystem> {
        if self.count().is_none_or(|count| count > QUORUMS_MAX as u128) {
            let many = match self.count() {
                Some(count) => count.to_string(),
                None => "more than 10^38".to_string(),
            };
            let (kind, nodes) = (&self.kind, self.nodes);
            let text = format!(
                "{kind} of {nodes} nodes has {many} quorums; no more than {QUORUMS_MAX} are listed"
            );
            return Err(BadSystem(text));
        }
        let sets = match &self.structure {
            Structure::Votes(votes) => votes.list(),
            Structure::Grid(grid) => grid.list(),
            Structure::Plane(plane) => plane.list(),
            Structure::Wall(wall) => wall.list(),
            Structure::Tree(tree) => tree.list(),
            Structure::Listed(quorums) => return Ok(quorums.clone()),
        };
        Quorums::new(self.nodes, sets)
    }

    /// How many quorums the construction gives, at most; none if too many to count. Equal ones, as in
    /// small grids and planes with second names, are counted each.
    #[must_use]
    pub fn count(&self) -> Option<u128> {
        match &self.structure {
            Structure::Votes(votes) => votes.summary().0,
            Structure::Grid(_) => Some(self.nodes as u128),
            Structure::Plane(plane) => Some((plane.order() * (plane.order() + 1) + 1) as u128),
            Structure::Wall(wall) => wall.count(),
            Structure::Tree(tree) => tree.count(),
            Structure::Listed(quorums) => Some(quorums.sets().len() as u128),
        }
    }

    /// The sizes of the smallest and of the largest quorum that the construction gives.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        match &self.structure {
            Structure::Votes(votes) => votes.summary().1,
            Structure::Grid(grid) => grid.sizes(),
            Structure::Wall(wall) => wall.sizes(),
            Structure::Tree(tree) => tree.sizes(),
            Structure::Plane(plane) if plane.is_whole() => (plane.order() + 1, plane.order() + 1),
            Structure::Plane(_) => self.quorums().map_or((1, self.nodes), |list| list.sizes()),
            Structure::Listed(quorums) => quorums.sizes(),
        }
    }

    /// The system of the minimal quorums alone.
    ///
    /// # Errors
    /// If there are more than [`QUORUMS_MAX`] quorums.
    pub fn minimised(&self) -> Result<Self, BadSystem> {
        let mut system = self.clone();
        if !self.is_minimal() {
            system.structure = Structure::Listed(self.minimal()?);
        }
        Ok(system.with_reduced())
    }

    /// Does the construction promise that no quorum contains another?
    pub(crate) fn is_minimal(&self) -> bool {
        match &self.structure {
            Structure::Votes(_) | Structure::Tree(_) => true,
            Structure::Wall(wall) => wall.is_coterie(),
            Structure::Grid(grid) => grid.is_coterie(),
            Structure::Plane(plane) => plane.is_whole(),
            Structure::Listed(_) => false,
        }
    }

    /// The quorums, once each and without those that contain another: all measures are theirs.
    ///
    /// # Errors
    /// If there are more than [`QUORUMS_MAX`] before.
    pub fn minimal(&self) -> Result<Quorums, BadSystem> {
        if let Some(reduced) = &self.reduced {
            return Ok(reduced.clone());
        }
        let quorums = self.quorums()?;
        Ok(if self.is_minimal() { quorums } else { quorums.minimal() })
    }
}

impl Structure {
    fn new(kind: &Kind, nodes: usize) -> Result<Self, BadSystem> {
        let bad = |text| Err(BadSystem(text));
        Ok(match kind {
            Kind::Singleton => Self::Votes(Votes::singleton(nodes)),
            Kind::All => Self::Votes(Votes::all(nodes)),
            Kind::Majority => Self::Votes(Votes::majority(nodes)),
            Kind::Weighted(weights) => {
                let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
                if total == 0 || total > WEIGHT_MAX {
                    return bad(format!("all weight is {total}, not from 1 to {WEIGHT_MAX}"));
                }
                if total * nodes as u64 > WEIGHING_MAX {
                    let most = WEIGHING_MAX / nodes as u64;
                    return bad(format!("all weight is {total}; of {nodes} nodes, at most {most}"));
                }
                Self::Votes(Votes::weighted(weights.clone()))
            }
            Kind::Grid => Self::Grid(Grid::new(nodes)),
            Kind::ProjectivePlane => match Plane::new(nodes) {
                Some(plane) => Self::Plane(plane),
                None => {
                    let most = plane::NODES_MAX;
                    return bad(format!("no plane is known here for more than {most} nodes"));
                }
            },
            Kind::CrumblingWall(None) => Self::Wall(Wall::logarithmic(nodes)),
            Kind::CrumblingWall(Some(widths)) if widths.contains(&0) => {
                return bad("a row without nodes is no row".to_string());
            }
            Kind::CrumblingWall(Some(widths)) => Self::Wall(Wall::new(widths.clone())),
            Kind::Tree => Self::Tree(Tree::new(nodes)),
            Kind::Nucleus => match listed::nucleus(nodes) {
                Some(quorums) => Self::Listed(quorums),
                None => {
                    return bad(format!("a nucleus has 3, 7, 16, 43 or 136 nodes, not {nodes}"));
                }
            },
            Kind::Custom(sets) => {
                if sets.len() > QUORUMS_MAX {
                    return bad(format!(
                        "{} quorums are more than the {QUORUMS_MAX} that are read",
                        sets.len()
                    ));
                }
                if sets.len() * sets.len() * nodes.div_ceil(128) > COMPARING_MAX {
                    let count = sets.len();
                    return bad(format!(
                        "{count} quorums of {nodes} nodes are too many to compare"
                    ));
                }
                Self::Listed(Quorums::new(nodes, sets.clone())?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str, nodes: usize) -> alloc::string::String {
        let kind: Kind = text.parse().unwrap();
        match System::new(kind, nodes) {
            Ok(system) => system.quorums().unwrap_err().to_string(),
            Err(bad) => bad.to_string(),
        }
    }

    #[test]
    fn what_is_too_large_is_refused_and_not_tried() {
        assert_eq!(
            error("majority", 31),
            "majority of 31 nodes has 300540195 quorums; no more than 10000 are listed"
        );
        assert_eq!(error("grid", 0), "0 is not a number of nodes from 1 to 10000");
        assert_eq!(
            error("projective-plane", 2000),
            "no plane is known here for more than 1057 nodes"
        );
        assert_eq!(error("nucleus", 8), "a nucleus has 3, 7, 16, 43 or 136 nodes, not 8");
        assert_eq!(error("weighted:3,1,1", 4), "weighted:3,1,1 is about 3 nodes, not 4");
        assert_eq!(error("weighted:0,0", 2), "all weight is 0, not from 1 to 1000000");
        assert_eq!(error("crumbling-wall:1,0,2", 3), "a row without nodes is no row");
        assert_eq!(error("custom:1,2;1,5", 3), "custom:1,2;1,5 is about 5 nodes, not 3");
    }
}
