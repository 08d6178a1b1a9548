//! Memory: buffers, the constant file, shared and global memory, local arrays, and atomic operations on them.
//!
//! All memory is arrays of words, as it is for ir3; a vector is loaded word by word.

use ir3_compiler::nir::{AtomicOp, Def, InstrData, Intrinsic, IntrinsicOp};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Decoration, StorageClass, Word};

use super::interface::Variable;
use super::values::{Kind, Ty};
use super::{Emitter, NoForm, binding, no_form, refs};

/// The type of a block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Layout {
    /// A uniform buffer of vectors of four words.
    Uniform,
    /// Any number of elements of this kind and of this many bits.
    Storage(Kind, u8),
}

/// Vectors in a uniform buffer: all that a range of 64 KiB has.
const UNIFORM_VECTORS: u32 = 4096;

/// An index: a number, or a number more than a value.
#[derive(Clone, Copy)]
struct Index {
    value: Option<Word>,
    plus: u32,
}

impl Emitter<'_> {
    /// The value of a scalar as an index, and this many more.
    fn index(&mut self, def: Def, plus: u32) -> Index {
        match self.function.as_const_scalar(def) {
            Some(value) => Index { value: None, plus: (value as u32).wrapping_add(plus) },
            None => Index { value: Some(self.component(def, 0, Kind::Uint)), plus },
        }
    }

    /// The index as a value, and this many more.
    fn at(&mut self, index: Index, plus: u32) -> Word {
        let plus = index.plus.wrapping_add(plus);
        let constant = self.number(plus);
        match (index.value, plus) {
            (None, _) => constant,
            (Some(value), 0) => value,
            (Some(value), _) => self.word(spirv::Op::IAdd, value, constant),
        }
    }

    fn word(&mut self, op: spirv::Op, a: Word, b: Word) -> Word {
        let ty = self.type_id(Ty::U32);
        self.emit(op, ty, refs(&[a, b]))
    }

    /// An index in bytes as one in words.
    fn in_words(&mut self, bytes: Index) -> Index {
        match bytes.value {
            None => Index { value: None, plus: bytes.plus / 4 },
            Some(_) => {
                let bytes = self.at(bytes, 0);
                let two = self.number(2);
                Index { value: Some(self.word(spirv::Op::ShiftRightLogical, bytes, two)), plus: 0 }
            }
        }
    }

    fn layout(&mut self, layout: Layout) -> Word {
        if let Some(&id) = self.layouts.get(&layout) {
            return id;
        }
        let (array, stride) = match layout {
            Layout::Uniform => {
                let element = self.type_id(Ty::U32.of(4));
                let length = self.number(UNIFORM_VECTORS);
                let id = self.b.id();
                (self.b.type_array_id(Some(id), element, length), 16)
            }
            Layout::Storage(kind, bits) => {
                match bits {
                    8 => self.capability(Capability::StorageBuffer8BitAccess),
                    16 => self.capability(Capability::StorageBuffer16BitAccess),
                    _ => {}
                }
                let element = self.type_id(Ty { kind, bits, components: 1 });
                let id = self.b.id();
                (self.b.type_runtime_array_id(Some(id), element), u32::from(bits) / 8)
            }
        };
        self.decorate(array, Decoration::ArrayStride, &[stride]);
        let id = self.b.id();
        let id = self.b.type_struct_id(Some(id), [array]);
        self.decorate(id, Decoration::Block, &[]);
        self.b.member_decorate(id, 0, Decoration::Offset, [Operand::LiteralBit32(0)]);
        self.layouts.insert(layout, id);
        id
    }

    /// A variable of descriptor set 0.
    pub fn bound(&mut self, key: Variable, ty: Word, class: StorageClass, number: u32) -> Word {
        if let Some(&id) = self.variables.get(&key) {
            return id;
        }
        let id = self.global(ty, class);
        self.decorate(id, Decoration::DescriptorSet, &[0]);
        self.decorate(id, Decoration::Binding, &[number]);
        self.variables.insert(key, id);
        id
    }

    /// The number of a resource.
    pub fn resource(&self, def: Def) -> Result<u32, NoForm> {
        match self.function.as_const_scalar(def) {
            Some(number) => Ok(number as u32),
            None => no_form("a resource with a computed number"),
        }
    }

    /// A pointer to an element of a block.
    fn element(&mut self, class: StorageClass, ty: Ty, base: Word, indices: &[Word]) -> Word {
        let element = self.type_id(ty);
        let pointer = self.b.type_pointer(None, class, element);
        let mut operands = refs(&[base]);
        operands.extend(refs(indices));
        self.emit(spirv::Op::AccessChain, pointer, operands)
    }

    /// Defines a value as a vector of parts of its bits.
    fn define(&mut self, def: Def, parts: &[Word], of: Kind) {
        let ty = self.ty(def);
        let type_id = self.type_id(ty);
        let id = self.ids[def];
        let op = match (parts.len(), of == ty.kind) {
            (1, true) => spirv::Op::CopyObject,
            (1, false) => spirv::Op::Bitcast,
            _ => spirv::Op::CompositeConstruct,
        };
        self.emit_as(id, op, type_id, refs(parts));
    }

    /// Loads a value of unsigned parts, each from the pointer that `pointer` returns for it.
    fn load_parts(&mut self, def: Def, mut pointer: impl FnMut(&mut Self, u32) -> Word, aligned: Option<u32>) {
        let ty = Ty { kind: Kind::Uint, ..self.ty(def) };
        let part = self.type_id(ty.of(1));
        let mut parts = Vec::new();
        for c in 0..u32::from(ty.components) {
            let pointer = pointer(self, c);
            let id = if ty.components == 1 { self.ids[def] } else { self.b.id() };
            let mut operands = refs(&[pointer]);
            operands.extend(alignment(aligned));
            self.emit_as(id, spirv::Op::Load, part, operands);
            parts.push(id);
        }
        if parts.len() > 1 {
            self.define(def, &parts, Kind::Uint);
        }
    }

    fn store_parts(
        &mut self,
        data: Def,
        kind: Kind,
        mask: u32,
        mut pointer: impl FnMut(&mut Self, u32) -> Word,
        aligned: Option<u32>,
    ) {
        for c in (0..u32::from(self.ty(data).components)).filter(|c| mask >> c & 1 != 0) {
            let value = self.component(data, c as u8, kind);
            let pointer = pointer(self, c);
            let mut operands = refs(&[pointer, value]);
            operands.extend(alignment(aligned));
            self.act(spirv::Op::Store, operands);
        }
    }

    /// Loads and stores of memory, and atomic operations on it; none if the intrinsic is none of these.
    pub fn memory(&mut self, intrinsic: &Intrinsic) -> Option<Result<(), NoForm>> {
        use IntrinsicOp as I;
        Some(match intrinsic.op {
            I::LoadConstIr3 => self.load_const(intrinsic),
            I::LoadUboVec4 => self.load_ubo(intrinsic),
            I::LoadSsboIr3 | I::StoreSsboIr3 | I::SsboAtomicIr3 | I::SsboAtomicSwapIr3 => self.storage(intrinsic),
            I::LoadShared | I::StoreShared | I::SharedAtomic | I::SharedAtomicSwap => self.shared(intrinsic),
            I::LoadGlobalIr3 | I::StoreGlobalIr3 => self.global_memory(intrinsic),
            I::LoadReg | I::LoadRegIndirect | I::StoreReg | I::StoreRegIndirect => self.local(intrinsic),
            _ => return None,
        })
    }

    fn uniform(&mut self, number: Option<u32>) -> Word {
        let layout = self.layout(Layout::Uniform);
        let binding = number.map_or(binding::CONSTANTS, |number| binding::UNIFORM_BUFFERS + number);
        self.bound(Variable::Uniform(number), layout, StorageClass::Uniform, binding)
    }

    fn load_const(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let ty = self.ty(def);
        if ty.bits != 32 {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, ty.bits));
        }
        let index = self.index(intrinsic.srcs[0], intrinsic.indices.base() as u32);
        let file = self.uniform(None);
        let zero = self.number(0);
        if index.value.is_none() && index.plus.is_multiple_of(4) && ty.components == 4 {
            let vector = self.number(index.plus / 4);
            let pointer = self.element(StorageClass::Uniform, Ty::U32.of(4), file, &[zero, vector]);
            let type_id = self.type_id(Ty::U32.of(4));
            self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[pointer]));
            return Ok(());
        }
        let pointer = |this: &mut Self, c: u32| {
            let (vector, component) = match index.value {
                None => (this.number((index.plus + c) / 4), this.number((index.plus + c) % 4)),
                Some(_) => {
                    let word = this.at(index, c);
                    let (two, three) = (this.number(2), this.number(3));
                    (this.word(spirv::Op::ShiftRightLogical, word, two), this.word(spirv::Op::BitwiseAnd, word, three))
                }
            };
            this.element(StorageClass::Uniform, Ty::U32, file, &[zero, vector, component])
        };
        self.load_parts(def, pointer, None);
        Ok(())
    }

    fn load_ubo(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let ty = self.ty(def);
        if ty.bits != 32 {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, ty.bits));
        }
        let number = self.resource(intrinsic.srcs[0])?;
        let index = self.index(intrinsic.srcs[1], intrinsic.indices.base() as u32);
        let buffer = self.uniform(Some(number));
        let (zero, vector) = (self.number(0), self.at(index, 0));
        let whole = Ty::U32.of(4);
        let first = intrinsic.indices.component();
        if ty.components == 1 {
            let component = self.number(first.into());
            let pointer = self.element(StorageClass::Uniform, Ty::U32, buffer, &[zero, vector, component]);
            self.load_parts(def, |_, _| pointer, None);
            return Ok(());
        }
        let pointer = self.element(StorageClass::Uniform, whole, buffer, &[zero, vector]);
        let type_id = self.type_id(whole);
        if ty == whole && first == 0 {
            self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[pointer]));
            return Ok(());
        }
        let value = self.emit(spirv::Op::Load, type_id, refs(&[pointer]));
        self.narrow(def, value, whole, first)
    }

    /// The kind of the elements of a storage buffer: floats, if nothing else is stored to it as elements of this width, and nothing is read.
    fn buffer_kind(&self, number: u32, bits: u8) -> Kind {
        use IntrinsicOp::{LoadSsboIr3, SsboAtomicIr3, SsboAtomicSwapIr3, StoreSsboIr3};
        let function = self.function;
        let of_floats = |intrinsic: &Intrinsic| {
            let is_store = intrinsic.op == StoreSsboIr3;
            let is_access = is_store || matches!(intrinsic.op, LoadSsboIr3 | SsboAtomicIr3 | SsboAtomicSwapIr3);
            if !is_access || !self.resource(intrinsic.srcs[usize::from(is_store)]).is_ok_and(|its| its == number) {
                return true;
            }
            let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
            data.is_none_or(|data| function.defs[data].bit_size != bits || is_store && self.kinds[data] == Kind::Float)
        };
        let all_floats = function.instrs_in_order().all(|(_, instr)| match &function.instrs[instr] {
            InstrData::Intrinsic(intrinsic) => of_floats(intrinsic),
            _ => true,
        });
        if all_floats { Kind::Float } else { Kind::Uint }
    }

    fn storage(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let is_store = intrinsic.op == I::StoreSsboIr3;
        let number = self.resource(intrinsic.srcs[usize::from(is_store)])?;
        let index = *intrinsic.srcs.last().expect("an access has an offset");
        let index = self.index(index, intrinsic.indices.base() as u32);
        let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
        let Some(data) = data else { return Ok(()) };
        let bits = self.function.defs[data].bit_size;
        if !matches!(bits, 16 | 32) {
            return no_form(format_args!("`{}` of {bits} bits", intrinsic.op));
        }
        let kind = self.buffer_kind(number, bits);
        let layout = self.layout(Layout::Storage(kind, bits));
        let class = StorageClass::StorageBuffer;
        let buffer = self.bound(Variable::Storage(number, bits), layout, class, binding::STORAGE_BUFFERS + number);
        let pointer = |this: &mut Self, c: u32| {
            let indices = [this.number(0), this.at(index, c)];
            this.element(class, Ty { kind, bits, components: 1 }, buffer, &indices)
        };
        match intrinsic.op {
            I::LoadSsboIr3 => self.load_parts(data, pointer, None),
            I::StoreSsboIr3 => self.store_parts(data, kind, intrinsic.indices.write_mask().into(), pointer, None),
            _ => {
                let pointer = pointer(self, 0);
                return self.atomic(
                    intrinsic,
                    pointer,
                    spirv::Scope::Device,
                    &intrinsic.srcs[2..intrinsic.srcs.len() - 1],
                );
            }
        }
        Ok(())
    }

    fn shared(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let is_store = intrinsic.op == I::StoreShared;
        let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
        let Some(data) = data else { return Ok(()) };
        let bits = self.function.defs[data].bit_size;
        if bits != 32 {
            return no_form(format_args!("`{}` of {bits} bits", intrinsic.op));
        }
        let bytes = self.index(intrinsic.srcs[usize::from(is_store)], intrinsic.indices.base() as u32);
        let index = self.in_words(bytes);
        let class = StorageClass::Workgroup;
        let memory = match self.variables.get(&Variable::Shared) {
            Some(&id) => id,
            None => {
                let element = self.type_id(Ty::U32);
                let length = self.number(self.shader.info.shared_size.div_ceil(4).max(1));
                let array = self.b.type_array(element, length);
                let id = self.global(array, class);
                self.variables.insert(Variable::Shared, id);
                id
            }
        };
        let pointer = |this: &mut Self, c: u32| {
            let index = this.at(index, c);
            this.element(class, Ty::U32, memory, &[index])
        };
        match intrinsic.op {
            I::LoadShared => self.load_parts(data, pointer, None),
            I::StoreShared => self.store_parts(data, Kind::Uint, intrinsic.indices.write_mask().into(), pointer, None),
            _ => {
                let pointer = pointer(self, 0);
                return self.atomic(intrinsic, pointer, spirv::Scope::Workgroup, &intrinsic.srcs[1..]);
            }
        }
        Ok(())
    }

    fn global_memory(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let is_store = intrinsic.op == IntrinsicOp::StoreGlobalIr3;
        let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
        let Some(data) = data else { return Ok(()) };
        let ty = self.ty(data);
        if ty.bits != 32 {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, ty.bits));
        }
        self.capability(Capability::PhysicalStorageBufferAddresses);
        let class = StorageClass::PhysicalStorageBuffer;
        let layout = self.layout(Layout::Storage(Kind::Uint, 32));
        let pointer = self.b.type_pointer(None, class, layout);
        let address = self.read(intrinsic.srcs[usize::from(is_store)], Kind::Uint);
        let base = self.emit(spirv::Op::Bitcast, pointer, refs(&[address]));
        let index = self.index(intrinsic.srcs[1 + usize::from(is_store)], 0);
        let pointer = |this: &mut Self, c: u32| {
            let indices = [this.number(0), this.at(index, c)];
            this.element(class, Ty::U32, base, &indices)
        };
        if is_store {
            self.store_parts(data, Kind::Uint, (1 << ty.components) - 1, pointer, Some(4));
        } else {
            self.load_parts(data, pointer, Some(4));
        }
        Ok(())
    }

    /// An atomic operation: `srcs` is the operand, behind it the new value of a compare-and-swap.
    pub fn atomic(
        &mut self,
        intrinsic: &Intrinsic,
        pointer: Word,
        scope: spirv::Scope,
        srcs: &[Def],
    ) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let op = match intrinsic.indices.atomic_op() {
            AtomicOp::Iadd => spirv::Op::AtomicIAdd,
            AtomicOp::Imin => spirv::Op::AtomicSMin,
            AtomicOp::Umin => spirv::Op::AtomicUMin,
            AtomicOp::Imax => spirv::Op::AtomicSMax,
            AtomicOp::Umax => spirv::Op::AtomicUMax,
            AtomicOp::Iand => spirv::Op::AtomicAnd,
            AtomicOp::Ior => spirv::Op::AtomicOr,
            AtomicOp::Ixor => spirv::Op::AtomicXor,
            AtomicOp::Xchg => spirv::Op::AtomicExchange,
            AtomicOp::Cmpxchg => spirv::Op::AtomicCompareExchange,
            op => return no_form(format_args!("an atomic `{op}`")),
        };
        let scope = self.number(scope as u32);
        let relaxed = self.number(0);
        let operand = self.component(srcs[0], 0, Kind::Uint);
        let operands = match op {
            spirv::Op::AtomicCompareExchange => {
                let new = self.component(srcs[1], 0, Kind::Uint);
                vec![pointer, scope, relaxed, relaxed, new, operand]
            }
            _ => vec![pointer, scope, relaxed, operand],
        };
        // Scopes and semantics are constants by their ids.
        let mut list = refs(&operands);
        list[1] = Operand::IdScope(scope);
        let semantics = if op == spirv::Op::AtomicCompareExchange { 2..4 } else { 2..3 };
        for i in semantics {
            list[i] = Operand::IdMemorySemantics(relaxed);
        }
        let ty = self.type_id(self.ty(def));
        self.emit_as(self.ids[def], op, ty, list);
        Ok(())
    }

    /// Declares the local arrays, which are variables of the function.
    pub fn local_arrays(&mut self) -> Result<(), NoForm> {
        let function = self.function;
        for (_, instr) in function.instrs_in_order() {
            let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
            let (IntrinsicOp::DeclReg, Some(def)) = (intrinsic.op, intrinsic.def) else { continue };
            let length = intrinsic.indices.num_array_elems();
            let mut ty = self.type_id(register_type(intrinsic));
            if length > 0 {
                let length = self.number(length);
                ty = self.b.type_array(ty, length);
            }
            let pointer = self.b.type_pointer(None, StorageClass::Function, ty);
            let id = self.b.variable(pointer, None, StorageClass::Function, None);
            self.variables.insert(Variable::Local(def), id);
        }
        Ok(())
    }

    fn local(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let is_store = matches!(intrinsic.op, I::StoreReg | I::StoreRegIndirect);
        let at = usize::from(is_store);
        let register = self.original(intrinsic.srcs[at]);
        let (Some(&array), InstrData::Intrinsic(decl)) =
            (self.variables.get(&Variable::Local(register)), &self.function.instrs[self.function.defs[register].instr])
        else {
            return no_form("an access to no local array");
        };
        let indices = &intrinsic.indices;
        if indices.legacy_fabs() || indices.legacy_fneg() || indices.legacy_fsat() {
            return no_form("an access to a local array with a modifier");
        }
        let ty = register_type(decl);
        let class = StorageClass::Function;
        let element = if decl.indices.num_array_elems() > 0 {
            let base = indices.base() as u32;
            let index = match intrinsic.srcs.get(at + 1) {
                Some(&index) => self.index(index, base),
                None => Index { value: None, plus: base },
            };
            let index = self.at(index, 0);
            self.element(class, ty, array, &[index])
        } else {
            array
        };
        if !is_store {
            let Some(def) = intrinsic.def else { return Ok(()) };
            let type_id = self.type_id(ty);
            self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[element]));
            return Ok(());
        }
        let data = intrinsic.srcs[0];
        let mask = u32::from(indices.write_mask());
        if mask == (1 << ty.components) - 1 {
            let value = self.read(data, ty.kind);
            self.act(spirv::Op::Store, refs(&[element, value]));
            return Ok(());
        }
        let pointer = |this: &mut Self, c: u32| {
            let index = this.number(c);
            this.element(class, ty.of(1), element, &[index])
        };
        self.store_parts(data, Kind::Uint, mask, pointer, None);
        Ok(())
    }
}

fn register_type(decl: &Intrinsic) -> Ty {
    let bits = decl.indices.bit_size();
    let kind = if bits == 1 { Kind::Bool } else { Kind::Uint };
    Ty { kind, bits, components: decl.indices.num_components() }
}

/// The operands of an access that say its alignment in bytes.
fn alignment(bytes: Option<u32>) -> impl Iterator<Item = Operand> {
    let operands =
        bytes.map(|bytes| [Operand::MemoryAccess(spirv::MemoryAccess::ALIGNED), Operand::LiteralBit32(bytes)]);
    operands.into_iter().flatten()
}
