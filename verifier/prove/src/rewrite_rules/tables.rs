//! The compiler's tables as claims: one for each rule and width.

use super::{Claim, Expression, Statement};
use ir3_compiler::ir3::{
    Attrs, Condition, Dst, InstrData, InstrFlags, Opcode, PhysReg, Place, RegClass, Round, Src, Type, WriteMask,
};
use ir3_compiler::nir::FloatControls;
use ir3_compiler::nir_passes::{Rule, Table, Term, operand_bits};
use ir3_compiler::opt::fold::CONVERSIONS;
use ir3_semantics::operations::{ir3_alu, nir_alu};

/// All claims of all tables. Without a claim is a rule with an operation that does not exist.
pub fn all() -> Vec<Statement> {
    let of_table = |table: Table| table.rules().iter().map(move |rule| statement(table.name(), rule));
    Table::ALL.into_iter().flat_map(of_table).chain(conversions()).chain(clamps()).collect()
}

/// The statement of a rule.
pub fn statement(table: &'static str, rule: &Rule) -> Statement {
    Statement::or_unknown(table, rule.name, of_rule(table, rule))
}

/// The claim of a nir rule.
///
/// # Errors
/// If there is no such operation.
pub fn of_rule(table: &'static str, rule: &Rule) -> Result<Claim, String> {
    let side = |term| expression(term, rule.result_bits(), rule.bits).ok_or("no such operation");
    Ok(Claim {
        table,
        rule: rule.name.into(),
        width: rule.bits,
        operands: rule.variable_bits().to_vec(),
        left: side(rule.from)?,
        right: side(rule.to)?,
    })
}

/// A term of `bits` bits in a rule of `rule` bits.
pub(super) fn expression(term: Term, bits: u8, rule: u8) -> Option<Expression> {
    let words = usize::from(bits).div_ceil(32);
    Some(match term {
        Term::Variable(number) => Expression::Operand(number.into()),
        Term::Constant(value) => Expression::Constant { value, words },
        Term::Op(op, terms) => {
            let widths: Vec<u8> = (0..terms.len()).map(|index| operand_bits(op, index, bits, rule)).collect();
            let args = terms.iter().zip(&widths).map(|(&term, &bits)| expression(term, bits, rule));
            Expression::Call {
                name: op.name().to_owned(),
                kernel: nir_alu::kernel(op, bits, &widths, FloatControls::OPEN)?,
                clamp: None,
                words,
                args: args.collect::<Option<_>>()?,
            }
        }
    })
}

/// An instruction on full or half registers.
fn instr(opcode: Opcode, attrs: Attrs, flags: InstrFlags, (from, to): (bool, bool), operands: usize) -> InstrData {
    let place = Place::Reg(PhysReg(0));
    let mut data = InstrData::new(opcode);
    (data.attrs, data.flags) = (attrs, flags);
    data.dsts.push(Dst::new(place, RegClass::general(to), WriteMask::SCALAR));
    data.srcs.extend((0..operands).map(|_| Src::reg(place, RegClass::general(from), WriteMask::SCALAR)));
    data
}

/// The result of the instruction for these operands.
fn call(data: &InstrData, args: Vec<Expression>) -> Option<Expression> {
    let alu = ir3_alu::kernel(data)?;
    let half = |half: bool| if half { "16" } else { "32" };
    let saturates = if data.flags.contains(InstrFlags::SAT) { "(sat)" } else { "" };
    let name = match data.attrs {
        Attrs::Move { src, dst, .. } => conversion_name(src, dst),
        Attrs::Compare(condition) => format!("{}.{}.{}", data.opcode, condition.name(), half(data.dsts[0].class.half)),
        _ => format!("{saturates}{}.{}", data.opcode, half(data.dsts[0].class.half)),
    };
    Some(Expression::Call { name, kernel: alu.kernel, clamp: alu.clamp, words: 1, args })
}

/// The number of operands of an opcode, without the address register; `None` if it is not fixed.
pub(super) fn operand_count(opcode: Opcode) -> Option<usize> {
    let info = opcode.info();
    let is_fixed = info.min_srcs > 0 && info.max_srcs <= info.min_srcs + 1;
    is_fixed.then_some(info.min_srcs.into())
}

/// The attributes that an opcode may have.
fn variants(opcode: Opcode) -> Vec<(String, Attrs)> {
    use Condition::{Eq, Ge, Gt, Le, Lt, Ne};
    match opcode {
        Opcode::CmpsF | Opcode::CmpsU | Opcode::CmpsS => [Lt, Le, Gt, Ge, Eq, Ne]
            .map(|condition| (format!("{opcode}.{condition:?}").to_lowercase(), Attrs::Compare(condition)))
            .to_vec(),
        _ => vec![(opcode.to_string(), Attrs::None)],
    }
}

/// Returns true if a multiply-add is one of the other width.
fn is_other_mad(opcode: Opcode, half: bool) -> bool {
    opcode == Opcode::MadF16 && !half || opcode == Opcode::MadF32 && half
}

/// An operation and a conversion of its result are one operation with a destination of the other width.
fn conversions() -> Vec<Statement> {
    let mut all = Vec::new();
    for table in CONVERSIONS {
        let (from, to) = table.types;
        let half = from.is_half();
        for &opcode in table.opcodes.iter().filter(|&&opcode| !is_other_mad(opcode, half)) {
            let Some(operands) = operand_count(opcode) else {
                all.push(Statement::or_unknown(
                    "fold-conversions",
                    opcode.name(),
                    Err("the number of its operands is not fixed".into()),
                ));
                continue;
            };
            let args: Vec<_> = (0..operands).map(Expression::Operand).collect();
            for (name, attrs) in variants(opcode) {
                let rule = format!("{name} then {}", conversion_name(from, to));
                let claim = || {
                    let plain = instr(opcode, attrs.clone(), InstrFlags::empty(), (half, half), operands);
                    let moves = Attrs::Move { src: from, dst: to, round: Round::Default };
                    let mov = instr(Opcode::Mov, moves, InstrFlags::empty(), (half, !half), 1);
                    let both = instr(opcode, attrs.clone(), InstrFlags::empty(), (half, !half), operands);
                    Some(Claim {
                        table: "fold-conversions",
                        rule: rule.clone(),
                        width: if half { 16 } else { 32 },
                        operands: vec![if half { 16 } else { 32 }; operands],
                        left: call(&mov, vec![call(&plain, args.clone())?])?,
                        right: call(&both, args.clone())?,
                    })
                };
                all.push(Statement::or_unknown(
                    "fold-conversions",
                    &rule,
                    claim().ok_or_else(|| "no such operation".into()),
                ));
            }
        }
    }
    all
}

fn conversion_name(from: Type, to: Type) -> String {
    format!("cov.{}{}", from.name(), to.name())
}

/// An operation and a clamp of its result are the operation that clamps.
fn clamps() -> Vec<Statement> {
    let mut all = Vec::new();
    for opcode in Opcode::ALL.into_iter().filter(|opcode| opcode.can_saturate()) {
        for half in [true, false] {
            if is_other_mad(opcode, half) {
                continue;
            }
            let Some(operands) = operand_count(opcode) else {
                all.push(Statement::or_unknown(
                    "saturation",
                    opcode.name(),
                    Err("the number of its operands is not fixed".into()),
                ));
                continue;
            };
            let args: Vec<_> = (0..operands).map(Expression::Operand).collect();
            let width = if half { 16 } else { 32 };
            let claim = || {
                let plain = instr(opcode, Attrs::None, InstrFlags::empty(), (half, half), operands);
                let clamp = instr(Opcode::MaxF, Attrs::None, InstrFlags::SAT, (half, half), 2);
                let both = instr(opcode, Attrs::None, InstrFlags::SAT, (half, half), operands);
                let x = call(&plain, args.clone())?;
                Some(Claim {
                    table: "saturation",
                    rule: format!("(sat)max.f of {opcode}"),
                    width,
                    operands: vec![width; operands],
                    left: call(&clamp, vec![x.clone(), x])?,
                    right: call(&both, args)?,
                })
            };
            all.push(Statement::or_unknown(
                "saturation",
                opcode.name(),
                claim().ok_or_else(|| "no such operation".into()),
            ));
        }
    }
    all
}
