//! With the feature `z3`, looks for the library: the linker would complain about it only at the end of the build.

#[cfg(feature = "z3")]
#[path = "build/z3.rs"]
mod z3;

fn main() {
    println!("cargo::rerun-if-changed=build");
    #[cfg(feature = "z3")]
    z3::require();
}
