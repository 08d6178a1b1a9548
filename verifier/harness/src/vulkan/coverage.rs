//! The operations and shapes of control flow that were compared on devices, in a file that campaigns add to.

use super::campaign::Counts;
use ir3_programs::coverage::{Family, spirv};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The operations and shapes that were compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The devices.
    pub devices: BTreeSet<String>,
    /// Programs.
    pub programs: u64,
    /// The operations that a word that was compared in all bits depends on.
    pub operations: BTreeSet<String>,
    /// The shapes of control flow of programs that agree.
    pub shapes: BTreeSet<String>,
}

impl Compared {
    /// Adds the results of a campaign.
    pub fn add(&mut self, counts: &Counts) {
        self.devices.insert(counts.device.clone());
        self.programs += counts.programs;
        self.operations.extend(counts.depended_on.iter().map(|&name| name.to_owned()));
        self.shapes.extend(counts.shapes.iter().cloned());
    }

    /// The table of docs/coverage.md: of each family, the operations or shapes that SPIR-V has a form for, the share of
    /// them that was compared, and the others.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::from("| family | SPIR-V has a form for | compared | not compared |\n|---|---|---|---|\n");
        let shapes: BTreeSet<String> = Family::Control.cells().map(|(_, name)| name).collect();
        let families = spirv::operations().iter();
        let rows = families.map(|(family, names)| {
            (family.name(), names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<String>>(), &self.operations)
        });
        let (mut all, mut done) = (0, 0);
        for (family, names, compared) in rows.chain([(Family::Control.name(), shapes, &self.shapes)]) {
            let missing: Vec<String> = names.difference(compared).map(|name| format!("`{name}`")).collect();
            let count = names.len() - missing.len();
            (all, done) = (all + names.len(), done + count);
            row(&mut out, family, names.len(), count, &missing.join(", "));
        }
        row(&mut out, "all", all, done, "");
        out
    }
}

fn row(out: &mut String, family: &str, all: usize, count: usize, missing: &str) {
    let share = 100.0 * count as f64 / all.max(1) as f64;
    // Writing to a text does not fail.
    let _ = writeln!(out, "| `{family}` | {all} | {count} ({share:.1} %) | {missing} |");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_what_was_not_compared() {
        let mut counts = Counts { device: "a device".to_owned(), programs: 5, ..Counts::default() };
        counts.depended_on.insert("iadd");
        let mut compared = Compared::default();
        compared.add(&counts);
        compared.add(&counts);
        assert_eq!((compared.programs, compared.devices.len()), (10, 1));
        let table = compared.table();
        let alu = table.lines().find(|line| line.starts_with("| `alu`")).expect("a row");
        assert!(alu.contains(" | 1 (") && alu.contains("`isub`") && !alu.contains("`iadd`"), "{alu}");
        assert!(table.lines().any(|line| line.starts_with("| `control`")), "{table}");
    }
}
