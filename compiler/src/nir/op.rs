//! The arithmetic operations: one table with names, widths and types.
//!
//! The table is data only; the verifier's semantics define the meaning of an operation. A width of 0 means "the same
//! for all operands with width 0"; a component count of 0 means "once for each component of the result".

use super::types::{AluType, BaseType};
use crate::words;

/// The type and component count of an operand or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Base type and width; width 0 is that of the other operands with width 0.
    pub ty: AluType,
    /// Number of components; 0 if the operation is per-component.
    pub components: u8,
}

/// One row of the table.
#[derive(Debug)]
pub struct OpInfo {
    /// The result.
    pub output: Operand,
    /// The operands, in order.
    pub inputs: &'static [Operand],
    /// The properties that nir's own table declares.
    pub properties: &'static [Property],
}

/// An algebraic property that nir declares of an operation, and by which its optimisations change programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The first two operands can be swapped.
    Commutes,
    /// `op(op(a, b), c)` is `op(a, op(b, c))`; with a third operand, which keeps its position, in the same way. For
    /// floats it holds up to rounding.
    Associates,
}

impl OpInfo {
    /// Returns true if the first two operands can be swapped.
    pub fn commutes(&self) -> bool {
        self.properties.contains(&Property::Commutes)
    }

    /// The number of components that source `index` reads if the result has `components`.
    pub fn source_components(&self, index: usize, components: u8) -> u8 {
        match self.inputs[index].components {
            0 => components,
            fixed => fixed,
        }
    }

    /// Returns true if every component of the result depends on the same component of each source only.
    pub fn is_per_component(&self) -> bool {
        self.output.components == 0
    }

    /// The index of the first source whose width the unsized operands and the result share.
    pub fn width_source(&self) -> Option<usize> {
        self.inputs.iter().position(|input| input.ty.size == 0)
    }
}

const F: AluType = AluType::new(BaseType::Float, 0);
const F16: AluType = AluType::new(BaseType::Float, 16);
const F32: AluType = AluType::new(BaseType::Float, 32);
const F64: AluType = AluType::new(BaseType::Float, 64);
const I: AluType = AluType::new(BaseType::Int, 0);
const I1: AluType = AluType::new(BaseType::Int, 1);
const I8: AluType = AluType::new(BaseType::Int, 8);
const I16: AluType = AluType::new(BaseType::Int, 16);
const I32: AluType = AluType::new(BaseType::Int, 32);
const I64: AluType = AluType::new(BaseType::Int, 64);
const U: AluType = AluType::new(BaseType::Uint, 0);
const U1: AluType = AluType::new(BaseType::Uint, 1);
const U8: AluType = AluType::new(BaseType::Uint, 8);
const U16: AluType = AluType::new(BaseType::Uint, 16);
const U32: AluType = AluType::new(BaseType::Uint, 32);
const U64: AluType = AluType::new(BaseType::Uint, 64);
const B: AluType = AluType::new(BaseType::Bool, 0);
const B1: AluType = AluType::new(BaseType::Bool, 1);
const B8: AluType = AluType::new(BaseType::Bool, 8);
const B16: AluType = AluType::new(BaseType::Bool, 16);
const B32: AluType = AluType::new(BaseType::Bool, 32);

const fn operand(ty: AluType, components: u8) -> Operand {
    Operand { ty, components }
}

macro_rules! ops {
    ($($variant:ident $name:literal = $out:ident$([$out_n:literal])? <- $($in:ident$([$in_n:literal])?),+ $(; $($property:ident),+)? ;;)*) => {
        words! {
            /// An arithmetic operation.
            #[repr(u16)]
            pub enum Op { $($variant = $name,)* }
        }

        static TABLE: &[OpInfo] = &[$(OpInfo {
            output: operand($out, 0 $(+ $out_n)?),
            inputs: &[$(operand($in, 0 $(+ $in_n)?)),+],
            properties: &[$($(Property::$property),+)?],
        },)*];
    };
}

ops! {
    // Moves, and vectors from scalars.
    Mov "mov" = U <- U ;;
    Vec2 "vec2" = U[2] <- U[1], U[1] ;;
    Vec3 "vec3" = U[3] <- U[1], U[1], U[1] ;;
    Vec4 "vec4" = U[4] <- U[1], U[1], U[1], U[1] ;;
    Vec5 "vec5" = U[5] <- U[1], U[1], U[1], U[1], U[1] ;;
    Vec8 "vec8" = U[8] <- U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1] ;;
    Vec16 "vec16" = U[16] <- U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1], U[1] ;;
    // Conversions.
    I2f16 "i2f16" = F16 <- I ;;
    I2f32 "i2f32" = F32 <- I ;;
    I2f64 "i2f64" = F64 <- I ;;
    I2i1 "i2i1" = I1 <- I ;;
    I2i8 "i2i8" = I8 <- I ;;
    I2i16 "i2i16" = I16 <- I ;;
    I2i32 "i2i32" = I32 <- I ;;
    I2i64 "i2i64" = I64 <- I ;;
    U2f16 "u2f16" = F16 <- U ;;
    U2f32 "u2f32" = F32 <- U ;;
    U2f64 "u2f64" = F64 <- U ;;
    U2u1 "u2u1" = U1 <- U ;;
    U2u8 "u2u8" = U8 <- U ;;
    U2u16 "u2u16" = U16 <- U ;;
    U2u32 "u2u32" = U32 <- U ;;
    U2u64 "u2u64" = U64 <- U ;;
    F2i1 "f2i1" = I1 <- F ;;
    F2i8 "f2i8" = I8 <- F ;;
    F2i16 "f2i16" = I16 <- F ;;
    F2i32 "f2i32" = I32 <- F ;;
    F2i64 "f2i64" = I64 <- F ;;
    F2u1 "f2u1" = U1 <- F ;;
    F2u8 "f2u8" = U8 <- F ;;
    F2u16 "f2u16" = U16 <- F ;;
    F2u32 "f2u32" = U32 <- F ;;
    F2u64 "f2u64" = U64 <- F ;;
    F2f16Rtne "f2f16_rtne" = F16 <- F ;;
    F2f16Rtz "f2f16_rtz" = F16 <- F ;;
    F2f16 "f2f16" = F16 <- F ;;
    F2f32 "f2f32" = F32 <- F ;;
    F2f64 "f2f64" = F64 <- F ;;
    B2f16 "b2f16" = F16 <- B ;;
    B2f32 "b2f32" = F32 <- B ;;
    B2f64 "b2f64" = F64 <- B ;;
    B2i1 "b2i1" = I1 <- B ;;
    B2i8 "b2i8" = I8 <- B ;;
    B2i16 "b2i16" = I16 <- B ;;
    B2i32 "b2i32" = I32 <- B ;;
    B2i64 "b2i64" = I64 <- B ;;
    B2b1 "b2b1" = B1 <- B ;;
    B2b8 "b2b8" = B8 <- B ;;
    B2b16 "b2b16" = B16 <- B ;;
    B2b32 "b2b32" = B32 <- B ;;
    // Packing and unpacking.
    PackSnorm2x16 "pack_snorm_2x16" = U32[1] <- F[2] ;;
    PackSnorm4x8 "pack_snorm_4x8" = U32[1] <- F32[4] ;;
    PackUnorm2x16 "pack_unorm_2x16" = U32[1] <- F[2] ;;
    PackUnorm4x8 "pack_unorm_4x8" = U32[1] <- F32[4] ;;
    PackHalf2x16 "pack_half_2x16" = U32[1] <- F32[2] ;;
    UnpackSnorm2x16 "unpack_snorm_2x16" = F32[2] <- U32[1] ;;
    UnpackSnorm4x8 "unpack_snorm_4x8" = F32[4] <- U32[1] ;;
    UnpackUnorm2x16 "unpack_unorm_2x16" = F32[2] <- U32[1] ;;
    UnpackUnorm4x8 "unpack_unorm_4x8" = F32[4] <- U32[1] ;;
    PackUint2x16 "pack_uint_2x16" = U32[1] <- U32[2] ;;
    PackSint2x16 "pack_sint_2x16" = I32[1] <- I32[2] ;;
    PackUvec2ToUint "pack_uvec2_to_uint" = U32[1] <- U32[2] ;;
    PackUvec4ToUint "pack_uvec4_to_uint" = U32[1] <- U32[4] ;;
    Pack32_4x8 "pack_32_4x8" = U32[1] <- U8[4] ;;
    Pack32_2x16 "pack_32_2x16" = U32[1] <- U16[2] ;;
    Pack64_2x32 "pack_64_2x32" = U64[1] <- U32[2] ;;
    Pack64_4x16 "pack_64_4x16" = U64[1] <- U16[4] ;;
    Unpack64_2x32 "unpack_64_2x32" = U32[2] <- U64[1] ;;
    Unpack64_4x16 "unpack_64_4x16" = U16[4] <- U64[1] ;;
    Unpack32_2x16 "unpack_32_2x16" = U16[2] <- U32[1] ;;
    Unpack32_4x8 "unpack_32_4x8" = U8[4] <- U32[1] ;;
    UnpackHalf2x16 "unpack_half_2x16" = F32[2] <- U32[1] ;;
    UnpackHalf2x16SplitX "unpack_half_2x16_split_x" = F32 <- U32 ;;
    UnpackHalf2x16SplitY "unpack_half_2x16_split_y" = F32 <- U32 ;;
    Unpack32_2x16SplitX "unpack_32_2x16_split_x" = U16 <- U32 ;;
    Unpack32_2x16SplitY "unpack_32_2x16_split_y" = U16 <- U32 ;;
    Unpack64_2x32SplitX "unpack_64_2x32_split_x" = U32 <- U64 ;;
    Unpack64_2x32SplitY "unpack_64_2x32_split_y" = U32 <- U64 ;;
    PackHalf2x16Split "pack_half_2x16_split" = U32[1] <- F32[1], F32[1] ;;
    PackHalf2x16RtzSplit "pack_half_2x16_rtz_split" = U32[1] <- F32[1], F32[1] ;;
    Pack64_2x32Split "pack_64_2x32_split" = U64 <- U32, U32 ;;
    Pack32_2x16Split "pack_32_2x16_split" = U32 <- U16, U16 ;;
    Pack32_4x8Split "pack_32_4x8_split" = U32 <- U8, U8, U8, U8 ;;
    ExtractU8 "extract_u8" = U <- U, U ;;
    ExtractI8 "extract_i8" = I <- I, I ;;
    ExtractU16 "extract_u16" = U <- U, U ;;
    ExtractI16 "extract_i16" = I <- I, I ;;
    InsertU8 "insert_u8" = U <- U, U ;;
    InsertU16 "insert_u16" = U <- U, U ;;
    // Comparisons.
    Flt "flt" = B1 <- F, F ;;
    Flt8 "flt8" = B8 <- F, F ;;
    Flt16 "flt16" = B16 <- F, F ;;
    Flt32 "flt32" = B32 <- F, F ;;
    Fge "fge" = B1 <- F, F ;;
    Fge8 "fge8" = B8 <- F, F ;;
    Fge16 "fge16" = B16 <- F, F ;;
    Fge32 "fge32" = B32 <- F, F ;;
    Fltu "fltu" = B1 <- F, F ;;
    Fltu8 "fltu8" = B8 <- F, F ;;
    Fltu16 "fltu16" = B16 <- F, F ;;
    Fltu32 "fltu32" = B32 <- F, F ;;
    Fgeu "fgeu" = B1 <- F, F ;;
    Fgeu8 "fgeu8" = B8 <- F, F ;;
    Fgeu16 "fgeu16" = B16 <- F, F ;;
    Fgeu32 "fgeu32" = B32 <- F, F ;;
    Feq "feq" = B1 <- F, F ; Commutes ;;
    Feq8 "feq8" = B8 <- F, F ; Commutes ;;
    Feq16 "feq16" = B16 <- F, F ; Commutes ;;
    Feq32 "feq32" = B32 <- F, F ; Commutes ;;
    Fneu "fneu" = B1 <- F, F ; Commutes ;;
    Fneu8 "fneu8" = B8 <- F, F ; Commutes ;;
    Fneu16 "fneu16" = B16 <- F, F ; Commutes ;;
    Fneu32 "fneu32" = B32 <- F, F ; Commutes ;;
    Fequ "fequ" = B1 <- F, F ; Commutes ;;
    Fequ8 "fequ8" = B8 <- F, F ; Commutes ;;
    Fequ16 "fequ16" = B16 <- F, F ; Commutes ;;
    Fequ32 "fequ32" = B32 <- F, F ; Commutes ;;
    Fneo "fneo" = B1 <- F, F ; Commutes ;;
    Fneo8 "fneo8" = B8 <- F, F ; Commutes ;;
    Fneo16 "fneo16" = B16 <- F, F ; Commutes ;;
    Fneo32 "fneo32" = B32 <- F, F ; Commutes ;;
    Funord "funord" = B1 <- F, F ; Commutes ;;
    Funord8 "funord8" = B8 <- F, F ; Commutes ;;
    Funord16 "funord16" = B16 <- F, F ; Commutes ;;
    Funord32 "funord32" = B32 <- F, F ; Commutes ;;
    Ford "ford" = B1 <- F, F ; Commutes ;;
    Ford8 "ford8" = B8 <- F, F ; Commutes ;;
    Ford16 "ford16" = B16 <- F, F ; Commutes ;;
    Ford32 "ford32" = B32 <- F, F ; Commutes ;;
    Ilt "ilt" = B1 <- I, I ;;
    Ilt8 "ilt8" = B8 <- I, I ;;
    Ilt16 "ilt16" = B16 <- I, I ;;
    Ilt32 "ilt32" = B32 <- I, I ;;
    Ige "ige" = B1 <- I, I ;;
    Ige8 "ige8" = B8 <- I, I ;;
    Ige16 "ige16" = B16 <- I, I ;;
    Ige32 "ige32" = B32 <- I, I ;;
    Ieq "ieq" = B1 <- I, I ; Commutes ;;
    Ieq8 "ieq8" = B8 <- I, I ; Commutes ;;
    Ieq16 "ieq16" = B16 <- I, I ; Commutes ;;
    Ieq32 "ieq32" = B32 <- I, I ; Commutes ;;
    Ine "ine" = B1 <- I, I ; Commutes ;;
    Ine8 "ine8" = B8 <- I, I ; Commutes ;;
    Ine16 "ine16" = B16 <- I, I ; Commutes ;;
    Ine32 "ine32" = B32 <- I, I ; Commutes ;;
    Ult "ult" = B1 <- U, U ;;
    Ult8 "ult8" = B8 <- U, U ;;
    Ult16 "ult16" = B16 <- U, U ;;
    Ult32 "ult32" = B32 <- U, U ;;
    Uge "uge" = B1 <- U, U ;;
    Uge8 "uge8" = B8 <- U, U ;;
    Uge16 "uge16" = B16 <- U, U ;;
    Uge32 "uge32" = B32 <- U, U ;;
    Bitnz "bitnz" = B1 <- U, U32 ;;
    Bitnz8 "bitnz8" = B8 <- U, U32 ;;
    Bitnz16 "bitnz16" = B16 <- U, U32 ;;
    Bitnz32 "bitnz32" = B32 <- U, U32 ;;
    Bitz "bitz" = B1 <- U, U32 ;;
    Bitz8 "bitz8" = B8 <- U, U32 ;;
    Bitz16 "bitz16" = B16 <- U, U32 ;;
    Bitz32 "bitz32" = B32 <- U, U32 ;;
    Fisnormal "fisnormal" = B1 <- F ;;
    Fisfinite "fisfinite" = B1 <- F ;;
    Fisfinite32 "fisfinite32" = B32 <- F ;;
    // Selections.
    Fcsel "fcsel" = F32 <- F32, F32, F32 ;;
    Bcsel "bcsel" = U <- B1, U, U ;;
    B8csel "b8csel" = U <- B8, U, U ;;
    B16csel "b16csel" = U <- B16, U, U ;;
    B32csel "b32csel" = U <- B32, U, U ;;
    IcselEqz "icsel_eqz" = I <- I, I, I ;;
    I32cselGt "i32csel_gt" = I32 <- I32, I32, I32 ;;
    I32cselGe "i32csel_ge" = I32 <- I32, I32, I32 ;;
    FcselGt "fcsel_gt" = F32 <- F32, F32, F32 ;;
    FcselGe "fcsel_ge" = F32 <- F32, F32, F32 ;;
    // Bits.
    Inot "inot" = I <- I ;;
    BitfieldReverse "bitfield_reverse" = U32 <- U32 ;;
    BitCount "bit_count" = U32 <- U ;;
    UfindMsb "ufind_msb" = I32 <- U ;;
    UfindMsbRev "ufind_msb_rev" = I32 <- U ;;
    Uclz "uclz" = U32 <- U32 ;;
    IfindMsb "ifind_msb" = I32 <- I32 ;;
    IfindMsbRev "ifind_msb_rev" = I32 <- I32 ;;
    FindLsb "find_lsb" = I32 <- I ;;
    Ishl "ishl" = I <- I, U32 ;;
    Ishr "ishr" = I <- I, U32 ;;
    Ushr "ushr" = U <- U, U32 ;;
    Urol "urol" = U <- U, U32 ;;
    Uror "uror" = U <- U, U32 ;;
    Shfr "shfr" = U32 <- U32, U32, U32 ;;
    Iand "iand" = U <- U, U ; Commutes, Associates ;;
    Ior "ior" = U <- U, U ; Commutes, Associates ;;
    Ixor "ixor" = U <- U, U ; Commutes, Associates ;;
    Bfm "bfm" = U32 <- I32, I32 ;;
    Bfi "bfi" = U32 <- U32, U32, U32 ;;
    BitfieldSelect "bitfield_select" = U <- U, U, U ;;
    Ubfe "ubfe" = U32 <- U32, U32, U32 ;;
    Ibfe "ibfe" = I32 <- I32, U32, U32 ;;
    UbitfieldExtract "ubitfield_extract" = U32 <- U32, I32, I32 ;;
    IbitfieldExtract "ibitfield_extract" = I32 <- I32, I32, I32 ;;
    BitfieldInsert "bitfield_insert" = U32 <- U32, U32, I32, I32 ;;
    // Instructions that only ir3 has.
    ImadshMix16 "imadsh_mix16" = I32 <- I32, I32, I32 ;;
    Imad24Ir3 "imad24_ir3" = I32 <- I32, I32, I32 ; Commutes ;;
    ShrmIr3 "shrm_ir3" = U <- U, U32, U ;;
    ShlmIr3 "shlm_ir3" = U <- U, U32, U ;;
    ShrgIr3 "shrg_ir3" = U <- U, U32, U ;;
    ShlgIr3 "shlg_ir3" = U <- U, U32, U ;;
    AndgIr3 "andg_ir3" = U <- U, U, U ; Commutes ;;
    // Integer arithmetic.
    Ineg "ineg" = I <- I ;;
    Isign "isign" = I <- I ;;
    Iabs "iabs" = I <- I ;;
    FrexpExp "frexp_exp" = I32 <- F ;;
    Iadd "iadd" = I <- I, I ; Commutes, Associates ;;
    IaddSat "iadd_sat" = I <- I, I ; Commutes ;;
    UaddSat "uadd_sat" = U <- U, U ; Commutes ;;
    IsubSat "isub_sat" = I <- I, I ;;
    UsubSat "usub_sat" = U <- U, U ;;
    Isub "isub" = I <- I, I ;;
    UabsIsub "uabs_isub" = U <- I, I ;;
    UabsUsub "uabs_usub" = U <- U, U ;;
    Imul "imul" = I <- I, I ; Commutes, Associates ;;
    Imul2x32_64 "imul_2x32_64" = I64 <- I32, I32 ; Commutes ;;
    Umul2x32_64 "umul_2x32_64" = U64 <- U32, U32 ; Commutes ;;
    ImulHigh "imul_high" = I <- I, I ; Commutes ;;
    UmulHigh "umul_high" = U <- U, U ; Commutes ;;
    // The product of the low halves: until Mesa 25.3 by the first name, since then by the second one.
    UmulLow "umul_low" = U32 <- U32, U32 ; Commutes ;;
    Umul16x16 "umul_16x16" = U32 <- U32, U32 ; Commutes ;;
    Imul32x16 "imul_32x16" = I32 <- I32, I32 ;;
    Umul32x16 "umul_32x16" = U32 <- U32, U32 ;;
    Idiv "idiv" = I <- I, I ;;
    Udiv "udiv" = U <- U, U ;;
    UaddCarry "uadd_carry" = U <- U, U ; Commutes ;;
    UsubBorrow "usub_borrow" = U <- U, U ;;
    // Halves of 64-bit sums: the low words of both addends, then the high words that are not 0.
    Iadd64Split2Lo "iadd64_split2_lo" = U32 <- U32, U32 ; Commutes, Associates ;;
    Iadd64Split2Hi "iadd64_split2_hi" = U32 <- U32, U32 ; Commutes ;;
    Iadd64Split3Lo "iadd64_split3_lo" = U32 <- U32, U32, U32 ; Commutes ;;
    Iadd64Split3Hi "iadd64_split3_hi" = U32 <- U32, U32, U32 ; Commutes ;;
    Iadd64Split4Lo "iadd64_split4_lo" = U32 <- U32, U32, U32, U32 ; Commutes ;;
    Iadd64Split4Hi "iadd64_split4_hi" = U32 <- U32, U32, U32, U32 ; Commutes ;;
    Ihadd "ihadd" = I <- I, I ; Commutes ;;
    Uhadd "uhadd" = U <- U, U ; Commutes ;;
    Irhadd "irhadd" = I <- I, I ; Commutes ;;
    Urhadd "urhadd" = U <- U, U ; Commutes ;;
    Umod "umod" = U <- U, U ;;
    Irem "irem" = I <- I, I ;;
    Imod "imod" = I <- I, I ;;
    UdivAligned4 "udiv_aligned_4" = U <- U ;;
    Imin "imin" = I <- I, I ; Commutes, Associates ;;
    Umin "umin" = U <- U, U ; Commutes, Associates ;;
    Imax "imax" = I <- I, I ; Commutes, Associates ;;
    Umax "umax" = U <- U, U ; Commutes, Associates ;;
    Iadd3 "iadd3" = I <- I, I, I ; Commutes, Associates ;;
    Imad "imad" = I <- I, I, I ; Commutes, Associates ;;
    Msad4x8 "msad_4x8" = U32 <- U32, U32, U32 ;;
    Mqsad4x8 "mqsad_4x8" = U32[4] <- U32[1], U32[2], U32[4] ;;
    Amul "amul" = I <- I, I ; Commutes, Associates ;;
    Imul24 "imul24" = I32 <- I32, I32 ; Commutes, Associates ;;
    Umad24 "umad24" = U32 <- U32, U32, U32 ; Commutes ;;
    Umul24 "umul24" = I32 <- I32, I32 ; Commutes, Associates ;;
    Imul24Relaxed "imul24_relaxed" = I32 <- I32, I32 ; Commutes, Associates ;;
    Umad24Relaxed "umad24_relaxed" = U32 <- U32, U32, U32 ; Commutes ;;
    Umul24Relaxed "umul24_relaxed" = U32 <- U32, U32 ; Commutes, Associates ;;
    Sdot4x8Iadd "sdot_4x8_iadd" = I32 <- U32, U32, I32 ; Commutes ;;
    Udot4x8Uadd "udot_4x8_uadd" = U32 <- U32, U32, U32 ; Commutes ;;
    Sudot4x8Iadd "sudot_4x8_iadd" = I32 <- U32, U32, I32 ;;
    Sdot4x8IaddSat "sdot_4x8_iadd_sat" = I32 <- U32, U32, I32 ; Commutes ;;
    Udot4x8UaddSat "udot_4x8_uadd_sat" = I32 <- U32, U32, I32 ; Commutes ;;
    Sudot4x8IaddSat "sudot_4x8_iadd_sat" = I32 <- U32, U32, I32 ;;
    Sdot2x16Iadd "sdot_2x16_iadd" = I32 <- U32, U32, I32 ; Commutes ;;
    Udot2x16Uadd "udot_2x16_uadd" = U32 <- U32, U32, U32 ; Commutes ;;
    Sdot2x16IaddSat "sdot_2x16_iadd_sat" = I32 <- U32, U32, I32 ; Commutes ;;
    Udot2x16UaddSat "udot_2x16_uadd_sat" = I32 <- U32, U32, I32 ; Commutes ;;
    // Float arithmetic.
    Fneg "fneg" = F <- F ;;
    Fsign "fsign" = F <- F ;;
    Fabs "fabs" = F <- F ;;
    Fsat "fsat" = F <- F ;;
    Frcp "frcp" = F <- F ;;
    Frsq "frsq" = F <- F ;;
    Fsqrt "fsqrt" = F <- F ;;
    Fexp2 "fexp2" = F <- F ;;
    Flog2 "flog2" = F <- F ;;
    Ftrunc "ftrunc" = F <- F ;;
    Fceil "fceil" = F <- F ;;
    Ffloor "ffloor" = F <- F ;;
    Ffract "ffract" = F <- F ;;
    FroundEven "fround_even" = F <- F ;;
    Fquantize2f16 "fquantize2f16" = F <- F ;;
    Fsin "fsin" = F <- F ;;
    Fcos "fcos" = F <- F ;;
    FrexpSig "frexp_sig" = F <- F ;;
    Fsum2 "fsum2" = F[1] <- F[2] ;;
    Fsum3 "fsum3" = F[1] <- F[3] ;;
    Fsum4 "fsum4" = F[1] <- F[4] ;;
    Fadd "fadd" = F <- F, F ; Commutes, Associates ;;
    Fsub "fsub" = F <- F, F ;;
    Fmul "fmul" = F <- F, F ; Commutes, Associates ;;
    Fmulz "fmulz" = F32 <- F32, F32 ; Commutes, Associates ;;
    Fdiv "fdiv" = F <- F, F ;;
    Fmod "fmod" = F <- F, F ;;
    Frem "frem" = F <- F, F ;;
    Slt "slt" = F <- F, F ;;
    Sge "sge" = F <- F, F ;;
    Seq "seq" = F <- F, F ; Commutes ;;
    Sne "sne" = F <- F, F ; Commutes ;;
    Fdot2 "fdot2" = F[1] <- F[2], F[2] ; Commutes ;;
    Fdot4 "fdot4" = F[1] <- F[4], F[4] ; Commutes ;;
    Fdot8 "fdot8" = F[1] <- F[8], F[8] ; Commutes ;;
    Fdot16 "fdot16" = F[1] <- F[16], F[16] ; Commutes ;;
    Fdot3 "fdot3" = F[1] <- F[3], F[3] ; Commutes ;;
    Fdot5 "fdot5" = F[1] <- F[5], F[5] ; Commutes ;;
    Fdph "fdph" = F[1] <- F[3], F[4] ;;
    Fmin "fmin" = F <- F, F ; Commutes, Associates ;;
    Fmax "fmax" = F <- F, F ; Commutes, Associates ;;
    Fpow "fpow" = F <- F, F ;;
    Ldexp "ldexp" = F <- F, I32 ;;
    // `fmad` rounds the product; of the other two, the machine decides.
    Ffma "ffma" = F <- F, F, F ; Commutes ;;
    FfmaWeak "ffma_weak" = F <- F, F, F ; Commutes ;;
    Fmad "fmad" = F <- F, F, F ; Commutes ;;
    Ffmaz "ffmaz" = F32 <- F32, F32, F32 ; Commutes ;;
    Flrp "flrp" = F <- F, F, F ;;
    FsatSigned "fsat_signed" = F <- F ;;
    FclampPos "fclamp_pos" = F <- F ;;
}

impl Op {
    /// The row of the table.
    #[inline]
    pub fn info(self) -> &'static OpInfo {
        &TABLE[self as usize]
    }

    /// Returns true for `vec2` … `vec16`.
    pub fn is_vec(self) -> bool {
        matches!(self, Op::Vec2 | Op::Vec3 | Op::Vec4 | Op::Vec5 | Op::Vec8 | Op::Vec16)
    }

    /// The `vecN` operation that makes a vector of `components` scalars (`mov` for 1).
    pub fn vec(components: u8) -> Option<Op> {
        Some(match components {
            1 => Op::Mov,
            2 => Op::Vec2,
            3 => Op::Vec3,
            4 => Op::Vec4,
            5 => Op::Vec5,
            8 => Op::Vec8,
            16 => Op::Vec16,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
        }
    }

    #[test]
    fn an_unsized_result_follows_a_source() {
        for op in Op::ALL {
            let info = op.info();
            assert!(info.output.ty.size != 0 || info.width_source().is_some(), "{op}");
        }
    }
}
