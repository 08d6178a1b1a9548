//! The interference graph of an ir3 program.
//!
//! A node is a merge set; its class has as many consecutive units as the set. A unit is a half register, so halves are
//! sub-registers of full registers where these are one file, and vectors are consecutive registers. Two sets interfere
//! in the units of the values that are live at the same time, not as a whole.
//!
//! The numbers of units are those of all files: full registers and halves in them, halves of a file of their own,
//! shared registers. Arrays are nodes with a given register, live where they are live.

use super::classes::{Class, Classes, ClassesBuilder, Part, Register};
use super::graph::{Graph, GraphBuilder, Node};
use super::select::has_given_conflict;
use crate::ir3::{Array, Program, RegClass, Value};
use crate::regalloc::Error;
use crate::regalloc::array_ranges;
use crate::regalloc::file::UNITS;
use crate::regalloc::forest::{HALF, SHARED, kind};
use crate::regalloc::merge_sets::tied_source;
use crate::regalloc::pressure::Analysis;
use crate::target::RegisterFiles;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::{FxHashMap, FxHashSet};

/// The first unit of a file of halves, and of the shared file, in the numbering of all.
const HALVES: u16 = UNITS;
const SHARED_UNITS: u16 = HALVES + UNITS / 2;
const ALL_UNITS: u32 = SHARED_UNITS as u32 + 64;

/// The first unit of the file of a class.
fn file_start(class: RegClass, merged: bool) -> u16 {
    match kind(class) {
        HALF if !merged => HALVES,
        kind if kind >= SHARED => SHARED_UNITS,
        _ => 0,
    }
}

/// The graph of a program, and its classes.
pub struct Problem {
    /// The classes.
    pub classes: Classes,
    /// The graph.
    pub graph: Graph,
    /// The node of each merge set that has a live value.
    node_of: Vec<PackedOption<Node>>,
    /// The values of each node.
    values: FxHashMap<Node, Vec<Value>>,
    merged: bool,
}

/// The destinations that are written before all sources are read, as the copy of a tied source is.
fn copied_results(program: &Program, analysis: &Analysis) -> FxHashSet<Value> {
    let mut copied = FxHashSet::default();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        for (k, dst) in data.dsts.iter().enumerate() {
            let (Some(value), Some(src)) = (dst.value(), tied_source(data, k).and_then(|k| data.srcs[k].value()))
            else {
                continue;
            };
            let is_placed = |value| analysis.liveness.units(value) != 0;
            if is_placed(value) && is_placed(src) && analysis.sets.interval(value) != analysis.sets.interval(src) {
                copied.insert(value);
            }
        }
    }
    copied
}

/// Values that must not be merged with others: tied results that are not in the register of their source. They are
/// written before the instruction, by a copy, and another value of their set may still be read by it. Inputs with given
/// registers, too.
pub fn unmergeable_values(program: &Program, analysis: &Analysis) -> Vec<Value> {
    let inputs = analysis.inputs.iter().flat_map(|inputs| &inputs.places).map(|&(value, _)| value);
    inputs.chain(copied_results(program, analysis)).collect()
}

impl Problem {
    /// Makes the graph for register files of this size.
    ///
    /// # Errors
    /// If the arrays do not fit.
    pub fn new(
        program: &Program,
        analysis: &Analysis,
        files: &RegisterFiles,
        merged: bool,
        cost: &dyn Fn(Value) -> f32,
    ) -> Result<Self, Error> {
        let reach = [files.full, files.half, files.shared, files.shared_half].map(|units| units as u16);
        let mut of_kind: FxHashMap<(usize, u16), Class> = FxHashMap::default();
        let mut classes = ClassesBuilder::new(ALL_UNITS);
        let mut graph = GraphBuilder::default();
        let mut node_of: Vec<PackedOption<Node>> = vec![None.into(); analysis.sets.set_count()];
        let mut values: FxHashMap<Node, Vec<Value>> = FxHashMap::default();
        let mut costs: Vec<f32> = Vec::new();
        for value in program.values.keys().filter(|&value| !analysis.liveness.segments(value).is_empty()) {
            let set = analysis.sets.set_of(value);
            let reg_class = program.values[value].class;
            let node = node_of[set].expand().unwrap_or_else(|| {
                let units = analysis.sets.set_interval(set).units();
                let class = *of_kind.entry((kind(reg_class), units)).or_insert_with(|| {
                    let first = file_start(reg_class, merged);
                    let starts = starts(units, reg_class.component_units(), reach[kind(reg_class)]);
                    classes.add_contiguous(units, starts.map(|at| Register(first + at)))
                });
                costs.push(0.0);
                graph.add_node(class)
            });
            node_of[set] = node.into();
            values.entry(node).or_default().push(value);
            costs[node.as_u32() as usize] += cost(value);
            if costs[node.as_u32() as usize] > 0.0 {
                graph.set_cost(node, costs[node.as_u32() as usize]);
            }
        }
        let arrays = add_arrays(program, analysis, reach, merged, &mut classes, &mut graph)?;
        let mut this =
            Self { classes: classes.finish(), graph: GraphBuilder::default().finish(), node_of, values, merged };
        this.set_given(program, analysis, &mut graph);
        this.add_interferences(program, analysis, &arrays, &mut graph);
        this.graph = graph.finish();
        // Arrays are at the end of the file, given values may be anywhere; a larger file moves the arrays.
        for (array, node) in arrays {
            if has_given_conflict(&this.graph, &this.classes, node) {
                let class = program.arrays[array].class;
                let reach = reach[kind(class)];
                return Err(Error::spilling(u32::from(reach) + array_ranges::units(program, array), reach, class.half));
            }
        }
        Ok(this)
    }

    /// The node of a value, and the offset of the value in it.
    fn place(&self, analysis: &Analysis, value: Value) -> Option<(Node, u16)> {
        let set = analysis.sets.set_of(value);
        let offset = analysis.sets.interval(value).start - analysis.sets.set_interval(set).start;
        Some((self.node_of[set].expand()?, offset as u16))
    }

    /// Gives inputs and outputs their registers.
    fn set_given(&self, program: &Program, analysis: &Analysis, graph: &mut GraphBuilder) {
        let inputs = analysis.inputs.iter().flat_map(|inputs| &inputs.places);
        let outputs = analysis.outputs.iter().flat_map(|outputs| &outputs.places);
        for &(value, at) in inputs.chain(outputs) {
            if let Some((node, offset)) = self.place(analysis, value).filter(|_| analysis.liveness.units(value) != 0) {
                let first = file_start(program.values[value].class, self.merged);
                graph.set_given(node, Register(first + at - offset));
            }
        }
    }

    /// Adds an edge for each two values of different sets that are live at the same point.
    fn add_interferences(
        &self,
        program: &Program,
        analysis: &Analysis,
        arrays: &[(Array, Node)],
        graph: &mut GraphBuilder,
    ) {
        struct Live {
            start: u32,
            end: u32,
            node: Node,
            part: Part,
            file: u16,
        }
        let copied = copied_results(program, analysis);
        let mut lives: Vec<Live> = Vec::new();
        for value in program.values.keys() {
            let segments = analysis.liveness.segments(value);
            let Some((node, low)) = segments.first().and_then(|_| self.place(analysis, value)) else { continue };
            let part = Part { low, high: low + analysis.liveness.units(value) };
            let file = file_start(program.values[value].class, self.merged);
            for (k, segment) in segments.iter().enumerate() {
                // Written by a copy before the instruction.
                let early = u32::from(k == 0 && copied.contains(&value) && segment.start % 2 == 1);
                lives.push(Live { start: segment.start - early, end: segment.end, node, part, file });
            }
        }
        for &(array, node) in arrays {
            let part = Part { low: 0, high: array_ranges::units(program, array) as u16 };
            let file = file_start(program.arrays[array].class, self.merged);
            let segments = analysis.arrays.segments(array).iter();
            lives.extend(segments.map(|segment| Live { start: segment.start, end: segment.end, node, part, file }));
        }
        lives.sort_unstable_by_key(|live| live.start);
        let mut active: Vec<Live> = Vec::new();
        for live in lives {
            active.retain(|other| other.end > live.start);
            for other in active.iter().filter(|other| other.file == live.file && other.node != live.node) {
                graph.add_overlap(live.node, live.part, other.node, other.part);
            }
            active.push(live);
        }
    }

    /// The values of a node.
    pub fn values(&self, node: Node) -> &[Value] {
        self.values.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The first unit of each value, in its file.
    pub fn places(
        &self,
        program: &Program,
        analysis: &Analysis,
        registers: &super::select::Colouring,
    ) -> SecondaryMap<Value, u16> {
        let mut places = SecondaryMap::with_default(u16::MAX);
        places.resize(program.values.len());
        for value in program.values.keys().filter(|&value| !analysis.liveness.segments(value).is_empty()) {
            if let Some((node, offset)) = self.place(analysis, value)
                && let Some(register) = registers[node]
            {
                places[value] = register.0 + offset - file_start(program.values[value].class, self.merged);
            }
        }
        places
    }
}

/// Adds a node for each array that the program accesses.
///
/// # Errors
/// If the live arrays do not fit.
fn add_arrays(
    program: &Program,
    analysis: &Analysis,
    reach: [u16; 4],
    merged: bool,
    classes: &mut ClassesBuilder,
    graph: &mut GraphBuilder,
) -> Result<Vec<(Array, Node)>, Error> {
    let mut nodes = Vec::new();
    for &array in analysis.arrays.accessed() {
        let class = program.arrays[array].class;
        let (units, reach) = (array_ranges::units(program, array), reach[kind(class)]);
        let end = analysis.arrays.offset(array) + units;
        if end > u32::from(reach) {
            return Err(Error::spilling(end, reach, class.half));
        }
        let at = Register(file_start(class, merged) + analysis.arrays.base(program, array, reach));
        let node = graph.add_node(classes.add_contiguous(units as u16, std::iter::once(at)));
        graph.set_given(node, at);
        nodes.push((array, node));
    }
    Ok(nodes)
}

/// The first units at which a register of a class can start.
fn starts(units: u16, align: u16, reach: u16) -> impl Iterator<Item = u16> {
    let end = (reach + 1).saturating_sub(units);
    (0..end).step_by(usize::from(align))
}
