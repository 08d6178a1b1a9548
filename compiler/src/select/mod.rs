//! Instruction selection: nir to ir3 in SSA form.

use crate::target::Target;
use crate::{ir3, nir};

/// Something in a shader that the backend does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported: {operation} in {place}")]
pub struct SelectError {
    /// The operation.
    pub operation: String,
    /// Where it stands.
    pub place: String,
}

/// Selects instructions for a shader.
pub fn run(shader: &nir::Shader, target: &Target) -> Result<ir3::Program, SelectError> {
    let _ = target;
    Err(SelectError { operation: "any shader".to_owned(), place: shader.entry.name.clone() })
}
