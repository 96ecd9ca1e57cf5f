//! Membership by views: a part that agrees, again and again, on who belongs to a group.
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
//! 2. With all answers in, the owner of this part exchanges what some members miss (what that is, is
//!    its business: messages, or who holds a lock), until all who answered have the same.
//! 3. The coordinator proposes the next view to the [`Authority`], together with what was agreed in
//!    step 2. The authority decides for one proposal per view, whoever made it.
//! 4. The coordinator announces the decision with VIEW. Newcomers get the state with it, from the
//!    most senior old member.
//!
//! If anybody dies on the way, the coordinator begins again without it; if the coordinator dies,
//! the next in rank begins. A view that was decided already then comes back from the authority.
//!
//! # Why it is right
//! Who answered a FLUSH adds nothing to what it has delivered until a view is decided. So whatever
//! is decided contains all that its members had delivered, and all of them have it: they answered
//! in that change and took part in its exchange. Views follow each other one by one: a FLUSH shows
//! the view that it starts from, and who has not seen that one yet installs it first. A node that
//! comes up again, or was left out by mistake, is a new member, told from the old one by its
//! [`Life`].
//!
//! # What it needs
//! Reliable links that keep the order, and the word of a failure detector. A wrong word costs a
//! member its seat, never the agreement.
//!
//! # Known limits
//! Who was left out by mistake is told so by the coordinator. If that changes before, and its
//! successor knew the node to be alive before it led, nobody tells it: it waits in the old view. One
//! of 400,000 random runs of virtual synchrony shows it (seed 377509).

mod authority;
mod change;
mod doubts;
mod given;
mod hall;
mod joining;
mod lives;
mod majority;
mod register;
mod seats;
mod tenant;
mod words;

pub use authority::{Authority, Proposal, Seat, SeatMsg, SeatRecord};
pub(crate) use given::Given;
pub use hall::{Founding, Hall, Pace};
pub use majority::{Ballot, Ledger, MAJORITY_KINDS, Majority, MajorityMsg, Retry, Step};
pub use register::{Register, RegisterMsg};
pub use tenant::{
    Agreed, Ask, Beginning, Content, Deciding, Exit, Origin, Report, Seating, State, Tenant, Terms,
};
pub use words::{Charter, KINDS, Life, Member, Msg, Notice, Piece, Timer, Wish};
