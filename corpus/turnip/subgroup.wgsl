// Operations on subgroups: a sum, a ballot, and a broadcast.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = data[id.x];
    let sum = subgroupAdd(x);
    let odd = subgroupBallot((x & 1u) == 1u);
    data[id.x] = select(sum, countOneBits(odd.x), x == subgroupBroadcastFirst(x));
}
