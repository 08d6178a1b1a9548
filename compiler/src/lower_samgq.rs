//! `samgq` becomes `samgp0` to `samgp3`, where the target's `samgq` is wrong.
//!
//! `samgq` samples with explicit derivatives, for the four lanes of a quad at a time. Outside of fragment and compute
//! shaders it returns wrong data on some GPUs ([`Quirks::samgq`](crate::target::Quirks::samgq)). `samgpN` samples for
//! lane N of each quad only and does not change the destination of the other lanes, so the four together are a `samgq`.
//!
//! All four have the operands of the `samgq`. A destination may be on top of a source: a lane reads its sources before
//! it is written, and none of the others writes it. A value that is written in parts is not in SSA form, so this comes
//! after register allocation.

use crate::ir3::{InstrData, Opcode, OperandFlags, Program, ShaderStage};
use crate::target::Target;

/// The opcodes in the order of the lanes of a quad.
const BY_LANE: [Opcode; 4] = [Opcode::Samgp0, Opcode::Samgp1, Opcode::Samgp2, Opcode::Samgp3];

/// Returns true if the program has a `samgq` that would return wrong data.
pub fn is_needed(program: &Program, target: &Target) -> bool {
    let is_right = matches!(program.stage, Some(ShaderStage::Fragment | ShaderStage::Compute));
    target.quirks.samgq
        && !is_right
        && program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Samgq)
}

/// Replaces all of them. Registers have been assigned.
pub fn run(program: &mut Program) {
    program.rewrite_lists(|program, instr, out| {
        if program.instrs[instr].opcode == Opcode::Samgq {
            let last = InstrData { opcode: BY_LANE[3], ..program.instrs[instr].clone() };
            let mut first = last.clone();
            // The sources are read until the last one.
            for src in &mut first.srcs {
                src.flags.remove(OperandFlags::KILL | OperandFlags::FIRST_KILL);
            }
            for opcode in &BY_LANE[..3] {
                out.push(program.instrs.push(InstrData { opcode: *opcode, ..first.clone() }));
            }
            program.instrs[instr] = last;
        }
        out.push(instr);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compilation::compile;
    use crate::nir::{Shader, text};
    use crate::pipeline::{Options, Stage};

    /// One sample with derivatives, in a stage of the pipeline.
    fn shader(stage: &str) -> Shader {
        let header = if stage == "COMPUTE" { "workgroup_size: 64, 1, 1\n" } else { "" };
        let source = format!(
            "shader: MESA_SHADER_{stage}
{header}num_textures: 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {{
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = load_const (0x3f000000)
    32x2   %2 = vec2 %0, %1
    32x4   %3 = (float32)txd %2 (coord), %2 (ddx), %2 (ddy), 0 (texture), 0 (sampler)
                @store_ssbo_ir3 (%3, %0, %0, %0) (base=0, wrmask=xyzw, access=none, align_mul=16, align_offset=0)
    block b1:
}}
"
        );
        text::read(&source).expect("a shader")
    }

    fn samples(stage: &str, gpu: &str) -> Vec<Opcode> {
        let target = Target::by_name(gpu).expect("a GPU");
        let options = Options { last: Stage::LowerSamgq, ..Options::default() };
        let program = compile(&shader(stage), &target, &options, &mut |_, _| {}).expect("it compiles");
        let opcodes = program.iter_instrs().map(|(_, instr)| program.instrs[instr].opcode);
        opcodes.filter(|opcode| *opcode == Opcode::Samgq || BY_LANE.contains(opcode)).collect()
    }

    /// As in Mesa: from a6xx on, in all stages but fragment and compute shaders.
    #[test]
    fn samgq_is_replaced_where_it_is_wrong() {
        for gpu in ["a610", "a618", "a640", "a650", "a660", "a730", "a750"] {
            assert_eq!(samples("VERTEX", gpu), BY_LANE, "{gpu}");
            assert_eq!(samples("FRAGMENT", gpu), [Opcode::Samgq], "{gpu}");
            assert_eq!(samples("COMPUTE", gpu), [Opcode::Samgq], "{gpu}");
        }
        assert_eq!(samples("VERTEX", "a540"), [Opcode::Samgq]);
    }

    #[test]
    fn the_last_of_the_four_reads_its_sources_last() {
        let target = Target::default();
        let options = Options { last: Stage::LowerSamgq, ..Options::default() };
        let program = compile(&shader("VERTEX"), &target, &options, &mut |_, _| {}).expect("it compiles");
        let mut seen = Vec::new();
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            if BY_LANE.contains(&data.opcode) {
                seen.push((data.dsts.clone(), data.srcs.iter().any(|src| src.flags.contains(OperandFlags::KILL))));
            }
        }
        assert_eq!(seen.iter().map(|(_, kills)| *kills).collect::<Vec<_>>(), [false, false, false, true]);
        assert!(seen.iter().all(|(dsts, _)| *dsts == seen[0].0));
    }
}
