//! Views and lives: V1, V2, V4, and that nobody ends without a reason.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;

use quorate_core::Life;

use super::super::{Fact, Record};
use super::processes::At;
use super::{Bench, Rule};
use crate::register::Epoch;

/// A view, as the first record of it says.
struct Charter<'a> {
    place: usize,
    members: &'a [Life],
}

type Charters<'a> = BTreeMap<Epoch, Charter<'a>>;

/// Judges; how many views there were.
pub(super) fn judge(bench: &mut Bench<'_>) -> usize {
    let charters = one_history(bench);
    epochs_grow(bench);
    let out = lives(bench, &charters);
    acts(bench, &out);
    stop_before_decide(bench, &charters);
    endings(bench);
    charters.len()
}

fn charter(record: &Record) -> Option<(Epoch, &[Life])> {
    match &record.fact {
        Fact::Installed { epoch, members, .. } | Fact::Decided { epoch, members } => {
            Some((*epoch, members))
        }
        _ => None,
    }
}

/// Every epoch has one charter, whoever says so.
fn one_history<'a>(bench: &mut Bench<'a>) -> Charters<'a> {
    let mut charters: Charters<'a> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        let Some((epoch, members)) = charter(record) else { continue };
        bench.test(Rule::OneHistory);
        let first = charters.entry(epoch).or_insert(Charter { place, members });
        if first.members != members {
            let (one, other) = (bench.who(first.place), bench.who(place));
            let Epoch(epoch) = epoch;
            let text = format!(
                "epoch {epoch} is {:?} for {one} and {members:?} for {other}",
                first.members
            );
            let between = [first.place, place];
            bench.object(Rule::OneHistory, between, text);
        }
    }
    charters
}

/// What a process installs is later than what it installed before, and than what anybody had installed
/// when it started: its life was given to it after that.
fn epochs_grow(bench: &mut Bench<'_>) {
    let mut latest: Option<(Epoch, usize)> = None;
    let mut floor: BTreeMap<At, (Epoch, usize)> = BTreeMap::new();
    let mut seen: BTreeMap<At, (Epoch, usize)> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        let at = bench.processes.at(place);
        match &record.fact {
            Fact::Start { .. } => {
                if let Some(latest) = latest {
                    floor.entry(at).or_insert(latest);
                }
            }
            Fact::Installed { epoch, .. } => {
                if let Some((before, earlier)) = floor.get(&at)
                    && epoch <= before
                {
                    goes_back(bench, *earlier, place, *before, *epoch);
                }
                floor.insert(at, (*epoch, place));
                if latest.is_none_or(|(latest, _)| latest < *epoch) {
                    latest = Some((*epoch, place));
                }
            }
            Fact::Decided { epoch, .. } => {
                if let Some((before, earlier)) = seen.insert(at, (*epoch, place))
                    && *epoch < before
                {
                    goes_back(bench, earlier, place, before, *epoch);
                }
            }
            _ => {}
        }
    }
}

fn goes_back(bench: &mut Bench<'_>, earlier: usize, place: usize, before: Epoch, epoch: Epoch) {
    let (one, other) = (bench.who(earlier), bench.who(place));
    let text = format!("{other} has epoch {} after {one} had epoch {}", epoch.0, before.0);
    bench.object(Rule::OneHistory, [earlier, place], text);
}

/// A life is of one process, sits in views that have it, and is in no view after one that has left it
/// out. Which record shows of each life that it was left out.
fn lives(bench: &mut Bench<'_>, charters: &Charters<'_>) -> BTreeMap<Life, usize> {
    let mut of: BTreeMap<Life, usize> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        let life = match &record.fact {
            Fact::Life { life } => *life,
            Fact::Installed { epoch, life, members } => {
                if !members.contains(life) {
                    let who = bench.who(place);
                    let text = format!("{who} sits in epoch {} as life {life:?}", epoch.0);
                    let text = format!("{text}, and that view has {members:?}");
                    let first = charters.get(epoch).map_or(place, |charter| charter.place);
                    bench.object(Rule::Lives, [first, place], text);
                }
                *life
            }
            _ => continue,
        };
        bench.test(Rule::Lives);
        let first = *of.entry(life).or_insert(place);
        if bench.processes.at(first) != bench.processes.at(place) {
            let (one, other) = (bench.who(first), bench.who(place));
            let text = format!("life {life:?} is that of a process of {one} and of one of {other}");
            bench.object(Rule::Lives, [first, place], text);
        }
    }
    left_out(bench, charters)
}

fn left_out(bench: &mut Bench<'_>, charters: &Charters<'_>) -> BTreeMap<Life, usize> {
    let mut out: BTreeMap<Life, usize> = BTreeMap::new();
    let mut sat: BTreeMap<Life, Epoch> = BTreeMap::new();
    for (epoch, charter) in charters {
        for life in charter.members {
            if let Some(without) = out.get(life) {
                let text = format!(
                    "life {life:?} is in epoch {}, and an earlier view had left it out",
                    epoch.0
                );
                bench.object(Rule::Lives, [*without, charter.place], text);
            }
            sat.insert(*life, *epoch);
        }
        for (life, last) in &sat {
            if last < epoch {
                // The first record of any later view without it.
                let first = out.entry(*life).or_insert(charter.place);
                *first = (*first).min(charter.place);
            }
        }
    }
    out
}

/// A life that was left out neither renews nor is granted anything.
fn acts(bench: &mut Bench<'_>, out: &BTreeMap<Life, usize>) {
    let mut lives: BTreeMap<At, Life> = BTreeMap::new();
    let mut told: BTreeSet<At> = BTreeSet::new();
    for (place, record) in bench.records.iter().enumerate() {
        let at = bench.processes.at(place);
        let (until, what) = match &record.fact {
            Fact::Life { life } | Fact::Installed { life, .. } => {
                lives.insert(at, *life);
                told.remove(&at);
                continue;
            }
            Fact::Until { at } => (*at, "renews"),
            Fact::Presides { until, .. } => (*until, "presides"),
            Fact::Granted { until, .. } => (*until, "is granted a lock"),
            _ => continue,
        };
        // What has run out already when it is told is nothing that anybody can act on.
        let Some(life) = lives.get(&at).filter(|_| until > record.clock) else { continue };
        bench.test(Rule::Lives);
        if let Some(without) = out.get(life).filter(|without| **without < place)
            && told.insert(at)
        {
            let who = bench.who(place);
            let text = format!("{who} {what} as life {life:?}, which a view had left out");
            bench.object(Rule::Lives, [*without, place], text);
        }
    }
}

/// Who comes from the last view has stopped in it before anybody knows of the next one.
fn stop_before_decide(bench: &mut Bench<'_>, charters: &Charters<'_>) {
    let mut installed: BTreeMap<(Life, Epoch), usize> = BTreeMap::new();
    let mut stopped: BTreeMap<(At, Epoch), usize> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        match &record.fact {
            Fact::Installed { epoch, life, .. } => {
                installed.entry((*life, *epoch)).or_insert(place);
            }
            Fact::Stopped { epoch } => {
                stopped.entry((bench.processes.at(place), *epoch)).or_insert(place);
            }
            _ => {}
        }
    }
    for ((before, last), (after, next)) in charters.iter().zip(charters.iter().skip(1)) {
        if before.0 + 1 != after.0 {
            continue;
        }
        for life in next.members.iter().filter(|life| last.members.contains(life)) {
            let Some(&sat) = installed.get(&(*life, *before)) else { continue };
            bench.test(Rule::StopBeforeDecide);
            let stop = stopped.get(&(bench.processes.at(sat), *before)).copied();
            let known = bench.record(next.place).t;
            if stop.is_some_and(|stop| bench.record(stop).t <= known) {
                continue;
            }
            let text = format!(
                "{} had not stopped in epoch {} when epoch {} was decided",
                bench.who(sat),
                before.0,
                after.0
            );
            bench.object(Rule::StopBeforeDecide, [stop.unwrap_or(sat), next.place], text);
        }
    }
}

fn endings(bench: &mut Bench<'_>) {
    for (place, record) in bench.records.iter().enumerate() {
        match &record.fact {
            Fact::Start { .. } => bench.test(Rule::Endings),
            Fact::Died { whom, how, .. } => {
                let own = |(_, record): &(usize, &Record)| record.member == *whom;
                let before = bench.records[..place].iter().enumerate().rev().find(own);
                let first = before.map_or(place, |(place, _)| place);
                let text = format!("{whom} has ended, and nobody told it to: {how}");
                bench.object(Rule::Endings, [first, place], text);
            }
            _ => {}
        }
    }
}
