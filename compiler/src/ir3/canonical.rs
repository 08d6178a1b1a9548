//! The numbering of all entities that a text names, and programs with their entities in the order of the text.
//!
//! Passes append instructions and leave removed ones in the tables, so the same program can be numbered in many ways.
//! The canonical program has blocks in layout order, instructions in the order of the code, then those that only
//! `keeps` lists, and values in the order of their definitions. Reading a text gives the canonical program.

use super::text::default_attrs;
use super::{
    Array, ArrayData, Attrs, Block, BlockData, Instr, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile,
    RepeatLink, Src, SrcOperand, Value, ValueData,
};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashSet;

/// The number of each entity in the text.
pub(super) struct Numbering {
    /// The serial number; 0 for instructions that are not in the text.
    serials: SecondaryMap<Instr, u32>,
    names: SecondaryMap<Value, u32>,
    blocks: SecondaryMap<Block, u32>,
    arrays: SecondaryMap<Array, u32>,
    /// Instructions in canonical order.
    order: Vec<Instr>,
}

/// Assigns numbers: the wanted number if it is free, else a new one above all wanted ones.
struct NumberAllocator {
    used: FxHashSet<u32>,
    next: u32,
}

impl NumberAllocator {
    fn new(wanted: impl Iterator<Item = u32>) -> Self {
        Self { used: FxHashSet::default(), next: wanted.max().unwrap_or(0).saturating_add(1) }
    }

    fn assign(&mut self, wanted: Option<u32>) -> u32 {
        if let Some(wanted) = wanted
            && self.used.insert(wanted)
        {
            return wanted;
        }
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.used.insert(number);
        number
    }
}

/// The explicit number; `None` for 0.
fn explicit(number: u32) -> Option<u32> {
    (number != 0).then_some(number)
}

impl Numbering {
    pub(super) fn of(program: &Program) -> Self {
        let mut numbering = Self {
            serials: SecondaryMap::new(),
            names: SecondaryMap::new(),
            blocks: SecondaryMap::new(),
            arrays: SecondaryMap::new(),
            order: Vec::with_capacity(program.instruction_count()),
        };
        numbering.number_instrs(program);
        numbering.number_blocks(program);
        let mut free = NumberAllocator::new(program.arrays.values().map(|data| data.id));
        for (array, data) in &program.arrays {
            numbering.arrays[array] = free.assign(Some(data.id));
        }
        numbering
    }

    fn number_instrs(&mut self, program: &Program) {
        let in_blocks = program.layout.iter().flat_map(|&block| &program.blocks[block].instrs);
        let kept = program.layout.iter().flat_map(|&block| &program.blocks[block].keeps);
        let mut serials = NumberAllocator::new(program.serials.values().copied());
        let highest_name = program.value_names.values().copied().max().unwrap_or(0);
        for &instr in in_blocks.chain(kept) {
            if self.serials[instr] != 0 {
                continue;
            }
            self.serials[instr] = serials.assign(explicit(program.serials[instr]));
            self.order.push(instr);
        }
        let mut read = FxHashSet::default();
        for &instr in &self.order {
            if program.instrs[instr].opcode == Opcode::ScanClustersMacro {
                read = self.order.iter().flat_map(|&i| &program.instrs[i].srcs).filter_map(Src::value).collect();
                break;
            }
        }
        for &instr in &self.order {
            let data = &program.instrs[instr];
            if let [dst] = &data.dsts[..] {
                if let Some(value) = dst.value() {
                    self.names[value] = program.value_names[value];
                }
                continue;
            }
            let needed = data.dsts.len() > 1 && !is_readable_scan(program, instr, &read);
            // Names are unique per instruction only.
            let mut names = NumberAllocator::new(std::iter::once(highest_name));
            for value in data.dsts.iter().filter_map(|dst| dst.value()) {
                let wanted = program.value_names[value];
                if wanted != 0 || needed {
                    self.names[value] = names.assign(explicit(wanted));
                }
            }
        }
    }

    fn number_blocks(&mut self, program: &Program) {
        let mut wanted: SecondaryMap<Block, Option<u32>> = SecondaryMap::new();
        for &(block, number) in &program.block_names {
            wanted[block] = Some(number);
        }
        let highest = program.block_names.iter().map(|&(_, number)| number).max().unwrap_or(0);
        let mut free = NumberAllocator::new([highest, program.layout.len() as u32].into_iter());
        // Explicit names come first, so that no position takes one.
        for &block in program.layout.iter().filter(|&&block| wanted[block].is_some()) {
            self.blocks[block] = free.assign(wanted[block]);
        }
        for (i, &block) in program.layout.iter().enumerate().filter(|&(_, &block)| wanted[block].is_none()) {
            self.blocks[block] = free.assign(Some(i as u32 + 1));
        }
    }

    pub(super) fn serial(&self, instr: Instr) -> u32 {
        self.serials[instr]
    }

    /// Returns true if the text contains the instruction, in a block or in a `keeps` list.
    pub(super) fn is_numbered(&self, instr: Instr) -> bool {
        self.serials[instr] != 0
    }

    /// The name of a value; 0 if the serial of its instruction is enough.
    pub(super) fn name(&self, value: Value) -> u32 {
        self.names[value]
    }

    pub(super) fn block(&self, block: Block) -> u32 {
        self.blocks[block]
    }

    pub(super) fn array(&self, array: Array) -> u32 {
        self.arrays[array]
    }
}

/// Returns true if the results of a scan need no names. Mesa prints none at first; the reader then resolves a use to
/// the reduction (by its class) or to the only other result that is used.
fn is_readable_scan(program: &Program, instr: Instr, read: &FxHashSet<Value>) -> bool {
    let data = &program.instrs[instr];
    let wanted = scan_result(data.srcs.len());
    data.opcode == Opcode::ScanClustersMacro
        && data.dsts.iter().enumerate().all(|(i, dst)| {
            (dst.class.file == RegFile::Shared) == (i == 0)
                && dst.value().is_none_or(|value| {
                    program.value_names[value] == 0 && (i == 0 || i == wanted || !read.contains(&value))
                })
        })
}

/// The destination of `scan_clusters.macro` that is used besides the reduction: the exclusive scan if it exists.
pub(super) fn scan_result(srcs: usize) -> usize {
    if srcs == 3 { 2 } else { 1 }
}

/// Returns true if a source is marked with `(kill)`: it dies, and no earlier source of the instruction reads the same
/// place.
pub(super) fn is_first_kill(srcs: &[Src], i: usize) -> bool {
    dies(&srcs[i]) && !srcs[..i].iter().any(|earlier| dies(earlier) && same_register(earlier, &srcs[i]))
}

/// Sets KILL on all reads of the places that die in an instruction, and FIRST_KILL on the first read of each.
pub(super) fn settle_kills(srcs: &mut [Src]) {
    if !srcs.iter().any(dies) {
        return;
    }
    for i in 0..srcs.len() {
        let first = is_first_kill(srcs, i);
        let again = !first && srcs[..i].iter().any(|earlier| dies(earlier) && same_register(earlier, &srcs[i]));
        srcs[i].flags.set(OperandFlags::KILL, first || again);
        srcs[i].flags.set(OperandFlags::FIRST_KILL, first);
    }
}

fn dies(src: &Src) -> bool {
    src.flags.intersects(OperandFlags::KILL | OperandFlags::FIRST_KILL)
}

fn same_register(a: &Src, b: &Src) -> bool {
    matches!(a.operand, SrcOperand::Place(Place::Value(_) | Place::Assigned(..) | Place::Reg(_)))
        && a.operand == b.operand
        && a.class == b.class
}

impl Program {
    /// The same program with its entities in the order of the text, numbered, and without unreachable entities: the
    /// result of reading its text. `None` if it names values, blocks or instructions that are not in it.
    pub fn canonical(&self) -> Option<Self> {
        Renumbering::new(self).run()
    }
}

struct Renumbering<'a> {
    old: &'a Program,
    numbers: Numbering,
    new: Program,
    blocks: SecondaryMap<Block, Option<Block>>,
    instrs: SecondaryMap<Instr, Option<Instr>>,
    values: SecondaryMap<Value, Option<Value>>,
    arrays: SecondaryMap<Array, Option<Array>>,
}

impl<'a> Renumbering<'a> {
    fn new(old: &'a Program) -> Self {
        Self {
            old,
            numbers: Numbering::of(old),
            new: Program {
                stage: old.stage,
                workgroup_size: old.workgroup_size,
                scratch_size: old.scratch_size,
                shared_size: old.shared_size,
                outputs: old.outputs.clone(),
                consts: old.consts.clone(),
                ..Program::default()
            },
            blocks: SecondaryMap::new(),
            instrs: SecondaryMap::new(),
            values: SecondaryMap::new(),
            arrays: SecondaryMap::new(),
        }
    }

    fn run(mut self) -> Option<Program> {
        for &block in &self.old.layout {
            let new = self.new.blocks.push(BlockData::default());
            self.blocks[block] = Some(new);
            self.new.layout.push(new);
            let number = self.numbers.block(block);
            if number != self.new.layout.len() as u32 {
                self.new.block_names.push((new, number));
            }
        }
        let order = std::mem::take(&mut self.numbers.order);
        for &instr in &order {
            self.define(instr);
        }
        for &instr in &order {
            self.rewrite(instr)?;
        }
        for &block in &self.old.layout {
            self.block(block)?;
        }
        Some(self.new)
    }

    /// Copies an instruction unchanged, and numbers the values that it defines.
    fn define(&mut self, instr: Instr) {
        let data = &self.old.instrs[instr];
        let new = self.new.instrs.push(data.clone());
        self.instrs[instr] = Some(new);
        self.new.serials[new] = self.numbers.serial(instr);
        for (i, dst) in data.dsts.iter().enumerate() {
            let class = settled_class(dst.class, &dst.place);
            let array = match &dst.place {
                Place::Array(access) => Some(self.array(access.array, class)),
                _ => None,
            };
            if let Some(value) = dst.value() {
                let components = dst.mask.span() as u16;
                let renamed = self.new.values.push(ValueData { instr: new, dst: i as u8, class, components, array });
                self.values[value] = Some(renamed);
                let name = self.numbers.name(value);
                if name != 0 {
                    self.new.value_names[renamed] = name;
                }
            }
        }
        for src in &data.srcs {
            if let SrcOperand::Place(Place::Array(access)) = &src.operand {
                self.array(access.array, settled_class(src.class, &Place::Array(*access)));
            }
        }
    }

    fn array(&mut self, array: Array, class: RegClass) -> Array {
        let (old, numbers, new) = (self.old, &self.numbers, &mut self.new);
        *self.arrays[array].get_or_insert_with(|| {
            let length = old.arrays[array].length;
            new.arrays.push(ArrayData { id: numbers.array(array), class, length, base: None })
        })
    }

    /// Translates the entities that an instruction names.
    fn rewrite(&mut self, instr: Instr) -> Option<()> {
        let new = self.instrs[instr]?;
        let mut data = std::mem::replace(&mut self.new.instrs[new], super::InstrData::new(Opcode::Nop));
        for dst in &mut data.dsts {
            dst.class = settled_class(dst.class, &dst.place);
            dst.place = self.place(dst.place, dst.class)?;
        }
        for src in &mut data.srcs {
            match &mut src.operand {
                SrcOperand::Place(place) => {
                    src.class = settled_class(src.class, place);
                    *place = self.place(*place, src.class)?;
                }
                SrcOperand::Immediate(bits) if src.class.half => *bits &= 0xffff,
                _ => {}
            }
        }
        settle_kills(&mut data.srcs);
        data.attrs = match data.attrs {
            Attrs::Branch { target: Some(target) } => Attrs::Branch { target: Some(self.blocks[target]?) },
            Attrs::None | Attrs::Branch { target: None } => default_attrs(data.opcode),
            attrs => attrs,
        };
        if data.is_constrained() {
            data.constrain(|it| {
                it.false_deps = it.false_deps.iter().filter_map(|&dep| self.instrs[dep]).collect();
                if let RepeatLink::After(previous) = it.link {
                    it.link = self.instrs[previous].map_or(RepeatLink::First, RepeatLink::After);
                }
            });
        }
        self.new.instrs[new] = data;
        Some(())
    }

    fn place(&self, place: Place, class: RegClass) -> Option<Place> {
        let reg = |reg| settled_reg(class, reg);
        Some(match place {
            Place::Value(value) => Place::Value(self.values[value]?),
            Place::Assigned(value, r) => Place::Assigned(self.values[value]?, reg(r)),
            Place::Reg(r) => Place::Reg(reg(r)),
            Place::Array(mut access) => {
                access.array = self.arrays[access.array]?;
                if let Some(value) = access.value.expand() {
                    access.value = self.values[value]?.into();
                }
                Place::Array(access)
            }
            relative @ Place::Relative { .. } => relative,
        })
    }

    fn block(&mut self, block: Block) -> Option<()> {
        let old = &self.old.blocks[block];
        let renamed = |blocks: &[Block]| blocks.iter().map(|&b| self.blocks[b]).collect::<Option<_>>();
        let mut successors = [None; 2];
        for (slot, successor) in successors.iter_mut().zip(old.successors()) {
            *slot = Some(self.blocks[successor]?);
        }
        let instrs = |instrs: &[Instr]| instrs.iter().map(|&i| self.instrs[i]).collect::<Option<_>>();
        let data = BlockData {
            instrs: instrs(&old.instrs)?,
            successors,
            predecessors: renamed(&old.predecessors)?,
            physical_successors: renamed(&old.physical_successors)?,
            physical_predecessors: renamed(&old.physical_predecessors)?,
            divergent: old.divergent.filter(|_| successors[1].is_some()),
            reconvergence_point: old.reconvergence_point,
            keeps: instrs(&old.keeps)?,
        };
        let new = self.blocks[block]?;
        self.new.blocks[new] = data;
        Some(())
    }
}

/// `r61` is the address register in any class.
fn settled_class(class: RegClass, place: &Place) -> RegClass {
    let address = match place {
        Place::Reg(reg) | Place::Assigned(_, reg) => reg.register() == PhysReg::A0_X.register(),
        _ => false,
    };
    if address && class.file == RegFile::General { RegClass::ADDRESS } else { class }
}

/// A predicate is identified by its component.
fn settled_reg(class: RegClass, reg: PhysReg) -> PhysReg {
    if class.file == RegFile::Predicate { PhysReg::P0_X.offset(reg.component()) } else { reg }
}
