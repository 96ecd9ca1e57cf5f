//! Changes of who takes part, one at a time.

use std::error::Error;
use std::fmt;

use super::super::disk::Disk;
use super::super::wire::Conf;
use super::Voter;

/// Why a change was not begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeError {
    /// This voter does not lead: ask who does.
    NotLeader,
    /// Another change is, or may be, under way.
    Pending,
    /// It is so already.
    Already,
    /// It has to listen first, and to have caught up.
    Behind,
    /// Somebody has to vote.
    Last,
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotLeader => "not the leader",
            Self::Pending => "another change is under way",
            Self::Already => "it is so already",
            Self::Behind => "it has to listen and to catch up first",
            Self::Last => "the last voter cannot be removed",
        })
    }
}

impl Error for ChangeError {}

impl<D: Disk> Voter<D> {
    /// Begins a change of who takes part. That it was begun does not say that it will be made: the
    /// members that are told say so ([`Out::Members`](super::Out::Members)).
    ///
    /// Who is removed has to go on answering until a majority of the others has applied its removal;
    /// until then they may need its vote.
    ///
    /// # Errors
    /// If it cannot be begun here and now.
    pub fn change(&mut self, conf: Conf) -> Result<(), ChangeError> {
        if !self.leads() {
            return Err(ChangeError::NotLeader);
        }
        // Raft would take it, and put an empty entry in its place.
        if self.node.raft.has_pending_conf() {
            return Err(ChangeError::Pending);
        }
        let members = &self.applied().members;
        match conf {
            Conf::Learn(id) if members.contains(id) || id == 0 => return Err(ChangeError::Already),
            Conf::Promote(id) if members.voters.contains(&id) => return Err(ChangeError::Already),
            Conf::Promote(id) if !self.has_caught_up(id) => return Err(ChangeError::Behind),
            Conf::Remove(id) if !members.contains(id) => return Err(ChangeError::Already),
            Conf::Remove(id) if members.voters == [id] => return Err(ChangeError::Last),
            Conf::Learn(_) | Conf::Promote(_) | Conf::Remove(_) => {}
        }
        self.node.step(conf.proposal()).map_err(|_| ChangeError::Pending)
    }

    /// Has somebody who listens most of the log? Else its vote would be missing where it counts.
    fn has_caught_up(&self, id: u64) -> bool {
        let progress = self.node.raft.prs().get(id);
        let listens = self.applied().members.learners.contains(&id);
        let near = |matched: u64| matched + self.options.tail >= self.applied().index;
        listens && progress.is_some_and(|progress| progress.matched > 0 && near(progress.matched))
    }
}
