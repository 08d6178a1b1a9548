//! Minimal stages, for pipelines that need more of them than a module has.
//!
//! A tessellation or geometry shader is compiled together with the stages around it, and the driver removes outputs of
//! one stage that the next does not read. So the stage before it writes each of its inputs, values that no two of which
//! are equal and none is constant; the stage after it reads each of its outputs.

use crate::module::{Entry, Types, id};
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Error, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl, MemoryModel, Op,
    StorageClass, Word,
};
use std::collections::HashMap;

/// Vertices of a patch.
pub const PATCH: u32 = 3;

/// A variable of an interface that two stages share.
struct Shared {
    id: Word,
    /// Its type; of one vertex, where it has one for each.
    ty: Word,
    is_patch: bool,
}

/// The variables of an entry point in a storage class, without built-ins.
fn interface(types: &Types, entry: &Entry, class: StorageClass, is_arrayed: bool) -> Result<Vec<Shared>, String> {
    let mut all = Vec::new();
    for &variable in &entry.interface {
        let Ok(definition) = types.get(variable) else { continue };
        if definition.class.opcode != Op::Variable || definition.operands.first() != Some(&Operand::StorageClass(class))
        {
            continue;
        }
        if types.has(variable, Decoration::BuiltIn) {
            continue;
        }
        let pointer = types.get(definition.result_type.ok_or("a variable without a type")?)?;
        let mut ty = id(pointer.operands.get(1)).ok_or("a pointer to nothing")?;
        let is_patch = types.has(variable, Decoration::Patch);
        if is_arrayed && !is_patch {
            let array = types.get(ty)?;
            ty = id(array.operands.first()).ok_or("an interface of all vertices that is no array")?;
        }
        if !types.has_built_ins(ty) {
            all.push(Shared { id: variable, ty, is_patch });
        }
    }
    Ok(all)
}

/// A module for a stage before (`Output` values of its own) or after another.
struct Maker<'a> {
    b: Builder,
    types: &'a Types,
    /// Types of the module, by their ids in the other one.
    copies: HashMap<Word, Word>,
    variables: Vec<Word>,
    int: Word,
    float: Word,
    vec4: Word,
    /// The number of values so far.
    count: u32,
}

/// The text of a builder's error, which nothing here makes.
fn built<T>(result: Result<T, Error>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

impl<'a> Maker<'a> {
    fn new(types: &'a Types, capabilities: &[Capability]) -> Self {
        let mut b = Builder::new();
        b.set_version(1, 5);
        capabilities.iter().for_each(|capability| b.capability(*capability));
        b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
        let (int, float) = (b.type_int(32, 1), b.type_float(32, None));
        let vec4 = b.type_vector(float, 4);
        Self { b, types, copies: HashMap::new(), variables: Vec::new(), int, float, vec4, count: 0 }
    }

    /// A type of the other module.
    fn copy(&mut self, ty: Word) -> Result<Word, String> {
        if let Some(copy) = self.copies.get(&ty) {
            return Ok(*copy);
        }
        let definition = self.types.get(ty)?.clone();
        let number = |at: usize| match definition.operands.get(at) {
            Some(Operand::LiteralBit32(value)) => Ok(*value),
            _ => Err("a type without its size".to_owned()),
        };
        let inner = |at: usize| id(definition.operands.get(at)).ok_or("a type without a type of its elements");
        let copy = match definition.class.opcode {
            Op::TypeInt => self.b.type_int(number(0)?, number(1)?),
            Op::TypeFloat => self.b.type_float(number(0)?, None),
            Op::TypeVector => {
                let element = self.copy(inner(0)?)?;
                self.b.type_vector(element, number(1)?)
            }
            Op::TypeMatrix => {
                let column = self.copy(inner(0)?)?;
                self.b.type_matrix(column, number(1)?)
            }
            Op::TypeArray => {
                let element = self.copy(inner(0)?)?;
                let length = u32::try_from(self.types.integer(inner(1)?)?).map_err(|error| error.to_string())?;
                self.array(element, length)
            }
            Op::TypeStruct => {
                let mut members = Vec::new();
                for at in 0..definition.operands.len() {
                    members.push(self.copy(inner(at)?)?);
                }
                // Two structures of the same members are one type, unless their decorations differ: each is a type of
                // its own.
                let id = self.b.id();
                self.b.module_mut().types_global_values.push(Instruction::new(
                    Op::TypeStruct,
                    None,
                    Some(id),
                    members.into_iter().map(Operand::IdRef).collect(),
                ));
                if self.types.has(ty, Decoration::Block) {
                    self.b.decorate(id, Decoration::Block, []);
                }
                for member in 0..definition.operands.len() as u32 {
                    for decoration in [Decoration::Location, Decoration::Component] {
                        if let Some(number) = self.types.member_number(ty, member, decoration) {
                            self.b.member_decorate(id, member, decoration, [Operand::LiteralBit32(number)]);
                        }
                    }
                }
                id
            }
            opcode => return Err(format!("an interface of Op{opcode:?} with a stage that the module lacks")),
        };
        self.copies.insert(ty, copy);
        Ok(copy)
    }

    fn array(&mut self, element: Word, length: u32) -> Word {
        let unsigned = self.b.type_int(32, 0);
        let length = self.b.constant_bit32(unsigned, length);
        self.b.type_array(element, length)
    }

    fn variable(&mut self, class: StorageClass, ty: Word) -> Word {
        let pointer = self.b.type_pointer(None, class, ty);
        let variable = self.b.variable(pointer, None, class, None);
        self.variables.push(variable);
        variable
    }

    fn built_in(&mut self, class: StorageClass, ty: Word, built_in: BuiltIn) -> Word {
        let variable = self.variable(class, ty);
        self.b.decorate(variable, Decoration::BuiltIn, [Operand::BuiltIn(built_in)]);
        variable
    }

    /// The variable of a shared interface on this side.
    fn shared(&mut self, shared: &Shared, class: StorageClass, vertices: Option<u32>) -> Result<(Word, Word), String> {
        let ty = self.copy(shared.ty)?;
        let whole = match vertices.filter(|_| !shared.is_patch) {
            Some(vertices) => self.array(ty, vertices),
            None => ty,
        };
        let variable = self.variable(class, whole);
        for decoration in [Decoration::Location, Decoration::Component] {
            if let Some(number) = self.types.number(shared.id, decoration) {
                self.b.decorate(variable, decoration, [Operand::LiteralBit32(number)]);
            }
        }
        if shared.is_patch {
            self.b.decorate(variable, Decoration::Patch, []);
        }
        Ok((variable, ty))
    }

    /// Begins the entry point.
    fn begin(&mut self) -> Result<Word, String> {
        let void = self.b.type_void();
        let ty = self.b.type_function(void, []);
        let main = built(self.b.begin_function(void, None, FunctionControl::NONE, ty))?;
        built(self.b.begin_block(None))?;
        Ok(main)
    }

    fn end(mut self, main: Word, model: ExecutionModel) -> Result<Vec<u32>, String> {
        built(self.b.ret())?;
        built(self.b.end_function())?;
        let variables = std::mem::take(&mut self.variables);
        self.b.entry_point(model, main, "main", variables);
        Ok(self.b.module().assemble())
    }

    fn element(&mut self, class: StorageClass, ty: Word, base: Word, index: Word) -> Result<Word, String> {
        let pointer = self.b.type_pointer(None, class, ty);
        built(self.b.access_chain(pointer, None, base, [index]))
    }

    /// A value of a type of the other module, from a number that is not constant.
    fn value(&mut self, ty: Word, seed: Word) -> Result<Word, String> {
        let definition = self.types.get(ty)?.clone();
        let copy = self.copy(ty)?;
        let bits = |at: usize| match definition.operands.get(at) {
            Some(Operand::LiteralBit32(value)) => *value,
            _ => 0,
        };
        let parts: Vec<Word> = match definition.class.opcode {
            Op::TypeInt | Op::TypeFloat => {
                self.count += 1;
                let number = self.b.constant_bit32(self.int, self.count);
                let number = built(self.b.i_add(self.int, None, seed, number))?;
                return built(match (definition.class.opcode, bits(0), bits(1)) {
                    (Op::TypeFloat, ..) => self.b.convert_s_to_f(copy, None, number),
                    (_, 32, 1) => Ok(number),
                    (_, 32, _) => self.b.bitcast(copy, None, number),
                    (_, width, 1) if width != 32 => self.b.s_convert(copy, None, number),
                    _ => self.b.u_convert(copy, None, number),
                });
            }
            Op::TypeStruct => definition.operands.iter().filter_map(|member| id(Some(member))).collect(),
            opcode => {
                let element = id(definition.operands.first()).ok_or("a type without a type of its elements")?;
                let count = match opcode {
                    Op::TypeArray => {
                        let length = id(definition.operands.get(1)).ok_or("an array without a length")?;
                        self.types.integer(length)?
                    }
                    _ => bits(1).into(),
                };
                (0..count).map(|_| element).collect()
            }
        };
        let parts = parts.into_iter().map(|part| self.value(part, seed)).collect::<Result<Vec<_>, _>>()?;
        built(self.b.composite_construct(copy, None, parts))
    }

    /// Adds all numbers of a value to a sum.
    fn add(&mut self, ty: Word, value: Word, sum: &mut Word) -> Result<(), String> {
        let definition = self.types.get(ty)?.clone();
        let is_unsigned = definition.operands.get(1) == Some(&Operand::LiteralBit32(0));
        let number = match definition.class.opcode {
            Op::TypeFloat if definition.operands.first() == Some(&Operand::LiteralBit32(32)) => value,
            Op::TypeFloat => built(self.b.f_convert(self.float, None, value))?,
            Op::TypeInt if is_unsigned => built(self.b.convert_u_to_f(self.float, None, value))?,
            Op::TypeInt => built(self.b.convert_s_to_f(self.float, None, value))?,
            opcode => {
                let count = match (opcode, definition.operands.get(1)) {
                    (Op::TypeStruct, _) => definition.operands.len() as u32,
                    (Op::TypeArray, length) => {
                        let length = id(length).ok_or("an array without a length")?;
                        u32::try_from(self.types.integer(length)?).map_err(|error| error.to_string())?
                    }
                    (_, Some(Operand::LiteralBit32(count))) => *count,
                    _ => 0,
                };
                for at in 0..count {
                    let part = if opcode == Op::TypeStruct { at as usize } else { 0 };
                    let part = id(definition.operands.get(part)).ok_or("a type without a type of its elements")?;
                    let copy = self.copy(part)?;
                    let value = built(self.b.composite_extract(copy, None, value, [at]))?;
                    self.add(part, value, sum)?;
                }
                return Ok(());
            }
        };
        *sum = built(self.b.f_add(self.float, None, *sum, number))?;
        Ok(())
    }

    /// Writes a position from a number.
    fn position(&mut self, place: Word, seed: Word) -> Result<(), String> {
        let number = built(self.b.convert_s_to_f(self.float, None, seed))?;
        let position = built(self.b.composite_construct(self.vec4, None, [number; 4]))?;
        built(self.b.store(place, position, None, []))
    }
}

/// A vertex shader that writes the inputs of the stage after it.
///
/// # Errors
/// An interface that has no form here.
pub fn vertex(types: &Types, capabilities: &[Capability], next: Option<&Entry>) -> Result<Vec<u32>, String> {
    let mut maker = Maker::new(types, capabilities);
    let (int, vec4) = (maker.int, maker.vec4);
    let index = maker.built_in(StorageClass::Input, int, BuiltIn::VertexIndex);
    let place = maker.built_in(StorageClass::Output, vec4, BuiltIn::Position);
    let inputs = match next {
        Some(next) => interface(types, next, StorageClass::Input, true)?,
        None => Vec::new(),
    };
    let mut outputs = Vec::new();
    for input in inputs.iter().filter(|input| !input.is_patch) {
        outputs.push((maker.shared(input, StorageClass::Output, None)?.0, input.ty));
    }
    let main = maker.begin()?;
    let seed = built(maker.b.load(int, None, index, None, []))?;
    maker.position(place, seed)?;
    for (variable, ty) in outputs {
        let value = maker.value(ty, seed)?;
        built(maker.b.store(variable, value, None, []))?;
    }
    maker.end(main, ExecutionModel::Vertex)
}

/// A tessellation control shader that writes the inputs of an evaluation shader.
///
/// # Errors
/// An interface that has no form here.
pub fn control(types: &Types, capabilities: &[Capability], next: &Entry) -> Result<Vec<u32>, String> {
    let mut maker = Maker::new(types, capabilities);
    let (int, vec4, float) = (maker.int, maker.vec4, maker.float);
    let index = maker.built_in(StorageClass::Input, int, BuiltIn::InvocationId);
    let patch = maker.built_in(StorageClass::Input, int, BuiltIn::PrimitiveId);
    let block = maker.b.type_struct([vec4]);
    maker.b.decorate(block, Decoration::Block, []);
    maker.b.member_decorate(block, 0, Decoration::BuiltIn, [Operand::BuiltIn(BuiltIn::Position)]);
    let blocks = maker.array(block, PATCH);
    let places = maker.variable(StorageClass::Output, blocks);
    let mut levels = Vec::new();
    for (built_in, count) in [(BuiltIn::TessLevelOuter, 4), (BuiltIn::TessLevelInner, 2)] {
        let array = maker.array(float, count);
        let variable = maker.built_in(StorageClass::Output, array, built_in);
        maker.b.decorate(variable, Decoration::Patch, []);
        levels.push((variable, array, count as usize));
    }
    let inputs = interface(types, next, StorageClass::Input, true)?;
    let mut outputs = Vec::new();
    for input in &inputs {
        outputs.push((maker.shared(input, StorageClass::Output, Some(PATCH))?, input));
    }
    let main = maker.begin()?;
    let seed = built(maker.b.load(int, None, index, None, []))?;
    let patch = built(maker.b.load(int, None, patch, None, []))?;
    let zero = maker.b.constant_bit32(int, 0);
    let pointer = maker.b.type_pointer(None, StorageClass::Output, vec4);
    let place = built(maker.b.access_chain(pointer, None, places, [seed, zero]))?;
    maker.position(place, seed)?;
    for ((variable, ty), input) in outputs {
        let (place, seed) = match input.is_patch {
            true => (variable, patch),
            false => (maker.element(StorageClass::Output, ty, variable, seed)?, seed),
        };
        let value = maker.value(input.ty, seed)?;
        built(maker.b.store(place, value, None, []))?;
    }
    let level = built(maker.b.convert_s_to_f(float, None, patch))?;
    for (variable, array, count) in levels {
        let value = built(maker.b.composite_construct(array, None, vec![level; count]))?;
        built(maker.b.store(variable, value, None, []))?;
    }
    maker.b.execution_mode(main, ExecutionMode::OutputVertices, [PATCH]);
    maker.end(main, ExecutionModel::TessellationControl)
}

/// A tessellation evaluation shader that reads the outputs of a control shader.
///
/// # Errors
/// An interface that has no form here.
pub fn evaluation(types: &Types, capabilities: &[Capability], before: &Entry) -> Result<Vec<u32>, String> {
    let mut maker = Maker::new(types, capabilities);
    let (vec4, float) = (maker.vec4, maker.float);
    let place = maker.built_in(StorageClass::Output, vec4, BuiltIn::Position);
    let outputs = interface(types, before, StorageClass::Output, true)?;
    let mut inputs = Vec::new();
    for output in &outputs {
        // The inputs of a patch have the most vertices that there may be.
        inputs.push((maker.shared(output, StorageClass::Input, Some(32))?, output));
    }
    let main = maker.begin()?;
    let mut sum = maker.b.constant_bit32(float, 0);
    let int = maker.int;
    for ((variable, ty), output) in inputs {
        let zero = maker.b.constant_bit32(int, 0);
        let place = match output.is_patch {
            true => variable,
            false => maker.element(StorageClass::Input, ty, variable, zero)?,
        };
        let value = built(maker.b.load(ty, None, place, None, []))?;
        maker.add(output.ty, value, &mut sum)?;
    }
    let position = built(maker.b.composite_construct(vec4, None, [sum; 4]))?;
    built(maker.b.store(place, position, None, []))?;
    for mode in [ExecutionMode::Triangles, ExecutionMode::SpacingEqual, ExecutionMode::VertexOrderCcw] {
        maker.b.execution_mode(main, mode, []);
    }
    maker.end(main, ExecutionModel::TessellationEvaluation)
}
