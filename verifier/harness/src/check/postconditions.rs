//! Postconditions of a stage: the rules of ir3 in the form of the stage, operands that the machine has
//! ([`legal`](super::legal)), the register limit, and the registers of inputs and outputs; for Gen7 the rules of its
//! code, and that it has only instructions of the hardware.
//!
//! In the interpreter a register that cannot be encoded, or is beyond the limit, holds its value like any other, and so
//! does an input or output in another register than the given one: runs do not show these mistakes. A program that
//! breaks a rule counts as refused by an internal error of the compiler, and is found, reduced and kept as such. Of a
//! final program the [hazard checker](ir3_prove::hazards) runs too: runs take one path, and do not cover all rules
//! of the hardware.

use super::legal::{Extent, Judged, illegal};
use super::unseen;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::i965::vec4;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{Instr, Opcode, PhysReg, Place, Program, RegClass, RegFile, Src, SrcOperand, WriteMask};
use ir3_compiler::pipeline::{Allocation, CompileError, ErrorKind, Options, Refusal, Stage};
use ir3_compiler::target::{RegisterFiles, Target};
use ir3_prove::hazards::{self, Facts, Hazard, HazardKind};
use ir3_semantics::machine::steps::{FinalCode, reads_own_result};

/// The postconditions of a stage, computed before it runs.
#[derive(Default)]
pub struct Terms {
    /// The registers that the program may use, from allocation on. `None` if that cannot be determined: then
    /// allocation reports the reason.
    files: Option<RegisterFiles>,
    /// The fixed registers of inputs and outputs.
    given: Vec<Given>,
}

impl Terms {
    /// The inputs and outputs of a program, which no later stage may move.
    pub(super) fn given_of(program: &Program) -> Self {
        Self { files: None, given: given(program) }
    }
}

/// The general register of an input or output; `None` in it means any.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Given {
    is_output: bool,
    reg: Option<PhysReg>,
}

/// Computes the postconditions of `stage`.
pub fn terms(stage: Stage, program: &Program, target: &Target, options: &Options) -> Terms {
    let files = match stage {
        Stage::RegisterAllocation => Allocation::of(options, target).files(program).ok(),
        _ => None,
    };
    // Earlier stages may remove inputs without readers.
    let given = if stage >= Stage::RegisterAllocation { given(program) } else { Vec::new() };
    Terms { files, given }
}

/// The form of a program after a stage.
fn form_after(stage: Stage) -> Form {
    match stage {
        _ if stage >= Stage::LowerCopies => Form::Machine,
        _ if stage >= Stage::RegisterAllocation => Form::Registers,
        _ => Form::Ssa,
    }
}

/// Checks the postconditions of a stage, with facts about the stages before it.
pub fn broken(
    stage: Stage,
    program: ProgramRef<'_>,
    target: &Target,
    terms: &Terms,
    judged: Option<&mut Judged>,
) -> Option<CompileError> {
    let reason = match program {
        ProgramRef::Nir(_) => None,
        ProgramRef::Vec4(program) => broken_vec4(stage, program),
        ProgramRef::Ir3(program) => broken_ir3(stage, program, target, terms, judged),
    }?;
    Some(CompileError { stage, kind: ErrorKind::Internal, reason: Refusal::Postcondition(reason) })
}

/// The rules of vec4 code, and that no instruction remains that the hardware does not have. Runs and proofs accept such
/// instructions, and find nothing wrong.
pub(super) fn broken_vec4(stage: Stage, program: &vec4::Program) -> Option<String> {
    let is_half = |instr: &&vec4::Instr| matches!(instr.opcode, vec4::Opcode::Add64Lo | vec4::Opcode::Add64Hi);
    let left = || program.instrs.iter().find(is_half).filter(|_| stage >= Stage::LowerAdditions);
    let invalid = vec4::validate(program).err().map(|error| format!("the program is not valid: {error}"));
    invalid.or_else(|| Some(format!("{} is no instruction of the hardware", left()?.opcode.name())))
}

fn broken_ir3(
    stage: Stage,
    program: &Program,
    target: &Target,
    terms: &Terms,
    judged: Option<&mut Judged>,
) -> Option<String> {
    // The most specific one first.
    if stage < Stage::LowerCopies {
        let unseen = || unseen::broken(stage, program, target);
        return broken_allocation(stage, program, target, terms)
            .or_else(|| invalid(stage, program, target))
            .or_else(|| illegal(program, target, Extent::All, judged))
            .or_else(unseen);
    }
    broken_machine(stage, program, target, terms, judged).or_else(|| hazard(stage, program, target))
}

/// Checks the register limit, and the registers of inputs and outputs.
pub(super) fn broken_allocation(stage: Stage, program: &Program, target: &Target, terms: &Terms) -> Option<String> {
    let files = terms.files.as_ref().and_then(|allowed| excess(program, target, allowed));
    files.or_else(|| (stage >= Stage::RegisterAllocation).then(|| moved(&terms.given, &given(program)))?)
}

/// Checks all postconditions of the last stage, whose code is decoded.
pub(super) fn broken_final(
    stage: Stage,
    program: &Program,
    code: &FinalCode,
    target: &Target,
    terms: &Terms,
) -> Option<String> {
    broken_machine(stage, program, target, terms, None).or_else(|| hazard_of(stage, program, code, target))
}

/// The postconditions of a stage from the lowering of copies on, without those about time.
fn broken_machine(
    stage: Stage,
    program: &Program,
    target: &Target,
    terms: &Terms,
    judged: Option<&mut Judged>,
) -> Option<String> {
    // The last stage has read the program back from its words.
    let extent = if stage == Stage::Encode { Extent::Decoded } else { Extent::All };
    invalid(stage, program, target)
        .or_else(|| illegal(program, target, extent, judged))
        .or_else(|| moved(&terms.given, &given(program)))
        .or_else(|| unseen::broken(stage, program, target))
}

/// The first violation of the rules of ir3.
fn invalid(stage: Stage, program: &Program, target: &Target) -> Option<String> {
    let violations = validate(program, target, form_after(stage)).err()?;
    Some(violations.first()?.to_string())
}

/// Finds a repetition that reads the result of an earlier one of the same instruction: nothing that comes later can
/// wait between them.
fn early_repetition(program: &Program, target: &Target) -> Option<String> {
    let is_early = |instr: &Instr| {
        let data = &program.instrs[*instr];
        data.repeat > 0 && reads_own_result(data, target)
    };
    let instr = program.iter_instrs().map(|(_, instr)| instr).find(is_early)?;
    let opcode = program.instrs[instr].opcode;
    Some(format!("{instr} (`{opcode}`): a repetition reads a result of an earlier one before it is available"))
}

/// Returns the first hazard of a machine program: of one that is not final, those of repetitions.
fn hazard(stage: Stage, program: &Program, target: &Target) -> Option<String> {
    if stage < Stage::Legalize {
        return early_repetition(program, target);
    }
    match FinalCode::of_program(program, target) {
        Ok(code) => hazard_of(stage, program, &code, target),
        Err(refusal) => Some(refusal.to_string()),
    }
}

/// Returns the first hazard of a final program, or violation of the machine's other rules about the order of
/// instructions. Hazards that are merely not excluded do not count: runs check that branches marked uniform are
/// uniform, and the extent of a relative access to constants reaches.
fn hazard_of(stage: Stage, program: &Program, code: &FinalCode, target: &Target) -> Option<String> {
    let facts = Facts { trusts_marks: true, ..Facts::of_program(program) };
    let hazards = match hazards::check_final(code, &facts, target) {
        Ok(report) => report.hazards,
        Err(error) => return Some(error.to_string()),
    };
    let code = &code.code;
    let is_far = |src: &Src| matches!(src.operand, SrcOperand::ConstRelative(_));
    let is_open = |hazard: &Hazard| match hazard.kind {
        HazardKind::ConstBeforeWrite => code.instrs[hazard.at].data.srcs.iter().any(is_far),
        // Uniformity of branches is not encoded: after decoding, it is inferred from the marks that are checked here.
        HazardKind::NoReconvergence => stage == Stage::Encode,
        _ => false,
    };
    // Mesa's practice is ours.
    hazards.iter().find(|hazard| !is_open(hazard)).map(ToString::to_string)
}

/// The registers of all general inputs and outputs, in layout order.
fn given(program: &Program) -> Vec<Given> {
    let mut list = Vec::new();
    let is_general = |class: RegClass| class.file == RegFile::General;
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        if data.opcode == Opcode::Input {
            let dsts = data.dsts.iter().filter(|dst| is_general(dst.class));
            list.extend(dsts.map(|dst| Given { is_output: false, reg: dst.place.reg() }));
        } else if data.opcode.is_output() {
            let srcs = data.srcs.iter().filter(|src| is_general(src.class)).filter_map(Src::place);
            list.extend(srcs.map(|place| Given { is_output: true, reg: place.reg() }));
        }
    }
    list
}

/// Finds an input or output that is not in its fixed register.
fn moved(before: &[Given], after: &[Given]) -> Option<String> {
    if before.len() != after.len() {
        return Some(format!("{} inputs and outputs are {} now", before.len(), after.len()));
    }
    let (Given { is_output, reg }, now) =
        before.iter().zip(after).find(|(before, after)| before.reg.is_some() && before != after)?;
    let name = |reg: Option<PhysReg>| reg.map_or("no register".to_owned(), |reg| reg.to_string());
    let what = if *is_output { "output" } else { "input" };
    Some(format!("an {what} is in {}, expected the given {}", name(now.reg), name(*reg)))
}

/// Finds a general register beyond the limit.
fn excess(program: &Program, target: &Target, allowed: &RegisterFiles) -> Option<String> {
    // The number of units up to the last register that is named, full and half.
    let mut used = [0u32; 2];
    let mut note = |class: RegClass, place: &Place, mask: WriteMask| {
        let registers = match *place {
            // The beginning of the array is unknown: an access may be to a later element, by an offset of its own.
            Place::Relative { size, .. } => u32::from(size),
            Place::Reg(reg) | Place::Assigned(_, reg) if reg != PhysReg::INVALID => u32::from(reg.0) + mask.span(),
            _ => return,
        };
        if class.file == RegFile::General {
            let units = &mut used[usize::from(class.half && !target.merged_regs)];
            *units = u32::max(*units, registers * u32::from(class.component_units()));
        }
    };
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        data.dsts.iter().for_each(|dst| note(dst.class, &dst.place, dst.mask));
        data.srcs
            .iter()
            .filter_map(|src| Some((src, src.place()?)))
            .for_each(|(src, place)| note(src.class, place, src.mask));
    }
    let files = [("full", used[0], allowed.full, 2), ("half", used[1], allowed.half, 1)];
    let (file, used, limit, unit) = files.into_iter().find(|&(_, used, limit, _)| used > limit)?;
    Some(format!("uses {} {file} registers, and may use {}", used.div_ceil(unit), limit / unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checker;
    use ir3_compiler::compilation::Compilation;
    use ir3_compiler::ir3::{InstrData, InstrFlags, OperandFlags};
    use ir3_compiler::nir;
    use ir3_compiler::pipeline::RegisterLimit;
    use ir3_compiler::target::GEN7_SCALAR;
    use ir3_programs::generator;
    use ir3_programs::generator::{Features, Profile};
    use ir3_programs::planted_bugs::PlantedChange;
    use ir3_semantics::environment::env::Env;
    use ir3_semantics::interp::Difference;

    /// Moves all general registers up: the program computes the same.
    fn shift(program: &mut Program, full: u16) {
        let list: Vec<_> = program.iter_instrs().map(|(_, instr)| instr).collect();
        let up = |class: RegClass, reg: PhysReg| match class {
            RegClass { file: RegFile::General, half } => PhysReg(reg.0 + if half { 2 * full } else { full }),
            _ => reg,
        };
        for instr in list {
            let data = &mut program.instrs[instr];
            for dst in data.dsts.iter_mut() {
                match &mut dst.place {
                    Place::Reg(reg) => *reg = up(dst.class, *reg),
                    Place::Relative { offset, .. } => *offset = up(dst.class, PhysReg(*offset as u16)).0 as i16,
                    _ => {}
                }
            }
            for src in data.srcs.iter_mut() {
                let place = match src.place() {
                    Some(&Place::Reg(reg)) => Place::Reg(up(src.class, reg)),
                    Some(&Place::Relative { offset, size }) => {
                        Place::Relative { offset: up(src.class, PhysReg(offset as u16)).0 as i16, size }
                    }
                    _ => continue,
                };
                src.operand = SrcOperand::Place(place);
            }
        }
        for array in program.arrays.values_mut() {
            array.base = array.base.map(|base| up(array.class, base));
        }
    }

    /// Checks a program whose registers are moved up after a stage.
    fn shifted(profile: Profile, registers: RegisterLimit, behind: Stage, full: u16) -> Option<(Stage, String)> {
        let target = Target::by_name("a660").unwrap();
        let mut plant = |stage: Stage, program: &mut Program| {
            if stage == behind {
                shift(program, full);
            }
        };
        let mut report = |seed| {
            let shader = generator::from_seed(seed, profile, Features::of(&target)).shader;
            let mut checker = Checker::new(target, Options { registers, ..Options::default() });
            checker.program_or_panic(&shader, &Env::from_seeds(&[1]), Some(&mut plant))
        };
        // The comparison of headers finds it first in a program with inputs.
        let report = (3..9).map(&mut report).find(|report| report.refutation().is_none()).expect("no inputs");
        report.crash().map(|(stage, message)| (stage, message.message.clone()))
    }

    #[test]
    fn registers_beyond_the_limit_are_found() {
        for limit in [RegisterLimit::Registers(64), RegisterLimit::Minimum(0)] {
            assert_eq!(shifted(Profile::Alu, limit, Stage::RegisterAllocation, 0), None);
            let (stage, message) = shifted(Profile::Alu, limit, Stage::RegisterAllocation, 64).unwrap();
            assert_eq!(stage, Stage::RegisterAllocation);
            assert!(message.contains("full registers, and may use"), "{message}");
        }
    }

    /// Assigns registers to all full inputs, or to all full outputs, with gaps between them; returns the number
    /// assigned.
    fn give(program: &mut Program, outputs: bool) -> usize {
        let (mut next, mut count) = (150, 0);
        let mut take = |components: u32| {
            next -= components as u16 + 1;
            count += 1;
            PhysReg(next)
        };
        let list: Vec<_> = program.iter_instrs().map(|(_, instr)| instr).collect();
        for instr in list {
            let data = &mut program.instrs[instr];
            if outputs && data.opcode == Opcode::End {
                for src in data.srcs.iter_mut().filter(|src| src.class == RegClass::FULL) {
                    if let Some(value) = src.value() {
                        src.operand = SrcOperand::Place(Place::Assigned(value, take(1)));
                    }
                }
            } else if !outputs && data.opcode == Opcode::Input {
                for dst in data.dsts.iter_mut().filter(|dst| dst.class == RegClass::FULL) {
                    if let Some(value) = dst.value() {
                        dst.place = Place::Assigned(value, take(dst.mask.span()));
                    }
                }
            }
        }
        count
    }

    /// The same program in other registers: the check finds at each stage that fixed registers have moved.
    #[test]
    fn given_registers_that_are_not_kept_are_found() {
        let target = Target::by_name("a660").unwrap();
        for (outputs, what) in [(false, "an input is in "), (true, "an output is in ")] {
            for behind in [None, Some(Stage::RegisterAllocation), Some(Stage::LowerCopies)] {
                let mut tried = 0;
                for seed in 1..40 {
                    let shader = generator::from_seed(seed, Profile::Mixed, Features::of(&target)).shader;
                    let mut checker = Checker::new(target, Options::default());
                    let mut some = 0;
                    let mut plant = |stage: Stage, program: &mut Program| {
                        if stage == Stage::Spill {
                            some = give(program, outputs);
                        }
                        if behind == Some(stage) {
                            shift(program, 1);
                        }
                    };
                    let report = checker.program_or_panic(&shader, &Env::from_seeds(&[1]), Some(&mut plant));
                    let refuted = report.refutation().map(|refutation| (refutation.stage, &refutation.difference));
                    // The comparison of headers finds it too, and is done first; so do runs of arrays, where an access
                    // does not reach the registers of another array.
                    if let Some((stage, Difference::Header(_) | Difference::Output { actual: None, .. })) = refuted
                        && behind.is_some_and(|behind| behind.name() == stage)
                    {
                        tried += 1;
                        continue;
                    }
                    assert!(refuted.is_none(), "seed {seed}, {what}, {behind:?}: {refuted:?}");
                    let found = report.refusal.map(|error| (error.stage, error.reason.to_string()));
                    if some == 0 {
                        continue;
                    }
                    tried += 1;
                    match (behind, found) {
                        (None, found) => assert_eq!(found, None),
                        (Some(behind), Some((stage, message))) => {
                            // Half registers may be moved out of the part of the file that they reach.
                            let is_it = message.starts_with(what)
                                || behind == Stage::LowerCopies
                                    && (message.contains("given") || message.contains("half general register"));
                            assert!(stage == behind && is_it, "seed {seed}, {behind}: {stage}, {message}");
                        }
                        (Some(_), None) => panic!("seed {seed}: not found"),
                    }
                }
                assert!(tried > 5, "{tried}");
            }
        }
    }

    /// Sums that are not lowered have the same meaning, so only this check finds them.
    #[test]
    fn halves_of_sums_that_are_not_lowered_are_found() {
        struct Keep {
            before: Option<vec4::Program>,
        }
        impl PlantedChange for Keep {
            fn ir3(&mut self, _: Stage, _: &mut Program) {}

            fn gen7(&mut self, stage: Stage, program: &mut vec4::Program) {
                match stage {
                    Stage::ScalarSelect => self.before = Some(program.clone()),
                    Stage::LowerAdditions => program.clone_from(self.before.as_ref().expect("selected")),
                    _ => {}
                }
            }
        }
        let mut found = 0;
        for seed in 1..20 {
            let shader = generator::from_seed(seed, Profile::Alu, Features::of(&GEN7_SCALAR)).shader;
            let mut checker = Checker::new(GEN7_SCALAR, Options::default());
            let mut check = |plant| {
                let report = checker.program_or_panic(&shader, &Env::from_seeds(&[1]), plant);
                assert!(report.refutation().is_none(), "seed {seed}");
                report.refusal.map(|error| (error.stage, error.reason.to_string()))
            };
            assert_eq!(check(None), None, "seed {seed}");
            let mut keep = Keep { before: None };
            let Some((stage, reason)) = check(Some(&mut keep)) else { continue };
            assert_eq!(stage, Stage::LowerAdditions);
            assert!(reason.contains("is no instruction of the hardware"), "{reason}");
            found += 1;
        }
        assert!(found > 5, "{found}");
    }

    /// Errors that only the hardware shows: the target of waves that skip the preamble, and the block where waiting
    /// lanes reconverge.
    #[test]
    fn broken_rules_about_waves_are_found() {
        let target = Target::by_name("a660").unwrap();
        let (mut preambles, mut joins) = (0, 0);
        for text in [
            include_str!("../../../../corpus/fragment/preamble.nir"),
            include_str!("../../../../corpus/control-flow/nested-loops.nir"),
        ] {
            let shader = nir::read(text).unwrap();
            for registers in [RegisterLimit::Target, RegisterLimit::Minimum(0)] {
                let options = Options { registers, ..Options::default() };
                let last = Compilation::new(&shader, &target, &options).finish().unwrap().unwrap();
                assert_eq!(hazard(Stage::Encode, &last, &target), None);
                for (block, instr) in last.iter_instrs() {
                    let data = &last.instrs[instr];
                    let mut changed = last.clone();
                    if data.opcode == Opcode::Shpe {
                        let nop = changed.instrs.push(InstrData::new(Opcode::Nop));
                        let at = last.body_len(&last.blocks[block].instrs) + 1;
                        changed.blocks[block].instrs.insert(at, nop);
                        let found = hazard(Stage::Legalize, &changed, &target).expect("code after the preamble");
                        assert!(found.contains("skips more or less than the preamble"), "{found}");
                        preambles += 1;
                    } else if data.flags.contains(InstrFlags::JP) {
                        changed.instrs[instr].flags -= InstrFlags::JP;
                        let found = hazard(Stage::Legalize, &changed, &target).expect("no mark");
                        assert!(found.contains("lanes reconverge here"), "{found}");
                        changed.blocks[block].reconvergence_point = false;
                        // Some marks are where no lane waits.
                        let Some(found) = hazard(Stage::Legalize, &changed, &target) else { continue };
                        assert!(found.contains("has no (jp)"), "{found}");
                        joins += 1;
                    }
                }
            }
        }
        assert!(preambles == 2 && joins >= 4, "{preambles} {joins}");
    }

    /// Mesa waits for everything after a barrier; so does our compiler, where a barrier ends a block, too.
    #[test]
    fn accesses_right_after_a_barrier_are_found() {
        let target = Target::by_name("a660").unwrap();
        let shader = nir::read(include_str!("../../../../corpus/memory/barrier-at-a-join.nir")).unwrap();
        let last = Compilation::new(&shader, &target, &Options::default()).finish().unwrap().unwrap();
        assert_eq!(hazard(Stage::Encode, &last, &target), None);
        let mut found = 0;
        for (_, instr) in last.iter_instrs() {
            for flag in [InstrFlags::SS, InstrFlags::SY] {
                let mut changed = last.clone();
                changed.instrs[instr].flags -= flag;
                let message = hazard(Stage::Encode, &changed, &target);
                found += u32::from(message.is_some_and(|message| message.contains("accesses memory after a barrier")));
            }
        }
        assert!(found >= 2, "{found}");
    }

    /// Repetitions follow each other in consecutive slots: with the results of earlier ones as operands, no stage after
    /// it could mend that.
    #[test]
    fn a_repetition_that_reads_an_earlier_one_is_found() {
        let target = Target::by_name("a660").unwrap();
        let mut found = 0;
        for seed in 0..20 {
            let shader = generator::from_seed(seed, Profile::Vectors, Features::of(&target)).shader;
            let options = Options { last: Stage::Repeat, ..Options::default() };
            let program = Compilation::new(&shader, &target, &options).finish().unwrap().unwrap();
            assert_eq!(hazard(Stage::Repeat, &program, &target), None);
            for (_, instr) in program.iter_instrs() {
                let data = &program.instrs[instr];
                let (Some(Place::Reg(first)), Some(src)) = (data.dsts.first().map(|dst| dst.place), data.srcs.first())
                else {
                    continue;
                };
                let is_general = data.dsts[0].class.file == RegFile::General && src.class == data.dsts[0].class;
                if data.repeat == 0 || !data.opcode.is_alu() || !is_general || src.value().is_some() {
                    continue;
                }
                // All repetitions read the result of the first one.
                let mut changed = program.clone();
                let operand = SrcOperand::Place(Place::Reg(first));
                let flags = src.flags - OperandFlags::R;
                changed.instrs[instr].srcs[0] = Src { operand, flags, mask: WriteMask::SCALAR, ..*src };
                let message = hazard(Stage::Repeat, &changed, &target).expect("a read that is too early");
                assert!(message.contains("a repetition reads a result of an earlier one"), "{message}");
                found += 1;
            }
        }
        assert!(found > 5, "{found}");
    }

    #[test]
    fn registers_without_a_name_are_found() {
        assert_eq!(shifted(Profile::Half, RegisterLimit::Target, Stage::LowerCopies, 0), None);
        let (stage, message) = shifted(Profile::Half, RegisterLimit::Target, Stage::LowerCopies, 96).unwrap();
        assert_eq!(stage, Stage::LowerCopies);
        assert!(message.contains("expected"), "{message}");
    }
}
