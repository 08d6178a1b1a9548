//! What changed, and whether that is more than chance.

use super::read::Results;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A measurement of which more is better.
const MORE_IS_BETTER: &str = "threads";

/// A program of which a figure changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name and stage.
    pub program: String,
    /// The figure before.
    pub before: f64,
    /// The figure after.
    pub after: f64,
}

impl Change {
    /// By how much of what it was; 0 where that was nothing.
    #[must_use]
    pub fn relative(&self) -> f64 {
        if self.before == 0.0 { 0.0 } else { (self.after - self.before) / self.before }
    }

    /// Programs are listed by this: a change from nothing counts as what has come.
    fn rank(&self) -> f64 {
        if self.before == 0.0 { self.after } else { self.relative().abs() }
    }
}

/// Least, most, mean and median of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The median; of an even number, the mean of the two in the middle.
    pub median: f64,
}

impl Spread {
    /// Of at least one value.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median =
            if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] };
        Self { min: values[0], max: values[values.len() - 1], mean: mean(&values), median }
    }
}

/// An interval that has the mean in it in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// The confidence interval for the mean of a sample of at least two: by the sample's standard deviation and Student's t
    /// distribution with one degree of freedom less than there are values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (n - 1.0)).sqrt() / n.sqrt();
        let t = StudentsT::new(0.0, 1.0, n - 1.0).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975));
        // No spread at all is no uncertainty, however few there are.
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

/// What the confidence intervals say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval of the changes includes 0.
    ValueIncludesZero,
    /// That of the relative changes does.
    PercentIncludesZero,
    /// One is below 0, the other is not.
    Disagree,
    /// Both are below 0.
    Helped,
    /// Both are above.
    Hurt,
}

/// The intervals of a measurement, in value and in relation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// Of after − before.
    pub value: Interval,
    /// Of (after − before) / before.
    pub percent: Interval,
}

impl Confidence {
    /// What they say.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match (self.value, self.percent) {
            (value, _) if value.includes_zero() => Verdict::ValueIncludesZero,
            (_, percent) if percent.includes_zero() => Verdict::PercentIncludesZero,
            (value, percent) if (value.low < 0.0) != (percent.low < 0.0) => Verdict::Disagree,
            (value, _) if value.low < 0.0 => Verdict::Helped,
            _ => Verdict::Hurt,
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
    /// The programs that got better, the least change first.
    pub helped: Vec<Change>,
    /// Those that got worse.
    pub hurt: Vec<Change>,
}

impl Measured {
    /// The sums over the programs that changed.
    #[must_use]
    pub fn affected(&self) -> (f64, f64) {
        self.changes().fold((0.0, 0.0), |sum, change| (sum.0 + change.before, sum.1 + change.after))
    }

    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.helped.iter().chain(&self.hurt)
    }

    /// The intervals, where more than three programs changed.
    #[must_use]
    pub fn confidence(&self) -> Option<Confidence> {
        let values: Vec<f64> = self.changes().map(|change| change.after - change.before).collect();
        let percents: Vec<f64> = self.changes().map(Change::relative).collect();
        (values.len() > 3).then(|| Confidence { value: Interval::of(&values), percent: Interval::of(&percents) })
    }
}

/// Two results, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Each measurement.
    pub measured: Vec<Measured>,
    /// Programs that only the first has, sorted.
    pub lost: Vec<String>,
    /// Programs that only the second has, sorted.
    pub gained: Vec<String>,
    /// What the runs took, in seconds.
    pub cpu_seconds: (f64, f64),
}

/// Compares measurements of the programs that both sides have. A program of which the number of loops changed is left out,
/// but where loops are what is measured: with a loop unrolled, other figures mislead.
///
/// # Errors
/// A measurement that a program does not have, with the program.
pub fn compare(before: &Results, after: &Results, measurements: &[&str]) -> Result<Comparison, String> {
    let mut measured = Vec::with_capacity(measurements.len());
    for &name in measurements {
        let mut one = Measured { name: name.into(), total: (0.0, 0.0), helped: Vec::new(), hurt: Vec::new() };
        for (program, old) in &before.programs {
            let Some(new) = after.get(program) else { continue };
            if old.get("loops") != new.get("loops") && name != "loops" {
                continue;
            }
            let figure = |figures: &super::read::Figures, side: &str| {
                figures.get(name).copied().ok_or_else(|| format!("{program}: no measurement `{name}` {side}"))
            };
            let (b, a) = (figure(old, "before")?, figure(new, "after")?);
            one.total.0 += b;
            one.total.1 += a;
            if b != a {
                let list = if (a > b) == (name == MORE_IS_BETTER) { &mut one.helped } else { &mut one.hurt };
                list.push(Change { program: program.clone(), before: b, after: a });
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
