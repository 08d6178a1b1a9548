// Divisions and remainders of signed integers, and shifts.
@group(0) @binding(0) var<storage, read> a: array<vec2<i32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<i32>>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x + 8u * id.y;
    let x = a[i].x;
    let y = a[i].y;
    out[i] = vec4(x / y, x % y, x >> (id.x & 31u), abs(x) - clamp(y, -7, 7));
}
