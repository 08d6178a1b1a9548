//! The note that says why shaders cost more than Mesa's do, held against the table.
//!
//! A note is a text with a list item for each shader and its figures, anywhere in it:
//!
//! ```text
//! - `nexuiz__106.frag FRAG`: full, mov
//! ```
//!
//! What stands around the items, under which heading they are, is for people. What is checked is that every figure of
//! which ours is above 1.10 times Mesa's is there. An item may also say figures that are above no more, since a figure
//! can fall by work on something else; they are told, so that the note can be shortened.

use super::{FIGURES, Table};
use std::collections::BTreeSet;
use std::fmt;

/// The figures that have to be explained where ours are above Mesa's.
pub const EXPLAINED: [&str; 4] = ["instructions", "mov", "cov", "full"];

/// How many times Mesa's figure ours may be without an explanation.
pub const LIMIT: f64 = 1.10;

/// A shader and the name of a figure.
type Entry = (String, String);

/// What the table has and what the note has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Figures above the limit.
    pub above: usize,
    /// Shaders with such figures.
    pub shaders: usize,
    /// Those that the note does not have: shader, figure, ours, Mesa's.
    pub unexplained: Vec<(String, &'static str, u32, u32)>,
    /// What the note has though it is not above the limit.
    pub outdated: Vec<Entry>,
}

impl Check {
    /// Holds a note against a table.
    #[must_use]
    pub fn of(table: &Table, note: &str) -> Self {
        let noted = entries(note);
        let mut check = Self { above: 0, shaders: 0, unexplained: Vec::new(), outdated: Vec::new() };
        let mut above = BTreeSet::new();
        for row in &table.rows {
            let Ok(ours) = &row.ours else { continue };
            let before = check.above;
            for (name, figure) in FIGURES.iter().filter(|(name, _)| EXPLAINED.contains(name)) {
                let (ours, mesa) = (figure(ours), figure(&row.mesa));
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

/// The shaders and figures of a note's items.
fn entries(note: &str) -> BTreeSet<Entry> {
    let mut entries = BTreeSet::new();
    for line in note.lines() {
        let Some((shader, figures)) = line.strip_prefix("- `").and_then(|item| item.split_once("`: ")) else {
            continue;
        };
        for figure in figures.split(',').map(str::trim) {
            entries.insert((shader.to_owned(), figure.to_owned()));
        }
    }
    entries
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shader, figure, ours, mesa) in &self.unexplained {
            writeln!(f, "not explained: {figure} {ours} for {mesa}  {shader}")?;
        }
        for (shader, figure) in &self.outdated {
            writeln!(f, "explained, but not above {LIMIT:.2}: {figure}  {shader}")?;
        }
        let Self { above, shaders, unexplained, .. } = self;
        writeln!(
            f,
            "{shaders} programs above {LIMIT:.2} in one of {}; of {above} such figures {} are explained",
            EXPLAINED.join(", "),
            above - unexplained.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Figures, Row};
    use super::*;

    #[test]
    fn every_figure_above_the_limit_has_to_be_there() {
        let row = |shader: &str, mov, full| {
            let figures = |mov, full| Figures { mov, full, instructions: 100, ..Figures::default() };
            Row { shader: shader.into(), ours: Ok(figures(mov, full)), mesa: figures(10, 20) }
        };
        let table = Table { rows: vec![row("a FRAG", 12, 20), row("b VERT", 11, 22), row("c CL", 9, 23)] };
        let note = "# Note\n- a list item\n- `a FRAG`: mov, full\n\ntext `b VERT`: mov\n";
        let check = Check::of(&table, note);
        assert_eq!((check.above, check.shaders), (2, 2));
        assert_eq!(check.unexplained, [("c CL".into(), "full", 23, 20)]);
        assert_eq!(check.outdated, [("a FRAG".to_owned(), "full".to_owned())]);
        assert!(Check::of(&table, &(note.to_owned() + "- `c CL`: full\n")).unexplained.is_empty());
        assert!(check.to_string().contains("of 2 such figures 1 are explained"));
    }

    /// Of nothing, anything is too much.
    #[test]
    fn one_for_none_has_to_be_explained() {
        let figures = |mov| Figures { mov, ..Figures::default() };
        let row = Row { shader: "a CL".into(), ours: Ok(figures(1)), mesa: figures(0) };
        let table = Table { rows: vec![row] };
        assert_eq!(Check::of(&table, "").unexplained, [("a CL".into(), "mov", 1, 0)]);
    }
}
