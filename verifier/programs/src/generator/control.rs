//! Control flow: ifs with phis, and loops that terminate.
//!
//! Every loop counts its iterations: its header has a phi that is incremented on each back edge, and the loop is left
//! when the counter reaches its limit, with any other exits. Limits shrink with nesting, so the number of
//! iterations of a whole program is bounded by construction.

use super::config::CONFIG;
use ir3_compiler::nir::{Block, Def, IntrinsicOp, JumpKind, Op, Stage};

use super::Generator;
use super::choices::Choices;

/// A loop under construction.
pub(super) struct LoopFrame {
    /// The header's phis: value, width, components.
    phis: Vec<(Def, u8, u8)>,
    /// The counter of the next iteration.
    next: Def,
    /// The phis after the loop: width, and one source for each exit so far.
    exits: Vec<(u8, Vec<(Block, Def)>)>,
    /// The nesting depth at the start of the body.
    depth: usize,
    /// If the loop has a continue construct: for each phi of the header, the values that reach the construct.
    construct: Option<Vec<Vec<(Block, Def)>>>,
    /// If this condition holds at the end of an iteration, lanes end.
    last: Option<Def>,
    /// The counter of a loop in this one: another iteration may begin with it.
    inner: Option<Def>,
}

/// The greatest nesting depth of ifs and loops.
pub(super) const MAX_DEPTH: usize = 5;

impl<C: Choices> Generator<'_, C> {
    /// Returns a scalar of `bits`; defines one if none exists.
    pub(super) fn value(&mut self, bits: u8) -> Def {
        if let Some(def) = self.pool.scalar(self.c, bits) {
            let detours = if self.pool.only_uniform { 0 } else { self.swarm.detours };
            return if detours != 0 && self.c.chance(detours) { self.through_array(def, bits) } else { def };
        }
        if bits == 1 {
            let a = self.value(32);
            let zero = self.b.constant(32, 0);
            return self.b.alu(Op::Ine, &[a, zero]);
        }
        self.some_constant(bits)
    }

    /// A source of a phi: where there are uniform values, often one of these, so that the phi or the copy that it
    /// becomes is in a shared register, too.
    fn phi_source(&mut self, bits: u8) -> Def {
        if bits == 32
            && self.weights.uniform > 0
            && self.c.chance(CONFIG.uniform_phi_source)
            && let Some(uniform) = self.pool.uniform(self.c)
        {
            return uniform;
        }
        self.component_of_vector(bits).unwrap_or_else(|| self.value(bits))
    }

    fn phi_width(&mut self) -> u8 {
        if self.c.chance(self.style.half_phis) {
            return 16;
        }
        if self.weights.operation != 0 && self.c.chance(CONFIG.phi_of_8_bits) {
            return 8;
        }
        match self.c.below(16) {
            0 | 1 => 16,
            2 => 1,
            3 if self.weights.int64 > 8 => 64,
            _ => 32,
        }
    }

    /// An if with phis after it.
    pub(super) fn branch(&mut self, budget: u32) {
        if self.b.depth() >= MAX_DEPTH {
            return;
        }
        if self.c.chance(self.style.uniform_branches) {
            let condition = self.uniform_comparison();
            return self.branch_between(condition, budget);
        }
        if self.weights.operation != 0 && self.c.chance(CONFIG.constant_branch) {
            let condition = self.some_constant(1);
            return self.branch_between(condition, budget);
        }
        if self.c.chance(CONFIG.quad_branch)
            && let Some(condition) = self.quad_condition()
        {
            self.divergence += 1;
            self.branch_between(condition, budget);
            self.divergence -= 1;
            return;
        }
        let condition = self.condition();
        self.branch_on(condition, budget);
    }

    /// Like [`branch`](Self::branch), on the given condition.
    pub(super) fn branch_on(&mut self, condition: Def, budget: u32) {
        if self.b.depth() >= MAX_DEPTH {
            return;
        }
        self.divergence += 1;
        self.quads += 1;
        self.branch_between(condition, budget);
        self.divergence -= 1;
        self.quads -= 1;
    }

    /// A branch with one arm: the value of the arm, or another one of 32 bits.
    pub(super) fn one_arm(&mut self, condition: Def, other: Def, arm: impl FnOnce(&mut Self) -> Def) -> Def {
        let ends = self.arms(condition, arm, |_| other);
        self.joined(32, ends)
    }

    /// A branch that may separate lanes: the results of both arms, with the blocks at their ends. Values of an arm are
    /// not read after it.
    pub(super) fn arms<T>(
        &mut self,
        condition: Def,
        then: impl FnOnce(&mut Self) -> T,
        otherwise: impl FnOnce(&mut Self) -> T,
    ) -> [(Block, T); 2] {
        self.divergence += 1;
        self.quads += 1;
        self.b.begin_if(condition);
        let mark = self.pool.mark();
        let first = then(self);
        let first = (self.b.current_block(), first);
        self.pool.release(mark);
        self.b.begin_else();
        let second = otherwise(self);
        let second = (self.b.current_block(), second);
        self.pool.release(mark);
        self.b.end_if();
        self.divergence -= 1;
        self.quads -= 1;
        [first, second]
    }

    /// The phi after a branch.
    pub(super) fn joined(&mut self, bits: u8, ends: [(Block, Def); 2]) -> Def {
        let phi = self.b.phi(1, bits);
        ends.into_iter().for_each(|(block, value)| self.b.set_phi_src(phi, block, value));
        phi
    }

    /// Like [`branch_on`](Self::branch_on); the condition is the same in all lanes, or the arms count as divergent
    /// already.
    fn branch_between(&mut self, condition: Def, budget: u32) {
        let count = 1 + self.c.below(self.style.phis);
        let mut widths: Vec<u8> = (0..count).map(|_| self.phi_width()).collect();
        // Values from before the branch that one arm hands on in another order: a cycle of copies where their registers
        // are the same.
        let mut turned = Vec::new();
        if count > 1 && self.c.chance(self.style.permutations) {
            widths.fill(self.c.pick(&[32, 32, 16]));
            turned = (0..count).map(|_| self.value(widths[0])).collect();
        }
        let has_vector = self.weights.operation != 0 && self.c.chance(CONFIG.vector_phi);
        let vector = has_vector.then(|| (self.c.pick(&[32, 32, 16, 64, 8]), 2 + self.c.below(3) as u8));

        self.b.begin_if(condition);
        let mark = self.pool.mark();
        self.uniform_arm();
        self.region(budget / 2);
        let jumped = self.maybe_jump();
        let mut then = (!jumped).then(|| self.arm(mark, &widths));
        let first = vector.filter(|_| !jumped).map(|(bits, components)| self.any_vector(bits, components));
        self.pool.release(mark);

        self.b.begin_else();
        self.uniform_arm();
        if self.c.chance(CONFIG.other_arm) {
            self.region(budget / 2);
        }
        let mut otherwise = self.arm(mark, &widths);
        let second = vector.map(|(bits, components)| self.any_vector(bits, components));
        self.pool.release(mark);
        self.b.end_if();
        if let (Some((_, values)), [first, rest @ ..]) = (&mut then, &turned[..]) {
            // The first phi still gets a value that the arm computes.
            let by = 1 + self.c.below(rest.len().max(1));
            for (i, &value) in rest.iter().enumerate() {
                values[i + 1] = value;
                otherwise.1[i + 1] = rest[(i + by) % rest.len()];
            }
            otherwise.1[0] = *first;
        }

        for (i, &bits) in widths.iter().enumerate() {
            let phi = self.b.phi(1, bits);
            if let Some((block, values)) = &then {
                self.b.set_phi_src(phi, *block, values[i]);
            }
            self.b.set_phi_src(phi, otherwise.0, otherwise.1[i]);
            self.define_seen(phi, CONFIG.witnessed_phi);
        }
        if let (Some((bits, components)), Some(second)) = (vector, second) {
            let phi = self.b.phi(components, bits);
            if let (Some((block, _)), Some(first)) = (&then, first) {
                self.b.set_phi_src(phi, *block, first);
            }
            self.b.set_phi_src(phi, otherwise.0, second);
            self.define_seen(phi, CONFIG.witnessed_phi);
        }
    }

    /// The last block of an arm and its sources for the phis. The first source combines the values of the arm that have
    /// no reader.
    fn arm(&mut self, mark: super::pool::Mark, widths: &[u8]) -> (Block, Vec<Def>) {
        let unread = self.pool.take_unread(mark, 8);
        let folded = self.fold(&unread);
        let values = widths
            .iter()
            .enumerate()
            .map(|(i, &bits)| match folded {
                Some(folded) if i == 0 && bits == 32 => folded,
                Some(folded) if i == 0 && bits == 16 => self.b.alu(Op::U2u16, &[folded]),
                _ => {
                    if self.c.chance(CONFIG.undefined_phi_source) && bits != 1 {
                        self.b.undef(1, bits)
                    } else {
                        self.phi_source(bits)
                    }
                }
            })
            .collect();
        (self.b.current_block(), values)
    }

    /// Ends an arm with `break` or `continue`, if it is in a loop.
    fn maybe_jump(&mut self) -> bool {
        if self.loops.is_empty() || !self.c.chance(CONFIG.jump_of_arm) {
            return false;
        }
        if self.c.chance(CONFIG.break_of_arm) {
            self.leave_loop(None)
        } else {
            self.continue_loop()
        }
        true
    }

    /// `break`, with a source for each phi after the loop: `first`, of 32 bits, for the first phi of that width.
    pub(super) fn leave_loop(&mut self, mut first: Option<Def>) {
        let block = self.b.current_block();
        let Some(frame) = self.loops.last() else { return };
        let widths: Vec<u8> = frame.exits.iter().map(|e| e.0).collect();
        let values: Vec<Def> = widths
            .iter()
            .map(|&bits| match first.take_if(|_| bits == 32) {
                Some(first) => first,
                None => self.phi_source(bits),
            })
            .collect();
        if let Some(frame) = self.loops.last_mut() {
            for (exit, value) in frame.exits.iter_mut().zip(values) {
                exit.1.push((block, value));
            }
        }
        self.b.jump(JumpKind::Break);
    }

    /// Adds the sources of the header's phis for a back edge from here, or the values that reach the continue
    /// construct.
    fn close_iteration(&mut self) {
        let block = self.b.current_block();
        let Some(frame) = self.loops.last() else { return };
        let (phis, next) = (frame.phis.clone(), frame.next);
        let inner = frame.inner.filter(|_| self.weights.operation != 0);
        if let Some(last) = frame.last {
            self.b.intrinsic(IntrinsicOp::TerminateIf, 0, 0, &[last], []);
        }
        let rotate = self.c.chance(self.style.permutations);
        let step = 1 + self.c.below(phis.len());
        for (i, &(phi, bits, _)) in phis.iter().enumerate() {
            let value = match (i, inner) {
                (0, _) => next,
                _ if rotate => self.rotated(&phis, i, step),
                (_, Some(inner)) if bits == 32 && self.c.chance(CONFIG.inner_counter_carried) => inner,
                _ => self.component_of_vector(bits).unwrap_or_else(|| self.value(bits)),
            };
            match self.loops.last_mut().and_then(|frame| frame.construct.as_mut()) {
                Some(construct) => construct[i].push((block, value)),
                None => self.b.set_phi_src(phi, block, value),
            }
        }
    }

    /// Sometimes, in programs of all operations, a component of a vector: values that one instruction has written
    /// together are used separately.
    fn component_of_vector(&mut self, bits: u8) -> Option<Def> {
        if self.weights.operation == 0 || !self.c.chance(CONFIG.carried_component) {
            return None;
        }
        let vector = self.pool.vector(self.c, Some(bits))?;
        let component = self.c.below(vector.components.into()) as u8;
        Some(self.b.channel(vector.def, component))
    }

    /// Conditions on uniform values, computed in each iteration and used by branches after the loop: lanes that have
    /// left it keep the condition of their last iteration, while others continue.
    fn loop_carried_queries(&mut self) -> Vec<Def> {
        if self.weights.operation == 0 || self.pool.only_uniform || !self.c.chance(CONFIG.carried_query) {
            return Vec::new();
        }
        let count = self.c.pick(&[1, 2, 6]);
        let questions = (0..count).map(|_| {
            let (shared, other) = (self.fresh_uniform(), self.value(32));
            let op = self.c.pick(&[Op::Ilt, Op::Ult, Op::Ieq]);
            self.b.alu(op, &[shared, other])
        });
        questions.collect()
    }

    /// The continue construct of the innermost loop, if it has one: it runs before each further iteration.
    fn continue_construct(&mut self) {
        let Some(frame) = self.loops.last_mut() else { return };
        let Some(construct) = frame.construct.take() else { return };
        let (phis, next) = (frame.phis.clone(), frame.next);
        self.b.begin_continuing();
        // The phis of the construct first.
        let handed_on: Vec<Def> = (phis.iter().zip(&construct))
            .map(|(&(_, bits, _), sources)| {
                let phi = self.b.phi(1, bits);
                sources.iter().for_each(|&(block, value)| self.b.set_phi_src(phi, block, value));
                phi
            })
            .collect();
        let changes = self.c.chance(CONFIG.changed_by_construct);
        for (i, (&(phi, bits, _), mut value)) in phis.iter().zip(handed_on).enumerate() {
            if changes && bits == 32 && i > 0 {
                value = self.b.alu(Op::Iadd, &[value, next]);
            }
            self.b.set_phi_src(phi, self.b.current_block(), value);
        }
    }

    /// The initial value of a phi of a loop: any value, or a constant, which is uniform.
    fn first_iteration(&mut self, bits: u8, constant: bool) -> Def {
        if constant && bits != 1 { self.some_constant(bits) } else { self.value(bits) }
    }

    /// The source of phi `i` on a back edge on which the phis are permuted: one of the next phis of its width.
    fn rotated(&mut self, phis: &[(Def, u8, u8)], i: usize, step: usize) -> Def {
        let same: Vec<usize> = (1..phis.len()).filter(|&other| phis[other].1 == phis[i].1).collect();
        let at = same.iter().position(|&other| other == i).unwrap_or(0);
        let phi = phis[same[(at + step) % same.len()]].0;
        self.pool.mark_used(phi);
        phi
    }

    pub(super) fn continue_loop(&mut self) {
        self.close_iteration();
        self.b.jump(JumpKind::Continue);
    }

    /// The end of a loop that some lanes continue from inside and that its last block leaves. An operation across lanes
    /// observes which lanes reach that block together.
    fn last_block_leaves(&mut self, budget: u32) {
        let any = self.value(32);
        let lane = self.lane.unwrap_or(any);
        let spread = self.b.alu(Op::Ixor, &[any, lane]);
        let (one, zero) = (self.b.constant(32, 1), self.b.constant(32, 0));
        let bit = self.b.alu(Op::Iand, &[spread, one]);
        let condition = self.b.alu(Op::Ine, &[bit, zero]);
        self.b.begin_if(condition);
        self.continue_loop();
        self.b.end_if();
        let inner = self.pool.mark();
        self.subgroup();
        self.region(budget / 4);
        let unread = self.pool.take_unread(inner, 8);
        let folded = self.fold(&unread);
        self.leave_loop(folded);
    }

    /// Operations on values of a loop's header after the loop: a value that is uniform in the loop differs here between
    /// lanes that left in different iterations.
    fn after_loop(&mut self, header: &[Def]) {
        for &def in header {
            let other = self.pool.uniform(self.c).filter(|_| self.c.even());
            let other = other.unwrap_or_else(|| self.some_constant(32));
            let op = self.c.pick(&[Op::Iadd, Op::Imul, Op::Ixor, Op::Ishl, Op::Umax]);
            let result = self.b.alu(op, &[def, other]);
            self.define_seen(result, 256);
        }
    }

    /// True if the lanes of a loop end where its limit is reached, and do not go on after it.
    fn ends_lanes_of_loop(&mut self) -> bool {
        self.b.shader().stage == Stage::Fragment
            && !self.computed_varyings
            && !self.pool.only_uniform
            && self.loops.len() == 1
            && self.c.chance(self.style.kills / 2)
    }

    /// A place where some lanes leave the loop or begin the next iteration, perhaps after some code of their own, and
    /// code for the others.
    fn exit(&mut self, budget: u32) {
        let condition = self.condition();
        self.b.begin_if(condition);
        let mark = self.pool.mark();
        let mut first = None;
        if self.style.exits > 1 && self.c.chance(CONFIG.region_before_exit) && self.b.depth() < MAX_DEPTH {
            self.region(budget);
            let unread = self.pool.take_unread(mark, 8);
            first = self.fold(&unread);
        }
        if self.style.exits > 1 && self.c.chance(CONFIG.continue_instead) {
            self.continue_loop();
        } else {
            self.leave_loop(first);
        }
        self.pool.release(mark);
        self.b.end_if();
        if self.style.exits > 1 {
            self.region(budget);
        }
    }

    /// A loop of at most a few iterations.
    pub(super) fn repeat(&mut self, budget: u32) {
        let nesting = self.loops.len();
        if nesting >= 3 || self.b.depth() >= MAX_DEPTH {
            return;
        }
        self.kept_before_loop();
        let trips = 1 + self.c.below([5, 3, 2][nesting]) as u64;
        let zero = self.b.constant(32, 0);
        let one = self.b.constant(32, 1);
        // A limit that differs between lanes makes the loop divergent.
        let limit = if self.c.chance(CONFIG.divergent_limit) {
            let spread = self.value(32);
            let mask = self.b.constant(32, 3);
            self.b.alu(Op::Iand, &[spread, mask])
        } else {
            self.b.constant(32, trips)
        };
        let count = 1 + self.c.below(self.style.phis);
        let mut widths: Vec<u8> = (0..count).map(|_| self.phi_width()).collect();
        if count > 3 && self.c.even() {
            widths.fill(self.c.pick(&[32, 32, 16]));
        }
        let constant = self.c.chance(CONFIG.constant_start);
        let initial: Vec<Def> = widths.iter().map(|&bits| self.first_iteration(bits, constant)).collect();
        let exit_count = 1 + self.c.below(2);
        let exits = (0..exit_count).map(|_| (self.phi_width(), Vec::new())).collect();

        let before = self.b.current_block();
        self.b.begin_loop();
        let outer = self.pool.mark();
        let counter = self.b.phi(1, 32);
        self.b.set_phi_src(counter, before, zero);
        let mut phis = vec![(counter, 32, 1)];
        for (&bits, &value) in widths.iter().zip(&initial) {
            let phi = self.b.phi(1, bits);
            self.b.set_phi_src(phi, before, value);
            phis.push((phi, bits, 1));
        }
        for &(phi, ..) in &phis {
            self.define_seen(phi, CONFIG.witnessed_phi);
        }
        let next = self.b.alu(Op::Iadd, &[counter, one]);
        self.define(next);
        let queries = self.loop_carried_queries();
        let done = self.b.alu(Op::Uge, &[counter, limit]);
        let depth = self.b.depth();
        let has_construct = self.weights.operation != 0 && self.c.chance(CONFIG.continue_construct);
        let construct = has_construct.then(|| vec![Vec::new(); phis.len()]);
        self.loops.push(LoopFrame { phis, next, exits, depth, construct, last: None, inner: None });
        // Values of the header dominate the code after the loop as well.
        let header = [counter, next];

        self.divergence += 1;
        self.quads += 1;
        if self.ends_lanes_of_loop() {
            // The lanes end here, or at the end of the iteration, and none continues after the loop from there.
            match self.loops.last_mut() {
                Some(frame) if self.c.chance(CONFIG.ends_with_iteration) => frame.last = Some(done),
                _ => _ = self.b.intrinsic(IntrinsicOp::TerminateIf, 0, 0, &[done], []),
            }
            self.killed = true;
            let condition = self.condition();
            self.b.begin_if(condition);
        } else {
            self.b.begin_if(done);
        }
        self.leave_loop(None);
        self.b.end_if();
        self.kept_in_loop();
        if self.c.chance(self.style.nests) {
            let depth = self.c.below(3);
            self.nest(depth);
        }
        self.region(budget);
        for _ in 0..self.c.below(self.style.exits + 1) {
            if self.c.chance(CONFIG.loop_exit) || self.style.exits > 1 {
                self.exit(budget / 4);
            }
        }
        let unread = self.pool.take_unread(outer, 8);
        if let Some(folded) = self.fold(&unread) {
            self.define(folded);
        }
        debug_assert_eq!(self.b.depth(), self.loops.last().map_or(0, |l| l.depth));
        if self.c.chance(CONFIG.last_block_leaves) {
            self.last_block_leaves(budget);
        } else {
            self.close_iteration();
        }
        self.continue_construct();
        self.b.end_loop();
        self.divergence -= 1;
        self.quads -= 1;
        self.pool.release(outer);

        if let Some(frame) = self.loops.pop() {
            for (bits, sources) in frame.exits {
                let phi = self.b.phi(1, bits);
                for (block, value) in sources {
                    self.b.set_phi_src(phi, block, value);
                }
                self.define_seen(phi, CONFIG.witnessed_phi);
            }
        }
        let depth = self.b.depth();
        if let Some(around) = self.loops.last_mut().filter(|around| around.depth == depth) {
            around.inner = Some(next);
        }
        if self.c.chance(CONFIG.readers_of_header) {
            for def in header {
                self.define(def);
            }
        }
        if self.weights.operation != 0 && self.c.chance(CONFIG.after_loop) {
            self.after_loop(&header);
        }
        queries.iter().for_each(|&query| self.branch_on(query, 10));
    }
}
