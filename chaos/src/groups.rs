//! Participants of groups in the process of a member: they join, send messages in all orders, take what they
//! are told, give their state to who joins, and leave again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_member::{Delivery, Group, GroupError, Member, Message, Order};
use quorate_service::Epoch;
use quorate_service::history::Fact;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::book::Book;
use crate::dice::Dice;

/// The groups that there are, and whether one keeps a state in them.
pub(crate) const GROUPS: [(&str, bool); 2] = [("ledger", true), ("chat", false)];
/// So long is it waited until a group is joined.
const JOINING: Duration = Duration::from_secs(3);
/// So many own messages are under way at most: whoever does not get them back sends nothing more.
const UNDER_WAY: u64 = 8;
/// The longest filler of a message, and that of a state: in more than one packet.
const FILLER: u64 = 300;
const STATE_FILLER: usize = 4_000;

/// A member's part in a group.
pub(crate) struct Participant {
    pub(crate) member: Arc<Member>,
    pub(crate) book: Book,
    pub(crate) dice: Dice,
    /// How many streams this process has had.
    pub(crate) streams: Arc<AtomicU64>,
    /// Pauses are so many times as long.
    pub(crate) pace: u64,
    pub(crate) group: &'static str,
    pub(crate) stateful: bool,
}

/// What all make of the messages of a group: the same before each view, whatever order fifo and causal ones
/// came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Ledger {
    /// Of all messages.
    count: u64,
    sum: u64,
    /// Of those that have a place, in their order.
    chain: u64,
}

impl Ledger {
    fn add(&mut self, from: u64, number: u64, order: Order) {
        let message = mixed(mixed(from) ^ number);
        self.count += 1;
        self.sum = self.sum.wrapping_add(message);
        if order.is_placed() {
            self.chain = mixed(self.chain ^ message);
        }
    }

    fn digest(self) -> u32 {
        let all = mixed(mixed(self.count ^ self.sum) ^ self.chain);
        (all >> 32) as u32
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24 + STATE_FILLER);
        for number in [self.count, self.sum, self.chain] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.resize(24 + STATE_FILLER, 0);
        bytes
    }

    /// The ledger that these bytes are of. What is none comes to another digest.
    fn of(bytes: &[u8]) -> Self {
        let number = |place: usize| {
            let bytes = bytes.get(8 * place..8 * place + 8).and_then(|it| it.try_into().ok());
            u64::from_le_bytes(bytes.unwrap_or([0xff; 8]))
        };
        Self { count: number(0), sum: number(1), chain: number(2) }
    }
}

/// A number that says nothing of the one that it comes from (the last step of SplitMix64).
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The stream and the number of a message.
fn id_of(message: &Message) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(message.bytes()).ok()?;
    let mut words = text.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// One joining of a group.
struct Stream {
    id: u64,
    ledger: Ledger,
    /// How many messages were sent, and how many of them are not back yet.
    sent: u64,
    under_way: u64,
    /// A message that was written down, and that there was no room for.
    refused: Option<Order>,
}

impl Participant {
    /// Takes part again and again.
    pub(crate) async fn work(mut self) -> io::Result<()> {
        loop {
            let joining = self.member.group(self.group);
            let joining = if self.stateful { joining.stateful() } else { joining };
            // This process may be no member now, or wait for a view that does not come.
            if let Ok(Ok(group)) = timeout(JOINING, joining.into_future()).await {
                self.follow(group).await?;
            }
            self.pause(20, 120).await;
        }
    }

    async fn pause(&mut self, least: u64, most: u64) {
        sleep(self.rest(least, most)).await;
    }

    fn rest(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.dice.between(least..=most) * self.pace)
    }

    /// Takes part until it has left, or the others go on without it.
    async fn follow(&mut self, mut group: Group) -> io::Result<()> {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        let id = u64::from(std::process::id()) << 16 | number;
        let ledger = Ledger::default();
        let mut stream = Stream { id, ledger, sent: 0, under_way: 0, refused: None };
        let (mut leaves, mut next) = (false, Instant::now());
        loop {
            tokio::select! {
                told = group.next() => match told {
                    Ok(delivery) => self.take(&mut stream, delivery)?,
                    Err(why) => {
                        let (group, left) = (self.group.to_owned(), why == GroupError::Left);
                        return self.book.note(Fact::GroupEnd { group, stream: id, left });
                    }
                },
                () = sleep_until(next), if !leaves => {
                    next = Instant::now() + self.rest(20, 80);
                    leaves = self.dice.happens(2);
                    if leaves {
                        group.retire();
                    } else {
                        self.post(&mut stream, &group)?;
                    }
                }
            }
        }
    }

    /// Sends some messages at once.
    fn post(&mut self, stream: &mut Stream, group: &Group) -> io::Result<()> {
        for _ in 0..self.dice.pick(&[1, 1, 1, 4]) {
            if stream.under_way >= UNDER_WAY {
                break;
            }
            let order = match stream.refused.take() {
                Some(order) => order,
                None => {
                    stream.sent += 1;
                    let (order, number) = (self.dice.pick(&Order::ALL), stream.sent);
                    let (group, stream) = (self.group.to_owned(), stream.id);
                    self.book.note(Fact::Posted { group, stream, number, order })?;
                    order
                }
            };
            let filler = "-".repeat(self.dice.between(0..=FILLER) as usize);
            let text = format!("{} {} {filler}", stream.id, stream.sent);
            match group.try_send(text.as_bytes(), order) {
                Ok(()) => stream.under_way += 1,
                Err(GroupError::Full) => {
                    stream.refused = Some(order);
                    break;
                }
                // What is told next says why.
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn take(&mut self, stream: &mut Stream, delivery: Delivery) -> io::Result<()> {
        let group = self.group.to_owned();
        match delivery {
            Delivery::View(view) => {
                let (epoch, number) = view.id;
                let members = view.members.iter().map(ToString::to_string).collect();
                let digest = self.stateful.then(|| stream.ledger.digest());
                let (stream, epoch) = (stream.id, Epoch(epoch));
                self.book.note(Fact::GroupView { group, stream, epoch, number, members, digest })
            }
            Delivery::Message(message) => {
                // Somebody else's is one that nobody has sent.
                let (from, number) = id_of(&message).unwrap_or((u64::MAX, 0));
                let order = message.order();
                stream.ledger.add(from, number, order);
                if from == stream.id {
                    stream.under_way = stream.under_way.saturating_sub(1);
                }
                let stream = stream.id;
                self.book.note(Fact::Delivered { group, stream, from, number, order })
            }
            Delivery::State(bytes) => {
                stream.ledger = Ledger::of(&bytes);
                Ok(())
            }
            Delivery::Snapshot(snapshot) => {
                snapshot.give(stream.ledger.bytes());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_depends_on_the_order_of_what_has_a_place_and_of_nothing_else() {
        let of = |messages: &[(u64, Order)]| {
            let mut ledger = Ledger::default();
            messages.iter().for_each(|(number, order)| ledger.add(7, *number, *order));
            ledger
        };
        let [fifo, causal, total, uniform] = Order::ALL;
        let one = of(&[(1, fifo), (2, total), (3, causal), (4, uniform)]);
        assert_eq!(one.digest(), of(&[(3, causal), (2, total), (4, uniform), (1, fifo)]).digest());
        assert_ne!(one.digest(), of(&[(1, fifo), (4, uniform), (3, causal), (2, total)]).digest());
        assert_ne!(one.digest(), of(&[(1, fifo), (2, total), (3, causal)]).digest());
        assert_ne!(one.digest(), of(&[(5, fifo), (2, total), (3, causal), (4, uniform)]).digest());
        assert_eq!(Ledger::of(&one.bytes()), one);
        assert_ne!(Ledger::of(&[]).digest(), Ledger::default().digest());
    }
}
