//! The declarations of inputs and outputs in nir's accesses: the slot of the API, its flags, its stream, and the
//! captures of transform feedback.
//!
//! An access names an input or output by number, which is all that runs and proofs use. The driver and the other stages
//! go by its slot: a number with another slot is another output, even if the stored value is the same. ir3 has only the
//! numbers, so this is compared between two programs in nir. A component that both programs access has to have the same
//! facts; one that a pass no longer accesses is not compared.
//!
//! The interpolation mode of a color is such a fact: a color without a mode is flat or smooth by `glShadeModel`, a
//! state of the driver.
//!
//! A number beyond those that the header declares names nothing ([`Undeclared`]).

use ir3_compiler::nir::{self, IndexKind, InstrData, InterpMode, Intrinsic, IntrinsicOp, IoFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The flags that affect the meaning of an access. The others are about its precision, or permit transformations that
/// no pass of ours makes.
const MEANING: IoFlags = IoFlags::EXPLICIT_STRICT
    .union(IoFlags::DUAL_SOURCE)
    .union(IoFlags::FB_FETCH)
    .union(IoFlags::COHERENT)
    .union(IoFlags::PER_VIEW)
    .union(IoFlags::HIGH_16_BITS)
    .union(IoFlags::HIGH_DVEC2)
    .union(IoFlags::NO_VARYING)
    .union(IoFlags::NO_SYSVAL_OUTPUT);

/// The kind of access to a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Input,
    Output,
    OutputRead,
}

/// A component of an input or output, by its number: the base and the offset of the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Component {
    purpose: Use,
    number: i32,
    component: u8,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = ['x', 'y', 'z', 'w'].get(usize::from(self.component)).copied().unwrap_or('?');
        let what = if self.purpose == Use::Input { "input" } else { "output" };
        write!(f, "slot of {what} {}.{letter}", self.number)
    }
}

/// The declarations of a component in its accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Facts {
    /// Its slot, with its attributes: one, unless accesses contradict each other.
    slots: BTreeSet<String>,
    /// The ranges of the accesses at computed offsets that may reach it.
    ranges: BTreeSet<String>,
}

/// The inputs and outputs that a program in nir accesses, and their declarations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface(BTreeMap<Component, Facts>);

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
        let is_store = intrinsic.op.name().starts_with("store");
        let purpose = match intrinsic.op.name().contains("output") {
            true if is_store => Use::Output,
            true => Use::OutputRead,
            false => Use::Input,
        };
        let mask = match (is_store, intrinsic.def) {
            (true, _) if intrinsic.indices.get(IndexKind::WriteMask).is_some() => intrinsic.indices.write_mask(),
            (false, Some(def)) => (1 << function.defs[def].num_components) - 1,
            _ => 1,
        };
        let flags = io.flags & MEANING;
        // An access at a computed offset may be to each of its slots.
        let known = intrinsic.srcs.last().and_then(|&offset| function.as_const_scalar(offset));
        let offsets =
            known.map_or(0..io.slots.min(MOST_SLOTS), |offset| offset as u32..(offset as u32).saturating_add(1));
        let view = match intrinsic.op {
            IntrinsicOp::StorePerViewOutput => function.as_const_scalar(intrinsic.srcs[1]).map(|view| view as u32),
            _ => None,
        };
        let components = (0..16_u8).filter(|i| mask >> i & 1 != 0);
        for (index, offset) in components.flat_map(|index| offsets.clone().map(move |offset| (index, offset))) {
            let component = index.saturating_add(intrinsic.indices.component());
            let mut facts = slot_after(&io.location, offset);
            if is_shaded(function, intrinsic) && is_color(&facts) {
                facts += " in the mode of glShadeModel";
            }
            if let Some(view) = view {
                facts += &format!(" of view {view}");
            }
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
            // The views of an output are consecutive.
            let number = intrinsic.indices.base().wrapping_add(offset.wrapping_add(view.unwrap_or(0)) as i32);
            let key = Component { purpose, number, component };
            let entry = self.0.entry(key).or_default();
            entry.slots.insert(facts);
            if known.is_none() {
                entry.ranges.insert(format!("{} from {}", io.slots, io.location));
            }
        }
    }

    /// Returns the first component whose declared slot differs, with both slots. A component with several slots counts
    /// as different: engines cannot tell which access uses which.
    pub(super) fn difference(&self, after: &Self) -> Option<[String; 3]> {
        self.0.iter().find_map(|(key, before)| {
            let after = after.0.get(key)?;
            let text = |facts: &BTreeSet<String>| facts.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
            if before.slots.len() > 1 || after.slots.len() > 1 {
                let several = format!("{} (more than one slot)", text(&after.slots));
                return Some([key.to_string(), text(&before.slots), several]);
            }
            if before.slots != after.slots {
                return Some([key.to_string(), text(&before.slots), text(&after.slots)]);
            }
            // A pass may resolve the slot of a computed offset, and drop accesses.
            let is_new = !after.ranges.is_subset(&before.ranges);
            let range = |facts: &Facts| format!("one of {}", text(&facts.ranges));
            is_new.then(|| [key.to_string(), range(before), range(after)])
        })
    }
}

/// The slots of the colors of fixed-function stages.
const COLORS: [&str; 4] = ["VARYING_SLOT_COL0", "VARYING_SLOT_COL1", "VARYING_SLOT_BFC0", "VARYING_SLOT_BFC1"];

fn is_color(location: &str) -> bool {
    COLORS.contains(&location)
}

/// Returns true if an input is interpolated at coordinates without a mode.
fn is_shaded(function: &nir::Function, intrinsic: &Intrinsic) -> bool {
    let coordinates = match intrinsic.op {
        IntrinsicOp::LoadInterpolatedInput => intrinsic.srcs.first(),
        _ => None,
    };
    coordinates.is_some_and(|&at| match &function.instrs[function.defs[at].instr] {
        InstrData::Intrinsic(at) if at.indices.get(IndexKind::InterpMode).is_some() => {
            matches!(at.indices.interp_mode(), InterpMode::None | InterpMode::Color)
        }
        _ => false,
    })
}

/// The accesses of a program in nir beyond what its header declares: other numbers of inputs, outputs and buffers than
/// those below the declared ones, and other components than the four of a slot. A pass may not add any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Undeclared(BTreeSet<String>);

impl Undeclared {
    /// The accesses of a program.
    pub(super) fn of(shader: &nir::Shader) -> Self {
        let mut all = Self::default();
        for (_, instr) in shader.entry.instrs_in_order() {
            if let InstrData::Intrinsic(intrinsic) = &shader.entry.instrs[instr] {
                all.add(shader, intrinsic);
            }
        }
        all
    }

    fn add(&mut self, shader: &nir::Shader, intrinsic: &Intrinsic) {
        let (function, info) = (&shader.entry, &shader.info);
        if intrinsic.indices.io_semantics().is_some() {
            let is_output = intrinsic.op.name().contains("output");
            let (what, declared) = if is_output { ("output", info.outputs) } else { ("input", info.inputs) };
            let offset = intrinsic.srcs.last().and_then(|&offset| function.as_const_scalar(offset));
            let number = i64::from(intrinsic.indices.base()) + i64::from(offset.unwrap_or(0) as u32);
            if !(0..i64::from(declared)).contains(&number) {
                self.0.insert(format!("{what} {number}"));
            }
            let components = function.intrinsic_components(intrinsic);
            let last = u32::from(intrinsic.indices.component()) + u32::from(components);
            if last > 4 {
                self.0.insert(format!("components of {what} {number} up to {last}"));
            }
        }
        let (what, declared, buffer) = match intrinsic.op.name() {
            name if name.contains("ssbo") => ("storage buffer", info.num_ssbos, usize::from(name.starts_with("store"))),
            name if name.contains("ubo") => ("uniform buffer", info.num_ubos, 0),
            name if name.starts_with("image_") => ("image", info.num_images, 0),
            _ => return,
        };
        let number = intrinsic.srcs.get(buffer).and_then(|&buffer| function.as_const_scalar(buffer));
        if let Some(number) = number.filter(|&number| number >= u64::from(declared)) {
            self.0.insert(format!("{what} {number}"));
        }
    }

    /// The first access of the program after that the program before does not have.
    pub(super) fn added<'a>(&self, after: &'a Self) -> Option<&'a str> {
        after.0.iter().find(|access| !self.0.contains(*access)).map(String::as_str)
    }
}

/// The most slots of an access at a computed offset that are looked at: more than there are.
const MOST_SLOTS: u32 = 256;

/// The name of the slot that is `offset` after another one.
fn slot_after(location: &str, offset: u32) -> String {
    let name = location.trim_end_matches(|c: char| c.is_ascii_digit());
    match location[name.len()..].parse::<u32>() {
        Ok(number) => format!("{name}{}", u64::from(number) + u64::from(offset)),
        Err(_) if offset == 0 => location.to_owned(),
        Err(_) => format!("{location} + {offset}"),
    }
}
