//! Every call returns within its bound. The time in which a process was made to stand still is no fault
//! of its.

use alloc::collections::BTreeMap;
use alloc::format;

use quorate_core::Span;

use super::super::Fact;
use super::processes::At;
use super::{Bench, Rule, milliseconds};

pub(super) fn judge(bench: &mut Bench<'_>) {
    let mut open: BTreeMap<(At, u64), (usize, Span)> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        let at = bench.processes.at(place);
        match &record.fact {
            Fact::Call { id, within, .. } => _ = open.insert((at, *id), (place, *within)),
            Fact::Return { id, .. } => {
                if let Some((call, within)) = open.remove(&(at, *id)) {
                    bench.test(Rule::Calls);
                    took(bench, at, [call, place], record.t, within);
                }
            }
            _ => {}
        }
    }
    let Some(last) = bench.records.len().checked_sub(1) else { return };
    for ((at, _), (call, within)) in open {
        let end = bench.record(last).t;
        let over = bench.processes.get(at).over.unwrap_or(end);
        bench.test(Rule::Calls);
        took(bench, at, [call, last], over, within);
    }
}

/// A call was under way until then.
fn took(bench: &mut Bench<'_>, at: At, between: [usize; 2], until: u64, within: Span) {
    let begun = bench.record(between[0]).t;
    let stood = bench.processes.get(at).stood_still(begun, until);
    let took = until.saturating_sub(begun).saturating_sub(stood);
    if took > within.0 {
        let what = match &bench.record(between[0]).fact {
            Fact::Call { what, .. } => what,
            _ => "call",
        };
        let (took, within) = (milliseconds(took), milliseconds(within.0));
        let who = bench.who(between[0]);
        let text = format!("{what} at {who} took {took}, and has to return within {within}");
        bench.object(Rule::Calls, between, text);
    }
}
