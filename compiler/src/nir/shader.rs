//! A shader: its header, its variables and its one function.

use super::function::{Function, Variable};
use crate::words;

words! {
    /// The stage of the pipeline that a shader runs in.
    pub enum Stage {
        Vertex = "MESA_SHADER_VERTEX", TessCtrl = "MESA_SHADER_TESS_CTRL", TessEval = "MESA_SHADER_TESS_EVAL",
        Geometry = "MESA_SHADER_GEOMETRY", Fragment = "MESA_SHADER_FRAGMENT", Compute = "MESA_SHADER_COMPUTE",
        Kernel = "MESA_SHADER_KERNEL", Task = "MESA_SHADER_TASK", Mesh = "MESA_SHADER_MESH",
    }
}

/// The header of a shader. The compiler uses the fields; the other lines are kept as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// `workgroup_size`, where the stage has one.
    pub workgroup_size: Option<[u32; 3]>,
    /// True if the workgroup size is known only at run time.
    pub workgroup_size_variable: bool,
    /// `num_textures`
    pub num_textures: u32,
    /// `num_ubos`
    pub num_ubos: u32,
    /// `num_ssbos`
    pub num_ssbos: u32,
    /// `num_images`
    pub num_images: u32,
    /// `shared_size` in bytes
    pub shared_size: u32,
    /// `subgroup_size`, in Mesa's enumeration.
    pub subgroup_size: u32,
    /// `divergence_analysis_run`
    pub divergence_analysis_run: bool,
    /// `inputs`
    pub inputs: u32,
    /// `outputs`
    pub outputs: u32,
    /// `uniforms`
    pub uniforms: u32,
    /// `scratch` in bytes
    pub scratch_size: u32,
    /// Every other line of the header, key and text, in order.
    pub other: Vec<(String, String)>,
}

impl Default for Info {
    fn default() -> Info {
        Info {
            workgroup_size: None,
            workgroup_size_variable: false,
            num_textures: 0,
            num_ubos: 0,
            num_ssbos: 0,
            num_images: 0,
            shared_size: 0,
            subgroup_size: 1,
            divergence_analysis_run: false,
            inputs: 0,
            outputs: 0,
            uniforms: 0,
            scratch_size: 0,
            other: Vec::new(),
        }
    }
}

impl Info {
    /// The size of a workgroup in the form of ir3: zeros if it is known only at dispatch.
    pub fn workgroup_size_in_ir3(&self) -> Option<[u16; 3]> {
        let size = self.workgroup_size?;
        Some(if self.workgroup_size_variable { [0; 3] } else { size.map(|n| n.min(0xffff) as u16) })
    }

    /// The text of a header line that has no field.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.other.iter().find(|(k, _)| k == key).map(|(_, text)| text.as_str())
    }
}

/// A shader.
#[derive(Clone, Debug, PartialEq)]
pub struct Shader {
    /// The stage.
    pub stage: Stage,
    /// The header.
    pub info: Info,
    /// The variables of the shader; the function has its own.
    pub variables: Vec<Variable>,
    /// The entry function.
    pub entry: Function,
}

impl Shader {
    /// Creates a shader with an empty function `main`.
    pub fn new(stage: Stage) -> Shader {
        let mut info = Info::default();
        if matches!(stage, Stage::Compute | Stage::Kernel | Stage::Task | Stage::Mesh) {
            info.workgroup_size = Some([64, 1, 1]);
        }
        Shader { stage, info, variables: Vec::new(), entry: Function::new("main") }
    }

    /// The number of instructions of the shader.
    pub fn instruction_count(&self) -> usize {
        self.entry.instruction_count()
    }
}
