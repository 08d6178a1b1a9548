//! The text of a report, in the format of `report.py`.

use super::compare::{Comparison, Measured, MetricChange, Significance, Spread, more_is_better};
use std::fmt::Write;

/// Measurements without statistics: their mean is not meaningful.
const WITHOUT_STATISTICS: [&str; 2] = ["spills", "fills"];

/// The column of the metrics of a program, after the measurement's name.
const COLUMN: usize = 50;

impl Comparison {
    /// The report: single programs, unless `summary_only`; then each measurement, or with `changes_only` those that
    /// changed.
    #[must_use]
    pub fn report(&self, summary_only: bool, changes_only: bool) -> String {
        let mut text = String::new();
        if !summary_only {
            for measured in &self.measured {
                programs(&mut text, &format!("{} helped:   ", measured.name), &measured.helped);
                programs(&mut text, &format!("{} HURT:   ", measured.name), &measured.hurt);
            }
            names(&mut text, "LOST:   ", &self.lost);
            names(&mut text, "GAINED: ", &self.gained);
        }
        for measured in &self.measured {
            if measured.is_changed() || !changes_only {
                text += &measured.block();
                text.push('\n');
            }
        }
        if !self.lost.is_empty() || !self.gained.is_empty() || !changes_only {
            text += &format!("LOST:   {}\nGAINED: {}\n", self.lost.len(), self.gained.len());
        } else if !self.measured.iter().any(Measured::is_changed) {
            text += "No changes.\n";
        }
        let (before, after) = self.cpu_seconds;
        text + &format!("\nTotal CPU time (seconds): {}\n", change(before, after))
    }
}

/// One line for each program, then an empty line.
fn programs(text: &mut String, title: &str, list: &[MetricChange]) {
    for item in list {
        let name = format!("{}: ", item.program);
        let _ = writeln!(text, "{title}{name:<COLUMN$}{}", change(item.before, item.after));
    }
    if !list.is_empty() {
        text.push('\n');
    }
}

fn names(text: &mut String, title: &str, list: &[String]) {
    for name in list {
        let _ = writeln!(text, "{title}{name}");
    }
    if !list.is_empty() {
        text.push('\n');
    }
}

impl Measured {
    pub(super) fn is_changed(&self) -> bool {
        !self.helped.is_empty() || !self.hurt.is_empty()
    }

    /// The summary of a measurement.
    fn block(&self) -> String {
        let name = &self.name;
        let (helped, hurt) = (self.helped.len(), self.hurt.len());
        let (total, affected) = (self.total, self.affected());
        let mut text = format!(
            "total {name} in shared programs: {}\n{name} in affected programs: {}\nhelped: {helped}\nHURT: {hurt}\n",
            change(total.0, total.1),
            change(affected.0, affected.1)
        );
        if WITHOUT_STATISTICS.contains(&name.as_str()) {
            return text;
        }
        for (title, list, other) in [("helped stats", &self.helped, hurt), ("HURT stats", &self.hurt, helped)] {
            if list.len() > 2 || (!list.is_empty() && other > 0) {
                spreads(&mut text, title, list);
            }
        }
        if let Some(confidence) = self.confidence() {
            let (value, percent) = (confidence.value, confidence.percent);
            let _ = writeln!(
                text,
                "95% mean confidence interval for {name} value: {:.2} {:.2}\n\
                 95% mean confidence interval for {name} %-change: {} {}\n{}",
                value.low,
                value.high,
                percentage(percent.low),
                percentage(percent.high),
                sentence(name, confidence.verdict(more_is_better(name)))
            );
        }
        text
    }
}

/// The spread of changes, absolute and relative.
fn spreads(text: &mut String, title: &str, list: &[MetricChange]) {
    let absolute = Spread::of(list.iter().map(|change| (change.after - change.before).abs()).collect());
    let relative = Spread::of(list.iter().map(|change| change.relative().abs()).collect());
    let Spread { min, max, mean, median } = absolute;
    let (min, max) = (number(min), number(max));
    let _ = writeln!(text, "{:<12} (abs) min: {min} max: {max} x̄: {mean:.2} x̃: {}", title, median.trunc());
    let [min, max, mean, median] = [relative.min, relative.max, relative.mean, relative.median].map(percentage);
    let _ = writeln!(text, "{:<12} (rel) min: {min} max: {max} x̄: {mean} x̃: {median}", title);
}

fn sentence(name: &str, verdict: Significance) -> String {
    let capitalised = capitalised(name);
    match verdict {
        Significance::ValueIncludesZero => "Inconclusive result (value mean confidence interval includes 0).".into(),
        Significance::PercentIncludesZero => {
            "Inconclusive result (%-change mean confidence interval includes 0).".into()
        }
        Significance::Disagree => {
            "Inconclusive result (value mean confidence interval and %-change mean confidence interval disagree)."
                .into()
        }
        Significance::Helped => format!("{capitalised} are helped."),
        Significance::Hurt => format!("{capitalised} are HURT."),
    }
}

/// The name with a capital letter.
pub(super) fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Before and after, and the relative change if neither is 0.
fn change(before: f64, after: f64) -> String {
    let mut text = format!("{} -> {}", number(before), number(after));
    if before != 0.0 && after != 0.0 {
        text += &format!(" ({})", percentage(after / before - 1.0));
    }
    text
}

/// An integer as such, other numbers with two decimals.
fn number(value: f64) -> String {
    if value.fract() < 0.01 { format!("{}", value.trunc()) } else { format!("{value:.2}") }
}

/// A fraction as a percentage.
fn percentage(fraction: f64) -> String {
    if fraction != 0.0 && fraction.abs() < 0.0001 { "<.01%".into() } else { format!("{:.2}%", fraction * 100.0) }
}
