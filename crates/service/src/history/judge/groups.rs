//! Groups: what those promise who go from view to view together.
//!
//! A *stream* is what one joining of a group is told. It goes on from a view when it is told the next one, or
//! that it has left. Whoever is excluded or killed in a view has not gone on from it: nothing is promised of
//! what it was told, but for uniform messages.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::Fact;
use super::{Bench, Rule};
use crate::groups::{Order, ViewId};

/// A message, by its stream and its number.
type Id = (u64, u64);

/// A view of a group.
type View<'a> = (&'a str, ViewId);

/// What a stream was told in one view.
#[derive(Default)]
struct Told {
    /// Where each message was delivered.
    all: BTreeMap<Id, usize>,
    /// Total and uniform ones, in their order.
    placed: Vec<Id>,
    uniform: usize,
    /// The last number of each sender.
    last: BTreeMap<u64, u64>,
}

/// A stream, as far as it was read.
#[derive(Default)]
struct Stream {
    view: Option<ViewId>,
    /// The record that says so.
    begun: usize,
    told: Told,
    /// The last number of each sender, in any view, and where it was delivered.
    last: BTreeMap<u64, (u64, usize)>,
}

/// What all know of a view.
#[derive(Default)]
struct Common<'a> {
    members: Option<(usize, &'a [String])>,
    digest: Option<(usize, u32)>,
    /// What the first one was told that went on from it, and where it did.
    closed: Option<(usize, Told)>,
    /// Uniform messages as somebody was told them, in order.
    uniform: Vec<(Id, usize)>,
}

/// A message that was sent.
struct Sent<'a> {
    place: usize,
    group: &'a str,
    order: Order,
    /// The view that its sender was in, and the last number of each sender that it had delivered there.
    after: Option<(ViewId, BTreeMap<u64, u64>)>,
}

#[derive(Default)]
struct Hall<'a> {
    streams: BTreeMap<u64, Stream>,
    views: BTreeMap<View<'a>, Common<'a>>,
    sent: BTreeMap<Id, Sent<'a>>,
    /// Who has delivered what, and where.
    delivered: BTreeMap<(u64, Id), usize>,
}

/// Judges; how many messages were delivered.
pub(super) fn judge(bench: &mut Bench<'_>) -> usize {
    let mut hall = Hall::default();
    for (place, record) in bench.records.iter().enumerate() {
        match &record.fact {
            Fact::Posted { group, stream, number, order } => {
                let from = hall.streams.get(stream);
                let after =
                    from.and_then(|from| from.view.map(|view| (view, from.told.last.clone())));
                let sent = Sent { place, group, order: *order, after };
                hall.sent.insert((*stream, *number), sent);
            }
            Fact::GroupView { group, stream, epoch, number, members, digest } => {
                let view = (group.as_str(), ViewId { epoch: *epoch, number: *number });
                hall.begin(bench, *stream, view, (members, *digest), place);
            }
            Fact::Delivered { group, stream, from, number, order } => {
                hall.deliver(bench, *stream, group, ((*from, *number), *order), place);
            }
            Fact::GroupEnd { group, stream, left } => {
                if *left {
                    hall.close(bench, *stream, group, place);
                }
                hall.streams.remove(stream);
            }
            _ => {}
        }
    }
    hall.delivered.len()
}

fn shown((from, number): Id) -> String {
    format!("message {number} of stream {from}")
}

impl<'a> Hall<'a> {
    /// A stream is told a view.
    fn begin(
        &mut self,
        bench: &mut Bench<'a>,
        stream: u64,
        view: View<'a>,
        (members, digest): (&'a [String], Option<u32>),
        place: usize,
    ) {
        let (group, id) = view;
        self.close(bench, stream, group, place);
        let who = bench.who(place);
        let own = self.streams.entry(stream).or_default();
        bench.test(Rule::GroupViews);
        if let Some(last) = own.view.filter(|last| *last >= id) {
            let text = format!("{who} begins view {id:?} of group {group} after {last:?}");
            bench.object(Rule::GroupViews, [own.begun, place], text);
        }
        (own.view, own.begun, own.told) = (Some(id), place, Told::default());
        if !members.iter().any(|member| member == who) {
            let text = format!("{who} is told view {id:?} of group {group}, and is not in it");
            bench.object(Rule::GroupViews, [place, place], text);
        }
        let common = self.views.entry(view).or_default();
        let (first, others) = *common.members.get_or_insert((place, members));
        if !are_same(members, others) {
            let one = bench.who(first);
            let text = format!(
                "view {id:?} of group {group} has {others:?} for {one} and {members:?} for {who}"
            );
            bench.object(Rule::GroupViews, [first, place], text);
        }
        let Some(digest) = digest else { return };
        let (first, other) = *common.digest.get_or_insert((place, digest));
        bench.test_times(Rule::States, usize::from(first != place));
        if digest != other {
            let one = bench.who(first);
            let text = format!(
                "before view {id:?} of group {group} the state is {other:08x} for {one} and \
                 {digest:08x} for {who}"
            );
            bench.object(Rule::States, [first, place], text);
        }
    }

    /// A message is delivered to a stream.
    fn deliver(
        &mut self,
        bench: &mut Bench<'a>,
        stream: u64,
        group: &'a str,
        (id, order): (Id, Order),
        place: usize,
    ) {
        let who = bench.who(place);
        let known = self.sent.get(&id).filter(|sent| sent.group == group && sent.order == order);
        bench.test(Rule::Once);
        let Some(sent) = known else {
            let text = format!(
                "{who} delivers {} in group {group} as {}, and it was not sent so",
                shown(id),
                order.name()
            );
            return bench.object(Rule::Once, [place, place], text);
        };
        if let Some(first) = self.delivered.insert((stream, id), place) {
            let text = format!("{who} delivers {} in group {group} twice", shown(id));
            return bench.object(Rule::Once, [first, place], text);
        }
        let Some(own) = self.streams.get_mut(&stream) else { return };
        in_order_of_sender(bench, own, group, id, (sent.place, place));
        after_its_causes(bench, own, group, (id, order), sent, place);
        let told = &mut own.told;
        told.all.insert(id, place);
        told.last.insert(id.0, id.1);
        if order.is_placed() {
            told.placed.push(id);
        }
        let Some(common) = own.view.and_then(|view| self.views.get_mut(&(group, view))) else {
            return;
        };
        if order == Order::Uniform {
            told.uniform += 1;
            uniform(bench, common, (group, told.uniform - 1), id, place);
        }
    }

    /// A stream goes on from its view: it was told what all others were told who go on from it.
    fn close(&mut self, bench: &mut Bench<'a>, stream: u64, group: &'a str, place: usize) {
        let Some(own) = self.streams.get_mut(&stream) else { return };
        let Some(view) = own.view else { return };
        let told = core::mem::take(&mut own.told);
        let Some(common) = self.views.get_mut(&(group, view)) else { return };
        let who = bench.who(place);
        bench.test_times(Rule::Uniformity, common.uniform.len());
        for (id, first) in &common.uniform {
            if !told.all.contains_key(id) {
                let text = format!(
                    "{who} goes on from view {view:?} of group {group} without {}, which {} has \
                     delivered as uniform",
                    shown(*id),
                    bench.who(*first)
                );
                bench.object(Rule::Uniformity, [*first, place], text);
            }
        }
        let Some((first, others)) = &common.closed else {
            common.closed = Some((place, told));
            return;
        };
        bench.test(Rule::Synchrony);
        bench.test(Rule::TotalOrder);
        same_set(bench, (group, view), (*first, others), (place, &told), &common.uniform);
        same_order(bench, (group, view), (*first, others), (place, &told));
    }
}

/// Are these the same members? Who is gone may have no name any more.
fn are_same(some: &[String], others: &[String]) -> bool {
    let nameless = |name: &String| name.starts_with("life ");
    let same = |(one, other): (&String, &String)| one == other || nameless(one) || nameless(other);
    some.len() == others.len() && some.iter().zip(others).all(same)
}

/// What one has sent comes in the order in which it did, and without a gap as long as both are there.
fn in_order_of_sender(
    bench: &mut Bench<'_>,
    own: &mut Stream,
    group: &str,
    id: Id,
    (sent, place): (usize, usize),
) {
    bench.test(Rule::SenderOrder);
    let before = own.last.insert(id.0, (id.1, place));
    if let Some((last, earlier)) = before
        && id.1 != last + 1
    {
        let who = bench.who(place);
        let after = shown((id.0, last));
        let text = format!("{who} delivers {} in group {group} after {after}", shown(id));
        bench.object(Rule::SenderOrder, [earlier.max(sent), place], text);
    }
}

/// Nothing but fifo is delivered before what its sender had delivered when it sent it.
fn after_its_causes(
    bench: &mut Bench<'_>,
    own: &Stream,
    group: &str,
    (id, order): (Id, Order),
    sent: &Sent<'_>,
    place: usize,
) {
    let Some((view, after)) = &sent.after else { return };
    // Who goes on to the next view has everything of the last one.
    if order == Order::Fifo || own.view != Some(*view) {
        return;
    }
    bench.test(Rule::Causality);
    let missing = |(from, number): &(&u64, &u64)| own.told.last.get(from) < Some(*number);
    if let Some((from, number)) = after.iter().find(missing) {
        let text = format!(
            "{} delivers {} in group {group} before {}, after which it was sent",
            bench.who(place),
            shown(id),
            shown((*from, *number))
        );
        bench.object(Rule::Causality, [sent.place, place], text);
    }
}

/// A uniform message is delivered: in the place that it has for all, and nobody went on without it.
fn uniform(
    bench: &mut Bench<'_>,
    common: &mut Common<'_>,
    (group, nth): (&str, usize),
    id: Id,
    place: usize,
) {
    bench.test(Rule::Uniformity);
    let who = bench.who(place);
    match common.uniform.get(nth) {
        None => common.uniform.push((id, place)),
        Some((other, first)) if *other != id => {
            let text = format!(
                "{who} delivers {} in group {group} as uniform where {} delivers {}",
                shown(id),
                bench.who(*first),
                shown(*other)
            );
            bench.object(Rule::Uniformity, [*first, place], text);
        }
        Some(_) => {}
    }
    if let Some((closed, told)) = &common.closed
        && !told.all.contains_key(&id)
    {
        let text = format!(
            "{who} delivers {} in group {group} as uniform, and {} went on without it",
            shown(id),
            bench.who(*closed)
        );
        bench.object(Rule::Uniformity, [*closed, place], text);
    }
}

/// Both were told the same messages. Uniform ones that are missing are shown by another rule.
fn same_set(
    bench: &mut Bench<'_>,
    (group, view): View<'_>,
    (first, others): (usize, &Told),
    (place, told): (usize, &Told),
    uniform: &[(Id, usize)],
) {
    let uniform: BTreeSet<Id> = uniform.iter().map(|(id, _)| *id).collect();
    let missing = |has: &Told, lacks: &Told| {
        let lacked =
            has.all.iter().find(|(id, _)| !lacks.all.contains_key(id) && !uniform.contains(id));
        lacked.map(|(id, delivered)| (*id, *delivered))
    };
    let (one, other) = (bench.who(place), bench.who(first));
    let found = match missing(others, told) {
        Some((id, delivered)) => Some((id, delivered, one, other)),
        None => missing(told, others).map(|(id, delivered)| (id, delivered, other, one)),
    };
    if let Some((id, delivered, without, with)) = found {
        let text = format!(
            "{without} goes on from view {view:?} of group {group} without {}, and {with} with it",
            shown(id)
        );
        bench.object(Rule::Synchrony, [delivered.min(place), place], text);
    }
}

/// Both were told total and uniform messages in the same order, as far as both were told them.
fn same_order(
    bench: &mut Bench<'_>,
    (group, view): View<'_>,
    (first, others): (usize, &Told),
    (place, told): (usize, &Told),
) {
    let mine = told.placed.iter().filter(|id| others.all.contains_key(id));
    let theirs = others.placed.iter().filter(|id| told.all.contains_key(id));
    if let Some((one, other)) = mine.zip(theirs).find(|(one, other)| one != other) {
        let between = [others.all[other], told.all[one]];
        let text = format!(
            "in view {view:?} of group {group} {} delivers {} where {} delivers {}",
            bench.who(place),
            shown(*one),
            bench.who(first),
            shown(*other)
        );
        let [a, b] = between;
        bench.object(Rule::TotalOrder, [a.min(b), a.max(b)], text);
    }
}
