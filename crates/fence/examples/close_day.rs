//! Closes a day of the till. Run by whoever holds the lock "till":
//! `quorate lock till -- close_day till.sqlite 2026-11-02`

use std::env;
use std::error::Error;

use quorate_fence::{Fence, sql};
use rusqlite::{Connection, Transaction, params_from_iter};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, day] = &words[..] else { return Err("usage: close_day FILE DAY".into()) };
    let fence = env::var("QUORATE_FENCE")?.parse()?;
    close(&mut Connection::open(file)?, day, fence)
}

pub(crate) fn close(till: &mut Connection, day: &str, fence: Fence) -> Result<(), Box<dyn Error>> {
    let transaction = till.transaction()?;
    // First of all: what is read before it may be changing.
    sql::admit(&mut Tx(&transaction), &sql::SQLITE, "till", fence)?;
    let total = "SELECT sum(amount) FROM sales WHERE sales.day = days.day";
    transaction.execute(&format!("UPDATE days SET total = ({total}) WHERE day = ?1"), [day])?;
    // Who leaves before this has written nothing: a transaction that is dropped is rolled back.
    Ok(transaction.commit()?)
}

/// What is missing to `rusqlite`: two functions, for any client.
struct Tx<'a>(&'a Transaction<'a>);

impl sql::Transaction for Tx<'_> {
    type Error = rusqlite::Error;

    fn execute(&mut self, statement: &str, values: &[&str]) -> rusqlite::Result<u64> {
        Ok(self.0.execute(statement, params_from_iter(values))? as u64)
    }

    fn text(&mut self, statement: &str, values: &[&str]) -> rusqlite::Result<Option<String>> {
        self.0.query_row(statement, params_from_iter(values), |row| row.get(0))
    }
}
