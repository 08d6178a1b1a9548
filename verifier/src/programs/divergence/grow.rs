//! Grows a program: ifs, loops, ways out of several of them, and operations on what lanes have in common.
//!
//! Every loop counts, and every way back asks the counter, so programs end.

use super::change;
use super::sketch::{Op, Operand, Part, Reg, Sketch, Vote, Way};
use crate::support::random::Random;

/// A block that is not in its place yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label(usize);

/// A scope that lanes may leave early.
#[derive(Clone, Copy)]
enum Scope {
    /// An arm of an if: behind the if.
    Arm { behind: Label },
    /// A loop: behind it, or to where it asks for another iteration.
    Loop { behind: Label, again: Label },
}

struct Grower<'a> {
    random: &'a mut Random,
    /// Of each label the block, with labels for numbers.
    parts: Vec<Part>,
    /// The labels in the order of their places.
    order: Vec<Label>,
    current: Label,
    scopes: Vec<Scope>,
    depth: usize,
    /// Loops in loops that there were.
    loops: usize,
    /// Statements that are left.
    budget: usize,
}

/// A random program.
pub(super) fn sketch(random: &mut Random) -> Sketch {
    let budget = 2 + random.below(5);
    let first = Label(0);
    let mut grower = Grower {
        random,
        parts: Vec::new(),
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
        self.parts.push(Part { ops: Vec::new(), way: Way::End });
        Label(self.parts.len() - 1)
    }

    /// A block takes its place: what comes next is in it.
    fn place(&mut self, label: Label) {
        self.order.push(label);
        self.current = label;
    }

    fn op(&mut self, op: Op) {
        self.parts[self.current.0].ops.push(op);
    }

    fn go(&mut self, to: Label) {
        self.parts[self.current.0].way = Way::To(to.0);
    }

    fn go_if(&mut self, (vote, a, b): (Vote, Reg, Operand), yes: Label, no: Label) {
        self.parts[self.current.0].way = Way::If { vote, a, b, yes: yes.0, no: no.0 };
    }

    /// What lanes decide by: their number, mostly, or something that they have calculated.
    fn test(&mut self) -> (Vote, Reg, Operand) {
        let vote = match self.random.below(12) {
            0 => Vote::Any,
            1 => Vote::All,
            _ => Vote::Own,
        };
        let few = Operand::Number(1 + self.random.below(3) as u8);
        let (a, b) = match self.random.below(10) {
            0..=5 => (Reg::FEW, few),
            6 if self.depth > 0 => (Reg::counter(self.random.below(self.depth)), Operand::Reg(Reg::FEW)),
            7 if self.depth > 0 => (Reg::counter(self.random.below(self.depth)), few),
            8 => (Reg::SHARED[self.random.below(2)], Operand::Reg(Reg::OWN[0])),
            _ => (Reg::FEW, Operand::Reg(Reg::OWN[self.random.below(3)])),
        };
        (vote, a, b)
    }

    fn ops(&mut self) {
        for _ in 0..self.random.below(3) {
            let op = self.random_op();
            self.op(op);
        }
    }

    fn random_op(&mut self) -> Op {
        let random = &mut *self.random;
        let own = Reg::OWN[random.below(3)];
        let other = Reg::OWN[random.below(3)];
        let shared = Reg::SHARED[random.below(2)];
        let number = Operand::Number(1 + random.below(4) as u8);
        let at = [Reg::ZERO, Reg::ZERO, Reg::FEW, Reg::LANE][random.below(4)];
        match random.below(27) {
            0..=2 => Op::Move { to: own, from: number },
            3..=6 => Op::Move { to: shared, from: number },
            7..=11 => Op::Move { to: own, from: Operand::Reg(shared) },
            12 => Op::Move { to: shared, from: Operand::Reg(own) },
            13 => Op::Add { to: own, a: own, b: number },
            14 => Op::Add { to: own, a: own, b: Operand::Reg(other) },
            15 => Op::Add { to: own, a: own, b: Operand::Reg(shared) },
            16 => Op::Add { to: shared, a: shared, b: number },
            17 => Op::First { to: shared, from: own },
            18 => Op::Ballot { to: shared, from: own, number: random.below(8) as u8 },
            19..=22 => Op::Store { at, value: own },
            23 | 24 => Op::Load { to: own, at },
            25 => {
                let (demote, a) = (random.chance(30), if random.chance(50) { Reg::FEW } else { own });
                Op::Kill { demote, a, number: 1 + random.below(2) as u8 }
            }
            _ => Op::Count { to: own, at, value: other },
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

    /// An if, with one arm or two, in any order.
    fn choose(&mut self) {
        let (yes, behind) = (self.label(), self.label());
        let no = if self.random.chance(60) { self.label() } else { behind };
        let test = self.test();
        self.go_if(test, yes, no);
        let mut arms = if no == behind { vec![yes] } else { vec![yes, no] };
        self.random.shuffle(&mut arms);
        for arm in arms {
            self.place(arm);
            self.scopes.push(Scope::Arm { behind });
            self.statements();
            self.scopes.pop();
            self.go(behind);
        }
        self.place(behind);
    }

    /// A loop that asks at its beginning, or at its end.
    fn repeat(&mut self) {
        let [header, again, behind] = [self.label(), self.label(), self.label()];
        let counter = Reg::counter(self.depth);
        // All lanes run as many iterations, or some more than others.
        let most = if self.random.chance(50) { Operand::Reg(Reg::FEW) } else { Operand::Number(3) };
        self.op(Op::Move { to: counter, from: Operand::Number(0) });
        self.go(header);
        self.place(header);
        self.depth += 1;
        self.loops = self.loops.max(self.depth);
        self.scopes.push(Scope::Loop { behind, again });
        let first = self.random.chance(50);
        let next = Op::Add { to: counter, a: counter, b: Operand::Number(1) };
        if first {
            self.ops();
            let inside = self.label();
            self.go_if((Vote::Own, counter, most), inside, behind);
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
            self.go_if((Vote::Own, counter, most), header, behind);
        }
        self.depth -= 1;
        self.place(behind);
    }

    /// Some lanes leave what they are in.
    fn leave(&mut self) {
        let scope = self.scopes[self.random.below(self.scopes.len())];
        let to = match scope {
            Scope::Loop { again, .. } if self.random.chance(30) => again,
            Scope::Arm { behind } | Scope::Loop { behind, .. } => behind,
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

    /// What lanes have becomes seen, and the blocks get their numbers.
    fn finish(mut self) -> Sketch {
        for (at, value) in Reg::OUT.into_iter().zip(Reg::OWN) {
            let and = match self.random.below(4) {
                0 => Some(Reg::SHARED[self.random.below(2)]),
                1 if self.loops > 0 => Some(Reg::counter(self.random.below(self.loops))),
                _ => None,
            };
            if let Some(and) = and {
                self.op(Op::Add { to: value, a: value, b: Operand::Reg(and) });
            }
            self.op(Op::Store { at, value });
        }
        if self.random.chance(70) {
            self.thread();
        }
        let place = |label: usize| self.order.iter().position(|&placed| placed == Label(label)).unwrap_or(0);
        let mut parts: Vec<Part> = self.order.iter().map(|label| self.parts[label.0].clone()).collect();
        parts.iter_mut().for_each(|part| part.way.renumber(place));
        let mut sketch = Sketch(parts);
        if self.random.chance(60) {
            for _ in 0..1 + self.random.below(6) {
                change::another_order(&mut sketch, self.random);
            }
        }
        sketch
    }

    /// Nobody goes to a block in which nothing happens, but to the one behind it.
    fn thread(&mut self) {
        let mut i = 1;
        while i < self.order.len() {
            let label = self.order[i].0;
            i += 1;
            let Way::To(next) = self.parts[label].way else { continue };
            // An if whose arms are one is none.
            let leads = |from: &Part, to: usize| from.way.targets().any(|target| target == to);
            let mut placed = self.order.iter().map(|from| &self.parts[from.0]);
            let joins = placed.any(|from| leads(from, label) && leads(from, next));
            if next == label || !self.parts[label].ops.is_empty() || joins {
                continue;
            }
            self.parts.iter_mut().for_each(|part| part.way.renumber(|to| if to == label { next } else { to }));
            self.order.remove(i - 1);
            i = 1;
        }
    }
}
