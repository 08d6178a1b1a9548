//! Intrinsics: system values, inputs, outputs, the constant file, local arrays, and the ends of lanes. The others are
//! in the modules of memory and of operations across lanes.

use ir3_compiler::ir3::{AddressSpace, SystemValue};
use ir3_compiler::nir::{AtomicOp, Def, InterpMode, Intrinsic, IntrinsicOp, IoFlags, Stage};

use super::{DecodeResult, Decoder, ValueRows};
use crate::environment::env::{CONST_WORDS, system_value_of};
use crate::environment::sync::Sync;
use crate::interp::OutputSlot;
use crate::interp::nir::op::{Adapt, ArrayAccess, DecodedOp, EnvironmentInput, OutputStore, R, SecondName};
use crate::operations::modifiers;

impl Decoder<'_> {
    pub(super) fn intrinsic(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        use IntrinsicOp as I;
        if intrinsic.srcs.len() != intrinsic.op.info().srcs.len() {
            return Err("the wrong number of sources".to_owned());
        }
        match intrinsic.op {
            I::LoadInput | I::LoadInterpolatedInput => self.load_input(intrinsic),
            I::LoadBarycentricPixel | I::LoadBarycentricCentroid | I::LoadBarycentricSample => {
                let mode = intrinsic.indices.interp_mode();
                if matches!(mode, InterpMode::Flat | InterpMode::Explicit) {
                    return Err(format!("coordinates of {}", mode.name()));
                }
                self.system(intrinsic, barycentric(intrinsic))
            }
            I::StoreOutput | I::StorePerViewOutput => self.store_output(intrinsic),
            I::LoadConstIr3 => self.load_const(intrinsic),
            I::StoreConstIr3 => self.store_const(intrinsic),
            I::DeclReg => self.declare(intrinsic),
            I::LoadReg | I::LoadRegIndirect => self.array_load(intrinsic),
            I::StoreReg | I::StoreRegIndirect => self.array_store(intrinsic),
            I::LoadSsboIr3 => self.load(intrinsic, AddressSpace::Ssbo),
            I::StoreSsboIr3 => self.store(intrinsic, AddressSpace::Ssbo),
            I::LoadShared | I::LoadSharedIr3 => self.load(intrinsic, AddressSpace::Shared),
            I::StoreShared | I::StoreSharedIr3 => self.store(intrinsic, AddressSpace::Shared),
            I::LoadScratch => self.load(intrinsic, AddressSpace::Scratch),
            I::StoreScratch => self.store(intrinsic, AddressSpace::Scratch),
            I::LoadGlobalIr3 | I::LoadGlobalOffset | I::LoadGlobal => self.load(intrinsic, AddressSpace::Global),
            I::StoreGlobalIr3 | I::StoreGlobalOffset | I::StoreGlobal => self.store(intrinsic, AddressSpace::Global),
            I::LoadUboVec4 => self.load(intrinsic, AddressSpace::Ubo),
            I::CopyUboToUniformIr3 => self.copy_to_consts(intrinsic),
            I::CopyPushConstToUniformIr3 => self.copy_push_constants(intrinsic),
            I::ImageLoad | I::BindlessImageLoad => self.load(intrinsic, AddressSpace::Image),
            I::ImageStore | I::BindlessImageStore => self.store(intrinsic, AddressSpace::Image),
            I::SsboAtomicIr3 | I::SsboAtomicSwapIr3 => self.atomic(intrinsic, AddressSpace::Ssbo),
            I::SharedAtomic | I::SharedAtomicSwap => self.atomic(intrinsic, AddressSpace::Shared),
            I::GlobalAtomicIr3 | I::GlobalAtomicSwapIr3 | I::GlobalAtomic | I::GlobalAtomicSwap => {
                self.atomic(intrinsic, AddressSpace::Global)
            }
            I::ImageAtomic | I::ImageAtomicSwap | I::BindlessImageAtomic | I::BindlessImageAtomicSwap => {
                self.atomic(intrinsic, AddressSpace::Image)
            }
            I::GetSsboSize => self.size(intrinsic, AddressSpace::Ssbo),
            I::ImageSize | I::BindlessImageSize => self.size(intrinsic, AddressSpace::Image),
            I::BindlessResourceIr3 => self.handle(intrinsic),
            I::Barrier => {
                for sync in Sync::of_barrier(intrinsic) {
                    self.push(DecodedOp::Sync(sync));
                }
                Ok(())
            }
            // These change no value.
            I::Nop | I::PrefetchUboIr3 | I::PrefetchTexIr3 | I::PrefetchSamIr3 => Ok(()),
            I::PreambleStartIr3 => {
                let dst = self.define(result(intrinsic)?);
                self.input(EnvironmentInput::RunsPreamble, dst);
                Ok(())
            }
            I::PreambleEndIr3 if self.has_preamble => Ok(()),
            I::PreambleEndIr3 => Err("no preamble that it ends".to_owned()),
            I::Demote | I::DemoteIf | I::Terminate | I::TerminateIf => {
                let condition = match intrinsic.srcs.first() {
                    Some(&def) => Some(self.scalar(def)?),
                    None => None,
                };
                let demote = matches!(intrinsic.op, I::Demote | I::DemoteIf);
                let origin = self.origin();
                self.push_empty(DecodedOp::Kill { condition, demote, origin, empty: 0 });
                Ok(())
            }
            I::LoadSamplePosFromId => self.sample_position(intrinsic),
            I::LoadUserClipPlane => {
                let plane = u8::try_from(intrinsic.indices.ucp_id()).map_err(|_| "a clip plane of that number")?;
                self.system(intrinsic, SystemValue::UserClipPlane(plane))
            }
            I::LoadPrimitiveLocationIr3 => {
                let index = intrinsic.indices.driver_location();
                let index = u8::try_from(index).map_err(|_| "an entry of the primitive map of that number")?;
                self.system(intrinsic, SystemValue::PrimitiveLocation(index))
            }
            I::LoadKernelInput => self.kernel_input(intrinsic),
            I::LoadFragSizeIr3 => self.of_view(intrinsic, SystemValue::FragSize),
            I::LoadFragOffsetIr3 => self.of_view(intrinsic, SystemValue::FragOffset),
            I::IsHelperInvocation => {
                let dst = self.define(result(intrinsic)?);
                self.input(EnvironmentInput::Helper, dst);
                Ok(())
            }
            _ => match system_value_of(intrinsic.op) {
                Some(value) => self.system(intrinsic, value),
                None => self.across_lanes(intrinsic),
            },
        }
    }

    pub(super) fn input(&mut self, input: EnvironmentInput, dst: R) {
        self.code.inputs.push(input);
        self.push(DecodedOp::Input { input: self.code.inputs.len() as u32 - 1, dst });
    }

    /// Makes the result of an intrinsic an alias of an existing row.
    pub(super) fn define_as(&mut self, intrinsic: &Intrinsic, row: R) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        if self.components(def) * self.width(def) != 1 {
            return Err("a result that is no scalar".to_owned());
        }
        self.rows[def] = ValueRows::from_slice(&[row]);
        Ok(())
    }

    fn system(&mut self, intrinsic: &Intrinsic, value: SystemValue) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let bits = self.bits(def);
        let width = self.width(def);
        let first = self.define(def);
        for component in 0..self.components(def) {
            let dst = first + component * width;
            let adapt = match (value, component) {
                (SystemValue::FragCoord, 0 | 1) => Adapt::Sixteenths,
                (SystemValue::FrontFace, _) => Adapt::IsZero { wide: bits == 32 },
                (SystemValue::HelperInvocation, _) if bits == 32 => Adapt::AllOnes,
                _ => Adapt::No,
            };
            let second = SecondName::of(intrinsic.op);
            self.input(EnvironmentInput::System(value, component, adapt, second), dst);
            if width == 2 {
                let zero = self.constant(0);
                self.rows[def][(component * 2 + 1) as usize] = zero;
            }
        }
        Ok(())
    }

    /// Arguments of a kernel: base and offset are in bytes.
    fn kernel_input(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        if self.bits(def) != 32 {
            return Err(format!("an argument of {} bits", self.bits(def)));
        }
        let offset = self.function.as_const_scalar(intrinsic.srcs[0]).ok_or("an offset that is not constant")?;
        let first = self.define(def);
        for component in 0..self.components(def) {
            let word = SystemValue::kernel_input(intrinsic.indices.base(), offset as u32, component as u8);
            let (value, part) = word.ok_or("an offset of no word, or out of range")?;
            self.input(EnvironmentInput::System(value, part.into(), Adapt::No, None), first + component);
        }
        Ok(())
    }

    /// A driver parameter of each view.
    fn of_view(&mut self, intrinsic: &Intrinsic, kind: fn(u8) -> SystemValue) -> DecodeResult<()> {
        let view = self.function.as_const_scalar(intrinsic.srcs[0]).and_then(|view| u8::try_from(view).ok());
        self.system(intrinsic, kind(view.ok_or("a view that is not constant")?))
    }

    /// Refuses accesses to a part of a component: it has one value here.
    fn check_slot(intrinsic: &Intrinsic) -> DecodeResult<()> {
        let flags = intrinsic.indices.io_semantics().map_or(IoFlags::empty(), |io| io.flags);
        match flags.intersects(IoFlags::HIGH_16_BITS | IoFlags::HIGH_DVEC2) {
            true => Err("a half of a component, or of a double vector".to_owned()),
            false => Ok(()),
        }
    }

    fn load_input(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        Self::check_slot(intrinsic)?;
        let def = result(intrinsic)?;
        let bits = self.bits(def);
        if !matches!(bits, 16 | 32) {
            return Err(format!("an input of {bits} bits"));
        }
        let (base, component) = (intrinsic.indices.base(), u32::from(intrinsic.indices.component()));
        let (&offset, coordinates) = intrinsic.srcs.split_last().ok_or("no offset")?;
        let constant = self.function.as_const_scalar(offset);
        let components = self.components(def);
        match self.shader.stage {
            Stage::Fragment => {
                let ij = match coordinates {
                    [] => None,
                    [pair, ..] => {
                        let rows = self.read(*pair)?;
                        Some([rows[0], *rows.get(1).ok_or("coordinates of one component")?])
                    }
                };
                let offset = if constant.is_some() { None } else { Some(self.scalar(offset)?) };
                let location = (base as u32).wrapping_add(constant.unwrap_or(0) as u32).wrapping_mul(4);
                let ij = match ij {
                    None if self.rules.interpolates_flat => Some(self.pixel(bits)?),
                    ij => ij,
                };
                if self.rules.interpolates_flat {
                    self.check_interpolation(location, offset.is_some(), !coordinates.is_empty())?;
                }
                let first = self.define(def);
                for i in 0..components {
                    let location = location.wrapping_add(component + i);
                    self.input(EnvironmentInput::Varying { location, offset, ij, half: bits == 16 }, first + i);
                }
            }
            Stage::Vertex => {
                let offset = constant.ok_or("an attribute whose number is not constant")?;
                let base = (base as u32).wrapping_add(offset as u32);
                let first = self.define(def);
                for i in 0..components {
                    let component = component + i;
                    self.input(EnvironmentInput::Attribute(base + component / 4, component % 4, bits == 16), first + i);
                }
            }
            stage => return Err(format!("an input of {}", stage.name())),
        }
        Ok(())
    }

    /// The barycentric coordinates of the pixel, for a varying of some bits that is not interpolated.
    fn pixel(&mut self, bits: u8) -> DecodeResult<[R; 2]> {
        if bits != 32 {
            return Err(format!("a varying of {bits} bits that the driver sets to be flat"));
        }
        let first = self.new_rows(2);
        for component in 0..2 {
            let value = EnvironmentInput::System(SystemValue::BarycentricPixel, component, Adapt::No, None);
            self.input(value, first + component);
        }
        Ok([first, first + 1])
    }

    /// Checks that a varying is not read with interpolation and without: the driver sets it to one of them.
    fn check_interpolation(&mut self, location: u32, is_computed: bool, interpolated: bool) -> DecodeResult<()> {
        match self.varyings.insert(location / 4, interpolated) {
            _ if is_computed && !interpolated => {
                Err("a varying at a computed offset that the driver sets to be flat".to_owned())
            }
            Some(other) if other != interpolated => Err("a varying that is interpolated elsewhere, or not".to_owned()),
            _ => Ok(()),
        }
    }

    fn store_output(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        Self::check_slot(intrinsic)?;
        let value = intrinsic.srcs[0];
        let number = |src| self.function.as_const_scalar(src).ok_or("an output whose number is not constant");
        // The views of an output are consecutive.
        let offset = match intrinsic.srcs[1..] {
            [offset] => number(offset)?,
            [view, offset] if number(offset)? == 0 => number(view)?,
            _ => return Err("an output of each view with an offset".to_owned()),
        };
        if self.bits(value) == 64 {
            return Err("an output of 64 bits".to_owned());
        }
        let base = u16::try_from(i64::from(intrinsic.indices.base()) + i64::from(offset as u32));
        let base = base.map_err(|_| "an output whose number is out of range")?;
        let rows = self.read(value)?.clone();
        for (i, &row) in rows.iter().enumerate() {
            if intrinsic.indices.write_mask() >> i & 1 != 0 {
                let component = intrinsic.indices.component() + i as u8;
                self.code.outputs.push(OutputStore { base, component, row });
                self.code.declared.push(OutputSlot { base, component, half: self.bits(value) == 16 });
                self.push(DecodedOp::StoreOutput(self.code.outputs.len() as u32 - 1));
            }
        }
        Ok(())
    }

    fn load_const(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let bits = self.bits(def);
        if !matches!(bits, 16 | 32 | 64) {
            return Err(format!("a constant of {bits} bits"));
        }
        let src = intrinsic.srcs[0];
        let constant = self.function.as_const_scalar(src);
        let offset = if constant.is_some() { None } else { Some(self.scalar(src)?) };
        let word = (intrinsic.indices.base() as u32).wrapping_add(constant.unwrap_or(0) as u32);
        let words = self.components(def) * self.width(def);
        let first = self.define(def);
        for i in 0..words {
            let word = word.wrapping_add(i) % CONST_WORDS;
            self.input(EnvironmentInput::Const { word, offset, half: bits == 16 }, first + i);
        }
        Ok(())
    }

    fn store_const(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let value = intrinsic.srcs[0];
        if self.bits(value) != 32 {
            return Err(format!("a constant of {} bits", self.bits(value)));
        }
        let base = u16::try_from(intrinsic.indices.base()).map_err(|_| "a constant out of range")?;
        for (i, row) in self.read(value)?.clone().into_iter().enumerate() {
            self.code.outputs.push(OutputStore { base: base.wrapping_add(i as u16), component: 0, row });
            self.push(DecodedOp::StoreConst(self.code.outputs.len() as u32 - 1));
        }
        Ok(())
    }

    fn declare(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let indices = &intrinsic.indices;
        let bits = indices.bit_size();
        let stride = u32::from(indices.num_components()) * if bits == 64 { 2 } else { 1 };
        let length = indices.num_array_elems().max(1);
        let count = stride.checked_mul(length).filter(|&count| count < 1 << 16).ok_or("an array that is too long")?;
        let first = self.new_rows(count);
        let array = self.arrays.len() as u32 + 1;
        self.arrays.insert(def, (array, first, length, stride, bits));
        // The value of the declaration is read only as the array's name.
        self.define(def);
        self.push(DecodedOp::ArrayInit { array, first, count });
        Ok(())
    }

    fn array(&mut self, intrinsic: &Intrinsic, array: Def, index: Option<&Def>) -> DecodeResult<(ArrayAccess, u8)> {
        let &(number, first, length, stride, bits) =
            self.arrays.get(&array).ok_or("an array that was not declared before")?;
        let mut base = i64::from(intrinsic.indices.base());
        let index = match index.map(|&def| (self.function.as_const_scalar(def), def)) {
            None => None,
            Some((Some(constant), _)) => {
                base += i64::from(constant as u32);
                None
            }
            Some((None, def)) => Some(self.scalar(def)?),
        };
        let origin = self.origin();
        Ok((
            ArrayAccess {
                array: number,
                first,
                length,
                stride,
                base,
                index,
                rows: Default::default(),
                adapt: None,
                origin,
            },
            bits,
        ))
    }

    fn array_load(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let (mut access, bits) = self.array(intrinsic, intrinsic.srcs[0], intrinsic.srcs.get(1))?;
        let (abs, neg) = (intrinsic.indices.legacy_fabs(), intrinsic.indices.legacy_fneg());
        if abs || neg {
            access.adapt = match bits {
                16 | 32 => modifiers::of_float(bits == 16, neg, abs),
                _ => return Err(format!("a float of {bits} bits")),
            };
        }
        let words = self.components(def) * self.width(def);
        let first = self.define(def);
        access.rows = (0..words.min(access.stride)).map(|i| (i, first + i)).collect();
        self.code.arrays.push(access);
        self.push(DecodedOp::ArrayLoad(self.code.arrays.len() as u32 - 1));
        Ok(())
    }

    fn array_store(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let value = intrinsic.srcs[0];
        let (mut access, bits) = self.array(intrinsic, intrinsic.srcs[1], intrinsic.srcs.get(2))?;
        if intrinsic.indices.legacy_fsat() {
            access.adapt = match bits {
                32 => Some(modifiers::SATURATE32),
                16 => Some(modifiers::SATURATE16),
                _ => return Err(format!("a float of {bits} bits")),
            };
        }
        let width = self.width(value);
        let mask = intrinsic.indices.write_mask();
        let rows = self.read(value)?.clone();
        let stored = rows.iter().enumerate().take(access.stride as usize);
        access.rows =
            stored.filter(|(i, _)| mask >> (*i as u32 / width) & 1 != 0).map(|(i, &row)| (i as u32, row)).collect();
        self.code.arrays.push(access);
        self.push(DecodedOp::ArrayStore(self.code.arrays.len() as u32 - 1));
        Ok(())
    }

    /// The operation of an atomic.
    pub(super) fn atomic_op(op: AtomicOp) -> crate::environment::memory::Atomic {
        use crate::environment::memory::Atomic;
        match op {
            AtomicOp::Iadd => Atomic::Add,
            AtomicOp::Imin => Atomic::Smin,
            AtomicOp::Umin => Atomic::Umin,
            AtomicOp::Imax => Atomic::Smax,
            AtomicOp::Umax => Atomic::Umax,
            AtomicOp::Iand => Atomic::And,
            AtomicOp::Ior => Atomic::Or,
            AtomicOp::Ixor => Atomic::Xor,
            AtomicOp::Xchg => Atomic::Exchange,
            AtomicOp::Fadd => Atomic::Fadd,
            AtomicOp::Fmin => Atomic::Fmin,
            AtomicOp::Fmax => Atomic::Fmax,
            AtomicOp::Cmpxchg => Atomic::CompareExchange,
            AtomicOp::Fcmpxchg => Atomic::FcompareExchange,
            AtomicOp::IncWrap => Atomic::IncrementWrap,
            AtomicOp::DecWrap => Atomic::DecrementWrap,
        }
    }
}

/// The result of an intrinsic that has one.
pub(super) fn result(intrinsic: &Intrinsic) -> DecodeResult<Def> {
    intrinsic.def.ok_or_else(|| "no result".to_owned())
}

fn barycentric(intrinsic: &Intrinsic) -> SystemValue {
    let linear = intrinsic.indices.interp_mode() == InterpMode::NoPerspective;
    match (intrinsic.op, linear) {
        (IntrinsicOp::LoadBarycentricCentroid, false) => SystemValue::BarycentricCentroid,
        (IntrinsicOp::LoadBarycentricCentroid, true) => SystemValue::BarycentricCentroidLinear,
        (IntrinsicOp::LoadBarycentricSample, false) => SystemValue::BarycentricSample,
        (IntrinsicOp::LoadBarycentricSample, true) => SystemValue::BarycentricSampleLinear,
        (_, false) => SystemValue::BarycentricPixel,
        (_, true) => SystemValue::BarycentricPixelLinear,
    }
}
