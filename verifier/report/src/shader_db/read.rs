//! Parser for lines of shader-db statistics.

use rustc_hash::FxHashMap;

/// The metrics of one program, by their names.
pub(super) type Metrics = FxHashMap<String, f64>;

/// The programs of one text, with their metrics.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Name, stage, and metrics, in the order of the first occurrence.
    pub(super) programs: Vec<(String, Metrics)>,
    index: FxHashMap<String, usize>,
    /// The sum of the times of the run's threads, in seconds.
    pub(super) cpu_seconds: f64,
}

impl Results {
    /// Returns true if there are no programs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Returns true if every program has a metric of this name.
    #[must_use]
    pub fn have(&self, measurement: &str) -> bool {
        self.programs.iter().all(|(_, metrics)| metrics.contains_key(measurement))
    }

    /// Returns the metrics of a program, by its name `app stage`.
    pub(super) fn get(&self, program: &str) -> Option<&Metrics> {
        self.index.get(program).map(|&at| &self.programs[at].1)
    }
}

/// Parses the lines of a text that are shader-db statistics; other lines are ignored. If a program has several lines,
/// the last one counts.
#[must_use]
pub fn read(text: &str) -> Results {
    let mut results = Results::default();
    for line in text.lines() {
        results.cpu_seconds += seconds(line).unwrap_or(0.0);
        let Some((app, stage, list)) = program(line) else { continue };
        let name = format!("{app} {stage}");
        let metrics = metrics(list);
        match results.index.get(&name) {
            Some(&at) => results.programs[at].1 = metrics,
            None => {
                results.index.insert(name.clone(), results.programs.len());
                results.programs.push((name, metrics));
            }
        }
    }
    results
}

/// `app - stage shader: metrics`, anywhere in a line. The app is one word, the stage may have several.
fn program(line: &str) -> Option<(&str, &str, &str)> {
    const SHADER: &str = " shader: ";
    let end = line.rfind(SHADER)?;
    let mut dashes = line[..end].match_indices(" - ").map(|(at, _)| at);
    let dash = dashes.find(|&at| line[..at].ends_with(|c: char| !c.is_whitespace()))?;
    let app = line[..dash].rsplit(char::is_whitespace).next()?;
    Some((app, &line[dash + " - ".len()..end], &line[end + SHADER.len()..]))
}

/// `12 inst, 0:3 spills:fills, …`: items of two words; others are ignored.
fn metrics(list: &str) -> Metrics {
    let mut metrics = Metrics::default();
    for item in list.split(", ") {
        let mut words = item.split_whitespace();
        let (Some(value), Some(name), None) = (words.next(), words.next(), words.next()) else { continue };
        let mut add = |name: &str, value: &str| {
            if value.bytes().all(|byte| byte.is_ascii_digit())
                && let Ok(value) = value.parse()
            {
                metrics.insert(name.into(), value);
            }
        };
        match (name, value.split_once(':')) {
            ("spills:fills", Some((spills, fills))) => {
                add("spills", spills);
                add("fills", fills);
            }
            ("inst", _) => add("instructions", value),
            _ => add(name, value),
        }
    }
    metrics
}

/// `Thread 3 took 1.25 seconds`, anywhere in a line.
fn seconds(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let time = |words: &[&str]| match words {
        ["Thread", _, "took", time, "seconds"] => time.parse().ok(),
        _ => None,
    };
    words.windows(5).find_map(time)
}
