//! A small algorithm to see a network with: numbers for everybody, and a ball between two.

use std::convert::Infallible;

use quorate_core::{
    Algorithm, BadOption, Boot, Channels, Ctx, Family, Message, Meta, NodeId, NodeSet, Options,
    Paper, Protocol, Refusal, Scene, Shape, Timing, Topology,
};
use serde::{Deserialize, Serialize};

/// A scene of so many nodes.
pub(crate) fn scene(count: usize) -> Scene<Tally> {
    Scene::new(Topology::complete(count), (), ())
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Command {
    /// Send so many numbers to everybody else; none is refused.
    Say(u64),
    /// Send so many bytes to everybody else.
    Dump(usize),
    /// Play so many balls back and forth with the next node.
    Serve(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Event {
    Heard(NodeId, u64),
    Dumped(NodeId, usize),
    Out,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Msg {
    Number(u64),
    Bytes(Vec<u8>),
    Ball(u64),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "NUMBER",
            Self::Bytes(_) => "BYTES",
            Self::Ball(_) => "BALL",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Tallies;

impl Family for Tallies {
    const NAME: &'static str = "test";
    type Command = Command;
    type Event = Event;
    type Setup = ();
    type Promise = ();
    type Monitor = ();

    fn monitor(_: usize, (): &(), (): &()) {}

    fn command(_: &str) -> Option<Command> {
        None
    }

    fn event(_: &str) -> Option<Event> {
        None
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tally {
    others: NodeSet,
    said: u64,
}

impl Algorithm for Tally {
    type Family = Tallies;
    type Config = ();

    const META: Meta = Meta {
        name: "test/tally",
        summary: "numbers for everybody",
        paper: Paper { authors: "", title: "", venue: "", year: 0, doi: "" },
        shape: Shape::Complete,
        channels: Channels::Fifo,
        timing: Timing::Asynchronous,
        survives: "",
        kinds: &["NUMBER", "BYTES", "BALL"],
        options: &[],
        costs: &[],
        source: "",
    };

    fn promise((): &()) {}

    fn configure(_: &Options<'_>) -> Result<(), BadOption> {
        Ok(())
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self { others: boot.view.others(boot.me), said: 0 }
    }
}

impl Protocol for Tally {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Say(0) => return Err(Refusal::Busy),
            Command::Say(count) => {
                for number in self.said..self.said + count {
                    cx.multicast(self.others.clone(), Msg::Number(number));
                }
                self.said += count;
            }
            Command::Dump(length) => {
                cx.multicast(self.others.clone(), Msg::Bytes(vec![7; length]));
            }
            Command::Serve(balls) => {
                let first = self.others.iter().next().expect("there is somebody else");
                cx.send(first, Msg::Ball(balls));
            }
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Number(number) => cx.emit(Event::Heard(from, number)),
            Msg::Bytes(bytes) => cx.emit(Event::Dumped(from, bytes.len())),
            Msg::Ball(0) => cx.emit(Event::Out),
            Msg::Ball(left) => cx.send(from, Msg::Ball(left - 1)),
        }
    }
}
