//! The values in scope, by width, and which of them have no reader yet.
//!
//! Scopes nest as control flow does: at the end of a scope its definitions are removed, because they do not dominate
//! the code that follows. Scalars are listed by width, vectors in a list of their own.

use super::config::CONFIG;
use ir3_compiler::nir::{AluSrc, Builder, Def};

use super::choices::Choices;

/// A vector in scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector {
    pub def: Def,
    pub bits: u8,
    pub components: u8,
}

/// A local array in scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalArray {
    pub reg: Def,
    pub length: u16,
    /// The width of an element.
    pub bits: u8,
}

/// The values in scope.
#[derive(Default)]
pub(super) struct Pool {
    scalars: [Vec<Def>; 5],
    vectors: Vec<Vector>,
    /// The scalars that are meant to be uniform.
    uniform: [Vec<Def>; 5],
    /// Only uniform values are read, and new values count as uniform.
    pub only_uniform: bool,
    /// Conditions with several readers.
    kept: Vec<Def>,
    /// Local arrays.
    arrays: Vec<LocalArray>,
    /// By value: true if it has a use.
    used: Vec<bool>,
    /// The sum of the observed values of this scope and those around it.
    witness: Option<Def>,
}

/// The lengths of the lists at the start of a scope; the default is the outermost scope.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    scalars: [usize; 5],
    uniform: [usize; 5],
    vectors: usize,
    kept: usize,
    arrays: usize,
    witness: Option<Def>,
}

/// The widths, in the order of the lists.
pub const WIDTHS: [u8; 5] = [1, 8, 16, 32, 64];

const fn list_of(bits: u8) -> usize {
    match bits {
        1 => 0,
        8 => 1,
        16 => 2,
        32 => 3,
        _ => 4,
    }
}

impl Pool {
    /// Adds a value to the scope.
    pub fn add(&mut self, b: &Builder, def: Def) {
        let data = &b.function().defs[def];
        if data.num_components == 1 {
            self.scalars[list_of(data.bit_size)].push(def);
            if self.only_uniform {
                self.uniform[list_of(data.bit_size)].push(def);
            }
        } else {
            self.vectors.push(Vector { def, bits: data.bit_size, components: data.num_components });
        }
    }

    /// Begins a scope.
    pub fn mark(&self) -> Mark {
        Mark {
            scalars: std::array::from_fn(|i| self.scalars[i].len()),
            uniform: std::array::from_fn(|i| self.uniform[i].len()),
            vectors: self.vectors.len(),
            kept: self.kept.len(),
            arrays: self.arrays.len(),
            witness: self.witness,
        }
    }

    /// Ends a scope.
    pub fn release(&mut self, mark: Mark) {
        for (list, &len) in self.scalars.iter_mut().zip(&mark.scalars) {
            list.truncate(len);
        }
        for (list, &len) in self.uniform.iter_mut().zip(&mark.uniform) {
            list.truncate(len);
        }
        self.vectors.truncate(mark.vectors);
        self.kept.truncate(mark.kept);
        self.arrays.truncate(mark.arrays);
        self.witness = mark.witness;
    }

    /// The arrays in scope.
    pub fn arrays(&self) -> &[LocalArray] {
        &self.arrays
    }

    /// Adds an array.
    pub fn add_array(&mut self, array: LocalArray) {
        self.arrays.push(array);
    }

    /// The kept conditions.
    pub fn kept(&self) -> &[Def] {
        &self.kept
    }

    /// Keeps another condition.
    pub fn keep(&mut self, condition: Def) {
        self.kept.push(condition);
    }

    /// The witness; see [`Generator::define`](super::Generator::define).
    pub fn witness(&self) -> Option<Def> {
        self.witness
    }

    /// Replaces the witness by a sum with another value.
    pub fn set_witness(&mut self, def: Def) {
        self.witness = Some(def);
    }

    /// Records that a value has a reader.
    pub fn mark_used(&mut self, def: Def) {
        let index = def.as_u32() as usize;
        if index >= self.used.len() {
            self.used.resize(index + 64, false);
        }
        self.used[index] = true;
    }

    fn is_used(&self, def: Def) -> bool {
        self.used.get(def.as_u32() as usize).copied().unwrap_or(false)
    }

    /// Returns a scalar of a width, preferably a recent one without a use; `None` if no scalar has this width.
    pub fn scalar<C: Choices>(&mut self, c: &mut C, bits: u8) -> Option<Def> {
        let list = if self.only_uniform { &self.uniform } else { &self.scalars };
        let list = &list[list_of(bits)];
        if list.is_empty() {
            return None;
        }
        let choice = c.byte();
        let def = match choice & 3 {
            0 => list[(usize::from(choice >> 2) * list.len()) >> 6],
            1 => {
                let young = list.len().min(6);
                list[list.len() - 1 - usize::from(choice >> 2) % young]
            }
            _ => {
                // The most recent of the last few without a reader, otherwise any of the last few.
                let recent = &list[list.len().saturating_sub(8)..];
                let unread = recent.iter().rev().copied().find(|&d| !self.is_used(d));
                unread.unwrap_or(recent[usize::from(choice >> 2) % recent.len()])
            }
        };
        self.mark_used(def);
        Some(def)
    }

    /// Returns a random uniform 32-bit scalar.
    pub fn uniform<C: Choices>(&mut self, c: &mut C) -> Option<Def> {
        let list = &self.uniform[list_of(32)];
        let def = *list.get(c.below(list.len().max(1)))?;
        self.mark_used(def);
        Some(def)
    }

    /// Returns a vector of a width (or of any).
    pub fn vector<C: Choices>(&mut self, c: &mut C, bits: Option<u8>) -> Option<Vector> {
        if self.vectors.is_empty() || self.only_uniform {
            return None;
        }
        let start = c.below(self.vectors.len());
        let found = (0..self.vectors.len())
            .map(|i| self.vectors[(start + i) % self.vectors.len()])
            .find(|v| bits.is_none_or(|bits| v.bits == bits))?;
        self.mark_used(found.def);
        Some(found)
    }

    /// Returns a source of `components` of a width: a vector's components, swizzled or in order, or one scalar for all.
    pub fn source<C: Choices>(&mut self, c: &mut C, bits: u8, components: u8) -> Option<AluSrc> {
        let from_vector = !self.only_uniform
            && !self.vectors.is_empty()
            && c.chance(if components > 1 { CONFIG.vector_source } else { CONFIG.component_source });
        if let Some(v) = from_vector.then(|| self.vector(c, Some(bits))).flatten() {
            let mut swizzle = [0; 16];
            let shuffled = c.chance(CONFIG.shuffled_source);
            for (i, s) in swizzle.iter_mut().enumerate().take(usize::from(components)) {
                *s = if shuffled || i >= usize::from(v.components) {
                    c.below(usize::from(v.components)) as u8
                } else {
                    i as u8
                };
            }
            return Some(AluSrc { def: v.def, swizzle });
        }
        self.scalar(c, bits).map(|def| AluSrc::scalar(def, 0))
    }

    /// Takes at most `limit` values without a reader from the scopes since `mark`, with their witness, and records them
    /// as read.
    pub fn take_unread(&mut self, mark: Mark, limit: usize) -> Vec<(Def, u8, u8)> {
        let mut out = Vec::new();
        if self.witness != mark.witness {
            out.extend(self.witness.map(|witness| (witness, 32, 1)));
        }
        for (list, &bits) in WIDTHS.iter().enumerate() {
            for i in mark.scalars[list]..self.scalars[list].len() {
                let def = self.scalars[list][i];
                if !self.is_used(def) && out.len() < limit {
                    out.push((def, bits, 1));
                }
            }
        }
        for v in &self.vectors[mark.vectors..] {
            if !self.is_used(v.def) && out.len() < limit {
                out.push((v.def, v.bits, v.components));
            }
        }
        for &(def, ..) in &out {
            self.mark_used(def);
        }
        out
    }
}
