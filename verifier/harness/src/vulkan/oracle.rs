//! One program on a device and in the interpreter.

use super::mistakes::Mistake;
use super::races::{Race, first_race};
use ir3_compiler::nir::Shader;
use ir3_programs::spirv::{Modes, Module};
use ir3_programs::vulkan::{Device, DeviceError, Job, Kind, Layout, Preparation, Properties, lanes_of, prepare};
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::aliases::{Aliasing, MemoryName};
use ir3_semantics::environment::device::DeviceRules;
use ir3_semantics::environment::env::{Env, first_lanes};
use ir3_semantics::environment::memory::Space;
use ir3_semantics::interp::nir::{DENORMALS, Decoded};
use ir3_semantics::interp::{End, Outcome, Scratch};
use ir3_semantics::support::panics::catch;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt;

/// A word of a storage buffer in which the device and the interpreter differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The buffer.
    pub buffer: Binding,
    /// The word.
    pub word: u32,
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
        let Self { buffer, word, expected, actual, open, is_stored } = self;
        let name = MemoryName::of(Space::Ssbo, *buffer);
        write!(f, "{name} byte {}: expected {expected:#010x}, got {actual:#010x}", word * 4)?;
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

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All words agree, in all bits that are compared.
    Equal,
    /// Some words differ: the number of them, and the first ones.
    Differs(usize, Vec<Difference>),
    /// The driver or the device is at fault.
    Fault(Kind, String),
    /// The device has not executed the program.
    Refused(Kind, String),
    /// The specification gives the program no meaning, or none is known here, so it was not executed.
    Excluded(String),
    /// All that the program stores is open.
    NothingCompared,
}

impl Verdict {
    /// Returns true for what is reported as a failure.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::Differs(..) | Self::Fault(..))
    }

    /// Returns true if the other one is a failure of the same kind.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Differs(..), Self::Differs(..)) => true,
            (Self::Fault(a, _), Self::Fault(b, _)) => a == b,
            _ => false,
        }
    }

    /// The kind of the verdict.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs(..) => "differs",
            Self::Fault(kind, _) | Self::Refused(kind, _) => kind.name(),
            Self::Excluded(_) => "excluded",
            Self::NothingCompared => "nothing-compared",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Differs(count, first) => {
                let words = if *count == 1 { "word differs" } else { "words differ" };
                write!(f, "{count} {words}")?;
                first.first().map_or(Ok(()), |first| write!(f, ": {first}"))
            }
            Self::Fault(kind, why) | Self::Refused(kind, why) if why.is_empty() => write!(f, "{kind}"),
            Self::Fault(kind, why) | Self::Refused(kind, why) => write!(f, "{kind}: {why}"),
            Self::Excluded(why) => write!(f, "excluded: {why}"),
            Self::NothingCompared => f.write_str("nothing compared: all that is stored is open"),
        }
    }
}

/// A comparison, with its evidence.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The result.
    pub verdict: Verdict,
    /// The words that the program stores.
    pub words: WordCounts,
    /// The names of the freedoms that the specification gives a device in this run.
    pub freedoms: BTreeSet<&'static str>,
    /// The operations that were replaced, as the device or the specification does not have them.
    pub replaced: BTreeSet<String>,
    /// The module, if it was executed.
    pub module: Vec<u32>,
    /// The program and the environment that were compared.
    pub prepared: Option<Box<(Shader, Env)>>,
    /// Lanes access one byte without an order.
    races: bool,
}

impl Observation {
    fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            words: WordCounts::default(),
            freedoms: BTreeSet::new(),
            replaced: BTreeSet::new(),
            module: Vec::new(),
            prepared: None,
            races: false,
        }
    }

    /// The observation of a program on which a part of the harness panics.
    pub(super) fn panicked(panic: &str) -> Self {
        Self::excluded(format!("a panic: {panic}"))
    }

    fn excluded(why: impl Into<String>) -> Self {
        Self::new(Verdict::Excluded(why.into()))
    }
}

/// The differences of a verdict that are listed.
const LISTED: usize = 64;

/// The environment of a prepared program on a device: one workgroup.
fn environment(env: &Env, shader: &Shader, properties: &Properties, layout: Layout) -> Env {
    let lanes = lanes_of(shader);
    let mut env = env.clone();
    env.aliases = Some(Aliasing::Disjoint);
    env.lanes = Some(first_lanes(lanes));
    env.device = Some(DeviceRules { buffer_bytes: layout.buffer_bytes(lanes), modes: Some(properties.floats) });
    for component in 0..3 {
        env.system.insert(format!("WorkgroupId.{component}"), vec![0]);
        env.system.insert(format!("BaseWorkgroupId.{component}"), vec![0]);
        env.system.insert(format!("NumWorkgroups.{component}"), vec![1]);
    }
    env.system.insert("SubgroupSize.0".to_owned(), vec![properties.subgroup_size]);
    env.system.insert("SubgroupId.0".to_owned(), vec![0]);
    env
}

/// The expected contents of a storage buffer.
struct Expected {
    value: u32,
    open: u32,
}

/// Runs a program on the device and in the interpreter, and compares the results, with a planted mistake in the
/// interpreter if given. If lanes race because all of them access one part of each buffer, each gets a part of its own.
/// If nothing can be compared because denormals may be flushed, the program is changed to flush them.
///
/// # Errors
/// If the device is gone.
pub fn observe(
    device: &mut Device,
    shader: &Shader,
    env: &Env,
    mistake: Option<&Mistake>,
    scratch: &mut Scratch,
) -> Result<Observation, DeviceError> {
    let mut preparation = Preparation { layout: Layout::Shared, flushes: false };
    loop {
        let prepared = match prepare(shader, device.properties(), preparation) {
            Ok(prepared) => prepared,
            Err(why) => return Ok(Observation::excluded(why)),
        };
        let env = environment(env, &prepared.shader, device.properties(), preparation.layout);
        let mut seen = observe_prepared(device, &prepared.shader, &env, mistake, scratch)?;
        let is_open = matches!(seen.verdict, Verdict::Excluded(_) | Verdict::NothingCompared);
        match (seen.races, preparation) {
            (true, Preparation { layout: Layout::Shared, .. }) => preparation.layout = Layout::Private,
            (_, Preparation { flushes: false, .. }) if is_open && seen.freedoms.contains(DENORMALS) => {
                preparation.flushes = true;
            }
            _ => {
                seen.replaced = prepared.replaced;
                seen.prepared = Some(Box::new((prepared.shader, env)));
                return Ok(seen);
            }
        }
    }
}

/// Runs a prepared program in the interpreter and on a device, in an environment that has the rules of the device.
fn observe_prepared(
    device: &mut Device,
    shader: &Shader,
    env: &Env,
    mistake: Option<&Mistake>,
    scratch: &mut Scratch,
) -> Result<Observation, DeviceError> {
    let Some(rules) = env.device else { return Ok(Observation::excluded("an environment without a device")) };
    let lanes = lanes_of(shader);
    let planted = mistake.map(|mistake| mistake.planted(shader));
    let decoded = match Decoded::new(planted.as_ref().unwrap_or(shader)) {
        Ok(decoded) => decoded,
        Err(why) => return Ok(Observation::excluded(format!("the interpreter does not support {}", why.what))),
    };
    let (outcome, trace) = scratch.traced(|scratch| decoded.run(env, env.fuel(), scratch));
    match &outcome.end {
        End::Finished => {}
        End::OutOfFuel => return Ok(Observation::excluded("a run without an end")),
        End::Undefined { reason, .. } => {
            return Ok(Observation { freedoms: outcome.freedoms, ..Observation::excluded(reason.to_string()) });
        }
    }
    if let Some(race) = first_race(&trace, first_lanes(lanes)) {
        let races = matches!(race, Race::Data | Race::AtomicOrder);
        return Ok(Observation { races, ..Observation::excluded(race.name()) });
    }
    let floats = rules.modes.unwrap_or_default();
    let modes = Modes { floats, reconverges: device.properties().reconverges };
    let module = match catch(|| Module::for_device(shader, modes)) {
        Ok(Ok(module)) => module,
        Ok(Err(why)) => return Ok(Observation::excluded(why.to_string())),
        Err(_) => return Ok(Observation::excluded("a translation to SPIR-V that panics")),
    };
    let job = Job::new(module.words(), module.descriptors(), env, rules.buffer_bytes);
    let execution = device.execute(&job)?;
    let seen = |verdict| Observation {
        freedoms: outcome.freedoms.clone(),
        module: job.module.clone(),
        ..Observation::new(verdict)
    };
    match execution.kind {
        Kind::Executed | Kind::Unstable => {}
        kind if kind.is_fault() => return Ok(seen(Verdict::Fault(kind, execution.detail))),
        kind => return Ok(seen(Verdict::Refused(kind, execution.detail))),
    }
    let loose = Env { device: Some(rules.loose()), ..env.clone() };
    let loose = decoded.run(&loose, env.fuel(), scratch);
    let mut contents = execution.words.chunks(job.storage_words().max(1));
    let (verdict, words) = compare(&job, &outcome, &loose, contents.next().unwrap_or_default());
    if let Some(second) = contents.next() {
        // Open bits may differ each time.
        let (again, _) = compare(&job, &outcome, &loose, second);
        if again != verdict {
            return Ok(Observation { words, ..seen(Verdict::Fault(Kind::Unstable, execution.detail)) });
        }
    }
    Ok(Observation { words, ..seen(verdict) })
}

/// Compares the contents of the storage buffers of a job after its execution.
fn compare(job: &Job, outcome: &Outcome, loose: &Outcome, actual: &[u32]) -> (Verdict, WordCounts) {
    let stored = |of: &Outcome| -> FxHashMap<(Binding, u32), Expected> {
        let words = of.memory.iter().filter(|word| word.space == Space::Ssbo);
        words.map(|word| ((word.binding, word.word), Expected { value: word.value, open: word.poison })).collect()
    };
    let (strict, loose) = (stored(outcome), stored(loose));
    let (mut words, mut count, mut differences) = (WordCounts::default(), 0, Vec::new());
    let mut rest = actual;
    for buffer in &job.buffers {
        let Some(id) = buffer.storage() else { continue };
        let Some((contents, more)) = rest.split_at_checked(buffer.words.len()) else {
            return (Verdict::Refused(Kind::Failed, "an answer that is too short".to_owned()), words);
        };
        rest = more;
        for ((&initial, &actual), word) in buffer.words.iter().zip(contents).zip(0..) {
            let expected = strict.get(&(id, word));
            let is_stored = expected.is_some();
            let (value, open) = expected.map_or((initial, 0), |expected| (expected.value, expected.open));
            if (value ^ actual) & !open != 0 {
                count += 1;
                if differences.len() < LISTED {
                    differences.push(Difference { buffer: id, word, expected: value, actual, open, is_stored });
                }
            }
            if is_stored {
                let agrees = || loose.get(&(id, word)).is_some_and(|it| (it.value ^ actual) & !it.open == 0);
                match open {
                    0 => words.exact += 1,
                    u32::MAX if agrees() => words.agreed += 1,
                    u32::MAX => words.open += 1,
                    _ => words.partly += 1,
                }
            }
        }
    }
    let verdict = match count {
        0 if words.exact + words.partly == 0 => Verdict::NothingCompared,
        0 => Verdict::Equal,
        count => Verdict::Differs(count, differences),
    };
    (verdict, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_programs::generator::{Features, Profile};
    use ir3_programs::spirv::{DescribedBuffer, Descriptor};
    use ir3_programs::vulkan::{JobBuffer, Library};
    use ir3_semantics::environment::device::FloatModes;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    const TEXT: &str = "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 1, 1, 1\nnum_ssbos: 1\nsubgroup_size: 1\n\
                        decl_function main () (entrypoint)\n\nimpl main {\n    block b0:\n    32 %0 = load_const (0x00000000)\n    \
                        32x4 %1 = @load_const_ir3 (%0) (base=0)\n    32 %2 = fadd %1.x, %1.y\n    \
                        @store_ssbo_ir3 (%2, %0, %0, %0) (base=0, wrmask=x)\n    block b1:\n}\n";

    /// The verdict on a buffer of two words, of which the program stores the first: a sum of these words.
    fn verdict(consts: [u32; 2], actual: [u32; 2]) -> (Verdict, WordCounts) {
        let shader = ir3_compiler::nir::read(TEXT).expect("a program");
        let decoded = Decoded::new(&shader).expect("a program that can be run");
        let modes = FloatModes { keeps_specials: [true; 3], rounds_to_even: [true; 3], ..FloatModes::default() };
        let rules = DeviceRules { buffer_bytes: 8, modes: Some(modes) };
        let consts = consts.into_iter().zip(0..).map(|(word, at)| (at, word)).collect();
        let env = Env { device: Some(rules), lanes: Some(1), consts, ..Env::from_seed(1) };
        let loose = Env { device: Some(rules.loose()), ..env.clone() };
        let mut scratch = Scratch::default();
        let [outcome, loose] = [&env, &loose].map(|env| decoded.run(env, env.fuel(), &mut scratch));
        let buffer = DescribedBuffer::Storage(Binding::bound(0));
        let descriptor = Descriptor { buffer, set: 0, binding: 64, element: 0 };
        let buffers = vec![JobBuffer { descriptor, words: vec![5, 6] }];
        compare(&Job { module: Vec::new(), pushed: Vec::new(), buffers }, &outcome, &loose, &actual)
    }

    #[test]
    fn defined_bits_are_compared_and_no_others() {
        let (one, two, nan) = (0x3f80_0000, 0x4000_0000, 0x7fc0_0000);
        assert_eq!(verdict([one, one], [two, 6]), (Verdict::Equal, WordCounts { exact: 1, ..WordCounts::default() }));
        let differs = |verdict: Verdict| match verdict {
            Verdict::Differs(count, list) => Some((count, list[0].word, list[0].is_stored)),
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

    /// Generated programs on lavapipe, where it is and the worker is built.
    #[test]
    fn generated_programs_agree_with_lavapipe() {
        let device = Library::find(Some("lavapipe"))
            .ok()
            .and_then(|library| Device::open(&library, Duration::from_secs(10)).ok().map(|device| (library, device)));
        let Some((library, device)) = device.filter(|(_, device)| device.name().contains("llvmpipe")) else {
            eprintln!("no lavapipe, or no ir3-vulkan: nothing is tested (`ci/stock-mesa --lavapipe` unpacks it)");
            return;
        };
        drop(device);
        let campaign = super::super::campaign::Campaign {
            library: &library,
            device_time: Duration::from_secs(10),
            seed: 3,
            first: 0,
            programs: Some(60),
            time: None,
            profiles: Profile::ALL.to_vec(),
            features: super::super::campaign::features(Features::ALL),
            jobs: 2,
            keep_going: true,
            mistake: None,
        };
        let mut failures = Vec::new();
        let mut found = |finding: &super::super::campaign::Finding<'_>| failures.push(finding.seen.verdict.to_string());
        let counts = campaign.run(&AtomicBool::new(false), &mut found, &mut |_| {}).expect("a device");
        assert!(failures.is_empty(), "{failures:?}");
        assert!(counts.programs == 60 && counts.equal > 25, "{counts:?}");
    }
}
