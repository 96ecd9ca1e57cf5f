//! The phases of a node in mutual exclusion: it does not want, it waits, it is inside.

use quorate_core::{Ctx, LamportClock, NodeId, Protocol, Refusal, Stamp};

use super::{Command, Event, Setup};

/// A phase of a node. `W` is what it keeps of its wish while it waits, `I` while it is inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase<W = Stamp, I = Stamp> {
    /// The node does not want to enter.
    Idle,
    /// The node has asked and waits.
    Waiting(W),
    /// The node is inside.
    Inside(I),
}

impl<W: Copy, I: Copy> Phase<W, I> {
    /// The command, if it makes sense in this phase.
    pub(super) const fn admit(&self, command: Command) -> Result<Command, Refusal> {
        match (command, self) {
            (Command::Acquire, Self::Idle) | (Command::Release, Self::Inside(_)) => Ok(command),
            (Command::Acquire, _) => Err(Refusal::Busy),
            (Command::Release, _) => Err(Refusal::NotHeld),
        }
    }

    /// Has the node do what its user wishes, by the first of these two or by the second, if it
    /// makes sense in this phase.
    pub(super) fn obey<P: Protocol>(
        self,
        command: Command,
        node: &mut P,
        cx: &mut Ctx<'_, P>,
        [acquire, release]: [fn(&mut P, &mut Ctx<'_, P>); 2],
    ) -> Result<(), Refusal> {
        match self.admit(command)? {
            Command::Acquire => acquire(node, cx),
            Command::Release => release(node, cx),
        }
        Ok(())
    }

    /// Does the node wait?
    pub(super) const fn waits(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }
}

impl<W> Phase<W> {
    /// The phase in which a view begins: inside, with a wish older than all others, if the setup
    /// says so.
    pub(super) fn at_boot(setup: &Setup, me: NodeId) -> Self {
        let mine = setup.granted().filter(|stamp| stamp.node == me);
        mine.map_or(Self::Idle, Self::Inside)
    }

    /// Enters with this wish, and tells the user.
    pub(super) fn enter<P>(&mut self, cx: &mut Ctx<'_, P>, stamp: Stamp)
    where
        P: Protocol<Event = Event>,
    {
        *self = Self::Inside(stamp);
        cx.trace("enter", &[("time", stamp.time)]);
        cx.emit(Event::Granted(Some(stamp)));
    }
}

impl Phase {
    /// Wants to enter, with the next stamp of the clock.
    pub(super) fn wish<P: Protocol>(
        &mut self,
        cx: &mut Ctx<'_, P>,
        clock: &mut LamportClock,
    ) -> Stamp {
        let stamp = clock.tick(cx.me());
        *self = Self::Waiting(stamp);
        cx.trace("request", &[("time", stamp.time)]);
        stamp
    }

    /// Ricart and Agrawala's rule: must the node with this request wait for this one?
    pub(super) fn goes_before(&self, theirs: Stamp) -> bool {
        match self {
            Self::Idle => false,
            Self::Waiting(mine) if flaw!(IgnoreTies) => mine.time < theirs.time,
            Self::Waiting(mine) => *mine < theirs,
            Self::Inside(_) => true,
        }
    }

    /// The node leaves: the wish that was granted, if it was inside.
    pub(super) const fn end(&mut self) -> Option<Stamp> {
        match core::mem::replace(self, Self::Idle) {
            Self::Inside(stamp) => Some(stamp),
            Self::Idle | Self::Waiting(_) => None,
        }
    }

    /// The wish that the node has, waiting or granted.
    pub(super) const fn open(&self) -> Option<Stamp> {
        match *self {
            Self::Idle => None,
            Self::Waiting(stamp) | Self::Inside(stamp) => Some(stamp),
        }
    }
}

impl<W> Phase<W, ()> {
    /// As [`Phase::at_boot`], where wishes have no stamps.
    pub(super) fn begun(inside: bool) -> Self {
        if inside { Self::Inside(()) } else { Self::Idle }
    }

    /// As [`Phase::enter`], where wishes have no stamps.
    pub(super) fn enter_next<P: Protocol<Event = Event>>(&mut self, cx: &mut Ctx<'_, P>) {
        *self = Self::Inside(());
        cx.trace("enter", &[]);
        cx.emit(Event::Granted(None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    #[test]
    fn commands_make_sense_in_one_phase_each() {
        let phases: [Phase<(), ()>; 3] = [Phase::Idle, Phase::Waiting(()), Phase::Inside(())];
        let refused = |command| phases.map(|phase| phase.admit(command).err());
        let (busy, not_held) = (Some(Refusal::Busy), Some(Refusal::NotHeld));
        assert_eq!(refused(Command::Acquire), [None, busy, busy]);
        assert_eq!(refused(Command::Release), [not_held, not_held, None]);
        assert_eq!(phases.map(|phase| phase.waits()), [false, true, false]);
    }

    #[test]
    fn who_is_inside_or_asked_earlier_goes_first() {
        let stamp = |time, number| Stamp { time, node: node(number) };
        let theirs = stamp(4, 2);
        let goes = |phase: Phase| phase.goes_before(theirs);
        let waits = |mine| goes(Phase::Waiting(mine));
        assert!(waits(stamp(3, 3)) && waits(stamp(4, 1)) && !waits(stamp(4, 3)));
        assert!(goes(Phase::Inside(stamp(5, 1))) && !goes(Phase::Idle));
    }
}
