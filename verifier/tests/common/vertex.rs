//! Vertex shaders that compute one output.

use ir3_compiler::nir::text;
use ir3_semantics::Snapshot;

/// A shader whose output is `result`. `lines` may read `%0`, which is 0, and the four words of `%1`, an attribute.
pub fn shader(lines: &str, result: &str) -> Snapshot {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    let source = format!(
        "shader: MESA_SHADER_VERTEX
decl_function main () (entrypoint)

impl main {{
    block b0:   // preds:
    32     %0 = load_const (0x00000000)
    32x4   %1 = @load_input (%0 (0x0)) (base=0, range=1, component=0, dest_type=float32, io location=VERT_ATTRIB_GENERIC0 slots=1)
{lines}                @store_output ({result}, %0 (0x0)) (base=0, range=1, wrmask=x, component=0, src_type=float32, io location=VARYING_SLOT_VAR0 slots=1, xfb(), xfb2())
                // succs: b1
    block b1:
}}
"
    );
    Snapshot::Nir(Box::new(text::read(&source).expect("a shader")))
}
