//! The results that the specification of Vulkan leaves open: in a run with the modes of a device they are undefined.
//!
//! Source: the Vulkan specification, "Precision and Operation of SPIR-V Instructions", and the SPIR-V extended
//! instructions for GLSL. Additions, subtractions, products and conversions are correctly rounded if they are not
//! contracted; which direction that is, whether denormals are flushed, and whether infinities, NaNs and signs of zeros
//! are kept are modes. Other operations have an error.

use super::RunningWave;
use super::precision::{self as bounded, has_error, is_derived};
use crate::arithmetic::float;
use crate::arithmetic::rows::{LANES, Row};
use crate::environment::device::{FloatModes, width_index};
use crate::environment::env::lanes;
use crate::interp::nir::op::{self, DecodedOp, FloatSite, R};
use ir3_compiler::nir::{BaseType, Op};
use smallvec::SmallVec;

/// The names of what is left open.
pub const DENORMALS: &str = "denormals";
const SPECIALS: &str = "infinities and NaNs";
const NAN_BITS: &str = "the bits of NaNs";
const ZERO_SIGNS: &str = "signs of zeros";
const ROUNDING: &str = "the direction of rounding";
const COARSE: &str = "the row of coarse derivatives";
const OUT_OF_RANGE: &str = "conversions out of range";

/// The precision of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    /// The result is exact.
    Exact,
    /// The result is exact, but for the sign of a zero.
    ExactButZero,
    /// One of the operands: of zeros either one.
    Extreme,
    /// The result is rounded correctly.
    Rounded,
    /// A conversion to an integer.
    ToInteger { signed: bool },
    /// A product and a sum, with or without rounding between them.
    Fused,
    /// The result has an error, or is that of an expression (see [`precision`](super::precision)).
    Bounded,
    /// Anything.
    Open,
}

/// Returns true if the specification gives an operation no exact result, whatever its operands are.
pub fn is_open(op: Op) -> bool {
    let info = op.info();
    let has_float = std::iter::once(&info.output).chain(info.inputs).any(|operand| operand.ty.base == BaseType::Float);
    has_float && precision(op) == Precision::Open
}

/// Comparisons of floats, whatever a truth value is.
fn is_comparison(op: Op) -> bool {
    let name = op.name().trim_end_matches(|c: char| c.is_ascii_digit());
    matches!(
        name,
        "flt"
            | "fge"
            | "feq"
            | "fneu"
            | "fltu"
            | "fgeu"
            | "fequ"
            | "fneo"
            | "funord"
            | "ford"
            | "fisfinite"
            | "fisnormal"
            | "fcsel"
            | "fcsel_gt"
            | "fcsel_ge"
    )
}

fn precision(op: Op) -> Precision {
    match op {
        _ if is_comparison(op) => Precision::Exact,
        _ if has_error(op) || is_derived(op) => Precision::Bounded,
        // The conversion towards zero is made of operations on integers.
        Op::UnpackHalf2x16SplitX | Op::UnpackHalf2x16SplitY | Op::F2f16Rtz => Precision::Exact,
        Op::Fneg | Op::Fabs | Op::Slt | Op::Sge | Op::Seq | Op::Sne | Op::B2f16 | Op::B2f32 | Op::B2f64 => {
            Precision::Exact
        }
        Op::Fmin | Op::Fmax | Op::Fsat | Op::FsatSigned | Op::FclampPos => Precision::Extreme,
        Op::Ffloor | Op::Fceil | Op::Ftrunc | Op::FroundEven | Op::Fsign => Precision::ExactButZero,
        Op::Fadd
        | Op::Fsub
        | Op::Fmul
        | Op::Fmulz
        | Op::F2f16
        | Op::F2f16Rtne
        | Op::F2f32
        | Op::F2f64
        | Op::I2f16
        | Op::I2f32
        | Op::I2f64
        | Op::U2f16
        | Op::U2f32
        | Op::U2f64 => Precision::Rounded,
        Op::F2i8 | Op::F2i16 | Op::F2i32 | Op::F2i64 => Precision::ToInteger { signed: true },
        Op::F2u8 | Op::F2u16 | Op::F2u32 | Op::F2u64 => Precision::ToInteger { signed: false },
        Op::Ffma | Op::FfmaWeak | Op::Fmad => Precision::Fused,
        _ => Precision::Open,
    }
}

/// The format of a float: the masks of its exponent and of its fraction.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    fraction: u32,
}

impl Format {
    const fn of(bits: u8) -> Self {
        match bits {
            16 => Self { exponent: 0x7c00, fraction: 0x03ff },
            _ => Self { exponent: 0x7f80_0000, fraction: 0x007f_ffff },
        }
    }

    const fn magnitude(self, value: u32) -> u32 {
        value & (self.exponent | self.fraction)
    }

    const fn is_zero(self, value: u32) -> bool {
        self.magnitude(value) == 0
    }

    const fn is_nan(self, value: u32) -> bool {
        self.magnitude(value) > self.exponent
    }

    const fn is_special(self, value: u32) -> bool {
        value & self.exponent == self.exponent
    }

    /// Returns true for denormals and, as a result may be flushed before it is rounded, for the smallest normal number.
    const fn is_tiny(self, value: u32) -> bool {
        let magnitude = self.magnitude(value);
        magnitude != 0 && magnitude <= self.fraction + 1
    }

    const fn is_denormal(self, value: u32) -> bool {
        let magnitude = self.magnitude(value);
        magnitude != 0 && magnitude <= self.fraction
    }

    const fn sign(self) -> u32 {
        self.exponent + self.fraction + 1
    }

    /// The bits in which NaNs differ.
    const fn nan_bits(self) -> u32 {
        self.sign() | self.fraction
    }

    /// The NaN that stands for all.
    const fn nan(self) -> u32 {
        self.exponent | (self.fraction + 1) >> 1
    }
}

/// The value of a float of 16 or 32 bits.
fn number(bits: u8, value: u32) -> f64 {
    let word = if bits == 16 { float::f16_to_f32(value) } else { value };
    f32::from_bits(word).into()
}

/// The mask of all bits of a value.
fn whole(bits: u8) -> u32 {
    match bits {
        1 => 1,
        8 | 16 => (1 << bits) - 1,
        _ => u32::MAX,
    }
}

/// Returns true if a product and a sum have one result, whether or not the product is rounded.
fn is_same_if_fused(bits: u8, keeps_denormals: bool, operands: &[u32]) -> bool {
    if bits != 32 {
        return bounded::is_exact_product(operands[0], operands[1]);
    }
    let [a, b, c] = [operands[0], operands[1], operands[2]].map(f32::from_bits);
    // A product that is a denormal may be a zero, if there is one.
    let is_kept = keeps_denormals || !(a * b).is_subnormal();
    let (fused, rounded) = (a.mul_add(b, c), a * b + c);
    is_kept && (fused.to_bits() == rounded.to_bits() || fused.is_nan() && rounded.is_nan())
}

/// The bits of a result that are open in a lane, and the reason.
fn open_bits(site: FloatSite, modes: &FloatModes, operands: &[u32], result: u32) -> Option<(u32, &'static str)> {
    let all = whole(site.bits);
    let (source, target) = (Format::of(site.source_bits), Format::of(site.bits));
    let (of_source, of_target) = (width_index(site.source_bits), width_index(site.bits));
    let floats = || operands.iter().enumerate().filter(|(i, _)| site.sources >> i & 1 != 0).map(|(_, &value)| value);
    let keeps_denormals = |is_there: bool, width: usize| !is_there || modes.keeps_denormals[width];
    let keeps_specials = |is_there: bool, width: usize| !is_there || modes.keeps_specials[width];
    let precision = precision(site.op);
    if precision == Precision::Open {
        return Some((all, site.op.name()));
    }
    if precision == Precision::Bounded {
        let open = bounded::open_bits(site.op, [site.bits, site.source_bits], operands).map_or(all, |open| open[0]);
        return (open != 0).then(|| (open, site.op.name()));
    }
    // Before the NaNs: one of both results may be a number.
    if precision == Precision::Fused && !is_same_if_fused(site.bits, modes.keeps_denormals[of_target], operands) {
        return Some((all, site.op.name()));
    }
    let half = match site.op {
        Op::UnpackHalf2x16SplitX => operands[0] & 0xffff,
        Op::UnpackHalf2x16SplitY => operands[0] >> 16,
        _ => 0,
    };
    if !keeps_denormals(floats().any(|value| source.is_denormal(value)), of_source)
        || !keeps_denormals(Format::of(16).is_denormal(half), 0)
        || !keeps_denormals(site.result && target.is_tiny(result), of_target)
    {
        return Some((all, DENORMALS));
    }
    if !keeps_specials(floats().any(|value| source.is_special(value)), of_source)
        || !keeps_specials(site.result && target.is_special(result), of_target)
    {
        return Some((all, SPECIALS));
    }
    if site.result && target.is_nan(result) {
        return Some((target.nan_bits(), NAN_BITS));
    }
    let is_zero = site.result && target.is_zero(result);
    if is_zero && !modes.keeps_specials[of_target] {
        return Some((target.sign(), ZERO_SIGNS));
    }
    match precision {
        Precision::Exact | Precision::Bounded | Precision::Open => None,
        Precision::ExactButZero if site.op == Op::Fsign && floats().any(|value| source.is_nan(value)) => {
            Some((all, SPECIALS))
        }
        Precision::ExactButZero => is_zero.then_some((target.sign(), ZERO_SIGNS)),
        Precision::Extreme => {
            let is_choice = floats().any(|value| source.is_zero(value));
            (is_zero && is_choice).then_some((target.sign(), ZERO_SIGNS))
        }
        Precision::Rounded => (site.result && !modes.rounds_to_even[of_target]).then_some((all, ROUNDING)),
        Precision::ToInteger { signed } => {
            let value = number(site.source_bits, operands[0]).trunc();
            let bits = i32::from(site.bits);
            let (least, most) = match signed {
                true => (-(2_f64.powi(bits - 1)), 2_f64.powi(bits - 1)),
                false => (0.0, 2_f64.powi(bits)),
            };
            // A NaN is in no range.
            (!(value >= least && value < most)).then_some((all, OUT_OF_RANGE))
        }
        Precision::Fused => (!modes.rounds_to_even[of_target]).then_some((all, ROUNDING)),
    }
}

impl RunningWave<'_> {
    /// Computes a derivative as the specification defines it: the difference of the lanes of a row or of a column of
    /// the quad, all of whose lanes are active. A coarse one is that of either row or column, so it is open where
    /// they differ.
    pub(super) fn device_derivative(&mut self, op: &op::Lanes, bit: u8, is_fine: bool, is_half: bool) {
        let modes = self.env.device.and_then(|device| device.modes).unwrap_or_default();
        let (bits, subtract) =
            if is_half { (16, float::sub16 as fn(u32, u32) -> u32) } else { (32, float::sub32 as _) };
        let site = FloatSite { op: Op::Fsub, exact: true, bits, source_bits: bits, sources: 0b11, result: true };
        let bit = usize::from(bit);
        for &(dst, src) in &op.rows {
            let (mut row, mut poison, mut open) = ([0; LANES], 0, [whole(bits); LANES]);
            for lane in lanes(self.active) {
                let quad = lane & !3;
                let difference = |near: usize| {
                    let (far, near) = (near | bit, near & !bit);
                    let is_known = [far, near].iter().all(|&lane| self.open_bits(src, lane) == 0);
                    let [far, near] = [far, near].map(|lane| self.rows[src as usize][lane]);
                    is_known.then(|| (subtract(far, near), [far, near]))
                };
                let is_whole = self.active >> quad & 0xf == 0xf;
                // The same lane of the other row or column.
                let other = quad | (lane & 3 ^ bit ^ 3);
                let known = difference(lane).filter(|_| is_whole);
                let is_choice = !is_fine && known.map(|it| it.0) != difference(other).map(|it| it.0);
                let Some((value, operands)) = known.filter(|_| !is_choice) else {
                    poison |= 1 << lane;
                    if is_choice && is_whole {
                        self.state.freedoms.insert(COARSE);
                    }
                    continue;
                };
                row[lane] = value;
                if let Some((bits, why)) = open_bits(site, &modes, &operands, value) {
                    self.state.freedoms.insert(why);
                    poison |= 1 << lane;
                    open[lane] = bits;
                }
            }
            self.write_partly(dst, &row, poison, &open);
        }
    }

    /// Makes undefined what a device may choose of the result of an operation on floats that was just executed.
    #[cold]
    pub(super) fn open_result(&mut self, at: u32, site: FloatSite, modes: &FloatModes) {
        let (dst, srcs): (R, SmallVec<[R; 3]>) = match self.code.ops[at as usize] {
            DecodedOp::One { dst, a, .. } => (dst, [a].into_iter().collect()),
            DecodedOp::Two { dst, a, b, .. } => (dst, [a, b].into_iter().collect()),
            DecodedOp::Three { dst, a, b, c, .. } | DecodedOp::Select { dst, a, b, c, .. } => {
                (dst, [a, b, c].into_iter().collect())
            }
            DecodedOp::Wide(wide) if precision(site.op) == Precision::Bounded && site.bits <= 32 => {
                self.open_results(wide, site);
                return;
            }
            ref other => {
                // Of vectors and of 64 bits.
                for row in op::writes(self.code, other) {
                    lanes(self.active).for_each(|lane| self.set_lane_open(row as usize, lane, u32::MAX));
                }
                self.state.freedoms.insert(site.op.name());
                return;
            }
        };
        let operands = self.with_nans(site, &srcs);
        let mut again: Option<Row> = None;
        for lane in lanes(self.active) {
            if self.poison[dst as usize] >> lane & 1 != 0 {
                if matches!(self.code.ops[at as usize], DecodedOp::Select { .. }) {
                    continue;
                }
                if !srcs.iter().enumerate().all(|(i, &row)| self.is_known(site, i, row, lane)) {
                    // An operand may be a NaN or a denormal: no bit of the result is known, not even a sign that is
                    // cleared.
                    self.set_lane_open(dst as usize, lane, whole(site.bits));
                    continue;
                }
                // Of a NaN nothing counts but that it is one.
                let row = again.get_or_insert_with(|| evaluated(&self.code.ops[at as usize], &operands));
                self.rows[dst as usize][lane] = row[lane];
                self.set_lane_open(dst as usize, lane, 0);
            }
            let values: SmallVec<[u32; 3]> = operands.iter().map(|row| row[lane]).collect();
            if let Some((open, why)) = open_bits(site, modes, &values, self.rows[dst as usize][lane]) {
                if why == NAN_BITS {
                    self.rows[dst as usize][lane] = Format::of(site.bits).nan();
                }
                self.set_lane_open(dst as usize, lane, open);
                self.state.freedoms.insert(why);
            }
        }
    }

    /// The same for an operation on vectors.
    fn open_results(&mut self, wide: u32, site: FloatSite) {
        let wide = &self.code.wide[wide as usize];
        for lane in lanes(self.active) {
            let is_known = wide.srcs.iter().all(|&row| self.open_bits(row, lane) == 0);
            let operands: SmallVec<[u32; 8]> = wide.srcs.iter().map(|&row| self.rows[row as usize][lane]).collect();
            let open = bounded::open_bits(site.op, [site.bits, site.source_bits], &operands).filter(|_| is_known);
            for (row, at) in (wide.dst..wide.dst + wide.count).zip(0..) {
                let open = open.as_ref().and_then(|open| open.get(at)).copied().unwrap_or(whole(site.bits));
                if open != 0 {
                    self.state.freedoms.insert(site.op.name());
                }
                self.set_lane_open(row as usize, lane, open);
            }
        }
    }

    /// Returns true if an operand is defined in a lane, or is any NaN.
    fn is_known(&self, site: FloatSite, operand: usize, row: R, lane: usize) -> bool {
        let open = self.open_bits(row, lane);
        open == 0 || self.is_any_nan(site, operand, row, lane)
    }

    fn is_any_nan(&self, site: FloatSite, operand: usize, row: R, lane: usize) -> bool {
        let format = Format::of(site.source_bits);
        let is_float = site.sources >> operand & 1 != 0;
        let value = self.rows[row as usize][lane];
        is_float && self.open_bits(row, lane) == format.nan_bits() && format.is_special(value)
    }

    /// The operands; a NaN of any bits is the one that stands for all.
    fn with_nans(&self, site: FloatSite, srcs: &[R]) -> SmallVec<[Row; 3]> {
        let format = Format::of(site.source_bits);
        let of_row = |(i, &row): (usize, &R)| {
            let mut values = self.rows[row as usize];
            for lane in lanes(self.active & self.poison[row as usize]) {
                if self.is_any_nan(site, i, row, lane) {
                    values[lane] = format.nan();
                }
            }
            values
        };
        srcs.iter().enumerate().map(of_row).collect()
    }
}

/// The results of an operation.
fn evaluated(op: &DecodedOp, operands: &[Row]) -> Row {
    let mut out = [0; LANES];
    match (op, operands) {
        (DecodedOp::One { kernel, .. }, [a]) => (kernel.run)(&mut out, a),
        (DecodedOp::Two { kernel, .. }, [a, b]) => (kernel.run)(&mut out, a, b),
        (DecodedOp::Three { kernel, .. }, [a, b, c]) => (kernel.run)(&mut out, a, b, c),
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::device::DeviceRules;
    use crate::environment::env::Env;
    use crate::interp::nir::Decoded;
    use crate::interp::{End, Scratch};
    use std::collections::BTreeSet;

    /// Modes with rounding to even that keep infinities and NaNs, and not denormals.
    const MODES: FloatModes =
        FloatModes { rounds_to_even: [true; 3], keeps_denormals: [false; 3], keeps_specials: [true; 3] };

    /// The open bits of the word that a program stores, and what is open in it, with these words as its constants.
    fn run(body: &str, consts: &[u32], modes: Option<FloatModes>) -> (u32, BTreeSet<&'static str>) {
        let text = format!(
            "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 1, 1, 1\nnum_ssbos: 1\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\n\
             impl main {{\n    block b0:\n    32   %0 = load_const (0x00000000)\n    \
             32x4 %1 = @load_const_ir3 (%0) (base=0)\n{body}    @store_ssbo_ir3 (%9, %0, %0, %0) (base=0, wrmask=x)\n    block b1:\n}}\n"
        );
        let shader = ir3_compiler::nir::read(&text).expect("a program");
        let decoded = Decoded::new(&shader).expect("a program that can be run");
        let device = Some(DeviceRules { buffer_bytes: 64, modes, ..DeviceRules::default() });
        let consts = consts.iter().zip(0..).map(|(&word, at)| (at, word)).collect();
        let env = Env { device, consts, lanes: Some(1), ..Env::from_seed(1) };
        let outcome = decoded.run(&env, env.fuel(), &mut Scratch::default());
        assert_eq!(outcome.end, End::Finished);
        (outcome.memory[0].poison, outcome.freedoms)
    }

    const ONE: u32 = 0x3f80_0000;
    const NAN: u32 = 0x7fc0_0000;
    const DENORMAL: u32 = 0x0000_1234;

    #[test]
    fn sums_are_exact_but_for_nans_and_denormals() {
        let sum = "    32 %9 = fadd %1.x, %1.y\n";
        assert_eq!(run(sum, &[ONE, ONE], Some(MODES)), (0, BTreeSet::new()));
        assert_eq!(run(sum, &[ONE, DENORMAL], Some(MODES)), (u32::MAX, [DENORMALS].into()));
        assert_eq!(run(sum, &[ONE, NAN], Some(MODES)), (0x807f_ffff, [NAN_BITS].into()));
        // The run that has a result for everything.
        assert_eq!(run(sum, &[ONE, NAN], None), (0, BTreeSet::new()));
        let kept = FloatModes { keeps_denormals: [true; 3], ..MODES };
        assert_eq!(run(sum, &[ONE, DENORMAL], Some(kept)), (0, BTreeSet::new()));
        let rounds = FloatModes { rounds_to_even: [false; 3], ..MODES };
        assert_eq!(run(sum, &[ONE, ONE], Some(rounds)).1, [ROUNDING].into());
        let no_nans = FloatModes { keeps_specials: [false; 3], ..MODES };
        assert_eq!(run(sum, &[ONE, NAN], Some(no_nans)), (u32::MAX, [SPECIALS].into()));
    }

    #[test]
    fn of_a_nan_it_is_known_that_it_is_one() {
        let is_nan = "    32 %8 = fadd %1.x, %1.y\n    1 %7 = fneu %8, %8\n    32 %9 = b2i32 %7\n";
        assert_eq!(run(is_nan, &[ONE, NAN], Some(MODES)), (0, [NAN_BITS].into()));
        let negated = "    32 %8 = fadd %1.x, %1.y\n    32 %9 = fneg %8\n";
        assert_eq!(run(negated, &[ONE, NAN], Some(MODES)).0, 0x807f_ffff);
        // The sign of a possible NaN is open, also where an operation clears signs.
        let open = "    32 %8 = fsin %1.x\n    32 %9 = fabs %8\n";
        assert_eq!(run(open, &[ONE], Some(MODES)).0, u32::MAX);
        let bits = "    32 %8 = fadd %1.x, %1.y\n    32 %9 = iadd %8, %1.z\n";
        assert_eq!(run(bits, &[ONE, NAN, 0x0080_0000], Some(MODES)).0, u32::MAX);
    }

    #[test]
    fn of_zeros_with_two_signs_either_one_is_the_smaller_one() {
        let least = "    32 %9 = fmin %1.x, %1.y\n";
        assert_eq!(run(least, &[0, 0x8000_0000], Some(MODES)), (0x8000_0000, [ZERO_SIGNS].into()));
        assert_eq!(run(least, &[ONE, 0xbf80_0000], Some(MODES)), (0, BTreeSet::new()));
    }

    /// The lanes of a quad in which a derivative of the product, or of the sum, of the coordinates of pixels is open.
    fn open_derivatives(op: &str, combined: &str) -> u64 {
        let text = format!(
            "shader: MESA_SHADER_FRAGMENT\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:\n    \
             32   %0 = load_const (0x00000000)\n    32x4 %1 = @load_frag_coord\n    32 %2 = {combined} %1.x, %1.y\n    \
             32   %3 = @{op} (%2)\n    @store_output (%3, %0) (base=0, range=1, wrmask=x, component=0, src_type=float32, \
             io location=FRAG_RESULT_DATA0 slots=1)\n    block b1:\n}}\n"
        );
        let shader = ir3_compiler::nir::read(&text).expect("a program");
        let decoded = Decoded::new(&shader).expect("a program that can be run");
        let device = Some(DeviceRules { modes: Some(MODES), ..DeviceRules::default() });
        let env = Env { device, lanes: Some(0xf), helpers: Some(0), ..Env::from_seed(1) };
        let outcome = decoded.run(&env, env.fuel(), &mut Scratch::default());
        outcome.outputs.rows()[0].poison & 0xf
    }

    #[test]
    fn a_coarse_derivative_is_that_of_either_row() {
        for op in ["ddx", "ddy", "ddx_coarse", "ddy_coarse"] {
            assert_eq!((open_derivatives(op, "fmul"), open_derivatives(op, "fadd")), (0xf, 0), "{op}");
        }
        assert_eq!((open_derivatives("ddx_fine", "fmul"), open_derivatives("ddy_fine", "fmul")), (0, 0));
    }

    #[test]
    fn conversions_out_of_range_are_open() {
        let integer = "    32 %9 = f2i32 %1.x\n";
        assert_eq!(run(integer, &[0x4f00_0000], Some(MODES)), (u32::MAX, [OUT_OF_RANGE].into()));
        assert_eq!(run(integer, &[0xcf00_0000], Some(MODES)), (0, BTreeSet::new()));
        assert_eq!(run(integer, &[NAN], Some(MODES)).0, u32::MAX);
        let unsigned = "    32 %9 = f2u32 %1.x\n";
        assert_eq!(run(unsigned, &[0xbf00_0000], Some(MODES)), (0, BTreeSet::new()));
        assert_eq!(run(unsigned, &[0xbf80_0000], Some(MODES)).0, u32::MAX);
    }

    #[test]
    fn products_and_sums_may_be_fused() {
        let fused = "    32 %9 = ffma %1.x, %1.y, %1.z\n";
        assert_eq!(run(fused, &[ONE, ONE, ONE], Some(MODES)), (0, BTreeSet::new()));
        assert_eq!(run(fused, &[0x3f80_0001, 0x3f80_0001, 0xbf80_0002], Some(MODES)), (u32::MAX, ["ffma"].into()));
        // 1.5 * 2^127.5 is too large for a number, if it is rounded.
        assert_eq!(run(fused, &[0x3fc0_0000, 0x7f40_0000, 0xff80_0000], Some(MODES)).0, u32::MAX);
        // 2^-100 * 2^-27 is a denormal, added to the least normal number.
        assert_eq!(run(fused, &[0x0d80_0000, 0x3200_0000, 0x0080_0000], Some(MODES)).0, u32::MAX);
        assert_eq!(run(fused, &[0x0d80_0000, 0x3f80_0000, 0x0080_0000], Some(MODES)).0, 0);
        let half = "    16x4 %8 = f2f16 %1\n    16 %7 = ffma %8.x, %8.y, %8.z\n    32 %9 = u2u32 %7\n";
        assert_eq!(run(half, &[ONE, 0x4040_0000, ONE], Some(MODES)), (0, BTreeSet::new()));
        assert_eq!(run("    32 %9 = fpow %1.x, %1.y\n", &[ONE, ONE], Some(MODES)), (u32::MAX, ["fpow"].into()));
        assert!(is_open(Op::Fpow) && !is_open(Op::Fsin) && !is_open(Op::Fadd) && !is_open(Op::Iadd));
    }

    #[test]
    fn upper_bits_of_a_result_with_an_error_are_known() {
        let upper = "    32 %8 = fsqrt %1.x\n    32 %7 = load_const (0x00000010)\n    32 %9 = ushr %8, %7\n";
        assert_eq!(run(upper, &[0x4040_0000], Some(MODES)), (0, ["fsqrt"].into()));
        assert_eq!(run(upper, &[NAN], Some(MODES)).0, 0xffff);
        let sum = "    32 %9 = fdot2 %1.xy, %1.zw\n";
        assert_eq!(run(sum, &[ONE, ONE, ONE, 0x4040_0000], Some(MODES)), (0, BTreeSet::new()));
        let unknown = "    32 %8 = fpow %1.x, %1.y\n    32x2 %7 = vec2 %8, %1.x\n    32 %9 = fdot2 %7, %1.zw\n";
        assert_eq!(run(unknown, &[ONE; 4], Some(MODES)).0, u32::MAX);
    }
}
