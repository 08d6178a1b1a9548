//! The result of an instruction in a channel, and its destination.

use super::{Computed, Lifter};
use ir3_compiler::i965::vec4::{self, Cmod, Instr, Opcode, OpcodeKind, Predicate, RegType, Src, SrcFile};
use ir3_compiler::nir::{Def, Op};

impl Lifter<'_> {
    pub(super) fn read(&self, variable: usize) -> Def {
        self.state.as_ref().expect("control flow arrives")[variable]
    }

    fn not(&mut self, inverse: bool, value: Def) -> Def {
        if inverse { self.b.alu(Op::Inot, &[value]) } else { value }
    }

    /// The predicate of a channel; `None` for an instruction without one.
    fn predicate(&mut self, instr: &Instr, channel: usize) -> Option<Def> {
        let (predicate, inverse) = instr.predicate?;
        let bit = |lifter: &Self, channel| lifter.read(lifter.flag(channel));
        let value = match predicate {
            Predicate::Normal => bit(self, channel),
            Predicate::ReplicateX => bit(self, 0),
            Predicate::ReplicateY => bit(self, 1),
            Predicate::ReplicateZ => bit(self, 2),
            Predicate::ReplicateW => bit(self, 3),
            Predicate::Any4h | Predicate::All4h => {
                let op = if predicate == Predicate::Any4h { Op::Ior } else { Op::Iand };
                let mut all = bit(self, 0);
                for channel in 1..4 {
                    let next = bit(self, channel);
                    all = self.b.alu(op, &[all, next]);
                }
                all
            }
        };
        Some(self.not(inverse, value))
    }

    /// The condition of an instruction of control flow.
    pub(super) fn condition(&mut self, instr: &Instr) -> Def {
        let (predicate, inverse) = instr.predicate.expect("validated: it has a predicate");
        if predicate != Predicate::Normal || self.program.mode.is_scalar() {
            return self.predicate(instr, 0).expect("it has a predicate");
        }
        let first = self.read(self.flag(0));
        let mut differ = None;
        for channel in 1..4 {
            let other = self.read(self.flag(channel));
            if other != first {
                let here = self.b.alu(Op::Ixor, &[first, other]);
                differ = Some(differ.map_or(here, |before| self.b.alu(Op::Ior, &[before, here])));
            }
        }
        let value = match differ {
            Some(differ) => self.b.alu(Op::Bcsel, &[differ, self.undefined[1], first]),
            None => first,
        };
        self.not(inverse, value)
    }

    /// The value of a source in a channel of the operation.
    pub(super) fn source(&mut self, src: &Src, channel: usize) -> Def {
        let read = src.swizzle.0[channel];
        let mut value = match src.file {
            SrcFile::Vgrf(number) => self.read(4 * number as usize + usize::from(read)),
            SrcFile::Acc => self.read(self.accumulator()),
            SrcFile::Attr(_) | SrcFile::Uniform(_) => self.inputs[&(src.file, read)],
            SrcFile::Imm(vec4::Immediate(bits)) => return self.b.constant(32, bits.into()),
        };
        let [abs, neg] = if src.ty == RegType::F { [Op::Fabs, Op::Fneg] } else { [Op::Iabs, Op::Ineg] };
        if src.abs {
            value = self.b.alu(abs, &[value]);
        }
        if src.negate {
            value = self.b.alu(neg, &[value]);
        }
        value
    }

    /// The word of a bool: all ones or zero.
    pub(super) fn word_of(&mut self, value: Def) -> Def {
        let (ones, zeros) = (self.b.constant(32, u32::MAX.into()), self.b.constant(32, 0));
        let word = self.b.alu(Op::Bcsel, &[value, ones, zeros]);
        self.bools.insert(word, value);
        word
    }

    /// Returns true where a word is not zero.
    pub(super) fn bool_of(&mut self, word: Def) -> Def {
        match self.bools.get(&word) {
            Some(&value) => value,
            None => {
                let zero = self.b.constant(32, 0);
                self.b.alu(Op::Ine, &[word, zero])
            }
        }
    }

    /// Returns true where the sum of two integers does not fit in their type.
    fn overflows(&mut self, ty: RegType, a: Def, b: Def, sum: Def) -> Def {
        if ty == RegType::Ud {
            return self.b.alu(Op::Ult, &[sum, a]);
        }
        // The sign of the sum is that of neither addend.
        let [a, b] = [a, b].map(|addend| self.b.alu(Op::Ixor, &[addend, sum]));
        let both = self.b.alu(Op::Iand, &[a, b]);
        let zero = self.b.constant(32, 0);
        self.b.alu(Op::Ilt, &[both, zero])
    }

    /// A condition on two values of a type.
    fn compare(&mut self, cmod: Cmod, ty: RegType, a: Def, b: Def) -> Def {
        if cmod == Cmod::Nz && ty != RegType::F && self.b.function().as_const_scalar(b) == Some(0) {
            return self.bool_of(a);
        }
        let (op, swap) = match (cmod, ty) {
            (Cmod::O, _) => unreachable!("validated: overflow is that of a sum"),
            (Cmod::Z, RegType::F) => (Op::Feq, false),
            (Cmod::Nz, RegType::F) => (Op::Fneu, false),
            (Cmod::Z, _) => (Op::Ieq, false),
            (Cmod::Nz, _) => (Op::Ine, false),
            (Cmod::L | Cmod::G, RegType::F) => (Op::Flt, cmod == Cmod::G),
            (Cmod::L | Cmod::G, RegType::D) => (Op::Ilt, cmod == Cmod::G),
            (Cmod::L | Cmod::G, RegType::Ud) => (Op::Ult, cmod == Cmod::G),
            (Cmod::Ge | Cmod::Le, RegType::F) => (Op::Fge, cmod == Cmod::Le),
            (Cmod::Ge | Cmod::Le, RegType::D) => (Op::Ige, cmod == Cmod::Le),
            (Cmod::Ge | Cmod::Le, RegType::Ud) => (Op::Uge, cmod == Cmod::Le),
        };
        let operands = if swap { [b, a] } else { [a, b] };
        self.b.alu(op, &operands)
    }

    /// The result in a channel, and the bit of the flag.
    fn result(&mut self, instr: &Instr, srcs: &[Def], channel: usize) -> (Def, Option<Def>) {
        let from = instr.srcs[0].ty;
        if instr.opcode == Opcode::Cmp {
            let cmod = instr.cmod.expect("validated: it has a condition");
            let holds = self.compare(cmod, from, srcs[0], srcs[1]);
            return (self.word_of(holds), Some(holds));
        }
        if instr.opcode == Opcode::Sel {
            let value = match (self.predicate(instr, channel), instr.cmod) {
                (Some(predicate), _) => self.b.alu(Op::Bcsel, &[predicate, srcs[0], srcs[1]]),
                (None, cmod) => {
                    let op = match (cmod, from) {
                        (Some(Cmod::L), RegType::F) => Op::Fmin,
                        (Some(Cmod::L), RegType::D) => Op::Imin,
                        (Some(Cmod::L), RegType::Ud) => Op::Umin,
                        (_, RegType::F) => Op::Fmax,
                        (_, RegType::D) => Op::Imax,
                        (_, RegType::Ud) => Op::Umax,
                    };
                    self.b.alu(op, srcs)
                }
            };
            return (self.saturated(instr, value), None);
        }
        let value = match operation(instr.opcode, from, instr.dst.ty) {
            None => srcs[0],
            Some(op) if instr.opcode == Opcode::Mad => self.b.alu(op, &[srcs[1], srcs[2], srcs[0]]),
            Some(op) => match instr.opcode.kind() {
                OpcodeKind::Dot(count) => {
                    let (a, c) = srcs.split_at(usize::from(count));
                    let (a, c) = (self.b.vec(a), self.b.vec(c));
                    self.b.alu(op, &[a, c])
                }
                _ => self.b.alu(op, srcs),
            },
        };
        let bit = instr.cmod.map(|cmod| {
            if cmod == Cmod::O {
                return self.overflows(instr.dst.ty, srcs[0], srcs[1], value);
            }
            let zero = self.b.constant(32, 0);
            self.compare(cmod, instr.dst.ty, value, zero)
        });
        (self.saturated(instr, value), bit)
    }

    fn saturated(&mut self, instr: &Instr, value: Def) -> Def {
        if instr.saturate { self.b.alu(Op::Fsat, &[value]) } else { value }
    }

    pub(super) fn compute(&mut self, instr: &Instr) {
        let mut writes: Vec<(usize, Def)> = Vec::new();
        let mut made: Vec<Computed> = Vec::new();
        let first = self.variable(instr.dst.file);
        for channel in instr.dst.mask.channels() {
            // A predicated `sel` depends on the channel too.
            let key: Vec<(Src, u8)> = instr.srcs.iter().map(|src| (*src, src.swizzle.0[channel])).collect();
            let same = match (instr.opcode, instr.opcode.kind()) {
                (Opcode::Sel, _) => None,
                (_, OpcodeKind::Dot(_)) => made.first(),
                _ => made.iter().find(|(other, _)| *other == key),
            };
            let (value, bit) = match same {
                Some(&(_, result)) => result,
                None => {
                    let srcs: Vec<Def> = match instr.opcode.kind() {
                        OpcodeKind::Dot(count) => {
                            let count = usize::from(count);
                            let of = |i: usize| (i / count, i % count);
                            (0..2 * count).map(of).map(|(src, i)| self.source(&instr.srcs[src], i)).collect()
                        }
                        _ => instr.srcs.iter().map(|src| self.source(src, channel)).collect(),
                    };
                    let result = self.result(instr, &srcs, channel);
                    made.push((key, result));
                    result
                }
            };
            let guard = self.guard(instr, channel);
            let bit = bit.filter(|_| instr.writes_flag()).map(|bit| (self.flag(channel), bit));
            if instr.opcode == Opcode::Addc {
                let srcs: Vec<Def> = instr.srcs.iter().map(|src| self.source(src, channel)).collect();
                let carry = self.b.alu(Op::UaddCarry, &srcs);
                // The other half of the thread has the same channels of the accumulator.
                let left = match guard {
                    Some(guard) => self.b.alu(Op::Bcsel, &[guard, carry, self.undefined[0]]),
                    None => carry,
                };
                writes.push((self.accumulator(), left));
            }
            for (variable, value) in first.map(|first| (first + channel, value)).into_iter().chain(bit) {
                let value = match guard {
                    Some(guard) => {
                        let old = self.read(variable);
                        self.b.alu(Op::Bcsel, &[guard, value, old])
                    }
                    None => value,
                };
                writes.push((variable, value));
            }
        }
        let state = self.state.as_mut().expect("control flow arrives");
        writes.into_iter().for_each(|(variable, value)| state[variable] = value);
    }

    /// The condition on which a channel is written; `None` if it always is.
    fn guard(&mut self, instr: &Instr, channel: usize) -> Option<Def> {
        let predicate = if instr.opcode == Opcode::Sel { None } else { self.predicate(instr, channel) };
        if instr.exec_size == self.program.mode.width() {
            return predicate;
        }
        let second = self.second_half.expect("it was computed for such instructions");
        let runs = self.not(instr.group == 0, second);
        Some(match predicate {
            Some(predicate) => self.b.alu(Op::Iand, &[runs, predicate]),
            None => runs,
        })
    }
}

/// The operation of nir in a channel; `None` for a copy of bits.
fn operation(opcode: Opcode, from: RegType, to: RegType) -> Option<Op> {
    use RegType::{D, F, Ud};
    let is_float = from == F;
    Some(match opcode {
        Opcode::Mov => match (from, to) {
            (F, F) | (D | Ud, D | Ud) => return None,
            (F, D) => Op::F2i32,
            (F, Ud) => Op::F2u32,
            (D, F) => Op::I2f32,
            (Ud, F) => Op::U2f32,
        },
        Opcode::Not => Op::Inot,
        Opcode::And => Op::Iand,
        Opcode::Or => Op::Ior,
        Opcode::Xor => Op::Ixor,
        Opcode::Shl => Op::Ishl,
        Opcode::Shr => Op::Ushr,
        Opcode::Asr => Op::Ishr,
        Opcode::Add if is_float => Op::Fadd,
        Opcode::Add | Opcode::Addc => Op::Iadd,
        Opcode::Add64Lo => Op::Iadd64Split2Lo,
        Opcode::Add64Hi => Op::Iadd64Split4Hi,
        Opcode::Mul if is_float => Op::Fmul,
        Opcode::Mul => Op::Imul,
        Opcode::Mad => Op::Ffma,
        Opcode::Frc => Op::Ffract,
        Opcode::Rndd => Op::Ffloor,
        Opcode::Rnde => Op::FroundEven,
        Opcode::Rndz => Op::Ftrunc,
        Opcode::Dp2 => Op::Fdot2,
        Opcode::Dp3 => Op::Fdot3,
        Opcode::Dp4 => Op::Fdot4,
        Opcode::Rcp => Op::Frcp,
        Opcode::Rsq => Op::Frsq,
        Opcode::Sqrt => Op::Fsqrt,
        Opcode::Exp2 => Op::Fexp2,
        Opcode::Log2 => Op::Flog2,
        Opcode::Sin => Op::Fsin,
        Opcode::Cos => Op::Fcos,
        Opcode::Cmp | Opcode::Sel => unreachable!("comparisons and selections have no operation of nir"),
        Opcode::If | Opcode::Else | Opcode::Endif | Opcode::Do | Opcode::While | Opcode::Break | Opcode::Continue => {
            unreachable!("control flow computes nothing")
        }
        Opcode::Send => {
            unreachable!("a message is its intrinsic")
        }
    })
}
