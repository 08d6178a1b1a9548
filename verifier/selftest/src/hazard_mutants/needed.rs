//! Decides whether a flag or a slot was needed: by following the paths from each producer to its users.
//!
//! This shares nothing with the hazard checker: no lattice, no masks, no fixed point. From each instruction that has
//! results, or reads late, it walks forward over the code until the result is covered, and compares each use with the
//! table of required slots. It is slower, and it looks at registers of lanes along the branches of lanes only.

use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{
    Category, Dst, InstrData, InstrFlags, Mods, Opcode, PhysReg, Place, RegClass, RegFile, Src, SrcOperand, WriteMask,
};
use ir3_compiler::machine::{Code, OutputRegister};
use ir3_compiler::target::{Generation, Target};
use rustc_hash::FxHashSet;

/// The rule that a program breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Slots between an ALU and a user.
    Slots,
    /// `(ss)` or `(sy)` before a result is used, or a source is overwritten.
    Flag,
    /// Nops after predication.
    Predication,
    /// Flags of the end of the preamble, after `resinfo`, or after a barrier.
    Order,
    /// Something is used after it has been released.
    Release,
}

/// Half registers of one file: from, to.
pub type Span = (u8, u32, u32);

fn span(place: &Place, class: RegClass, mask: WriteMask, merged: bool) -> Vec<Span> {
    let size = u32::from(class.component_units());
    let one = |number: u32| {
        let file = match class.file {
            RegFile::General if class.half && !merged => 1,
            RegFile::General => 0,
            RegFile::Shared => 2,
            RegFile::Predicate => 3,
            RegFile::Address => 4,
        };
        // Shared halves are counted from the first shared register.
        let first = match class.file {
            RegFile::Shared => (number - 192) * size,
            RegFile::General => number * size,
            _ => number,
        };
        (file, first, first + if matches!(class.file, RegFile::General | RegFile::Shared) { size } else { 1 })
    };
    match *place {
        Place::Relative { offset, size } => {
            let (offset, size) = (i32::from(offset), i32::from(size));
            (offset - size + 1..offset + size)
                .filter(|&number| (0..192).contains(&number))
                .map(|n| one(n as u32))
                .collect()
        }
        _ => match place.reg() {
            None | Some(PhysReg::INVALID) => Vec::new(),
            Some(reg) => mask.components().map(|k| one(u32::from(reg.0) + k)).collect(),
        },
    }
}

fn overlap(a: &Span, b: &Span) -> bool {
    a.0 == b.0 && a.1 < b.2 && b.1 < a.2
}

/// Returns true if two instructions access other lanes of each quad: `samgp0` to `samgp3`.
fn other_lanes(a: &InstrData, b: &InstrData) -> bool {
    let lane = |data: &InstrData| data.opcode.name().strip_prefix("samgp");
    lane(a).is_some() && lane(b).is_some() && lane(a) != lane(b)
}

/// The paths of lanes through a program.
pub struct Paths<'a> {
    code: &'a Code,
    target: &'a Target,
    /// The positions after each.
    pub next: Vec<Vec<usize>>,
}

/// Returns the first rule that a program breaks.
pub fn broken(code: &Code, target: &Target) -> Option<Broken> {
    let paths = Paths::new(code, target);
    let order = paths.order();
    let release = || paths.misses_release().then_some(Broken::Release);
    order.or_else(release).or_else(|| {
        let reached = paths.reached();
        (0..code.instrs.len()).filter(|&at| reached[at]).find_map(|at| {
            let slots = paths.slots_from(at).then_some(Broken::Slots);
            slots.or_else(|| paths.flags_from(at).then_some(Broken::Flag))
        })
    })
}

impl Paths<'_> {
    /// Returns true if the memory of varyings is not released by the end of the program.
    pub fn has_to_release(&self, reads_varyings: bool) -> bool {
        match reads_varyings {
            true => self.target.generation < Generation::A5xx,
            false => !self.code.interface.prefetches.is_empty(),
        }
    }
}

/// The positions after each, as a lane may go.
fn successors(code: &Code) -> Vec<Vec<usize>> {
    let opcode = |at: usize| code.instrs.as_values_slice()[at].data.opcode;
    let count = code.instrs.len();
    let mut next = Vec::with_capacity(count);
    for (ip, instr) in &code.instrs {
        let at = ip.index();
        let target = instr.target.map(|to| to.index());
        let close = |from: usize| {
            (from + 1..count).find(|&i| matches!(opcode(i), Opcode::Predt | Opcode::Predf | Opcode::Prede))
        };
        let mut to = match instr.data.opcode {
            Opcode::End | Opcode::Chmask => vec![],
            Opcode::Jump => target.into_iter().collect(),
            Opcode::Predt | Opcode::Predf => {
                let second =
                    (0..at).rev().find(|&i| matches!(opcode(i), Opcode::Predt | Opcode::Predf | Opcode::Prede));
                let is_second = second.is_some_and(|i| opcode(i) != Opcode::Prede);
                match close(at) {
                    Some(end) if is_second => vec![end],
                    Some(end) if opcode(end) == Opcode::Prede => vec![at + 1, end],
                    Some(other) => vec![at + 1, other + 1],
                    None => vec![at + 1],
                }
            }
            // The second of a pair of opposite branches is taken by all lanes that arrive there.
            _ if is_second(code, at) => target.into_iter().collect(),
            _ => target.into_iter().chain([at + 1]).collect(),
        };
        to.retain(|&to| to < count);
        next.push(to);
    }
    next
}

/// Returns true if a branch has the opposite condition of the one before it, and no other leads there.
fn is_second(code: &Code, at: usize) -> bool {
    let instrs = code.instrs.as_values_slice();
    let (second, Some(first)) = (&instrs[at].data, at.checked_sub(1).map(|before| &instrs[before].data)) else {
        return false;
    };
    let opposite = |(a, b): (&Src, &Src)| a.operand == b.operand && a.mods ^ b.mods == Mods::NOT;
    let is_target = || instrs.iter().any(|instr| instr.target.is_some_and(|to| to.index() == at));
    matches!((first.opcode, second.opcode), (Opcode::Br, Opcode::Br))
        && first.srcs.len() == second.srcs.len()
        && first.srcs.iter().zip(&second.srcs).all(opposite)
        && !is_target()
}

impl<'a> Paths<'a> {
    /// The paths of a program.
    pub fn new(code: &'a Code, target: &'a Target) -> Self {
        Self { code, target, next: successors(code) }
    }

    /// True for positions that are reached from the start.
    pub fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.next.len()];
        let mut todo = vec![0];
        while let Some(at) = todo.pop() {
            if reached.get(at) == Some(&false) {
                reached[at] = true;
                todo.extend(&self.next[at]);
            }
        }
        reached
    }

    /// An instruction.
    pub fn data(&self, at: usize) -> &InstrData {
        &self.code.instrs.as_values_slice()[at].data
    }

    fn is_alu(data: &InstrData) -> bool {
        matches!(data.opcode.category(), Category::Move | Category::Alu2 | Category::Alu3)
    }

    fn is_scalar(&self, data: &InstrData) -> bool {
        let shared = data.dsts.first().is_some_and(|dst| dst.class.file == RegFile::Shared);
        let from_lanes = data
            .srcs
            .first()
            .is_some_and(|src| matches!(src.operand, SrcOperand::Place(_)) && src.class.file != RegFile::Shared);
        self.target.has_scalar_alu
            && Self::is_alu(data)
            && shared
            && data.opcode != Opcode::Movmsk
            && !(data.opcode == Opcode::Mov && from_lanes)
    }

    /// Slots that pass with an instruction, without `(nopN)`.
    fn issue(&self, data: &InstrData) -> u32 {
        let counts = match data.opcode.category() {
            Category::Flow => !matches!(data.opcode, Opcode::Jump | Opcode::Br | Opcode::Braa | Opcode::Brao),
            _ => Self::is_alu(data) && !self.is_scalar(data),
        };
        if counts { 1 + u32::from(data.repeat) } else { 0 }
    }

    /// Returns true if an instruction has the flag `(ss)`.
    pub fn ss(data: &InstrData) -> bool {
        use Category::{Memory, Texture};
        data.flags.contains(InstrFlags::SS) && !matches!(data.opcode.category(), Texture | Memory)
    }

    fn sy(data: &InstrData) -> bool {
        data.flags.contains(InstrFlags::SY)
    }

    /// The registers that an instruction reads, with the operand's number and class. Outputs are read by `end`.
    pub fn reads(&self, at: usize) -> Vec<(usize, RegClass, Vec<Span>, bool)> {
        let data = self.data(at);
        let ends = matches!(data.opcode, Opcode::End | Opcode::Chmask);
        let outputs: &[OutputRegister] = if ends { &self.code.interface.outputs } else { &[] };
        let srcs = data.srcs.iter().chain(outputs.iter().map(|output| &output.src));
        let registers = srcs.enumerate().filter_map(|(n, src): (usize, &Src)| Some((n, src, src.place()?)));
        registers
            .map(|(n, src, place)| {
                let relative = matches!(place, Place::Relative { .. });
                (n, src.class, span(place, src.class, src.mask, self.target.merged_regs), relative)
            })
            .collect()
    }

    /// The registers that an instruction writes, in the same form.
    pub fn writes(&self, at: usize) -> Vec<(usize, RegClass, Vec<Span>, bool)> {
        let dsts = self.data(at).dsts.iter().enumerate();
        dsts.map(|(n, dst): (usize, &Dst)| {
            let relative = matches!(dst.place, Place::Relative { .. });
            (n, dst.class, span(&dst.place, dst.class, dst.mask, self.target.merged_regs), relative)
        })
        .collect()
    }

    /// All registers that an instruction writes, including an operand that a result replaces.
    pub fn written(&self, at: usize) -> Vec<Span> {
        let data = self.data(at);
        let replaced = data
            .srcs
            .get(2)
            .filter(|_| data.opcode.name().starts_with("atomic.b."))
            .and_then(|src| Some(span(src.place()?, src.class, src.mask, self.target.merged_regs)));
        let writes = self.writes(at).into_iter().flat_map(|(.., spans, _)| spans);
        writes.chain(replaced.into_iter().flatten()).collect()
    }

    /// Returns true if a user of an ALU result comes too early.
    fn slots_from(&self, at: usize) -> bool {
        let data = self.data(at);
        if !Self::is_alu(data) {
            return false;
        }
        for (n, class, spans, relative) in self.writes(at) {
            if class.file == RegFile::Shared || class.file == RegFile::Address && self.has_shps() {
                continue;
            }
            for (k, own) in spans.iter().enumerate() {
                let swaps = matches!(data.opcode, Opcode::Swz | Opcode::Sct);
                let element = if relative {
                    u32::from(data.repeat)
                } else if data.repeat > 0 && !swaps {
                    k as u32
                } else {
                    0
                };
                let element = element + if swaps { n as u32 } else { 0 };
                // Slots from the element's own slot to the next instruction.
                let rest = (self.issue(data) + u32::from(data.nop)).saturating_sub(1 + element.min(self.issue(data)));
                let behind = i64::from(rest) - i64::from(element.saturating_sub(self.issue(data).saturating_sub(1)));
                if self.too_early(at, own, class, behind) {
                    return true;
                }
            }
        }
        false
    }

    /// In an early preamble `a1.x` is waited for with `(ss)`; programs with a preamble are left out here.
    fn has_shps(&self) -> bool {
        self.code.instrs.values().any(|instr| instr.data.opcode == Opcode::Shps)
    }

    /// Walks on until enough slots have passed for every user of a register.
    fn too_early(&self, from: usize, own: &Span, class: RegClass, behind: i64) -> bool {
        let mut seen = FxHashSet::default();
        // One less each on a7xx.
        let less = i64::from(self.target.generation == Generation::A7xx);
        let mut todo: Vec<(usize, i64)> = self.next[from].iter().map(|&to| (to, behind)).collect();
        while let Some((at, slots)) = todo.pop() {
            if slots >= 6 || !seen.insert((at, slots)) {
                continue;
            }
            let data = self.data(at);
            let alu = Self::is_alu(data);
            let ends = matches!(data.opcode, Opcode::End | Opcode::Chmask);
            for (n, its, spans, relative) in self.reads(at) {
                for (k, other) in spans.iter().enumerate() {
                    if ends || !overlap(own, other) {
                        continue;
                    }
                    let near = alu && its.half == class.half && class.file == RegFile::General;
                    let required = if near { 3 } else { 6 } - less;
                    let mut late = 0;
                    if data.repeat > 0 && !relative && !matches!(data.opcode, Opcode::Swz | Opcode::Gat) {
                        late += k as i64;
                    }
                    if matches!(data.opcode, Opcode::Swz | Opcode::Gat) {
                        late += n as i64;
                    }
                    let name = data.opcode.name();
                    if n == 2 && name.starts_with("mad") {
                        late += 2 - less;
                    }
                    if slots + late < required {
                        return true;
                    }
                }
            }
            // Writes of other units come after all earlier writes of the ALU.
            let writes: Vec<Span> = self.writes(at).into_iter().flat_map(|(.., spans, _)| spans).collect();
            if !alu && writes.iter().any(|other| overlap(own, other)) {
                continue;
            }
            let slots = slots + i64::from(self.issue(data)) + i64::from(data.nop);
            todo.extend(self.next[at].iter().map(|&to| (to, slots)));
        }
        false
    }

    /// The flag that covers the results of an instruction: (ss), (sy).
    fn covers(&self, data: &InstrData) -> (bool, bool) {
        use Opcode::{Getfiberid, Ldl, Ldlv, Ldlw, Resinfo, Shfl, Tcinv};
        let name = data.opcode.name();
        let shared = data.dsts.first().is_some_and(|dst| dst.class.file == RegFile::Shared);
        let local = name.starts_with("atomic.")
            && !["atomic.b", "atomic.g", "atomic.s."]
                .iter()
                .any(|prefix| name.starts_with(prefix) && !name.starts_with("atomic.sub"));
        match data.opcode.category() {
            Category::Sfu => (true, false),
            Category::Texture => (false, data.opcode != Tcinv),
            Category::Memory if matches!(data.opcode, Getfiberid | Ldl | Ldlv | Ldlw | Resinfo | Shfl) || local => {
                (true, false)
            }
            Category::Memory => (shared, true),
            _ => (shared && !self.is_scalar(data), false),
        }
    }

    /// Returns true if a result is used, or a late source overwritten, before the flag that it needs.
    fn flags_from(&self, at: usize) -> bool {
        let data = self.data(at);
        let (ss, sy) = self.covers(data);
        let scalar = self.is_scalar(data);
        let results: Vec<Span> = self.writes(at).into_iter().flat_map(|(.., spans, _)| spans).collect();
        let half = data.dsts.first().is_some_and(|dst| dst.class.half);
        let late =
            matches!(data.opcode.category(), Category::Sfu | Category::Texture | Category::Memory) || ss || scalar;
        let late = late && data.opcode != Opcode::Tcinv;
        let store = data.dsts.is_empty();
        let sources: Vec<Span> = if late {
            let reads = self.reads(at).into_iter();
            reads
                .filter(|(_, class, ..)| !scalar || class.file != RegFile::General)
                .flat_map(|(.., spans, _)| spans)
                .collect()
        } else {
            Vec::new()
        };
        if !(ss || sy || scalar) && sources.is_empty() {
            return false;
        }
        let mut seen = FxHashSet::default();
        // Outstanding hazards: results by (ss), results by (sy), sources.
        let mut todo: Vec<(usize, bool, bool, bool)> =
            self.next[at].iter().map(|&to| (to, ss || scalar, sy, !sources.is_empty())).collect();
        while let Some((to, mut by_ss, mut by_sy, mut read)) = todo.pop() {
            let user = self.data(to);
            if Self::ss(user) {
                (by_ss, read) = (false, false);
            }
            if Self::sy(user) {
                by_sy = false;
                // The results are available, so the sources have been read.
                read &= !sy || store || ss;
            }
            if !(by_ss || by_sy || read) || !seen.insert((to, by_ss, by_sy, read)) {
                continue;
            }
            let pair = user.flags.contains(InstrFlags::PAIR) && to == at + 1 || other_lanes(data, user);
            let touched = self.reads(to).into_iter().chain(self.writes(to));
            for (_, class, spans, _) in touched.filter(|_| !pair) {
                let forwarded = scalar && self.is_scalar(user) && class.half == half;
                let meets = spans.iter().any(|other| results.iter().any(|own| overlap(own, other)));
                if meets && (by_ss && !forwarded || by_sy) {
                    return true;
                }
            }
            let writes: Vec<Span> = self.writes(to).into_iter().flat_map(|(.., spans, _)| spans).collect();
            let in_order = scalar && self.is_scalar(user);
            let meets = writes.iter().any(|other| sources.iter().any(|own| overlap(own, other)));
            if read && meets && !pair && !in_order {
                return true;
            }
            todo.extend(self.next[to].iter().map(|&next| (next, by_ss, by_sy, read)));
        }
        false
    }

    /// Checks instructions that must follow directly, and memory accesses after barriers.
    fn order(&self) -> Option<Broken> {
        let count = self.code.instrs.len();
        let mut open = false;
        for at in 0..count {
            let data = self.data(at);
            let nops = || {
                let nops = (at + 1..count).map(|i| self.data(i)).take_while(|data| data.opcode == Opcode::Nop);
                nops.map(|nop| 1 + u32::from(nop.repeat)).sum::<u32>()
            };
            match data.opcode {
                Opcode::Predt | Opcode::Predf => {
                    let is_second = std::mem::replace(&mut open, true);
                    if is_second && self.target.quirks.predtf_nop && nops() < 5 {
                        return Some(Broken::Predication);
                    }
                }
                Opcode::Prede => {
                    open = false;
                    if self.target.quirks.prede_nop && nops() < 7 {
                        return Some(Broken::Predication);
                    }
                }
                Opcode::Shpe if !(Self::ss(data) && Self::sy(data)) => return Some(Broken::Order),
                Opcode::Resinfo => {
                    let writes = self.writes(at).iter().any(|(.., spans, _)| !spans.is_empty());
                    if writes && at + 1 < count && !Self::ss(self.data(at + 1)) {
                        return Some(Broken::Order);
                    }
                }
                _ if data.opcode.category() == Category::Barrier && self.after_barrier(at) => {
                    return Some(Broken::Order);
                }
                _ => {}
            }
        }
        None
    }

    /// Returns true if memory is accessed after a barrier before both flags.
    fn after_barrier(&self, at: usize) -> bool {
        let mut seen = FxHashSet::default();
        let mut todo: Vec<(usize, bool, bool)> = self.next[at].iter().map(|&to| (to, true, true)).collect();
        while let Some((to, ss, sy)) = todo.pop() {
            let user = self.data(to);
            let (ss, sy) = (ss && !Self::ss(user), sy && !Self::sy(user));
            if !(ss || sy) || !seen.insert((to, ss, sy)) {
                continue;
            }
            if matches!(user.opcode.category(), Category::Texture | Category::Memory | Category::Barrier) {
                return true;
            }
            todo.extend(self.next[to].iter().map(|&next| (next, ss, sy)));
        }
        false
    }
}
