//! What members wrote down of one lock (`quorate agent --trace`), as one trace.
//!
//! A node of it is a user of a process. Files of one machine have one clock, so that what overlaps in them
//! overlapped; of several machines the calendars are compared, and what is judged is as good as those.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::trace::{END, Happening, Header, Outcome, Record};
use quorate_core::{NodeId, Time};
use serde_json::Value;

use super::{Hosts, admit, record};
use crate::trace_file::{self, BadTrace, TraceFile};

/// What a file says that a member has written.
struct File {
    process: String,
    boot: String,
    calendar: u64,
    records: Vec<Record>,
    /// Has it an end? If not, its process was killed, or goes on.
    ended: bool,
}

/// What was made of some files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// One trace.
    pub trace: TraceFile,
    /// The locks that are in the files.
    pub locks: BTreeSet<String>,
    /// Do they come of one machine? If not, calendars are compared.
    pub one_clock: bool,
}

/// Makes one trace of one lock of what members wrote down: each text is a file, with its name. A lock of
/// the namespace `main` needs no `main/`.
///
/// # Errors
/// The first thing that cannot be read, a trace with gaps, or a lock that is in none of them.
pub fn members(files: &[(String, String)], lock: &str) -> Result<Merged, BadTrace> {
    let lock = if lock.contains('/') { lock.to_owned() } else { format!("main/{lock}") };
    let read: Vec<File> =
        files.iter().map(|(name, text)| read(name, text)).collect::<Result<_, _>>()?;
    let one_clock = read.windows(2).all(|two| two[0].boot == two[1].boot);
    let mut locks = BTreeSet::new();
    let mut hosts = Hosts::default();
    let mut merged: Vec<Record> = Vec::new();
    // A process that wrote two files, one after the other, has ended if the later one has.
    let ended: BTreeSet<&str> =
        read.iter().filter(|it| it.ended).map(|it| it.process.as_str()).collect();
    for process in read.iter().map(|it| it.process.as_str()).collect::<BTreeSet<_>>() {
        let mut records: Vec<(u64, &Record)> = Vec::new();
        for file in read.iter().filter(|file| file.process == process) {
            let shift = if one_clock { 0 } else { file.calendar };
            let of_lock = file.records.iter().filter(|it| {
                let name = it.steps.first().map(|step| step.name.as_ref());
                locks.extend(name.map(str::to_owned));
                name == Some(&lock)
            });
            records.extend(of_lock.map(|it| (it.at.0.saturating_add(shift), it)));
        }
        records.sort_by_key(|(at, _)| *at);
        merged.extend(users(process, &records, ended.contains(process), &mut hosts));
    }
    if merged.is_empty() {
        let mut known: Vec<&str> = locks.iter().map(String::as_str).take(20).collect();
        if known.is_empty() {
            known.push("none");
        }
        let fault = format!("there is nothing about {lock}; the locks in it: {}", known.join(", "));
        return Err(BadTrace { line: 1, fault });
    }
    admit(&hosts, merged.len())?;
    merged.sort_by_key(|record| (record.at, rank(record)));
    let first = merged.first().map_or(Time(0), |it| it.at);
    for record in &mut merged {
        record.at = Time(record.at.0 - first.0);
    }
    let mut trace = hosts.trace("member", merged);
    // Whether anybody is still owed something cannot be said of a stretch of time.
    trace.header.spec = r#"{"claims":["safety","fencing"]}"#.to_owned();
    Ok(Merged { trace, locks, one_clock })
}

/// Of what happened at the same time, what is given back comes first.
fn rank(record: &Record) -> u8 {
    match &record.input {
        Happening::Command(command) if command == "Release" => 0,
        Happening::Crash => 1,
        Happening::Command(_) => 2,
        _ => 3,
    }
}

/// What the users of a process did: wishes that came to nothing are left out, and what was held when a
/// killed process wrote its last line counts as given back there.
fn users(process: &str, records: &[(u64, &Record)], ended: bool, hosts: &mut Hosts) -> Vec<Record> {
    let mut all = Vec::new();
    let mut wished: BTreeMap<u64, Time> = BTreeMap::new();
    let mut held: BTreeMap<u64, (NodeId, bool)> = BTreeMap::new();
    for (at, it) in records {
        let wish = it.steps.first().and_then(|step| step.fields.first()).map_or(0, |field| field.1);
        let (at, user) = (Time(*at), format!("{process} {}", it.node.number()));
        match (&it.input, it.effects.first()) {
            (Happening::Command(command), _) if command == "Acquire" => {
                wished.insert(wish, at);
            }
            (Happening::Command(command), _) if command == "Release" => {
                wished.remove(&wish);
                if let Some((node, lost)) = held.remove(&wish)
                    && !lost
                {
                    all.push(record(at, node, it.input.clone(), Vec::new()));
                }
            }
            (_, Some(Outcome::Emit(told))) if told == "Lost" => {
                if let Some((node, lost)) = held.get_mut(&wish) {
                    *lost = true;
                    all.push(record(at, *node, it.input.clone(), it.effects.clone()));
                }
            }
            (_, Some(Outcome::Emit(_))) => {
                let Some(since) = wished.remove(&wish) else { continue };
                let node = hosts.node(&user);
                let acquire = Happening::Command("Acquire".to_owned());
                all.push(record(since, node, acquire, Vec::new()));
                all.push(record(at, node, it.input.clone(), it.effects.clone()));
                held.insert(wish, (node, false));
            }
            _ => {}
        }
    }
    if let (false, Some((last, _))) = (ended, records.last()) {
        // Right after it, so that a grant in that line is not taken for a later one.
        let end = Time(last.saturating_add(1));
        let crashed = held.values().filter(|(_, lost)| !lost);
        all.extend(crashed.map(|(node, _)| record(end, *node, Happening::Crash, Vec::new())));
    }
    all
}

fn read(name: &str, text: &str) -> Result<File, BadTrace> {
    let bad = |line: usize, fault: String| BadTrace { line, fault: format!("{name}: {fault}") };
    let mut lines = text.lines().zip(1..);
    let header = lines.next().map(|(line, _)| trace_file::header(line)).transpose();
    let header: Header = header
        .map_err(|fault| bad(1, fault))?
        .ok_or_else(|| bad(1, "the trace is empty".to_owned()))?;
    if header.algorithm != "locks" {
        let fault = "it was not written by a member (quorate agent --trace)".to_owned();
        return Err(bad(1, fault));
    }
    let spec: Value = serde_json::from_str(&header.spec).unwrap_or_default();
    let word = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let (process, boot) = (word("process"), word("boot"));
    let calendar = spec["calendar"].as_u64().unwrap_or(0);
    let mut file = File { process, boot, calendar, records: Vec::new(), ended: false };
    let torn = !text.ends_with('\n');
    let last = text.lines().count();
    for (line, number) in lines {
        if line == END {
            file.ended = true;
            break;
        }
        match trace_file::record(line, header.nodes) {
            Ok(record) if record.steps.first().is_some_and(|step| step.name == "gap") => {
                let fault = "lines are missing: the disk was too slow; trace fewer locks \
                             (--trace-sample)";
                return Err(bad(number, fault.to_owned()));
            }
            Ok(record) => file.records.push(record),
            // The last line of a process that was killed, or is at it.
            Err(_) if torn && number == last => break,
            Err(fault) => return Err(bad(number, fault)),
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::verify;

    fn file(process: &str, boot: &str, lines: &[(u64, u64, &str)], end: bool) -> (String, String) {
        let spec = format!(
            r#"{{"member":"m","process":"{process}","boot":"{boot}","calendar":0,"one_in":1}}"#
        );
        let mut text = format!(
            "{{\"quorate\":1,\"engine\":\"member\",\"algorithm\":\"locks\",\"nodes\":4096,\
             \"spec\":{spec}}}\n"
        );
        for (t, wish, what) in lines {
            let input = match *what {
                "Acquire" | "Release" => {
                    format!(
                        r#"{{"command":"{what}"}},"steps":[{{"step":"main/job","wish":{wish}}}]"#
                    )
                }
                told => format!(
                    r#"{{"timer":"x"}},"steps":[{{"step":"main/job","wish":{wish}}}],"out":[{{"emit":"{told}"}}]"#
                ),
            };
            text += &format!("{{\"t\":{t},\"n\":1,\"in\":{input}}}\n");
        }
        if end {
            text += END;
            text += "\n";
        }
        (format!("{process}.trace"), text)
    }

    /// What is found in a merge of these files.
    fn found(files: &[(String, String)]) -> Option<&'static str> {
        let merged = members(files, "job").unwrap();
        verify(&merged.trace).unwrap().findings.first().map(|it| it.property)
    }

    const FIRST: [(u64, u64, &str); 3] =
        [(10, 1, "Acquire"), (11, 1, "Fenced(5:1)"), (20, 1, "Release")];

    #[test]
    fn guards_of_two_members_that_overlap_are_found() {
        let a = file("a", "x", &FIRST, true);
        let after = |at, fence| [(12, 7, "Acquire"), (at, 7, fence), (90, 7, "Release")];
        let good = file("b", "x", &after(21, "Fenced(5:2)"), true);
        assert_eq!(found(&[a.clone(), good]), None);
        let early = file("b", "x", &after(15, "Fenced(5:2)"), true);
        assert_eq!(found(&[a.clone(), early]), Some("safety"));
        let old = file("b", "x", &after(21, "Fenced(4:9)"), true);
        assert_eq!(found(&[a, old]), Some("fencing"));
    }

    #[test]
    fn who_was_killed_holds_nothing_after_its_last_line_and_who_gave_up_never_did() {
        let killed = file("a", "x", &FIRST[..2], false);
        let next = file("b", "x", &[(12, 1, "Acquire"), (40, 1, "Fenced(6:1)")], false);
        assert_eq!(found(&[killed.clone(), next]), None);
        let gave_up = file("b", "x", &[(12, 1, "Acquire"), (13, 1, "Release")], true);
        let merged = members(&[killed, gave_up], "main/job").unwrap();
        assert_eq!(merged.trace.records.len(), 3, "a wish, a grant and the end of it");
        assert!(merged.one_clock);
    }

    #[test]
    fn a_lost_guard_is_over_and_two_files_of_a_process_are_one() {
        let lines =
            [(10, 1, "Acquire"), (11, 1, "Fenced(5:1)"), (15, 1, "Lost"), (90, 1, "Release")];
        let (name, one) = file("a", "x", &lines[..2], false);
        let other = file("a", "x", &lines[2..], true);
        let b = file("b", "y", &[(12, 1, "Acquire"), (40, 1, "Fenced(6:1)")], false);
        assert_eq!(found(&[other.clone(), (name.clone(), one.clone()), b.clone()]), None);
        assert!(!members(&[other, b], "job").unwrap().one_clock);
        let torn = one + "{\"t\":12,\"n\"";
        assert!(members(&[(name, torn)], "job").is_ok());
    }

    #[test]
    fn gaps_and_other_files_are_refused_with_a_sentence() {
        let said = |text: &str, lock: &str| {
            members(&[("f".to_owned(), text.to_owned())], lock).unwrap_err().to_string()
        };
        let (_, whole) = file("a", "x", &FIRST, true);
        assert!(
            said(&whole, "other").contains("nothing about main/other; the locks in it: main/job")
        );
        let gap = r#"{"t":12,"n":1,"in":{"timer":"gap"},"steps":[{"step":"gap","lines":3}]}"#;
        assert!(said(&whole.replace(END, gap), "job").contains("--trace-sample"));
        assert!(said("", "job").contains("empty"));
        let foreign = whole.replace("\"locks\"", "\"mutex\"");
        assert!(said(&foreign, "job").contains("quorate agent --trace"));
        assert!(said(&whole.replace("\"wish\":1", "\"wish\":"), "job").contains("line 2"));
    }
}
