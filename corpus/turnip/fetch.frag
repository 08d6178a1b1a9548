#version 450
// A fragment shader that samples and fetches texels, and writes two colors.
layout(location = 0) in vec2 at;
layout(location = 1) flat in int layer;
layout(location = 0) out vec4 first;
layout(location = 1) out vec4 second;
layout(set = 0, binding = 0) uniform texture2D source;
layout(set = 0, binding = 1) uniform sampler nearest;

void main() {
    first = textureLod(sampler2D(source, nearest), at, 1.0);
    second = texelFetch(sampler2D(source, nearest), ivec2(at * 16.0), layer & 3);
}
