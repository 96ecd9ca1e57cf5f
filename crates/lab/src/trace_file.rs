//! Traces as files: what an engine wrote, read back into the records that it was written from.
//!
//! A file comes from anywhere, so nothing in it is believed: whatever is wrong is one sentence with
//! the number of its line, and every length has a limit.

mod line;

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use quorate_core::trace::{END, Header, Record};

/// The longest line that is read, in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// The most records that are read.
pub const RECORDS_MAX: usize = 10_000_000;
/// The most nodes that a header may announce.
pub const NODES_MAX: usize = crate::NODES_MAX;

/// A complete trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceFile {
    /// Who wrote it and what is needed to run it again.
    pub header: Header,
    /// What happened, in order.
    pub records: Vec<Record>,
}

/// Why a trace cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTrace {
    /// The number of the line at fault, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub fault: String,
}

impl fmt::Display for BadTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}

impl std::error::Error for BadTrace {}

impl TraceFile {
    /// Writes it: the header, one line per record, the end line.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.header)?;
        for record in &self.records {
            writeln!(out, "{record}")?;
        }
        writeln!(out, "{END}")
    }

    /// Reads one. Text in memory is read as `TraceFile::read(text.as_bytes())`.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(input: impl BufRead) -> Result<Self, BadTrace> {
        Self::read_at_most(input, RECORDS_MAX)
    }

    fn read_at_most(input: impl BufRead, records_max: usize) -> Result<Self, BadTrace> {
        let mut lines = Lines { input, number: 0, line: Vec::new() };
        let Some(first) = lines.next()? else { return Err(lines.fault("the trace is empty")) };
        let header = line::header(first).map_err(|fault| lines.fault(fault))?;
        let mut records = Vec::new();
        loop {
            let Some(text) = lines.next()? else { return Err(lines.fault(CUT_OFF)) };
            if text == END {
                break;
            }
            match line::record(text, header.nodes) {
                Ok(_) if records.len() == records_max => {
                    let fault = format!("there are more than {records_max} records");
                    return Err(lines.fault(fault));
                }
                Ok(record) => records.push(record),
                Err(_) if lines.is_torn() => return Err(lines.fault(CUT_OFF)),
                Err(fault) => return Err(lines.fault(fault)),
            }
        }
        if lines.next()?.is_some() {
            return Err(lines.fault("something follows the end line"));
        }
        Ok(Self { header, records })
    }
}

/// Reads a header.
///
/// # Errors
/// What is wrong with it.
pub fn header(text: &str) -> Result<Header, String> {
    line::header(text)
}

/// Reads one record of a run of so many nodes.
///
/// # Errors
/// What is wrong with it.
pub fn record(text: &str, nodes: usize) -> Result<Record, String> {
    line::record(text, nodes)
}

const CUT_OFF: &str = "the trace is cut off: it has no end line";

struct Lines<R> {
    input: R,
    number: usize,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The next line without its end, if there is one.
    fn next(&mut self) -> Result<Option<&str>, BadTrace> {
        self.number += 1;
        self.line.clear();
        // One more than the limit and the line's end: so that too much is seen as such.
        let room = LINE_BYTES_MAX as u64 + 2;
        if let Err(error) = self.input.by_ref().take(room).read_until(b'\n', &mut self.line) {
            return Err(self.fault(format!("it cannot be read: {error}")));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        // As some systems end lines.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LINE_BYTES_MAX {
            return Err(self.fault(format!("it is longer than {LINE_BYTES_MAX} bytes")));
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(self.fault("it is not UTF-8 text")),
        }
    }

    /// The line read last has no end, hence is the last one and maybe not whole.
    fn is_torn(&self) -> bool {
        !self.line.ends_with(b"\n")
    }

    fn fault(&self, fault: impl Into<String>) -> BadTrace {
        BadTrace { line: self.number, fault: fault.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_records_are_an_error_and_not_a_full_memory() {
        let header = r#"{"quorate":1,"engine":"sim","algorithm":"a/b","nodes":1,"spec":{}}"#;
        let start = r#"{"t":0,"n":1,"in":"start"}"#;
        let text = format!("{header}\n{start}\n{start}\n{start}\n{END}\n");
        assert_eq!(TraceFile::read_at_most(text.as_bytes(), 3).unwrap().records.len(), 3);
        let bad = TraceFile::read_at_most(text.as_bytes(), 2).unwrap_err();
        assert_eq!(bad.to_string(), "line 4: there are more than 2 records");
    }
}
