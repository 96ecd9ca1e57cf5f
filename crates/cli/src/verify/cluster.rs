//! `quorate verify --cluster DIR`.

use std::path::Path;

use quorate_lab::BadInput;
use quorate_service::history::files::{Gathered, gather};
use quorate_service::history::{Finding, Judgement, Record, Terms, Verdict, Word};
use serde_json::{Map, Value, json};

use crate::Done;
use crate::output::{self, counted};

/// The most violations that are shown.
const FINDINGS_MAX: usize = 20;

/// Judges all histories below a folder.
pub(super) fn run(folder: &Path, as_json: bool) -> Result<Done, BadInput> {
    let gathered = gather(folder).map_err(|why| BadInput::new("--cluster", why))?;
    let judgement = gathered.history.judge(Terms::default());
    if as_json {
        output::print_json(&report(&gathered, &judgement));
    } else {
        output::print_line(&summary(&gathered, &judgement));
    }
    Ok(if judgement.holds() { Done::Holds } else { Done::Violated })
}

fn summary(gathered: &Gathered, judgement: &Judgement) -> String {
    let row = |verdict: &Verdict| {
        let word = match verdict.word {
            Word::Holds => output::paint(output::green(), verdict.word.word()),
            Word::Violated => output::paint(output::red(), verdict.word.word()),
            Word::Unfinished | Word::NotExercised => verdict.word.word().to_owned(),
        };
        let (rule, tested) = (verdict.rule, verdict.tested.to_string());
        vec![rule.name().to_owned(), word, tested, rule.promise().to_owned()]
    };
    let rows = judgement.verdicts.iter().map(row).collect();
    let mut lines = vec![read(gathered, judgement)];
    lines.push(output::table(&["rule", "verdict", "tested", "what it promises"], rows, &[2]));
    for finding in judgement.findings.iter().take(FINDINGS_MAX) {
        let violated =
            output::paint(output::red(), &format!("{} is violated", finding.rule.name()));
        lines.push(format!("{violated}: {}", finding.text));
        lines.extend(evidence(gathered, finding).map(|record| format!("  {}", line(record))));
    }
    let left_off = judgement.findings.len().saturating_sub(FINDINGS_MAX);
    if left_off > 0 {
        lines.push(format!("and {}", counted(left_off, "more violation")));
    }
    lines.join("\n")
}

/// What was read, in one line.
fn read(gathered: &Gathered, judgement: &Judgement) -> String {
    let holds = match judgement.holds() {
        true => output::paint(output::green(), "holds"),
        false => output::paint(output::red(), "violated"),
    };
    let mut parts = vec![
        counted(gathered.history.records().len(), "record"),
        counted(judgement.processes, "process").replace("processs", "processes"),
        counted(judgement.views, "view"),
        counted(judgement.grants, "grant"),
    ];
    if let Some(healed) = judgement.healed_after {
        parts.push(format!("all seated {} ms after healing", output::rounded(healed.in_units())));
    }
    if gathered.torn > 0 {
        parts.push(format!("{} ending in half a line", counted(gathered.torn, "file")));
    }
    format!("{holds}: {} with {}", counted(gathered.files, "file"), parts.join(", "))
}

fn evidence<'a>(gathered: &'a Gathered, finding: &Finding) -> impl Iterator<Item = &'a Record> {
    let records = gathered.history.records();
    finding.between.map(|place| &records[place]).into_iter()
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

fn report(gathered: &Gathered, judgement: &Judgement) -> Map<String, Value> {
    let found = |finding: &Finding| {
        let evidence: Vec<_> = evidence(gathered, finding).map(|record| json!(record)).collect();
        json!({ "property": finding.rule.name(), "text": finding.text, "evidence": evidence })
    };
    let shown = judgement.findings.iter().take(FINDINGS_MAX);
    let violations: Vec<_> = shown.map(found).collect();
    let verdict = |verdict: &Verdict| (verdict.rule.name().to_owned(), json!(verdict.word.word()));
    let tested = |verdict: &Verdict| (verdict.rule.name().to_owned(), json!(verdict.tested));
    let fields = [
        ("files", json!(gathered.files)),
        ("torn", json!(gathered.torn)),
        ("records", json!(gathered.history.records().len())),
        ("processes", json!(judgement.processes)),
        ("views", json!(judgement.views)),
        ("grants", json!(judgement.grants)),
        ("healed_after_ms", json!(judgement.healed_after.map(|span| span.in_units()))),
        ("verdicts", Value::Object(judgement.verdicts.iter().map(verdict).collect())),
        ("tested", Value::Object(judgement.verdicts.iter().map(tested).collect())),
        ("holds", json!(judgement.holds())),
        ("violation", json!(violations.first())),
        ("left_off", json!(judgement.findings.len() - violations.len())),
        ("violations", Value::Array(violations)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
