//! Physical edges and reconvergence points, compared with Mesa's: the logs have both, for hundreds of shaders.

use crate::common::logs::{logs, text};
use crate::common::passes::passes;
use ir3_compiler::ir3::reconvergence;
use ir3_compiler::ir3::text::read;
use ir3_compiler::ir3::{Block, Opcode, Program};
use std::collections::BTreeSet;

type PhysicalEdges = BTreeSet<(Block, Block)>;

fn physical(program: &Program) -> PhysicalEdges {
    let edges = program
        .layout
        .iter()
        .flat_map(|&block| program.blocks[block].physical_successors.iter().map(move |&next| (block, next)));
    edges.collect()
}

fn points(program: &Program) -> BTreeSet<Block> {
    program.layout.iter().copied().filter(|&block| program.blocks[block].reconvergence_point).collect()
}

fn has_predication(program: &Program) -> bool {
    program.iter_instrs().any(|(_, i)| matches!(program.instrs[i].opcode, Opcode::Predt | Opcode::Predf))
}

#[test]
fn as_mesa_has_them() {
    let all = std::env::var_os("IR3_LOGS").is_some_and(|v| v == "all");
    let (mut programs, mut edges, mut same) = (0, 0, 0);
    let (mut more_edges, mut fewer_edges, mut points_differ) = (0, 0, 0);
    for (_, files) in logs() {
        for file in files.iter().step_by(if all { 1 } else { 4 }) {
            let log = text(file);
            for (title, text) in passes(&log) {
                if title != "ir3_sched" {
                    continue;
                }
                let Ok(mut program) = read(text) else { continue };
                if has_predication(&program) {
                    continue;
                }
                let (mesa, mesa_points) = (physical(&program), points(&program));
                reconvergence::run(&mut program);
                let ours = physical(&program);
                programs += 1;
                edges += mesa.len();
                let (more, fewer) = (ours.difference(&mesa).count(), mesa.difference(&ours).count());
                let other_points = mesa_points != points(&program);
                if more + fewer > 0 || other_points {
                    println!(
                        "{}: more {:?}, fewer {:?}, points {:?} and {:?}",
                        file.display(),
                        ours.difference(&mesa).collect::<Vec<_>>(),
                        mesa.difference(&ours).collect::<Vec<_>>(),
                        mesa_points,
                        points(&program),
                    );
                }
                more_edges += usize::from(more > 0);
                fewer_edges += usize::from(fewer > 0);
                points_differ += usize::from(other_points);
                same += usize::from(more + fewer == 0 && !other_points);
            }
        }
    }
    println!(
        "{programs} programs, {edges} physical edges: {same} the same; more edges in {more_edges}, fewer in {fewer_edges}, other points in {points_differ}"
    );
    assert!(same * 10 >= programs * 9, "{same} of {programs} the same");
}
