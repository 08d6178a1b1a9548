// Matrices and structures in uniform and storage buffers, with a computed index.
struct Body {
    position: vec3<f32>,
    mass: f32,
    transform: mat3x3<f32>,
}

@group(0) @binding(0) var<uniform> view: mat4x4<f32>;
@group(1) @binding(0) var<storage, read_write> bodies: array<Body>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let body = bodies[id.x];
    let moved = view * vec4(body.transform * body.position, 1.0);
    bodies[id.x].position = moved.xyz / max(moved.w, 0.001) * sqrt(body.mass);
}
