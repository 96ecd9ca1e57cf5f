//! Failure detection in the lab: its argument, and the measures of quality of its field.
//!
//! The measures are those of Chen, Toueg and Aguilera (2002), over all ordered pairs of nodes that
//! are alive: how long a crash goes unnoticed (T_D), how often a node that is alive is suspected
//! (1/T_MR), for how long (T_M), and how probable it is to get the right answer at any moment (P_A).

use std::collections::BTreeMap;

use quorate_algorithms::detector::{Command, Detector, Event, Listeners, Setup};
use quorate_check::{Plan, Timers};
use quorate_core::{Fact, NodeId, NodeSet, Span, Time, Topology};
use quorate_sim::{Observer, Report};
use serde::{Deserialize, Serialize};

use crate::diagram::{Change, Seen};
use crate::figures::{Named, by_kind};
use crate::registry::Study;
use crate::text::span;
use crate::{About, Argument, BadInput, Figure, Spec};

/// What a run of failure detection is given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DetectorSpec {
    /// How often nodes beat.
    pub interval: Span,
}

impl Default for DetectorSpec {
    fn default() -> Self {
        Self { interval: Setup::default().interval }
    }
}

impl Study for Detector {
    type Given = DetectorSpec;
    type Users = Listeners;
    type Measures = Quality;
    type Figures = Figures;

    const ARGUMENTS: &'static [Argument<DetectorSpec>] = &[Argument {
        about: About::new("interval", "TIME", "How often nodes beat [default: 10]"),
        read: |given, text| span(text).map(|interval| given.interval = interval),
    }];

    /// A hundred beats at the usual interval.
    const UNTIL: Span = Span::units(1_000);

    fn setup(spec: &Spec, _: &Topology) -> Result<Setup, BadInput> {
        /// Shorter ones would make a run of beats without end.
        const INTERVAL_MIN: Span = Span(1_000);
        let interval = spec.given_to::<Self>()?.interval;
        if interval < INTERVAL_MIN {
            return Err(BadInput::new("--interval", "it is shorter than a microsecond"));
        }
        Ok(Setup { interval })
    }

    fn admit_plan(plan: &Plan) -> Result<(), BadInput> {
        match plan.timers {
            Timers::WhenQuiet => Ok(()),
            Timers::Anytime => Err(BadInput::new(
                "--timers",
                "a detector whose timers run out at any time is always wrong and never done; with \
                 quiet it can be checked that all crashes are noticed",
            )),
        }
    }

    fn users(_: &Spec, _: &Setup) -> Result<Listeners, BadInput> {
        Ok(Listeners)
    }

    fn measures(spec: &Spec) -> Quality {
        Quality::new(spec.nodes)
    }

    fn seen(fact: Fact<'_, Command, Event>) -> Seen {
        match fact {
            Fact::Event(Event::Suspect(peer)) => Seen::change(Change::Suspect(*peer)),
            Fact::Event(Event::Trust(peer)) => Seen::change(Change::Trust(*peer)),
            _ => Seen::default(),
        }
    }

    fn figures(quality: &Quality, report: &Report, _: Span) -> Figures {
        let quality = quality.at(report.end);
        let units = |nanos: f64| nanos / Span::UNIT.0 as f64;
        let observed = quality.observed as f64;
        let share = |part: f64| (observed > 0.0).then(|| part / observed);
        Figures {
            detection_time: Unnoticed {
                mean: quality.detections.mean().map(units),
                max: quality.detections.max.map(|max| units(max as f64)),
            },
            mistakes: quality.mistakes,
            mistakes_per_hour: share(quality.mistakes as f64 * HOUR),
            mistake_duration: quality.corrected.mean().map(units),
            query_accuracy: share(observed - quality.wrong as f64),
            messages: report.messages,
            by_kind: report.by_kind.clone(),
        }
    }
}

/// The measures of quality of the field, in units of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// How long crashes went unnoticed.
    pub detection_time: Unnoticed,
    /// How often somebody who was up was suspected.
    pub mistakes: u64,
    /// How often one node suspects another that is up.
    pub mistakes_per_hour: Option<f64>,
    /// How long a mistake lasts that is corrected, on average.
    pub mistake_duration: Option<f64>,
    /// How probable the right answer about a node that is up is at any moment.
    pub query_accuracy: Option<f64>,
    /// Messages sent, each receiver of a multicast counted.
    pub messages: u64,
    /// Messages by kind, in the order of the paper.
    pub by_kind: Vec<(&'static str, u64)>,
}

/// How long crashes went unnoticed.
#[derive(Clone, PartialEq, Debug)]
pub struct Unnoticed {
    /// On average over crashes and observers.
    pub mean: Option<f64>,
    /// At most.
    pub max: Option<f64>,
}

impl crate::Figures for Figures {
    fn named(&self) -> Named {
        let Unnoticed { mean, max } = self.detection_time;
        vec![
            ("detection_time", Figure::Parts(vec![("mean", mean.into()), ("max", max.into())])),
            ("mistakes", self.mistakes.into()),
            ("mistakes_per_hour", self.mistakes_per_hour.into()),
            ("mistake_duration", self.mistake_duration.into()),
            ("query_accuracy", self.query_accuracy.into()),
            ("messages", self.messages.into()),
            ("by_kind", by_kind(&self.by_kind)),
        ]
    }
}

/// In nanoseconds.
const HOUR: f64 = 3.6e12;

/// The quality of a detector, measured as a run goes on. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Quality {
    /// Who is up.
    up: NodeSet,
    /// Since when nobody has crashed or come up.
    since: Time,
    /// By observer and observed: the suspicion that stands.
    suspicions: BTreeMap<(NodeId, NodeId), Suspicion>,
    /// When each node that is down crashed.
    crashed: BTreeMap<NodeId, Time>,
    /// From each crash to the suspicion that stood, one for each observer.
    detections: Times,
    /// How often somebody who was up was suspected.
    mistakes: u64,
    /// How long the mistakes lasted that were corrected.
    corrected: Times,
    /// How long somebody who was up was suspected, all pairs together.
    wrong: u128,
    /// How long both of a pair were up, all pairs together.
    observed: u128,
}

/// Somebody is suspected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Suspicion {
    /// Since this time, and it is up.
    Mistake(Time),
    /// It was rightly suspected and has come up again at this time.
    Outdated(Time),
    /// It is down, and this is how long that went unnoticed.
    Right(Span),
}

/// Lengths of time.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    count: u64,
    sum: u128,
    max: Option<u64>,
}

impl Times {
    fn add(&mut self, span: Span) {
        self.count += 1;
        self.sum += u128::from(span.0);
        self.max = self.max.max(Some(span.0));
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

impl Quality {
    fn new(count: usize) -> Self {
        Self {
            up: NodeSet::first(count),
            since: Time::ZERO,
            suspicions: BTreeMap::new(),
            crashed: BTreeMap::new(),
            detections: Times::default(),
            mistakes: 0,
            corrected: Times::default(),
            wrong: 0,
            observed: 0,
        }
    }

    /// As it would be if the run ended now.
    fn at(&self, end: Time) -> Self {
        let mut quality = self.clone();
        quality.pass(end);
        for suspicion in self.suspicions.values() {
            quality.close(*suspicion, end);
        }
        quality
    }

    /// Until now the same nodes were up.
    fn pass(&mut self, now: Time) {
        let up = self.up.len() as u128;
        self.observed += up * up.saturating_sub(1) * u128::from(now.since(self.since).0);
        self.since = now;
    }

    /// A suspicion stands no longer, or nobody asks any more.
    fn close(&mut self, suspicion: Suspicion, now: Time) {
        match suspicion {
            Suspicion::Mistake(since) | Suspicion::Outdated(since) => {
                self.wrong += u128::from(now.since(since).0);
            }
            Suspicion::Right(after) => self.detections.add(after),
        }
    }

    fn suspect(&mut self, now: Time, at: NodeId, peer: NodeId) {
        let suspicion = match self.crashed.get(&peer) {
            Some(&crash) => Suspicion::Right(now.since(crash)),
            None => {
                self.mistakes += 1;
                Suspicion::Mistake(now)
            }
        };
        self.suspicions.entry((at, peer)).or_insert(suspicion);
    }

    fn trust(&mut self, now: Time, at: NodeId, peer: NodeId) {
        match self.suspicions.remove(&(at, peer)) {
            // A last message of the dead: it has yet to be noticed.
            Some(Suspicion::Right(_)) | None => {}
            Some(suspicion) => {
                self.close(suspicion, now);
                if let Suspicion::Mistake(since) = suspicion {
                    self.corrected.add(now.since(since));
                }
            }
        }
    }

    fn crash(&mut self, now: Time, node: NodeId) {
        self.pass(now);
        self.up.remove(node);
        self.crashed.insert(node, now);
        let suspicions = std::mem::take(&mut self.suspicions);
        for ((at, peer), suspicion) in suspicions {
            if at == node {
                self.close(suspicion, now);
            } else if peer == node {
                // Whoever is suspected already goes unnoticed for no time.
                self.close(suspicion, now);
                self.suspicions.insert((at, peer), Suspicion::Right(Span::ZERO));
            } else {
                self.suspicions.insert((at, peer), suspicion);
            }
        }
    }

    fn recover(&mut self, now: Time, node: NodeId) {
        self.pass(now);
        self.up.insert(node);
        self.crashed.remove(&node);
        let mut noticed = Vec::new();
        for ((_, peer), suspicion) in &mut self.suspicions {
            if *peer == node {
                noticed.push(std::mem::replace(suspicion, Suspicion::Outdated(now)));
            }
        }
        for suspicion in noticed {
            self.close(suspicion, now);
        }
    }
}

impl Observer<Command, Event> for Quality {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Command(command) => match *command {},
            Fact::Event(Event::Suspect(peer)) => self.suspect(now, at, *peer),
            Fact::Event(Event::Trust(peer)) => self.trust(now, at, *peer),
            Fact::Crashed => self.crash(now, at),
            Fact::Recovered => self.recover(now, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32) -> NodeId {
        NodeId::new(number).expect("nodes are numbered from 1")
    }

    /// Three nodes for 100: 1 is wrong about 2 from 10 to 14; 3 crashes at 50, which 2 notices at 60
    /// and 1, wrong again since 45, at once; 3 is back at 80, and 1 says so at 82.
    #[test]
    fn quality_is_what_it_is_by_hand() {
        let mut quality = Quality::new(3);
        let (suspect, trust) = (|n| Event::Suspect(node(n)), |n| Event::Trust(node(n)));
        quality.fact(Time(10), node(1), Fact::Event(&suspect(2)));
        quality.fact(Time(14), node(1), Fact::Event(&trust(2)));
        quality.fact(Time(45), node(1), Fact::Event(&suspect(3)));
        quality.fact(Time(50), node(3), Fact::Crashed);
        quality.fact(Time(60), node(2), Fact::Event(&suspect(3)));
        quality.fact(Time(80), node(3), Fact::Recovered);
        quality.fact(Time(82), node(1), Fact::Event(&trust(3)));
        let quality = quality.at(Time(100));
        assert_eq!(quality.observed, 6 * 50 + 2 * 30 + 6 * 20);
        assert_eq!((quality.mistakes, quality.corrected.mean()), (2, Some(4.0)));
        // Wrong from 10 to 14, 45 to 50, and since 80 until 82 and the end.
        assert_eq!(quality.wrong, 4 + 5 + 2 + 20);
        let Times { count, max, .. } = quality.detections;
        assert_eq!((count, quality.detections.mean(), max), (2, Some(5.0), Some(10)));
    }

    /// A beat that was under way when its sender crashed brings trust back for a while.
    #[test]
    fn only_the_suspicion_that_stands_is_a_detection() {
        let mut quality = Quality::new(2);
        quality.fact(Time(5), node(2), Fact::Crashed);
        for (at, event) in [
            (6, Event::Suspect(node(2))),
            (7, Event::Trust(node(2))),
            (25, Event::Suspect(node(2))),
        ] {
            quality.fact(Time(at), node(1), Fact::Event(&event));
        }
        let quality = quality.at(Time(30));
        assert_eq!((quality.mistakes, quality.detections.mean()), (0, Some(20.0)));
    }
}
