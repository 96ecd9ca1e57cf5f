//! Lines of the log, on standard error.

use std::io::IsTerminal as _;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Style {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object per line.
    Json,
}

impl FromStr for Style {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(format!("there is no style {other} of a log: text or json")),
        }
    }
}

/// Writes lines from now on. `QUORATE_LOG` says how much: `error`, `warn`, `info` (usual), `debug`.
pub(crate) fn start(style: Style) {
    let level = std::env::var("QUORATE_LOG").ok().and_then(|text| text.parse().ok());
    let level: LevelFilter = level.unwrap_or(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level);
    // A program that has a log already keeps it.
    let _ = match style {
        Style::Text => lines.with_ansi(std::io::stderr().is_terminal()).compact().try_init(),
        Style::Json => lines.with_ansi(false).json().flatten_event(true).try_init(),
    };
}
