//! What the users of the cluster's parts wish and are told, and how traces write it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use quorate_core::{Life, NodeId, Span, Time};

use crate::deed::Deed;
use crate::founding::{self, Instance};
use crate::register::{Beat, Epoch, Gone, Ground, Host, Settings};
use crate::seat::{self, start_of};

/// A command: what the user of a node wishes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// To a seat: be a member.
    Join,
    /// To a seat: be a member no more.
    Leave,
    /// To a seat: by the kernel's word the process at this node that was started so often is over.
    Exited(NodeId, Life),
    /// To a seat: the place of this life refuses connections.
    Refused(Life),
    /// To a seat: something that was said to this life, or by it, will never arrive.
    Severed(Life),
    /// To a seat: leases shall be so long from now on.
    Lease(Span),
    /// To a seed: lose all data, as a machine that is replaced under its name.
    Replace,
    /// To a seed: forget a pledge.
    ClearPledge,
    /// To a register: do anything.
    Order,
}

impl Command {
    /// The same to a seat; none if it is to something else.
    pub(super) const fn to_seat(&self) -> Option<seat::Command> {
        Some(match *self {
            Self::Join => seat::Command::Join,
            Self::Leave => seat::Command::Leave,
            Self::Exited(node, life) => seat::Command::Exited(start_of(node, life)),
            Self::Refused(life) => seat::Command::Refused(life),
            Self::Severed(life) => seat::Command::Severed(life),
            Self::Lease(lease) => seat::Command::Set(Settings { lease }),
            Self::Replace | Self::ClearPledge | Self::Order => return None,
        })
    }

    /// The command that is written like this.
    pub(super) fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        Some(match words[..] {
            ["join"] => Self::Join,
            ["leave"] => Self::Leave,
            ["exited", node, "start", life] => Self::Exited(read_node(node)?, read_life(life)?),
            ["refused", life] => Self::Refused(read_life(life)?),
            ["severed", life] => Self::Severed(read_life(life)?),
            ["lease", span] => Self::Lease(read_span(span)?),
            ["replace"] => Self::Replace,
            ["clear-pledge"] => Self::ClearPledge,
            ["order"] => Self::Order,
            _ => return None,
        })
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join => f.write_str("join"),
            Self::Leave => f.write_str("leave"),
            Self::Exited(node, Life(life)) => write!(f, "exited {node} start {life}"),
            Self::Refused(Life(life)) => write!(f, "refused {life}"),
            Self::Severed(Life(life)) => write!(f, "severed {life}"),
            Self::Lease(span) => write!(f, "lease {}", exactly(*span)),
            Self::Replace => f.write_str("replace"),
            Self::ClearPledge => f.write_str("clear-pledge"),
            Self::Order => f.write_str("order"),
        }
    }
}

/// An event: what the user of a node is told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// By a seat, or where the register is.
    Seat(seat::Event),
    /// By a seed.
    Founding(founding::Event),
}

impl Event {
    /// Said where the register is.
    pub(super) const fn deed(deed: Deed) -> Self {
        Self::Seat(seat::Event::Register(deed))
    }

    /// The event that is written like this.
    pub(super) fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let deed = |deed| Some(Self::deed(deed));
        Some(Self::Seat(match words[..] {
            ["live", life] => seat::Event::Lives(read_life(life)?),
            ["install", epoch, "as", life, "of", members] => {
                let (epoch, life) = (read_epoch(epoch)?, read_life(life)?);
                seat::Event::Installed { epoch, life, members: read_list(members)? }
            }
            ["stop", epoch] => seat::Event::Stopped(read_epoch(epoch)?),
            ["preside", epoch, "until", until] => {
                let (epoch, until) = (read_epoch(epoch)?, read_time(until)?);
                seat::Event::Presides { epoch, until }
            }
            ["until", until] => seat::Event::Until(read_time(until)?),
            ["lost"] => seat::Event::Lost,
            ["out", life] => seat::Event::Out(read_life(life)?),
            ["left"] => seat::Event::Left,
            ["admit", life, "at", node] => {
                return deed(Deed::Admitted { life: read_life(life)?, by: read_node(node)? });
            }
            ["renew", life, "beat", beat] => {
                return deed(Deed::Renewed(read_life(life)?, read_beat(beat)?));
            }
            ["bar", lives] => return deed(Deed::Barred(read_list(lives)?.into_iter().collect())),
            ["doom", life, "beat", beat] => {
                return deed(Deed::Doomed(read_life(life)?, read_beat(beat)?));
            }
            ["leave", life] => return deed(Deed::Left(read_life(life)?)),
            ["host", life] => return deed(Deed::Hosts(read_life(life)?, Host::Begins)),
            ["unhost", life] => return deed(Deed::Hosts(read_life(life)?, Host::Ends)),
            ["decide", epoch, "of", members, ref gone @ ..] => {
                let (epoch, members) = (read_epoch(epoch)?, read_list(members)?);
                return deed(Deed::Decided { epoch, members, gone: read_gone(gone)? });
            }
            _ => return Self::read_founding(&words),
        }))
    }

    fn read_founding(words: &[&str]) -> Option<Self> {
        let instance = |text: &str| u128::from_str_radix(text, 16).ok().map(Instance);
        Some(Self::Founding(match words[..] {
            ["founded", of] => founding::Event::Founded(instance(of)?),
            ["joined", of] => founding::Event::Joined(instance(of)?),
            ["pledged", to] => founding::Event::Pledged(instance(to)?),
            ["taken", node, "by", of] => founding::Event::Taken(read_node(node)?, instance(of)?),
            ["other-list", node] => founding::Event::OtherList(read_node(node)?),
            _ => return None,
        }))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seat(seat::Event::Register(deed)) => fmt_deed(deed, f),
            Self::Seat(event) => fmt_seat(event, f),
            Self::Founding(event) => fmt_founding(event, f),
        }
    }
}

fn fmt_seat(event: &seat::Event, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        seat::Event::Lives(Life(life)) => write!(f, "live {life}"),
        seat::Event::Installed { epoch: Epoch(epoch), life: Life(life), members } => {
            write!(f, "install {epoch} as {life} of {}", list(members))
        }
        seat::Event::Stopped(Epoch(epoch)) => write!(f, "stop {epoch}"),
        seat::Event::Presides { epoch: Epoch(epoch), until } => {
            write!(f, "preside {epoch} until {}", moment(*until))
        }
        seat::Event::Until(until) => write!(f, "until {}", moment(*until)),
        seat::Event::Lost => f.write_str("lost"),
        seat::Event::Out(Life(life)) => write!(f, "out {life}"),
        seat::Event::Left => f.write_str("left"),
        seat::Event::Register(deed) => fmt_deed(deed, f),
    }
}

fn fmt_deed(deed: &Deed, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match deed {
        Deed::Admitted { life: Life(life), by } => write!(f, "admit {life} at {by}"),
        Deed::Renewed(Life(life), Beat(beat)) => write!(f, "renew {life} beat {beat}"),
        Deed::Barred(lives) => write!(f, "bar {}", list(lives)),
        Deed::Doomed(Life(life), Beat(beat)) => write!(f, "doom {life} beat {beat}"),
        Deed::Left(Life(life)) => write!(f, "leave {life}"),
        Deed::Hosts(Life(life), Host::Begins) => write!(f, "host {life}"),
        Deed::Hosts(Life(life), Host::Ends) => write!(f, "unhost {life}"),
        Deed::Decided { epoch: Epoch(epoch), members, gone } => {
            write!(f, "decide {epoch} of {}", list(members))?;
            for Gone { life: Life(life), ground } in gone {
                match ground {
                    Ground::Left => write!(f, " {life}:left")?,
                    Ground::Doomed => write!(f, " {life}:doomed")?,
                    Ground::Dead(Beat(beat)) => write!(f, " {life}:dead:{beat}")?,
                }
            }
            Ok(())
        }
    }
}

fn fmt_founding(event: &founding::Event, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        founding::Event::Founded(of) => write!(f, "founded {of:?}"),
        founding::Event::Joined(of) => write!(f, "joined {of:?}"),
        founding::Event::Pledged(to) => write!(f, "pledged {to:?}"),
        founding::Event::Taken(node, of) => write!(f, "taken {node} by {of:?}"),
        founding::Event::OtherList(node) => write!(f, "other-list {node}"),
    }
}

/// A length of time in units, or in nanoseconds where units are not exact.
fn exactly(span: Span) -> String {
    let units = format!("{span:?}");
    if units.parse() == Ok(span) { units } else { format!("{}ns", span.0) }
}

fn moment(time: Time) -> String {
    exactly(time.since(Time::ZERO))
}

/// Lives with commas between them; a dash if there are none.
fn list<'a>(lives: impl IntoIterator<Item = &'a Life>) -> String {
    let lives: Vec<_> = lives.into_iter().map(|life| format!("{life:?}")).collect();
    if lives.is_empty() { "-".into() } else { lives.join(",") }
}

fn read_list(text: &str) -> Option<Vec<Life>> {
    if text == "-" { Some(Vec::new()) } else { text.split(',').map(read_life).collect() }
}

fn read_gone(words: &[&str]) -> Option<Vec<Gone>> {
    let gone = |word: &&str| {
        let parts: Vec<&str> = word.split(':').collect();
        let (life, ground) = match parts[..] {
            [life, "left"] => (life, Ground::Left),
            [life, "doomed"] => (life, Ground::Doomed),
            [life, "dead", beat] => (life, Ground::Dead(read_beat(beat)?)),
            _ => return None,
        };
        Some(Gone { life: read_life(life)?, ground })
    };
    words.iter().map(gone).collect()
}

fn read_life(text: &str) -> Option<Life> {
    text.parse().ok().map(Life)
}

fn read_epoch(text: &str) -> Option<Epoch> {
    text.parse().ok().map(Epoch)
}

fn read_beat(text: &str) -> Option<Beat> {
    text.parse().ok().map(Beat)
}

fn read_node(text: &str) -> Option<NodeId> {
    text.parse().ok().and_then(NodeId::new)
}

fn read_span(text: &str) -> Option<Span> {
    match text.strip_suffix("ns") {
        Some(nanos) => nanos.parse().ok().map(Span),
        None => text.parse().ok(),
    }
}

fn read_time(text: &str) -> Option<Time> {
    read_span(text).map(|span| Time::ZERO + span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for text in [
            "join",
            "leave",
            "exited 2 start 1",
            "refused 7",
            "severed 7",
            "lease 0.5",
            "replace",
            "clear-pledge",
            "order",
        ] {
            assert_eq!(Command::read(text).map(|it| format!("{it:?}")).as_deref(), Some(text));
        }
        for text in [
            "live 3",
            "install 2 as 3 of 1,3",
            "stop 2",
            "preside 2 until 590.5",
            "until 18446744073709551ns",
            "lost",
            "out 3",
            "left",
            "admit 3 at 2",
            "renew 3 beat 9",
            "bar 1,2",
            "doom 3 beat 9",
            "leave 3",
            "host 3",
            "unhost 3",
            "decide 3 of 1,2",
            "decide 3 of 1 2:left 3:doomed 4:dead:9",
            "founded 10000000000000001",
            "joined a1",
            "pledged a1",
            "taken 2 by a1",
            "other-list 3",
        ] {
            assert_eq!(Event::read(text).map(|it| format!("{it:?}")).as_deref(), Some(text));
        }
        for text in ["", "live", "live x", "decide 3", "decide 3 of 1 2:gone", "taken 0 by 1"] {
            assert_eq!(Event::read(text), None, "{text}");
        }
        for text in ["", "exited 0 start 1", "lease", "lease x", "orders"] {
            assert_eq!(Command::read(text), None, "{text}");
        }
    }
}
