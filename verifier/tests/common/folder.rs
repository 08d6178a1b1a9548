//! Temporary folders, and failures for them.

use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_harness::case::{Case, ProgramOrigin};
use ir3_harness::reduce::Failure;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::planted_bugs;
use ir3_programs::seeds::{env_seeds, program_seed};
use ir3_semantics::environment::env::Env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command in a folder, without input: of `ir3-selftest` if that is one of the words, otherwise of `ir3-equiv`.
pub fn command<'a>(folder: &Path, words: impl IntoIterator<Item = &'a str>) -> Command {
    let (names, arguments): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|&word| word == "ir3-selftest");
    let program = if names.is_empty() { env!("CARGO_BIN_EXE_ir3-equiv") } else { env!("CARGO_BIN_EXE_ir3-selftest") };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs a [`command`]: the exit code, and both outputs.
pub fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(folder, arguments.iter().copied()).output().expect("our own program");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

/// Writes a shell script that can be run.
///
/// Another process writes it: a child that another test starts would inherit a file that is open for writing here, and
/// until that child runs its program, the system refuses to run the file (`ETXTBSY`).
pub fn write_script(path: &Path, text: &str) {
    let mut writer = Command::new("sh");
    let writer = writer.args(["-c", "cat >\"$0\" && chmod +x \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("a shell");
    write!(writer.stdin.take().expect("a pipe"), "#!/bin/sh\n{text}\n").expect("a script");
    assert!(writer.wait().expect("its end").success());
}

/// A folder that is removed at the end of its test.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ir3-equiv-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The first random program of a profile that fails.
fn failing(target: Target, plant: Option<&'static planted_bugs::PlantedBug>, profiles: &[Profile]) -> Case {
    let found = (0..400u64).find_map(|number| {
        let seed = program_seed(5, number);
        let profile = profiles[(number % profiles.len() as u64) as usize];
        let shader = generator::from_seed(seed, profile, Features::ALL).shader;
        let envs: Vec<Env> = env_seeds(seed, 1).into_iter().map(Env::from_seed).collect();
        let origin = ProgramOrigin::Seed { seed, profile };
        let case = Case::find(shader, target, Options::default(), plant, &envs, origin)?;
        let wanted = matches!(case.symptom.failure, Failure::Refused { .. }) == plant.is_none();
        (wanted && case.program.instruction_count() > 40).then_some(case)
    });
    found.expect("a program of 400 that fails")
}

/// A random program that the compiler refuses for this GPU.
pub fn refused() -> Case {
    failing(Target::by_name("a306").expect("a GPU"), None, &[Profile::Memory])
}

/// A random program in which a planted bug is found.
pub fn planted(name: &str) -> Case {
    planted_in(name, &Profile::SHAPED)
}

/// A random program of these profiles in which a planted bug is found.
pub fn planted_in(name: &str, profiles: &[Profile]) -> Case {
    let plant = planted_bugs::by_name(name).unwrap_or_else(|| panic!("there is no bug {name}"));
    failing(Target::default(), Some(plant), profiles)
}
