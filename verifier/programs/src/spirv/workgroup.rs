//! Memory of a workgroup and of a lane: shared memory, scratch memory, local arrays.

use ir3_compiler::nir::{InstrData, Intrinsic, IntrinsicOp};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Decoration, GlslStd450Op, StorageClass, Word};

use super::alu::Form;
use super::interface::Variable;
use super::memory::{Index, Layout};
use super::values::{Kind, Ty};
use super::{Emitter, NoForm, no_form, refs};

/// The bytes of shared memory, if the header does not have them: those of a small device.
const SHARED_BYTES: u32 = 24 << 10;

impl Emitter<'_> {
    /// The widths with which shared memory is accessed.
    fn shared_widths(&self) -> Vec<u8> {
        use IntrinsicOp as I;
        let function = self.function;
        let mut widths: Vec<u8> = function
            .instrs_in_order()
            .filter_map(|(_, instr)| match &function.instrs[instr] {
                InstrData::Intrinsic(intrinsic) => match intrinsic.op {
                    I::StoreShared => Some(intrinsic.srcs[0]),
                    I::LoadShared | I::SharedAtomic | I::SharedAtomicSwap => intrinsic.def,
                    _ => None,
                },
                _ => None,
            })
            .map(|data| function.defs[data].bit_size)
            .collect();
        widths.sort_unstable();
        widths.dedup();
        widths
    }

    /// Shared memory as elements of a width: an array of words, or one of several blocks that are the same memory.
    /// Returns true for a block.
    fn shared_memory(&mut self, bits: u8) -> (Word, bool) {
        let is_block = self.shared_widths() != [32];
        let key = Variable::Shared(bits);
        if let Some(&id) = self.variables.get(&key) {
            return (id, is_block);
        }
        let bytes = match self.shader.info.shared_size {
            0 => SHARED_BYTES,
            bytes => bytes,
        };
        let ty = if is_block {
            self.layout(Layout::Shared(bits, bytes))
        } else {
            let element = self.type_id(Ty::U32);
            let length = self.number(bytes.div_ceil(4));
            self.b.type_array(element, length)
        };
        let id = self.global(ty, StorageClass::Workgroup);
        if is_block {
            self.b.decorate(id, Decoration::Aliased, []);
        }
        self.variables.insert(key, id);
        (id, is_block)
    }

    pub fn shared(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        use IntrinsicOp as I;
        let is_store = intrinsic.op == I::StoreShared;
        let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
        let Some(data) = data else { return Ok(()) };
        let bits = self.function.defs[data].bit_size;
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return no_form(format_args!("`{}` of {bits} bits", intrinsic.op));
        }
        let bytes = self.index(intrinsic.srcs[usize::from(is_store)], intrinsic.indices.base() as u32);
        let index = self.divided(bytes, (bits / 8).trailing_zeros());
        let class = StorageClass::Workgroup;
        let (memory, is_block) = self.shared_memory(bits);
        let pointer = |this: &mut Self, c: u32| {
            let zero = this.number(0);
            let index = this.at(index, c);
            let indices = [zero, index];
            this.element(class, Ty::uint(bits), memory, &indices[usize::from(!is_block)..])
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

    /// Scratch memory: an array of words of the function. Parts of words are read and written with the word.
    pub fn scratch(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
        let is_store = intrinsic.op == IntrinsicOp::StoreScratch;
        let data = if is_store { Some(intrinsic.srcs[0]) } else { intrinsic.def };
        let Some(data) = data else { return Ok(()) };
        let ty = self.ty(data);
        if !matches!(ty.bits, 8 | 16 | 32 | 64) {
            return no_form(format_args!("`{}` of {} bits", intrinsic.op, ty.bits));
        }
        let Some(&memory) = self.variables.get(&Variable::Scratch) else {
            return no_form("scratch memory without a size");
        };
        let bytes = self.index(intrinsic.srcs[usize::from(is_store)], 0);
        let size = u32::from(ty.bits) / 8;
        let mut parts = Vec::new();
        for c in 0..u32::from(ty.components) {
            let at = Index { plus: bytes.plus.wrapping_add(c * size), ..bytes };
            if is_store && u32::from(intrinsic.indices.write_mask()) >> c & 1 == 0 {
                continue;
            }
            let place = self.divided(at, 2);
            let word_at = |this: &mut Self, more: u32| {
                let index = this.at(place, more);
                this.element(StorageClass::Function, Ty::U32, memory, &[index])
            };
            let word = self.type_id(Ty::U32);
            match (size, is_store) {
                (4, true) => {
                    let (value, pointer) = (self.component(data, c as u8, Kind::Uint), word_at(self, 0));
                    self.act(spirv::Op::Store, refs(&[pointer, value]));
                }
                (4, false) => {
                    let pointer = word_at(self, 0);
                    parts.push(self.emit(spirv::Op::Load, word, refs(&[pointer])));
                }
                (8, true) => {
                    let value = self.component(data, c as u8, Kind::Uint);
                    let pair = self.type_id(Ty::U32.of(2));
                    let pair = self.emit(spirv::Op::Bitcast, pair, refs(&[value]));
                    for half in 0..2 {
                        let operands = vec![Operand::IdRef(pair), Operand::LiteralBit32(half)];
                        let value = self.emit(spirv::Op::CompositeExtract, word, operands);
                        let pointer = word_at(self, half);
                        self.act(spirv::Op::Store, refs(&[pointer, value]));
                    }
                }
                (8, false) => {
                    let halves = [0, 1].map(|half| {
                        let pointer = word_at(self, half);
                        self.emit(spirv::Op::Load, word, refs(&[pointer]))
                    });
                    parts.push(self.joined(halves));
                }
                (_, is_store) => {
                    let count = self.bits_below(at);
                    let pointer = word_at(self, 0);
                    let old = self.emit(spirv::Op::Load, word, refs(&[pointer]));
                    if is_store {
                        let value = self.component(data, c as u8, Kind::Uint);
                        let value = self.emit(spirv::Op::UConvert, word, refs(&[value]));
                        let (offset, width) = (count, self.number(size * 8));
                        let new = self.emit(spirv::Op::BitFieldInsert, word, refs(&[old, value, offset, width]));
                        self.act(spirv::Op::Store, refs(&[pointer, new]));
                    } else {
                        let low = self.word(spirv::Op::ShiftRightLogical, old, count);
                        let narrow = self.type_id(Ty::uint(ty.bits));
                        parts.push(self.emit(spirv::Op::UConvert, narrow, refs(&[low])));
                    }
                }
            }
        }
        if !is_store {
            self.define(data, &parts, Kind::Uint);
        }
        Ok(())
    }

    /// The bits of a word below the byte at an address.
    fn bits_below(&mut self, bytes: Index) -> Word {
        match bytes.value {
            None => self.number(bytes.plus % 4 * 8),
            Some(_) => {
                let (address, three) = (self.at(bytes, 0), self.number(3));
                let byte = self.word(spirv::Op::BitwiseAnd, address, three);
                self.word(spirv::Op::ShiftLeftLogical, byte, three)
            }
        }
    }

    /// Declares scratch memory, which is a variable of the function.
    pub fn scratch_memory(&mut self) {
        let bytes = self.shader.info.scratch_size;
        if bytes == 0 {
            return;
        }
        let word = self.type_id(Ty::U32);
        let length = self.number(bytes.div_ceil(4));
        let array = self.b.type_array(word, length);
        let pointer = self.b.type_pointer(None, StorageClass::Function, array);
        let id = self.b.variable(pointer, None, StorageClass::Function, None);
        self.variables.insert(Variable::Scratch, id);
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

    pub fn local(&mut self, intrinsic: &Intrinsic) -> Result<(), NoForm> {
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
            let changed: Vec<Form> = [
                indices.legacy_fabs().then_some(Form::Glsl(GlslStd450Op::FAbs)),
                indices.legacy_fneg().then_some(Form::Core(spirv::Op::FNegate)),
            ]
            .into_iter()
            .flatten()
            .collect();
            if changed.is_empty() {
                self.emit_as(self.ids[def], spirv::Op::Load, type_id, refs(&[element]));
                return Ok(());
            }
            let float = self.type_id(Ty { kind: Kind::Float, ..ty });
            let value = self.emit(spirv::Op::Load, type_id, refs(&[element]));
            let mut value = self.emit(spirv::Op::Bitcast, float, refs(&[value]));
            for form in changed {
                let id = self.b.id();
                self.emit_form(id, form, float, &[value]);
                value = id;
            }
            self.emit_as(self.ids[def], spirv::Op::Bitcast, type_id, refs(&[value]));
            return Ok(());
        }
        let data = intrinsic.srcs[0];
        let mask = u32::from(indices.write_mask());
        if indices.legacy_fsat() {
            let value = self.read(data, Kind::Float);
            let of_floats = Ty { kind: Kind::Float, ..ty };
            let one = if ty.bits == 16 { 0x3c00 } else { 0x3f80_0000 };
            let bounds = [self.constant(of_floats, 0), self.constant(of_floats, one)];
            let (float, id) = (self.type_id(of_floats), self.b.id());
            self.emit_form(id, Form::Glsl(GlslStd450Op::NClamp), float, &[value, bounds[0], bounds[1]]);
            let type_id = self.type_id(ty);
            let whole = self.emit(spirv::Op::Bitcast, type_id, refs(&[id]));
            for c in (0..u32::from(ty.components)).filter(|c| mask >> c & 1 != 0) {
                let (mut value, mut target) = (whole, element);
                if ty.components > 1 {
                    let scalar = self.type_id(ty.of(1));
                    value = self.emit(
                        spirv::Op::CompositeExtract,
                        scalar,
                        vec![Operand::IdRef(whole), Operand::LiteralBit32(c)],
                    );
                    let index = self.number(c);
                    target = self.element(class, ty.of(1), element, &[index]);
                }
                self.act(spirv::Op::Store, refs(&[target, value]));
            }
            return Ok(());
        }
        if mask == (1 << ty.components) - 1 {
            let value = self.read(data, ty.kind);
            self.act(spirv::Op::Store, refs(&[element, value]));
            return Ok(());
        }
        let pointer = |this: &mut Self, c: u32| {
            let index = this.number(c);
            this.element(class, ty.of(1), element, &[index])
        };
        self.store_parts(data, ty.kind, mask, pointer, None);
        Ok(())
    }
}

fn register_type(decl: &Intrinsic) -> Ty {
    let bits = decl.indices.bit_size();
    let kind = if bits == 1 { Kind::Bool } else { Kind::Uint };
    Ty { kind, bits, components: decl.indices.num_components() }
}
