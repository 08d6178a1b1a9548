//! Resources that the wave releases, and must not use afterwards: varyings after `(ei)`, helper lanes after `(eq)`,
//! `a0.x` after `(ul)`.
//!
//! These are the rules of `prove::hazards` on the path of one run. Runs do not report resources that are merely held
//! too long if nothing of the program releases it: texts of Mesa's passes have no releases.
//!
//! From a6xx on a lane that `kill` ends may go on as a helper lane (docs/semantics.md). So in a loop a branch has to
//! take it out of there: otherwise a loop that lanes leave by `kill` only does not end.

use crate::interp::UndefinedReason;
use crate::machine::rules;
use crate::machine::steps::{Step, Steps};
use crate::machine::units::OTHER_WORD;
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{InstrData, InstrFlags, Opcode};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::{Generation, Target};

bitflags::bitflags! {
    /// The uses and releases of resources by an instruction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Marks: u16 {
        const READS_VARYING = 1;
        const RELEASES_VARYINGS = 1 << 1;
        /// A read of local memory, which `(ss)` waits for.
        const GOES_ON = 1 << 2;
        const USES_HELPERS = 1 << 3;
        const ENDS_HELPERS = 1 << 4;
        const READS_ADDRESS = 1 << 5;
        const RELEASES_ADDRESS = 1 << 6;
        const WRITES_ADDRESS = 1 << 7;
        /// A lane may end before varyings are released.
        const ENDS_LANES = 1 << 8;
        /// The program ends, and does not release varyings by itself.
        const ENDS = 1 << 9;
        /// It is in the preamble, or before it.
        const IN_PREAMBLE = 1 << 10;
        /// It ends lanes in a loop, and they do not leave it.
        const STAYS = 1 << 11;
    }
}

/// The marks of all instructions; none if no instruction releases anything.
#[derive(Clone, Debug)]
pub struct Releases(Vec<Marks>);

impl Releases {
    /// Looks at the instructions.
    pub fn of(code: &Code, steps: &Steps, target: &Target) -> Self {
        const RELEASES: InstrFlags = InstrFlags::EI.union(InstrFlags::EQ).union(InstrFlags::UL);
        if !code.instrs.values().any(|instr| instr.data.flags.intersects(RELEASES) || instr.data.opcode == Opcode::Kill)
        {
            return Self(Vec::new());
        }
        let any = |wanted: &dyn Fn(Opcode) -> bool| code.instrs.values().any(|instr| wanted(instr.data.opcode));
        let after_preamble = code.instrs.values().position(|instr| instr.data.opcode == Opcode::Shpe);
        let releases = |flags: InstrFlags, opcode| flags.contains(InstrFlags::EI) && rules::reads_varying(opcode);
        let has_release = code.instrs.values().any(|instr| releases(instr.data.flags, instr.data.opcode));
        // From a5xx on the end of the program releases varyings that instructions read.
        let holds = has_release && (!any(&rules::reads_varying) || target.generation < Generation::A5xx);
        let marks = code.instrs.iter().map(|(ip, instr)| {
            let (data, step) = (&instr.data, &steps.steps[ip.index()]);
            let names_address = |range: &std::ops::Range<u32>| {
                steps.bits(range).iter().any(|bits| usize::from(bits.word) == OTHER_WORD && bits.bits & 1 != 0)
            };
            let mut marks = Marks::empty();
            marks.set(Marks::READS_VARYING, rules::reads_varying(data.opcode));
            marks.set(Marks::RELEASES_VARYINGS, releases(data.flags, data.opcode));
            marks.set(Marks::GOES_ON, data.opcode == Opcode::Ldlv);
            // Samples and derivatives read the registers of helper lanes at their end. The hazard checker decides if
            // those are written later, or does not pass them.
            let reads_registers = matches!(
                data.opcode,
                Opcode::Sam
                    | Opcode::Samb
                    | Opcode::Getlod
                    | Opcode::Dsx
                    | Opcode::Dsy
                    | Opcode::Dsxpp1
                    | Opcode::Dsypp1
            );
            marks.set(Marks::USES_HELPERS, rules::uses_helpers(data) && !reads_registers);
            marks.set(Marks::ENDS_HELPERS, data.flags.contains(InstrFlags::EQ));
            marks.set(Marks::READS_ADDRESS, names_address(&step.read_bits));
            marks.set(Marks::RELEASES_ADDRESS, data.flags.contains(InstrFlags::UL));
            marks.set(Marks::WRITES_ADDRESS, names_address(&step.write_bits));
            marks.set(Marks::ENDS_LANES, has_release && matches!(data.opcode, Opcode::Kill | Opcode::Demote));
            marks.set(Marks::ENDS, holds && data.opcode == Opcode::End);
            marks.set(Marks::STAYS, target.generation >= Generation::A6xx && stays(code, ip));
            marks.set(Marks::IN_PREAMBLE, after_preamble.is_some_and(|end| ip.index() < end));
            marks
        });
        Self(marks.collect())
    }

    /// Returns true if lanes that an instruction ends stay in a loop.
    pub fn stays(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|marks| marks.contains(Marks::STAYS))
    }
}

/// Returns true for a `kill` in a loop that is not followed by a branch of the lanes that it ends.
fn stays(code: &Code, kill: Ip) -> bool {
    let at = kill.index();
    if code.instrs[kill].data.opcode != Opcode::Kill {
        return false;
    }
    let mut after = code.instrs.iter().filter(|(ip, _)| ip.index() > at);
    let leads_back = |ip: Ip, target: Option<Ip>| ip.index() > at && target.is_some_and(|to| to.index() <= at);
    code.instrs.iter().any(|(ip, instr)| leads_back(ip, instr.target))
        && after.find(|(_, instr)| instr.data.opcode != Opcode::Nop).is_none_or(|(_, next)| {
            let condition = |data: &InstrData| data.srcs.first().map(|src| (src.operand, src.mods));
            let leaves = next.target.is_some_and(|to| to.index() > at);
            !(leaves && next.data.opcode == Opcode::Br && condition(&next.data) == condition(&code.instrs[kill].data))
        })
}

/// The resources that a wave has released.
#[derive(Clone, Copy, Debug, Default)]
pub struct Released {
    varyings: bool,
    helpers: bool,
    address: bool,
    /// A read of a varying is in progress.
    reading: bool,
}

impl Released {
    /// Executes an instruction; returns the rule that it breaks.
    pub fn step(&mut self, at: usize, step: &Step, releases: &Releases) -> Option<UndefinedReason> {
        let marks = *releases.0.get(at)?;
        self.reading &= !step.ss;
        let mut broken = None;
        let mut check = |breaks: bool, reason| {
            if breaks {
                broken = Some(reason);
            }
        };
        let early_release = Marks::RELEASES_VARYINGS | Marks::IN_PREAMBLE;
        check(marks.contains(Marks::READS_VARYING) && self.varyings, UndefinedReason::Varyings);
        check(marks.contains(Marks::RELEASES_VARYINGS) && self.reading, UndefinedReason::Varyings);
        check(marks.contains(early_release), UndefinedReason::Varyings);
        self.varyings |= marks.contains(Marks::RELEASES_VARYINGS);
        check(marks.intersects(Marks::ENDS_LANES | Marks::ENDS) && !self.varyings, UndefinedReason::Varyings);
        self.reading |= marks.contains(Marks::GOES_ON);
        check(marks.contains(Marks::USES_HELPERS) && self.helpers, UndefinedReason::HelperLanes);
        self.helpers |= marks.contains(Marks::ENDS_HELPERS);
        check(marks.contains(Marks::READS_ADDRESS) && self.address, UndefinedReason::AddressReleased);
        self.address |= marks.contains(Marks::RELEASES_ADDRESS);
        self.address &= !marks.contains(Marks::WRITES_ADDRESS);
        broken
    }
}
