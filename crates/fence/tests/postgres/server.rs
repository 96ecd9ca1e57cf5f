//! A PostgreSQL of the test's own, in a directory of its own, that nobody else can reach.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use quorate_fence::sql::Transaction;
use tempfile::TempDir;

/// Where Debian has the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Only the name of the socket: nothing listens on the network.
const PORT: &str = "54321";

/// A server that runs until this is dropped.
pub(crate) struct Server {
    programs: PathBuf,
    directory: TempDir,
    /// PostgreSQL refuses to be root: whom it runs as instead.
    user: Option<(u32, u32)>,
}

impl Server {
    /// Starts one. Nothing, with a word, if there is no PostgreSQL; but not in CI.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var_os("CI").is_none_or(|value| value != "true"),
                "PostgreSQL is not installed"
            );
            eprintln!("left out: PostgreSQL is not installed");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let is_root = fs::metadata(directory.path()).unwrap().uid() == 0;
        let user = is_root.then(other_user);
        if let Some((user, group)) = user {
            chown(directory.path(), Some(user), Some(group)).unwrap();
        }
        let server = Self { programs, directory, user };
        server
            .run("initdb", &["-D", "data", "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync"]);
        let options = format!("-k {} -p {PORT} -c listen_addresses= -F", server.socket().display());
        server.run("pg_ctl", &["start", "-w", "-D", "data", "-l", "log", "-o", &options]);
        Some(server)
    }

    /// Where its socket is.
    fn socket(&self) -> &Path {
        self.directory.path()
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> Session {
        let mut psql = self.psql();
        psql.args(["--quiet", "--tuples-only", "--no-align"]);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = psql.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Session { child, stdin, stdout: BufReader::new(stdout), statements: 0 }
    }

    /// Its command line.
    pub(crate) fn psql(&self) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "-U", "test", "-d", "postgres", "-p", PORT, "-h"]);
        psql.arg(self.socket());
        psql
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(self.directory.path());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "{program} {arguments:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.run("pg_ctl", &["stop", "-w", "-D", "data", "-m", "immediate"]);
    }
}

/// Where the programs are: those of the newest version that Debian has, or what the path says.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let debian = versions.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).chain(debian).collect();
    places
        .retain(|place| ["initdb", "pg_ctl", "psql"].iter().all(|name| place.join(name).exists()));
    places.pop()
}

/// Somebody who is not root: the user that Debian's package makes, or nobody.
fn other_user() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    find("postgres").or_else(|| find("nobody")).unwrap()
}

/// A connection, by `psql`: every language has a client, and this one is there where the server is.
pub(crate) struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    statements: usize,
}

/// What the server said no with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SqlState(pub(crate) String);

impl Session {
    /// Does something that has no values: `BEGIN`.
    pub(crate) fn run(&mut self, statement: &str) -> Result<(Vec<String>, u64), SqlState> {
        // psql says after each statement what became of it.
        write!(self.stdin, "{statement};\n\\echo 'end' :SQLSTATE :ROW_COUNT\n").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "psql has ended");
            let line = line.trim_end_matches('\n');
            if let Some(end) = line.strip_prefix("end ") {
                let (state, rows) = end.split_once(' ').unwrap();
                if state != "00000" {
                    return Err(SqlState(state.into()));
                }
                return Ok((lines, rows.parse().unwrap()));
            }
            lines.push(line.to_owned());
        }
    }

    fn run_with(
        &mut self,
        statement: &str,
        values: &[&str],
    ) -> Result<(Vec<String>, u64), SqlState> {
        if values.is_empty() {
            return self.run(statement);
        }
        // As clients do: the statement is parsed with its places, the values come later.
        self.statements += 1;
        let name = format!("s{}", self.statements);
        let types = vec!["text"; values.len()].join(", ");
        self.run(&format!("PREPARE {name} ({types}) AS {statement}"))?;
        let values: Vec<_> =
            values.iter().map(|value| format!("'{}'", value.replace('\'', "''"))).collect();
        self.run(&format!("EXECUTE {name} ({})", values.join(", ")))
    }
}

impl Transaction for Session {
    type Error = SqlState;

    fn execute(&mut self, statement: &str, values: &[&str]) -> Result<u64, SqlState> {
        Ok(self.run_with(statement, values)?.1)
    }

    fn text(&mut self, statement: &str, values: &[&str]) -> Result<Option<String>, SqlState> {
        let (lines, _) = self.run_with(statement, values)?;
        assert_eq!(lines.len(), 1, "{lines:?}");
        // psql shows null as nothing, and no fence is empty.
        Ok(lines.into_iter().next().filter(|line| !line.is_empty()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // At the end of its input it ends.
        let _ = self.stdin.write_all(b"\\q\n");
        let _ = self.child.wait();
    }
}
