//! The pipeline of a job: a compute shader, a fragment shader after a vertex shader of the job, or a vertex shader
//! whose outputs are captured.

#![allow(unsafe_code)]

use crate::execute::{Device, failed};
use crate::job::{Draw, Job};
use crate::resources::Objects;
use ash::vk;
use ir3_turnip::module::{Binding, Module};
use ir3_turnip::outcome::{Kind, Outcome};
use rspirv::spirv::ExecutionModel;
use std::collections::BTreeMap;

/// The width and the height of the framebuffer, in pixels: one quad.
pub const PIXELS: u32 = 2;
/// The first coordinate and the side of the viewport. The triangle of a job is within it, though not within the
/// framebuffer: a triangle that is clipped may become several ones.
const VIEWPORT: [f32; 2] = [-5.5, 16.0];
/// Words of a colour attachment: four a pixel.
pub const ATTACHMENT_WORDS: u64 = 4 * (PIXELS * PIXELS) as u64;
/// The format of colour attachments.
pub const COLOR: vk::Format = vk::Format::R32G32B32A32_UINT;

/// The stage of a job.
#[derive(Clone, Copy)]
pub enum Stage<'a> {
    Compute,
    Fragment {
        /// The vertex shader.
        vertex: &'a Module,
    },
    Vertex,
}

impl<'a> Stage<'a> {
    /// The stage of an entry point.
    ///
    /// # Errors
    /// If a job has no such stage.
    pub fn of(model: ExecutionModel, vertex: Option<&'a Module>, is_captured: bool) -> Result<Self, Outcome> {
        match (model, vertex) {
            (ExecutionModel::Vertex, None) if is_captured => Ok(Self::Vertex),
            _ if is_captured => Err(Outcome::new(Kind::Unsupported, format!("an entry point of {model:?} to capture"))),
            (ExecutionModel::GLCompute, None) => Ok(Self::Compute),
            (ExecutionModel::Fragment, Some(vertex)) if vertex.entries.len() == 1 => Ok(Self::Fragment { vertex }),
            (model, vertex) => {
                let other = if vertex.is_some() { "with" } else { "without" };
                Err(Outcome::new(Kind::Unsupported, format!("an entry point of {model:?} {other} a vertex shader")))
            }
        }
    }

    fn flags(self) -> vk::ShaderStageFlags {
        match self {
            Self::Compute => vk::ShaderStageFlags::COMPUTE,
            Self::Fragment { .. } => vk::ShaderStageFlags::FRAGMENT,
            Self::Vertex => vk::ShaderStageFlags::VERTEX,
        }
    }
}

/// The stage of the shader of a job.
pub fn stage_flags(job: &Job) -> vk::ShaderStageFlags {
    match (&job.capture, &job.draw) {
        (Some(_), _) => vk::ShaderStageFlags::VERTEX,
        (None, Some(_)) => vk::ShaderStageFlags::FRAGMENT,
        (None, None) => vk::ShaderStageFlags::COMPUTE,
    }
}

/// The point to which the pipeline of a job is bound.
pub fn bind_point(job: &Job) -> vk::PipelineBindPoint {
    if job.draw.is_some() || job.capture.is_some() {
        vk::PipelineBindPoint::GRAPHICS
    } else {
        vk::PipelineBindPoint::COMPUTE
    }
}

impl Device {
    /// Makes the pipeline of a job, with its layout.
    pub fn pipeline(
        &self,
        objects: &mut Objects<'_>,
        job: &Job,
        module: &Module,
        stage: Stage<'_>,
        bindings: &BTreeMap<(u32, u32), Binding>,
    ) -> Result<(), Outcome> {
        let device = &self.driver.device;
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
                    .stage_flags(stage.flags())
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
        let range = [vk::PushConstantRange::default().stage_flags(stage.flags()).size(pushed)];
        let ranges = if pushed > 0 { &range[..] } else { &[] };
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&objects.sets).push_constant_ranges(ranges);
        // SAFETY: the structures live until the end of the call, and the device made the layouts of sets.
        let layout = unsafe { device.create_pipeline_layout(&info, None) };
        objects.layout = layout.map_err(|error| failed("vkCreatePipelineLayout", error))?;
        let own = self.shader(objects, module)?;
        let own =
            vk::PipelineShaderStageCreateInfo::default().stage(stage.flags()).module(own).name(&module.entries[0].name);
        match stage {
            Stage::Compute => {
                let info = [vk::ComputePipelineCreateInfo::default().stage(own).layout(objects.layout)];
                // SAFETY: the structures live until the end of the call, and the device made the objects.
                let pipelines = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
                let (pipelines, result) = split(pipelines);
                objects.pipeline = pipelines;
                result.map_err(|error| failed("vkCreateComputePipelines", error))
            }
            Stage::Fragment { vertex } => {
                let first = self.shader(objects, vertex)?;
                let first = vk::PipelineShaderStageCreateInfo::default()
                    .stage(vk::ShaderStageFlags::VERTEX)
                    .module(first)
                    .name(&vertex.entries[0].name);
                self.graphics(objects, job, &[first, own])
            }
            Stage::Vertex => self.graphics(objects, job, &[own]),
        }
    }

    fn shader(&self, objects: &mut Objects<'_>, module: &Module) -> Result<vk::ShaderModule, Outcome> {
        let info = vk::ShaderModuleCreateInfo::default().code(&module.words);
        // SAFETY: the words live until the end of the call. They may be no valid module: what the driver does then is a
        // result.
        let shader = unsafe { self.driver.device.create_shader_module(&info, None) };
        let shader = shader.map_err(|error| failed("vkCreateShaderModule", error))?;
        objects.modules.push(shader);
        Ok(shader)
    }

    /// A pipeline that draws triangles onto the colour attachments of a job, or lines that are captured and not drawn.
    fn graphics(
        &self,
        objects: &mut Objects<'_>,
        job: &Job,
        stages: &[vk::PipelineShaderStageCreateInfo<'_>],
    ) -> Result<(), Outcome> {
        let none = Draw { vertex: Vec::new(), attachments: 0, scissor: [0, 0, PIXELS, PIXELS], is_front: true };
        let draw = job.draw.as_ref().unwrap_or(&none);
        let attributes = job.capture.as_ref().map_or(&[][..], |capture| &capture.attributes);
        if attributes.len() > self.driver.limits.max_vertex_input_attributes as usize {
            return Err(Outcome::new(Kind::Unsupported, format!("{} attributes", attributes.len())));
        }
        let most = self.driver.limits.max_color_attachments;
        if draw.attachments > most {
            let what = format!("{} colour attachments: the device has {most}", draw.attachments);
            return Err(Outcome::new(Kind::Unsupported, what));
        }
        let count = draw.attachments as usize;
        let formats = vec![COLOR; count];
        let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&formats);
        let bindings = [vk::VertexInputBindingDescription::default().stride(16 * attributes.len() as u32)];
        let list: Vec<_> = attributes
            .iter()
            .zip(0..)
            .map(|(&location, number)| {
                vk::VertexInputAttributeDescription::default().location(location).format(COLOR).offset(16 * number)
            })
            .collect();
        let mut input = vk::PipelineVertexInputStateCreateInfo::default();
        if !list.is_empty() {
            input = input.vertex_binding_descriptions(&bindings).vertex_attribute_descriptions(&list);
        }
        let lines = job.capture.is_some();
        let topology = if lines { vk::PrimitiveTopology::LINE_LIST } else { vk::PrimitiveTopology::TRIANGLE_LIST };
        let assembly = vk::PipelineInputAssemblyStateCreateInfo::default().topology(topology);
        let [first, side] = VIEWPORT;
        let viewports =
            [vk::Viewport { x: first, y: first, width: side, height: side, min_depth: 0.0, max_depth: 1.0 }];
        let [x, y, width, height] = draw.scissor.map(|it| it.min(PIXELS));
        let scissors = [vk::Rect2D {
            offset: vk::Offset2D { x: x.cast_signed(), y: y.cast_signed() },
            extent: vk::Extent2D { width, height },
        }];
        let viewport = vk::PipelineViewportStateCreateInfo::default().viewports(&viewports).scissors(&scissors);
        // The triangle is clockwise on the framebuffer, whose y axis is downwards.
        let front = if draw.is_front { vk::FrontFace::CLOCKWISE } else { vk::FrontFace::COUNTER_CLOCKWISE };
        let raster = vk::PipelineRasterizationStateCreateInfo::default()
            .polygon_mode(vk::PolygonMode::FILL)
            .cull_mode(vk::CullModeFlags::NONE)
            .front_face(front)
            .rasterizer_discard_enable(lines)
            .line_width(1.0);
        let samples =
            vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
        let blends = vec![
            vk::PipelineColorBlendAttachmentState::default()
                .color_write_mask(vk::ColorComponentFlags::RGBA);
            count
        ];
        let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blends);
        let info = [vk::GraphicsPipelineCreateInfo::default()
            .stages(stages)
            .vertex_input_state(&input)
            .input_assembly_state(&assembly)
            .viewport_state(&viewport)
            .rasterization_state(&raster)
            .multisample_state(&samples)
            .color_blend_state(&blend)
            .layout(objects.layout)
            .push_next(&mut rendering)];
        // SAFETY: the structures live until the end of the call, and the device made the objects.
        let pipelines = unsafe { self.driver.device.create_graphics_pipelines(vk::PipelineCache::null(), &info, None) };
        let (pipeline, result) = split(pipelines);
        objects.pipeline = pipeline;
        result.map_err(|error| failed("vkCreateGraphicsPipelines", error))
    }
}

/// The first pipeline, which may be null, and the result.
fn split(
    pipelines: Result<Vec<vk::Pipeline>, (Vec<vk::Pipeline>, vk::Result)>,
) -> (vk::Pipeline, Result<(), vk::Result>) {
    let first = |all: Vec<vk::Pipeline>| all.first().copied().unwrap_or_default();
    match pipelines {
        Ok(all) => (first(all), Ok(())),
        Err((all, error)) => (first(all), Err(error)),
    }
}
