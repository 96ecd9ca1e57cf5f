//! What users and groups say to each other.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use quorate_core::{NodeId, Refusal, ViewId};

/// A command: what the local user wishes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Send this to the group.
    Multicast(Wish),
    /// Let me in.
    Join,
    /// Let me out.
    Leave,
}

impl Command {
    /// The message to send, where the membership is what it is: nobody joins or leaves, and only a
    /// member may send.
    pub(super) const fn multicast_by(self, is_member: bool) -> Result<Wish, Refusal> {
        match self {
            Self::Multicast(wish) if is_member => Ok(wish),
            Self::Multicast(_) | Self::Join | Self::Leave => Err(Refusal::NotMember),
        }
    }
}

/// A message to the group, as its sender wants it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wish {
    /// Its number among the messages of its sender; also stands for what it says.
    pub number: u32,
    /// The order in which it is to be delivered.
    pub order: Order,
    /// Is it delivered only when all members have it? What anybody delivers then, even one who
    /// crashes right after, all deliver.
    pub uniform: bool,
}

/// The order in which a message is delivered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Order {
    /// After all earlier messages of its sender.
    #[default]
    Fifo,
    /// After all messages that its sender had sent or delivered before it.
    Causal,
    /// In one order for all.
    Total,
}

impl Order {
    /// All orders, by name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("fifo", Self::Fifo), ("causal", Self::Causal), ("total", Self::Total)];
}

/// A message, for everybody who talks about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MessageId {
    /// The sender.
    pub sender: NodeId,
    /// Its number among the messages of its sender.
    pub number: u32,
}

/// An event: what the local user is told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A message for you.
    Delivered(MessageId),
    /// From now on these are the members; what is delivered from now on is delivered to all of them.
    Installed {
        /// The number of the view.
        view: ViewId,
        /// Its members, the most senior one first.
        members: Arc<[NodeId]>,
        /// What the group has delivered so far, as you know it or were told at joining.
        state: History,
    },
    /// The view is over, but these members go on together: what is delivered from now on, until the
    /// next view, is delivered to all of them. Of the other members nothing is known.
    Transitional {
        /// Who goes on together.
        members: Arc<[NodeId]>,
    },
    /// You are a member, as you wished, of a group without views.
    Joined,
    /// You are no member any more, as you wished.
    Left,
    /// You are no member any more: the others took you for dead.
    Excluded,
}

/// A history: what was delivered, in short, and what a replicated state would be if it were a sum of all messages.
/// Members that have delivered the same messages, in whatever order, have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct History {
    /// The number of messages.
    pub count: u32,
    /// The sum of one well mixed word for each.
    pub sum: u32,
}

impl History {
    /// One more message was delivered.
    pub const fn add(&mut self, id: MessageId) {
        // Odd multipliers, one for each part: different messages give different words, and sums of
        // few of them do not meet by accident.
        let word =
            id.sender.number().wrapping_mul(0x9e37_79b1) ^ id.number.wrapping_mul(0x85eb_ca77);
        let word = (word ^ word >> 15).wrapping_mul(0x2c1b_3c6d);
        self.sum = self.sum.wrapping_add(word ^ word >> 13);
        self.count += 1;
    }
}

/// A text that is none of a family's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAWord;

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multicast(wish) => write!(f, "multicast {wish:?}"),
            Self::Join => f.write_str("join"),
            Self::Leave => f.write_str("leave"),
        }
    }
}

impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Order::NAMES.iter().find(|(_, order)| *order == self.order);
        let order = named.map_or("", |(name, _)| name);
        write!(f, "{} {order}{}", self.number, if self.uniform { " uniform" } else { "" })
    }
}

impl FromStr for Command {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let words: Vec<&str> = text.split(' ').collect();
        let (number, order, uniform) = match words[..] {
            ["join"] => return Ok(Self::Join),
            ["leave"] => return Ok(Self::Leave),
            ["multicast", number, order] => (number, order, false),
            ["multicast", number, order, "uniform"] => (number, order, true),
            _ => return Err(NotAWord),
        };
        let number = number.parse().map_err(|_| NotAWord)?;
        let named = Order::NAMES.iter().find(|(name, _)| *name == order);
        let &(_, order) = named.ok_or(NotAWord)?;
        Ok(Self::Multicast(Wish { number, order, uniform }))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.sender, self.number)
    }
}

impl FromStr for MessageId {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let (sender, number) = text.split_once(':').ok_or(NotAWord)?;
        let sender = sender.parse().ok().and_then(NodeId::new).ok_or(NotAWord)?;
        Ok(Self { sender, number: number.parse().map_err(|_| NotAWord)? })
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:x}", self.count, self.sum)
    }
}

impl FromStr for History {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let (count, sum) = text.split_once('/').ok_or(NotAWord)?;
        let sum = u32::from_str_radix(sum, 16).map_err(|_| NotAWord)?;
        Ok(Self { count: count.parse().map_err(|_| NotAWord)?, sum })
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered(id) => write!(f, "deliver {id:?}"),
            Self::Installed { view: ViewId(view), members, state } => {
                write!(f, "install {view} {} {state:?}", list(members))
            }
            Self::Transitional { members } => write!(f, "transition {}", list(members)),
            Self::Joined => f.write_str("joined"),
            Self::Left => f.write_str("left"),
            Self::Excluded => f.write_str("excluded"),
        }
    }
}

/// Numbers with commas between them.
fn list(members: &[NodeId]) -> String {
    let members: Vec<_> = members.iter().map(|member| format!("{member}")).collect();
    members.join(",")
}

fn read_list(text: &str) -> Result<Arc<[NodeId]>, NotAWord> {
    let member = |word: &str| word.parse().ok().and_then(NodeId::new).ok_or(NotAWord);
    text.split(',').map(member).collect()
}

impl FromStr for Event {
    type Err = NotAWord;

    fn from_str(text: &str) -> Result<Self, NotAWord> {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["joined"] => Ok(Self::Joined),
            ["left"] => Ok(Self::Left),
            ["excluded"] => Ok(Self::Excluded),
            ["deliver", id] => Ok(Self::Delivered(id.parse()?)),
            ["install", view, members, state] => {
                let view = ViewId(view.parse().map_err(|_| NotAWord)?);
                Ok(Self::Installed { view, members: read_list(members)?, state: state.parse()? })
            }
            ["transition", members] => Ok(Self::Transitional { members: read_list(members)? }),
            _ => Err(NotAWord),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for text in ["join", "leave", "multicast 3 fifo", "multicast 4 total uniform"] {
            let command: Command = text.parse().unwrap();
            assert_eq!(format!("{command:?}"), text);
        }
        for text in [
            "joined",
            "left",
            "excluded",
            "deliver 2:7",
            "install 3 1,2,4 5/af03",
            "transition 2,4",
        ] {
            let event: Event = text.parse().unwrap();
            assert_eq!(format!("{event:?}"), text);
        }
        for text in [
            "",
            "deliver",
            "deliver 0:1",
            "deliver 1:x",
            "install 3 1,,2 0/0",
            "install",
            "transition",
        ] {
            assert_eq!(text.parse::<Event>(), Err(NotAWord), "{text}");
        }
        for text in ["", "multicast", "multicast 1", "multicast 1 chaotic", "multicast -1 fifo"] {
            assert_eq!(text.parse::<Command>(), Err(NotAWord), "{text}");
        }
    }

    #[test]
    fn histories_do_not_depend_on_the_order() {
        let id = |sender, number| MessageId { sender: NodeId::at(sender), number };
        let (mut one, mut other) = (History::default(), History::default());
        [id(0, 1), id(1, 1), id(0, 2)].iter().for_each(|id| one.add(*id));
        [id(0, 2), id(0, 1), id(1, 1)].iter().for_each(|id| other.add(*id));
        assert_eq!(one, other);
        other.add(id(1, 2));
        assert_ne!(one, other);
    }
}
