//! A failure detector beside an algorithm that asks for one.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt::{self, Debug};

use quorate_core::Solution;
use quorate_core::prelude::*;
use quorate_core::{Family, Timed, Wrap};

use super::{Detector, Event, Setup};

/// The algorithm `A` with the detector `D` beside it, whose word it hears instead of an engine's.
///
/// It solves what `A` solves. The detector watches neighbours only, so that links must go both ways.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Detected<D, A> {
    detector: D,
    inner: A,
    /// The algorithm wants the word of a failure detector.
    listens: bool,
}

/// The options of the detector, and those of the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Beside<D, A> {
    /// Of the detector.
    pub detector: D,
    /// Of the algorithm.
    pub inner: A,
}

impl<D, A> Detected<D, A> {
    /// The detector.
    pub const fn detector(&self) -> &D {
        &self.detector
    }

    /// The algorithm.
    pub const fn inner(&self) -> &A {
        &self.inner
    }
}

/// A message, a timer, a record or a key of either of the two; prints as what is in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Layer<D, A> {
    /// Of the detector.
    Detector(D),
    /// Of the algorithm.
    Inner(A),
}

impl<D: Debug, A: Debug> Debug for Layer<D, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detector(it) => it.fmt(f),
            Self::Inner(it) => it.fmt(f),
        }
    }
}

impl<D: Durable, A: Durable> Durable for Layer<D, A> {
    type Key = Layer<D::Key, A::Key>;

    fn key(&self) -> Self::Key {
        match self {
            Self::Detector(record) => Layer::Detector(record.key()),
            Self::Inner(record) => Layer::Inner(record.key()),
        }
    }
}

#[cfg(feature = "serde")]
impl<D: quorate_core::Stored, A: quorate_core::Stored> quorate_core::Stored for Layer<D, A> {
    fn store<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use quorate_core::Stowed;
        let layer = match self {
            Self::Detector(record) => Layer::Detector(Stowed(record)),
            Self::Inner(record) => Layer::Inner(Stowed(record)),
        };
        serde::Serialize::serialize(&layer, serializer)
    }

    fn load<'de, I: serde::Deserializer<'de>>(input: I) -> Result<Self, I::Error> {
        use quorate_core::Stowed;
        let layer = <Layer<Stowed<D>, Stowed<A>> as serde::Deserialize>::deserialize(input)?;
        Ok(match layer {
            Layer::Detector(Stowed(record)) => Self::Detector(record),
            Layer::Inner(Stowed(record)) => Self::Inner(record),
        })
    }
}

impl<D: Message, A: Message> Message for Layer<D, A> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Detector(msg) => msg.kind(),
            Self::Inner(msg) => msg.kind(),
        }
    }
}

impl<D, A> Detected<D, A>
where
    D: Solution<Family = Detector>,
    A: Solution,
{
    const DETECTOR: Wrap<D, Self> =
        Wrap { msg: Layer::Detector, timer: Layer::Detector, stable: Layer::Detector };
    const INNER: Wrap<A, Self> =
        Wrap { msg: Layer::Inner, timer: Layer::Inner, stable: Layer::Inner };

    /// Runs the detector, and hands its word on.
    fn detect(&mut self, cx: &mut Ctx<'_, Self>, step: impl FnOnce(&mut D, &mut Ctx<'_, D>)) {
        let mut words = Vec::new();
        cx.lower(Self::DETECTOR, &mut words, |cx| step(&mut self.detector, cx));
        for word in words.into_iter().filter(|_| self.listens) {
            let (peer, now) = match word {
                Event::Suspect(peer) => (peer, Liveness::Down),
                Event::Trust(peer) => (peer, Liveness::Up),
            };
            cx.inner(Self::INNER, |cx| self.inner.on_liveness(cx, peer, now));
        }
    }
}

impl<D, A> Protocol for Detected<D, A>
where
    D: Solution<Family = Detector>,
    A: Solution,
{
    type Msg = Layer<D::Msg, A::Msg>;
    type Timer = Layer<D::Timer, A::Timer>;
    type Command = A::Command;
    type Event = A::Event;
    type Stable = Layer<D::Stable, A::Stable>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.inner(Self::INNER, |cx| self.inner.on_start(cx));
        self.detect(cx, |detector, cx| detector.on_start(cx));
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: A::Command) -> Result<(), Refusal> {
        cx.inner(Self::INNER, |cx| self.inner.on_command(cx, command))
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Self::Msg) {
        match msg {
            Layer::Detector(msg) => {
                self.detect(cx, |detector, cx| detector.on_message(cx, from, msg));
            }
            Layer::Inner(msg) => cx.inner(Self::INNER, |cx| self.inner.on_message(cx, from, msg)),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Self::Timer) {
        match timer {
            Layer::Detector(timer) => self.detect(cx, |detector, cx| detector.on_timer(cx, timer)),
            Layer::Inner(timer) => cx.inner(Self::INNER, |cx| self.inner.on_timer(cx, timer)),
        }
    }

    fn assert_invariants(&self) {
        self.detector.assert_invariants();
        self.inner.assert_invariants();
    }
}

impl<D, A> Timed for Detected<D, A>
where
    D: Solution<Family = Detector>,
    A: Solution,
{
}

impl<D, A> Solution for Detected<D, A>
where
    D: Solution<Family = Detector>,
    A: Solution,
{
    type Family = A::Family;
    type Config = Beside<D::Config, A::Config>;

    fn traits(config: &Self::Config) -> Traits {
        let (beside, inner) = (D::traits(&config.detector), A::traits(&config.inner));
        Traits {
            timing: match inner.timing {
                Timing::Timed => Timing::Timed,
                Timing::Asynchronous | Timing::Synchronous => beside.timing,
            },
            kinds: inner.kinds.into_iter().chain(beside.kinds).collect(),
            // It hears the detector beside it, and no other.
            listens: false,
            restless: true,
            ..inner
        }
    }

    fn usual(config: &Self::Config) -> Self::Config {
        Beside { detector: D::usual(&config.detector), inner: A::usual(&config.inner) }
    }

    fn promise(config: &Self::Config) -> <A::Family as Family>::Promise {
        A::promise(&config.inner)
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        if !scene.topology.is_two_way() {
            let reason = "a failure detector needs links that go both ways";
            return Err(BadOption::because("topology", reason.to_string()));
        }
        A::admit(&scene.inner(scene.config.inner.clone()))
    }

    fn watches(timer: Self::Timer) -> bool {
        match timer {
            Layer::Detector(_) => true,
            Layer::Inner(timer) => A::watches(timer),
        }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, view, neighbours, setup, config, life, kept } = boot;
        let of_detector = kept.map(|record| match record {
            Layer::Detector(record) => Some(record.clone()),
            Layer::Inner(_) => None,
        });
        let of_inner = kept.map(|record| match record {
            Layer::Inner(record) => Some(record.clone()),
            Layer::Detector(_) => None,
        });
        let detector = D::boot(Boot {
            me,
            view,
            neighbours,
            setup: &Setup::default(),
            config: &config.detector,
            life,
            kept: &of_detector,
        });
        let (Beside { inner: config, .. }, kept) = (config, &of_inner);
        let inner = A::boot(Boot { me, view, neighbours, setup, config, life, kept });
        Self { detector, inner, listens: A::traits(config).listens }
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::{NodeSet, Span, Time, Topology};
    use quorate_sim::{Crash, Faults, Network, Recovery};

    use super::*;
    use crate::detector::{Heartbeat, PhiAccrual};
    use crate::election::{Bully, ChangRoberts, Initiators, Setup as Ranks};
    use crate::testing::{self, Log, node, units};

    /// Five nodes of the Bully algorithm; the best one is gone for a while.
    fn bully<D>(recoveries: &[Recovery]) -> Log
    where
        D: Solution<Family = Detector, Config: Default>,
    {
        let scene = Scene::<Detected<D, Bully>>::new(
            Topology::complete(5),
            Ranks::ascending(5),
            Default::default(),
        );
        assert_eq!(Detected::<D, Bully>::admit(&scene), Ok(()));
        let crashes = [Crash { node: node(5), at: Time::ZERO + units(45.0) }].into();
        // An engine's detector would speak at once; it is not listened to.
        let detection = Some(Span::ZERO);
        let faults =
            Faults { crashes, recoveries: recoveries.into(), detection, ..Faults::default() };
        let users = Initiators::at_once(NodeSet::first(1));
        let until = Time::ZERO + units(195.0);
        let log = testing::run_until(&scene, users, &Network::default(), &faults, until, 1);
        assert!(log.report.holds(), "{:?}", log.report);
        log
    }

    /// The last beat of 5 arrives at 41; at 76 all miss it, and 2.1 later 4 leads.
    #[test]
    fn an_algorithm_hears_the_word_of_the_detector_beside_it() {
        let log = bully::<Heartbeat>(&[]);
        assert_eq!(log.told_of("Leading"), [(3.1, 5), (78.1, 4)]);
        assert_eq!(log.told_of("Following")[4..], [(79.1, 1), (79.1, 2), (79.1, 3)]);
        // Of 5 at 0, 10, .. 40, of the others until 190, to four others each.
        assert_eq!(log.count("BEAT"), 4 * (5 + 4 * 20));
    }

    #[test]
    fn whoever_comes_back_is_heard_again() {
        let back = Recovery { node: node(5), at: Time::ZERO + units(120.0) };
        for log in [bully::<Heartbeat>(&[back]), bully::<PhiAccrual>(&[back])] {
            let leading = log.told_of("Leading");
            assert_eq!((leading.len(), leading[1].1, leading[2]), (3, 4, (120.0, 5)));
        }
    }

    #[test]
    fn only_the_detector_beside_it_is_asked() {
        let bully = Bully::traits(&Default::default());
        let watched = Detected::<PhiAccrual, Bully>::traits(&Default::default());
        let beaten = Detected::<Heartbeat, Bully>::traits(&Default::default());
        assert_eq!([bully.listens, watched.listens], [true, false]);
        assert_eq!([watched.timing, beaten.timing], [Timing::Timed, Timing::Synchronous]);
        assert_eq!(watched.name, bully.name);
        assert_eq!(watched.kinds.len(), bully.kinds.len() + 1);
    }

    #[test]
    fn links_must_go_both_ways() {
        let ring = Scene::<Detected<Heartbeat, ChangRoberts>>::new(
            Topology::ring(4),
            Ranks::ascending(4),
            Default::default(),
        );
        assert_eq!(Detected::admit(&ring).unwrap_err().name, "topology");
    }
}
