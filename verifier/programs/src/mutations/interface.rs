//! Mutations of inputs and outputs.

use super::{MutationSite, data};
use ir3_compiler::ir3::{Attrs, InputKind, Opcode, Program, SrcOperand, SystemValue};
use std::collections::BTreeMap;

pub(super) fn output_slot(program: &mut Program, site: &MutationSite) -> bool {
    if program.instrs[site.instr].opcode != Opcode::End || program.outputs.is_empty() {
        return false;
    }
    let i = site.random as usize % program.outputs.len();
    let output = &mut program.outputs[i];
    if site.coin() {
        output.base += 1
    } else {
        output.component += 1
    }
    true
}

pub(super) fn input_kind(program: &mut Program, site: &MutationSite) -> bool {
    use SystemValue::*;
    let Attrs::Input(Some(kind)) = &mut data(program, site).attrs else { return false };
    match kind {
        InputKind::Attribute { base, .. } => *base += 1,
        InputKind::System(value) => {
            let next = match *value {
                WorkgroupId => NumWorkgroups,
                LocalInvocationId => WorkgroupId,
                BarycentricPixel => BarycentricCentroid,
                VertexIdZeroBase | VertexId => InstanceId,
                InstanceId => PrimitiveId,
                FrontFace => HelperInvocation,
                SampleId => SampleMaskIn,
                _ => LocalInvocationIndex,
            };
            *value = next;
        }
    }
    true
}

pub(super) fn input_component(program: &mut Program, site: &MutationSite) -> bool {
    let Attrs::Input(Some(InputKind::Attribute { component, .. })) = &mut data(program, site).attrs else {
        return false;
    };
    *component = (*component + 1) & 3;
    true
}

pub(super) fn driver_param(program: &mut Program, site: &MutationSite) -> bool {
    // The constants belong to the whole program: mutate them at one site only, the first instruction.
    let params = program.consts.driver_params.len();
    if site.block != program.entry() || site.index != 0 || params == 0 {
        return false;
    }
    let mut read = BTreeMap::new();
    for (_, instr) in program.iter_instrs() {
        for src in &program.instrs[instr].srcs {
            if let SrcOperand::Const(word) = src.operand {
                read.insert(word, ());
            }
        }
    }
    let params: Vec<usize> =
        (0..params).filter(|&i| read.contains_key(&program.consts.driver_params[i].word)).collect();
    let Some(i) = site.pick(&params) else { return false };
    let param = &mut program.consts.driver_params[i];
    match site.random >> 20 & 1 {
        0 => param.word = param.word.checked_sub(4).unwrap_or(param.word + 4),
        _ => param.component = (param.component + 1) % 3,
    }
    true
}
