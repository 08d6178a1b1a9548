//! The command line, and the loop over modules.

#![allow(unsafe_code)]

use crate::child::{self, Ended, Limits};
use crate::device::Driver;
use crate::module::Module;
use crate::outcome::{Kind, Outcome};
use crate::text::Language;
use crate::{chips, kernel, pipeline};
use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str =
    "usage: ir3-turnip --driver PATH [--gpu a660 | --gpu 0x06060001] [--time SECONDS] [--memory MIB] [--output MIB]
                  [--robust] [--set NAME=VALUE]… [--spec-constant NUMBER=VALUE]… [--verbose] [PATH…]";

/// Variables of Mesa that change its output or its compilation: an answer depends on the command line alone.
const FOREIGN: [&str; 10] = ["MESA_", "IR3_", "TU_", "FD_", "NIR_", "VK_", "SPIRV_", "DRI_", "LIBGL_", "ADRENO_"];

struct Options {
    driver: PathBuf,
    gpu: String,
    limits: Limits,
    is_robust: bool,
    is_verbose: bool,
    /// Variables of the environment, for the driver.
    set: Vec<(String, String)>,
    /// Specialisation constants of modules.
    constants: Vec<(u32, String)>,
    paths: Vec<PathBuf>,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> Result<Self, String> {
        let mut options = Self {
            driver: PathBuf::new(),
            gpu: "a660".to_owned(),
            limits: Limits { time: Duration::from_secs(20), memory: 4 << 30, output: 64 << 20 },
            is_robust: false,
            is_verbose: false,
            set: Vec::new(),
            constants: Vec::new(),
            paths: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let name = argument.to_string_lossy().into_owned();
            if !name.starts_with("--") {
                options.paths.push(argument.into());
                continue;
            }
            match &*name {
                "--robust" => options.is_robust = true,
                "--verbose" => options.is_verbose = true,
                "--driver" | "--gpu" | "--time" | "--memory" | "--output" | "--set" | "--spec-constant" => {
                    let value = arguments.next().ok_or_else(|| format!("{name}: found no value"))?;
                    options.set_value(&name, &value)?;
                }
                _ => return Err(format!("{name}: no such option\n{USAGE}")),
            }
        }
        if options.driver.as_os_str().is_empty() {
            return Err(format!("--driver is missing\n{USAGE}"));
        }
        Ok(options)
    }

    fn set_value(&mut self, name: &str, value: &OsStr) -> Result<(), String> {
        let text = value.to_string_lossy();
        let number = || text.parse::<u32>().ok().filter(|it| *it > 0).ok_or_else(|| format!("{name}: found `{text}`"));
        match name {
            "--driver" => self.driver = value.into(),
            "--gpu" => self.gpu = text.into_owned(),
            "--time" => {
                let seconds = text.parse::<f64>().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
                self.limits.time =
                    seconds.filter(|it| !it.is_zero()).ok_or_else(|| format!("{name}: found `{text}`"))?;
            }
            "--memory" => self.limits.memory = u64::from(number()?) << 20,
            "--output" => self.limits.output = (number()? as usize) << 20,
            "--spec-constant" => {
                let pair = text.split_once('=').and_then(|(number, value)| Some((number.parse().ok()?, value)));
                let (number, value): (u32, _) =
                    pair.ok_or_else(|| format!("{name}: found `{text}`, expected NUMBER=VALUE"))?;
                self.constants.push((number, value.to_owned()));
            }
            _ => {
                let pair = text.split_once('=').filter(|(variable, _)| !variable.is_empty());
                let (variable, value) = pair.ok_or_else(|| format!("{name}: found `{text}`, expected NAME=VALUE"))?;
                self.set.push((variable.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    /// Sets the environment of the driver.
    fn set_environment(&self) {
        let foreign = std::env::vars_os().map(|(name, _)| name);
        let foreign: Vec<_> =
            foreign.filter(|name| FOREIGN.iter().any(|it| name.as_bytes().starts_with(it.as_bytes()))).collect();
        let ours = [("MESA_SHADER_CACHE_DISABLE", "1"), ("IR3_SHADER_DEBUG", "vs,tcs,tes,gs,fs,cs,optmsgs")];
        // SAFETY: this process has one thread, as the driver is not loaded yet.
        unsafe {
            foreign.iter().for_each(|name| std::env::remove_var(name));
            ours.iter().for_each(|(name, value)| std::env::set_var(name, value));
            self.set.iter().for_each(|(name, value)| std::env::set_var(name, value));
        }
    }
}

/// The program.
pub fn main() -> ExitCode {
    let options = match Options::read(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(why) => return failed(&why),
    };
    options.set_environment();
    let driver = match open(&options) {
        Ok(driver) => driver,
        Err(why) => return failed(&why),
    };
    let worked = match options.paths.is_empty() {
        true => serve(&driver, &options).map(|()| ExitCode::SUCCESS),
        false => print(&driver, &options),
    };
    worked.unwrap_or_else(|error| failed(&error.to_string()))
}

/// Reports the error that stops the program, and ends it.
fn failed(why: &str) -> ExitCode {
    // Its reader may be gone.
    let _ = writeln!(io::stdout(), "failed {}", why.split_whitespace().collect::<Vec<_>>().join(" "));
    eprintln!("ir3-turnip: {why}");
    ExitCode::from(2)
}

fn open(options: &Options) -> Result<Driver, String> {
    kernel::create(chips::chip(&options.gpu)?)?;
    let open = || Driver::open(&options.driver, options.is_robust);
    if options.is_verbose {
        return open();
    }
    let (driver, text) = child::aside(open).map_err(|error| error.to_string())?;
    driver.map_err(|why| {
        let text = String::from_utf8_lossy(&text);
        match text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            Some(last) => format!("{why} (the driver: {last})"),
            None => why,
        }
    })
}

/// The heads of sections of a shader in a log.
const HEADS: [&[u8]; 3] = [b"Native code for", b"NIR (", b"AFTER: "];

/// Returns true if a log has a shader.
fn has_shader(log: &[u8]) -> bool {
    HEADS.iter().any(|head| log.windows(head.len()).any(|bytes| bytes == *head))
}

/// Compiles a file, or files as one pipeline: each of their paths has a tab after it.
fn answer(driver: &Driver, options: &Options, line: &OsStr) -> io::Result<Ended> {
    let is_linked = line.as_bytes().contains(&b'\t');
    let paths = line.as_bytes().split(|byte| *byte == b'\t').filter(|path| !path.is_empty() || !is_linked);
    let paths: Vec<&Path> = paths.map(|path| Path::new(OsStr::from_bytes(path))).collect();
    let mut files = Vec::new();
    for path in paths {
        match std::fs::read(path) {
            Ok(bytes) => files.push((path, bytes)),
            Err(error) => {
                let outcome = Outcome::new(Kind::Unreadable, error.to_string());
                return Ok(Ended { outcome, log: Vec::new(), data: Vec::new() });
            }
        }
    }
    let mut ended = child::run(&options.limits, || {
        let mut modules = Vec::new();
        for (path, bytes) in files {
            let bytes = match Language::of(path) {
                Some(language) => translate(language, path, &bytes)?,
                None => bytes,
            };
            let module = Module::read(&bytes, &options.constants);
            modules.push(module.map_err(|why| Outcome::new(Kind::Invalid, why))?);
        }
        match &modules[..] {
            [module] if !is_linked => pipeline::compile(driver, module),
            modules => pipeline::link(driver, modules),
        }
    })?;
    if ended.outcome.kind == Kind::Compiled && !has_shader(&ended.log) {
        ended.outcome = Outcome::new(Kind::Silent, "no shader in its output");
    }
    Ok(ended)
}

/// Translates a text. The log is naga's error message.
fn translate(language: Language, path: &Path, bytes: &[u8]) -> Result<Vec<u8>, Outcome> {
    let untranslated = |why: &str| Outcome::new(Kind::Untranslated, why);
    let text = str::from_utf8(bytes).map_err(|error| untranslated(&error.to_string()))?;
    // A translator that panics refuses the text; the hook has printed the message.
    let result = panic::catch_unwind(AssertUnwindSafe(|| language.translate(path, text)));
    match result {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err((outcome, whole))) => {
            eprint!("{whole}");
            Err(outcome)
        }
        Err(panic) => Err(untranslated(&format!("naga: a panic: {}", child::text_of(&*panic)))),
    }
}

/// Answers for the paths on standard input.
fn serve(driver: &Driver, options: &Options) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "ready {}", driver.name)?;
    out.flush()?;
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        let Ended { outcome, log, data } = answer(driver, options, OsStr::from_bytes(&line))?;
        writeln!(out, "{} {} {} {}", outcome.kind.name(), log.len(), data.len(), outcome.detail)?;
        out.write_all(&log)?;
        out.write_all(&data)?;
        out.flush()?;
    }
    Ok(())
}

/// Prints the logs of the paths on the command line.
fn print(driver: &Driver, options: &Options) -> io::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for path in &options.paths {
        let Ended { outcome, log, .. } = answer(driver, options, path.as_os_str())?;
        io::stdout().write_all(&log)?;
        if outcome.kind != Kind::Compiled {
            eprintln!("{}: {}: {}", path.display(), outcome.kind.name(), outcome.detail);
            code = ExitCode::from(1);
        }
    }
    Ok(code)
}
