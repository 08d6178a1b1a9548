// Loads from a texture, and stores to an image.
@group(0) @binding(0) var source: texture_2d<f32>;
@group(0) @binding(1) var target_image: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = vec2<i32>(id.xy);
    if any(id.xy >= textureDimensions(source)) {
        return;
    }
    let color = textureLoad(source, at, 0) + textureLoad(source, at + vec2(1, 0), 0);
    textureStore(target_image, at, 0.5 * color);
}
