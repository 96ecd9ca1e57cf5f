//! `/metrics`: what a member and its agent count, in the text format of Prometheus (0.0.4).

use std::fmt::{Display, Write as _};
use std::time::Duration;

use quorate_member::{Figures, Spread, Standing, Status};
use quorate_transport::{Counters, PeerState, PeerStats};

/// What standing can be, for one series each.
const STANDINGS: [Standing; 7] = [
    Standing::Founding,
    Standing::Joining,
    Standing::Member,
    Standing::Jeopardy,
    Standing::NotPrimary,
    Standing::MajorityLost,
    Standing::Left,
];

/// What is written out.
pub(crate) struct Observed<'a> {
    pub(crate) status: &'a Status,
    pub(crate) figures: &'a Figures,
    pub(crate) counters: Counters,
    pub(crate) peers: Vec<PeerStats>,
    /// What is left of the lease now.
    pub(crate) left: Option<Duration>,
    /// Sessions, and those that hold something.
    pub(crate) sessions: (usize, usize),
    pub(crate) draining: bool,
    pub(crate) ready: bool,
    /// When certificates end, in seconds since 1970, by file.
    pub(crate) certificates: Vec<(String, u64)>,
}

/// Series as text.
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP quorate_{name} {help}\n# TYPE quorate_{name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "quorate_{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.value(name, &[], value);
    }

    fn spread(&mut self, name: &str, help: &str, spread: &Spread) {
        self.head(name, "histogram", help);
        let mut sum = 0;
        for (end, count) in &spread.stretches {
            sum += count;
            let end = end.map_or_else(|| "+Inf".to_owned(), |end| end.as_secs_f64().to_string());
            self.value(&format!("{name}_bucket"), &[("le", &end)], sum);
        }
        self.value(&format!("{name}_sum"), &[], spread.sum.as_secs_f64());
        self.value(&format!("{name}_count"), &[], sum);
    }
}

/// A label's value: the format escapes these three.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All of it.
pub(crate) fn text(observed: &Observed<'_>) -> String {
    let mut text = Text(String::new());
    membership(&mut text, observed);
    locks(&mut text, observed);
    links(&mut text, observed);
    traffic(&mut text, observed);
    text.0
}

fn membership(text: &mut Text, observed: &Observed<'_>) {
    let Observed { status, figures, .. } = observed;
    let version = env!("CARGO_PKG_VERSION");
    text.head("info", "gauge", "Who this is; always 1.");
    let labels = [
        ("member", status.name.as_str()),
        ("cluster", &status.cluster_name),
        ("id", status.cluster.as_deref().unwrap_or("")),
        ("version", version),
    ];
    text.value("info", &labels, 1);
    text.head("standing", "gauge", "1 for what the member may do, 0 for all else.");
    for standing in STANDINGS {
        let is = u8::from(standing == status.standing);
        text.value("standing", &[("standing", standing.as_str())], is);
    }
    let ready = u8::from(observed.ready);
    text.one("ready", "gauge", "1 while /readyz says yes.", ready);
    let draining = u8::from(observed.draining);
    text.one("draining", "gauge", "1 while nothing new is granted to clients.", draining);
    text.one("epoch", "gauge", "The view that was decided last, as far as is known.", status.epoch);
    text.one("views_total", "counter", "Views that this process sat in.", figures.views);
    text.head("members", "gauge", "Lives in the register, by state.");
    for state in ["seated", "waiting", "barred", "doomed", "left"] {
        let count = status.members.iter().filter(|member| member.state == state).count();
        text.value("members", &[("state", state)], count);
    }
    text.head(
        "unreachable",
        "gauge",
        "1 for each pair of which one says that it does not reach the other.",
    );
    for member in &status.members {
        for other in &member.unreachable {
            text.value("unreachable", &[("from", &member.name), ("to", other)], 1);
        }
    }
    let led = u8::from(status.authority.leader.is_some());
    text.one("authority_has_leader", "gauge", "1 if it is known who leads the consensus.", led);
    let voters = status.authority.voters.len();
    text.one("authority_voters", "gauge", "Disks that vote.", voters);
    text.one("lease_seconds", "gauge", "How long a lease is.", seconds(status.lease_ms));
    let left = observed.left.unwrap_or_default().as_secs_f64();
    text.one("lease_left_seconds", "gauge", "What is left of the own lease; 0 without one.", left);
    let help = "What was left of the lease each time that it was renewed.";
    text.spread("lease_slack_seconds", help, &figures.slack);
    let help = "Times that the lease ran out or the life ended.";
    text.one("leases_lost_total", "counter", help, figures.leases_lost);
    if let Some(syncs) = &figures.syncs {
        let help = "Time to make a write of the consensus durable on the own disk.";
        text.spread("disk_sync_seconds", help, syncs);
    }
    if !observed.certificates.is_empty() {
        text.head("certificate_expiry_seconds", "gauge", "When a certificate ends, since 1970.");
        for (file, at) in &observed.certificates {
            text.value("certificate_expiry_seconds", &[("file", file)], at);
        }
    }
}

fn locks(text: &mut Text, observed: &Observed<'_>) {
    let figures = observed.figures;
    text.one("locks_held", "gauge", "Guards of this process's users.", figures.held);
    text.one(
        "locks_waiting",
        "gauge",
        "Wishes of this process's users that wait.",
        figures.waiting,
    );
    let help = "Locks granted at once: the right to them rested here.";
    text.one("locks_at_once_total", "counter", help, figures.at_once);
    let help = "Time from the wish to the grant, of those that were not granted at once.";
    text.spread("lock_wait_seconds", help, &figures.waits);
    text.one("locks_refused_total", "counter", "Wishes that were refused.", figures.refused);
    let (sessions, busy) = observed.sessions;
    text.one("sessions", "gauge", "Sessions of clients.", sessions);
    text.one("sessions_busy", "gauge", "Those of them that hold something.", busy);
}

fn links(text: &mut Text, observed: &Observed<'_>) {
    type Look = fn(&PeerStats) -> Option<f64>;
    let looks: [(&str, &str, &str, Look); 7] = [
        ("link_up", "gauge", "1 while there is a connection.", |peer| {
            Some(f64::from(u8::from(matches!(peer.state, PeerState::Up(_)))))
        }),
        ("link_rtt_seconds", "gauge", "The latest round trip.", |peer| {
            peer.rtt.map(|rtt| rtt.0 as f64 / 1e9)
        }),
        ("link_queued_bytes", "gauge", "Bytes that are not acknowledged.", |peer| {
            Some((peer.control_queued + peer.data_queued) as f64)
        }),
        ("link_frames_in_total", "counter", "Frames from there.", |peer| {
            Some(peer.frames_in as f64)
        }),
        ("link_frames_out_total", "counter", "Frames to there.", |peer| {
            Some(peer.frames_out as f64)
        }),
        ("link_connections_total", "counter", "Connections that were established.", |peer| {
            Some(peer.connections as f64)
        }),
        ("link_losses_total", "counter", "Sessions that were lost.", |peer| {
            Some(peer.losses as f64)
        }),
    ];
    for (name, kind, help, look) in looks {
        text.head(name, kind, help);
        for peer in &observed.peers {
            if let Some(value) = look(peer) {
                text.value(name, &[("peer", peer.name.as_str())], value);
            }
        }
    }
}

fn traffic(text: &mut Text, observed: &Observed<'_>) {
    let figures = observed.figures;
    text.head("frames_received_total", "counter", "Frames from other members, by kind.");
    for (kind, frames, _) in &figures.frames {
        text.value("frames_received_total", &[("kind", kind)], frames);
    }
    text.head("frames_received_bytes_total", "counter", "Their bytes.");
    for (kind, _, bytes) in &figures.frames {
        text.value("frames_received_bytes_total", &[("kind", kind)], bytes);
    }
    let it = observed.counters;
    let counters = [
        ("transport_bytes_in_total", "Bytes read from connections.", it.bytes_in),
        ("transport_bytes_out_total", "Bytes written to connections.", it.bytes_out),
        ("transport_frames_out_total", "Frames given to be sent.", it.frames_out),
        ("transport_writes_total", "Calls that wrote to a connection.", it.writes),
        ("transport_accepted_total", "Connections that were accepted.", it.accepted),
        ("transport_refused_total", "Connections that were refused.", it.refused),
    ];
    for (name, help, value) in counters {
        text.one(name, "counter", help, value);
    }
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_a_type_and_labels_are_escaped() {
        let mut status = Status { name: "a\"b\\".into(), epoch: 12, ..Status::default() };
        status.standing = Standing::Jeopardy;
        let figures = Figures {
            slack: Spread {
                stretches: vec![(Some(Duration::from_millis(10)), 2), (None, 1)],
                sum: Duration::from_millis(15),
                longest: Duration::from_millis(11),
            },
            frames: vec![("seat", 3, 70)],
            ..Figures::default()
        };
        let observed = Observed {
            status: &status,
            figures: &figures,
            counters: Counters::default(),
            peers: Vec::new(),
            left: Some(Duration::from_millis(250)),
            sessions: (2, 1),
            draining: false,
            ready: true,
            certificates: vec![("a.pem".into(), 99)],
        };
        let text = text(&observed);
        for line in [
            r#"quorate_info{member="a\"b\\",cluster="",id="","#,
            "quorate_epoch 12\n",
            "quorate_standing{standing=\"jeopardy\"} 1\n",
            "quorate_standing{standing=\"member\"} 0\n",
            "quorate_lease_left_seconds 0.25\n",
            "quorate_lease_slack_seconds_bucket{le=\"0.01\"} 2\n",
            "quorate_lease_slack_seconds_bucket{le=\"+Inf\"} 3\n",
            "quorate_lease_slack_seconds_sum 0.015\n",
            "quorate_frames_received_bytes_total{kind=\"seat\"} 70\n",
            "quorate_certificate_expiry_seconds{file=\"a.pem\"} 99\n",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        // Every series has been announced with its type, and none twice.
        let mut known = std::collections::BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(known.insert(rest.split(' ').next().unwrap()), "{line}");
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                let ends = ["_bucket", "_sum", "_count", ""];
                let base =
                    |end: &&str| name.strip_suffix(*end).is_some_and(|it| known.contains(it));
                assert!(ends.iter().any(base), "{line}");
            }
        }
    }
}
