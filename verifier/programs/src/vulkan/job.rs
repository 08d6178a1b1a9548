//! A job for a device: a module, its dispatch, and the contents of its buffers.

use crate::spirv::{DescribedBuffer, Descriptor, PUSHED_WORDS};
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::env::{CONST_WORDS, Env};
use ir3_semantics::environment::memory::Space;

/// Words of a uniform buffer: all that a range of 64 KiB has.
const UNIFORM_WORDS: u32 = 1 << 14;
/// The words of a uniform buffer that programs read.
pub const READ_UNIFORM_WORDS: u32 = 1 << 11;

/// A buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobBuffer {
    /// Its descriptor.
    pub descriptor: Descriptor,
    /// Its contents before the dispatch.
    pub words: Vec<u32>,
}

impl JobBuffer {
    /// The storage buffer that it is.
    #[must_use]
    pub const fn storage(&self) -> Option<Binding> {
        match self.descriptor.buffer {
            DescribedBuffer::Storage(id) => Some(id),
            DescribedBuffer::Constants | DescribedBuffer::Uniform(_) => None,
        }
    }
}

/// A job: one workgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The module.
    pub module: Vec<u32>,
    /// The push constants.
    pub pushed: Vec<u32>,
    /// The buffers.
    pub buffers: Vec<JobBuffer>,
}

impl Job {
    /// The job of a module in an environment.
    #[must_use]
    pub fn new(module: Vec<u32>, descriptors: &[Descriptor], env: &Env, buffer_bytes: u32) -> Self {
        let words = |count: u32, word: &dyn Fn(u32) -> u32| (0..count).map(word).collect::<Vec<u32>>();
        let buffer = |&descriptor: &Descriptor| {
            let mut words = match descriptor.buffer {
                DescribedBuffer::Constants => words(CONST_WORDS, &|word| env.const_word(word)),
                DescribedBuffer::Uniform(id) => words(READ_UNIFORM_WORDS, &|word| env.ubo_word(id, word)),
                DescribedBuffer::Storage(id) => words(buffer_bytes / 4, &|word| env.memory_word(Space::Ssbo, id, word)),
            };
            if !matches!(descriptor.buffer, DescribedBuffer::Storage(_)) {
                words.resize(UNIFORM_WORDS as usize, 0);
            }
            JobBuffer { descriptor, words }
        };
        let pushed = words(PUSHED_WORDS, &|word| env.const_word(word));
        Self { module, pushed, buffers: descriptors.iter().map(buffer).collect() }
    }

    /// The words of all storage buffers.
    #[must_use]
    pub fn storage_words(&self) -> usize {
        self.buffers.iter().filter(|buffer| buffer.storage().is_some()).map(|buffer| buffer.words.len()).sum()
    }

    /// The bytes that the worker reads.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let count = |words: usize| words as u32;
        let mut words = vec![0, count(self.module.len()), 1, 1, 1, count(self.pushed.len()), count(self.buffers.len())];
        for buffer in &self.buffers {
            let Descriptor { set, binding, element, .. } = buffer.descriptor;
            words.extend([set, binding, element, buffer.storage().is_some().into(), count(buffer.words.len())]);
        }
        words.extend(&self.module);
        words.extend(&self.pushed);
        self.buffers.iter().for_each(|buffer| words.extend(&buffer.words));
        words[0] = count(words.len() - 1);
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }
}
