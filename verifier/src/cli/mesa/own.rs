//! `mesa --compile`: compiles the nir of a log with our own backend, verifies it, and compares its metrics with those
//! that Mesa printed.

use super::Mesa;
use super::report::{Row, name_of};
use ir3_compiler::nir::Shader;
use ir3_compiler::pipeline::{Options, RegisterLimit};
use ir3_compiler::target::{Backend, Target};
use ir3_harness::case::{Case, ProgramOrigin};
use ir3_harness::check::{
    BoundaryVerdict, Check, Checker, EngineKind, Policy, ProgramInputs, Search, Summary, Verdict, Verification,
    plant_of,
};
use ir3_harness::mesa::Settings;
use ir3_programs::input::read_log_nir;
use ir3_programs::mesa::shader::LogShader;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_report::bundle;
use ir3_report::mesa_comparison::ShaderCosts;
use ir3_semantics::environment::env::Env;
use std::path::Path;

/// Our own compilation of a shader.
pub struct Own {
    /// The name of the program in messages.
    pub name: String,
    /// The limit of registers, if it is not all of the target's.
    pub limit: Option<String>,
    pub rows: Vec<Row>,
    /// The counts without rows: programs, refused ones, stages that changed nothing.
    pub counts: Summary,
    /// The stage that refuses the program and its reason, or why there is no program.
    pub refused: Option<String>,
    /// The metrics in comparison with Mesa's, or the reason why there are none to compare.
    pub costs: Result<ShaderCosts, String>,
}

impl Mesa {
    /// Compiles a shader, verifies each boundary, and counts it.
    pub fn own(&self, path: &Path, shader: &LogShader, target: &Target, settings: &Settings<'_>) -> Own {
        let (mut own, nir, options) = match self.own_costs(path, shader, target) {
            (own, Some((nir, options))) => (own, nir, options),
            (own, None) => return own,
        };
        let plant = match self.planted.on(target) {
            Ok(plant) => plant,
            Err(why) => {
                own.refused = Some(why);
                return own;
            }
        };
        let inputs = ProgramInputs::new(&nir, self.seed.seed);
        let mut checker = Checker::new(*target, options);
        let mut change = plant.map(PlantedBug::change);
        let policy = Policy::new(settings.engines).with_search(Search::of_stage(&inputs));
        let envs = inputs.envs.first(self.runs);
        let verification = checker.verify(&nir, plant_of(&mut change), &policy, &envs);
        own.count(&verification, target);
        if let Some(env) = verification.failing_env() {
            let envs = env.map_or_else(|| verification.envs.clone(), |env| vec![env.clone()]);
            let written = self.write_own(&own.name, &nir, target, options, plant, &envs);
            let failed = own.rows.iter_mut().rev().find(|row| !row.is_pass());
            if let (Some(row), Some(written)) = (failed, written) {
                row.bundle = Some(written);
            }
        }
        own
    }

    /// The metrics of our own program and Mesa's; the program and its options, if there is one.
    pub fn own_costs(&self, path: &Path, shader: &LogShader, target: &Target) -> (Own, Option<(Shader, Options)>) {
        let mut own = Own {
            name: format!("{} (our backend)", name_of(path, shader)),
            limit: None,
            rows: Vec::new(),
            counts: Summary { programs: 1, ..Summary::default() },
            refused: None,
            costs: Err("the log has no statistics of its final program".to_owned()),
        };
        let refuse = |mut own: Own, why: String| {
            own.refused = Some(why);
            own.counts.rejected = 1;
            (own, None)
        };
        let Some(section) = &shader.nir else {
            return refuse(own, "the log has no final-form nir".to_owned());
        };
        if target.backend != Backend::Ir3 {
            return refuse(own, format!("{target} has no ir3"));
        }
        let nir = match read_log_nir(path, section) {
            Ok(nir) => nir,
            Err(error) => return refuse(own, error.to_string()),
        };
        let statistics = shader.printed_statistics();
        let given = self.compiler.options();
        let mesa_full = statistics.as_ref().and_then(|statistics| statistics.get("full"));
        let registers = match given.registers {
            RegisterLimit::Target if is_spillall(shader, mesa_full, target) => RegisterLimit::Minimum(0),
            given => given,
        };
        own.limit = (registers != RegisterLimit::Target).then(|| registers.to_string());
        let options = Options { registers, ..given };
        if let (Some(statistics), Some(last)) = (&statistics, shader.after("ir3_legalize")) {
            own.costs = ShaderCosts::of(own.name.clone(), path, &nir, last, statistics, target, &options)
                .map_err(|error| error.to_string());
        }
        (own, Some((nir, options)))
    }

    fn write_own(
        &self,
        name: &str,
        nir: &Shader,
        target: &Target,
        options: Options,
        plant: Option<&'static PlantedBug>,
        envs: &[Env],
    ) -> Option<Result<std::path::PathBuf, String>> {
        let case = Case::find(nir.clone(), *target, options, plant, envs, ProgramOrigin::File(name.to_owned()))?;
        Some(bundle::write(&self.failures, &case).map_err(|error| error.to_string()))
    }
}

impl Own {
    fn count(&mut self, verification: &Verification, target: &Target) {
        let sites = verification.sites();
        self.counts.unchanged = verification.unchanged as u64;
        self.counts.rejected = u64::from(verification.is_rejected());
        self.counts.sites = sites.all.into();
        self.counts.seen_sites = sites.seen.into();
        for BoundaryVerdict { stage, verdict, engine, time, sensitivity } in &verification.boundaries {
            let share = sensitivity.map(|sensitivity| sensitivity.share());
            let check = Check {
                program: self.name.clone(),
                gpu: target.name.to_owned(),
                stage: stage.name().to_owned(),
                engine,
                verdict: verdict.name(),
                lanes: verdict.lanes(),
                seconds: time.as_secs_f64(),
                reason: verdict.reason(),
                sensitivity: share.filter(|_| *engine == EngineKind::Interpreter.name()),
            };
            if let (Verdict::Unknown(unknown), true) = (verdict, verification.is_rejected()) {
                self.refused = Some(format!("{}: {unknown}", stage.name()));
            }
            let mut row = Row::new(check, verdict);
            let wrong = verification.wrong_proofs.iter().find(|(its, ..)| its == stage);
            row.wrong_proof = wrong.map(|(_, engine, why)| format!("{}: {why}", engine.name()));
            self.rows.push(row);
        }
    }
}

/// Returns true if Mesa spilled a shader that takes less than half of the registers: it was configured to use the
/// fewest.
fn is_spillall(shader: &LogShader, full: Option<u64>, target: &Target) -> bool {
    let vec4 = target.register_files().full / 8;
    shader.after("ir3_spill").is_some() && full.is_some_and(|full| 2 * full < u64::from(vec4))
}
