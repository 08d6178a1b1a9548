//! Expansion of an operation's meaning into instructions: the term that provers use for it.
//!
//! A term of `w` bits is a value of the next width that SPIR-V has (`container`), with zeros above; of one bit, a
//! boolean.

use ir3_compiler::nir::Alu;
use rspirv::dr::Operand;
use rspirv::spirv::{self, GlslStd450Op, Word};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

use super::alu::Form;
use super::values::{Kind, Ty};
use super::{Emitter, NoForm, no_form, refs};
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::operations::{Kernel, nir_alu};
use ir3_semantics::terms::{FloatOp, Op, Term, Terms, VariableKind};

/// The type of a term.
fn container(width: u8) -> Ty {
    match width {
        1 => Ty::BOOL,
        8 | 16 => Ty::uint(width),
        2..=32 => Ty::U32,
        _ => Ty::uint(64),
    }
}

/// The words of a value of this many bits, as kernels read them.
fn words(terms: &mut Terms, value: Term, bits: u8, list: &mut SmallVec<[Term; 8]>) {
    match bits {
        64 => list.extend([terms.extract(64, value, 0, 32), terms.extract(64, value, 32, 32)]),
        32 => list.push(value),
        bits => list.push(terms.zext(bits.into(), 32, value)),
    }
}

impl Emitter<'_> {
    /// Emits the meaning of an operation.
    pub fn meaning(&mut self, alu: &Alu) -> Result<(), NoForm> {
        let function = self.function;
        let info = alu.op.info();
        let data = &function.defs[alu.def];
        let src_bits: SmallVec<[u8; 4]> = alu.srcs.iter().map(|src| function.defs[src.def].bit_size).collect();
        let Some(kernel) = nir_alu::kernel(alu.op, data.bit_size, &src_bits, self.controls) else {
            return no_form(format_args!("`{}`", alu.op));
        };
        let runs = if info.is_per_component() { data.num_components } else { 1 };
        let mut parts = Vec::new();
        for run in 0..runs {
            let mut terms = Terms::new();
            let mut values: FxHashMap<Term, Word> = FxHashMap::default();
            let mut operands = SmallVec::new();
            // The first word of each source.
            let mut firsts: SmallVec<[usize; 4]> = SmallVec::new();
            for (i, src) in alu.srcs.iter().enumerate() {
                firsts.push(operands.len());
                let (first, count) = match info.inputs[i].components {
                    0 => (run, 1),
                    count => (0, count),
                };
                for c in first..first + count {
                    let bits = src_bits[i];
                    let variable = terms.variable_of(VariableKind::LANE, bits.into(), &format!("{i}.{c}"));
                    let kind = if bits == 1 { Kind::Bool } else { Kind::Uint };
                    let value = self.component(src.def, src.swizzle[usize::from(c)], kind);
                    values.insert(variable, value);
                    words(&mut terms, variable, bits, &mut operands);
                }
            }
            let results = match &kernel {
                Kernel::One(kernel) => SmallVec::from_elem((kernel.meaning)(&mut terms, operands[0]), 1),
                Kernel::Two(kernel) => SmallVec::from_elem((kernel.meaning)(&mut terms, operands[0], operands[1]), 1),
                Kernel::Three(kernel) => {
                    SmallVec::from_elem((kernel.meaning)(&mut terms, operands[0], operands[1], operands[2]), 1)
                }
                Kernel::Rows(kernel) => (kernel.meaning)(&mut terms, &operands),
                Kernel::Select(select) => {
                    // Words of 64 bits are chosen one by one.
                    let [condition, yes, no] =
                        [select.condition, select.yes, select.no].map(|i| firsts[usize::from(i)]);
                    let words = |bits: u8| usize::from(bits).div_ceil(32);
                    let tested = words(src_bits[usize::from(select.condition)]);
                    let test = select.holds(&mut terms, &operands[condition..condition + tested]);
                    let count = words(data.bit_size);
                    (0..count).map(|word| terms.ite(32, test, operands[yes + word], operands[no + word])).collect()
                }
            };
            let count = if info.is_per_component() { 1 } else { data.num_components };
            let bits = data.bit_size;
            for c in 0..usize::from(count) {
                let result = match bits {
                    64 => terms.concat(32, results[2 * c + 1], 32, results[2 * c]),
                    32 => results[c],
                    bits => terms.extract(32, results[c], 0, bits.into()),
                };
                let value = self.term(&terms, result, &mut values)?;
                parts.push(match self.kinds[alu.def] {
                    Kind::Float => {
                        let ty = self.type_id(self.ty(alu.def).of(1));
                        self.emit(spirv::Op::Bitcast, ty, refs(&[value]))
                    }
                    _ => value,
                });
            }
        }
        let ty = self.type_id(self.ty(alu.def));
        let id = self.ids[alu.def];
        match parts[..] {
            [part] => self.emit_as(id, spirv::Op::CopyObject, ty, refs(&[part])),
            _ => self.emit_as(id, spirv::Op::CompositeConstruct, ty, refs(&parts)),
        }
        Ok(())
    }

    /// Emits a term, and before it all that it is made of; `values` has the variables.
    fn term(&mut self, terms: &Terms, root: Term, values: &mut FxHashMap<Term, Word>) -> Result<Word, NoForm> {
        // An argument has a lower number than its users.
        let mut needed = BTreeSet::from([root]);
        let mut stack = vec![root];
        while let Some(term) = stack.pop() {
            if values.contains_key(&term) {
                continue;
            }
            stack.extend(terms.node(term).args.iter().copied().filter(|&arg| needed.insert(arg)));
        }
        for term in needed {
            if !values.contains_key(&term) {
                let value = self.node(terms, term, values)?;
                values.insert(term, value);
            }
        }
        Ok(values[&root])
    }

    fn node(&mut self, terms: &Terms, term: Term, values: &FxHashMap<Term, Word>) -> Result<Word, NoForm> {
        let node = terms.node(term);
        let ty = container(node.width);
        let args: SmallVec<[Word; 4]> = node.args.iter().map(|arg| values[arg]).collect();
        let width_of = |i: usize| terms.node(node.args[i]).width;
        let is_bool = node.width == 1;
        let arg_bool = node.args.first().is_some_and(|&arg| terms.node(arg).width == 1);
        Ok(match node.op {
            Op::Constant(bits) => self.constant(ty, bits),
            Op::Not if is_bool => self.apply(spirv::Op::LogicalNot, ty, &args),
            Op::Not => {
                let not = self.apply(spirv::Op::Not, ty, &args);
                self.cut(not, node.width)
            }
            Op::And | Op::Xor | Op::Add | Op::Mul => {
                let op = match (node.op, is_bool) {
                    (Op::And | Op::Mul, true) => spirv::Op::LogicalAnd,
                    (_, true) => spirv::Op::LogicalNotEqual,
                    (Op::And, _) => spirv::Op::BitwiseAnd,
                    (Op::Xor, _) => spirv::Op::BitwiseXor,
                    (Op::Add, _) => spirv::Op::IAdd,
                    _ => spirv::Op::IMul,
                };
                let mut value = args[0];
                for &arg in &args[1..] {
                    value = self.apply(op, ty, &[value, arg]);
                }
                self.cut(value, node.width)
            }
            Op::Udiv | Op::Urem if !is_bool => {
                // Neither is defined for 0 in SPIR-V.
                let zero = self.constant(ty, 0);
                let by_zero = self.apply(spirv::Op::IEqual, Ty::BOOL, &[args[1], zero]);
                let one = self.constant(ty, 1);
                let divisor = self.apply(spirv::Op::Select, ty, &[by_zero, one, args[1]]);
                let (op, otherwise) = match node.op {
                    Op::Udiv => (spirv::Op::UDiv, self.constant(ty, ones(node.width))),
                    _ => (spirv::Op::UMod, args[0]),
                };
                let result = self.apply(op, ty, &[args[0], divisor]);
                self.apply(spirv::Op::Select, ty, &[by_zero, otherwise, result])
            }
            Op::Shl | Op::Lshr | Op::Ashr if !is_bool => self.shift(terms, term, &args)?,
            Op::Eq if arg_bool => self.apply(spirv::Op::LogicalEqual, Ty::BOOL, &args),
            Op::Eq => self.apply(spirv::Op::IEqual, Ty::BOOL, &args),
            Op::Ult if !arg_bool => self.apply(spirv::Op::ULessThan, Ty::BOOL, &args),
            Op::Slt if !arg_bool => {
                let signed = [self.signed(args[0], width_of(0)), self.signed(args[1], width_of(1))];
                self.apply(spirv::Op::SLessThan, Ty::BOOL, &signed)
            }
            Op::Ite => self.apply(spirv::Op::Select, ty, &args),
            Op::Zext => self.widened(args[0], width_of(0), ty),
            Op::Sext if arg_bool => {
                let operands = [args[0], self.constant(ty, ones(node.width)), self.constant(ty, 0)];
                self.apply(spirv::Op::Select, ty, &operands)
            }
            Op::Sext => {
                let signed = self.signed(args[0], width_of(0));
                let wide = match container(width_of(0)) == ty {
                    true => signed,
                    false => self.apply(spirv::Op::SConvert, ty, &[signed]),
                };
                self.cut(wide, node.width)
            }
            Op::Extract(low) => {
                let from = container(width_of(0));
                let count = self.constant(from, low.into());
                let shifted = match low {
                    0 => args[0],
                    _ => self.apply(spirv::Op::ShiftRightLogical, from, &[args[0], count]),
                };
                if is_bool {
                    let one = self.constant(from, 1);
                    let bit = self.apply(spirv::Op::BitwiseAnd, from, &[shifted, one]);
                    let zero = self.constant(from, 0);
                    self.apply(spirv::Op::INotEqual, Ty::BOOL, &[bit, zero])
                } else {
                    let narrow = match from == ty {
                        true => shifted,
                        false => self.apply(spirv::Op::UConvert, ty, &[shifted]),
                    };
                    match low + node.width < width_of(0) || from != ty {
                        true => self.cut(narrow, node.width),
                        false => narrow,
                    }
                }
            }
            Op::Concat => {
                let low_width = width_of(1);
                let high = self.widened(args[0], width_of(0), ty);
                let count = self.constant(ty, low_width.into());
                let high = self.apply(spirv::Op::ShiftLeftLogical, ty, &[high, count]);
                let low = self.widened(args[1], low_width, ty);
                self.apply(spirv::Op::BitwiseOr, ty, &[high, low])
            }
            Op::UmulHigh | Op::SmulHigh if matches!(node.width, 8 | 16) => {
                let words = [0, 1].map(|i| match node.op {
                    Op::UmulHigh => self.widened(args[i], node.width, Ty::U32),
                    _ => {
                        let signed = self.signed(args[i], node.width);
                        self.apply(spirv::Op::SConvert, Ty::U32, &[signed])
                    }
                });
                let product = self.apply(spirv::Op::IMul, Ty::U32, &words);
                let count = self.constant(Ty::U32, node.width.into());
                let high = self.apply(spirv::Op::ShiftRightLogical, Ty::U32, &[product, count]);
                self.resized(high, ty)
            }
            Op::UmulHigh | Op::SmulHigh if node.width == 32 => {
                let op = if node.op == Op::UmulHigh { spirv::Op::UMulExtended } else { spirv::Op::SMulExtended };
                let word = self.type_id(ty);
                let pair = self.b.type_struct([word, word]);
                let product = self.emit(op, pair, refs(&args));
                self.emit(spirv::Op::CompositeExtract, word, vec![Operand::IdRef(product), Operand::LiteralBit32(1)])
            }
            // Bits are counted in words.
            Op::Popcount if width_of(0) == 64 => {
                let halves = self.halves(args[0]).map(|half| self.apply(spirv::Op::BitCount, Ty::U32, &[half]));
                let count = self.apply(spirv::Op::IAdd, Ty::U32, &halves);
                self.resized(count, ty)
            }
            Op::Reverse if node.width == 64 => {
                let [low, high] = self.halves(args[0]).map(|half| self.apply(spirv::Op::BitReverse, Ty::U32, &[half]));
                self.joined([high, low])
            }
            Op::Clz if width_of(0) == 64 => {
                let halves = self.halves(args[0]);
                let word = self.type_id(Ty::U32);
                // `FindUMsb` of 0 is -1.
                let [low, high] = halves.map(|half| {
                    let id = self.b.id();
                    self.emit_form(id, Form::Glsl(GlslStd450Op::FindUMsb), word, &[half]);
                    id
                });
                let [most, least, zero] = [31, 63, 0].map(|number| self.constant(Ty::U32, number));
                let of_high = self.apply(spirv::Op::ISub, Ty::U32, &[most, high]);
                let of_low = self.apply(spirv::Op::ISub, Ty::U32, &[least, low]);
                let is_low = self.apply(spirv::Op::IEqual, Ty::BOOL, &[halves[1], zero]);
                let zeros = self.apply(spirv::Op::Select, Ty::U32, &[is_low, of_low, of_high]);
                self.resized(zeros, ty)
            }
            Op::Popcount if width_of(0) <= 32 => {
                let word = self.widened(args[0], width_of(0), Ty::U32);
                let count = self.apply(spirv::Op::BitCount, Ty::U32, &[word]);
                self.resized(count, ty)
            }
            Op::Reverse if node.width <= 32 => {
                let word = self.widened(args[0], node.width, Ty::U32);
                let reversed = self.apply(spirv::Op::BitReverse, Ty::U32, &[word]);
                let count = self.constant(Ty::U32, (32 - node.width).into());
                let low = self.apply(spirv::Op::ShiftRightLogical, Ty::U32, &[reversed, count]);
                self.resized(low, ty)
            }
            Op::Clz if width_of(0) <= 32 => {
                let word = self.widened(args[0], width_of(0), Ty::U32);
                let (id, type_id) = (self.b.id(), self.type_id(Ty::U32));
                self.emit_form(id, Form::Glsl(GlslStd450Op::FindUMsb), type_id, &[word]);
                // `FindUMsb` of 0 is -1.
                let top = self.constant(Ty::U32, u64::from(width_of(0)) - 1);
                let zeros = self.apply(spirv::Op::ISub, Ty::U32, &[top, id]);
                self.resized(zeros, ty)
            }
            Op::Float(FloatOp::Eq(format) | FloatOp::Lt(format) | FloatOp::Le(format)) => {
                let float = Ty { kind: Kind::Float, ..Ty::uint(format.width() as u8) };
                let operands = [0, 1].map(|i| self.apply(spirv::Op::Bitcast, float, &args[i..=i]));
                let op = match node.op {
                    Op::Float(FloatOp::Eq(_)) => spirv::Op::FOrdEqual,
                    Op::Float(FloatOp::Lt(_)) => spirv::Op::FOrdLessThan,
                    _ => spirv::Op::FOrdLessThanEqual,
                };
                self.apply(op, Ty::BOOL, &operands)
            }
            Op::Float(FloatOp::Add(format) | FloatOp::Mul(format) | FloatOp::Div(format)) => {
                let float = Ty { kind: Kind::Float, ..Ty::uint(format.width() as u8) };
                let operands: Vec<Word> =
                    args.iter().map(|&arg| self.apply(spirv::Op::Bitcast, float, &[arg])).collect();
                let op = match node.op {
                    Op::Float(FloatOp::Add(_)) => spirv::Op::FAdd,
                    Op::Float(FloatOp::Mul(_)) => spirv::Op::FMul,
                    _ => spirv::Op::FDiv,
                };
                let result = self.apply(op, float, &operands);
                self.decorate(result, spirv::Decoration::NoContraction, &[]);
                self.apply(spirv::Op::Bitcast, ty, &[result])
            }
            op => return no_form(format_args!("the term {op:?} of {} bits", node.width)),
        })
    }

    fn apply(&mut self, op: spirv::Op, ty: Ty, args: &[Word]) -> Word {
        let ty = self.type_id(ty);
        self.emit(op, ty, refs(args))
    }

    /// The words of 64 bits, the low one first.
    fn halves(&mut self, value: Word) -> [Word; 2] {
        let pair = self.apply(spirv::Op::Bitcast, Ty::U32.of(2), &[value]);
        let word = self.type_id(Ty::U32);
        [0, 1].map(|half| {
            self.emit(spirv::Op::CompositeExtract, word, vec![Operand::IdRef(pair), Operand::LiteralBit32(half)])
        })
    }

    /// A word in a container of another width: without the bits above, or with zeros.
    fn resized(&mut self, word: Word, ty: Ty) -> Word {
        match ty == Ty::U32 {
            true => word,
            false => self.apply(spirv::Op::UConvert, ty, &[word]),
        }
    }

    /// The low bits of a value.
    fn cut(&mut self, value: Word, width: u8) -> Word {
        let ty = container(width);
        if width == ty.bits {
            return value;
        }
        let mask = self.constant(ty, ones(width));
        self.apply(spirv::Op::BitwiseAnd, ty, &[value, mask])
    }

    /// A value of this width in its container, with copies of its sign above.
    fn signed(&mut self, value: Word, width: u8) -> Word {
        let ty = container(width);
        if width == ty.bits {
            return value;
        }
        let count = self.constant(ty, (ty.bits - width).into());
        let high = self.apply(spirv::Op::ShiftLeftLogical, ty, &[value, count]);
        self.apply(spirv::Op::ShiftRightArithmetic, ty, &[high, count])
    }

    /// A value of this width in a container that is no smaller.
    fn widened(&mut self, value: Word, width: u8, ty: Ty) -> Word {
        if width == 1 {
            let operands = [value, self.constant(ty, 1), self.constant(ty, 0)];
            return self.apply(spirv::Op::Select, ty, &operands);
        }
        match container(width) == ty {
            true => value,
            false => self.apply(spirv::Op::UConvert, ty, &[value]),
        }
    }

    fn shift(&mut self, terms: &Terms, term: Term, args: &[Word]) -> Result<Word, NoForm> {
        let node = terms.node(term);
        let ty = container(node.width);
        let (width, count) = (node.width, node.args[1]);
        let count_width = terms.node(count).width;
        let bound = count_width - terms.zeros_on_top(count).min(count_width.into()) as u8;
        let is_small = bound < 8 && 1u32 << bound <= u32::from(width);
        let limit = self.constant(container(count_width), u64::from(width) - 1);
        let op = match node.op {
            Op::Shl => spirv::Op::ShiftLeftLogical,
            Op::Lshr => spirv::Op::ShiftRightLogical,
            _ => {
                let value = self.signed(args[0], width);
                let count = match is_small {
                    true => args[1],
                    false => {
                        let (id, type_id) = (self.b.id(), self.type_id(container(count_width)));
                        self.emit_form(id, Form::Glsl(GlslStd450Op::UMin), type_id, &[args[1], limit]);
                        id
                    }
                };
                let shifted = self.apply(spirv::Op::ShiftRightArithmetic, ty, &[value, count]);
                return Ok(self.cut(shifted, width));
            }
        };
        if is_small {
            let shifted = self.apply(op, ty, args);
            return Ok(self.cut(shifted, width));
        }
        let is_within = self.apply(spirv::Op::ULessThanEqual, Ty::BOOL, &[args[1], limit]);
        let zero = self.constant(container(count_width), 0);
        let count = self.apply(spirv::Op::Select, container(count_width), &[is_within, args[1], zero]);
        let shifted = self.apply(op, ty, &[args[0], count]);
        let shifted = self.cut(shifted, width);
        let zero = self.constant(ty, 0);
        Ok(self.apply(spirv::Op::Select, ty, &[is_within, shifted, zero]))
    }
}

/// A mask of this many ones.
fn ones(width: u8) -> u64 {
    u64::MAX >> (64 - width)
}
