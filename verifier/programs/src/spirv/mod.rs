//! A nir program as SPIR-V, for compilers that read that.
//!
//! nir in final form and SPIR-V are close: both have structured control flow and values in SSA form, so each value,
//! block and phi of the one becomes one of the other. The differences:
//! - A value of nir is bits; one of SPIR-V has a type. Each value gets the type that its definition or its readers want
//!   (`values`), and a reader of another kind reads a bit cast.
//! - nir addresses resources by number, SPIR-V by variables: buffers, images and textures that are bound are variables
//!   of descriptor set 0 ([`binding`]), bindless ones of the sets after it; where numbers are computed, arrays. The
//!   constant file is a uniform buffer, and push constants (`memory.rs`).
//! - A shift by the width of a value or more is undefined in SPIR-V, so the count is masked as nir defines it. Other
//!   operations that SPIR-V leaves undefined for some operands are undefined in nir too.
//!
//! A program with an operation that has no form here is refused with its name ([`NoForm`]).
//!
//! Source: the SPIR-V specification 1.5 and its extended instructions for GLSL; the meaning of nir operations is in
//! docs/semantics.md.

mod alu;
mod changes;
mod control;
mod descriptors;
mod images;
mod interface;
mod lanes;
mod meaning;
mod memory;
mod textures;
mod values;
mod workgroup;

use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::access::ResourceId;
use ir3_compiler::nir::{Block, Cfg, Def, FloatControls, Function, Instr, Shader, Stage};
use rspirv::binary::Assemble;
use rspirv::dr::{self, Operand};
use rspirv::spirv::{self, Capability, Decoration, ExecutionMode, ExecutionModel, StorageClass, Word};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use changes::{Change, Changeable};
pub use memory::PUSHED_WORDS;
pub use textures::{form_of, has_layers};

use descriptors::Class;
pub(crate) use descriptors::{descriptor_operand, is_image_access};
use interface::Variable;
use ir3_semantics::environment::device::FloatModes;
use values::{Kind, Reading, Ty};

/// The bindings of resources in a descriptor set: the first of each kind, which its number is added to.
pub mod binding {
    /// The constant file: a uniform buffer of vectors.
    pub const CONSTANTS: u32 = 0;
    /// Uniform buffers.
    pub const UNIFORM_BUFFERS: u32 = 1;
    /// Storage buffers.
    pub const STORAGE_BUFFERS: u32 = 64;
    /// Storage images.
    pub const IMAGES: u32 = 128;
    /// Sampled images.
    pub const TEXTURES: u32 = 192;
    /// Samplers.
    pub const SAMPLERS: u32 = 256;
}

/// An operation that SPIR-V has no form for here.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoForm(String);

impl fmt::Display for NoForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no form in SPIR-V", self.0)
    }
}

impl std::error::Error for NoForm {}

/// Returns the error that names an operation.
fn no_form<T>(what: impl fmt::Display) -> Result<T, NoForm> {
    Err(NoForm(what.to_string()))
}

/// A module with one entry point, `main`.
pub struct Module {
    module: dr::Module,
    descriptors: Vec<Descriptor>,
    inputs: Vec<StageInput>,
}

/// The declarations of a module.
#[derive(Default)]
struct Declared {
    descriptors: Vec<Descriptor>,
    inputs: Vec<StageInput>,
}

/// A resource of a program, and its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Descriptor {
    /// The resource.
    pub resource: Described,
    /// The descriptor set.
    pub set: u32,
    /// The binding in the set.
    pub binding: u32,
    /// The element, if the binding has an array of descriptors.
    pub element: u32,
}

/// A resource that has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Described {
    /// The constant file.
    Constants,
    /// A uniform buffer.
    Uniform(ResourceId),
    /// A storage buffer.
    Storage(ResourceId),
    /// A storage image.
    Image(ResourceId, TexelShape),
    /// A sampled image.
    Texture(ResourceId, TexelShape),
    /// A sampler.
    Sampler(ResourceId),
}

/// The shape and the texels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TexelShape {
    /// The dimensions.
    pub dim: TexelDim,
    /// It has layers.
    pub is_array: bool,
    /// The texels.
    pub format: TexelFormat,
}

/// The dimensions of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TexelDim {
    /// One.
    D1,
    /// Two.
    D2,
    /// Three.
    D3,
    /// The faces of a cube.
    Cube,
    /// A buffer of texels.
    Buffer,
    /// Two, of several samples.
    Samples,
}

/// The texels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TexelFormat {
    /// One word.
    R32Uint,
    /// Four words.
    Rgba32Uint,
    /// Four floats.
    Rgba32Float,
    /// Others.
    Other,
}

/// The execution modes of a module for a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// The modes of floats that are required.
    pub floats: FloatModes,
    /// Invocations reconverge as early as they can.
    pub reconverges: bool,
    /// Outputs with a location, and inputs that are not interpolated, are words, whatever their type is, and a
    /// descriptor has one type: bits are compared. The outputs of vertices are captured.
    pub compares_bits: bool,
}

/// The slots that are captured of a vertex, of four words each: the outputs with a location, and the position.
pub const CAPTURED_SLOTS: u32 = 17;
/// The slot of the position.
pub const CAPTURED_POSITION: u32 = 16;

/// An input of a vertex or fragment shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageInput {
    /// The location.
    pub location: u32,
    /// Its four components are floats, which are interpolated; else they are words.
    pub is_float: bool,
}

impl Module {
    /// Translates a shader.
    ///
    /// # Errors
    /// Names an operation, a stage or a resource that has no form in SPIR-V.
    pub fn of(shader: &Shader) -> Result<Self, NoForm> {
        Self::for_device(shader, Modes::default())
    }

    /// Translates a shader, with these execution modes.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn for_device(shader: &Shader, modes: Modes) -> Result<Self, NoForm> {
        let emitter = Emitter::new(shader, modes)?;
        let mut declared = Declared::default();
        let module = emitter.finish(&mut declared)?;
        let Declared { descriptors, inputs } = declared;
        Ok(Self { module, descriptors, inputs })
    }

    /// The resources that it declares.
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// The inputs that have a location, if it is a vertex or fragment shader.
    pub fn inputs(&self) -> &[StageInput] {
        &self.inputs
    }

    /// The instructions that have no form in SPIR-V, or need one of these capabilities.
    ///
    /// # Errors
    /// As [`of`](Self::of), for constructs that are no single instruction.
    pub fn missing(shader: &Shader, lacking: &[Capability]) -> Result<Vec<(Instr, NoForm)>, NoForm> {
        Self::missing_for(shader, lacking, Modes::default())
    }

    /// The same, with these execution modes.
    ///
    /// # Errors
    /// As [`of`](Self::of), for constructs that are no single instruction.
    pub fn missing_for(shader: &Shader, lacking: &[Capability], modes: Modes) -> Result<Vec<(Instr, NoForm)>, NoForm> {
        let mut emitter = Emitter::new(shader, modes)?;
        emitter.probe = Some(Probe { lacking, needed: None, missing: Vec::new() });
        emitter.run()?;
        Ok(emitter.probe.map(|probe| probe.missing).unwrap_or_default())
    }

    /// The words of the module.
    pub fn words(&self) -> Vec<u32> {
        self.module.assemble()
    }

    /// The bytes of the module, the least significant byte of a word first.
    pub fn bytes(&self) -> Vec<u8> {
        self.words().into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// The instructions in function bodies, without labels, variables and returns.
    pub fn instruction_count(&self) -> usize {
        let blocks = self.module.functions.iter().flat_map(|function| &function.blocks);
        let counted = |instr: &&dr::Instruction| !matches!(instr.class.opcode, spirv::Op::Variable | spirv::Op::Return);
        blocks.flat_map(|block| &block.instructions).filter(counted).count()
    }
}

impl fmt::Display for Module {
    /// Writes the module as `spirv-dis` does, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rspirv::binary::Disassemble::disassemble(&self.module))
    }
}

/// A translation whose result is discarded: it continues after an instruction that has no form.
struct Probe<'a> {
    /// The capabilities that instructions may not need.
    lacking: &'a [Capability],
    /// One of these that the current instruction needs.
    needed: Option<Capability>,
    missing: Vec<(Instr, NoForm)>,
}

/// The state of a translation.
struct Emitter<'a> {
    shader: &'a Shader,
    function: &'a Function,
    cfg: Cfg,
    b: dr::Builder,
    /// The extended instructions for GLSL.
    glsl: Word,
    /// The value of each definition, and the kind of its type.
    ids: SecondaryMap<Def, Word>,
    kinds: SecondaryMap<Def, Kind>,
    /// The block of each nir block where it begins, and where it ends: a lane that is killed splits it.
    begins: SecondaryMap<Block, Word>,
    ends: SecondaryMap<Block, Word>,
    constants: FxHashMap<(Ty, u64), Word>,
    /// Casts and components that the current block has.
    readings: FxHashMap<Reading, Word>,
    /// Casts at the ends of blocks, for phis of another kind.
    phi_casts: FxHashMap<Block, BTreeMap<(Def, Kind), Word>>,
    variables: FxHashMap<Variable, Word>,
    /// The kind of each input, and its interpolation.
    inputs: FxHashMap<u32, (Kind, u8)>,
    /// The type of each output that has a location.
    outputs: FxHashMap<u32, Ty>,
    /// All variables outside of functions, which the entry point lists.
    globals: Vec<Word>,
    capabilities: BTreeSet<u32>,
    extensions: BTreeSet<&'static str>,
    /// The layouts of structures and arrays that are decorated.
    layouts: FxHashMap<memory::Layout, Word>,
    main: Word,
    controls: FloatControls,
    /// An operation requires that conversions to halves round to even.
    rounds_halves_to_even: bool,
    constant_file: memory::ConstantFile,
    /// The kinds and sets of descriptors that are arrays.
    arrays: FxHashSet<(Class, Option<u32>)>,
    /// The descriptors of high numbers, in the order of their first use.
    far: Vec<((Class, Option<u32>), u32)>,
    probe: Option<Probe<'a>>,
    modes: Modes,
    /// The descriptors of buffers.
    used: BTreeSet<Descriptor>,
}

impl<'a> Emitter<'a> {
    fn new(shader: &'a Shader, modes: Modes) -> Result<Self, NoForm> {
        let function = &shader.entry;
        let controls = FloatControls::of(&shader.info).or_else(no_form)?;
        let mut b = dr::Builder::new();
        b.set_version(1, 5);
        let glsl = b.ext_inst_import("GLSL.std.450");
        let main = b.id();
        let mut this = Self {
            shader,
            function,
            cfg: Cfg::new(function),
            b,
            glsl,
            ids: SecondaryMap::new(),
            kinds: values::kinds(function),
            begins: SecondaryMap::new(),
            ends: SecondaryMap::new(),
            constants: FxHashMap::default(),
            readings: FxHashMap::default(),
            phi_casts: FxHashMap::default(),
            variables: FxHashMap::default(),
            inputs: FxHashMap::default(),
            outputs: FxHashMap::default(),
            globals: Vec::new(),
            capabilities: BTreeSet::new(),
            extensions: BTreeSet::new(),
            layouts: FxHashMap::default(),
            main,
            controls,
            rounds_halves_to_even: false,
            constant_file: memory::ConstantFile::of(function),
            arrays: descriptors::arrays(function),
            far: Vec::new(),
            probe: None,
            modes,
            used: BTreeSet::new(),
        };
        this.capability(Capability::Shader);
        this.plan_outputs();
        for def in function.defs.keys() {
            this.ids[def] = this.b.id();
        }
        Ok(this)
    }

    /// Emits the function.
    fn run(&mut self) -> Result<ExecutionModel, NoForm> {
        let model = match self.shader.stage {
            Stage::Vertex => ExecutionModel::Vertex,
            Stage::Fragment => ExecutionModel::Fragment,
            Stage::Compute => ExecutionModel::GLCompute,
            stage => return no_form(format_args!("the stage {stage}")),
        };
        let void = self.b.type_void();
        let ty = self.b.type_function(void, []);
        let main = Some(self.main);
        self.b.begin_function(void, main, spirv::FunctionControl::NONE, ty).expect("no function is open");
        self.body()?;
        self.b.end_function().expect("the function is open");
        Ok(model)
    }

    /// Records the translation of an instruction.
    fn emitted(&mut self, instr: Instr, emitted: Result<(), NoForm>) -> Result<(), NoForm> {
        let Some(probe) = &mut self.probe else { return emitted };
        let needed = probe.needed.take().map(|capability| NoForm(format!("the capability {capability:?}")));
        if let Some(why) = emitted.err().or(needed) {
            probe.missing.push((instr, why));
        }
        Ok(())
    }

    fn finish(mut self, declared: &mut Declared) -> Result<dr::Module, NoForm> {
        let model = self.run()?;
        declared.descriptors.extend(&self.used);
        if model != ExecutionModel::GLCompute {
            let input =
                |(&location, &(kind, _)): (&u32, &(Kind, u8))| StageInput { location, is_float: kind == Kind::Float };
            declared.inputs.extend(self.inputs.iter().map(input));
            declared.inputs.sort_unstable();
        }
        self.mark_aliases();
        let addresses = self.capabilities.contains(&(Capability::PhysicalStorageBufferAddresses as u32));
        let addressing = match addresses {
            true => spirv::AddressingModel::PhysicalStorageBuffer64,
            false => spirv::AddressingModel::Logical,
        };
        self.b.memory_model(addressing, spirv::MemoryModel::GLSL450);
        self.b.entry_point(model, self.main, "main", std::mem::take(&mut self.globals));
        match self.shader.stage {
            Stage::Fragment => self.b.execution_mode(self.main, ExecutionMode::OriginUpperLeft, []),
            Stage::Compute => {
                let size = self.shader.info.workgroup_size.unwrap_or([64, 1, 1]);
                self.b.execution_mode(self.main, ExecutionMode::LocalSize, size);
            }
            _ => {}
        }
        let controls = self.controls;
        let to_even = |bits: u8| controls.rounds_to_even(bits) || bits == 16 && self.rounds_halves_to_even;
        let widths: Vec<u8> = [16, 32, 64].into_iter().filter(|&bits| to_even(bits)).collect();
        for bits in widths {
            self.capability(Capability::RoundingModeRTE);
            self.b.execution_mode(self.main, ExecutionMode::RoundingModeRTE, [bits.into()]);
        }
        self.device_modes();
        if self.shader.stage == Stage::Vertex && self.modes.compares_bits {
            self.capability(Capability::TransformFeedback);
            self.b.execution_mode(self.main, ExecutionMode::Xfb, []);
        }
        for &capability in &self.capabilities {
            self.b.capability(Capability::from_u32(capability).expect("a capability that was asked for"));
        }
        for &extension in &self.extensions {
            self.b.extension(extension);
        }
        Ok(self.b.module())
    }

    /// Adds the execution modes that are for a device.
    fn device_modes(&mut self) {
        let FloatModes { keeps_denormals, keeps_specials, .. } = self.modes.floats;
        for (bits, i) in [16, 32, 64].into_iter().zip(0..) {
            if keeps_denormals[i] {
                self.capability(Capability::DenormPreserve);
                self.b.execution_mode(self.main, ExecutionMode::DenormPreserve, [bits]);
            }
            if keeps_specials[i] {
                self.capability(Capability::SignedZeroInfNanPreserve);
                self.b.execution_mode(self.main, ExecutionMode::SignedZeroInfNanPreserve, [bits]);
            }
        }
        if self.modes.reconverges {
            self.extensions.insert("SPV_KHR_maximal_reconvergence");
            self.b.execution_mode(self.main, ExecutionMode::MaximallyReconvergesKHR, []);
        }
    }

    fn capability(&mut self, capability: Capability) {
        self.capabilities.insert(capability as u32);
        if let Some(probe) = self.probe.as_mut().filter(|probe| probe.lacking.contains(&capability)) {
            probe.needed = Some(capability);
        }
    }

    /// Appends an instruction without a result.
    fn act(&mut self, op: spirv::Op, operands: Vec<Operand>) {
        let instr = dr::Instruction::new(op, None, None, operands);
        self.b.insert_into_block(dr::InsertPoint::End, instr).expect("a block is open");
    }

    /// Ends the block.
    fn end(&mut self, op: spirv::Op, operands: Vec<Operand>) {
        self.act(op, operands);
        self.b.select_block(None).expect("no block can be chosen");
    }

    /// Appends an instruction whose result has this name.
    fn emit_as(&mut self, id: Word, op: spirv::Op, ty: Word, operands: Vec<Operand>) {
        let instr = dr::Instruction::new(op, Some(ty), Some(id), operands);
        self.b.insert_into_block(dr::InsertPoint::End, instr).expect("a block is open");
    }

    /// Appends an instruction.
    fn emit(&mut self, op: spirv::Op, ty: Word, operands: Vec<Operand>) -> Word {
        let id = self.b.id();
        self.emit_as(id, op, ty, operands);
        id
    }

    /// Adds a variable outside of functions.
    fn global(&mut self, pointee: Word, class: StorageClass) -> Word {
        let pointer = self.b.type_pointer(None, class, pointee);
        let id = self.b.id();
        let operands = vec![Operand::StorageClass(class)];
        let instr = dr::Instruction::new(spirv::Op::Variable, Some(pointer), Some(id), operands);
        self.b.insert_types_global_values(dr::InsertPoint::End, instr);
        self.globals.push(id);
        id
    }

    /// An undefined value, outside of functions: no block has to define it.
    fn undefined(&mut self, ty: Word) -> Word {
        let id = self.b.id();
        let instr = dr::Instruction::new(spirv::Op::Undef, Some(ty), Some(id), Vec::new());
        self.b.insert_types_global_values(dr::InsertPoint::End, instr);
        id
    }

    fn decorate(&mut self, id: Word, decoration: Decoration, literals: &[u32]) {
        self.b.decorate(id, decoration, literals.iter().map(|&word| Operand::LiteralBit32(word)));
    }
}

/// Ids as operands.
fn refs(ids: &[Word]) -> Vec<Operand> {
    ids.iter().map(|&id| Operand::IdRef(id)).collect()
}

#[cfg(test)]
mod tests;
