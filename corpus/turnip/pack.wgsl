// Conversions between floats of 32 bits and packed ones.
@group(0) @binding(0) var<storage, read> colors: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> packed: array<vec4<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let c = colors[id.x];
    packed[id.x] = vec4(pack4x8unorm(c), pack2x16float(c.xy), pack2x16snorm(c.zw), u32(clamp(c.x, 0.0, 255.0)));
}
