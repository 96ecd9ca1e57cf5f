//! A contact sheet: one picture of every algorithm and of every kind of picture, on one page.
//!
//! Pictures are judged by eye. This is the page to look at after a change of what is drawn.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::docs;
use crate::shell::{output_of, target};

/// Where they are put, below the folder of what is built.
const FOLDER: &str = "pictures";

/// Pictures beside those of each algorithm: a name, and what is typed.
const OTHERS: &[(&str, &str)] = &[
    ("views: a lock survives a crash", "sim mutex/raymond --over views --crash 1@5 --requests 1"),
    (
        "views: a group changes",
        "sim group/virtual-synchrony --nodes 4 --members 3 --join 4@5 \
                                --crash 2@8 --detect 3 --senders 1 --messages 3",
    ),
    (
        "a partition",
        "sim group/extended-virtual-synchrony --nodes 4 --detect 3 --senders 1 \
                     --messages 2 --partition 1,2|3,4@4..14 --until 30",
    ),
    ("suspicions", "sim detector/heartbeat --nodes 4 --crash 3@45 --recover 3@120 --until 200"),
    ("reliable links", "sim mutex/central --nodes 3 --requests 1 --over reliable --loss 0.2"),
    (
        "a stretch of time, large letters",
        "sim mutex/lamport --nodes 4 --from 2 --to 8 \
                                          --font-size 20",
    ),
    ("a counterexample: two leaders", "check election/bully --crashes 1 --timers anytime"),
    (
        "a counterexample: a lost message",
        "check group/nack-multicast --senders 1 --losses 1 \
                                          --timers quiet --heartbeat off --stop 0",
    ),
    ("quorums: a grid", "quorum grid 9"),
    ("quorums: a plane", "quorum projective-plane 31"),
    ("quorums: a tree", "quorum tree 15"),
    ("quorums: a wall", "quorum crumbling-wall 10"),
    ("quorums: weights", "quorum weighted --weights 3,1,1,1,1"),
    ("a chart: mutual exclusion", "compare mutex --nodes 4,9,16"),
    ("a chart: detectors", "compare detector"),
];

/// What elections and groups are told, so that a run fits into a picture.
const SMALL: &[(&str, &str)] = &[
    ("mutex/", "--nodes 4 --requests 1"),
    ("election/", "--nodes 6"),
    ("detector/", "--nodes 4 --crash 3@25 --until 80"),
    ("group/", "--nodes 4 --senders 2 --messages 2 --until 40"),
    ("service/seat", "--nodes 3 --lease 50 --crash 2@40 --until 60"),
    ("service/", "--nodes 3 --until 40"),
];

/// Draws them all.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let program = docs::build(root)?;
    let folder = target(root)?.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let algorithms = docs::names(root)?.into_iter().map(|name| {
        let small = SMALL.iter().find(|(family, _)| name.starts_with(family));
        let words = format!("sim {name} {}", small.map_or("", |(_, small)| *small));
        (name, words)
    });
    let others = OTHERS.iter().map(|(name, words)| ((*name).to_owned(), (*words).to_owned()));
    let mut figures = Vec::new();
    for (name, words) in algorithms.chain(others) {
        let file = format!("{}.svg", name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = Command::new(&program);
        // A counterexample leaves its trace where it was found.
        command.current_dir(&folder).args(&words).args(["--svg", &file]);
        // What is violated is drawn as well: only a missing picture is a failure.
        let _ = output_of(command);
        if !folder.join(&file).exists() {
            return Err(format!("`quorate {} --svg {file}` drew nothing", words.join(" ")));
        }
        figures.push((name, words.join(" "), file));
    }
    let page = folder.join("index.html");
    fs::write(&page, sheet(&figures)).map_err(|error| format!("{}: {error}", page.display()))?;
    println!("{} pictures: {}", figures.len(), page.display());
    Ok(())
}

fn sheet(figures: &[(String, String, String)]) -> String {
    let mut page = String::from(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Pictures</title>\n<style>\n\
         body { font-family: system-ui, sans-serif; margin: 24px; }\n\
         main { display: grid; grid-template-columns: repeat(auto-fill, minmax(520px, 1fr)); gap: 20px; }\n\
         figure { margin: 0; border: 1px solid #ccc; padding: 8px; }\n\
         img { width: 100%; }\n\
         </style>\n<main>\n",
    );
    for (name, words, file) in figures {
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            page,
            "<figure><figcaption><b>{name}</b><br><code>quorate {words}</code></figcaption>\
             <a href=\"{file}\"><img src=\"{file}\" alt=\"{name}\"></a></figure>"
        );
    }
    page.push_str("</main>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_on_the_sheet() {
        let figure = |name: &str| (name.to_owned(), "sim a/b".to_owned(), format!("{name}.svg"));
        let page = sheet(&[figure("one"), figure("two")]);
        assert_eq!(page.matches("<figure>").count(), 2);
        assert!(page.contains("src=\"two.svg\""));
    }
}
