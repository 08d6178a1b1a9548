//! Vectors, their parts, and who would like to stand where.
//!
//! A vector whose every reader is a split need not stay together: it takes consecutive registers when it is written,
//! and from then on each *part* is a value of its own, that dies alone and can stay where it is. The splits are gone
//! then. A vector that is also read whole stays whole, and its splits are copies.
//!
//! Copies that disappear when both ends stand in one place are *wishes*: a phi's sources in the place of the phi, the
//! sources of a collect in their places of the vector. Values that are bound by wishes form a group, with an offset
//! for each member. A group says nothing of interference; the allocator follows it where the place is free.

use super::simple_liveness::{Liveness, units};
use crate::ir3::{Attrs, Instr, Opcode, OperandFlags, Place, Program, RegFile, SrcOperand, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Vectors that fall into parts.
pub struct Parts {
    /// The vector that a part belongs to.
    pub origin: SecondaryMap<Value, PackedOption<Value>>,
    /// Range of `list` with the vector's parts.
    ranges: SecondaryMap<Value, (u32, u32)>,
    list: Vec<Value>,
    /// Component of the vector, for each of `list`.
    components: Vec<u16>,
}

impl Parts {
    /// Finds the vectors that are only read by splits, and removes these splits from the program.
    pub fn new(program: &mut Program) -> Self {
        let mut this =
            Self { origin: SecondaryMap::new(), ranges: SecondaryMap::new(), list: Vec::new(), components: Vec::new() };
        // Readers that are splits, and readers that are not.
        let mut split = SecondaryMap::<Value, bool>::new();
        let mut whole = SecondaryMap::<Value, bool>::new();
        let mut splits: Vec<(Value, u16, Value, Instr)> = Vec::new();
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            match is_split(program, instr) {
                Some((vector, component, part)) => {
                    split[vector] = true;
                    splits.push((vector, component, part, instr));
                }
                None => data.srcs.iter().filter_map(|src| src.value()).for_each(|value| {
                    if program.values[value].components > 1 {
                        whole[value] = true;
                    }
                }),
            }
        }
        for &(vector, _, part, _) in &splits {
            // Parts of parts are no matter, and a phi is written by moves.
            whole[vector] |= split[part] || program.instrs[program.values[vector].instr].opcode == Opcode::Phi;
        }
        splits.retain(|&(vector, ..)| !whole[vector]);
        if splits.is_empty() {
            return this;
        }
        splits.sort_by_key(|&(vector, component, ..)| (vector, component));
        let mut same: SecondaryMap<Value, PackedOption<Value>> = SecondaryMap::new();
        let mut any_same = false;
        let mut gone = SecondaryMap::<Instr, bool>::new();
        for (vector, component, part, instr) in splits {
            gone[instr] = true;
            let (start, end) = this.ranges[vector];
            if end > start && this.components[end as usize - 1] == component {
                same[part] = this.list[end as usize - 1].into();
                any_same = true;
                continue;
            }
            let at = this.list.len() as u32;
            this.ranges[vector] = if end > start { (start, at + 1) } else { (at, at + 1) };
            this.list.push(part);
            this.components.push(component);
            this.origin[part] = vector.into();
        }
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            program.blocks[block].instrs.retain(|&instr| !gone[instr]);
            if any_same {
                for &instr in &program.blocks[block].instrs {
                    for src in program.instrs[instr].srcs.iter_mut() {
                        if let Some(first) = src.value().and_then(|value| same[value].expand()) {
                            src.operand = SrcOperand::Place(Place::Value(first));
                        }
                    }
                }
            }
        }
        this
    }

    /// The parts that a vector falls into, in order; none if it stays whole.
    pub fn of(&self, vector: Value) -> &[Value] {
        let (start, end) = self.ranges[vector];
        &self.list[start as usize..end as usize]
    }

    /// The parts of a vector with their components.
    pub fn with_components(&self, vector: Value) -> impl Iterator<Item = (u16, Value)> + '_ {
        let (start, end) = self.ranges[vector];
        let range = start as usize..end as usize;
        self.components[range.clone()].iter().copied().zip(self.list[range].iter().copied())
    }
}

/// Vector, component and part of a split of a general vector.
fn is_split(program: &Program, instr: Instr) -> Option<(Value, u16, Value)> {
    let data = &program.instrs[instr];
    let Attrs::Split { offset } = data.attrs else { return None };
    let (dst, src) = (data.dsts.first()?, data.srcs.first()?);
    let vector = src.value()?;
    let info = &program.values[vector];
    let fits = data.opcode == Opcode::Split
        && dst.class == info.class
        && src.class == info.class
        && info.class.file == RegFile::General
        && offset < info.components
        && dst.mask.span() == 1
        && !matches!(src.place(), Some(Place::Array(_)));
    Some((vector, offset, dst.value().filter(|_| fits)?))
}

const NO_BASE: i16 = i16::MIN;

/// Widest group, in units: no vector of the machine is wider, and a wider gap is seldom there.
const WIDEST: i32 = 64;

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    /// Units that the value would like to stand behind its parent.
    offset: i16,
    /// Of a root: first and last unit of the group, relative to the root.
    low: i16,
    high: i16,
    /// Of a root: where it would stand, judging by the member that was placed last.
    base: i16,
}

/// The groups, as a union-find forest with offsets.
pub struct Groups {
    nodes: Vec<Node>,
}

/// Where a value's group wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Where to stand, if a member of the group stands already.
    pub at: Option<u16>,
    /// Units of the group in front of the value.
    pub before: u16,
    /// Units of the whole group.
    pub extent: u16,
}

impl Groups {
    /// The wishes of a program whose last reads are marked.
    pub fn new(program: &Program, parts: &Parts, liveness: &Liveness) -> Self {
        let nodes = (0..program.values.len())
            .map(|i| Node {
                parent: i as u32,
                offset: 0,
                low: 0,
                high: units(program, Value::new(i)).min(1000) as i16,
                base: NO_BASE,
            })
            .collect();
        let mut this = Self { nodes };
        // Phis first: a copy saved in a loop is worth most.
        for (block, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            if data.opcode != Opcode::Phi {
                continue;
            }
            let Some(dst) = data.dsts.first().and_then(|dst| dst.value()) else { continue };
            for src in data.srcs.iter().filter_map(|src| src.value()) {
                if !liveness.is_live_in(block, src) {
                    this.unite(program, dst, src, 0);
                }
            }
        }
        for (_, instr) in program.iter_instrs() {
            this.add_instr(program, parts, instr);
        }
        this
    }

    fn add_instr(&mut self, program: &Program, parts: &Parts, instr: Instr) {
        let data = &program.instrs[instr];
        let killed = |k: usize| {
            let src = data.srcs.get(k).filter(|src| src.flags.contains(OperandFlags::KILL))?;
            src.value().filter(|&value| program.values[value].class == src.class)
        };
        for (k, dst) in data.dsts.iter().enumerate() {
            let Some(value) = dst.value() else { continue };
            let unit = dst.class.component_units();
            match data.opcode {
                Opcode::Collect => {
                    for k in 0..data.srcs.len() {
                        if let Some(src) = killed(k) {
                            self.unite(program, value, src, k as u16 * unit);
                        }
                    }
                }
                Opcode::Split => {
                    if let (Some(vector), Attrs::Split { offset }) = (killed(0), &data.attrs) {
                        self.unite(program, vector, value, offset * unit);
                    }
                }
                Opcode::ParallelCopy => {
                    if let Some(src) = killed(k) {
                        self.unite(program, value, src, 0);
                    }
                }
                _ => {
                    if dst.flags.contains(OperandFlags::TIED) {
                        let tied = data.srcs.iter().filter(|src| src.flags.contains(OperandFlags::TIED));
                        if let Some(src) = tied.filter_map(|src| src.value()).next() {
                            self.unite(program, value, src, 0);
                        }
                    }
                }
            }
            for (component, part) in parts.with_components(value) {
                self.unite(program, value, part, component * unit);
            }
        }
    }

    fn find(&mut self, value: Value) -> (usize, i32) {
        let mut at = value.index();
        let mut offset = 0;
        while self.nodes[at].parent as usize != at {
            let parent = self.nodes[at].parent as usize;
            let above = self.nodes[parent];
            // Halve the path.
            if above.parent as usize != parent {
                self.nodes[at].offset += above.offset;
                self.nodes[at].parent = above.parent;
            }
            offset += i32::from(self.nodes[at].offset);
            at = self.nodes[at].parent as usize;
        }
        (at, offset)
    }

    /// `b` would like to stand `offset` units behind the start of `a`.
    fn unite(&mut self, program: &Program, a: Value, b: Value, offset: u16) {
        if program.values[a].class != program.values[b].class {
            return;
        }
        let ((root_a, offset_a), (root_b, offset_b)) = (self.find(a), self.find(b));
        if root_a == root_b {
            return;
        }
        // Where root b stands, seen from root a.
        let shift = offset_a + i32::from(offset) - offset_b;
        let (node_a, node_b) = (self.nodes[root_a], self.nodes[root_b]);
        let low = i32::from(node_a.low).min(i32::from(node_b.low) + shift);
        let high = i32::from(node_a.high).max(i32::from(node_b.high) + shift);
        if high - low > WIDEST {
            return;
        }
        self.nodes[root_b].parent = root_a as u32;
        self.nodes[root_b].offset = shift as i16;
        self.nodes[root_a].low = low as i16;
        self.nodes[root_a].high = high as i16;
    }

    /// Where `value` would like to stand.
    pub fn wish(&mut self, value: Value) -> Wish {
        let (root, offset) = self.find(value);
        let node = self.nodes[root];
        Wish {
            at: (node.base != NO_BASE).then(|| i32::from(node.base) + offset).and_then(|at| u16::try_from(at).ok()),
            before: (offset - i32::from(node.low)).max(0) as u16,
            extent: (node.high - node.low) as u16,
        }
    }

    /// `value` stands at `unit`.
    pub fn placed(&mut self, value: Value, unit: u16) {
        let (root, offset) = self.find(value);
        self.nodes[root].base = (i32::from(unit) - offset) as i16;
    }
}
