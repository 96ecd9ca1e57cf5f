//! The oracle of mutual exclusion.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorate_core::{Fact, Monitor, NodeId, NodeSet, Stamp, VectorClock, Violation};

use super::{Command, Event, Fence, Promise, Region, Setup};

/// The oracle: safety, wellformedness, liveness, fairness where it is promised, fencing where users are given
/// tokens, and ordering where it is known what happened before what.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exclusion {
    /// Who is inside.
    inside: NodeSet,
    /// Where each of them is, if there are several regions.
    places: BTreeMap<NodeId, Region>,
    waiting: NodeSet,
    /// By node that waits: what happened before its wish, where that is known.
    pasts: BTreeMap<NodeId, VectorClock>,
    fair: bool,
    fenced: bool,
    /// The wish that was granted last.
    granted_last: Option<Stamp>,
    /// The same by region, if there are several.
    granted_in: BTreeMap<Region, Stamp>,
    fenced_last: Option<Fence>,
}

impl Exclusion {
    /// The oracle of a run: the holder given at boot is inside.
    pub(super) fn new(count: usize, setup: &Setup, promise: &Promise) -> Self {
        let waiting = NodeSet::with_room(count);
        let Promise { fair, fenced, .. } = *promise;
        Self {
            inside: setup.holder.into_iter().collect(),
            places: BTreeMap::new(),
            waiting,
            pasts: BTreeMap::new(),
            fair,
            fenced,
            granted_last: None,
            granted_in: BTreeMap::new(),
            fenced_last: None,
        }
    }

    /// A node leaves, or is not there any more. Was it inside?
    fn leave(&mut self, at: NodeId) -> bool {
        self.places.remove(&at);
        self.inside.remove(at)
    }

    fn enter(
        &mut self,
        at: NodeId,
        region: Option<Region>,
        stamp: Option<Stamp>,
    ) -> Result<(), Violation> {
        let asked = self.waiting.remove(at);
        let past = self.pasts.remove(&at);
        self.inside.insert(at);
        if let Some(region) = region {
            self.places.insert(at, region);
        }
        let both = |other: &NodeId| *other != at && self.places.get(other) == region.as_ref();
        if let Some(other) = self.inside.iter().find(both) {
            let place = region.map_or_else(String::new, |region| format!(" region {region:?}"));
            let text = format!("node {at} enters{place} while node {other} is inside");
            return Err(Violation { property: "safety", text });
        }
        if !asked {
            let text = format!("node {at} is granted what it has not asked for");
            return Err(Violation { property: "wellformed", text });
        }
        let before = |(_, its): &(&NodeId, &VectorClock)| past.as_ref().is_some_and(|p| *its < p);
        if let Some((other, _)) = self.pasts.iter().find(before) {
            let text = format!("node {at} is granted before node {other}, which wished before it");
            return Err(Violation { property: "ordering", text });
        }
        let Some(stamp) = stamp.filter(|_| self.fair) else { return Ok(()) };
        let last = match region {
            Some(region) => self.granted_in.insert(region, stamp),
            None => self.granted_last.replace(stamp),
        };
        match last {
            Some(last) if last > stamp => {
                let text = format!("the wish {stamp:?} is granted after the younger {last:?}");
                Err(Violation { property: "fairness", text })
            }
            _ => Ok(()),
        }
    }

    fn enter_fenced(&mut self, at: NodeId, fence: Fence) -> Result<(), Violation> {
        let last = self.fenced_last.replace(fence);
        self.enter(at, None, None)?;
        match last {
            Some(last) if last >= fence => {
                let text = format!("node {at} is given the token {fence:?} after {last:?}");
                Err(Violation { property: "fencing", text })
            }
            _ => Ok(()),
        }
    }
}

impl Monitor<Command, Event> for Exclusion {
    const PROPERTIES: &'static [&'static str] =
        &["safety", "wellformed", "liveness", "fairness", "ordering", "fencing"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Command::Acquire) => {
                self.waiting.insert(at);
            }
            Fact::Event(Event::Granted(stamp)) => return self.enter(at, None, *stamp),
            Fact::Event(Event::Entered(region, stamp)) => {
                return self.enter(at, Some(*region), *stamp);
            }
            Fact::Event(Event::Fenced(fence)) => return self.enter_fenced(at, *fence),
            Fact::Command(Command::Release) => {
                if !self.leave(at) {
                    let text = format!("node {at} releases what it does not hold");
                    return Err(Violation { property: "wellformed", text });
                }
            }
            Fact::Event(Event::Lost) | Fact::Crashed => {
                self.waiting.remove(at);
                self.pasts.remove(&at);
                self.leave(at);
            }
            Fact::Recovered => {}
        }
        Ok(())
    }

    fn observe_after(
        &mut self,
        at: NodeId,
        fact: Fact<'_, Command, Event>,
        past: &VectorClock,
    ) -> Result<(), Violation> {
        if let Fact::Command(Command::Acquire) = fact {
            self.pasts.insert(at, past.clone());
        }
        self.observe(at, fact)
    }

    fn owed(&self) -> NodeSet {
        self.waiting.clone()
    }

    fn settle(&self) -> Vec<Violation> {
        let open = (!self.waiting.is_empty()).then(|| {
            let text = format!("{} will never be granted", wishes(&self.waiting));
            Violation { property: "liveness", text }
        });
        open.into_iter().collect()
    }

    fn claims(&self, property: &str) -> bool {
        match property {
            "fairness" | "ordering" => self.fair,
            "fencing" => self.fenced,
            _ => true,
        }
    }

    fn exercises(&self, property: &str, at: NodeId, fact: Fact<'_, Command, Event>) -> bool {
        match (property, fact) {
            ("liveness", fact) => matches!(fact, Fact::Command(Command::Acquire)),
            ("fairness", Fact::Event(Event::Granted(stamp))) => {
                stamp.is_some() && self.granted_last.is_some()
            }
            ("fairness", Fact::Event(Event::Entered(region, stamp))) => {
                stamp.is_some() && self.granted_in.contains_key(region)
            }
            ("fencing", Fact::Event(Event::Fenced(_))) => self.fenced_last.is_some(),
            ("ordering", Fact::Event(Event::Granted(_) | Event::Fenced(_))) => {
                let past = self.pasts.get(&at);
                let others = self.pasts.iter().filter(|(other, _)| **other != at);
                past.is_some_and(|past| others.into_iter().any(|(_, its)| past < its || its < past))
            }
            ("safety" | "wellformed", Fact::Event(event)) => *event != Event::Lost,
            ("wellformed", Fact::Command(Command::Release)) => true,
            _ => false,
        }
    }
}

/// The wishes of these nodes, in words.
fn wishes(nodes: &NodeSet) -> String {
    let names: Vec<_> = nodes.iter().take(5).map(|node| node.to_string()).collect();
    let more = if nodes.len() > names.len() { " and others" } else { "" };
    let (wish, node) = if nodes.len() == 1 { ("wish", "node") } else { ("wishes", "nodes") };
    format!("the {wish} of {node} {}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use quorate_core::ViewId;

    use super::*;
    use crate::testing::node;

    fn monitor(fair: bool) -> Exclusion {
        Exclusion::new(3, &Setup::new(3), &Promise { fair, live: true, fenced: true })
    }

    /// A node asks and is told this.
    fn enter(monitor: &mut Exclusion, number: u32, event: Event) -> Result<(), Violation> {
        monitor.observe(node(number), Fact::Command(&Command::Acquire))?;
        monitor.observe(node(number), Fact::Event(&event))
    }

    #[test]
    fn two_inside_break_safety() {
        let mut monitor = monitor(false);
        enter(&mut monitor, 1, Event::Granted(None)).unwrap();
        let violation = enter(&mut monitor, 2, Event::Granted(None)).unwrap_err();
        assert_eq!(violation.to_string(), "safety: node 2 enters while node 1 is inside");
        for number in [1, 2] {
            monitor.observe(node(number), Fact::Command(&Command::Release)).unwrap();
        }
    }

    #[test]
    fn two_inside_break_safety_only_in_the_same_region() {
        let mut monitor = monitor(true);
        let entered = |region, time, number| {
            Event::Entered(Region(region), Some(Stamp { time, node: node(number) }))
        };
        enter(&mut monitor, 1, entered(0, 5, 1)).unwrap();
        enter(&mut monitor, 2, entered(1, 3, 2)).unwrap();
        let violation = enter(&mut monitor, 3, entered(1, 4, 3)).unwrap_err();
        assert_eq!(violation.to_string(), "safety: node 3 enters region b while node 2 is inside");
        for number in [1, 2, 3] {
            monitor.observe(node(number), Fact::Command(&Command::Release)).unwrap();
        }
        let unfair = enter(&mut monitor, 1, entered(0, 2, 1)).unwrap_err();
        assert_eq!(unfair.to_string(), "fairness: the wish 2.1 is granted after the younger 5.1");
    }

    #[test]
    fn a_grant_nobody_asked_for_and_a_second_release_are_not_well_formed() {
        let mut monitor = monitor(false);
        let granted = Event::Granted(None);
        let unasked = monitor.observe(node(1), Fact::Event(&granted)).unwrap_err();
        assert_eq!(unasked.to_string(), "wellformed: node 1 is granted what it has not asked for");
        let release = Fact::Command(&Command::Release);
        monitor.observe(node(1), release).unwrap();
        let again = monitor.observe(node(1), release).unwrap_err();
        assert_eq!(again.to_string(), "wellformed: node 1 releases what it does not hold");
    }

    #[test]
    fn a_wish_that_knows_of_another_and_goes_first_breaks_ordering() {
        let wish = |monitor: &mut Exclusion, number, past: &VectorClock| {
            let acquire = Fact::Command(&Command::Acquire);
            monitor.observe_after(node(number), acquire, past).unwrap();
        };
        let (mut early, mut beside) = (VectorClock::new(3), VectorClock::new(3));
        early.tick(node(1));
        beside.tick(node(3));
        let mut late = early.clone();
        late.tick(node(2));
        let granted = Event::Granted(None);
        for (other, property) in [(&late, Err("ordering")), (&beside, Ok(()))] {
            let mut monitor = monitor(false);
            wish(&mut monitor, 1, &early);
            wish(&mut monitor, 2, other);
            let fact = Fact::Event(&granted);
            assert_eq!(monitor.exercises("ordering", node(2), fact), property.is_err());
            let first = monitor.observe(node(2), fact).map_err(|broken| broken.property);
            assert_eq!(first, property);
        }
    }

    #[test]
    fn an_open_wish_breaks_liveness_only_at_the_end_and_not_of_the_dead() {
        let mut monitor = monitor(false);
        monitor.observe(node(2), Fact::Command(&Command::Acquire)).unwrap();
        assert_eq!(monitor.settle()[0].property, "liveness");
        assert!(monitor.owed().iter().eq([node(2)]));
        monitor.observe(node(2), Fact::Crashed).unwrap();
        assert_eq!(monitor.settle(), []);
    }

    #[test]
    fn tokens_that_do_not_grow_break_fencing() {
        let mut monitor = monitor(false);
        let mut pass = |number, epoch, counter| {
            let event = Event::Fenced(Fence { epoch: ViewId(epoch), counter });
            let entered = enter(&mut monitor, number, event);
            monitor.observe(node(number), Fact::Command(&Command::Release)).unwrap();
            entered.map_err(|violation| violation.to_string())
        };
        assert_eq!((pass(1, 1, 2), pass(2, 1, 4), pass(1, 2, 1)), (Ok(()), Ok(()), Ok(())));
        let same = "fencing: node 3 is given the token 2:1 after 2:1";
        assert_eq!(pass(3, 2, 1), Err(same.into()));
        let older = "fencing: node 2 is given the token 1:9 after 2:1";
        assert_eq!(pass(2, 1, 9), Err(older.into()));
    }

    #[test]
    fn who_lost_it_is_not_inside() {
        let mut monitor = monitor(false);
        let fenced = |counter| Event::Fenced(Fence { epoch: ViewId(1), counter });
        enter(&mut monitor, 1, fenced(1)).unwrap();
        monitor.observe(node(1), Fact::Event(&Event::Lost)).unwrap();
        enter(&mut monitor, 2, fenced(2)).unwrap();
    }

    #[test]
    fn fairness_is_judged_where_it_is_promised() {
        for fair in [false, true] {
            let mut monitor = monitor(fair);
            let mut pass = |number, time| {
                let stamp = Stamp { time, node: node(number) };
                let event = Event::Granted(Some(stamp));
                let entered = enter(&mut monitor, number, event);
                monitor.observe(node(number), Fact::Command(&Command::Release)).unwrap();
                entered
            };
            pass(1, 5).unwrap();
            assert_eq!(pass(2, 3).is_err(), fair);
        }
    }

    #[test]
    fn what_compares_nothing_exercises_nothing() {
        let mut monitor = monitor(true);
        let acquire = Fact::Command(&Command::Acquire);
        let granted = Event::Granted(Some(Stamp { time: 1, node: node(1) }));
        let fenced = Event::Fenced(Fence { epoch: ViewId(1), counter: 1 });
        let tested = |monitor: &Exclusion, fact| {
            let names = Exclusion::PROPERTIES.iter();
            names.filter(|name| monitor.exercises(name, node(1), fact)).copied().collect::<Vec<_>>()
        };
        assert_eq!(tested(&monitor, acquire), ["liveness"]);
        assert_eq!(tested(&monitor, Fact::Event(&granted)), ["safety", "wellformed"]);
        assert_eq!(tested(&monitor, Fact::Event(&fenced)), ["safety", "wellformed"]);
        for event in [granted, fenced] {
            monitor.observe(node(1), acquire).unwrap();
            monitor.observe(node(1), Fact::Event(&event)).unwrap();
            monitor.observe(node(1), Fact::Command(&Command::Release)).unwrap();
        }
        assert_eq!(tested(&monitor, Fact::Event(&granted)), ["safety", "wellformed", "fairness"]);
        assert_eq!(tested(&monitor, Fact::Event(&fenced)), ["safety", "wellformed", "fencing"]);
    }
}
