//! Comparison of the costs of our programs with Mesa's, from the same nir.
//!
//! A log of Mesa's compiler has the nir that ir3 received and, for each variant of the shader, Mesa's final program and
//! its own statistics. The nir is compiled to a final program by our backend, and both final programs are counted in
//! the same way ([`Stats`]). That the counters are right is checked by Mesa's statistics of its own program
//! ([`ShaderCosts::is_exact`]).

pub mod note;

use ir3_compiler::ir3::{self, workload};
use ir3_compiler::pipeline::{CompileError, Options, Stage};
use ir3_compiler::stats::{Branches, Stats};
use ir3_compiler::target::Target;
use ir3_compiler::{compilation, nir};
use ir3_programs::input::load;
use ir3_programs::mesa::input::FilePosition;
use ir3_programs::mesa::{InputError, Log, Section, SectionKind, Source, Statistics, mesa_counts};
use ir3_semantics::Snapshot;
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::Path;

/// The metrics that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    /// Instructions, with the nops.
    pub instructions: u32,
    /// Instructions other than nops.
    pub non_nops: u32,
    /// Nops.
    pub nops: u32,
    /// Expected stall slots at `(ss)`.
    pub sstall: u32,
    /// Expected stall slots at `(sy)`.
    pub systall: u32,
    /// Instructions with `(ss)`.
    pub ss: u32,
    /// Instructions with `(sy)`.
    pub sy: u32,
    /// Size in 32-bit words.
    pub dwords: u32,
    /// Instructions before the last varying is read.
    pub last_baryf: u32,
    /// Instructions before helper lanes end.
    pub last_helper: u32,
    /// Vec4 of the constant file.
    pub constlen: u32,
    /// Moves.
    pub mov: u32,
    /// Moves of immediates, among them.
    pub mov_immediate: u32,
    /// Moves of words of the constant file, among them.
    pub mov_constant: u32,
    /// Conversions.
    pub cov: u32,
    /// Full registers, in vec4.
    pub full: u32,
    /// Half registers, in vec4.
    pub half: u32,
    /// Waves that run at a time; Mesa prints it for one variant of a shader only.
    pub max_waves: Option<u32>,
    /// Components stored to private memory.
    pub stp: u32,
    /// Components loaded from private memory.
    pub ldp: u32,
    /// Instructions of the preamble.
    pub preamble: u32,
    /// Instructions other than nops, by category.
    pub categories: [u32; 8],
    /// Instructions that write a predicate. Mesa's are counted from its final program, if the log has it.
    pub predicates: u32,
    /// Branches by opcode, counted in the same way.
    #[serde(serialize_with = "by_name")]
    pub branches: Branches,
}

fn by_name<S: Serializer>(branches: &Branches, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(branches.iter().map(|(opcode, count)| (opcode.name(), count)))
}

/// A metric with its name.
pub type Metric = (&'static str, fn(&Metrics) -> u32);

/// The metrics that are summed, in the order of the table.
pub const METRICS: [Metric; 32] = [
    ("non-nops", |f| f.non_nops),
    ("waits", |f| f.nops + f.sstall + f.systall),
    ("dwords", |f| f.dwords),
    ("mov", |f| f.mov),
    ("cov", |f| f.cov),
    ("full", |f| f.full),
    ("half", |f| f.half),
    ("max_waves", |f| f.max_waves.unwrap_or(0)),
    ("nops", |f| f.nops),
    ("sstall", |f| f.sstall),
    ("systall", |f| f.systall),
    ("(ss)", |f| f.ss),
    ("(sy)", |f| f.sy),
    ("stp", |f| f.stp),
    ("ldp", |f| f.ldp),
    ("preamble", |f| f.preamble),
    ("mov_immediate", |f| f.mov_immediate),
    ("mov_constant", |f| f.mov_constant),
    ("mov_register", |f| f.mov.saturating_sub(f.mov_immediate + f.mov_constant)),
    ("cat0", |f| f.categories[0]),
    ("cat1", |f| f.categories[1]),
    ("cat2", |f| f.categories[2]),
    ("cat3", |f| f.categories[3]),
    ("cat4", |f| f.categories[4]),
    ("cat5", |f| f.categories[5]),
    ("cat6", |f| f.categories[6]),
    ("cat7", |f| f.categories[7]),
    ("predicates", |f| f.predicates),
    ("instructions", |f| f.instructions),
    ("last-baryf", |f| f.last_baryf),
    ("last-helper", |f| f.last_helper),
    ("constlen", |f| f.constlen),
];

/// The metrics for which the worst shaders are listed.
const WORST: [&str; 4] = ["mov", "full", "non-nops", "waits"];

impl Metrics {
    /// The metrics of one of our programs, with its statistics.
    #[must_use]
    pub fn of(program: &ir3::Program, stats: &Stats, target: &Target) -> Self {
        let waves = target.occupancy(&workload(program), stats.full).waves;
        Self::new(stats, Some(waves))
    }

    fn new(stats: &Stats, max_waves: Option<u32>) -> Self {
        let mut categories = stats.categories;
        categories[0] -= stats.nops;
        Self {
            instructions: stats.instructions,
            non_nops: stats.non_nops(),
            nops: stats.nops,
            sstall: stats.waits.sstall,
            systall: stats.waits.systall,
            ss: stats.waits.ss,
            sy: stats.waits.sy,
            dwords: stats.dwords,
            last_baryf: stats.last_baryf,
            last_helper: stats.last_helper,
            constlen: stats.constlen,
            mov: stats.mov,
            mov_immediate: stats.mov_immediate,
            mov_constant: stats.mov_constant,
            cov: stats.cov,
            full: stats.full,
            half: stats.half,
            max_waves,
            stp: stats.stp,
            ldp: stats.ldp,
            preamble: stats.preamble,
            categories,
            predicates: stats.predicates,
            branches: stats.branches,
        }
    }

    fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.non_nops += other.non_nops;
        self.nops += other.nops;
        self.sstall += other.sstall;
        self.systall += other.systall;
        self.ss += other.ss;
        self.sy += other.sy;
        self.dwords += other.dwords;
        self.last_baryf += other.last_baryf;
        self.last_helper += other.last_helper;
        self.constlen += other.constlen;
        self.mov += other.mov;
        self.mov_immediate += other.mov_immediate;
        self.mov_constant += other.mov_constant;
        self.cov += other.cov;
        self.full += other.full;
        self.half += other.half;
        self.max_waves = Some(self.max_waves.unwrap_or(0) + other.max_waves.unwrap_or(0));
        self.stp += other.stp;
        self.ldp += other.ldp;
        self.preamble += other.preamble;
        for (sum, n) in self.categories.iter_mut().zip(other.categories) {
            *sum += n;
        }
        self.predicates += other.predicates;
        self.branches += other.branches;
    }
}

/// The metrics of a variant of a shader.
#[derive(Clone, Debug, Serialize)]
pub struct ShaderCosts {
    /// The log's name, and the variant's stage.
    pub shader: String,
    /// Our metrics, or the reason for a refusal.
    pub ours: Result<Metrics, String>,
    /// Mesa's metrics.
    pub mesa: Metrics,
    /// True if Mesa printed the metrics that we count in its program.
    pub is_exact: bool,
}

impl ShaderCosts {
    /// Compiles the nir of a variant and compares it with Mesa's program after its last pass and the statistics that
    /// Mesa printed.
    ///
    /// # Errors
    /// If Mesa's program cannot be read.
    pub fn of(
        name: String,
        path: &Path,
        shader: &nir::Shader,
        section: &Section,
        statistics: &Statistics,
        target: &Target,
        options: &Options,
    ) -> Result<Self, InputError> {
        let mut program = ir3::text::read(&section.text).map_err(|error| {
            let (line, column) = section.place(error.line as u32, error.column as u32);
            let place = FilePosition { path: path.to_owned(), line, column };
            InputError::Syntax { place, found: error.found.clone(), expected: error.expected.clone() }
        })?;
        program.stage = statistics.shader_stage();
        let counted = Stats::of_final(&program, target);
        // The text of the section has neither `(ei)` nor `(eq)`, and the length of the driver's words is in the header.
        let printed = |name: &str| statistics.get(name).unwrap_or(0) as u32;
        let mesa = Metrics {
            last_baryf: printed("last-baryf"),
            last_helper: printed("last-helper"),
            constlen: printed("constlen"),
            ..Metrics::new(&counted, statistics.waves.map(|waves| waves.max_waves))
        };
        let mut ours = final_program(shader, target, options)
            .map(|program| Metrics::of(&program, &Stats::of_final(&program, target), target))
            .map_err(|error| error.to_string());
        // Only compare the metric if Mesa prints it.
        if let (Ok(ours), None) = (&mut ours, mesa.max_waves) {
            ours.max_waves = None;
        }
        let is_exact = mesa_counts(&program, target) == statistics.to_stats(&counted);
        Ok(Self { shader: name, ours, mesa, is_exact })
    }

    /// The metrics of the table in one line, ours and Mesa's, or the reason for the refusal.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.ours {
            Ok(ours) => {
                let pair = |(name, metric): &Metric| format!("{name} {}/{}", metric(ours), metric(&self.mesa));
                METRICS[..COLUMNS].iter().map(pair).collect::<Vec<_>>().join(", ")
            }
            Err(error) => format!("refused: {error}"),
        }
    }
}

/// The number of metrics that have a column.
const COLUMNS: usize = 13;

/// The comparison of all shaders.
#[derive(Clone, Debug, Default)]
pub struct CostTable {
    /// The rows in the order of the logs.
    pub rows: Vec<ShaderCosts>,
    /// The files that are no complete logs, and the error of each.
    pub unreadable: Vec<String>,
    /// The sums of this many programs, those of which Mesa's have the most instructions, are printed, too.
    pub largest: Option<usize>,
}

/// The sums over all rows with metrics of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of these rows.
    pub shaders: usize,
    /// The number of programs that we refused.
    pub refused: usize,
    /// The number of Mesa's programs, of all of these, that are counted as Mesa counts them.
    pub exact: usize,
    /// Our sums.
    pub ours: Metrics,
    /// Mesa's sums.
    pub mesa: Metrics,
}

impl Totals {
    /// Adds a row.
    pub fn add(&mut self, row: &ShaderCosts) {
        self.exact += usize::from(row.is_exact);
        match &row.ours {
            Ok(ours) => {
                self.shaders += 1;
                self.ours.add(ours);
                self.mesa.add(&row.mesa);
            }
            Err(_) => self.refused += 1,
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shaders, refused, exact, ours, mesa } = self;
        writeln!(f, "{exact} of Mesa's {} programs counted as Mesa counts them", shaders + refused)?;
        writeln!(f, "{shaders} programs, {refused} refused\n{:13}  {:>9}  {:>9}  ratio", "total", "ours", "Mesa's")?;
        for (name, metric) in METRICS {
            let (ours, mesa) = (metric(ours), metric(mesa));
            writeln!(f, "{name:13}  {ours:>9}  {mesa:>9}  {:5.3}", ratio(ours, mesa))?;
        }
        for ((opcode, ours), (_, mesa)) in ours.branches.iter().zip(mesa.branches.iter()) {
            writeln!(f, "{:13}  {ours:>9}  {mesa:>9}  {:5.3}", opcode.name(), ratio(ours, mesa))?;
        }
        Ok(())
    }
}

impl CostTable {
    /// Compiles every variant of a log and adds a row for it.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a complete log.
    pub fn add(&mut self, path: &Path, target: &Target, options: &Options) -> Result<(), InputError> {
        let source = Source::read(path)?;
        let log = Log::read(path, &source.text)?;
        let stages = log.nir(path)?.into_iter().map(|section| match &section.kind {
            SectionKind::NirFinal { stage } => stage.clone(),
            _ => String::new(),
        });
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_final = |kind: &SectionKind| matches!(kind, SectionKind::Ir3After { pass } if pass == "ir3_legalize");
        let finals: Vec<_> = log.sections.iter().filter(|section| is_final(&section.kind)).collect();
        let statistics = log.statistics();
        for (position, (stage, named)) in stages.zip(load(path, Some(*target))?).enumerate() {
            let Some(statistics) = statistics.iter().find(|statistics| statistics.stage == stage) else { continue };
            let Snapshot::Nir(shader) = &named.program else { continue };
            let Some(section) = finals.get(position) else { continue };
            let name = format!("{name} {stage}");
            self.rows.push(ShaderCosts::of(name, path, shader, section, statistics, target, options)?);
        }
        Ok(())
    }

    /// Computes the sums.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Self::sums(self.rows.iter())
    }

    /// Computes the sums of those `count` rows of which Mesa's programs have the most instructions. Of equal ones the
    /// first count.
    #[must_use]
    pub fn totals_of_largest(&self, count: usize) -> Totals {
        let mut rows: Vec<&ShaderCosts> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.mesa.non_nops));
        Self::sums(rows.into_iter().take(count))
    }

    fn sums<'a>(rows: impl Iterator<Item = &'a ShaderCosts>) -> Totals {
        let mut totals = Totals::default();
        rows.for_each(|row| totals.add(row));
        totals
    }

    /// The rows in which a metric of ours is highest in relation to Mesa's: the row, ours, Mesa's. Only those in which
    /// it is higher.
    #[must_use]
    fn worst(&self, metric: fn(&Metrics) -> u32, count: usize) -> Vec<(&ShaderCosts, u32, u32)> {
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .filter_map(|row| Some((row, metric(row.ours.as_ref().ok()?), metric(&row.mesa))))
            .filter(|&(_, ours, mesa)| ours > mesa)
            .collect();
        rows.sort_by(|a, b| ratio(b.1, b.2).total_cmp(&ratio(a.1, a.2)).then(b.1.cmp(&a.1)));
        rows.truncate(count);
        rows
    }
}

/// Compiles a shader to its final program.
///
/// # Errors
/// If a stage refuses the program.
pub fn final_program(shader: &nir::Shader, target: &Target, options: &Options) -> Result<ir3::Program, CompileError> {
    let options = Options { last: Stage::Legalize, ..*options };
    compilation::compile(shader, target, &options, &mut |_, _| {})
}

/// Our metric divided by Mesa's; Mesa's 0 counts as 1.
#[must_use]
fn ratio(ours: u32, mesa: u32) -> f64 {
    f64::from(ours) / f64::from(mesa.max(1))
}

impl fmt::Display for CostTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.shader.chars().count()).max().unwrap_or(0);
        let columns = &METRICS[..COLUMNS];
        write!(f, "{:width$}", "ours/Mesa's")?;
        for (name, _) in columns {
            write!(f, "  {name:>12}")?;
        }
        writeln!(f)?;
        for row in &self.rows {
            write!(f, "{:width$}", row.shader)?;
            match &row.ours {
                Ok(ours) => {
                    for (_, metric) in columns {
                        let pair = format!("{}/{}", metric(ours), metric(&row.mesa));
                        write!(f, "  {pair:>12}")?;
                    }
                    writeln!(f)?;
                }
                Err(error) => writeln!(f, "  refused: {error}")?,
            }
        }
        for name in WORST {
            let Some(&(_, metric)) = METRICS.iter().find(|(its, _)| *its == name) else { continue };
            writeln!(f, "\nworst in {name}:")?;
            for (row, ours, mesa) in self.worst(metric, 10) {
                writeln!(f, "  {:6.2}  {ours:>6} for {mesa:<6}  {}", ratio(ours, mesa), row.shader)?;
            }
        }
        for error in &self.unreadable {
            writeln!(f, "not read: {error}")?;
        }
        for row in self.rows.iter().filter(|row| !row.is_exact) {
            writeln!(f, "not counted as Mesa counts it: {}", row.shader)?;
        }
        write!(f, "\n{}", self.totals())?;
        if let Some(count) = self.largest {
            let Totals { shaders, ours, mesa, .. } = self.totals_of_largest(count);
            writeln!(f, "\nthe {shaders} largest:")?;
            for (name, metric) in METRICS {
                let (ours, mesa) = (metric(&ours), metric(&mesa));
                writeln!(f, "{name:13}  {ours:>9}  {mesa:>9}  {:5.3}", ratio(ours, mesa))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(shader: &str, ours: u32, mesa: u32) -> ShaderCosts {
        let metrics = |mov| Metrics { mov, non_nops: 10, ..Metrics::default() };
        ShaderCosts { shader: shader.into(), ours: Ok(metrics(ours)), mesa: metrics(mesa), is_exact: true }
    }

    #[test]
    fn worst_are_those_above_by_their_ratio() {
        let mut table = CostTable::default();
        table.rows.extend([row("a", 3, 2), row("b", 4, 0), row("c", 1, 5), row("d", 6, 2)]);
        table.rows.push(ShaderCosts { ours: Err("no".into()), ..row("e", 0, 100) });
        let worst: Vec<_> = table.worst(|f| f.mov, 2).into_iter().map(|(row, ..)| row.shader.as_str()).collect();
        assert_eq!(worst, ["b", "d"]);
        let totals = table.totals();
        assert_eq!((totals.shaders, totals.refused, totals.ours.mov, totals.mesa.mov), (4, 1, 14, 9));
        table.rows[1].mesa.non_nops = 30;
        table.rows[3].mesa.non_nops = 20;
        let largest = table.totals_of_largest(2);
        assert_eq!((largest.shaders, largest.ours.mov, largest.mesa.mov), (2, 10, 2));
        table.unreadable.push("x.log: no nir".into());
        let text = table.to_string();
        assert!(text.contains("not read: x.log: no nir"), "{text}");
        assert!(text.contains("refused: no") && text.contains("mov                   14          9  1.556"), "{text}");
    }
}
