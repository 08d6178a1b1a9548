//! Tests of the operations that the compiler's tables declare commutative, with the first two operands exchanged.

use super::ir3_table::{CONDITIONS, evaluate, instr};
use super::nir_table;
use crate::support::random::Random;
use ir3_compiler::ir3::{Attrs, Condition, Opcode};
use ir3_compiler::nir::{BaseType, Op};

/// Numbers that distinguish operations: corner cases of integers and of floats, and random ones.
fn number(random: &mut Random, bits: u8) -> u64 {
    const CORNERS: [u64; 12] =
        [0, 1, 2, 0x7f, 0x8000, 0x7c00, 0x7e01, 0xfe00, 0x8000_0000, 0x7fc0_0001, 0xff80_0000, u64::MAX];
    let any = match random.below(3) {
        0 => CORNERS[random.below(CORNERS.len())],
        1 => random.next() >> random.below(64),
        _ => random.next(),
    };
    any & (u64::MAX >> (64 - bits))
}

const fn mirrored(condition: Condition) -> Condition {
    match condition {
        Condition::Lt => Condition::Gt,
        Condition::Le => Condition::Ge,
        Condition::Gt => Condition::Lt,
        Condition::Ge => Condition::Le,
        Condition::Eq | Condition::Ne => condition,
    }
}

/// Returns the opcodes that have a meaning, of those that `holds` for, whose result changes when the operands do.
fn ir3_exceptions(holds: impl Fn(Opcode) -> bool) -> (usize, Vec<Opcode>) {
    let mut random = Random::new(11);
    let (mut evaluated, mut wrong) = (0, Vec::new());
    for opcode in Opcode::ALL.into_iter().filter(|&opcode| holds(opcode)) {
        let attrs: Vec<[Attrs; 2]> = match opcode.has_condition() {
            true => CONDITIONS.map(|it| [it, mirrored(it)].map(Attrs::Compare)).to_vec(),
            false => vec![[Attrs::None, Attrs::None]],
        };
        let mut known = false;
        let mut differs = false;
        for ([attrs, exchanged], bits) in attrs.iter().flat_map(|attrs| [16, 32].map(|bits| (attrs, bits))) {
            let count = usize::from(opcode.info().min_srcs);
            let data = instr(opcode, attrs.clone(), (bits, bits), count);
            let other = instr(opcode, exchanged.clone(), (bits, bits), count);
            for _ in 0..300 {
                let mut operands: Vec<u32> = (0..count).map(|_| number(&mut random, bits) as u32).collect();
                let Some(before) = evaluate(&data, &operands) else { break };
                operands.swap(0, 1);
                known = true;
                differs |= Some(before) != evaluate(&other, &operands);
            }
        }
        evaluated += usize::from(known);
        if differs || !known {
            wrong.push(opcode);
        }
    }
    (evaluated, wrong)
}

#[test]
fn commutative_opcodes_commute() {
    let (evaluated, wrong) = ir3_exceptions(Opcode::commutes);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(evaluated >= 25, "{evaluated}");
    // The test can fail: operations that do not commute by the table do not.
    let others = |opcode: Opcode| opcode.info().min_srcs >= 2 && opcode.is_pure() && !opcode.commutes();
    let (evaluated, wrong) = ir3_exceptions(|opcode| opcode.info().dsts == 1 && others(opcode));
    let commute_too = Opcode::ALL.iter().filter(|&&it| others(it) && !wrong.contains(&it) && it.info().dsts == 1);
    let commute_too: Vec<_> = commute_too.copied().collect();
    assert!(evaluated >= 15, "{evaluated}");
    // No pass exchanges operands of these: see `Traits::COMMUTES`.
    assert_eq!(commute_too, [Opcode::MadshU16, Opcode::SadS16, Opcode::SadS32, Opcode::Andg]);
}

#[test]
fn commutative_operations_of_nir_commute() {
    let mut random = Random::new(12);
    let mut evaluated = 0;
    for op in Op::ALL {
        let info = op.info();
        let mut differs = false;
        let mut known = false;
        for width in [1, 8, 16, 32, 64] {
            if info.inputs.len() < 2 || info.inputs[0] != info.inputs[1] {
                continue;
            }
            // Fixed widths have one run.
            if info.inputs.iter().any(|input| input.ty.base == BaseType::Float && input.ty.size == 0) && width < 16 {
                continue;
            }
            for _ in 0..60 {
                let mut operands: Vec<Vec<u64>> = (info.inputs.iter())
                    .map(|input| {
                        let bits = if input.ty.size == 0 { width } else { input.ty.size };
                        (0..input.components.max(1)).map(|_| number(&mut random, bits)).collect()
                    })
                    .collect();
                let Some(before) = nir_table::evaluate(op, width, &operands) else { break };
                operands.swap(0, 1);
                known = true;
                differs |= Some(before) != nir_table::evaluate(op, width, &operands);
            }
        }
        if info.commutes() {
            assert!(known && !differs, "{op}");
            evaluated += 1;
        }
    }
    assert!(evaluated > 60, "{evaluated}");
}
