// A sum over a workgroup in shared memory, with a barrier in a loop.
@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    partial[lane] = values[group.x * 64u + lane];
    for (var step = 32u; step > 0u; step = step / 2u) {
        workgroupBarrier();
        if lane < step {
            partial[lane] += partial[lane + step];
        }
    }
    if lane == 0u {
        sums[group.x] = partial[0];
    }
}
