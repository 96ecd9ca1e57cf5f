//! What parent and children of a run in several processes say to each other.
//!
//! The parent speaks over each child's standard input: two lines of JSON, then one for each command.
//! All children speak into one pipe, so that what they say stands there in the order of cause and
//! effect. Others may write between two writes of one child, and only writes up to a certain length
//! are never torn: a longer line goes in pieces, which the parent puts together again.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use quorate_core::trace::Record;
use quorate_core::{Life, NodeId};
use serde::{Deserialize, Serialize};

use crate::Spec;
use crate::trace_file;

/// The first line to a child: who it is.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Who {
    pub(super) spec: Spec,
    pub(super) node: u32,
    pub(super) life: u64,
    /// Where it listens; any port if that is 0.
    pub(super) listen: SocketAddr,
    /// Where it keeps what it persists.
    pub(super) dir: PathBuf,
}

/// The second line to a child: it begins.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Go {
    /// How long ago the run began, in nanoseconds since 1970.
    pub(super) epoch: u64,
    /// Where all nodes listen.
    pub(super) addresses: Vec<SocketAddr>,
}

/// A line from a child.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Word {
    /// It listens here.
    Listening(SocketAddr),
    /// It cannot go on.
    Failed(String),
    /// It took a step.
    Step(Record),
}

impl Word {
    fn read(text: &str, nodes: usize) -> Result<Self, String> {
        if let Some(addr) = text.strip_prefix("listening ") {
            return addr.parse().map(Self::Listening).map_err(|_| format!("no address: {addr}"));
        }
        if let Some(why) = text.strip_prefix("failed ") {
            return Ok(Self::Failed(why.to_owned()));
        }
        trace_file::record(text, nodes).map(Self::Step)
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listening(addr) => write!(f, "listening {addr}"),
            Self::Failed(why) => write!(f, "failed {}", why.replace('\n', " ")),
            Self::Step(record) => record.fmt(f),
        }
    }
}

/// So much text goes in one piece: with what stands before it, it must fit into the 512 bytes that
/// POSIX does not tear; Linux does not tear 4096.
const PIECE: usize = if cfg!(target_os = "linux") { 4000 } else { 440 };
/// The longest word, put together.
const WORD_MAX: usize = 1 << 20;
/// The longest line to a child.
pub(super) const LINE_MAX: u64 = 64 << 20;

/// Writes a word of this life of a node, each piece with one write.
pub(super) fn write(out: &mut impl Write, node: NodeId, life: Life, word: &Word) -> io::Result<()> {
    let text = word.to_string();
    let mut rest = text.as_str();
    loop {
        let most = PIECE.min(rest.len());
        let end = (0..=most).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(0);
        let piece = &rest[..end];
        rest = &rest[piece.len()..];
        let mark = if rest.is_empty() { '.' } else { '+' };
        out.write_all(format!("{node} {} {mark}{piece}\n", life.0).as_bytes())?;
        out.flush()?;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// Puts words together from the pieces of all nodes.
pub(super) struct Words<R> {
    input: R,
    nodes: usize,
    /// What has begun and not ended, by node: the life, and its pieces so far.
    begun: BTreeMap<u32, (u64, String)>,
}

impl<R: BufRead> Words<R> {
    pub(super) fn new(input: R, nodes: usize) -> Self {
        Self { input, nodes, begun: BTreeMap::new() }
    }

    /// The next word, and whose it is; none when nobody is left to speak.
    pub(super) fn next(&mut self) -> io::Result<Option<(u32, Word)>> {
        loop {
            let mut line = String::new();
            if self.input.by_ref().take(WORD_MAX as u64).read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if let Some(word) = self.piece(line.trim_end_matches('\n')).map_err(garbled)? {
                return Ok(Some(word));
            }
        }
    }

    fn piece(&mut self, line: &str) -> Result<Option<(u32, Word)>, String> {
        let parts: Vec<_> = line.splitn(3, ' ').collect();
        let [node, life, text] = parts[..] else { return Err(format!("no piece: {line}")) };
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("no number: {text}"));
        let (node, life) = (number(node)? as u32, number(life)?);
        let begun = self.begun.entry(node).or_insert((life, String::new()));
        if begun.0 != life {
            // The earlier life was ended in the middle of a word.
            *begun = (life, String::new());
        }
        if let Some(piece) = text.strip_prefix('+') {
            begun.1.push_str(piece);
            return if begun.1.len() > WORD_MAX { Err("too long".to_owned()) } else { Ok(None) };
        }
        let last = text.strip_prefix('.').ok_or_else(|| format!("no piece: {line}"))?;
        let (_, mut word) = self.begun.remove(&node).unwrap_or_default();
        word.push_str(last);
        Word::read(&word, self.nodes).map(|word| Some((node, word)))
    }
}

fn garbled(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a node's process said {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_of_several_are_put_together_and_those_of_the_dead_are_not() {
        let [one, two] = [0, 1].map(NodeId::at);
        let words = ["ä".repeat(3 * PIECE), "short".to_owned()].map(Word::Failed);
        let pieces = |node, life, word| {
            let mut out = Vec::new();
            write(&mut out, node, Life(life), word).unwrap();
            let text = String::from_utf8(out).unwrap();
            text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>()
        };
        let (long, short) = (pieces(one, 0, &words[0]), pieces(two, 0, &words[1]));
        assert!(long.len() > 3 && short.len() == 1);
        let killed = &pieces(two, 0, &words[0])[..2];
        let all = [&long[..1], &short, &long[1..], killed, &pieces(two, 1, &words[1])].concat();
        let text = all.concat();
        let mut heard = Words::new(text.as_bytes(), 2);
        let expected = [(2, &words[1]), (1, &words[0]), (2, &words[1])];
        for (node, word) in expected {
            assert_eq!(heard.next().unwrap(), Some((node, word.clone())));
        }
        assert_eq!(heard.next().unwrap(), None);
        assert!(Words::new(&b"1 0 ?\n"[..], 2).next().is_err());
        assert!(Words::new(&b"1 0 .noise\n"[..], 2).next().is_err());
    }
}
