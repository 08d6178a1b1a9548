//! Generates a sketch: ifs, loops, exits from several of them at once, and operations on values that lanes share.
//!
//! Every loop counts its iterations, and every back edge tests the counter, so programs terminate.

use super::change;
use super::sketch::{Reg, Sketch, SketchBlock, SketchOp, SketchOperand, Terminator, Vote};
use ir3_semantics::support::random::Random;

/// A block before the layout is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label(usize);

/// A scope that lanes may leave early.
#[derive(Clone, Copy)]
enum Scope {
    /// An arm of an if: lanes leave to the block after the if.
    Arm { after: Label },
    /// A loop: lanes leave to the block after it, or continue at the block that tests for another iteration.
    Loop { after: Label, again: Label },
}

struct Grower<'a> {
    random: &'a mut Random,
    /// The block of each label; successors are labels.
    blocks: Vec<SketchBlock>,
    /// The labels in layout order.
    order: Vec<Label>,
    current: Label,
    scopes: Vec<Scope>,
    depth: usize,
    /// The greatest nesting depth of loops so far.
    loops: usize,
    /// The statements that are left.
    budget: usize,
}

/// Generates a random sketch.
pub(super) fn sketch(random: &mut Random) -> Sketch {
    let budget = 2 + random.below(5);
    let first = Label(0);
    let mut grower = Grower {
        random,
        blocks: Vec::new(),
        order: Vec::new(),
        current: first,
        scopes: Vec::new(),
        depth: 0,
        loops: 0,
        budget,
    };
    let begin = grower.label();
    grower.place(begin);
    Sketch::BEGINNING.into_iter().for_each(|op| grower.op(op));
    while grower.budget > 0 {
        grower.statement();
    }
    grower.finish()
}

impl Grower<'_> {
    fn label(&mut self) -> Label {
        self.blocks.push(SketchBlock { ops: Vec::new(), terminator: Terminator::End });
        Label(self.blocks.len() - 1)
    }

    /// Appends a block to the layout and continues in it.
    fn place(&mut self, label: Label) {
        self.order.push(label);
        self.current = label;
    }

    fn op(&mut self, op: SketchOp) {
        self.blocks[self.current.0].ops.push(op);
    }

    fn go(&mut self, to: Label) {
        self.blocks[self.current.0].terminator = Terminator::To(to.0);
    }

    fn go_if(&mut self, (vote, a, b): (Vote, Reg, SketchOperand), yes: Label, no: Label) {
        self.blocks[self.current.0].terminator = Terminator::If { vote, a, b, yes: yes.0, no: no.0 };
    }

    /// Returns a random branch condition: mostly the lane's number, otherwise a computed value.
    fn test(&mut self) -> (Vote, Reg, SketchOperand) {
        let vote = match self.random.below(12) {
            0 => Vote::Any,
            1 => Vote::All,
            _ => Vote::Own,
        };
        let few = SketchOperand::Number(1 + self.random.below(3) as u8);
        let (a, b) = match self.random.below(10) {
            0..=5 => (Reg::FEW, few),
            6 if self.depth > 0 => (Reg::counter(self.random.below(self.depth)), SketchOperand::Reg(Reg::FEW)),
            7 if self.depth > 0 => (Reg::counter(self.random.below(self.depth)), few),
            8 => (Reg::SHARED[self.random.below(2)], SketchOperand::Reg(Reg::OWN[0])),
            _ => (Reg::FEW, SketchOperand::Reg(Reg::OWN[self.random.below(3)])),
        };
        (vote, a, b)
    }

    fn ops(&mut self) {
        for _ in 0..self.random.below(3) {
            let op = self.random_op();
            self.op(op);
        }
    }

    fn random_op(&mut self) -> SketchOp {
        let random = &mut *self.random;
        let own = Reg::OWN[random.below(3)];
        let other = Reg::OWN[random.below(3)];
        let shared = Reg::SHARED[random.below(2)];
        let number = SketchOperand::Number(1 + random.below(4) as u8);
        let at = [Reg::ZERO, Reg::ZERO, Reg::FEW, Reg::LANE][random.below(4)];
        match random.below(27) {
            0..=2 => SketchOp::Move { to: own, from: number },
            3..=6 => SketchOp::Move { to: shared, from: number },
            7..=11 => SketchOp::Move { to: own, from: SketchOperand::Reg(shared) },
            12 => SketchOp::Move { to: shared, from: SketchOperand::Reg(own) },
            13 => SketchOp::Add { to: own, a: own, b: number },
            14 => SketchOp::Add { to: own, a: own, b: SketchOperand::Reg(other) },
            15 => SketchOp::Add { to: own, a: own, b: SketchOperand::Reg(shared) },
            16 => SketchOp::Add { to: shared, a: shared, b: number },
            17 => SketchOp::First { to: shared, from: own },
            18 => SketchOp::Ballot { to: shared, from: own, number: random.below(8) as u8 },
            19..=22 => SketchOp::Store { at, value: own },
            23 | 24 => SketchOp::Load { to: own, at },
            25 => {
                let (demote, a) = (random.chance(30), if random.chance(50) { Reg::FEW } else { own });
                SketchOp::Kill { demote, a, number: 1 + random.below(2) as u8 }
            }
            _ => SketchOp::Count { to: own, at, value: other },
        }
    }

    fn statement(&mut self) {
        self.budget = self.budget.saturating_sub(1);
        self.ops();
        match self.random.below(10) {
            0..=3 => self.choose(),
            4..=7 if self.depth < 3 => self.repeat(),
            _ if !self.scopes.is_empty() => self.leave(),
            _ => self.choose(),
        }
        self.ops();
    }

    fn statements(&mut self) {
        self.ops();
        while self.budget > 0 && self.random.chance(55) {
            self.statement();
        }
    }

    /// Appends an if, with one arm or two, in any order.
    fn choose(&mut self) {
        let (yes, after) = (self.label(), self.label());
        let no = if self.random.chance(60) { self.label() } else { after };
        let test = self.test();
        self.go_if(test, yes, no);
        let mut arms = if no == after { vec![yes] } else { vec![yes, no] };
        self.random.shuffle(&mut arms);
        for arm in arms {
            self.place(arm);
            self.scopes.push(Scope::Arm { after });
            self.statements();
            self.scopes.pop();
            self.go(after);
        }
        self.place(after);
    }

    /// Appends a loop that tests its counter at the beginning or at the end.
    fn repeat(&mut self) {
        let [header, again, after] = [self.label(), self.label(), self.label()];
        let counter = Reg::counter(self.depth);
        // All lanes run the same number of iterations, or some lanes run more than others.
        let most = if self.random.chance(50) { SketchOperand::Reg(Reg::FEW) } else { SketchOperand::Number(3) };
        self.op(SketchOp::Move { to: counter, from: SketchOperand::Number(0) });
        self.go(header);
        self.place(header);
        self.depth += 1;
        self.loops = self.loops.max(self.depth);
        self.scopes.push(Scope::Loop { after, again });
        let first = self.random.chance(50);
        let next = SketchOp::Add { to: counter, a: counter, b: SketchOperand::Number(1) };
        if first {
            self.ops();
            let inside = self.label();
            self.go_if((Vote::Own, counter, most), inside, after);
            self.place(inside);
            self.op(next);
        }
        self.statements();
        self.scopes.pop();
        self.go(again);
        self.place(again);
        if first {
            self.go(header);
        } else {
            self.op(next);
            self.go_if((Vote::Own, counter, most), header, after);
        }
        self.depth -= 1;
        self.place(after);
    }

    /// Lets some lanes leave a scope around the current block.
    fn leave(&mut self) {
        let scope = self.scopes[self.random.below(self.scopes.len())];
        let to = match scope {
            Scope::Loop { again, .. } if self.random.chance(30) => again,
            Scope::Arm { after } | Scope::Loop { after, .. } => after,
        };
        let next = self.label();
        let test = self.test();
        if self.random.chance(50) {
            self.go_if(test, to, next);
        } else {
            self.go_if(test, next, to);
        }
        self.place(next);
    }

    /// Stores each lane's registers, and replaces labels by block numbers.
    fn finish(mut self) -> Sketch {
        for (at, value) in Reg::OUT.into_iter().zip(Reg::OWN) {
            let and = match self.random.below(4) {
                0 => Some(Reg::SHARED[self.random.below(2)]),
                1 if self.loops > 0 => Some(Reg::counter(self.random.below(self.loops))),
                _ => None,
            };
            if let Some(and) = and {
                self.op(SketchOp::Add { to: value, a: value, b: SketchOperand::Reg(and) });
            }
            self.op(SketchOp::Store { at, value });
        }
        if self.random.chance(70) {
            self.thread();
        }
        let place = |label: usize| self.order.iter().position(|&placed| placed == Label(label)).unwrap_or(0);
        let mut blocks: Vec<SketchBlock> = self.order.iter().map(|label| self.blocks[label.0].clone()).collect();
        blocks.iter_mut().for_each(|part| part.terminator.renumber(place));
        let mut sketch = Sketch(blocks);
        if self.random.chance(60) {
            for _ in 0..1 + self.random.below(6) {
                change::another_order(&mut sketch, self.random);
            }
        }
        sketch
    }

    /// Removes empty blocks: edges lead to their successor instead.
    fn thread(&mut self) {
        let mut i = 1;
        while i < self.order.len() {
            let label = self.order[i].0;
            i += 1;
            let Terminator::To(next) = self.blocks[label].terminator else { continue };
            // The two arms of an if must stay different blocks.
            let has_edge = |from: &SketchBlock, to: usize| from.terminator.successors().any(|target| target == to);
            let mut placed = self.order.iter().map(|from| &self.blocks[from.0]);
            let joins = placed.any(|from| has_edge(from, label) && has_edge(from, next));
            if next == label || !self.blocks[label].ops.is_empty() || joins {
                continue;
            }
            self.blocks.iter_mut().for_each(|part| part.terminator.renumber(|to| if to == label { next } else { to }));
            self.order.remove(i - 1);
            i = 1;
        }
    }
}
