#version 450
// A vertex shader with trigonometry and several outputs.
layout(location = 0) in vec3 at;
layout(location = 1) in vec2 uv;
layout(location = 0) out vec2 out_uv;
layout(location = 1) out vec3 out_normal;
layout(set = 0, binding = 0) uniform Frame {
    mat4 view;
    float time;
};

void main() {
    float height = sin(at.x + time) * cos(at.z - time);
    out_uv = uv;
    out_normal = normalize(vec3(-cos(at.x + time), 1.0, sin(at.z - time)));
    gl_Position = view * vec4(at.x, height, at.z, 1.0);
}
