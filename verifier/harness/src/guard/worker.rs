//! A worker, from inside: it limits itself and compiles the programs of its standard input.

use super::process::OUT_OF_TIME;
use crate::check::compile_stages;
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Feature, Features, Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::planted_bugs::{self, PlantedBug};
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::watch;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, BufRead, Read, Write};
use std::process;
use std::time::Duration;

/// The arguments of a worker, after its subcommand.
#[derive(Debug)]
pub struct Arguments {
    /// The GPU.
    pub target: Target,
    /// The compiler options.
    pub options: Options,
    /// The limit of its address space.
    pub memory: u64,
    /// The planted bug.
    pub plant: Option<&'static PlantedBug>,
}

impl Arguments {
    /// Reads the arguments as the guard writes them.
    ///
    /// # Errors
    /// If there are others: only this program starts workers.
    pub fn parse(list: &[String]) -> Result<Self, String> {
        let wrong = |what: &str| format!("found {what}, expected the arguments of a worker");
        let [gpu, features, skip, last, registers, allocator, memory, plant @ ..] = list else {
            return Err(wrong("too few"));
        };
        let feature = |name: &str| Feature::from_name(name).ok_or_else(|| wrong(name));
        let names = features.split(',').filter(|name| !name.is_empty());
        let options = Options {
            features: names.map(feature).collect::<Result<Features, _>>()?,
            skip: skip.parse()?,
            last: Stage::from_name(last).ok_or_else(|| wrong(last))?,
            registers: registers.parse().map_err(|_| wrong(registers))?,
            allocator: allocator.parse().map_err(|_| wrong(allocator))?,
            own_pass: None,
        };
        let plant = plant.first().map(|name| planted_bugs::by_name(name).ok_or_else(|| wrong(name))).transpose()?;
        Ok(Self {
            target: Target::by_name(gpu).map_err(|_| wrong(gpu))?,
            options,
            memory: memory.parse().map_err(|_| wrong(memory))?,
            plant,
        })
    }
}

/// Limits the address space of this process, within its current limit, and starts its watchdog.
///
/// # Errors
/// If the system refuses.
pub fn limit(memory: u64, time: Duration) -> io::Result<()> {
    let memory = Some(getrlimit(Resource::As).maximum.map_or(memory, |most| most.min(memory)));
    let all = Rlimit { current: memory, maximum: memory };
    setrlimit(Resource::As, all)?;
    // A crash is expected here: write no core file.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    watch::set_limit(time);
    watch::start(|| process::exit(OUT_OF_TIME));
    Ok(())
}

/// Compiles the programs of standard input until its end. For each, a line with its limit of time in milliseconds and
/// its length, then its text; the answer is a line for each stage when it begins, and `end`.
///
/// # Errors
/// If standard input or output fails, or has something else.
pub fn serve(arguments: &Arguments) -> io::Result<()> {
    limit(arguments.memory, Duration::MAX)?;
    // A stack as that of the threads of a campaign.
    std::thread::scope(|scope| {
        scope.spawn(|| programs(arguments)).join().unwrap_or_else(|_| Err(io::Error::other("a panic")))
    })
}

fn programs(arguments: &Arguments) -> io::Result<()> {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout());
    let mut line = String::new();
    loop {
        line.clear();
        if stdin.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let &[time, length] = &numbers[..] else { return Err(io::ErrorKind::InvalidData.into()) };
        let mut text = String::new();
        (&mut stdin).take(length).read_to_string(&mut text)?;
        let Ok(shader) = nir::text::read(&text) else {
            // It is not the compiler that fails.
            writeln!(stdout, "unreadable")?;
            continue;
        };
        watch::set_limit(Duration::from_millis(time));
        let Arguments { target, options, plant, .. } = arguments;
        // The result does not matter here.
        let _ = catch(|| {
            compile_stages(&shader, target, options, *plant, &mut |stage| {
                let _ = writeln!(stdout, "{stage}");
            });
        });
        writeln!(stdout, "end")?;
        stdout.flush()?;
    }
}
