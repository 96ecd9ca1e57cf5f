//! What the colours and signs mean: only those that occur.

use std::fmt::Write;

use super::svg::{SUSPICION, colour, dash, escape, fill, is_hollow};
use super::{Change, Fate, Mark, Phase, Picture, Seen, What};

const ITEM_GAP: f64 = 18.0;
const SIGN: f64 = 26.0;
const LINE: f64 = 20.0;

/// Appends the legend, wrapped to `width`, and returns the height of what comes below it.
pub(super) fn draw(out: &mut String, picture: &Picture, left: f64, top: f64, width: f64) -> f64 {
    let (mut x, mut y) = (left, top);
    for (sign, words) in items(picture) {
        let need = SIGN + 6.0 + text_width(&words);
        if x > left && x + need > left + width {
            (x, y) = (left, y + LINE);
        }
        let _ = writeln!(
            out,
            "<g transform=\"translate({x:.1} {y:.1})\">{sign}\
             <text x=\"{:.0}\" y=\"4\">{}</text></g>",
            SIGN + 6.0,
            escape(&words)
        );
        x += need + ITEM_GAP;
    }
    y + LINE
}

/// A good guess, as fonts differ.
fn text_width(text: &str) -> f64 {
    text.chars().map(|c| if c.is_uppercase() { 7.8 } else { 6.2 }).sum()
}

fn items(picture: &Picture) -> Vec<(String, String)> {
    let mut items = Vec::new();
    for (kind, name) in picture.kinds.iter().enumerate() {
        let (colour, dash) = (colour(kind), dash(kind));
        let fill = if is_hollow(kind) { "#fff" } else { colour };
        let sign = format!(
            "<path d=\"M0 0H20\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash}/>\
             <path d=\"M26 0L17 -4L17 4Z\" fill=\"{fill}\" stroke=\"{colour}\"/>"
        );
        items.push((sign, name.clone()));
    }
    let has = |test: fn(Fate) -> bool| picture.arrows.iter().any(|arrow| test(arrow.fate));
    if has(|fate| matches!(fate, Fate::Lost(_))) {
        let sign = "<path d=\"M0 0H18\" stroke=\"#555\" stroke-width=\"1.6\" \
                    stroke-dasharray=\"5 3\"/><path d=\"M17 -4l8 8m0 -8l-8 8\" stroke=\"#555\" \
                    stroke-width=\"2\"/>";
        items.push((sign.into(), "lost".into()));
    }
    if has(|fate| fate == Fate::InFlight) {
        let sign = "<path d=\"M0 0H22\" stroke=\"#555\" stroke-width=\"1.6\" \
                    stroke-dasharray=\"5 3\"/><circle cx=\"23\" cy=\"0\" r=\"2.5\" fill=\"#fff\" \
                    stroke=\"#555\"/>";
        items.push((sign.into(), "under way at the end".into()));
    }
    if picture.arrows.iter().any(|arrow| arrow.copy_of.is_some()) {
        let sign = "<path d=\"M0 0H18\" stroke=\"#555\" stroke-width=\"1.6\" \
                    stroke-dasharray=\"1.5 3\"/><path d=\"M26 0L18 -4L18 4ZM19 0L11 -4L11 4Z\" \
                    fill=\"#555\"/>";
        items.push((sign.into(), "a further copy".into()));
    }
    items.extend(phases(picture));
    if !picture.suspicions.is_empty() {
        let sign = format!("<rect y=\"-2\" width=\"26\" height=\"4\" fill=\"{SUSPICION}\"/>");
        items.push((sign, "suspects a node".into()));
    }
    if !picture.setting.splits.is_empty() {
        let sign = "<rect y=\"-5\" width=\"26\" height=\"10\" fill=\"#FBE3E0\"/>\
                    <path d=\"M0 0H26\" stroke=\"#C00000\" stroke-dasharray=\"4 3\"/>";
        items.push((sign.into(), "the network is cut".into()));
    }
    items.extend(marks(picture));
    if !picture.guilty.is_empty() {
        let sign =
            "<circle cx=\"19\" r=\"7\" stroke=\"#C00000\" stroke-width=\"2\" fill=\"none\"/>";
        items.push((sign.into(), "has to do with the violation".into()));
    }
    items
}

fn phases(picture: &Picture) -> impl Iterator<Item = (String, String)> {
    let phases = [
        (Phase::Wanting, "wanting"),
        (Phase::Inside, "inside"),
        (Phase::Leading, "leading"),
        (Phase::Member, "member of a view"),
        (Phase::Still, "stands still until the next view"),
    ];
    let occur = |phase| picture.bars.iter().any(|bar| bar.phase == phase);
    phases.into_iter().filter(move |(phase, _)| occur(*phase)).map(|(phase, words)| {
        let sign = format!("<rect x=\"0\" y=\"-5\" width=\"26\" height=\"10\" {}/>", fill(phase));
        (sign, words.to_string())
    })
}

fn marks(picture: &Picture) -> impl Iterator<Item = (String, String)> {
    let kinds = [
        (Mark::Crash, "crash"),
        (Mark::Pause, "pause"),
        (Mark::Recover, "recovery"),
        (Mark::Wish, "wish"),
        (Mark::Told, "told"),
        (Mark::Timer, "timer ran out"),
        (Mark::Detector, "failure detector"),
    ];
    let mut items: Vec<(Mark, &'static str)> = Vec::new();
    for (wanted, usual) in kinds {
        for event in &picture.events {
            let What::Mark(mark, _) = &event.what else { continue };
            let item = (wanted, event.seen.word.unwrap_or(usual));
            if *mark == wanted && is_drawn(*mark, event.seen) && !items.contains(&item) {
                items.push(item);
            }
        }
    }
    items.into_iter().map(|(mark, words)| {
        (format!("<g transform=\"translate(19 0)\">{}</g>", sign(mark)), words.to_string())
    })
}

/// Is the mark drawn as a sign of its own? Not if a bar begins or ends there.
pub(super) const fn is_drawn(mark: Mark, seen: Seen) -> bool {
    match mark {
        Mark::Refused | Mark::Violation => false,
        Mark::Wish => seen.change.is_none(),
        Mark::Told => {
            !matches!(seen.change, Some(Change::Begin(_) | Change::Suspect(_) | Change::Trust(_)))
        }
        _ => true,
    }
}

/// A sign on a process line, around the origin.
pub(super) const fn sign(mark: Mark) -> &'static str {
    match mark {
        Mark::Pause => "<path d=\"M-3 -6V6M3 -6V6\" stroke=\"#777\" stroke-width=\"2\"/>",
        Mark::Crash => {
            "<path d=\"M-6 -6L6 6M6 -6L-6 6\" stroke=\"#fff\" stroke-width=\"6\"/>\
             <path d=\"M-6 -6L6 6M6 -6L-6 6\" stroke=\"#C00000\" stroke-width=\"3\"/>"
        }
        Mark::Recover => {
            "<circle r=\"5.5\" fill=\"#fff\" stroke=\"#009E73\" stroke-width=\"2.5\"/>"
        }
        Mark::Wish => "<circle r=\"4.5\" fill=\"#222\" stroke=\"#fff\"/>",
        Mark::Told | Mark::Refused | Mark::Violation => {
            "<circle r=\"3.6\" fill=\"#fff\" stroke=\"#222\" stroke-width=\"1.6\"/>"
        }
        Mark::Timer => {
            "<path d=\"M-4 -5.5H4L-4 5.5H4Z\" fill=\"#fff\" stroke=\"#444\" stroke-width=\"1.4\"/>"
        }
        Mark::Detector => "<path d=\"M0 -5L5 4H-5Z\" fill=\"#fff\" stroke=\"#444\"/>",
    }
}
