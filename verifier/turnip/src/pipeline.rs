//! Pipelines of a module: the calls in which the driver compiles.
//!
//! A compute shader is a pipeline; a vertex or a fragment shader is a part of one (`VK_EXT_graphics_pipeline_library`),
//! which is compiled alone. Nothing is linked, so nothing of a shader is removed because another stage does not use it.
//! Tessellation and geometry shaders are compiled with the stages that they need: those of the module, or minimal ones
//! (`partner.rs`).

#![allow(unsafe_code)]

use crate::atomics;
use crate::device::Driver;
use crate::module::{Binding, Entry, Module};
use crate::outcome::{Kind, Outcome};
use crate::partner;
use ash::vk;
use rspirv::spirv::ExecutionModel;
use std::collections::BTreeMap;

/// Bindings by set and number.
type Bindings = BTreeMap<(u32, u32), Binding>;

/// The highest number of descriptor sets that a layout of this program has.
const MOST_SETS: u32 = 32;

/// Compiles all entry points of a module. Returns the driver's cache of pipelines, which has the machine code.
///
/// # Errors
/// The call that failed, a capability that the device lacks, a stage that is not compiled.
pub fn compile(driver: &Driver, module: &Module) -> Result<Vec<u8>, Outcome> {
    supported(driver, module)?;
    if module.entries.is_empty() {
        return Err(Outcome::new(Kind::Unsupported, "the module has no entry point"));
    }
    let compiler = Compiler::new(driver, module)?;
    for entry in &module.entries {
        compiler.entry(entry)?;
    }
    compiler.data()
}

/// Refuses a module that needs capabilities that the device does not have.
fn supported(driver: &Driver, module: &Module) -> Result<(), Outcome> {
    let refuse = |what: String| Err(Outcome::new(Kind::Unsupported, format!("the device has no {what}")));
    if let Some(lacking) = module.capabilities.iter().find(|capability| !driver.has(**capability)) {
        return refuse(format!("capability {lacking:?}"));
    }
    atomics::lacking(module, &driver.features).map_or(Ok(()), |atomic| refuse(atomic.to_string()))
}

/// Compiles a vertex and a fragment shader of several modules as one whole pipeline: the driver may remove outputs that
/// the other one does not read.
///
/// # Errors
/// As of [`compile`], and if there is not one of each.
pub fn link(driver: &Driver, modules: &[Module]) -> Result<Vec<u8>, Outcome> {
    let mut compilers = Vec::new();
    for module in modules {
        supported(driver, module)?;
        compilers.push(Compiler::new(driver, module)?);
    }
    let only = |model: ExecutionModel| {
        let all = compilers.iter().flat_map(|it| it.module.entries.iter().map(move |entry| (it, entry)));
        let of: Vec<_> = all.filter(|(_, entry)| entry.model == model).collect();
        match of[..] {
            [one] => Ok(one),
            _ => Err(Outcome::new(Kind::Unsupported, format!("{} shaders of {model:?} to link, not one", of.len()))),
        }
    };
    let (vertex, fragment) = (only(ExecutionModel::Vertex)?, only(ExecutionModel::Fragment)?);
    let mut bindings = vertex.0.bindings(&[vertex.1])?;
    for (place, binding) in fragment.0.bindings(&[fragment.1])? {
        match bindings.get_mut(&place) {
            None => _ = bindings.insert(place, binding),
            Some(known) if known.ty == binding.ty => known.count = known.count.max(binding.count),
            Some(_) => {
                let (set, number) = place;
                let what = format!("binding {number} of set {set} has descriptors of two types in two stages");
                return Err(Outcome::new(Kind::Invalid, what));
            }
        }
    }
    let pushed = vertex.0.module.push_constants.max(fragment.0.module.push_constants);
    let layout = vertex.0.layout_of(&bindings, pushed)?;
    let stages = [
        vertex.0.stage(vertex.1, vk::ShaderStageFlags::VERTEX),
        fragment.0.stage(fragment.1, vk::ShaderStageFlags::FRAGMENT),
    ];
    vertex.0.whole(&stages, layout)?;
    vertex.0.data()
}

fn refused(call: &str, error: vk::Result) -> Outcome {
    let kind = match error {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => Kind::Memory,
        _ => Kind::Refused,
    };
    Outcome::new(kind, format!("{call}: {error:?}"))
}

fn shader_module(device: &ash::Device, words: &[u32]) -> Result<vk::ShaderModule, Outcome> {
    let info = vk::ShaderModuleCreateInfo::default().code(words);
    // SAFETY: the words live until the end of the call. They may be no valid module: the driver's behaviour then is a
    // result.
    let module = unsafe { device.create_shader_module(&info, None) };
    module.map_err(|error| refused("vkCreateShaderModule", error))
}

/// The objects that all entry points of a module share.
struct Compiler<'a> {
    driver: &'a Driver,
    device: &'a ash::Device,
    module: &'a Module,
    words: vk::ShaderModule,
    cache: vk::PipelineCache,
}

impl<'a> Compiler<'a> {
    /// Nothing is destroyed: the process ends after the module.
    fn new(driver: &'a Driver, module: &'a Module) -> Result<Self, Outcome> {
        let device = &driver.device;
        // SAFETY: the structure lives until the end of the call.
        let cache = unsafe { device.create_pipeline_cache(&vk::PipelineCacheCreateInfo::default(), None) };
        let cache = cache.map_err(|error| refused("vkCreatePipelineCache", error))?;
        let words = shader_module(device, &module.words)?;
        Ok(Self { driver, device, module, words, cache })
    }

    /// The driver's cache of pipelines.
    fn data(&self) -> Result<Vec<u8>, Outcome> {
        // SAFETY: the device made the cache.
        let data = unsafe { self.device.get_pipeline_cache_data(self.cache) };
        data.map_err(|error| refused("vkGetPipelineCacheData", error))
    }

    fn bindings(&self, entries: &[&Entry]) -> Result<Bindings, Outcome> {
        self.module.bindings(entries).map_err(|why| Outcome::new(Kind::Invalid, why))
    }

    /// The layout for entry points that are compiled together.
    fn layout(&self, entries: &[&Entry]) -> Result<vk::PipelineLayout, Outcome> {
        self.layout_of(&self.bindings(entries)?, self.module.push_constants)
    }

    /// The layout of bindings and this many bytes of push constants.
    fn layout_of(&self, bindings: &Bindings, pushed: u32) -> Result<vk::PipelineLayout, Outcome> {
        let Self { driver, device, .. } = *self;
        let most = driver.limits.max_bound_descriptor_sets.min(MOST_SETS);
        let count = bindings.keys().map(|(set, _)| set.saturating_add(1)).max().unwrap_or_default();
        if count > most {
            let what = format!("the device has {most} descriptor sets: no set {}", count - 1);
            return Err(Outcome::new(Kind::Unsupported, what));
        }
        let mut layouts = Vec::new();
        for set in 0..count {
            let of_set = bindings.iter().filter(|((of, _), _)| *of == set);
            let of_set = of_set.map(|((_, number), binding)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(*number)
                    .descriptor_type(binding.ty)
                    .descriptor_count(binding.count)
                    .stage_flags(vk::ShaderStageFlags::ALL)
            });
            let of_set: Vec<_> = of_set.collect();
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&of_set);
            // SAFETY: the structures live until the end of the call.
            let layout = unsafe { device.create_descriptor_set_layout(&info, None) };
            layouts.push(layout.map_err(|error| refused("vkCreateDescriptorSetLayout", error))?);
        }
        let most = driver.limits.max_push_constants_size;
        if pushed > most {
            let what = format!("{pushed} bytes of push constants: the device has {most}");
            return Err(Outcome::new(Kind::Unsupported, what));
        }
        let size = pushed.next_multiple_of(4);
        let range = [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::ALL).size(size)];
        let ranges = if size > 0 { &range[..] } else { &[] };
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(ranges);
        // SAFETY: the structures live until the end of the call, and the device made the layouts of sets.
        let layout = unsafe { device.create_pipeline_layout(&info, None) };
        layout.map_err(|error| refused("vkCreatePipelineLayout", error))
    }

    fn stage(&self, entry: &'a Entry, stage: vk::ShaderStageFlags) -> vk::PipelineShaderStageCreateInfo<'a> {
        vk::PipelineShaderStageCreateInfo::default().stage(stage).module(self.words).name(&entry.name)
    }

    fn entry(&self, entry: &'a Entry) -> Result<(), Outcome> {
        match entry.model {
            ExecutionModel::GLCompute => self.compute(entry),
            ExecutionModel::Vertex => {
                self.before_rasterization(&[entry], &[self.stage(entry, vk::ShaderStageFlags::VERTEX)])
            }
            ExecutionModel::Fragment => self.fragment(entry),
            ExecutionModel::TessellationControl | ExecutionModel::TessellationEvaluation | ExecutionModel::Geometry => {
                self.with_partners(entry)
            }
            model => Err(Outcome::new(Kind::Unsupported, format!("entry points of {model:?} are not compiled"))),
        }
    }

    fn compute(&self, entry: &'a Entry) -> Result<(), Outcome> {
        let stage = self.stage(entry, vk::ShaderStageFlags::COMPUTE);
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout(&[entry])?);
        // SAFETY: the structures live until the end of the call, and the device made all objects.
        let made = unsafe { self.device.create_compute_pipelines(self.cache, &[info], None) };
        made.map(drop).map_err(|(_, error)| refused("vkCreateComputePipelines", error))
    }

    /// A stage between vertices and rasterization, with those that it needs.
    fn with_partners(&self, entry: &'a Entry) -> Result<(), Outcome> {
        use ExecutionModel as Model;
        let module = self.module;
        let of = |model| module.entries.iter().find(|other| other.model == model);
        // Both are compiled with the first of them.
        if entry.model == Model::TessellationEvaluation && of(Model::TessellationControl).is_some() {
            return Ok(());
        }
        let control = of(Model::TessellationControl).filter(|_| entry.model != Model::Geometry);
        let evaluation = of(Model::TessellationEvaluation).filter(|_| entry.model != Model::Geometry);
        let (types, capabilities) = (&module.types, &module.capabilities[..]);
        let first = if entry.model == Model::TessellationEvaluation { None } else { Some(entry) };
        let mut made = Vec::new();
        let mut stages = Vec::new();
        let mut make = |model, words: Result<Vec<u32>, String>| -> Result<(), Outcome> {
            let words = words.map_err(|why| Outcome::new(Kind::Unsupported, why))?;
            made.push((model, shader_module(self.device, &words)?));
            Ok(())
        };
        match of(Model::Vertex) {
            Some(vertex) => stages.push(self.stage(vertex, vk::ShaderStageFlags::VERTEX)),
            None => make(vk::ShaderStageFlags::VERTEX, partner::vertex(types, capabilities, first))?,
        }
        if entry.model == Model::Geometry {
            stages.push(self.stage(entry, vk::ShaderStageFlags::GEOMETRY));
        } else {
            const CONTROL: vk::ShaderStageFlags = vk::ShaderStageFlags::TESSELLATION_CONTROL;
            const EVALUATION: vk::ShaderStageFlags = vk::ShaderStageFlags::TESSELLATION_EVALUATION;
            match control {
                Some(control) => stages.push(self.stage(control, CONTROL)),
                None => make(CONTROL, partner::control(types, capabilities, entry))?,
            }
            match evaluation {
                Some(evaluation) => stages.push(self.stage(evaluation, EVALUATION)),
                None => make(EVALUATION, partner::evaluation(types, capabilities, entry))?,
            }
        }
        let made = made.iter().map(|(stage, module)| {
            vk::PipelineShaderStageCreateInfo::default().stage(*stage).module(*module).name(c"main")
        });
        stages.extend(made);
        let own: Vec<&Entry> = [of(Model::Vertex), control, evaluation, Some(entry)].into_iter().flatten().collect();
        self.before_rasterization(&own, &stages)
    }

    /// The stages before rasterization, as one part of a pipeline.
    fn before_rasterization(
        &self,
        entries: &[&Entry],
        stages: &[vk::PipelineShaderStageCreateInfo<'_>],
    ) -> Result<(), Outcome> {
        let viewport = vk::PipelineViewportStateCreateInfo::default();
        let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
        let states = [vk::DynamicState::VIEWPORT_WITH_COUNT, vk::DynamicState::SCISSOR_WITH_COUNT];
        let dynamic = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&states);
        let patches = vk::PipelineTessellationStateCreateInfo::default().patch_control_points(partner::PATCH);
        let info = vk::GraphicsPipelineCreateInfo::default()
            .stages(stages)
            .tessellation_state(&patches)
            .viewport_state(&viewport)
            .rasterization_state(&raster)
            .dynamic_state(&dynamic);
        self.part(entries, info, vk::GraphicsPipelineLibraryFlagsEXT::PRE_RASTERIZATION_SHADERS)
    }

    fn fragment(&self, entry: &'a Entry) -> Result<(), Outcome> {
        let stages = [self.stage(entry, vk::ShaderStageFlags::FRAGMENT)];
        let samples =
            vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
        let depth = vk::PipelineDepthStencilStateCreateInfo::default();
        let info = vk::GraphicsPipelineCreateInfo::default()
            .stages(&stages)
            .multisample_state(&samples)
            .depth_stencil_state(&depth);
        self.part(&[entry], info, vk::GraphicsPipelineLibraryFlagsEXT::FRAGMENT_SHADER)
    }

    /// A whole pipeline of a vertex and a fragment shader, without attachments and vertex buffers.
    fn whole(
        &self,
        stages: &[vk::PipelineShaderStageCreateInfo<'_>],
        layout: vk::PipelineLayout,
    ) -> Result<(), Outcome> {
        let vertices = vk::PipelineVertexInputStateCreateInfo::default();
        let triangles =
            vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::TRIANGLE_LIST);
        let viewport = vk::PipelineViewportStateCreateInfo::default();
        let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
        let samples =
            vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
        let depth = vk::PipelineDepthStencilStateCreateInfo::default();
        let blend = vk::PipelineColorBlendStateCreateInfo::default();
        let states = [vk::DynamicState::VIEWPORT_WITH_COUNT, vk::DynamicState::SCISSOR_WITH_COUNT];
        let dynamic = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&states);
        let mut rendering = vk::PipelineRenderingCreateInfo::default();
        let info = vk::GraphicsPipelineCreateInfo::default()
            .stages(stages)
            .vertex_input_state(&vertices)
            .input_assembly_state(&triangles)
            .viewport_state(&viewport)
            .rasterization_state(&raster)
            .multisample_state(&samples)
            .depth_stencil_state(&depth)
            .color_blend_state(&blend)
            .dynamic_state(&dynamic)
            .layout(layout)
            .push_next(&mut rendering);
        // SAFETY: the structures live until the end of the call, and the device made all objects.
        let made = unsafe { self.device.create_graphics_pipelines(self.cache, &[info], None) };
        made.map(drop).map_err(|(_, error)| refused("vkCreateGraphicsPipelines", error))
    }

    fn part(
        &self,
        entries: &[&Entry],
        info: vk::GraphicsPipelineCreateInfo<'_>,
        part: vk::GraphicsPipelineLibraryFlagsEXT,
    ) -> Result<(), Outcome> {
        let mut rendering = vk::PipelineRenderingCreateInfo::default();
        let mut library = vk::GraphicsPipelineLibraryCreateInfoEXT::default().flags(part);
        let info = info
            .layout(self.layout(entries)?)
            .flags(vk::PipelineCreateFlags::LIBRARY_KHR)
            .push_next(&mut rendering)
            .push_next(&mut library);
        // SAFETY: the structures live until the end of the call, and the device made all objects.
        let made = unsafe { self.device.create_graphics_pipelines(self.cache, &[info], None) };
        made.map(drop).map_err(|(_, error)| refused("vkCreateGraphicsPipelines", error))
    }
}
