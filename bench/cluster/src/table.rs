//! The table of bars: what was measured, next to a reference of the same run.

/// A bar, and whether it was reached.
pub(crate) struct Row {
    /// What is measured.
    pub(crate) bar: &'static str,
    pub(crate) measured: String,
    pub(crate) reference: String,
    /// Against the reference, where there is one.
    pub(crate) ratio: Option<f64>,
    pub(crate) must: Goal,
    pub(crate) stretch: Option<Goal>,
}

/// Something to be reached.
pub(crate) struct Goal {
    pub(crate) text: &'static str,
    /// Unknown where the reference is missing.
    pub(crate) reached: Option<bool>,
}

impl Goal {
    pub(crate) fn new(text: &'static str, reached: impl Into<Option<bool>>) -> Self {
        Self { text, reached: reached.into() }
    }

    fn word(&self) -> &'static str {
        match self.reached {
            Some(true) => "reached",
            Some(false) => "missed",
            None => "no reference",
        }
    }
}

/// Prints all rows. How many must be reached and were not?
pub(crate) fn print(rows: &[Row]) -> usize {
    let heads =
        ["bar", "measured", "reference", "ratio", "must", "", "stretch", ""].map(str::to_owned);
    let lines: Vec<[String; 8]> = rows.iter().map(line).collect();
    let width = |column: usize| {
        let cells = lines.iter().chain([&heads]).map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 8] = std::array::from_fn(width);
    for line in [&heads].into_iter().chain(&lines) {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    rows.iter().filter(|row| row.must.reached == Some(false)).count()
}

fn line(row: &Row) -> [String; 8] {
    let ratio = row.ratio.map_or_else(
        || "–".into(),
        |ratio| match ratio {
            ratio if ratio >= 100.0 => format!("{ratio:.0} ×"),
            ratio => format!("{ratio:.2} ×"),
        },
    );
    let (stretch, word) = row.stretch.as_ref().map_or(("–", ""), |goal| (goal.text, goal.word()));
    [
        row.bar.to_owned(),
        row.measured.clone(),
        row.reference.clone(),
        ratio,
        row.must.text.to_owned(),
        row.must.word().to_owned(),
        stretch.to_owned(),
        word.to_owned(),
    ]
}

/// The value below which this share of all is.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * share) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
