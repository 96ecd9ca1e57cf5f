//! What goes wrong in a run, as typed: crashes, cuts, pauses, clocks, restarts.

use std::fmt;
use std::str::FromStr;

use quorate_core::{Span, Time};
use quorate_sim::Tampering;

use crate::text::{Numbers, Unclear, span, stands_as_text, time, typed};

/// A node and a time: `3@5`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeAt {
    /// The number of the node.
    pub node: u32,
    /// The time.
    pub at: Time,
}

impl NodeAt {
    /// This node at this time.
    #[must_use]
    pub const fn new(node: u32, at: Time) -> Self {
        Self { node, at }
    }
}

impl FromStr for NodeAt {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form NODE@TIME"));
        let (node, at) = text.split_once('@').ok_or_else(form)?;
        Ok(Self { node: node.parse().map_err(|_| form())?, at: time(at)? })
    }
}

impl fmt::Display for NodeAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.node, typed_time(self.at))
    }
}

fn typed_time(at: Time) -> String {
    typed(at.since(Time::ZERO))
}

/// A stretch of time: `5..9`; `5..` for ever, `..9` from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// From when on.
    pub from: Time,
    /// Until when; for ever if not given.
    pub until: Option<Time>,
}

impl FromStr for Window {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form FROM..TO"));
        let (from, until) = text.split_once("..").ok_or_else(form)?;
        let from = if from.is_empty() { Time::ZERO } else { time(from)? };
        let until = if until.is_empty() { None } else { Some(time(until)?) };
        if until.is_some_and(|until| until <= from) {
            return Err(Unclear::new("it ends before it begins"));
        }
        Ok(Self { from, until })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.map(typed_time).unwrap_or_default();
        write!(f, "{}..{until}", typed_time(self.from))
    }
}

/// A stretch of time that ends.
fn closed(text: &str, form: impl Fn() -> Unclear) -> Result<(Time, Time), Unclear> {
    if text.starts_with("..") || !text.contains("..") {
        return Err(form());
    }
    let Window { from, until } = text.parse()?;
    Ok((from, until.ok_or_else(form)?))
}

/// Sides of the network that do not reach each other for a while: `1,2|3,4@10..20`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionSpec {
    /// The sides, by node numbers.
    pub sides: Vec<Numbers>,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

impl FromStr for PartitionSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form 1,2|3,4@FROM..TO"));
        let (sides, times) = text.split_once('@').ok_or_else(form)?;
        let sides = sides.split('|').map(str::parse).collect::<Result<Vec<_>, _>>();
        let sides = sides.ok().filter(|sides| sides.len() > 1).ok_or_else(form)?;
        let (from, until) = closed(times, form)?;
        Ok(Self { sides, from, until })
    }
}

impl fmt::Display for PartitionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides = self.sides.iter().map(Numbers::to_string).collect::<Vec<_>>().join("|");
        write!(f, "{sides}@{}..{}", typed_time(self.from), typed_time(self.until))
    }
}

/// A link that carries nothing for a while: `2-3@5..9` in both directions, `2>3@5..` in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutSpec {
    /// The number of the node at one end; of the sender, where only one direction is cut.
    pub from: u32,
    /// The number of the node at the other end.
    pub to: u32,
    /// Are both directions cut?
    pub both: bool,
    /// When.
    pub during: Window,
}

impl FromStr for CutSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form =
            || Unclear::new(format!("{text} is not of the form A-B@FROM..TO or A>B@FROM..TO"));
        let (link, during) = text.split_once('@').ok_or_else(form)?;
        let (both, ends) = match link.split_once('-') {
            Some(ends) => (true, Some(ends)),
            None => (false, link.split_once('>')),
        };
        let (from, to) = ends.ok_or_else(form)?;
        let node = |text: &str| text.parse::<u32>().map_err(|_| form());
        let (from, to) = (node(from)?, node(to)?);
        if from == to {
            return Err(Unclear::new(format!("{text} names a link from node {from} to itself")));
        }
        if !during.contains("..") {
            return Err(form());
        }
        Ok(Self { from, to, both, during: during.parse()? })
    }
}

impl fmt::Display for CutSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, both, during } = self;
        let way = if *both { '-' } else { '>' };
        write!(f, "{from}{way}{to}@{during}")
    }
}

/// A node that stands still for a while and keeps its state: `3@5..9`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseSpec {
    /// The number of the node.
    pub node: u32,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

impl FromStr for PauseSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form NODE@FROM..TO"));
        let (node, times) = text.split_once('@').ok_or_else(form)?;
        let node = node.parse().map_err(|_| form())?;
        let (from, until) = closed(times, form)?;
        Ok(Self { node, from, until })
    }
}

impl fmt::Display for PauseSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}..{}", self.node, typed_time(self.from), typed_time(self.until))
    }
}

/// A node whose clock runs at another rate: `3*0.9`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockSpec {
    /// The number of the node.
    pub node: u32,
    /// How fast its clock runs, next to a right one.
    pub rate: f64,
}

impl ClockSpec {
    /// The slowest clock.
    pub const RATE_MIN: f64 = 0.5;
    /// The fastest clock.
    pub const RATE_MAX: f64 = 2.0;
}

impl FromStr for ClockSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form NODE*RATE"));
        let (node, rate) = text.split_once('*').ok_or_else(form)?;
        let node = node.parse().map_err(|_| form())?;
        let rate = rate.parse().map_err(|_| form())?;
        let (slowest, fastest) = (Self::RATE_MIN, Self::RATE_MAX);
        match (slowest..=fastest).contains(&rate) {
            true => Ok(Self { node, rate }),
            false => Err(Unclear::new(format!("{rate} is not a rate from {slowest} to {fastest}"))),
        }
    }
}

impl fmt::Display for ClockSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}*{}", self.node, self.rate)
    }
}

/// A restart of everybody: `20..25`, or `20` to come up one unit later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestartSpec {
    /// When all nodes crash.
    pub down: Time,
    /// When all nodes come up again.
    pub up: Time,
}

impl FromStr for RestartSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || Unclear::new(format!("{text} is not of the form TIME or FROM..TO"));
        let (down, up) = match text.contains("..") {
            true => closed(text, form)?,
            false => {
                let down = time(text)?;
                (down, down + Span::UNIT)
            }
        };
        Ok(Self { down, up })
    }
}

impl fmt::Display for RestartSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", typed_time(self.down), typed_time(self.up))
    }
}

/// Something that is done to one message: `lose:3.7-2` to what node 3 sends to node 2 in its seventh
/// sending, `delay:3.7-2+5` for five units, `repeat:3.7-2+5` five units later; `lose:3.7..-2` to all
/// from that one on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TamperSpec {
    /// The number of the node that sends it.
    pub from: u32,
    /// The number of the sending among those of that node.
    pub id: u64,
    /// Is the same done to all that it sends there later?
    pub and_on: bool,
    /// The number of the node that is to receive it.
    pub to: u32,
    /// What is done to it.
    pub how: Tampering,
}

impl FromStr for TamperSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || {
            let forms = "lose:FROM.SENDING-TO, delay:FROM.SENDING-TO+TIME or repeat:…+TIME";
            Unclear::new(format!("{text} is not of the form {forms}"))
        };
        let (how, message) = text.split_once(':').ok_or_else(form)?;
        let (message, after) = match message.split_once('+') {
            Some((message, after)) => (message, Some(after)),
            None => (message, None),
        };
        let how = match (how, after) {
            ("lose", None) => Tampering::Lose,
            ("delay", Some(after)) => Tampering::Delay(span(after)?),
            ("repeat", Some(after)) => Tampering::Repeat(span(after)?),
            _ => return Err(form()),
        };
        let (sending, to) = message.split_once('-').ok_or_else(form)?;
        let (from, id) = sending.split_once('.').ok_or_else(form)?;
        let (id, and_on) = id.strip_suffix("..").map_or((id, false), |id| (id, true));
        let node = |text: &str| text.parse().map_err(|_| form());
        let id = id.parse().map_err(|_| form())?;
        Ok(Self { from: node(from)?, id, and_on, to: node(to)?, how })
    }
}

impl fmt::Display for TamperSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, id, and_on, to, how } = self;
        let on = if *and_on { ".." } else { "" };
        match how {
            Tampering::Lose => write!(f, "lose:{from}.{id}{on}-{to}"),
            Tampering::Delay(span) => write!(f, "delay:{from}.{id}{on}-{to}+{}", typed(*span)),
            Tampering::Repeat(span) => write!(f, "repeat:{from}.{id}{on}-{to}+{}", typed(*span)),
        }
    }
}

stands_as_text!(NodeAt, Window, PartitionSpec, CutSpec, PauseSpec, ClockSpec, RestartSpec);
stands_as_text!(TamperSpec);

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(units: u64) -> Time {
        Time(Span::units(units).0)
    }

    fn error<T: FromStr<Err = Unclear> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().expect_err("it is unclear").to_string()
    }

    /// Reads a text, and writes what was read.
    fn again<T: FromStr<Err = Unclear> + fmt::Display>(text: &str) -> String {
        text.parse::<T>().map_or_else(|unclear| unclear.to_string(), |read| read.to_string())
    }

    #[test]
    fn what_is_typed_is_written_again() {
        assert_eq!(again::<NodeAt>("3@5"), "3@5");
        assert_eq!(again::<NodeAt>("3@30us"), "3@0.03");
        assert_eq!(again::<PartitionSpec>("1,2|3-5@10..20.5"), "1-2|3-5@10..20.5");
        for cut in ["2-3@5..9", "2>3@5..", "2-3@0..9"] {
            assert_eq!(again::<CutSpec>(cut), cut);
        }
        assert_eq!(again::<CutSpec>("2>3@..9"), "2>3@0..9");
        assert_eq!(again::<CutSpec>("2-3@.."), "2-3@0..");
        assert_eq!(again::<PauseSpec>("4@1..2"), "4@1..2");
        assert_eq!(again::<ClockSpec>("4*0.5"), "4*0.5");
        assert_eq!(again::<RestartSpec>("20"), "20..21");
        assert_eq!(again::<RestartSpec>("20..25"), "20..25");
        for one in ["lose:3.7-2", "delay:3.7-2+5", "repeat:3.7-2+0.5", "delay:3.7..-2+5"] {
            assert_eq!(again::<TamperSpec>(one), one);
        }
    }

    #[test]
    fn cuts_are_of_one_direction_or_both() {
        let during = Window { from: at(5), until: Some(at(9)) };
        assert_eq!("2-3@5..9".parse(), Ok(CutSpec { from: 2, to: 3, both: true, during }));
        let during = Window { from: at(5), until: None };
        assert_eq!("2>3@5..".parse(), Ok(CutSpec { from: 2, to: 3, both: false, during }));
        for bad in ["2@5..9", "2-3", "2-3@5", "a-3@5..9", "2<3@5..9", "2-3-4@5..9", ""] {
            let form = "is not of the form A-B@FROM..TO or A>B@FROM..TO";
            assert_eq!(error::<CutSpec>(bad), format!("{bad} {form}"));
        }
        assert_eq!(error::<CutSpec>("2-2@5..9"), "2-2@5..9 names a link from node 2 to itself");
        assert_eq!(error::<CutSpec>("2-3@9..5"), "it ends before it begins");
        assert_eq!(error::<CutSpec>("2-3@5..5"), "it ends before it begins");
        assert_eq!(
            error::<CutSpec>("2-3@soon..9"),
            "soon is not a time such as 2, 0.5, 30us or 1s"
        );
    }

    #[test]
    fn what_is_unclear_is_said_in_a_sentence() {
        for bad in ["3", "x@5", "@5"] {
            assert_eq!(error::<NodeAt>(bad), format!("{bad} is not of the form NODE@TIME"));
        }
        assert_eq!(error::<NodeAt>("3@x"), "x is not a time such as 2, 0.5, 30us or 1s");
        for bad in ["1,2@1..2", "1|2@1..", "1|2@..2", "1|2@1", "1|x@1..2", "1|2"] {
            let form = "is not of the form 1,2|3,4@FROM..TO";
            assert_eq!(error::<PartitionSpec>(bad), format!("{bad} {form}"));
        }
        assert_eq!(error::<PartitionSpec>("1|2@2..1"), "it ends before it begins");
        for bad in ["4", "4@1", "4@1..", "4@..2", "x@1..2"] {
            assert_eq!(error::<PauseSpec>(bad), format!("{bad} is not of the form NODE@FROM..TO"));
        }
        assert_eq!(error::<PauseSpec>("4@2..2"), "it ends before it begins");
        for bad in ["4", "4*", "*2", "4*fast"] {
            assert_eq!(error::<ClockSpec>(bad), format!("{bad} is not of the form NODE*RATE"));
        }
        for bad in ["0.4", "2.1", "NaN", "-1"] {
            let said = format!("{bad} is not a rate from 0.5 to 2");
            assert_eq!(error::<ClockSpec>(&format!("4*{bad}")), said);
        }
        for bad in ["5..", "..5"] {
            assert_eq!(
                error::<RestartSpec>(bad),
                format!("{bad} is not of the form TIME or FROM..TO")
            );
        }
        for bad in ["lose", "lose:3-2", "lose:3.7", "lose:3.7-2+1", "delay:3.7-2", "keep:3.7-2"] {
            assert!(
                error::<TamperSpec>(bad).starts_with(&format!("{bad} is not of the form lose:"))
            );
        }
        assert_eq!(error::<RestartSpec>("soon"), "soon is not a time such as 2, 0.5, 30us or 1s");
    }
}
