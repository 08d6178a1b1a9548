//! Memory: buffers, the constant file, global memory, and atomic operations.
//!
//! The constant file is a uniform buffer; its first words are push constants where the number of each word that is read
//! is known to be below [`PUSHED_WORDS`], or where no number is computed.

use ir3_compiler::nir::{Access, AtomicOp, Def, Function, InstrData, Intrinsic, IntrinsicOp, Op};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Decoration, StorageClass, Word};

use super::descriptors::{Class, Resource};
use super::interface::Variable;
use super::values::{Kind, Ty};
use super::{Described, Descriptor, Emitter, NoForm, binding, no_form, refs};

/// The type of a block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Layout {
    /// A uniform buffer of vectors of four words.
    Uniform,
    /// The push constants.
    Pushed,
    /// Any number of elements of this kind and of this many bits.
    Storage(Kind, u8),
    /// Shared memory: a number of bytes, as elements of this many bits.
    Shared(u8, u32),
}

/// Vectors in a uniform buffer: all that a range of 64 KiB has.
const UNIFORM_VECTORS: u32 = 4096;
/// Words of push constants: as many as each device of Vulkan has.
pub const PUSHED_WORDS: u32 = 32;

/// The SPIR-V form of the constant file of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConstantFile {
    /// A uniform buffer.
    Buffer,
    /// Push constants, as no access is beyond them.
    Pushed,
    /// The first words are push constants, as each access has a constant number.
    Both,
}

impl ConstantFile {
    pub fn of(function: &Function) -> Self {
        let (mut most, mut is_known) = (0, true);
        for (_, instr) in function.instrs_in_order() {
            let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
            let (IntrinsicOp::LoadConstIr3, Some(def)) = (intrinsic.op, intrinsic.def) else { continue };
            let words =
                u32::from(function.defs[def].num_components) * u32::from(function.defs[def].bit_size).div_ceil(32);
            is_known &= function.as_const_scalar(intrinsic.srcs[0]).is_some();
            let first = bound(function, intrinsic.srcs[0]).map_or(PUSHED_WORDS, |most| most.min(PUSHED_WORDS));
            most = most.max(first + intrinsic.indices.base() as u32 + words);
        }
        match (most <= PUSHED_WORDS, is_known) {
            (true, _) => Self::Pushed,
            (false, true) => Self::Both,
            (false, false) => Self::Buffer,
        }
    }
}

/// The largest value of a scalar: of a constant, or below a mask.
fn bound(function: &Function, def: Def) -> Option<u32> {
    if let Some(value) = function.as_const_scalar(def) {
        return Some(value as u32);
    }
    match &function.instrs[function.defs[def].instr] {
        InstrData::Alu(alu) if alu.op == Op::Iand => {
            alu.srcs.iter().find_map(|src| function.as_const_scalar(src.def)).map(|mask| mask as u32)
        }
        _ => None,
    }
}

/// An index: a number, or a number more than a value.
#[derive(Clone, Copy)]
pub(super) struct Index {
    pub value: Option<Word>,
    pub plus: u32,
}

impl Emitter<'_> {
    /// The value of a scalar as an index, and this many more.
    pub fn index(&mut self, def: Def, plus: u32) -> Index {
        match self.function.as_const_scalar(def) {
            Some(value) => Index { value: None, plus: (value as u32).wrapping_add(plus) },
            None => Index { value: Some(self.component(def, 0, Kind::Uint)), plus },
        }
    }

    /// The index as a value, and this many more.
    pub fn at(&mut self, index: Index, plus: u32) -> Word {
        let plus = index.plus.wrapping_add(plus);
        let constant = self.number(plus);
        match (index.value, plus) {
            (None, _) => constant,
            (Some(value), 0) => value,
            (Some(value), _) => self.word(spirv::Op::IAdd, value, constant),
        }
    }

    pub fn word(&mut self, op: spirv::Op, a: Word, b: Word) -> Word {
        let ty = self.type_id(Ty::U32);
        self.emit(op, ty, refs(&[a, b]))
    }

    /// An index divided by a power of two.
    pub fn divided(&mut self, index: Index, by_bits: u32) -> Index {
        match index.value {
            None => Index { value: None, plus: index.plus >> by_bits },
            Some(_) => {
                let (value, count) = (self.at(index, 0), self.number(by_bits));
                Index { value: Some(self.word(spirv::Op::ShiftRightLogical, value, count)), plus: 0 }
            }
        }
    }

    /// An index times a number.
    fn multiplied(&mut self, index: Index, by: u32) -> Index {
        match index.value {
            _ if by == 1 => index,
            None => Index { value: None, plus: index.plus.wrapping_mul(by) },
            Some(_) => {
                let (value, factor) = (self.at(index, 0), self.number(by));
                Index { value: Some(self.word(spirv::Op::IMul, value, factor)), plus: 0 }
            }
        }
    }

    pub fn layout(&mut self, layout: Layout) -> Word {
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
            Layout::Pushed => {
                let element = self.type_id(Ty::U32);
                let length = self.number(PUSHED_WORDS);
                let id = self.b.id();
                (self.b.type_array_id(Some(id), element, length), 4)
            }
            Layout::Shared(bits, bytes) => {
                self.capability(Capability::WorkgroupMemoryExplicitLayoutKHR);
                self.extensions.insert("SPV_KHR_workgroup_memory_explicit_layout");
                match bits {
                    8 => self.capability(Capability::WorkgroupMemoryExplicitLayout8BitAccessKHR),
                    16 => self.capability(Capability::WorkgroupMemoryExplicitLayout16BitAccessKHR),
                    _ => {}
                }
                let element = self.type_id(Ty::uint(bits));
                let size = u32::from(bits) / 8;
                let length = self.number(bytes.div_ceil(size));
                let id = self.b.id();
                (self.b.type_array_id(Some(id), element, length), size)
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

    /// A pointer to an element of a block.
    pub fn element(&mut self, class: StorageClass, ty: Ty, base: Word, indices: &[Word]) -> Word {
        let element = self.type_id(ty);
        let pointer = self.b.type_pointer(None, class, element);
        let mut operands = refs(&[base]);
        operands.extend(refs(indices));
        self.emit(spirv::Op::AccessChain, pointer, operands)
    }

    /// Defines a value as a vector of parts of its bits.
    pub fn define(&mut self, def: Def, parts: &[Word], of: Kind) {
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
    pub fn load_parts(&mut self, def: Def, mut pointer: impl FnMut(&mut Self, u32) -> Word, aligned: Option<u32>) {
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

    pub fn store_parts(
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
            I::GetSsboSize => self.buffer_size(intrinsic),
            I::LoadSsboIr3 | I::StoreSsboIr3 | I::SsboAtomicIr3 | I::SsboAtomicSwapIr3 => self.storage(intrinsic),
            I::LoadShared | I::StoreShared | I::SharedAtomic | I::SharedAtomicSwap => self.shared(intrinsic),
            I::LoadGlobalIr3 | I::StoreGlobalIr3 | I::GlobalAtomicIr3 | I::GlobalAtomicSwapIr3 => {
                self.global_memory(intrinsic)
            }
            I::LoadScratch | I::StoreScratch => self.scratch(intrinsic),
            I::LoadReg | I::LoadRegIndirect | I::StoreReg | I::StoreRegIndirect => self.local(intrinsic),
            _ => return None,
        })
    }

    fn constant_file(&mut self) -> Word {
        let layout = self.layout(Layout::Uniform);
        let buffer = Described::Constants;
        self.used.insert(Descriptor { resource: buffer, set: 0, binding: binding::CONSTANTS, element: 0 });
        self.bound(Variable::Bound(0, binding::CONSTANTS, layout), layout, StorageClass::Uniform)
    }

    fn pushed(&mut self) -> Word {
        if let Some(&id) = self.variables.get(&Variable::Pushed) {
            return id;
        }
        let layout = self.layout(Layout::Pushed);
        let id = self.global(layout, StorageClass::PushConstant);
        self.variables.insert(Variable::Pushed, id);
        id
    }

    fn load_const(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let ty = self.ty(def);
        if !matches!(ty.bits, 32 | 64) {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, ty.bits));
        }
        let index = self.index(intrinsic.srcs[0], intrinsic.indices.base() as u32);
        let words = u32::from(ty.components) * u32::from(ty.bits) / 32;
        let is_pushed = match self.constant_file {
            ConstantFile::Pushed => true,
            ConstantFile::Both => index.plus + words <= PUSHED_WORDS,
            ConstantFile::Buffer => false,
        };
        let zero = self.number(0);
        if !is_pushed && index.value.is_none() && index.plus.is_multiple_of(4) && ty == Ty::U32.of(4) {
            let file = self.constant_file();
            let vector = self.number(index.plus / 4);
            let pointer = self.element(StorageClass::Uniform, Ty::U32.of(4), file, &[zero, vector]);
            let type_id = self.type_id(Ty::U32.of(4));
            self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[pointer]));
            return Ok(());
        }
        let both = self.constant_file == ConstantFile::Both;
        let pointer = |this: &mut Self, c: u32| {
            if is_pushed || both && index.plus + c < PUSHED_WORDS {
                let (file, word) = (this.pushed(), this.at(index, c));
                return this.element(StorageClass::PushConstant, Ty::U32, file, &[zero, word]);
            }
            let file = this.constant_file();
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
        match ty.bits {
            32 => self.load_parts(def, pointer, None),
            _ => self.load_pairs(def, pointer),
        }
        Ok(())
    }

    /// Loads a value of 64 bits whose words are in two places each.
    pub fn load_pairs(&mut self, def: Def, mut pointer: impl FnMut(&mut Self, u32) -> Word) {
        let components = u32::from(self.ty(def).components);
        let mut parts = Vec::new();
        for c in 0..components {
            let halves = [0, 1].map(|half| {
                let pointer = pointer(self, 2 * c + half);
                let word = self.type_id(Ty::U32);
                self.emit(spirv::Op::Load, word, refs(&[pointer]))
            });
            parts.push(self.joined(halves));
        }
        self.define(def, &parts, Kind::Uint);
    }

    /// A value of 64 bits of its words.
    pub fn joined(&mut self, halves: [Word; 2]) -> Word {
        let pair = self.type_id(Ty::U32.of(2));
        let pair = self.emit(spirv::Op::CompositeConstruct, pair, refs(&halves));
        let wide = self.type_id(Ty::uint(64));
        self.emit(spirv::Op::Bitcast, wide, refs(&[pair]))
    }

    fn load_ubo(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let ty = self.ty(def);
        if !matches!(ty.bits, 32 | 64) {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, ty.bits));
        }
        let resource = Resource::of(self.function, Class::UniformBuffer, intrinsic.srcs[0], intrinsic.indices.access());
        let index = self.index(intrinsic.srcs[1], intrinsic.indices.base() as u32);
        let layout = self.layout(Layout::Uniform);
        let class = StorageClass::Uniform;
        let buffer = self.descriptor(&resource, layout, class)?;
        let (zero, vector) = (self.number(0), self.at(index, 0));
        let whole = Ty::U32.of(4);
        let first = intrinsic.indices.component();
        if ty.bits == 64 {
            // Its components are those of vectors of two, if it has several.
            let words = u32::from(first) * 2..u32::from(first) * 2 + u32::from(ty.components) * 2;
            if words.end > 4 {
                return no_form("an access beyond a vector");
            }
            let pointer = |this: &mut Self, c: u32| {
                let component = this.number(words.start + c);
                let pointer = this.element(class, Ty::U32, buffer, &[zero, vector, component]);
                this.non_uniform(&resource, pointer);
                pointer
            };
            self.load_pairs(def, pointer);
            return Ok(());
        }
        if ty.components == 1 {
            let component = self.number(first.into());
            let pointer = self.element(class, Ty::U32, buffer, &[zero, vector, component]);
            self.non_uniform(&resource, pointer);
            self.load_parts(def, |_, _| pointer, None);
            return Ok(());
        }
        let pointer = self.element(class, whole, buffer, &[zero, vector]);
        self.non_uniform(&resource, pointer);
        let type_id = self.type_id(whole);
        if ty == whole && first == 0 {
            self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[pointer]));
            return Ok(());
        }
        let value = self.emit(spirv::Op::Load, type_id, refs(&[pointer]));
        self.narrow(def, value, whole, first)
    }

    /// The kind of the elements of a storage buffer: floats, if nothing else is stored to it as elements of this width,
    /// and nothing is read.
    fn buffer_kind(&self, resource: &Resource, bits: u8) -> Kind {
        use IntrinsicOp::{LoadSsboIr3, SsboAtomicIr3, SsboAtomicSwapIr3, StoreSsboIr3};
        let function = self.function;
        let of_floats = |intrinsic: &Intrinsic| {
            let is_store = intrinsic.op == StoreSsboIr3;
            let is_access = is_store || matches!(intrinsic.op, LoadSsboIr3 | SsboAtomicIr3 | SsboAtomicSwapIr3);
            if !is_access {
                return true;
            }
            let its =
                Resource::of(function, Class::StorageBuffer, intrinsic.srcs[usize::from(is_store)], Access::empty());
            let may_be_it = its.number == resource.number || its.plus.is_some() || resource.plus.is_some();
            if its.set != resource.set || !may_be_it {
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
        let handle = intrinsic.srcs[usize::from(is_store)];
        let resource = Resource::of(self.function, Class::StorageBuffer, handle, intrinsic.indices.access());
        let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
        let Some(data) = data else { return Ok(()) };
        let ty = self.ty(data);
        let bits = ty.bits;
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return no_form(format_args!("`{}` of {bits} bits", intrinsic.op));
        }
        let offset = *intrinsic.srcs.last().expect("an access has an offset");
        let mut index = self.index(offset, intrinsic.indices.base() as u32);
        if bits == 64 {
            // Counted in quarters.
            index = self.divided(index, 2);
        }
        let is_atomic = matches!(intrinsic.op, I::SsboAtomicIr3 | I::SsboAtomicSwapIr3);
        let kind = self.buffer_kind(&resource, bits);
        let layout = self.layout(Layout::Storage(kind, bits));
        let class = StorageClass::StorageBuffer;
        let buffer = self.descriptor(&resource, layout, class)?;
        let pointer = |this: &mut Self, c: u32| {
            let indices = [this.number(0), this.at(index, c)];
            let pointer = this.element(class, Ty { kind, bits, components: 1 }, buffer, &indices);
            this.non_uniform(&resource, pointer);
            pointer
        };
        match intrinsic.op {
            _ if is_atomic => {
                let pointer = pointer(self, 0);
                let srcs = &intrinsic.srcs[2..intrinsic.srcs.len() - 1];
                return self.atomic(intrinsic, pointer, spirv::Scope::Device, srcs);
            }
            I::StoreSsboIr3 => self.store_parts(data, kind, intrinsic.indices.write_mask().into(), pointer, None),
            _ => self.load_parts(data, pointer, None),
        }
        Ok(())
    }

    /// The bytes of a storage buffer.
    fn buffer_size(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        let resource = Resource::of(self.function, Class::StorageBuffer, intrinsic.srcs[0], intrinsic.indices.access());
        if self.ty(def) != Ty::U32 {
            return no_form(format_args!("`{}` of this width", intrinsic.op));
        }
        let layout = self.layout(Layout::Storage(Kind::Uint, 32));
        let buffer = self.descriptor(&resource, layout, StorageClass::StorageBuffer)?;
        let word = self.type_id(Ty::U32);
        let length = self.emit(spirv::Op::ArrayLength, word, vec![Operand::IdRef(buffer), Operand::LiteralBit32(0)]);
        let two = self.number(2);
        self.emit_as(self.ids[def], spirv::Op::ShiftLeftLogical, word, refs(&[length, two]));
        Ok(())
    }

    fn global_memory(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let is_store = intrinsic.op == I::StoreGlobalIr3;
        let is_atomic = matches!(intrinsic.op, I::GlobalAtomicIr3 | I::GlobalAtomicSwapIr3);
        let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
        let Some(data) = data else { return Ok(()) };
        let ty = self.ty(data);
        let bits = ty.bits;
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return no_form(format_args!("`{}` of {bits} bits", intrinsic.op));
        }
        let size = u32::from(bits) / 8;
        self.capability(Capability::PhysicalStorageBufferAddresses);
        let class = StorageClass::PhysicalStorageBuffer;
        let layout = self.layout(Layout::Storage(Kind::Uint, bits));
        let pointer = self.b.type_pointer(None, class, layout);
        let address = self.read(intrinsic.srcs[usize::from(is_store)], Kind::Uint);
        let base = self.emit(spirv::Op::Bitcast, pointer, refs(&[address]));
        // Counted in words, but for the base of an atomic operation, which is in bytes.
        let index = match is_atomic {
            true => Index { value: None, plus: (intrinsic.indices.base() / size as i32) as u32 },
            false => {
                let words = self.index(intrinsic.srcs[1 + usize::from(is_store)], 0);
                match size {
                    8 => self.divided(words, 1),
                    size => self.multiplied(words, 4 / size),
                }
            }
        };
        let pointer = |this: &mut Self, c: u32| {
            let indices = [this.number(0), this.at(index, c)];
            this.element(class, Ty::uint(bits), base, &indices)
        };
        if is_atomic {
            let pointer = pointer(self, 0);
            return self.atomic(intrinsic, pointer, spirv::Scope::Device, &intrinsic.srcs[1..]);
        }
        if is_store {
            self.store_parts(data, Kind::Uint, (1 << ty.components) - 1, pointer, Some(size));
        } else {
            self.load_parts(data, pointer, Some(size));
        }
        Ok(())
    }

    /// An atomic operation: `srcs` is the operand, then the new value of a compare-and-swap.
    pub fn atomic(
        &mut self,
        intrinsic: &Intrinsic,
        pointer: Word,
        scope: spirv::Scope,
        srcs: &[Def],
    ) -> Result<(), NoForm> {
        self.atomic_of(intrinsic, pointer, scope, srcs, false)
    }

    /// Like [`atomic`](Self::atomic), of a number that is signed or not.
    pub fn atomic_of(
        &mut self,
        intrinsic: &Intrinsic,
        pointer: Word,
        scope: spirv::Scope,
        srcs: &[Def],
        is_signed: bool,
    ) -> Result<(), NoForm> {
        let Some(def) = intrinsic.def else { return Ok(()) };
        if self.ty(def).bits == 64 {
            self.capability(Capability::Int64Atomics);
        }
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
        let signed = is_signed.then(|| self.b.type_int(self.ty(def).bits.into(), 1));
        let operand = |this: &mut Self, at: usize| {
            let value = this.component(srcs[at], 0, Kind::Uint);
            signed.map_or(value, |signed| this.emit(spirv::Op::Bitcast, signed, refs(&[value])))
        };
        let first = operand(self, 0);
        let operands = match op {
            spirv::Op::AtomicCompareExchange => {
                let new = operand(self, 1);
                vec![pointer, scope, relaxed, relaxed, new, first]
            }
            _ => vec![pointer, scope, relaxed, first],
        };
        // Scopes and semantics are constants by their ids.
        let mut list = refs(&operands);
        list[1] = Operand::IdScope(scope);
        let semantics = if op == spirv::Op::AtomicCompareExchange { 2..4 } else { 2..3 };
        for i in semantics {
            list[i] = Operand::IdMemorySemantics(relaxed);
        }
        let ty = self.type_id(self.ty(def));
        match signed {
            None => self.emit_as(self.ids[def], op, ty, list),
            Some(signed) => {
                let result = self.emit(op, signed, list);
                self.emit_as(self.ids[def], spirv::Op::Bitcast, ty, refs(&[result]));
            }
        }
        Ok(())
    }
}

/// The operands of an access that give its alignment in bytes.
fn alignment(bytes: Option<u32>) -> impl Iterator<Item = Operand> {
    let operands =
        bytes.map(|bytes| [Operand::MemoryAccess(spirv::MemoryAccess::ALIGNED), Operand::LiteralBit32(bytes)]);
    operands.into_iter().flatten()
}
