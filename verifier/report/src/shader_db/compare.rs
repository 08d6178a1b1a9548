//! The comparison of two results, and its statistical significance.

use super::read::Results;
use super::student;
use serde::Serialize;

/// The measurements for which more is better.
const MORE_IS_BETTER: [&str; 2] = ["threads", "waves"];

/// Returns true if more of this measurement is better.
pub(super) fn more_is_better(name: &str) -> bool {
    MORE_IS_BETTER.contains(&name)
}

/// A changed metric of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricChange {
    /// Name and stage.
    pub program: String,
    /// The metric before.
    pub before: f64,
    /// The metric after.
    pub after: f64,
}

impl MetricChange {
    /// The relative change; 0 if the metric was 0 before.
    #[must_use]
    pub fn relative(&self) -> f64 {
        if self.before == 0.0 { 0.0 } else { (self.after - self.before) / self.before }
    }

    /// The sort key of reports: the relative change, or the new metric if it was 0 before.
    fn rank(&self) -> f64 {
        if self.before == 0.0 { self.after } else { self.relative().abs() }
    }
}

/// Minimum, maximum, mean and median of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The median; of an even number of values, the mean of the two in the middle.
    pub median: f64,
}

impl Spread {
    /// Computes the spread of at least one value.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median =
            if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] };
        Self { min: values[0], max: values[values.len() - 1], mean: mean(&values), median }
    }
}

/// A 95 % confidence interval of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// The confidence interval for the mean of a sample of at least two values: by the sample's standard deviation and
    /// Student's t distribution with one degree of freedom less than there are values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (n - 1.0)).sqrt() / n.sqrt();
        let t = student::quantile(0.975, values.len() as u64 - 1);
        // Without any spread the interval is a point, for any size of the sample.
        let half = if error == 0.0 { 0.0 } else { error * t };
        Self { low: mean - half, high: mean + half }
    }

    fn includes_zero(self) -> bool {
        self.low < 0.0 && self.high > 0.0
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The conclusion from the confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Significance {
    /// The interval of the changes includes 0.
    ValueIncludesZero,
    /// The interval of the relative changes includes 0.
    PercentIncludesZero,
    /// The two intervals are on different sides of 0.
    Disagree,
    /// Both intervals are below 0, or above it for measurements where more is better.
    Helped,
    /// Both intervals are on the other side of 0.
    Hurt,
}

/// The confidence intervals of a measurement, absolute and relative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// The interval of after − before.
    pub value: Interval,
    /// The interval of (after − before) / before.
    pub percent: Interval,
}

impl Confidence {
    /// Draws the conclusion, for a measurement of which more or less is better.
    #[must_use]
    pub fn verdict(self, more_is_better: bool) -> Significance {
        match (self.value, self.percent) {
            (value, _) if value.includes_zero() => Significance::ValueIncludesZero,
            (_, percent) if percent.includes_zero() => Significance::PercentIncludesZero,
            (value, percent) if (value.low < 0.0) != (percent.low < 0.0) => Significance::Disagree,
            (value, _) if (value.low < 0.0) != more_is_better => Significance::Helped,
            _ => Significance::Hurt,
        }
    }
}

/// One measurement over all programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// The sums over the programs of both sides.
    pub total: (f64, f64),
    /// The programs that got better, the smallest change first.
    pub helped: Vec<MetricChange>,
    /// The programs that got worse, the smallest change first.
    pub hurt: Vec<MetricChange>,
    /// Both metrics of each program, in the order of the comparison's programs; `None` of one that is skipped.
    #[serde(skip)]
    pub(super) metrics: Vec<Option<(f64, f64)>>,
}

impl Measured {
    /// The sums over the programs that changed.
    #[must_use]
    pub fn affected(&self) -> (f64, f64) {
        self.changes().fold((0.0, 0.0), |sum, change| (sum.0 + change.before, sum.1 + change.after))
    }

    /// The sums over some programs.
    pub(super) fn sums_of(&self, programs: impl Iterator<Item = usize>) -> (f64, f64) {
        let metrics = programs.filter_map(|program| self.metrics[program]);
        metrics.fold((0.0, 0.0), |sum, (before, after)| (sum.0 + before, sum.1 + after))
    }

    pub(super) fn changes(&self) -> impl Iterator<Item = &MetricChange> {
        self.helped.iter().chain(&self.hurt)
    }

    /// The confidence intervals, if more than three programs changed.
    #[must_use]
    pub fn confidence(&self) -> Option<Confidence> {
        let values: Vec<f64> = self.changes().map(|change| change.after - change.before).collect();
        let percents: Vec<f64> = self.changes().map(MetricChange::relative).collect();
        (values.len() > 3).then(|| Confidence { value: Interval::of(&values), percent: Interval::of(&percents) })
    }
}

/// The comparison of two results.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The measurements.
    pub measured: Vec<Measured>,
    /// Programs that only the first result has, sorted.
    pub lost: Vec<String>,
    /// Programs that only the second result has, sorted.
    pub gained: Vec<String>,
    /// The CPU time of the runs, in seconds.
    pub cpu_seconds: (f64, f64),
}

/// Compares measurements of the programs that both results have. A program whose number of loops changed is skipped,
/// except for the measurement of loops itself: if a loop was unrolled, the other metrics mislead.
///
/// # Errors
/// A measurement that is missing for a program, with the program.
pub fn compare(before: &Results, after: &Results, measurements: &[&str]) -> Result<Comparison, String> {
    let mut measured = Vec::with_capacity(measurements.len());
    let shared: Vec<_> =
        before.programs.iter().filter_map(|(program, old)| Some((program, old, after.get(program)?))).collect();
    for &name in measurements {
        let mut one = Measured {
            name: name.into(),
            total: (0.0, 0.0),
            helped: Vec::new(),
            hurt: Vec::new(),
            metrics: vec![None; shared.len()],
        };
        for (at, &(program, old, new)) in shared.iter().enumerate() {
            if old.get("loops") != new.get("loops") && name != "loops" {
                continue;
            }
            let metric = |metrics: &super::read::Metrics, side: &str| {
                metrics.get(name).copied().ok_or_else(|| format!("{program}: no measurement `{name}` {side}"))
            };
            let (b, a) = (metric(old, "before")?, metric(new, "after")?);
            one.total.0 += b;
            one.total.1 += a;
            one.metrics[at] = Some((b, a));
            if b != a {
                let list = if (a > b) == more_is_better(name) { &mut one.helped } else { &mut one.hurt };
                list.push(MetricChange { program: program.clone(), before: b, after: a });
            }
        }
        for list in [&mut one.helped, &mut one.hurt] {
            list.sort_by(|x, y| x.rank().total_cmp(&y.rank()));
        }
        measured.push(one);
    }
    let only = |one: &Results, other: &Results| {
        let names = one.programs.iter().map(|(name, _)| name).filter(|name| other.get(name).is_none());
        let mut names: Vec<String> = names.cloned().collect();
        names.sort();
        names
    };
    Ok(Comparison {
        measured,
        lost: only(before, after),
        gained: only(after, before),
        cpu_seconds: (before.cpu_seconds, after.cpu_seconds),
    })
}
