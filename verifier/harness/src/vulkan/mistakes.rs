//! Planted mistakes: an operation of the interpreter has the meaning of another one, as if our reading of nir were wrong. Campaigns that find
//! them show that the comparison with a device depends on the operation.

use ir3_compiler::nir::{AtomicOp, Index, IndexKind, InstrData, Op, Shader};

/// The operation that is mistaken, and the one whose meaning it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Alu(Op, Op),
    Atomic(AtomicOp, AtomicOp),
    /// The second and the third operand of a selection are exchanged.
    Selection,
}

/// A planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake(Change);

const fn alu(op: Op, instead: Op) -> Mistake {
    Mistake(Change::Alu(op, instead))
}

/// All mistakes.
pub const MISTAKES: [Mistake; 36] = [
    alu(Op::Iadd, Op::Isub),
    alu(Op::Isub, Op::Iadd),
    alu(Op::Imul, Op::Iadd),
    alu(Op::Iand, Op::Ior),
    alu(Op::Ior, Op::Ixor),
    alu(Op::Ixor, Op::Ior),
    alu(Op::Inot, Op::Ineg),
    alu(Op::Ineg, Op::Inot),
    alu(Op::Ishl, Op::Ushr),
    alu(Op::Ushr, Op::Ishr),
    alu(Op::Ishr, Op::Ushr),
    alu(Op::Imin, Op::Umin),
    alu(Op::Umin, Op::Imin),
    alu(Op::Imax, Op::Umax),
    alu(Op::Umax, Op::Imax),
    alu(Op::Ilt, Op::Ult),
    alu(Op::Ult, Op::Ilt),
    alu(Op::Ige, Op::Uge),
    alu(Op::Uge, Op::Ige),
    alu(Op::Ieq, Op::Ine),
    alu(Op::Ine, Op::Ieq),
    alu(Op::Iabs, Op::Ineg),
    alu(Op::Fadd, Op::Fsub),
    alu(Op::Fmul, Op::Fadd),
    alu(Op::Fmin, Op::Fmax),
    alu(Op::Fmax, Op::Fmin),
    alu(Op::Flt, Op::Fge),
    alu(Op::Fneu, Op::Feq),
    alu(Op::Fneg, Op::Fabs),
    alu(Op::Ffloor, Op::Fceil),
    alu(Op::Ftrunc, Op::FroundEven),
    alu(Op::I2f32, Op::U2f32),
    alu(Op::I2i32, Op::U2u32),
    alu(Op::UfindMsb, Op::FindLsb),
    Mistake(Change::Atomic(AtomicOp::Iadd, AtomicOp::Ixor)),
    Mistake(Change::Selection),
];

impl Mistake {
    /// Its name, as `iadd-is-isub`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.0 {
            Change::Alu(op, instead) => format!("{}-is-{}", op.name(), instead.name()),
            Change::Atomic(op, instead) => format!("atomic-{op}-is-{instead}"),
            Change::Selection => "bcsel-exchanged".to_owned(),
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
                _ => {}
            }
        }
        shader
    }
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
