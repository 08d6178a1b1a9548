// A fragment shader with a loop over samples.
@group(0) @binding(0) var source: texture_2d<f32>;
@group(0) @binding(1) var source_sampler: sampler;

@fragment
fn main(@location(0) uv: vec2<f32>, @builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    let step = 1.0 / vec2<f32>(textureDimensions(source));
    var sum = vec4<f32>();
    for (var i = -2; i <= 2; i++) {
        sum += textureSampleLevel(source, source_sampler, uv + f32(i) * step, 0.0);
    }
    return sum * 0.2 + fract(at) * 0.01;
}
