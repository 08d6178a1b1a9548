// A loop whose length depends on the data, with a division and a break.
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var n = numbers[id.x];
    var steps = 0u;
    while n > 1u {
        n = select(3u * n + 1u, n / 2u, n % 2u == 0u);
        steps += 1u;
        if steps > 1000u {
            break;
        }
    }
    numbers[id.x] = steps;
}
