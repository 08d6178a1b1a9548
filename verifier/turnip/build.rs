//! Exports the functions of `kernel.rs` from `ir3-turnip`, so that the driver calls them instead of those of the C
//! library and of libdrm.

const EXPORTED: [&str; 10] = [
    "drmGetDevices2",
    "drmGetDevices",
    "drmGetDevice2",
    "drmFreeDevice",
    "drmFreeDevices",
    "open",
    "open64",
    "stat",
    "stat64",
    "ioctl",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        for name in EXPORTED {
            println!("cargo::rustc-link-arg-bin=ir3-turnip=-Wl,--export-dynamic-symbol={name}");
        }
    }
}
