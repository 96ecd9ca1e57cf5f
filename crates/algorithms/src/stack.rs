//! Layers that an algorithm can run over, and in which order they make sense.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::detector;

/// Something that an algorithm runs over, or beside.
#[derive(Clone, Debug)]
pub enum Layer {
    /// Views: when a node fails, the others agree on who is left, and start the algorithm anew.
    Views,
    /// Links that send again what is lost, and keep the order.
    Reliable,
    /// A failure detector, which is heard instead of an engine's.
    Detector(Box<detector::any::Config>),
    /// So many critical regions side by side, on the network as it is.
    Regions(u8),
}

/// Layers that an algorithm cannot run over, in a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadStack(pub String);

impl BadStack {
    /// These layers make no sense, for this reason.
    #[must_use]
    pub fn because(reason: &str) -> Self {
        Self(reason.into())
    }

    /// The order is wrong, or a layer stands twice.
    pub(crate) fn order() -> Self {
        Self::because(
            "layers stand one upon the other, each at most once: views, then reliable, then a \
             detector",
        )
    }
}

impl fmt::Display for BadStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BadStack {}

/// The stacks of a family: what its algorithms can run over. The last word names the wrapper that
/// puts them into views, and the one that runs several side by side, where the family has them.
macro_rules! stack {
    ($family:ident) => {
        $crate::sum::sum! {
            /// Any algorithm of the family over any layers, chosen when a run begins.
            stack: $family {
                Bare(any::Any),
                Reliable($crate::Reliable<any::Any>),
                Beside($crate::detector::Detected<$crate::detector::any::Any, any::Any>),
                BesideReliable($crate::detector::Detected<
                    $crate::detector::any::Any,
                    $crate::Reliable<any::Any>,
                >),
            }
        }

        impl $family {
            fn layered(
                inner: any::Config,
                layers: &[$crate::Layer],
            ) -> Result<stack::Config, $crate::BadStack> {
                use stack::Config as On;
                use $crate::Layer;
                let beside = |detector: &$crate::detector::any::Config, inner| {
                    $crate::detector::Beside { detector: detector.clone(), inner }
                };
                Ok(match layers {
                    [] => On::Bare(inner),
                    [Layer::Reliable] => On::Reliable(inner),
                    [Layer::Detector(detector)] => On::Beside(beside(detector, inner)),
                    [Layer::Reliable, Layer::Detector(detector)] => {
                        On::BesideReliable(beside(detector, inner))
                    }
                    [Layer::Views, ..] => {
                        return Err($crate::BadStack::because(
                            "algorithms of this family do not run in views; mutex and election do",
                        ));
                    }
                    _ => return Err($crate::BadStack::order()),
                })
            }
        }
    };
    ($family:ident in $views:ident $(, $regions:ident)?) => {
        $crate::sum::sum! {
            /// Any algorithm of the family over any layers, chosen when a run begins.
            stack: $family {
                Bare(any::Any),
                Reliable($crate::Reliable<any::Any>),
                Views($views<any::Any>),
                ViewsReliable($crate::Reliable<$views<any::Any>>),
                Beside($crate::detector::Detected<$crate::detector::any::Any, any::Any>),
                BesideReliable($crate::detector::Detected<
                    $crate::detector::any::Any,
                    $crate::Reliable<any::Any>,
                >),
                BesideViews($crate::detector::Detected<
                    $crate::detector::any::Any,
                    $views<any::Any>,
                >),
                BesideViewsReliable($crate::detector::Detected<
                    $crate::detector::any::Any,
                    $crate::Reliable<$views<any::Any>>,
                >),
                $(Regions($regions<any::Any>),)?
            }
        }

        impl $family {
            fn layered(
                inner: any::Config,
                layers: &[$crate::Layer],
            ) -> Result<stack::Config, $crate::BadStack> {
                use stack::Config as On;
                use $crate::Layer::{Detector, Reliable, Views};
                let beside = |detector: &$crate::detector::any::Config, inner| {
                    $crate::detector::Beside { detector: detector.clone(), inner }
                };
                Ok(match layers {
                    [] => On::Bare(inner),
                    [Reliable] => On::Reliable(inner),
                    [Views] => On::Views(inner),
                    [Views, Reliable] => On::ViewsReliable(inner),
                    [Detector(detector)] => On::Beside(beside(detector, inner)),
                    [Reliable, Detector(detector)] => On::BesideReliable(beside(detector, inner)),
                    [Views, Detector(detector)] => On::BesideViews(beside(detector, inner)),
                    [Views, Reliable, Detector(detector)] => {
                        On::BesideViewsReliable(beside(detector, inner))
                    }
                    $([$crate::Layer::Regions(count)] => {
                        On::Regions(<$regions<any::Any>>::over(*count, inner))
                    })?
                    _ => return Err($crate::BadStack::order()),
                })
            }
        }
    };
}
pub(crate) use stack;
