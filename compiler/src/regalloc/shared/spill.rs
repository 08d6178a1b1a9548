//! Spills victims from the shared file to general registers, one equal value per lane.
//!
//! A victim is replaced as follows:
//! - a moved immediate stays an immediate, and a moved general register that register;
//! - a phi becomes a phi of general registers;
//! - a scalar operation becomes one of the vector ALU (*demotion*), if that can encode its sources;
//! - any other value is still computed in a shared register, and copied from there at once. This includes all that the
//!   machine writes to shared registers only, such as lane masks.
//!
//! Users of the victim read its replacement if they can encode it; otherwise it is *reloaded*: moved to a shared
//! register again, directly before the user. A phi that stays shared reads a reload at the end of the predecessor.
//!
//! A 16-bit move from a general to a shared register reads the wrong lanes on some machines; so halves are reloaded in
//! two steps, through a full general register that is narrowed.

use super::assign::Kept;
use super::elements::split_of;
use crate::ir3::legality::valid_source;
use crate::ir3::{
    Attrs, Block, Dst, Instr, InstrData, Opcode, Place, Program, RegClass, RegFile, Round, Src, SrcOperand, Type,
    Value, ValueData, WriteMask,
};
use crate::target::Target;
use cranelift_entity::SecondaryMap;

/// The replacement of a victim.
#[derive(Clone, Copy)]
enum Lane {
    General(Value),
    Immediate(u32),
}

struct Spill<'a> {
    program: &'a mut Program,
    target: &'a Target,
    kept: &'a mut Kept,
    is_victim: SecondaryMap<Value, bool>,
    lanes: SecondaryMap<Value, Option<Lane>>,
    /// Instructions to insert before and after an instruction.
    before: SecondaryMap<Instr, Vec<Instr>>,
    after: SecondaryMap<Instr, Vec<Instr>>,
    is_removed: SecondaryMap<Instr, bool>,
}

/// Replaces `victims` by general registers.
pub fn run(program: &mut Program, target: &Target, victims: &[Value], kept: &mut Kept) {
    if victims.is_empty() {
        return;
    }
    let mut spill = Spill {
        program,
        target,
        kept,
        is_victim: SecondaryMap::new(),
        lanes: SecondaryMap::new(),
        before: SecondaryMap::new(),
        after: SecondaryMap::new(),
        is_removed: SecondaryMap::new(),
    };
    victims.iter().for_each(|&victim| spill.is_victim[victim] = true);
    let list: Vec<(Block, Instr)> = spill.program.iter_instrs().collect();
    // Splits of vectors are victims with them.
    for &(_, instr) in &list {
        if let Some((split, vector, offset)) = split_of(spill.program, instr)
            && spill.is_victim[vector]
        {
            spill.is_removed[instr] = true;
            spill.copy_component(split, vector, offset);
        }
    }
    for &victim in victims {
        if spill.program.values[victim].components == 1 {
            spill.transform(victim);
        }
    }
    for &(block, instr) in &list {
        spill.sources(block, instr);
    }
    for position in 0..spill.program.layout.len() {
        spill.insert(spill.program.layout[position]);
    }
}

const fn general(class: RegClass) -> RegClass {
    RegClass::general(class.half)
}

impl Spill<'_> {
    /// Splits a component off a victim vector and copies it after the definition.
    fn copy_component(&mut self, split: Value, vector: Value, offset: u16) {
        let class = self.program.values[split].class;
        let (def, components) = {
            let data = &self.program.values[vector];
            (data.instr, data.components)
        };
        let mut data = InstrData::new(Opcode::Split);
        data.attrs = Attrs::Split { offset };
        data.srcs.push(Src::reg(Place::Value(vector), class, WriteMask::first(u32::from(components))));
        let (again, part) = self.define(data, class);
        self.kept[part] = Some(None);
        self.after[def].push(again);
        let copy = self.copy_of(part, class);
        self.after[def].push(copy.0);
        self.lanes[split] = Some(Lane::General(copy.1));
        self.kept[vector] = Some(None);
    }

    /// A new instruction with one scalar result; it is in no block yet.
    fn define(&mut self, data: InstrData, class: RegClass) -> (Instr, Value) {
        let instr = self.program.instrs.push(data);
        let value = self.program.values.push(ValueData { instr, dst: 0, class, components: 1, array: None });
        self.program.instrs[instr].dsts.push(Dst::new(Place::Value(value), class, WriteMask::SCALAR));
        (instr, value)
    }

    /// A move, or a conversion between integers, of any operand.
    fn moved(&mut self, src: Src, class: RegClass) -> (Instr, Value) {
        let ty = |half: bool| if half { Type::U16 } else { Type::U32 };
        let mut data = InstrData::new(Opcode::Mov);
        data.attrs = Attrs::Move { src: ty(src.class.half), dst: ty(class.half), round: Round::Default };
        data.srcs.push(src);
        self.define(data, class)
    }

    /// A general copy of a shared value.
    fn copy_of(&mut self, value: Value, class: RegClass) -> (Instr, Value) {
        self.moved(Src::reg(Place::Value(value), class, WriteMask::SCALAR), general(class))
    }

    /// Chooses the replacement of a victim, and rewrites its definition.
    fn transform(&mut self, victim: Value) {
        let def = self.program.values[victim].instr;
        let class = self.program.values[victim].class;
        let data = &self.program.instrs[def];
        if let Some(lane) = self.copied(data) {
            self.lanes[victim] = Some(lane);
            self.is_removed[def] = true;
        } else if data.opcode == Opcode::Phi || self.is_demotable(data) {
            self.program.values[victim].class = general(class);
            self.program.instrs[def].dsts[0].class = general(class);
            self.lanes[victim] = Some(Lane::General(victim));
        } else {
            let (copy, lane) = self.copy_of(victim, class);
            self.after[def].push(copy);
            self.lanes[victim] = Some(Lane::General(lane));
            self.kept[victim] = Some(None);
        }
    }

    /// The source of a bitwise copy, if it is available in each lane.
    fn copied(&self, data: &InstrData) -> Option<Lane> {
        let src = data.srcs.first()?;
        let same = matches!(data.attrs, Attrs::Move { src, dst, .. } if src == dst);
        if data.opcode != Opcode::Mov || !same || !data.flags.is_empty() || !src.mods.is_empty() || data.srcs.len() != 1
        {
            return None;
        }
        match src.operand {
            SrcOperand::Immediate(bits) => Some(Lane::Immediate(bits)),
            SrcOperand::Place(Place::Value(value)) if src.class == general(data.dsts[0].class) => {
                Some(Lane::General(value))
            }
            _ => None,
        }
    }

    /// Returns true if the vector ALU can encode the operation, with victims in general registers.
    fn is_demotable(&self, data: &InstrData) -> bool {
        if !data.opcode.has_scalar_form() || data.dsts.len() != 1 {
            return false;
        }
        let mut vector = data.clone();
        vector.dsts[0].class = general(vector.dsts[0].class);
        for src in &mut vector.srcs {
            if src.value().is_some_and(|value| self.is_victim[value] || self.lanes[value].is_some()) {
                src.class = general(src.class);
            }
        }
        (0..vector.srcs.len()).all(|slot| valid_source(self.target, &vector, slot, &vector.srcs[slot]))
    }

    /// Replaces the victims that an instruction reads.
    fn sources(&mut self, block: Block, instr: Instr) {
        if self.is_removed[instr] {
            return;
        }
        let phi = self.program.instrs[instr].opcode == Opcode::Phi;
        let shared = self.program.instrs[instr].dsts.first().is_some_and(|dst| dst.class.file == RegFile::Shared);
        let scalar = shared && (phi || self.program.instrs[instr].opcode.has_scalar_form());
        let mut reloaded: Vec<(Value, Value)> = Vec::new();
        for k in 0..self.program.instrs[instr].srcs.len() {
            let src = self.program.instrs[instr].srcs[k];
            let Some(value) = src.value().filter(|_| src.class.file == RegFile::Shared) else { continue };
            let Some(lane) = self.lanes[value] else {
                if phi && !shared {
                    // A phi that has become one of general registers.
                    let (copy, lane) = self.copy_of(value, src.class);
                    let pred = self.program.blocks[block].predecessors[k];
                    self.program.insert_before_terminators(pred, copy);
                    self.set(instr, k, lane);
                }
                continue;
            };
            if !scalar && self.read_lane(instr, k, lane) || phi && self.read_immediate(instr, k, lane) {
                continue;
            }
            if !shared && !phi && matches!(lane, Lane::Immediate(_)) && self.reads_general(instr, k) {
                let Lane::Immediate(bits) = lane else { continue };
                let half = src.class.half;
                let (copy, value) = self.moved(Src::immediate(bits, half), general(src.class));
                self.before[instr].push(copy);
                self.set(instr, k, value);
                continue;
            }
            if let Some(&(_, again)) = reloaded.iter().find(|&&(of, _)| of == value && !phi) {
                self.set(instr, k, again);
                continue;
            }
            let (list, again) = self.reload(lane, src.class);
            if phi {
                self.kept[again] = Some(self.program.instrs[instr].dsts[0].value());
                let pred = self.program.blocks[block].predecessors[k];
                list.into_iter().for_each(|instr| self.program.insert_before_terminators(pred, instr));
            } else {
                self.before[instr].extend(list);
                reloaded.push((value, again));
            }
            self.set(instr, k, again);
        }
    }

    fn set(&mut self, instr: Instr, k: usize, value: Value) {
        let class = self.program.values[value].class;
        let src = &mut self.program.instrs[instr].srcs[k];
        src.operand = SrcOperand::Place(Place::Value(value));
        src.class = class;
    }

    /// Returns true if source `k` may be a general register.
    fn reads_general(&self, instr: Instr, k: usize) -> bool {
        let data = &self.program.instrs[instr];
        let src = Src { class: general(data.srcs[k].class), ..data.srcs[k] };
        valid_source(self.target, data, k, &src)
    }

    /// Makes source `k` read the replacement directly, if it can.
    fn read_lane(&mut self, instr: Instr, k: usize, lane: Lane) -> bool {
        match lane {
            Lane::General(value) => {
                let fits = self.reads_general(instr, k);
                if fits {
                    self.set(instr, k, value);
                }
                fits
            }
            Lane::Immediate(_) => self.read_immediate(instr, k, lane),
        }
    }

    fn read_immediate(&mut self, instr: Instr, k: usize, lane: Lane) -> bool {
        let data = &self.program.instrs[instr];
        let Lane::Immediate(bits) = lane else { return false };
        let old = data.srcs[k];
        let src = Src { operand: SrcOperand::Immediate(bits), class: general(old.class), ..old };
        let fits = old.mods.is_empty()
            && old.mask == WriteMask::SCALAR
            && !data.opcode.is_macro()
            && valid_source(self.target, data, k, &src);
        if fits {
            self.program.instrs[instr].srcs[k] = src;
        }
        fits
    }

    /// The instructions that move a victim back into a shared register.
    fn reload(&mut self, lane: Lane, class: RegClass) -> (Vec<Instr>, Value) {
        let mut list = Vec::new();
        let src = match lane {
            Lane::Immediate(bits) => Src::immediate(bits, class.half),
            Lane::General(value) => {
                let src = Src::reg(Place::Value(value), general(class), WriteMask::SCALAR);
                if class.half {
                    let (widen, wide) = self.moved(src, RegClass::FULL);
                    list.push(widen);
                    Src::reg(Place::Value(wide), RegClass::FULL, WriteMask::SCALAR)
                } else {
                    src
                }
            }
        };
        let (last, value) = self.moved(src, class);
        list.push(last);
        self.kept[value] = Some(None);
        (list, value)
    }

    /// Inserts the new instructions into the code, those of phis and inputs after all of these, and drops removed ones.
    fn insert(&mut self, block: Block) {
        let list = std::mem::take(&mut self.program.blocks[block].instrs);
        let mut out = Vec::with_capacity(list.len() + 8);
        let mut deferred = Vec::new();
        for instr in list {
            if self.program.instrs[instr].opcode.is_block_start() {
                out.push(instr);
                deferred.append(&mut self.after[instr]);
                continue;
            }
            out.append(&mut deferred);
            out.append(&mut self.before[instr]);
            if !self.is_removed[instr] {
                out.push(instr);
            }
            out.append(&mut self.after[instr]);
        }
        self.program.blocks[block].instrs = out;
    }
}
