// A vertex shader that reads its instance from a buffer.
@group(0) @binding(0) var<storage, read> instances: array<vec4<f32>>;

@vertex
fn main(
    @location(0) at: vec2<f32>,
    @builtin(instance_index) instance: u32,
    @builtin(vertex_index) vertex: u32,
) -> @builtin(position) vec4<f32> {
    let placed = instances[instance];
    let angle = placed.w + f32(vertex) * 0.1;
    return vec4(placed.xy + vec2(cos(angle), sin(angle)) * at * placed.z, 0.0, 1.0);
}
