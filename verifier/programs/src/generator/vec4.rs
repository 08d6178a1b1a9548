//! Programs for the vec4 backend: vertex shaders of 32-bit arithmetic on vectors, comparisons of vectors and scalars,
//! selections by them, and branches: the operations that selection to vec4 supports.

use super::config::CONFIG;
use super::scopes::Scopes;
use super::{Choices, Generated, MAX_INSTRUCTIONS};
use ir3_compiler::nir::{AluSrc, AluType, Builder, Def, Index, IntrinsicOp, Op, Stage};

/// The kinds of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Int,
    Bool,
}

struct Generator<'a, C> {
    c: &'a mut C,
    b: Builder,
    /// The values that are available.
    values: Vec<(Kind, Def)>,
    limit: u32,
}

const FLOATS: [Op; 6] = [Op::Fadd, Op::Fsub, Op::Fmul, Op::Fmin, Op::Fmax, Op::Fadd];
const FLOAT_UNARY: [Op; 8] =
    [Op::Fneg, Op::Fabs, Op::Fsat, Op::Ffloor, Op::Ftrunc, Op::FroundEven, Op::Ffract, Op::Frcp];
const INTS: [Op; 13] = [
    Op::Iadd,
    Op::Isub,
    Op::Imul,
    Op::Imin,
    Op::Imax,
    Op::Umin,
    Op::Umax,
    Op::Iand,
    Op::Ior,
    Op::Ixor,
    Op::Ishl,
    Op::Ishr,
    Op::Ushr,
];
const FLOAT_COMPARES: [Op; 4] = [Op::Flt, Op::Fge, Op::Feq, Op::Fneu];
const INT_COMPARES: [Op; 6] = [Op::Ilt, Op::Ige, Op::Ieq, Op::Ine, Op::Ult, Op::Uge];
const BOOLS: [Op; 5] = [Op::Iand, Op::Ior, Op::Ixor, Op::Ieq, Op::Ine];
const CONSTANTS: [u32; 8] = [0, 1, 2, 0x3f80_0000, 0xbf80_0000, u32::MAX, 0x8000_0000, 0x3f00_0000];

/// Generates a program.
pub(super) fn generate<C: Choices>(c: &mut C) -> Generated {
    let limit = c.size().min(MAX_INSTRUCTIONS);
    let mut g = Generator { c, b: Builder::new(Stage::Vertex), values: Vec::new(), limit };
    g.inputs();
    let mut statements = 0;
    while statements < 2 || !g.c.exhausted() && (g.b.function().instrs.len() as u32) < g.limit {
        g.statement(0);
        statements += 1;
    }
    g.outputs();
    Generated { shader: g.b.finish(), undefined_values: 0 }
}

impl<C: Choices> Generator<'_, C> {
    fn inputs(&mut self) {
        let zero = self.b.constant(32, 0);
        for base in 0..3 {
            let indices = [Index::Base(base), Index::Range(1), Index::DestType(AluType::FLOAT32)];
            let value = self.b.intrinsic(IntrinsicOp::LoadInput, 4, 32, &[zero], indices).expect("it has a result");
            self.values.push((if base == 2 { Kind::Int } else { Kind::Float }, value));
        }
        for word in [0, 5] {
            let components = 1 + self.c.below(4) as u8;
            let value = self.b.intrinsic(IntrinsicOp::LoadConstIr3, components, 32, &[zero], [Index::Base(word)]);
            self.values.push((Kind::Float, value.expect("it has a result")));
        }
    }

    /// A source of this many components.
    fn operand(&mut self, kind: Kind, components: u8) -> AluSrc {
        let of_kind: Vec<Def> = self.values.iter().filter(|value| value.0 == kind).map(|value| value.1).collect();
        // Recent values more often, so that chains come about.
        let recent = of_kind.len().saturating_sub(4);
        let def = match () {
            () if of_kind.is_empty() || kind != Kind::Bool && self.c.chance(CONFIG.vec4_constant) => {
                self.constant(kind, components)
            }
            () if self.c.chance(CONFIG.vec4_recent) => of_kind[recent + self.c.below(of_kind.len() - recent)],
            () => of_kind[self.c.below(of_kind.len())],
        };
        let available = self.b.function().defs[def].num_components;
        let in_order = available >= components && self.c.even();
        let swizzle: Vec<u8> =
            (0..components).map(|i| if in_order { i } else { self.c.below(usize::from(available)) as u8 }).collect();
        AluSrc::swizzled(def, &swizzle)
    }

    fn constant(&mut self, kind: Kind, components: u8) -> Def {
        let bits = if kind == Kind::Bool { 1 } else { 32 };
        let first = self.c.pick(&CONSTANTS);
        let same = self.c.chance(CONFIG.vec4_equal_constants);
        let values: Vec<u64> =
            (0..components).map(|_| u64::from(if same { first } else { self.c.pick(&CONSTANTS) })).collect();
        self.b.constants(bits, &values)
    }

    fn alu(&mut self, op: Op, kind: Kind, components: u8, sources: &[Kind]) {
        let info = op.info();
        let srcs: Vec<AluSrc> = (sources.iter().enumerate())
            .map(|(i, &kind)| self.operand(kind, info.source_components(i, components)))
            .collect();
        let def = self.b.alu_swizzled(op, components, &srcs);
        self.values.push((kind, def));
    }

    fn components(&mut self) -> u8 {
        self.c.pick(&[1, 1, 1, 2, 3, 4, 4])
    }

    fn compare(&mut self, n: u8) {
        match self.c.chance(CONFIG.vec4_float_comparison) {
            true => {
                let op = self.c.pick(&FLOAT_COMPARES);
                self.alu(op, Kind::Bool, n, &[Kind::Float, Kind::Float]);
            }
            false => {
                let op = self.c.pick(&INT_COMPARES);
                self.alu(op, Kind::Bool, n, &[Kind::Int, Kind::Int]);
            }
        }
    }

    /// Outputs of the last values: nearly all of a program affects one of them.
    fn outputs(&mut self) {
        let zero = self.b.constant(32, 0);
        let last: Vec<(Kind, Def)> = self.values.iter().rev().take(8).copied().collect();
        for (base, (kind, def)) in last.into_iter().enumerate() {
            let def = if kind == Kind::Bool { self.b.alu(Op::B2f32, &[def]) } else { def };
            let components = self.b.function().defs[def].num_components;
            let indices = [
                Index::Base(base as i32),
                Index::Range(1),
                Index::WriteMask((1 << components) - 1),
                Index::SrcType(AluType::FLOAT32),
            ];
            self.b.intrinsic(IntrinsicOp::StoreOutput, components, 32, &[def, zero], indices);
        }
    }
}

impl<C: Choices> Scopes for Generator<'_, C> {
    type Kind = Kind;
    type Wanted = (Kind, u8);

    const COUNTER: Kind = Kind::Int;

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
        use Kind::{Bool, Float, Int};
        let n = self.components();
        match self.c.below(32) {
            0..=5 => {
                let op = self.c.pick(&FLOATS);
                self.alu(op, Float, n, &[Float, Float]);
            }
            6..=7 => {
                let op = self.c.pick(&FLOAT_UNARY);
                self.alu(op, Float, n, &[Float]);
            }
            8 => self.alu(Op::Ffma, Float, n, &[Float, Float, Float]),
            9 => {
                let op = self.c.pick(&[Op::Fdot2, Op::Fdot3, Op::Fdot4]);
                self.alu(op, Float, 1, &[Float, Float]);
            }
            10..=12 => {
                let op = self.c.pick(&INTS);
                self.alu(op, Int, n, &[Int, Int]);
            }
            13 => {
                let op = self.c.pick(&[Op::Ineg, Op::Iabs, Op::Inot]);
                self.alu(op, Int, n, &[Int]);
            }
            14..=18 => self.compare(n),
            19 => {
                let op = self.c.pick(&BOOLS);
                self.alu(op, Bool, n, &[Bool, Bool]);
            }
            20 => self.alu(Op::Inot, Bool, n, &[Bool]),
            21..=24 => {
                let kind = self.c.pick(&[Float, Float, Int, Bool]);
                self.alu(Op::Bcsel, kind, n, &[Bool, kind, kind]);
            }
            25 => match self.c.below(4) {
                0 => self.alu(Op::B2f32, Float, n, &[Bool]),
                1 => self.alu(Op::B2i32, Int, n, &[Bool]),
                2 => self.alu(Op::I2f32, Float, n, &[Int]),
                _ => self.alu(Op::U2f32, Float, n, &[Int]),
            },
            26 => {
                let kind = self.c.pick(&[Float, Bool, Int]);
                let op = Op::vec(n).expect("up to four components");
                let sources = vec![kind; usize::from(n)];
                let srcs: Vec<AluSrc> = sources.iter().map(|&kind| self.operand(kind, 1)).collect();
                let def = self.b.alu_swizzled(op, n, &srcs);
                self.values.push((kind, def));
            }
            27..=29 if depth < 3 => self.branch(depth),
            30 if depth < 2 => self.repeat(depth),
            _ => self.compare(1),
        }
    }

    /// A scalar condition: of a value, or new.
    fn condition(&mut self) -> Def {
        if self.c.chance(CONFIG.vec4_new_condition) {
            self.compare(1);
        }
        let src = self.operand(Kind::Bool, 1);
        self.b.channel(src.def, src.swizzle[0])
    }

    fn wanted(&mut self) -> Vec<(Kind, u8)> {
        (0..1 + self.c.below(2))
            .map(|_| {
                let kind = self.c.pick(&[Kind::Float, Kind::Float, Kind::Int, Kind::Bool]);
                (kind, self.components())
            })
            .collect()
    }

    fn kind((kind, _): (Kind, u8)) -> Kind {
        kind
    }

    fn source(&mut self, (kind, components): (Kind, u8)) -> Def {
        let src = self.operand(kind, components);
        self.b.alu_swizzled(Op::Mov, components, &[src])
    }

    fn phi(&mut self, (kind, components): (Kind, u8)) -> Def {
        self.b.phi(components, if kind == Kind::Bool { 1 } else { 32 })
    }

    /// There is another exit.
    fn leaves(&mut self, done: Def) -> Def {
        match self.c.chance(CONFIG.vec4_second_exit) {
            true => {
                let condition = self.condition();
                self.b.alu(Op::Ior, &[done, condition])
            }
            false => done,
        }
    }
}
