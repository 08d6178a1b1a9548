//! The text of `difference.txt`.

use super::align::{AlignedRow, Relation};
use super::side::{Role, TraceSide, values};
use super::{Difference, FirstDifference};
use ir3_semantics::interp::trace::TraceStep;
use std::fmt;

/// The number of rows that are printed before the first difference, and from it on.
const CONTEXT: (usize, usize) = (24, 40);

/// The width of the column of instructions.
const TEXT: usize = 56;

/// The width of the column of values, at most and at least.
const VALUES: (usize, usize) = (36, 8);

impl fmt::Display for FirstDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, after, lane, .. } = self;
        writeln!(f, "{}", self.observed)?;
        writeln!(f)?;
        writeln!(
            f,
            "Lane {lane}, as both sides ran it. `=`: the same values; `!`: other values; `<`, `>`: one side only."
        )?;
        writeln!(f, "Values are hexadecimal: the results of an instruction, or its operands if it has none.")?;
        writeln!(f)?;
        let columns = self.columns();
        self.heading(f, columns)?;
        let first = self.at.map_or(0, |at| at.saturating_sub(CONTEXT.0));
        // An endless loop repeats on one side only.
        let after_first = if matches!(self.observed, Difference::Endless { .. }) { CONTEXT.1 / 4 } else { CONTEXT.1 };
        let last = self.rows.len().min(self.at.map_or(CONTEXT.0 + CONTEXT.1, |at| at + after_first));
        let left_out = self.skipped[0].max(self.skipped[1]) + first;
        if left_out > 0 {
            writeln!(f, "  … {left_out} rows before these")?;
        }
        for (number, row) in self.rows.iter().enumerate().take(last).skip(first) {
            self.row(f, row, columns, self.at == Some(number))?;
        }
        if last < self.rows.len() || before.cut || after.cut {
            writeln!(f, "  … and more after these")?;
        }
        for (side, slice, what) in [(before, &self.slices[0], "expected"), (after, &self.slices[1], "actual")] {
            if slice.is_empty() {
                continue;
            }
            writeln!(f)?;
            writeln!(f, "Computation of the {what} value:")?;
            writeln!(f)?;
            for &number in slice {
                let step = &side.steps[number];
                writeln!(
                    f,
                    "{}",
                    format!("  {:TEXT$}  {}", short(&side.text(step), TEXT), values_of(side, step)).trim_end()
                )?;
            }
        }
        Ok(())
    }
}

impl FirstDifference {
    /// The widths of the text before, its values, and the text after.
    fn columns(&self) -> [usize; 3] {
        let width = |side: &TraceSide, step: Option<usize>| {
            step.map_or(0, |step| side.text(&side.steps[step]).chars().count().min(TEXT))
        };
        let most = |of: &dyn Fn(&AlignedRow) -> usize| self.rows.iter().map(of).max().unwrap_or(0).max(12);
        let values = |row: &AlignedRow| {
            let values = row.before.map_or(String::new(), |step| values_of(&self.before, &self.before.steps[step]));
            values.chars().count().clamp(VALUES.1, VALUES.0)
        };
        [most(&|row| width(&self.before, row.before)), most(&values), most(&|row| width(&self.after, row.after))]
    }

    fn heading(&self, f: &mut fmt::Formatter<'_>, [a, v, b]: [usize; 3]) -> fmt::Result {
        let line = format!("  {:a$}  {:v$}   {:b$}", "before", "", "after");
        writeln!(f, "{}", line.trim_end())
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, row: &AlignedRow, [a, v, b]: [usize; 3], here: bool) -> fmt::Result {
        let cell = |side: &TraceSide, step: Option<usize>, width: usize| {
            step.map_or((String::new(), String::new()), |step| {
                let step = &side.steps[step];
                (short(&side.text(step), width), values_of(side, step))
            })
        };
        let (text_a, values_a) = cell(&self.before, row.before, a);
        let (text_b, values_b) = cell(&self.after, row.after, b);
        let mark = match (row.relation(&self.before, &self.after), row.before) {
            (Relation::Same, _) => "=",
            (Relation::Different, _) => "!",
            (Relation::Alone, Some(_)) => "<",
            (Relation::Alone, None) => ">",
        };
        let line = format!("  {text_a:a$}  {values_a:v$} {mark} {text_b:b$}  {values_b}");
        writeln!(f, "{}", line.trim_end())?;
        if here {
            let (expected, actual) = match self.observed {
                Difference::Undefined { .. }
                | Difference::Endless { .. }
                | Difference::Killed { .. }
                | Difference::Header(_) => ("", ""),
                _ => ("expected", "actual"),
            };
            let line = format!("  {:a$}  {:v$} ^ {:b$}  {actual}", "first difference", expected, "");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The values of a step; of a condition, its truth value.
pub(super) fn values_of(side: &TraceSide, step: &TraceStep) -> String {
    match (side.role(step), &step.reads[..]) {
        (Role::Branch | Role::Kill, [cell]) => {
            cell.value.map_or("undefined", |value| if value == 0 { "false" } else { "true" }).to_owned()
        }
        _ if !step.stored.is_empty() => {
            let words: Vec<String> = step.stored.iter().take(4).map(|stored| format!("{:08x}", stored.value)).collect();
            format!("→ {}", words.join(" "))
        }
        _ => values(step),
    }
}

/// Truncates a text that is too long.
fn short(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
