//! The commands of a job.

#![allow(unsafe_code)]

use crate::execute::{Device, failed};
use crate::job::{Capture, Job};
use crate::pipeline::{PIXELS, bind_point, stage_flags};
use crate::resources::{Image, Objects, Place, all_of};
use ash::vk;
use ir3_turnip::outcome::{Kind, Outcome};
use std::ptr;

/// The words of a pixel that nothing has drawn.
pub const CLEAR: [u32; 4] = [0xc1ea_0000, 0xc1ea_0001, 0xc1ea_0002, 0xc1ea_0003];

impl Device {
    /// Records the commands of a job: its images are filled, it is executed, and its images and attachments are copied
    /// to its memory.
    pub fn record(
        &self,
        objects: &Objects<'_>,
        job: &Job,
        sets: &[vk::DescriptorSet],
        pushed: u32,
        places: &[Place],
    ) -> Result<vk::CommandBuffer, Outcome> {
        let device = &self.driver.device;
        let most = self.driver.limits.max_compute_work_group_count;
        if job.groups.iter().zip(most).any(|(count, most)| *count > most) {
            return Err(Outcome::new(Kind::Unsupported, format!("a dispatch of {:?} workgroups", job.groups)));
        }
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.commands).command_buffer_count(1);
        // SAFETY: the device made the pool, and the structure lives until the end of the call.
        let commands = unsafe { device.allocate_command_buffers(&info) };
        let commands = commands.map_err(|error| failed("vkAllocateCommandBuffers", error))?[0];
        let mut constants: Vec<u8> = job.pushed.iter().flat_map(|word| word.to_le_bytes()).collect();
        constants.resize(pushed.next_multiple_of(4) as usize, 0);
        let point = bind_point(job);
        let [x, y, z] = job.groups;
        let attachments = &places[job.resources.len() + 1..];
        // SAFETY: the device made all objects, which live until the commands have been executed, and the structures
        // until the end of the calls.
        let ended = unsafe {
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).and_then(|()| {
                self.after_all(commands);
                for (number, image) in &objects.images {
                    let layouts = [vk::ImageLayout::UNDEFINED, vk::ImageLayout::GENERAL];
                    self.change_layout(commands, image, layouts);
                    let region = [copy_of(image, &places[*number])];
                    let general = vk::ImageLayout::GENERAL;
                    device.cmd_copy_buffer_to_image(commands, objects.buffer, image.image, general, &region);
                }
                for image in &objects.attachments {
                    let layouts = [vk::ImageLayout::UNDEFINED, vk::ImageLayout::GENERAL];
                    self.change_layout(commands, image, layouts);
                }
                self.after_all(commands);
                device.cmd_bind_pipeline(commands, point, objects.pipeline);
                if !sets.is_empty() {
                    device.cmd_bind_descriptor_sets(commands, point, objects.layout, 0, sets, &[]);
                }
                if !constants.is_empty() {
                    device.cmd_push_constants(commands, objects.layout, stage_flags(job), 0, &constants);
                }
                match (&job.capture, &job.draw) {
                    (Some(capture), _) => self.capture(commands, objects, capture, attachments),
                    (None, None) => device.cmd_dispatch(commands, x, y, z),
                    (None, Some(_)) => self.draw(commands, objects),
                }
                self.after_all(commands);
                let written = objects.images.iter().filter(|(number, _)| job.resources[**number].kind.is_written());
                let written = written.map(|(number, image)| (image, &places[*number]));
                for (image, place) in written.chain(objects.attachments.iter().zip(attachments)) {
                    let region = [copy_of(image, place)];
                    let general = vk::ImageLayout::GENERAL;
                    device.cmd_copy_image_to_buffer(commands, image.image, general, objects.buffer, &region);
                }
                self.after_all(commands);
                device.end_command_buffer(commands)
            })
        };
        ended.map_err(|error| failed("vkEndCommandBuffer", error))?;
        Ok(commands)
    }

    /// Draws one triangle onto the colour attachments, which are cleared before.
    fn draw(&self, commands: vk::CommandBuffer, objects: &Objects<'_>) {
        let device = &self.driver.device;
        let attachment = |image: &Image| {
            vk::RenderingAttachmentInfo::default()
                .image_view(image.view)
                .image_layout(vk::ImageLayout::GENERAL)
                .load_op(vk::AttachmentLoadOp::CLEAR)
                .store_op(vk::AttachmentStoreOp::STORE)
                .clear_value(vk::ClearValue { color: vk::ClearColorValue { uint32: CLEAR } })
        };
        let attachments: Vec<_> = objects.attachments.iter().map(attachment).collect();
        let area =
            vk::Rect2D { offset: vk::Offset2D::default(), extent: vk::Extent2D { width: PIXELS, height: PIXELS } };
        let info = vk::RenderingInfo::default().render_area(area).layer_count(1).color_attachments(&attachments);
        // SAFETY: the commands are being recorded, the device made the views, and the structures live until the end of
        // the calls.
        unsafe {
            device.cmd_begin_rendering(commands, &info);
            device.cmd_draw(commands, 3, 1, 0, 0);
            device.cmd_end_rendering(commands);
        }
    }

    /// Draws lines, whose vertices are captured: the attributes are in the first place, what is captured in the second
    /// one.
    ///
    /// # Safety
    /// As of [`after_all`](Self::after_all); the device made the objects.
    unsafe fn capture(&self, commands: vk::CommandBuffer, objects: &Objects<'_>, capture: &Capture, places: &[Place]) {
        let (device, [attributes, captured]) = (&self.driver.device, places) else { return };
        let Some(feedback) = &self.feedback else { return };
        let extent = vk::Extent2D { width: PIXELS, height: PIXELS };
        let info = vk::RenderingInfo::default()
            .render_area(vk::Rect2D { offset: vk::Offset2D::default(), extent })
            .layer_count(1);
        let (buffer, none, functions) = ([objects.buffer], ptr::null(), feedback.fp());
        // SAFETY: as the caller guarantees; the structures live until the end of the calls. No counter buffers are
        // given.
        unsafe {
            device.cmd_bind_vertex_buffers(commands, 0, &buffer, &[attributes.offset]);
            (functions.cmd_bind_transform_feedback_buffers_ext)(
                commands,
                0,
                1,
                buffer.as_ptr(),
                &raw const captured.offset,
                &raw const captured.bytes,
            );
            device.cmd_begin_rendering(commands, &info);
            (functions.cmd_begin_transform_feedback_ext)(commands, 0, 0, ptr::null(), none);
            device.cmd_draw(commands, capture.vertices, capture.instances, capture.first, 0);
            (functions.cmd_end_transform_feedback_ext)(commands, 0, 0, ptr::null(), none);
            device.cmd_end_rendering(commands);
        }
    }

    /// Orders all commands after it after all before it, those of the host included.
    ///
    /// # Safety
    /// The commands are being recorded, outside of a rendering.
    unsafe fn after_all(&self, commands: vk::CommandBuffer) {
        let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let host = vk::AccessFlags::HOST_READ | vk::AccessFlags::HOST_WRITE;
        let barrier = [vk::MemoryBarrier::default().src_access_mask(all | host).dst_access_mask(all | host)];
        let stages = vk::PipelineStageFlags::ALL_COMMANDS | vk::PipelineStageFlags::HOST;
        let none = vk::DependencyFlags::empty();
        // SAFETY: as the caller guarantees; the structures live until the end of the call.
        unsafe { self.driver.device.cmd_pipeline_barrier(commands, stages, stages, none, &barrier, &[], &[]) };
    }

    /// Changes the layout of an image.
    ///
    /// # Safety
    /// As of [`after_all`](Self::after_all).
    unsafe fn change_layout(&self, commands: vk::CommandBuffer, image: &Image, [from, to]: [vk::ImageLayout; 2]) {
        let barrier = [vk::ImageMemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)
            .old_layout(from)
            .new_layout(to)
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .image(image.image)
            .subresource_range(all_of(image))];
        let (stages, none) = (vk::PipelineStageFlags::ALL_COMMANDS, vk::DependencyFlags::empty());
        // SAFETY: as the caller guarantees; the structures live until the end of the call.
        unsafe { self.driver.device.cmd_pipeline_barrier(commands, stages, stages, none, &[], &[], &barrier) };
    }
}

/// The copy between an image and its place in the memory of a job.
fn copy_of(image: &Image, place: &Place) -> vk::BufferImageCopy {
    let layers =
        vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(image.layers);
    vk::BufferImageCopy::default().buffer_offset(place.offset).image_subresource(layers).image_extent(image.extent)
}
