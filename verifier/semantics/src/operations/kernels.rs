//! Macros that make a kernel of a definition: one expression, expanded in two domains.
//!
//! In the domain of machine integers the expression is the body of a loop over the lanes, which interpreters run; in
//! the domain of terms it is the kernel's *meaning*, which provers use. Both come from one text, so they cannot
//! disagree.
//!
//! `unary!(8 32 |d, a| …)` is the kernel with a result of 8 bits and a source of 32. Widths are literals, so that the
//! shape of the kernel is chosen as the macro is expanded: fixed shapes where all rows are of 32 bits, else
//! [`Kernel::Rows`](crate::operations::Kernel::Rows). The families (`ints!`, `floats!` and so on) choose by a width at
//! run time, which in the expression is the constant that the caller names, and refuse other widths by returning
//! `None`.

use crate::arithmetic::domain::Domain;
use crate::arithmetic::rows::Row;
use crate::operations::Words;
use crate::terms::{Term, Terms};

/// Reads the component of `w` bits in lane `lane` whose rows begin at `at`.
#[inline(always)]
pub(super) fn get(rows: &[&Row], at: usize, w: u32, lane: usize) -> u64 {
    let low = u64::from(rows[at][lane]);
    if w == 64 { low | u64::from(rows[at + 1][lane]) << 32 } else { low }
}

/// Writes a component of `w` bits to the rows from `at` on.
#[inline(always)]
pub(super) fn put(rows: &mut [Row], at: usize, w: u32, lane: usize, value: u64) {
    rows[at][lane] = value as u32;
    if w == 64 {
        rows[at + 1][lane] = (value >> 32) as u32;
    }
}

/// The number of rows of a component.
pub(super) const fn rows_of(w: u32) -> usize {
    if w == 64 { 2 } else { 1 }
}

/// The component of `w` bits in the words from `at` on: [`get`] for terms.
pub(super) fn component(d: &mut Terms, words: &[Term], at: usize, w: u32) -> Term {
    if w == 64 { d.concat(32, words[at + 1], 32, words[at]) } else { d.extract(32, words[at], 0, w) }
}

/// The low word of a result, as [`put`] writes it to its row: zero-extended, for any width of the expression.
pub(super) fn low_word(d: &mut Terms, value: Term) -> Term {
    let w = d.width(value);
    crate::arithmetic::integer::resize(d, w, 32, value)
}

/// Appends the words of a component of `w` bits.
pub(super) fn push_words(d: &mut Terms, w: u32, value: Term, words: &mut Words) {
    words.push(low_word(d, value));
    if w == 64 {
        let width = d.width(value);
        let whole = d.zext(width, 64, value);
        words.push(d.extract(64, whole, 32, 32));
    }
}

macro_rules! unary {
    (64 $aw:tt |$d:ident, $a:ident| $e:expr) => { unary!(@rows 64 $aw |$d, $a| $e) };
    ($dw:tt 64 |$d:ident, $a:ident| $e:expr) => { unary!(@rows $dw 64 |$d, $a| $e) };
    (@rows $dw:tt $aw:tt |$d:ident, $a:ident| $e:expr) => {{
        fn run(dst: &mut [Row], srcs: &[&Row]) {
            for lane in 0..LANES {
                let $d = &mut Concrete;
                let $a = kernels::get(srcs, 0, $aw, lane);
                kernels::put(dst, 0, $dw, lane, $e);
            }
        }
        fn meaning($d: &mut Terms, srcs: &[Term]) -> Words {
            let $a = kernels::component($d, srcs, 0, $aw);
            let result = $e;
            let mut words = Words::new();
            kernels::push_words($d, $dw, result, &mut words);
            words
        }
        Kernel::Rows(&Rows { run, meaning })
    }};
    ($dw:tt $aw:tt |$d:ident, $a:ident| $e:expr) => {{
        fn run(dst: &mut Row, a: &Row) {
            for lane in 0..LANES {
                let $d = &mut Concrete;
                let $a = u64::from(a[lane]);
                dst[lane] = $e as u32;
            }
        }
        fn meaning($d: &mut Terms, a: Term) -> Term {
            let $a = kernels::component($d, &[a], 0, $aw);
            let result = $e;
            kernels::low_word($d, result)
        }
        Kernel::One(&One { run, meaning })
    }};
}

macro_rules! binary {
    (64 $aw:tt $bw:tt |$d:ident, $a:ident, $b:ident| $e:expr) => { binary!(@rows 64 $aw $bw |$d, $a, $b| $e) };
    ($dw:tt 64 $bw:tt |$d:ident, $a:ident, $b:ident| $e:expr) => { binary!(@rows $dw 64 $bw |$d, $a, $b| $e) };
    (@rows $dw:tt $aw:tt $bw:tt |$d:ident, $a:ident, $b:ident| $e:expr) => {{
        fn run(dst: &mut [Row], srcs: &[&Row]) {
            for lane in 0..LANES {
                let $d = &mut Concrete;
                let $a = kernels::get(srcs, 0, $aw, lane);
                let $b = kernels::get(srcs, kernels::rows_of($aw), $bw, lane);
                kernels::put(dst, 0, $dw, lane, $e);
            }
        }
        fn meaning($d: &mut Terms, srcs: &[Term]) -> Words {
            let $a = kernels::component($d, srcs, 0, $aw);
            let $b = kernels::component($d, srcs, kernels::rows_of($aw), $bw);
            let result = $e;
            let mut words = Words::new();
            kernels::push_words($d, $dw, result, &mut words);
            words
        }
        Kernel::Rows(&Rows { run, meaning })
    }};
    ($dw:tt $aw:tt $bw:tt |$d:ident, $a:ident, $b:ident| $e:expr) => {{
        fn run(dst: &mut Row, a: &Row, b: &Row) {
            for lane in 0..LANES {
                let $d = &mut Concrete;
                let ($a, $b) = (u64::from(a[lane]), u64::from(b[lane]));
                dst[lane] = $e as u32;
            }
        }
        fn meaning($d: &mut Terms, a: Term, b: Term) -> Term {
            let $a = kernels::component($d, &[a], 0, $aw);
            let $b = kernels::component($d, &[b], 0, $bw);
            let result = $e;
            kernels::low_word($d, result)
        }
        Kernel::Two(&Two { run, meaning })
    }};
}

macro_rules! ternary {
    (64 $aw:tt $bw:tt $cw:tt |$d:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {{
        fn run(dst: &mut [Row], srcs: &[&Row]) {
            for lane in 0..LANES {
                let $d = &mut Concrete;
                let $a = kernels::get(srcs, 0, $aw, lane);
                let $b = kernels::get(srcs, kernels::rows_of($aw), $bw, lane);
                let $c = kernels::get(srcs, kernels::rows_of($aw) + kernels::rows_of($bw), $cw, lane);
                kernels::put(dst, 0, 64, lane, $e);
            }
        }
        fn meaning($d: &mut Terms, srcs: &[Term]) -> Words {
            let $a = kernels::component($d, srcs, 0, $aw);
            let $b = kernels::component($d, srcs, kernels::rows_of($aw), $bw);
            let $c = kernels::component($d, srcs, kernels::rows_of($aw) + kernels::rows_of($bw), $cw);
            let result = $e;
            let mut words = Words::new();
            kernels::push_words($d, 64, result, &mut words);
            words
        }
        Kernel::Rows(&Rows { run, meaning })
    }};
    ($dw:tt $aw:tt $bw:tt $cw:tt |$d:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {{
        fn run(dst: &mut Row, a: &Row, b: &Row, c: &Row) {
            for lane in 0..LANES {
                let $d = &mut Concrete;
                let ($a, $b, $c) = (u64::from(a[lane]), u64::from(b[lane]), u64::from(c[lane]));
                dst[lane] = $e as u32;
            }
        }
        fn meaning($d: &mut Terms, a: Term, b: Term, c: Term) -> Term {
            let $a = kernels::component($d, &[a], 0, $aw);
            let $b = kernels::component($d, &[b], 0, $bw);
            let $c = kernels::component($d, &[c], 0, $cw);
            let result = $e;
            kernels::low_word($d, result)
        }
        Kernel::Three(&Three { run, meaning })
    }};
}

/// All components of all sources at once: `horizontal!(32 4 x 8 |d, s| …)` makes 4 components of 32 bits from the array
/// `s` of 8-bit components.
macro_rules! horizontal {
    ($dw:tt $n:tt x $aw:tt $m:tt |$d:ident, $s:ident| $e:expr) => {{
        fn run(dst: &mut [Row], srcs: &[&Row]) {
            for lane in 0..LANES {
                let $d = &mut Concrete;
                let $s: [u64; $m] = std::array::from_fn(|i| kernels::get(srcs, i * kernels::rows_of($aw), $aw, lane));
                let out: [u64; $n] = $e;
                for (i, value) in out.into_iter().enumerate() {
                    kernels::put(dst, i * kernels::rows_of($dw), $dw, lane, value);
                }
            }
        }
        fn meaning($d: &mut Terms, srcs: &[Term]) -> Words {
            let $s: [Term; $m] = std::array::from_fn(|i| kernels::component($d, srcs, i * kernels::rows_of($aw), $aw));
            let out: [Term; $n] = $e;
            let mut words = Words::new();
            for value in out {
                kernels::push_words($d, $dw, value, &mut words);
            }
            words
        }
        Kernel::Rows(&Rows { run, meaning })
    }};
}

/// A choice by a test of a condition of this width: the test is an expression of one bit.
macro_rules! select {
    ($condition:tt ? $yes:tt : $no:tt, $w:tt |$d:ident, $c:ident| $e:expr) => {{
        fn run(condition: &Row) -> u64 {
            let mut mask = 0;
            for (lane, &word) in condition.iter().enumerate() {
                let $d = &mut Concrete;
                let $c = u64::from(word);
                mask |= $e << lane;
            }
            mask
        }
        fn meaning($d: &mut Terms, word: Term) -> Term {
            let $c = kernels::component($d, &[word], 0, $w);
            $e
        }
        Kernel::Select(Select { test: &LaneTest { run, meaning }, condition: $condition, yes: $yes, no: $no })
    }};
}

/// A modification of a row in place.
macro_rules! modify {
    ($w:tt |$d:ident, $a:ident| $e:expr) => {{
        fn run(row: &mut Row) {
            for value in row {
                let $d = &mut Concrete;
                let $a = u64::from(*value);
                *value = $e as u32;
            }
        }
        fn meaning($d: &mut Terms, word: Term) -> Term {
            let $a = kernels::component($d, &[word], 0, $w);
            let result = $e;
            kernels::low_word($d, result)
        }
        &Modify { run, meaning }
    }};
}

/// An integer operation whose operands all have one width.
macro_rules! ints {
    ($width:expr, $w:ident, |$d:ident, $a:ident| $e:expr) => {
        match $width {
            1 => { const $w: u32 = 1; unary!(1 1 |$d, $a| $e) }
            8 => { const $w: u32 = 8; unary!(8 8 |$d, $a| $e) }
            16 => { const $w: u32 = 16; unary!(16 16 |$d, $a| $e) }
            32 => { const $w: u32 = 32; unary!(32 32 |$d, $a| $e) }
            64 => { const $w: u32 = 64; unary!(64 64 |$d, $a| $e) }
            _ => return None,
        }
    };
    ($width:expr, $w:ident, |$d:ident, $a:ident, $b:ident| $e:expr) => {
        match $width {
            1 => { const $w: u32 = 1; binary!(1 1 1 |$d, $a, $b| $e) }
            8 => { const $w: u32 = 8; binary!(8 8 8 |$d, $a, $b| $e) }
            16 => { const $w: u32 = 16; binary!(16 16 16 |$d, $a, $b| $e) }
            32 => { const $w: u32 = 32; binary!(32 32 32 |$d, $a, $b| $e) }
            64 => { const $w: u32 = 64; binary!(64 64 64 |$d, $a, $b| $e) }
            _ => return None,
        }
    };
    ($width:expr, $w:ident, |$d:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        match $width {
            1 => { const $w: u32 = 1; ternary!(1 1 1 1 |$d, $a, $b, $c| $e) }
            8 => { const $w: u32 = 8; ternary!(8 8 8 8 |$d, $a, $b, $c| $e) }
            16 => { const $w: u32 = 16; ternary!(16 16 16 16 |$d, $a, $b, $c| $e) }
            32 => { const $w: u32 = 32; ternary!(32 32 32 32 |$d, $a, $b, $c| $e) }
            64 => { const $w: u32 = 64; ternary!(64 64 64 64 |$d, $a, $b, $c| $e) }
            _ => return None,
        }
    };
}

/// A shift: the count has 32 bits for any width.
macro_rules! shifts {
    ($width:expr, $w:ident, |$d:ident, $a:ident, $b:ident| $e:expr) => {
        match $width {
            8 => { const $w: u32 = 8; binary!(8 8 32 |$d, $a, $b| $e) }
            16 => { const $w: u32 = 16; binary!(16 16 32 |$d, $a, $b| $e) }
            32 => { const $w: u32 = 32; binary!(32 32 32 |$d, $a, $b| $e) }
            64 => { const $w: u32 = 64; binary!(64 64 32 |$d, $a, $b| $e) }
            _ => return None,
        }
    };
    ($width:expr, $w:ident, |$d:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        match $width {
            8 => { const $w: u32 = 8; ternary!(8 8 32 8 |$d, $a, $b, $c| $e) }
            16 => { const $w: u32 = 16; ternary!(16 16 32 16 |$d, $a, $b, $c| $e) }
            32 => { const $w: u32 = 32; ternary!(32 32 32 32 |$d, $a, $b, $c| $e) }
            64 => { const $w: u32 = 64; ternary!(64 64 32 64 |$d, $a, $b, $c| $e) }
            _ => return None,
        }
    };
}

/// An operation from integers of any width to a result of 32 bits.
macro_rules! counts {
    ($width:expr, $w:ident, |$d:ident, $a:ident| $e:expr) => {
        match $width {
            1 => { const $w: u32 = 1; unary!(32 1 |$d, $a| $e) }
            8 => { const $w: u32 = 8; unary!(32 8 |$d, $a| $e) }
            16 => { const $w: u32 = 16; unary!(32 16 |$d, $a| $e) }
            32 => { const $w: u32 = 32; unary!(32 32 |$d, $a| $e) }
            64 => { const $w: u32 = 64; unary!(32 64 |$d, $a| $e) }
            _ => return None,
        }
    };
}

/// A comparison of integers: 0, or all ones of `$out` bits.
macro_rules! int_compare {
    ($out:tt, $width:expr, $w:ident, |$d:ident, $a:ident, $b:ident| $e:expr) => {
        match $width {
            1 => { const $w: u32 = 1; binary!($out 1 1 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            8 => { const $w: u32 = 8; binary!($out 8 8 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            16 => { const $w: u32 = 16; binary!($out 16 16 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            32 => { const $w: u32 = 32; binary!($out 32 32 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            64 => { const $w: u32 = 64; binary!($out 64 64 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            _ => return None,
        }
    };
}

/// A test of a bit, whose index has 32 bits.
macro_rules! bit_compare {
    ($out:tt, $width:expr, $w:ident, |$d:ident, $a:ident, $b:ident| $e:expr) => {
        match $width {
            1 => { const $w: u32 = 1; binary!($out 1 32 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            8 => { const $w: u32 = 8; binary!($out 8 32 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            16 => { const $w: u32 = 16; binary!($out 16 32 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            32 => { const $w: u32 = 32; binary!($out 32 32 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            64 => { const $w: u32 = 64; binary!($out 64 32 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            _ => return None,
        }
    };
}

/// A float operation whose operands all have one format.
macro_rules! floats {
    ($width:expr, $f:ident, |$d:ident, $a:ident| $e:expr) => {
        match $width {
            16 => { const $f: Format = Format::F16; unary!(16 16 |$d, $a| $e) }
            32 => { const $f: Format = Format::F32; unary!(32 32 |$d, $a| $e) }
            64 => { const $f: Format = Format::F64; unary!(64 64 |$d, $a| $e) }
            _ => return None,
        }
    };
    ($width:expr, $f:ident, |$d:ident, $a:ident, $b:ident| $e:expr) => {
        match $width {
            16 => { const $f: Format = Format::F16; binary!(16 16 16 |$d, $a, $b| $e) }
            32 => { const $f: Format = Format::F32; binary!(32 32 32 |$d, $a, $b| $e) }
            64 => { const $f: Format = Format::F64; binary!(64 64 64 |$d, $a, $b| $e) }
            _ => return None,
        }
    };
    ($width:expr, $f:ident, |$d:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        match $width {
            16 => { const $f: Format = Format::F16; ternary!(16 16 16 16 |$d, $a, $b, $c| $e) }
            32 => { const $f: Format = Format::F32; ternary!(32 32 32 32 |$d, $a, $b, $c| $e) }
            64 => { const $f: Format = Format::F64; ternary!(64 64 64 64 |$d, $a, $b, $c| $e) }
            _ => return None,
        }
    };
}

/// A comparison or test of floats: 0, or all ones of `$out` bits.
macro_rules! float_compare {
    ($out:tt, $width:expr, $f:ident, |$d:ident, $a:ident| $e:expr) => {
        match $width {
            16 => { const $f: Format = Format::F16; unary!($out 16 |$d, $a| { let bit = $e; $d.sext(1, $out, bit) }) }
            32 => { const $f: Format = Format::F32; unary!($out 32 |$d, $a| { let bit = $e; $d.sext(1, $out, bit) }) }
            64 => { const $f: Format = Format::F64; unary!($out 64 |$d, $a| { let bit = $e; $d.sext(1, $out, bit) }) }
            _ => return None,
        }
    };
    ($out:tt, $width:expr, $f:ident, |$d:ident, $a:ident, $b:ident| $e:expr) => {
        match $width {
            16 => { const $f: Format = Format::F16; binary!($out 16 16 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            32 => { const $f: Format = Format::F32; binary!($out 32 32 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            64 => { const $f: Format = Format::F64; binary!($out 64 64 |$d, $a, $b| { let bit = $e; $d.sext(1, $out, bit) }) }
            _ => return None,
        }
    };
}

/// A horizontal float operation with one result.
macro_rules! float_horizontal {
    ($width:expr, $f:ident, $m:tt |$d:ident, $s:ident| $e:expr) => {
        match $width {
            16 => { const $f: Format = Format::F16; horizontal!(16 1 x 16 $m |$d, $s| [$e]) }
            32 => { const $f: Format = Format::F32; horizontal!(32 1 x 32 $m |$d, $s| [$e]) }
            64 => { const $f: Format = Format::F64; horizontal!(64 1 x 64 $m |$d, $s| [$e]) }
            _ => return None,
        }
    };
}

/// A conversion to a type of a given width from operands of any width.
macro_rules! conversion {
    ($from:expr, $width:expr, $to:expr, $dw:tt, $rounding:expr) => {
        match $width {
            1 => unary!($dw 1 |d, a| convert::convert(d, ($from, 1), ($to, $dw), $rounding, a)),
            8 => unary!($dw 8 |d, a| convert::convert(d, ($from, 8), ($to, $dw), $rounding, a)),
            16 => unary!($dw 16 |d, a| convert::convert(d, ($from, 16), ($to, $dw), $rounding, a)),
            32 => unary!($dw 32 |d, a| convert::convert(d, ($from, 32), ($to, $dw), $rounding, a)),
            64 => unary!($dw 64 |d, a| convert::convert(d, ($from, 64), ($to, $dw), $rounding, a)),
            _ => return None,
        }
    };
}

/// A conversion of a float to an integer of 8 bits: the low bits of that to 16 bits. In the range of 8 bits that is the
/// integer; outside of it neither SPIR-V nor C defines the result, and this is ir3's result, which converts floats
/// to 16 bits at least.
macro_rules! float_to_byte {
    ($width:expr, $kind:expr) => {
        match $width {
            16 => float_to_byte!(@from 16, $kind),
            32 => float_to_byte!(@from 32, $kind),
            64 => float_to_byte!(@from 64, $kind),
            _ => return None,
        }
    };
    (@from $w:tt, $kind:expr) => {
        unary!(8 $w |d, a| {
            let half = convert::convert(d, (NumberKind::Float, $w), ($kind, 16), None, a);
            d.extract(16, half, 0, 8)
        })
    };
}

/// A conversion from a boolean: 0 or anything else, of 1, 8, 16 or 32 bits.
macro_rules! from_bool {
    ($width:expr, $dw:tt |$d:ident, $bit:ident| $e:expr) => {
        match $width {
            1 | 8 | 16 | 32 => unary!($dw 32 |$d, a| {
                let zero = integer::is_zero($d, 32, a);
                let $bit = $d.not(1, zero);
                $e
            }),
            _ => return None,
        }
    };
}

pub(super) use {
    binary, bit_compare, conversion, counts, float_compare, float_horizontal, float_to_byte, floats, from_bool,
    horizontal, int_compare, ints, modify, select, shifts, ternary, unary,
};
