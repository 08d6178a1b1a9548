//! Numbers of varyings.
//!
//! A varying has four times its base in nir, plus its component. Before the last pass, Mesa packs those that are read:
//! the list of inputs after the code has their final numbers. All programs get those of nir.

use ir3_compiler::ir3::{Attrs, InstrData, Opcode, OperandFlags, PhysReg, SrcOperand};
use ir3_compiler::nir::{Shader, Stage};
use ir3_programs::input::natives;
use ir3_programs::mesa::native::Native;
use rustc_hash::FxHashMap;

/// The pass before which varyings are packed.
const PACKED_BEFORE: &str = "ir3_legalize";

/// The numbers of varyings.
#[derive(Default)]
pub(super) struct Varyings {
    /// The numbers in nir, by the final ones.
    before_packing: FxHashMap<u32, u32>,
}

impl Varyings {
    pub fn of(native: &Native, nir: &Shader) -> Self {
        let mut own = Self::default();
        if nir.stage != Stage::Fragment {
            return own;
        }
        for input in &native.inputs {
            let (Some(first), Some(base)) = (input.varying, natives::loaded(nir, &input.location)) else { continue };
            for component in (0..4).filter(|component| input.components >> component & 1 != 0) {
                own.before_packing.insert(first + component, 4 * u32::from(base) + component);
            }
        }
        own
    }

    /// Returns true if an instruction reads a varying.
    pub fn is_read_by(data: &InstrData) -> bool {
        Self::read(data).next().is_some()
    }

    /// Returns lines about those that have other numbers.
    pub fn inferred(&self) -> Vec<String> {
        let mut all: Vec<_> = self.before_packing.iter().filter(|(to, from)| to != from).collect();
        all.sort_unstable();
        all.into_iter()
            .map(|(to, from)| format!("varying {from} of nir has the number {to} from {PACKED_BEFORE} on"))
            .collect()
    }

    /// The first varying that an instruction after packing reads, and that is not in the list of inputs: the driver
    /// does not set it up.
    pub fn untold(&self, data: &InstrData) -> Option<u32> {
        let told = |number: &u32| self.before_packing.contains_key(number);
        Self::read(data).find(|number| !told(number))
    }

    /// The numbers of the varyings that an instruction reads, one for each repetition. One without a result only
    /// releases their memory.
    fn read(data: &InstrData) -> impl Iterator<Item = u32> {
        let has_result = data.dsts.first().is_some_and(|dst| dst.place.reg() != Some(PhysReg::INVALID));
        let (first, count) = match (&data.attrs, data.srcs.first().map(|src| (src.operand, src.flags))) {
            (_, Some((SrcOperand::Immediate(first), flags))) if has_result && data.opcode.reads_varying() => {
                let advances = flags.contains(OperandFlags::R);
                (first, if advances { 1 + u32::from(data.repeat) } else { 1 })
            }
            (Attrs::Texture(attrs), _) => match attrs.input_offset {
                Some(first) => (first.into(), 2),
                None => (0, 0),
            },
            _ => (0, 0),
        };
        first..first + count
    }

    /// Gives the varyings of an instruction after packing the numbers of nir.
    pub fn unpack(&self, data: &mut InstrData) {
        let number = |packed: u32| self.before_packing.get(&packed).copied().unwrap_or(packed);
        if data.opcode.reads_varying() {
            let count = if data.opcode == Opcode::FlatB { 2 } else { 1 };
            for src in data.srcs.iter_mut().take(count) {
                if let SrcOperand::Immediate(packed) = &mut src.operand {
                    *packed = number(*packed);
                }
            }
        } else if let Attrs::Texture(attrs) = &mut data.attrs
            && let Some(packed) = &mut attrs.input_offset
        {
            *packed = number(u32::from(*packed)) as u16;
        }
    }
}
