//! Messages: an operation of nir on words in registers.
//!
//! The effect of a message in memory and other units is the meaning of its intrinsic. Its operands are in registers of
//! one word each: a component of 64 bits is two words, the low one first; a bool is 0 or all ones.

use crate::nir::text::ParseError;
use crate::nir::{self, Builder, Def, Indices, InstrData, IntrinsicOp, Stage};
use smallvec::SmallVec;
use std::fmt;

/// The type of an operand of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordType {
    /// The components.
    pub components: u8,
    /// The width of each: 1, 32 or 64.
    pub bits: u8,
}

impl WordType {
    /// The type of a nir value.
    pub fn of(function: &nir::Function, def: Def) -> Self {
        let data = &function.defs[def];
        Self { components: data.num_components, bits: data.bit_size }
    }

    /// The registers that it takes.
    pub fn words(self) -> u32 {
        u32::from(self.components) * if self.bits == 64 { 2 } else { 1 }
    }
}

impl fmt::Display for WordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bits)?;
        if self.components == 1 { Ok(()) } else { write!(f, "x{}", self.components) }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The operation.
    pub op: IntrinsicOp,
    /// Its indices.
    pub indices: Indices,
    /// The type of its result.
    pub result: Option<WordType>,
    /// The types of its operands, whose words are the sources of the instruction.
    pub operands: SmallVec<[WordType; 4]>,
}

/// The missing or invalid part of a message's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It has no `@`.
    #[error("`@` and the name of an intrinsic")]
    NoName,
    /// The intrinsic is not valid.
    #[error("an intrinsic as nir has it: {0}")]
    Nir(Box<ParseError>),
}

impl Message {
    /// The registers of the result.
    pub fn result_words(&self) -> u32 {
        self.result.map_or(0, WordType::words)
    }

    /// The registers of all operands.
    pub fn operand_words(&self) -> u32 {
        self.operands.iter().map(|operand| operand.words()).sum()
    }

    /// Appends the intrinsic to a nir program.
    pub fn build(&self, b: &mut Builder, operands: &[Def]) -> Option<Def> {
        let WordType { components, bits } = self.result.unwrap_or(WordType { components: 1, bits: 32 });
        b.intrinsic(self.op, components, bits, operands, self.indices.clone())
    }

    /// Reads a message in the form in which it is written: `32x4 @load_ssbo_ir3 (32, 32, 32) (base=0, …)`.
    ///
    /// # Errors
    /// If it is no intrinsic of nir.
    pub fn read(text: &str) -> Result<Self, MessageError> {
        let (result, call) = text.split_once('@').ok_or(MessageError::NoName)?;
        let name = call.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let op = IntrinsicOp::from_name(name).ok_or(MessageError::NoName)?;
        let rest = call[name.len()..].trim_start();
        let (types, indices) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((types, indices)) if !op.info().srcs.is_empty() => (types, indices),
            _ => ("", rest),
        };
        let types: Vec<&str> = types.split(',').map(str::trim).filter(|ty| !ty.is_empty()).collect();
        let mut code = String::new();
        for (number, ty) in types.iter().enumerate() {
            code += &format!("    {ty} %{number} = undefined\n");
        }
        let result = result.trim();
        let result = if result.is_empty() { String::new() } else { format!("{result} %{} = ", types.len()) };
        let names: Vec<String> = (0..types.len()).map(|number| format!("%{number}")).collect();
        let list = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let shader = format!(
            "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 1, 1, 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:   // preds:\n{code}    {result}@{name}{list} {indices}\n    // succs: b1\n    block b1:\n}}\n"
        );
        let shader = nir::text::read(&shader).map_err(|error| MessageError::Nir(Box::new(error)))?;
        let function = &shader.entry;
        let intrinsic = function.instrs.values().find_map(|data| match data {
            InstrData::Intrinsic(intrinsic) => Some(intrinsic),
            _ => None,
        });
        Ok(Self::of(function, intrinsic.ok_or(MessageError::NoName)?))
    }

    /// The message of an intrinsic.
    pub fn of(function: &nir::Function, intrinsic: &nir::Intrinsic) -> Self {
        Self {
            op: intrinsic.op,
            indices: intrinsic.indices.clone(),
            result: intrinsic.def.map(|def| WordType::of(function, def)),
            operands: intrinsic.srcs.iter().map(|&src| WordType::of(function, src)).collect(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(result) = self.result {
            write!(f, "{result} ")?;
        }
        write!(f, "@{}", self.op.name())?;
        if !self.operands.is_empty() {
            let types: Vec<String> = self.operands.iter().map(WordType::to_string).collect();
            write!(f, " ({})", types.join(", "))?;
        }
        // The indices are printed by nir's writer.
        let mut b = Builder::new(Stage::Compute);
        let operands: Vec<Def> =
            self.operands.iter().map(|operand| b.undef(operand.components, operand.bits)).collect();
        self.build(&mut b, &operands);
        let text = nir::text::write(&b.finish());
        let line = text.lines().find_map(|line| line.split_once('@')).map_or("", |(_, call)| call);
        let indices = match self.operands.is_empty() {
            true => &line[self.op.name().len()..],
            false => line.split_once(')').map_or("", |(_, indices)| indices),
        };
        f.write_str(indices.trim_end())
    }
}
