//! Is there one order that explains what was answered? The search of Wing and Gong: whoever could have
//! been first is tried, and then the rest.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use quorate_authority::{Answer, Authority, Order, Register};

/// What somebody asked for.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Read,
    Order(Order),
}

/// What was answered.
#[derive(Clone, Debug)]
enum Reply {
    Register(Arc<Register>),
    Answer(Answer),
    Unknown,
}

/// A call with its answer, and when, in numbers that grow, it began and ended.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    call: Call,
    reply: Reply,
    began: u64,
    ended: u64,
}

/// Calls as they were made.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<(u64, Vec<Made>)>>);

impl History {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn moment(&self) -> u64 {
        let mut inner = self.0.lock().expect("no panic");
        inner.0 += 1;
        inner.0
    }

    /// Makes a call.
    pub(crate) async fn record<A: Authority>(&self, authority: &A, call: Call) {
        let began = self.moment();
        let reply = match &call {
            Call::Read => authority.read().await.map(Reply::Register),
            Call::Order(order) => authority.order(order.clone()).await.map(Reply::Answer),
        };
        let reply = reply.unwrap_or(Reply::Unknown);
        // Whose outcome is unknown may be done at any later time.
        let ended = if matches!(reply, Reply::Unknown) { u64::MAX } else { self.moment() };
        self.0.lock().expect("no panic").1.push(Made { call, reply, began, ended });
    }

    pub(crate) fn calls(&self) -> Vec<Made> {
        self.0.lock().expect("no panic").1.clone()
    }
}

/// Is there an order of these calls, beginning with this register, that explains every answer?
pub(crate) fn is_linearizable(begin: &Register, calls: &[Made]) -> bool {
    search(begin, calls, &mut BTreeSet::new(), &mut BTreeSet::new())
}

fn search(
    register: &Register,
    calls: &[Made],
    done: &mut BTreeSet<usize>,
    tried: &mut BTreeSet<u64>,
) -> bool {
    let left = |place: &usize| !done.contains(place);
    let waiting: Vec<_> = (0..calls.len()).filter(left).collect();
    // What is unknown need not have happened.
    if waiting.iter().all(|place| matches!(calls[*place].reply, Reply::Unknown)) {
        return true;
    }
    let mut hasher = DefaultHasher::new();
    (register, &*done).hash(&mut hasher);
    if !tried.insert(hasher.finish()) {
        return false;
    }
    let first_end = waiting.iter().map(|place| calls[*place].ended).min().unwrap_or(u64::MAX);
    for place in waiting.into_iter().filter(|place| calls[*place].began <= first_end) {
        let made = &calls[place];
        let mut next = register.clone();
        let fits = match (&made.call, &made.reply) {
            (Call::Read, Reply::Register(read)) => **read == next,
            (Call::Order(order), Reply::Answer(answer)) => next.apply(order) == *answer,
            (Call::Order(order), Reply::Unknown) => {
                next.apply(order);
                true
            }
            _ => matches!(made.reply, Reply::Unknown),
        };
        if fits {
            done.insert(place);
            if search(&next, calls, done, tried) {
                return true;
            }
            done.remove(&place);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use quorate_core::Span;
    use quorate_service::Settings;

    use super::*;

    fn register(lease: u64) -> Register {
        Register::founded(1, Settings { lease: Span(lease) })
    }

    fn set(lease: u64, began: u64, ended: u64) -> Made {
        let call = Call::Order(Order::Set(Settings { lease: Span(lease) }));
        Made { call, reply: Reply::Answer(Answer::Done), began, ended }
    }

    fn read(lease: u64, began: u64, ended: u64) -> Made {
        let reply = Reply::Register(Arc::new(register(lease)));
        Made { call: Call::Read, reply, began, ended }
    }

    #[test]
    fn a_stale_read_has_no_order() {
        assert!(is_linearizable(&register(1), &[set(2, 1, 4), read(1, 2, 3)]));
        assert!(!is_linearizable(&register(1), &[set(2, 1, 2), read(1, 3, 4)]));
        // Two reads that see two orders the other way round.
        let calls = [set(2, 1, 9), set(3, 2, 9), read(2, 3, 4), read(3, 5, 6), read(2, 7, 8)];
        assert!(!is_linearizable(&register(1), &calls));
        assert!(is_linearizable(&register(1), &calls[..4]));
    }

    #[test]
    fn what_is_unknown_may_come_late_or_never() {
        let mut unknown = set(2, 1, u64::MAX);
        unknown.reply = Reply::Unknown;
        let late = [unknown, read(1, 2, 3), read(2, 4, 5)];
        assert!(is_linearizable(&register(1), &late));
        assert!(is_linearizable(&register(1), &late[..2]));
        let undone = [late[0].clone(), read(2, 2, 3), read(1, 4, 5)];
        assert!(!is_linearizable(&register(1), &undone));
    }
}
