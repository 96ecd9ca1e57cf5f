//! The drawing for a terminal: time runs down, one row per event, what happened written beside it.

use std::fmt::Write;

use quorate_core::NodeId;

use super::lanes::Lanes;
use super::notation::brief;
use super::reading::{HOLDS_FROM_START, MEMBER_FROM_START};
use super::{Change, Event, Mark, Phase, Picture, What, printable, rounded, wrap};

/// The least number of columns for the time.
const LEFT_MIN: usize = 6;
/// Columns kept for the words.
const WORDS_MIN: usize = 26;
/// The same beside nodes without lanes.
const WORDS_MIN_NARROW: usize = 18;
/// The most characters of what a message carries.
const CONTENT_CHARS_MAX: usize = 40;
/// The most rows for the words of one event.
const ROWS_MAX: usize = 4;
const LANE: char = '┊';

pub(super) fn draw(picture: &Picture, width: usize) -> String {
    let times = picture.events.iter().map(|event| time(event).len() + 2);
    let left = times.max().unwrap_or(0).max(LEFT_MIN);
    let lanes = Lanes::new(picture, left, width.saturating_sub(WORDS_MIN))
        .or_else(|| Lanes::narrow(picture, left, width.saturating_sub(WORDS_MIN_NARROW)));
    let mut drawing = Drawing {
        picture,
        lanes,
        left,
        width: width.max(left + WORDS_MIN_NARROW),
        doing: vec![Doing::Other; picture.nodes],
        under_way: Vec::new(),
        out: String::new(),
    };
    drawing.boot();
    drawing.paragraph(&picture.summary());
    drawing.paragraph(&picture.setting.words);
    drawing.note();
    drawing.head();
    let mut before = None;
    for (number, event) in picture.events.iter().enumerate() {
        let is_new = before != Some(event.at);
        if is_new && before.is_some() {
            drawing.pause();
        }
        before = Some(event.at);
        drawing.event(number, event, is_new);
    }
    drawing.foot();
    drawing.out
}

/// What a node is doing, as its column shows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Other,
    Down,
    Seen(Phase),
}

impl Doing {
    const fn sign(self) -> char {
        match self {
            Self::Other => '│',
            Self::Down => ' ',
            Self::Seen(Phase::Wanting) => '░',
            Self::Seen(Phase::Inside) => '█',
            Self::Seen(Phase::Leading) => '★',
            Self::Seen(Phase::Member | Phase::Still) => '▒',
        }
    }
}

struct Drawing<'a> {
    picture: &'a Picture,
    lanes: Option<Lanes>,
    left: usize,
    width: usize,
    doing: Vec<Doing>,
    /// Arrows with a lane, from sending to last arrival.
    under_way: Vec<usize>,
    out: String,
}

impl Drawing<'_> {
    /// Who is inside or a member from the start is known from its bar only.
    fn boot(&mut self) {
        let start = self.picture.start;
        let begins = |node: NodeId| {
            let first = self.picture.events.iter().take_while(|event| event.at == start);
            first.filter(move |event| event.node == node).any(|event| event.seen.change.is_some())
        };
        let from_start = [HOLDS_FROM_START, MEMBER_FROM_START];
        let mut before: Vec<(NodeId, Doing)> = Vec::new();
        for bar in self.picture.bars.iter().filter(|bar| bar.phase != Phase::Still) {
            let is_before = bar.from == start && !begins(bar.node);
            if is_before || from_start.contains(&bar.text.as_str()) {
                before.push((bar.node, Doing::Seen(bar.phase)));
            }
        }
        let outages = self.picture.outages.iter().filter(|outage| outage.from == start);
        let down = outages.filter(|outage| !begins(outage.node));
        before.extend(down.map(|outage| (outage.node, Doing::Down)));
        for (node, doing) in before {
            self.doing[node.index()] = doing;
        }
    }

    /// Says so if the columns are not what they usually are.
    fn note(&mut self) {
        match &self.lanes {
            Some(lanes) if lanes.is_narrow => self.paragraph(
                "narrow: a stroke when a message is sent, another when it arrives; a wider terminal \
                 shows what is under way",
            ),
            Some(_) => {}
            None => {
                let (nodes, width) = (self.picture.nodes, self.width);
                self.paragraph(&format!(
                    "a list: {nodes} nodes have no columns of their own in a terminal of {width}"
                ));
            }
        }
    }

    /// The numbers of the nodes: side by side, or from top to bottom where they are too close.
    fn head(&mut self) {
        let Some(lanes) = &self.lanes else { return };
        let digits = self.picture.nodes.to_string().len();
        let columns: Vec<_> = lanes.nodes().collect();
        let is_upright = columns.windows(2).any(|pair| pair[1].1 - pair[0].1 <= digits);
        let mut rows = vec![vec![' '; lanes.width]; if is_upright { digits } else { 1 }];
        for (node, column) in columns {
            let number = node.to_string();
            let number = if is_upright { format!("{number:>digits$}") } else { number };
            for (i, digit) in number.chars().enumerate() {
                let (row, column) = if is_upright { (i, column) } else { (0, column + i) };
                match rows[row].get_mut(column) {
                    Some(place) => *place = digit,
                    None => rows[row].push(digit),
                }
            }
        }
        for (i, row) in rows.into_iter().enumerate() {
            let time = if i == 0 { "time" } else { "" };
            self.line(time, row.into_iter().collect());
        }
    }

    /// A row between two instants: who does what, and what is under way.
    fn pause(&mut self) {
        if self.lanes.is_some() {
            let row = self.row();
            self.line("", row.into_iter().collect());
        }
    }

    fn event(&mut self, number: usize, event: &Event, is_new: bool) {
        self.change(event.node, event.seen.change);
        let mut row = self.row();
        match &event.what {
            What::Send(arrows) => self.send(&mut row, event.node, arrows),
            What::Receive(arrow) => self.arrive(&mut row, number, *arrow, event.node),
            What::Lose(arrow) => self.lose(&mut row, number, *arrow),
            What::Mark(mark, _) => self.mark(&mut row, event, *mark),
        }
        let room = self.width.saturating_sub(row.len() + 4);
        let mut words = wrap(&self.words(event), room);
        if words.len() > ROWS_MAX {
            words.truncate(ROWS_MAX);
            words[ROWS_MAX - 1] += " …";
        }
        for (i, words) in words.iter().enumerate() {
            let row = if i == 0 { row.clone() } else { self.row() };
            let row: String = row.into_iter().collect();
            let time = if is_new && i == 0 { time(event) } else { String::new() };
            let indent = if i == 0 { "  " } else { "    " };
            self.line(&time, format!("{row}{indent}{words}"));
        }
    }

    fn change(&mut self, node: NodeId, change: Option<Change>) {
        let doing = &mut self.doing[node.index()];
        match change {
            Some(Change::Begin(phase)) => *doing = Doing::Seen(phase),
            Some(Change::End | Change::Leave | Change::Up) => *doing = Doing::Other,
            Some(Change::Down) => *doing = Doing::Down,
            Some(Change::Suspect(_) | Change::Trust(_)) | None => {}
        }
    }

    /// The columns as they are when nothing happens.
    fn row(&self) -> Vec<char> {
        let Some(lanes) = &self.lanes else { return vec![' '; self.left.saturating_sub(2)] };
        let mut row = vec![' '; lanes.width];
        for (node, column) in lanes.nodes() {
            row[column] = self.doing[node.index()].sign();
        }
        for &arrow in &self.under_way {
            if let Some(lane) = lanes.lane(self.picture, arrow) {
                row[lane] = LANE;
            }
        }
        row
    }

    fn send(&mut self, row: &mut [char], node: NodeId, arrows: &[usize]) {
        let Some(lanes) = &self.lanes else { return };
        let own = lanes.node(node);
        let mut targets: Vec<_> =
            arrows.iter().filter_map(|&arrow| lanes.target(self.picture, arrow)).collect();
        targets.sort_unstable();
        let (left, right) = (targets.first().copied(), targets.last().copied());
        let to_left = left.filter(|&lane| lane < own);
        let to_right = right.filter(|&lane| lane > own);
        let before = to_left.map_or(own, |lane| lane + 1)..own;
        let after = own + 1..to_right.unwrap_or(own + 1);
        for column in before.chain(after) {
            row[column] = crossing(row[column]);
        }
        for lane in targets {
            row[lane] = match lane {
                lane if Some(lane) == to_left => '╭',
                lane if Some(lane) == to_right => '╮',
                _ => '┬',
            };
        }
        if row[own] == '│' {
            row[own] = match (to_left, to_right) {
                (Some(_), Some(_)) => '┼',
                (Some(_), None) => '┤',
                (None, Some(_)) => '├',
                (None, None) => '│',
            };
        }
        let has_lane = |arrow: &usize| lanes.lane(self.picture, *arrow).is_some();
        self.under_way.extend(arrows.iter().copied().filter(has_lane));
    }

    fn arrive(&mut self, row: &mut [char], number: usize, arrow: usize, node: NodeId) {
        let Some(lanes) = &self.lanes else { return };
        let own = lanes.node(node);
        let from = self.picture.arrows[arrow].from;
        let is_last = lanes.is_last(self.picture, arrow, number);
        let lane = lanes.lane(self.picture, arrow);
        let from_left = from < node;
        if lanes.is_narrow {
            if from != node {
                let sender = lanes.node(from);
                let (first, last) = (sender.min(own), sender.max(own));
                for column in &mut row[first + 1..last] {
                    *column = crossing(*column);
                }
                row[sender] = match (row[sender], from_left) {
                    ('│', true) => '├',
                    ('│', false) => '┤',
                    (bar, _) => bar,
                };
                row[own] = if from_left { '▶' } else { '◀' };
            }
            return;
        }
        let start = match lane {
            Some(lane) => lane,
            None if from == node => return,
            // Without a lane only the end is drawn.
            None => {
                if from_left {
                    own - 3
                } else {
                    own + 3
                }
            }
        };
        let between = if from_left { start + 1..own - 1 } else { own + 2..start };
        for column in between {
            row[column] = crossing(row[column]);
        }
        row[start] = match (lane, from_left, is_last) {
            (None, ..) => '╌',
            (_, true, true) => '╰',
            (_, true, false) => '├',
            (_, false, true) => '╯',
            (_, false, false) => '┤',
        };
        if from_left {
            row[own - 1] = '▶';
        } else {
            row[own + 1] = '◀';
        }
        self.finish(arrow, is_last);
    }

    fn lose(&mut self, row: &mut [char], number: usize, arrow: usize) {
        let Some(lanes) = &self.lanes else { return };
        let receiver = lanes.is_narrow.then(|| lanes.node(self.picture.arrows[arrow].to));
        if let Some(place) = lanes.lane(self.picture, arrow).or(receiver) {
            row[place] = '✗';
        }
        let is_last = lanes.is_last(self.picture, arrow, number);
        self.finish(arrow, is_last);
    }

    fn finish(&mut self, arrow: usize, is_last: bool) {
        let original = self.picture.arrows[arrow].copy_of.unwrap_or(arrow);
        if is_last {
            self.under_way.retain(|&arrow| arrow != original);
        }
    }

    fn mark(&self, row: &mut [char], event: &Event, mark: Mark) {
        let Some(lanes) = &self.lanes else { return };
        let own = &mut row[lanes.node(event.node)];
        *own = match (mark, event.seen.change) {
            (Mark::Crash, _) => '✗',
            (Mark::Pause, _) => '‖',
            (Mark::Recover, _) => '○',
            (Mark::Refused, _) => '×',
            (_, None) if *own == '│' => '●',
            _ => *own,
        };
    }

    fn words(&self, event: &Event) -> String {
        let node = event.node;
        let name = |arrow: usize| {
            let notation = self.picture.notation(&self.picture.arrows[arrow]);
            notation.within(CONTENT_CHARS_MAX)
        };
        let text = match &event.what {
            What::Send(arrows) => {
                let to = |&arrow: &usize| self.picture.arrows[arrow].to.to_string();
                let to: Vec<_> = arrows.iter().map(to).collect();
                let name = arrows.first().map_or_else(String::new, |&arrow| name(arrow));
                format!("{node} sends {name} to {}", to.join(", "))
            }
            What::Receive(arrow) => {
                let copy = self.picture.arrows[*arrow].copy_of.map_or("", |_| " again");
                let from = self.picture.arrows[*arrow].from;
                format!("{node} receives {} from {from}{copy}", name(*arrow))
            }
            What::Lose(arrow) => {
                let from = self.picture.arrows[*arrow].from;
                let is_down = self.doing[node.index()] == Doing::Down;
                let why = if is_down { format!(": {node} is down") } else { String::new() };
                format!("{} from {from} to {node} is lost{why}", name(*arrow))
            }
            What::Mark(Mark::Told | Mark::Wish, text) => format!("{node} {}", brief(text)),
            What::Mark(_, text) => format!("{node} {text}"),
        };
        let is_guilty = self.picture.guilty.contains(&(event.at, event.node))
            && matches!(event.what, What::Mark(..));
        let text = if is_guilty { format!("! {text}") } else { text };
        let steps = event.steps.join(", ");
        let steps = if steps.is_empty() { steps } else { format!(" · {steps}") };
        printable(&format!("{text}{steps}"))
    }

    fn foot(&mut self) {
        let flying = self.under_way.len();
        if flying > 0 && self.lanes.is_some() {
            self.pause();
        }
        let signs = [
            (Phase::Wanting, "░ wanting"),
            (Phase::Inside, "█ inside"),
            (Phase::Leading, "★ leading"),
            (Phase::Member, "▒ member"),
        ];
        let seen = |phase| self.picture.bars.iter().any(|bar| bar.phase == phase);
        let mut signs: Vec<_> =
            signs.into_iter().filter(|(phase, _)| seen(*phase)).map(|(_, words)| words).collect();
        let has_loss =
            |event: &Event| matches!(event.what, What::Lose(_) | What::Mark(Mark::Crash, _));
        if self.picture.events.iter().any(has_loss) {
            signs.push("✗ lost or crashed");
        }
        if !self.picture.guilty.is_empty() {
            signs.push("! has to do with the violation");
        }
        if self.lanes.as_ref().is_some_and(|lanes| !lanes.is_narrow) {
            signs.push("┊ under way");
        }
        self.paragraph(&signs.join(" · "));
        for line in self.picture.setting.lines(self.picture.nodes) {
            self.paragraph(&line);
        }
        let verdict = match &self.picture.violation {
            Some(fault) => format!("✗ {fault}"),
            None => "no violation".to_string(),
        };
        self.paragraph(&verdict);
    }

    /// Appends text, wrapped to the width.
    fn paragraph(&mut self, text: &str) {
        for line in wrap(&printable(text), self.width) {
            let _ = writeln!(self.out, "{line}");
        }
    }

    /// Appends a line, cut to the width, with the time in front of it if there is one.
    fn line(&mut self, time: &str, line: String) {
        let mut chars: Vec<char> = line.chars().collect();
        if !time.is_empty() {
            let time = format!("{time:<width$}", width = self.left);
            chars.splice(..self.left.min(chars.len()), time.chars());
        }
        if chars.len() > self.width {
            chars.truncate(self.width.saturating_sub(1));
            chars.push('…');
        }
        let line: String = chars.into_iter().collect();
        let _ = writeln!(self.out, "{}", line.trim_end());
    }
}

fn time(event: &Event) -> String {
    rounded(event.at.in_units(), 3)
}

/// What a horizontal stroke makes of what it crosses.
const fn crossing(below: char) -> char {
    match below {
        ' ' | '─' => '─',
        '│' | LANE => '┼',
        bar => bar,
    }
}
