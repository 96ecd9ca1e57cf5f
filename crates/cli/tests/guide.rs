//! The commands of the guide, as a reader would type them, and the pictures that they make.
//!
//! `BLESS=1 cargo test -p quorate-cli --test guide` writes the pictures of the guide anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of a page, and the exit code that the page says it has.
struct Said {
    page: String,
    arguments: Vec<String>,
    exit: i32,
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// The words of a command line; quotation marks keep some together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn said(page: &str, line: &str) -> Said {
    let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
    let exit = i32::from(comment.trim_start().starts_with("exit 1"));
    Said { page: page.to_owned(), arguments: words(command).split_off(1), exit }
}

/// The lines of a page that are commands.
fn commands_of(page: &str) -> Vec<Said> {
    let text = fs::read_to_string(guide().join(page)).expect("the page is there");
    let lines = text.lines().filter(|line| line.starts_with("quorate "));
    lines.map(|line| said(page, line)).collect()
}

/// The commands in the cells of a table.
fn cells_of(page: &str) -> Vec<Said> {
    let text = fs::read_to_string(guide().join(page)).expect("the page is there");
    let spans = text.split('`').filter(|span| span.starts_with("quorate "));
    spans.map(|span| said(page, span)).collect()
}

/// Runs a command where nothing else is.
fn run(folder: &Path, said: &Said) {
    let Said { page, arguments, exit } = said;
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(*exit),
        "{page}: quorate {}\n{text}\n{out}",
        arguments.join(" ")
    );
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

/// The pages of the path, in order.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(guide().join("lectures")).expect("the folder is there");
    let name = |entry: fs::DirEntry| format!("lectures/{}", entry.file_name().to_string_lossy());
    let mut pages: Vec<_> = entries.map(|entry| name(entry.expect("it can be read"))).collect();
    pages.sort();
    pages
}

#[test]
fn the_commands_of_the_path_do_what_it_says() {
    let pages = pages();
    assert_eq!(pages.len(), 12);
    let folder = folder("path");
    for page in &pages {
        let commands = commands_of(page);
        assert!(commands.len() > 3, "{page} has too few commands to try");
        commands.iter().for_each(|said| run(&folder, said));
        let text = fs::read_to_string(guide().join(page)).expect("the page is there");
        for picture in text.split("](../../pictures/").skip(1) {
            let name = picture.split(')').next().expect("it ends");
            let kept = guide().join("../pictures").join(name);
            let made = fs::read_to_string(folder.join(name)).expect("a command makes the picture");
            if std::env::var_os("BLESS").is_some() {
                fs::write(&kept, &made).expect("it can be written");
            }
            let kept = fs::read_to_string(kept).unwrap_or_default();
            assert!(kept == made, "docs/pictures/{name} is not what the command makes: BLESS=1");
        }
    }
}

#[test]
fn the_commands_of_the_table_work() {
    let folder = folder("table");
    let commands = cells_of("lectures.md");
    assert!(commands.len() > 50);
    commands.iter().for_each(|said| run(&folder, said));
}

#[test]
fn the_files_of_the_table_are_there() {
    let root = guide().join("../..");
    let text = fs::read_to_string(guide().join("lectures.md")).expect("the page is there");
    let files = text.split('`').filter(|span| span.ends_with(".rs") && !span.contains(' '));
    for file in files {
        let below = [file.to_owned(), format!("crates/algorithms/src/{file}")];
        let near = format!("crates/quorum/src/{file}");
        let found = below.iter().chain([&near]).any(|path| root.join(path).exists());
        assert!(found, "{file} is not there");
    }
}
