//! What nir says of each input and output where it accesses them: the slot of the API, its flags, its stream, and what transform feedback captures.
//!
//! An access names an input or output by number, and that is what runs and proofs know of it. The driver and the other stages go by its slot:
//! a number with another slot is another output, whatever is stored there. ir3 has only the numbers, so this is compared between two programs
//! in nir. A component that both programs access has to have the same facts; one that a pass no longer accesses is not compared.

use ir3_compiler::nir::{self, IndexKind, InstrData, Intrinsic, IoFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The flags that say what an access means. The others are about its precision, or permit what no pass of ours does.
const MEANING: IoFlags = IoFlags::EXPLICIT_STRICT
    .union(IoFlags::DUAL_SOURCE)
    .union(IoFlags::FB_FETCH)
    .union(IoFlags::COHERENT)
    .union(IoFlags::PER_VIEW)
    .union(IoFlags::HIGH_16_BITS)
    .union(IoFlags::HIGH_DVEC2)
    .union(IoFlags::NO_VARYING)
    .union(IoFlags::NO_SYSVAL_OUTPUT);

/// A component of an input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Component {
    is_output: bool,
    base: i32,
    component: u8,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = ['x', 'y', 'z', 'w'].get(usize::from(self.component)).copied().unwrap_or('?');
        write!(f, "slot of {} {}.{letter}", if self.is_output { "output" } else { "input" }, self.base)
    }
}

/// The inputs and outputs that a program in nir accesses, and what it says of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface(BTreeMap<Component, BTreeSet<String>>);

impl Interface {
    /// The interface of a program.
    pub(super) fn of(shader: &nir::Shader) -> Self {
        let mut all = Self::default();
        for (_, instr) in shader.entry.instrs_in_order() {
            if let InstrData::Intrinsic(intrinsic) = &shader.entry.instrs[instr] {
                all.add(&shader.entry, intrinsic);
            }
        }
        all
    }

    fn add(&mut self, function: &nir::Function, intrinsic: &Intrinsic) {
        let Some(io) = intrinsic.indices.io_semantics() else { return };
        let is_output = intrinsic.op.name().contains("output");
        let is_store = intrinsic.op.name().starts_with("store");
        let mask = match (is_store, intrinsic.def) {
            (true, _) if intrinsic.indices.get(IndexKind::WriteMask).is_some() => intrinsic.indices.write_mask(),
            (false, Some(def)) => (1 << function.defs[def].num_components) - 1,
            _ => 1,
        };
        let flags = io.flags & MEANING;
        for index in (0..16_u8).filter(|i| mask >> i & 1 != 0) {
            let component = index.saturating_add(intrinsic.indices.component());
            let mut facts = io.location.to_string();
            flags.iter_names().for_each(|(name, _)| facts += &format!(" {}", name.to_lowercase()));
            match io.stream(index) {
                0 => {}
                stream => facts += &format!(" in stream {stream}"),
            }
            let captured = [intrinsic.indices.io_xfb(), intrinsic.indices.io_xfb2()];
            for range in captured.iter().flatten().flat_map(|xfb| &xfb.outputs) {
                if (range.first..range.first.saturating_add(range.components)).contains(&component) {
                    let offset = range.offset.wrapping_add(4 * u32::from(component - range.first));
                    facts += &format!(", captured in buffer {} at {offset}", range.buffer);
                }
            }
            let key = Component { is_output, base: intrinsic.indices.base(), component };
            self.0.entry(key).or_default().insert(facts);
        }
    }

    /// The first component of which the program after says something else: what it is, what was said, and what is said.
    pub(super) fn difference(&self, after: &Self) -> Option<[String; 3]> {
        self.0.iter().find_map(|(key, before)| {
            let after = after.0.get(key)?;
            let text = |facts: &BTreeSet<String>| facts.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
            (!after.is_subset(before)).then(|| [key.to_string(), text(before), text(after)])
        })
    }
}
