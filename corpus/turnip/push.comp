#version 450
// A compute shader with push constants and a specialisation constant.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer Data {
    uint values[];
};
layout(push_constant) uniform Push {
    uint count;
    uint factor;
    vec4 scale;
} push;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.count) {
        return;
    }
    values[i] = values[i] * push.factor + uint(push.scale.y * 10.0);
}
