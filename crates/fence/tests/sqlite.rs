//! The statements for SQLite, by `rusqlite`: the same rules as every gate, and the guarded write with them.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

#[path = "../examples/close_day.rs"]
#[expect(dead_code, reason = "its main is for who runs the example")]
mod close_day;
mod rules;

use std::thread;
use std::time::Duration;

use quorate_fence::sql::{self, SQLITE, SqlError};
use quorate_fence::{Fence, Refusal};
use rusqlite::{Connection, TransactionBehavior, params_from_iter};

struct Tx<'a>(&'a Connection);

impl sql::Transaction for Tx<'_> {
    type Error = rusqlite::Error;

    fn execute(&mut self, statement: &str, values: &[&str]) -> rusqlite::Result<u64> {
        Ok(self.0.execute(statement, params_from_iter(values))? as u64)
    }

    fn text(&mut self, statement: &str, values: &[&str]) -> rusqlite::Result<Option<String>> {
        self.0.query_row(statement, params_from_iter(values), |row| row.get(0))
    }
}

fn admit(
    connection: &Connection,
    name: &str,
    fence: Fence,
) -> Result<(), SqlError<rusqlite::Error>> {
    sql::admit(&mut Tx(connection), &SQLITE, name, fence)
}

#[test]
fn what_is_below_is_refused_and_what_is_equal_is_not() {
    let connection = Connection::open_in_memory().unwrap();
    for _ in 0..2 {
        connection.execute_batch(SQLITE.create).unwrap();
    }
    rules::what_is_below_is_refused_and_what_is_equal_is_not(&mut Tx(&connection), &SQLITE);
}

#[test]
fn the_table_takes_nothing_but_fences() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SQLITE.create).unwrap();
    let text = Fence::new(10, 11).to_string();
    for bad in ["", "7", &text.to_uppercase(), &text.replace('-', "a"), &text.replace('a', "-")] {
        assert!(connection.execute(SQLITE.admit, ["a", bad]).is_err(), "{bad}");
    }
    connection.execute(SQLITE.admit, ["a", &text]).unwrap();
}

#[test]
fn what_is_rolled_back_was_never_seen() {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SQLITE.create).unwrap();
    let (old, new) = (Fence::new(1, 1), Fence::new(1, 2));
    let transaction = connection.transaction().unwrap();
    admit(&transaction, "a", new).unwrap();
    transaction.rollback().unwrap();
    admit(&connection, "a", old).unwrap();
    assert_eq!(sql::highest(&mut Tx(&connection), &SQLITE), Ok(Some(old)));
}

#[test]
fn whatever_the_order_of_writers_the_newest_one_stands() {
    const WRITERS: u64 = 8;
    const WRITES: u64 = 25;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("guarded.sqlite");
    let open = || {
        let connection = Connection::open(&path).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection
    };
    open().execute_batch(SQLITE.create).unwrap();
    open().execute_batch("CREATE TABLE log (at INTEGER PRIMARY KEY, fence TEXT)").unwrap();
    thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let mut connection = open();
            scope.spawn(move || {
                for write in 0..WRITES {
                    // Each comes with fences of all ages.
                    let fence = Fence::new(write, writer);
                    let begun =
                        connection.transaction_with_behavior(TransactionBehavior::Immediate);
                    let transaction = begun.unwrap();
                    match admit(&transaction, "log", fence) {
                        Ok(()) => {
                            let insert = "INSERT INTO log (fence) VALUES (?1)";
                            transaction.execute(insert, [fence.to_string()]).unwrap();
                            transaction.commit().unwrap();
                        }
                        Err(SqlError::Refused(Refusal::Stale { .. })) => {
                            transaction.rollback().unwrap();
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let connection = open();
    let mut log = connection.prepare("SELECT fence FROM log ORDER BY at").unwrap();
    let written = log.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let written: Vec<String> = written.map(Result::unwrap).collect();
    assert!(written.is_sorted(), "{written:#?}");
    assert_eq!(written.last(), Some(&Fence::new(WRITES - 1, WRITERS).to_string()));
}

#[test]
fn the_program_of_the_guide_writes_as_long_as_it_is_the_newest() {
    let guide = include_str!("../../../docs/guide/fencing.md");
    let program = include_str!("../examples/close_day.rs");
    assert!(guide.contains(program), "examples/close_day.rs is not what the guide shows");
    let mut till = Connection::open_in_memory().unwrap();
    till.execute_batch(SQLITE.create).unwrap();
    till.execute_batch("CREATE TABLE days (day, total); CREATE TABLE sales (day, amount)").unwrap();
    till.execute_batch("INSERT INTO days VALUES ('2026-11-02', 0)").unwrap();
    let mut close = |fence| {
        till.execute_batch("INSERT INTO sales VALUES ('2026-11-02', 10)").unwrap();
        let closed = close_day::close(&mut till, "2026-11-02", fence);
        let total = till.query_row("SELECT total FROM days", [], |row| row.get::<_, i64>(0));
        (closed.map_err(|error| error.to_string()), total.unwrap())
    };
    assert_eq!(close(Fence::new(1, 7)), (Ok(()), 10));
    assert_eq!(close(Fence::new(1, 8)), (Ok(()), 20));
    let late = "the fence is old: 0000000000000001-0000000000000008 has been here".to_owned();
    assert_eq!(close(Fence::new(1, 7)), (Err(late), 20));
    assert_eq!(close(Fence::new(1, 8)), (Ok(()), 40));
}
