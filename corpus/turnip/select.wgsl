// Branches in branches, and a switch.
@group(0) @binding(0) var<storage, read_write> data: array<i32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var x = data[id.x];
    switch x & 3 {
        case 0: {
            x = x * 5;
        }
        case 1, 2: {
            if x > 100 {
                x = x - 100;
            } else if x < -100 {
                x = x + 100;
            }
        }
        default: {
            x = -x;
        }
    }
    data[id.x] = x;
}
