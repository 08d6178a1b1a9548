//! The execution of jobs on a device.

#![allow(unsafe_code)]

use crate::job::{self, Job};
use ash::vk::{self, DescriptorType};
use ir3_turnip::device::Driver;
use ir3_turnip::module::{Binding, Module};
use ir3_turnip::outcome::{Kind, Outcome};
use rspirv::spirv::{Capability, ExecutionModel};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: ir3-vulkan --driver PATH [--device NAME|NUMBER] [--time SECONDS]";

/// Bytes of a buffer that a module declares and no job has: zeros.
const ABSENT: u64 = 1 << 16;
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
        let (outcome, words) = match device.execute(&job) {
            Ok((first, second)) if first == second => (Outcome::new(Kind::Executed, ""), first),
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
            // SAFETY: ends the process without running what a driver whose device is of no use has registered for its end.
            unsafe { libc::_exit(0) }
        }
    }
    Ok(())
}

/// A device that executes jobs.
pub struct Device {
    driver: Driver,
    queue: vk::Queue,
    commands: vk::CommandPool,
    time: Duration,
}

/// The objects of a job, which are destroyed with it.
struct Objects<'a> {
    device: &'a ash::Device,
    module: vk::ShaderModule,
    sets: Vec<vk::DescriptorSetLayout>,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    pool: vk::DescriptorPool,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    fence: vk::Fence,
}

impl Drop for Objects<'_> {
    fn drop(&mut self) {
        let device = self.device;
        // SAFETY: the device made all objects that are not null, and executes nothing that uses them: a device that does has ended the process.
        unsafe {
            device.destroy_fence(self.fence, None);
            device.destroy_descriptor_pool(self.pool, None);
            device.destroy_pipeline(self.pipeline, None);
            device.destroy_pipeline_layout(self.layout, None);
            self.sets.iter().for_each(|set| device.destroy_descriptor_set_layout(*set, None));
            device.destroy_shader_module(self.module, None);
            device.destroy_buffer(self.buffer, None);
            device.free_memory(self.memory, None);
        }
    }
}

/// The place of a descriptor's buffer in the memory of a job.
struct Place {
    offset: u64,
    bytes: u64,
}

/// Names the call that failed.
fn failed(call: &str, error: vk::Result) -> Outcome {
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
        Ok(Self { driver, queue, commands, time: options.time })
    }

    /// The properties that the meaning of a program depends on: `NAME=VALUE`, with a space between two. Modes of floats are lists of widths,
    /// capabilities a list of their numbers.
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
            "subgroup-size={} to-even={} denormals={} specials={} reconverges={} capabilities={}",
            self.driver.subgroup_size,
            widths(controls.rounds_to_even),
            widths(controls.keeps_denormals),
            widths(controls.keeps_specials),
            self.driver.features.reconvergence.shader_maximal_reconvergence,
            capabilities.join(",")
        )
    }

    /// Executes a job twice, from the same contents. Returns the contents of its storage buffers after each.
    fn execute(&self, job: &Job) -> Result<(Vec<u32>, Vec<u32>), Outcome> {
        let bytes: Vec<u8> = job.module.iter().flat_map(|word| word.to_le_bytes()).collect();
        let module = Module::read(&bytes, &[]).map_err(|why| Outcome::new(Kind::Invalid, why))?;
        if let Some(lacking) = module.capabilities.iter().find(|capability| !self.driver.has(**capability)) {
            return Err(Outcome::new(Kind::Unsupported, format!("the device has no capability {lacking:?}")));
        }
        let [entry] = &module.entries[..] else {
            return Err(Outcome::new(Kind::Unsupported, "a module without one entry point"));
        };
        if entry.model != ExecutionModel::GLCompute {
            return Err(Outcome::new(Kind::Unsupported, format!("an entry point of {:?}", entry.model)));
        }
        let bindings = module.bindings(&[entry]).map_err(|why| Outcome::new(Kind::Invalid, why))?;
        let device = &self.driver.device;
        let mut objects = Objects {
            device,
            module: vk::ShaderModule::null(),
            sets: Vec::new(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            pool: vk::DescriptorPool::null(),
            buffer: vk::Buffer::null(),
            memory: vk::DeviceMemory::null(),
            fence: vk::Fence::null(),
        };
        self.pipeline(&mut objects, &module, &bindings)?;
        let places = self.memory(&mut objects, job, &bindings)?;
        let sets = self.descriptors(&mut objects, job, &bindings, &places)?;
        let commands = self.record(&objects, job, &sets, module.push_constants)?;
        // SAFETY: the structure lives until the end of the call.
        let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) };
        objects.fence = fence.map_err(|error| failed("vkCreateFence", error))?;
        let submit = || self.submit(&objects, job, &places, commands);
        let both = submit().and_then(|first| Ok((first, submit()?)));
        let (first, second) = match both {
            Ok(both) => both,
            Err(outcome) => {
                // The device may still execute: nothing that it uses is destroyed, and the process ends.
                std::mem::forget(objects);
                return Err(outcome);
            }
        };
        // SAFETY: the device has executed the commands, and the pool made them.
        unsafe { device.free_command_buffers(self.commands, &[commands]) };
        Ok((first, second))
    }

    fn pipeline(
        &self,
        objects: &mut Objects<'_>,
        module: &Module,
        bindings: &BTreeMap<(u32, u32), Binding>,
    ) -> Result<(), Outcome> {
        let device = &self.driver.device;
        let info = vk::ShaderModuleCreateInfo::default().code(&module.words);
        // SAFETY: the words live until the end of the call. They may be no valid module: what the driver does then is a result.
        let words = unsafe { device.create_shader_module(&info, None) };
        objects.module = words.map_err(|error| failed("vkCreateShaderModule", error))?;
        let count = bindings.keys().map(|(set, _)| set.saturating_add(1)).max().unwrap_or_default();
        let most = self.driver.limits.max_bound_descriptor_sets;
        if count > most {
            return Err(Outcome::new(Kind::Unsupported, format!("set {}: the device has {most} sets", count - 1)));
        }
        for set in 0..count {
            let of_set = bindings.iter().filter(|((of, _), _)| *of == set).map(|((_, number), binding)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(*number)
                    .descriptor_type(binding.ty)
                    .descriptor_count(binding.count)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            });
            let of_set: Vec<_> = of_set.collect();
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&of_set);
            // SAFETY: the structures live until the end of the call.
            let layout = unsafe { device.create_descriptor_set_layout(&info, None) };
            objects.sets.push(layout.map_err(|error| failed("vkCreateDescriptorSetLayout", error))?);
        }
        let pushed = module.push_constants.next_multiple_of(4);
        if pushed > self.driver.limits.max_push_constants_size {
            return Err(Outcome::new(Kind::Unsupported, format!("{pushed} bytes of push constants")));
        }
        let range = [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(pushed)];
        let ranges = if pushed > 0 { &range[..] } else { &[] };
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&objects.sets).push_constant_ranges(ranges);
        // SAFETY: the structures live until the end of the call, and the device made the layouts of sets.
        let layout = unsafe { device.create_pipeline_layout(&info, None) };
        objects.layout = layout.map_err(|error| failed("vkCreatePipelineLayout", error))?;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(objects.module)
            .name(&module.entries[0].name);
        let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(objects.layout)];
        // SAFETY: the structures live until the end of the call, and the device made the objects.
        let pipelines = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
        match pipelines {
            Ok(pipelines) => objects.pipeline = pipelines[0],
            Err((_, error)) => return Err(failed("vkCreateComputePipelines", error)),
        }
        Ok(())
    }

    /// Allocates the memory of a job. Returns the places of its buffers, and after these the place of the buffer of zeros.
    fn memory(
        &self,
        objects: &mut Objects<'_>,
        job: &Job,
        bindings: &BTreeMap<(u32, u32), Binding>,
    ) -> Result<Vec<Place>, Outcome> {
        let limits = &self.driver.limits;
        let alignment =
            limits.min_storage_buffer_offset_alignment.max(limits.min_uniform_buffer_offset_alignment).max(16);
        let mut end = 0;
        let mut places = Vec::new();
        let sizes = job.buffers.iter().map(|buffer| buffer.words.len() as u64 * 4).chain([ABSENT]);
        for bytes in sizes {
            places.push(Place { offset: end, bytes: bytes.max(4) });
            end = (end + bytes.max(4)).next_multiple_of(alignment);
        }
        for buffer in &job.buffers {
            let most = match buffer.is_storage {
                true => limits.max_storage_buffer_range,
                false => limits.max_uniform_buffer_range,
            };
            if buffer.words.len() * 4 > most as usize {
                let what = format!("a buffer of {} bytes: the device has {most}", buffer.words.len() * 4);
                return Err(Outcome::new(Kind::Unsupported, what));
            }
            let expected =
                if buffer.is_storage { DescriptorType::STORAGE_BUFFER } else { DescriptorType::UNIFORM_BUFFER };
            if let Some(found) = bindings.get(&(buffer.set, buffer.binding)).filter(|found| found.ty != expected) {
                let what = format!(
                    "binding {} of set {} has a descriptor of type {}",
                    buffer.binding,
                    buffer.set,
                    found.ty.as_raw()
                );
                return Err(Outcome::new(Kind::Failed, what));
            }
        }
        let device = &self.driver.device;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::UNIFORM_BUFFER;
        let info = vk::BufferCreateInfo::default().size(end).usage(usage);
        // SAFETY: the structure lives until the end of the call.
        let buffer = unsafe { device.create_buffer(&info, None) };
        objects.buffer = buffer.map_err(|error| failed("vkCreateBuffer", error))?;
        // SAFETY: the device made the buffer, the instance has the physical device.
        let (needs, memory) = unsafe {
            (
                device.get_buffer_memory_requirements(objects.buffer),
                self.driver.instance.get_physical_device_memory_properties(self.driver.physical),
            )
        };
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let types = memory.memory_types_as_slice().iter().zip(0_u32..);
        let mut fitting = types
            .filter(|(it, number)| needs.memory_type_bits >> number & 1 != 0 && it.property_flags.contains(wanted));
        let Some((_, number)) = fitting.next() else {
            return Err(Outcome::new(Kind::Unsupported, "the device has no coherent memory for this buffer"));
        };
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(number);
        // SAFETY: the structure lives until the end of the call.
        let memory = unsafe { device.allocate_memory(&info, None) };
        objects.memory = memory.map_err(|error| failed("vkAllocateMemory", error))?;
        // SAFETY: the device made both, and the memory has the size that the buffer needs.
        let bound = unsafe { device.bind_buffer_memory(objects.buffer, objects.memory, 0) };
        bound.map_err(|error| failed("vkBindBufferMemory", error))?;
        Ok(places)
    }

    fn descriptors(
        &self,
        objects: &mut Objects<'_>,
        job: &Job,
        bindings: &BTreeMap<(u32, u32), Binding>,
        places: &[Place],
    ) -> Result<Vec<vk::DescriptorSet>, Outcome> {
        if objects.sets.is_empty() {
            return Ok(Vec::new());
        }
        let device = &self.driver.device;
        let mut sizes: BTreeMap<i32, u32> = BTreeMap::new();
        for ((set, number), binding) in bindings {
            if !matches!(binding.ty, DescriptorType::STORAGE_BUFFER | DescriptorType::UNIFORM_BUFFER) {
                let what = format!("a descriptor of type {} (set {set}, binding {number})", binding.ty.as_raw());
                return Err(Outcome::new(Kind::Unsupported, what));
            }
            *sizes.entry(binding.ty.as_raw()).or_default() += binding.count;
        }
        let sizes: Vec<vk::DescriptorPoolSize> = sizes
            .into_iter()
            .map(|(ty, count)| vk::DescriptorPoolSize { ty: DescriptorType::from_raw(ty), descriptor_count: count })
            .collect();
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(objects.sets.len() as u32).pool_sizes(&sizes);
        // SAFETY: the structures live until the end of the call.
        let pool = unsafe { device.create_descriptor_pool(&info, None) };
        objects.pool = pool.map_err(|error| failed("vkCreateDescriptorPool", error))?;
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(objects.pool).set_layouts(&objects.sets);
        // SAFETY: the structures live until the end of the call, and the device made the pool and the layouts.
        let sets = unsafe { device.allocate_descriptor_sets(&info) };
        let sets = sets.map_err(|error| failed("vkAllocateDescriptorSets", error))?;
        for ((set, number), binding) in bindings {
            for element in 0..binding.count {
                let is_it = |it: &job::Buffer| (it.set, it.binding, it.element) == (*set, *number, element);
                let place = &places[job.buffers.iter().position(is_it).unwrap_or(job.buffers.len())];
                let info = [vk::DescriptorBufferInfo::default()
                    .buffer(objects.buffer)
                    .offset(place.offset)
                    .range(place.bytes)];
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(sets[*set as usize])
                    .dst_binding(*number)
                    .dst_array_element(element)
                    .descriptor_type(binding.ty)
                    .buffer_info(&info);
                // SAFETY: the set has this binding, the buffer this range, and the structures live until the end of the call.
                unsafe { device.update_descriptor_sets(&[write], &[]) };
            }
        }
        Ok(sets)
    }

    fn record(
        &self,
        objects: &Objects<'_>,
        job: &Job,
        sets: &[vk::DescriptorSet],
        pushed: u32,
    ) -> Result<vk::CommandBuffer, Outcome> {
        let device = &self.driver.device;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.commands).command_buffer_count(1);
        // SAFETY: the device made the pool, and the structure lives until the end of the call.
        let commands = unsafe { device.allocate_command_buffers(&info) };
        let commands = commands.map_err(|error| failed("vkAllocateCommandBuffers", error))?[0];
        let most = self.driver.limits.max_compute_work_group_count;
        if job.groups.iter().zip(most).any(|(count, most)| *count > most) {
            return Err(Outcome::new(Kind::Unsupported, format!("a dispatch of {:?} workgroups", job.groups)));
        }
        let mut constants: Vec<u8> = job.pushed.iter().flat_map(|word| word.to_le_bytes()).collect();
        constants.resize(pushed.next_multiple_of(4) as usize, 0);
        let (host, shader) = (vk::PipelineStageFlags::HOST, vk::PipelineStageFlags::COMPUTE_SHADER);
        let all = vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::UNIFORM_READ;
        let before = [vk::MemoryBarrier::default().src_access_mask(vk::AccessFlags::HOST_WRITE).dst_access_mask(all)];
        let after = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        let none = vk::DependencyFlags::empty();
        let point = vk::PipelineBindPoint::COMPUTE;
        let [x, y, z] = job.groups;
        // SAFETY: the device made all objects, which live until the commands have been executed, and the structures until the end of the calls.
        let ended = unsafe {
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).and_then(|()| {
                device.cmd_pipeline_barrier(commands, host, shader, none, &before, &[], &[]);
                device.cmd_bind_pipeline(commands, point, objects.pipeline);
                if !sets.is_empty() {
                    device.cmd_bind_descriptor_sets(commands, point, objects.layout, 0, sets, &[]);
                }
                if !constants.is_empty() {
                    let stage = vk::ShaderStageFlags::COMPUTE;
                    device.cmd_push_constants(commands, objects.layout, stage, 0, &constants);
                }
                device.cmd_dispatch(commands, x, y, z);
                device.cmd_pipeline_barrier(commands, shader, host, none, &after, &[], &[]);
                device.end_command_buffer(commands)
            })
        };
        ended.map_err(|error| failed("vkEndCommandBuffer", error))?;
        Ok(commands)
    }

    /// Sets the contents of all buffers, executes the commands, and returns the contents of the storage buffers.
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
        for (words, place) in job.buffers.iter().map(|buffer| &buffer.words[..]).chain([&[][..]]).zip(places) {
            // SAFETY: the range lies in the buffer, whose memory is mapped, is aligned for words, and nothing else accesses it.
            let into = unsafe {
                let first = mapped.add(place.offset as usize).cast::<u32>();
                std::slice::from_raw_parts_mut(first, place.bytes as usize / 4)
            };
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
        for (buffer, place) in job.buffers.iter().zip(places).filter(|(buffer, _)| buffer.is_storage) {
            // SAFETY: as above; the device has executed the commands.
            let from = unsafe {
                let first = mapped.add(place.offset as usize).cast::<u32>();
                std::slice::from_raw_parts(first, buffer.words.len())
            };
            words.extend_from_slice(from);
        }
        // SAFETY: the memory is mapped.
        unsafe { device.unmap_memory(objects.memory) };
        Ok(words)
    }
}
