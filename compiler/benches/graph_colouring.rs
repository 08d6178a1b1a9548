//! Speed and memory of graph colouring: interference graphs of 100 to 100,000 nodes.
//!
//! `cargo bench -p ir3-compiler --bench graph_colouring` prints milliseconds of CPU time to colour a graph (edges,
//! simplification and selection), of the best of some runs, and the peak of the resident memory so far. The graphs are
//! those of straight-line code: each node interferes with those of a window around it, and the classes are halves, full
//! registers and vectors of two and four in the file of a6xx. With a window of 40 most of them have optimistic nodes.

use cpu_time::ThreadTime;
use ir3_compiler::graph_colouring::Rotation;
use ir3_compiler::graph_colouring::classes::{Class, Classes, ClassesBuilder, Register};
use ir3_compiler::graph_colouring::graph::{GraphBuilder, Node};
use ir3_compiler::graph_colouring::select::{select, wrong_node};
use ir3_compiler::graph_colouring::simplify::simplify;

/// Units of the file.
const UNITS: u16 = 384;

fn classes() -> (Classes, Vec<Class>) {
    let mut builder = ClassesBuilder::new(u32::from(UNITS));
    let mut list = vec![builder.add_contiguous(1, (0..UNITS / 2).map(Register))];
    list.extend([2, 4, 8].map(|length| builder.add_contiguous(length, (0..UNITS).step_by(2).map(Register))));
    (builder.finish(), list)
}

/// Colours a graph; the number of edges and of optimistic nodes, true if it has a colouring, and milliseconds.
fn run(classes: &Classes, list: &[Class], count: usize, window: usize) -> (usize, usize, bool, f64) {
    let start = ThreadTime::now();
    let mut state = 88_172_645_463_325_252u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    let mut builder = GraphBuilder::default();
    let nodes: Vec<Node> = (0..count).map(|_| builder.add_node(list[below(list.len())])).collect();
    for (i, &a) in nodes.iter().enumerate() {
        builder.set_cost(a, 1.0);
        for &b in &nodes[i.saturating_sub(below(2 * window))..i] {
            builder.add_interference(a, b);
        }
    }
    let graph = builder.finish();
    let stack = simplify(&graph, classes);
    let optimistic = stack.entries.iter().filter(|entry| entry.is_optimistic).count();
    let result = select(&graph, classes, &stack, Rotation::Document);
    let time = start.elapsed().as_secs_f64() * 1e3;
    if let Ok(registers) = &result {
        assert_eq!(wrong_node(&graph, classes, registers), None);
    }
    (graph.edge_count(), optimistic, result.is_ok(), time)
}

/// The peak of the resident memory of this process, in MiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok())
        .map_or(f64::NAN, |kb| kb / 1024.0)
}

fn main() {
    let (classes, list) = classes();
    println!(
        "{:>8} {:>8} {:>10} {:>11} {:>9} {:>9} {:>9}",
        "nodes", "window", "edges", "optimistic", "coloured", "ms", "peak MiB"
    );
    for count in [100, 1_000, 10_000, 100_000] {
        for window in [20, 40, 80] {
            let runs = (200_000 / count).clamp(2, 50);
            let best = (0..runs).map(|_| run(&classes, &list, count, window)).min_by(|a, b| a.3.total_cmp(&b.3));
            let Some((edges, optimistic, is_coloured, time)) = best else { continue };
            println!(
                "{count:>8} {window:>8} {edges:>10} {optimistic:>11} {is_coloured:>9} {time:>9.2} {:>9.1}",
                peak()
            );
        }
    }
}
