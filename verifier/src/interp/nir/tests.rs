//! Small shaders with known results.
