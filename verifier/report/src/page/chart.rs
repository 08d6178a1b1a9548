//! The chart of live ranges: instructions from top to bottom, registers from left to right.

use super::listing::Listing;
use super::ranges::{Bar, UNITS, base, register_name};
use super::run::Executions;
use fixedbitset::FixedBitSet;
use ir3_semantics::interp::trace::TracePoint;
use maud::{Markup, html};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The height of an instruction.
const ROW: i32 = 18;
/// The height of the names of registers.
const HEAD: i32 = 24;
/// The width of a letter.
const LETTER: i32 = 7;

/// The most instructions that are drawn of a longer program, around the first difference.
const MOST: usize = 240;

/// A use that reads another value than it should.
pub(super) struct WrongUse {
    /// The position of the instruction.
    pub row: usize,
    /// The units that it reads.
    pub units: Vec<usize>,
    /// The value that they should hold.
    pub expected: String,
}

/// Draws live ranges next to the instructions of a listing; nothing if no register is used.
pub(super) fn render(
    listing: &Listing,
    bars: &[Bar],
    run: &FxHashMap<TracePoint, Executions>,
    wrong: Option<&WrongUse>,
) -> Option<Markup> {
    if bars.is_empty() {
        return None;
    }
    let count = listing.lines.len();
    let first = listing.lines.iter().position(|line| run.get(&line.at).is_some_and(|known| known.first));
    let middle = wrong.map(|wrong| wrong.row).or(first).unwrap_or(0);
    let start = middle.saturating_sub(MOST / 2).min(count.saturating_sub(MOST));
    let window = start..count.min(start + MOST);
    let bars: Vec<Bar> = bars.iter().filter_map(|bar| cut(bar, &window)).collect();
    let columns = ChartColumns::new(&bars);
    let (width, height) = (columns.width, HEAD + window.len() as i32 * ROW + 4);
    let label = format!("Live ranges of {} registers over {} instructions", columns.registers.len(), window.len());
    let y = |half_row: usize| HEAD + (half_row as i32 - 2 * window.start as i32) * ROW / 2;
    Some(html! {
        @if window.len() < count {
            p.note { "The program has " (count) " instructions; these are " (window.start) " to " (window.end - 1) ", around the first difference." }
        }
        div.chart tabindex="0" role="group" aria-label=(label) {
            ol.gutter style=(format!("padding-top:{HEAD}px")) {
                @for row in window.clone() {
                    @let line = &listing.lines[row];
                    @let class = if first == Some(row) { "first" } else if wrong.is_some_and(|wrong| wrong.row == row) { "wrong" } else { "" };
                    @let starts = listing.blocks[line.block].lines.start == row;
                    li class=(class) title=(line.text) {
                        span.block { @if starts { (listing.blocks[line.block].name.trim_start_matches("block")) } }
                        code { (line.text) }
                    }
                }
            }
            svg.ranges width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(label) {
                @for row in window.clone() {
                    @let line = &listing.lines[row];
                    @if first == Some(row) || wrong.is_some_and(|wrong| wrong.row == row) {
                        rect.row x="0" y=(y(2 * row)) width=(width) height=(ROW) {}
                    }
                    @if listing.blocks[line.block].lines.start == row && row > window.start {
                        line.block x1="0" x2=(width) y1=(y(2 * row)) y2=(y(2 * row)) {}
                    }
                }
                @for (register, x) in &columns.registers {
                    line.column x1=(x) x2=(x) y1=(HEAD - 4) y2=(height) {}
                    text.register x=(x + columns.full / 2) y="15" { (register_name(*register)) }
                }
                @for bar in &bars {
                    (columns.bar(bar, y(bar.rows.start), y(bar.rows.end)))
                }
                @for bar in wrong.into_iter().flat_map(|wrong| missing(&bars, wrong)) {
                    (columns.missing(&bar, y(bar.rows.start), y(bar.rows.end)))
                }
                @if let Some(wrong) = wrong.filter(|wrong| window.contains(&wrong.row)) {
                    @for (x, width) in columns.spans(&wrong.units) {
                        rect.ring x=(x) y=(y(2 * wrong.row) + 1) width=(width) height=(ROW - 2) rx="4" {}
                    }
                }
            }
        }
    })
}

/// The rest of the live range of a value that is overwritten before its last use: from where its register gets another
/// value, or is free, to the use.
fn missing(bars: &[Bar], wrong: &WrongUse) -> Option<Bar> {
    let holds = |bar: &&Bar| {
        wrong.units.iter().any(|unit| bar.units.contains(unit))
            && bar.name.as_deref().is_some_and(|name| base(name) == wrong.expected)
            && bar.rows.end <= 2 * wrong.row + 1
    };
    let last = bars.iter().filter(holds).max_by_key(|bar| bar.rows.end)?;
    let units = wrong.units.iter().min().copied()?..wrong.units.iter().max()? + 1;
    Some(Bar { units, rows: last.rows.end..2 * wrong.row + 1, name: Some(wrong.expected.clone()) })
}

/// The part of a bar in a window of instructions.
fn cut(bar: &Bar, window: &Range<usize>) -> Option<Bar> {
    let rows = bar.rows.start.max(2 * window.start)..bar.rows.end.min(2 * window.end);
    (rows.start < rows.end).then(|| Bar { rows, ..bar.clone() })
}

/// The columns of the registers that are used.
struct ChartColumns {
    /// The units and left edges of full registers.
    registers: Vec<(usize, i32)>,
    /// The width of a full register.
    full: i32,
    width: i32,
}

impl ChartColumns {
    fn new(bars: &[Bar]) -> Self {
        let mut used = FixedBitSet::with_capacity(UNITS);
        bars.iter().for_each(|bar| used.insert_range(bar.units.clone()));
        let units: Vec<usize> =
            (0..UNITS).step_by(2).filter(|&unit| used.contains(unit) || used.contains(unit + 1)).collect();
        // Wide columns fit names.
        let full = (860 / units.len().max(1) as i32).clamp(44, 92);
        let registers: Vec<(usize, i32)> = units.iter().zip(0..).map(|(&unit, column)| (unit, column * full)).collect();
        let width = registers.len() as i32 * full;
        Self { registers, full, width }
    }

    /// The left edge of a unit.
    fn left(&self, unit: usize) -> i32 {
        let register = self.registers.iter().find(|(first, _)| *first == unit & !1);
        register.map_or(0, |(first, x)| x + (unit - first) as i32 * self.full / 2)
    }

    /// Left edges and widths of neighbouring units.
    fn spans(&self, units: &[usize]) -> Vec<(i32, i32)> {
        let mut units = units.to_vec();
        units.sort_unstable();
        units.dedup();
        let runs = units.chunk_by(|a, b| self.left(*a) + self.full / 2 == self.left(*b));
        runs.map(|run| (self.left(run[0]) + 1, run.len() as i32 * self.full / 2 - 2)).collect()
    }

    /// A frame where a value should still be.
    fn missing(&self, bar: &Bar, top: i32, bottom: i32) -> Markup {
        let units: Vec<usize> = bar.units.clone().collect();
        let (x, width) = self.spans(&units).first().copied().unwrap_or((0, 0));
        let name = bar.name.as_deref().unwrap_or_default();
        html! {
            g.missing {
                title { (name) " should be in " (register_name(bar.units.start)) " until it is read" }
                rect x=(x + 2) y=(top + 1) width=(width - 4) height=((bottom - top - 2).max(4)) rx="3" {}
                @if let Some((text, true)) = fitting(name, width, bottom - top) {
                    text x=(x + width / 2) y=(top + 13) { (text) }
                }
            }
        }
    }

    fn bar(&self, bar: &Bar, top: i32, bottom: i32) -> Markup {
        let units: Vec<usize> = bar.units.clone().collect();
        let (x, width) = self.spans(&units).first().copied().unwrap_or((0, 0));
        let name = bar.name.as_deref().unwrap_or_default();
        let height = (bottom - top - 1).max(4);
        let (first, last) = (bar.rows.start / 2, bar.rows.end.div_ceil(2).saturating_sub(1));
        let registers = match bar.units.len() {
            1 | 2 => register_name(bar.units.start),
            _ => format!("{} to {}", register_name(bar.units.start), register_name(bar.units.end - 1)),
        };
        let shown = if name.is_empty() { "a value" } else { name };
        let label = fitting(name, width, height);
        html! {
            g class=(format!("bar c{}", hue(base(name)))) {
                title { (shown) " in " (registers) ", instructions " (first) " to " (last) }
                rect x=(x) y=(top) width=(width) height=(height) rx="3" {}
                @if let Some((text, upright)) = label {
                    @if upright {
                        text x=(x + width / 2) y=(top + 10 + (height - 12).min(2)) { (text) }
                    } @else {
                        text transform=(format!("translate({} {}) rotate(90)", x + width / 2 - 4, top + height / 2)) { (text) }
                    }
                }
            }
        }
    }
}

/// The text that fits into a bar, and if it is upright: the name, or only its number.
fn fitting(name: &str, width: i32, height: i32) -> Option<(&str, bool)> {
    let number = name.rsplit_once('_').map_or(name, |(_, number)| number);
    let needs = |text: &str| text.len() as i32 * LETTER + 4;
    let fits = |&(text, upright): &(&str, bool)| {
        !text.is_empty()
            && if upright { needs(text) <= width && height >= 12 } else { needs(text) <= height && width >= 12 }
    };
    [(name, true), (name, false), (number, true), (number, false)].into_iter().find(fits)
}

/// One of eight colours.
fn hue(name: &str) -> usize {
    if name.is_empty() {
        return 8;
    }
    // Values with neighbouring numbers get different colours.
    let number = name.rsplit_once('_').and_then(|(_, number)| number.parse::<usize>().ok());
    number.unwrap_or_else(|| name.bytes().map(usize::from).sum()) % 8
}
