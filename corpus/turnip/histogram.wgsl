// Atomic operations on shared memory and on a buffer.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 16>;

var<workgroup> local: array<atomic<u32>, 16>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    if lane < 16u {
        atomicStore(&local[lane], 0u);
    }
    workgroupBarrier();
    atomicAdd(&local[data[id.x] & 15u], 1u);
    workgroupBarrier();
    if lane < 16u {
        atomicAdd(&bins[lane], atomicLoad(&local[lane]));
    }
}
