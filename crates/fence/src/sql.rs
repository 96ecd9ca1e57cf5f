//! A gate that is a table beside the guarded data: the comparison is in the transaction of the write.
//!
//! Asking a gate first and writing to a database then leaves a gap between the two. Here there is none:
//! the statement that compares also locks the row of the name until the transaction ends. So a larger
//! fence waits until the write of a smaller one is committed or rolled back, and a smaller one that comes
//! later changes no row.
//!
//! A fence is kept as its text, which sorts as fences do: SQL has no unsigned numbers of 64 bits, and the
//! text is what people see elsewhere.
//!
//! # By hand
//! The statements are texts ([`POSTGRES`], [`SQLITE`]), for any client in any language. As the first
//! statement of a transaction, [`Dialect::admit`] with the name and the text of the fence: if it changed
//! one row, go on; if it changed none, the fence is old: roll back. Reading before it would read what a
//! later holder may be changing.
//!
//! Where a row belongs to one lock, it can have the fence itself, and there is no table:
//!
//! ```sql
//! UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//! ```
//!
//! # With a client
//! [`Transaction`] is what a client has to be able to do; a few lines for each. [`admit`] then says
//! which fence was seen, and what is no name.
//!
//! ```
//! use quorate_fence::{Fence, sql};
//!
//! /// What is missing to `rusqlite`.
//! struct Tx<'a>(&'a rusqlite::Transaction<'a>);
//!
//! impl sql::Transaction for Tx<'_> {
//!     type Error = rusqlite::Error;
//!
//!     fn execute(&mut self, statement: &str, values: &[&str]) -> rusqlite::Result<u64> {
//!         let rows = self.0.execute(statement, rusqlite::params_from_iter(values))?;
//!         Ok(rows as u64)
//!     }
//!
//!     fn text(&mut self, statement: &str, values: &[&str]) -> rusqlite::Result<Option<String>> {
//!         self.0.query_row(statement, rusqlite::params_from_iter(values), |row| row.get(0))
//!     }
//! }
//!
//! let mut connection = rusqlite::Connection::open_in_memory()?;
//! connection.execute_batch(sql::SQLITE.create)?;
//! connection.execute_batch("CREATE TABLE stock (item TEXT PRIMARY KEY, count INTEGER)")?;
//!
//! let mut set = |count: i64, fence: Fence| -> Result<(), Box<dyn std::error::Error>> {
//!     let transaction = connection.transaction()?;
//!     sql::admit(&mut Tx(&transaction), &sql::SQLITE, "stock", fence)?;
//!     transaction.execute("INSERT OR REPLACE INTO stock VALUES ('apples', ?1)", [count])?;
//!     Ok(transaction.commit()?)
//! };
//! set(7, Fence::new(1, 1))?;
//! set(5, Fence::new(1, 2))?;
//! let late = set(7, Fence::new(1, 1)).unwrap_err().to_string();
//! assert_eq!(late, "the fence is old: 0000000000000001-0000000000000002 has been here");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What the database has to do
//! The isolation may be any. Where it is stricter than *read committed* (PostgreSQL) a transaction may
//! fail because of another one, as always there: repeat it from its beginning. A database that loses
//! committed transactions (`synchronous_commit = off`, `PRAGMA synchronous = OFF`, a replica that is
//! promoted while it lags, a restored backup) loses the fences with the data, and lets those in that
//! were too old before.

use std::error::Error;
use std::fmt;

use crate::gate::check_name;
use crate::{Fence, Refusal};

/// The statements for a kind of database. The table is `quorate_fence (name, fence)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// Makes the table if it is not there. Values: none.
    pub create: &'static str,
    /// Compares and remembers. Changes one row, or none if the fence is old. Values: name, fence.
    pub admit: &'static str,
    /// One row with one text: the largest fence seen under a name, or null. Values: name.
    pub seen: &'static str,
    /// One row with one text: the largest fence seen under any name, or null. Values: none.
    pub highest: &'static str,
}

/// For PostgreSQL, 9.5 or later.
pub const POSTGRES: Dialect = Dialect {
    create: "CREATE TABLE IF NOT EXISTS quorate_fence (\n    \
             name text PRIMARY KEY,\n    \
             fence text COLLATE \"C\" NOT NULL CHECK (fence ~ '^[0-9a-f]{16}-[0-9a-f]{16}$')\n\
             )",
    admit: "INSERT INTO quorate_fence AS known (name, fence) VALUES ($1, $2)\n\
            ON CONFLICT (name) DO UPDATE SET fence = excluded.fence\n\
            WHERE known.fence <= excluded.fence",
    seen: "SELECT max(fence) FROM quorate_fence WHERE name = $1",
    highest: "SELECT max(fence) FROM quorate_fence",
};

/// For SQLite, 3.24 or later.
pub const SQLITE: Dialect = Dialect {
    create: "CREATE TABLE IF NOT EXISTS quorate_fence (\n    \
             name TEXT NOT NULL PRIMARY KEY,\n    \
             fence TEXT NOT NULL CHECK (\n        \
             length(fence) = 33 AND substr(fence, 17, 1) = '-'\n        \
             AND length(replace(fence, '-', '')) = 32\n        \
             AND replace(fence, '-', '') NOT GLOB '*[^0-9a-f]*'\n    \
             )\n\
             )",
    admit: "INSERT INTO quorate_fence AS known (name, fence) VALUES (?1, ?2)\n\
            ON CONFLICT (name) DO UPDATE SET fence = excluded.fence\n\
            WHERE known.fence <= excluded.fence",
    seen: "SELECT max(fence) FROM quorate_fence WHERE name = ?1",
    highest: "SELECT max(fence) FROM quorate_fence",
};

/// What a client of a database has to be able to do within a transaction. All values are texts.
pub trait Transaction {
    /// What goes wrong with it.
    type Error;

    /// Does what a statement says, and says how many rows it changed.
    ///
    /// # Errors
    /// If the database says no.
    fn execute(&mut self, statement: &str, values: &[&str]) -> Result<u64, Self::Error>;

    /// Asks for a single text: the first column of the only row. Nothing if it is null.
    ///
    /// # Errors
    /// If the database says no.
    fn text(&mut self, statement: &str, values: &[&str]) -> Result<Option<String>, Self::Error>;
}

/// Why somebody was not let in. Whatever the reason: roll back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SqlError<E> {
    /// The gate said no.
    Refused(Refusal),
    /// The database said no.
    Client(E),
    /// This stands in the table, and is no fence.
    Unreadable(String),
}

impl<E: fmt::Display> fmt::Display for SqlError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Client(error) => error.fmt(f),
            Self::Unreadable(text) => {
                write!(f, "quorate_fence has {text:?} where a fence should be")
            }
        }
    }
}

impl<E: Error + 'static> Error for SqlError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Client(error) => Some(error),
            _ => None,
        }
    }
}

/// Compares and remembers, in this transaction. Until it ends, nobody with a larger fence gets in under
/// this name; if it is rolled back, nothing is remembered.
///
/// # Errors
/// If the fence is below the largest one seen under this name, or the database says no.
pub fn admit<T: Transaction>(
    transaction: &mut T,
    dialect: &Dialect,
    name: &str,
    fence: Fence,
) -> Result<(), SqlError<T::Error>> {
    check_name(name).map_err(SqlError::Refused)?;
    let text = fence.to_string();
    let rows = transaction.execute(dialect.admit, &[name, &text]).map_err(SqlError::Client)?;
    if rows > 0 {
        return Ok(());
    }
    // The row cannot have changed since: the statement has locked it.
    match seen(transaction, dialect, name)? {
        Some(seen) => Err(SqlError::Refused(Refusal::Stale { seen })),
        None => Err(SqlError::Unreadable("nothing".into())),
    }
}

/// The largest fence seen under a name.
///
/// # Errors
/// If the database says no.
pub fn seen<T: Transaction>(
    transaction: &mut T,
    dialect: &Dialect,
    name: &str,
) -> Result<Option<Fence>, SqlError<T::Error>> {
    read(transaction.text(dialect.seen, &[name]))
}

/// The largest fence seen under any name: its epoch is for `quorate recover --force --epoch-above EPOCH`.
///
/// # Errors
/// If the database says no.
pub fn highest<T: Transaction>(
    transaction: &mut T,
    dialect: &Dialect,
) -> Result<Option<Fence>, SqlError<T::Error>> {
    read(transaction.text(dialect.highest, &[]))
}

fn read<E>(answer: Result<Option<String>, E>) -> Result<Option<Fence>, SqlError<E>> {
    let text = answer.map_err(SqlError::Client)?;
    text.map(|text| text.parse().map_err(|_| SqlError::Unreadable(text))).transpose()
}
