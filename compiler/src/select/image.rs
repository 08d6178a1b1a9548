//! Storage images.

use super::SelectError;
use super::context::Context;
use crate::nir;

/// Translates one intrinsic of this room.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, _intrinsic: &'a nir::Intrinsic) -> Result<(), SelectError> {
    Err(ctx.unsupported("not supported"))
}
