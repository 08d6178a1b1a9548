//! Scalarisation: moves uniform values to shared registers, and their computation to the scalar ALU.
//!
//! A shared register holds one value for the whole wave, and the scalar ALU computes one, independent of the active
//! lanes. So an operation can move there if its sources are uniform for all lanes that execute it, and if each of its
//! uses reads the value of the last execution of the definition ([`Uniformity`] decides both).
//!
//! Results of operations whose sources are all uniform become shared. So do phis of such values, except at blocks where
//! lanes reconverge that took different edges. The workgroup's index becomes shared on every GPU with shared registers.
//! Lane masks, and values that are read from one lane, are in shared registers from the start; their copies are
//! operations like others.
//!
//! Moves connect shared and general registers, one per value, directly after its definition:
//! - an instruction that remains on the vector ALU reads a general copy of a shared value (copy propagation replaces
//!   the copy by the shared register if the encoding supports it and the register still holds the value);
//! - a scalar operation that reads a uniform value in a general register reads a shared copy of it. A constant is
//!   rematerialised in a shared register instead.
//!
//! An operation is not moved if its result would only be copied back.

use crate::arms::{Arm, Counter};
use crate::ir3::dataflow::Worklist;
use crate::ir3::legality::valid_source;
use crate::ir3::reconvergence;
use crate::ir3::uniformity::Uniformity;
use crate::ir3::{
    Attrs, Block, Category, Dst, InputKind, Instr, InstrData, InstrFlags, Opcode, OperandFlags, Place, Program,
    RegClass, RegFile, Round, Src, SrcOperand, SystemValue, Type, Value, ValueData, WriteMask,
};
use crate::maps::map_of;
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

/// Moves uniform computation to the scalar ALU, and computes the program's physical edges.
pub fn run(program: &mut Program, target: &Target, counter: &Counter) {
    let uniformity = Uniformity::new(program);
    for &block in &program.layout {
        let data = &mut program.blocks[block];
        if data.successors().count() > 1 {
            data.divergent = Some(uniformity.parts_lanes(block));
        }
    }
    if target.has_shared_regfile
        && (target.has_scalar_alu || program.iter_instrs().any(|(_, instr)| is_workgroup(&program.instrs[instr])))
    {
        let chosen = Choice::new(program, target, &uniformity, counter).chosen;
        if chosen.values().any(|&chosen| chosen) {
            Rewrite::new(program, &uniformity, chosen, counter).run();
        }
    }
    reconvergence::run(program);
}

/// Returns true for the input that is in a shared register without a scalar ALU, too.
const fn is_workgroup(data: &InstrData) -> bool {
    matches!(data.attrs, Attrs::Input(Some(InputKind::System(SystemValue::WorkgroupId))))
}

const fn shared(class: RegClass) -> RegClass {
    RegClass { file: RegFile::Shared, half: class.half }
}

/// Returns true if an instruction moves an immediate or a word of the constant file into a register.
fn is_constant_move(data: &InstrData) -> bool {
    let bits = matches!(data.attrs, Attrs::Move { src, dst, .. } if src == dst);
    let constant = matches!(data.srcs[..], [Src { operand: SrcOperand::Immediate(_) | SrcOperand::Const(_), .. }]);
    data.opcode == Opcode::Mov && bits && constant && data.flags.is_empty() && data.srcs[0].mods.is_empty()
}

/// The selection of the values that become shared.
struct Choice<'a> {
    program: &'a Program,
    target: &'a Target,
    uniformity: &'a Uniformity,
    counter: &'a Counter,
    chosen: SecondaryMap<Value, bool>,
}

impl<'a> Choice<'a> {
    fn new(program: &'a Program, target: &'a Target, uniformity: &'a Uniformity, counter: &'a Counter) -> Self {
        let mut this = Self { program, target, uniformity, counter, chosen: map_of(program.values.len()) };
        this.propose();
        let vectors = this.vectors_read_whole();
        this.withdraw(&vectors);
        this.withdraw_useless();
        // An operation that remains on the vector ALU may define a half value that a chosen operation reads.
        this.withdraw(&vectors);
        if this.withdraw_skipped() {
            this.withdraw(&vectors);
        }
        this
    }

    /// Withdraws the values that are skipped. Returns true if there are some.
    fn withdraw_skipped(&mut self) -> bool {
        let mut some = false;
        for (_, instr) in self.program.iter_instrs() {
            let data = &self.program.instrs[instr];
            let Some(value) = data.dsts.first().and_then(|dst| dst.value()).filter(|&value| self.chosen[value]) else {
                continue;
            };
            let arm = match data.opcode {
                Opcode::Phi => Arm::ScalarPhi,
                Opcode::Split | Opcode::Input => Arm::ScalarInput,
                _ => Arm::ScalarOperation,
            };
            if !self.counter.may(arm) {
                self.chosen[value] = false;
                some = true;
            }
        }
        some
    }

    /// The result of an instruction, if it is the only one and a uniform value in a general register.
    fn uniform_result(&self, data: &InstrData) -> Option<Value> {
        let [Dst { place: Place::Value(value), class, flags, .. }] = data.dsts[..] else { return None };
        let plain =
            class.file == RegFile::General && !flags.intersects(OperandFlags::TIED | OperandFlags::EARLY_CLOBBER);
        (plain && self.uniformity.is_uniform(value)).then_some(value)
    }

    /// Chooses every value whose instruction can run on the scalar ALU if its sources are shared.
    fn propose(&mut self) {
        for (block, instr) in self.program.iter_instrs() {
            let data = &self.program.instrs[instr];
            let Some(value) = self.uniform_result(data) else { continue };
            self.chosen[value] = match data.opcode {
                Opcode::Input => is_workgroup(data),
                Opcode::Split => true,
                _ if !self.target.has_scalar_alu => false,
                Opcode::Phi => self.program.values[value].components == 1,
                _ => !is_constant_move(data) && self.could_be_scalar(block, data),
            };
        }
    }

    /// Returns true if the scalar ALU supports the operation with shared sources.
    fn could_be_scalar(&self, block: Block, data: &InstrData) -> bool {
        let converts = match data.attrs {
            Attrs::Move { src, dst, .. } => has_scalar_move(src) && has_scalar_move(dst),
            _ => data.opcode != Opcode::Mov,
        };
        if !data.opcode.has_scalar_form()
            || !converts
            || !(data.flags - InstrFlags::SAT).is_empty()
            || data.dsts[0].mask != WriteMask::SCALAR
        {
            return false;
        }
        let mut scalar = data.clone();
        scalar.dsts[0].class = shared(scalar.dsts[0].class);
        for src in &mut scalar.srcs {
            match src.operand {
                SrcOperand::Place(Place::Value(value)) => {
                    if !matches!(src.class.file, RegFile::General | RegFile::Shared)
                        || src.mask != WriteMask::SCALAR
                        || !self.uniformity.is_uniform_at(value, block)
                    {
                        return false;
                    }
                    src.class = shared(src.class);
                }
                SrcOperand::Const(_) | SrcOperand::Immediate(_) => {}
                _ => return false,
            }
            if src.flags.contains(OperandFlags::TIED) {
                return false;
            }
        }
        (0..scalar.srcs.len()).all(|slot| valid_source(self.target, &scalar, slot, &scalar.srcs[slot]))
    }

    /// Withdraws the chosen values whose sources are unavailable, until a fixed point.
    fn withdraw(&mut self, vectors: &SecondaryMap<Value, bool>) {
        let readers = &self.uniformity.readers;
        let mut worklist = Worklist::full(readers.instrs.len());
        while let Some(position) = worklist.next() {
            let (_, instr) = readers.instrs[position];
            let data = &self.program.instrs[instr];
            let Some(value) = data.dsts.first().and_then(|dst| dst.value()).filter(|&value| self.chosen[value]) else {
                continue;
            };
            let keep = match data.opcode {
                Opcode::Input => !vectors[value],
                Opcode::Split => data.srcs[0].value().is_some_and(|vector| self.chosen[vector]),
                Opcode::Phi => data.srcs.iter().all(|src| match src.operand {
                    SrcOperand::Place(Place::Value(value)) => self.chosen[value] || self.is_constant(value),
                    SrcOperand::Immediate(_) | SrcOperand::Const(_) => true,
                    _ => false,
                }),
                // The machine has a bug with 16-bit moves from general to shared registers.
                _ => data.srcs.iter().filter_map(|src| src.value()).all(|value| {
                    self.chosen[value] || self.is_constant(value) || !self.program.values[value].class.half
                }),
            };
            if !keep {
                self.counter.count(Arm::ScalarWithdrawn);
                self.chosen[value] = false;
                readers.of(value).iter().for_each(|&reader| worklist.add(reader as usize));
            }
        }
    }

    fn is_constant(&self, value: Value) -> bool {
        is_constant_move(&self.program.instrs[self.program.values[value].instr])
    }

    /// Vectors with a use other than a split.
    fn vectors_read_whole(&self) -> SecondaryMap<Value, bool> {
        let mut whole = map_of(self.program.values.len());
        for (_, instr) in self.program.iter_instrs() {
            let data = &self.program.instrs[instr];
            if data.opcode == Opcode::Split {
                continue;
            }
            for value in data.srcs.iter().filter_map(|src| src.value()) {
                whole[value] |= self.program.values[value].components > 1;
            }
        }
        whole
    }

    /// Withdraws values that would only be copied back to general registers, from the last to the first.
    fn withdraw_useless(&mut self) {
        let mut useful: SecondaryMap<Value, bool> = map_of(self.program.values.len());
        let phis = self.program.iter_instrs().map(|(_, instr)| &self.program.instrs[instr]);
        for data in phis.filter(|data| data.opcode == Opcode::Phi) {
            data.srcs.iter().filter_map(|src| src.value()).for_each(|value| useful[value] = true);
        }
        for position in (0..self.program.layout.len()).rev() {
            let block = &self.program.blocks[self.program.layout[position]];
            for &instr in block.instrs.iter().rev() {
                let data = &self.program.instrs[instr];
                let result = data.dsts.first().and_then(|dst| dst.value());
                if let Some(value) = result.filter(|&value| self.chosen[value])
                    && matches!(
                        data.opcode.category(),
                        Category::Alu2 | Category::Alu3 | Category::Sfu | Category::Move
                    )
                {
                    let is_shared = |src: &&Src| {
                        src.class.file == RegFile::Shared || src.value().is_some_and(|value| self.chosen[value])
                    };
                    let count = data.srcs.iter().filter(is_shared).count();
                    // The vector ALU reads at most one shared register, special functions none.
                    let stays = count == 0 || count == 1 && data.opcode.category() != Category::Sfu;
                    if stays && !useful[value] {
                        self.counter.count(Arm::ScalarUseless);
                        self.chosen[value] = false;
                    }
                }
                let scalar = result.is_some_and(|value| self.chosen[value]);
                for slot in 0..data.srcs.len() {
                    if let Some(value) = data.srcs[slot].value()
                        && self.chosen[value]
                        && (scalar || self.reads_shared(data, slot))
                    {
                        useful[value] = true;
                    }
                }
            }
        }
    }
}

impl Choice<'_> {
    /// Returns true if an operation of the vector ALU can read its source from a shared register, in this slot or in
    /// the one that it can be swapped with.
    fn reads_shared(&self, data: &InstrData, slot: usize) -> bool {
        if !matches!(data.opcode.category(), Category::Alu2 | Category::Alu3) {
            return false;
        }
        let src = Src { class: shared(data.srcs[slot].class), ..data.srcs[slot] };
        valid_source(self.target, data, slot, &src)
            || slot < 2 && data.opcode.commutes() && valid_source(self.target, data, slot ^ 1, &src)
    }
}

fn has_scalar_move(ty: Type) -> bool {
    !matches!(ty, Type::U8 | Type::U8In32 | Type::U64)
}

struct Rewrite<'a> {
    program: &'a mut Program,
    uniformity: &'a Uniformity,
    counter: &'a Counter,
    chosen: SecondaryMap<Value, bool>,
    /// The copy of a value in the other register file.
    copies: SecondaryMap<Value, PackedOption<Value>>,
    /// The instructions to insert after each instruction.
    after: SecondaryMap<Instr, SmallVec<[Instr; 1]>>,
}

impl<'a> Rewrite<'a> {
    fn new(
        program: &'a mut Program,
        uniformity: &'a Uniformity,
        chosen: SecondaryMap<Value, bool>,
        counter: &'a Counter,
    ) -> Self {
        let (copies, after) = (map_of(program.values.len()), map_of(program.instrs.len()));
        Self { program, uniformity, counter, chosen, copies, after }
    }

    fn run(mut self) {
        let list: Vec<(Block, Instr)> = self.program.iter_instrs().collect();
        for &(_, instr) in &list {
            if let Some(value) = self.chosen_result(instr) {
                let class = shared(self.program.values[value].class);
                self.program.values[value].class = class;
                self.program.instrs[instr].dsts[0].class = class;
            }
        }
        for &(block, instr) in &list {
            self.sources(block, instr);
        }
        for position in 0..self.program.layout.len() {
            self.insert(self.program.layout[position]);
        }
    }

    fn chosen_result(&self, instr: Instr) -> Option<Value> {
        let value = self.program.instrs[instr].dsts.first()?.value()?;
        self.chosen[value].then_some(value)
    }

    fn sources(&mut self, block: Block, instr: Instr) {
        let scalar = self.chosen_result(instr).is_some();
        for k in 0..self.program.instrs[instr].srcs.len() {
            let data = &self.program.instrs[instr];
            let src = data.srcs[k];
            let Some(value) = src.value() else { continue };
            if src.class.file == RegFile::Shared {
                continue;
            }
            let read = match (scalar, self.chosen[value]) {
                (false, false) => continue,
                (true, true) => {
                    let at =
                        if data.opcode == Opcode::Phi { self.program.blocks[block].predecessors[k] } else { block };
                    debug_assert!(self.uniformity.is_current_at(value, at), "{value} in {at}");
                    value
                }
                _ => self.copy(value),
            };
            let class = self.program.values[read].class;
            let src = &mut self.program.instrs[instr].srcs[k];
            src.set_value(read);
            src.class = class;
        }
    }

    /// Returns the copy of a value in the other register file; inserts it directly after the definition.
    fn copy(&mut self, value: Value) -> Value {
        if let Some(copy) = self.copies[value].expand() {
            return copy;
        }
        let def = self.program.values[value].instr;
        let from = self.program.values[value].class;
        let file = if from.file == RegFile::Shared { RegFile::General } else { RegFile::Shared };
        let class = RegClass { file, half: from.half };
        let mut data = InstrData::new(Opcode::Mov);
        let constant = is_constant_move(&self.program.instrs[def]);
        if constant {
            data.srcs.push(self.program.instrs[def].srcs[0]);
            self.counter.count(Arm::ScalarCopyConstant);
            data.attrs = self.program.instrs[def].attrs.clone();
        } else {
            let to_shared = file == RegFile::Shared;
            self.counter.count(if to_shared { Arm::ScalarCopyToShared } else { Arm::ScalarCopyToGeneral });
            let ty = if from.half { Type::U16 } else { Type::U32 };
            data.srcs.push(Src::reg(Place::Value(value), from, WriteMask::SCALAR));
            data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
        }
        let instr = self.program.instrs.push(data);
        let copy = self.program.values.push(ValueData { instr, dst: 0, class, components: 1, array: None });
        self.program.instrs[instr].dsts.push(Dst::new(Place::Value(copy), class, WriteMask::SCALAR));
        self.copies[value] = copy.into();
        self.after[def].push(instr);
        copy
    }

    /// Inserts the copies into a block; those of phis and inputs follow the last phi or input.
    fn insert(&mut self, block: Block) {
        let list = &self.program.blocks[block].instrs;
        if list.iter().all(|&instr| self.after[instr].is_empty()) {
            return;
        }
        let mut out = Vec::with_capacity(list.len() + 8);
        let mut deferred = SmallVec::<[Instr; 1]>::new();
        for &instr in list {
            if matches!(self.program.instrs[instr].opcode, Opcode::Phi | Opcode::Input) {
                out.push(instr);
                deferred.append(&mut self.after[instr]);
                continue;
            }
            out.extend(deferred.drain(..));
            out.push(instr);
            out.extend(self.after[instr].drain(..));
        }
        self.program.blocks[block].instrs = out;
    }
}
