//! What the register does, as the oracle sees it: history, lives, grounds, and that all have stopped.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorate_core::{Clocks, Life, NodeId, Time};

use super::{Ended, Found, Living, Promises, STRIKES};
use crate::deed::Deed;
use crate::family::Promise;
use crate::register::{Beat, Epoch, Gone, Ground, Host};

impl Promises {
    pub(super) fn on_deed(&mut self, clocks: &dyn Clocks, deed: &Deed, found: &mut Found) {
        match deed {
            Deed::Admitted { life, by } => self.on_admitted(*life, *by, found),
            Deed::Renewed(life, beat) => match self.lives.get_mut(life) {
                Some(living) if living.ended.is_none() => living.beat = *beat,
                _ => found.add("lives", format!("life {life:?} is over, and renews")),
            },
            Deed::Barred(lives) => lives.iter().for_each(|life| self.end(*life, Ended::Barred)),
            Deed::Left(life) => self.end(*life, Ended::Left),
            Deed::Doomed(life, beat) => self.on_doomed(*life, *beat, found),
            Deed::Hosts(life, host) => {
                if let Some(living) = self.lives.get_mut(life) {
                    living.hosts = *host == Host::Begins;
                }
            }
            Deed::Decided { epoch, members, gone } => {
                self.on_decided(clocks, *epoch, members, gone, found);
            }
        }
    }

    fn on_admitted(&mut self, life: Life, by: NodeId, found: &mut Found) {
        if life < self.next {
            found.add("lives", format!("life {life:?} is given a second time, to node {by}"));
        }
        self.next = self.next.max(life.next());
        let living = Living {
            by,
            told: false,
            dead: self.down.contains(by),
            until: Time::ZERO,
            sits: None,
            seated: false,
            beat: Beat(0),
            hosts: false,
            ended: None,
        };
        self.lives.insert(life, living);
    }

    fn on_doomed(&mut self, life: Life, beat: Beat, found: &mut Found) {
        let Some(living) = self.lives.get(&life) else {
            return found.add("lives", format!("life {life:?} is over, and is doomed"));
        };
        if living.beat != beat {
            let (beat, renewed) = (beat.0, living.beat.0);
            let text = format!(
                "life {life:?} is doomed for its silence since beat {beat}, and has had beat {renewed} \
                 since"
            );
            found.add("grounds", text);
        }
        let struck = &mut self.struck[living.by];
        *struck = (*struck + 1).min(STRIKES);
        self.end(life, Ended::Doomed);
    }

    /// A life gets no more beats. Of one that waits nothing is kept, unless it is only barred.
    fn end(&mut self, life: Life, ended: Ended) {
        let Some(living) = self.lives.get_mut(&life) else { return };
        if living.seated || ended == Ended::Barred {
            living.ended = Some(ended);
        } else {
            self.lives.remove(&life);
        }
    }

    fn on_decided(
        &mut self,
        clocks: &dyn Clocks,
        epoch: Epoch,
        members: &[Life],
        gone: &[Gone],
        found: &mut Found,
    ) {
        let view = epoch.0;
        let (last, former) = self.last().unwrap_or_default();
        if !former.is_empty() && last >= epoch {
            found.add("one_history", format!("view {view} is decided after view {}", last.0));
        }
        for life in members {
            match self.lives.get(life) {
                Some(living) if living.ended.is_none() => {
                    if former.contains(life) && living.sits == Some((last, false)) {
                        let text = format!(
                            "view {view} is decided, and life {life:?} at node {} has not stopped in \
                             view {}",
                            living.by, last.0
                        );
                        found.add("stop_before_decide", text);
                    }
                }
                _ => found.add("lives", format!("life {life:?} is over, and is in view {view}")),
            }
        }
        let missing = former.iter().filter(|life| !members.contains(life));
        let missing: Vec<Life> = missing.copied().collect();
        for life in missing {
            let ground = gone.iter().find(|gone| gone.life == life).map(|gone| gone.ground);
            if let Some(why) = self.lacks_ground(clocks, life, ground) {
                let text = format!("life {life:?} is missing from view {view}, and {why}");
                found.add("grounds", text);
            }
            self.lives.remove(&life);
        }
        for life in members {
            if let Some(living) = self.lives.get_mut(life).filter(|living| !living.seated) {
                living.seated = true;
                living.beat.0 += 1;
            }
        }
        if self.promise == Promise::Register {
            self.decided.clear();
        }
        self.decided.insert(epoch, members.into());
    }

    /// What is wrong with a member's being missing for this reason, if something is.
    fn lacks_ground(
        &self,
        clocks: &dyn Clocks,
        life: Life,
        ground: Option<Ground>,
    ) -> Option<String> {
        let living = self.lives.get(&life)?;
        let by = living.by;
        let known = match ground {
            Some(Ground::Left) => living.ended == Some(Ended::Left),
            Some(Ground::Doomed) => living.ended == Some(Ended::Doomed),
            Some(Ground::Dead(beat)) => living.beat == beat && !living.hosts,
            None => return Some("no reason is given".into()),
        };
        if !known {
            return Some(format!("it is not true that it is {}", word(ground)));
        }
        // Of a register alone it is not known whether anybody lives.
        if !living.told || living.dead {
            return None;
        }
        if matches!(ground, Some(Ground::Dead(_))) {
            return Some(format!("its process at node {by} is taken for dead and lives"));
        }
        let clock = clocks.clock(by);
        (clock < living.until).then(|| {
            format!("node {by} may act until {:?}, and its clock shows {clock:?}", living.until)
        })
    }
}

const fn word(ground: Option<Ground>) -> &'static str {
    match ground {
        Some(Ground::Left) => "left",
        Some(Ground::Doomed) => "doomed",
        Some(Ground::Dead(_)) | None => "dead",
    }
}
