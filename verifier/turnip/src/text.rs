//! GLSL and WGSL as SPIR-V, by naga.

use crate::outcome::{Kind, Outcome};
use naga::back::pipeline_constants::process_overrides;
use naga::back::{PipelineConstants, spv};
use naga::front::{glsl, wgsl};
use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};
use naga::{Module, ShaderStage};
use std::path::Path;

/// A language that is translated.
#[derive(Clone, Copy)]
pub enum Language {
    Glsl(ShaderStage),
    Wgsl,
}

impl Language {
    /// The language of a file, by its extension.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "comp" => Some(Self::Glsl(ShaderStage::Compute)),
            "vert" => Some(Self::Glsl(ShaderStage::Vertex)),
            "frag" => Some(Self::Glsl(ShaderStage::Fragment)),
            "wgsl" => Some(Self::Wgsl),
            _ => None,
        }
    }

    /// Translates a text to the bytes of a module.
    ///
    /// # Errors
    /// Naga's message, in full, and in a line with its place.
    pub fn translate(self, path: &Path, text: &str) -> Result<Vec<u8>, (Outcome, String)> {
        let path = path.to_string_lossy();
        let refused = |place: Option<(u32, u32)>, what: &str, whole: String| {
            let place = place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default();
            (Outcome::new(Kind::Untranslated, format!("{place}naga: {what}")), whole)
        };
        let module: Module = match self {
            Self::Wgsl => wgsl::parse_str(text).map_err(|error| {
                let place = error.location(text).map(|at| (at.line_number, at.line_position));
                refused(place, error.message(), error.emit_to_string_with_path(text, &path))
            })?,
            Self::Glsl(stage) => {
                glsl::Frontend::default().parse(&glsl::Options::from(stage), text).map_err(|errors| {
                    let first = errors.errors.first();
                    let place =
                        first.map(|error| error.meta.location(text)).map(|at| (at.line_number, at.line_position));
                    let what = first.map(|error| error.kind.to_string()).unwrap_or_default();
                    refused(place, &what, errors.emit_to_string_with_path(text, &path))
                })?
            }
        };
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
        validator.subgroup_stages(ShaderStages::all()).subgroup_operations(SubgroupOperationSet::all());
        let info = validator.validate(&module).map_err(|error| {
            let place = error.location(text).map(|at| (at.line_number, at.line_position));
            let innermost = innermost(error.as_inner());
            refused(place, &innermost, error.emit_to_string_with_path(text, &path))
        })?;
        // Constants that a pipeline may override have their own values.
        let (module, info) = process_overrides(&module, &info, None, &PipelineConstants::default())
            .map_err(|error| refused(None, &error.to_string(), error.to_string()))?;
        // The plain text: no axis is flipped, no depth is clamped, no loop is bounded.
        let options = spv::Options {
            lang_version: (1, 5),
            flags: spv::WriterFlags::empty(),
            force_loop_bounding: false,
            ..spv::Options::default()
        };
        let words = spv::write_vec(&module, &info, &options, None)
            .map_err(|error| refused(None, &error.to_string(), error.to_string()))?;
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }
}

/// The text of the error that caused all others.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
