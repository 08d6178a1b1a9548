//! The fixed-point iteration: steps through the blocks of both programs in parallel, until no facts change.

use super::Proof;
use super::copies::Copies;
use super::effects::writes_constants;
use super::facts::{CurrentFacts, FactSet, FactSide};
use super::failure::{InstrSite, RegisterFailure};
use super::held;
use super::liveness::LiveIn;
use super::location::{LocationProblem, Locations, Piece};
use super::operation::Rematerialisations;
use super::survey::Survey;
use super::uniform::Together;
use super::wave::{self, WaveFlow};
use cranelift_entity::{EntityRef, SecondaryMap};
use fixedbitset::FixedBitSet;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::{Block, Instr, Opcode, Program};
use ir3_compiler::target::Target;
use ir3_semantics::assumptions;
use ir3_semantics::header;
use ir3_semantics::support::guards::{Guard, left_out};
use smallvec::SmallVec;
use std::cell::OnceCell;

/// The state of the analysis of two programs.
pub(super) struct LockstepWalk<'a> {
    pub source: Locations<'a>,
    pub target: Locations<'a>,
    pub here: CurrentFacts,
    pub clones: OnceCell<Rematerialisations>,
    /// The first wrong result.
    pub suspect: Option<RegisterFailure>,
    /// Number of steps over instructions of both programs, and of operand pieces that were checked.
    pub operations: u64,
    pub operands: u64,
    pub(super) together: Together,
    /// The position of each instruction of the source.
    places: SecondaryMap<Instr, Option<(Block, u32)>>,
    /// The entities that are live into each block of the source and of the target.
    live: [LiveIn; 2],
    /// Bytes of scratch memory that belong to the shader: no slot may overlap them.
    pub own_scratch: u32,
    /// The assumptions that are used.
    assumptions: Vec<&'static str>,
    pub(super) block: Block,
    /// Position in the layout of the target.
    pub position: usize,
    /// Position in the block, in the source and in the target.
    pub at: [usize; 2],
    /// The copies of a step.
    pub copies: Copies,
    name: Option<&'static str>,
    /// True if a program writes state that the wave has once: shared registers, `a1.x`, the constant file.
    pub(super) has_wave_state: bool,
    /// The control flow of the wave, in the source and in the target; empty without such state.
    waves: [WaveFlow; 2],
    /// The blocks before which lanes may wait while others write the constant file.
    rewritten: SecondaryMap<Block, bool>,
    /// Facts about the state of the wave where it may leave a block: at its end, or where its last lane ends.
    ends: BlockFacts,
}

/// An edge between two blocks that both programs have, perhaps through a block that only the target has.
#[derive(Clone, Copy)]
struct PairedEdge {
    via: Option<Block>,
    to: Block,
    /// The index of the predecessor in the source and in the target.
    index: [usize; 2],
    /// True if there are copies on the edge.
    copies: bool,
}

/// The maximum number of facts at the start of a block, for a small program …
const FACTS: usize = 2048;

/// … and for each piece of the target. If many registers hold one value, each of them is in a fact with each of them,
/// and copies of all would take time that grows with the cube of their number.
const FACTS_PER_PIECE: usize = 4;

/// The edges out of each block.
type PairedEdges = SecondaryMap<Block, SmallVec<[PairedEdge; 2]>>;

/// The facts at blocks.
type BlockFacts = SecondaryMap<Block, Option<FactSet>>;

impl<'a> LockstepWalk<'a> {
    pub fn new(source: &'a Program, target: &'a Program, machine: &Target) -> Self {
        let [s_survey, t_survey] = [source, target].map(Survey::new);
        let s = Locations::new(source, machine.merged_regs);
        let t = Locations::new(target, machine.merged_regs);
        let both = [&s_survey, &t_survey];
        let has_wave_state = both.iter().any(|survey| survey.any_shared || survey.writes_constants);
        let together = Together::new(source);
        let waves: [WaveFlow; 2] = match has_wave_state {
            true => [WaveFlow::new(source, &together), WaveFlow::new(target, &Together::new(target))],
            false => Default::default(),
        };
        let mut rewritten = SecondaryMap::new();
        for (program, wave) in [source, target].into_iter().zip(&waves) {
            find_rewritten(program, wave, &mut rewritten);
        }
        let mut places = SecondaryMap::new();
        places.resize(source.instrs.len());
        for &block in &source.layout {
            for (at, &instr) in source.blocks[block].instrs.iter().enumerate() {
                places[instr] = Some((block, at as u32));
            }
        }
        Self {
            here: CurrentFacts::new(s.count, t.count, s.fixed),
            clones: OnceCell::new(),
            suspect: None,
            operations: 0,
            operands: 0,
            together,
            places,
            own_scratch: s_survey.own_scratch,
            assumptions: assumptions(source, target, &s_survey),
            live: [
                LiveIn::new(source, s_survey.uses, &waves[0].comes_from),
                LiveIn::new(target, t_survey.uses, &waves[1].comes_from),
            ],
            block: target.entry(),
            position: 0,
            at: [0; 2],
            copies: Copies::new(),
            name: None,
            has_wave_state,
            waves,
            rewritten,
            ends: BlockFacts::new(),
            source: s,
            target: t,
        }
    }

    /// Iterates until nothing changes. Facts only ever become fewer, so an obligation that fails in some iteration
    /// fails at the end.
    ///
    /// # Errors
    /// The first use that may read another value, or an instruction that the checker does not support.
    pub fn run(mut self) -> Result<Proof, RegisterFailure> {
        let edges = self.edges()?;
        self.inputs_are_apart()?;
        held::check(&self.source, &self.waves[0])?;
        held::check(&self.target, &self.waves[1])?;
        let mut starts = BlockFacts::new();
        starts[self.target.program.entry()] = Some(FactSet::entry(self.source.fixed));
        // Blocks to visit: their entry has fewer facts than at the last visit.
        let mut open = SecondaryMap::<Block, bool>::new();
        open[self.target.program.entry()] = true;
        let (mut walked, mut changed) = (0, true);
        while std::mem::take(&mut changed) {
            for (position, &block) in self.target.program.layout.iter().enumerate() {
                let Some(start) = &mut starts[block] else { continue };
                if self.has_wave_state {
                    open[block] |= self.forget_other_lanes(block, &edges, start);
                }
                if !std::mem::take(&mut open[block]) {
                    continue;
                }
                (self.block, self.position, self.at, self.name) = (block, position, [0; 2], None);
                if start.len() > FACTS + FACTS_PER_PIECE * self.target.count as usize {
                    let site = InstrSite { block: position, instr: None };
                    let what = format!("{} pairs of registers with equal values", start.len());
                    return Err(RegisterFailure::Unsupported { site, what });
                }
                self.here.load(start);
                self.run_block(block)?;
                (walked, changed) = (walked + 1, true);
                self.here.forget_lane();
                self.may_leave();
                self.leave(&edges[block], &mut starts, &mut open)?;
            }
        }
        let Self { operations, operands, assumptions, .. } = self;
        Ok(Proof { operations, operands, blocks: walked, assumptions })
    }

    /// Checks that no two inputs of the target are in one register: all are written before the first instruction.
    fn inputs_are_apart(&self) -> Result<(), RegisterFailure> {
        let program = self.target.program;
        let mut taken = FixedBitSet::with_capacity(self.target.count as usize);
        for (_, instr) in program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode == Opcode::Input) {
            for dst in &program.instrs[instr].dsts {
                for k in dst.mask.components() {
                    let pieces = self.piece(self.target.component(&dst.place, dst.class, k, false))?;
                    let clash = pieces.clone().any(|piece| taken.contains(piece as usize));
                    if clash && !left_out(Guard::InputClash) {
                        return Err(self.place("two inputs are in one register"));
                    }
                    taken.insert_range(pieces.start as usize..pieces.end as usize);
                }
            }
        }
        Ok(())
    }

    /// Records that the wave may leave the block here for another one in which lanes wait.
    pub(super) fn may_leave(&mut self) {
        let block = self.block;
        if self.has_wave_state {
            let mut end = self.ends[block].take();
            self.arrive(&mut end, block, |walk, l, x| walk.is_of_wave(l, x));
            self.ends[block] = end;
        }
    }

    fn is_common(&self, block: Block) -> bool {
        let source = self.source.program;
        block.index() < source.blocks.len() && self.together.dominators.is_reachable(block)
    }

    /// The source's edges out of each block, as the target has them; those with copies come last.
    fn edges(&mut self) -> Result<PairedEdges, RegisterFailure> {
        let (source, target) = (self.source.program, self.target.program);
        let mut edges = PairedEdges::new();
        edges.resize(source.blocks.len());
        let wrong =
            |what: &str| RegisterFailure::Changed { site: InstrSite { block: 0, instr: None }, what: what.to_owned() };
        if let Some(difference) = header::difference(ProgramRef::Ir3(source), ProgramRef::Ir3(target))
            && !left_out(Guard::RegistersHeader)
        {
            return Err(wrong(&difference.to_string()));
        }
        // Outputs and words of the constant file are identified by their indices here.
        let numbered = |program: &'a Program| (&program.outputs, &program.consts);
        if (numbered(source) != numbered(target) || source.scratch_size > target.scratch_size)
            && !left_out(Guard::RegistersHeader)
        {
            return Err(wrong("the outputs, the constant file or the scratch memory is laid out otherwise"));
        }
        // The order of blocks decides which lanes wait for which.
        let common = |program: &'a Program| program.layout.iter().filter(|&&block| self.is_common(block));
        if !common(source).eq(common(target)) && !left_out(Guard::RegistersBlockOrder) {
            return Err(wrong("the blocks are in another order"));
        }
        if source.entry() != target.entry() {
            return Err(wrong("the first block is another one"));
        }
        let mut places = SecondaryMap::<Block, Option<usize>>::new();
        (0..).zip(&target.layout).for_each(|(place, &block)| places[block] = Some(place));
        for &from in source.layout.iter().filter(|&&block| self.together.dominators.is_reachable(block)) {
            let Some(place) = places[from] else { return Err(wrong(&format!("{from} is missing"))) };
            for slot in 0..2 {
                let (wanted, found) = (source.blocks[from].successors[slot], target.blocks[from].successors[slot]);
                let (Some(to), Some(found)) = (wanted, found) else {
                    if wanted == found {
                        continue;
                    }
                    return Err(wrong(&format!("{from} has other successors")));
                };
                let is_new = found != to
                    && !(found.index() < source.blocks.len() && self.together.dominators.is_reachable(found));
                let via = is_new.then_some(found);
                if via.map_or(found, |via| target.blocks[via].successors[0].unwrap_or(via)) != to
                    && !left_out(Guard::RegistersSuccessors)
                {
                    return Err(wrong(&format!("{from} has other successors")));
                }
                let other = target.blocks[from].successors[1 - slot].and_then(|other| places[other]);
                if let Some(via) = via
                    && self.is_late(place, places[via], places[to], other)
                    && !left_out(Guard::RegistersEdgeBlock)
                {
                    return Err(wrong(&format!("other lanes reach {to} before those in {via}")));
                }
                let nth = (0..slot).filter(|&slot| source.blocks[from].successors[slot] == Some(to)).count();
                let position =
                    |list: &[Block], block: Block, nth: usize| (0..list.len()).filter(|&at| list[at] == block).nth(nth);
                let in_source = position(&source.blocks[to].predecessors, from, nth);
                let in_target = match via {
                    Some(via) => position(&target.blocks[to].predecessors, via, 0),
                    None => position(&target.blocks[to].predecessors, from, nth),
                };
                let (Some(s), Some(t)) = (in_source, in_target) else {
                    return Err(wrong(&format!("{to} does not list its predecessor {from}")));
                };
                let has_phis = |program: &Program| {
                    let is_phi = |&instr: &Instr| program.instrs[instr].opcode == Opcode::Phi;
                    program.blocks[to].instrs.first().is_some_and(is_phi)
                };
                let copies = via.is_some() || has_phis(source) || has_phis(target);
                edges[from].push(PairedEdge { via, to, index: [s, t], copies });
            }
            edges[from].sort_by_key(|edge| edge.copies);
        }
        Ok(edges)
    }

    /// Returns true if lanes in a block between two others may reach the second one later than without it. They do not
    /// if it is before that one or, on a back edge, before all other blocks in which lanes may wait.
    /// `other` is the other block to which lanes go from `from`.
    fn is_late(&self, from: usize, via: Option<usize>, to: Option<usize>, other: Option<usize>) -> bool {
        let (Some(via), Some(to)) = (via, to) else { return true };
        let overtakes = other.is_some_and(|other| to < other && other < via);
        let between = || self.target.program.layout.get(from + 1..via).unwrap_or_default();
        if from < to { via > to } else { overtakes || between().iter().any(|&block| self.is_common(block)) }
    }

    /// Propagates the facts at the end of a block along its edges, to the starts of others.
    fn leave(
        &mut self,
        edges: &[PairedEdge],
        starts: &mut BlockFacts,
        open: &mut SecondaryMap<Block, bool>,
    ) -> Result<(), RegisterFailure> {
        let end = (edges.len() > 1 && edges.iter().all(|edge| edge.copies)).then(|| self.here.save(|_, _| true));
        for edge in edges {
            if let Some(end) = &end {
                self.here.load(end);
            }
            if edge.copies {
                self.along(edge)?;
            }
            self.live[0].goto(edge.to, &self.source);
            self.live[1].goto(edge.to, &self.target);
            open[edge.to] |= self.arrive(&mut starts[edge.to], edge.to, Self::may_be_queried);
        }
        Ok(())
    }

    /// Meets the facts of a point with those of the current path. Returns true if the point has fewer facts now.
    fn arrive(&self, known: &mut Option<FactSet>, block: Block, keep: impl Fn(&Self, Piece, Piece) -> bool) -> bool {
        match known {
            Some(facts) => facts.meet(&self.here, block, |l, x| keep(self, l, x)),
            None => {
                *known = Some(self.here.save(|l, x| keep(self, l, x)));
                true
            }
        }
    }

    /// Returns true if a fact may be queried after the start of the block that an edge leads to.
    fn may_be_queried(&self, l: Piece, x: Piece) -> bool {
        if self.target.is_tracked(l) {
            self.live[1].is_live(l)
        } else {
            !self.source.is_tracked(x) || self.live[0].is_live(x)
        }
    }

    /// Returns true if a fact is about a value that belongs to the wave.
    fn is_of_wave(&self, l: Piece, x: Piece) -> bool {
        (self.here.is_target_literal(l) || self.target.is_shared(l))
            && (self.here.is_literal(x) || self.source.is_shared(x))
    }

    /// Removes facts that other lanes may invalidate between the end of one block and the start of the next, by writing
    /// to shared registers or to the constant file. A fact between shared registers must have held at the end of every
    /// block from which the wave may come; a fact about a value of a lane remains only where the wave came directly
    /// from there. (The facts at the ends of lanes' edges, phis included, have been met already.) Returns true if any
    /// fact is removed.
    fn forget_other_lanes(&self, block: Block, edges: &PairedEdges, start: &mut FactSet) -> bool {
        let mut preds: SmallVec<[Block; 4]> = self.waves[0].comes_from[block].iter().copied().collect();
        self.comes_from_in_target(block, &mut preds);
        let straight = preds.len() <= 1;
        let ends_within = &self.waves[0].ends_within;
        preds.retain(|pred| edges[*pred].iter().all(|edge| edge.to != block) || ends_within[*pred]);
        let ends: SmallVec<[&FactSet; 4]> = preds.iter().filter_map(|&pred| self.ends[pred].as_ref()).collect();
        let is_shared = |x| self.source.is_shared(x);
        let is_less = start.retain(|l, x| {
            if self.rewritten[block] && self.here.is_of_constant(l, x) {
                return false;
            }
            // The owner of the value: a lane, or the wave. A literal is the same for all.
            let holder = (!self.here.is_target_literal(l)).then(|| self.target.is_shared(l));
            let owner = (!self.here.is_literal(x)).then(|| self.source.is_shared(x));
            match (holder, owner) {
                (Some(false), Some(false) | None) | (None, Some(false) | None) => true,
                (Some(true) | None, Some(true) | None) => {
                    ends.iter().all(|end| end.allows(l, x)) || left_out(Guard::RegistersWaveEnds)
                }
                (Some(_), Some(_)) => straight || left_out(Guard::RegistersWaveStraight),
            }
        });
        start.meet_wave(&ends, block, is_shared, |l, x| self.is_of_wave(l, x)) || is_less
    }

    /// Appends the blocks of both programs from which a wave may come in the target. Blocks that only the target has
    /// write no shared register.
    fn comes_from_in_target(&self, block: Block, found: &mut SmallVec<[Block; 4]>) {
        let mut new: SmallVec<[Block; 4]> = SmallVec::from_elem(block, 1);
        let mut at = 0;
        while let Some(&block) = new.get(at) {
            at += 1;
            for &pred in &self.waves[1].comes_from[block] {
                if self.is_common(pred) {
                    if !found.contains(&pred) {
                        found.push(pred);
                    }
                } else if !new.contains(&pred) {
                    new.push(pred);
                }
            }
        }
    }

    /// Steps over the copies of an edge, and the phis.
    fn along(&mut self, edge: &PairedEdge) -> Result<(), RegisterFailure> {
        if let Some(via) = edge.via {
            self.walk_edge_block(via)?;
        }
        self.phis(FactSide::Target, edge.to, edge.index[1])?;
        self.phis(FactSide::Source, edge.to, edge.index[0])?;
        self.here.forget_lane();
        Ok(())
    }

    fn run_block(&mut self, block: Block) -> Result<(), RegisterFailure> {
        let list = |program: &'a Program| {
            let all = &program.blocks[block].instrs;
            let phis = all.iter().take_while(|&&instr| program.instrs[instr].opcode == Opcode::Phi).count();
            (all, phis)
        };
        let (source, target) = (self.source.program, self.target.program);
        let ((s_list, i), (t_list, j)) = (list(source), list(target));
        self.at = [i, j];
        loop {
            let (s, t) = (&s_list[self.at[0]..], &t_list[self.at[1]..]);
            self.name = t.first().map(|&t| target.instrs[t].opcode.name());
            match (s.first().copied(), t.first().copied()) {
                (None, None) => return Ok(()),
                (Some(first), Some(its)) if first == its => {
                    if let Some(count) = self.moves(FactSide::Target, t)? {
                        self.at[1] += count;
                        self.at[0] += self.moves(FactSide::Source, s)?.unwrap_or(0);
                    } else {
                        self.operation(block, first, its)?;
                        self.at[0] += 1;
                        self.at[1] += 1;
                    }
                }
                // An instruction of the target only. It still sees the registers that the source is about to overwrite.
                (_, Some(its)) if !self.is_ahead(block, its) => match self.moves(FactSide::Target, t)? {
                    Some(count) => self.at[1] += count,
                    None => {
                        self.rematerialised(its)?;
                        self.at[1] += 1;
                    }
                },
                // An instruction of the source only.
                (Some(first), _) => match self.moves(FactSide::Source, s)? {
                    Some(count) => self.at[0] += count,
                    None => {
                        self.removed(first)?;
                        self.at[0] += 1;
                    }
                },
                (None, Some(_)) => unreachable!("the target is ahead of a source that has ended"),
            }
        }
    }

    /// The position of an instruction in the source.
    pub(super) fn in_source(&self, instr: Instr) -> Option<(Block, u32)> {
        self.places.get(instr).copied().flatten()
    }

    /// Returns true if the source has an instruction further on in the block.
    fn is_ahead(&self, block: Block, instr: Instr) -> bool {
        self.in_source(instr).is_some_and(|(its, at)| its == block && at as usize > self.at[0])
    }

    /// Returns true if the source has executed a definition, on every path.
    pub(super) fn is_computed(&self, instr: Instr) -> bool {
        self.in_source(instr).is_some_and(|(block, at)| {
            let is_before = if block == self.block {
                (at as usize) < self.at[0]
            } else {
                self.together.dominators.dominates(block, self.block)
            };
            // Redundant: the facts about a value end at its definition, and no use comes before that.
            is_before || left_out(Guard::RegistersSourceWrites)
        })
    }

    pub(super) fn source_name(&self, x: Piece) -> String {
        match self.here.literal_of(x) {
            Some(literal) => literal.to_string(),
            None => self.source.name(x),
        }
    }

    pub(super) fn site(&self) -> InstrSite {
        InstrSite { block: self.position, instr: self.name.map(|name| (self.at[1], name)) }
    }

    pub(super) fn place(&self, what: &str) -> RegisterFailure {
        RegisterFailure::Place { site: self.site(), what: what.to_owned() }
    }

    pub(super) fn unsupported(&self, what: &str) -> RegisterFailure {
        RegisterFailure::Unsupported { site: self.site(), what: what.to_owned() }
    }

    pub(super) fn piece<T>(&self, result: Result<T, LocationProblem>) -> Result<T, RegisterFailure> {
        result.map_err(|what| RegisterFailure::Place { site: self.site(), what })
    }
}

/// Finds the blocks before which lanes may wait while others write the constant file.
fn find_rewritten(program: &Program, wave: &WaveFlow, found: &mut SecondaryMap<Block, bool>) {
    let writes = |&(_, instr): &(Block, Instr)| writes_constants(program.instrs[instr].opcode);
    let writers: SmallVec<[Block; 4]> = program.iter_instrs().filter(writes).map(|(block, _)| block).collect();
    if !writers.is_empty() {
        let waits = wave::waits_for(&wave.comes_from, program, &writers);
        program.layout.iter().for_each(|&block| found[block] |= waits[block]);
    }
}

/// The assumptions about the source, and about operands that the texts do not print.
fn assumptions(program: &Program, target: &Program, survey: &Survey) -> Vec<&'static str> {
    // Nothing is computed here, so a size that neither text states may be any.
    let neither = program.workgroup_size.is_none() && target.workgroup_size.is_none();
    let mut all = header::omitted_declarations(ProgramRef::Ir3(program), ProgramRef::Ir3(target));
    all.retain(|&name| name != assumptions::WORKGROUP_SIZE || !neither);
    if program.scratch_size > survey.own_scratch && survey.any_scratch {
        all.push(assumptions::OWN_SCRATCH);
    }
    if survey.any_relative {
        all.push(assumptions::ARRAY_BOUNDS);
    }
    all
}
