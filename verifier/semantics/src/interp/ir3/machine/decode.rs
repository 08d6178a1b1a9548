//! Final code as a program with one block for each instruction: the interpreter's decoder makes its operations.

use super::super::Decoded;
use super::super::decode::{decode_with_registers, lone};
use super::super::lone_half;
use super::super::slots::RegisterBases;
use crate::environment::exchange::exchange;
use crate::interp::Unsupported;
use crate::machine::steps::Steps;
use cranelift_entity::{EntityRef, PrimaryMap};
use ir3_compiler::ir3::{Attrs, Block, BlockData, InstrData, InstrFlags, Opcode, Output, Program};
use ir3_compiler::machine::{Code, CodeInstr, Interface, Ip};
use ir3_compiler::target::Target;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::ops::Range;

/// The first slot of outputs that the interface does not name.
const UNKNOWN_OUTPUTS: u16 = 0x100;

/// Decodes the code; the block of an instruction is the one after its position, and the first has the inputs.
pub(super) fn decode(code: Code, steps: &Steps, target: &Target) -> Result<(Decoded, RegisterBases), Unsupported> {
    if let Some(at) = lone_half(code.instrs.values().map(|instr| &instr.data)) {
        return Err(lone(format!("l{at}")));
    }
    let program = one_block_each(code, steps);
    decode_with_registers(&program, target).map_err(|Unsupported { what, place }| {
        // Block numbers are positions plus one.
        let position = place.strip_prefix("block ").and_then(|rest| rest.split(',').next()?.parse::<usize>().ok());
        Unsupported { what, place: position.map_or(place.clone(), |at| format!("l{}", at.saturating_sub(1))) }
    })
}

fn one_block_each(code: Code, steps: &Steps) -> Program {
    let exchanges = exchanges(&code, steps);
    let exchanged: Vec<[InstrData; 3]> =
        exchanges.iter().map(|steps| steps.map(|step| code.instrs[step].data.clone())).collect();
    let Code { instrs, mut interface } = code;
    let mut program = Program {
        stage: interface.stage,
        workgroup_size: interface.workgroup_size,
        shared_size: interface.shared_size,
        scratch_size: interface.scratch_size,
        outputs: interface.outputs_at.clone(),
        consts: std::mem::take(&mut interface.consts),
        instrs: PrimaryMap::with_capacity(interface.inputs.len() + interface.prefetches.len() + instrs.len()),
        blocks: PrimaryMap::with_capacity(instrs.len() + 1),
        ..Program::default()
    };
    let blocks: Vec<Block> = (0..=instrs.len()).map(|_| program.blocks.push(BlockData::default())).collect();
    program.layout.clone_from(&blocks);
    let push = |program: &mut Program, block: Block, data: InstrData| {
        let instr = program.instrs.push(data);
        program.blocks[block].instrs.push(instr);
    };
    for input in &interface.inputs {
        let mut data = InstrData::new(Opcode::Input);
        data.dsts.push(input.dst);
        data.attrs = Attrs::Input(input.input);
        push(&mut program, blocks[0], data);
    }
    for prefetch in std::mem::take(&mut interface.prefetches) {
        push(&mut program, blocks[0], prefetch);
    }
    if let Some(&first) = blocks.get(1) {
        program.add_edge(blocks[0], 0, first);
    }
    for (ip, CodeInstr { mut data, target: to }) in instrs {
        let own = blocks[ip.index() + 1];
        let next = blocks.get(ip.index() + 2).copied();
        let target = to.and_then(|target| blocks.get(target.index() + 1).copied());
        let successors = match data.opcode {
            Opcode::End | Opcode::Chmask => {
                outputs(&mut program, &mut data, &interface);
                [None, None]
            }
            Opcode::Jump => [target, None],
            // One lane, or the preamble's wave, continues; the others branch.
            Opcode::Getone | Opcode::Getlast | Opcode::Shps => [next, target],
            opcode if opcode.is_terminator() && target.is_some() => [target, next],
            _ => [next, None],
        };
        let exchange = exchanges.iter().zip(&exchanged);
        match exchange.filter_map(|(steps, data)| Some((data, steps.iter().position(|&step| step == ip)?))).next() {
            // The registers change at the last step.
            Some((steps, 2)) => steps.iter().for_each(|data| push(&mut program, own, data.clone())),
            Some(_) => {}
            None => push(&mut program, own, data),
        }
        for (slot, to) in successors.into_iter().enumerate() {
            if let Some(to) = to {
                program.add_edge(own, slot, to);
            }
        }
    }
    program
}

/// Instructions that may be between the steps of an exchange.
const NEAR: usize = 16;

/// The exchanges of two registers by three `xor.b`, not necessarily adjacent: each is executed as one operation, at its
/// last step, so that undefined bits are exchanged too. Nothing between the steps uses the registers.
fn exchanges(code: &Code, steps: &Steps) -> Vec<[Ip; 3]> {
    let mut all: Vec<[Ip; 3]> = Vec::new();
    let is_step = |ip: Ip| code.instrs[ip].data.opcode == Opcode::XorB;
    if !code.instrs.keys().any(is_step) {
        return all;
    }
    let targets: FxHashSet<Ip> = code.instrs.values().filter_map(|instr| instr.target).collect();
    let bits = |range: &Range<u32>| steps.bits(range).iter().map(|bits| (bits.word, bits.bits));
    let registers = |ip: Ip| {
        let step = &steps.steps[ip.index()];
        bits(&step.read_bits).chain(bits(&step.write_bits)).collect::<SmallVec<[(u8, u64); 8]>>()
    };
    // The next instruction that uses a register of `from`, if control flow goes there only from it.
    let next_user = |from: Ip| {
        let own = registers(from);
        let after = (from.index() + 1..code.instrs.len()).take(NEAR).map(Ip::new);
        for ip in after {
            let data = &code.instrs[ip].data;
            let enters = targets.contains(&ip) || data.flags.contains(InstrFlags::JP);
            if enters || data.opcode.is_terminator() || matches!(data.opcode, Opcode::Prede | Opcode::Kill) {
                return None;
            }
            let shares =
                registers(ip).iter().any(|&(word, bits)| own.iter().any(|&(at, of)| at == word && of & bits != 0));
            if shares {
                return Some(ip);
            }
        }
        None
    };
    for first in code.instrs.keys().filter(|&ip| is_step(ip)) {
        if all.iter().any(|steps| steps.contains(&first)) {
            continue;
        }
        let Some(second) = next_user(first).filter(|&ip| is_step(ip)) else { continue };
        let Some(third) = next_user(second).filter(|&ip| is_step(ip)) else { continue };
        let steps = [first, second, third];
        if exchange(steps.map(|ip| &code.instrs[ip].data)).is_some() {
            all.push(steps);
        }
    }
    all
}

/// The sources of `end` are the outputs.
fn outputs(program: &mut Program, data: &mut InstrData, interface: &Interface) {
    let mut indices = Vec::with_capacity(interface.outputs.len());
    for (i, output) in interface.outputs.iter().enumerate() {
        let index = output.index.filter(|&index| usize::from(index) < interface.outputs_at.len());
        indices.push(index.unwrap_or_else(|| {
            let number = program.outputs.len() as u16;
            program.outputs.push(Output { base: UNKNOWN_OUTPUTS + i as u16, component: 0 });
            number
        }));
    }
    data.srcs = interface.outputs.iter().map(|output| output.src).collect();
    data.attrs = Attrs::Outputs(indices.into_iter().collect());
}
