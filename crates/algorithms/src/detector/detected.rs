//! A failure detector beside an algorithm that asks for one.

use core::convert::Infallible;

use alloc::string::ToString;
use alloc::vec::Vec;

use quorate_core::{
    Algorithm, BadOption, Boot, Ctx, Family, Listens, Liveness, Message, Meta, NodeId, Options,
    Protocol, Refusal, Scene, Timing, View, Wrap,
};

use super::{Detector, Event, Setup};

/// The algorithm `A` with the detector `D` beside it, whose word it hears instead of an engine's.
///
/// It solves what `A` solves, with the same options. The detector has its usual ones and watches
/// neighbours only, so that links must go both ways.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Detected<D, A> {
    detector: D,
    inner: A,
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

/// A message or a timer of either of the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Layer<D, A> {
    /// Of the detector.
    Detector(D),
    /// Of the algorithm.
    Inner(A),
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
    D: Algorithm<Family = Detector> + Protocol<Stable = Infallible>,
    A: Algorithm,
{
    const DETECTOR: Wrap<D, Self> = Wrap { msg: Layer::Detector, timer: Layer::Detector };
    const INNER: Wrap<A, Self> = Wrap { msg: Layer::Inner, timer: Layer::Inner };

    /// Runs the detector, and hands its word on.
    fn detect(&mut self, cx: &mut Ctx<'_, Self>, step: impl FnOnce(&mut D, &mut Ctx<'_, D>)) {
        let mut words = Vec::new();
        cx.lower(Self::DETECTOR, &mut words, |cx| step(&mut self.detector, cx));
        for word in words.into_iter().filter(|_| A::LISTENS.liveness) {
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
    D: Algorithm<Family = Detector> + Protocol<Stable = Infallible>,
    A: Algorithm,
{
    type Msg = Layer<D::Msg, A::Msg>;
    type Timer = Layer<D::Timer, A::Timer>;
    type Command = A::Command;
    type Event = A::Event;
    type Stable = A::Stable;

    const LISTENS: Listens = Listens { liveness: false, views: A::LISTENS.views };

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

    fn on_view(&mut self, cx: &mut Ctx<'_, Self>, view: &View) {
        cx.inner(Self::INNER, |cx| self.inner.on_view(cx, view));
    }

    fn assert_invariants(&self) {
        self.detector.assert_invariants();
        self.inner.assert_invariants();
    }
}

impl<D, A> Algorithm for Detected<D, A>
where
    D: Algorithm<Family = Detector> + Protocol<Stable = Infallible>,
    A: Algorithm,
{
    type Family = A::Family;
    type Config = A::Config;

    const META: Meta = Meta {
        timing: match A::META.timing {
            Timing::Timed => Timing::Timed,
            Timing::Asynchronous | Timing::Synchronous => D::META.timing,
        },
        ..A::META
    };
    const RESTLESS: bool = true;

    fn promise(config: &A::Config) -> <A::Family as Family>::Promise {
        A::promise(config)
    }

    fn configure(options: &Options<'_>) -> Result<A::Config, BadOption> {
        A::configure(options)
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let Scene { topology, view, setup, config } = scene.clone();
        if !topology.is_two_way() {
            let reason = "a failure detector needs links that go both ways";
            return Err(BadOption::because("topology", reason.to_string()));
        }
        A::admit(&Scene { topology, view, setup, config })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, view, neighbours, setup, config, incarnation, stable } = boot;
        let (own_setup, own_config) = (Setup::default(), D::Config::default());
        let detector = D::boot(Boot {
            me,
            view,
            neighbours,
            setup: &own_setup,
            config: &own_config,
            incarnation,
            stable: None,
        });
        let inner = A::boot(Boot { me, view, neighbours, setup, config, incarnation, stable });
        Self { detector, inner }
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
        D: Algorithm<Family = Detector> + Protocol<Stable = Infallible>,
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
        let faults = Faults { crashes, recoveries: recoveries.into(), detection };
        let users = Initiators::at_once(NodeSet::first(1));
        let until = Time::ZERO + units(195.0);
        let log = testing::run_until(&scene, users, &Network::default(), &faults, until, 1, |_| {});
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
        type Watched = Detected<PhiAccrual, Bully>;
        assert_eq!([Bully::LISTENS, Watched::LISTENS].map(|l| l.liveness), [true, false]);
        assert_eq!(Watched::META.timing, Timing::Timed);
        assert_eq!(Detected::<Heartbeat, Bully>::META.timing, Timing::Synchronous);
        assert_eq!(Watched::META.name, Bully::META.name);
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
