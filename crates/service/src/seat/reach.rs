//! Who does not reach whom.
//!
//! Everybody says with its renewals whom it does not hear. A link is broken if one of its ends says so.
//! If that lasts, as many as reach each other go on, and their most senior one bars the other members
//! from renewing; they are doomed when their leases have run down.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quorate_core::{Ctx, Life, Time};

use super::words::Msg;
use super::{Party, Seat};
use crate::lease::{beat, since, usable};
use crate::register::{Order, Register};

impl Seat {
    /// Asks all who are admitted whether they hear.
    pub(super) fn ping(&self, cx: &mut Ctx<'_, Party>) {
        let Some(mine) = self.life() else { return };
        let lives = self.known.register.members().map(|(life, _)| life);
        for node in lives.filter_map(|life| self.node_of(life)) {
            cx.send(node, Msg::Ping { by: mine, change: None });
        }
    }

    /// A life was heard: whatever refused a connection, it was not for want of it.
    pub(super) fn hear(&mut self, now: Time, life: Life) {
        self.heard.insert(life, now);
        self.refused.remove(&life);
    }

    /// Whom it has not heard for some time.
    pub(super) fn unreachable(&self, now: Time) -> BTreeSet<Life> {
        let patience = beat(self.length());
        let silent = self.heard.iter().filter(|(_, heard)| since(**heard, now) > patience);
        let silent = silent.map(|(life, _)| *life).chain(self.severed.iter().copied());
        silent.filter(|life| self.node_of(*life).is_some()).collect()
    }

    /// Bars whoever is not among those that reach each other, if this is the most senior of them.
    pub(super) fn mind_broken_links(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        mine: Life,
        register: &Register,
    ) {
        // Mostly everybody reaches everybody.
        if register.members().all(|(_, member)| member.unreachable.is_empty()) {
            return self.broken.clear();
        }
        let lives = self.by_seniority(register);
        let now = cx.now();
        let mut broken = BTreeSet::new();
        for (place, one) in lives.iter().enumerate() {
            let others = lives[place + 1..].iter();
            let apart = others.filter(|other| register.are_apart(*one, **other));
            broken.extend(apart.map(|other| (*one, *other)));
        }
        self.broken.retain(|pair, _| broken.contains(pair));
        broken.iter().for_each(|pair| _ = self.broken.entry(*pair).or_insert(now));
        let patience = usable(self.length());
        let lasting: Vec<(Life, Life)> = self
            .broken
            .iter()
            .filter(|(_, begun)| since(**begun, now) >= patience)
            .map(|(pair, _)| *pair)
            .collect();
        if lasting.is_empty() || register.bar_is_open() {
            return;
        }
        let best = best_part(&lives, register.view(), &lasting);
        if best.first() != Some(&mine) {
            return;
        }
        let others = lives.iter().filter(|life| !best.contains(life));
        let lives: BTreeSet<Life> =
            others.filter(|life| register.view().contains(life)).copied().collect();
        if !lives.is_empty() {
            cx.trace("bar who is cut off", &[("lives", lives.len() as u64)]);
            self.order(cx, Order::Bar { after: register.epoch(), lives });
        }
    }

    /// Everybody who goes on: members by seniority, then those who wait.
    fn by_seniority(&self, register: &Register) -> Vec<Life> {
        let seated = register.view().iter().copied();
        let waiting = register.members().map(|(life, _)| life);
        let waiting = waiting.filter(|life| !register.view().contains(life));
        seated.chain(waiting).filter(|life| self.goes_on(register, *life)).collect()
    }
}

/// The largest part of these all of whom reach each other; of equals, with more that are seated; of
/// those, with the most senior. They come by seniority, and so does the part.
pub(super) fn best_part(lives: &[Life], seated: &[Life], broken: &[(Life, Life)]) -> Vec<Life> {
    /// So many ways are tried; after that, the more senior one of a pair stays.
    const WAYS_MAX: usize = 4096;
    let worth = |part: &[Life]| {
        let sits = |life: &&Life| seated.contains(life);
        let places = lives.iter().map(|life| part.contains(life));
        (part.len(), part.iter().filter(sits).count(), places.collect::<Vec<_>>())
    };
    let mut best: Vec<Life> = Vec::new();
    let mut open = Vec::from([lives.to_vec()]);
    let mut ways = 0;
    while let Some(part) = open.pop() {
        ways += 1;
        let both = |(one, other): &&(Life, Life)| part.contains(one) && part.contains(other);
        match broken.iter().find(both) {
            None if worth(&part) > worth(&best) => best = part,
            Some(_) if part.len() <= best.len() => {}
            Some((one, other)) => {
                let without = |gone: &Life| part.iter().copied().filter(|it| it != gone).collect();
                if ways < WAYS_MAX {
                    open.push(without(one));
                }
                open.push(without(other));
            }
            None => {}
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(lives: &[u64], seated: &[u64], broken: &[(u64, u64)]) -> Vec<u64> {
        let of = |lives: &[u64]| lives.iter().map(|life| Life(*life)).collect::<Vec<_>>();
        let broken: Vec<_> = broken.iter().map(|(one, other)| (Life(*one), Life(*other))).collect();
        best_part(&of(lives), &of(seated), &broken).iter().map(|life| life.0).collect()
    }

    #[test]
    fn the_largest_part_goes_on_and_of_equals_the_senior_one() {
        assert_eq!(part(&[1, 2, 3], &[1, 2, 3], &[]), [1, 2, 3]);
        assert_eq!(part(&[1, 2, 3], &[1, 2, 3], &[(2, 3)]), [1, 2]);
        assert_eq!(part(&[1, 2, 3], &[1, 2, 3], &[(1, 2), (1, 3)]), [2, 3]);
        // A ring of three broken links: one stays, the senior.
        assert_eq!(part(&[1, 2, 3], &[1, 2, 3], &[(1, 2), (2, 3), (1, 3)]), [1]);
        // Three from two.
        let cut = [(1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)];
        assert_eq!(part(&[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5], &cut), [3, 4, 5]);
    }

    #[test]
    fn who_waits_counts_but_less() {
        assert_eq!(part(&[1, 2, 7], &[1, 2], &[(1, 7)]), [1, 2]);
        // Nobody reaches the only one that is seated.
        assert_eq!(part(&[1, 7, 8], &[1], &[(1, 7), (1, 8)]), [7, 8]);
        assert_eq!(part(&[1, 7], &[1], &[(1, 7)]), [1]);
    }
}
