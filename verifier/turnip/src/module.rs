//! Reflection of SPIR-V modules: entry points, descriptors, push constants, capabilities.

use crate::specialise::specialise;
use ash::vk::DescriptorType;
use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{Capability, Decoration, Dim, ExecutionModel, Op, StorageClass, Word};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::CString;

/// Descriptors of an array without a length.
const RUNTIME_ARRAY: u32 = 16;

/// An entry point.
#[derive(Clone)]
pub struct Entry {
    pub name: CString,
    pub model: ExecutionModel,
    /// The variables that it names as its interface.
    pub interface: Vec<Word>,
    function: Word,
}

/// A binding of a descriptor set.
pub struct Binding {
    pub ty: DescriptorType,
    pub count: u32,
}

/// A variable with descriptors.
struct Resource {
    variable: Word,
    set: u32,
    number: u32,
    binding: Binding,
}

/// A module, and the facts that a pipeline needs of it.
pub struct Module {
    pub words: Vec<u32>,
    pub entries: Vec<Entry>,
    /// The variables with descriptors.
    resources: Vec<Resource>,
    /// Bytes of push constants.
    pub push_constants: u32,
    pub capabilities: Vec<Capability>,
    pub types: Types,
}

/// Decorations, with their operands.
type Decorations = Vec<(Decoration, Vec<Operand>)>;

/// Types, constants and decorations, by id.
pub struct Types {
    pub module: dr::Module,
    values: HashMap<Word, usize>,
    decorations: HashMap<Word, Decorations>,
    /// The decorations of the members of structures.
    members: HashMap<(Word, u32), Decorations>,
}

/// Reads an id of an operand.
pub fn id(operand: Option<&Operand>) -> Option<Word> {
    operand.and_then(Operand::id_ref_any)
}

fn literal(operand: Option<&Operand>) -> Option<u32> {
    match operand {
        Some(Operand::LiteralBit32(value)) => Some(*value),
        _ => None,
    }
}

impl Types {
    fn of(module: dr::Module) -> Self {
        let mut values = HashMap::new();
        for (at, value) in module.types_global_values.iter().enumerate() {
            if let Some(id) = value.result_id {
                values.insert(id, at);
            }
        }
        let mut decorations: HashMap<Word, Vec<_>> = HashMap::new();
        let mut members: HashMap<_, Vec<_>> = HashMap::new();
        for annotation in &module.annotations {
            let operands = &annotation.operands;
            match (annotation.class.opcode, &operands[..]) {
                (Op::Decorate | Op::DecorateId, [target, Operand::Decoration(decoration), rest @ ..]) => {
                    if let Some(target) = id(Some(target)) {
                        decorations.entry(target).or_default().push((*decoration, rest.to_vec()));
                    }
                }
                (
                    Op::MemberDecorate,
                    [target, Operand::LiteralBit32(member), Operand::Decoration(decoration), rest @ ..],
                ) => {
                    if let Some(target) = id(Some(target)) {
                        members.entry((target, *member)).or_default().push((*decoration, rest.to_vec()));
                    }
                }
                (Op::GroupDecorate, [group, targets @ ..]) => {
                    let group = id(Some(group)).and_then(|group| decorations.get(&group)).cloned().unwrap_or_default();
                    for target in targets.iter().filter_map(|target| id(Some(target))) {
                        decorations.entry(target).or_default().extend(group.iter().cloned());
                    }
                }
                _ => {}
            }
        }
        Self { module, values, decorations, members }
    }

    /// The definition of a type, a constant, or a variable of the module.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, id: Word) -> Result<&Instruction, String> {
        match self.values.get(&id) {
            Some(at) => Ok(&self.module.types_global_values[*at]),
            None => Err(format!("%{id} is used as a type or a constant, and is none")),
        }
    }

    fn operand(&self, instruction: &Instruction, at: usize) -> Result<&Instruction, String> {
        let opcode = instruction.class.opname;
        let id = id(instruction.operands.get(at)).ok_or_else(|| format!("Op{opcode} has no operand {at}"))?;
        self.get(id)
    }

    /// The number with which an id is decorated.
    pub fn number(&self, id: Word, decoration: Decoration) -> Option<u32> {
        let all = self.decorations.get(&id)?;
        all.iter().find(|(found, _)| *found == decoration).and_then(|(_, operands)| literal(operands.first()))
    }

    /// Returns true if an id is decorated so.
    pub fn has(&self, id: Word, decoration: Decoration) -> bool {
        self.decorations.get(&id).is_some_and(|all| all.iter().any(|(found, _)| *found == decoration))
    }

    /// The number with which a member of a structure is decorated.
    pub fn member_number(&self, id: Word, member: u32, decoration: Decoration) -> Option<u32> {
        let all = self.members.get(&(id, member))?;
        all.iter().find(|(found, _)| *found == decoration).and_then(|(_, operands)| literal(operands.first()))
    }

    /// Returns true for a block of built-in variables.
    pub fn has_built_ins(&self, ty: Word) -> bool {
        self.members.iter().any(|((of, _), all)| *of == ty && all.iter().any(|(it, _)| *it == Decoration::BuiltIn))
    }

    /// The value of an integer constant. A specialisation constant has the value that it was given, or its own.
    ///
    /// # Errors
    /// If it is no integer constant, or one that is not computed here.
    pub fn integer(&self, id: Word) -> Result<u64, String> {
        let constant = self.get(id)?;
        let operand = |at: usize| -> Result<u64, String> {
            let id = self::id(constant.operands.get(at)).ok_or("a constant without operands")?;
            self.integer(id)
        };
        match constant.class.opcode {
            Op::Constant | Op::SpecConstant => match constant.operands.first() {
                Some(Operand::LiteralBit32(value)) => Ok(u64::from(*value)),
                Some(Operand::LiteralBit64(value)) => Ok(*value),
                _ => Err(format!("%{id} is no integer")),
            },
            Op::ConstantNull | Op::ConstantFalse | Op::SpecConstantFalse => Ok(0),
            Op::ConstantTrue | Op::SpecConstantTrue => Ok(1),
            Op::SpecConstantOp => {
                let Some(Operand::LiteralSpecConstantOpInteger(op)) = constant.operands.first() else {
                    return Err(format!("%{id} has no operation"));
                };
                // All uses here are lengths: 32 bits.
                let bits = |value: u64| value & u64::from(u32::MAX);
                let (a, b) = (operand(1)?, operand(2).unwrap_or_default());
                match op {
                    Op::UConvert | Op::SConvert => Ok(a),
                    Op::IAdd => Ok(bits(a.wrapping_add(b))),
                    Op::ISub => Ok(bits(a.wrapping_sub(b))),
                    Op::IMul => Ok(bits(a.wrapping_mul(b))),
                    Op::UDiv => a.checked_div(b).ok_or_else(|| format!("%{id} divides by zero")),
                    Op::UMod => a.checked_rem(b).ok_or_else(|| format!("%{id} divides by zero")),
                    Op::ShiftLeftLogical => {
                        Ok(bits(a.checked_shl(b.try_into().unwrap_or(u32::MAX)).unwrap_or_default()))
                    }
                    Op::ShiftRightLogical => Ok(a.checked_shr(b.try_into().unwrap_or(u32::MAX)).unwrap_or_default()),
                    Op::Select => Ok(if a != 0 { b } else { operand(3)? }),
                    other => Err(format!("a length that is an OpSpecConstantOp {other:?}")),
                }
            }
            _ => Err(format!("%{id} is no integer constant")),
        }
    }

    fn length(&self, array: &Instruction) -> Result<u32, String> {
        let id = id(array.operands.get(1)).ok_or("an array without a length")?;
        u32::try_from(self.integer(id)?).map_err(|_| "an array that is too long".to_owned())
    }

    /// Bytes of a type in memory with an explicit layout. `stride` is that of the columns of a matrix.
    fn size(&self, id: Word, stride: Option<u32>) -> Result<u32, String> {
        let ty = self.get(id)?;
        let inner = || self::id(ty.operands.first()).ok_or("a type without a type of its elements");
        let count = || literal(ty.operands.get(1)).unwrap_or_default();
        let product = |a: u32, b: u32| a.checked_mul(b).ok_or_else(|| "a type that is too large".to_owned());
        match ty.class.opcode {
            Op::TypeInt | Op::TypeFloat => Ok(literal(ty.operands.first()).unwrap_or_default().div_ceil(8)),
            Op::TypeBool => Ok(4),
            Op::TypeVector => product(count(), self.size(inner()?, None)?),
            Op::TypeMatrix => {
                let column = self.size(inner()?, None)?;
                // A matrix that is stored by rows has no more of them than columns of four.
                product(count().max(4), stride.unwrap_or(column))
            }
            Op::TypeArray => {
                let stride = self.number(id, Decoration::ArrayStride);
                product(
                    self.length(ty)?,
                    match stride {
                        Some(stride) => stride,
                        None => self.size(inner()?, stride)?,
                    },
                )
            }
            Op::TypeStruct => {
                let mut end = 0;
                for (at, member) in (0..).zip(&ty.operands) {
                    let offset = self.member_number(id, at, Decoration::Offset).unwrap_or(end);
                    let stride = self.member_number(id, at, Decoration::MatrixStride);
                    let member = self::id(Some(member)).ok_or("a member without a type")?;
                    end = end.max(offset.saturating_add(self.size(member, stride)?));
                }
                Ok(end)
            }
            Op::TypePointer => Ok(8),
            _ => Err(format!("Op{} in push constants", ty.class.opname)),
        }
    }

    /// The descriptor of a variable, and the number of descriptors.
    fn descriptor(&self, class: StorageClass, pointee: Word) -> Result<Binding, String> {
        let mut count = 1u32;
        let mut id = pointee;
        let ty = loop {
            let ty = self.get(id)?;
            let length = match ty.class.opcode {
                Op::TypeArray => self.length(ty)?,
                Op::TypeRuntimeArray => RUNTIME_ARRAY,
                _ => break ty,
            };
            count = count.checked_mul(length).ok_or("an array of too many descriptors")?;
            id = self::id(ty.operands.first()).ok_or("an array without a type of its elements")?;
        };
        let is_buffer = |image: &Instruction| matches!(image.operands.get(1), Some(Operand::Dim(Dim::DimBuffer)));
        let ty = match (class, ty.class.opcode) {
            (StorageClass::StorageBuffer, _) => DescriptorType::STORAGE_BUFFER,
            (StorageClass::Uniform, _) if self.has(id, Decoration::BufferBlock) => DescriptorType::STORAGE_BUFFER,
            (StorageClass::Uniform, _) => DescriptorType::UNIFORM_BUFFER,
            (_, Op::TypeSampler) => DescriptorType::SAMPLER,
            (_, Op::TypeSampledImage) if is_buffer(self.operand(ty, 0)?) => DescriptorType::UNIFORM_TEXEL_BUFFER,
            (_, Op::TypeSampledImage) => DescriptorType::COMBINED_IMAGE_SAMPLER,
            (_, Op::TypeImage) => {
                let is_storage = literal(ty.operands.get(5)) == Some(2);
                match (ty.operands.get(1), is_storage) {
                    (Some(Operand::Dim(Dim::DimSubpassData)), _) => DescriptorType::INPUT_ATTACHMENT,
                    (Some(Operand::Dim(Dim::DimBuffer)), true) => DescriptorType::STORAGE_TEXEL_BUFFER,
                    (Some(Operand::Dim(Dim::DimBuffer)), false) => DescriptorType::UNIFORM_TEXEL_BUFFER,
                    (_, true) => DescriptorType::STORAGE_IMAGE,
                    (_, false) => DescriptorType::SAMPLED_IMAGE,
                }
            }
            (_, Op::TypeAccelerationStructureKHR) => DescriptorType::ACCELERATION_STRUCTURE_KHR,
            (class, _) => return Err(format!("a descriptor in {class:?} of type Op{}", ty.class.opname)),
        };
        Ok(Binding { ty, count })
    }
}

impl Module {
    /// Reads a module, some of whose specialisation constants have other values than their own.
    ///
    /// # Errors
    /// The place where it does not parse, or the part without a form in Vulkan, or the constant that it does not have.
    pub fn read(bytes: &[u8], constants: &[(u32, String)]) -> Result<Self, String> {
        let chunks = bytes.chunks_exact(4);
        if !chunks.remainder().is_empty() {
            return Err(format!("{} bytes are not a number of words", bytes.len()));
        }
        let mut words: Vec<u32> =
            chunks.map(|chunk| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])).collect();
        match words.first() {
            Some(0x0723_0203) => {}
            Some(0x0302_2307) => words.iter_mut().for_each(|word| *word = word.swap_bytes()),
            _ => return Err("no SPIR-V: the first word is not the magic number".to_owned()),
        }
        specialise(&mut words, constants)?;
        let module = dr::load_words(&words).map_err(|error| error.to_string())?;
        let types = Types::of(module);
        let mut entries = Vec::new();
        for entry in &types.module.entry_points {
            let (Some(Operand::ExecutionModel(model)), Some(Operand::LiteralString(name))) =
                (entry.operands.first(), entry.operands.get(2))
            else {
                return Err("an entry point without a name".to_owned());
            };
            let name = CString::new(name.as_str()).map_err(|error| error.to_string())?;
            let interface = entry.operands[3..].iter().filter_map(|it| id(Some(it))).collect();
            let function = id(entry.operands.get(1)).ok_or("an entry point without a function")?;
            entries.push(Entry { name, model: *model, interface, function });
        }
        let mut resources = Vec::new();
        let mut push_constants = 0;
        for variable in types.module.types_global_values.iter().filter(|it| it.class.opcode == Op::Variable) {
            let (Some(id), Some(Operand::StorageClass(class))) = (variable.result_id, variable.operands.first()) else {
                continue;
            };
            let pointer = types.get(variable.result_type.ok_or("a variable without a type")?)?;
            let pointee = self::id(pointer.operands.get(1)).ok_or("a pointer to nothing")?;
            match class {
                StorageClass::PushConstant => push_constants = types.size(pointee, None)?.max(push_constants),
                StorageClass::UniformConstant | StorageClass::Uniform | StorageClass::StorageBuffer => {
                    // A module for OpenGL has no sets.
                    let set = types.number(id, Decoration::DescriptorSet).unwrap_or_default();
                    let number = types.number(id, Decoration::Binding).unwrap_or_default();
                    let binding = types.descriptor(*class, pointee)?;
                    resources.push(Resource { variable: id, set, number, binding });
                }
                StorageClass::AtomicCounter => return Err("an atomic counter: Vulkan has none".to_owned()),
                _ => {}
            }
        }
        let capabilities = types.module.capabilities.iter().filter_map(|it| match it.operands.first() {
            Some(Operand::Capability(capability)) => Some(*capability),
            _ => None,
        });
        let capabilities = capabilities.collect();
        Ok(Self { words, entries, resources, push_constants, capabilities, types })
    }

    /// All ids in the functions that an entry point reaches.
    fn used(&self, entry: &Entry) -> HashSet<Word> {
        let mut used = HashSet::new();
        let mut open = vec![entry.function];
        let mut seen = HashSet::from([entry.function]);
        while let Some(function) = open.pop() {
            let of_id = |it: &&dr::Function| it.def.as_ref().and_then(|def| def.result_id) == Some(function);
            let Some(function) = self.types.module.functions.iter().find(of_id) else { continue };
            for instruction in function.all_inst_iter() {
                used.extend(instruction.operands.iter().filter_map(|operand| id(Some(operand))));
                if instruction.class.opcode == Op::FunctionCall {
                    let called = id(instruction.operands.first());
                    open.extend(called.filter(|called| seen.insert(*called)));
                }
            }
        }
        used
    }

    /// The bindings that entry points use, by descriptor set and number.
    ///
    /// # Errors
    /// If one of them has descriptors of two types.
    pub fn bindings(&self, entries: &[&Entry]) -> Result<BTreeMap<(u32, u32), Binding>, String> {
        let used: HashSet<Word> = entries.iter().flat_map(|entry| self.used(entry)).collect();
        let mut bindings = BTreeMap::new();
        for Resource { set, number, binding, .. } in self.resources.iter().filter(|it| used.contains(&it.variable)) {
            let found = bindings.entry((*set, *number)).or_insert(Binding { ty: binding.ty, count: 0 });
            found.count = found.count.max(binding.count);
            found.ty = together(found.ty, binding.ty)
                .ok_or_else(|| format!("binding {number} of set {set} has descriptors of two types"))?;
        }
        Ok(bindings)
    }
}

/// The type of a descriptor that two variables of one binding share.
fn together(a: DescriptorType, b: DescriptorType) -> Option<DescriptorType> {
    const COMBINED: DescriptorType = DescriptorType::COMBINED_IMAGE_SAMPLER;
    let is_part = |it| matches!(it, DescriptorType::SAMPLER | DescriptorType::SAMPLED_IMAGE | COMBINED);
    if a == b { Some(a) } else { (is_part(a) && is_part(b)).then_some(COMBINED) }
}
