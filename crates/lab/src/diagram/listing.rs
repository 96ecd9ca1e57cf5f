//! A trace as text, one line per record.

use std::fmt::Write;

use quorate_core::Liveness;
use quorate_core::trace::{Happening, Outcome, Parcel, Record, Step};

use super::notation::{Notation, brief};
use super::printable;

/// The most characters of what a message carries.
const CONTENT_CHARS_MAX: usize = 72;

/// One line per record: time, node, what came in, the steps of the paper, what went out.
#[must_use]
pub fn listing(records: &[Record]) -> String {
    let mut text = String::new();
    for record in records {
        let mut parts = vec![happening(&record.input)];
        parts.extend(record.steps.iter().map(step));
        parts.extend(record.effects.iter().map(outcome));
        if let Some((property, how)) = &record.violation {
            parts.push(format!("VIOLATES {property}: {how}"));
        }
        let (at, node) = (format!("t={:?}", record.at), format!("n{}", record.node));
        let line = printable(&parts.join(" · "));
        let _ = writeln!(text, "{at:<7} {node:<4} {line}");
    }
    text
}

fn happening(input: &Happening) -> String {
    match input {
        Happening::Start => "start".into(),
        Happening::Recover => "recover".into(),
        Happening::Crash => "crash".into(),
        Happening::Pause => "pause".into(),
        Happening::Resume => "resume".into(),
        Happening::Settle => "settle".into(),
        Happening::Command(command) => format!("command {}", brief(command)),
        Happening::Refused(command, why) => {
            format!("command {} refused: {why}", brief(command))
        }
        Happening::Receive(parcel) => format!("receive {}", arrived(parcel)),
        Happening::Lose(parcel) => format!("lose {}", arrived(parcel)),
        Happening::Timer(timer) => format!("timer {timer}"),
        Happening::Liveness(peer, Liveness::Up) => format!("peer {peer} up"),
        Happening::Liveness(peer, Liveness::Down) => format!("peer {peer} down"),
    }
}

fn arrived(parcel: &Parcel) -> String {
    format!("{} from {}", message(&parcel.kind, &parcel.text), parcel.from)
}

fn message(kind: &str, text: &str) -> String {
    Notation::new(kind, text).within(CONTENT_CHARS_MAX)
}

fn step(step: &Step) -> String {
    let fields = step.fields.iter().map(|(field, value)| format!(" {field}={value}"));
    fields.fold(step.name.to_string(), |text, field| text + &field)
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Send { to, kind, text, .. } => {
            let to: Vec<_> = to.iter().map(ToString::to_string).collect();
            format!("send {} to {}", message(kind, text), to.join(","))
        }
        Outcome::Set(timer) => format!("set {timer}"),
        Outcome::Cancel(timer) => format!("cancel {timer}"),
        Outcome::Persist(stable) => format!("persist {stable}"),
        Outcome::Emit(event) => format!("emit {}", brief(event)),
    }
}
