//! The statements for PostgreSQL, against a server that is started for this.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

#[path = "../rules/mod.rs"]
mod rules;
mod server;

use std::process::Stdio;
use std::thread;

use quorate_fence::sql::{self, POSTGRES, SqlError};
use quorate_fence::{Fence, Refusal};
use rules::{stale, what_is_below_is_refused_and_what_is_equal_is_not};
use server::{Server, Session, SqlState};

const GUIDE: &str = include_str!("../../../../docs/guide/fencing.md");
const CLOSE_DAY: &str = include_str!("../../examples/close_day.sql");

fn admit(session: &mut Session, name: &str, fence: Fence) -> Result<(), SqlError<SqlState>> {
    sql::admit(session, &POSTGRES, name, fence)
}

/// One server for all that follows: starting one takes longer than all of it.
#[test]
fn a_table_beside_the_data_is_a_gate() {
    let Some(server) = Server::start() else { return };
    for _ in 0..2 {
        server.connect().run(POSTGRES.create).unwrap();
    }
    what_is_below_is_refused_and_what_is_equal_is_not(&mut server.connect(), &POSTGRES);
    the_table_takes_nothing_but_fences(&server);
    a_newer_fence_waits_for_the_older_write(&server);
    an_older_fence_waits_for_what_becomes_of_the_newer_one(&server);
    a_stricter_transaction_fails_and_can_be_repeated(&server);
    whatever_the_order_of_writers_the_newest_one_stands(&server);
    the_script_of_the_guide_writes_as_long_as_it_is_the_newest(&server);
}

fn the_table_takes_nothing_but_fences(server: &Server) {
    let mut session = server.connect();
    let text = Fence::new(10, 11).to_string();
    for bad in ["", "7", &text.to_uppercase(), &text.replace('-', "a"), &text.replace('a', "-")] {
        let refused = sql::Transaction::execute(&mut session, POSTGRES.admit, &["b", bad]);
        assert_eq!(refused, Err(SqlState("23514".into())), "{bad}");
    }
}

/// Waits until so many connections wait for a lock of another one.
fn until_waiting(server: &Server, count: u64) {
    let mut session = server.connect();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while session.run(waiting).unwrap().0 != [count.to_string()] {
        thread::yield_now();
    }
}

fn a_newer_fence_waits_for_the_older_write(server: &Server) {
    let (old, new) = (Fence::new(1, 5), Fence::new(1, 6));
    let mut session = server.connect();
    session.run("CREATE TABLE slow (at bigserial, writer text)").unwrap();
    session.run("BEGIN").unwrap();
    admit(&mut session, "slow", old).unwrap();
    thread::scope(|scope| {
        let newer = scope.spawn(|| {
            let mut session = server.connect();
            session.run("BEGIN").unwrap();
            admit(&mut session, "slow", new).unwrap();
            session.run("INSERT INTO slow (writer) VALUES ('new')").unwrap();
            session.run("COMMIT").unwrap();
        });
        // The older one has been let in and takes its time. What it writes comes first all the same.
        until_waiting(server, 1);
        session.run("INSERT INTO slow (writer) VALUES ('old')").unwrap();
        session.run("COMMIT").unwrap();
        newer.join().unwrap();
    });
    let (written, _) = session.run("SELECT writer FROM slow ORDER BY at").unwrap();
    assert_eq!(written, ["old", "new"]);
    assert_eq!(admit(&mut session, "slow", old), Err(stale(new)));
}

fn an_older_fence_waits_for_what_becomes_of_the_newer_one(server: &Server) {
    for (end, expected) in [("ROLLBACK", Ok(())), ("COMMIT", Err(stale(Fence::new(1, 6))))] {
        let (old, new) = (Fence::new(1, 5), Fence::new(1, 6));
        let mut session = server.connect();
        session.run("BEGIN").unwrap();
        admit(&mut session, end, new).unwrap();
        thread::scope(|scope| {
            let older = scope.spawn(|| admit(&mut server.connect(), end, old));
            until_waiting(server, 1);
            session.run(end).unwrap();
            assert_eq!(older.join().unwrap(), expected, "{end}");
        });
    }
}

fn a_stricter_transaction_fails_and_can_be_repeated(server: &Server) {
    let mut session = server.connect();
    admit(&mut session, "strict", Fence::new(1, 1)).unwrap();
    for (level, fence) in
        [("REPEATABLE READ", Fence::new(1, 3)), ("SERIALIZABLE", Fence::new(1, 5))]
    {
        let mut strict = server.connect();
        strict.run(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
        strict.run("SELECT * FROM quorate_fence").unwrap();
        // Somebody older, even: what counts is that the row has changed.
        let older = Fence::new(fence.epoch, fence.counter - 1);
        admit(&mut session, "strict", older).unwrap();
        let failed = SqlError::Client(SqlState("40001".into()));
        assert_eq!(admit(&mut strict, "strict", fence), Err(failed), "{level}");
        strict.run("ROLLBACK").unwrap();
        strict.run(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
        admit(&mut strict, "strict", fence).unwrap();
        strict.run("COMMIT").unwrap();
        assert_eq!(sql::seen(&mut session, &POSTGRES, "strict"), Ok(Some(fence)));
    }
}

fn whatever_the_order_of_writers_the_newest_one_stands(server: &Server) {
    const WRITERS: u64 = 6;
    const WRITES: u64 = 25;
    server.connect().run("CREATE TABLE log (at bigserial, fence text)").unwrap();
    thread::scope(|scope| {
        for writer in 1..=WRITERS {
            scope.spawn(move || {
                let mut session = server.connect();
                for write in 0..WRITES {
                    // Each comes with fences of all ages.
                    let fence = Fence::new(write, writer);
                    session.run("BEGIN").unwrap();
                    match admit(&mut session, "log", fence) {
                        Ok(()) => {
                            let insert = format!("INSERT INTO log (fence) VALUES ('{fence}')");
                            session.run(&insert).unwrap();
                            session.run("COMMIT").unwrap();
                        }
                        Err(SqlError::Refused(Refusal::Stale { .. })) => {
                            session.run("ROLLBACK").unwrap();
                        }
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    let (written, _) = server.connect().run("SELECT fence FROM log ORDER BY at").unwrap();
    assert!(written.is_sorted(), "{written:#?}");
    assert_eq!(written.last(), Some(&Fence::new(WRITES - 1, WRITERS).to_string()));
}

fn the_script_of_the_guide_writes_as_long_as_it_is_the_newest(server: &Server) {
    assert!(GUIDE.contains(CLOSE_DAY), "examples/close_day.sql is not what the guide shows");
    assert!(GUIDE.contains(POSTGRES.create), "the table is not what the guide shows");
    let mut session = server.connect();
    session.run("CREATE TABLE sales (day date, amount int)").unwrap();
    session.run("CREATE TABLE days (day date, total int)").unwrap();
    session.run("INSERT INTO days VALUES ('2026-11-02', 0)").unwrap();
    let mut close = |fence: Fence, amount: u64| {
        session.run(&format!("INSERT INTO sales VALUES ('2026-11-02', {amount})")).unwrap();
        let mut script = server.psql();
        script.args(["-v", "ON_ERROR_STOP=1", "-v", "day=2026-11-02", "-f"]);
        script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/close_day.sql"));
        script.env("QUORATE_FENCE", fence.to_string());
        script.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let code = script.status().unwrap().code();
        let (total, _) = session.run("SELECT total FROM days").unwrap();
        (code, total[0].parse::<u64>().unwrap())
    };
    assert_eq!(close(Fence::new(1, 1), 10), (Some(0), 10));
    assert_eq!(close(Fence::new(1, 2), 10), (Some(0), 20));
    assert_eq!(close(Fence::new(1, 2), 10), (Some(0), 30));
    assert_eq!(close(Fence::new(1, 1), 10), (Some(3), 30));
    // A script without a fence writes nothing.
    let mut script = server.psql();
    script.args(["-v", "ON_ERROR_STOP=1", "-v", "day=2026-11-02", "-f"]);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/close_day.sql"));
    script.env_remove("QUORATE_FENCE").stdin(Stdio::null()).stdout(Stdio::null());
    assert_eq!(script.stderr(Stdio::null()).status().unwrap().code(), Some(3));
}
