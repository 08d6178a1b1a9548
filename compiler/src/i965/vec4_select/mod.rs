//! Instruction selection: from nir to vec4.
//!
//! One pass over the tree of control flow, in source order. A nir value is a virtual register, its components the first
//! channels; a bool is 0 or all ones. Inputs and uniforms are operands themselves. Negations and absolute values of
//! floats become source modifiers, constants immediates of the last source. Each phi has two registers: predecessors
//! write one at their end, the block of the phi copies it to the other, so that phis of a block cannot overwrite each
//! other's sources.
//!
//! Arithmetic on 32 bits, comparisons, selections, control flow, inputs, uniforms and outputs are supported. Loads from
//! uniform buffers (i965's pull constants) and system values are messages. Everything else is refused by name.

pub(crate) mod alu;
pub(crate) mod operands;
pub(crate) mod walk;

use crate::features::{Feature, Features};
use crate::i965::vec4::{
    Cmod, Dst, DstFile, Mask, Message, Mode, Opcode, Predicate, Program, RegType, Src, SrcFile, Swizzle,
};
use crate::nir::{self, AluSrc, Def, InstrData, Intrinsic, IntrinsicOp};
use crate::select::SelectError;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use walk::{Code, Selection};

/// The registers of the components of a nir value: consecutive channels of a register.
#[derive(Clone, Copy, Debug)]
struct Location {
    file: SrcFile,
    first: u8,
}

struct Selector<'a> {
    code: Code<'a>,
    features: Features,
    locations: SecondaryMap<Def, Option<Location>>,
    /// The registers that the sources of phis are copied to, by phi.
    incoming: FxHashMap<Def, u32>,
}

/// Translates a shader.
///
/// # Errors
/// If an operation is not supported; the error names it and its location.
pub fn run(shader: &nir::Shader, features: Features) -> Result<Program, SelectError> {
    let mut selector = Selector {
        code: Code::new(&shader.entry, Mode::Vec4),
        features,
        locations: SecondaryMap::new(),
        incoming: FxHashMap::default(),
    };
    if shader.stage != nir::Stage::Vertex {
        return Err(selector.code.unsupported(format!("{}: only vertex shaders are translated to vec4", shader.stage)));
    }
    nir::FloatControls::of(&shader.info).map_err(|error| selector.code.unsupported(error.to_string()))?;
    selector.phis();
    selector.list(&shader.entry.body)?;
    Ok(Program { mode: Mode::Vec4, stage: shader.stage, info: shader.info.clone(), instrs: selector.code.instrs })
}

impl Selector<'_> {
    /// The register of a new value.
    fn define(&mut self, def: Def) -> u32 {
        let register = self.code.new_register();
        self.locations[def] = Some(Location { file: SrcFile::Vgrf(register), first: 0 });
        register
    }

    /// The location of a value. A value that is used before it is computed (in a phi) gets its register now.
    fn location(&mut self, def: Def) -> Location {
        match self.locations[def] {
            Some(location) => location,
            None => {
                let file = SrcFile::Vgrf(self.define(def));
                Location { file, first: 0 }
            }
        }
    }

    /// Registers for the sources of all phis.
    fn phis(&mut self) {
        for (_, instr) in self.code.function.instrs_in_order() {
            if let InstrData::Phi { def, .. } = &self.code.function.instrs[instr] {
                let register = self.code.new_register();
                self.incoming.insert(*def, register);
            }
        }
    }

    fn constant(&mut self, def: Def, values: &[u64]) {
        let register = self.define(def);
        let is_bool = self.code.function.defs[def].bit_size == 1;
        let bits = |value: u64| if is_bool { operands::bool_bits(value) } else { value as u32 };
        let mut left = Mask::first(values.len() as u8);
        for (i, &value) in values.iter().enumerate() {
            let same =
                (0..values.len()).filter(|&j| values[j] == value).fold(Mask::NONE, |mask, j| mask | Mask(1 << j));
            if left.has(i) {
                let dst = Dst { file: DstFile::Vgrf(register), mask: same, ty: RegType::Ud };
                self.code.emit(Opcode::Mov, dst, &[Src::immediate(bits(value), RegType::Ud)]);
                left = left.without(same);
            }
        }
    }

    fn intrinsic(&mut self, intrinsic: &Intrinsic) -> Result<(), SelectError> {
        // An offset may be negative.
        let constant = |def: Def| self.code.function.as_const_scalar(def).map(|value| value as i32);
        let base = i64::from(intrinsic.indices.base());
        let slot = |offset: Option<i32>, error: &str| {
            let at = offset.and_then(|offset| u32::try_from(base + i64::from(offset)).ok());
            at.filter(|&at| at < 4096).ok_or_else(|| self.code.unsupported(error))
        };
        match (intrinsic.op, &intrinsic.srcs[..], intrinsic.def) {
            (IntrinsicOp::LoadInput, &[offset], Some(def)) => {
                let number = slot(constant(offset), "an attribute whose number is no constant")?;
                let first = intrinsic.indices.component();
                if first + self.code.components(def) > 4 {
                    return Err(self.code.unsupported("an attribute of two slots"));
                }
                self.locations[def] = Some(Location { file: SrcFile::Attr(number), first });
            }
            (IntrinsicOp::LoadConstIr3, &[offset], Some(def)) if constant(offset).is_none() => {
                // i965 moves uniforms that are indexed to the pull constants.
                self.message(intrinsic, def)?;
            }
            (IntrinsicOp::LoadConstIr3, &[offset], Some(def)) => {
                let word = slot(constant(offset), "a uniform whose number is no constant")?;
                let (vector, first) = (word / 4, (word % 4) as u8);
                let components = self.code.components(def);
                if first + components <= 4 {
                    self.locations[def] = Some(Location { file: SrcFile::Uniform(vector), first });
                } else {
                    let register = self.define(def);
                    for component in 0..components {
                        let word = word + u32::from(component);
                        let dst = Dst { file: DstFile::Vgrf(register), mask: Mask(1 << component), ty: RegType::Ud };
                        let swizzle = Swizzle::replicate((word % 4) as u8);
                        self.code.emit(Opcode::Mov, dst, &[Src::new(SrcFile::Uniform(word / 4), swizzle, RegType::Ud)]);
                    }
                }
            }
            (IntrinsicOp::StoreOutput, &[value, offset], None) => {
                if self.code.depth != 0 {
                    return Err(self.code.unsupported("a store to an output inside of an if or a loop"));
                }
                if self.code.function.defs[value].bit_size != 32 {
                    let bits = self.code.function.defs[value].bit_size;
                    return Err(self.code.unsupported(format!("an output of {bits} bits")));
                }
                let number = slot(constant(offset), "an output whose number is no constant")?;
                let first = intrinsic.indices.component();
                let mask = intrinsic.indices.write_mask() as u8 & Mask::first(self.code.components(value)).0;
                if u32::from(mask) << first > 15 {
                    return Err(self.code.unsupported("an output of two slots"));
                }
                let Location { file, first: from } = self.location(value);
                let mut swizzle = [from; 4];
                for channel in Mask(mask).channels() {
                    swizzle[channel + usize::from(first)] = from + channel as u8;
                }
                let dst = Dst { file: DstFile::Output(number), mask: Mask(mask << first), ty: RegType::F };
                self.code.emit(Opcode::Mov, dst, &[Src::new(file, Swizzle(swizzle), RegType::F)]);
            }
            (op, _, Some(def)) if is_message(op) => self.message(intrinsic, def)?,
            (IntrinsicOp::PreambleStartIr3, ..) => {
                let Some((instr, why)) = nir::preamble::obstacle(self.code.function) else {
                    return Err(self.code.unsupported("a preamble that is not inlined"));
                };
                self.code.instr = Some(instr);
                return Err(self.code.unsupported(format!("a preamble that cannot be inlined: {why}")));
            }
            _ => return Err(self.code.unsupported("not supported in vec4")),
        }
        Ok(())
    }

    /// A value that is neither an attribute nor a uniform: a system value, or a pull constant.
    fn message(&mut self, intrinsic: &Intrinsic, def: Def) -> Result<(), SelectError> {
        for &src in &intrinsic.srcs {
            let bits = self.code.function.defs[src].bit_size;
            if bits != 32 {
                return Err(self.code.unsupported(format!("a source of {bits} bits")));
            }
        }
        let message = Message::of(self.code.function, intrinsic);
        let srcs: Vec<Src> = intrinsic.srcs.iter().map(|&src| self.whole(src, RegType::Ud)).collect();
        let mask = Mask::first(self.code.components(def));
        let dst = Dst { file: DstFile::Vgrf(self.define(def)), mask, ty: RegType::Ud };
        self.code.emit(Opcode::Send, dst, &srcs).message = Some(Box::new(message));
        Ok(())
    }
}

impl<'a> Selection<'a> for Selector<'a> {
    fn code(&mut self) -> &mut Code<'a> {
        &mut self.code
    }

    fn test(&mut self, condition: Def) -> (Predicate, bool) {
        let (condition, inverse) = self.without_nots(&AluSrc::identity(condition), 1);
        let condition = self.swizzled(&condition, 1, RegType::D);
        self.code.emit(Opcode::Mov, Dst::null(RegType::D), &[condition]).cmod = Some(Cmod::Nz);
        (if self.features.contains(Feature::ReplicateIf) { Predicate::ReplicateX } else { Predicate::Normal }, inverse)
    }

    fn copy_to_phi(&mut self, phi: Def, value: Def) {
        let mask = Mask::first(self.code.components(phi));
        let dst = Dst { file: DstFile::Vgrf(self.incoming[&phi]), mask, ty: RegType::Ud };
        let src = self.whole(value, RegType::Ud);
        self.code.emit(Opcode::Mov, dst, &[src]);
    }

    fn instruction(&mut self, data: &InstrData) -> Result<(), SelectError> {
        if let Some(def) = data.def()
            && !matches!(self.code.function.defs[def].bit_size, 1 | 32)
        {
            return Err(self.code.unsupported(format!("a value of {} bits", self.code.function.defs[def].bit_size)));
        }
        if let Some(def) = data.def()
            && self.code.components(def) > 4
        {
            return Err(self.code.unsupported(format!("a vector of {} components", self.code.components(def))));
        }
        match data {
            InstrData::Alu(alu) => self.alu(alu),
            InstrData::Const { def, values } => {
                self.constant(*def, values);
                Ok(())
            }
            InstrData::Undef { def } => {
                self.define(*def);
                Ok(())
            }
            InstrData::Phi { def, .. } => {
                let components = self.code.components(*def);
                let file = SrcFile::Vgrf(self.incoming[def]);
                let to = match self.location(*def).file {
                    SrcFile::Vgrf(register) => register,
                    _ => unreachable!("a phi is in a register"),
                };
                let dst = Dst { file: DstFile::Vgrf(to), mask: Mask::first(components), ty: RegType::Ud };
                self.code.emit(Opcode::Mov, dst, &[Src::new(file, Swizzle::IDENTITY, RegType::Ud)]);
                Ok(())
            }
            InstrData::Intrinsic(intrinsic) => self.intrinsic(intrinsic),
            InstrData::Tex(_) => Err(self.code.unsupported("textures are not supported")),
            InstrData::Jump(_) => unreachable!("jumps end blocks"),
        }
    }
}

/// The intrinsics that are messages: loads from uniform buffers, and the system values of vertex shaders.
fn is_message(op: IntrinsicOp) -> bool {
    use IntrinsicOp::{
        BindlessResourceIr3, LoadBaseInstance, LoadBaseVertex, LoadDrawId, LoadFirstVertex, LoadInstanceId,
        LoadIsIndexedDraw, LoadUbo, LoadUboVec4, LoadVertexId, LoadVertexIdZeroBase, LoadViewIndex,
    };
    matches!(
        op,
        BindlessResourceIr3
            | LoadBaseInstance
            | LoadBaseVertex
            | LoadDrawId
            | LoadFirstVertex
            | LoadInstanceId
            | LoadIsIndexedDraw
            | LoadUbo
            | LoadUboVec4
            | LoadVertexId
            | LoadVertexIdZeroBase
            | LoadViewIndex
    )
}
