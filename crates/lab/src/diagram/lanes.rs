//! Columns for a terminal: one per node, and between them lanes for messages under way.
//!
//! A message goes from its sender across to a lane beside its receiver, down the lane as long as
//! it is under way, and from there to the receiver. So a delay is the length of a lane, and a
//! message that overtakes another has the shorter one.
//!
//! Where there is no room for lanes the columns of the nodes stand close together, and a message is a
//! stroke from its sender to its receiver, when it leaves and again when it arrives.

use quorate_core::NodeId;

use super::{Arrow, Picture, What};

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// The columns of the nodes.
    nodes: Vec<usize>,
    /// The columns of the messages, by arrow; none if there was no room.
    lanes: Vec<Option<usize>>,
    /// The last event of each message, by arrow; none if it never ends.
    last: Vec<Option<usize>>,
    pub(super) width: usize,
    /// There is no room for lanes.
    pub(super) is_narrow: bool,
}

/// The most columns between two nodes where there are no lanes.
const NARROW_GAP_MAX: usize = 3;
/// Columns that words get before nodes without lanes are drawn farther apart.
const WORDS_MORE: usize = 22;

impl Lanes {
    /// Lays out at most `width` columns, the first `left` of them for the time. None if there is
    /// no room for lanes.
    pub(super) fn new(picture: &Picture, left: usize, width: usize) -> Option<Self> {
        let gaps = picture.nodes.saturating_sub(1);
        let last = last_events(picture);
        let room = width.checked_sub(left + picture.nodes)?;
        let (slots, wanted) = assign(picture, &last, gaps, room);
        let width_with =
            |cap: usize| wanted.iter().map(|&wanted| gap_width(wanted.min(cap))).sum::<usize>();
        let cap = (0..=room).rev().find(|&cap| width_with(cap) <= room)?;
        let counts: Vec<_> = wanted.iter().map(|&wanted| wanted.min(cap)).collect();
        let mut nodes = Vec::with_capacity(picture.nodes);
        let mut column = left;
        for gap in 0..picture.nodes {
            nodes.push(column);
            column += 1 + counts.get(gap).map_or(0, |count| gap_width(*count));
        }
        let lane = |arrow: usize, slot: Option<usize>| {
            let (slot, gap) = (slot?, gap_of(picture, arrow)?);
            (slot < counts[gap]).then(|| nodes[gap] + 2 + 2 * slot)
        };
        let lanes = slots.iter().enumerate().map(|(arrow, slot)| lane(arrow, *slot)).collect();
        Some(Self { nodes, lanes, last, width: column, is_narrow: false })
    }

    /// Lays out the nodes without lanes. None if there is no room for them.
    pub(super) fn narrow(picture: &Picture, left: usize, width: usize) -> Option<Self> {
        let room = width.checked_sub(left + picture.nodes)?;
        let spare = room.saturating_sub(WORDS_MORE);
        let gap = (spare / picture.nodes.max(1)).min(NARROW_GAP_MAX);
        let nodes: Vec<_> = (0..picture.nodes).map(|i| left + i * (1 + gap)).collect();
        let width = nodes.last().map_or(left, |last| last + 1);
        let lanes = vec![None; picture.arrows.len()];
        Some(Self { nodes, lanes, last: last_events(picture), width, is_narrow: true })
    }

    /// Where a message goes to when it is sent: its lane, or its receiver.
    pub(super) fn target(&self, picture: &Picture, arrow: usize) -> Option<usize> {
        let Arrow { from, to, .. } = picture.arrows[arrow];
        match self.is_narrow {
            true => (from != to).then(|| self.node(to)),
            false => self.lane(picture, arrow),
        }
    }

    pub(super) fn node(&self, node: NodeId) -> usize {
        self.nodes[node.index()]
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeId, usize)> {
        NodeId::first(self.nodes.len()).zip(self.nodes.iter().copied())
    }

    /// The lane of an arrow, or of the one of which it is a copy.
    pub(super) fn lane(&self, picture: &Picture, arrow: usize) -> Option<usize> {
        self.lanes[picture.arrows[arrow].copy_of.unwrap_or(arrow)]
    }

    /// Is this event the last one of the message?
    pub(super) fn is_last(&self, picture: &Picture, arrow: usize, event: usize) -> bool {
        self.last[picture.arrows[arrow].copy_of.unwrap_or(arrow)] == Some(event)
    }
}

const fn gap_width(lanes: usize) -> usize {
    if lanes < 2 { 6 } else { 3 + 2 * lanes }
}

/// The gap in which a message arrives: the one next to its receiver, on its sender's side.
fn gap_of(picture: &Picture, arrow: usize) -> Option<usize> {
    let arrow = &picture.arrows[arrow];
    let (from, to) = (arrow.from.index(), arrow.to.index());
    match from.cmp(&to) {
        std::cmp::Ordering::Less => Some(to - 1),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(to),
    }
}

fn last_events(picture: &Picture) -> Vec<Option<usize>> {
    let mut last = vec![None; picture.arrows.len()];
    for (number, event) in picture.events.iter().enumerate() {
        if let What::Receive(arrow) | What::Lose(arrow) = event.what {
            last[picture.arrows[arrow].copy_of.unwrap_or(arrow)] = Some(number);
        }
    }
    last
}

/// Gives every message a slot of its gap that is free while it is under way, if there is one below
/// `slots_max`; and says how many slots each gap needs.
fn assign(
    picture: &Picture,
    last: &[Option<usize>],
    gaps: usize,
    slots_max: usize,
) -> (Vec<Option<usize>>, Vec<usize>) {
    let mut slots = vec![None; picture.arrows.len()];
    // Per gap and slot: the event with which it becomes free.
    let mut busy: Vec<Vec<usize>> = vec![Vec::new(); gaps];
    for (number, event) in picture.events.iter().enumerate() {
        let What::Send(arrows) = &event.what else { continue };
        for &arrow in arrows {
            let Some(gap) = gap_of(picture, arrow) else { continue };
            let until = last[arrow].unwrap_or(usize::MAX);
            let slot = busy[gap].iter().position(|&until| until < number);
            let slot = slot.unwrap_or(busy[gap].len());
            if slot >= slots_max {
                continue;
            }
            if slot == busy[gap].len() {
                busy[gap].push(until);
            }
            busy[gap][slot] = until;
            slots[arrow] = Some(slot);
        }
    }
    (slots, busy.iter().map(Vec::len).collect())
}
