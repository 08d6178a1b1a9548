//! What is released, and where: varyings by (ei), helper lanes by (eq), `a0.x` by (ul).
//!
//! To release something later, or never, is taken to cost time only; to release something too early is always wrong.

use super::needed::Paths;
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{Category, InstrData, InstrFlags, Opcode, RegFile};
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
        // What (ul) releases at a write of `a0.x` is not known.
        let writes_address = data.dsts.iter().any(|dst| dst.class.file == RegFile::Address);
        if data.opcode.is_terminator() || writes_address && flags.contains(InstrFlags::UL) {
            return None;
        }
        if takes(data) {
            return Some(here);
        }
    }
}

/// What a walk along the paths does at an instruction.
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
        positions().any(|at| {
            let after = &self.next[at];
            has(at, InstrFlags::EI) && self.meets(after, |at| found(varying(at)))
                || has(at, InstrFlags::EQ) && self.meets(after, |at| found(needs_helpers(self.data(at))))
                || has(at, InstrFlags::UL) && self.meets(after, |at| self.uses_address(at))
                || self.data(at).opcode == Opcode::Ldlv
                    && self.meets(after, |at| match Self::ss(self.data(at)) {
                        true => Next::Stop,
                        false => found(has(at, InstrFlags::EI)),
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
    let stores = data.dsts.iter().any(|dst| dst.place.reg() != Some(ir3_compiler::ir3::PhysReg::INVALID));
    let votes = matches!(data.opcode, Opcode::Ball | Opcode::Bany | Opcode::Movmsk | Opcode::BrcstActive);
    derives || votes || samples && (stores || data.opcode != Opcode::Sam)
}
