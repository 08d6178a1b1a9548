// Operations on bits.
@group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = data[id.x];
    data[id.x] = vec4(
        countOneBits(v.x) + reverseBits(v.y),
        firstLeadingBit(v.z) ^ firstTrailingBit(v.w),
        extractBits(v.x, v.y & 15u, 7u),
        insertBits(v.z, v.w, 5u, 9u),
    );
}
