//! A small live view: text that is drawn over itself on a terminal.

use std::io::{IsTerminal as _, Write as _};

/// Where a text is shown again and again.
#[derive(Debug)]
pub(crate) struct Screen {
    /// How many lines stand there now.
    lines: usize,
}

impl Screen {
    /// The terminal, if standard output is one.
    pub(crate) fn of_terminal() -> Option<Self> {
        std::io::stdout().is_terminal().then_some(Self { lines: 0 })
    }

    /// Shows a text in the place of the last one.
    pub(crate) fn draw(&mut self, text: &str) {
        let (width, height) = terminal_size::terminal_size()
            .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
        let (drawn, lines) = frame(text, self.lines, (width, height));
        self.lines = lines;
        let mut out = anstream::stdout();
        // A terminal that is gone is noticed by the signal that it sends.
        let _ = out.write_all(drawn.as_bytes()).and_then(|()| out.flush());
    }
}

/// What is written to put a text in the place of so many lines, on a terminal of this size; and how many
/// lines it takes. What does not fit is cut: lines that wrap could not be counted.
fn frame(text: &str, before: usize, (width, height): (usize, usize)) -> (String, usize) {
    let room = height.saturating_sub(1).max(1);
    let all: Vec<&str> = text.lines().collect();
    let shown = if all.len() > room { &all[..room - 1] } else { &all[..] };
    let mut drawn = String::new();
    if before > 0 {
        drawn += &format!("\x1b[{before}A\r");
    }
    for line in shown {
        let line: String = line.chars().take(width).collect();
        drawn += &format!("{line}\x1b[K\n");
    }
    let mut lines = shown.len();
    if lines < all.len() {
        drawn += &format!("… {} more lines\x1b[K\n", all.len() - lines);
        lines += 1;
    }
    // Below is what is left of a longer text.
    (drawn + "\x1b[J", lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_drawn_over_the_last_one_and_cut_to_the_terminal() {
        let (first, lines) = frame("one\ntwo", 0, (80, 24));
        assert_eq!((first.as_str(), lines), ("one\x1b[K\ntwo\x1b[K\n\x1b[J", 2));
        let (second, lines) = frame("a line that is long", lines, (6, 24));
        assert_eq!((second.as_str(), lines), ("\x1b[2A\ra line\x1b[K\n\x1b[J", 1));
        let (third, lines) = frame("1\n2\n3\n4\n5", 0, (80, 4));
        assert_eq!(lines, 3);
        assert!(third.ends_with("… 3 more lines\x1b[K\n\x1b[J"), "{third:?}");
    }
}
