//! From the sentence of an oracle back to the events that it speaks of.

use quorate_core::trace::{Happening, Outcome, Record};
use quorate_core::{NodeId, Violation};

use super::{Finding, Witness};

/// The most events that are shown.
const SHOWN_MAX: usize = 20;

/// A violation with the events up to its line that show it.
pub(super) fn show(records: &[Record], violation: Violation, line: usize) -> Finding {
    let Violation { property, text } = violation;
    let named = Named::by(&text);
    let mut evidence: Vec<Witness> = Vec::new();
    for (record, at) in records.iter().zip(2..=line) {
        let witnesses = said(record).map(|text| Witness {
            line: at,
            at: record.at,
            node: record.node,
            text: text.to_owned(),
        });
        evidence
            .extend(witnesses.filter(|it| it.line == line || named.concerns(it.node, &it.text)));
    }
    let left_off = evidence.len().saturating_sub(SHOWN_MAX);
    evidence.drain(..left_off);
    Finding { property, text, line, evidence, left_off }
}

/// What was wished, told or happened, in the words of the trace.
fn said(record: &Record) -> impl Iterator<Item = &str> {
    let input = match &record.input {
        Happening::Command(text) => Some(text.as_str()),
        Happening::Crash => Some("crash"),
        Happening::Recover => Some("recover"),
        _ => None,
    };
    let told = record.effects.iter().filter_map(|effect| match effect {
        Outcome::Emit(text) => Some(text.as_str()),
        _ => None,
    });
    input.into_iter().chain(told)
}

/// What a sentence names.
#[derive(PartialEq, Eq, Debug, Default)]
struct Named<'a> {
    nodes: Vec<u32>,
    /// Messages (`1:7`) and stamps (`3.2`).
    things: Vec<&'a str>,
    views: Vec<&'a str>,
}

impl<'a> Named<'a> {
    /// By `node 1`, `nodes 1, 2 and 3`, `view 4`, `1:7` and `3.2`.
    fn by(sentence: &'a str) -> Self {
        let mut named = Self::default();
        let mut last = "";
        for word in sentence.split_whitespace() {
            let word = word.trim_end_matches([',', '.', ';', ':']);
            match (last, word.parse()) {
                ("node" | "nodes", Ok(number)) => named.nodes.push(number),
                ("view", Ok(_)) => named.views.push(word),
                _ if is_thing(word) => named.things.push(word),
                _ => {}
            }
            let goes_on = word == "and" || word.parse::<u32>().is_ok();
            if !(last == "nodes" && goes_on) {
                last = word;
            }
        }
        named
    }

    /// Does an event at this node have to do with it?
    fn concerns(&self, node: NodeId, text: &str) -> bool {
        let here = self.nodes.contains(&node.number());
        if self.things.is_empty() && self.views.is_empty() {
            return here || self.nodes.is_empty();
        }
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || ".:".contains(c)));
        match (words.next(), words.next()) {
            (Some("crash" | "recover"), _) => here,
            (Some("install"), Some(view)) => self.views.contains(&view),
            (Some("multicast"), Some(number)) => {
                let id = format!("{node}:{number}");
                self.things.contains(&id.as_str())
            }
            (_, second) => second.into_iter().chain(words).any(|word| self.things.contains(&word)),
        }
    }
}

/// Two numbers with `:` or `.` between them.
fn is_thing(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once([':', '.']).is_some_and(|(one, other)| is_number(one) && is_number(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_nodes_messages_stamps_and_views() {
        let named = |nodes: &[u32], things, views| Named { nodes: nodes.into(), things, views };
        let by = Named::by;
        let sentence = "node 3 delivers 1:1 before 2:1, others after it";
        assert_eq!(by(sentence), named(&[3], vec!["1:1", "2:1"], vec![]));
        let sentence = "the wishes of nodes 1, 2, 30 and others will never be granted";
        assert_eq!(by(sentence), named(&[1, 2, 30], vec![], vec![]));
        assert_eq!(by("nodes 1 and 2 both lead in the end"), named(&[1, 2], vec![], vec![]));
        let sentence = "the wish 3.2 is granted after the younger 5.1";
        assert_eq!(by(sentence), named(&[], vec!["3.2", "5.1"], vec![]));
        let sentence = "node 2 enters view 3 from view 1, others from view 2";
        assert_eq!(by(sentence), named(&[2], vec![], vec!["3", "1", "2"]));
    }

    #[test]
    fn events_concern_what_they_speak_of() {
        let crossing = Named::by("node 3 delivers 1:1 before 2:1, others after it");
        let concerns = |number: usize, text| crossing.concerns(NodeId::at(number - 1), text);
        assert!(concerns(1, "multicast 1 total") && concerns(2, "multicast 1 total uniform"));
        assert!(!concerns(3, "multicast 1 total") && !concerns(1, "multicast 11 total"));
        assert!(concerns(2, "deliver 1:1") && !concerns(2, "deliver 1:11"));
        assert!(concerns(3, "crash") && !concerns(1, "crash"));
        let entering = Named::by("node 2 enters while node 1 is inside");
        assert!(entering.concerns(NodeId::at(0), "Acquire"));
        assert!(!entering.concerns(NodeId::at(2), "Acquire"));
        let wish = Named::by("the wish 3.2 is granted after the younger 5.1");
        assert!(wish.concerns(NodeId::at(1), "Granted(Some(3.2))"));
        assert!(!wish.concerns(NodeId::at(1), "Granted(Some(13.2))"));
    }
}
