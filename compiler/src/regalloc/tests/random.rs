//! Random programs in SSA form, with structured control flow.

use crate::ir3::{
    Array, ArrayAccess, ArrayData, Attrs, Block, BlockData, Builder, Condition, Dst, InstrData, Opcode, OperandFlags,
    Place, Program, RegClass, Round, Src, SrcOperand, Type, Value, WriteMask,
};
use crate::target::Target;

/// Parameters of the programs.
#[derive(Clone, Copy)]
pub struct Profile {
    /// Approximate number of live values.
    pub pressure: usize,
    /// Approximate number of instructions.
    pub size: usize,
}

impl Default for Profile {
    fn default() -> Self {
        Self { pressure: 10, size: 60 }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % n as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

struct Generator<'a> {
    program: Program,
    block: Block,
    random: Random,
    target: &'a Target,
    profile: Profile,
    /// Values that are available here: full and half ones, scalars, and vectors.
    full: Vec<Value>,
    half: Vec<Value>,
    vectors: Vec<Value>,
    predicates: Vec<Value>,
    addresses: Vec<Value>,
    arrays: Vec<Array>,
    budget: usize,
}

/// Generates a random program.
pub fn random_program(seed: u64, target: &Target, profile: Profile) -> Program {
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut arrays = Vec::new();
    for (id, class, length) in [(0, RegClass::FULL, 8), (1, RegClass::HALF, 8)] {
        arrays.push(program.arrays.push(ArrayData { id, class, length, base: None }));
    }
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        random.below(2);
    }
    let mut generator = Generator {
        program,
        block,
        random,
        target,
        profile,
        full: Vec::new(),
        half: Vec::new(),
        vectors: Vec::new(),
        predicates: Vec::new(),
        addresses: Vec::new(),
        arrays,
        budget: profile.size,
    };
    for class in [RegClass::FULL, RegClass::HALF] {
        for _ in 0..2 + generator.random.below(profile.pressure) {
            let value = generator.define(Opcode::Input, class, 1, &[], Attrs::Input(None));
            generator.scalars(class).push(value);
        }
    }
    generator.list(3);
    let mut srcs: Vec<Src> = Vec::new();
    for value in generator.full.clone().into_iter().chain(generator.half.clone()) {
        if !generator.random.chance(3) {
            srcs.push(generator.src(value));
        }
    }
    generator.effect(Opcode::End, &srcs);
    generator.program
}

impl Generator<'_> {
    fn builder(&mut self) -> Builder<'_> {
        Builder::new(&mut self.program, self.block)
    }

    fn define(&mut self, opcode: Opcode, class: RegClass, components: u16, srcs: &[Src], attrs: Attrs) -> Value {
        self.builder().define(opcode, class, components, srcs, attrs)
    }

    fn effect(&mut self, opcode: Opcode, srcs: &[Src]) {
        self.builder().effect(opcode, srcs);
    }

    fn src(&mut self, value: Value) -> Src {
        self.builder().src(value)
    }

    fn scalars(&mut self, class: RegClass) -> &mut Vec<Value> {
        if class.half { &mut self.half } else { &mut self.full }
    }

    fn class(&mut self) -> RegClass {
        if self.random.chance(3) { RegClass::HALF } else { RegClass::FULL }
    }

    fn scalar(&mut self, class: RegClass) -> Src {
        let list = self.scalars(class);
        let n = list.len();
        // Old and new values alike.
        let k = self.random.below(n);
        let value = self.scalars(class)[k];
        self.src(value)
    }

    fn add_scalar(&mut self, class: RegClass, value: Value) {
        let pressure = self.profile.pressure;
        self.scalars(class).push(value);
        while self.scalars(class).len() > pressure {
            let n = self.scalars(class).len() - 1;
            let k = self.random.below(n);
            self.scalars(class).swap_remove(k);
        }
    }

    fn new_block(&mut self) -> Block {
        self.program.blocks.push(BlockData::default())
    }

    fn enter(&mut self, block: Block) {
        self.program.layout.push(block);
        self.block = block;
    }

    fn jump(&mut self, to: Block) {
        self.effect(Opcode::Jump, &[]);
        self.program.add_edge(self.block, 0, to);
    }

    fn branch(&mut self, taken: Block, other: Block) {
        let predicate = self.predicate();
        let predicate = self.src(predicate);
        self.effect(Opcode::Br, &[predicate]);
        let block = self.block;
        self.program.add_edge(block, 0, taken);
        self.program.add_edge(block, 1, other);
    }

    /// A predicate, sometimes an existing one.
    fn predicate(&mut self) -> Value {
        if !self.predicates.is_empty() && self.random.chance(2) {
            let k = self.random.below(self.predicates.len());
            return self.predicates[k];
        }
        let value = if self.target.bitops_can_write_predicates && self.predicates.len() > 1 && self.random.chance(2) {
            let k = self.random.below(self.predicates.len());
            let (a, b) = (self.predicates[0], self.predicates[k]);
            let srcs = [self.src(a), self.src(b)];
            self.define(Opcode::OrB, RegClass::PREDICATE, 1, &srcs, Attrs::None)
        } else {
            let class = self.class();
            let srcs = [self.scalar(class), self.scalar(class)];
            self.define(Opcode::CmpsU, RegClass::PREDICATE, 1, &srcs, Attrs::Compare(Condition::Lt))
        };
        self.predicates.push(value);
        value
    }

    fn list(&mut self, depth: usize) {
        for _ in 0..2 + self.random.below(6) {
            for _ in 0..1 + self.random.below(self.profile.size / 6) {
                self.instr();
            }
            if depth > 0 && self.budget > 0 {
                match self.random.below(4) {
                    0 | 1 => self.if_node(depth),
                    2 => self.loop_node(depth),
                    _ => {}
                }
            }
        }
    }

    /// Runs `body` and drops the values it defined.
    fn scoped<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        let saved = (
            self.full.clone(),
            self.half.clone(),
            self.vectors.clone(),
            self.predicates.clone(),
            self.addresses.clone(),
        );
        let result = body(self);
        (self.full, self.half, self.vectors, self.predicates, self.addresses) = saved;
        result
    }

    fn if_node(&mut self, depth: usize) {
        let (then, otherwise, merge) = (self.new_block(), self.new_block(), self.new_block());
        let has_else = self.random.chance(2);
        let n = self.random.below(4);
        let classes: Vec<RegClass> = (0..n).map(|_| self.class()).collect();
        let mut sources: Vec<Vec<Src>> = vec![Vec::new(); n];
        self.branch(then, if has_else { otherwise } else { merge });
        if !has_else {
            let values: Vec<Src> = classes.iter().map(|&class| self.phi_source(class)).collect();
            sources.iter_mut().zip(values).for_each(|(list, src)| list.push(src));
        }
        let arms: &[Block] = if has_else { &[then, otherwise] } else { &[then] };
        for &arm in arms {
            let values = self.scoped(|this| {
                this.enter(arm);
                this.list(depth - 1);
                let values: Vec<Src> = classes.iter().map(|&class| this.phi_source(class)).collect();
                this.jump(merge);
                values
            });
            sources.iter_mut().zip(values).for_each(|(list, src)| list.push(src));
        }
        self.enter(merge);
        for (class, srcs) in classes.into_iter().zip(sources) {
            let phi = self.define(Opcode::Phi, class, 1, &srcs, Attrs::None);
            self.add_scalar(class, phi);
        }
    }

    fn phi_source(&mut self, class: RegClass) -> Src {
        match self.random.below(12) {
            0 => Src::new(SrcOperand::Undef, class, WriteMask::SCALAR),
            1 => Src::immediate(self.random.below(1000) as u32, class.half),
            2 => Src::constant(self.random.below(100) as u16, class.half),
            _ => self.scalar(class),
        }
    }

    fn loop_node(&mut self, depth: usize) {
        let (header, exit) = (self.new_block(), self.new_block());
        let n = self.random.below(5);
        let classes: Vec<RegClass> = (0..n).map(|_| self.class()).collect();
        let initial: Vec<Src> = classes.iter().map(|&class| self.phi_source(class)).collect();
        self.jump(header);
        self.enter(header);
        let mut phis = Vec::new();
        for (&class, src) in classes.iter().zip(initial) {
            let phi = self.define(Opcode::Phi, class, 1, &[src], Attrs::None);
            self.add_scalar(class, phi);
            phis.push(phi);
        }
        let exit_classes: Vec<RegClass> = (0..self.random.below(3)).map(|_| self.class()).collect();
        let mut exit_sources: Vec<Vec<Src>> = vec![Vec::new(); exit_classes.len()];
        let breaks = self.random.below(3);
        self.scoped(|this| {
            let mut exits: Vec<Vec<Src>> = Vec::new();
            for _ in 0..breaks {
                this.list(depth - 1);
                let next = this.new_block();
                exits.push(exit_classes.iter().map(|&class| this.phi_source(class)).collect());
                if this.random.chance(2) {
                    this.branch(exit, next)
                } else {
                    this.branch(next, exit)
                }
                this.enter(next);
            }
            this.list(depth - 1);
            let mut next: Vec<Src> = classes.iter().map(|&class| this.phi_source(class)).collect();
            if phis.len() > 1 && classes[0] == classes[1] && this.random.chance(3) {
                // The swap.
                (next[0], next[1]) = (this.src(phis[1]), this.src(phis[0]));
            }
            exits.push(exit_classes.iter().map(|&class| this.phi_source(class)).collect());
            if this.random.chance(2) {
                this.branch(header, exit)
            } else {
                this.branch(exit, header)
            }
            for (&phi, src) in phis.iter().zip(next) {
                let phi = this.program.values[phi].instr;
                this.program.instrs[phi].srcs.push(src);
            }
            for exit in exits {
                exit_sources.iter_mut().zip(exit).for_each(|(list, src)| list.push(src));
            }
        });
        self.enter(exit);
        for (class, srcs) in exit_classes.into_iter().zip(exit_sources) {
            let phi = self.define(Opcode::Phi, class, 1, &srcs, Attrs::None);
            self.add_scalar(class, phi);
        }
    }

    fn instr(&mut self) {
        self.budget = self.budget.saturating_sub(1);
        let class = self.class();
        match self.random.below(20) {
            0 => {
                let value = self.scalar(class);
                let other = self.scalar(RegClass::FULL);
                self.effect(Opcode::Stg, &[value, other]);
            }
            1..=3 => self.vector(class),
            4 => self.tied(),
            5 => {
                let ty = if class.half { Type::U16 } else { Type::U32 };
                let src = self.phi_source(class);
                if src.operand != SrcOperand::Undef {
                    let attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
                    let value = self.define(Opcode::Mov, class, 1, &[src], attrs);
                    self.add_scalar(class, value);
                }
            }
            6 => {
                let src = self.scalar(class);
                let other = self.scalar(RegClass::FULL);
                let value = self.define(Opcode::ReadFirstMacro, class, 1, &[src, other], Attrs::None);
                self.add_scalar(class, value);
            }
            7 | 8 => self.array(),
            9 => {
                self.predicate();
                if self.random.chance(2) {
                    let predicate = self.predicate();
                    let predicate = self.src(predicate);
                    self.effect(Opcode::Kill, &[predicate]);
                }
            }
            10 => {
                // Mixed widths.
                let other = if class.half { RegClass::FULL } else { RegClass::HALF };
                let srcs = [self.scalar(class), self.scalar(class)];
                let value = self.define(Opcode::CmpsS, other, 1, &srcs, Attrs::Compare(Condition::Lt));
                self.add_scalar(other, value);
            }
            11 => {
                let srcs = [self.scalar(class), self.scalar(class), self.scalar(class)];
                let instr = self.builder().effect(Opcode::ScanMacro, &srcs);
                for _ in 0..3 {
                    let value = self.builder().add_dst(instr, class, WriteMask::SCALAR);
                    self.add_scalar(class, value);
                }
            }
            _ => {
                let srcs = [self.scalar(class), self.scalar(class)];
                let value = self.define(Opcode::SubU, class, 1, &srcs, Attrs::None);
                self.add_scalar(class, value);
            }
        }
    }

    fn vector(&mut self, class: RegClass) {
        let n = 2 + self.random.below(3);
        let source = if !self.vectors.is_empty() && self.random.chance(4) {
            let k = self.random.below(self.vectors.len());
            self.vectors[k]
        } else {
            let srcs: Vec<Src> = (0..n)
                .map(|_| if self.random.chance(8) { self.phi_source(class) } else { self.scalar(class) })
                .collect();
            self.define(Opcode::Collect, class, n as u16, &srcs, Attrs::None)
        };
        let source_components = self.program.values[source].components;
        let src = self.src(source);
        if self.random.chance(4) {
            self.effect(Opcode::Stib, &[src]);
        }
        if self.random.chance(4) {
            self.vectors.push(source);
        }
        if self.random.chance(6) {
            self.split(source, source_components);
        }
        let class = self.class();
        let m = 1 + self.random.below(4) as u16;
        let early = self.random.chance(4);
        let result = self.define(Opcode::Sam, class, m, &[src], Attrs::None);
        if early {
            let instr = self.program.values[result].instr;
            self.program.instrs[instr].dsts[0].flags |= OperandFlags::EARLY_CLOBBER;
        }
        if m > 1 && self.random.chance(3) {
            self.vectors.push(result);
            if self.vectors.len() > 4 {
                self.vectors.remove(0);
            }
        }
        self.split(result, m);
    }

    fn split(&mut self, vector: Value, components: u16) {
        let class = self.program.values[vector].class;
        let src = self.src(vector);
        for _ in 0..self.random.below(usize::from(components) + 2) {
            let offset = self.random.below(usize::from(components)) as u16;
            let part = self.define(Opcode::Split, class, 1, &[src], Attrs::Split { offset });
            self.add_scalar(class, part);
        }
    }

    fn tied(&mut self) {
        let class = RegClass::FULL;
        let n = 1 + self.random.below(2) as u16;
        let data = if n == 1 {
            self.scalar(class)
        } else {
            let srcs = [self.scalar(class), self.scalar(class)];
            let value = self.define(Opcode::Collect, class, 2, &srcs, Attrs::None);
            self.src(value)
        };
        let mut tied = data;
        tied.flags |= OperandFlags::TIED;
        let address = self.scalar(class);
        let value = self.define(Opcode::AtomicBAdd, class, n, &[address, tied], Attrs::None);
        let instr = self.program.values[value].instr;
        self.program.instrs[instr].dsts[0].flags |= OperandFlags::TIED;
        if n == 1 {
            self.add_scalar(class, value);
        } else {
            self.split(value, n);
        }
    }

    fn array(&mut self) {
        let k = self.random.below(2);
        let array = self.arrays[k];
        let class = self.program.arrays[array].class;
        let ty = if class.half { Type::U16 } else { Type::U32 };
        let attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
        let relative = self.random.chance(2);
        let mut extra: Vec<Src> = Vec::new();
        if relative {
            let address = if !self.addresses.is_empty() && self.random.chance(2) {
                let k = self.random.below(self.addresses.len());
                self.addresses[k]
            } else {
                let src = self.scalar(RegClass::HALF);
                let attrs = Attrs::Move { src: Type::S16, dst: Type::S16, round: Round::Default };
                let address = self.define(Opcode::Mov, RegClass::ADDRESS, 1, &[src], attrs);
                self.addresses.push(address);
                address
            };
            extra.push(self.src(address));
        }
        let offset = self.random.below(4) as i16;
        let place = Place::Array(ArrayAccess { array, offset, relative, value: None.into(), base: None.into() });
        if self.random.chance(2) {
            let mut data = InstrData::new(Opcode::Mov);
            data.srcs.push(self.scalar(class));
            data.srcs.extend(extra);
            data.dsts.push(Dst::new(place, class, WriteMask::SCALAR));
            data.attrs = attrs;
            self.builder().push(data);
        } else {
            let mut srcs = vec![Src::reg(place, class, WriteMask::SCALAR)];
            srcs.extend(extra);
            let value = self.define(Opcode::Mov, class, 1, &srcs, attrs);
            self.add_scalar(class, value);
        }
    }
}
