//! Check of the note that explains the metrics that are worse than Mesa's.
//!
//! A note is a text with a list item for each shader and its metrics, anywhere in it:
//!
//! ```text
//! - `nexuiz__106.frag FRAG`: full, mov
//! ```
//!
//! The text around the items and their headings are for people. The check requires every metric above 1.10 times Mesa's
//! to be listed. An item may also list metrics that are not above the limit any more, since other work may have lowered
//! them; they are reported, so that the note can be shortened.

use super::{CostTable, METRICS};
use std::collections::BTreeSet;
use std::fmt;

/// The metrics that must be explained if they are above Mesa's.
const EXPLAINED: [&str; 4] = ["non-nops", "mov", "cov", "full"];

/// The factor on Mesa's metric up to which ours needs no explanation.
const LIMIT: f64 = 1.10;

/// A shader and the name of a metric.
type NotedMetric = (String, String);

/// The result of the check of a note against a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteCheck {
    /// The number of metrics above the limit.
    pub above: usize,
    /// The number of shaders with such metrics.
    pub shaders: usize,
    /// Metrics above the limit that the note does not list: shader, metric, ours, Mesa's.
    pub unexplained: Vec<(String, &'static str, u32, u32)>,
    /// Metrics that the note lists and that are not above the limit.
    pub outdated: Vec<NotedMetric>,
}

impl NoteCheck {
    /// Checks a note against a table.
    #[must_use]
    pub fn of(table: &CostTable, note: &str) -> Self {
        let noted = entries(note);
        let mut check = Self { above: 0, shaders: 0, unexplained: Vec::new(), outdated: Vec::new() };
        let mut above = BTreeSet::new();
        for row in &table.rows {
            let Ok(ours) = &row.ours else { continue };
            let before = check.above;
            for (name, metric) in METRICS.iter().filter(|(name, _)| EXPLAINED.contains(name)) {
                let (ours, mesa) = (metric(ours), metric(&row.mesa));
                if f64::from(ours) <= LIMIT * f64::from(mesa) {
                    continue;
                }
                check.above += 1;
                let entry = (row.shader.clone(), (*name).to_owned());
                if !noted.contains(&entry) {
                    check.unexplained.push((row.shader.clone(), name, ours, mesa));
                }
                above.insert(entry);
            }
            check.shaders += usize::from(check.above > before);
        }
        check.outdated = noted.difference(&above).cloned().collect();
        check
    }
}

/// Parses the items of a note.
fn entries(note: &str) -> BTreeSet<NotedMetric> {
    let mut entries = BTreeSet::new();
    for line in note.lines() {
        let Some((shader, metrics)) = line.strip_prefix("- `").and_then(|item| item.split_once("`: ")) else {
            continue;
        };
        for metric in metrics.split(',').map(str::trim) {
            entries.insert((shader.to_owned(), metric.to_owned()));
        }
    }
    entries
}

impl fmt::Display for NoteCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shader, metric, ours, mesa) in &self.unexplained {
            writeln!(f, "not explained: {metric} {ours} for {mesa}  {shader}")?;
        }
        for (shader, metric) in &self.outdated {
            writeln!(f, "explained, but not above {LIMIT:.2}: {metric}  {shader}")?;
        }
        let Self { above, shaders, unexplained, .. } = self;
        writeln!(
            f,
            "{shaders} programs above {LIMIT:.2} in one of {}; of {above} such metrics {} are explained",
            EXPLAINED.join(", "),
            above - unexplained.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Metrics, ShaderCosts};
    use super::*;

    #[test]
    fn every_figure_above_the_limit_has_to_be_there() {
        let row = |shader: &str, mov, full| {
            let metrics = |mov, full| Metrics { mov, full, non_nops: 100, ..Metrics::default() };
            ShaderCosts { shader: shader.into(), ours: Ok(metrics(mov, full)), mesa: metrics(10, 20), is_exact: true }
        };
        let table = CostTable {
            rows: vec![row("a FRAG", 12, 20), row("b VERT", 11, 22), row("c CL", 9, 23)],
            ..CostTable::default()
        };
        let note = "# Note\n- a list item\n- `a FRAG`: mov, full\n\ntext `b VERT`: mov\n";
        let check = NoteCheck::of(&table, note);
        assert_eq!((check.above, check.shaders), (2, 2));
        assert_eq!(check.unexplained, [("c CL".into(), "full", 23, 20)]);
        assert_eq!(check.outdated, [("a FRAG".to_owned(), "full".to_owned())]);
        assert!(NoteCheck::of(&table, &(note.to_owned() + "- `c CL`: full\n")).unexplained.is_empty());
        assert!(check.to_string().contains("of 2 such metrics 1 are explained"));
    }

    /// If Mesa's metric is 0, any other is above the limit.
    #[test]
    fn one_for_none_has_to_be_explained() {
        let metrics = |mov| Metrics { mov, ..Metrics::default() };
        let row = ShaderCosts { shader: "a CL".into(), ours: Ok(metrics(1)), mesa: metrics(0), is_exact: true };
        let table = CostTable { rows: vec![row], ..CostTable::default() };
        assert_eq!(NoteCheck::of(&table, "").unexplained, [("a CL".into(), "mov", 1, 0)]);
    }
}
