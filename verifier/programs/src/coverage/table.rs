//! The table of cells: kept in a file, merged over runs, and printed.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::accepted::{Accepted, Status};
use super::{Family, Seen};
use ir3_compiler::target::Target;

/// The counts of one or several runs, by name, so that a file is readable after the tables of the compiler have
/// changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The programs.
    pub programs: u64,
    /// The GPUs that they were compiled for.
    pub gpus: BTreeSet<String>,
    /// The number of times that each cell was seen, by name; cells that were not seen are left out.
    pub seen: BTreeMap<String, u64>,
}

/// The cells of a family.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FamilyRow {
    /// The family.
    pub family: &'static str,
    /// All cells that the tables name.
    pub cells: usize,
    /// The cells that were seen.
    pub seen: usize,
    /// The cells that no program can have.
    pub impossible: usize,
    /// The impossible cells by the reason of the last GPU.
    pub reasons: BTreeMap<String, Vec<String>>,
    /// The cells that selection accepts, and no program has.
    pub missing: Vec<String>,
    /// The cells that no rule excludes, and no program has.
    pub open: Vec<String>,
    /// The cells that a rule calls impossible, and that were seen: the rule is wrong. Cells that selection refuses are
    /// in no program.
    pub wrong: Vec<String>,
}

impl FamilyRow {
    /// The share of the cells that are not impossible, that were seen.
    pub fn share(&self) -> f64 {
        self.seen as f64 / (self.cells - self.impossible).max(1) as f64
    }
}

impl Table {
    /// The table of a run of `programs` programs.
    pub fn of(targets: &[Target], programs: u64, seen: &Seen) -> Self {
        let named = Family::ALL.into_iter().flat_map(Family::cells);
        let counted = named.map(|(cell, name)| (name, seen.of(cell))).filter(|(_, count)| *count > 0);
        Self { programs, gpus: targets.iter().map(|target| target.name.to_owned()).collect(), seen: counted.collect() }
    }

    /// Adds the programs of another run.
    pub fn merge(&mut self, other: &Self) {
        self.programs += other.programs;
        self.gpus.extend(other.gpus.iter().cloned());
        for (name, count) in &other.seen {
            *self.seen.entry(name.clone()).or_default() += count;
        }
    }

    /// The rows: each cell is seen, impossible on every GPU of the table, accepted by one and missing, or open.
    pub fn rows(&self) -> Vec<FamilyRow> {
        let accepted: Vec<Accepted> =
            self.gpus.iter().filter_map(|gpu| Target::by_name(gpu).ok()).map(|target| Accepted::of(&target)).collect();
        let row = |family: Family| {
            let mut row = FamilyRow { family: family.name(), ..FamilyRow::default() };
            for (cell, name) in family.cells() {
                row.cells += 1;
                let is_seen = self.seen.contains_key(&name);
                row.seen += usize::from(is_seen);
                if is_seen && !family.has_rules() {
                    continue;
                }
                // A status is asked of selection, which takes time: GPUs after the first that has the cell are not
                // asked.
                let mut reason = "no GPU".to_owned();
                let possible = accepted.iter().find_map(|accepted| match accepted.status(family, cell) {
                    Status::Impossible(found) => {
                        reason = found;
                        None
                    }
                    status => Some(status),
                });
                match possible {
                    _ if is_seen => row.wrong.extend((possible.is_none() && !accepted.is_empty()).then_some(name)),
                    Some(Status::Open) => row.open.push(name),
                    Some(_) => row.missing.push(name),
                    None => {
                        row.impossible += 1;
                        row.reasons.entry(reason).or_default().push(name);
                    }
                }
            }
            row
        };
        Family::ALL.map(row).into()
    }

    /// The table as text: shares, then the cells that are missing, those that are open, and those that are impossible,
    /// with the reason.
    pub fn text(&self) -> String {
        let rows = self.rows();
        let gpus: Vec<&str> = self.gpus.iter().map(String::as_str).collect();
        let mut out = format!("{} programs, {}\n\n{}\n", self.programs, gpus.join(", "), shares(&rows));
        for (what, list) in [
            ("selection accepts, and no program has", rows.iter().flat_map(|row| &row.missing).collect::<Vec<_>>()),
            ("nothing rules out, and no program has", rows.iter().flat_map(|row| &row.open).collect()),
            ("a rule calls impossible, and a program has", rows.iter().flat_map(|row| &row.wrong).collect()),
        ] {
            let _ = writeln!(out, "{} cells that {what}:", list.len());
            list.iter().for_each(|name| out.push_str(&format!("  {name}\n")));
            out.push('\n');
        }
        let reasons = || rows.iter().flat_map(|row| &row.reasons);
        let _ = writeln!(out, "{} cells that are impossible:", reasons().map(|(_, names)| names.len()).sum::<usize>());
        for (reason, names) in reasons() {
            let _ = writeln!(out, "  {reason} ({}):", names.len());
            names.iter().for_each(|name| out.push_str(&format!("    {name}\n")));
        }
        out.push('\n');
        out.push_str("how often each cell was seen:\n");
        for (name, count) in &self.seen {
            let _ = writeln!(out, "{count:>10}  {name}");
        }
        out
    }
}

/// The shares of the families, and of all together, as lines.
pub fn shares(rows: &[FamilyRow]) -> String {
    let mut out = String::from("family        cells  impossible     seen    share  missing     open\n");
    let mut line = |name: &str, row: &FamilyRow, missing: usize, open: usize| {
        let FamilyRow { cells, impossible, seen, .. } = row;
        let share = row.share() * 100.0;
        let _ = writeln!(out, "{name:<10} {cells:>8} {impossible:>11} {seen:>8} {share:>7.2}% {missing:>8} {open:>8}");
    };
    let mut all = FamilyRow::default();
    for row in rows {
        line(row.family, row, row.missing.len(), row.open.len());
        all.cells += row.cells;
        all.impossible += row.impossible;
        all.seen += row.seen;
    }
    let sum = |of: fn(&FamilyRow) -> usize| rows.iter().map(of).sum();
    line("all", &all, sum(|row| row.missing.len()), sum(|row| row.open.len()));
    out
}
