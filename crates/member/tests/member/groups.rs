//! Groups between members.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_member::{Delivery, Group, GroupError, Member, Order, Replicated, State};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::plan::{PATIENCE, Plan, until_seated};

async fn three(plan: &Plan) -> [Member; 3] {
    let members = ["a", "b", "c"].map(|name| plan.start(name));
    for member in &members {
        until_seated(member, &["a", "b", "c"]).await;
    }
    members
}

/// What somebody was told, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    View(Vec<String>),
    Message(u64),
}

async fn next(group: &mut Group) -> Result<Delivery, GroupError> {
    timeout(PATIENCE, group.next()).await.expect("something is told")
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("a number"))
}

/// Takes what it is told until the message of this number has come, or the stream ends.
async fn follow(mut group: Group, last: u64, leave_at: Option<usize>) -> Vec<Told> {
    let mut told = Vec::new();
    loop {
        match next(&mut group).await {
            Ok(Delivery::View(view)) => {
                told.push(Told::View(view.members.iter().map(|it| it.as_ref().into()).collect()));
            }
            Ok(Delivery::Message(message)) => {
                told.push(Told::Message(number(message.bytes())));
                if told.last() == Some(&Told::Message(last)) {
                    return told;
                }
            }
            Ok(_) => {}
            Err(_) => return told,
        }
        if leave_at.is_some_and(|count| told.len() >= count) {
            group.retire();
        }
    }
}

/// Both were told the same from the first view of the second on, as long as both were told anything.
fn agree(one: &[Told], other: &[Told]) {
    let begin = one.iter().position(|told| *told == other[0]).expect("the view is known");
    let most = (one.len() - begin).min(other.len());
    let differ = (0..most).find(|at| one[begin + at] != other[*at]);
    assert_eq!(
        differ,
        None,
        "{:?} and {:?}",
        &one[begin..begin + most.min(9)],
        &other[..most.min(9)]
    );
    assert!(most > 1, "they were told something");
}

async fn join(member: &Member, name: &str) -> Group {
    timeout(PATIENCE, member.group(name)).await.expect("in time").expect("it can be joined")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_told_the_same_in_every_order() {
    let plan = Plan::of(&["a", "b", "c"]);
    let members = three(&plan).await;
    let mut groups = Vec::new();
    for member in &members {
        groups.push(join(member, "chat").await);
    }
    let again = members[0].group("chat").await.map(|_| ());
    assert_eq!(again, Err(GroupError::Already));
    let each = 300_u64;
    let senders: Vec<_> = groups.iter().map(Group::sender).collect();
    let mut tasks = Vec::new();
    for (at, sender) in senders.into_iter().enumerate() {
        tasks.push(tokio::spawn(async move {
            for round in 0..each {
                let id = (at as u64) << 32 | round;
                let order = Order::ALL[round as usize % 4];
                sender.send(&id.to_le_bytes(), order).await.expect("it is sent");
            }
        }));
    }
    let mut streams = Vec::new();
    for group in &mut groups {
        let (mut all, mut placed) = (Vec::new(), Vec::new());
        while all.len() < 3 * each as usize {
            if let Delivery::Message(message) = next(group).await.expect("it goes on") {
                let id = number(message.bytes());
                all.push(id);
                if message.order().is_placed() {
                    placed.push(id);
                }
            }
        }
        for at in 0..3 {
            let of: Vec<u64> = all.iter().copied().filter(|id| id >> 32 == at).collect();
            assert!(of.is_sorted() && of.len() == each as usize, "each in its order, and all");
        }
        streams.push(placed);
    }
    assert!(streams.iter().all(|stream| *stream == streams[0]), "one order for all");
    for task in tasks {
        task.await.expect("no panic");
    }
    for group in groups {
        timeout(PATIENCE, group.leave()).await.expect("it can be left");
    }
    members.into_iter().for_each(Member::stop);
}

/// The number of messages of the long run.
const MANY: u64 = 1_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_messages_through_joins_leaves_and_crashes() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let mut readers: BTreeMap<&str, JoinHandle<Vec<Told>>> = BTreeMap::new();
    let group = join(&a, "log").await;
    let sender = group.sender();
    readers.insert("a", tokio::spawn(follow(group, MANY, None)));
    readers.insert("b", tokio::spawn(follow(join(&b, "log").await, MANY, Some(MANY as usize / 5))));
    readers.insert("c", tokio::spawn(follow(join(&c, "log").await, MANY, None)));
    let mut c = Some(c);
    let mut d = None;
    for id in 1..=MANY {
        // Those of one order are packed.
        let order = if id / 100 % 3 == 0 { Order::Uniform } else { Order::Total };
        sender.send(&id.to_le_bytes(), order).await.expect("it is sent");
        if id == MANY / 3 {
            let member = plan.start("d");
            until_seated(&member, &["a", "b", "c", "d"]).await;
            readers.insert("d", tokio::spawn(follow(join(&member, "log").await, MANY, None)));
            d = Some(member);
        }
        if id == MANY / 2 {
            // Without a word, as a crash.
            c.take().expect("it is there").stop();
        }
    }
    let mut streams = BTreeMap::new();
    for (name, reader) in readers {
        let told = timeout(3 * PATIENCE, reader).await.expect("it ends").expect("no panic");
        streams.insert(name, told);
    }
    let all: Vec<u64> = streams["a"]
        .iter()
        .filter_map(|told| match told {
            Told::Message(id) => Some(*id),
            Told::View(_) => None,
        })
        .collect();
    assert!(all.iter().copied().eq(1..=MANY), "{} of {MANY}", all.len());
    for name in ["b", "c", "d"] {
        agree(&streams["a"], &streams[name]);
    }
    assert_eq!(streams["d"].last(), Some(&Told::Message(MANY)));
    drop((a, b, d));
}

/// A map, as a state machine: a command is a key and a value.
#[derive(Default)]
struct Map(BTreeMap<Vec<u8>, Vec<u8>>);

impl State for Map {
    fn apply(&mut self, command: &[u8]) -> Vec<u8> {
        let (key, value) = command.split_at(command.len().min(1));
        self.0.insert(key.into(), value.into()).unwrap_or_default()
    }

    fn snapshot(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(key, value)| [&key[..], &value[..]].concat()).collect()
    }

    fn restore(snapshot: &[u8]) -> Result<Self, String> {
        let pairs = snapshot.chunks_exact(9).map(|pair| (pair[..1].into(), pair[1..].into()));
        Ok(Self(pairs.collect()))
    }
}

async fn replica(member: &Member) -> Replicated<Map> {
    let joined = timeout(PATIENCE, Replicated::join(member, "map", Map::default())).await;
    joined.expect("in time").expect("it can be joined")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replicated_map_is_read_as_it_was_written_and_given_to_who_joins() {
    let plan = Plan::of(&["a", "b", "c"]);
    let [a, b, c] = three(&plan).await;
    let (first, second) = (replica(&a).await, replica(&b).await);
    let value = |map: &Map| map.0.get(&b"k"[..]).cloned().unwrap_or_default();
    for round in 0_u64..200 {
        let (writer, reader) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
        let command = [b"k", &round.to_le_bytes()[..]].concat();
        let before = writer.write(&command).await.expect("it is written");
        assert_eq!(before, round.checked_sub(1).map_or(vec![], |it| it.to_le_bytes().into()));
        let read = reader.read(value).await.expect("it is read");
        assert_eq!(read, round.to_le_bytes(), "what was answered is seen everywhere");
    }
    let third = replica(&c).await;
    assert_eq!(third.read(value).await.expect("it is read"), 199_u64.to_le_bytes());
    first.leave().await;
    second.leave().await;
    third.write(&[b"k", &7_u64.to_le_bytes()[..]].concat()).await.expect("it goes on alone");
    assert_eq!(third.peek(value), 7_u64.to_le_bytes());
    // Who is cut off learns that its write may not have been done.
    assert!(c.leave(Duration::from_secs(20)).await);
    assert_eq!(third.write(b"x").await, Err(GroupError::Excluded));
    drop((a, b));
}

/// A rolling upgrade: who speaks the first version of the wire has locks as all have, and the others have
/// groups and roles among themselves; when it is started again with the second version, it has them too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_member_has_locks_and_learns_the_rest_when_it_is_upgraded() {
    let plan = Plan::of(&["a", "b", "c"]);
    let older = |name: &str| {
        let mut config = plan.config(name);
        config.versions = 1..=1;
        Member::start(config).expect("a member")
    };
    // The first to be seated is the most senior: who keeps the roll of groups among the others is another one.
    let a = older("a");
    let (b, c) = (plan.start("b"), plan.start("c"));
    for member in [&a, &b, &c] {
        until_seated(member, &["a", "b", "c"]).await;
    }
    let mut fences = Vec::new();
    for member in [&a, &b, &c, &a] {
        let guard = member.lock("all").timeout(PATIENCE).await.expect("all have locks");
        fences.push(guard.fence());
    }
    assert!(fences.is_sorted(), "{fences:?}");
    let (mut at_b, at_c) = (join(&b, "news").await, join(&c, "news").await);
    at_c.send(&7_u64.to_le_bytes(), Order::Uniform).await.expect("it is sent");
    let heard = |told: Delivery| match told {
        Delivery::Message(message) => Some(number(message.bytes())),
        _ => None,
    };
    while heard(next(&mut at_b).await.expect("it is in it")) != Some(7) {}
    assert!(a.leave(PATIENCE).await, "it leaves");
    a.stop();
    until_seated(&b, &["b", "c"]).await;
    let a = plan.start("a");
    until_seated(&a, &["a", "b", "c"]).await;
    let mut at_a = join(&a, "news").await;
    at_c.send(&8_u64.to_le_bytes(), Order::Total).await.expect("it is sent");
    while heard(next(&mut at_a).await.expect("it is in it")) != Some(8) {}
}
