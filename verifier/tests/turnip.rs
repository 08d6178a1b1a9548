//! Shaders on the command line: without a driver, and with that of `ci/stock-mesa`, where it and the worker are.

use crate::common::folder::{Folder, run};
use ir3_compiler::target::Target;
use ir3_programs::mesa::shader::shaders_of;
use ir3_programs::turnip::{Driver, Kind, Setup, Worker, WorkerError};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn shader(name: &str) -> PathBuf {
    root().join("corpus/turnip").join(name)
}

/// The driver that `ci/stock-mesa` has unpacked; `None` if it is missing.
fn stock(gpu: &str) -> Option<Worker> {
    let library = root().join("target/stock-mesa/usr/lib/x86_64-linux-gnu/libvulkan_freedreno.so");
    if !library.is_file() {
        eprintln!("no target/stock-mesa: nothing is tested (`ci/stock-mesa` unpacks it)");
        return None;
    }
    let target = Target::by_name(gpu).expect("a GPU");
    match Worker::start(&Setup::new(Driver { library }, target)) {
        Ok(worker) => Some(worker),
        Err(WorkerError::NoDriver(why)) => {
            eprintln!("nothing is tested: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn without_a_driver_the_error_names_the_package() {
    let folder = Folder::new("turnip-none");
    let shader = shader("fill.wgsl").canonicalize().expect("the corpus");
    let shader = shader.to_str().expect("a path");
    for command in ["mesa", "verify", "turnip"] {
        let (code, text) = run(folder.path(), &[command, "--driver", "/nowhere/driver.so", shader]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("mesa-vulkan-drivers") && text.contains("ci/stock-mesa"), "{command}: {text}");
    }
}

#[test]
fn a_log_of_the_stock_driver_has_all_sections_and_the_words() {
    let Some(mut worker) = stock("a660") else { return };
    for (name, programs) in [("reduce.wgsl", 1), ("push.comp", 1), ("fractal.frag", 1), ("lit.wgsl", 3)] {
        let end = worker.compile(&shader(name)).expect("an answer");
        assert_eq!((end.kind, &*end.detail), (Kind::Compiled, ""), "{name}");
        assert_eq!((end.words.listed, end.words.missing, end.words.ambiguous), (programs, 0, 0), "{name}");
        let shaders = shaders_of(Path::new(name), &end.log);
        assert_eq!(shaders.len(), programs, "{name}");
        for shader in shaders {
            assert!(shader.broken.is_empty() && shader.nir.is_some() && !shader.passes.is_empty(), "{name}");
            assert!(shader.assembly.is_some() && shader.statistics.is_some() && shader.listing.is_some(), "{name}");
            // The GPU is that of the log's first line.
            assert_eq!(shader.target(None).name, "a660");
        }
    }
}

/// A vertex and a fragment shader are one pipeline, from two files or from one; one stage alone is no pipeline.
#[test]
fn shaders_are_linked() {
    let Some(mut worker) = stock("a660") else { return };
    let stages = |files: &[&str], worker: &mut Worker| {
        let files: Vec<PathBuf> = files.iter().map(|name| shader(name)).collect();
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let end = worker.link(&files).expect("an answer");
        (end.kind, shaders_of(Path::new("linked"), &end.log).len())
    };
    // The vertex shader has a variant for binning.
    assert_eq!(stages(&["wave.vert", "fractal.frag"], &mut worker), (Kind::Compiled, 3));
    assert_eq!(stages(&["lit.wgsl"], &mut worker), (Kind::Compiled, 3));
    assert_eq!(stages(&["wave.vert"], &mut worker), (Kind::Unsupported, 0));
}

#[test]
fn a_driver_is_fuzzed_end_to_end() {
    if stock("a660").is_none() {
        return;
    }
    let folder = Folder::new("turnip-fuzz");
    let libraries = root().join("target/stock-mesa/usr/lib/x86_64-linux-gnu").canonicalize().expect("the driver");
    let libraries = libraries.to_str().expect("a path");
    let arguments = ["fuzz", "--turnip", "--driver", libraries, "--gpu", "a660", "--seed", "1", "--profile", "alu"];
    let (code, text) =
        run(folder.path(), &[&arguments[..], &["--programs", "3", "--from", "1", "--jobs", "1"]].concat());
    assert!(matches!(code, Some(0 | 3)), "{text}");
    assert!(text.contains("Turnip Adreno (TM) 660") && text.contains("3 programs"), "{text}");
    // One boundary a shader: nir and its final code.
    let boundaries = text.lines().find_map(|line| line.strip_prefix("3 programs, ")).expect("a summary");
    assert!(boundaries.starts_with("1 ") || boundaries.starts_with("2 ") || boundaries.starts_with("3 "), "{text}");
}

#[test]
fn the_options_of_a_driver_need_one() {
    let folder = Folder::new("turnip-options");
    let (code, text) = run(folder.path(), &["fuzz", "--programs", "1", "--driver", "/nowhere/driver.so"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--turnip"), "{text}");
}
