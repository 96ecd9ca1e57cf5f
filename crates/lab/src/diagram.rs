//! The space-time diagram of a run, derived from its trace alone.
//!
//! A [`Picture`] is what there is to be seen, without coordinates: who sent what to whom, when it
//! left and when it arrived (or that it did not), who wanted, was inside or led, who was down, and
//! what a monitor found. [`Picture::svg`] draws it on a true time axis, [`Picture::unicode`] on a
//! terminal. A simulated run, a counterexample and a run of a cluster are the same kind of trace,
//! hence the same picture.

mod inset;
mod labels;
mod lanes;
mod layout;
mod legend;
mod listing;
mod notation;
mod reading;
mod setting;
mod svg;
mod unicode;
mod window;

use std::collections::BTreeMap;
use std::fmt;

use quorate_core::trace::{Header, Record};
use quorate_core::{NodeId, Time, ViewId};

use crate::registry::sight;
use notation::Notation;

pub use listing::listing;
pub use notation::brief;
pub use setting::{Setting, Split};

/// The most arrows that are drawn as SVG: browsers become slow beyond.
pub const ARROWS_MAX: usize = 10_000;
/// The most process lines that are drawn as SVG.
pub const LINES_MAX: usize = 200;

/// The most characters of what a message carries where there is little room.
const SHORT_CHARS_MAX: usize = 14;

/// What there is to be seen in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// How many process lines.
    pub nodes: usize,
    /// When the first thing happened.
    pub start: Time,
    /// When the last thing happened.
    pub end: Time,
    /// The kinds of messages, in the order in which they first occur.
    pub kinds: Vec<String>,
    /// The messages, one per receiver and per copy received, in the order of their sending.
    pub arrows: Vec<Arrow>,
    /// What nodes were doing for a while.
    pub bars: Vec<Bar>,
    /// When nodes were down.
    pub outages: Vec<Outage>,
    /// Who entered which view when, in order.
    pub entries: Vec<Entry>,
    /// Who suspected whom.
    pub suspicions: Vec<Suspicion>,
    /// All that happened, in order; for drawings with one row per event, and for marks.
    pub events: Vec<Event>,
    /// The first violation.
    pub violation: Option<Fault>,
    /// What shows the violation: when and at which nodes.
    pub guilty: Vec<(Time, NodeId)>,
    /// What the run was given.
    pub setting: Setting,
}

/// A node enters a view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Which view.
    pub view: u64,
    /// Who.
    pub node: NodeId,
    /// When.
    pub at: Time,
    /// Who the members are, if that is told.
    pub members: Vec<NodeId>,
    /// The record that tells it, as an index of the records.
    pub by: usize,
}

/// A node takes another one for dead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suspicion {
    /// Who suspects.
    pub node: NodeId,
    /// Whom.
    pub peer: NodeId,
    /// Since when.
    pub from: Time,
    /// Until when, if not to the end.
    pub until: Option<Time>,
    /// The record with which it begins.
    pub begun_by: usize,
    /// The record with which it ends, if it does.
    pub ended_by: Option<usize>,
}

/// A message on its way to one receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrow {
    /// Who sent it.
    pub from: NodeId,
    /// Whom to.
    pub to: NodeId,
    /// The how manieth sending of that node it was.
    pub id: u64,
    /// When it left; none if it had left before the trace began.
    pub sent: Option<Time>,
    /// The record that sends it, as an index of the records.
    pub sent_by: Option<usize>,
    /// What became of it.
    pub fate: Fate,
    /// The record in which it arrives or is lost.
    pub ended_by: Option<usize>,
    /// Its kind, as an index of [`Picture::kinds`].
    pub kind: usize,
    /// All of it.
    pub text: String,
    /// The arrow of which this one is a further copy, as an index of [`Picture::arrows`].
    pub copy_of: Option<usize>,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived.
    Received(Time),
    /// It was lost, or arrived when nobody was there.
    Lost(Time),
    /// It was under way when the trace ended.
    InFlight,
}

/// What a node was doing for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Who.
    pub node: NodeId,
    /// What.
    pub phase: Phase,
    /// Since when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// It was still doing so when the trace ended.
    pub is_open: bool,
    /// The record with which it begins, as an index of the records; none if it did so from the start.
    pub begun_by: Option<usize>,
    /// The record with which it ends, if it does.
    pub ended_by: Option<usize>,
    /// What began it, as the trace says it.
    pub text: String,
    /// The view that it is a member of.
    pub view: Option<ViewId>,
}

/// What a node can be seen to be doing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// It wants to enter.
    Wanting,
    /// It is inside the critical section.
    Inside,
    /// It leads.
    Leading,
    /// It is a member of a group, in a view.
    Member,
    /// It has stopped, and waits for the next view.
    Still,
}

/// What can be seen of something that happens at a node, beside its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// What it changes in what the node is doing.
    pub change: Option<Change>,
    /// What legends call it, if not by the kind of its mark.
    pub word: Option<&'static str>,
    /// The view that begins with it.
    pub view: Option<ViewId>,
    /// It happens so often, and says so little, that it is not drawn.
    pub hushed: bool,
}

/// What changes in what a node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It begins to do this.
    Begin(Phase),
    /// It does nothing that is seen any more.
    End,
    /// It leaves the critical section: if it has never been seen to enter, it was inside from the start.
    Leave,
    /// It is down.
    Down,
    /// It is up again.
    Up,
    /// It takes this node for dead.
    Suspect(NodeId),
    /// It does not any more.
    Trust(NodeId),
}

impl Seen {
    /// Nothing but a change.
    pub(crate) const fn change(change: Change) -> Self {
        Self { change: Some(change), word: None, view: None, hushed: false }
    }

    /// It begins to do this.
    pub(crate) const fn begin(phase: Phase) -> Self {
        Self::change(Change::Begin(phase))
    }

    /// Nothing at all.
    pub(crate) const fn nothing() -> Self {
        Self { change: None, word: None, view: None, hushed: true }
    }

    /// Nothing but a word for legends.
    pub(crate) const fn word(word: &'static str) -> Self {
        Self { change: None, word: Some(word), view: None, hushed: false }
    }
}

/// A time in which a node was down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outage {
    /// Who.
    pub node: NodeId,
    /// When it crashed.
    pub from: Time,
    /// When it recovered, if it did.
    pub until: Option<Time>,
    /// The record with which it crashed, as an index of the records.
    pub begun_by: usize,
    /// The record with which it came up again, if it did.
    pub ended_by: Option<usize>,
}

/// Something that happened at a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at: Time,
    /// Where.
    pub node: NodeId,
    /// What.
    pub what: What,
    /// The steps of the paper that it was.
    pub steps: Vec<String>,
    /// What can be seen of it.
    pub seen: Seen,
}

/// What can happen at a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// Messages left, as indices of [`Picture::arrows`].
    Send(Vec<usize>),
    /// A message arrived.
    Receive(usize),
    /// A message to the node was lost.
    Lose(usize),
    /// Anything else, in the words of the trace.
    Mark(Mark, String),
}

/// What happens at a node without a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mark {
    /// It crashed.
    Crash,
    /// A node does nothing for a while, or goes on.
    Pause,
    /// It came up again.
    Recover,
    /// Its user wished something.
    Wish,
    /// Its user wished something in vain.
    Refused,
    /// Its user was told something.
    Told,
    /// A timer ran out.
    Timer,
    /// A failure detector spoke.
    Detector,
    /// A monitor found fault with what it did.
    Violation,
}

/// A property does not hold any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Since when.
    pub at: Time,
    /// Whose step broke it.
    pub node: NodeId,
    /// Which property.
    pub property: String,
    /// How that shows.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} violated at {:?}: {}", self.property, self.at, self.text)
    }
}

/// The words around a drawing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Style {
    /// Above the drawing.
    pub title: String,
    /// Under the title; [`Picture::summary`] and what the run was given if empty.
    pub caption: String,
    /// How large letters are, in pixels; as usual if not given. The drawing gets no wider with it, so
    /// that it can be read from afar.
    pub font_px: Option<f64>,
}

/// The run does not fit into a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooLarge {
    /// It has so many messages.
    Arrows(usize),
    /// It has so many nodes.
    Lines(usize),
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, what, max) = match self {
            Self::Arrows(count) => (count, "messages", ARROWS_MAX),
            Self::Lines(count) => (count, "nodes", LINES_MAX),
        };
        write!(f, "the run has {count} {what}, and a picture shows at most {max}")
    }
}

impl std::error::Error for TooLarge {}

impl Picture {
    /// Views that were entered, by number and members, and who entered them. Parts of a network that
    /// is cut may have views of the same number.
    fn views(&self) -> BTreeMap<(u64, Vec<NodeId>), Vec<&Entry>> {
        let mut views: BTreeMap<_, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.entries {
            views.entry((entry.view, entry.members.clone())).or_default().push(entry);
        }
        views
    }

    /// Reads a picture out of a trace: what happened, and what the run was given.
    #[must_use]
    pub fn of(header: &Header, records: &[Record]) -> Self {
        let setting = setting::read(header);
        reading::read(sight(&header.algorithm), header.nodes, records, setting)
    }

    /// Marks what shows that a property does not hold: the first time that it does not, and where.
    pub fn accuse(&mut self, fault: Fault, guilty: Vec<(Time, NodeId)>) {
        self.violation = Some(fault);
        self.guilty = guilty;
    }

    /// What happened between two times; all of it if they are not given.
    #[must_use]
    pub fn between(self, from: Option<Time>, to: Option<Time>) -> Self {
        window::between(self, from, to)
    }

    /// Reads a picture out of the trace of a run of so many nodes. What commands and events mean is
    /// known from the family of the algorithm. Records that name other nodes are passed over.
    #[must_use]
    pub fn from_trace(algorithm: &str, nodes: usize, records: &[Record]) -> Self {
        reading::read(sight(algorithm), nodes, records, Setting::default())
    }

    /// Draws it as a self-contained SVG file: process lines from left to right on a true time axis.
    ///
    /// # Errors
    /// If there is more than a picture can hold.
    pub fn svg(&self, style: &Style) -> Result<String, TooLarge> {
        if self.arrows.len() > ARROWS_MAX {
            return Err(TooLarge::Arrows(self.arrows.len()));
        }
        if self.nodes > LINES_MAX {
            return Err(TooLarge::Lines(self.nodes));
        }
        Ok(svg::draw(self, style))
    }

    /// Draws it for a terminal of `width` columns: process lines from top to bottom, one row per
    /// event, and a lane for every message under way.
    #[must_use]
    pub fn unicode(&self, width: usize) -> String {
        unicode::draw(self, width)
    }

    /// The basic numbers of the run, in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let originals = || self.arrows.iter().filter(|arrow| arrow.copy_of.is_none());
        let count = originals().count();
        let mut parts = vec![plural(self.nodes, "node"), plural(count, "message")];
        if self.kinds.len() > 1 {
            let of_kind = |kind| originals().filter(|arrow| arrow.kind == kind).count();
            let kinds = self.kinds.iter().enumerate();
            let kinds: Vec<_> = kinds.map(|(i, name)| format!("{} {name}", of_kind(i))).collect();
            parts[1] += &format!(" ({})", kinds.join(", "));
        }
        let lost = self.arrows.iter().filter(|arrow| matches!(arrow.fate, Fate::Lost(_))).count();
        let flying = self.arrows.iter().filter(|arrow| arrow.fate == Fate::InFlight).count();
        let copies = self.arrows.len() - count;
        for (count, what) in [(lost, "lost"), (copies, "duplicated"), (flying, "still under way")] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        let took = self.end.since(self.start).in_units();
        parts.push(match self.setting.in_steps {
            true => plural(took.round() as usize, "step"),
            false => format!("{} time units", rounded(took, 3)),
        });
        parts.join(" · ")
    }

    /// A message in the notation of papers, with all that it carries.
    #[must_use]
    pub fn written(&self, arrow: &Arrow) -> String {
        let notation = self.notation(arrow);
        notation.with(&notation.full)
    }

    /// A message in the notation of papers, as short as on the arrows of a drawing.
    #[must_use]
    pub fn written_short(&self, arrow: &Arrow) -> String {
        self.notation(arrow).within(SHORT_CHARS_MAX)
    }

    /// An arrow in the notation of papers.
    fn notation(&self, arrow: &Arrow) -> Notation {
        Notation::new(&self.kinds[arrow.kind], &arrow.text)
    }
}

/// Text from a trace, made fit for a terminal: nothing in it moves the cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '·' } else { c }).collect()
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A number with at most so many digits after the point.
fn rounded(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Text between words broken into lines of at most `chars` characters, where words permit.
#[must_use]
pub fn wrap(text: &str, chars: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= chars => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}
