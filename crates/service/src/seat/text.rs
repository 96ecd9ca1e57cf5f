//! Messages in short: a register is too long to be read beside every arrow of a picture.

use core::fmt;

use super::words::Msg;
use crate::committed::{Committed, Revision};
use crate::register::{Answer, Order, ProposalId, Renewal, Renewed};

impl fmt::Debug for Msg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order { order, .. } => fmt_order(order, f),
            Self::Answer { answer, after, .. } => {
                f.write_str("Answer(")?;
                fmt_answer(answer, f)?;
                let Revision(revision) = after.revision;
                write!(f, ", revision {revision})")
            }
            Self::Changed(Committed { revision: Revision(revision), register }) => {
                let (epoch, view) = (register.epoch().0, register.view());
                write!(f, "Changed(view {epoch}, {view:?}, revision {revision})")
            }
            Self::Ping { by, change } => fmt_ping("Ping", by.0, *change, f),
            Self::Pong { by, change } => fmt_ping("Pong", by.0, *change, f),
            Self::Flush { epoch, .. } => write!(f, "Flush(view {})", epoch.0),
            Self::FlushOk { epoch, .. } => write!(f, "FlushOk(view {})", epoch.0),
        }
    }
}

fn fmt_ping(
    word: &str,
    by: u64,
    change: Option<ProposalId>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let change = if change.is_some() { ", for a change" } else { "" };
    write!(f, "{word}(life {by}{change})")
}

fn fmt_order(order: &Order, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match order {
        Order::Admit { name, .. } => write!(f, "Admit({name})"),
        Order::Renew(renewals) => {
            f.write_str("Renew(")?;
            for (place, renewal) in renewals.iter().enumerate() {
                let Renewal { life, number, unreachable, refused, .. } = renewal;
                f.write_str(if place > 0 { ", " } else { "" })?;
                write!(f, "life {life:?} #{number}")?;
                if !unreachable.is_empty() {
                    write!(f, ", does not reach {unreachable:?}")?;
                }
                if !refused.is_empty() {
                    write!(f, ", refused by {:?}", refused.keys())?;
                }
            }
            f.write_str(")")
        }
        Order::Bar { lives, .. } => write!(f, "Bar({lives:?})"),
        Order::Doom { life, beat } => write!(f, "Doom(life {life:?}, beat {})", beat.0),
        Order::Leave(life) => write!(f, "Leave(life {life:?})"),
        Order::Host(life, host) => write!(f, "Host(life {life:?}, {host:?})"),
        Order::Decide { after, next, .. } => {
            write!(f, "Decide(view {}, {next:?})", after.0.saturating_add(1))
        }
        Order::Forgive(name) => write!(f, "Forgive({name})"),
        Order::Set(settings) => write!(f, "Set(lease {:?})", settings.lease),
        Order::Voter { name, id } => write!(f, "Voter({name}, {id:x})"),
        Order::Space { name, .. } => write!(f, "Space({name})"),
    }
}

fn fmt_answer(answer: &Answer, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match answer {
        Answer::Life(life) => write!(f, "life {life:?}"),
        Answer::Renewed(renewed) => {
            for (place, (life, number, outcome)) in renewed.iter().enumerate() {
                f.write_str(if place > 0 { ", " } else { "" })?;
                write!(f, "life {life:?} #{number}: ")?;
                match outcome {
                    Renewed::Beat(beat, _) => write!(f, "beat {}", beat.0)?,
                    Renewed::Waiting => f.write_str("waiting")?,
                    Renewed::Out => f.write_str("out")?,
                }
            }
            Ok(())
        }
        Answer::Decided(epoch) => write!(f, "view {}", epoch.0),
        Answer::Done => f.write_str("done"),
        Answer::Refused(refused) => write!(f, "refused: {refused}"),
    }
}
