//! Arithmetic, comparisons and selections, component by component.

use super::{Selector, destination, register};
use crate::i965::vec4::{Cmod, Opcode, OpcodeKind, Predicate, RegType, Src};
use crate::i965::vec4_select::alu::{Translation, translation};
use crate::i965::vec4_select::operands::bool_bits;
use crate::nir::{Alu, AluSrc, BaseType, Op};
use crate::select::SelectError;

impl Selector<'_> {
    /// The register of a word of a source.
    fn word(&self, src: &AluSrc, component: u8, word: usize) -> u32 {
        let per_component = self.words_per_component(src.def);
        self.locations[src.def][usize::from(src.swizzle[usize::from(component)]) * per_component + word]
    }

    /// A word of a source as the last operand, which can be an immediate.
    fn last_operand(&self, src: &AluSrc, component: u8, word: usize, ty: RegType) -> Src {
        let constant =
            self.code.function.as_const(src.def).map(|values| values[usize::from(src.swizzle[usize::from(component)])]);
        match (constant, self.code.bits(src.def)) {
            (Some(value), 1) => Src::immediate(bool_bits(value), ty),
            (Some(value), _) => Src::immediate((value >> (32 * word)) as u32, ty),
            (None, _) => register(self.word(src, component, word), ty),
        }
    }

    pub(super) fn alu(&mut self, alu: &Alu) -> Result<(), SelectError> {
        alu.srcs.iter().try_for_each(|src| self.expect_words(src.def))?;
        if self.is_renaming(alu) {
            self.rename(alu);
            return Ok(());
        }
        let is_wide = self.code.bits(alu.def) == 64 || alu.srcs.iter().any(|src| self.code.bits(src.def) == 64);
        let words = self.define(alu.def);
        let per_component = self.words_per_component(alu.def);
        for component in 0..self.code.components(alu.def) {
            let at = usize::from(component) * per_component;
            match is_wide {
                true => self.wide(alu, component, &words[at..at + per_component])?,
                false => self.narrow(alu, component, words[at])?,
            }
        }
        Ok(())
    }

    /// Operations whose result is made of words of their sources.
    fn is_renaming(&self, alu: &Alu) -> bool {
        match alu.op {
            Op::Mov | Op::Pack64_2x32Split | Op::Pack64_2x32 | Op::Unpack64_2x32 => true,
            Op::Unpack64_2x32SplitX | Op::Unpack64_2x32SplitY => true,
            Op::U2u32 | Op::I2i32 => matches!(self.code.bits(alu.srcs[0].def), 32 | 64),
            op => op.is_vec(),
        }
    }

    fn rename(&mut self, alu: &Alu) {
        let components = self.code.components(alu.def);
        let all = |selector: &Self, src: &AluSrc, component: u8| {
            (0..selector.words_per_component(src.def))
                .map(|word| selector.word(src, component, word))
                .collect::<Vec<u32>>()
        };
        let first = &alu.srcs[0];
        let words = match alu.op {
            op if op.is_vec() => alu.srcs.iter().flat_map(|src| all(self, src, 0)).collect(),
            Op::Pack64_2x32Split => (0..components)
                .flat_map(|i| alu.srcs.iter().map(move |src| (src, i)))
                .map(|(src, i)| self.word(src, i, 0))
                .collect(),
            Op::Pack64_2x32 => (0..2).map(|i| self.word(first, i, 0)).collect(),
            Op::Unpack64_2x32 => all(self, first, 0).into(),
            Op::Unpack64_2x32SplitY => (0..components).map(|i| self.word(first, i, 1)).collect(),
            Op::Unpack64_2x32SplitX | Op::U2u32 | Op::I2i32 => {
                (0..components).map(|i| self.word(first, i, 0)).collect()
            }
            _ => (0..components).flat_map(|i| all(self, first, i)).collect(),
        };
        self.locations[alu.def] = words;
    }

    /// A component of an operation with 64-bit values.
    fn wide(&mut self, alu: &Alu, component: u8, dst: &[u32]) -> Result<(), SelectError> {
        use RegType::Ud;
        let bitwise = match alu.op {
            Op::Iand => Some(Opcode::And),
            Op::Ior => Some(Opcode::Or),
            Op::Ixor => Some(Opcode::Xor),
            Op::Inot => Some(Opcode::Not),
            _ => None,
        };
        if let Some(opcode) = bitwise {
            for (word, &to) in dst.iter().enumerate() {
                let srcs: Vec<Src> = alu.srcs.iter().map(|src| register(self.word(src, component, word), Ud)).collect();
                self.code.emit(opcode, destination(to, Ud), &srcs);
            }
            return Ok(());
        }
        let first = &alu.srcs[0];
        match alu.op {
            Op::Bcsel => self.select(alu, component, dst),
            Op::U2u64 if self.code.bits(first.def) == 32 => {
                self.copy(dst[0], register(self.word(first, component, 0), Ud));
                self.copy(dst[1], Src::immediate(0, Ud));
            }
            Op::I2i64 if self.code.bits(first.def) == 32 => {
                let low = self.word(first, component, 0);
                self.copy(dst[0], register(low, Ud));
                let srcs = [register(low, RegType::D), Src::immediate(31, RegType::D)];
                self.code.emit(Opcode::Asr, destination(dst[1], RegType::D), &srcs);
            }
            Op::Iadd => {
                let [a, b] = [0, 1].map(|i| [0, 1].map(|word| register(self.word(&alu.srcs[i], component, word), Ud)));
                self.code.emit(Opcode::Add, destination(dst[0], Ud), &[a[0], b[0]]);
                let [carry, number, high] = [0; 3].map(|_| self.code.new_register());
                let test = self.code.emit(Opcode::Cmp, destination(carry, Ud), &[register(dst[0], Ud), a[0]]);
                test.cmod = Some(Cmod::L);
                let one = Src::immediate(1, Ud);
                self.code.emit(Opcode::And, destination(number, Ud), &[register(carry, Ud), one]);
                self.code.emit(Opcode::Add, destination(high, Ud), &[a[1], b[1]]);
                self.code.emit(Opcode::Add, destination(dst[1], Ud), &[register(high, Ud), register(number, Ud)]);
            }
            _ => return Err(self.code.unsupported("a value of 64 bits")),
        }
        Ok(())
    }

    /// A selection, word by word.
    fn select(&mut self, alu: &Alu, component: u8, dst: &[u32]) {
        let [condition, a, b] = [&alu.srcs[0], &alu.srcs[1], &alu.srcs[2]];
        self.set_flag(self.word(condition, component, 0));
        for (word, &to) in dst.iter().enumerate() {
            let a = register(self.word(a, component, word), RegType::Ud);
            let b = self.last_operand(b, component, word, RegType::Ud);
            let select = self.code.emit(Opcode::Sel, destination(to, RegType::Ud), &[a, b]);
            select.predicate = Some((Predicate::Normal, false));
        }
    }

    /// A component of an operation on words.
    fn narrow(&mut self, alu: &Alu, component: u8, dst: u32) -> Result<(), SelectError> {
        use RegType::Ud;
        let word = |selector: &Self, at: usize| register(selector.word(&alu.srcs[at], component, 0), Ud);
        let last = |selector: &Self, at: usize| selector.last_operand(&alu.srcs[at], component, 0, Ud);
        // Both halves of a pair have a constant in the same place.
        let low_words = |selector: &Self| {
            let [a, b] = [0, 1].map(|at| selector.code.function.as_const(alu.srcs[at].def).is_some());
            if a && !b { [1, 0] } else { [0, 1] }
        };
        match alu.op {
            Op::Bcsel => self.select(alu, component, &[dst]),
            Op::B2f32 | Op::B2i32 => {
                let one = if alu.op == Op::B2f32 { 1.0_f32.to_bits() } else { 1 };
                self.code.emit(Opcode::And, destination(dst, Ud), &[word(self, 0), Src::immediate(one, Ud)]);
            }
            Op::Iadd64Split2Lo | Op::Iadd64Split3Lo | Op::Iadd64Split4Lo => {
                let [a, b] = low_words(self);
                self.code.emit(Opcode::Add64Lo, destination(dst, Ud), &[word(self, a), last(self, b)]);
            }
            Op::Iadd64Split2Hi | Op::Iadd64Split3Hi | Op::Iadd64Split4Hi => {
                let [a, b] = low_words(self);
                let mut srcs = vec![word(self, a), last(self, b)];
                srcs.extend((2..alu.srcs.len()).map(|at| word(self, at)));
                srcs.resize(4, Src::immediate(0, Ud));
                self.code.emit(Opcode::Add64Hi, destination(dst, Ud), &srcs);
            }
            Op::Iadd3 => {
                let sum = self.code.new_register();
                self.code.emit(Opcode::Add, destination(sum, Ud), &[word(self, 0), word(self, 1)]);
                self.code.emit(Opcode::Add, destination(dst, Ud), &[register(sum, Ud), last(self, 2)]);
            }
            Op::ShrgIr3 => {
                let shifted = self.code.new_register();
                self.code.emit(Opcode::Shr, destination(shifted, Ud), &[word(self, 0), last(self, 1)]);
                self.code.emit(Opcode::Or, destination(dst, Ud), &[register(shifted, Ud), last(self, 2)]);
            }
            Op::UmulLow | Op::Umul16x16 => {
                let halves = [0, 1].map(|at| {
                    let half = self.code.new_register();
                    self.code.emit(Opcode::And, destination(half, Ud), &[word(self, at), Src::immediate(0xffff, Ud)]);
                    register(half, Ud)
                });
                self.code.emit(Opcode::Mul, destination(dst, Ud), &halves);
            }
            Op::ImadshMix16 => {
                let [high, low, product, shifted] = [0; 4].map(|_| self.code.new_register());
                self.code.emit(Opcode::Shr, destination(high, Ud), &[word(self, 1), Src::immediate(16, Ud)]);
                self.code.emit(Opcode::And, destination(low, Ud), &[word(self, 0), Src::immediate(0xffff, Ud)]);
                self.code.emit(Opcode::Mul, destination(product, Ud), &[register(high, Ud), register(low, Ud)]);
                self.code.emit(Opcode::Shl, destination(shifted, Ud), &[register(product, Ud), Src::immediate(16, Ud)]);
                self.code.emit(Opcode::Add, destination(dst, Ud), &[register(shifted, Ud), last(self, 2)]);
            }
            _ => self.plain(alu, component, dst)?,
        }
        Ok(())
    }

    /// An operation that is one instruction.
    fn plain(&mut self, alu: &Alu, component: u8, dst: u32) -> Result<(), SelectError> {
        let Some(Translation { opcode, ty, dst: to, cmod }) = translation(alu.op) else {
            return Err(self.code.unsupported("not supported in scalar programs for Gen7"));
        };
        if matches!(opcode.kind(), OpcodeKind::Dot(_)) {
            return Err(self.code.unsupported("a dot product, which scalar programs do not have"));
        }
        let info = alu.op.info();
        let is_bool = self.code.bits(alu.srcs[0].def) == 1;
        if is_bool
            && info.inputs[0].ty.base == BaseType::Int
            && !matches!(alu.op, Op::Ieq | Op::Ine | Op::Inot | Op::Iand | Op::Ior | Op::Ixor)
        {
            return Err(self.code.unsupported("arithmetic on bools"));
        }
        let last = alu.srcs.len() - 1;
        let subtracts = matches!(alu.op, Op::Fsub | Op::Isub);
        let mut srcs: Vec<Src> = (alu.srcs.iter().enumerate())
            .map(|(at, src)| match opcode.sources() == 2 && at == last && !subtracts {
                true => self.last_operand(src, component, 0, ty),
                false => register(self.word(src, component, 0), ty),
            })
            .collect();
        match alu.op {
            Op::Fneg | Op::Ineg | Op::Fsub | Op::Isub => srcs[last].negate = true,
            Op::Fabs | Op::Iabs => srcs[last].abs = true,
            Op::Ffma | Op::FfmaWeak => srcs.rotate_right(1),
            _ => {}
        }
        let instr = self.code.emit(opcode, destination(dst, to), &srcs);
        instr.cmod = cmod;
        instr.saturate = alu.op == Op::Fsat;
        Ok(())
    }
}
