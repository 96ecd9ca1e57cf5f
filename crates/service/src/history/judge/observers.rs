//! What observers of roles are told: who is said to lead was granted that term, nobody is said to lead only
//! when all terms up to the one that is named are over, and to each observer terms only grow.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::{Fact, Fence, News};
use super::guards::{Guard, Lock, shown};
use super::processes::At;
use super::{Bench, Rule};

/// Who is told of a role: a process, as a member or as one who uses it.
type Observer<'a> = (At, bool, &'a str);

/// What an observer was told last: of this term, and whether that is over.
#[derive(Clone, Copy)]
struct Seen {
    term: Fence,
    over: bool,
    place: usize,
}

/// What is known as records are read.
#[derive(Default)]
struct Known<'a> {
    /// Where each term was granted.
    granted: BTreeMap<(&'a str, Fence), usize>,
    /// What the first one was told of a term.
    values: BTreeMap<(&'a str, Fence), (usize, &'a str)>,
    seen: BTreeMap<Observer<'a>, Seen>,
    /// Leaders that may act, by role.
    leading: BTreeMap<&'a str, Vec<usize>>,
}

pub(super) fn judge<'a>(bench: &mut Bench<'a>, guards: &[Guard<'a>]) {
    let mut known = Known::default();
    let mut next = 0;
    for (place, record) in bench.records.iter().enumerate() {
        while let Some(guard) = guards.get(next).filter(|guard| guard.granted <= place) {
            if let Some(role) = guard.role() {
                known.leading.entry(role).or_default().push(next);
            }
            next += 1;
        }
        let (user, role, news) = match &record.fact {
            Fact::Granted { space, name, fence, .. } => {
                if let Some(role) = Lock::of(space.as_deref(), name).role() {
                    known.granted.entry((role, *fence)).or_insert(place);
                }
                continue;
            }
            Fact::Heard { role, news } => (false, role, news),
            Fact::Observed { role, news } => (true, role, news),
            _ => continue,
        };
        bench.test(Rule::Observers);
        let observer = (bench.processes.at(place), user, role.as_str());
        match news {
            News::Unknown => {}
            News::Leads { term, member, value } => {
                leads(bench, &mut known, (role, *term), (member, value), place);
                grows(bench, &mut known, observer, (*term, false), place);
            }
            News::Nobody { after } => {
                // Who is told of no term knows that the last one that it was told of is over.
                let last = known.seen.get(&observer).map(|seen| seen.term);
                let Some(after) = after.or(last) else { continue };
                nobody(bench, &mut known, guards, (role, after), place);
                grows(bench, &mut known, observer, (after, true), place);
            }
        }
    }
}

/// Somebody is said to lead: it was granted that term, and all are told the same of it.
fn leads<'a>(
    bench: &mut Bench<'a>,
    known: &mut Known<'a>,
    (role, term): (&'a str, Fence),
    (member, value): (&str, &'a str),
    place: usize,
) {
    let at = bench.who(place);
    let said = format!("{at} is told that {member} leads in role {role} in term {}", shown(term));
    match known.granted.get(&(role, term)) {
        None => {
            let text = format!("{said}, which nobody was granted");
            bench.object(Rule::Observers, [place, place], text);
        }
        Some(grant) if !member.is_empty() && bench.who(*grant) != member => {
            let text = format!("{said}, which {} was granted", bench.who(*grant));
            bench.object(Rule::Observers, [*grant, place], text);
        }
        Some(_) => {}
    }
    let (first, other) = *known.values.entry((role, term)).or_insert((place, value));
    if other != value {
        let text = format!("{said} as {value}, and {} as {other}", bench.who(first));
        bench.object(Rule::Observers, [first, place], text);
    }
}

/// Nobody is said to lead: no leader up to this term may act.
fn nobody(
    bench: &mut Bench<'_>,
    known: &mut Known<'_>,
    guards: &[Guard<'_>],
    (role, after): (&str, Fence),
    place: usize,
) {
    let now = bench.record(place).t;
    let Some(leading) = known.leading.get_mut(role) else { return };
    leading.retain(|number| guards[*number].ends > now);
    let early = |number: &&usize| guards[**number].fence.is_some_and(|fence| fence <= after);
    if let Some(guard) = leading.iter().find(early).map(|number| &guards[*number]) {
        let (at, other) = (bench.who(place), bench.who(guard.granted));
        let until = bench.when(guard.ends);
        let text = format!(
            "{at} is told that nobody leads in role {role} up to term {}, and {other} does until {until}",
            shown(after)
        );
        bench.object(Rule::Observers, [guard.by, place], text);
    }
}

/// The terms that one is told of never go back, and one that is over stays over.
fn grows<'a>(
    bench: &mut Bench<'a>,
    known: &mut Known<'a>,
    observer: Observer<'a>,
    (term, over): (Fence, bool),
    place: usize,
) {
    let before = known.seen.insert(observer, Seen { term, over, place });
    let back = |last: &Seen| term < last.term || (term == last.term && last.over && !over);
    if let Some(last) = before.filter(back) {
        let told = |over: bool, term: Fence| -> String {
            if over {
                format!("the end of term {}", shown(term))
            } else {
                format!("term {}", shown(term))
            }
        };
        let (_, _, role) = observer;
        let text = format!(
            "{} is told of {} of role {role} after {}",
            bench.who(place),
            told(over, term),
            told(last.over, last.term)
        );
        bench.object(Rule::Observers, [last.place, place], text);
    }
}
