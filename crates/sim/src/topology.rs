//! Topologies by name, by size and by file.

use std::fmt;
use std::str::FromStr;

use quorate_core::{BadTopology, NodeId, Topology};

use crate::{Draw, stream};

/// A topology as named on the command line, before its size is known.
#[derive(Clone, PartialEq, Debug)]
pub enum Named {
    /// Everybody linked with everybody.
    Complete,
    /// A one-way ring.
    Ring,
    /// A two-way ring.
    TwoWayRing,
    /// One after the other.
    Path,
    /// Node 1 in the middle.
    Star,
    /// A tree in which everybody has up to so many children, filled level by level.
    Tree(usize),
    /// A random tree, all labelled trees equally likely.
    RandomTree,
    /// A grid as square as the number allows.
    Grid,
    /// A grid whose rows and columns are closed to rings.
    Torus,
    /// A hypercube; the number of nodes must be a power of two.
    Hypercube,
    /// A random tree with further random links, so that each node has about so many.
    Random(f64),
}

/// The names as shown in help.
pub const NAMES: &str = "complete, ring, two-way-ring, path, star, binary-tree, tree:K, random-tree, \
                         grid, torus, hypercube, random[:DEGREE], file:PATH";

impl FromStr for Named {
    type Err = BadTopology;

    fn from_str(text: &str) -> Result<Self, BadTopology> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let named = match (name, parameter) {
            ("complete", None) => Self::Complete,
            ("ring", None) => Self::Ring,
            ("two-way-ring", None) => Self::TwoWayRing,
            ("path", None) => Self::Path,
            ("star", None) => Self::Star,
            ("binary-tree", None) => Self::Tree(2),
            ("tree", Some(children)) => match children.parse() {
                Ok(children @ 1..) => Self::Tree(children),
                _ => return Err(BadTopology(format!("{children} is not a number of children"))),
            },
            ("random-tree", None) => Self::RandomTree,
            ("grid", None) => Self::Grid,
            ("torus", None) => Self::Torus,
            ("hypercube", None) => Self::Hypercube,
            ("random", None) => Self::Random(4.0),
            ("random", Some(degree)) => match degree.parse::<f64>() {
                Ok(degree) if (1.0..1e6).contains(&degree) => Self::Random(degree),
                _ => return Err(BadTopology(format!("{degree} is not a mean number of links"))),
            },
            _ => return Err(BadTopology(format!("{text} is none of {NAMES}"))),
        };
        Ok(named)
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Ring => f.write_str("ring"),
            Self::TwoWayRing => f.write_str("two-way-ring"),
            Self::Path => f.write_str("path"),
            Self::Star => f.write_str("star"),
            Self::Tree(children) => write!(f, "tree:{children}"),
            Self::RandomTree => f.write_str("random-tree"),
            Self::Grid => f.write_str("grid"),
            Self::Torus => f.write_str("torus"),
            Self::Hypercube => f.write_str("hypercube"),
            Self::Random(degree) => write!(f, "random:{degree}"),
        }
    }
}

impl Named {
    /// The topology for so many nodes; random ones are drawn from the seed.
    ///
    /// # Errors
    /// If there is none of this size.
    pub fn build(&self, count: usize, seed: u64) -> Result<Topology, BadTopology> {
        let mut draw = Draw::new(seed, stream::TOPOLOGY);
        let links = match self {
            Self::Complete => return Ok(Topology::complete(count)),
            Self::Ring => return Ok(Topology::ring(count)),
            Self::TwoWayRing => ring(count),
            Self::Path => (1..count).map(|i| (i - 1, i)).collect(),
            Self::Star => (1..count).map(|i| (0, i)).collect(),
            Self::Tree(children) => (1..count).map(|i| ((i - 1) / children, i)).collect(),
            Self::RandomTree => random_tree(count, &mut draw),
            Self::Grid => grid(count, false)?,
            Self::Torus => grid(count, true)?,
            Self::Hypercube => hypercube(count)?,
            Self::Random(degree) => random(count, *degree, &mut draw),
        };
        let links: Vec<_> =
            links.into_iter().map(|(a, b)| (NodeId::at(a), NodeId::at(b))).collect();
        Topology::undirected(count, &links)
    }
}

/// Links by position, counted from 0.
type Links = Vec<(usize, usize)>;

fn ring(count: usize) -> Links {
    match count {
        0 | 1 => Vec::new(),
        2 => vec![(0, 1)],
        _ => (0..count).map(|i| (i, (i + 1) % count)).collect(),
    }
}

/// From a random sequence, after Prüfer: every labelled tree is as likely as any other.
fn random_tree(count: usize, draw: &mut Draw) -> Links {
    if count < 3 {
        return (1..count).map(|i| (0, i)).collect();
    }
    let code: Vec<usize> = (2..count).map(|_| draw.below(count as u64) as usize).collect();
    let mut degree = vec![1u32; count];
    for &node in &code {
        degree[node] += 1;
    }
    // The smallest leaf, found in linear time: a new leaf below the pointer is used at once.
    let mut links = Links::with_capacity(count - 1);
    let mut pointer = degree.iter().position(|&d| d == 1).expect("a tree has leaves");
    let mut leaf = pointer;
    for &node in &code {
        links.push((leaf, node));
        degree[node] -= 1;
        if degree[node] == 1 && node < pointer {
            leaf = node;
        } else {
            pointer +=
                1 + degree[pointer + 1..].iter().position(|&d| d == 1).expect("a leaf is left");
            leaf = pointer;
        }
    }
    links.push((leaf, count - 1));
    links
}

/// Rows and columns, as equal as the number allows.
fn sides(count: usize) -> (usize, usize) {
    let rows =
        (1..=count).take_while(|r| r * r <= count).filter(|r| count.is_multiple_of(*r)).last();
    rows.map_or((1, count), |rows| (rows, count / rows))
}

fn grid(count: usize, closed: bool) -> Result<Links, BadTopology> {
    let (rows, columns) = sides(count);
    if count > 3 && rows == 1 {
        let what = if closed { "torus" } else { "grid" };
        return Err(BadTopology(format!("{count} nodes make no {what}: {count} is prime")));
    }
    let mut links = Links::new();
    for row in 0..rows {
        for column in 0..columns {
            let here = row * columns + column;
            if column + 1 < columns {
                links.push((here, here + 1));
            } else if closed && columns > 2 {
                links.push((here, row * columns));
            }
            if row + 1 < rows {
                links.push((here, here + columns));
            } else if closed && rows > 2 {
                links.push((here, column));
            }
        }
    }
    Ok(links)
}

fn hypercube(count: usize) -> Result<Links, BadTopology> {
    if !count.is_power_of_two() {
        return Err(BadTopology(format!("{count} nodes make no hypercube: not a power of two")));
    }
    let bits = (0..count.trailing_zeros()).map(|bit| 1 << bit);
    Ok((0..count)
        .flat_map(|node| bits.clone().map(move |bit| (node, node ^ bit)))
        .filter(|(a, b)| a < b)
        .collect())
}

fn random(count: usize, degree: f64, draw: &mut Draw) -> Links {
    let mut links = random_tree(count, draw);
    let possible = count * count.saturating_sub(1) / 2;
    let wanted = ((count as f64 * degree / 2.0) as usize).clamp(links.len(), possible);
    let mut known: std::collections::BTreeSet<_> =
        links.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
    while links.len() < wanted {
        let a = draw.below(count as u64) as usize;
        let b = draw.below(count as u64) as usize;
        if a != b && known.insert((a.min(b), a.max(b))) {
            links.push((a, b));
        }
    }
    links
}

/// Reads two-way links, one per line: two node numbers, separated by space or `-`. A line
/// `directed` makes all links one-way. `#` starts a comment.
///
/// # Errors
/// The first line that says something else, or what makes it no topology.
pub fn read(text: &str, count: Option<usize>) -> Result<Topology, BadTopology> {
    let mut links = Vec::new();
    let mut directed = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        if line == "directed" {
            directed = true;
            continue;
        }
        let ends: Vec<Option<NodeId>> = line
            .split(|c: char| c == '-' || c.is_whitespace())
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().ok().and_then(NodeId::new))
            .collect();
        let [Some(a), Some(b)] = ends[..] else {
            let number = number + 1;
            let text = format!("line {number}: {line:?} is not a link such as 1 2");
            return Err(BadTopology(text));
        };
        links.push((a, b));
    }
    let named = links.iter().map(|&(a, b)| a.max(b).index() + 1).max().unwrap_or(0);
    let count = count.unwrap_or(named);
    if directed { Topology::directed(count, &links) } else { Topology::undirected(count, &links) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(name: &str, count: usize) -> Topology {
        name.parse::<Named>().unwrap().build(count, 1).unwrap()
    }

    #[test]
    fn every_topology_is_connected_and_of_its_shape() {
        for name in ["complete", "two-way-ring", "path", "star", "binary-tree", "tree:3"] {
            for count in 1..20 {
                let topology = build(name, count);
                assert!(topology.is_connected() && topology.is_two_way(), "{name} {count}");
            }
        }
        for count in 1..30 {
            assert!(build("random-tree", count).is_tree(), "{count}");
            assert!(build("random:3", count).is_connected(), "{count}");
            assert!(build("tree:4", count).is_tree(), "{count}");
        }
        assert!(build("ring", 7).is_ring() && build("two-way-ring", 7).is_two_way_ring());
    }

    #[test]
    fn numbers_of_links_are_as_in_the_books() {
        let edges = |name, count| build(name, count).links() / 2;
        assert_eq!(edges("grid", 12), 3 * 3 + 2 * 4);
        assert_eq!(edges("torus", 12), 24);
        assert_eq!(edges("torus", 4), 4);
        assert_eq!(edges("hypercube", 16), 32);
        assert_eq!(edges("random:4", 100), 200);
        assert_eq!(edges("complete", 10), 45);
    }

    #[test]
    fn what_cannot_be_built_is_said() {
        let error = |name: &str, count| {
            name.parse::<Named>().and_then(|named| named.build(count, 1)).unwrap_err().to_string()
        };
        assert_eq!(error("hypercube", 6), "6 nodes make no hypercube: not a power of two");
        assert_eq!(error("grid", 7), "7 nodes make no grid: 7 is prime");
        assert!(error("rung", 7).starts_with("rung is none of complete, ring"));
        assert_eq!(error("tree:0", 7), "0 is not a number of children");
    }

    #[test]
    fn lists_of_links_are_read() {
        let topology = read("1 2\n2-3 # middle\n\n3\t4\n", None).unwrap();
        assert_eq!((topology.count(), topology.is_tree()), (4, true));
        assert!(read("directed\n1 2\n2 3\n3 1", None).unwrap().is_ring());
        let error = |text| read(text, Some(3)).unwrap_err().to_string();
        assert_eq!(error("1 2\n2 x"), "line 2: \"2 x\" is not a link such as 1 2");
        assert_eq!(error("1 2\n2 4"), "link 2-4 leads beyond the 3 nodes");
        assert_eq!(error("1 2\n2 1"), "link 1-2 stands twice");
    }
}
