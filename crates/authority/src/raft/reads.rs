//! Reads on their way: each asks the leader how far the log is committed, and waits until that is applied.

use ::raft::ReadState;

use super::wire::{decode, encode};

/// Reads that were asked for here.
pub(super) struct Reads {
    voter: u64,
    boot: u64,
    /// The last number of a question. With voter and boot it is like no other of anybody: an answer to
    /// an earlier question must not be taken for one to a later read.
    last: u64,
    waiting: Vec<Reading>,
}

struct Reading {
    ticket: u64,
    deadline: u64,
    stage: Stage,
}

enum Stage {
    New,
    Asked { question: u64, again: u64 },
    Known { index: u64 },
}

impl Reads {
    pub(super) const fn new(voter: u64, boot: u64) -> Self {
        Self { voter, boot, last: 0, waiting: Vec::new() }
    }

    pub(super) fn give(&mut self, ticket: u64, deadline: u64) {
        self.waiting.push(Reading { ticket, deadline, stage: Stage::New });
    }

    /// The question to ask now, one for all that wait: raft drops questions without a word, so those
    /// that were not answered in time are part of a new one.
    pub(super) fn question(&mut self, now: u64, patience: u64) -> Option<Vec<u8>> {
        let due = |reading: &&mut Reading| match reading.stage {
            Stage::New => true,
            Stage::Asked { again, .. } => again <= now,
            Stage::Known { .. } => false,
        };
        let question = self.last + 1;
        let mut any = false;
        for reading in self.waiting.iter_mut().filter(due) {
            reading.stage = Stage::Asked { question, again: now + patience };
            any = true;
        }
        if any {
            self.last = question;
        }
        any.then(|| encode(&(self.voter, self.boot, question)))
    }

    /// The leader's answers.
    pub(super) fn answered(&mut self, answers: Vec<ReadState>) {
        for answer in answers {
            let Some((voter, boot, number)) = decode::<(u64, u64, u64)>(&answer.request_ctx) else {
                continue;
            };
            if (voter, boot) != (self.voter, self.boot) {
                continue;
            }
            for reading in &mut self.waiting {
                if matches!(reading.stage, Stage::Asked { question, .. } if question == number) {
                    reading.stage = Stage::Known { index: answer.index };
                }
            }
        }
    }

    /// Those that can be answered when this much is applied.
    pub(super) fn served(&mut self, applied: u64) -> Vec<u64> {
        let ready = |reading: &mut Reading| matches!(reading.stage, Stage::Known { index } if index <= applied);
        self.waiting.extract_if(.., ready).map(|reading| reading.ticket).collect()
    }

    /// The tick at which one of them is asked again, or given up.
    pub(super) fn due(&self) -> Option<u64> {
        let due = |reading: &Reading| match reading.stage {
            Stage::Asked { again, .. } => again.min(reading.deadline),
            Stage::New | Stage::Known { .. } => reading.deadline,
        };
        self.waiting.iter().map(due).min()
    }

    /// Those that waited for too long.
    pub(super) fn expired(&mut self, now: u64) -> Vec<u64> {
        let expired = self.waiting.extract_if(.., |reading| reading.deadline <= now);
        expired.map(|reading| reading.ticket).collect()
    }
}
