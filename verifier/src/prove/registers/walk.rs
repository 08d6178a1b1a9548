//! A walk through the blocks of both programs, side by side, until no more is learnt.

use super::Proof;
use super::copies::Copies;
use super::facts::{Facts, Here, Side};
use super::failure::{Failure, Site};
use super::liveness::LiveIn;
use super::location::{Locations, Piece, Problem};
use super::operation::Clones;
use super::survey::Survey;
use super::wave::Wave;
use crate::semantics::assumptions;
use crate::semantics::header;
use crate::support::guards::{Guard, left_out};
use cranelift_entity::{EntityRef, SecondaryMap};
use fixedbitset::FixedBitSet;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::dominance::{Dominators, EdgeKind};
use ir3_compiler::ir3::{Block, Instr, Opcode, Program};
use ir3_compiler::target::Target;
use smallvec::SmallVec;
use std::cell::OnceCell;

/// Two programs, and where the walk has come to.
pub(super) struct Walk<'a> {
    pub source: Locations<'a>,
    pub target: Locations<'a>,
    pub here: Here,
    pub clones: OnceCell<Clones>,
    /// The first result that is not what it should be.
    pub suspect: Option<Failure>,
    /// Instructions that stand on both sides, and pieces of operands that were looked up.
    pub operations: u64,
    pub operands: u64,
    dominators: Dominators,
    /// Where each instruction of the source stands.
    places: SecondaryMap<Instr, Option<(Block, u32)>>,
    /// What is read in each block of the source and of the target, or behind it.
    live: [LiveIn; 2],
    /// Bytes of scratch memory that the shader has itself: nothing else may be there.
    pub own_scratch: u32,
    /// What is taken for granted.
    assumptions: Vec<&'static str>,
    block: Block,
    /// Position in the layout of the target.
    pub position: usize,
    /// How far both sides have come in the block.
    pub at: [usize; 2],
    /// What a step copies.
    pub copies: Copies,
    name: Option<&'static str>,
    /// Where the wave goes, in the source and in the target; nowhere where no lanes share anything.
    waves: [Wave; 2],
    /// What is known of what the wave has where it may leave a block: at its end, or where its last lane ends.
    ends: Known,
}

/// A way from a block of both programs to another, perhaps through one of the target alone.
#[derive(Clone, Copy)]
struct Edge {
    via: Option<Block>,
    to: Block,
    /// Which predecessor it is in the source and in the target.
    index: [usize; 2],
    /// Whether anything is copied on the way.
    copies: bool,
}

/// The ways out of each block.
type Edges = SecondaryMap<Block, SmallVec<[Edge; 2]>>;

/// What is known at blocks.
type Known = SecondaryMap<Block, Option<Facts>>;

impl<'a> Walk<'a> {
    pub fn new(source: &'a Program, target: &'a Program, machine: &Target) -> Self {
        let [s_survey, t_survey] = [source, target].map(Survey::new);
        let s = Locations::new(source, machine.merged_regs, s_survey.any_shared);
        let t = Locations::new(target, machine.merged_regs, t_survey.any_shared);
        let waves = match s_survey.any_shared || t_survey.any_shared {
            true => [source, target].map(Wave::new),
            false => Default::default(),
        };
        let mut places = SecondaryMap::new();
        places.resize(source.instrs.len());
        for &block in &source.layout {
            for (at, &instr) in source.blocks[block].instrs.iter().enumerate() {
                places[instr] = Some((block, at as u32));
            }
        }
        Self {
            here: Here::new(s.count, t.count, s.fixed),
            clones: OnceCell::new(),
            suspect: None,
            operations: 0,
            operands: 0,
            dominators: Dominators::new(source, EdgeKind::Logical),
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
            waves,
            ends: Known::new(),
            source: s,
            target: t,
        }
    }

    /// Walks until nothing changes. Facts only ever become fewer, so what cannot be shown on the way cannot be shown at the end.
    pub fn run(mut self) -> Result<Proof, Failure> {
        let edges = self.edges()?;
        self.inputs_are_apart()?;
        let mut starts = Known::new();
        starts[self.target.program.entry()] = Some(Facts::entry(self.source.fixed));
        // Whether a block has to be walked: less is known in front of it than when it was walked last.
        let mut open = SecondaryMap::<Block, bool>::new();
        open[self.target.program.entry()] = true;
        let (mut walked, mut changed) = (0, true);
        while std::mem::take(&mut changed) {
            for (position, &block) in self.target.program.layout.iter().enumerate() {
                let Some(start) = &mut starts[block] else { continue };
                if self.any_shared() {
                    open[block] |= self.forget_what_others_do(block, &edges, start);
                }
                if !std::mem::take(&mut open[block]) {
                    continue;
                }
                (self.block, self.position, self.at, self.name) = (block, position, [0; 2], None);
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

    /// All inputs of the target are in their registers before the first instruction, so no two of them are in one.
    fn inputs_are_apart(&self) -> Result<(), Failure> {
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

    /// The wave may go from here, in a block, to wherever lanes wait.
    pub(super) fn may_leave(&mut self) {
        let block = self.block;
        if self.any_shared() {
            let mut end = self.ends[block].take();
            self.arrive(&mut end, |walk, l, x| walk.is_of_wave(l, x));
            self.ends[block] = end;
        }
    }

    fn any_shared(&self) -> bool {
        self.source.any_shared || self.target.any_shared
    }

    fn is_common(&self, block: Block) -> bool {
        let source = self.source.program;
        block.index() < source.blocks.len() && self.dominators.is_reachable(block)
    }

    /// The edges of the source out of each block, as the target has them; those that copy something come last.
    fn edges(&mut self) -> Result<Edges, Failure> {
        let (source, target) = (self.source.program, self.target.program);
        let mut edges = Edges::new();
        edges.resize(source.blocks.len());
        let wrong = |what: &str| Failure::Changed { site: Site { block: 0, instr: None }, what: what.to_owned() };
        if let Some(difference) = header::difference(ProgramRef::Ir3(source), ProgramRef::Ir3(target))
            && !left_out(Guard::RegistersHeader)
        {
            return Err(wrong(&difference.to_string()));
        }
        // Outputs and words of the constant file are told by their numbers here.
        let numbered = |program: &'a Program| (&program.outputs, &program.consts);
        if (numbered(source) != numbered(target) || source.scratch_size > target.scratch_size)
            && !left_out(Guard::RegistersHeader)
        {
            return Err(wrong("the outputs, the constant file or the scratch memory is laid out otherwise"));
        }
        // Lanes that wait for each other do so by the order of blocks.
        let common = |program: &'a Program| program.layout.iter().filter(|&&block| self.is_common(block));
        if !common(source).eq(common(target)) && !left_out(Guard::RegistersBlockOrder) {
            return Err(wrong("the blocks stand in another order"));
        }
        if source.entry() != target.entry() {
            return Err(wrong("the first block is another one"));
        }
        let mut places = SecondaryMap::<Block, Option<usize>>::new();
        (0..).zip(&target.layout).for_each(|(place, &block)| places[block] = Some(place));
        for &from in source.layout.iter().filter(|&&block| self.dominators.is_reachable(block)) {
            let Some(place) = places[from] else { return Err(wrong(&format!("{from} is missing"))) };
            for slot in 0..2 {
                let (wanted, found) = (source.blocks[from].successors[slot], target.blocks[from].successors[slot]);
                let (Some(to), Some(found)) = (wanted, found) else {
                    if wanted == found {
                        continue;
                    }
                    return Err(wrong(&format!("{from} has other successors")));
                };
                let is_new =
                    found != to && !(found.index() < source.blocks.len() && self.dominators.is_reachable(found));
                let via = is_new.then_some(found);
                if via.map_or(found, |via| target.blocks[via].successors[0].unwrap_or(via)) != to
                    && !left_out(Guard::RegistersSuccessors)
                {
                    return Err(wrong(&format!("{from} has other successors")));
                }
                if let Some(via) = via
                    && self.is_late(place, places[via], places[to])
                    && !left_out(Guard::RegistersEdgeBlock)
                {
                    return Err(wrong(&format!("{via} stands where other lanes go to {to} before those in it")));
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
                    return Err(wrong(&format!("{to} does not know its predecessor {from}")));
                };
                let has_phis = |program: &Program| {
                    let is_phi = |&instr: &Instr| program.instrs[instr].opcode == Opcode::Phi;
                    program.blocks[to].instrs.first().is_some_and(is_phi)
                };
                let copies = via.is_some() || has_phis(source) || has_phis(target);
                edges[from].push(Edge { via, to, index: [s, t], copies });
            }
            edges[from].sort_by_key(|edge| edge.copies);
        }
        Ok(edges)
    }

    /// Whether lanes that are in a block between two others may come to the second one later than they would without it. They do not if it stands
    /// in front of that one, or, where they go back, in front of all others that lanes may wait in.
    fn is_late(&self, from: usize, via: Option<usize>, to: Option<usize>) -> bool {
        let (Some(via), Some(to)) = (via, to) else { return true };
        let between = || self.target.program.layout.get(from + 1..via).unwrap_or_default();
        if from < to { via > to } else { between().iter().any(|&block| self.is_common(block)) }
    }

    /// From the end of a block along its edges, to the starts of others.
    fn leave(
        &mut self,
        edges: &[Edge],
        starts: &mut Known,
        open: &mut SecondaryMap<Block, bool>,
    ) -> Result<(), Failure> {
        let end = (edges.len() > 1 && edges.iter().all(|edge| edge.copies)).then(|| self.here.save(|_, _| true));
        for edge in edges {
            if let Some(end) = &end {
                self.here.load(end);
            }
            if edge.copies {
                self.along(edge)?;
            }
            if starts[edge.to].is_none() {
                self.live[0].goto(edge.to, &self.source);
                self.live[1].goto(edge.to, &self.target);
            }
            open[edge.to] |= self.arrive(&mut starts[edge.to], Self::may_be_asked_for);
        }
        Ok(())
    }

    /// Adds what is known here to what is known of a point on other ways. Returns whether that is less now.
    fn arrive(&self, known: &mut Option<Facts>, keep: impl Fn(&Self, Piece, Piece) -> bool) -> bool {
        match known {
            Some(facts) => facts.meet(&self.here),
            None => {
                *known = Some(self.here.save(|l, x| keep(self, l, x)));
                true
            }
        }
    }

    /// Whether a fact may be asked for behind the start of the block that an edge leads to.
    fn may_be_asked_for(&self, l: Piece, x: Piece) -> bool {
        if self.target.is_thing(l) {
            self.live[1].is_live(l)
        } else {
            !self.source.is_thing(x) || self.live[0].is_live(x)
        }
    }

    /// Whether a fact is about what all lanes of a wave have.
    fn is_of_wave(&self, l: Piece, x: Piece) -> bool {
        (self.here.is_target_literal(l) || self.target.is_shared(l))
            && (self.here.is_literal(x) || self.source.is_shared(x))
    }

    /// Between the end of one block and the start of the next other lanes may have been at work, and have written to shared
    /// registers. What these hold of other shared ones is what it was at the end of every block that the wave may come
    /// from; what one lane has of its own is known only where the wave came straight from there. (What is behind the edges
    /// that lanes take, phis among it, has been met already.) Returns whether something is forgotten.
    fn forget_what_others_do(&self, block: Block, edges: &Edges, start: &mut Facts) -> bool {
        let mut preds: SmallVec<[Block; 4]> = self.waves[0].comes_from[block].iter().copied().collect();
        self.comes_from_in_target(block, &mut preds);
        let straight = preds.len() <= 1;
        let ends_within = &self.waves[0].ends_within;
        preds.retain(|pred| edges[*pred].iter().all(|edge| edge.to != block) || ends_within[*pred]);
        let ends: SmallVec<[&Facts; 4]> = preds.iter().filter_map(|&pred| self.ends[pred].as_ref()).collect();
        start.retain(|l, x| {
            // Who has it: a lane, or the wave. A literal is the same for all.
            let holder = (!self.here.is_target_literal(l)).then(|| self.target.is_shared(l));
            let owner = (!self.here.is_literal(x)).then(|| self.source.is_shared(x));
            match (holder, owner) {
                (Some(false), Some(false) | None) | (None, Some(false) | None) => true,
                (Some(true) | None, Some(true) | None) => {
                    ends.iter().all(|end| end.allows(l, x)) || left_out(Guard::RegistersWaveEnds)
                }
                (Some(_), Some(_)) => straight || left_out(Guard::RegistersWaveStraight),
            }
        })
    }

    /// Adds the blocks of both programs that a wave may come from in the target. Those that the target alone has write no
    /// shared register.
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

    /// The copies on an edge are made, and phis have their values.
    fn along(&mut self, edge: &Edge) -> Result<(), Failure> {
        if let Some(via) = edge.via {
            self.walk_edge_block(via)?;
        }
        self.phis(Side::Target, edge.to, edge.index[1])?;
        self.phis(Side::Source, edge.to, edge.index[0])?;
        self.here.forget_lane();
        Ok(())
    }

    fn run_block(&mut self, block: Block) -> Result<(), Failure> {
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
                    if let Some(count) = self.moves(Side::Target, t)? {
                        self.at[1] += count;
                        self.at[0] += self.moves(Side::Source, s)?.unwrap_or(0);
                    } else {
                        self.operation(first, its)?;
                        self.at[0] += 1;
                        self.at[1] += 1;
                    }
                }
                // What the target alone has. It still finds what the source is about to write over.
                (_, Some(its)) if !self.is_ahead(block, its) => match self.moves(Side::Target, t)? {
                    Some(count) => self.at[1] += count,
                    None => {
                        self.clone_of(its)?;
                        self.at[1] += 1;
                    }
                },
                // What the source alone has.
                (Some(first), _) => match self.moves(Side::Source, s)? {
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

    /// Where the source has an instruction.
    pub(super) fn in_source(&self, instr: Instr) -> Option<(Block, u32)> {
        self.places.get(instr).copied().flatten()
    }

    /// Whether the source has an instruction further on in the block.
    fn is_ahead(&self, block: Block, instr: Instr) -> bool {
        self.in_source(instr).is_some_and(|(its, at)| its == block && at as usize > self.at[0])
    }

    /// Whether the source has come past a definition, on every way.
    pub(super) fn is_computed(&self, instr: Instr) -> bool {
        self.in_source(instr).is_some_and(|(block, at)| {
            let is_before = if block == self.block {
                (at as usize) < self.at[0]
            } else {
                self.dominators.dominates(block, self.block)
            };
            // Said twice: what was known of a value ends where it is defined, and no use comes before that.
            is_before || left_out(Guard::RegistersSourceWrites)
        })
    }

    pub(super) fn source_name(&self, x: Piece) -> String {
        match self.here.literal_of(x) {
            Some(literal) => literal.to_string(),
            None => self.source.name(x),
        }
    }

    pub(super) fn site(&self) -> Site {
        Site { block: self.position, instr: self.name.map(|name| (self.at[1], name)) }
    }

    pub(super) fn place(&self, what: &str) -> Failure {
        Failure::Place { site: self.site(), what: what.to_owned() }
    }

    pub(super) fn unsupported(&self, what: &str) -> Failure {
        Failure::Unsupported { site: self.site(), what: what.to_owned() }
    }

    pub(super) fn piece<T>(&self, result: Result<T, Problem>) -> Result<T, Failure> {
        result.map_err(|what| Failure::Place { site: self.site(), what })
    }
}

/// What is taken for granted: of the source, and where the texts say nothing.
fn assumptions(program: &Program, target: &Program, survey: &Survey) -> Vec<&'static str> {
    // Nothing is computed here, so a size that neither says may be any.
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
