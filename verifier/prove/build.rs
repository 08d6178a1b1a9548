//! With the feature `z3`, looks for the library: the linker would report its absence only at the end of the build.
//! A vendored Z3 is built by `z3-sys`.

#[cfg(all(feature = "z3", not(feature = "vendored-z3")))]
#[path = "build/z3.rs"]
mod z3;

fn main() {
    println!("cargo::rerun-if-changed=build");
    #[cfg(all(feature = "z3", not(feature = "vendored-z3")))]
    z3::require();
}
