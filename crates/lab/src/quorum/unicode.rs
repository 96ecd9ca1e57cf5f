//! Quorum systems on the terminal.

use quorate_core::NodeId;
use quorate_quorum::{Structure, System, Tree};

use super::layout::{Shown, shown, weights};
use super::shortened;

/// The most nodes that are drawn.
const NODES_MAX: usize = 400;
/// Marks of nodes by the quorums they are in, of the first two that are shown.
const MARKS: [char; 4] = [' ', '●', '○', '◉'];

/// Draws a system: nodes in their structure, those of two quorums marked.
///
/// # Errors
/// If there are too many nodes.
pub fn unicode(system: &System) -> Result<String, String> {
    let nodes = system.nodes();
    if nodes > NODES_MAX {
        return Err(format!("{nodes} nodes are more than the {NODES_MAX} that are drawn"));
    }
    let shown: Vec<Shown> = shown(system).into_iter().take(2).collect();
    let cells = Cells { digits: nodes.to_string().len(), shown };
    let mut lines = match system.structure() {
        Structure::Grid(grid) => cells.rows(&rows(nodes, grid.width()), 0),
        Structure::Wall(wall) => {
            let widest = wall.widths().iter().copied().max().unwrap_or(1);
            let mut first = 0;
            let row = |&width: &usize| {
                let row: Vec<usize> = (first..first + width).collect();
                first += width;
                row
            };
            cells.rows(&wall.widths().iter().map(row).collect::<Vec<_>>(), widest)
        }
        Structure::Tree(_) => cells.tree(nodes),
        Structure::Plane(plane) if plane.order() > 1 => cells.plane(nodes, plane.order()),
        Structure::Plane(_) | Structure::Votes(_) | Structure::Listed(_) => {
            cells.rows(&rows(nodes, 10), 0)
        }
    };
    lines.extend(cells.legend());
    if let Some(weights) = weights(system) {
        let weights: Vec<_> = weights.iter().map(ToString::to_string).collect();
        lines.push(format!("  weights: {}", weights.join(",")));
    }
    let lines: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
    Ok(lines.join("\n"))
}

fn rows(nodes: usize, width: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..nodes).collect();
    all.chunks(width).map(<[usize]>::to_vec).collect()
}

struct Cells {
    /// How many digits the largest number has.
    digits: usize,
    shown: Vec<Shown>,
}

impl Cells {
    /// How wide a cell is, with a mark before it and a space behind.
    const fn width(&self) -> usize {
        self.digits + 3
    }

    fn mark(&self, i: usize) -> char {
        let within = |shown: Option<&Shown>| {
            usize::from(shown.is_some_and(|shown| shown.set.contains(NodeId::at(i))))
        };
        MARKS[within(self.shown.first()) + 2 * within(self.shown.get(1))]
    }

    fn cell(&self, i: usize) -> String {
        format!("{} {:<digits$} ", self.mark(i), i + 1, digits = self.digits)
    }

    /// Rows of cells; centred as if the widest one had so many.
    fn rows(&self, rows: &[Vec<usize>], widest: usize) -> Vec<String> {
        let row = |row: &Vec<usize>| {
            let left = widest.saturating_sub(row.len()) * self.width() / 2;
            let cells: String = row.iter().map(|&i| self.cell(i)).collect();
            format!("  {}{cells}", " ".repeat(left))
        };
        rows.iter().map(row).collect()
    }

    /// The square of points, and beside it those at infinity.
    fn plane(&self, nodes: usize, order: usize) -> Vec<String> {
        let square = order * order;
        let row = |row: usize| {
            let inner = (row * order..(row + 1) * order).filter(|&i| row < order && i < nodes);
            let mut line: String = inner.map(|i| self.cell(i)).collect();
            let pad = (order * self.width()).saturating_sub(line.chars().count());
            line.push_str(&" ".repeat(pad));
            let beyond = Some(square + row).filter(|&i| i < nodes);
            line.push_str(&beyond.map_or(String::new(), |i| format!(" │ {}", self.cell(i))));
            format!("  {line}")
        };
        (0..=order).map(row).collect()
    }

    /// Level by level, every parent above the middle of its children.
    fn tree(&self, nodes: usize) -> Vec<String> {
        let levels = Tree::level(NodeId::at(nodes - 1)) + 1;
        let middle = |i: usize| {
            let level = Tree::level(NodeId::at(i));
            let step = self.width() << (levels - 1 - level);
            let among = i + 1 - (1 << level);
            2 + among * step + step / 2
        };
        let mut lines = Vec::new();
        for level in 0..levels {
            let first = (1 << level) - 1;
            let here = first..(2 * first + 1).min(nodes);
            let mut names = Line::default();
            let mut branches = Line::default();
            for i in here {
                names.put(middle(i) - 2 - (self.digits - 1) / 2, &self.cell(i));
                let children: Vec<_> = [2 * i + 1, 2 * i + 2]
                    .map(|child| (child < nodes).then(|| middle(child)))
                    .into();
                match children[..] {
                    [Some(left), Some(right)] => {
                        let at = middle(i);
                        let (a, b) = (at - left, right - at);
                        let text = format!(
                            "┌{}┴{}┐",
                            "─".repeat(a.saturating_sub(1)),
                            "─".repeat(b.saturating_sub(1))
                        );
                        branches.put(left, &text);
                    }
                    [Some(left), None] => {
                        let text =
                            format!("┌{}┘", "─".repeat((middle(i) - left).saturating_sub(1)));
                        branches.put(left, &text);
                    }
                    _ => {}
                }
            }
            lines.push(names.0);
            if !branches.0.is_empty() {
                lines.push(branches.0);
            }
        }
        lines
    }

    fn legend(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        for (shown, mark) in self.shown.iter().zip(&MARKS[1..]) {
            lines.push(format!("  {mark} {}: {}", shown.text, shortened(&shown.set)));
        }
        if self.shown.len() > 1 {
            lines.push(format!("  {} both", MARKS[3]));
        }
        lines
    }
}

/// A line that is filled from left to right.
#[derive(Default)]
struct Line(String);

impl Line {
    fn put(&mut self, column: usize, text: &str) {
        let pad = column.saturating_sub(self.0.chars().count());
        self.0.push_str(&" ".repeat(pad));
        self.0.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(name: &str, nodes: usize) -> String {
        unicode(&System::new(name.parse().unwrap(), nodes).unwrap()).unwrap()
    }

    #[test]
    fn structures_are_seen() {
        let grid = "  ● 1 ◉ 2 ● 3\n  ◉ 4 ○ 5 ○ 6\n  ● 7 ○ 8\n";
        assert!(drawn("grid", 8).starts_with(grid), "{}", drawn("grid", 8));
        let tree =
            "        ◉ 1\n      ┌───┴───┐\n    ● 2     ○ 3\n    ┌─┴─┐   ┌─┴─┐\n    4 ● 5 ○ 6   7";
        assert!(drawn("tree", 7).starts_with(tree), "{}", drawn("tree", 7));
        let wall = "      ● 1\n    ◉ 2 ○ 3\n  ● 4 ○ 5   6\n";
        assert!(drawn("crumbling-wall:1,2,3", 6).starts_with(wall));
        assert!(drawn("projective-plane", 13).contains("  ● 1  ○ 2    3   │   10\n"));
        assert!(unicode(&System::new("majority".parse().unwrap(), 500).unwrap()).is_err());
    }
}
