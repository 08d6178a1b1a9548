//! The halves of 64-bit sums as instructions of the hardware.
//!
//! The high word needs the carry of the low words. Ian Romanick's proposal (seed 004) sketches two ways. With the
//! accumulator, which has 8 channels, so that the last two instructions are emitted for each half of 16 invocations:
//!
//! ```text
//! add(16)  high, a.y, b.y
//! addc(8)  null, a.x, b.x         group0
//! add(8)   high, high, acc0       group0
//! addc(8)  null, a.x, b.x         group8
//! add(8)   high, high, acc0       group8
//! ```
//!
//! and with the flag, for all invocations at once:
//!
//! ```text
//! add(16)          high, a.y, b.y
//! add(16).o.f0.0   null, a.x, b.x
//! (+f0.0) add(16)  high, high, 1U
//! ```
//!
//! The third form is a comparison of the sum with an addend, as in `nir_lower_int64`. A low word is computed by an
//! instruction that writes the carry, too, if there is a high word of the same sum in its block:
//! [`combine_additions`](super::combine_additions) makes one of both.

use crate::i965::vec4::{
    Blocks, Cmod, Dst, DstFile, Instr, Mask, Mode, Opcode, Predicate, Program, RegType, Src, SrcFile, Swizzle,
};

/// The way from the low words to the high one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// `addc` and the accumulator.
    Accumulator,
    /// The condition of overflow and a predicated instruction.
    Flag,
    /// A comparison of the sum with an addend.
    Comparison,
}

/// The form of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The carry.
    pub carry: Carry,
    /// With the accumulator, the high words of all invocations are added by one instruction.
    pub wide_sum: bool,
}

/// Replaces `add64lo` and `add64hi`. Returns true if there was one.
///
/// # Panics
/// If the program is not valid.
pub fn run(program: &mut Program, rules: Rules) -> bool {
    let is_half = |instr: &Instr| matches!(instr.opcode, Opcode::Add64Lo | Opcode::Add64Hi);
    if !program.instrs.iter().any(is_half) {
        return false;
    }
    let blocks = Blocks::of(program).expect("the program is valid");
    let mut lowering = Lowering {
        mode: program.mode,
        rules,
        registers: program.registers(),
        instrs: Vec::with_capacity(program.instrs.len()),
    };
    for range in blocks.ranges {
        let block = &program.instrs[range];
        for instr in block {
            match instr.opcode {
                Opcode::Add64Lo => {
                    let has_high = block.iter().any(|other| other.opcode == Opcode::Add64Hi && adds_same(instr, other));
                    lowering.low(instr, has_high);
                }
                Opcode::Add64Hi => lowering.high(instr),
                _ => lowering.instrs.push(instr.clone()),
            }
        }
    }
    program.instrs = lowering.instrs;
    true
}

/// Returns true if two instructions add the same words, in either order.
pub(super) fn adds_same(a: &Instr, b: &Instr) -> bool {
    let (a, b) = (&a.srcs, &b.srcs);
    a[..2] == b[..2] || (a[0], a[1]) == (b[1], b[0])
}

struct Lowering {
    mode: Mode,
    rules: Rules,
    registers: u32,
    instrs: Vec<Instr>,
}

const ZERO: Src = Src {
    file: SrcFile::Imm(crate::i965::vec4::Immediate(0)),
    swizzle: Swizzle::IDENTITY,
    ty: RegType::Ud,
    abs: false,
    negate: false,
};

impl Lowering {
    fn emit(&mut self, opcode: Opcode, dst: Dst, srcs: &[Src]) -> &mut Instr {
        let exec_size = self.mode.width();
        self.instrs.push(Instr { exec_size, ..Instr::new(opcode, dst, srcs) });
        self.instrs.last_mut().expect("it was pushed")
    }

    /// An instruction for the 8 invocations from a group on.
    fn emit_half(&mut self, group: u8, opcode: Opcode, dst: Dst, srcs: &[Src]) {
        let instr = self.emit(opcode, dst, srcs);
        (instr.exec_size, instr.group) = (8, group);
    }

    fn groups(&self) -> std::ops::Range<u8> {
        0..self.mode.width() / 8
    }

    fn new_register(&mut self) -> Dst {
        self.registers += 1;
        Dst { file: DstFile::Vgrf(self.registers - 1), mask: Mask(1), ty: RegType::Ud }
    }

    /// Two operands, of which only the last is an immediate.
    fn operands(&mut self, a: Src, b: Src) -> [Src; 2] {
        match (a.as_immediate(), b.as_immediate()) {
            (Some(_), Some(_)) => {
                let copy = self.new_register();
                self.emit(Opcode::Mov, copy, &[a]);
                [source(copy), b]
            }
            (Some(_), None) => [b, a],
            (None, _) => [a, b],
        }
    }

    fn low(&mut self, instr: &Instr, has_high: bool) {
        let words = self.operands(instr.srcs[0], instr.srcs[1]);
        match self.rules.carry {
            Carry::Accumulator if has_high => {
                self.groups().for_each(|half| self.emit_half(8 * half, Opcode::Addc, instr.dst, &words));
            }
            Carry::Flag if has_high => self.emit(Opcode::Add, instr.dst, &words).cmod = Some(Cmod::O),
            _ => drop(self.emit(Opcode::Add, instr.dst, &words)),
        }
    }

    fn high(&mut self, instr: &Instr) {
        let words = self.operands(instr.srcs[0], instr.srcs[1]);
        let high: Vec<Src> = instr.srcs[2..].iter().copied().filter(|src| !src.is_zero()).collect();
        match self.rules.carry {
            Carry::Accumulator => self.high_by_accumulator(instr.dst, words, &high),
            Carry::Flag => self.high_by_flag(instr.dst, words, &high),
            Carry::Comparison => self.high_by_comparison(instr.dst, words, &high),
        }
    }

    /// The sum of the high words, if there is more than one: in the result, unless that is one of the low words, which
    /// are still read.
    fn sum(&mut self, dst: Dst, words: [Src; 2], high: &[Src]) -> Src {
        let &[a, b] = high else { return high.first().copied().unwrap_or(ZERO) };
        let srcs = self.operands(a, b);
        let is_read = words.iter().any(|word| word.file == source(dst).file);
        let sum = if is_read { self.new_register() } else { dst };
        if self.rules.wide_sum || self.rules.carry != Carry::Accumulator {
            self.emit(Opcode::Add, sum, &srcs);
        } else {
            self.groups().for_each(|half| self.emit_half(8 * half, Opcode::Add, sum, &srcs));
        }
        source(sum)
    }

    fn high_by_accumulator(&mut self, dst: Dst, words: [Src; 2], high: &[Src]) {
        let sum = self.sum(dst, words, high);
        let carry = Src::new(SrcFile::Acc, Swizzle::replicate(0), RegType::Ud);
        let null = Dst { mask: Mask(1), ..Dst::null(RegType::Ud) };
        for half in self.groups() {
            self.emit_half(8 * half, Opcode::Addc, null, &words);
            match (sum.is_zero(), sum.as_immediate()) {
                (true, _) => self.emit_half(8 * half, Opcode::Mov, dst, &[carry]),
                (false, Some(_)) => self.emit_half(8 * half, Opcode::Add, dst, &[carry, sum]),
                (false, None) => self.emit_half(8 * half, Opcode::Add, dst, &[sum, carry]),
            }
        }
    }

    fn high_by_flag(&mut self, dst: Dst, words: [Src; 2], high: &[Src]) {
        let sum = self.sum(dst, words, high);
        let set_flag = |lowering: &mut Self| {
            let null = Dst { mask: Mask(1), ..Dst::null(RegType::Ud) };
            lowering.emit(Opcode::Add, null, &words).cmod = Some(Cmod::O);
        };
        // A copy to the result may overwrite a low word: then the flag comes first.
        let is_read = words.iter().any(|word| word.file == source(dst).file);
        if is_read {
            set_flag(self);
        }
        if sum != source(dst) {
            self.emit(Opcode::Mov, dst, &[sum]);
        }
        if !is_read {
            set_flag(self);
        }
        let one = Src::immediate(1, RegType::Ud);
        let carried = if sum.is_zero() {
            self.emit(Opcode::Mov, dst, &[one])
        } else {
            self.emit(Opcode::Add, dst, &[source(dst), one])
        };
        carried.predicate = Some((Predicate::Normal, false));
    }

    fn high_by_comparison(&mut self, dst: Dst, words: [Src; 2], high: &[Src]) {
        let [low, carry] = [0; 2].map(|_| self.new_register());
        self.emit(Opcode::Add, low, &words);
        self.emit(Opcode::Cmp, carry, &[source(low), words[0]]).cmod = Some(Cmod::L);
        let sum = self.sum(dst, [ZERO; 2], high);
        let signed = |src: Src| Src { ty: RegType::D, ..src };
        // True is all ones: less one.
        let carry = Src { negate: true, ..signed(source(carry)) };
        let dst = Dst { ty: RegType::D, ..dst };
        match (sum.is_zero(), sum.as_immediate()) {
            (true, _) => self.emit(Opcode::Mov, dst, &[carry]),
            (false, Some(_)) => self.emit(Opcode::Add, dst, &[carry, signed(sum)]),
            (false, None) => self.emit(Opcode::Add, dst, &[signed(sum), carry]),
        };
    }
}

/// The written operand, as a source.
fn source(dst: Dst) -> Src {
    let file = match dst.file {
        DstFile::Vgrf(number) => SrcFile::Vgrf(number),
        DstFile::Null | DstFile::Output(_) => unreachable!("validated: a half of a sum is in a register"),
    };
    Src::new(file, Swizzle::replicate(0), dst.ty)
}
