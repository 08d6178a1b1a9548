//! Programs of 64-bit sums: native ones, pairs of halves, sums that were written out with a comparison, and addresses
//! of memory among them; with the words of the sums in branches and loops. This is the input language of the scalar
//! backend for Gen7, and nothing else.

use super::config::CONFIG;
use super::scopes::Scopes;
use super::{Choices, Features, Generated, MAX_INSTRUCTIONS};
use ir3_compiler::nir::{AluType, Builder, Def, Index, IntrinsicOp, Op, Stage};

/// The kinds of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 32 bits.
    Word,
    /// 64 bits.
    Wide,
    /// A bool.
    Bool,
}

impl Kind {
    fn bits(self) -> u8 {
        match self {
            Self::Word => 32,
            Self::Wide => 64,
            Self::Bool => 1,
        }
    }
}

struct Generator<'a, C> {
    c: &'a mut C,
    b: Builder,
    /// The values that are available.
    values: Vec<(Kind, Def)>,
    limit: u32,
    features: Features,
}

const CONSTANTS: [u32; 7] = [0, 0, 1, 4, u32::MAX, 0x8000_0000, 0xffff_fffc];
const INTS: [Op; 10] =
    [Op::Iadd, Op::Iadd, Op::Isub, Op::Imul, Op::Iand, Op::Ior, Op::Ixor, Op::Ishl, Op::Ishr, Op::Ushr];
const COMPARES: [Op; 6] = [Op::Ult, Op::Uge, Op::Ilt, Op::Ige, Op::Ieq, Op::Ine];
const HALVES: [[Op; 2]; 3] = [
    [Op::Iadd64Split2Lo, Op::Iadd64Split2Hi],
    [Op::Iadd64Split3Lo, Op::Iadd64Split3Hi],
    [Op::Iadd64Split4Lo, Op::Iadd64Split4Hi],
];

/// Generates a program.
pub(super) fn generate<C: Choices>(c: &mut C, features: Features) -> Generated {
    // Most sums are few: small programs, more of them.
    let limit = (c.size() / 2).clamp(8, MAX_INSTRUCTIONS);
    let stage = if features.compute { Stage::Compute } else { Stage::Vertex };
    let mut g = Generator { c, b: Builder::new(stage), values: Vec::new(), limit, features };
    let lane = g.inputs();
    let mut statements = 0;
    while statements < 2 || !g.c.exhausted() && (g.b.function().instrs.len() as u32) < g.limit {
        g.statement(0);
        statements += 1;
    }
    g.outputs(lane);
    let mut shader = g.b.finish();
    shader.info.divergence_analysis_run = false;
    Generated { shader, undefined_values: 0 }
}

impl<C: Choices> Generator<'_, C> {
    fn add(&mut self, kind: Kind, def: Def) -> Def {
        self.values.push((kind, def));
        def
    }

    fn alu(&mut self, kind: Kind, op: Op, srcs: &[Def]) -> Def {
        let def = self.b.alu(op, srcs);
        self.add(kind, def)
    }

    /// Words of the invocation and of the constant file; the number of the invocation, of a compute shader.
    fn inputs(&mut self) -> Option<Def> {
        let zero = self.b.constant(32, 0);
        let components = |g: &mut Self, def: Def, count: u8| {
            (0..count).for_each(|component| {
                let word = g.b.channel(def, component);
                g.add(Kind::Word, word);
            });
        };
        let uniform = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 4, 32, &[zero], [Index::Base(8)]).expect("a result");
        components(self, uniform, 4);
        if self.b.shader().stage == Stage::Compute {
            let id = self.b.intrinsic(IntrinsicOp::LoadLocalInvocationId, 3, 32, &[], []).expect("a result");
            let lane = self.b.channel(id, 0);
            let (buffer, bits) = (self.b.constant(32, 0), self.b.constant(32, 2));
            let element = self.b.alu(Op::Ishl, &[lane, bits]);
            let bytes = self.b.alu(Op::Ishl, &[element, bits]);
            let indices = [Index::AlignMul(4)];
            let data = self.b.intrinsic(IntrinsicOp::LoadSsboIr3, 4, 32, &[buffer, bytes, element], indices);
            components(self, data.expect("a result"), 4);
            return Some(self.add(Kind::Word, lane));
        }
        for base in 0..2 {
            let indices = [Index::Base(base), Index::Range(1), Index::DestType(AluType::FLOAT32)];
            let value = self.b.intrinsic(IntrinsicOp::LoadInput, 4, 32, &[zero], indices).expect("a result");
            components(self, value, 4);
        }
        None
    }

    /// A value that is available, or a new one.
    fn value(&mut self, kind: Kind) -> Def {
        let of_kind: Vec<Def> = self.values.iter().filter(|value| value.0 == kind).map(|value| value.1).collect();
        // Recent values more often, so that chains come about.
        let recent = of_kind.len().saturating_sub(4);
        match kind {
            Kind::Word if self.c.chance(CONFIG.constant_word) => {
                let bits = self.c.pick(&CONSTANTS);
                self.b.constant(32, bits.into())
            }
            Kind::Wide if of_kind.is_empty() || self.c.chance(CONFIG.new_wide) => self.wide(),
            Kind::Bool if of_kind.is_empty() || self.c.chance(CONFIG.new_comparison) => self.compare(),
            _ if self.c.chance(CONFIG.recent_value) => of_kind[recent + self.c.below(of_kind.len() - recent)],
            _ => of_kind[self.c.below(of_kind.len())],
        }
    }

    fn word(&mut self) -> Def {
        self.value(Kind::Word)
    }

    fn compare(&mut self) -> Def {
        let (a, b, op) = (self.word(), self.word(), self.c.pick(&COMPARES));
        self.alu(Kind::Bool, op, &[a, b])
    }

    /// A value of 64 bits that is made of words.
    fn wide(&mut self) -> Def {
        let (a, b) = (self.word(), self.word());
        match self.c.below(8) {
            0..=2 => self.alu(Kind::Wide, Op::Pack64_2x32Split, &[a, b]),
            3 | 4 => self.alu(Kind::Wide, Op::U2u64, &[a]),
            5 => self.alu(Kind::Wide, Op::I2i64, &[a]),
            6 => {
                let (low, high) = (self.c.pick(&CONSTANTS), self.c.pick(&CONSTANTS));
                self.b.constant(64, u64::from(high) << 32 | u64::from(low))
            }
            _ => {
                let zero = self.b.constant(32, 0);
                self.alu(Kind::Wide, Op::Pack64_2x32Split, &[zero, b])
            }
        }
    }

    /// Both halves of a sum, in either order, or one of them.
    fn halves(&mut self) {
        let pair = self.c.pick(&HALVES);
        let words: Vec<Def> = (0..pair[0].info().inputs.len()).map(|_| self.word()).collect();
        let mut other = words.clone();
        if self.c.chance(CONFIG.swapped_halves) {
            other.swap(0, 1);
        }
        match self.c.below(5) {
            0 => drop(self.alu(Kind::Word, pair[0], &words)),
            1 => drop(self.alu(Kind::Word, pair[1], &words)),
            2 => {
                let high = self.alu(Kind::Word, pair[1], &words);
                let low = self.alu(Kind::Word, pair[0], &other);
                self.alu(Kind::Wide, Op::Pack64_2x32Split, &[low, high]);
            }
            _ => {
                let low = self.alu(Kind::Word, pair[0], &words);
                // Something between the halves of a pair.
                if self.c.chance(CONFIG.statement_between_halves) {
                    self.statement(3);
                }
                let high = self.alu(Kind::Word, pair[1], &other);
                self.alu(Kind::Wide, Op::Pack64_2x32Split, &[low, high]);
            }
        }
    }

    /// A sum whose carry is a comparison.
    fn written_out(&mut self) {
        let [a, b, c, d] = [0; 4].map(|_| self.word());
        let low = self.alu(Kind::Word, Op::Iadd, &[a, b]);
        let addend = if self.c.even() { a } else { b };
        let test = self.alu(Kind::Bool, Op::Ult, &[low, addend]);
        let carry = self.b.alu(Op::B2i32, &[test]);
        let high = match self.c.below(4) {
            0 => {
                let sum = self.b.alu(Op::Iadd, &[c, d]);
                self.b.alu(Op::Iadd, &[carry, sum])
            }
            1 => {
                let sum = self.b.alu(Op::Iadd, &[carry, c]);
                self.b.alu(Op::Iadd, &[sum, d])
            }
            2 => self.b.alu(Op::Iadd, &[c, carry]),
            _ => carry,
        };
        self.add(Kind::Word, high);
        self.alu(Kind::Wide, Op::Pack64_2x32Split, &[low, high]);
    }

    /// A load or a store at a 64-bit address.
    fn access(&mut self) {
        let address = self.value(Kind::Wide);
        let low = self.b.alu(Op::Unpack64_2x32SplitX, &[address]);
        let high = self.b.alu(Op::Unpack64_2x32SplitY, &[address]);
        let mask = self.b.constant(32, 0xffff_fffc);
        let low = self.b.alu(Op::Iand, &[low, mask]);
        let address = self.b.vec(&[low, high]);
        let offset = self.c.below(4) as u64;
        let offset = self.b.constant(32, offset);
        let align = [Index::AlignMul(4)];
        if self.c.chance(CONFIG.load_of_sum) {
            let value = self.b.intrinsic(IntrinsicOp::LoadGlobalIr3, 1, 32, &[address, offset], align);
            self.add(Kind::Word, value.expect("a result"));
        } else {
            let value = self.word();
            self.b.intrinsic(IntrinsicOp::StoreGlobalIr3, 1, 32, &[value, address, offset], align);
        }
    }

    /// The last values: nearly all of a program affects one of them.
    fn outputs(&mut self, lane: Option<Def>) {
        let last: Vec<(Kind, Def)> = self.values.iter().rev().take(8).copied().collect();
        let mut words = Vec::new();
        for (kind, def) in last {
            match kind {
                Kind::Word => words.push(def),
                Kind::Bool => words.push(self.b.alu(Op::B2i32, &[def])),
                Kind::Wide => {
                    words.extend([Op::Unpack64_2x32SplitX, Op::Unpack64_2x32SplitY].map(|op| self.b.alu(op, &[def])));
                }
            }
        }
        let zero = self.b.constant(32, 0);
        for (slot, four) in words.chunks(4).enumerate() {
            let data = self.b.vec(four);
            let mask = Index::WriteMask((1 << four.len()) - 1);
            let count = four.len() as u8;
            match lane {
                Some(lane) => {
                    let buffer = self.b.constant(32, 8 + slot as u64);
                    let bits = self.b.constant(32, 2);
                    let element = self.b.alu(Op::Ishl, &[lane, bits]);
                    let bytes = self.b.alu(Op::Ishl, &[element, bits]);
                    let srcs = [data, buffer, bytes, element];
                    self.b.intrinsic(IntrinsicOp::StoreSsboIr3, count, 32, &srcs, [mask, Index::AlignMul(4)]);
                }
                None => {
                    let indices = [Index::Base(slot as i32), Index::Range(1), mask, Index::SrcType(AluType::FLOAT32)];
                    self.b.intrinsic(IntrinsicOp::StoreOutput, count, 32, &[data, zero], indices);
                }
            }
        }
    }
}

impl<C: Choices> Scopes for Generator<'_, C> {
    type Kind = Kind;
    type Wanted = Kind;

    const COUNTER: Kind = Kind::Word;

    fn builder(&mut self) -> &mut Builder {
        &mut self.b
    }

    fn values(&mut self) -> &mut Vec<(Kind, Def)> {
        &mut self.values
    }

    fn below(&mut self, count: usize) -> usize {
        self.c.below(count)
    }

    fn statement(&mut self, depth: u32) {
        match self.c.below(32) {
            0..=6 => {
                let (a, b) = (self.value(Kind::Wide), self.value(Kind::Wide));
                self.alu(Kind::Wide, Op::Iadd, &[a, b]);
            }
            7..=11 => self.halves(),
            12..=15 => self.written_out(),
            16..=18 => {
                let (a, b, op) = (self.word(), self.word(), self.c.pick(&INTS));
                self.alu(Kind::Word, op, &[a, b]);
            }
            19 => drop(self.compare()),
            20 | 21 => {
                let kind = self.c.pick(&[Kind::Word, Kind::Wide]);
                let (condition, a, b) = (self.value(Kind::Bool), self.value(kind), self.value(kind));
                self.alu(kind, Op::Bcsel, &[condition, a, b]);
            }
            22 | 23 => {
                let value = self.value(Kind::Wide);
                let op = self.c.pick(&[Op::Unpack64_2x32SplitX, Op::Unpack64_2x32SplitY, Op::U2u32]);
                self.alu(Kind::Word, op, &[value]);
            }
            24..=27 if self.features.global => self.access(),
            28 | 29 if depth < 3 => self.branch(depth),
            30 if depth < 2 => self.repeat(depth),
            _ => {
                let (a, b) = (self.value(Kind::Wide), self.wide());
                self.alu(Kind::Wide, Op::Iadd, &[a, b]);
            }
        }
    }

    fn condition(&mut self) -> Def {
        self.value(Kind::Bool)
    }

    fn wanted(&mut self) -> Vec<Kind> {
        (0..1 + self.c.below(2)).map(|_| self.c.pick(&[Kind::Word, Kind::Wide, Kind::Wide, Kind::Bool])).collect()
    }

    fn kind(wanted: Kind) -> Kind {
        wanted
    }

    fn source(&mut self, wanted: Kind) -> Def {
        self.value(wanted)
    }

    fn phi(&mut self, wanted: Kind) -> Def {
        self.b.phi(1, wanted.bits())
    }
}
