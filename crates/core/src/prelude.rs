//! What almost every file of an algorithm needs: `use quorate_core::prelude::*`.

pub use crate::{
    Algorithm, BadOption, Boot, Channels, Cost, Ctx, Durable, Kept, LamportClock, Life, Liveness,
    Message, Meta, NodeId, NodeSet, OptionSpec, Options, Paper, PerNode, Protocol, Refusal, Scene,
    Shape, Sole, Span, Stamp, Time, Timing, Traits, View, ViewId,
};
