//! What the register did, as whoever judges a run is told it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quorate_core::{Life, NodeId};

use crate::register::{Answer, Beat, Epoch, Gone, Host, Order, Register, Renewed};

/// A deed: an order that changed the register, in short.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Deed {
    /// A life was given to a process at this node.
    Admitted {
        /// Which.
        life: Life,
        /// Where.
        by: NodeId,
    },
    /// A life has this many beats now.
    Renewed(Life, Beat),
    /// These lives get no more beats.
    Barred(BTreeSet<Life>),
    /// A life was doomed for its silence since this beat.
    Doomed(Life, Beat),
    /// A life has left.
    Left(Life),
    /// A life acts for others, or no more.
    Hosts(Life, Host),
    /// A view was decided.
    Decided {
        /// Its number.
        epoch: Epoch,
        /// Who is in it, the most senior first.
        members: Vec<Life>,
        /// Who was in the last one and is not any more, and why.
        gone: Vec<Gone>,
    },
}

impl Deed {
    /// Tells what became of an order by a process at this node: it was answered like this, and this is
    /// the register after it.
    pub(crate) fn tell(
        order: &Order,
        by: NodeId,
        answer: &Answer,
        register: &Register,
        mut tell: impl FnMut(Self),
    ) {
        match (order, answer) {
            (Order::Admit { .. }, &Answer::Life(life)) => tell(Self::Admitted { life, by }),
            (Order::Renew(_), Answer::Renewed(renewed)) => {
                for (life, _, outcome) in renewed {
                    let member = register.member(*life).filter(|_| *outcome != Renewed::Out);
                    member.into_iter().for_each(|it| tell(Self::Renewed(*life, it.beat)));
                }
            }
            (Order::Bar { lives, .. }, Answer::Done) => tell(Self::Barred(lives.clone())),
            (Order::Doom { life, beat }, Answer::Done) => tell(Self::Doomed(*life, *beat)),
            (Order::Leave(life), Answer::Done) => tell(Self::Left(*life)),
            (Order::Host(life, host), Answer::Done) => tell(Self::Hosts(*life, *host)),
            (Order::Decide { gone, .. }, &Answer::Decided(epoch)) => {
                let (members, gone) = (register.view().into(), gone.clone());
                tell(Self::Decided { epoch, members, gone });
            }
            _ => {}
        }
    }
}
