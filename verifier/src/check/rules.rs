//! What a result must be, whatever it computes: the rules of ir3, and no more registers than there may be.
//!
//! A register that no encoding can name, or one beyond the limit, holds its value in the interpreter as any other does, so
//! running the program shows nothing. A program that breaks a rule is refused as the compiler's own mistake, and
//! is found, reduced and kept as such.

use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{PhysReg, Place, Program, RegClass, RegFile, WriteMask};
use ir3_compiler::pipeline::{CompileError, ErrorKind, Options, Stage};
use ir3_compiler::regalloc;
use ir3_compiler::target::{RegisterFiles, Target};

/// The registers that the program may have, asked in front of their allocation. `None` where that cannot be told: then
/// the allocation says why.
pub fn allowed(stage: Stage, program: &Program, target: &Target, options: &Options) -> Option<RegisterFiles> {
    if stage != Stage::RegisterAllocation {
        return None;
    }
    regalloc::files_within(program, target, options.registers).ok()
}

/// What is wrong with the program behind a stage.
pub fn broken(
    stage: Stage,
    program: &Program,
    target: &Target,
    allowed: Option<&RegisterFiles>,
) -> Option<CompileError> {
    let reason = match stage {
        Stage::LowerCopies => {
            let violations = validate(program, target, Form::Machine).err()?;
            violations.first()?.to_string()
        }
        _ => excess(program, target, allowed?)?,
    };
    Some(CompileError { stage, kind: ErrorKind::Internal, reason })
}

/// Whether a general register of a program that has them is beyond the files, and which.
fn excess(program: &Program, target: &Target, allowed: &RegisterFiles) -> Option<String> {
    // Units behind the last register that is named, full and half.
    let mut used = [0u32; 2];
    let mut note = |class: RegClass, place: &Place, mask: WriteMask| {
        let registers = match *place {
            // Where the array begins is not said: an access may be to an element behind its first, by an offset of its own.
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
    use crate::generate::{self, Features, Profile};
    use ir3_compiler::pipeline::RegisterLimit;

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
                if let Place::Reg(reg) = dst.place {
                    dst.place = Place::Reg(up(dst.class, reg));
                }
            }
            for src in data.srcs.iter_mut() {
                if let Some(&Place::Reg(reg)) = src.place() {
                    src.operand = ir3_compiler::ir3::SrcOperand::Place(Place::Reg(up(src.class, reg)));
                }
            }
        }
    }

    /// What the checker says of a program whose registers are moved up behind a stage.
    fn shifted(profile: Profile, registers: RegisterLimit, behind: Stage, full: u16) -> Option<(Stage, String)> {
        let target = Target::by_name("a660").unwrap();
        let shader = generate::from_seed(3, profile, Features::of(&target)).shader;
        let mut checker = Checker::new(target, Options { registers, ..Options::default() });
        let mut plant = |stage: Stage, program: &mut Program| {
            if stage == behind {
                shift(program, full);
            }
        };
        let report = checker.program_with(&shader, &[1], Some(&mut plant));
        assert!(report.refutation().is_none());
        report.crash().map(|(stage, message)| (stage, message.to_owned()))
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

    #[test]
    fn registers_without_a_name_are_found() {
        assert_eq!(shifted(Profile::Half, RegisterLimit::Target, Stage::LowerCopies, 0), None);
        let (stage, message) = shifted(Profile::Half, RegisterLimit::Target, Stage::LowerCopies, 96).unwrap();
        assert_eq!(stage, Stage::LowerCopies);
        assert!(message.contains("expected"), "{message}");
    }
}
