//! Mutual exclusion: at most one node inside the critical section, and everybody who wants gets in.

pub mod cao_singhal;
pub mod carvalho_roucairol;
pub mod central;
pub mod in_views;
pub mod lamport;
pub mod maekawa;
pub mod maekawa_basic;
pub mod majority;
pub mod naimi_trehel;
#[cfg(test)]
mod quorum_fixtures;
pub mod raymond;
pub mod ricart_agrawala;
pub mod ricart_agrawala_acked;
pub mod sanders;
pub mod singhal;
pub mod suzuki_kasami;
pub mod token_ring;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{
    Fact, Family, Monitor, NodeId, NodeSet, PerNode, Span, Stamp, Topology, ViewId, Violation,
    Wait, Workload,
};
use quorate_quorum::{Kind, System};

pub use cao_singhal::CaoSinghal;
pub use carvalho_roucairol::CarvalhoRoucairol;
pub use central::Central;
pub use in_views::InViews;
pub use lamport::Lamport;
pub use maekawa::Maekawa;
pub use maekawa_basic::MaekawaBasic;
pub use majority::Majority;
pub use naimi_trehel::NaimiTrehel;
pub use raymond::Raymond;
pub use ricart_agrawala::RicartAgrawala;
pub use ricart_agrawala_acked::RicartAgrawalaAcked;
pub use sanders::Sanders;
pub use singhal::Singhal;
pub use suzuki_kasami::SuzukiKasami;
pub use token_ring::TokenRing;

crate::catalogue::catalogue! { Mutex:
    Central,
    Lamport,
    RicartAgrawala,
    RicartAgrawalaAcked,
    Majority,
    CarvalhoRoucairol,
    MaekawaBasic,
    Maekawa,
    Sanders,
    CaoSinghal,
    TokenRing,
    SuzukiKasami,
    Raymond,
    Singhal,
    NaimiTrehel,
}
crate::stack::stack!(Mutex in InViews);

/// The family of mutual exclusion.
#[derive(Debug)]
pub struct Mutex;

/// What the local user wishes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Command {
    /// Let me in.
    Acquire,
    /// I am out.
    Release,
}

/// What the local user is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// You are inside; with the stamp of the wish, where the algorithm has one.
    Granted(Option<Stamp>),
    /// You are inside, and this proves it: whatever is guarded refuses older tokens.
    Fenced(Fence),
    /// You are not inside any more: the others go on without you.
    Lost,
}

/// A token of an entry. Each is larger than all that were given before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fence {
    /// The view of the entry.
    pub epoch: ViewId,
    /// The how manieth entry of this view it is, or a larger number.
    pub counter: u64,
}

impl core::fmt::Debug for Fence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}", self.epoch.0, self.counter)
    }
}

/// What all nodes are told at boot. Each algorithm takes of it what it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Who is inside when the view begins, if anybody.
    pub holder: Option<NodeId>,
    /// By node: whom it asks, where permission comes from a quorum. Any two intersect.
    pub quorums: Arc<PerNode<NodeSet>>,
    /// By node: its parent in a spanning tree, where requests and the token move along one. The
    /// root has none.
    pub parents: Arc<PerNode<Option<NodeId>>>,
    /// No message takes longer, where timeouts rely on that.
    pub delay_max: Span,
    /// What the quorums are of, where they have to be made for another number of nodes.
    pub system: Kind,
}

impl Setup {
    /// Nobody is inside; quorums are the rows and columns of a grid; the tree is binary, and node 1
    /// is its root; a message takes at most one unit of time.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let parent = |node: NodeId| (node.index() > 0).then(|| NodeId::at((node.index() - 1) / 2));
        Self {
            holder: None,
            quorums: Arc::new(PerNode::new(count, |node| row_and_column(count, node))),
            parents: Arc::new(PerNode::new(count, parent)),
            delay_max: Span::UNIT,
            system: Kind::Grid,
        }
    }

    /// The same for a view of so many members, named by rank: the quorums are of the same system,
    /// or rows and columns of a grid where there is none of that size; the tree is binary.
    #[must_use]
    pub fn in_view(&self, count: usize, holder: Option<NodeId>) -> Self {
        let Self { delay_max, system, .. } = self.clone();
        let usual = Self { holder, delay_max, system, ..Self::new(count) };
        if count == self.quorums.len() {
            return Self { quorums: self.quorums.clone(), ..usual };
        }
        // A list of quorums is about its nodes and no others.
        let system = self.system.nodes().is_none().then(|| System::new(self.system.clone(), count));
        match system.and_then(|system| system.ok()?.assignment().ok()) {
            Some(quorums) => Self { quorums: Arc::new(quorums), ..usual },
            None => usual,
        }
    }

    /// As [`Setup::new`], but the tree is made of links; each node is as near to node 1 as can be.
    #[must_use]
    pub fn along(topology: &Topology) -> Self {
        let count = topology.count();
        let mut parents = PerNode::new(count, |_| None);
        let mut found = NodeSet::first(count.min(1));
        let mut queue: VecDeque<NodeId> = found.iter().collect();
        while let Some(node) = queue.pop_front() {
            for next in topology.neighbours(node).iter() {
                if found.insert(next) {
                    parents[next] = Some(node);
                    queue.push_back(next);
                }
            }
        }
        Self { parents: Arc::new(parents), ..Self::new(count) }
    }
}

/// The row and the column of a node in a grid that is filled row by row.
fn row_and_column(count: usize, node: NodeId) -> NodeSet {
    let width = (1..=count).find(|width| width * width >= count).unwrap_or(1);
    let place = |node: NodeId| (node.index() / width, node.index() % width);
    let (row, column) = place(node);
    let shares = |other: &NodeId| place(*other).0 == row || place(*other).1 == column;
    NodeId::first(count).filter(shares).collect()
}

/// What an algorithm promises beyond safety.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Wishes are granted in the order of their stamps.
    pub fair: bool,
    /// Every wish is granted. Liveness is judged all the same: this says what to expect.
    pub live: bool,
}

impl Family for Mutex {
    const NAME: &'static str = "mutex";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = Exclusion;

    fn monitor(count: usize, setup: &Setup, promise: &Promise) -> Exclusion {
        let waiting = NodeSet::with_room(count);
        let (inside, fair) = (setup.holder, promise.fair);
        Exclusion { inside, waiting, fair, granted_last: None, fenced_last: None }
    }

    fn command(text: &str) -> Option<Command> {
        [Command::Acquire, Command::Release].into_iter().find(|c| format!("{c:?}") == text)
    }

    fn event(text: &str) -> Option<Event> {
        let (name, told) = match text.strip_suffix(')') {
            Some(text) => text.split_once('(')?,
            None => (text, ""),
        };
        let event = match (name, told) {
            ("Lost", _) => Event::Lost,
            ("Granted", "None") => Event::Granted(None),
            ("Granted", stamp) => {
                let stamp = stamp.strip_prefix("Some(")?.strip_suffix(')')?;
                let (time, node) = stamp.split_once('.')?;
                let (time, node) = (time.parse().ok()?, NodeId::new(node.parse().ok()?)?);
                Event::Granted(Some(Stamp { time, node }))
            }
            ("Fenced", fence) => {
                let (epoch, counter) = fence.split_once(':')?;
                let (epoch, counter) = (ViewId(epoch.parse().ok()?), counter.parse().ok()?);
                Event::Fenced(Fence { epoch, counter })
            }
            _ => return None,
        };
        // Numbers can be written in several ways, of which one is what an event prints.
        (format!("{event:?}") == text).then_some(event)
    }
}

/// The oracle: safety, liveness, fairness where it is promised, and fencing where users are given
/// tokens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exclusion {
    inside: Option<NodeId>,
    waiting: NodeSet,
    fair: bool,
    granted_last: Option<Stamp>,
    fenced_last: Option<Fence>,
}

impl Exclusion {
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

    fn settle(&self) -> Result<(), Violation> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let text = format!("{} will never be granted", wishes(&self.waiting));
        Err(Violation { property: "liveness", text })
    }

    fn claims(&self, property: &str) -> bool {
        match property {
            "fairness" => self.fair,
            "fencing" => self.fenced_last.is_some(),
            _ => true,
        }
    }
}

fn wishes(nodes: &NodeSet) -> alloc::string::String {
    let names: Vec<_> = nodes.iter().take(5).map(|node| node.to_string()).collect();
    let more = if nodes.len() > names.len() { " and others" } else { "" };
    let (wish, node) = if nodes.len() == 1 { ("wish", "node") } else { ("wishes", "nodes") };
    format!("the {wish} of {node} {}{more}", names.join(", "))
}

/// When users wish to enter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Load {
    /// One user at a time, each after the one before has been out for so long.
    Light {
        /// How long nobody wants.
        gap: Span,
    },
    /// Everybody always wants.
    Heavy,
    /// Everybody wants again after an exponentially distributed time with this mean.
    Poisson {
        /// The mean time between leaving and wanting again.
        mean: Span,
    },
    /// As Poisson, but one user wants so many times as often as each of the others, and as soon.
    Hot {
        /// Who.
        node: NodeId,
        /// How many times as often.
        factor: u32,
        /// The mean time between leaving and wanting again of the others.
        mean: Span,
    },
    /// At given times, or as soon after as the user is out.
    Script(Arc<PerNode<Vec<Span>>>),
}

/// The users: each wants to enter a number of times and stays inside for a while.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Users {
    load: Load,
    stay: Span,
    wishes_left: PerNode<u32>,
    doing: PerNode<Doing>,
    /// With light load: whose turn it is.
    turn: NodeId,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Other,
    Waiting,
    Inside,
}

impl Users {
    /// `count` users that each want to enter `wishes` times and stay inside for `stay`; the holder
    /// given at boot is inside already. A script says itself how often each user wants.
    #[must_use]
    pub fn new(count: usize, setup: &Setup, wishes: u32, load: Load, stay: Span) -> Self {
        let wishes_left = PerNode::new(count, |node| match &load {
            Load::Script(script) => script[node].len() as u32,
            Load::Hot { node: hot, factor, .. } if *hot == node => wishes.saturating_mul(*factor),
            _ => wishes,
        });
        let doing = |node| if setup.holder == Some(node) { Doing::Inside } else { Doing::Other };
        let doing = PerNode::new(count, doing);
        Self { load, stay, wishes_left, doing, turn: NodeId::at(0) }
    }

    /// The same users, but these never want to enter.
    #[must_use]
    pub fn without(mut self, bystanders: &NodeSet) -> Self {
        for node in bystanders {
            self.wishes_left[node] = 0;
        }
        let mut nodes = NodeId::first(self.wishes_left.len());
        self.turn = nodes.find(|&node| self.wishes_left[node] > 0).unwrap_or(self.turn);
        self
    }

    fn wait(&self, node: NodeId) -> Option<Wait> {
        match &self.load {
            Load::Light { gap } => (self.turn == node).then_some(Wait::For(*gap)),
            Load::Heavy => Some(Wait::For(Span::ZERO)),
            Load::Poisson { mean } => Some(Wait::Exponential(*mean)),
            Load::Hot { node: hot, factor, mean } if *hot == node => {
                Some(Wait::Exponential(Span(mean.0 / u64::from((*factor).max(1)))))
            }
            Load::Hot { mean, .. } => Some(Wait::Exponential(*mean)),
            Load::Script(script) => {
                let done = script[node].len() - self.wishes_left[node] as usize;
                Some(Wait::Until(script[node][done]))
            }
        }
    }

    /// Under light load, passes the turn on to the next user who still wants.
    fn pass_turn(&mut self, node: NodeId) -> Option<NodeId> {
        if !matches!(self.load, Load::Light { .. }) || node != self.turn {
            return None;
        }
        let count = self.wishes_left.len();
        let after = (1..=count).map(|step| NodeId::at((node.index() + step) % count));
        self.turn = after.into_iter().find(|&node| self.wishes_left[node] > 0)?;
        Some(self.turn)
    }
}

impl Workload<Command, Event> for Users {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        match self.doing[node] {
            Doing::Other if self.wishes_left[node] > 0 => {
                Some((Command::Acquire, self.wait(node)?))
            }
            Doing::Inside => Some((Command::Release, Wait::For(self.stay))),
            Doing::Other | Doing::Waiting => None,
        }
    }

    fn gave(&mut self, node: NodeId, command: &Command) -> Option<NodeId> {
        match command {
            Command::Acquire => {
                self.wishes_left[node] -= 1;
                self.doing[node] = Doing::Waiting;
                None
            }
            Command::Release => {
                self.doing[node] = Doing::Other;
                self.pass_turn(node)
            }
        }
    }

    fn told(&mut self, node: NodeId, event: &Event) -> Option<NodeId> {
        match event {
            Event::Granted(_) | Event::Fenced(_) => {
                self.doing[node] = Doing::Inside;
                None
            }
            Event::Lost => {
                self.doing[node] = Doing::Other;
                self.pass_turn(node)
            }
        }
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        self.doing[node] = Doing::Other;
        self.wishes_left[node] = 0;
        self.pass_turn(node)
    }

    fn finished(&self) -> bool {
        self.doing.iter().all(|(node, doing)| *doing == Doing::Other && self.wishes_left[node] == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32) -> NodeId {
        NodeId::new(number).unwrap()
    }

    fn monitor(fair: bool) -> Exclusion {
        Mutex::monitor(3, &Setup::new(3), &Promise { fair, live: true })
    }

    #[test]
    fn the_usual_quorums_intersect() {
        for count in 1..40 {
            let Setup { quorums, .. } = Setup::new(count);
            for (node, quorum) in quorums.iter() {
                assert!(quorum.contains(node));
                for (_, other) in quorums.iter() {
                    assert!(
                        !quorum.intersection(other).is_empty(),
                        "{count}: {quorum:?} {other:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn events_are_read_as_they_print() {
        let stamp = Stamp { time: 12, node: node(3) };
        let fence = Fence { epoch: ViewId(2), counter: 7 };
        let events = [Event::Granted(None), Event::Granted(Some(stamp)), Event::Fenced(fence)];
        for event in events.into_iter().chain([Event::Lost]) {
            assert_eq!(Mutex::event(&format!("{event:?}")), Some(event));
        }
        for text in ["", "Granted", "Granted()", "Granted(Some(1.0))", "Granted(Some(+1.1))"] {
            assert_eq!(Mutex::event(text), None, "{text}");
        }
        for text in ["Lost()", "Lost(1)", "Fenced", "Fenced(1)", "Fenced(01:2)", "Fenced(1:-2)"] {
            assert_eq!(Mutex::event(text), None, "{text}");
        }
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
        assert_eq!(monitor.settle().unwrap_err().property, "liveness");
        assert!(monitor.owed().iter().eq([node(2)]));
        monitor.observe(node(2), Fact::Crashed).unwrap();
        assert_eq!(monitor.settle(), Ok(()));
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
        assert!(!monitor.claims("fencing"));
        monitor.observe(node(1), Fact::Event(&fenced(1))).unwrap();
        assert!(monitor.claims("fencing"));
        monitor.observe(node(1), Fact::Event(&Event::Lost)).unwrap();
        monitor.observe(node(2), Fact::Event(&fenced(2))).unwrap();
    }

    #[test]
    fn quorums_are_made_for_views_of_every_size() {
        let kinds = ["majority", "tree", "projective-plane", "weighted:3,1,1,1,1,1,1,1", "nucleus"];
        for system in kinds.map(|kind| kind.parse::<Kind>().unwrap()) {
            let setup = Setup { system: system.clone(), ..Setup::new(8) };
            for count in 1..=9 {
                let Setup { quorums, holder, .. } = setup.in_view(count, Some(node(1)));
                assert_eq!((quorums.len(), holder), (count, Some(node(1))));
                for (node, quorum) in quorums.iter() {
                    let meets = |other: &NodeSet| !quorum.intersection(other).is_empty();
                    assert!(quorum.contains(node) && quorums.iter().all(|(_, q)| meets(q)));
                }
            }
        }
        let majority = Setup { system: Kind::Majority, ..Setup::new(8) }.in_view(5, None);
        assert!(majority.quorums.iter().all(|(_, quorum)| quorum.len() == 3));
    }

    #[test]
    fn a_hot_user_wants_more_often_and_sooner() {
        let hot = Load::Hot { node: node(2), factor: 10, mean: Span::UNIT };
        let users = Users::new(2, &Setup::new(2), 3, hot, Span::ZERO);
        assert_eq!((users.wishes_left[node(1)], users.wishes_left[node(2)]), (3, 30));
        let sooner = Wait::Exponential(Span(Span::UNIT.0 / 10));
        assert_eq!(users.next(node(2)), Some((Command::Acquire, sooner)));
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
    fn light_users_take_turns_and_heavy_ones_do_not_wait() {
        let setup = Setup::new(2);
        let light = Load::Light { gap: Span::UNIT };
        let mut users = Users::new(2, &setup, 1, light, Span::ZERO);
        assert_eq!(users.next(node(1)), Some((Command::Acquire, Wait::For(Span::UNIT))));
        assert_eq!(users.next(node(2)), None);
        assert_eq!(users.gave(node(1), &Command::Acquire), None);
        users.told(node(1), &Event::Granted(None));
        assert_eq!(users.gave(node(1), &Command::Release), Some(node(2)));
        assert!(users.next(node(1)).is_none() && users.next(node(2)).is_some());

        let users = Users::new(2, &setup, 1, Load::Heavy, Span::ZERO);
        assert!(NodeId::first(2).all(|node| users.next(node).is_some()));
        let users = users.without(&NodeSet::first(1));
        assert!(users.next(node(1)).is_none() && users.next(node(2)).is_some());
    }
}
