//! A quick upper bound on the number of registers, for the many programs that are far from the limit.
//!
//! Each value is assumed to be live from the first point of the code where it may be defined to the last one where it
//! may be used, without gaps: a value that a loop reads and does not define is live to the loop's end; a phi is live
//! from the ends of its block's predecessors on; parts of a vector are live while it is, counted separately. The
//! [pressure](super::super::pressure), which accounts for gaps and pieces, is less or equal at each point.

use super::pressure_units::{Capacity, Units};
use super::scalars::{general_result, general_value};
use crate::ir3::loops::{BackEdge, back_edges};
use crate::ir3::{Block, Opcode, Program, Value};
use crate::maps::map_of;
use cranelift_entity::{EntityRef, SecondaryMap};
use std::cmp::Reverse;

/// An upper bound on the pressure, in units of the full file and of half registers. `None` if the code's order is not
/// that of a structured program.
pub fn run(program: &Program, merged: bool) -> Option<(u32, u32)> {
    let mut first: SecondaryMap<Block, u32> = map_of(program.blocks.len());
    let mut count = 0;
    let mut placed: SecondaryMap<Block, bool> = map_of(program.blocks.len());
    for &block in &program.layout {
        first[block] = count;
        placed[block] = true;
        count += program.blocks[block].instrs.len() as u32;
    }
    let last = |block: Block| first[block] + (program.blocks[block].instrs.len() as u32).saturating_sub(1);
    if program.layout.iter().any(|&block| program.blocks[block].predecessors.iter().any(|&pred| !placed[pred])) {
        return None;
    }
    // Loops as ranges of the code, in the order of their headers: outer ones first.
    let mut loops: Vec<BackEdge> = back_edges(program).collect();
    loops.sort_unstable_by_key(|edge| (edge.header, Reverse(edge.latch)));
    loops.dedup_by_key(|edge| edge.header);
    let range = |edge: BackEdge| (first[program.layout[edge.header]], last(program.layout[edge.latch]));
    let loops: Vec<(u32, u32)> = loops.into_iter().map(range).collect();
    for (i, outer) in loops.iter().enumerate() {
        // Sorted by their starts; a loop that starts inside another one must end there, too.
        if loops[i + 1..].iter().take_while(|inner| inner.0 <= outer.1).any(|inner| inner.1 > outer.1) {
            return None;
        }
    }
    let mut lives: Vec<(u32, u32)> = vec![(u32::MAX, 0); program.values.len()];
    for &block in &program.layout {
        for (k, &instr) in program.blocks[block].instrs.iter().enumerate() {
            let data = &program.instrs[instr];
            let mut here = first[block] + k as u32;
            let mut until = here;
            match data.opcode {
                Opcode::Input | Opcode::TexPrefetch => here = 0,
                Opcode::Phi => {
                    let ends =
                        || program.blocks[block].predecessors.iter().map(|&pred| terminators(program, pred, &first));
                    here = ends().min().unwrap_or(here).min(here);
                    until = program.blocks[block]
                        .predecessors
                        .iter()
                        .map(|&pred| last(pred))
                        .max()
                        .unwrap_or(until)
                        .max(until);
                }
                Opcode::Split => {
                    if let Some(vector) = data.srcs.first().and_then(general_value) {
                        here = here.min(lives[vector.index()].0);
                    }
                }
                _ => {}
            }
            for value in data.dsts.iter().filter_map(general_result) {
                let life = &mut lives[value.index()];
                *life = (life.0.min(here), life.1.max(until));
            }
        }
    }
    let mut read = |value: Value, position: u32| {
        let life = &mut lives[value.index()];
        // The outermost loop around the use that does not define the value.
        let around = loops.iter().find(|&&(start, end)| start > life.0 && start <= position && position <= end);
        life.1 = life.1.max(around.map_or(position, |&(_, end)| end));
    };
    for &block in &program.layout {
        for (k, &instr) in program.blocks[block].instrs.iter().enumerate() {
            let data = &program.instrs[instr];
            for (source, src) in data.srcs.iter().enumerate() {
                let Some(value) = general_value(src) else { continue };
                match (data.opcode, program.blocks[block].predecessors.get(source)) {
                    (Opcode::Phi, Some(&pred)) => read(value, last(pred)),
                    _ => read(value, first[block] + k as u32),
                }
            }
        }
    }
    Some(greatest(program, &lives, count, merged))
}

/// The position of the first terminator of a block.
fn terminators(program: &Program, block: Block, first: &SecondaryMap<Block, u32>) -> u32 {
    first[block] + program.body_len(&program.blocks[block].instrs).saturating_sub(1) as u32
}

fn greatest(program: &Program, lives: &[(u32, u32)], count: u32, merged: bool) -> (u32, u32) {
    // The units that become live at each position, and those that have died there.
    let mut changes: Vec<[Units; 2]> = vec![[Units::default(); 2]; count as usize + 2];
    for (value, &(start, end)) in program.values.keys().zip(lives) {
        if start <= end {
            changes[start as usize][0] += Units::of(program, value);
            changes[end as usize + 1][1] += Units::of(program, value);
        }
    }
    let mut now = Units::of_arrays(program);
    let (mut full, mut half) = (0, 0);
    for [begun, ended] in changes {
        now -= ended;
        now += begun;
        let (f, h) = Capacity::demand(now, merged);
        (full, half) = (full.max(f), half.max(h));
    }
    (full, half)
}
