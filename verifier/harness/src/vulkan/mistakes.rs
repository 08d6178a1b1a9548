//! Planted mistakes: an operation of the interpreter has the meaning of another one, as if our reading of nir were
//! wrong. Campaigns that find them show that the comparison with a device depends on the operation.

use ir3_compiler::nir::{
    Alu, AluSrc, AtomicOp, Block, Def, Function, Index, IndexKind, Instr, InstrData, IntrinsicOp, Op, Shader, TexOp,
    TexSrcKind,
};
use smallvec::smallvec;

/// The operation that is mistaken, and the one whose meaning it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Alu(Op, Op),
    Atomic(AtomicOp, AtomicOp),
    /// The second and the third operand of a selection are exchanged.
    Selection,
    Intrinsic(IntrinsicOp, IntrinsicOp),
    /// Lanes end where they do not.
    Kill(IntrinsicOp),
    /// The first two coordinates of accesses to images are exchanged.
    ImageCoordinates,
    /// The first two coordinates of a texture operation are exchanged.
    TextureCoordinates(TexOp),
    /// A gather reads another component.
    Gather,
    /// An input has the value of another component.
    Component(IntrinsicOp),
}

/// A planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake(Change);

const fn instead(op: Op, instead: Op) -> Mistake {
    Mistake(Change::Alu(op, instead))
}

/// All mistakes.
pub const MISTAKES: [Mistake; 54] = [
    instead(Op::Iadd, Op::Isub),
    instead(Op::Isub, Op::Iadd),
    instead(Op::Imul, Op::Iadd),
    instead(Op::Iand, Op::Ior),
    instead(Op::Ior, Op::Ixor),
    instead(Op::Ixor, Op::Ior),
    instead(Op::Inot, Op::Ineg),
    instead(Op::Ineg, Op::Inot),
    instead(Op::Ishl, Op::Ushr),
    instead(Op::Ushr, Op::Ishr),
    instead(Op::Ishr, Op::Ushr),
    instead(Op::Imin, Op::Umin),
    instead(Op::Umin, Op::Imin),
    instead(Op::Imax, Op::Umax),
    instead(Op::Umax, Op::Imax),
    instead(Op::Ilt, Op::Ult),
    instead(Op::Ult, Op::Ilt),
    instead(Op::Ige, Op::Uge),
    instead(Op::Uge, Op::Ige),
    instead(Op::Ieq, Op::Ine),
    instead(Op::Ine, Op::Ieq),
    instead(Op::Iabs, Op::Ineg),
    instead(Op::Fadd, Op::Fsub),
    instead(Op::Fmul, Op::Fadd),
    instead(Op::Fmin, Op::Fmax),
    instead(Op::Fmax, Op::Fmin),
    instead(Op::Flt, Op::Fge),
    instead(Op::Fneu, Op::Feq),
    instead(Op::Fneg, Op::Fabs),
    instead(Op::Ffloor, Op::Fceil),
    instead(Op::Ftrunc, Op::FroundEven),
    instead(Op::I2f32, Op::U2f32),
    instead(Op::I2i32, Op::U2u32),
    instead(Op::UfindMsb, Op::FindLsb),
    Mistake(Change::Atomic(AtomicOp::Iadd, AtomicOp::Ixor)),
    Mistake(Change::Selection),
    Mistake(Change::Intrinsic(IntrinsicOp::Ddx, IntrinsicOp::Ddy)),
    Mistake(Change::Intrinsic(IntrinsicOp::DdyFine, IntrinsicOp::DdxFine)),
    Mistake(Change::Intrinsic(IntrinsicOp::DdxFine, IntrinsicOp::DdyFine)),
    Mistake(Change::Intrinsic(IntrinsicOp::DdyCoarse, IntrinsicOp::DdxCoarse)),
    Mistake(Change::Intrinsic(IntrinsicOp::QuadSwapHorizontal, IntrinsicOp::QuadSwapVertical)),
    Mistake(Change::Kill(IntrinsicOp::TerminateIf)),
    Mistake(Change::Kill(IntrinsicOp::DemoteIf)),
    Mistake(Change::ImageCoordinates),
    Mistake(Change::Intrinsic(IntrinsicOp::LoadNumWorkgroups, IntrinsicOp::LoadWorkgroupId)),
    Mistake(Change::TextureCoordinates(TexOp::Txf)),
    Mistake(Change::TextureCoordinates(TexOp::Txl)),
    Mistake(Change::Gather),
    Mistake(Change::Component(IntrinsicOp::LoadFragCoord)),
    Mistake(Change::Component(IntrinsicOp::LoadInput)),
    Mistake(Change::Component(IntrinsicOp::LoadInterpolatedInput)),
    Mistake(Change::Intrinsic(IntrinsicOp::QuadSwapVertical, IntrinsicOp::QuadSwapHorizontal)),
    Mistake(Change::Intrinsic(IntrinsicOp::LoadVertexId, IntrinsicOp::LoadInstanceId)),
    Mistake(Change::Intrinsic(IntrinsicOp::LoadInstanceId, IntrinsicOp::LoadVertexIdZeroBase)),
];

impl Mistake {
    /// Its name, as `iadd-is-isub`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.0 {
            Change::Alu(op, instead) => format!("{}-is-{}", op.name(), instead.name()),
            Change::Atomic(op, instead) => format!("atomic-{op}-is-{instead}"),
            Change::Selection => "bcsel-exchanged".to_owned(),
            Change::Intrinsic(op, instead) => format!("{op}-is-{instead}"),
            Change::Kill(op) => format!("{op}-inverted"),
            Change::ImageCoordinates => "image-coordinates-exchanged".to_owned(),
            Change::TextureCoordinates(op) => format!("{op}-coordinates-exchanged"),
            Change::Gather => "tg4-of-another-component".to_owned(),
            Change::Component(op) => format!("{op}-of-another-component"),
        }
    }

    /// The mistake of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        MISTAKES.into_iter().find(|mistake| mistake.name() == name)
    }

    /// The program that does what a program means with this mistake.
    pub(super) fn planted(&self, shader: &Shader) -> Shader {
        let mut shader = shader.clone();
        for data in shader.entry.instrs.values_mut() {
            match (self.0, data) {
                (Change::Alu(op, instead), InstrData::Alu(alu)) if alu.op == op => {
                    alu.op = instead;
                    (alu.no_signed_wrap, alu.no_unsigned_wrap) = (false, false);
                }
                (Change::Selection, InstrData::Alu(alu)) if alu.op == Op::Bcsel => alu.srcs.swap(1, 2),
                (Change::Atomic(op, instead), InstrData::Intrinsic(intrinsic))
                    if intrinsic.indices.get(IndexKind::AtomicOp).is_some() && intrinsic.indices.atomic_op() == op =>
                {
                    intrinsic.indices.set(Index::AtomicOp(instead));
                }
                (Change::Intrinsic(op, instead), InstrData::Intrinsic(intrinsic)) if intrinsic.op == op => {
                    intrinsic.op = instead;
                }
                (Change::Gather, InstrData::Tex(tex)) if tex.op == TexOp::Tg4 => tex.component ^= 1,
                _ => {}
            }
        }
        self.replace_operands(&mut shader.entry);
        shader
    }

    /// Replaces operands, or results, by others.
    fn replace_operands(&self, function: &mut Function) {
        let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
        for (block, instr) in all {
            match (self.0, &function.instrs[instr]) {
                (Change::Kill(op), InstrData::Intrinsic(it)) if it.op == op => {
                    let new = alu_before(function, (block, instr), Op::Inot, it.srcs[0], [0; 16]);
                    if let InstrData::Intrinsic(it) = &mut function.instrs[instr] {
                        it.srcs[0] = new;
                    }
                }
                (Change::ImageCoordinates, InstrData::Intrinsic(it))
                    if it.op.name().contains("image")
                        && it.srcs.get(1).is_some_and(|&def| function.defs[def].num_components > 1) =>
                {
                    let new = alu_before(function, (block, instr), Op::Mov, it.srcs[1], EXCHANGED);
                    if let InstrData::Intrinsic(it) = &mut function.instrs[instr] {
                        it.srcs[1] = new;
                    }
                }
                (Change::TextureCoordinates(op), InstrData::Tex(tex)) if tex.op == op => {
                    let at = tex.srcs.iter().position(|&(kind, _)| kind == TexSrcKind::Coord);
                    let Some(at) = at.filter(|&at| function.defs[tex.srcs[at].1].num_components > 1) else { continue };
                    let new = alu_before(function, (block, instr), Op::Mov, tex.srcs[at].1, EXCHANGED);
                    if let InstrData::Tex(tex) = &mut function.instrs[instr] {
                        tex.srcs[at].1 = new;
                    }
                }
                (Change::Component(op), InstrData::Intrinsic(it)) if it.op == op => {
                    let Some(def) = it.def.filter(|&def| function.defs[def].num_components > 1) else { continue };
                    exchange_result(function, block, instr, def);
                }
                _ => {}
            }
        }
    }
}

/// The first two components, exchanged.
const EXCHANGED: [u8; 16] = [1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn alu(op: Op, def: Def, src: AluSrc) -> InstrData {
    let srcs = smallvec![src];
    InstrData::Alu(Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
}

/// Inserts an operation on a value before an instruction.
fn alu_before(function: &mut Function, (block, instr): (Block, Instr), op: Op, of: Def, swizzle: [u8; 16]) -> Def {
    let shape = function.defs[of].clone();
    let new = function.new_def_like(&shape);
    let at = function.blocks[block].instrs.iter().position(|&it| it == instr).unwrap_or(0);
    function.insert(block, at, alu(op, new, AluSrc { def: of, swizzle }));
    new
}

/// Exchanges the first two components of the result of an instruction.
fn exchange_result(function: &mut Function, block: Block, instr: Instr, def: Def) {
    let shape = function.defs[def].clone();
    let new = function.new_def_like(&shape);
    if let InstrData::Intrinsic(it) = &mut function.instrs[instr] {
        it.def = Some(new);
    }
    function.defs[new].instr = instr;
    let at = function.blocks[block].instrs.iter().position(|&it| it == instr).map_or(0, |at| at + 1);
    function.insert(block, at, alu(Op::Mov, def, AluSrc { def: new, swizzle: EXCHANGED }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::nir::validate;
    use ir3_programs::generator::{Features, Profile, from_seed};

    #[test]
    fn mistakes_have_names_and_make_valid_programs() {
        for mistake in MISTAKES {
            assert_eq!(Mistake::by_name(&mistake.name()), Some(mistake));
        }
        let mut changed = 0;
        for (seed, mistake) in (0..).zip(MISTAKES) {
            let shader = from_seed(seed, Profile::Mixed, Features::ALL).shader;
            let planted = mistake.planted(&shader);
            assert_eq!(validate(&planted), Ok(()), "{}", mistake.name());
            changed += u32::from(planted != shader);
        }
        assert!(changed > 10, "{changed}");
    }
}
