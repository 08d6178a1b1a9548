//! Ties: inputs for which the operands of a comparison are equal.
//!
//! A pass that turns `lt` into `le`, or compares with another number, is right but for a few inputs. The computation of
//! an operand is ignored: for each input that is one number, the run is repeated with another value, and the gap
//! between the operands of each comparison is a function of it of which two values are known. The secant through them
//! leads to the next value, and so on, until the operands are equal. That is the method of secants, with a run of the
//! program for the function.

use super::SensitivityProbe;
use super::inputs::ProgramInputs;
use cpu_time::ThreadTime;
use ir3_programs::numbers::InputNumber;
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::hints::Usage;
use ir3_semantics::interp::ir3::ComparisonPoint;
use std::collections::BTreeMap;
use std::time::Duration;

/// The inputs by which a comparison is tied.
const MOST_TIES: usize = 3;
/// The points of a comparison that are tried with one input.
const MOST_POINTS: usize = 2;
/// The steps to a tie.
const STEPS: usize = 10;
/// A gap that is this much smaller than at first is as good as none: rounding may leave no tie.
const CLOSE: f64 = 1.0 / 4096.0;
/// The floats on each side of such a value among which a tie is looked for.
const NEAR: u32 = 6;

/// A search for ties of the comparisons of one program.
pub(super) struct Ties<'a> {
    inputs: &'a ProgramInputs,
    probe: &'a mut SensitivityProbe,
    fuel: u64,
    /// The number of inputs by which each comparison was tied.
    found: BTreeMap<u32, usize>,
    start: ThreadTime,
    limit: Duration,
}

/// A value of an input, and the gap with it.
#[derive(Clone, Copy)]
struct Sample {
    word: u32,
    gap: f64,
}

impl<'a> Ties<'a> {
    pub fn new(inputs: &'a ProgramInputs, probe: &'a mut SensitivityProbe, fuel: u64, limit: Duration) -> Self {
        Self { inputs, probe, fuel, found: BTreeMap::new(), start: ThreadTime::now(), limit }
    }

    fn is_out_of_time(&self) -> bool {
        self.start.elapsed() >= self.limit
    }

    /// Searches near an environment. `each` receives those that were found, and returns false to end the search.
    pub fn search(&mut self, env: &Env, each: &mut dyn FnMut(&[Env]) -> bool) {
        for &input in self.inputs.envs.numbers.all() {
            if self.is_out_of_time() {
                return;
            }
            let word = self.inputs.envs.numbers.value(input, env);
            let is_float = is_float(self.inputs.envs.numbers.usage(input), word);
            let mut search = Search { ties: self, env, input, is_float };
            if !search.run(word, each) {
                return;
            }
        }
    }
}

/// A search by one input.
struct Search<'s, 'a> {
    ties: &'s mut Ties<'a>,
    env: &'s Env,
    input: InputNumber,
    is_float: bool,
}

impl Search<'_, '_> {
    fn run(&mut self, word: u32, each: &mut dyn FnMut(&[Env]) -> bool) -> bool {
        let other = self.moved(word);
        let (first, second) = (self.gaps(word), self.gaps(other));
        let mut tried: BTreeMap<u32, usize> = BTreeMap::new();
        for (point, &gap) in &first {
            let comparison = point.comparison;
            let Some(&other_gap) = second.get(point) else { continue };
            if self.ties.is_out_of_time() {
                return false;
            }
            let is_open = self.ties.found.get(&comparison).is_none_or(|&found| found < MOST_TIES);
            if !is_open || gap == other_gap {
                continue;
            }
            let tries = tried.entry(comparison).or_default();
            *tries += 1;
            if *tries > MOST_POINTS {
                continue;
            }
            let samples = [Sample { word, gap }, Sample { word: other, gap: other_gap }];
            let Some(tie) = self.tie(point, samples) else { continue };
            tried.insert(comparison, MOST_POINTS);
            *self.ties.found.entry(comparison).or_default() += 1;
            // The zero of the other sign is equal, too, and no number is neither less nor more.
            let other_zero = (self.is_float && tie << 1 == 0).then_some(tie ^ 0x8000_0000);
            let none = self.is_float.then_some(f32::NAN.to_bits());
            let words = [tie, tie.wrapping_add(1), tie.wrapping_sub(1)].into_iter().chain(other_zero).chain(none);
            let envs: Vec<Env> = words.filter_map(|word| self.at(word)).collect();
            if !each(&envs) {
                return false;
            }
        }
        true
    }

    /// Moves a gap to 0, from two samples of it.
    fn tie(&mut self, point: &ComparisonPoint, [mut last, mut this]: [Sample; 2]) -> Option<u32> {
        let close = last.gap.abs().max(this.gap.abs()) * CLOSE;
        let mut best = if last.gap.abs() < this.gap.abs() { last } else { this };
        for _ in 0..STEPS {
            if best.gap == 0.0 {
                break;
            }
            let [x0, x1] = [last, this].map(|sample| self.number(sample.word));
            let slope = (this.gap - last.gap) / (x1 - x0);
            let Some(word) = self.word(x1 - this.gap / slope) else { break };
            if word == this.word || word == last.word {
                break;
            }
            let Some(&gap) = self.gaps(word).get(point) else { break };
            (last, this) = (this, Sample { word, gap });
            if gap.abs() < best.gap.abs() {
                best = this;
            }
        }
        if self.is_float && best.gap != 0.0 && best.gap.abs() <= close {
            best.word = self.tie_near(point, best.word).unwrap_or(best.word);
        }
        (best.gap.abs() <= close).then_some(best.word)
    }

    /// Looks for a tie among the floats next to one that all but ties: rounding decides which of them does.
    fn tie_near(&mut self, point: &ComparisonPoint, word: u32) -> Option<u32> {
        let steps = (1..=NEAR).flat_map(|step| [word.wrapping_add(step), word.wrapping_sub(step)]);
        for word in steps {
            if self.ties.is_out_of_time() {
                return None;
            }
            if self.gaps(word).get(point) == Some(&0.0) {
                return Some(word);
            }
        }
        None
    }

    /// The gaps of all comparisons with a value.
    fn gaps(&mut self, word: u32) -> BTreeMap<ComparisonPoint, f64> {
        let Some(env) = self.at(word) else { return BTreeMap::new() };
        let compared = self.ties.probe.compared(&env, self.ties.fuel);
        compared.into_iter().filter(|it| it.gap.is_finite()).map(|it| (it.at, it.gap)).collect()
    }

    fn at(&self, word: u32) -> Option<Env> {
        let inputs = self.ties.inputs;
        let env = inputs.envs.numbers.with(self.env, self.input, word)?;
        Some(Env { fuel: Some(self.ties.fuel), ..inputs.with_booleans(env) })
    }

    /// Another value, not far away.
    fn moved(&self, word: u32) -> u32 {
        match self.is_float {
            true if f32::from_bits(word).abs() < 1.0 => (f32::from_bits(word) + 0.5).to_bits(),
            true => (f32::from_bits(word) * 1.25).to_bits(),
            false => word.wrapping_add(1),
        }
    }

    fn number(&self, word: u32) -> f64 {
        if self.is_float { f32::from_bits(word).into() } else { (word as i32).into() }
    }

    /// The word that is nearest to a number.
    fn word(&self, number: f64) -> Option<u32> {
        let range = f64::from(i32::MIN)..=f64::from(u32::MAX);
        match self.is_float {
            true => Some(number as f32).filter(|float| float.is_finite()).map(f32::to_bits),
            false => Some(number.round()).filter(|number| range.contains(number)).map(|number| number as i64 as u32),
        }
    }
}

/// Returns true if a word is a float by its use, or looks like one.
fn is_float(usage: Usage, word: u32) -> bool {
    match usage {
        Usage::Float => f32::from_bits(word).is_finite(),
        Usage::Int | Usage::Address(_) => false,
        Usage::Any | Usage::Halves(_) => (0x3000_0000..0x5000_0000).contains(&(word & 0x7fff_ffff)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::compilation::compile;
    use ir3_compiler::nir::text;
    use ir3_compiler::pipeline::Options;
    use ir3_compiler::target::Target;

    /// Stores whether word 4 as a float, times 3 and plus 1, is less than the integer word 5 as a float.
    const SOURCE: &str = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = @load_const_ir3 (%0) (base=4)
    32     %2 = @load_const_ir3 (%0) (base=5)
    32     %3 = load_const (0x40400000)
    32     %4 = fmul %1, %3
    32     %5 = load_const (0x3f800000)
    32     %6 = fadd %4, %5
    32     %7 = i2f32 %2
    1      %8 = flt %6, %7
    32     %9 = b2i32 %8
                @store_ssbo_ir3 (%9, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}
";

    #[test]
    fn operands_that_are_computed_become_equal() {
        let shader = text::read(SOURCE).unwrap_or_else(|error| panic!("{error}"));
        let target = Target::default();
        let program = compile(&shader, &target, &Options::default(), &mut |_, _| ()).expect("it compiles");
        let inputs = ProgramInputs::with_boolean_words(&shader, 1);
        let mut probe = SensitivityProbe::new(&program, &target).expect("it is supported");
        let env = inputs.env(0);
        let mut found = Vec::new();
        let mut ties = Ties::new(&inputs, &mut probe, 10_000, Duration::from_secs(60));
        ties.search(&env, &mut |envs| {
            found.extend_from_slice(envs);
            true
        });
        let gap = |env: &Env| {
            let float = f32::from_bits(env.const_word(4)) * 3.0 + 1.0;
            float - env.const_word(5) as i32 as f32
        };
        // By word 4, the first input: the integer makes no tie with most floats.
        let at = found.iter().position(|env| gap(env) == 0.0).unwrap_or_else(|| panic!("a tie in {found:?}"));
        let words: Vec<u32> = found[at..].iter().map(|env| env.const_word(4)).collect();
        assert!(words.starts_with(&[words[0], words[0] + 1, words[0] - 1]), "{words:x?}");
        assert!(words.contains(&f32::NAN.to_bits()), "{words:x?}");
        assert!(gap(&env).abs() > 0.1);
        // It ends on request, and when the time is over.
        let mut times = 0;
        ties.found.clear();
        ties.search(&env, &mut |_| {
            times += 1;
            false
        });
        ties.limit = Duration::ZERO;
        ties.search(&env, &mut |_| panic!("out of time"));
        assert_eq!(times, 1);
    }
}
