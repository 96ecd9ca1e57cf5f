//! The oracle of mutual exclusion.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorate_core::{Fact, Monitor, NodeId, NodeSet, Stamp, Violation};

use super::{Command, Event, Fence, Promise, Setup};

/// The oracle: safety, liveness, fairness where it is promised, and fencing where users are given
/// tokens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exclusion {
    inside: Option<NodeId>,
    waiting: NodeSet,
    fair: bool,
    fenced: bool,
    granted_last: Option<Stamp>,
    fenced_last: Option<Fence>,
}

impl Exclusion {
    /// The oracle of a run: the holder given at boot is inside.
    pub(super) fn new(count: usize, setup: &Setup, promise: &Promise) -> Self {
        let waiting = NodeSet::with_room(count);
        let Promise { fair, fenced, .. } = *promise;
        let inside = setup.holder;
        Self { inside, waiting, fair, fenced, granted_last: None, fenced_last: None }
    }

    fn enter(&mut self, at: NodeId, stamp: Option<Stamp>) -> Result<(), Violation> {
        let before = self.inside.replace(at);
        self.waiting.remove(at);
        if let Some(other) = before {
            let text = format!("node {at} enters while node {other} is inside");
            return Err(Violation { property: "safety", text });
        }
        let Some(stamp) = stamp.filter(|_| self.fair) else { return Ok(()) };
        match self.granted_last.replace(stamp) {
            Some(last) if last > stamp => {
                let text = format!("the wish {stamp:?} is granted after the younger {last:?}");
                Err(Violation { property: "fairness", text })
            }
            _ => Ok(()),
        }
    }

    fn enter_fenced(&mut self, at: NodeId, fence: Fence) -> Result<(), Violation> {
        let last = self.fenced_last.replace(fence);
        self.enter(at, None)?;
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
    const PROPERTIES: &'static [&'static str] = &["safety", "liveness", "fairness", "fencing"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Command::Acquire) => {
                self.waiting.insert(at);
            }
            Fact::Event(Event::Granted(stamp)) => return self.enter(at, *stamp),
            Fact::Event(Event::Fenced(fence)) => return self.enter_fenced(at, *fence),
            Fact::Command(Command::Release) | Fact::Event(Event::Lost) | Fact::Crashed => {
                self.waiting.remove(at);
                self.inside = self.inside.filter(|&inside| inside != at);
            }
            Fact::Recovered => {}
        }
        Ok(())
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
            "fairness" => self.fair,
            "fencing" => self.fenced,
            _ => true,
        }
    }

    fn exercises(&self, property: &str, _: NodeId, fact: Fact<'_, Command, Event>) -> bool {
        match (property, fact) {
            ("liveness", fact) => matches!(fact, Fact::Command(Command::Acquire)),
            ("fairness", Fact::Event(Event::Granted(stamp))) => {
                stamp.is_some() && self.granted_last.is_some()
            }
            ("fencing", Fact::Event(Event::Fenced(_))) => self.fenced_last.is_some(),
            ("safety", Fact::Event(Event::Granted(_) | Event::Fenced(_))) => true,
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

    #[test]
    fn two_inside_break_safety() {
        let mut monitor = monitor(false);
        let granted = Event::Granted(None);
        monitor.observe(node(1), Fact::Event(&granted)).unwrap();
        let violation = monitor.observe(node(2), Fact::Event(&granted)).unwrap_err();
        assert_eq!(violation.to_string(), "safety: node 2 enters while node 1 is inside");
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
        let mut enter = |number, epoch, counter| {
            let event = Event::Fenced(Fence { epoch: ViewId(epoch), counter });
            let entered = monitor.observe(node(number), Fact::Event(&event));
            monitor.observe(node(number), Fact::Command(&Command::Release)).unwrap();
            entered.map_err(|violation| violation.to_string())
        };
        assert_eq!((enter(1, 1, 2), enter(2, 1, 4), enter(1, 2, 1)), (Ok(()), Ok(()), Ok(())));
        let same = "fencing: node 3 is given the token 2:1 after 2:1";
        assert_eq!(enter(3, 2, 1), Err(same.into()));
        let older = "fencing: node 2 is given the token 1:9 after 2:1";
        assert_eq!(enter(2, 1, 9), Err(older.into()));
    }

    #[test]
    fn who_lost_it_is_not_inside() {
        let mut monitor = monitor(false);
        let fenced = |counter| Event::Fenced(Fence { epoch: ViewId(1), counter });
        monitor.observe(node(1), Fact::Event(&fenced(1))).unwrap();
        monitor.observe(node(1), Fact::Event(&Event::Lost)).unwrap();
        monitor.observe(node(2), Fact::Event(&fenced(2))).unwrap();
    }

    #[test]
    fn fairness_is_judged_where_it_is_promised() {
        for fair in [false, true] {
            let mut monitor = monitor(fair);
            let mut enter = |number, time| {
                let stamp = Stamp { time, node: node(number) };
                let event = Event::Granted(Some(stamp));
                let entered = monitor.observe(node(number), Fact::Event(&event));
                monitor.observe(node(number), Fact::Command(&Command::Release)).unwrap();
                entered
            };
            enter(1, 5).unwrap();
            assert_eq!(enter(2, 3).is_err(), fair);
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
        assert_eq!(tested(&monitor, Fact::Event(&granted)), ["safety"]);
        assert_eq!(tested(&monitor, Fact::Event(&fenced)), ["safety"]);
        for event in [granted, fenced] {
            monitor.observe(node(1), acquire).unwrap();
            monitor.observe(node(1), Fact::Event(&event)).unwrap();
            monitor.observe(node(1), Fact::Command(&Command::Release)).unwrap();
        }
        assert_eq!(tested(&monitor, Fact::Event(&granted)), ["safety", "fairness"]);
        assert_eq!(tested(&monitor, Fact::Event(&fenced)), ["safety", "fencing"]);
    }
}
