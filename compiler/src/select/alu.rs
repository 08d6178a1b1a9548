//! Arithmetic.

use super::SelectError;
use super::context::Context;
use crate::nir;

/// Translates an arithmetic instruction.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, _alu: &'a nir::Alu) -> Result<(), SelectError> {
    Err(ctx.unsupported("not supported"))
}
