//! What a virtually synchronous group can be told.

use quorate_core::{BadOption, OptionSpec, Options, Span};

/// The options, for help.
pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "authority",
        values: "majority|register",
        default: "majority",
        help: "who decides on views: a majority of the one before, or the last node",
    },
    OptionSpec {
        name: "ack",
        values: "TIME|never",
        default: "5",
        help: "after how long members tell each other what they have",
    },
    OptionSpec {
        name: "window",
        values: "NUMBER",
        default: "64",
        help: "how many messages of a sender may be on the way",
    },
    OptionSpec {
        name: "patience",
        values: "TIME|never",
        default: "20",
        help: "after how long members ask again, and say whom they do not reach",
    },
];

/// Options.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Who decides on views.
    pub authority: By,
    /// After how long members tell each other what they have.
    pub ack: Option<Span>,
    /// How many messages of a sender may be on the way.
    pub window: u32,
    /// After how long members ask again, and say whom they do not reach.
    pub patience: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        let (ack, patience) = (Some(Span::units(5)), Some(Span::units(20)));
        Self { authority: By::Majority, ack, window: 64, patience }
    }
}

/// Who decides on views.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// A majority of the view before.
    Majority,
    /// The last node, which is no member.
    Register,
}

impl Config {
    /// Reads what was given.
    pub(super) fn read(options: &Options<'_>) -> Result<Self, BadOption> {
        let usual = Self::default();
        let span = |name, usual| match options.get(name) {
            Some("never") => Ok(None),
            _ => options.span(name, usual).map(Some),
        };
        let ack = span("ack", Span::units(5))?;
        let patience = span("patience", Span::units(20))?;
        let window = match options.get("window") {
            None => usual.window,
            Some(text) => match text.parse() {
                Ok(window @ 1..=65_536) => window,
                _ => return Err(BadOption::new("window", text, "a number from 1 to 65536")),
            },
        };
        let known = [("majority", By::Majority), ("register", By::Register)];
        let authority = options.choice("authority", &known, usual.authority)?;
        Ok(Self { authority, ack, window, patience })
    }
}
