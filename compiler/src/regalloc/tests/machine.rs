//! A small interpreter: one lane, with SSA values and registers side by side.

use crate::ir3::{
    Attrs, Block, Instr, InstrData, Mods, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile, Src,
    SrcOperand, Type, Value,
};
use crate::regalloc::parallel_copy::unit_of;
use crate::target::Target;
use std::collections::HashMap;

/// A word; None if undefined.
type MaybeWord = Option<u32>;

/// The observable behaviour of a run: the words of each instruction with an effect.
#[derive(Debug, PartialEq)]
pub struct Trace {
    events: Vec<(Opcode, Vec<MaybeWord>)>,
    ended: bool,
    /// True after a branch on, or an index by, an undefined value.
    vacuous: bool,
}

impl Trace {
    /// Returns true if this run is allowed by `before`.
    pub fn refines(&self, before: &Trace) -> bool {
        let same = |(a, b): (&MaybeWord, &MaybeWord)| b.is_none() || a == b;
        before.vacuous
            || self.ended == before.ended
                && self.events.len() == before.events.len()
                && self
                    .events
                    .iter()
                    .zip(&before.events)
                    .all(|(a, b)| a.0 == b.0 && a.1.len() == b.1.len() && a.1.iter().zip(&b.1).all(same))
    }
}

struct Machine<'a> {
    program: &'a Program,
    target: &'a Target,
    seed: u64,
    values: HashMap<Value, Vec<MaybeWord>>,
    /// General (merged or full), half, shared.
    files: [Vec<MaybeWord>; 3],
    predicates: [MaybeWord; 4],
    addresses: [MaybeWord; 2],
    arrays: HashMap<(u32, i32), MaybeWord>,
    /// Scratch memory, in units of 16 bits by their byte addresses.
    scratch: HashMap<u32, MaybeWord>,
    trace: Trace,
}

fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) ^ mixed >> 32
    })
}

/// The maximum number of conditional branches that a run takes.
const FUEL: usize = 60;

/// Runs a program to its end or until the fuel is used up.
pub fn run_program(program: &Program, target: &Target, seed: u64) -> Trace {
    let garbage = |file: u64| (0..400).map(|i| Some(hash([seed, file, i]) as u32 & 0xffff)).collect();
    let mut machine = Machine {
        program,
        target,
        seed,
        values: HashMap::new(),
        files: [garbage(1), garbage(2), garbage(3)],
        predicates: [Some(1); 4],
        addresses: [Some(0); 2],
        arrays: HashMap::new(),
        scratch: HashMap::new(),
        trace: Trace { events: Vec::new(), ended: false, vacuous: false },
    };
    machine.run();
    machine.trace
}

impl Machine<'_> {
    fn run(&mut self) {
        let mut from: Option<Block> = None;
        let mut block = self.program.entry();
        let mut fuel = FUEL;
        loop {
            let data = &self.program.blocks[block];
            self.phis(block, from);
            let mut next = data.successors[0];
            for &instr in &data.instrs {
                let data = &self.program.instrs[instr];
                match data.opcode {
                    Opcode::Phi => {}
                    Opcode::Br => {
                        let Some(taken) = self.read(&data.srcs[0])[0] else {
                            self.trace.vacuous = true;
                            return;
                        };
                        let inverted = data.srcs[0].mods.contains(Mods::NOT);
                        self.kill(data);
                        fuel -= 1;
                        if fuel == 0 {
                            return;
                        }
                        next = self.program.blocks[block].successors[usize::from((taken & 1 != 0) == inverted)];
                    }
                    Opcode::Jump => {}
                    _ => self.step(instr),
                }
                if self.trace.vacuous {
                    return;
                }
            }
            match next {
                Some(to) => {
                    from = Some(block);
                    block = to;
                }
                None => {
                    self.trace.ended = true;
                    return;
                }
            }
        }
    }

    fn phis(&mut self, block: Block, from: Option<Block>) {
        let data = &self.program.blocks[block];
        let mut new = Vec::new();
        for &instr in &data.instrs {
            let phi = &self.program.instrs[instr];
            if phi.opcode != Opcode::Phi {
                break;
            }
            let k = data.predecessors.iter().position(|&pred| Some(pred) == from).unwrap();
            new.push((phi.dsts[0].value().unwrap(), self.read(&phi.srcs[k])));
        }
        self.values.extend(new);
    }

    fn step(&mut self, instr: Instr) {
        let data = &self.program.instrs[instr];
        if let Some(src) = data.srcs.iter().find(|src| src.class.file == RegFile::Address) {
            self.addresses[0] = self.read(src)[0];
            if self.addresses[0].is_none() {
                self.trace.vacuous = true;
                return;
            }
        }
        let srcs: Vec<Vec<MaybeWord>> = data.srcs.iter().map(|src| self.read(src)).collect();
        let flat: Vec<MaybeWord> = srcs.concat();
        self.kill(data);
        if self.scratch_access(data, &srcs) {
            return;
        }
        if data.opcode.has_side_effect() || data.opcode == Opcode::End {
            self.trace.events.push((data.opcode, flat.clone()));
        }
        let mut results: Vec<Vec<MaybeWord>> = Vec::new();
        match data.opcode {
            Opcode::Collect => results.push(flat),
            Opcode::Split => {
                let Attrs::Split { offset } = data.attrs else { panic!() };
                // Other components of the source may be dead, and their registers reused.
                results.push(vec![flat[usize::from(offset)]]);
            }
            Opcode::ParallelCopy | Opcode::Swz => results = srcs,
            Opcode::Mov => {
                let word = flat[0].map(|word| match data.attrs {
                    Attrs::Move { dst: Type::U16, .. } => word & 0xffff,
                    _ => word,
                });
                results.push(vec![if data.dsts[0].class.file == RegFile::Address {
                    word.map(|w| w & 3)
                } else {
                    word
                }]);
            }
            Opcode::XorB => results.push(vec![flat[0].zip(flat[1]).map(|(a, b)| a ^ b)]),
            // The lowest bit of a value that becomes a predicate.
            Opcode::AndB => results.push(vec![flat[0].zip(flat[1]).map(|(a, b)| a & b)]),
            Opcode::ShrB => results.push(vec![flat[0].zip(flat[1]).map(|(a, b)| a >> b)]),
            opcode => {
                let defined: Option<Vec<u32>> = flat.iter().copied().collect();
                for (k, dst) in data.dsts.iter().enumerate() {
                    let words = (0..dst.mask.span()).map(|c| {
                        let salt = if opcode == Opcode::Input { instr.as_u32() } else { 0 };
                        let key = [self.seed, opcode as u64, k as u64, u64::from(c), u64::from(salt)];
                        let words = defined.as_ref()?;
                        let bits = hash(key.into_iter().chain(words.iter().map(|&w| u64::from(w)))) as u32;
                        Some(match (dst.class.file, dst.class.half) {
                            (RegFile::Predicate, _) => bits & 1,
                            (_, true) => bits & 0xffff,
                            _ => bits,
                        })
                    });
                    results.push(words.collect());
                }
            }
        }
        for (dst, words) in data.dsts.iter().zip(results) {
            self.write(&dst.place, dst.class, &words);
        }
    }

    /// Executes an access to scratch memory, if it is one.
    fn scratch_access(&mut self, data: &InstrData, srcs: &[Vec<MaybeWord>]) -> bool {
        let offset = match (&data.attrs, data.opcode) {
            (Attrs::Memory(memory), Opcode::SpillMacro | Opcode::Stp) => memory.offset,
            (_, Opcode::ReloadMacro | Opcode::Ldp) => srcs[1][0].unwrap() as i32,
            _ => return false,
        };
        let lowered = matches!(data.opcode, Opcode::Stp | Opcode::Ldp);
        assert!(!lowered || (-4096..4096).contains(&offset), "offset {offset}");
        let mut at = srcs[0][0].expect("a base").wrapping_add_signed(offset);
        let mut next = |size: u32| {
            assert!(at + size <= self.program.scratch_size && at.is_multiple_of(size), "{at} of {}", data.opcode);
            at += size;
            at - size
        };
        if data.dsts.is_empty() {
            assert!(!lowered || srcs[1].len() <= 4);
            for word in &srcs[1] {
                if data.srcs[1].class.half {
                    self.scratch.insert(next(2), *word);
                } else {
                    let low = next(4);
                    self.scratch.insert(low, word.map(|word| word & 0xffff));
                    self.scratch.insert(low + 2, word.map(|word| word >> 16));
                }
            }
            return true;
        }
        let dst = data.dsts[0];
        assert!(!lowered || dst.mask.span() <= 4);
        let mut words = Vec::new();
        for _ in 0..dst.mask.span() {
            let get = |scratch: &HashMap<u32, MaybeWord>, at| scratch.get(&at).copied().flatten();
            words.push(if dst.class.half {
                get(&self.scratch, next(2))
            } else {
                let low = next(4);
                let (low, high) = (get(&self.scratch, low), get(&self.scratch, low + 2));
                low.zip(high).map(|(low, high)| low | high << 16)
            });
        }
        self.write(&dst.place, dst.class, &words);
        true
    }

    fn file(&self, class: RegClass) -> usize {
        match class.file {
            RegFile::Shared => 2,
            _ if class.half && !self.target.merged_regs => 1,
            _ => 0,
        }
    }

    fn read(&self, src: &Src) -> Vec<MaybeWord> {
        let n = src.mask.span() as u16;
        match src.operand {
            SrcOperand::Place(Place::Value(value) | Place::Assigned(value, _)) => match self.values.get(&value) {
                Some(words) => words[..usize::from(n)].to_vec(),
                None => panic!("{value} is not defined"),
            },
            SrcOperand::Place(Place::Reg(reg)) => (0..n).map(|k| self.read_reg(src.class, reg.offset(k))).collect(),
            SrcOperand::Place(Place::Relative { offset, .. }) => {
                let reg = offset + self.addresses[0].unwrap() as i16;
                vec![self.read_reg(src.class, PhysReg(reg as u16))]
            }
            SrcOperand::Place(Place::Array(access)) => vec![self.element(&access)],
            SrcOperand::Const(word) => vec![Some(u32::from(word) + 1)],
            SrcOperand::Immediate(bits) => vec![Some(bits)],
            SrcOperand::Undef => vec![None; usize::from(n)],
            SrcOperand::ConstRelative(_) => panic!(),
        }
    }

    fn element_index(&self, access: &crate::ir3::ArrayAccess) -> i32 {
        i32::from(access.offset) + if access.relative { self.addresses[0].unwrap() as i32 } else { 0 }
    }

    fn element(&self, access: &crate::ir3::ArrayAccess) -> MaybeWord {
        self.arrays.get(&(access.array.as_u32(), self.element_index(access))).copied().flatten()
    }

    fn read_reg(&self, class: RegClass, reg: PhysReg) -> MaybeWord {
        match class.file {
            RegFile::Predicate => self.predicates[usize::from(reg.component())],
            RegFile::Address => self.addresses[usize::from(reg.component())],
            _ => {
                let file = &self.files[self.file(class)];
                let unit = usize::from(unit_of(class, reg));
                if class.half {
                    assert!(unit < 192, "half register {reg}");
                    file[unit]
                } else {
                    assert!(unit < 384, "full register {reg}");
                    file[unit].zip(file[unit + 1]).map(|(low, high)| low & 0xffff | high << 16)
                }
            }
        }
    }

    fn write_reg(&mut self, class: RegClass, reg: PhysReg, word: MaybeWord) {
        match class.file {
            RegFile::Predicate => self.predicates[usize::from(reg.component())] = word,
            RegFile::Address => self.addresses[usize::from(reg.component())] = word,
            _ => {
                let file = self.file(class);
                let unit = usize::from(unit_of(class, reg));
                if class.half {
                    assert!(unit < 192, "half register {reg}");
                    self.files[file][unit] = word;
                } else {
                    assert!(unit < 384, "full register {reg}");
                    self.files[file][unit] = word.map(|word| word & 0xffff);
                    self.files[file][unit + 1] = word.map(|word| word >> 16);
                }
            }
        }
    }

    fn write(&mut self, place: &Place, class: RegClass, words: &[MaybeWord]) {
        match *place {
            Place::Value(value) | Place::Assigned(value, _) => {
                self.values.insert(value, words.to_vec());
            }
            Place::Reg(reg) => {
                for (k, &word) in words.iter().enumerate() {
                    self.write_reg(class, reg.offset(k as u16), word);
                }
            }
            Place::Relative { offset, .. } => {
                let reg = offset + self.addresses[0].unwrap() as i16;
                self.write_reg(class, PhysReg(reg as u16), words[0]);
            }
            Place::Array(access) => {
                let index = self.element_index(&access);
                self.arrays.insert((access.array.as_u32(), index), words[0]);
            }
        }
    }

    /// A killed register must not be read again.
    fn kill(&mut self, data: &InstrData) {
        for src in data.srcs.iter().filter(|src| src.flags.contains(OperandFlags::KILL)) {
            if src.class.file == RegFile::Address {
                // A relative destination still needs it.
                continue;
            }
            if let SrcOperand::Place(Place::Reg(reg)) = src.operand {
                for k in 0..src.mask.span() as u16 {
                    self.write_reg(src.class, reg.offset(k), Some(0xdead));
                }
            }
        }
    }
}
