//! A link in one direction: what it does to packets.

use std::time::{Duration, Instant};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a link does to packets. Shares are per million.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quality {
    /// It passes nothing on.
    pub cut: bool,
    /// How long a packet takes at least.
    pub delay: Duration,
    /// How much longer it takes at most; packets stay in order.
    pub jitter: Duration,
    /// So many are lost.
    pub loss: u32,
    /// So many come twice.
    pub duplicate: u32,
    /// So many are overtaken by others.
    pub reorder: u32,
    /// It passes on so many bytes per second.
    pub rate: Option<u64>,
}

/// How long a packet is held back that is to be overtaken.
const OVERTAKEN: Duration = Duration::from_millis(20);
/// The most bytes that wait in front of a narrow line, as time: more are lost.
const LINE_FULL: Duration = Duration::from_millis(400);

/// A link in one direction.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) quality: Quality,
    random: Xoshiro256PlusPlus,
    /// When the line has sent what waits for it.
    busy_until: Option<Instant>,
    /// When the last packet arrives.
    last: Option<Instant>,
}

impl Link {
    /// A link that draws from this seed.
    pub(super) fn new(seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { quality: Quality::default(), random, busy_until: None, last: None }
    }

    /// When a packet arrives that is sent now, and when it does again.
    pub(super) fn pass(&mut self, now: Instant, bytes: usize) -> [Option<Instant>; 2] {
        // Always as many numbers, so that what is drawn for later packets does not depend on it.
        let mut draws = [0; 4];
        draws.fill_with(|| self.random.next_u64());
        let [lost, twice, overtaken, jitter] = draws;
        let happens = |draw: u64, share: u32| draw % 1_000_000 < u64::from(share);
        let Quality { cut, delay, loss, duplicate, reorder, .. } = self.quality;
        if cut || happens(lost, loss) {
            return [None; 2];
        }
        let Some(sent) = self.send(now, bytes) else { return [None; 2] };
        let longest = u64::try_from(self.quality.jitter.as_nanos()).unwrap_or(u64::MAX - 1);
        let mut arrives = sent + delay + Duration::from_nanos(jitter % (longest + 1));
        if happens(overtaken, reorder) {
            arrives += OVERTAKEN;
        } else {
            arrives = self.last.map_or(arrives, |last| last.max(arrives));
            self.last = Some(arrives);
        }
        let again = happens(twice, duplicate).then(|| arrives + OVERTAKEN);
        [Some(arrives), again]
    }

    /// When the line has sent a packet; it is lost if too much waits already.
    fn send(&mut self, now: Instant, bytes: usize) -> Option<Instant> {
        let Some(rate) = self.quality.rate else { return Some(now) };
        let begins = self.busy_until.map_or(now, |busy| busy.max(now));
        if begins - now > LINE_FULL {
            return None;
        }
        let takes = Duration::from_nanos(bytes as u64 * 1_000_000_000 / rate.max(1));
        let sent = begins + takes;
        self.busy_until = Some(sent);
        Some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(quality: Quality) -> Link {
        Link { quality, ..Link::new(1) }
    }

    /// When each of so many packets arrives that are sent at the same time.
    fn passed(link: &mut Link, packets: usize) -> Vec<[Option<Duration>; 2]> {
        let now = Instant::now();
        let pass = |_| link.pass(now, 1000).map(|at| at.map(|at| at - now));
        (0..packets).map(pass).collect()
    }

    #[test]
    fn a_plain_link_passes_everything_on_at_once() {
        let passed = passed(&mut link(Quality::default()), 100);
        assert!(passed.iter().all(|packet| *packet == [Some(Duration::ZERO), None]));
    }

    #[test]
    fn shares_are_about_what_they_say() {
        let quality = Quality { loss: 200_000, duplicate: 50_000, ..Quality::default() };
        let passed = passed(&mut link(quality), 10_000);
        let lost = passed.iter().filter(|packet| packet[0].is_none()).count();
        let twice = passed.iter().filter(|packet| packet[1].is_some()).count();
        assert!((1_800..2_200).contains(&lost), "{lost}");
        assert!((300..500).contains(&twice), "{twice}");
    }

    #[test]
    fn jitter_keeps_the_order_and_reordering_does_not() {
        let jitter = Duration::from_millis(5);
        let in_order = |packets: &[[Option<Duration>; 2]]| packets.is_sorted_by_key(|it| it[0]);
        let quality = Quality { jitter, ..Quality::default() };
        assert!(in_order(&passed(&mut link(quality), 1_000)));
        let quality = Quality { reorder: 10_000, ..quality };
        assert!(!in_order(&passed(&mut link(quality), 1_000)));
    }

    #[test]
    fn a_narrow_line_takes_its_time_and_loses_what_it_cannot_hold() {
        let quality = Quality { rate: Some(100_000), ..Quality::default() };
        let passed = passed(&mut link(quality), 100);
        assert_eq!(passed[9], [Some(Duration::from_millis(100)), None]);
        let through = passed.iter().filter(|packet| packet[0].is_some()).count();
        assert_eq!(through, 41, "10 ms each, until 400 ms of them wait");
    }

    #[test]
    fn a_cut_link_passes_nothing_on_and_goes_on_as_if_it_had() {
        let (mut one, mut other) = (link(Quality::default()), link(Quality::default()));
        one.quality.cut = true;
        assert_eq!(passed(&mut one, 10), [[None; 2]; 10]);
        passed(&mut other, 10);
        assert_eq!(one.random, other.random);
    }
}
