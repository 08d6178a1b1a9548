//! Instructions of both programs: equal operands give equal results.

use super::copies::{Copies, append_moves};
use super::effects::{commutes, is_of_one_lane, writes_constants, writes_one_lane_of_a_quad};
use super::facts::{CopySource, CurrentFacts, Literal};
use super::failure::{Mismatch, RegisterFailure};
use super::location::{Locations, Piece};
use super::walk::LockstepWalk;
use ir3_compiler::ir3::{
    Attrs, Block, Category, Dst, Instr, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, RegClass, RegFile,
    Src, SrcOperand, WriteMask,
};
use ir3_semantics::header::is_unprinted;
use ir3_semantics::machine::arrays::reach;
use ir3_semantics::support::guards::{Guard, left_out};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Returns true if an instruction has no effect but its results, and these depend on nothing but its sources. (A write
/// to an array element is undefined behaviour if the index is out of bounds.) The register checker does not read the
/// columns of the compiler's table by which passes decide the same.
fn is_pure(data: &InstrData) -> bool {
    has_only_results(data) && !is_of_one_lane(data)
}

/// Returns true if an instruction has no effect but its results.
fn has_only_results(data: &InstrData) -> bool {
    !data.dsts.iter().any(|dst| dst.place.is_relative())
        && match data.opcode.category() {
            Category::Alu2 => !matches!(data.opcode, Opcode::BaryF | Opcode::FlatB | Opcode::Setrm),
            Category::Alu3 => !is_matrix(data.opcode),
            Category::Sfu => true,
            Category::Move => matches!(data.opcode, Opcode::Mov | Opcode::Movp),
            _ => false,
        }
}

/// Returns true if an instruction whose results nothing reads may be removed. Besides those that have only results,
/// these are the ones that read state which no instruction of a lane writes: varyings, textures, the set of active
/// lanes.
fn is_removable(data: &InstrData) -> bool {
    has_only_results(data)
        || matches!(data.opcode, Opcode::BaryF | Opcode::FlatB | Opcode::ElectMacro)
            // The last one may be the end of the inputs.
            && !data.flags.contains(InstrFlags::EI)
            && !data.dsts.iter().any(|dst| dst.place.is_relative())
        || has_components_of_texture(data)
}

/// Returns true for the requests of textures, each component of whose result is independent of those that are asked
/// for.
fn has_components_of_texture(data: &InstrData) -> bool {
    matches!(data.opcode, Opcode::Sam | Opcode::Samb | Opcode::Saml | Opcode::TexPrefetch) && data.repeat == 0
}

/// Returns true for matrix products: they read four registers from each of the first two sources on, write up to 128,
/// and `wmm.accu` reads those too. Operands name only the first of them.
const fn is_matrix(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Wmm | Opcode::WmmAccu)
}

/// The registers or elements that an indirect operand may refer to: those of the source, with their counterparts in the
/// target.
pub(super) type IndirectRegion = Vec<(Piece, Piece)>;

impl LockstepWalk<'_> {
    /// Steps over an instruction of both programs. A pure one may have other operands; then its results are unknown,
    /// and their uses fail.
    pub(super) fn operation(&mut self, block: Block, source: Instr, target: Instr) -> Result<(), RegisterFailure> {
        let (s, t) = (&self.source.program.instrs[source], &self.target.program.instrs[target]);
        if let Some(result) = self.element_in_scratch(block, s, t) {
            return result;
        }
        self.same_shape(s, t)?;
        if is_matrix(s.opcode) {
            return Err(self.unsupported(&format!("registers of `{}` that its operands do not name", s.opcode.name())));
        }
        if let Attrs::Alias { .. } = s.attrs {
            return Err(self.unsupported("an alias that is not folded into its user"));
        }
        // An operand that a text does not print is unknown, and the same only in the same instruction.
        let [from, to] = [self.source.program.serials[source], self.target.program.serials[target]];
        if from != to && (is_unprinted(s) || is_unprinted(t)) && !left_out(Guard::RegistersAttributes) {
            let name = s.opcode.name();
            let what = format!("`{name}` {to:04} corresponds to {from:04}, and the texts do not print its attributes");
            return Err(RegisterFailure::Changed { site: self.site(), what });
        }
        self.here.forget_lane();
        let mut fine = Ok(());
        for slot in 0..s.srcs.len() {
            fine = fine.and_then(|()| self.same_source(s, t, slot));
        }
        if fine.is_err() && s.srcs.len() == 2 && (commutes(s.opcode) || left_out(Guard::RegistersCommuted)) {
            let mut exchanged = t.clone();
            exchanged.srcs.swap(0, 1);
            let both = self.same_source(s, &exchanged, 0).and_then(|()| self.same_source(s, &exchanged, 1));
            fine = both.or(fine);
        }
        if let Err(failure) = fine {
            if !is_pure(s) || !matches!(failure, RegisterFailure::Contents(_)) {
                return Err(failure);
            }
            self.suspect.get_or_insert(failure);
            return self.results(s, t, left_out(Guard::RegistersSuspect));
        }
        if writes_one_lane_of_a_quad(s.opcode) {
            self.keeps_other_lanes(s, t)?;
        }
        self.operations += 1;
        if writes_constants(s.opcode) && !left_out(Guard::RegistersConstants) {
            self.here.forget_constants();
        }
        if s.opcode == Opcode::Kill && !left_out(Guard::RegistersEndsWithin) {
            self.may_leave();
        }
        self.results(s, t, true)
    }

    fn same_shape(&self, s: &InstrData, t: &InstrData) -> Result<(), RegisterFailure> {
        let is_same = (s.opcode == t.opcode || left_out(Guard::RegistersOpcode))
            && (s.flags == t.flags || left_out(Guard::RegistersFlags))
            && (s.attrs == t.attrs || left_out(Guard::RegistersAttributes))
            && s.repeat == t.repeat
            && s.dsts.len() == t.dsts.len()
            && s.srcs.len() == t.srcs.len()
            && (s.dsts.iter().zip(&t.dsts).all(|(of_s, of_t)| {
                let is_within = || of_t.mask.components().all(|k| of_s.mask.contains(k));
                let is_mask = of_s.mask == of_t.mask || has_components_of_texture(s) && is_within();
                of_s.class == of_t.class && is_mask
            }) || left_out(Guard::RegistersResults));
        if is_same {
            return Ok(());
        }
        let what = format!("`{}` is replaced by another instruction, or by another form of it", s.opcode.name());
        Err(RegisterFailure::Changed { site: self.site(), what })
    }

    fn same_source(&mut self, s: &InstrData, t: &InstrData, slot: usize) -> Result<(), RegisterFailure> {
        let (a, b) = (&s.srcs[slot], &t.srcs[slot]);
        if a.operand == SrcOperand::Undef {
            return Ok(());
        }
        let changed = |walk: &Self, what: &str| {
            Err(RegisterFailure::Changed { site: walk.site(), what: format!("source {slot} {what}") })
        };
        if (a.class != b.class || a.mask != b.mask) && !left_out(Guard::RegistersSourceClass) {
            return changed(self, "is of another class or mask");
        }
        let group = |src: &Src| [src.is_of_group(), src.continues_group()];
        if group(a) != group(b) {
            return changed(self, "is in another vector");
        }
        // With (r), each repetition reads the next register; without, all read the same one.
        let advances = |src: &Src| s.repeat > 0 && src.flags.contains(OperandFlags::R);
        if (a.mods != b.mods || advances(a) != advances(b)) && !left_out(Guard::RegistersModifiers) {
            return changed(self, "has other modifiers");
        }
        if let (SrcOperand::Place(Place::Assigned(_, given)), SrcOperand::Place(place), Opcode::End | Opcode::Chmask) =
            (&a.operand, &b.operand, s.opcode)
            && place.reg() != Some(*given)
            && !left_out(Guard::RegistersHeader)
        {
            return changed(self, "is not in the register that is given for it");
        }
        match (&a.operand, &b.operand) {
            (SrcOperand::Place(from), SrcOperand::Place(to)) => {
                if let Some(region) = self.region(a.class, from, to)? {
                    return self.same_region(&region, slot);
                }
                for k in a.mask.components() {
                    let from = self.piece(self.source.component(from, a.class, k, false))?;
                    let named = !t.opcode.is_meta() && !is_vector(t);
                    let to = self.piece(self.target.component(to, b.class, k, named))?;
                    for (x, l) in from.zip(to) {
                        self.holds(l, x, slot)?;
                    }
                }
                Ok(())
            }
            (x, y) if x == y => Ok(()),
            // An immediate may be in a register, or in the constant file, only if that is known to hold it.
            (SrcOperand::Immediate(bits), SrcOperand::Place(to)) => {
                let to = self.piece(self.target.component(to, b.class, 0, true))?;
                for (at, l) in to.enumerate() {
                    let x = self.here.literal(Literal::Bits((bits >> (16 * at)) as u16));
                    self.holds(l, x, slot)?;
                }
                Ok(())
            }
            _ if left_out(Guard::RegistersOperand) => Ok(()),
            _ => changed(self, "is another operand"),
        }
    }

    pub(super) fn holds(&mut self, l: Piece, x: Piece, slot: usize) -> Result<(), RegisterFailure> {
        self.operands += 1;
        if self.here.holds(l, x) || left_out(Guard::RegistersHolds) {
            self.here.settle(l, x);
            return Ok(());
        }
        let mut found: Vec<Piece> = self.here.values_of(l).collect();
        found.sort_unstable();
        let found = found.into_iter().map(|x| self.source_name(x)).collect::<Vec<_>>().join(", ");
        Err(RegisterFailure::Contents(Box::new(Mismatch {
            site: self.site(),
            slot,
            read: self.target.name(l),
            expected: self.source_name(x),
            found: if found.is_empty() { "nothing known".to_owned() } else { found },
            because: self.suspect.as_ref().map(|failure| format!(" (and before that: {failure})")).unwrap_or_default(),
        })))
    }

    /// The registers or elements that an indirect operand may refer to.
    fn region(
        &self,
        class: RegClass,
        source: &Place,
        target: &Place,
    ) -> Result<Option<IndirectRegion>, RegisterFailure> {
        let (source, target) = match (source, target) {
            (Place::Array(from), to) if from.relative => {
                let source = self.piece(self.source.array(from, class))?;
                let target = match to {
                    Place::Array(to)
                        if to.relative && (to.offset == from.offset || left_out(Guard::RegistersArray)) =>
                    {
                        self.piece(self.target.array(to, class))?
                    }
                    Place::Relative { offset, .. } => {
                        let base = u16::try_from(offset - from.offset)
                            .map_err(|_| self.place("an array before the first register"))?;
                        // Later stages use the base that the program states for the array.
                        let stated = self.target.program.arrays.get(from.array).and_then(|array| array.base);
                        if stated.is_some_and(|stated| stated != PhysReg(base)) && !left_out(Guard::RegistersArray) {
                            return Err(self.place("an array is not in the registers that the program states for it"));
                        }
                        let start =
                            self.piece(self.target.component(&Place::Reg(PhysReg(base)), class, 0, false))?.start;
                        start..start + (source.end - source.start)
                    }
                    _ => return Err(self.place("an array is not where it should be")),
                };
                if target.end > self.target.registers && matches!(to, Place::Relative { .. }) {
                    return Err(self.place("an array after the last register"));
                }
                (source, target)
            }
            (&Place::Relative { offset, size }, to) => {
                if source != to && !left_out(Guard::RegistersRelative) {
                    return Err(self.place("another relative operand"));
                }
                let in_target = |reg: &PhysReg| self.target.component(&Place::Reg(*reg), class, 0, false);
                let in_source = |reg: &PhysReg| self.source.component(&Place::Reg(*reg), class, 0, false);
                let mut region = IndirectRegion::new();
                for reg in self.relative_registers(class, offset, size) {
                    region.extend(self.piece(in_source(&reg))?.zip(self.piece(in_target(&reg))?));
                }
                return Ok(Some(region));
            }
            (_, Place::Relative { .. }) => return Err(self.place("a relative operand")),
            _ => return Ok(None),
        };
        if source.len() != target.len() {
            return Err(self.place("an array of another length"));
        }
        Ok(Some(source.zip(target).collect()))
    }

    /// The registers that a relative operand may refer to ([`reach`]).
    fn relative_registers(&self, class: RegClass, offset: i16, size: u16) -> impl Iterator<Item = PhysReg> + use<> {
        let (first, length) = reach(self.source.program, offset, size, class, self.source.merged);
        (first..first + length).map(PhysReg)
    }

    pub(super) fn same_region(&mut self, region: &IndirectRegion, slot: usize) -> Result<(), RegisterFailure> {
        for &(x, l) in region {
            self.holds(l, x, slot)?;
        }
        Ok(())
    }

    /// Records the results: the same in both programs if the operands were.
    pub(super) fn results(&mut self, s: &InstrData, t: &InstrData, same: bool) -> Result<(), RegisterFailure> {
        let mut written = SmallVec::<[(Piece, Piece); 8]>::new();
        for (a, b) in s.dsts.iter().zip(&t.dsts) {
            if let (Opcode::Input, Place::Assigned(_, given)) = (s.opcode, &a.place)
                && b.place.reg() != Some(*given)
                && !left_out(Guard::RegistersHeader)
            {
                return Err(self.place("an input is not in the register that is given for it"));
            }
            if let Some(region) = self.region(a.class, &a.place, &b.place)? {
                self.write_region(&region, same);
                continue;
            }
            for k in a.mask.components() {
                let x = self.piece(self.source.component(&a.place, a.class, k, false))?;
                // A component that only the source has.
                if !b.mask.contains(k) {
                    x.for_each(|x| self.here.overwrite_source(x));
                    continue;
                }
                let named = !t.opcode.is_meta() && !is_vector(t);
                let l = self.piece(self.target.component(&b.place, b.class, k, named))?;
                written.extend(l.zip(x));
            }
        }
        self.apart(s, t, &written)?;
        for &(l, x) in &written {
            self.here.overwrite_target(l);
            self.here.overwrite_source(x);
        }
        if same {
            for &(l, x) in &written {
                self.here.add(l, x);
            }
        }
        Ok(())
    }

    /// Records a write to one of several elements, or to one of all registers: a pair that was equal before is equal
    /// after if the results are, and a source piece that was undefined stays so; nothing else is known.
    pub(super) fn write_region(&mut self, region: &IndirectRegion, same: bool) {
        let equal: SmallVec<[bool; 16]> =
            region.iter().map(|&(x, l)| same && (self.here.holds(l, x) || left_out(Guard::RegistersRegion))).collect();
        for (&(x, l), _) in region.iter().zip(&equal).filter(|(_, equal)| **equal) {
            self.here.settle(l, x);
        }
        for &(x, l) in region {
            self.here.overwrite_target(l);
            self.here.overwrite_source(x);
        }
        for (&(x, l), equal) in region.iter().zip(equal) {
            if equal {
                self.here.add(l, x);
            }
        }
    }

    /// Checks that the results of an instruction do not overlap each other or the operands that it reads late, and are
    /// in the registers that they are tied to.
    fn apart(&self, s: &InstrData, t: &InstrData, written: &[(Piece, Piece)]) -> Result<(), RegisterFailure> {
        if t.repeat > 0 && read_by_later(&self.source, s) != read_by_later(&self.target, t) {
            return Err(self.place("a repetition reads the result of an earlier one"));
        }
        if t.dsts.len() > 1 {
            let mut all: SmallVec<[Piece; 8]> = written.iter().map(|&(l, _)| l).collect();
            all.sort_unstable();
            if all.windows(2).any(|two| two[0] == two[1]) && !left_out(Guard::RegistersTwoResults) {
                return Err(self.place("two results are in one register"));
            }
        }
        for (a, b) in s.dsts.iter().zip(&t.dsts) {
            if a.flags.contains(OperandFlags::EARLY_CLOBBER) {
                self.not_early(t, b)?;
            }
            if a.flags.contains(OperandFlags::TIED) {
                self.tied(s, t, b)?;
            }
        }
        Ok(())
    }

    fn not_early(&self, t: &InstrData, dst: &Dst) -> Result<(), RegisterFailure> {
        for k in dst.mask.components() {
            let to = self.piece(self.target.component(&dst.place, dst.class, k, false))?;
            for src in &t.srcs {
                let Some(place) = src.place().filter(|place| !place.is_relative()) else { continue };
                for k in src.mask.components() {
                    let from = self.piece(self.target.component(place, src.class, k, false))?;
                    if from.start < to.end && to.start < from.end {
                        return Err(self.place("a result that is written early is on top of a source"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the registers of the results have the same contents in the target as in the source: other lanes keep
    /// them.
    fn keeps_other_lanes(&self, s: &InstrData, t: &InstrData) -> Result<(), RegisterFailure> {
        for (a, b) in s.dsts.iter().zip(&t.dsts) {
            for k in a.mask.components() {
                let from = self.piece(self.source.component(&a.place, a.class, k, false))?;
                let to = self.piece(self.target.component(&b.place, b.class, k, false))?;
                if from.zip(to).any(|(x, l)| !self.here.holds(l, x)) {
                    return Err(self.place("a result is not in the register that has the results of other lanes"));
                }
            }
        }
        Ok(())
    }

    fn tied(&self, s: &InstrData, t: &InstrData, dst: &Dst) -> Result<(), RegisterFailure> {
        let tied = |src: &&Src| src.flags.contains(OperandFlags::TIED);
        let at = s.srcs.iter().position(|src| tied(&src));
        let Some(src) = at.map(|at| &t.srcs[at]) else { return Ok(()) };
        match (src.place(), &dst.place) {
            // A value without a register has no constraint.
            (Some(Place::Value(_)), _) | (_, Place::Value(_)) => Ok(()),
            (Some(a), b) if a == b || a.reg().is_some() && a.reg() == b.reg() => Ok(()),
            _ => Err(self.place("a result is not in the register of the source that it is tied to")),
        }
    }

    /// Steps over an instruction of the target only, which rematerialises: its result holds every value of the source
    /// that is computed in the same way from the values that the operands hold. In SSA form, a value whose definition
    /// dominates a point equals there the result of its definition on the operands' values at that point. Otherwise
    /// there would be a path to the point on which an operand was redefined and the value was not; with a path to that
    /// operand it would bypass the definition.
    pub(super) fn rematerialised(&mut self, instr: Instr) -> Result<(), RegisterFailure> {
        let t = &self.target.program.instrs[instr];
        let is_one = t.dsts.len() == 1 && t.dsts[0].mask == WriteMask::first(1) && t.repeat == 0;
        if !is_pure(t) && !left_out(Guard::RegistersAdded) || !is_one {
            let what = format!("`{}` is in this program only", t.opcode.name());
            return Err(RegisterFailure::Changed { site: self.site(), what });
        }
        self.here.forget_lane();
        let dst = t.dsts[0];
        let to = self.piece(self.target.component(&dst.place, dst.class, 0, true))?;
        // Pieces of the source, with the pieces of the result that hold them.
        let mut found = SmallVec::<[(Piece, u32); 8]>::new();
        let clones = self.clones.get_or_init(|| Rematerialisations::new(&self.source));
        for candidate in clones.candidates(t, &self.target, &self.here) {
            let s = &self.source.program.instrs[candidate];
            let is_kept = self.keeps_shared(clones, candidate);
            if is_kept && self.is_computed(candidate) && self.same_shape(s, t).is_ok() && self.computes_same(s, t) {
                let x = self.piece(self.source.component(&s.dsts[0].place, dst.class, 0, false))?;
                found.extend(x.zip(0..));
            }
        }
        let mut at = 0;
        while let Some(&(x, k)) = found.get(at) {
            at += 1;
            for &(copy, to) in clones.copies.get(&x).into_iter().flatten() {
                let is_kept = self.keeps_shared(clones, copy);
                if is_kept && self.is_computed(copy) && !found.contains(&(to, k)) {
                    found.push((to, k));
                }
            }
        }
        for l in to.clone() {
            self.here.overwrite_target(l);
        }
        for (x, k) in found {
            self.here.add(to.start + k, x);
        }
        Ok(())
    }

    /// Returns true if no lane has written the shared values of an instruction since the lanes that are here have
    /// executed their definitions.
    fn keeps_shared(&self, clones: &Rematerialisations, instr: Instr) -> bool {
        if !clones.shared.contains(&instr) || left_out(Guard::RegistersSharedOnce) {
            return true;
        }
        let program = self.source.program;
        let data = &program.instrs[instr];
        let srcs = data.srcs.iter().filter_map(|src| Some((src.value()?, src.class)));
        let dsts = data.dsts.iter().filter_map(|dst| Some((dst.value()?, dst.class)));
        let mut shared = srcs.chain(dsts).filter(|(_, class)| class.file == RegFile::Shared);
        shared.all(|(value, _)| {
            let definition = self.in_source(program.values[value].instr);
            definition.is_some_and(|(block, _)| self.together.ran_last(block, self.block))
        })
    }

    fn computes_same(&self, s: &InstrData, t: &InstrData) -> bool {
        s.srcs.iter().zip(&t.srcs).all(|(a, b)| {
            if a.class != b.class || a.mask != b.mask || a.mods != b.mods {
                return false;
            }
            let (SrcOperand::Place(from), SrcOperand::Place(to)) = (&a.operand, &b.operand) else {
                return a.operand == b.operand;
            };
            let all = a.mask.components().map(|k| {
                let from = self.source.component(from, a.class, k, false).ok()?;
                let to = self.target.component(to, b.class, k, true).ok()?;
                Some(from.zip(to).all(|(x, l)| self.here.surely_has(l, x) || left_out(Guard::RegistersRecomputed)))
            });
            all.into_iter().all(|same| same == Some(true))
        })
    }

    /// Steps over an instruction of the source only: its results are held nowhere.
    pub(super) fn removed(&mut self, instr: Instr) -> Result<(), RegisterFailure> {
        let s = &self.source.program.instrs[instr];
        if !is_removable(s) && !matches!(s.opcode, Opcode::Input | Opcode::Nop) && !left_out(Guard::RegistersRemoved) {
            let what = format!("`{}` is missing", s.opcode.name());
            return Err(RegisterFailure::Changed { site: self.site(), what });
        }
        for dst in &s.dsts {
            for k in dst.mask.components() {
                for x in self.piece(self.source.component(&dst.place, dst.class, k, false))? {
                    self.here.overwrite_source(x);
                }
            }
        }
        Ok(())
    }
}

/// The sources that repetitions of an instruction read from results of earlier ones: the number of the earlier
/// repetition, of the later one, and of the source. An access by address may be to any register.
fn read_by_later(locations: &Locations<'_>, data: &InstrData) -> SmallVec<[(u32, u32, usize); 4]> {
    let mut found = SmallVec::new();
    let (Some(dst), false) = (data.dsts.first(), data.opcode == Opcode::Swz) else { return found };
    let pieces = |place: &Place, class: RegClass, k: u32| locations.component(place, class, k, false).ok();
    for earlier in dst.mask.components() {
        let to = pieces(&dst.place, dst.class, earlier);
        for later in earlier + 1..=u32::from(data.repeat) {
            for (slot, src) in data.srcs.iter().enumerate() {
                let Some(place) = src.place().filter(|_| src.class.file == dst.class.file) else { continue };
                let advances = src.flags.contains(OperandFlags::R);
                let overlaps = src.mask.components().filter(|&k| !advances || k == later).any(|k| {
                    let from = pieces(place, src.class, k);
                    from.zip(to.clone()).is_none_or(|(from, to)| from.start < to.end && to.start < from.end)
                });
                if overlaps {
                    found.push((earlier, later, slot));
                }
            }
        }
    }
    found
}

/// Returns true if an instruction reads whole vectors of which only the first register is named.
fn is_vector(data: &InstrData) -> bool {
    matches!(data.opcode.category(), Category::Texture | Category::Memory) || data.opcode == Opcode::End
}

/// The values that the target may rematerialise.
pub struct Rematerialisations {
    /// Pure instructions of the source, by their opcode and the first piece that they read.
    by_first: FxHashMap<(Opcode, Piece), Vec<Instr>>,
    /// Copies of each piece in the source: the instruction, and the destination.
    copies: FxHashMap<Piece, Vec<(Instr, Piece)>>,
    /// The instructions among them with shared values, which other lanes may write.
    shared: FxHashSet<Instr>,
}

impl Rematerialisations {
    /// Finds the values that may be rematerialised: those in SSA form whose operands cannot have changed since.
    fn new(source: &Locations<'_>) -> Self {
        let program = source.program;
        let mut clones =
            Self { by_first: FxHashMap::default(), copies: FxHashMap::default(), shared: FxHashSet::default() };
        let any =
            |which: fn(Opcode) -> bool| program.iter_instrs().any(|(_, instr)| which(program.instrs[instr].opcode));
        let writes = any(writes_constants);
        // Another rounding mode changes the result.
        if any(|opcode| opcode == Opcode::Setrm) {
            return clones;
        }
        let mut copies = Copies::new();
        let is_ssa = |place: &Place, class: RegClass, is_shared: &mut bool| match *place {
            Place::Value(_) => {
                *is_shared |= class.file == RegFile::Shared;
                true
            }
            Place::Assigned(..) => class.file == RegFile::General,
            _ => false,
        };
        for (_, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            let mut is_shared = false;
            let mut keeps = |src: &Src| match &src.operand {
                SrcOperand::Place(place) => is_ssa(place, src.class, &mut is_shared),
                SrcOperand::Const(_) => !writes,
                SrcOperand::Immediate(_) => true,
                SrcOperand::ConstRelative(_) | SrcOperand::Undef => false,
            };
            if !data.srcs.iter().all(|src| keeps(src) || left_out(Guard::RegistersKeeps))
                || !data.dsts.iter().all(|dst| is_ssa(&dst.place, dst.class, &mut is_shared))
            {
                continue;
            }
            if is_shared {
                clones.shared.insert(instr);
            }
            if is_pure(data) && data.dsts.len() == 1 {
                clones.by_first.entry((data.opcode, first(data, source))).or_default().push(instr);
            }
            copies.clear();
            if !matches!(append_moves(source, &[instr], &mut copies), Some(Ok(_))) {
                continue;
            }
            for &(to, from) in &copies {
                if let CopySource::Piece(from) = from {
                    clones.copies.entry(from).or_default().push((instr, to));
                }
            }
        }
        clones
    }

    fn candidates(&self, t: &InstrData, target: &Locations<'_>, here: &CurrentFacts) -> SmallVec<[Instr; 8]> {
        let l = first(t, target);
        let of = |x: Piece| self.by_first.get(&(t.opcode, x)).into_iter().flatten().copied();
        if l == Piece::MAX { of(l).collect() } else { here.values_of(l).flat_map(of).collect() }
    }
}

/// The first piece that an instruction reads; the largest number if it reads none.
fn first(data: &InstrData, locations: &Locations<'_>) -> Piece {
    let read = data.srcs.iter().find_map(|src| Some((src.place()?, src.class)));
    let piece = read.and_then(|(place, class)| locations.component(place, class, 0, false).ok());
    piece.map_or(Piece::MAX, |piece| piece.start)
}

#[cfg(test)]
mod tests {
    use super::super::prove;
    use ir3_compiler::target::Target;

    const SOURCE: &str = "// {stage=fragment}\nblock1 {\n\
        \t0001:0000:000: \t_meta:in ssa_1 (wrmask=0x3) // {input=barycentric_pixel}\n\
        \t0002:0000:000: \t_meta:tex_prefetch ssa_2 (wrmask=0xf), ssa_1 (wrmask=0x3), tex=1, samp=1, input_offset=4 // {type=f32}\n\
        \t0003:0000:000: \tbary.f ssa_3, imm[0.000000,0,0x0], ssa_1 (wrmask=0x3)\n\
        \t0004:0000:000: \t_meta:split ssa_4, ssa_2 (wrmask=0xf), off=1\n\
        \t0005:0000:000: \tend ssa_4 (0)\n}";
    const BARY: &str = "\t0003:0000:000: \tbary.f ssa_3, imm[0.000000,0,0x0], ssa_1 (wrmask=0x3)\n";

    fn is_proved(source: &str, target: &str) -> bool {
        let [source, target] = [source, target].map(|text| ir3_compiler::ir3::text::read(text).unwrap());
        prove(&source, &target, &Target::default()).is_ok()
    }

    #[test]
    fn results_that_nothing_reads_may_be_left_out() {
        let narrower = SOURCE.replace("ssa_2 (wrmask=0xf)", "ssa_2 (wrmask=0x3)");
        assert!(is_proved(SOURCE, SOURCE));
        assert!(is_proved(SOURCE, &SOURCE.replace(BARY, "")));
        assert!(is_proved(SOURCE, &narrower));
        // Nothing may be added.
        assert!(!is_proved(&narrower, SOURCE));
        assert!(!is_proved(&SOURCE.replace(BARY, ""), SOURCE));
    }

    #[test]
    fn results_that_are_read_may_not_be_left_out() {
        let reads = SOURCE.replace("end ssa_4 (0)", "end ssa_4 (0), ssa_3 (1)");
        assert!(is_proved(&reads, &reads));
        assert!(!is_proved(&reads, &reads.replace(BARY, "").replace("ssa_3 (1)", "ssa_4 (1)")));
        let last = SOURCE.replace("off=1", "off=3");
        let other = SOURCE.replace("ssa_2 (wrmask=0xf)", "ssa_2 (wrmask=0x3)");
        assert!(is_proved(&last, &last));
        assert!(!is_proved(&last, &other));
    }
}
