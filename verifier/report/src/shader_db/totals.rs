//! The text of a report as fossil-db prints it: sums, and the contributions of helped and hurt programs to the change.

use super::compare::{Comparison, Measured};
use super::print::capitalised;
use std::fmt::Write;

/// Our measurements with the names that turnip gives them there. Dwords are printed as bytes.
const NAMES: [(&str, &str); 11] = [
    ("waves", "MaxWaves"),
    ("instructions", "Instrs"),
    ("dwords", "CodeSize"),
    ("nops", "NOPs"),
    ("non-nops", "Non-NOPs"),
    ("mov", "MOVs"),
    ("cov", "COVs"),
    ("sstall", "(ss)-stall"),
    ("systall", "(sy)-stall"),
    ("stp", "STPs"),
    ("ldp", "LDPs"),
];

impl Comparison {
    /// The sums of all programs, then those of the programs in which some measurement has changed. Only measurements
    /// that have changed are printed.
    #[must_use]
    pub fn totals(&self) -> String {
        let mut text = String::from("Totals:\n");
        for measured in &self.measured {
            measured.line(&mut text, measured.total);
        }
        let all = self.measured.first().map_or(0, |measured| measured.metrics.len());
        let is_affected = |program: &usize| {
            self.measured.iter().any(|one| one.metrics[*program].is_some_and(|(before, after)| before != after))
        };
        let affected: Vec<usize> = (0..all).filter(is_affected).collect();
        let share = 100.0 * affected.len() as f64 / all.max(1) as f64;
        let _ = writeln!(text, "\nTotals from {} ({share:.2}% of {all}) affected shaders:", affected.len());
        for measured in &self.measured {
            measured.line(&mut text, measured.sums_of(affected.iter().copied()));
        }
        let (before, after) = self.cpu_seconds;
        text + &format!("\nTotal CPU time (seconds): {before:.2} -> {after:.2}\n")
    }
}

impl Measured {
    /// `Instrs: 48395451 -> 47821017 (-1.19%); split: -1.28%, +0.09%`.
    fn line(&self, text: &mut String, (before, after): (f64, f64)) {
        if !self.is_changed() {
            return;
        }
        let known = NAMES.iter().find(|(ours, _)| *ours == self.name);
        let name = known.map_or_else(|| capitalised(&self.name), |&(_, name)| name.to_owned());
        let unit = if self.name == "dwords" { 4.0 } else { 1.0 };
        let _ = write!(text, "{name}: {} -> {}", before * unit, after * unit);
        // A change from 0 has no percentage.
        if before != 0.0 {
            let percent = |change: f64| format!("{:+.2}%", 100.0 * change / before);
            let _ = write!(text, " ({})", percent(after - before));
            if !self.helped.is_empty() && !self.hurt.is_empty() {
                let [helped, hurt] = [&self.helped, &self.hurt]
                    .map(|list| percent(list.iter().map(|change| change.after - change.before).sum()));
                let _ = write!(text, "; split: {helped}, {hurt}");
            }
        }
        text.push('\n');
    }
}
