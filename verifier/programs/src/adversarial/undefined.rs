//! Pairs about undefined values: branches on them, and stores before and after such branches. Effects before the first
//! undefined behaviour still count.

use super::PairPlan;
use super::shader::Shader;
use ir3_compiler::nir::{Def, Op};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;

/// The lanes in which a condition or an address is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    /// The value is undefined in lanes with an odd number.
    Odd,
    /// The value is undefined in lanes with an even number.
    Even,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statement {
    /// Stores a value in a row that no other statement stores to; some bits of it are undefined if `undefined` is set.
    Store { place: u8, value: u8, undefined: bool },
    /// A branch, with a store in one arm.
    Branch { when: When, place: u8, value: u8 },
    /// Stores at an address that is undefined in the lanes of `when`.
    Lost { when: When },
}

/// A list of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UndefinedValues {
    list: Vec<Statement>,
}

fn when(random: &mut Random) -> When {
    [When::Always, When::Odd, When::Even, When::Never][random.below(4)]
}

impl UndefinedValues {
    /// The stores of defined values before anything undefined happens, as pairs of row and value.
    fn certain(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        let happens = self.list.iter().take_while(|statement| match statement {
            Statement::Store { .. } => true,
            Statement::Branch { when, .. } | Statement::Lost { when } => *when == When::Never,
        });
        happens.filter_map(|statement| match *statement {
            Statement::Store { place, value, undefined: false } => Some((place, value)),
            _ => None,
        })
    }
}

impl PairPlan for UndefinedValues {
    fn random(random: &mut Random) -> Self {
        let count = 2 + random.below(4);
        let list = (0..count as u8)
            .map(|place| {
                let value = random.below(4) as u8;
                match random.below(5) {
                    0..=2 => Statement::Store { place, value, undefined: random.chance(20) },
                    3 => Statement::Branch { when: when(random), place, value },
                    _ if random.chance(40) => Statement::Lost { when: when(random) },
                    _ => Statement::Branch { when: when(random), place, value },
                }
            })
            .collect();
        Self { list }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let at = random.below(self.list.len());
        match (random.below(4), self.list[at]) {
            (0 | 1, Statement::Store { place, value, undefined }) => {
                self.list[at] = Statement::Store { place, value: value + 1, undefined };
                Some("another value")
            }
            (0, Statement::Branch { when, place, value }) => {
                self.list[at] = Statement::Branch { when, place, value: value + 1 };
                Some("another value in an arm")
            }
            (1, Statement::Branch { place, value, .. }) => {
                self.list[at] = Statement::Branch { when: When::Never, place, value };
                Some("a condition defined")
            }
            (2, statement) => {
                self.list.remove(at);
                Some(if matches!(statement, Statement::Store { .. }) { "a store removed" } else { "a branch removed" })
            }
            _ if at + 1 < self.list.len() => {
                self.list.swap(at, at + 1);
                Some("two statements swapped")
            }
            _ => None,
        }
    }

    /// Each row is stored to by one statement only.
    fn differs(&self, target: &Self) -> bool {
        let is_stored = |wanted: (u8, u8)| {
            target.list.iter().any(|statement| match *statement {
                Statement::Store { place, value, .. } => (place, value) == wanted,
                _ => false,
            })
        };
        !self.certain().all(is_stored)
    }

    fn program(&self, _: &Target) -> Option<Snapshot> {
        let mut s = Shader::compute(64);
        let lane = s.lane();
        let (from, to) = (s.number(0), s.number(1));
        let loaded = s.load(from, lane);
        let odd = s.with(Op::Iand, lane, 1);
        let is_odd = s.with(Op::Ieq, odd, 1);
        let place = |s: &mut Shader, place: u8| {
            let row = s.number(u64::from(place) * 64);
            s.b.alu(Op::Iadd, &[row, lane])
        };
        let undefined_when = |s: &mut Shader, when: When, value: Def, bits: u8| match when {
            When::Never => value,
            When::Always => s.b.undef(1, bits),
            When::Odd | When::Even => {
                let undefined = s.b.undef(1, bits);
                let (yes, no) = if when == When::Odd { (undefined, value) } else { (value, undefined) };
                s.b.alu(Op::Bcsel, &[is_odd, yes, no])
            }
        };
        for statement in &self.list {
            match *statement {
                Statement::Store { place: at, value, undefined } => {
                    let mut value = s.with(Op::Iadd, loaded, value.into());
                    if undefined {
                        let any = s.b.undef(1, 32);
                        value = s.b.alu(Op::Ior, &[value, any]);
                    }
                    let at = place(&mut s, at);
                    s.store(to, at, value);
                }
                Statement::Branch { when, place: at, value } => {
                    let condition = s.with(Op::Ult, loaded, 1000);
                    let condition = undefined_when(&mut s, when, condition, 1);
                    s.b.begin_if(condition);
                    let value = s.number(value.into());
                    let at = place(&mut s, at);
                    s.store(to, at, value);
                    s.b.end_if();
                }
                Statement::Lost { when } => {
                    let at = place(&mut s, 15);
                    let at = undefined_when(&mut s, when, at, 32);
                    s.store(to, at, loaded);
                }
            }
        }
        s.finish()
    }
}
