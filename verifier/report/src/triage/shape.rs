//! Shapes: the common property of the reduced programs of one bug.
//!
//! A shape describes the bug in a minimal program without names, numbers, constants, or uses of the wrong value. For a
//! panic it is the place, for a refusal the reason. For a refutation after selection it is the change of an instruction
//! ([`super::change`]). Selection keeps no instruction, so there it is the set of operations of the highest rank in the
//! reduced program: arithmetic ranks above operations that only forward values, loads above constants, and stores,
//! which every program has, are last.

use std::collections::BTreeSet;
use std::fmt;

use ir3_compiler::nir::{Alu, CfNode, InstrData, Op, Shader};
use ir3_compiler::target::Target;
use serde::Serialize;

use super::change;
use ir3_harness::reduce::Failure;
use ir3_semantics::Snapshot;

/// The shape of a reduced failure, as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Shape(String);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
impl From<&str> for Shape {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Shape {
    /// The shape of a failing program. `sides` are the programs before and after the stage of a refutation, as the
    /// compiler returned them: programs read from texts have other instruction numbers.
    pub fn of(failure: &Failure, shader: &Shader, sides: Option<(&Snapshot, &Snapshot)>, target: &Target) -> Self {
        Self(match (failure, sides) {
            (Failure::Refused { reason, .. } | Failure::Unsupported { reason, .. }, _) => reason.clone(),
            (Failure::Panic { place, .. }, _) => place.clone(),
            (Failure::Stopped(stopped), _) => stopped.stop.name().to_owned(),
            (Failure::Refuted { .. }, Some((Snapshot::Ir3(before), Snapshot::Ir3(after)))) => {
                let change = change::all(before, after, target).into_iter().next();
                change.map_or_else(|| unseen(shader).to_owned(), |change| change.to_string())
            }
            (Failure::Refuted { .. }, _) => core(shader),
        })
    }

    /// The candidates for the shape of an unreduced program: for a panic or a refusal its shape; for a refutation all
    /// changes between its sides, the most specific first, and none for selection. The shape of the reduced program
    /// usually is one of them.
    pub fn candidates(failure: &Failure, sides: Option<(&Snapshot, &Snapshot)>, target: &Target) -> Vec<Self> {
        match (failure, sides) {
            (Failure::Refused { reason, .. } | Failure::Unsupported { reason, .. }, _) => vec![Self(reason.clone())],
            (Failure::Panic { place, .. }, _) => vec![Self(place.clone())],
            (Failure::Stopped(stopped), _) => vec![Self(stopped.stop.name().to_owned())],
            (Failure::Refuted { .. }, Some((Snapshot::Ir3(before), Snapshot::Ir3(after)))) => {
                change::all(before, after, target).iter().map(|change| Self(change.to_string())).collect()
            }
            (Failure::Refuted { .. }, _) => Vec::new(),
        }
    }
}

/// The shape if no operand differs: the analysis skips indirect operands.
fn unseen(shader: &Shader) -> &'static str {
    let indirect = |data: &InstrData| matches!(data, InstrData::Intrinsic(i) if i.op.name() == "decl_reg");
    if shader.entry.instrs.values().any(indirect) { "an element of an array" } else { "something else" }
}

/// The rank of an operation: how specific it is to a bug.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Store,
    Constant,
    Load,
    Convert,
    Choose,
    Component,
    Operation,
}

/// The operations of the highest rank.
fn core(shader: &Shader) -> String {
    let function = &shader.entry;
    let mut found: BTreeSet<(Rank, &'static str)> = BTreeSet::new();
    for (_, instr) in function.instrs_in_order() {
        let data = &function.instrs[instr];
        match data {
            InstrData::Alu(alu) => {
                found.insert(arithmetic(alu));
                let reads = (0..).zip(&alu.srcs).any(|(n, src)| {
                    let components = function.defs[alu.def].num_components;
                    let read = alu.op.info().source_components(n, components);
                    src.swizzle[..usize::from(read)].iter().enumerate().any(|(k, &c)| usize::from(c) != k)
                });
                if reads {
                    found.insert((Rank::Component, "component"));
                }
            }
            InstrData::Const { values, .. } if values.iter().any(|&value| value > 1) => {
                found.insert((Rank::Constant, "constant"));
            }
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => {}
            InstrData::Phi { .. } => _ = found.insert((Rank::Choose, "phi")),
            InstrData::Intrinsic(intrinsic) => {
                let name = intrinsic.op.name();
                let rank = match name {
                    _ if name.starts_with("store_") => Rank::Store,
                    _ if name.starts_with("load_") => Rank::Load,
                    _ => Rank::Operation,
                };
                found.insert((rank, name));
            }
            InstrData::Tex(tex) => _ = found.insert((Rank::Operation, tex.op.name())),
        }
    }
    nodes(&function.body, &mut found);
    let Some(highest) = found.last().map(|&(rank, _)| rank) else { return "an empty program".to_owned() };
    let names: Vec<&str> = found.iter().filter(|(rank, _)| *rank == highest).map(|&(_, name)| name).collect();
    names.join(" + ")
}

fn arithmetic(alu: &Alu) -> (Rank, &'static str) {
    let name = alu.op.name();
    let comparison = ["flt", "fge", "feq", "fneu", "ilt", "ige", "ieq", "ine", "ult", "uge"];
    // `f2u32`, `i2i16`, `b2f32` …: conversions between types.
    let converts = {
        let bytes = name.as_bytes();
        matches!(bytes, [b'b' | b'f' | b'i' | b'u', b'2', b'b' | b'f' | b'i' | b'u', ..])
    };
    match alu.op {
        Op::Mov => (Rank::Store, "mov"),
        Op::Bcsel => (Rank::Choose, "choice"),
        _ if comparison.iter().any(|prefix| name.starts_with(prefix)) => (Rank::Operation, "comparison"),
        _ if converts && name.starts_with('b') => (Rank::Choose, "choice"),
        _ if converts => (Rank::Convert, "conversion"),
        _ if name.starts_with("pack_") || name.starts_with("unpack_") => (Rank::Component, "component"),
        _ if name.strip_prefix("vec").is_some_and(|n| n.parse::<u8>().is_ok()) => (Rank::Component, "component"),
        _ => (Rank::Operation, name),
    }
}

fn nodes(list: &[CfNode], found: &mut BTreeSet<(Rank, &'static str)>) {
    for node in list {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(node) => {
                found.insert((Rank::Choose, "if"));
                nodes(&node.then, found);
                nodes(&node.otherwise, found);
            }
            CfNode::Loop(node) => {
                found.insert((Rank::Choose, "loop"));
                nodes(&node.body, found);
                nodes(node.continuing.as_deref().unwrap_or_default(), found);
            }
        }
    }
}
