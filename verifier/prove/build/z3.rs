//! Looks for Z3's library as `z3-sys` does: by pkg-config, or else as the linker finds it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

/// Instructions for the user.
const MESSAGE: &str = "\
Z3 was not found: neither pkg-config nor the linker knows a library `z3`.
Install it:
    Debian, Ubuntu:  sudo apt install libz3-dev
    Fedora:          sudo dnf install z3-devel
    Homebrew:        brew install z3
If it is in a folder that the linker does not search, name that: Z3_LIBRARY_PATH_OVERRIDE=/path/to/lib
Or build without it: cargo build --no-default-features --features cli
    The interpreter and the register checker are complete then; the engine `smt` proves on terms alone.
";

/// Ends the build with a message if there is no Z3.
pub fn require() {
    for variable in ["Z3_LIBRARY_PATH_OVERRIDE", "LIBRARY_PATH", "PKG_CONFIG_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let known = pkg_config::Config::new().cargo_metadata(false).probe("z3").is_ok();
    if !known && !links() {
        for line in MESSAGE.lines() {
            println!("cargo::error={line}");
        }
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
