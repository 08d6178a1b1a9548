//! Every shader of the real logs, and every program of `corpus/`, is compiled by the whole pipeline. After each stage
//! the program is valid, every memory and texture access can be decoded, and the program's text reads back as the same
//! program. Refused programs are counted by reason; results have only physical registers, and, in the end, only machine
//! instructions.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::common::corpus::corpus;
use crate::common::final_forms::final_forms;
use crate::common::gpu::gpu;
use crate::common::logs::{logs, text};
use ir3_compiler::compilation::compile;
use ir3_compiler::ir3::access::Access;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{self, Opcode, Place, Program};
use ir3_compiler::nir;
use ir3_compiler::pipeline::{ErrorKind, Options, Stage};
use ir3_compiler::target::Target;

/// Checks a program after a stage. Returns the number of its accesses.
fn check(stage: Stage, program: &Program, target: &Target, fail: &mut impl FnMut(String)) -> usize {
    let mut accesses = 0;
    for (block, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        match Access::of(data) {
            Ok(access) => accesses += usize::from(access.is_some()),
            Err(unknown) => fail(unknown.to_string()),
        }
        if stage >= Stage::RegisterAllocation {
            let places =
                data.dsts.iter().map(|dst| dst.place).chain(data.srcs.iter().filter_map(|s| s.place().copied()));
            let virtual_place =
                places.into_iter().find(|place| !matches!(place, Place::Reg(_) | Place::Relative { .. }));
            if let Some(place) = virtual_place {
                fail(format!("{place:?} in {instr} ({}) of {block}", data.opcode));
            }
            if data.opcode == Opcode::Phi {
                fail(format!("{instr} of {block} is a phi"));
            }
        }
        let kept = matches!(data.opcode, Opcode::Input | Opcode::TexPrefetch);
        if stage >= Stage::LowerCopies && data.opcode.is_meta() && !kept {
            fail(format!("{instr} of {block} is a {}", data.opcode));
        }
    }
    let form = match stage {
        stage if stage >= Stage::LowerCopies => Form::Machine,
        stage if stage >= Stage::RegisterAllocation => Form::Registers,
        _ => Form::Ssa,
    };
    for violation in validate(program, target, form).err().unwrap_or_default() {
        fail(format!("{:?}: {violation}", violation.rule));
    }
    match ir3::text::read(&ir3::text::write(program)) {
        Ok(read) if Some(&read) == program.canonical().as_ref() => {}
        Ok(_) => fail("the text reads back to another program".to_owned()),
        Err(error) => fail(error.to_string()),
    }
    accesses
}

#[derive(Default)]
struct Tally {
    compiled: usize,
    accesses: usize,
    /// The instructions by the stage.
    instructions: BTreeMap<Stage, usize>,
    times: BTreeMap<Stage, Duration>,
    refused: BTreeMap<String, Vec<String>>,
    internal: usize,
    /// Programs that fail a check after a stage.
    broken: Vec<String>,
}

impl Tally {
    fn add(&mut self, name: &str, shader: &nir::Shader, target: &Target) {
        let mut start = Instant::now();
        let result = compile(shader, target, &Options::default(), &mut |stage, program| {
            *self.times.entry(stage).or_default() += start.elapsed();
            *self.instructions.entry(stage).or_default() += program.instruction_count();
            let mut fail = |what| self.broken.push(format!("{name}: {}: {stage}: {what}", target.name));
            self.accesses += check(stage, program, target, &mut fail);
            start = Instant::now();
        });
        match result {
            Ok(_) => self.compiled += 1,
            Err(error) => {
                self.internal += usize::from(error.kind == ErrorKind::Internal);
                let reason = format!("{:?}", error.kind);
                self.refused.entry(reason).or_default().push(format!("{name}: {error}"));
            }
        }
    }

    fn report(&self, what: &str) {
        let refused: usize = self.refused.values().map(Vec::len).sum();
        println!("{what}: {} compiled, {refused} refused, {} accesses seen", self.compiled, self.accesses);
        for stage in Stage::ALL {
            let count = self.instructions.get(&stage).copied().unwrap_or_default();
            let time = self.times.get(&stage).copied().unwrap_or_default();
            let each = time.as_nanos() / count.max(1) as u128;
            println!("  {stage:20} {count:8} instructions, {time:10.2?}, {each} ns each");
        }
        for (reason, places) in &self.refused {
            println!("  {:4} {reason}:", places.len());
            places.iter().take(3).for_each(|place| println!("       {place}"));
        }
    }

    /// Asserts that no check failed, no error is an internal one, and, if `all` must compile, nothing is refused.
    fn judge(&self, what: &str, all: bool) {
        let places: Vec<&String> = self.broken.iter().chain(self.refused.values().flatten().filter(|_| all)).collect();
        assert!(places.is_empty(), "{what}: {} failures, first {}", places.len(), places[0]);
        assert_eq!(self.internal, 0, "{what}: internal errors");
    }
}

#[test]
fn every_real_shader_compiles() {
    let mut tallies = Vec::new();
    for (folder, paths) in logs() {
        let target = gpu(&folder);
        let mut tally = Tally::default();
        for path in paths {
            for section in final_forms(&text(&path)) {
                let shader = nir::read(&section).unwrap();
                tally.add(&path.display().to_string(), &shader, &target);
            }
        }
        tally.report(&folder);
        tallies.push((folder, tally));
    }
    tallies.iter().for_each(|(folder, tally)| tally.judge(folder, true));
}

/// Older GPUs lack features that some programs need.
#[test]
fn every_program_of_the_corpus_compiles_for_every_generation() {
    for name in ["a330", "a420", "a530", "a618", "a660", "a750"] {
        let target = Target::by_name(name).unwrap();
        let mut tally = Tally::default();
        for path in corpus() {
            let shader = nir::read(&fs::read_to_string(&path).unwrap()).unwrap();
            tally.add(&path.display().to_string(), &shader, &target);
        }
        tally.report(name);
        tally.judge(name, ["a660", "a750"].contains(&name));
    }
}
