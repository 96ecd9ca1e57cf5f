//! The state of a group: whoever joins is given it by a member that has it, in parts, while the group goes
//! on. It is the state of one member before one view; if that member goes, it begins anew.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorate_core::Life;

use super::group::{Group, Port};
use super::words::{Body, Event, Fellow, Payload, Possession, ViewId};

/// So many parts are under way at once.
const PARTS: usize = 8;

/// A state that is given to this process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Awaiting {
    at: ViewId,
    donor: Life,
    got: Vec<u8>,
}

/// A state that this process gives.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Giving {
    at: ViewId,
    to: Life,
    /// What it is, once its user has said.
    bytes: Option<Payload>,
    sent: usize,
}

impl Group {
    /// A view begins: who is given a state by whom? Does the stream of this process begin here, does it
    /// await a state, and is its user to give one?
    pub(super) fn see_to_states(
        &mut self,
        me: Life,
        view: ViewId,
        fellows: &[Fellow],
        dones: &BTreeMap<Life, Possession>,
        fresh: bool,
    ) -> (bool, bool, bool) {
        let is_in = |life: &Life| fellows.iter().any(|fellow| fellow.life == *life);
        self.giving.retain(|giving| is_in(&giving.to));
        // Whoever caught up does not know who has a state. What it could give is asked for again in the
        // view of the cluster that has begun.
        let has = |life: &Life| dones.get(life) == Some(&Possession::Has) && is_in(life);
        let donor = dones.keys().copied().find(has);
        let goes_on = |life: Life| match dones.get(&life) {
            Some(Possession::Awaits(Some(from))) => has(from),
            Some(Possession::Stateless | Possession::Has) => true,
            Some(Possession::Awaits(None)) | None => false,
        };
        let mut gives = false;
        if donor == Some(me) {
            let wanting = fellows.iter().filter(|fellow| fellow.stateful && !goes_on(fellow.life));
            for to in wanting.map(|fellow| fellow.life).filter(|life| *life != me) {
                self.giving.retain(|giving| giving.to != to);
                self.giving.push(Giving { at: view, to, bytes: None, sent: 0 });
                gives = true;
            }
        }
        // What counts is what all were told, also if the state has come since.
        let said = dones.get(&me).copied().unwrap_or(self.possession);
        let Possession::Awaits(from) = said else { return (fresh, false, gives) };
        if from.is_some_and(|from| has(&from)) {
            return (false, false, gives);
        }
        match donor {
            Some(donor) => {
                self.possession = Possession::Awaits(Some(donor));
                self.awaiting = Some(Awaiting { at: view, donor, got: Vec::new() });
                (fresh || !flaw!(KeepWhatCameBefore), true, gives)
            }
            // Nobody has one, but who has caught up only for a moment does not know that.
            None if dones.is_empty() && !fresh => (true, true, gives),
            None => {
                self.possession = Possession::Has;
                self.awaiting = None;
                (true, false, gives)
            }
        }
    }

    /// The user gives its state, as it was before this view.
    pub(super) fn give(&mut self, port: &mut Port<'_>, at: ViewId, state: &Payload) {
        for giving in self.giving.iter_mut().filter(|giving| giving.at == at) {
            giving.bytes = Some(state.clone());
        }
        for place in 0..self.giving.len() {
            if self.giving[place].at == at && self.giving[place].sent == 0 {
                self.send_state(port, place, 0);
            }
        }
    }

    /// Sends parts of a state, of which so much has come.
    fn send_state(&mut self, port: &mut Port<'_>, place: usize, got: usize) {
        let Giving { at, to, bytes: Some(bytes), sent } = &mut self.giving[place] else { return };
        let (chunk, total) = (port.limits.chunk, bytes.0.len());
        let first = *sent == 0 && got == 0;
        while *sent < total && *sent < got + PARTS * chunk || (first && total == 0 && *sent == 0) {
            let end = total.min(*sent + chunk);
            let part = Payload::from(&bytes.0[*sent..end]);
            let body =
                Body::State { at: *at, offset: *sent as u64, total: total as u64, bytes: part };
            port.send([&*to], &self.name, body);
            *sent = end;
            if total == 0 {
                break;
            }
        }
    }

    /// A part of a state has come.
    pub(super) fn on_state(
        &mut self,
        port: &mut Port<'_>,
        by: Life,
        at: ViewId,
        (offset, total): (u64, u64),
        bytes: &Payload,
    ) {
        let most = port.limits.state as u64;
        let expected =
            |it: &&mut Awaiting| it.at == at && it.donor == by && it.got.len() as u64 == offset;
        let Some(awaiting) = self.awaiting.as_mut().filter(expected) else {
            // It may have come from another one a moment ago.
            return port.send([&by], &self.name, Body::Got { at, offset: total });
        };
        if total > most {
            return port.out.trace("a state is too large", &[("bytes", total)]);
        }
        awaiting.got.extend_from_slice(&bytes.0);
        let offset = awaiting.got.len() as u64;
        port.send([&by], &self.name, Body::Got { at, offset });
        if offset >= total {
            let bytes = Payload::from(core::mem::take(&mut awaiting.got));
            self.awaiting = None;
            self.possession = Possession::Has;
            port.out.tell(Event::State { group: self.name.clone(), at, bytes });
            self.conclude(port);
        }
    }

    /// So much of a state has come.
    pub(super) fn on_got(&mut self, port: &mut Port<'_>, by: Life, at: ViewId, offset: u64) {
        let mine = |giving: &Giving| giving.to == by && giving.at == at;
        let Some(place) = self.giving.iter().position(mine) else { return };
        let total = self.giving[place].bytes.as_ref().map_or(0, |bytes| bytes.0.len());
        if offset >= total as u64 {
            self.giving.remove(place);
            self.conclude(port);
        } else {
            self.send_state(port, place, usize::try_from(offset).unwrap_or(usize::MAX / 2));
        }
    }
}
