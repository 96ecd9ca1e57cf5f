//! Tables, traces and pictures.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use quorate_core::Time;
use quorate_core::trace::{END, Header, Record};
use quorate_lab::diagram::{self, Picture};
use quorate_lab::trace_file::RECORDS_MAX;
use quorate_lab::{BadInput, Figure, Number, read_time, server, shiviz};
use quorate_sim::Verdict;
use serde_json::{Map, Value};

use crate::arguments::{FileArguments, PictureArguments};

/// So many steps are kept for a picture.
const PICTURE_STEPS_MAX: usize = 200_000;
/// How wide the terminal is taken to be if it does not say.
const WIDTH: usize = 100;

/// Prints the one JSON object.
pub(crate) fn print_json(json: &Map<String, Value>) {
    print_line(&serde_json::to_string_pretty(json).unwrap_or_default());
}

/// What went wrong with standard output first.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints to standard output.
pub(crate) fn print_line(text: &str) {
    let mut out = anstream::stdout().lock();
    wrote(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Keeps what went wrong with standard output; a reader that has gone away is no error.
pub(crate) fn wrote(result: io::Result<()>) {
    if let Err(error) = result
        && error.kind() != io::ErrorKind::BrokenPipe
        && let Ok(mut failure) = FAILURE.lock()
    {
        failure.get_or_insert(error);
    }
}

/// What went wrong with standard output, if something did.
pub(crate) fn failure() -> Option<io::Error> {
    FAILURE.lock().ok()?.take()
}

/// How many columns there are to write in: what the terminal says, or `COLUMNS`.
pub(crate) fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    said.or_else(seen).filter(|&width| width > 0).unwrap_or(WIDTH)
}

/// Prints text, broken between words where a line is full.
pub(crate) fn print_text(text: &str) {
    for line in text.lines() {
        match diagram::wrap(line, width()) {
            lines if lines.is_empty() => print_line(""),
            lines => print_line(&lines.join("\n")),
        }
    }
}

/// A table without lines, numbers to the right. The first `keys` columns name the rows: a table that
/// is too wide becomes several, one below the other, and each of them begins with these.
pub(crate) fn keyed_table(
    header: &[&str],
    rows: Vec<Vec<String>>,
    right: &[usize],
    keys: usize,
) -> String {
    let blocks = blocks(&column_widths(header, &rows), header, keys, width());
    let blocks = blocks.iter().map(|columns| {
        let pick =
            |row: &Vec<String>| columns.iter().filter_map(|&i| row.get(i).cloned()).collect();
        let header: Vec<_> = columns.iter().filter_map(|&i| header.get(i).copied()).collect();
        let right = columns.iter().enumerate().filter(|(_, column)| right.contains(column));
        let right: Vec<_> = right.map(|(i, _)| i).collect();
        table(&header, rows.iter().map(pick).collect(), &right)
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// How wide every column of a table is, with what separates it from the next one.
fn column_widths(header: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0).max(header.len());
    let mut widths = vec![0; count];
    let shown = |text: &str| anstream::adapter::strip_str(text).to_string().chars().count() + 2;
    for (i, width) in widths.iter_mut().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(i)).map(|cell| shown(cell));
        *width = cells.chain(header.get(i).map(|name| shown(name))).max().unwrap_or(0);
    }
    widths
}

/// Which columns stand in which of the tables below each other. What theory says stands beside what
/// was measured.
fn blocks(widths: &[usize], header: &[&str], keys: usize, width: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..widths.len()).collect();
    let of = |columns: &[usize]| columns.iter().map(|&i| widths[i]).sum::<usize>();
    if header.is_empty() || of(&all) <= width || widths.len() <= keys {
        return vec![all];
    }
    let (key, rest) = all.split_at(keys);
    let goes_with_the_next = |i: usize| header.get(i + 1) == Some(&"theory");
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for units in rest.chunk_by(|&i, _| goes_with_the_next(i)) {
        match blocks.last_mut() {
            Some(block) if of(block) + of(units) <= width => block.extend(units),
            _ => blocks.push([key, units].concat()),
        }
    }
    blocks
}

/// A table without lines, numbers to the right. What does not fit into its column is broken between
/// words.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>, right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width()).unwrap_or(u16::MAX));
    if !header.is_empty() {
        table.set_header(header.iter().map(|name| paint(bold(), name)));
    }
    for row in rows {
        table.add_row(row);
    }
    for &index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// What was measured, one line each.
pub(crate) fn figures(named: &[(&str, Figure)]) -> String {
    let mut rows = Vec::new();
    for (name, figure) in named {
        let name = words(name);
        match figure {
            Figure::Parts(parts) => rows.extend(parts.iter().map(|(part, number)| {
                vec![format!("  {name} {}", words(part)), shown_number(*number)]
            })),
            figure => rows.push(vec![format!("  {name}"), shown(figure)]),
        }
    }
    table(&[], rows, &[1])
}

/// A name as people read it.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn shown(figure: &Figure) -> String {
    match figure {
        Figure::Number(number) => shown_number(*number),
        Figure::Parts(parts) => {
            let parts =
                parts.iter().map(|(part, number)| format!("{part} {}", shown_number(*number)));
            parts.collect::<Vec<_>>().join(", ")
        }
        Figure::Flag(flag) => flag.to_string(),
        Figure::Word(word) => word.clone(),
        Figure::Verdict(verdict) => match verdict {
            Verdict::Holds => paint(green(), verdict.word()),
            Verdict::Violated(..) => paint(red(), verdict.word()),
            Verdict::Unfinished | Verdict::NotExercised | Verdict::NotClaimed => {
                verdict.word().to_owned()
            }
        },
    }
}

fn shown_number(number: Number) -> String {
    match number {
        Number::Count(count) => count.to_string(),
        Number::Real(real) => rounded(real),
        Number::None => "-".to_owned(),
    }
}

/// A number with four digits behind the point at most.
pub(crate) fn rounded(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// So many of them.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// So many nodes, of which one may be there for the others.
pub(crate) fn nodes(algorithm: &str, count: usize) -> String {
    match server(algorithm) {
        Some(server) => format!("{} and {server}", counted(count.saturating_sub(1), "node")),
        None => counted(count, "node"),
    }
}

/// Text in a style that is dropped where there are no colours.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

pub(crate) const fn bold() -> Style {
    Style::new().bold()
}

pub(crate) const fn green() -> Style {
    AnsiColor::Green.on_default()
}

pub(crate) const fn red() -> Style {
    AnsiColor::Red.on_default().bold()
}

/// Takes the steps of a run as they come: writes them down, and keeps them for a picture.
pub(crate) struct Steps<'a> {
    files: &'a FileArguments,
    header: &'a Header,
    out: Option<BufWriter<File>>,
    records: Vec<Record>,
    taken: usize,
    failed: Option<BadInput>,
}

impl<'a> Steps<'a> {
    /// Opens what has to be written.
    pub(crate) fn new(files: &'a FileArguments, header: &'a Header) -> Result<Self, BadInput> {
        if files.trace.is_some() && files.trace == files.picture.svg {
            return Err(BadInput::new("--svg", "it is the file of the trace"));
        }
        let (out, records, failed) = (None, Vec::new(), None);
        let mut steps = Self { files, header, out, records, taken: 0, failed };
        if let Some(path) = &files.trace {
            let file = File::create(path).map_err(|error| bad_file("--trace", path, &error))?;
            steps.out = Some(BufWriter::new(file));
            steps.write_line(header);
        }
        Ok(steps)
    }

    /// Does anybody want to see the steps?
    pub(crate) fn wanted(&self) -> bool {
        self.out.is_some() || self.drawn()
    }

    fn drawn(&self) -> bool {
        self.files.picture.is_wanted() || self.files.shiviz.is_some()
    }

    /// Takes the next step.
    pub(crate) fn take(&mut self, record: Record) {
        self.taken += 1;
        if self.taken > RECORDS_MAX && self.files.trace.is_some() {
            let reason =
                format!("the run has more than {RECORDS_MAX} steps, and nobody reads that");
            self.failed.get_or_insert(BadInput::new("--trace", reason));
        } else {
            self.write_line(&record);
        }
        if self.drawn() && self.records.len() <= PICTURE_STEPS_MAX {
            self.records.push(record);
        }
    }

    fn write_line(&mut self, line: &dyn std::fmt::Display) {
        let Some((out, path)) = self.out.as_mut().zip(self.files.trace.as_ref()) else { return };
        if let Err(error) = writeln!(out, "{line}") {
            self.failed.get_or_insert(bad_file("--trace", path, &error));
        }
    }

    /// Ends the trace and draws the pictures.
    pub(crate) fn finish(mut self, title: &str) -> Result<(), BadInput> {
        self.write_line(&END);
        if let Some((out, path)) = self.out.as_mut().zip(self.files.trace.as_ref())
            && let Err(error) = out.flush()
        {
            self.failed.get_or_insert(bad_file("--trace", path, &error));
        }
        if let Some(bad) = self.failed {
            return Err(bad);
        }
        if !self.drawn() {
            return Ok(());
        }
        if self.records.len() > PICTURE_STEPS_MAX {
            let PictureArguments { draw, svg, .. } = &self.files.picture;
            let argument = match (draw, svg) {
                (true, _) => "--draw",
                (false, Some(_)) => "--svg",
                (false, None) => "--shiviz",
            };
            let reason = format!(
                "the run has more than {PICTURE_STEPS_MAX} steps; take fewer nodes or --until TIME"
            );
            return Err(BadInput::new(argument, reason));
        }
        if let Some(path) = &self.files.shiviz {
            write_log(self.header.nodes, &self.records, path)?;
        }
        self.files.picture.draw(Picture::of(self.header, &self.records), title)
    }
}

/// Writes a run as a log with vector clocks.
pub(crate) fn write_log(nodes: usize, records: &[Record], path: &Path) -> Result<(), BadInput> {
    let long = || BadInput::new("--shiviz", "its clocks would be too long; take fewer nodes");
    let log = shiviz::log(nodes, records).ok_or_else(long)?;
    std::fs::write(path, log).map_err(|error| bad_file("--shiviz", path, &error))
}

/// The smallest and the largest letters that a diagram is drawn with, in pixels.
const FONT_PX: std::ops::RangeInclusive<f64> = 6.0..=60.0;

impl PictureArguments {
    /// Is anything to be drawn?
    pub(crate) const fn is_wanted(&self) -> bool {
        self.draw || self.svg.is_some()
    }

    /// Draws a run, into a file, on the terminal, or both.
    pub(crate) fn draw(&self, picture: Picture, title: &str) -> Result<(), BadInput> {
        let time = |argument, text: &Option<String>| {
            let text = text.as_deref().map(|text| read_time(argument, text)).transpose();
            text.map(|span| span.map(|span| Time::ZERO + span))
        };
        let (from, to) = (time("--from", &self.from)?, time("--to", &self.to)?);
        if let (Some(from), Some(to)) = (from, to)
            && to <= from
        {
            return Err(BadInput::new("--to", "it is not after --from"));
        }
        if let Some(px) = self.font_size.filter(|px| !FONT_PX.contains(px)) {
            let (least, most) = (FONT_PX.start(), FONT_PX.end());
            let reason = format!("{px} is not a number of pixels from {least} to {most}");
            return Err(BadInput::new("--font-size", reason));
        }
        if !self.is_wanted() {
            return Ok(());
        }
        let picture = picture.between(from, to);
        if let Some(path) = &self.svg {
            let title = self.title.clone().unwrap_or_else(|| title.to_owned());
            let style = diagram::Style { title, caption: String::new(), font_px: self.font_size };
            let text = picture.svg(&style).map_err(|error| BadInput::new("--svg", error))?;
            std::fs::write(path, text).map_err(|error| bad_file("--svg", path, &error))?;
        }
        if self.draw {
            print_line(&picture.unicode(width()));
        }
        Ok(())
    }
}

/// A file that cannot be written.
pub(crate) fn bad_file(argument: &str, path: &Path, error: &std::io::Error) -> BadInput {
    BadInput::new(argument, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_is_broken_between_columns_and_names_its_rows_again() {
        let header = ["algorithm", "nodes", "light", "theory", "heavy", "theory", "crash"];
        let widths = [20, 7, 8, 12, 8, 12, 10];
        assert_eq!(blocks(&widths, &header, 2, 80), [vec![0, 1, 2, 3, 4, 5, 6]]);
        let narrow = [vec![0, 1, 2, 3], vec![0, 1, 4, 5], vec![0, 1, 6]];
        assert_eq!(blocks(&widths, &header, 2, 50), narrow);
        assert_eq!(blocks(&widths, &header, 2, 10), narrow, "there is no way to be narrower");
        assert_eq!(blocks(&widths, &[], 2, 10), [vec![0, 1, 2, 3, 4, 5, 6]]);
    }
}
