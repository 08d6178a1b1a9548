//! The order of instructions with registers.
//!
//! An instruction stays after those that write its operands or results, and after those that read its results: each
//! unit of a [`RegisterSet`](crate::ir3::register_set::RegisterSet) is a cell, and so is each [resource](Resources)
//! besides. Nodes are positions in a region.

use super::dependencies::{Effects, RESOURCES, Resources, ScheduleRules};
use crate::ir3::register_set::{UNITS, Word};
use crate::ir3::{Instr, InstrData, Program, RepeatLink};
use crate::maps::map_of;
use crate::target::Target;
use cranelift_entity::SecondaryMap;

/// The number of cells: after the units there is one for each resource.
const CELLS: usize = UNITS + RESOURCES;

/// The expected number of edges, and of reads, of a node.
const EDGES: usize = 4;

/// A cell: the last node that wrote it, plus one, and the last of the reads since, as its index plus one. 0 is none.
#[derive(Clone, Copy, Default)]
struct Cell {
    writer: u32,
    reads: u32,
}

/// A read of a cell, and the one before it in the same cell, as in [`Cell`].
struct Read {
    node: u32,
    previous: u32,
}

/// The edges between the nodes of a region. Its tables are reused for the next one.
pub struct Conflicts {
    cells: Vec<Cell>,
    /// The cells that are not empty.
    touched: Vec<u32>,
    reads: Vec<Read>,
    /// The node of an instruction, plus one; 0 for those of other regions.
    node_of: SecondaryMap<Instr, u32>,
    nodes: Vec<Instr>,
    /// The edges (from, to), each once.
    edges: Vec<(u32, u32)>,
    /// For each node, the last one to which there is an edge from it, plus one.
    linked: Vec<u32>,
    /// The start of the successors of each node, and the end of all.
    first: Vec<u32>,
    successors: Vec<u32>,
}

impl Conflicts {
    /// Creates the tables for the regions of a program, of up to `longest` instructions.
    pub fn new(program: &Program, longest: usize) -> Self {
        Self {
            cells: vec![Cell::default(); CELLS],
            touched: Vec::with_capacity(CELLS),
            reads: Vec::with_capacity(EDGES * longest),
            node_of: map_of(program.instrs.len()),
            nodes: Vec::with_capacity(longest),
            edges: Vec::with_capacity(EDGES * longest),
            linked: Vec::with_capacity(longest),
            first: Vec::with_capacity(longest + 2),
            successors: Vec::with_capacity(EDGES * longest),
        }
    }

    /// Starts a region without nodes.
    pub fn begin(&mut self) {
        self.touched.drain(..).for_each(|cell| self.cells[cell as usize] = Cell::default());
        self.nodes.drain(..).for_each(|instr| self.node_of[instr] = 0);
        self.reads.clear();
        self.edges.clear();
        self.linked.clear();
    }

    /// Adds the next node, which reads and writes these registers.
    pub fn add(&mut self, instr: Instr, data: &InstrData, reads: &[Word], writes: &[Word], target: &Target) {
        let node = self.nodes.len() as u32;
        self.linked.push(0);
        for unit in reads.iter().flat_map(|word| word.units()) {
            self.read(unit, node);
        }
        for unit in writes.iter().flat_map(|word| word.units()) {
            self.write(unit, node);
        }
        let rules = ScheduleRules { predicates: true, registers: target.num_predicates, occupancy: true };
        let mut effects = Effects::of(data, target, rules);
        // They are registers here.
        let addresses = Resources::A0 | Resources::A1;
        effects.reads -= addresses;
        effects.writes -= addresses;
        for (resource, is_written) in effects.resources() {
            match is_written {
                true => self.write(UNITS + resource, node),
                false => self.read(UNITS + resource, node),
            }
        }
        let link = match data.link() {
            RepeatLink::After(previous) => Some(previous),
            _ => None,
        };
        for dep in data.false_deps().iter().copied().chain(link) {
            self.after(self.node_of[dep], node);
        }
        self.node_of[instr] = node + 1;
        self.nodes.push(instr);
    }

    fn read(&mut self, cell: usize, node: u32) {
        let Cell { writer, reads: previous } = self.touch(cell);
        self.after(writer, node);
        self.reads.push(Read { node, previous });
        self.cells[cell].reads = self.reads.len() as u32;
    }

    fn write(&mut self, cell: usize, node: u32) {
        let Cell { writer, mut reads } = self.touch(cell);
        self.after(writer, node);
        while let Some(read) = reads.checked_sub(1) {
            let Read { node: reader, previous } = self.reads[read as usize];
            if reader != node {
                self.after(reader + 1, node);
            }
            reads = previous;
        }
        self.cells[cell] = Cell { writer: node + 1, reads: 0 };
    }

    fn touch(&mut self, cell: usize) -> Cell {
        let now = self.cells[cell];
        if now.writer == 0 && now.reads == 0 {
            self.touched.push(cell as u32);
        }
        now
    }

    /// Keeps a node after an earlier one, which is given plus one.
    fn after(&mut self, earlier: u32, node: u32) {
        let Some(earlier) = earlier.checked_sub(1) else { return };
        let linked = &mut self.linked[earlier as usize];
        if *linked != node + 1 {
            *linked = node + 1;
            self.edges.push((earlier, node));
        }
    }

    /// Sorts the edges by their sources, after the last node. Returns them.
    pub fn finish(&mut self) -> &[(u32, u32)] {
        self.first.clear();
        self.first.resize(self.nodes.len() + 2, 0);
        // The start of each node is counted up to its end, which is the start of the next one.
        for &(from, _) in &self.edges {
            self.first[from as usize + 2] += 1;
        }
        for node in 2..self.first.len() {
            self.first[node] += self.first[node - 1];
        }
        self.successors.clear();
        self.successors.resize(self.edges.len(), 0);
        for &(from, to) in &self.edges {
            let end = &mut self.first[from as usize + 1];
            self.successors[*end as usize] = to;
            *end += 1;
        }
        &self.edges
    }

    /// The nodes that stay after a node, in order.
    pub fn successors(&self, node: usize) -> &[u32] {
        &self.successors[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::register_set::list_instr;
    use crate::ir3::text::read;

    /// The edges of the first block.
    fn edges(graph: &mut Conflicts, text: &str, target: &Target) -> Vec<(u32, u32)> {
        let program = read(text).expect("a program");
        graph.begin();
        for &instr in &program.blocks[program.layout[0]].instrs {
            let data = &program.instrs[instr];
            let mut list = Vec::new();
            let [middle, _] = list_instr(&program, target, data, &mut list);
            graph.add(instr, data, &list[..middle], &list[middle..], target);
        }
        let mut edges = graph.finish().to_vec();
        edges.sort_unstable();
        let successors = (0..graph.nodes.len()).flat_map(|from| {
            let graph = &*graph;
            graph.successors(from).iter().map(move |&to| (from as u32, to))
        });
        assert_eq!(successors.collect::<Vec<_>>(), edges);
        edges
    }

    #[test]
    fn reads_and_writes_are_ordered() {
        let target = Target::by_name("a660").unwrap();
        let mut graph = Conflicts::new(&Program::default(), 0);
        // Result and use, two reads and a write of their operand, two writes; the halves of a full register.
        let text = "block0 {
	0001:0000:000: 	add.u r0.x, r1.x, r1.y
	0002:0000:000: 	add.u r0.y, r1.x, r0.x
	0003:0000:000: 	add.u r1.x, r2.x, r2.x
	0004:0000:000: 	add.u r0.y, r2.x, r2.y
	0005:0000:000: 	add.s hr2.x, hr8.x, hr8.x
}
";
        let expected = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4)];
        assert_eq!(edges(&mut graph, text, &target), expected);
        // Nothing is left of a region in the next one.
        let text = "block0 {
	0001:0000:000: 	add.u r3.x, r0.y, r1.x
	0002:0000:000: 	add.u r3.y, r0.y, r1.x
}
";
        assert_eq!(edges(&mut graph, text, &target), []);
    }
}
