//! The byte offset of an access to a storage buffer or an image, in addition to its element or texel, before a6xx.
//!
//! It is undocumented which of the two the machine uses, so an access has a meaning only if both name the same place.
//! The byte offset is that of Mesa's `ir3_a4xx.c`: a5xx has 64 bits of it, from where the buffer or image starts; a4xx
//! has 32, from the start of memory. Atomics on images of a5xx count words.

use crate::arithmetic::domain::Domain;
use crate::arithmetic::integer::{mad_low, mul_low};
use ir3_compiler::target::{Generation, Target};

/// Returns true if the GPU reads a byte offset in addition to elements and texels.
pub fn is_read(target: &Target) -> bool {
    matches!(target.generation, Generation::A4xx | Generation::A5xx)
}

/// One bit: 1 if a byte offset from a buffer's start is that of an element.
pub fn is_of_element<D: Domain>(d: &mut D, bytes: D::V, index: D::V, scale: u8) -> D::V {
    let shift = d.constant(32, scale.trailing_zeros().into());
    let place = d.shl(32, index, shift);
    d.eq(32, bytes, place)
}

/// The byte offset of a texel from its image's start. `strides` are the bytes of a texel, of a row and of a slice; a
/// coordinate without a stride does not count. `in_words` is true where words are counted.
pub fn of_texel<D: Domain>(d: &mut D, coordinates: &[D::V], strides: &[D::V], in_words: bool) -> D::V {
    let mut sum = None;
    for (coordinate, stride) in coordinates.iter().cloned().zip(strides.iter().cloned()) {
        sum = Some(match sum {
            None => mul_low(d, 32, 24, true, coordinate, stride),
            Some(sum) => mad_low(d, 32, 24, true, stride, coordinate, sum),
        });
    }
    let sum = sum.unwrap_or_else(|| d.constant(32, 0));
    if in_words {
        let two = d.constant(32, 2);
        return d.lshr(32, sum, two);
    }
    sum
}
