//! One type for several solutions of a problem: which of them it is, is decided when a run begins.
//!
//! Whatever runs, wraps, checks or replays a solution is compiled once for such a sum, and not once
//! for each of its variants. A variant passes everything through: what it sends, sets, keeps and
//! says reads in a trace as if it ran alone.

/// A sum of solutions of one family, in a module of its own with the sums of their messages, timers,
/// records, keys and options.
#[macro_export]
#[doc(hidden)]
macro_rules! sum {
    (
        $(#[$doc:meta])*
        $module:ident: $family:ident { $($variant:ident($inner:ty),)+ }
    ) => {
        $(#[$doc])*
        #[allow(clippy::large_enum_variant, reason = "a state is moved only when a node is booted")]
        pub mod $module {
            use core::fmt;

            use quorate_core::{
                BadOption, Boot, Ctx, Durable, Family, Liveness, Message, NodeId, Protocol,
                Refusal, Scene, Solution, Timed, Traits, Wrap,
            };

            #[allow(clippy::wildcard_imports, reason = "the variants stand beside the sum")]
            use super::*;

            $crate::variants! {
                /// The state of a node, of whichever solution runs.
                #[derive(Clone, PartialEq, Eq, Hash)]
                Any: Solution { $($variant($inner),)+ }
            }
            $crate::variants! {
                /// What nodes send each other.
                #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
                #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
                Msg: Message { $($variant(<$inner as Protocol>::Msg),)+ }
            }
            $crate::variants! {
                /// The timers.
                #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
                Timer: Timer { $($variant(<$inner as Protocol>::Timer),)+ }
            }
            $crate::variants! {
                /// The records that survive a crash.
                #[derive(Clone, PartialEq, Eq, Hash)]
                #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
                Stable: Record {
                    $($variant(
                        #[cfg_attr(feature = "serde", serde(with = "quorate_core::stored"))]
                        <$inner as Protocol>::Stable
                    ),)+
                }
            }
            $crate::variants! {
                /// The keys of the records.
                #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
                Key: Key { $($variant(<<$inner as Protocol>::Stable as Durable>::Key),)+ }
            }
            $crate::variants! {
                /// Which solution runs, with its options.
                #[derive(Clone)]
                Config: Config { $($variant(<$inner as Solution>::Config),)+ }
            }

            impl Message for Msg {
                fn kind(&self) -> &'static str {
                    match self {
                        $(Self::$variant(msg) => msg.kind(),)+
                    }
                }
            }

            #[allow(unreachable_code, reason = "most algorithms keep nothing")]
            impl Durable for Stable {
                type Key = Key;

                fn key(&self) -> Key {
                    match self {
                        $(Self::$variant(record) => Key::$variant(record.key()),)+
                    }
                }
            }

            #[cfg(feature = "serde")]
            impl quorate_core::Stored for Stable {
                fn store<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serde::Serialize::serialize(self, serializer)
                }

                fn load<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                    serde::Deserialize::deserialize(input)
                }
            }

            impl Timed for Any {}

            #[allow(unreachable_patterns, reason = "a sum may have one variant only")]
            impl Protocol for Any {
                type Msg = Msg;
                type Timer = Timer;
                type Command = <$family as Family>::Command;
                type Event = <$family as Family>::Event;
                type Stable = Stable;

                fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
                    match self {
                        $(Self::$variant(it) => {
                            cx.inner($crate::wrap!($variant), |cx| it.on_start(cx))
                        })+
                    }
                }

                fn on_command(
                    &mut self,
                    cx: &mut Ctx<'_, Self>,
                    command: Self::Command,
                ) -> Result<(), Refusal> {
                    match self {
                        $(Self::$variant(it) => {
                            cx.inner($crate::wrap!($variant), |cx| it.on_command(cx, command))
                        })+
                    }
                }

                fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
                    match (self, msg) {
                        $((Self::$variant(it), Msg::$variant(msg)) => {
                            let wrap = $crate::wrap!($variant);
                            cx.inner(wrap, |cx| it.on_message(cx, from, msg));
                        })+
                        // Of a node that runs another solution.
                        _ => cx.trace("foreign", &[("from", from.number().into())]),
                    }
                }

                fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
                    match (self, timer) {
                        $((Self::$variant(it), Timer::$variant(timer)) => {
                            cx.inner($crate::wrap!($variant), |cx| it.on_timer(cx, timer));
                        })+
                        _ => unreachable!("the timers of a node are its own"),
                    }
                }

                fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
                    match self {
                        $(Self::$variant(it) => {
                            let wrap = $crate::wrap!($variant);
                            cx.inner(wrap, |cx| it.on_liveness(cx, peer, now));
                        })+
                    }
                }

                fn is_outdated(&self, from: NodeId, msg: &Msg) -> bool {
                    match (self, msg) {
                        $((Self::$variant(it), Msg::$variant(msg)) => it.is_outdated(from, msg),)+
                        _ => false,
                    }
                }

                fn assert_invariants(&self) {
                    match self {
                        $(Self::$variant(it) => it.assert_invariants(),)+
                    }
                }
            }

            #[allow(unreachable_patterns, reason = "a sum may have one variant only")]
            impl Solution for Any {
                type Family = $family;
                type Config = Config;

                fn traits(config: &Config) -> Traits {
                    match config {
                        $(Config::$variant(config) => <$inner as Solution>::traits(config),)+
                    }
                }

                fn usual(config: &Config) -> Config {
                    match config {
                        $(Config::$variant(config) => {
                            Config::$variant(<$inner as Solution>::usual(config))
                        })+
                    }
                }

                fn promise(config: &Config) -> <$family as Family>::Promise {
                    match config {
                        $(Config::$variant(config) => <$inner as Solution>::promise(config),)+
                    }
                }

                fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
                    match &scene.config {
                        $(Config::$variant(config) => {
                            <$inner as Solution>::admit(&scene.inner(config.clone()))
                        })+
                    }
                }

                fn watches(timer: Timer) -> bool {
                    match timer {
                        $(Timer::$variant(timer) => <$inner as Solution>::watches(timer),)+
                    }
                }

                fn boot(boot: Boot<'_, Self>) -> Self {
                    let Boot { me, view, neighbours, setup, config, life, kept } = boot;
                    match config {
                        $(Config::$variant(config) => {
                            let kept = &kept.map(|record| match record {
                                Stable::$variant(record) => Some(record.clone()),
                                _ => None,
                            });
                            let boot = Boot { me, view, neighbours, setup, config, life, kept };
                            Self::$variant(<$inner as Solution>::boot(boot))
                        })+
                    }
                }
            }
        }
    };
}

/// An enum with a variant for each solution, which prints as what is in it.
#[macro_export]
#[doc(hidden)]
macro_rules! variants {
    (
        $(#[$attribute:meta])*
        $name:ident: $what:ident { $($variant:ident($(#[$how:meta])* $inner:ty),)+ }
    ) => {
        $(#[$attribute])*
        pub enum $name {
            $(#[doc = concat!(stringify!($what), " of the variant ", stringify!($variant), ".")]
            $variant($(#[$how])* $inner),)+
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(it) => it.fmt(f),)+
                }
            }
        }
    };
}

/// How a variant's messages, timers and records become those of the sum.
#[macro_export]
#[doc(hidden)]
macro_rules! wrap {
    ($variant:ident) => {
        Wrap { msg: Msg::$variant, timer: Timer::$variant, stable: Stable::$variant }
    };
}

pub(crate) use sum;
