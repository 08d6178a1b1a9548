//! Textures.

use super::SelectError;
use super::context::Context;
use crate::nir;

/// Translates a texture instruction.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, _tex: &'a nir::Tex) -> Result<(), SelectError> {
    Err(ctx.unsupported("not supported"))
}

/// Translates the intrinsics that warm the caches for textures.
pub(super) fn emit_prefetch<'a>(ctx: &mut Context<'a>, _intrinsic: &'a nir::Intrinsic) -> Result<(), SelectError> {
    Err(ctx.unsupported("not supported"))
}
