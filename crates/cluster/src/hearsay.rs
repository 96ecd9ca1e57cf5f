//! What a node is told of its peers: a failure detector made of sessions.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Life, Liveness, NodeId, PerNode};
use tokio::time::Instant;

use crate::lane::Lane;

/// A peer that was never reached is waited for so many times as long: it may still be starting.
const STRANGER_PATIENCE: u32 = 4;

/// What the node was told of its peers.
#[derive(Debug)]
pub(crate) struct Hearsay {
    after: Duration,
    words: PerNode<Word>,
    deadline: Option<Instant>,
}

/// What the node was told of one of them.
#[derive(Clone, Copy, Debug)]
struct Word {
    said: Liveness,
    /// The life that it was last seen in.
    life: Option<Life>,
}

impl Hearsay {
    /// Everybody is believed to be up.
    pub(crate) fn new(count: usize, after: Duration) -> Self {
        let words = PerNode::new(count, |_| Word { said: Liveness::Up, life: None });
        // Looked at for the first time when it begins.
        Self { after, words, deadline: Some(Instant::now()) }
    }

    /// When to look again although no session was lost or found.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What has changed since it was last asked, in order.
    pub(crate) fn news(
        &mut self,
        lanes: &PerNode<Option<Arc<Lane>>>,
        now: Instant,
    ) -> Vec<(NodeId, Liveness)> {
        self.deadline = None;
        let mut news = Vec::new();
        for (node, lane) in lanes.iter() {
            let Some(lane) = lane else { continue };
            let outbox = lane.outbox();
            let word = &mut self.words[node];
            let mut say = |word: &mut Word, now| {
                if word.said != now {
                    word.said = now;
                    news.push((node, now));
                }
            };
            if outbox.is_up() {
                // Whoever is there again in another life has been away, however briefly.
                if word.life.is_some() && word.life != outbox.peer() {
                    say(word, Liveness::Down);
                }
                word.life = outbox.peer();
                say(word, Liveness::Up);
                continue;
            }
            let patience = if word.life.is_some() { 1 } else { STRANGER_PATIENCE };
            match outbox.down_since().map(|since| since + self.after * patience) {
                Some(at) if at > now && word.said == Liveness::Up => {
                    self.deadline = Some(self.deadline.map_or(at, |deadline| deadline.min(at)));
                }
                Some(at) if at > now => {}
                _ => say(word, Liveness::Down),
            }
        }
        news
    }
}
