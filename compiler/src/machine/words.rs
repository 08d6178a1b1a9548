//! Code as words.

use super::code::{Code, CodeError, CodeInstr, Interface, Ip};
use super::encoding::{self, DecodeError};
use crate::ir3::InstrData;
use crate::target::Generation;
use cranelift_entity::{EntityRef, PrimaryMap};

impl Code {
    /// The words of the code.
    ///
    /// # Errors
    /// At the first instruction that the generation does not have, or an operand of which does not fit its field.
    pub fn encode(&self, generation: Generation) -> Result<Vec<u64>, CodeError> {
        let mut words = Vec::with_capacity(self.instrs.len());
        for (ip, instr) in &self.instrs {
            words.push(encode(generation, ip, &instr.data, instr.target)?);
        }
        Ok(words)
    }

    /// Decodes words; the interface has the facts that are not encoded.
    ///
    /// # Errors
    /// At the first word that is no instruction of the generation, or that ir3 cannot express, and where a branch
    /// leaves the code.
    pub fn decode(generation: Generation, words: &[u64], interface: Interface) -> Result<Self, CodeError> {
        let mut instrs = PrimaryMap::with_capacity(words.len());
        for position in 0..words.len() {
            instrs.push(CodeInstr::decode(generation, words, Ip::new(position))?);
        }
        Ok(Self { instrs, interface })
    }
}

/// The word of an instruction at a position, which branches to `target`.
pub(crate) fn encode(generation: Generation, ip: Ip, data: &InstrData, target: Option<Ip>) -> Result<u64, CodeError> {
    let distance = target.map(|target| target.as_u32().wrapping_sub(ip.as_u32()).cast_signed());
    encoding::encode(generation, data, distance).map_err(|error| CodeError::new(ip, error.to_string()))
}

impl CodeInstr {
    /// Decodes one of the words.
    pub(crate) fn decode(generation: Generation, words: &[u64], ip: Ip) -> Result<Self, CodeError> {
        let error = |error: DecodeError| CodeError::new(ip, error.to_string());
        let decoded = encoding::decode(generation, words[ip.index()]).map_err(error)?;
        let target = match decoded.distance.map(|distance| ip.index() as i64 + i64::from(distance)) {
            Some(target) if (0..words.len() as i64).contains(&target) => Some(Ip::new(target as usize)),
            Some(target) => {
                return Err(CodeError::new(ip, format!("a branch to {target}, and the code ends before it")));
            }
            None => None,
        };
        Ok(Self { data: decoded.data, target })
    }
}
