// An array of one invocation with computed indices.
@group(0) @binding(0) var<storage, read> order: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var stack: array<u32, 12>;
    var top = 0u;
    for (var i = 0u; i < 12u; i++) {
        let next = order[id.x * 12u + i];
        if (next & 1u) == 0u && top > 0u {
            top -= 1u;
        } else {
            stack[top] = next;
            top += 1u;
        }
    }
    var sum = 0u;
    for (var i = 0u; i < top; i++) {
        sum = sum * 31u + stack[i];
    }
    out[id.x] = sum;
}
