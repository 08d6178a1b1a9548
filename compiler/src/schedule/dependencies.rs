//! Dependencies between the instructions of a block.
//!
//! An instruction stays after the definitions of the values that it reads. All other dependencies are on *resources*: a
//! write of a resource keeps its order with all reads and writes of it; reads may be reordered among each other. The
//! resources are
//! - the memories: buffers (at any address), images, shared memory, scratch, and the constant file, which operands
//!   read, too;
//! - each array of registers, which is not in SSA form;
//! - the set of active lanes. `kill` and `demote` write it. Cross-lane operations, effects that other lanes can
//!   observe, and instructions that need helper lanes read it. So do register writes relative to an address: in a lane
//!   that should have ended, the address, and so the written register, may be any;
//! - each address register, so that one of its values is live at a time, if that was so before;
//! - the predicates, if only one may be live at a time ([`ScheduleRules`]), or one of them cannot be rematerialised.
//!
//! Barriers write all memories. Some instructions, such as the end of a preamble or a change of the rounding mode, are
//! [fences](Opcode::is_scheduling_fence): no instruction is moved across them.

use crate::delays::latency::{Latency, Timed, Timing, is_scalar_alu};
use crate::ir3::opcode::Effect;
use crate::ir3::{
    AddressSpace, Attrs, Instr, InstrData, Opcode, PhysReg, Place, Program, RegFile, RepeatLink, SrcOperand, Value,
};
use crate::maps::map_of;
use crate::target::Target;
use bitflags::bitflags;
use cranelift_entity::SecondaryMap;

bitflags! {
    /// The resources that instructions read and write besides values and arrays.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Resources: u16 {
        /// Storage buffers and global memory.
        const BUFFER = 1;
        /// Storage images.
        const IMAGE = 1 << 1;
        /// Workgroup-shared memory.
        const SHARED = 1 << 2;
        /// Per-lane scratch memory.
        const SCRATCH = 1 << 3;
        /// The constant file.
        const CONST = 1 << 4;
        /// The set of active lanes, and of helper lanes.
        const LANES = 1 << 5;
        /// `a0.x`.
        const A0 = 1 << 6;
        /// `a1.x`.
        const A1 = 1 << 7;
        /// All predicates as one.
        const PREDICATES = 1 << 8;
        /// All of memory.
        const MEMORY = 0b1111;
    }
}

/// The number of resources.
pub const RESOURCES: usize = 9;

/// The constraints of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleRules {
    /// True if several predicates may be live at a time. Otherwise they are one resource, so that only one is live at
    /// a time, if that was so before.
    pub predicates: bool,
    /// The maximum number of predicates that are in registers at a time.
    pub registers: u32,
    /// True if an order may use all registers that the number of waves allows, and may change the number of waves if
    /// that is profitable.
    pub occupancy: bool,
}

/// The resources that an instruction reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Read.
    pub reads: Resources,
    /// Written.
    pub writes: Resources,
}

/// The resource of a memory; all of them if it is unknown.
fn memory(space: Option<AddressSpace>) -> Resources {
    match space {
        Some(AddressSpace::Ssbo | AddressSpace::Global) => Resources::BUFFER,
        Some(AddressSpace::Image) => Resources::IMAGE,
        Some(AddressSpace::Shared) => Resources::SHARED,
        Some(AddressSpace::Scratch) => Resources::SCRATCH,
        // No instruction writes to it.
        Some(AddressSpace::Ubo) => Resources::empty(),
        Some(AddressSpace::Const) => Resources::CONST,
        None => Resources::MEMORY,
    }
}

impl Effects {
    /// The effects of an instruction that is not a fence.
    #[must_use]
    pub fn of(data: &InstrData, target: &Target, rules: ScheduleRules) -> Self {
        let (mut reads, mut writes) = (Resources::empty(), Resources::empty());
        // An instruction that changes the set of active lanes changes varyings and derivatives, too: the end of lanes
        // gives back the storage of varyings, and derivatives are taken over quads, in which helper lanes count.
        reads.set(Resources::LANES, data.opcode.depends_on_active_lanes());
        let space = || memory(data.memory().and_then(|memory| memory.space));
        match data.opcode.info().effect {
            Effect::None => {
                if let Some(space) = data.texture().and_then(|texture| texture.space) {
                    reads |= memory(Some(space));
                }
            }
            // Volatile loads stay in order among each other.
            Effect::Load if data.memory().is_some_and(|memory| memory.volatile) => writes |= space(),
            Effect::Load => reads |= space(),
            Effect::Store | Effect::Atomic => writes |= space(),
            Effect::LoadAny | Effect::StoreAny => writes |= Resources::MEMORY,
            Effect::StoreConsts => writes |= Resources::CONST,
            Effect::LoadConsts => {
                reads |= Resources::MEMORY;
                writes |= Resources::CONST;
            }
            Effect::EndsLanes => writes |= Resources::LANES,
            Effect::Barrier => writes |= Resources::MEMORY | Resources::LANES,
            Effect::End | Effect::Jump | Effect::Branch | Effect::Control | Effect::Machine => {}
        }
        // The shared result is the value of one active lane, unless the value is uniform.
        let shared = data.dsts.iter().any(|dst| dst.class.file == RegFile::Shared);
        if shared && data.opcode.is_alu() && !is_scalar_alu(data, target) {
            reads |= Resources::LANES;
        }
        for src in &data.srcs {
            match src.operand {
                SrcOperand::Const(_) | SrcOperand::ConstRelative(_) => reads |= Resources::CONST,
                _ => {}
            }
            match src.class.file {
                // The definition determines the register, and a use stays after its definition anyway.
                RegFile::Address => reads |= Resources::A0 | Resources::A1,
                RegFile::Predicate if !rules.predicates => reads |= Resources::PREDICATES,
                _ => {}
            }
        }
        for dst in &data.dsts {
            match dst.class.file {
                RegFile::Address if is_second_address(data, &dst.place) => writes |= Resources::A1,
                RegFile::Address => writes |= Resources::A0,
                RegFile::Predicate if !rules.predicates => writes |= Resources::PREDICATES,
                _ => {}
            }
            if dst.place.is_relative() {
                reads |= Resources::LANES;
            }
        }
        Self { reads, writes }
    }

    /// The indices of the resources, each with true if it is written.
    pub fn resources(self) -> impl Iterator<Item = (usize, bool)> {
        let mut left = (self.reads | self.writes).bits();
        std::iter::from_fn(move || {
            let number = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some((number, self.writes.bits() >> number & 1 != 0))
        })
    }
}

/// Returns true if an address destination is `a1.x`: by its assigned register, or by the type of the moves that write
/// `a1.x`.
fn is_second_address(data: &InstrData, place: &Place) -> bool {
    match place.reg() {
        Some(reg) => reg == PhysReg::A1_X,
        None => matches!(data.attrs, Attrs::Move { dst: crate::ir3::Type::U16, .. }),
    }
}

/// An edge of the graph: an instruction that depends on the node, and the latency between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The dependent instruction, as a position in the region.
    pub to: u32,
    /// The required and the preferred number of issue slots between the two.
    pub latency: Latency,
}

/// The dependencies between the instructions of a region of a block. Nodes are positions in the region.
#[derive(Debug, Default)]
pub struct DependencyGraph {
    edges: Vec<Edge>,
    /// The start of the edges of each node, and the end of all.
    first: Vec<u32>,
    /// The number of edges to each node.
    pub predecessors: Vec<u32>,
    /// The minimum time from each node to the end of the block, in issue slots.
    pub height: Vec<u32>,
    /// Nodes whose results are read after the region, and the issue slots required in between.
    pub read_after: Vec<(u32, u32)>,
}

impl DependencyGraph {
    /// The instructions that depend on a node.
    #[must_use]
    pub fn successors(&self, node: usize) -> &[Edge] {
        &self.edges[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

#[derive(Clone, Debug, Default)]
struct Resource {
    writer: Option<u32>,
    /// The readers since the last write.
    readers: Vec<u32>,
}

/// Builds the graphs of regions one after the other, reusing its tables.
pub struct DependencyBuilder<'a> {
    target: &'a Target,
    rules: ScheduleRules,
    /// The node of the region that defines a value, plus one; 0 is none.
    definition: SecondaryMap<Value, u32>,
    /// The node of an instruction that others refer to, plus one; 0 is none.
    node: SecondaryMap<Instr, u32>,
    resources: Vec<Resource>,
    touched: Vec<usize>,
    /// The edges (from, to and latency).
    edges: Vec<(u32, Edge)>,
    /// The timing of each instruction.
    timings: SecondaryMap<Instr, Timing>,
}

impl<'a> DependencyBuilder<'a> {
    /// Creates a builder for the regions of a program.
    #[must_use]
    pub fn new(program: &Program, target: &'a Target, rules: ScheduleRules) -> Self {
        let mut timings = map_of(program.instrs.len());
        for (_, instr) in program.iter_instrs() {
            timings[instr] = Timing::of(&program.instrs[instr], target);
        }
        Self {
            target,
            timings,
            rules,
            definition: map_of(program.values.len()),
            node: map_of(program.instrs.len()),
            resources: vec![Resource::default(); RESOURCES + program.arrays.len()],
            touched: Vec::new(),
            edges: Vec::with_capacity(2 * program.instrs.len()),
        }
    }

    /// The timing of an instruction of the layout.
    #[must_use]
    pub fn timing(&self, instr: Instr) -> &Timing {
        &self.timings[instr]
    }

    /// An instruction with its timing.
    fn timed<'b>(&'b self, program: &'b Program, instr: Instr) -> Timed<'b> {
        (&program.instrs[instr], &self.timings[instr])
    }

    /// Builds the graph of a region without fences; `rest` is the rest of the block after it.
    pub fn build(&mut self, program: &Program, stretch: &[Instr], rest: &[Instr], graph: &mut DependencyGraph) {
        self.edges.clear();
        let special = |&instr: &Instr| {
            let data = &program.instrs[instr];
            data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate) && !data.is_rematerializable()
        };
        let rules = ScheduleRules { predicates: self.rules.predicates && !stretch.iter().any(special), ..self.rules };
        for (node, &instr) in (0..).zip(stretch) {
            let data = &program.instrs[instr];
            self.values(program, stretch, node, instr);
            for dep in data.false_deps() {
                self.after(self.node[*dep], node);
            }
            if let RepeatLink::After(previous) = data.link() {
                self.after(self.node[previous], node);
            }
            self.node[instr] = node + 1;
            let effects = Effects::of(data, self.target, rules);
            for (resource, is_written) in effects.resources() {
                match is_written {
                    true => self.write(resource, node),
                    false => self.read(resource, node),
                }
            }
            let array = |place: &Place| match place {
                Place::Array(access) => Some(RESOURCES + access.array.as_u32() as usize),
                _ => None,
            };
            for resource in data.srcs.iter().filter_map(|src| array(src.place()?)) {
                self.read(resource, node);
            }
            for resource in data.dsts.iter().filter_map(|dst| array(&dst.place)) {
                self.write(resource, node);
            }
            for value in data.dsts.iter().filter_map(|dst| dst.value()) {
                self.definition[value] = node + 1;
            }
        }
        self.finish(program, stretch, rest, graph);
    }

    /// The values that a node reads.
    fn values(&mut self, program: &Program, stretch: &[Instr], node: u32, instr: Instr) {
        for (index, src) in program.instrs[instr].srcs.iter().enumerate() {
            let Some(producer) = src.value().and_then(|value| self.definition[value].checked_sub(1)) else { continue };
            let [from, to] = [stretch[producer as usize], instr].map(|instr| self.timed(program, instr));
            let latency = latency(from, to, index, self.target);
            self.edges.push((producer, Edge { to: node, latency }));
        }
    }

    fn after(&mut self, earlier: u32, node: u32) {
        if let Some(earlier) = earlier.checked_sub(1) {
            self.edges.push((earlier, Edge { to: node, latency: Latency { slots: 0, soft: 0 } }));
        }
    }

    fn touch(&mut self, resource: usize) -> &mut Resource {
        let data = &mut self.resources[resource];
        if data.writer.is_none() && data.readers.is_empty() {
            self.touched.push(resource);
        }
        data
    }

    fn read(&mut self, resource: usize, node: u32) {
        let data = self.touch(resource);
        if data.readers.last() != Some(&node) {
            data.readers.push(node);
        }
        if let Some(writer) = data.writer {
            self.after(writer + 1, node);
        }
    }

    fn write(&mut self, resource: usize, node: u32) {
        let data = self.touch(resource);
        let writer = data.writer.replace(node);
        let mut readers = std::mem::take(&mut data.readers);
        if let Some(writer) = writer.filter(|_| readers.is_empty()) {
            self.after(writer + 1, node);
        }
        for reader in readers.drain(..).filter(|&reader| reader != node) {
            self.after(reader + 1, node);
        }
        self.resources[resource].readers = readers;
    }

    /// Sorts the edges by their sources, and resets the tables for the region.
    fn finish(&mut self, program: &Program, stretch: &[Instr], rest: &[Instr], graph: &mut DependencyGraph) {
        let n = stretch.len();
        graph.first.clear();
        graph.first.resize(n + 2, 0);
        graph.predecessors.clear();
        graph.predecessors.resize(n, 0);
        graph.height.clear();
        graph.height.resize(n, 0);
        for &(from, edge) in &self.edges {
            // The start of each node is counted up to its end, which is the start of the next one.
            graph.first[from as usize + 2] += 1;
            graph.predecessors[edge.to as usize] += 1;
        }
        for i in 1..n {
            graph.first[i + 1] += graph.first[i];
        }
        let nothing = Edge { to: 0, latency: Latency { slots: 0, soft: 0 } };
        graph.edges.clear();
        graph.edges.resize(self.edges.len(), nothing);
        for &(from, edge) in &self.edges {
            let at = &mut graph.first[from as usize + 1];
            graph.edges[*at as usize] = edge;
            *at += 1;
        }
        graph.read_after.clear();
        // Reads at the end of the block.
        for &instr in rest {
            for (index, src) in program.instrs[instr].srcs.iter().enumerate() {
                let Some(node) = src.value().and_then(|value| self.definition[value].checked_sub(1)) else { continue };
                let [from, to] = [stretch[node as usize], instr].map(|instr| self.timed(program, instr));
                let Latency { slots, soft } = latency(from, to, index, self.target);
                graph.height[node as usize] = graph.height[node as usize].max(soft);
                graph.read_after.push((node, slots));
            }
        }
        for node in (0..n).rev() {
            let below =
                graph.successors(node).iter().map(|edge| edge.latency.soft.max(1) + graph.height[edge.to as usize]);
            graph.height[node] = below.max().unwrap_or(0).max(graph.height[node]);
        }
        for &instr in stretch {
            self.node[instr] = 0;
            for value in program.instrs[instr].dsts.iter().filter_map(|dst| dst.value()) {
                self.definition[value] = 0;
            }
        }
        for resource in self.touched.drain(..) {
            self.resources[resource].writer = None;
            self.resources[resource].readers.clear();
        }
    }
}

/// The latency from a definition to a use. Meta instructions take no time, so a use by one has the latency of a use by
/// the instructions after it: the ALU has to wait for textures and memory as usual.
fn latency(producer: Timed<'_>, consumer: Timed<'_>, index: usize, target: &Target) -> Latency {
    if !consumer.0.opcode.is_meta() {
        return Latency::between(producer, consumer, || index, target);
    }
    let (data, timing) = producer;
    if data.opcode.is_meta() && data.opcode != Opcode::TexPrefetch {
        return Latency { slots: 0, soft: 0 };
    }
    let soft = timing.result;
    let slots = if soft.slots > 0 { target.delay_slots.far } else { 0 };
    Latency { slots, soft: soft.soft.max(slots) }
}
