//! What can be seen without doing anything.

use quorate_member::{Standing, Status};
use rustix::time::{ClockId, clock_gettime};

use super::Finding;
use crate::operations::{Certificate, Diagnosis, Times};

/// Certificates are renewed this many days ahead.
const DAYS: u64 = 30;
/// A file system with less is about to be full.
const FREE: u64 = 64 << 20;
/// Clocks may be off by a tenth; one that is off by a twentieth is no clock.
const RATE: f64 = 0.05;
/// A jump of the calendar against the time since boot that is worth a word, in seconds.
const JUMP: f64 = 1.0;

/// Everything that a status and a diagnosis say.
pub(super) fn all(status: &Status, diagnosis: &Diagnosis) -> Vec<Finding> {
    let mut findings = vec![standing(status), voters(status)];
    findings.extend(links(status));
    findings.extend(lease(status, diagnosis));
    findings.extend(disk(status, diagnosis));
    findings.push(certificates(diagnosis));
    findings
}

fn standing(status: &Status) -> Finding {
    let word = status.standing.as_str();
    let advice = match status.standing {
        Standing::Member => {
            let seated = status.members.iter().filter(|it| it.state == "seated").count();
            let seen = format!("{} is a member, view {} of {seated}", status.name, status.epoch);
            return Finding::well("standing", seen);
        }
        Standing::Founding => {
            "start all seeds, the first one with --found (once); if one is pledged to a founder whose \
             disk is lost: quorate doctor --clear-pledge --data DIR"
        }
        Standing::Joining => "it waits for a seat: see quorate events, and the links below",
        Standing::Jeopardy => "its renewals are not answered: see who votes, and the links below",
        Standing::NotPrimary => "the others go on without it: see quorate events for the reason",
        Standing::MajorityLost => {
            "start a majority of the seeds; if their disks are lost for good: quorate recover --help"
        }
        Standing::Left => "it has left: start it again",
    };
    Finding::wrong("standing", format!("{} is {word}", status.name), advice)
}

fn voters(status: &Status) -> Finding {
    let authority = &status.authority;
    let seated = |name: &&String| {
        status.members.iter().any(|member| member.name == **name && member.state == "seated")
    };
    let (all, here) = (authority.voters.len(), authority.voters.iter().filter(seated).count());
    let led = match &authority.leader {
        Some(leader) => format!("led by {leader}"),
        None if authority.kind == "raft" => "led by nobody".to_owned(),
        None => "led by whom is not known here".to_owned(),
    };
    let seen = format!("{} ({here} of {all} voters are seated), {led}", authority.kind);
    let missing: Vec<&str> =
        authority.voters.iter().filter(|it| !seated(it)).map(String::as_str).collect();
    if authority.kind == "raft" && authority.leader.is_none() {
        return Finding::wrong("authority", seen, "start a majority of the seeds");
    }
    if missing.is_empty() {
        return match all {
            1 => Finding::poor(
                "authority",
                seen,
                "one voter survives nothing: name three seeds when its disk matters",
            ),
            _ => Finding::well("authority", seen),
        };
    }
    let advice = format!("start {}: one more that fails may be one too many", missing.join(", "));
    Finding::poor("authority", seen, advice)
}

fn links(status: &Status) -> Vec<Finding> {
    let mut findings = Vec::new();
    let slow_us = status.lease_ms * 1_000 / 20;
    for link in &status.links {
        let known = status.members.iter().any(|it| it.name == link.name && it.state == "seated");
        if link.state != "up" && known {
            findings.push(Finding::wrong(
                "link",
                format!("{} is {} from here, and is seated", link.name, link.state),
                "look at the network between the two: both directions of its port",
            ));
        }
        if let Some(rtt) = link.rtt_us.filter(|rtt| *rtt > slow_us) {
            findings.push(Finding::poor(
                "link",
                format!("{} answers after {} ms", link.name, rtt / 1_000),
                "a lease of a farther profile (cloud, wan) fits such a network better",
            ));
        }
    }
    for member in &status.members {
        for other in &member.unreachable {
            findings.push(Finding::wrong(
                "link",
                format!("{} says that it does not reach {other}", member.name),
                format!("look at the network from {} to {other}", member.name),
            ));
        }
    }
    if findings.is_empty() {
        let worst = status.links.iter().filter_map(|link| link.rtt_us).max().unwrap_or(0);
        let seen = format!("{} links, the slowest {worst} µs", status.links.len());
        findings.push(Finding::well("links", seen));
    }
    findings
}

fn lease(status: &Status, diagnosis: &Diagnosis) -> Option<Finding> {
    let Times { count, p1_us, .. } = diagnosis.slack.as_ref()?;
    // It is renewed every quarter: what is left then is 0.65 T if nothing is slow.
    let seen = format!(
        "{} ms; renewed {count} times, 99 of 100 with more than {} ms left; lost {} times",
        status.lease_ms,
        p1_us / 1_000,
        diagnosis.leases_lost
    );
    let slack = status.lease_ms * 1_000 / 4;
    Some(match *p1_us < slack {
        true => Finding::poor(
            "lease",
            seen,
            "renewals come late: a slow disk of a voter, a busy machine, or a lease too short for both",
        ),
        false => Finding::well("lease", seen),
    })
}

fn disk(status: &Status, diagnosis: &Diagnosis) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(times) = &diagnosis.disk {
        let seen = format!(
            "{} writes, p50 {} µs, p99 {} µs, longest {} ms",
            times.count,
            times.p50_us,
            times.p99_us,
            times.longest_us / 1_000
        );
        let slow = status.lease_ms * 1_000 / 20;
        findings.push(match times.p99_us > slow {
            true => Finding::poor(
                "disk",
                seen,
                "fsync is slow for this lease: a disk of its own for --data, or a longer lease",
            ),
            false => Finding::well("disk", seen),
        });
    }
    if let Some(free) = diagnosis.free {
        let seen = format!("{} MiB free in {}", free >> 20, diagnosis.data.display());
        findings.push(match free < FREE {
            true => Finding::wrong(
                "space",
                seen,
                "make room: a voter whose disk is full stops, and its member with it",
            ),
            false => Finding::well("space", seen),
        });
    }
    findings
}

fn certificates(diagnosis: &Diagnosis) -> Finding {
    const WHAT: &str = "certificates";
    if !diagnosis.tls {
        return Finding::poor(
            WHAT,
            "none: members are not told from strangers",
            "quorate ca init makes an authority; plaintext is for loopback",
        );
    }
    for Certificate { file, days, wrong, .. } in &diagnosis.certificates {
        if let Some(wrong) = wrong {
            return Finding::wrong(WHAT, wrong.clone(), "put a readable file there");
        }
        let renew = format!(
            "quorate ca renew {file} --dir WHERE-ca.key-IS; agents take it up by themselves"
        );
        match days {
            None => return Finding::wrong(WHAT, format!("{file} is over"), renew),
            Some(days) if *days < DAYS => {
                return Finding::poor(WHAT, format!("{file} ends in {days} days"), renew);
            }
            Some(_) => {}
        }
    }
    let least = diagnosis.certificates.iter().filter_map(|it| it.days).min().unwrap_or(0);
    Finding::well(WHAT, format!("good for {least} days"))
}

/// A reading of the clocks of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    boot: f64,
    raw: f64,
    calendar: f64,
}

impl Clock {
    pub(super) fn read() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        Self {
            boot: read(ClockId::Boottime),
            raw: read(ClockId::MonotonicRaw),
            calendar: read(ClockId::Realtime),
        }
    }

    /// What has happened to them since.
    pub(super) fn finding(self) -> Finding {
        self.against(Self::read())
    }

    fn against(self, now: Self) -> Finding {
        const WHAT: &str = "clock";
        let (boot, raw) = (now.boot - self.boot, now.raw - self.raw);
        let jump = (now.calendar - now.boot) - (self.calendar - self.boot);
        if jump.abs() > JUMP {
            return Finding::poor(
                WHAT,
                format!("the calendar jumped by {jump:.1} s"),
                "a hypervisor that stops this machine stops its leases' clocks too: use fences",
            );
        }
        // Too short a time to say anything about rates.
        if raw < 0.01 {
            return Finding::well(WHAT, "runs");
        }
        let off = boot / raw - 1.0;
        let seen = format!("off by {:.0} millionths from the counter of this machine", off * 1e6);
        match off.abs() > RATE {
            true => Finding::wrong(
                WHAT,
                seen,
                "leases hold only if no clock is off by more than a tenth: see to its time service",
            ),
            false => Finding::well(WHAT, seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_member::{AuthorityStatus, LinkStatus, MemberStatus};

    use super::super::Verdict;
    use super::*;

    fn member(name: &str, unreachable: &[&str]) -> MemberStatus {
        MemberStatus {
            name: name.into(),
            address: "h:1".into(),
            life: 1,
            state: "seated".into(),
            unreachable: unreachable.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    fn healthy() -> (Status, Diagnosis) {
        let names = ["a", "b", "c"];
        let status = Status {
            name: "a".into(),
            standing: Standing::Member,
            lease_ms: 3_000,
            members: names.iter().map(|name| member(name, &[])).collect(),
            authority: AuthorityStatus {
                kind: "raft".into(),
                leader: Some("a".into()),
                voters: names.iter().map(|name| (*name).to_owned()).collect(),
                stopped: None,
            },
            links: vec![LinkStatus {
                name: "b".into(),
                state: "up".into(),
                rtt_us: Some(90),
                queued: 0,
            }],
            ..Status::default()
        };
        let times =
            Times { count: 9, p1_us: 1_900_000, p50_us: 400, p99_us: 900, longest_us: 1_000 };
        let certificate =
            Certificate { file: "a.pem".into(), ends: Some(1), days: Some(300), wrong: None };
        let diagnosis = Diagnosis {
            version: "0".into(),
            data: "/d".into(),
            free: Some(1 << 30),
            certificates: vec![certificate],
            tls: true,
            disk: Some(times.clone()),
            slack: Some(times),
            leases_lost: 0,
            sessions: 0,
            busy: 0,
            draining: false,
        };
        (status, diagnosis)
    }

    /// What is found not to be well, of all that a change makes of a healthy cluster.
    fn found(change: impl FnOnce(&mut Status, &mut Diagnosis)) -> Vec<(&'static str, Verdict)> {
        let (mut status, mut diagnosis) = healthy();
        change(&mut status, &mut diagnosis);
        let findings = all(&status, &diagnosis);
        let bad = findings.into_iter().filter(|it| it.verdict != Verdict::Well);
        bad.map(|it| {
            assert!(it.advice.is_some(), "{it:?}");
            (it.what, it.verdict)
        })
        .collect()
    }

    #[test]
    fn what_is_wrong_is_found_and_nothing_else() {
        use Verdict::{Poor, Wrong};
        assert_eq!(found(|_, _| {}), []);
        assert_eq!(
            found(|status, _| status.standing = Standing::MajorityLost),
            [("standing", Wrong)]
        );
        assert_eq!(found(|status, _| drop(status.members.pop())), [("authority", Poor)]);
        assert_eq!(found(|status, _| status.authority.leader = None), [("authority", Wrong)]);
        assert_eq!(found(|status, _| status.links[0].state = "down".into()), [("link", Wrong)]);
        assert_eq!(found(|status, _| status.links[0].rtt_us = Some(400_000)), [("link", Poor)]);
        assert_eq!(found(|status, _| status.members[1] = member("b", &["c"])), [("link", Wrong)]);
        let late = |_: &mut Status, it: &mut Diagnosis| {
            it.slack.as_mut().unwrap().p1_us = 100_000;
        };
        assert_eq!(found(late), [("lease", Poor)]);
        let slow = |_: &mut Status, it: &mut Diagnosis| {
            it.disk.as_mut().unwrap().p99_us = 1_000_000;
        };
        assert_eq!(found(slow), [("disk", Poor)]);
        assert_eq!(found(|_, it| it.free = Some(1 << 20)), [("space", Wrong)]);
        assert_eq!(found(|_, it| it.certificates[0].days = Some(29)), [("certificates", Poor)]);
        assert_eq!(found(|_, it| it.certificates[0].days = None), [("certificates", Wrong)]);
        assert_eq!(found(|_, it| it.tls = false), [("certificates", Poor)]);
    }

    #[test]
    fn clocks_that_jump_or_run_wrong_are_seen() {
        let begun = Clock { boot: 10.0, raw: 10.0, calendar: 1_000.0 };
        let later = |boot, raw, calendar| begun.against(Clock { boot, raw, calendar }).verdict;
        assert_eq!(later(12.0, 12.0, 1_002.0), Verdict::Well);
        assert_eq!(later(12.0, 12.0, 1_009.0), Verdict::Poor);
        assert_eq!(later(12.2, 12.0, 1_002.2), Verdict::Wrong);
    }
}
