// A vertex shader and a fragment shader with lighting, a texture, and a discard.
struct Frame {
    view: mat4x4<f32>,
    light: vec4<f32>,
}

struct Vertex {
    @builtin(position) position: vec4<f32>,
    @location(0) normal: vec3<f32>,
    @location(1) uv: vec2<f32>,
    @location(2) @interpolate(flat) kind: u32,
}

@group(0) @binding(0) var<uniform> frame: Frame;
@group(0) @binding(1) var color: texture_2d<f32>;
@group(0) @binding(2) var color_sampler: sampler;

@vertex
fn vertex(@location(0) at: vec3<f32>, @location(1) normal: vec3<f32>, @builtin(vertex_index) index: u32) -> Vertex {
    var out: Vertex;
    out.position = frame.view * vec4(at, 1.0);
    out.normal = normalize(normal);
    out.uv = at.xy * 0.5 + 0.5;
    out.kind = index & 3u;
    return out;
}

@fragment
fn fragment(in: Vertex) -> @location(0) vec4<f32> {
    let texel = textureSample(color, color_sampler, in.uv);
    if texel.a < 0.5 {
        discard;
    }
    let light = max(dot(normalize(in.normal), frame.light.xyz), 0.0);
    return vec4(texel.rgb * light, f32(in.kind) * 0.25);
}
