//! Results that one instruction computes and another only passes on.
//!
//! Each of these takes an instruction away, where all readers agree:
//! - `(sat)max.f x, x`: the operation that computes `x` saturates itself;
//! - a comparison whose result is only ever widened gives a full register;
//! - a comparison, or a bitwise operation, whose result is only ever compared with 0 for a predicate writes that predicate;
//! - the negation of a bool: a branch is inverted instead, a selection exchanges its operands;
//! - a branch on the conjunction or disjunction of two bools reads two predicates.
//!
//! What is folded away is removed here; nothing else is.

use crate::ir3::legality::valid_source;
use crate::ir3::{
    Attrs, Block, Condition, Dst, Instr, InstrData, InstrFlags, Mods, Opcode, OperandFlags, Place, Program, RegClass,
    RegFile, Src, SrcOperand, Type, Value, ValueData, WriteMask,
};
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Folds what can be folded.
pub fn run(program: &mut Program, target: &Target) {
    let mut pass = Pass::new(program, target);
    pass.each(Pass::saturation);
    pass.each(Pass::negation);
    if target.has_branch_and_or {
        // Reads of the new predicates have to be known behind it.
        let mut pass = Pass::new(program, target);
        pass.each(Pass::two_predicates);
    }
    let mut pass = Pass::new(program, target);
    pass.each(Pass::predicate);
    pass.each(Pass::widening);
}

/// A read: the instruction, and which of its sources.
type Use = (Instr, u8);

struct Pass<'a> {
    program: &'a mut Program,
    target: &'a Target,
    uses: SecondaryMap<Value, SmallVec<[Use; 2]>>,
    blocks: SecondaryMap<Instr, Option<Block>>,
    removed: SecondaryMap<Instr, bool>,
    /// New instructions, each with the one that it goes in front of.
    added: Vec<(Instr, Instr)>,
}

impl<'a> Pass<'a> {
    fn new(program: &'a mut Program, target: &'a Target) -> Self {
        let mut uses = SecondaryMap::<Value, SmallVec<[Use; 2]>>::with_capacity(program.values.len());
        let mut blocks = SecondaryMap::with_capacity(program.instrs.len());
        for (block, instr) in program.iter_instrs() {
            blocks[instr] = Some(block);
            for (slot, src) in program.instrs[instr].srcs.iter().enumerate() {
                if let Some(value) = src.value() {
                    uses[value].push((instr, slot as u8));
                }
            }
        }
        Self { program, target, uses, blocks, removed: SecondaryMap::new(), added: Vec::new() }
    }

    /// Has a rule look at each instruction, and takes away what it has removed.
    fn each(&mut self, rule: fn(&mut Self, Instr)) {
        for position in 0..self.program.layout.len() {
            let block = self.program.layout[position];
            let mut list = std::mem::take(&mut self.program.blocks[block].instrs);
            for &instr in &list {
                if !self.removed[instr] {
                    rule(self, instr);
                }
            }
            for (new, before) in self.added.drain(..) {
                let at = list.iter().position(|&instr| instr == before).unwrap_or(list.len());
                list.insert(at, new);
            }
            self.program.blocks[block].instrs = list;
        }
        for position in 0..self.program.layout.len() {
            let block = self.program.layout[position];
            let removed = &self.removed;
            self.program.blocks[block].instrs.retain(|&instr| !removed[instr]);
        }
    }

    fn data(&self, instr: Instr) -> &InstrData {
        &self.program.instrs[instr]
    }

    /// The value that an instruction defines, if it is one register, and the instruction does nothing else.
    fn result(&self, instr: Instr) -> Option<Value> {
        match self.data(instr).dsts[..] {
            [Dst { place: Place::Value(value), mask: WriteMask::SCALAR, .. }] => Some(value),
            _ => None,
        }
    }

    /// The instruction that computes what a source reads, if that is one whole register without modifiers.
    fn producer(&self, src: &Src) -> Option<(Value, Instr)> {
        let SrcOperand::Place(Place::Value(value)) = src.operand else { return None };
        let instr = self.program.values[value].instr;
        let plain = src.mods.is_empty() && !src.flags.contains(OperandFlags::TIED) && self.blocks[instr].is_some();
        (plain && self.result(instr) == Some(value)).then_some((value, instr))
    }

    /// The same, where nothing else reads it.
    fn sole_producer(&self, src: &Src) -> Option<(Value, Instr)> {
        self.producer(src).filter(|&(value, _)| self.uses[value].len() == 1)
    }

    fn remove(&mut self, instr: Instr) {
        self.removed[instr] = true;
        self.blocks[instr] = None;
        for slot in 0..self.program.instrs[instr].srcs.len() {
            self.forget(instr, slot);
        }
    }

    fn forget(&mut self, instr: Instr, slot: usize) {
        if let Some(value) = self.program.instrs[instr].srcs[slot].value() {
            self.uses[value].retain(|its| *its != (instr, slot as u8));
        }
    }

    /// Replaces a source.
    fn set(&mut self, instr: Instr, slot: usize, src: Src) {
        self.forget(instr, slot);
        if let Some(value) = src.value() {
            self.uses[value].push((instr, slot as u8));
        }
        self.program.instrs[instr].srcs[slot] = src;
    }

    /// Has all readers of `old` read `new`, which has its class.
    fn replace(&mut self, old: Value, new: Value) {
        for (instr, slot) in std::mem::take(&mut self.uses[old]) {
            self.program.instrs[instr].srcs[usize::from(slot)].operand = SrcOperand::Place(Place::Value(new));
            self.uses[new].push((instr, slot));
        }
    }

    fn saturation(&mut self, instr: Instr) {
        let data = self.data(instr);
        if data.opcode != Opcode::MaxF || data.flags != InstrFlags::SAT {
            return;
        }
        let (Some(value), Some((x, def))) = (self.result(instr), self.producer(&data.srcs[0])) else { return };
        let other = self.producer(&data.srcs[1]);
        let computed = self.data(def);
        let saturates = matches!(
            computed.opcode,
            Opcode::AddF | Opcode::MulF | Opcode::MinF | Opcode::MaxF | Opcode::MadF16 | Opcode::MadF32
        );
        let same_class = self.program.values[x].class == self.program.values[value].class;
        let only_here = self.uses[x].iter().all(|&(user, _)| user == instr);
        if other == Some((x, def))
            && saturates
            && same_class
            && only_here
            && InstrFlags::SAT.contains(computed.flags)
            && data.srcs[0].class == self.program.values[x].class
        {
            self.program.instrs[def].flags |= InstrFlags::SAT;
            self.remove(instr);
            self.replace(value, x);
        }
    }

    /// Whether what is true of a source where `from` reads it is true of it in all those places: a shared register may have
    /// another value elsewhere, for lanes that have come later.
    fn is_current(&self, src: &Src, from: Instr, places: &[Instr]) -> bool {
        src.class.file != RegFile::Shared || places.iter().all(|&instr| self.blocks[instr] == self.blocks[from])
    }

    /// The bool that a source is the negation of, if nothing else reads the negation, and it can be read in other places.
    fn negated(&self, src: &Src, places: &[Instr]) -> Option<(Src, Instr)> {
        let (_, def) = self.sole_producer(src)?;
        let data = self.data(def);
        let is_one = data.opcode == Opcode::XorB
            && data.flags.is_empty()
            && data.srcs.len() == 2
            && data.srcs[1].operand == SrcOperand::Immediate(1)
            && data.srcs[1].mods.is_empty();
        let same_class = data.dsts[0].class == data.srcs.first()?.class && data.dsts[0].class == src.class;
        let fits = is_one && same_class && self.is_bool(&data.srcs[0], 4);
        (fits && self.is_current(&data.srcs[0], def, places)).then(|| (data.srcs[0], def))
    }

    /// Whether a source is certainly 0 or 1.
    fn is_bool(&self, src: &Src, depth: u32) -> bool {
        if src.operand == SrcOperand::Immediate(0) || src.operand == SrcOperand::Immediate(1) {
            return src.mods.is_empty();
        }
        let Some((_, def)) = self.producer(src) else { return false };
        let data = self.data(def);
        match data.opcode {
            Opcode::CmpsF | Opcode::CmpsS | Opcode::CmpsU => data.dsts[0].class.file != RegFile::Predicate,
            Opcode::AndB | Opcode::OrB | Opcode::XorB => {
                depth > 0 && data.flags.is_empty() && data.srcs.iter().all(|src| self.is_bool(src, depth - 1))
            }
            _ => false,
        }
    }

    fn negation(&mut self, instr: Instr) {
        match self.data(instr).opcode {
            Opcode::Br => {
                let predicate = self.data(instr).srcs[0];
                if let Some((test, x)) = self.test(&Src { mods: Mods::empty(), ..predicate })
                    && self.uses[test.0].len() == 1
                    && let Some((bool, negation)) = self.negated(&x, &[test.1, instr])
                {
                    self.set(test.1, 0, bool);
                    self.program.instrs[instr].srcs[0].mods.toggle(Mods::NOT);
                    self.remove(negation);
                }
            }
            Opcode::SelB16 | Opcode::SelB32 => {
                let data = self.data(instr);
                let [yes, condition, no] = data.srcs[..] else { return };
                let Some((bool, negation)) = self.negated(&condition, &[instr]) else { return };
                let mut new = data.clone();
                new.srcs = [no, bool, yes].into_iter().collect();
                if is_legal(self.target, &new) {
                    self.set(instr, 0, no);
                    self.set(instr, 1, bool);
                    self.set(instr, 2, yes);
                    self.remove(negation);
                }
            }
            Opcode::Mov => self.negation_of_conditions(instr),
            _ => {}
        }
    }

    /// The negation of a bool that is widened to be a condition, and nothing else.
    fn negation_of_conditions(&mut self, instr: Instr) {
        let Some(wide) = self.widened(instr) else { return };
        let Some((bool, negation)) = self.negated(&self.data(instr).srcs[0], &[instr]) else { return };
        let uses = self.uses[wide].clone();
        let all = uses.iter().all(|&(user, slot)| {
            let data = self.data(user);
            let mut new = data.clone();
            slot == 1 && data.opcode == Opcode::SelB32 && data.srcs.len() == 3 && {
                new.srcs.swap(0, 2);
                is_legal(self.target, &new)
            }
        });
        if !all || uses.is_empty() {
            return;
        }
        for (user, _) in uses {
            let [yes, _, no] = self.data(user).srcs[..] else { continue };
            self.set(user, 0, no);
            self.set(user, 2, yes);
        }
        self.set(instr, 0, bool);
        self.remove(negation);
    }

    /// The comparison with 0 that makes a predicate, and what it compares.
    fn test(&self, predicate: &Src) -> Option<((Value, Instr), Src)> {
        let (value, def) = self.producer(predicate)?;
        let data = self.data(def);
        let is_test = data.opcode == Opcode::CmpsS
            && data.attrs == Attrs::Compare(Condition::Ne)
            && data.dsts[0].class.file == RegFile::Predicate
            && data.srcs.len() == 2
            && data.srcs[1].operand == SrcOperand::Immediate(0);
        is_test.then(|| ((value, def), data.srcs[0]))
    }

    fn two_predicates(&mut self, instr: Instr) {
        if self.data(instr).opcode != Opcode::Br {
            return;
        }
        let predicate = self.data(instr).srcs[0];
        let Some((test, x)) = self.test(&Src { mods: Mods::empty(), ..predicate }) else { return };
        let Some((_, def)) = self.sole_producer(&x) else { return };
        let data = self.data(def);
        let conjunction = data.opcode == Opcode::AndB;
        if !(conjunction || data.opcode == Opcode::OrB) || !data.flags.is_empty() || self.uses[test.0].len() != 1 {
            return;
        }
        let [a, b] = data.srcs[..] else { return };
        let here = self.blocks[instr];
        let is_computed = |src: &Src| self.sole_producer(src).is_some_and(|(_, def)| self.blocks[def] == here);
        if !self.is_bool(&a, 4)
            || !self.is_bool(&b, 4)
            || !self.is_register(&a)
            || !self.is_register(&b)
            || !(is_computed(&a) || is_computed(&b))
            || here.is_none()
            || ![a, b].iter().all(|src| self.is_current(src, def, &[instr]))
            || self.blocks[test.1] != here
        {
            return;
        }
        // Not both is one of the negations.
        let inverted = predicate.mods.contains(Mods::NOT);
        let mut srcs = SmallVec::<[Src; 3]>::new();
        self.remove(def);
        for operand in [a, b] {
            let (bool, mods) = match self.negated(&operand, &[test.1]) {
                Some((bool, negation)) => {
                    self.remove(negation);
                    (bool, Mods::NOT)
                }
                None => (operand, Mods::empty()),
            };
            let value = self.new_test(test.1, bool);
            let src = Src::reg(Place::Value(value), RegClass::PREDICATE, WriteMask::SCALAR);
            srcs.push(src.with_mods(if inverted { mods ^ Mods::NOT } else { mods }));
        }
        self.remove(test.1);
        self.forget(instr, 0);
        let both = conjunction != inverted;
        let branch = &mut self.program.instrs[instr];
        branch.opcode = if both { Opcode::Braa } else { Opcode::Brao };
        branch.srcs = srcs;
    }

    fn is_register(&self, src: &Src) -> bool {
        src.value().is_some()
    }

    /// A predicate that holds where a register is not 0, in front of another.
    fn new_test(&mut self, before: Instr, src: Src) -> Value {
        let mut data = InstrData::new(Opcode::CmpsS);
        data.attrs = Attrs::Compare(Condition::Ne);
        data.srcs.extend([Src { flags: OperandFlags::empty(), ..src }, Src::immediate(0, src.class.half)]);
        let instr = self.program.instrs.push(data);
        let class = RegClass::PREDICATE;
        let value = self.program.values.push(ValueData { instr, dst: 0, class, components: 1, array: None });
        self.program.instrs[instr].dsts.push(Dst::new(Place::Value(value), class, WriteMask::SCALAR));
        self.blocks[instr] = self.blocks[before];
        if let Some(value) = src.value() {
            self.uses[value].push((instr, 0));
        }
        self.added.push((instr, before));
        value
    }

    /// Looks at what computes a value that is compared with 0.
    fn predicate(&mut self, instr: Instr) {
        let Some(value) = self.result(instr) else { return };
        let uses = self.uses[value].clone();
        if uses.is_empty() || self.program.values[value].class.file == RegFile::Predicate {
            return;
        }
        let data = self.data(instr);
        let writes = match data.opcode {
            Opcode::CmpsF | Opcode::CmpsS | Opcode::CmpsU => true,
            Opcode::AndB | Opcode::OrB | Opcode::XorB | Opcode::NotB => self.target.bitops_can_write_predicates,
            _ => false,
        };
        let mut new = data.clone();
        new.dsts[0] = Dst::new(new.dsts[0].place, RegClass::PREDICATE, WriteMask::SCALAR);
        // A bitwise operation of another width than its result could lose bits that the comparison would not have seen.
        let same_width = data.srcs.first().is_some_and(|src| src.class.half == data.dsts[0].class.half)
            || matches!(data.opcode, Opcode::CmpsF | Opcode::CmpsS | Opcode::CmpsU);
        if !writes || !same_width || !data.flags.is_empty() || !is_legal(self.target, &new) {
            return;
        }
        let all = uses.iter().all(|&(user, slot)| {
            let test = self.data(user);
            let predicate = test.dsts.first().map(|dst| dst.place);
            let Some(Place::Value(predicate)) = predicate else { return false };
            let src = Src::reg(Place::Value(predicate), RegClass::PREDICATE, WriteMask::SCALAR);
            let is_plain = test.srcs[0].mods.is_empty();
            // A predicate may be computed again wherever it is read.
            let mut places: SmallVec<[Instr; 4]> = self.uses[predicate].iter().map(|&(reader, _)| reader).collect();
            places.push(user);
            slot == 0
                && is_plain
                && self.blocks[user] == self.blocks[instr]
                && self.test(&src).is_some()
                && new.srcs.iter().all(|src| self.is_current(src, instr, &places))
        });
        if !all {
            return;
        }
        for (user, _) in uses {
            for slot in 0..self.data(user).srcs.len() {
                self.forget(user, slot);
            }
            let dsts = self.data(user).dsts.clone();
            self.program.instrs[user] = InstrData { dsts, ..new.clone() };
            for slot in 0..new.srcs.len() {
                self.program.instrs[user].srcs[slot].flags = OperandFlags::empty();
                if let Some(value) = new.srcs[slot].value() {
                    self.uses[value].push((user, slot as u8));
                }
            }
        }
        self.remove(instr);
    }

    /// The result of an instruction that widens 16 bits to 32.
    fn widened(&self, instr: Instr) -> Option<Value> {
        let data = self.data(instr);
        let widens = data.opcode == Opcode::Mov
            && data.flags.is_empty()
            && matches!(data.move_types(), Some((Type::U16, Type::U32) | (Type::S16, Type::S32)))
            && data.srcs.len() == 1
            && data.srcs[0].mods.is_empty();
        let value = self.result(instr)?;
        (widens && self.program.values[value].class == RegClass::FULL).then_some(value)
    }

    fn widening(&mut self, instr: Instr) {
        let data = self.data(instr);
        let compares = matches!(data.opcode, Opcode::CmpsF | Opcode::CmpsS | Opcode::CmpsU);
        let Some(value) = self.result(instr) else { return };
        if !compares || self.program.values[value].class != RegClass::HALF {
            return;
        }
        let uses = self.uses[value].clone();
        if uses.is_empty() || !uses.iter().all(|&(user, _)| self.widened(user).is_some()) {
            return;
        }
        self.program.values[value].class = RegClass::FULL;
        self.program.instrs[instr].dsts[0].class = RegClass::FULL;
        for (user, _) in uses {
            if let Some(wide) = self.widened(user) {
                self.remove(user);
                self.replace(wide, value);
            }
        }
    }
}

/// Whether the instruction can have all of its sources beside each other.
fn is_legal(target: &Target, data: &InstrData) -> bool {
    data.srcs.iter().enumerate().all(|(slot, src)| valid_source(target, data, slot, src))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::BlockData;
    use crate::ir3::Builder;

    const R: RegClass = RegClass::FULL;

    /// A program of one block with two inputs.
    fn program() -> (Program, Block, [Src; 2]) {
        let mut program = Program::default();
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        let mut b = Builder::new(&mut program, block);
        let inputs = [0, 1].map(|_| {
            let value = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
            b.src(value)
        });
        (program, block, inputs)
    }

    fn compare(b: &mut Builder, opcode: Opcode, condition: Condition, x: Src, y: Src) -> Src {
        let value = b.compare(opcode, condition, RegClass::HALF, x, y);
        b.src(value)
    }

    fn test(b: &mut Builder, x: Src) -> Src {
        let value = b.compare(Opcode::CmpsS, Condition::Ne, RegClass::PREDICATE, x, Src::immediate(0, true));
        b.src(value)
    }

    fn bitop(b: &mut Builder, opcode: Opcode, x: Src, y: Src) -> Src {
        let value = b.alu(opcode, RegClass::HALF, &[x, y]);
        b.src(value)
    }

    fn opcodes(program: &Program) -> Vec<Opcode> {
        program.iter_instrs().skip(2).map(|(_, instr)| program.instrs[instr].opcode).collect()
    }

    fn last(program: &Program) -> &InstrData {
        &program.instrs[*program.blocks[program.entry()].instrs.last().unwrap()]
    }

    #[test]
    fn saturation_goes_into_the_operation() {
        for shared_use in [false, true] {
            let (mut program, block, [x, y]) = program();
            let mut b = Builder::new(&mut program, block);
            let sum = b.alu(Opcode::AddF, R, &[x, y]);
            let sum = b.src(sum);
            let sat = b.alu(Opcode::MaxF, R, &[sum, sum]);
            let defined = b.program.values[sat].instr;
            b.program.instrs[defined].flags |= InstrFlags::SAT;
            let sat = b.src(sat);
            let ends: &[Src] = if shared_use { &[sat, sum] } else { &[sat] };
            b.effect(Opcode::End, ends);
            run(&mut program, &Target::default());
            if shared_use {
                assert_eq!(opcodes(&program), [Opcode::AddF, Opcode::MaxF, Opcode::End]);
            } else {
                assert_eq!(opcodes(&program), [Opcode::AddF, Opcode::End]);
                assert_eq!(last(&program).srcs[0], sum);
                let add = program.values[sum.value().unwrap()].instr;
                assert_eq!(program.instrs[add].flags, InstrFlags::SAT);
            }
        }
    }

    #[test]
    fn comparisons_write_predicates_and_full_registers() {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
        let predicate = test(&mut b, less);
        b.effect(Opcode::Kill, &[predicate]);
        let equal = compare(&mut b, Opcode::CmpsS, Condition::Eq, x, y);
        let wide = b.convert(Type::U16, Type::U32, R, equal);
        let wide = b.src(wide);
        b.effect(Opcode::End, &[wide]);
        run(&mut program, &Target::default());
        assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::Kill, Opcode::CmpsS, Opcode::End]);
        assert_eq!(last(&program).srcs[0].value(), equal.value());
        assert_eq!(last(&program).srcs[0].class, R);
        let defined = &program.instrs[program.values[predicate.value().unwrap()].instr];
        assert_eq!((&defined.srcs[..], &defined.attrs), (&[x, y][..], &Attrs::Compare(Condition::Lt)));
    }

    #[test]
    fn bitwise_operations_write_predicates_where_they_can() {
        for (gpu, expected) in [
            ("a660", &[Opcode::CmpsF, Opcode::OrB, Opcode::Kill, Opcode::End][..]),
            ("a540", &[Opcode::CmpsF, Opcode::OrB, Opcode::CmpsS, Opcode::Kill, Opcode::End]),
        ] {
            let (mut program, block, [x, y]) = program();
            let mut b = Builder::new(&mut program, block);
            let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
            let or = bitop(&mut b, Opcode::OrB, less, less);
            let predicate = test(&mut b, or);
            b.effect(Opcode::Kill, &[predicate]);
            b.effect(Opcode::End, &[less]);
            run(&mut program, &Target::by_name(gpu).unwrap());
            assert_eq!(opcodes(&program), expected, "{gpu}");
        }
    }

    #[test]
    fn branches_take_negations_and_two_predicates() {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
        let equal = compare(&mut b, Opcode::CmpsS, Condition::Eq, x, y);
        let not = bitop(&mut b, Opcode::XorB, equal, Src::immediate(1, true));
        let both = bitop(&mut b, Opcode::AndB, less, not);
        let negated = bitop(&mut b, Opcode::XorB, both, Src::immediate(1, true));
        let predicate = test(&mut b, negated);
        b.effect(Opcode::Br, &[predicate]);
        run(&mut program, &Target::default());
        // !(less && !equal) is !less || equal.
        assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::CmpsS, Opcode::Brao]);
        assert_eq!(last(&program).srcs.iter().map(|src| src.mods).collect::<Vec<_>>(), [Mods::NOT, Mods::empty()]);
    }

    #[test]
    fn selections_exchange_their_operands() {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
        let not = bitop(&mut b, Opcode::XorB, less, Src::immediate(1, true));
        let wide = b.convert(Type::U16, Type::U32, R, not);
        let wide = b.src(wide);
        let chosen = b.alu(Opcode::SelB32, R, &[x, wide, y]);
        let chosen = b.src(chosen);
        b.effect(Opcode::End, &[chosen]);
        run(&mut program, &Target::default());
        assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::SelB32, Opcode::End]);
        let select = &program.instrs[program.values[chosen.value().unwrap()].instr];
        assert_eq!((select.srcs[0], select.srcs[2]), (y, x));
    }

    /// What is not certainly a bool is not negated by its lowest bit alone.
    #[test]
    fn numbers_are_no_bools() {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let flipped = b.alu(Opcode::XorB, R, &[x, Src::immediate(1, false)]);
        let flipped = b.src(flipped);
        let chosen = b.alu(Opcode::SelB32, R, &[x, flipped, y]);
        let chosen = b.src(chosen);
        b.effect(Opcode::End, &[chosen]);
        run(&mut program, &Target::default());
        assert_eq!(opcodes(&program), [Opcode::XorB, Opcode::SelB32, Opcode::End]);
    }
}
