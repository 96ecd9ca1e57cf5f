//! `quorate doctor`: tries the whole chain on the live cluster, and says what is wrong and what to do.
//!
//! It takes a lock, finds it taken, has it taken away by force, takes it again with a larger fence, and
//! kills a holder of its own; it looks at links, clocks, disks and certificates. Its lock has a name of
//! its own, so that nobody is kept waiting.

mod chain;
mod look;

use std::path::{Path, PathBuf};

use clap::Args;
use quorate_member::{Offline, Status};
use serde::Serialize;

use crate::Failure;
use crate::client::{self, Where};
use crate::operations::Diagnosis;

/// What is examined.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorOptions {
    #[command(flatten)]
    at: Where,
    /// For programs
    #[arg(long)]
    json: bool,
    /// Only says whether it takes locks: exit code 0 if it does, else 1
    #[arg(long)]
    ready: bool,
    /// Only looks, and takes no lock
    #[arg(long)]
    look: bool,
    /// Has a seed that does not run forget to whom it is pledged; name its directory with --data
    #[arg(long, requires = "data")]
    clear_pledge: bool,
    /// The data directory of a seed that does not run
    #[arg(long, value_name = "DIR", requires = "clear_pledge")]
    data: Option<PathBuf>,
}

/// How things stand with one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// As it should be.
    Well,
    /// It works, and will not for long, or not in every case.
    Poor,
    /// It does not work.
    Wrong,
}

/// Something that was examined.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Finding {
    /// What.
    pub(crate) what: &'static str,
    pub(crate) verdict: Verdict,
    /// What was seen.
    pub(crate) seen: String,
    /// What to do, if something is to be done.
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(crate) fn well(what: &'static str, seen: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Well, seen: seen.into(), advice: None }
    }

    pub(crate) fn poor(
        what: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { what, verdict: Verdict::Poor, seen: seen.into(), advice: Some(advice.into()) }
    }

    pub(crate) fn wrong(
        what: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { what, verdict: Verdict::Wrong, seen: seen.into(), advice: Some(advice.into()) }
    }
}

/// Examines a cluster; the exit code: 0 if nothing is wrong, else 1.
///
/// # Errors
/// If there is no agent that answers.
pub(crate) async fn doctor(options: &DoctorOptions) -> Result<u8, Failure> {
    if let (true, Some(data)) = (options.clear_pledge, &options.data) {
        return clear_pledge(data).map(|()| 0);
    }
    let socket = options.at.find()?;
    if options.ready {
        let (code, said) = client::call(&socket, hyper::Method::GET, "/readyz", None).await?;
        anstream::println!("{}", said.as_str().unwrap_or_default().trim_end());
        return Ok(u8::from(!code.is_success()));
    }
    let clock = look::Clock::read();
    let status: Status = client::get(&socket, "/v1/status").await?;
    let diagnosis: Diagnosis = client::get(&socket, "/v1/diagnosis").await?;
    let mut findings = look::all(&status, &diagnosis);
    if !options.look {
        findings.extend(chain::try_all(&socket).await);
    }
    findings.push(clock.finding());
    let wrong = findings.iter().any(|finding| finding.verdict == Verdict::Wrong);
    if options.json {
        let text = serde_json::to_string_pretty(&findings).unwrap_or_default();
        anstream::println!("{text}");
    } else {
        tell(&findings);
    }
    Ok(u8::from(wrong))
}

fn tell(findings: &[Finding]) {
    for Finding { what, verdict, seen, advice } in findings {
        let mark = match verdict {
            Verdict::Well => "\x1b[32mok\x1b[0m   ",
            Verdict::Poor => "\x1b[33mpoor\x1b[0m ",
            Verdict::Wrong => "\x1b[31mWRONG\x1b[0m",
        };
        anstream::println!("{mark}  {what:<14}  {seen}");
        if let Some(advice) = advice {
            anstream::println!("{:23}→ {advice}", "");
        }
    }
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (poor, wrong) = (count(Verdict::Poor), count(Verdict::Wrong));
    anstream::println!("\n{} examined, {wrong} wrong, {poor} poor", findings.len());
}

fn clear_pledge(data: &Path) -> Result<(), Failure> {
    let mut offline = Offline::open(data).map_err(Failure::input)?;
    match offline.clear_pledge().map_err(Failure::input)? {
        Some(to) => anstream::println!(
            "{} is not pledged to {to} any more. Do the same at every seed that was, and only if that\n\
             founder's disk is lost for good.",
            offline.name()
        ),
        None => anstream::println!("{} is not pledged to anybody", offline.name()),
    }
    Ok(())
}
