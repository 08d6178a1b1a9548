#version 450
// A fragment shader with a loop that ends early.
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 color;

void main() {
    vec2 z = vec2(0.0);
    int i = 0;
    for (; i < 64; i++) {
        if (dot(z, z) > 4.0) {
            break;
        }
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + at;
    }
    color = vec4(float(i) / 64.0, z, 1.0);
}
