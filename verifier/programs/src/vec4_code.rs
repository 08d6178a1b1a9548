//! Generated vec4 programs: forms that selection never emits, and that passes have to preserve nevertheless. Writemasks
//! of all kinds, comparisons that write a part of the flag, predicated comparisons, instructions on one vertex, results
//! that are written together with the flag.

use crate::generator::{Choices, Seeded};
use ir3_compiler::i965::vec4::{
    Cmod, Dst, DstFile, Instr, Mask, Mode, Opcode, Predicate, Program, RegType, Src, SrcFile, Swizzle, validate,
};
use ir3_compiler::nir::{Info, Stage};

/// The conditional modifiers of vec4 programs: all but overflow.
const CMODS: [Cmod; 6] = [Cmod::Z, Cmod::Nz, Cmod::G, Cmod::Ge, Cmod::L, Cmod::Le];

/// The least integer, whose negation it is itself.
const LEAST: u32 = 1 << 31;

/// The registers that instructions work on; one more counts iterations.
const REGISTERS: u32 = 5;

/// Generates the program of a seed, the same on every machine, with at most about `size` instructions.
pub fn from_seed(seed: u64, size: u32) -> Program {
    generate(&mut Seeded::new(seed).within(size))
}

/// Generates a program from a source of decisions.
///
/// # Panics
/// If the program is not valid.
pub fn generate<C: Choices>(c: &mut C) -> Program {
    let limit = c.size().min(400) as usize;
    let mut g = Generator { c, instrs: Vec::new() };
    for register in 0..REGISTERS {
        let ty = if register < 3 { RegType::F } else { RegType::D };
        let src = match register {
            0..3 => Src::new(SrcFile::Attr(register), Swizzle::IDENTITY, ty),
            _ => Src::new(SrcFile::Uniform(register), Swizzle::IDENTITY, ty),
        };
        g.push(Instr::new(Opcode::Mov, dst(register, Mask::ALL, ty), &[src]));
    }
    let all = Instr::new(
        Opcode::Cmp,
        Dst::null(RegType::F),
        &[Src::new(SrcFile::Attr(0), Swizzle::IDENTITY, RegType::F), Src::immediate(0, RegType::F)],
    );
    g.push(Instr { cmod: Some(Cmod::L), ..all });
    let mut statements = 0;
    while statements < 2 || !g.c.exhausted() && g.instrs.len() < limit {
        g.statement(0);
        statements += 1;
    }
    for register in 0..REGISTERS {
        let output = Dst { file: DstFile::Output(register), ..dst(register, Mask::ALL, RegType::Ud) };
        g.push(Instr::new(Opcode::Mov, output, &[whole(register, RegType::Ud)]));
    }
    let flag = Dst { file: DstFile::Output(REGISTERS), mask: Mask::ALL, ty: RegType::Ud };
    let operands = [whole(0, RegType::Ud), Src::immediate(7, RegType::Ud)];
    let predicate = g.predicate();
    g.push(Instr { predicate: Some(predicate), ..Instr::new(Opcode::Sel, flag, &operands) });
    let program = Program { mode: Mode::Vec4, stage: Stage::Vertex, info: Info::default(), instrs: g.instrs };
    if let Err(error) = validate(&program) {
        panic!("a generated program is not valid: {error}");
    }
    program
}

fn dst(register: u32, mask: Mask, ty: RegType) -> Dst {
    Dst { file: DstFile::Vgrf(register), mask, ty }
}

fn whole(register: u32, ty: RegType) -> Src {
    Src::new(SrcFile::Vgrf(register), Swizzle::IDENTITY, ty)
}

struct Generator<'a, C> {
    c: &'a mut C,
    instrs: Vec<Instr>,
}

impl<C: Choices> Generator<'_, C> {
    fn push(&mut self, instr: Instr) {
        self.instrs.push(instr);
    }

    fn mask(&mut self) -> Mask {
        match self.c.below(4) {
            0 | 1 => Mask(1 << self.c.below(4)),
            2 => Mask::ALL,
            _ => Mask(1 + self.c.below(15) as u8),
        }
    }

    fn predicate(&mut self) -> (Predicate, bool) {
        let predicate = match self.c.chance(100) {
            true => Predicate::Normal,
            false => self.c.pick(&Predicate::ALL),
        };
        (predicate, self.c.chance(80))
    }

    fn swizzle(&mut self) -> Swizzle {
        match self.c.below(4) {
            0 | 1 => Swizzle::IDENTITY,
            2 => Swizzle::replicate(self.c.below(4) as u8),
            _ => Swizzle([0; 4].map(|_: u8| self.c.below(4) as u8)),
        }
    }

    fn src(&mut self, ty: RegType, modifiers: bool) -> Src {
        // Recently written values more often, so that passes find their producer.
        let recent = self.instrs.iter().rev().take(3).find_map(|instr| match instr.dst.file {
            DstFile::Vgrf(register) if register < REGISTERS => Some(register),
            _ => None,
        });
        let register = recent.filter(|_| self.c.chance(140)).unwrap_or_else(|| self.c.below(REGISTERS as usize) as u32);
        let mut src = Src::new(SrcFile::Vgrf(register), self.swizzle(), ty);
        if modifiers && ty != RegType::Ud {
            (src.abs, src.negate) = (self.c.chance(16), self.c.chance(32));
        }
        src
    }

    fn last(&mut self, ty: RegType, modifiers: bool) -> Src {
        match self.c.chance(70) {
            true => Src::immediate(self.c.pick(&[0, 1, 31, 0x3f80_0000, LEAST, u32::MAX]), ty),
            false => self.src(ty, modifiers),
        }
    }

    fn limits(&mut self, instr: &mut Instr) {
        if self.c.chance(12) {
            (instr.exec_size, instr.group) = (4, self.c.pick(&[0, 4]));
        }
    }

    fn statement(&mut self, depth: u32) {
        match self.c.below(16) {
            0..=3 => self.compute(),
            4 | 5 => self.tested(),
            6..=8 => self.compare(),
            9 | 10 => self.test(),
            11 | 12 => self.select(),
            13 if depth < 2 => self.branch(depth),
            14 if depth < 1 => self.repeat(depth),
            _ => self.compute(),
        }
    }

    fn compute(&mut self) {
        let ty = self.c.pick(&[RegType::F, RegType::D, RegType::D, RegType::Ud]);
        let opcode = match ty {
            RegType::F => self.c.pick(&[Opcode::Add, Opcode::Mul, Opcode::Mov, Opcode::Rndd, Opcode::Mad, Opcode::Dp2]),
            _ => self.c.pick(&[Opcode::Add, Opcode::Mov, Opcode::And, Opcode::Or, Opcode::Not, Opcode::Shl]),
        };
        let modifiers = !opcode.is_bitwise();
        let count = opcode.sources();
        let srcs: Vec<Src> = (0..count)
            .map(|i| if count == 2 && i == 1 { self.last(ty, modifiers) } else { self.src(ty, modifiers) })
            .collect();
        let to = dst(self.c.below(REGISTERS as usize) as u32, self.mask(), ty);
        let mut instr = Instr::new(opcode, to, &srcs);
        if self.c.chance(50) {
            instr.predicate = Some(self.predicate());
        }
        if self.c.chance(40) {
            instr.cmod = Some(self.c.pick(&CMODS));
        }
        instr.saturate = ty == RegType::F && self.c.chance(30);
        self.limits(&mut instr);
        self.push(instr);
    }

    fn compare(&mut self) {
        let ty = self.c.pick(&RegType::ALL);
        let srcs = [self.src(ty, true), self.last(ty, true)];
        let mask = self.mask();
        let to = match self.c.chance(110) {
            true => Dst { mask, ..Dst::null(ty) },
            false => dst(self.c.below(REGISTERS as usize) as u32, mask, ty),
        };
        let mut instr = Instr { cmod: Some(self.c.pick(&CMODS)), ..Instr::new(Opcode::Cmp, to, &srcs) };
        if self.c.chance(50) {
            instr.predicate = Some(self.predicate());
        }
        self.limits(&mut instr);
        self.push(instr);
    }

    /// A test of a register for zero, as conditions of branches and selections are made.
    fn test(&mut self) {
        let ty = self.c.pick(&[RegType::D, RegType::D, RegType::F, RegType::Ud]);
        let mut src = self.src(ty, false);
        src.negate = ty != RegType::Ud && self.c.chance(40);
        let to = Dst { mask: self.mask(), ..Dst::null(ty) };
        let instr = match self.c.chance(100) {
            true => Instr { cmod: Some(Cmod::Nz), ..Instr::new(Opcode::Mov, to, &[src]) },
            false => {
                let cmod = if self.c.chance(140) { Cmod::Nz } else { self.c.pick(&CMODS) };
                Instr { cmod: Some(cmod), ..Instr::new(Opcode::Cmp, to, &[src, Src::immediate(0, ty)]) }
            }
        };
        self.push(instr);
    }

    /// A result that is tested for zero in the same channels, by any condition, and a reader of the flag: a candidate
    /// for a conditional modifier of the instruction that computes the result, or a near miss.
    fn tested(&mut self) {
        let before = self.instrs.len();
        if self.c.chance(70) {
            self.compare()
        } else {
            self.compute()
        }
        let Some(producer) = self.instrs[before..].last_mut() else { return };
        if self.c.chance(200) {
            producer.predicate = None;
        }
        if self.c.chance(150) && producer.opcode != Opcode::Cmp {
            producer.cmod = None;
        }
        if self.c.chance(170) {
            producer.dst.mask = if self.c.chance(128) { Mask(1) } else { Mask::ALL };
        }
        let ty = producer.dst.ty;
        // The sign alone: the least integer, or zero.
        if ty == RegType::D && producer.opcode == Opcode::And && self.c.chance(160) {
            producer.srcs[1] = Src::immediate(LEAST, ty);
        }
        if ty == RegType::F && producer.opcode != Opcode::Cmp && self.c.chance(60) {
            producer.saturate = true;
        }
        let producer = producer.clone();
        let register = match producer.dst.file {
            DstFile::Vgrf(register) => register,
            // The flag alone: its test is that of another result.
            _ => self.c.below(REGISTERS as usize) as u32,
        };
        let other = self.c.pick(&[RegType::D, RegType::Ud, RegType::F]);
        let ty = if self.c.chance(220) { ty } else { other };
        if self.c.chance(50) {
            // In between, what does not write the flag.
            self.select();
        }
        let mut src = whole(register, ty);
        src.negate = ty != RegType::Ud && self.c.chance(70);
        let mask = if self.c.chance(200) { producer.dst.mask } else { self.mask() };
        let to = Dst { mask, ..Dst::null(ty) };
        let cmod = if self.c.chance(70) { Cmod::Nz } else { self.c.pick(&CMODS) };
        let mut test = match self.c.chance(60) {
            true => Instr { cmod: Some(Cmod::Nz), ..Instr::new(Opcode::Mov, to, &[src]) },
            false => Instr { cmod: Some(cmod), ..Instr::new(Opcode::Cmp, to, &[src, Src::immediate(0, ty)]) },
        };
        (test.exec_size, test.group) = (producer.exec_size, producer.group);
        if self.c.chance(40) {
            (test.exec_size, test.group) = (4, self.c.pick(&[0, 4]));
        }
        self.push(test);
        if self.c.chance(150) {
            self.select();
        }
    }

    fn select(&mut self) {
        let ty = self.c.pick(&RegType::ALL);
        let to = dst(self.c.below(REGISTERS as usize) as u32, self.mask(), ty);
        let srcs = [self.src(ty, false), self.last(ty, false)];
        let predicate = self.predicate();
        self.push(Instr { predicate: Some(predicate), ..Instr::new(Opcode::Sel, to, &srcs) });
    }

    /// A predicate of a branch, whose four channels agree.
    fn condition(&mut self) -> (Predicate, bool) {
        let (predicate, inverse) = self.predicate();
        if predicate == Predicate::Normal {
            let src = Src { swizzle: Swizzle::replicate(self.c.below(4) as u8), ..self.src(RegType::D, false) };
            self.push(Instr { cmod: Some(Cmod::Nz), ..Instr::new(Opcode::Mov, Dst::null(RegType::D), &[src]) });
        }
        (predicate, inverse)
    }

    fn scope(&mut self, depth: u32) {
        for _ in 0..1 + self.c.below(3) {
            self.statement(depth + 1);
        }
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.condition();
        self.push(Instr { predicate: Some(condition), ..Instr::control(Opcode::If) });
        self.scope(depth);
        if self.c.chance(128) {
            self.push(Instr::control(Opcode::Else));
            self.scope(depth);
        }
        self.push(Instr::control(Opcode::Endif));
    }

    /// A loop of at most three iterations.
    fn repeat(&mut self, depth: u32) {
        let counter = dst(REGISTERS, Mask(1), RegType::D);
        let count = Src::new(SrcFile::Vgrf(REGISTERS), Swizzle::replicate(0), RegType::D);
        self.push(Instr::new(Opcode::Mov, counter, &[Src::immediate(0, RegType::D)]));
        self.push(Instr::control(Opcode::Do));
        self.scope(depth);
        if self.c.chance(90) {
            let condition = self.condition();
            self.push(Instr { predicate: Some(condition), ..Instr::control(Opcode::Break) });
        }
        self.push(Instr::new(Opcode::Add, counter, &[count, Src::immediate(1, RegType::D)]));
        let most = Src::immediate(1 + self.c.below(3) as u32, RegType::D);
        let mask = Mask(1 << self.c.below(4));
        let null = Dst { mask, ..Dst::null(RegType::D) };
        let channel = mask.single().expect("one channel");
        self.push(Instr { cmod: Some(Cmod::L), ..Instr::new(Opcode::Cmp, null, &[count, most]) });
        let predicate = Some((Predicate::replicate(channel), false));
        self.push(Instr { predicate, ..Instr::control(Opcode::While) });
    }
}
