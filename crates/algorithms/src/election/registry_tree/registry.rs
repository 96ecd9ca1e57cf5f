//! The registry: who is there, who is the root, and whose addresses are given.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Boot, Ctx, NodeId, NodeSet, PerNode};

use super::{Lead, Msg, Rank, RegistryTree};

/// What the registry knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Registry {
    /// What everybody offers.
    ranks: Arc<PerNode<Rank>>,
    /// Who has registered and is there.
    present: NodeSet,
    /// Who was named root last.
    lead: Option<Lead>,
    /// How many addresses it gives.
    offers: u32,
    /// When the root is lost, does it name the first member, not the best one?
    first: bool,
}

impl Registry {
    /// Nobody has registered, and nobody is the root.
    pub(super) fn new(boot: &Boot<'_, RegistryTree>) -> Self {
        Self {
            ranks: Arc::clone(&boot.setup.ranks),
            present: NodeSet::new(),
            lead: None,
            offers: boot.config.offers,
            first: boot.config.first,
        }
    }

    /// Names a root if there is none, or none any more. True if it did.
    fn name_root(&mut self) -> bool {
        if self.lead.is_some_and(|lead| self.present.contains(lead.root)) {
            return false;
        }
        let ranks = &self.ranks;
        let best = || self.present.iter().max_by_key(|&node| ranks[node]);
        let root = if self.first { self.present.iter().next() } else { best() };
        let reign = self.lead.map_or(1, |lead| lead.reign.saturating_add(1));
        let Some(root) = root else { return false };
        self.lead = Some(Lead { reign, root, rank: ranks[root] });
        true
    }

    /// Some addresses of those who are there, for a node that is not to get its own, and for one that
    /// has lost its parent also the root's: from a place that is chosen at random
    /// unless all are given, so that no two nodes get none but each other's for ever.
    fn offer(&self, cx: &mut Ctx<'_, RegistryTree>, to: NodeId, orphan: bool) -> Vec<NodeId> {
        let (count, offers) = (self.ranks.len(), self.offers as usize);
        let start = if offers + 1 < count { cx.choose(count as u32) as usize } else { 0 };
        let around = (0..count).map(|step| NodeId::at((start + step) % count));
        let others = around.filter(|&node| node != to && self.present.contains(node));
        let mut nodes: Vec<_> = others.take(offers).collect();
        let root = self.lead.map(|lead| lead.root);
        nodes.extend(root.filter(|root| orphan && !nodes.contains(root)));
        nodes
    }
}

impl RegistryTree {
    /// Somebody registers: from now on it is one of those who are there, and it gets addresses of the
    /// others. The first one of all is the root.
    pub(super) fn serve(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, orphan: bool) {
        // Who registered and has crashed since is not there, and who is back is when that is known.
        if !self.down.contains(from) && !flaw!(NobodyIsEnrolled) {
            self.enrol(cx, from);
        }
        let Some(registry) = &mut self.registry else { return cx.trace("stale", &[]) };
        let is_new = registry.name_root();
        let Some(lead) = registry.lead else { return };
        cx.trace("serve", &[("node", from.into()), ("reign", lead.reign.into())]);
        if is_new && lead.root != from {
            self.give_entries(cx, lead.root, false);
        }
        self.give_entries(cx, from, orphan);
    }

    /// A node has arrived, or is back.
    pub(super) fn enrol(&mut self, cx: &mut Ctx<'_, Self>, node: NodeId) {
        let Some(registry) = &mut self.registry else { return };
        if registry.present.insert(node) {
            cx.trace("enrol", &[("node", node.into())]);
        }
    }

    /// A node has crashed. If it was the root, another one is named.
    pub(super) fn strike_off(&mut self, cx: &mut Ctx<'_, Self>, node: NodeId) {
        let Some(registry) = &mut self.registry else { return };
        registry.present.remove(node);
        cx.trace("strike off", &[("node", node.into())]);
        if registry.lead.is_some()
            && registry.name_root()
            && let Some(lead) = registry.lead
        {
            self.give_entries(cx, lead.root, false);
        }
    }

    fn give_entries(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, orphan: bool) {
        let Some(registry) = &self.registry else { return };
        let Some(lead) = registry.lead else { return };
        let nodes = registry.offer(cx, to, orphan);
        if to == cx.me() {
            self.take_entries(cx, lead, nodes);
        } else {
            cx.send(to, Msg::Entries(lead, nodes));
        }
    }
}
