//! How long to wait for an acknowledgement: RFC 6298, in whole nanoseconds.

use quorate_core::Span;

/// The finest difference that a clock is trusted with: G of the RFC.
const GRANULARITY: Span = Span(Span::UNIT.0 / 10);

/// The bounds of a timeout: where it begins, and what it keeps within.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// Before anything was measured.
    pub initial: Span,
    /// Never shorter, backed off or not.
    pub floor: Span,
    /// Never longer, however often it was doubled.
    pub ceiling: Span,
}

/// The round trips to one peer, as far as they were measured.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Rtt {
    /// None before the first measurement.
    measured: Option<Measured>,
    /// How often the timeout was doubled since something new was acknowledged.
    doublings: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Measured {
    /// The smoothed round trip, SRTT.
    smoothed: u64,
    /// Its mean deviation, RTTVAR.
    deviation: u64,
}

impl Rtt {
    /// A round trip took so long (2.2 and 2.3).
    ///
    /// Only for messages that were sent once: of others nobody knows which sending was answered
    /// (Karn's rule, section 3).
    pub(super) fn measure(&mut self, took: Span) {
        let Span(took) = took;
        self.measured = Some(match &self.measured {
            None => Measured { smoothed: took, deviation: took / 2 },
            Some(Measured { smoothed, deviation }) => Measured {
                deviation: weighted(*deviation, 3, smoothed.abs_diff(took)),
                smoothed: weighted(*smoothed, 7, took),
            },
        });
    }

    /// Something new was acknowledged: the peer answers, and the back-off ends.
    pub(super) const fn calm_down(&mut self) {
        self.doublings = 0;
    }

    /// The timer ran out: the next timeout is twice as long (5.5).
    pub(super) const fn back_off(&mut self) {
        self.doublings = self.doublings.saturating_add(1);
    }

    /// RTO: how long to wait before sending again.
    pub(super) fn timeout(&self, bounds: &Bounds) -> Span {
        let base = match &self.measured {
            None => bounds.initial,
            Some(Measured { smoothed, deviation }) => {
                Span(*smoothed) + GRANULARITY.max(Span(*deviation).times(4))
            }
        };
        // So many doublings leave any ceiling behind; more would leave 64 bits.
        let doublings = self.doublings.min(40);
        base.max(bounds.floor).times(1 << doublings).min(bounds.ceiling)
    }
}

/// The mean of the old value, which counts `weight` times, and a new one.
const fn weighted(old: u64, weight: u64, new: u64) -> u64 {
    old.saturating_mul(weight).saturating_add(new) / (weight + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds =
        Bounds { initial: Span::units(10), floor: Span::units(2), ceiling: Span::units(100) };

    #[test]
    fn the_timeout_follows_the_formula() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&BOUNDS), Span::units(10));
        // SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        rtt.measure(Span::units(8));
        assert_eq!(rtt.timeout(&BOUNDS), Span::units(8 + 4 * 4));
        // RTTVAR = 3/4 4 + 1/4 |8 - 16| = 5, then SRTT = 7/8 8 + 1/8 16 = 9.
        rtt.measure(Span::units(16));
        assert_eq!(rtt.timeout(&BOUNDS), Span::units(9 + 4 * 5));
    }

    #[test]
    fn a_steady_link_is_trusted_down_to_the_floor() {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.measure(Span::units(4));
        }
        assert_eq!(rtt.timeout(&BOUNDS), Span::units(4) + GRANULARITY);
        for _ in 0..100 {
            rtt.measure(Span(1_000));
        }
        assert_eq!(rtt.timeout(&BOUNDS), BOUNDS.floor);
    }

    #[test]
    fn it_is_doubled_up_to_the_ceiling_until_something_is_acknowledged() {
        let mut rtt = Rtt::default();
        let mut waits = std::vec::Vec::new();
        for _ in 0..70 {
            waits.push(rtt.timeout(&BOUNDS).in_units());
            rtt.back_off();
        }
        assert_eq!(waits[..5], [10.0, 20.0, 40.0, 80.0, 100.0]);
        assert_eq!(waits[69], 100.0);
        rtt.calm_down();
        assert_eq!(rtt.timeout(&BOUNDS), BOUNDS.initial);
    }
}
