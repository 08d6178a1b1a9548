//! Inputs, outputs and system values: variables with a location or a built-in role.

use ir3_compiler::nir::{Def, InstrData, InterpMode, Intrinsic, IntrinsicOp, Stage};
use rspirv::dr::Operand;
use rspirv::spirv::{self, BuiltIn, Capability, Decoration, StorageClass, Word};

use super::values::{Kind, Ty};
use super::{CAPTURED_POSITION, CAPTURED_SLOTS, Emitter, NoForm, no_form, refs};

/// A variable, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Variable {
    /// An input of a location.
    Input(u32),
    /// An output of a location.
    Output(u32),
    /// A built-in input.
    Given(u32),
    /// A built-in output.
    Result(u32),
    /// The push constants.
    Pushed,
    /// Descriptors of this type, by set and binding.
    Bound(u32, u32, Word),
    /// Shared memory as elements of this many bits.
    Shared(u8),
    /// Scratch memory.
    Scratch,
    /// A local array.
    Local(Def),
}

/// The interpolation of an input over a primitive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpolation {
    None,
    Pixel(InterpMode),
    Centroid(InterpMode),
    Sample(InterpMode),
}

/// The number after a prefix in the name of a location.
fn numbered(location: &str, prefix: &str) -> Option<u32> {
    location.strip_prefix(prefix)?.parse().ok()
}

impl Emitter<'_> {
    fn location(&self, intrinsic: &Intrinsic) -> String {
        intrinsic.indices.io_semantics().map(|io| io.location.to_string()).unwrap_or_default()
    }

    /// Loads an input, interpolated or not.
    pub fn load_input(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let name = self.location(intrinsic);
        let offset = *intrinsic.srcs.last().expect("an input has an offset");
        let Some(offset) = self.function.as_const_scalar(offset) else {
            return no_form("an input at a computed location");
        };
        let stage = self.shader.stage;
        let first = match stage {
            Stage::Vertex => numbered(&name, "VERT_ATTRIB_GENERIC"),
            _ => numbered(&name, "VARYING_SLOT_VAR"),
        };
        let Some(location) = first.map(|first| first + offset as u32) else {
            return no_form(format_args!("the input `{name}`"));
        };
        let interpolation = match intrinsic.op {
            IntrinsicOp::LoadInput => Interpolation::None,
            _ => self.interpolation(intrinsic.srcs[0])?,
        };
        let kind = match interpolation {
            Interpolation::None if self.modes.compares_bits => Kind::Uint,
            Interpolation::None => self.kinds[def],
            _ => Kind::Float,
        };
        let bits = self.function.defs[def].bit_size;
        if !matches!(bits, 16 | 32) {
            return no_form(format_args!("an input of {bits} bits"));
        }
        // A variable keeps the kind of its first reader.
        let kind = self.inputs.get(&location).map_or(kind, |&(kind, _)| kind);
        let ty = Ty { kind, bits: 32, components: 4 };
        let type_id = self.type_id(ty);
        let variable = match self.variables.get(&Variable::Input(location)) {
            Some(&id) => id,
            None => {
                let id = self.global(type_id, StorageClass::Input);
                self.decorate(id, Decoration::Location, &[location]);
                self.variables.insert(Variable::Input(location), id);
                let mode = match interpolation {
                    Interpolation::None => {
                        if stage == Stage::Fragment {
                            self.decorate(id, Decoration::Flat, &[]);
                        }
                        InterpMode::Smooth
                    }
                    Interpolation::Pixel(mode) => mode,
                    Interpolation::Centroid(mode) => {
                        self.decorate(id, Decoration::Centroid, &[]);
                        mode
                    }
                    Interpolation::Sample(mode) => {
                        self.capability(Capability::SampleRateShading);
                        self.decorate(id, Decoration::Sample, &[]);
                        mode
                    }
                };
                if mode == InterpMode::NoPerspective {
                    self.decorate(id, Decoration::NoPerspective, &[]);
                }
                self.inputs.insert(location, (kind, interpolation_number(interpolation)));
                id
            }
        };
        if self.inputs[&location].1 != interpolation_number(interpolation) {
            return no_form(format_args!("the input `{name}` in two forms"));
        }
        let whole = self.b.id();
        let first = intrinsic.indices.component();
        let wanted = self.ty(def);
        if first == 0 && wanted == ty {
            self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[variable]));
            return Ok(());
        }
        self.emit_as(whole, spirv::Op::Load, type_id, refs(&[variable]));
        if bits == 16 {
            return self.narrow_half(def, whole, ty, first);
        }
        self.narrow(def, whole, ty, first)
    }

    /// Defines a value of halves as components of a vector of words, converted: floats as floats, others by their low
    /// bits.
    fn narrow_half(&mut self, def: Def, whole: Word, ty: Ty, first: u8) -> Result<(), NoForm> {
        let wanted = self.ty(def);
        if first + wanted.components > ty.components {
            return no_form("an access beyond a vector");
        }
        let op = if ty.kind == Kind::Float { spirv::Op::FConvert } else { spirv::Op::UConvert };
        let half = Ty { bits: 16, ..ty };
        let mut parts = Vec::new();
        for c in first..first + wanted.components {
            let (word, narrow) = (self.type_id(ty.of(1)), self.type_id(half.of(1)));
            let operands = vec![Operand::IdRef(whole), Operand::LiteralBit32(c.into())];
            let part = self.emit(spirv::Op::CompositeExtract, word, operands);
            let mut part = self.emit(op, narrow, refs(&[part]));
            if wanted.kind != ty.kind {
                let cast = self.type_id(wanted.of(1));
                part = self.emit(spirv::Op::Bitcast, cast, refs(&[part]));
            }
            parts.push(part);
        }
        self.define(def, &parts, wanted.kind);
        Ok(())
    }

    /// Defines a value as components of a vector, from this one on.
    pub fn narrow(&mut self, def: Def, whole: Word, ty: Ty, first: u8) -> Result<(), NoForm> {
        let wanted = self.ty(def);
        if first + wanted.components > ty.components {
            return no_form("an access beyond a vector");
        }
        let is_whole = first == 0 && wanted.components == ty.components;
        let is_cast = wanted.kind != ty.kind;
        let id = if is_whole && is_cast {
            whole
        } else if is_cast {
            self.b.id()
        } else {
            self.ids[def]
        };
        let part = self.type_id(ty.of(wanted.components));
        match wanted.components {
            _ if is_whole && is_cast => {}
            1 => {
                let operands = vec![Operand::IdRef(whole), Operand::LiteralBit32(first.into())];
                self.emit_as(id, spirv::Op::CompositeExtract, part, operands);
            }
            count => {
                let mut operands = refs(&[whole, whole]);
                operands.extend((first..first + count).map(|c| Operand::LiteralBit32(c.into())));
                self.emit_as(id, spirv::Op::VectorShuffle, part, operands);
            }
        }
        if is_cast {
            let ty = self.type_id(wanted);
            self.emit_as(self.ids[def], spirv::Op::Bitcast, ty, refs(&[id]));
        }
        Ok(())
    }

    fn interpolation(&self, barycentric: Def) -> Result<Interpolation, NoForm> {
        let InstrData::Intrinsic(intrinsic) = &self.function.instrs[self.function.defs[barycentric].instr] else {
            return no_form("an input at computed barycentrics");
        };
        let mode = intrinsic.indices.interp_mode();
        Ok(match intrinsic.op {
            IntrinsicOp::LoadBarycentricPixel => Interpolation::Pixel(mode),
            IntrinsicOp::LoadBarycentricCentroid => Interpolation::Centroid(mode),
            IntrinsicOp::LoadBarycentricSample => Interpolation::Sample(mode),
            op => return no_form(format_args!("`{op}`")),
        })
    }

    /// Stores an output.
    pub fn store_output(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let name = self.location(intrinsic);
        let data = intrinsic.srcs[0];
        let Some(offset) = self.function.as_const_scalar(intrinsic.srcs[1]) else {
            return no_form("an output at a computed location");
        };
        let mut source = self.output_type(data);
        let is_half = source.bits == 16;
        if !matches!(source.bits, 16 | 32) {
            return no_form(format_args!("an output of {} bits", source.bits));
        }
        source.bits = 32;
        let offset = offset as u32;
        let (key, whole) = match (self.shader.stage, &*name) {
            (Stage::Vertex, "VARYING_SLOT_POS") => (Variable::Result(BuiltIn::Position as u32), Ty::F32.of(4)),
            (Stage::Vertex, "VARYING_SLOT_PSIZ") => (Variable::Result(BuiltIn::PointSize as u32), Ty::F32),
            (Stage::Fragment, "FRAG_RESULT_DEPTH") => (Variable::Result(BuiltIn::FragDepth as u32), Ty::F32),
            (Stage::Fragment, "FRAG_RESULT_COLOR") => (Variable::Output(offset), Ty { components: 4, ..source }),
            (stage, name) => {
                let prefix = if stage == Stage::Vertex { "VARYING_SLOT_VAR" } else { "FRAG_RESULT_DATA" };
                match numbered(name, prefix) {
                    Some(location) => (Variable::Output(location + offset), Ty { components: 4, ..source }),
                    None => return no_form(format_args!("the output `{name}`")),
                }
            }
        };
        let whole = match key {
            Variable::Output(location) => self.outputs[&location],
            _ => whole,
        };
        let type_id = self.type_id(whole);
        let variable = match self.variables.get(&key) {
            Some(&id) => id,
            None => {
                let id = self.global(type_id, StorageClass::Output);
                match key {
                    Variable::Result(role) => {
                        self.b.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(built_in(role))]);
                        if role == BuiltIn::FragDepth as u32 {
                            self.b.execution_mode(self.main, spirv::ExecutionMode::DepthReplacing, []);
                        }
                    }
                    Variable::Output(location) => self.decorate(id, Decoration::Location, &[location]),
                    _ => unreachable!("outputs are of these kinds"),
                }
                self.capture(key, id);
                self.variables.insert(key, id);
                id
            }
        };
        let first = intrinsic.indices.component();
        let mask = u32::from(intrinsic.indices.write_mask());
        if !is_half && first == 0 && whole.components == source.components && mask == (1 << source.components) - 1 {
            let value = self.read(data, whole.kind);
            self.act(spirv::Op::Store, refs(&[variable, value]));
            return Ok(());
        }
        for c in (0..source.components).filter(|c| mask >> c & 1 != 0) {
            if first + c >= whole.components {
                return no_form(format_args!("component {} of `{name}`", first + c));
            }
            let mut value = self.component(data, c, whole.kind);
            if is_half {
                let wide = self.type_id(whole.of(1));
                let op = if whole.kind == Kind::Float { spirv::Op::FConvert } else { spirv::Op::UConvert };
                value = self.emit(op, wide, refs(&[value]));
            }
            let mut target = variable;
            if whole.components > 1 {
                let element = self.type_id(whole.of(1));
                let pointer = self.b.type_pointer(None, StorageClass::Output, element);
                let index = self.number((first + c).into());
                target = self.emit(spirv::Op::AccessChain, pointer, refs(&[variable, index]));
            }
            self.act(spirv::Op::Store, refs(&[target, value]));
        }
        Ok(())
    }

    /// Has an output of a vertex shader captured, if bits are compared.
    fn capture(&mut self, key: Variable, id: Word) {
        if self.shader.stage != Stage::Vertex || !self.modes.compares_bits {
            return;
        }
        let slot = match key {
            Variable::Output(location) => location,
            Variable::Result(role) if role == BuiltIn::Position as u32 => CAPTURED_POSITION,
            _ => return,
        };
        self.decorate(id, Decoration::XfbBuffer, &[0]);
        self.decorate(id, Decoration::XfbStride, &[16 * CAPTURED_SLOTS]);
        self.decorate(id, Decoration::Offset, &[16 * slot]);
    }

    /// The type of a value that is stored to an output.
    fn output_type(&self, data: Def) -> Ty {
        match self.ty(data) {
            ty if self.modes.compares_bits => Ty { kind: Kind::Uint, ..ty },
            ty => ty,
        }
    }

    /// Finds the types of outputs: that of the one store to a location, or four components where there are several.
    pub fn plan_outputs(&mut self) {
        let function = self.function;
        for (_, instr) in function.instrs_in_order() {
            let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
            if intrinsic.op != IntrinsicOp::StoreOutput {
                continue;
            }
            let name = self.location(intrinsic);
            let offset = function.as_const_scalar(intrinsic.srcs[1]).unwrap_or(0) as u32;
            let location = ["VARYING_SLOT_VAR", "FRAG_RESULT_DATA"].iter().find_map(|prefix| numbered(&name, prefix));
            let location = location.unwrap_or(0) + offset;
            let ty = Ty { bits: 32, ..self.output_type(intrinsic.srcs[0]) };
            let is_whole = intrinsic.indices.component() == 0
                && u32::from(intrinsic.indices.write_mask()) == (1 << ty.components) - 1;
            let ty = if is_whole { ty } else { ty.of(4) };
            self.outputs.entry(location).and_modify(|known| *known = known.of(4)).or_insert(ty);
        }
    }

    /// Loads a system value; none if the intrinsic is no such load.
    pub fn system_value(&mut self, intrinsic: &Intrinsic) -> Option<Result<(), NoForm>> {
        use IntrinsicOp as I;
        let vec3 = Ty::U32.of(3);
        let mask = Ty::U32.of(4);
        let (role, ty, capability) = match intrinsic.op {
            I::LoadLocalInvocationId => (BuiltIn::LocalInvocationId, vec3, None),
            I::LoadWorkgroupId => (BuiltIn::WorkgroupId, vec3, None),
            I::LoadNumWorkgroups => (BuiltIn::NumWorkgroups, vec3, None),
            I::LoadGlobalInvocationId => (BuiltIn::GlobalInvocationId, vec3, None),
            I::LoadLocalInvocationIndex => (BuiltIn::LocalInvocationIndex, Ty::U32, None),
            I::LoadSubgroupId => (BuiltIn::SubgroupId, Ty::U32, Some(Capability::GroupNonUniform)),
            I::LoadNumSubgroups => (BuiltIn::NumSubgroups, Ty::U32, Some(Capability::GroupNonUniform)),
            I::LoadSubgroupSize => (BuiltIn::SubgroupSize, Ty::U32, Some(Capability::GroupNonUniform)),
            I::LoadSubgroupInvocation => {
                (BuiltIn::SubgroupLocalInvocationId, Ty::U32, Some(Capability::GroupNonUniform))
            }
            I::LoadSubgroupEqMask => (BuiltIn::SubgroupEqMask, mask, Some(Capability::GroupNonUniformBallot)),
            I::LoadSubgroupGeMask => (BuiltIn::SubgroupGeMask, mask, Some(Capability::GroupNonUniformBallot)),
            I::LoadSubgroupGtMask => (BuiltIn::SubgroupGtMask, mask, Some(Capability::GroupNonUniformBallot)),
            I::LoadSubgroupLeMask => (BuiltIn::SubgroupLeMask, mask, Some(Capability::GroupNonUniformBallot)),
            I::LoadSubgroupLtMask => (BuiltIn::SubgroupLtMask, mask, Some(Capability::GroupNonUniformBallot)),
            I::LoadVertexId => (BuiltIn::VertexIndex, Ty::U32, None),
            I::LoadInstanceId => (BuiltIn::InstanceIndex, Ty::U32, None),
            I::LoadBaseVertex | I::LoadFirstVertex => (BuiltIn::BaseVertex, Ty::U32, Some(Capability::DrawParameters)),
            I::LoadBaseInstance => (BuiltIn::BaseInstance, Ty::U32, Some(Capability::DrawParameters)),
            I::LoadDrawId => (BuiltIn::DrawIndex, Ty::U32, Some(Capability::DrawParameters)),
            I::LoadViewIndex if self.shader.stage == Stage::Compute => {
                return Some(no_form("`load_view_index` of the stage MESA_SHADER_COMPUTE"));
            }
            I::LoadViewIndex => (BuiltIn::ViewIndex, Ty::U32, Some(Capability::MultiView)),
            I::LoadFragCoord => (BuiltIn::FragCoord, Ty::F32.of(4), None),
            I::LoadFrontFace => (BuiltIn::FrontFacing, Ty::BOOL, None),
            I::LoadSampleId => (BuiltIn::SampleId, Ty::U32, Some(Capability::SampleRateShading)),
            I::LoadSamplePos => (BuiltIn::SamplePosition, Ty::F32.of(2), Some(Capability::SampleRateShading)),
            I::LoadHelperInvocation => (BuiltIn::HelperInvocation, Ty::BOOL, None),
            // Vulkan gives it to no other stage; llvmpipe crashes on these.
            I::LoadPrimitiveId if self.shader.stage != Stage::Fragment => {
                return Some(no_form(format_args!("`load_primitive_id` of the stage {}", self.shader.stage)));
            }
            I::LoadPrimitiveId => (BuiltIn::PrimitiveId, Ty::U32, Some(Capability::Geometry)),
            I::LoadVertexIdZeroBase => return Some(self.vertex_of_draw(intrinsic)),
            I::LoadWorkgroupSize => return Some(self.workgroup_size(intrinsic)),
            I::LoadSampleMaskIn => return Some(self.sample_mask(intrinsic)),
            _ => return None,
        };
        Some(self.load_given(intrinsic, role, ty, capability))
    }

    /// Loads a built-in input.
    fn given(&mut self, role: BuiltIn, ty: Word, is_flat: bool) -> Word {
        if let Some(&id) = self.variables.get(&Variable::Given(role as u32)) {
            return id;
        }
        let id = self.global(ty, StorageClass::Input);
        self.b.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(role)]);
        if is_flat {
            self.decorate(id, Decoration::Flat, &[]);
        }
        self.variables.insert(Variable::Given(role as u32), id);
        id
    }

    /// The number of a vertex in its draw.
    fn vertex_of_draw(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        self.capability(Capability::DrawParameters);
        let word = self.type_id(Ty::U32);
        let [index, base] = [BuiltIn::VertexIndex, BuiltIn::BaseVertex].map(|role| {
            let variable = self.given(role, word, false);
            self.emit(spirv::Op::Load, word, refs(&[variable]))
        });
        self.emit_as(self.ids[def], spirv::Op::ISub, word, refs(&[index, base]));
        Ok(())
    }

    /// The size of a workgroup, which is known.
    fn workgroup_size(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let size = self.shader.info.workgroup_size.unwrap_or([64, 1, 1]);
        let parts = size.map(|size| self.number(size));
        let ty = self.type_id(Ty::U32.of(3));
        self.emit_as(self.ids[def], spirv::Op::CompositeConstruct, ty, refs(&parts));
        Ok(())
    }

    /// The first word of the mask of samples.
    fn sample_mask(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let (word, one, zero) = (self.type_id(Ty::U32), self.number(1), self.number(0));
        let array = self.b.type_array(word, one);
        let variable = self.given(BuiltIn::SampleMask, array, true);
        let pointer = self.element(StorageClass::Input, Ty::U32, variable, &[zero]);
        self.emit_as(self.ids[def], spirv::Op::Load, word, refs(&[pointer]));
        Ok(())
    }

    fn load_given(
        &mut self,
        intrinsic: &Intrinsic,
        role: BuiltIn,
        ty: Ty,
        capability: Option<Capability>,
    ) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let wanted = self.ty(def);
        if wanted.bits != ty.bits && (ty, wanted) != (Ty::BOOL, Ty::U32) {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, wanted.bits));
        }
        if let Some(capability) = capability {
            self.capability(capability);
        }
        let type_id = self.type_id(ty);
        let is_flat = self.shader.stage == Stage::Fragment && ty.kind == Kind::Uint;
        let variable = self.given(role, type_id, is_flat);
        if wanted == ty {
            self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[variable]));
            return Ok(());
        }
        let whole = self.emit(spirv::Op::Load, type_id, refs(&[variable]));
        if ty == Ty::BOOL {
            let operands = [whole, self.constant(wanted, u64::MAX >> 32), self.constant(wanted, 0)];
            let ty = self.type_id(wanted);
            self.emit_as(self.ids[def], spirv::Op::Select, ty, refs(&operands));
            return Ok(());
        }
        if wanted.components == ty.components {
            let ty = self.type_id(wanted);
            self.emit_as(self.ids[def], spirv::Op::Bitcast, ty, refs(&[whole]));
            return Ok(());
        }
        self.narrow(def, whole, ty, 0)
    }
}

fn interpolation_number(interpolation: Interpolation) -> u8 {
    match interpolation {
        Interpolation::None => 0,
        Interpolation::Pixel(mode) => 1 + 8 * mode as u8,
        Interpolation::Centroid(mode) => 2 + 8 * mode as u8,
        Interpolation::Sample(mode) => 3 + 8 * mode as u8,
    }
}

fn built_in(number: u32) -> BuiltIn {
    BuiltIn::from_u32(number).expect("the number of a built-in variable")
}
