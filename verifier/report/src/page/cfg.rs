//! The control-flow graph as SVG.

use super::layout::{BlockGraph, GraphLayout};
use super::listing::Listing;
use super::run::Executions;
use ir3_semantics::interp::trace::TracePoint;
use maud::{Markup, html};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

const WIDTH: i32 = 104;
const HEIGHT: i32 = 38;
const GAP: i32 = 26;
const LAYER: i32 = 72;
/// The margin around the drawing.
const MARGIN: i32 = 14;

/// The most blocks that are drawn of a larger graph, around the one that differs.
const MOST: usize = 120;

/// The marks of a block.
#[derive(Clone, Default)]
struct BlockMarks {
    /// The number of times that the traced lane executed it.
    visits: usize,
    /// Its instructions have been changed.
    changed: bool,
    /// It has the first difference.
    diverging: bool,
}

/// Draws the graph of a program. `changed` has the lines that the stage changed; `side` is `before` or `after`.
pub(super) fn render(
    listing: &Listing,
    run: &FxHashMap<TracePoint, Executions>,
    changed: &[bool],
    side: &str,
) -> Markup {
    let marks: Vec<BlockMarks> =
        listing.blocks.iter().map(|block| marks(listing, block.lines.clone(), run, changed)).collect();
    let whole = BlockGraph { successors: listing.blocks.iter().map(|block| block.successors.clone()).collect() };
    let middle = marks.iter().position(|marks| marks.diverging).unwrap_or(0);
    let shown =
        if whole.successors.len() > MOST { whole.near(middle, MOST) } else { (0..whole.successors.len()).collect() };
    let numbers: FxHashMap<usize, usize> = shown.iter().zip(0..).map(|(&block, number)| (block, number)).collect();
    let inner = |block: &usize| whole.successors[*block].iter().filter_map(|to| numbers.get(to).copied()).collect();
    let graph = BlockGraph { successors: shown.iter().map(inner).collect() };
    let layout = graph.layout(WIDTH, GAP);
    let left_out = listing.blocks.len() - shown.len();
    let backs = layout.edges.iter().filter(|edge| edge.back).count() as i32;
    let right = layout.columns.iter().max().unwrap_or(&0) + WIDTH / 2;
    let right = layout.edges.iter().flat_map(|edge| edge.bends.iter().copied()).fold(right, i32::max);
    let width = right + 2 * MARGIN + if backs > 0 { 12 + 8 * backs } else { 0 };
    let height = layout.layers.iter().max().map_or(0, |&last| last as i32) * LAYER + HEIGHT + 2 * MARGIN;
    let label = format!("Control-flow graph {side} the stage: {} blocks", listing.blocks.len());
    html! {
        @if left_out > 0 {
            p.note { "The graph has " (listing.blocks.len()) " blocks; these are the " (shown.len()) " around the one that differs." }
        }
        div.scroll tabindex="0" role="group" aria-label=(label) {
            svg.cfg width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(label) {
                @for (path, back, head) in paths(&layout, right) {
                    path class=(if back { "edge back" } else { "edge" }) d=(path) {}
                    path class=(if back { "tip back" } else { "tip" }) d=(head) {}
                }
                @for (number, &block) in shown.iter().enumerate() {
                    @let (x, y) = corner(&layout, number);
                    @let name = &listing.blocks[block].name;
                    @let count = listing.blocks[block].lines.len();
                    a href=[(count > 0).then(|| format!("#{side}-{name}"))] {
                        g class=(class(&marks[block], !run.is_empty())) transform=(format!("translate({x} {y})")) {
                            title {
                                (name) ": " (count) " instructions"
                                @if !run.is_empty() { ", executed " (marks[block].visits) " times by the traced lane" }
                            }
                            rect width=(WIDTH) height=(HEIGHT) rx="5" {}
                            text.name x=(WIDTH / 2) y="16" { (name) }
                            text.sub x=(WIDTH / 2) y="30" {
                                (count) @if count == 1 { " instr" } @else { " instrs" }
                                @if marks[block].visits > 0 { " · ×" (marks[block].visits) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The class of a block. Without a trace no block is shown as not executed.
fn class(marks: &BlockMarks, traced: bool) -> String {
    let visited = marks.visits > 0 || !traced;
    let words = [(true, "block"), (visited, "visited"), (marks.changed, "changed"), (marks.diverging, "diverging")];
    words.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

fn marks(
    listing: &Listing,
    lines: std::ops::Range<usize>,
    run: &FxHashMap<TracePoint, Executions>,
    changed: &[bool],
) -> BlockMarks {
    let known = || listing.lines[lines.clone()].iter().filter_map(|line| run.get(&line.at));
    BlockMarks {
        // A step for each copy of a parallel copy; other instructions have one for each execution.
        visits: known().map(|known| known.count).filter(|&count| count > 0).min().unwrap_or(0),
        changed: changed[lines.clone()].iter().any(|&changed| changed),
        diverging: known().any(|known| known.first),
    }
}

/// The top left corner of a node.
fn corner(layout: &GraphLayout, node: usize) -> (i32, i32) {
    (MARGIN + layout.columns[node] - WIDTH / 2, MARGIN + layout.layers[node] as i32 * LAYER)
}

/// The edges as SVG paths, each with its kind and its head.
fn paths(layout: &GraphLayout, right: i32) -> Vec<(String, bool, String)> {
    let mut backs = 0;
    let mut all = Vec::new();
    // The leftmost of two successors leaves the block on its left.
    let slot = |node: usize, edge: usize| {
        let own: Vec<usize> =
            (0..layout.edges.len()).filter(|&e| layout.edges[e].from == node && !layout.edges[e].back).collect();
        let target = |e: usize| layout.edges[e].bends.first().copied().unwrap_or(layout.columns[layout.edges[e].to]);
        match own.len() {
            0 | 1 => 0,
            _ => own
                .iter()
                .filter(|&&other| other != edge)
                .map(|&other| (target(edge) - target(other)).signum() * 14)
                .sum::<i32>(),
        }
    };
    for (number, edge) in layout.edges.iter().enumerate() {
        let (x, y) = corner(layout, edge.from);
        let (to_x, to_y) = corner(layout, edge.to);
        let mut path = String::new();
        if edge.back {
            // On the right of everything, and into the header from the side.
            backs += 1;
            let lane = MARGIN + right + 4 + 8 * backs;
            let (start, end) = (y + HEIGHT - 10, to_y + 10);
            let _ = write!(
                path,
                "M{} {start} C{lane} {start} {lane} {start} {lane} {} L{lane} {} C{lane} {end} {lane} {end} {} {end}",
                x + WIDTH,
                start - 12,
                end + 12,
                to_x + WIDTH + 6
            );
            let tip = to_x + WIDTH;
            all.push((path, true, format!("M{tip} {end} l8 -4 l0 8 z")));
            continue;
        }
        let start_x = x + WIDTH / 2 + slot(edge.from, number);
        let mut at = (start_x, y + HEIGHT);
        let _ = write!(path, "M{} {}", at.0, at.1);
        let end = (to_x + WIDTH / 2, to_y - 6);
        let layer = layout.layers[edge.from] as i32;
        let mut curve = |at: &mut (i32, i32), to: (i32, i32)| {
            let middle = (at.1 + to.1) / 2;
            let _ = write!(path, " C{} {middle} {} {middle} {} {}", at.0, to.0, to.0, to.1);
            *at = to;
        };
        for (bend, number) in edge.bends.iter().zip(1..) {
            let top = MARGIN + (layer + number) * LAYER;
            curve(&mut at, (MARGIN + bend, top));
            curve(&mut at, (MARGIN + bend, top + HEIGHT));
        }
        curve(&mut at, end);
        all.push((path, false, format!("M{} {} l-4 -8 l8 0 z", end.0, to_y)));
    }
    all
}
