//! The execution of jobs on a device.

#![allow(unsafe_code)]

use crate::job::{self, Job};
use crate::pipeline::Stage;
use crate::resources::{Objects, Place};
use ash::vk;
use ir3_turnip::device::Driver;
use ir3_turnip::module::Module;
use ir3_turnip::outcome::{Kind, Outcome};
use rspirv::spirv::Capability;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: ir3-vulkan --driver PATH [--device NAME|NUMBER] [--time SECONDS]";

/// The highest number of a capability of SPIR-V.
const MOST_CAPABILITY: u32 = 7000;

struct Options {
    driver: PathBuf,
    device: Option<String>,
    time: Duration,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut options = Self { driver: PathBuf::new(), device: None, time: Duration::from_secs(20) };
        while let Some(name) = arguments.next() {
            let name = name.to_string_lossy().into_owned();
            let value = arguments.next().ok_or_else(|| format!("{name}: found no value\n{USAGE}"))?;
            let text = value.to_string_lossy();
            match &*name {
                "--driver" => options.driver = (&value).into(),
                "--device" => options.device = Some(text.into_owned()),
                "--time" => {
                    let seconds = text.parse::<f64>().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
                    options.time =
                        seconds.filter(|it| !it.is_zero()).ok_or_else(|| format!("--time: found `{text}`"))?;
                }
                _ => return Err(format!("{name}: no such option\n{USAGE}")),
            }
        }
        match options.driver.as_os_str().is_empty() {
            true => Err(format!("--driver is missing\n{USAGE}")),
            false => Ok(options),
        }
    }
}

/// The program.
pub fn main() -> ExitCode {
    let served = Options::read(std::env::args_os().skip(1)).and_then(|options| {
        let device = Device::open(&options)?;
        serve(&device).map_err(|error| error.to_string())
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Its reader may be gone.
            let _ = writeln!(io::stdout(), "failed {}", why.split_whitespace().collect::<Vec<_>>().join(" "));
            eprintln!("ir3-vulkan: {why}");
            ExitCode::from(2)
        }
    }
}

fn serve(device: &Device) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "ready {}\n{}", device.driver.name, device.properties())?;
    out.flush()?;
    let mut input = io::stdin().lock();
    while let Some(job) = job::read(&mut input)? {
        let mut clock = Clock::start();
        let (outcome, words) = match device.execute(&job, &mut clock) {
            Ok((first, second)) if first == second => (Outcome::new(Kind::Executed, clock.text()), first),
            Ok((first, second)) => {
                let differ = first.iter().zip(&second).filter(|(a, b)| a != b).count();
                let why = format!("{differ} words of the second execution differ from the first");
                (Outcome::new(Kind::Unstable, why), [first, second].concat())
            }
            Err(outcome) => (outcome, Vec::new()),
        };
        writeln!(out, "{} {} {}", outcome.kind.name(), words.len() * 4, outcome.detail)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        out.write_all(&bytes)?;
        out.flush()?;
        if matches!(outcome.kind, Kind::Lost | Kind::Hung) {
            // SAFETY: ends the process without running what a driver whose device is of no use has registered for its
            // end.
            unsafe { libc::_exit(0) }
        }
    }
    Ok(())
}

/// The CPU time of the process for the pipeline of a job, for its two executions, and for all else, in microseconds.
struct Clock {
    last: u128,
    parts: [u128; 4],
}

impl Clock {
    const PIPELINE: usize = 0;
    const FIRST: usize = 1;
    const SECOND: usize = 2;
    const REST: usize = 3;

    fn start() -> Self {
        Self { last: cpu_time(), parts: [0; 4] }
    }

    /// Adds the time since the last call to a part.
    fn stop(&mut self, part: usize) {
        let now = cpu_time();
        self.parts[part] += now.saturating_sub(self.last);
        self.last = now;
    }

    fn text(&self) -> String {
        self.parts.map(|part| part.to_string()).join(" ")
    }
}

/// The CPU time of the process, in microseconds.
fn cpu_time() -> u128 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives until the end of the call. Without this clock it stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
    (seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())).as_micros()
}

/// A device that executes jobs.
pub struct Device {
    pub driver: Driver,
    queue: vk::Queue,
    pub commands: vk::CommandPool,
    /// The functions of transform feedback, if vertex shaders can be executed: they are captured, and store to
    /// buffers.
    pub feedback: Option<ash::ext::transform_feedback::Device>,
    time: Duration,
}

/// Names the call that failed.
pub fn failed(call: &str, error: vk::Result) -> Outcome {
    let kind = match error {
        vk::Result::ERROR_DEVICE_LOST => Kind::Lost,
        vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => Kind::Memory,
        vk::Result::TIMEOUT => Kind::Hung,
        _ => Kind::Refused,
    };
    Outcome::new(kind, format!("{call}: {error:?}"))
}

impl Device {
    fn open(options: &Options) -> Result<Self, String> {
        let driver = Driver::open_device(&options.driver, false, options.device.as_deref())?;
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(driver.family)
            .flags(vk::CommandPoolCreateFlags::TRANSIENT);
        // SAFETY: the device was made with one queue of this family, and the structure lives until the end of the call.
        let (queue, commands) = unsafe {
            (driver.device.get_device_queue(driver.family, 0), driver.device.create_command_pool(&info, None))
        };
        let commands = commands.map_err(|error| format!("vkCreateCommandPool: {error:?}"))?;
        let features = &driver.features;
        let captures = features.transform_feedback.transform_feedback != vk::FALSE
            && features.v13.dynamic_rendering != vk::FALSE
            && features.core.vertex_pipeline_stores_and_atomics != vk::FALSE;
        let feedback = captures.then(|| ash::ext::transform_feedback::Device::new(&driver.instance, &driver.device));
        Ok(Self { driver, queue, commands, feedback, time: options.time })
    }

    /// The properties that the meaning of a program depends on: `NAME=VALUE`, with a space between two. Modes of floats
    /// are lists of widths, capabilities a list of their numbers.
    pub fn properties(&self) -> String {
        let widths = |has: [bool; 3]| {
            let widths = [16, 32, 64].into_iter().zip(has).filter(|(_, has)| *has);
            widths.map(|(bits, _): (u32, _)| bits.to_string()).collect::<Vec<_>>().join(",")
        };
        let controls = self.driver.controls;
        let all = (0..MOST_CAPABILITY).filter(|&number| {
            Capability::from_u32(number).is_some_and(|capability| {
                // Numbers have several names: the enumeration has one of them.
                capability as u32 == number && self.driver.has(capability)
            })
        });
        let capabilities: Vec<String> = all.map(|number| number.to_string()).collect();
        format!(
            "subgroup-size={} to-even={} denormals={} specials={} reconverges={} draws={} captures={} capabilities={}",
            self.driver.subgroup_size,
            widths(controls.rounds_to_even),
            widths(controls.keeps_denormals),
            widths(controls.keeps_specials),
            self.driver.features.reconvergence.shader_maximal_reconvergence,
            u8::from(self.draws()),
            u8::from(self.feedback.is_some()),
            capabilities.join(",")
        )
    }

    /// Returns true if fragment shaders can be executed here: they are drawn without a render pass, and store to
    /// buffers.
    fn draws(&self) -> bool {
        let features = &self.driver.features;
        features.v13.dynamic_rendering != vk::FALSE && features.core.fragment_stores_and_atomics != vk::FALSE
    }

    /// Executes a job twice, from the same contents. Returns the contents of the resources that it may write, and of
    /// the colour attachments or the captured vertices, after each.
    fn execute(&self, job: &Job, clock: &mut Clock) -> Result<(Vec<u32>, Vec<u32>), Outcome> {
        let module = self.module(&job.module)?;
        let vertex = job.draw.as_ref().map(|draw| self.module(&draw.vertex)).transpose()?;
        let [entry] = &module.entries[..] else {
            return Err(Outcome::new(Kind::Unsupported, "a module without one entry point"));
        };
        let stage = Stage::of(entry.model, vertex.as_ref(), job.capture.is_some())?;
        if matches!(stage, Stage::Fragment { .. }) && !self.draws() {
            return Err(Outcome::new(Kind::Unsupported, "the device does not draw, or has no stores of fragments"));
        }
        if matches!(stage, Stage::Vertex) && self.feedback.is_none() {
            return Err(Outcome::new(Kind::Unsupported, "the device captures no vertices, or has no stores of them"));
        }
        let bindings = module.bindings(&[entry]).map_err(|why| Outcome::new(Kind::Invalid, why))?;
        let mut objects = Objects::new(&self.driver.device);
        clock.stop(Clock::REST);
        self.pipeline(&mut objects, job, &module, stage, &bindings)?;
        clock.stop(Clock::PIPELINE);
        let places = self.memory(&mut objects, job, &bindings)?;
        self.images(&mut objects, job)?;
        let sets = self.descriptors(&mut objects, job, &bindings, &places)?;
        let commands = self.record(&objects, job, &sets, module.push_constants, &places)?;
        // SAFETY: the structure lives until the end of the call.
        let fence = unsafe { self.driver.device.create_fence(&vk::FenceCreateInfo::default(), None) };
        objects.fence = fence.map_err(|error| failed("vkCreateFence", error))?;
        clock.stop(Clock::REST);
        let submit = || self.submit(&objects, job, &places, commands);
        let both = submit().and_then(|first| {
            clock.stop(Clock::FIRST);
            Ok((first, submit()?))
        });
        let (first, second) = match both {
            Ok(both) => both,
            Err(outcome) => {
                // The device may still execute: nothing that it uses is destroyed, and the process ends.
                std::mem::forget(objects);
                return Err(outcome);
            }
        };
        clock.stop(Clock::SECOND);
        // SAFETY: the device has executed the commands, and the pool made them.
        unsafe { self.driver.device.free_command_buffers(self.commands, &[commands]) };
        drop(objects);
        clock.stop(Clock::REST);
        Ok((first, second))
    }

    /// Reads a module, whose capabilities the device has.
    fn module(&self, words: &[u32]) -> Result<Module, Outcome> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let module = Module::read(&bytes, &[]).map_err(|why| Outcome::new(Kind::Invalid, why))?;
        match module.capabilities.iter().find(|capability| !self.driver.has(**capability)) {
            Some(lacking) => Err(Outcome::new(Kind::Unsupported, format!("the device has no capability {lacking:?}"))),
            None => Ok(module),
        }
    }

    /// Sets the contents of all resources, executes the commands, and returns the contents of those that may be written
    /// and of the colour attachments.
    fn submit(
        &self,
        objects: &Objects<'_>,
        job: &Job,
        places: &[Place],
        commands: vk::CommandBuffer,
    ) -> Result<Vec<u32>, Outcome> {
        let device = &self.driver.device;
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: the memory is visible to the host, and is not mapped.
        let mapped = unsafe { device.map_memory(objects.memory, 0, vk::WHOLE_SIZE, flags) };
        let mapped = mapped.map_err(|error| failed("vkMapMemory", error))?.cast::<u8>();
        // SAFETY of both: the range lies in the buffer, whose memory is mapped, is aligned for words, and nothing else
        // accesses it, as the device executes nothing at this time.
        let of = |place: &Place| (mapped.wrapping_add(place.offset as usize).cast::<u32>(), place.bytes as usize / 4);
        let resources = job.resources.iter().map(|it| &it.words[..]);
        let attributes = job.capture.iter().map(|capture| &capture.data[..]);
        let all = resources.chain([&[][..]]).chain(attributes).chain(std::iter::repeat(&[][..]));
        for (words, place) in all.zip(places) {
            let (first, count) = of(place);
            let into = unsafe { std::slice::from_raw_parts_mut(first, count) };
            into.fill(0);
            into[..words.len()].copy_from_slice(words);
        }
        let list = [commands];
        let submits = [vk::SubmitInfo::default().command_buffers(&list)];
        let time = u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the device made the fence and the commands, and the structures live until the end of the calls.
        let done = unsafe {
            device
                .queue_submit(self.queue, &submits, objects.fence)
                .and_then(|()| device.wait_for_fences(&[objects.fence], true, time))
                .and_then(|()| device.reset_fences(&[objects.fence]))
        };
        match done {
            Err(vk::Result::TIMEOUT) => {
                let what = format!("not done after {:.1} s", self.time.as_secs_f64());
                return Err(Outcome::new(Kind::Hung, what));
            }
            done => done.map_err(|error| failed("vkQueueSubmit", error))?,
        }
        let mut words = Vec::new();
        let written = job.resources.iter().zip(places).filter(|(it, _)| it.kind.is_written());
        let written = written.map(|(it, place)| (place, it.words.len()));
        // The attributes are no part of the answer.
        let attributes = usize::from(job.capture.is_some());
        let rest = places[job.resources.len() + 1 + attributes..].iter();
        let attachments = rest.map(|place| (place, place.bytes as usize / 4));
        for (place, count) in written.chain(attachments) {
            let (first, _) = of(place);
            words.extend_from_slice(unsafe { std::slice::from_raw_parts(first, count) });
        }
        // SAFETY: the memory is mapped.
        unsafe { device.unmap_memory(objects.memory) };
        Ok(words)
    }
}
