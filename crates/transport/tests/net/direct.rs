//! Frames that other threads send themselves.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use quorate_transport::{Direct, Lane, SendError};

use crate::certificates::Authority;
use crate::node::{Node, Order, PATIENCE, Seen, name, plain};

fn direct(node: &Node, to: &'static str) -> Direct {
    node.run(move |io| io.direct(io.peer(&name(to)).unwrap()).unwrap())
}

#[test]
fn an_idle_connection_is_written_to_by_the_sender() {
    let authority = Authority::new("prod");
    for (first, second) in
        [(plain("a"), plain("b")), (authority.config("a"), authority.config("b"))]
    {
        let (a, b) = (Node::start(first), Node::start(second));
        a.dial_node(&b);
        a.until_up();
        b.until_up();
        let direct = direct(&a, "b");
        for number in 0..200_u32 {
            direct.send(Lane::Data, &number.to_le_bytes()).unwrap();
            assert_eq!(b.frame().1, number.to_le_bytes());
        }
        let counters = a.transport.stats().counters();
        assert!(counters.direct_writes > 0, "{counters:?}");
    }
}

#[test]
fn frames_of_many_threads_keep_their_order() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    let direct = direct(&a, "b");
    thread::scope(|scope| {
        for sender in 0..4_u8 {
            let direct = direct.clone();
            scope.spawn(move || {
                for number in 0..2_000_u32 {
                    let mut frame = vec![sender];
                    frame.extend(number.to_le_bytes());
                    direct.send(Lane::Data, &frame).unwrap();
                }
            });
        }
        let mut next = [0_u32; 4];
        while next != [2_000; 4] {
            let (_, bytes) = b.frame();
            let at = usize::from(bytes[0]);
            assert_eq!(bytes[1..], next[at].to_le_bytes());
            next[at] += 1;
        }
    });
    let counters = a.transport.stats().counters();
    assert!(counters.writes < 8_000, "writes are shared: {counters:?}");
}

#[test]
fn others_see_whether_the_thread_has_something_to_do() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    b.until_up();
    let remote = b.transport.remote();
    let until = |busy: bool| {
        let begun = Instant::now();
        while remote.is_busy() != busy {
            assert!(begun.elapsed() < PATIENCE, "it is always {}", !busy);
            thread::yield_now();
        }
    };
    let (go_on, told) = channel::<()>();
    let work: Order = Box::new(move |_| _ = told.recv());
    until(false);
    assert!(remote.tell(work).is_ok());
    a.send(&b.name, Lane::Data, b"come");
    assert!((0..1_000).all(|_| remote.is_busy()));
    drop(go_on);
    assert_eq!(b.frame().1, b"come");
    until(false);
}

#[test]
fn a_handle_belongs_to_one_session() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    let old = direct(&a, "b");
    old.send(Lane::Data, b"one").unwrap();
    assert_eq!(b.frame().1, b"one");
    a.run(|io| io.close(io.peer(&name("b")).unwrap(), "anew"));
    a.until_up();
    assert_eq!(old.send(Lane::Data, b"two"), Err(SendError::NoSession));
    direct(&a, "b").send(Lane::Data, b"three").unwrap();
    assert_eq!(b.frame().1, b"three");
}

#[test]
fn an_overflow_on_another_thread_is_a_loss() {
    let mut config = plain("a");
    config.limits.control_queue = 1_000;
    let (a, b) = (Node::start(config), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    let direct = direct(&a, "b");
    assert_eq!(direct.send(Lane::Control, &[0; 2_000]), Err(SendError::Overflow));
    a.until(|seen| matches!(seen, Seen::Lost { .. }));
    a.until_up();
}

#[test]
fn commands_of_many_threads_share_wake_ups() {
    let a = Node::start(plain("a"));
    let (tell, told) = channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (remote, tell) = (a.transport.remote().clone(), tell.clone());
            scope.spawn(move || {
                for _ in 0..5_000 {
                    let tell = tell.clone();
                    let order = Box::new(move |_: &mut quorate_transport::Io<'_>| {
                        tell.send(()).unwrap();
                    });
                    assert!(remote.tell(order).is_ok());
                }
            });
        }
    });
    drop(tell);
    assert_eq!(told.iter().count(), 20_000);
    let counters = a.transport.stats().counters();
    assert!(counters.wakes <= counters.turns, "{counters:?}");
}
