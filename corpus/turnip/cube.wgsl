// A fragment shader with a cube texture, an array of textures, and a comparison with depths.
@group(0) @binding(0) var sky: texture_cube<f32>;
@group(0) @binding(1) var layers: texture_2d_array<f32>;
@group(0) @binding(2) var depths: texture_depth_2d;
@group(0) @binding(3) var linear: sampler;
@group(0) @binding(4) var compare: sampler_comparison;

@fragment
fn main(@location(0) way: vec3<f32>, @location(1) uv: vec2<f32>) -> @location(0) vec4<f32> {
    let shadow = textureSampleCompare(depths, compare, uv, way.z);
    let layer = textureSample(layers, linear, uv, i32(way.x * 4.0));
    return textureSample(sky, linear, way) * shadow + layer;
}
