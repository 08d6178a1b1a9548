//! The resources of a job: buffers in one memory, images, samplers, and the descriptors of them.

#![allow(unsafe_code)]

use crate::execute::{Device, failed};
use crate::job::{self, Job, Kind as Resource};
use crate::pipeline::{ATTACHMENT_WORDS, COLOR, PIXELS};
use ash::vk::{self, DescriptorType};
use ir3_turnip::module::Binding;
use ir3_turnip::outcome::{Kind, Outcome};
use std::collections::BTreeMap;

/// Bytes of a buffer that a module declares and no job has: zeros.
const ABSENT: u64 = 1 << 16;

/// An image with its memory and its view.
#[derive(Default)]
pub struct Image {
    pub image: vk::Image,
    memory: vk::DeviceMemory,
    pub view: vk::ImageView,
    pub extent: vk::Extent3D,
    pub layers: u32,
}

/// The objects of a job, which are destroyed with it.
pub struct Objects<'a> {
    device: &'a ash::Device,
    pub modules: Vec<vk::ShaderModule>,
    pub sets: Vec<vk::DescriptorSetLayout>,
    pub layout: vk::PipelineLayout,
    pub pipeline: vk::Pipeline,
    pool: vk::DescriptorPool,
    pub buffer: vk::Buffer,
    pub memory: vk::DeviceMemory,
    pub fence: vk::Fence,
    /// The images of resources, by their number among the resources.
    pub images: BTreeMap<usize, Image>,
    pub attachments: Vec<Image>,
    views: BTreeMap<usize, vk::BufferView>,
    sampler: vk::Sampler,
}

impl<'a> Objects<'a> {
    pub fn new(device: &'a ash::Device) -> Self {
        Self {
            device,
            modules: Vec::new(),
            sets: Vec::new(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            pool: vk::DescriptorPool::null(),
            buffer: vk::Buffer::null(),
            memory: vk::DeviceMemory::null(),
            fence: vk::Fence::null(),
            images: BTreeMap::new(),
            attachments: Vec::new(),
            views: BTreeMap::new(),
            sampler: vk::Sampler::null(),
        }
    }
}

impl Drop for Objects<'_> {
    fn drop(&mut self) {
        let device = self.device;
        // SAFETY: the device made all objects that are not null, and executes nothing that uses them: a device that
        // does has ended the process.
        unsafe {
            device.destroy_fence(self.fence, None);
            device.destroy_descriptor_pool(self.pool, None);
            device.destroy_pipeline(self.pipeline, None);
            device.destroy_pipeline_layout(self.layout, None);
            self.sets.iter().for_each(|set| device.destroy_descriptor_set_layout(*set, None));
            self.modules.iter().for_each(|module| device.destroy_shader_module(*module, None));
            for image in self.images.values().chain(&self.attachments) {
                device.destroy_image_view(image.view, None);
                device.destroy_image(image.image, None);
                device.free_memory(image.memory, None);
            }
            self.views.values().for_each(|view| device.destroy_buffer_view(*view, None));
            device.destroy_sampler(self.sampler, None);
            device.destroy_buffer(self.buffer, None);
            device.free_memory(self.memory, None);
        }
    }
}

/// The place of a resource in the memory of a job.
pub struct Place {
    pub offset: u64,
    pub bytes: u64,
}

/// The description of an image to make.
struct Wanted {
    format: vk::Format,
    view: vk::ImageViewType,
    extent: vk::Extent3D,
    layers: u32,
    usage: vk::ImageUsageFlags,
}

/// The type of the descriptor of a resource.
fn descriptor_type(resource: Resource) -> DescriptorType {
    match resource {
        Resource::Uniform => DescriptorType::UNIFORM_BUFFER,
        Resource::Storage => DescriptorType::STORAGE_BUFFER,
        Resource::Image => DescriptorType::STORAGE_IMAGE,
        Resource::Texture => DescriptorType::SAMPLED_IMAGE,
        Resource::Sampler => DescriptorType::SAMPLER,
        Resource::TexelBuffer => DescriptorType::STORAGE_TEXEL_BUFFER,
    }
}

impl Device {
    /// Allocates the memory of a job. Returns the places of its resources, after these the place of the buffer of
    /// zeros, and then those of the colour attachments, or of the attributes and of what is captured of vertices.
    pub fn memory(
        &self,
        objects: &mut Objects<'_>,
        job: &Job,
        bindings: &BTreeMap<(u32, u32), Binding>,
    ) -> Result<Vec<Place>, Outcome> {
        let limits = &self.driver.limits;
        let alignment = limits
            .min_storage_buffer_offset_alignment
            .max(limits.min_uniform_buffer_offset_alignment)
            .max(limits.min_texel_buffer_offset_alignment)
            .max(16);
        let mut end = 0;
        let mut places = Vec::new();
        let attachments = job.draw.as_ref().map_or(0, |draw| draw.attachments);
        let sizes = job.resources.iter().map(|it| it.words.len() as u64 * 4).chain([ABSENT]);
        let captured = job.capture.iter().flat_map(|it| [it.data.len() as u64 * 4, it.bytes().unwrap_or_default()]);
        for bytes in sizes.chain((0..attachments).map(|_| ATTACHMENT_WORDS * 4)).chain(captured) {
            places.push(Place { offset: end, bytes: bytes.max(4) });
            end = (end + bytes.max(4)).next_multiple_of(alignment);
        }
        for resource in &job.resources {
            let most = match resource.kind {
                Resource::Uniform => limits.max_uniform_buffer_range,
                Resource::Storage => limits.max_storage_buffer_range,
                _ => u32::MAX,
            };
            if resource.words.len() * 4 > most as usize {
                let what = format!("a buffer of {} bytes: the device has {most}", resource.words.len() * 4);
                return Err(Outcome::new(Kind::Unsupported, what));
            }
            let expected = descriptor_type(resource.kind);
            if let Some(found) = bindings.get(&(resource.set, resource.binding)).filter(|found| found.ty != expected) {
                let what = format!(
                    "binding {} of set {} has a descriptor of type {}, the job has one of type {}",
                    resource.binding,
                    resource.set,
                    found.ty.as_raw(),
                    expected.as_raw()
                );
                return Err(Outcome::new(Kind::Failed, what));
            }
        }
        let device = &self.driver.device;
        let feedback = match self.feedback {
            Some(_) => vk::BufferUsageFlags::TRANSFORM_FEEDBACK_BUFFER_EXT,
            None => vk::BufferUsageFlags::empty(),
        };
        let usage = feedback
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::VERTEX_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(end).usage(usage);
        // SAFETY: the structure lives until the end of the call.
        let buffer = unsafe { device.create_buffer(&info, None) };
        objects.buffer = buffer.map_err(|error| failed("vkCreateBuffer", error))?;
        // SAFETY: the device made the buffer.
        let needs = unsafe { device.get_buffer_memory_requirements(objects.buffer) };
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        objects.memory = self.allocate(needs, wanted)?;
        // SAFETY: the device made both, and the memory has the size that the buffer needs.
        let bound = unsafe { device.bind_buffer_memory(objects.buffer, objects.memory, 0) };
        bound.map_err(|error| failed("vkBindBufferMemory", error))?;
        for (number, (resource, place)) in job.resources.iter().zip(&places).enumerate() {
            if resource.kind != Resource::TexelBuffer {
                continue;
            }
            let info = vk::BufferViewCreateInfo::default()
                .buffer(objects.buffer)
                .format(format_of(resource))
                .offset(place.offset)
                .range(place.bytes);
            // SAFETY: the buffer has this range and is for texels, and the structure lives until the end of the call.
            let view = unsafe { device.create_buffer_view(&info, None) };
            objects.views.insert(number, view.map_err(|error| failed("vkCreateBufferView", error))?);
        }
        Ok(places)
    }

    /// Allocates memory of these properties.
    fn allocate(
        &self,
        needs: vk::MemoryRequirements,
        wanted: vk::MemoryPropertyFlags,
    ) -> Result<vk::DeviceMemory, Outcome> {
        // SAFETY: the instance has the physical device.
        let memory = unsafe { self.driver.instance.get_physical_device_memory_properties(self.driver.physical) };
        let types = memory.memory_types_as_slice().iter().zip(0_u32..);
        let mut fitting = types
            .filter(|(it, number)| needs.memory_type_bits >> number & 1 != 0 && it.property_flags.contains(wanted));
        let Some((_, number)) = fitting.next() else {
            return Err(Outcome::new(Kind::Unsupported, "the device has no memory for this resource"));
        };
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(number);
        // SAFETY: the structure lives until the end of the call.
        let memory = unsafe { self.driver.device.allocate_memory(&info, None) };
        memory.map_err(|error| failed("vkAllocateMemory", error))
    }

    /// Makes the images of a job, its colour attachments, and its sampler.
    pub fn images(&self, objects: &mut Objects<'_>, job: &Job) -> Result<(), Outcome> {
        for (number, resource) in job.resources.iter().enumerate() {
            let usage = match resource.kind {
                Resource::Image => vk::ImageUsageFlags::STORAGE,
                Resource::Texture => vk::ImageUsageFlags::SAMPLED,
                _ => continue,
            };
            let [width, height, depth] = resource.extent;
            let wanted = Wanted {
                format: format_of(resource),
                view: vk::ImageViewType::from_raw(resource.view.cast_signed()),
                extent: vk::Extent3D { width, height, depth },
                layers: resource.layers,
                usage,
            };
            let image = objects.images.entry(number).or_default();
            self.image(image, &wanted)?;
        }
        for _ in 0..job.draw.as_ref().map_or(0, |draw| draw.attachments) {
            let wanted = Wanted {
                format: COLOR,
                view: vk::ImageViewType::TYPE_2D,
                extent: vk::Extent3D { width: PIXELS, height: PIXELS, depth: 1 },
                layers: 1,
                usage: vk::ImageUsageFlags::COLOR_ATTACHMENT,
            };
            objects.attachments.push(Image::default());
            if let Some(last) = objects.attachments.last_mut() {
                self.image(last, &wanted)?;
            }
        }
        if job.resources.iter().any(|it| it.kind == Resource::Sampler) {
            let edge = vk::SamplerAddressMode::CLAMP_TO_EDGE;
            let info = vk::SamplerCreateInfo::default()
                .mag_filter(vk::Filter::NEAREST)
                .min_filter(vk::Filter::NEAREST)
                .mipmap_mode(vk::SamplerMipmapMode::NEAREST)
                .address_mode_u(edge)
                .address_mode_v(edge)
                .address_mode_w(edge)
                .max_lod(vk::LOD_CLAMP_NONE);
            // SAFETY: the structure lives until the end of the call.
            let sampler = unsafe { self.driver.device.create_sampler(&info, None) };
            objects.sampler = sampler.map_err(|error| failed("vkCreateSampler", error))?;
        }
        Ok(())
    }

    fn image(&self, image: &mut Image, wanted: &Wanted) -> Result<(), Outcome> {
        use vk::ImageViewType as View;
        let device = &self.driver.device;
        let (ty, flags) = match wanted.view {
            View::TYPE_1D | View::TYPE_1D_ARRAY => (vk::ImageType::TYPE_1D, vk::ImageCreateFlags::empty()),
            View::TYPE_3D => (vk::ImageType::TYPE_3D, vk::ImageCreateFlags::empty()),
            View::CUBE | View::CUBE_ARRAY => (vk::ImageType::TYPE_2D, vk::ImageCreateFlags::CUBE_COMPATIBLE),
            _ => (vk::ImageType::TYPE_2D, vk::ImageCreateFlags::empty()),
        };
        let usage = wanted.usage | vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
        let tiling = vk::ImageTiling::OPTIMAL;
        // SAFETY: the instance has the physical device.
        let supported = unsafe {
            let physical = self.driver.physical;
            let instance = &self.driver.instance;
            instance.get_physical_device_image_format_properties(physical, wanted.format, ty, tiling, usage, flags)
        };
        let limits = supported.map_err(|error| {
            let what = format!("an image of format {} and type {}: {error:?}", wanted.format.as_raw(), ty.as_raw());
            Outcome::new(Kind::Unsupported, what)
        })?;
        let vk::Extent3D { width, height, depth } = limits.max_extent;
        let vk::Extent3D { width: w, height: h, depth: d } = wanted.extent;
        if w > width || h > height || d > depth || wanted.layers > limits.max_array_layers {
            return Err(Outcome::new(Kind::Unsupported, format!("an image of {w} × {h} × {d} texels")));
        }
        let info = vk::ImageCreateInfo::default()
            .flags(flags)
            .image_type(ty)
            .format(wanted.format)
            .extent(wanted.extent)
            .mip_levels(1)
            .array_layers(wanted.layers)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(tiling)
            .usage(usage);
        // SAFETY: the structure lives until the end of the call.
        let made = unsafe { device.create_image(&info, None) };
        image.image = made.map_err(|error| failed("vkCreateImage", error))?;
        (image.extent, image.layers) = (wanted.extent, wanted.layers);
        // SAFETY: the device made the image.
        let needs = unsafe { device.get_image_memory_requirements(image.image) };
        image.memory = self.allocate(needs, vk::MemoryPropertyFlags::empty())?;
        // SAFETY: the device made both, and the memory has the size that the image needs.
        let bound = unsafe { device.bind_image_memory(image.image, image.memory, 0) };
        bound.map_err(|error| failed("vkBindImageMemory", error))?;
        let info = vk::ImageViewCreateInfo::default()
            .image(image.image)
            .view_type(wanted.view)
            .format(wanted.format)
            .subresource_range(all_of(image));
        // SAFETY: the device made the image, and the structure lives until the end of the call.
        let view = unsafe { device.create_image_view(&info, None) };
        image.view = view.map_err(|error| failed("vkCreateImageView", error))?;
        Ok(())
    }

    /// Makes the descriptor sets of a job.
    pub fn descriptors(
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
        for binding in bindings.values() {
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
                let is_it = |it: &job::Resource| (it.set, it.binding, it.element) == (*set, *number, element);
                let at = job.resources.iter().position(is_it);
                let is_buffer = matches!(binding.ty, DescriptorType::STORAGE_BUFFER | DescriptorType::UNIFORM_BUFFER);
                if at.is_none() && !is_buffer {
                    let what = format!("no resource of type {} (set {set}, binding {number})", binding.ty.as_raw());
                    return Err(Outcome::new(Kind::Unsupported, what));
                }
                let at = at.unwrap_or(job.resources.len());
                let place = &places[at];
                let buffers = [vk::DescriptorBufferInfo::default()
                    .buffer(objects.buffer)
                    .offset(place.offset)
                    .range(place.bytes)];
                let images = [vk::DescriptorImageInfo::default()
                    .image_layout(vk::ImageLayout::GENERAL)
                    .sampler(objects.sampler)
                    .image_view(objects.images.get(&at).map_or(vk::ImageView::null(), |image| image.view))];
                let views = [objects.views.get(&at).copied().unwrap_or_default()];
                let mut write = vk::WriteDescriptorSet::default()
                    .dst_set(sets[*set as usize])
                    .dst_binding(*number)
                    .dst_array_element(element)
                    .descriptor_type(binding.ty);
                write = match binding.ty {
                    _ if is_buffer => write.buffer_info(&buffers),
                    DescriptorType::STORAGE_TEXEL_BUFFER => write.texel_buffer_view(&views),
                    _ => write.image_info(&images),
                };
                // SAFETY: the set has this binding, the objects are of the device, and the structures live until the
                // end of the call.
                unsafe { device.update_descriptor_sets(&[write], &[]) };
            }
        }
        Ok(sets)
    }
}

fn format_of(resource: &job::Resource) -> vk::Format {
    vk::Format::from_raw(resource.format.cast_signed())
}

/// All of an image.
pub fn all_of(image: &Image) -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange::default()
        .aspect_mask(vk::ImageAspectFlags::COLOR)
        .level_count(1)
        .layer_count(image.layers)
}
