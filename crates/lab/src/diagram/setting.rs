//! What a run was given, as far as its picture shows it: read from the header of a trace.

use quorate_core::trace::Header;
use quorate_core::{NodeId, Time};

use crate::registry::find;
use crate::{Numbers, Spec};

/// What a picture shows of what the run was given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// Times are numbers of steps, as in a check, where no time passes.
    pub in_steps: bool,
    /// What nodes are called beside their numbers, by node; empty if nothing.
    pub names: Vec<String>,
    /// Who is a member of the group from the start, where there is one.
    pub members: Vec<NodeId>,
    /// Who is linked with whom, if not everybody with everybody.
    pub links: Vec<(NodeId, NodeId)>,
    /// When the network was cut.
    pub splits: Vec<Split>,
    /// Seed, faults and options, in a line.
    pub words: String,
}

/// A time in which some nodes did not reach others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    /// The nodes that still reached each other, part by part.
    pub sides: Vec<Vec<NodeId>>,
    /// From when on.
    pub from: Time,
    /// Until when, if not for ever.
    pub until: Option<Time>,
    /// As typed.
    pub text: String,
}

/// Larger topologies are not drawn.
const LINKED_NODES_MAX: usize = 40;
/// The most links that are listed for a terminal.
const LINKS_SHOWN_MAX: usize = 60;

impl Setting {
    /// What has no place in a drawing for a terminal, in words.
    pub(super) fn lines(&self, nodes: usize) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.names.is_empty() {
            let named = NodeId::first(nodes).zip(&self.names);
            let named: Vec<_> = named.map(|(node, name)| format!("{node}: {name}")).collect();
            lines.push(format!("nodes: {}", named.join(", ")));
        }
        if !self.links.is_empty() && self.links.len() <= LINKS_SHOWN_MAX {
            let both = |&(a, b): &(NodeId, NodeId)| self.links.contains(&(b, a));
            let once = self.links.iter().filter(|link| !both(link) || link.0 < link.1);
            let sign = |link: &(NodeId, NodeId)| if both(link) { '-' } else { '>' };
            let links: Vec<_> =
                once.map(|link| format!("{}{}{}", link.0, sign(link), link.1)).collect();
            lines.push(format!("links: {}", links.join(" ")));
        }
        lines
    }
}

/// What stands in the header; of a system that is none of ours, next to nothing.
pub(super) fn read(header: &Header) -> Setting {
    let mut setting = Setting { in_steps: header.engine == "check", ..Setting::default() };
    let Ok(spec) = serde_json::from_str::<Spec>(&header.spec) else { return setting };
    if spec.algorithm != header.algorithm || spec.nodes != header.nodes {
        return setting;
    }
    setting.words = words(&spec, setting.in_steps);
    setting.splits = splits(&spec);
    let Ok((problem, _)) = find(&spec.algorithm) else { return setting };
    if let Ok(scenery) = (problem.scenery)(&spec) {
        setting.names = scenery.names;
        setting.members = scenery.members;
        let topology = scenery.topology;
        if !topology.is_complete() && spec.nodes <= LINKED_NODES_MAX {
            let of = |a| topology.neighbours(a).iter().map(move |b| (a, b)).collect::<Vec<_>>();
            setting.links = NodeId::first(spec.nodes).flat_map(of).collect();
        }
    }
    setting
}

fn splits(spec: &Spec) -> Vec<Split> {
    let node = |number: u32| NodeId::new(number).filter(|node| node.index() < spec.nodes);
    let side = |Numbers(numbers): &Numbers| numbers.iter().copied().filter_map(node).collect();
    let partitions = spec.partitions.iter().map(|cut| Split {
        sides: cut.sides.iter().map(side).collect(),
        from: cut.from,
        until: Some(cut.until),
        text: cut.sides.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
    });
    let cuts = spec.cuts.iter().map(|cut| Split {
        sides: [cut.from, cut.to].map(|end| node(end).into_iter().collect()).into(),
        from: cut.during.from,
        until: cut.during.until,
        text: format!("{} {} {}", cut.from, if cut.both { "|" } else { "⊣" }, cut.to),
    });
    partitions.chain(cuts).collect()
}

/// Seed, faults and options. In a check neither a seed nor latencies count.
fn words(spec: &Spec, in_steps: bool) -> String {
    let mut words = Vec::new();
    if !spec.over.is_bare() {
        words.push(format!("over {}", spec.over));
    }
    words.extend(spec.options.iter().map(|(name, value)| format!("{name} {value}")));
    if let Some(topology) = &spec.topology {
        let topology = topology.to_string();
        words.push(match topology.split_once(':') {
            Some(("links", _)) => "links from a file".to_owned(),
            _ => format!("topology {topology}"),
        });
    }
    if !in_steps {
        let probabilities =
            [("loss", spec.loss), ("duplicate", spec.duplicate), ("reorder", spec.reorder)];
        let some = probabilities.iter().filter(|(_, probability)| *probability > 0.0);
        words.extend(some.map(|(name, probability)| format!("{name} {probability}")));
        words.push(format!("latency {}", spec.latency));
        words.push(format!("seed {}", spec.seed));
    }
    let mut faults = |name: &str, given: Vec<String>| {
        words.extend(given.into_iter().map(|text| format!("{name} {text}")));
    };
    faults("crash", spec.crashes.iter().map(ToString::to_string).collect());
    faults("recover", spec.recoveries.iter().map(ToString::to_string).collect());
    faults("partition", spec.partitions.iter().map(ToString::to_string).collect());
    faults("cut", spec.cuts.iter().map(ToString::to_string).collect());
    faults("pause", spec.pauses.iter().map(ToString::to_string).collect());
    faults("clock", spec.clocks.iter().map(ToString::to_string).collect());
    faults("tamper", spec.tampered.iter().map(ToString::to_string).collect());
    faults("restart", spec.restarts.iter().map(ToString::to_string).collect());
    words.join(" · ")
}
