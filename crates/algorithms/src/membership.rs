//! Membership by views: a hall in which nodes agree, again and again, on who belongs to a group, and
//! in which a tenant lives.
//!
//! # In one sentence
//! The most senior member that works stops everybody, collects what they know, has the next view
//! decided by an authority, and announces it.
//!
//! # How it works
//! A *view* is a numbered list of members by seniority. Inside a view nobody fails by definition;
//! who fails, leaves or wants to join changes the view, in four steps:
//!
//! 1. The coordinator sends FLUSH to all members that it does not take for dead. Each stops
//!    sending in this view, for good, and answers FLUSH-OK with what it has to report.
//! 2. With all answers in, the tenants exchange what some members miss (what that is, is their
//!    business: messages, or who holds a lock), until all who answered have the same.
//! 3. The coordinator proposes the next view to the [`Authority`], together with what was agreed in
//!    step 2. The authority decides for one proposal per view, whoever made it.
//! 4. The coordinator announces the decision with VIEW. Newcomers get the state with it, from the
//!    most senior old member.
//!
//! If anybody dies on the way, the coordinator begins again without it; if the coordinator dies,
//! the next in rank begins. A view that was decided already then comes back from the authority.
//!
//! A [`Tenant`] is stopped and begun by the hall, names members by rank, and hears only what was sent
//! in its own view. A [`Hall`] has one tenant; one that keeps many things by name makes one change of
//! many.
//!
//! # Doubts
//! A link may be cut between two members that the coordinator reaches both. So whoever has not
//! reached a member for some time tells all others (DOUBT), and the coordinator goes on with as many
//! as reach each other, the seniors of equals. Whoever is left out by that joins again, and is let in
//! when neither it nor any member has a doubt; not before, or it would be in and out for ever.
//!
//! # Restarts
//! A node that comes up again is no member, but its authority has kept its vote. So the members that
//! are left go on as soon as a majority of the last view is up, old lives and new ones together. If
//! no old life is left, the most senior of those that came up proposes a view of them, in which
//! nobody has anything: numbers of views go on growing, states do not survive.
//!
//! # Why it is right
//! Who answered a FLUSH adds nothing to what it has delivered until a view is decided. So whatever
//! is decided contains all that its members had delivered, and all of them have it: they answered
//! in that change and took part in its exchange. Views follow each other one by one: a FLUSH shows
//! the view that it starts from, and who has not seen that one yet installs it first. A node that
//! comes up again, or was left out by mistake, is a new member, told from the old one by its
//! [`Life`].
//!
//! Whoever was left out learns of it: the coordinator of the change announces the view to all whom
//! it reaches; the coordinator of the view, if it is another or a new one, shows it to all who were left
//! out before, and to others when they are reached again; and whoever says anything in an earlier view is shown the later
//! one by whoever hears it. A wish to join is put again ([`Pace`]) until it is granted, or told to be
//! of a life that is over already (OUT).
//!
//! # What it needs
//! Reliable links that keep the order, and the word of a failure detector. A wrong word costs a
//! member its seat, never the agreement. What the authority persists must survive a restart: a node
//! that has lost it must not come up under its old number.
//!
//! # Known limits
//! - When the last member leaves, the group is over.
//! - Parts that reach each other are found by leaving out who is in the most doubts; where links are
//!   cut in a tangle, the part that is found need not be the largest.
//! - A member whose user is inside a lock and never leaves it cannot leave the group.
//! - More messages of later views than can be kept cost a node its seat: it says so (GONE) and joins
//!   again as a new member.

mod authority;
mod change;
mod doubts;
mod given;
mod hall;
mod joining;
mod lives;
mod majority;
mod register;
mod running;
mod seats;
mod tenant;
mod words;

pub use authority::{Authority, Proposal, Seat, SeatMsg, SeatRecord};
pub(crate) use given::{Given, traits_in_views};
pub use hall::{Founding, Hall, Pace};
pub use majority::{Ballot, Ledger, MAJORITY_KINDS, Majority, MajorityMsg, Retry, Step};
pub use register::{Register, RegisterMsg};
pub(crate) use running::Running;
pub use tenant::{
    Agreed, Ask, Beginning, Content, Deciding, Exit, Origin, Report, Seating, State, Tenant, Terms,
};
pub use words::{Charter, KINDS, Life, Member, Msg, Notice, Piece, Timer, Wish};

#[cfg(test)]
mod stage;
#[cfg(test)]
mod tests;
