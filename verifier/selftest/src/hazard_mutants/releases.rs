//! Early releases: of varyings by (ei), of helper lanes by (eq), of `a0.x` by (ul).
//!
//! To release something too early is always wrong. To release it later, or never, is taken to cost time only, but for
//! varyings: no lane may end before their release if there is one, and there is one on every path where the end of a
//! program is none (before a5xx), and in programs that only have prefetches.

use super::needed::Paths;
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{
    Category, Dst, InstrData, InstrFlags, Opcode, PhysReg, Place, RegClass, RegFile, Src, WriteMask,
};
use ir3_compiler::machine::{Code, Ip};

/// The nearest instruction before a position in the same straight line that can have these flags.
pub fn earlier(code: &Code, at: Ip, flags: InstrFlags) -> Option<Ip> {
    let takes = |data: &InstrData| {
        if flags.contains(InstrFlags::EI) {
            matches!(data.opcode, Opcode::BaryF | Opcode::FlatB)
        } else if flags.contains(InstrFlags::EQ) {
            data.opcode == Opcode::Nop
        } else {
            matches!(data.opcode.category(), Category::Move | Category::Alu2 | Category::Alu3)
        }
    };
    let is_target = |ip: Ip| code.instrs.values().any(|instr| instr.target == Some(ip));
    let mut here = at;
    loop {
        if is_target(here) {
            return None;
        }
        here = Ip::new(here.index().checked_sub(1)?);
        let data = &code.instrs[here].data;
        // The effect of (ul) at a write of `a0.x` is not documented.
        let writes_address = data.dsts.iter().any(|dst| dst.class.file == RegFile::Address);
        if data.opcode.is_terminator() || writes_address && flags.contains(InstrFlags::UL) {
            return None;
        }
        if takes(data) {
            return Some(here);
        }
    }
}

/// The nearest nop after the nearest `kill` in the same straight line after a position.
pub fn after_kill(code: &Code, at: Ip) -> Option<Ip> {
    let is_target = |ip: Ip| code.instrs.values().any(|instr| instr.target == Some(ip));
    let mut killed = false;
    for (ip, instr) in code.instrs.iter().skip(at.index() + 1) {
        let data = &instr.data;
        if is_target(ip) || data.opcode.is_terminator() {
            return None;
        }
        killed |= matches!(data.opcode, Opcode::Kill | Opcode::Demote);
        if killed && data.opcode == Opcode::Nop {
            return Some(ip);
        }
    }
    None
}

/// Replaces a nop by an instruction that releases varyings: `bary.f (ei)r63.x, 0, r0.x`.
pub fn release_at(data: &mut InstrData) {
    let nowhere = Dst::new(Place::Reg(PhysReg::INVALID), RegClass::FULL, WriteMask::SCALAR);
    let coordinates = Src::reg(Place::Reg(PhysReg(0)), RegClass::FULL, WriteMask::SCALAR);
    *data = InstrData { flags: data.flags | InstrFlags::EI, ..InstrData::new(Opcode::BaryF) };
    data.dsts.push(nowhere);
    data.srcs.extend([Src::immediate(0, false), coordinates]);
}

/// The steps of a walk along the paths, at an instruction.
enum Next {
    On,
    Stop,
    Found,
}

impl Paths<'_> {
    /// Returns true if something is used after it has been released.
    pub fn misses_release(&self) -> bool {
        let varying = |at: usize| matches!(self.data(at).opcode, Opcode::BaryF | Opcode::FlatB | Opcode::Ldlv);
        let has = |at: usize, flag: InstrFlags| self.data(at).flags.contains(flag);
        let reached = self.reached();
        let positions = || (0..self.next.len()).filter(|&at| reached[at]);
        let found = |condition: bool| if condition { Next::Found } else { Next::On };
        let releases = |at: usize| has(at, InstrFlags::EI) && varying(at);
        let before_release = |opcodes: &[Opcode]| {
            self.meets(
                &[0],
                |at| if releases(at) { Next::Stop } else { found(opcodes.contains(&self.data(at).opcode)) },
            )
        };
        if positions().any(releases) && before_release(&[Opcode::Kill, Opcode::Demote])
            || self.has_to_release(positions().any(varying)) && before_release(&[Opcode::End])
        {
            return true;
        }
        positions().any(|at| {
            let after = &self.next[at];
            has(at, InstrFlags::EI) && self.meets(after, |at| found(varying(at)))
                || has(at, InstrFlags::EQ) && self.helpers_are_missed(at)
                || has(at, InstrFlags::UL) && self.meets(after, |at| self.uses_address(at))
                || self.data(at).opcode == Opcode::Ldlv
                    && self.meets(after, |at| match Self::ss(self.data(at)) {
                        true => Next::Stop,
                        false => found(has(at, InstrFlags::EI)),
                    })
        })
    }

    /// An instruction that uses helper lanes on a path from their end: for a sample, one that reads a register written
    /// after it.
    fn helpers_are_missed(&self, end: usize) -> bool {
        let reads_registers = |at: usize| matches!(self.data(at).opcode, Opcode::Sam | Opcode::Samb);
        let found = |condition: bool| if condition { Next::Found } else { Next::On };
        let after = &self.next[end];
        if self.meets(after, |at| found(needs_helpers(self.data(at)) && !reads_registers(at))) {
            return true;
        }
        let is_after = |at: usize| at == end || self.meets(after, |other| found(other == at));
        (0..self.next.len()).filter(|&at| is_after(at)).any(|writer| {
            let spans = self.written(writer);
            let overlaps = |(file, first, count): &super::needed::Span, other: &super::needed::Span| {
                *file == other.0 && *first < other.1 + other.2 && other.1 < first + count
            };
            self.meets(&self.next[writer], |at| {
                let is_user = needs_helpers(self.data(at)) && reads_registers(at);
                // The coordinates; descriptors are before them.
                let first = usize::from(self.data(at).flags.contains(InstrFlags::S2EN));
                let coordinates = self.reads(at).into_iter().filter(|&(n, ..)| n == first);
                let mut reads = coordinates.flat_map(|(_, _, spans, _)| spans);
                found(is_user && reads.any(|read| spans.iter().any(|span| overlaps(&read, span))))
            })
        })
    }

    /// Walks along the paths from some positions.
    fn meets(&self, from: &[usize], look: impl Fn(usize) -> Next) -> bool {
        let mut seen = vec![false; self.next.len()];
        let mut todo = from.to_vec();
        while let Some(at) = todo.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match look(at) {
                Next::On => todo.extend(&self.next[at]),
                Next::Stop => {}
                Next::Found => return true,
            }
        }
        false
    }

    /// An access relative to `a0.x`, before it is written again.
    fn uses_address(&self, at: usize) -> Next {
        const ADDRESSES: u8 = 4;
        let names = |spans: &[super::needed::Span]| spans.iter().any(|span| span.0 == ADDRESSES && span.1 % 4 == 0);
        if self.reads(at).iter().any(|(_, _, spans, _)| names(spans)) {
            Next::Found
        } else if names(&self.written(at)) {
            Next::Stop
        } else {
            Next::On
        }
    }
}

/// Returns true if the result depends on helper lanes.
fn needs_helpers(data: &InstrData) -> bool {
    let name = data.opcode.name();
    let derives = ["dsx", "dsy", "quad_shuffle", "quadshuffle"].iter().any(|prefix| name.starts_with(prefix));
    let samples = matches!(data.opcode, Opcode::Sam | Opcode::Samb | Opcode::Getlod);
    let stores = data.dsts.iter().any(|dst| dst.place.reg() != Some(PhysReg::INVALID));
    let votes = matches!(data.opcode, Opcode::Ball | Opcode::Bany | Opcode::Movmsk | Opcode::BrcstActive);
    derives || votes || samples && (stores || data.opcode != Opcode::Sam)
}
