//! Pieces of arithmetic: an operation of a program with those that compute its sources, up to some depth.
//!
//! The values that a piece reads and does not compute are its inputs: values of the program that it is put into.

use ir3_compiler::nir::{Def, Function, Instr, InstrData};
use ir3_semantics::support::random::Random;

/// The most operations on a path of a piece.
const DEPTH: u32 = 5;

/// The most instructions of a piece.
const LENGTH: usize = 16;

/// A piece of a function.
pub(super) struct Piece<'a> {
    /// The function.
    pub donor: &'a Function,
    /// Its instructions, sources before their readers.
    pub instrs: Vec<Instr>,
    /// The values that it reads and does not compute, each once.
    pub inputs: Vec<Def>,
}

impl<'a> Piece<'a> {
    /// A piece of a function that has arithmetic.
    pub fn cut(donor: &'a Function, random: &mut Random) -> Option<Self> {
        let is_operation = |&instr: &Instr| matches!(donor.instrs[instr], InstrData::Alu(_));
        let operations: Vec<Instr> = donor.instrs_in_order().map(|(_, instr)| instr).filter(is_operation).collect();
        let root = random.pick(&operations)?;
        let mut piece = Self { donor, instrs: Vec::new(), inputs: Vec::new() };
        piece.add(root, DEPTH);
        Some(piece)
    }

    fn add(&mut self, instr: Instr, depth: u32) {
        let mut sources = Vec::new();
        self.donor.instrs[instr].for_each_src(|src| sources.push(src));
        for def in sources {
            let source = self.donor.defs[def].instr;
            if self.instrs.contains(&source) || self.inputs.contains(&def) {
                continue;
            }
            match self.donor.instrs[source] {
                InstrData::Alu(_) if depth > 1 && self.instrs.len() < LENGTH => self.add(source, depth - 1),
                InstrData::Const { .. } => self.instrs.push(source),
                _ => self.inputs.push(def),
            }
        }
        self.instrs.push(instr);
    }

    /// The value that it computes.
    pub fn result(&self) -> Def {
        let last = self.instrs.last().and_then(|&instr| self.donor.instrs[instr].def());
        last.expect("a piece ends with an operation")
    }
}
