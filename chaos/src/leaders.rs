//! Candidates for roles in the process of a member, and observers of them: candidates stand with priorities,
//! lead for a while, and yield, resign or hand over; observers write down who is said to lead.

use std::io;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorate_core::Span;
use quorate_fence::Fence;
use quorate_member::{Leader, Leadership, Member, Seen};
use quorate_service::history::{Fact, News};
use tokio::time::{sleep, timeout};

use crate::book::Book;
use crate::dice::Dice;
use crate::resource::written;
use crate::users::{PATIENCE, WITHIN};

/// The roles that there are.
pub(crate) const ROLES: [Role; 3] = [
    // All are equal here, and terms are short: so everybody comes to lead.
    Role { name: "turns", priorities: 0..=0, lasts: 5..=40 },
    Role { name: "ranked", priorities: 0..=3, lasts: 20..=200 },
    Role { name: "steady", priorities: 0..=1, lasts: 200..=1_200 },
];
/// So long is nothing new told before an observer looks by itself.
const LOOK: Duration = Duration::from_millis(400);

/// A role.
pub(crate) struct Role {
    pub(crate) name: &'static str,
    priorities: RangeInclusive<u64>,
    /// How long a leader leads that is not asked to yield, in milliseconds.
    lasts: RangeInclusive<u64>,
}

/// What candidates and observers of a member have in common.
pub(crate) struct Party {
    pub(crate) member: Arc<Member>,
    pub(crate) book: Book,
    pub(crate) dice: Dice,
    /// How many calls the users of this process have begun.
    pub(crate) calls: Arc<AtomicU64>,
    /// Pauses are so many times as long.
    pub(crate) pace: u64,
}

impl Party {
    async fn pause(&mut self, range: RangeInclusive<u64>) {
        sleep(Duration::from_millis(self.dice.between(range) * self.pace)).await;
    }

    /// Stands for a role again and again.
    pub(crate) async fn stand(mut self, role: &'static Role) -> io::Result<()> {
        loop {
            let id = self.calls.fetch_add(1, Ordering::Relaxed);
            let what = format!("stand for {}", role.name);
            self.book.note(Fact::Call { id, what, within: WITHIN })?;
            let priority = self.dice.between(role.priorities.clone()) as i32;
            let value = format!("{}.{id}", std::process::id());
            let campaign = self.member.campaign(role.name).priority(priority).value(value);
            let asked = campaign.owner("candidate").timeout(PATIENCE).await;
            let outcome = asked.as_ref().map_or_else(ToString::to_string, |_| "leads".to_owned());
            self.book.note(Fact::Return { id, outcome })?;
            if let Ok(leadership) = asked {
                self.lead(role, leadership).await?;
            }
            self.pause(20..=100).await;
        }
    }

    /// Leads for a while. Some yield to somebody better, some do not.
    async fn lead(&mut self, role: &Role, leadership: Leadership) -> io::Result<()> {
        let lasts = Duration::from_millis(self.dice.between(role.lasts.clone()));
        let (begun, yields) = (Instant::now(), self.dice.happens(50));
        let mut asked = pin!(leadership.asked_to_yield());
        let mut leads = true;
        while leads && begun.elapsed() < lasts {
            let reading = quorate_transport::reading();
            let left = leadership.check().map_or(Span(0), |left| Span(left.as_nanos() as u64));
            let term = leadership.term();
            let fence = written(Fence::new(term.epoch.0, term.counter));
            let (space, name) = (Some(quorate_member::ROLES.to_owned()), role.name.to_owned());
            self.book.note_at(reading, Fact::Checked { space, name, fence, left })?;
            leads = left != Span(0);
            let rest = Duration::from_millis(self.dice.between(5..=25));
            tokio::select! {
                _ = &mut asked, if yields => leads = false,
                () = sleep(rest) => {}
            }
        }
        if self.dice.happens(25)
            && let Some(next) = self.another()
        {
            // If there is none of this name any more, it resigns.
            let _ = leadership.hand_over(&next);
        } else {
            leadership.resign();
        }
        Ok(())
    }

    /// The name of some member.
    fn another(&mut self) -> Option<String> {
        let status = self.member.status();
        let status = status.borrow();
        let last = status.members.len().checked_sub(1)?;
        let place = self.dice.between(0..=last as u64) as usize;
        status.members.get(place).map(|member| member.name.clone())
    }

    /// Observes a role, sometimes anew, and sometimes asks whoever leads to yield.
    pub(crate) async fn observe(mut self, role: &'static Role) -> io::Result<()> {
        loop {
            let Ok(mut observer) = self.member.observe(role.name) else {
                sleep(LOOK / 10).await;
                continue;
            };
            while !self.dice.happens(2) {
                let seen = match timeout(LOOK * self.pace as u32, observer.changed()).await {
                    Ok(Ok(seen)) => seen,
                    Ok(Err(_)) => return Ok(()),
                    Err(_) => observer.current(),
                };
                self.book.note(Fact::Observed { role: role.name.to_owned(), news: news(seen) })?;
                if self.dice.happens(3) {
                    let to = if self.dice.happens(50) { self.another() } else { None };
                    // This process may be no member now, or the other one none.
                    let _ = self.member.ask_to_yield(role.name, to.as_deref());
                }
            }
        }
    }
}

/// What is seen, as histories have it.
fn news(seen: Seen) -> News {
    match seen {
        Seen::Unknown => News::Unknown,
        Seen::Nobody => News::Nobody { after: None },
        Seen::Leads(Leader { term, member, value }) => News::Leads {
            term: written(Fence::new(term.epoch.0, term.counter)),
            member,
            value: String::from_utf8_lossy(&value).into_owned(),
        },
    }
}
