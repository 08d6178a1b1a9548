//! Instruction selection: from nir to scalar programs for Gen7.
//!
//! One pass over the tree of control flow, in source order. A nir value is a list of registers, one for each word: 64
//! bits are two words, the low one first, and a bool is 0 or all ones. Vectors, copies and the halves of 64-bit values
//! are no instructions: they name the registers of others. Each intrinsic is a message. Each phi has two sets of
//! registers, as in [`vec4_select`](crate::i965::vec4_select).
//!
//! The halves of 64-bit sums (`iadd64_split…`) become `add64lo` and `add64hi`, which the hardware does not have:
//! [`lower_additions`](crate::i965::scalar_passes::lower_additions) decides how the carry goes from one to the other. A
//! 64-bit sum that is not split gets a comparison here, as in `nir_lower_int64`.
//!
//! Arithmetic on 32 bits, comparisons, selections, 64-bit sums and bitwise operations, control flow and intrinsics are
//! supported; everything else is refused by name.

mod alu;

use crate::i965::vec4::{
    Cmod, Dst, DstFile, Mask, Message, Mode, Opcode, Predicate, Program, RegType, Src, SrcFile, Swizzle,
};
use crate::i965::vec4_select::operands::bool_bits;
use crate::i965::vec4_select::walk::{Code, Selection};
use crate::nir::{self, Def, InstrData, Intrinsic};
use crate::select::SelectError;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The registers of a value, word by word.
type Registers = SmallVec<[u32; 4]>;

struct Selector<'a> {
    code: Code<'a>,
    locations: SecondaryMap<Def, Registers>,
    /// The registers that the sources of phis are copied to, by phi.
    incoming: FxHashMap<Def, Registers>,
}

/// A register as a source.
fn register(number: u32, ty: RegType) -> Src {
    Src::new(SrcFile::Vgrf(number), Swizzle::replicate(0), ty)
}

/// A register as a destination.
fn destination(number: u32, ty: RegType) -> Dst {
    Dst { file: DstFile::Vgrf(number), mask: Mask(1), ty }
}

/// No register: only the flag is written.
fn null(ty: RegType) -> Dst {
    Dst { mask: Mask(1), ..Dst::null(ty) }
}

/// Translates a shader to a program of a scalar mode.
///
/// # Errors
/// Names the operation that is not supported, and its location.
pub fn run(shader: &nir::Shader, mode: Mode) -> Result<Program, SelectError> {
    let mut selector = Selector {
        code: Code::new(&shader.entry, mode),
        locations: SecondaryMap::new(),
        incoming: FxHashMap::default(),
    };
    nir::FloatControls::of(&shader.info).map_err(|error| selector.code.unsupported(error.to_string()))?;
    selector.phis()?;
    selector.list(&shader.entry.body)?;
    Ok(Program { mode, stage: shader.stage, info: shader.info.clone(), instrs: selector.code.instrs })
}

impl Selector<'_> {
    /// The registers of each component.
    fn words_per_component(&self, def: Def) -> usize {
        if self.code.bits(def) == 64 { 2 } else { 1 }
    }

    /// Checks that a value is made of words.
    fn expect_words(&self, def: Def) -> Result<(), SelectError> {
        match self.code.bits(def) {
            1 | 32 | 64 => Ok(()),
            bits => Err(self.code.unsupported(format!("a value of {bits} bits"))),
        }
    }

    fn new_registers(&mut self, def: Def) -> Registers {
        let count = usize::from(self.code.components(def)) * self.words_per_component(def);
        (0..count).map(|_| self.code.new_register()).collect()
    }

    /// New registers for a value that is computed.
    fn define(&mut self, def: Def) -> Registers {
        let registers = self.new_registers(def);
        self.locations[def].clone_from(&registers);
        registers
    }

    fn copy(&mut self, to: u32, from: Src) {
        self.code.emit(Opcode::Mov, destination(to, RegType::Ud), &[from]);
    }

    /// Copies a value word by word.
    fn copy_all(&mut self, to: Registers, from: Registers) {
        to.into_iter().zip(from).for_each(|(to, from)| self.copy(to, register(from, RegType::Ud)));
    }

    /// Sets the flag where a bool in a register is true.
    fn set_flag(&mut self, condition: u32) {
        let set = self.code.emit(Opcode::Mov, null(RegType::D), &[register(condition, RegType::D)]);
        set.cmod = Some(Cmod::Nz);
    }

    /// Registers for the sources of all phis and for their results.
    fn phis(&mut self) -> Result<(), SelectError> {
        for (_, instr) in self.code.function.instrs_in_order() {
            if let InstrData::Phi { def, .. } = &self.code.function.instrs[instr] {
                self.code.instr = Some(instr);
                self.expect_words(*def)?;
                let registers = self.new_registers(*def);
                self.incoming.insert(*def, registers);
                self.define(*def);
            }
        }
        self.code.instr = None;
        Ok(())
    }

    /// An intrinsic: its operands are the words of the payload.
    fn message(&mut self, intrinsic: &Intrinsic) -> Result<(), SelectError> {
        intrinsic.srcs.iter().try_for_each(|&src| self.expect_words(src))?;
        let message = Message::of(self.code.function, intrinsic);
        let payload: Vec<Src> = intrinsic
            .srcs
            .iter()
            .flat_map(|&src| &self.locations[src])
            .map(|&word| register(word, RegType::Ud))
            .collect();
        let dst = match intrinsic.def {
            Some(def) => destination(self.define(def)[0], RegType::Ud),
            None => null(RegType::Ud),
        };
        self.code.emit(Opcode::Send, dst, &payload).message = Some(Box::new(message));
        Ok(())
    }
}

impl<'a> Selection<'a> for Selector<'a> {
    fn code(&mut self) -> &mut Code<'a> {
        &mut self.code
    }

    fn test(&mut self, condition: Def) -> (Predicate, bool) {
        self.set_flag(self.locations[condition][0]);
        (Predicate::Normal, false)
    }

    fn copy_to_phi(&mut self, phi: Def, value: Def) {
        let (to, from) = (self.incoming[&phi].clone(), self.locations[value].clone());
        self.copy_all(to, from);
    }

    fn instruction(&mut self, data: &InstrData) -> Result<(), SelectError> {
        if let Some(def) = data.def() {
            self.expect_words(def)?;
        }
        match data {
            InstrData::Alu(alu) => self.alu(alu)?,
            InstrData::Const { def, values } => {
                let registers = self.define(*def);
                let bits = self.code.bits(*def);
                let words = values.iter().flat_map(|&value| match bits {
                    1 => [Some(bool_bits(value)), None],
                    32 => [Some(value as u32), None],
                    _ => [Some(value as u32), Some((value >> 32) as u32)],
                });
                for (to, word) in registers.into_iter().zip(words.flatten()) {
                    self.copy(to, Src::immediate(word, RegType::Ud));
                }
            }
            InstrData::Undef { def } => drop(self.define(*def)),
            InstrData::Phi { def, .. } => {
                let (from, to) = (self.incoming[def].clone(), self.locations[*def].clone());
                self.copy_all(to, from);
            }
            InstrData::Intrinsic(intrinsic) => self.message(intrinsic)?,
            InstrData::Tex(_) => return Err(self.code.unsupported("textures are not supported")),
            InstrData::Jump(_) => unreachable!("jumps end blocks"),
        }
        Ok(())
    }
}
