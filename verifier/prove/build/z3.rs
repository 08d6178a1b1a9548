//! Looks for Z3's library as `z3-sys` does: by pkg-config, or else as the linker finds it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

/// The missing library and the alternatives, in one line.
const MESSAGE: &str = "Z3 was not found: install it (Debian, Ubuntu: `apt install libz3-dev`; Fedora: `dnf install z3-devel`; \
    Homebrew: `brew install z3`), or build it with the program (`--features vendored-z3`: needs cmake 3.26, Python 3 and GCC 13), \
    or build without it (`--no-default-features --features cli`: the interpreter and the register checker are complete, the \
    engine `smt` proves only what term rewriting proves)";

/// For a library in a folder of the user's.
const ELSEWHERE: &str = "If Z3 is in a folder that the linker does not search: Z3_LIBRARY_PATH_OVERRIDE=/path/to/lib";

/// Ends the build with a message if there is no Z3.
pub fn require() {
    for variable in ["Z3_LIBRARY_PATH_OVERRIDE", "LIBRARY_PATH", "PKG_CONFIG_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let known = pkg_config::Config::new().cargo_metadata(false).probe("z3").is_ok();
    if !known && !links() {
        println!("cargo::error={MESSAGE}");
        println!("cargo::error={ELSEWHERE}");
    }
}

/// Returns true if the linker finds the library.
fn links() -> bool {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let folder = variable("OUT_DIR");
    let source = Path::new(&folder).join("links.rs");
    let name = if variable("CARGO_CFG_TARGET_ENV") == "msvc" { "libz3" } else { "z3" };
    let text = "unsafe extern \"C\" { fn Z3_get_full_version(); }\nfn main() { unsafe { Z3_get_full_version() } }\n";
    if fs::write(&source, text).is_err() {
        return false;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition=2024", "--target", &variable("TARGET"), "-l", name, "--out-dir", &folder]).arg(source);
    rustc.args(variable("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| !flag.is_empty()));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.display()));
    }
    if let Some(path) = env::var_os("Z3_LIBRARY_PATH_OVERRIDE") {
        rustc.arg("-L").arg(path);
    }
    rustc.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
