//! A stage that exists in unit tests only: it shows that a stage is one row of the table and one file.
//!
//! It puts a nop at the end of programs whose workgroups have 61 lanes, which no other test compiles.

use crate::ir3::{InstrData, Opcode, Program};

/// Returns true if the program is one of those.
pub fn is_needed(program: &Program) -> bool {
    program.workgroup_size == Some([61, 1, 1])
}

/// Puts the nop there.
pub fn run(program: &mut Program) {
    let nop = program.instrs.push(InstrData::new(Opcode::Nop));
    if let Some(&last) = program.layout.last() {
        let end = program.blocks[last].instrs.len().saturating_sub(1);
        program.blocks[last].instrs.insert(end, nop);
    }
}

#[cfg(test)]
mod tests {
    use crate::compilation::{Compilation, ProgramMut, compile};
    use crate::ir3::{Opcode, Program};
    use crate::nir::{Shader, text};
    use crate::pipeline::{Change, Options, Stage};
    use crate::target::Target;

    fn shader(lanes: u32) -> Shader {
        let source = format!(
            "shader: MESA_SHADER_COMPUTE
workgroup_size: {lanes}, 1, 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {{
    block b0:
    block b1:
}}
"
        );
        text::read(&source).expect("a shader")
    }

    fn nops(program: &Program) -> usize {
        program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode == Opcode::Nop).count()
    }

    /// The row alone gives the stage its name, its place and its steps in the one loop over the stages.
    #[test]
    fn one_row_and_one_file_add_a_stage() {
        let (target, options) = (Target::default(), Options::default());
        assert_eq!(Stage::from_name("probe"), Some(Stage::Probe));
        assert!(Stage::Probe.feature().is_none() && !Stage::Probe.moves_values());
        assert_eq!((Stage::LAST, options.last), (Stage::Probe, Stage::Probe));
        let nops_of = |lanes, options| {
            let shader = shader(lanes);
            let program = compile(&shader, &target, &options, &mut |_, _| {}).expect("it compiles");
            nops(&program)
        };
        assert_eq!(nops_of(61, options), 1);
        assert_eq!(nops_of(64, options), 0);
        assert_eq!(nops_of(61, Options { last: Stage::LowerSamgq, ..options }), 0);

        let (with, without) = (shader(61), shader(64));
        for (shader, change) in [(&with, Change::Something), (&without, Change::Nothing)] {
            let mut hooked = Vec::new();
            let mut hook = |stage, _: ProgramMut<'_, '_>| {
                hooked.push(stage);
                Change::Nothing
            };
            let mut compilation = Compilation::new(shader, &target, &options).with_hook(Some(&mut hook));
            compilation.run_until(Stage::Probe).expect("it compiles");
            let step = compilation.step().expect("a stage").expect("it compiles");
            assert_eq!((step.stage, step.change), (Stage::Probe, change));
            assert!(compilation.step().is_none());
            drop(compilation);
            let is_stage = |stage: &Stage| options.runs(*stage) && stage.is_of(target.backend);
            assert_eq!(hooked, Stage::every().filter(is_stage).collect::<Vec<_>>());
        }
    }
}
