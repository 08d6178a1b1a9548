//! Seeds of the programs and environments of a campaign, the same on every machine.

use crate::numbers::{InputNumber, InputNumbers};
use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::{Shader, Stage};
use ir3_semantics::arithmetic::rows::LANES;
use ir3_semantics::environment::aliases::MemoryName;
use ir3_semantics::environment::corners::CORNERS;
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::hints::Hints;
use ir3_semantics::interp;
use ir3_semantics::support::random::{Random, hash};
use std::collections::BTreeSet;

/// The seed of program `number` of a campaign: that number of its stream.
pub fn program_seed(campaign: u64, number: u64) -> u64 {
    Random::from_number(campaign, number).next()
}

/// The seeds of the environments of a program.
pub fn env_seeds(program: u64, runs: u32) -> Vec<u64> {
    (0..u64::from(runs)).map(|i| env_seed(program, i)).collect()
}

/// The environment of a program of a campaign that has this seed. In a third of them, a share of the words that the
/// program reads are corner cases.
pub fn campaign_env(seed: u64) -> Env {
    let drawn = hash(&[0x636f_726e_6572_7300, seed]);
    let corner_words = if drawn.is_multiple_of(3) { 1 + (drawn >> 32) as u8 % 7 } else { 0 };
    Env { corner_words, ..Env::from_seed(seed) }
}

/// The environments of a program of a campaign.
pub fn campaign_envs(program: u64, runs: u32) -> Vec<Env> {
    env_seeds(program, runs).into_iter().map(campaign_env).collect()
}

fn env_seed(program: u64, number: u64) -> u64 {
    program_seed(program ^ 0x656e_7673, number)
}

/// The environment in a dispatch or draw of many workgroups, vertices and instances: the numbers have up to 16 bits.
fn with_large_dispatch(mut env: Env, seed: u64) -> Env {
    let mut random = Random::new(seed ^ 0x006c_6172_6765);
    for component in 0..3 {
        let bits = random.below(17);
        let number = random.below(1 << bits) as u32;
        env.system.insert(format!("{:?}.{component}", SystemValue::WorkgroupId), vec![number]);
        let more = random.below(1 << bits) as u32;
        env.system.insert(format!("{:?}.{component}", SystemValue::NumWorkgroups), vec![number + 1 + more]);
    }
    for value in [SystemValue::VertexIdZeroBase, SystemValue::InstanceId] {
        let bits = random.below(17);
        let numbers = (0..LANES).map(|_| random.below(1 << bits) as u32).collect();
        env.system.insert(format!("{value:?}.0"), numbers);
    }
    env
}

/// The environment in which the fragments are near the corner of the window: an 8 × 8 square of pixels at one of its
/// first places.
fn at_window_corner(mut env: Env, seed: u64) -> Env {
    let mut random = Random::new(seed ^ 0x0000_636f_726e_6572);
    for component in 0..2u32 {
        let bits = random.below(5);
        let first = 8 * random.below(1 << bits) as u32;
        let place = |lane: u32| match component {
            0 => lane / 4 % 4 * 2 + (lane & 1),
            _ => lane / 16 * 2 + (lane >> 1 & 1),
        };
        // In sixteenths of a pixel.
        let all = (0..LANES as u32).map(|lane| (first + place(lane)) * 16 + 8).collect();
        env.system.insert(format!("{:?}.{component}", SystemValue::FragCoord), all);
    }
    env
}

/// The environments in which one program is verified, by number. Half of them fit it.
#[derive(Clone, Debug)]
pub struct ProgramEnvs {
    hints: Box<Hints>,
    /// The inputs that are one number each.
    pub numbers: InputNumbers,
    /// The memories that alias no other one, as the program promises.
    alone: BTreeSet<MemoryName>,
    seed: u64,
    /// The stage.
    stage: Stage,
}

impl ProgramEnvs {
    /// The environments of a program and a seed.
    pub fn new(shader: &Shader, seed: u64) -> Self {
        let alone = interp::nir::unaliased(shader);
        let numbers = InputNumbers::of(shader);
        Self { hints: Box::new(numbers.hints().clone()), numbers, alone, seed, stage: shader.stage }
    }

    /// The lanes of the smallest wave: one, or a quad of fragments.
    fn smallest(&self) -> u64 {
        if self.stage == Stage::Fragment { 0xf } else { 1 }
    }

    /// The environment in a large dispatch, or at the corner of the window.
    fn elsewhere(&self, env: Env, seed: u64) -> Env {
        match self.stage {
            Stage::Fragment => at_window_corner(env, seed),
            _ => with_large_dispatch(env, seed),
        }
    }

    /// The environment of a seed, in which the promises of the program hold.
    fn seeded(&self, seed: u64) -> Env {
        Env { alone: self.alone.clone(), ..Env::from_seed(seed) }
    }

    /// The environment of a number. Each second one fits no program: it has more corner cases.
    pub fn env(&self, number: usize) -> Env {
        let hints = number.is_multiple_of(2).then(|| self.hints.clone());
        Env { hints, ..self.seeded(env_seed(self.seed, number as u64)) }
    }

    /// A candidate for an environment that shows more of the program than those before: in turn one that fits the
    /// program, one that does not, one of small values or of units or with coarse textures, and the best one so far
    /// with other uniform words.
    pub fn candidate(&self, number: usize, best: Option<&Env>) -> Env {
        let seed = env_seed(self.seed, number as u64);
        match (number % 4, best) {
            (0 | 1, _) => self.env(number),
            (3, Some(best)) => self.with_other_words(best, seed),
            _ => match number % 16 {
                2 | 3 => self.calm(seed),
                6 | 7 => self.units(seed),
                10 | 11 => Env { coarse_texels: 1, ..self.calm(seed) },
                _ => self.with_cells(seed),
            },
        }
    }

    /// An environment for comparing only, by number: as candidates, and in turn textures most of which are black or
    /// have corner cases, units, the smallest wave, a large dispatch or the corner of the window, and corner cases in a
    /// few of the words and inputs that the program reads, the others being small or those of the best one so far.
    pub fn comparison(&self, number: usize, best: Option<&Env>) -> Env {
        let seed = env_seed(self.seed, number as u64);
        match number % 8 {
            // All memory is one word: values that are loaded are equal.
            0 if number % 16 == 8 => {
                let fill = match number % 32 {
                    8 => CORNERS[(seed % CORNERS.len() as u64) as usize],
                    _ => self.hints.word(seed, seed, self.hints.memory_usage()),
                };
                Env { fill: Some(fill), ..self.numbers.with_words_given(&self.env(number)) }
            }
            0 => Env { black_texels: 2 + (seed % 5) as u8, ..self.env(number) },
            1 if number % 16 == 9 => self.units(seed),
            1 => Env { corner_texels: 1 + (seed % 5) as u8, ..self.candidate(number, best) },
            2 if number % 16 == 10 => self.with_cells(seed),
            2 => Env { lanes: Some(self.smallest()), ..self.candidate(number, best) },
            4 => self.elsewhere(self.env(number), seed),
            5 => self.with_other_inputs(&self.with_other_words(&self.calm(seed), seed), seed),
            6 => self.elsewhere(self.calm(seed), seed),
            7 => self.with_other_words(best.unwrap_or(&self.env(number - 1)), seed),
            _ => self.candidate(number, best),
        }
    }

    /// The environment with another word in the constant file or in a uniform buffer, so that a comparison has the
    /// other result: the word was one of its operands, which `compared` has, and becomes the other one or its
    /// neighbour. `None` if no word is an operand.
    pub fn towards(&self, env: &Env, compared: &[[u32; 2]], number: usize) -> Option<Env> {
        let mut random = Random::new(env_seed(self.seed, number as u64));
        let given: Vec<(InputNumber, u32)> =
            self.numbers.words().iter().map(|&word| (word, self.numbers.value(word, env))).collect();
        let mut possible = Vec::new();
        for &[a, b] in compared.iter().filter(|[a, b]| a != b) {
            possible.extend(given.iter().filter(|(_, value)| *value == a).map(|&(word, _)| (word, b)));
            possible.extend(given.iter().filter(|(_, value)| *value == b).map(|&(word, _)| (word, a)));
        }
        possible.sort_unstable();
        possible.dedup();
        let (word, value) = random.pick(&possible)?;
        self.numbers.with(env, word, value.wrapping_add([0, 1, u32::MAX][random.below(3)]))
    }

    /// An environment that fits the program, with coarse textures: few cells, or one.
    fn with_cells(&self, seed: u64) -> Env {
        let coarse_texels = [1, 2, 3, 5][(seed >> 32) as usize % 4];
        Env { hints: Some(self.hints.clone()), coarse_texels, ..self.seeded(seed) }
    }

    /// An environment whose values are mostly 0, 1 and -1.
    fn units(&self, seed: u64) -> Env {
        Env { hints: Some(Box::new(self.hints.units())), ..self.seeded(seed) }
    }

    /// An environment of small values.
    fn calm(&self, seed: u64) -> Env {
        Env { hints: Some(Box::new(self.hints.calm())), ..self.seeded(seed) }
    }

    /// The environment with up to three other words in the constant file and in uniform buffers, of those that the
    /// program reads: values that fit, corner cases, and values that another word has, too, or its neighbours. Two
    /// words that a program compares are hardly ever equal by chance.
    fn with_other_words(&self, env: &Env, seed: u64) -> Env {
        let mut env = env.clone();
        let words = self.numbers.words();
        let mut random = Random::new(seed);
        for at in 0..1 + random.below(3) as u64 {
            let Some(word) = random.pick(words) else { break };
            let value = match random.below(4) {
                0 => CORNERS[random.below(CORNERS.len())],
                1 => {
                    let of = random.pick(words).unwrap_or(word);
                    let near = [0, 0, 1, u32::MAX, 2, 5][random.below(6)];
                    self.numbers.value(of, &env).wrapping_add(near)
                }
                _ => self.hints.word(seed, hash(&[seed, at]), self.numbers.usage(word)),
            };
            env = self.numbers.with(&env, word, value).unwrap_or(env);
        }
        env
    }

    /// The environment with corner cases in some components of the inputs that the program reads: in every other lane
    /// of an attribute, and all over a fragment input. Zeros have their sign, which a slope of the other sign would
    /// take away.
    fn with_other_inputs(&self, env: &Env, seed: u64) -> Env {
        let mut env = env.clone();
        let places: Vec<u32> = self.hints.input_places().into_iter().collect();
        let mut random = Random::new(seed ^ 0x696e_7075);
        for _ in 0..1 + random.below(3) {
            let Some(place) = random.pick(&places) else { break };
            if self.stage == Stage::Fragment {
                let corner = CORNERS[random.below(CORNERS.len())];
                let zero = corner & 0x8000_0000;
                env.varyings.insert(place, [corner, zero, zero]);
            } else {
                let mut row = [0; LANES];
                env.attribute(place / 4, place % 4, &mut row);
                row.iter_mut().step_by(2).for_each(|word| *word = CORNERS[random.below(CORNERS.len())]);
                env.attributes.insert(format!("{}.{}", place / 4, place % 4), row.to_vec());
            }
        }
        env
    }

    /// The first environments.
    pub fn first(&self, count: u32) -> Vec<Env> {
        (0..count as usize).map(|number| self.env(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_semantics::environment::env::Launch;

    #[test]
    fn environments_for_comparing_have_all_forms() {
        let shader = ir3_compiler::nir::text::read(
            "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = @load_const_ir3 (%0) (base=4)
    32     %2 = @load_const_ir3 (%0) (base=5)
    32     %3 = iadd %1, %2
                @store_ssbo_ir3 (%3, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}
",
        )
        .expect("a shader");
        let envs = ProgramEnvs::new(&shader, 1);
        let all: Vec<Env> = (0..1600).map(|number| envs.comparison(number, None)).collect();
        let count = |holds: &dyn Fn(&Env) -> bool| all.iter().filter(|env| holds(env)).count();
        assert_eq!(count(&|env| env.lanes == Some(1)), 100);
        // Workgroups beyond the few of other environments.
        let group = |env: &Env| env.system.get("WorkgroupId.0").map(|values| values[0]);
        let fits = |env: &Env| env.system["NumWorkgroups.0"][0] > env.system["WorkgroupId.0"][0];
        assert_eq!(count(&|env| group(env).is_some() && fits(env)), 400);
        assert!(count(&|env| group(env).is_some_and(|group| group >= 256)) > 100);
        // Two words that are equal, or next to each other; corners.
        let gap = |env: &Env| env.const_word(4).wrapping_sub(env.const_word(5)).wrapping_add(2);
        assert!(count(&|env| !env.consts.is_empty() && gap(env) <= 4) > 60);
        assert!(count(&|env| [0x8000_0000, 0x7fc0_0000, 0x7fff_ffff].contains(&env.const_word(4))) > 5);
        assert_eq!(Env::from_json(&all[13].to_json()).expect("JSON"), all[13]);
    }

    #[test]
    fn fragments_are_at_the_corner_of_the_window_and_have_corner_cases() {
        let shader = ir3_compiler::nir::text::read(
            "shader: MESA_SHADER_FRAGMENT
inputs: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32x2   %1 = @load_barycentric_pixel (interp_mode=INTERP_MODE_SMOOTH)
    32     %2 = @load_interpolated_input (%1, %0) (base=0, component=1, dest_type=float32)
    32     %3 = fadd %2, %2
                @store_output (%3, %0) (base=0, range=1, wrmask=x, component=0, src_type=float32)
    block b1:
}
",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let envs = ProgramEnvs::new(&shader, 1);
        let all: Vec<Env> = (0..1600).map(|number| envs.comparison(number, None)).collect();
        let count = |holds: &dyn Fn(&Env) -> bool| all.iter().filter(|env| holds(env)).count();
        let launch = Launch { fragment: true, ..Launch::default() };
        let first = |env: &Env| {
            let mut row = [0; LANES];
            env.system_value(launch, SystemValue::FragCoord, 0, &mut row);
            // The position of a pixel in its quad stays: lanes 0 and 1 are neighbours.
            assert_eq!(row[1], row[0] + 16);
            row[0] / 16
        };
        assert!(count(&|env| first(env) == 0) > 100);
        assert!(count(&|env| first(env) > 64) > 600);
        let negative_zero = [0x8000_0000; 3];
        assert!(count(&|env| env.varyings.get(&1) == Some(&negative_zero)) >= 3);
        assert_eq!(count(&|env| env.black_texels > 0), 100);
        assert!(count(&|env| env.coarse_texels > 0) >= 100);
        assert_eq!(count(&|env| env.corner_texels > 0), 100);
        assert_eq!(Env::from_json(&all[16].to_json()).expect("JSON"), all[16]);
    }

    /// Reports and tests name seeds: their values must never change.
    #[test]
    fn seeds_stay_what_they_are() {
        let seeds = [(1, 0), (1, 1), (0xb06, 59), (u64::MAX, u64::MAX)]
            .map(|(campaign, number)| program_seed(campaign, number));
        assert_eq!(seeds, [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67, 0x00fa_8228_c174_61c9, 0xb4d0_55fc_f2cb_bd7b]);
    }
}
