//! Uniformity: what anybody delivers uniformly binds all, even if it crashes right after.

use alloc::format;

use quorate_core::{NodeId, ViewId, Violation};

use super::views::Left;
use super::{Delivery, MessageId, broken, crossing};

impl Delivery {
    /// A message is delivered uniformly: nobody may have left the view without it.
    pub(super) fn note_uniform(
        &mut self,
        at: NodeId,
        view: ViewId,
        id: MessageId,
    ) -> Result<(), Violation> {
        let among = self.nodes[at].transition.clone();
        let Some(seen) = self.views.get_mut(&view) else { return Ok(()) };
        let bound = |left: &Left| {
            among.as_ref().is_none_or(|among| among.iter().any(|node| left.who.contains(*node)))
        };
        let without = |(_, left): &(&ViewId, &Left)| bound(left) && !left.log.contains(&id);
        let missed = seen.left.iter().find(without).map(|(next, _)| *next);
        match among {
            None => seen.uniform.entry(at).or_default().push(id),
            Some(among) => seen.among.push((id, among, at)),
        }
        match missed {
            Some(next) => {
                let text = format!(
                    "node {at} delivers {id:?} in view {}, others left for view {} without it",
                    view.0, next.0
                );
                broken("uniformity", text)
            }
            None => Ok(()),
        }
    }

    /// What anybody delivered uniformly in a view, those must have delivered who leave it.
    pub(super) fn judge_uniform(
        &self,
        at: NodeId,
        view: ViewId,
        log: &[MessageId],
    ) -> Result<(), Violation> {
        let Some(seen) = self.views.get(&view) else { return Ok(()) };
        for (id, among, by) in &seen.among {
            if among.contains(&at) && !log.contains(id) {
                let text = format!(
                    "node {by} delivered {id:?} after view {} for node {at} too, which goes on \
                     without it",
                    view.0
                );
                return broken("uniformity", text);
            }
        }
        for (node, delivered) in &seen.uniform {
            if let Some(id) = delivered.iter().find(|id| !log.contains(id)) {
                let text = format!(
                    "node {node} delivered {id:?} in view {}, which others leave without it",
                    view.0
                );
                return broken("uniformity", text);
            }
            if let Some((one, other)) = self.crossed(delivered, log) {
                return broken("uniformity", crossing(*node, one, other));
            }
        }
        Ok(())
    }
}
