//! The words of an execution: those of the device compared with those of runs of the interpreter.

use super::oracle::Verdict;
use ir3_programs::spirv::CAPTURED_POSITION;
use ir3_programs::vulkan::{CLEAR, Job, Kind, fragments, vertices};
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::aliases::MemoryName;
use ir3_semantics::environment::memory::Space;
use ir3_semantics::interp::{Outcome, OutputRow};
use rustc_hash::FxHashMap;
use std::fmt;

/// A word of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of a buffer or an image, whose texels have four words each.
    Memory(MemoryName, u32),
    /// A component of a pixel of a colour attachment, which is a lane.
    Color {
        /// The attachment.
        location: u32,
        /// The lane.
        lane: u32,
        /// The component.
        component: u32,
    },
    /// A component of an output of a vertex, which is a lane.
    Output {
        /// The output.
        slot: u32,
        /// The lane.
        lane: u32,
        /// The component.
        component: u32,
    },
}

impl Place {
    /// The resource.
    #[must_use]
    pub fn resource(&self) -> String {
        match self {
            Self::Memory(name, _) => name.to_string(),
            Self::Color { location, .. } => format!("color {location}"),
            Self::Output { slot: CAPTURED_POSITION, .. } => "position".to_owned(),
            Self::Output { slot, .. } => format!("output {slot}"),
        }
    }

    /// The place in the resource, in bytes. A pixel and an output of a vertex have 16.
    #[must_use]
    pub const fn byte(&self) -> u32 {
        match self {
            Self::Memory(_, word) => 4 * *word,
            Self::Color { lane, component, .. } | Self::Output { lane, component, .. } => 16 * *lane + 4 * *component,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(name, word) => write!(f, "{name} byte {}", word * 4),
            Self::Color { lane, component, .. } | Self::Output { lane, component, .. } => {
                write!(f, "{}.{} of lane {lane}", self.resource(), ["x", "y", "z", "w"][*component as usize % 4])
            }
        }
    }
}

/// A word in which the device and the interpreter differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The word.
    pub place: Place,
    /// The word in the interpreter.
    pub expected: u32,
    /// The word on the device.
    pub actual: u32,
    /// The bits that are open.
    pub open: u32,
    /// The program stores the word.
    pub is_stored: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, expected, actual, open, is_stored } = self;
        write!(f, "{place}: expected {expected:#010x}, got {actual:#010x}")?;
        if *open != 0 {
            write!(f, " (open bits {open:#010x})")?;
        }
        if !is_stored {
            f.write_str(", which the program does not store")?;
        }
        Ok(())
    }
}

/// The words that a program stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordCounts {
    /// Compared in all bits.
    pub exact: u64,
    /// Compared in some bits.
    pub partly: u64,
    /// Open, and as the interpreter has them without the modes of a device.
    pub agreed: u64,
    /// Open, and other ones.
    pub open: u64,
}

/// The differences of a verdict that are listed.
const LISTED: usize = 64;

/// The expected contents of a word.
#[derive(Clone, Copy)]
struct Expected {
    value: u32,
    open: u32,
}

/// Returns true if runs decide all bits of a word that a difference compares.
pub(super) fn decides(runs: &[Outcome], difference: &Difference) -> bool {
    match difference.place {
        Place::Memory(name, word) => {
            let mut words = runs.iter().flat_map(|run| &run.memory);
            let found = words.find(|it| (MemoryName::of(it.space, it.binding), it.word) == (name, word));
            found.is_none_or(|it| it.poison & !difference.open == 0)
        }
        Place::Color { location: slot, lane, component } | Place::Output { slot, lane, component } => {
            runs.iter().all(|run| {
                let is_it = |row: &&OutputRow| (row.base.into(), row.component.into()) == (slot, component);
                run.outputs.rows().iter().find(is_it).is_none_or(|row| row.poison >> lane & 1 == 0)
            })
        }
    }
}

/// The words of resources that runs store, which are of no two of them.
fn stored(runs: &[Outcome]) -> FxHashMap<(Space, Binding, u32), Expected> {
    let words = runs.iter().flat_map(|run| &run.memory);
    words.map(|it| ((it.space, it.binding, it.word), Expected { value: it.value, open: it.poison })).collect()
}

/// The comparison of an execution.
#[derive(Default)]
struct Comparison {
    words: WordCounts,
    count: usize,
    differences: Vec<Difference>,
}

impl Comparison {
    /// Compares a word. `initial` is what it was before, `expected` and `loose` what the runs store there.
    fn word(&mut self, place: Place, actual: u32, initial: u32, expected: Option<Expected>, loose: Option<Expected>) {
        let is_stored = expected.is_some();
        let Expected { value, open } = expected.unwrap_or(Expected { value: initial, open: 0 });
        if (value ^ actual) & !open != 0 {
            self.count += 1;
            if self.differences.len() < LISTED {
                self.differences.push(Difference { place, expected: value, actual, open, is_stored });
            }
        }
        if is_stored {
            let agrees = || loose.is_some_and(|it| (it.value ^ actual) & !it.open == 0);
            match open {
                0 => self.words.exact += 1,
                u32::MAX if agrees() => self.words.agreed += 1,
                u32::MAX => self.words.open += 1,
                _ => self.words.partly += 1,
            }
        }
    }

    /// Compares a colour attachment. Pixels of lanes that ended, or that are helpers, are as they were.
    fn color(&mut self, location: u32, [run, loose]: [&Outcome; 2], actual: &[u32]) {
        for (at, &actual) in (0..).zip(actual) {
            let (lane, component) = (at / 4, at % 4);
            let place = Place::Color { location, lane, component };
            if (run.killed | run.helpers) >> lane & 1 != 0 {
                self.word(place, actual, CLEAR[component as usize], None, None);
                continue;
            }
            // A live lane leaves undefined what it does not store.
            if let Some(expected) = output(run, (location, component), lane) {
                self.word(place, actual, 0, Some(expected), output(loose, (location, component), lane));
            }
        }
    }

    /// Compares what was captured of vertices.
    fn captured(&mut self, [run, loose]: [&Outcome; 2], actual: &[u32]) {
        for (vertex, lane) in actual.chunks(vertices::CAPTURED_WORDS as usize).zip(0..) {
            for (&actual, at) in vertex.iter().zip(0..) {
                let (slot, component) = (at / 4, at % 4);
                let Some(expected) = output(run, (slot, component), lane) else { continue };
                let place = Place::Output { slot, lane, component };
                self.word(place, actual, 0, Some(expected), output(loose, (slot, component), lane));
            }
        }
    }
}

/// The word of an output in a lane.
fn output(run: &Outcome, (slot, component): (u32, u32), lane: u32) -> Option<Expected> {
    let is_it = |row: &&OutputRow| (row.base.into(), row.component.into()) == (slot, component);
    let row = run.outputs.rows().iter().find(is_it)?;
    let open = if row.poison >> lane & 1 == 0 { 0 } else { u32::MAX };
    Some(Expected { value: row.values[lane as usize], open })
}

/// Compares the contents of the resources of a job after its execution.
pub(super) fn compare(job: &Job, runs: &[Outcome], loose: &[Outcome], actual: &[u32]) -> (Verdict, WordCounts) {
    let (strict, free) = (stored(runs), stored(loose));
    let mut own = Comparison::default();
    let mut rest = actual;
    let short = || Verdict::Refused(Kind::Failed, "an answer that is too short".to_owned());
    for resource in &job.resources {
        let Some((space, id)) = resource.memory() else { continue };
        let Some((contents, more)) = rest.split_at_checked(resource.words.len()) else { return (short(), own.words) };
        rest = more;
        for ((&initial, &actual), number) in resource.words.iter().zip(contents).zip(0..) {
            let word = resource.word_of(number);
            let key = (space, id, word);
            let place = Place::Memory(MemoryName::of(space, id), word);
            own.word(place, actual, initial, strict.get(&key).copied(), free.get(&key).copied());
        }
    }
    if let ([run], [free]) = (runs, loose) {
        let words = 4 * fragments::QUAD as usize;
        for location in 0..job.colors() {
            let Some((contents, more)) = rest.split_at_checked(words) else { return (short(), own.words) };
            rest = more;
            own.color(location, [run, free], contents);
        }
        let Some((contents, _)) = rest.split_at_checked(job.captured_words()) else { return (short(), own.words) };
        own.captured([run, free], contents);
    }
    let verdict = match own.count {
        0 if own.words.exact + own.words.partly == 0 => Verdict::NothingCompared,
        0 => Verdict::Equal,
        count => Verdict::Differs(count, own.differences),
    };
    (verdict, own.words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_programs::spirv::Module;
    use ir3_semantics::environment::device::{DeviceRules, FloatModes};
    use ir3_semantics::environment::env::Env;
    use ir3_semantics::interp::Scratch;
    use ir3_semantics::interp::nir::Decoded;

    const TEXT: &str = "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 1, 1, 1\nnum_ssbos: 1\nsubgroup_size: 1\n\
                        decl_function main () (entrypoint)\n\nimpl main {\n    block b0:\n    32 %0 = load_const (0x00000000)\n    \
                        32x4 %1 = @load_const_ir3 (%0) (base=0)\n    32 %2 = fadd %1.x, %1.y\n    \
                        @store_ssbo_ir3 (%2, %0, %0, %0) (base=0, wrmask=x)\n    block b1:\n}\n";

    /// The verdict on a buffer of two words, of which the program stores the first: a sum of these words.
    fn verdict(consts: [u32; 2], actual: [u32; 2]) -> (Verdict, WordCounts) {
        let shader = ir3_compiler::nir::read(TEXT).expect("a program");
        let decoded = Decoded::new(&shader).expect("a program that can be run");
        let modes = FloatModes { keeps_specials: [true; 3], rounds_to_even: [true; 3], ..FloatModes::default() };
        let rules = DeviceRules { buffer_bytes: 8, modes: Some(modes), ..DeviceRules::default() };
        let consts = consts.into_iter().zip(0..).map(|(word, at)| (at, word)).collect();
        let env = Env { device: Some(rules), lanes: Some(1), consts, ..Env::from_seed(1) };
        let loose = Env { device: Some(rules.loose()), ..env.clone() };
        let mut scratch = Scratch::default();
        let runs = [&env, &loose].map(|env| decoded.run(env, env.fuel(), &mut scratch));
        let module = Module::of(&shader).expect("a module");
        let mut job = Job::new(&shader, &module, &env, 1);
        for resource in &mut job.resources {
            if resource.memory().is_some() {
                resource.words = vec![5, 6];
            }
        }
        compare(&job, &runs[..1], &runs[1..], &actual)
    }

    #[test]
    fn defined_bits_are_compared_and_no_others() {
        let (one, two, nan) = (0x3f80_0000, 0x4000_0000, 0x7fc0_0000);
        assert_eq!(verdict([one, one], [two, 6]), (Verdict::Equal, WordCounts { exact: 1, ..WordCounts::default() }));
        let differs = |verdict: Verdict| match verdict {
            Verdict::Differs(count, list) => Some((count, list[0].place.byte() / 4, list[0].is_stored)),
            _ => None,
        };
        assert_eq!(differs(verdict([one, one], [two + 1, 6]).0), Some((1, 0, true)));
        assert_eq!(differs(verdict([one, one], [two, 7]).0), Some((1, 1, false)));
        let partly = WordCounts { partly: 1, ..WordCounts::default() };
        assert_eq!(verdict([one, nan], [0xffff_ffff, 6]), (Verdict::Equal, partly));
        assert_eq!(differs(verdict([one, nan], [two, 6]).0), Some((1, 0, true)));
        // A denormal may be flushed.
        let open = WordCounts { open: 1, ..WordCounts::default() };
        assert_eq!(verdict([0, 7], [0, 6]), (Verdict::NothingCompared, open));
        let agreed = WordCounts { agreed: 1, ..WordCounts::default() };
        assert_eq!(verdict([0, 7], [7, 6]), (Verdict::NothingCompared, agreed));
    }
}
