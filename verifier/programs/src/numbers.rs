//! The inputs of a program that are one number each, to be set one at a time.

use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::{InstrData, Shader, Stage};
use ir3_semantics::arithmetic::rows::LANES;
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::env::{Env, Launch, system_value_of};
use ir3_semantics::environment::hints::{Hints, Usage};
use ir3_semantics::environment::memory::Space;
use std::collections::BTreeSet;

/// An input that is one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputNumber {
    /// A word of the constant file.
    Const(u32),
    /// A word of a uniform buffer.
    Ubo(Binding, u32),
    /// A component of a vertex attribute, by `4 * base + component`: the same in all lanes.
    Attribute(u32),
    /// A component of a fragment input, which is flat.
    Varying(u32),
    /// A component of a system value: the same in all lanes.
    System(SystemValue, u8),
    /// All words of memory, and those of uniform buffers that are not given.
    Memory,
}

/// The most words of uniform buffers.
const MOST_UBO_WORDS: usize = 64;

/// The inputs of a program that are one number each.
#[derive(Clone, Debug)]
pub struct InputNumbers {
    hints: Hints,
    launch: Launch,
    all: Vec<InputNumber>,
    /// The number of the first of them that are words of the constant file and of uniform buffers.
    words: usize,
}

impl InputNumbers {
    /// The inputs of a program.
    pub fn of(shader: &Shader) -> Self {
        let hints = Hints::of(shader);
        let ubos = Hints::ubo_places(shader).into_iter().take(MOST_UBO_WORDS);
        let mut all: Vec<InputNumber> = hints.const_words().into_iter().map(InputNumber::Const).collect();
        all.extend(ubos.map(|(binding, word)| InputNumber::Ubo(binding, word)));
        let words = all.len();
        match shader.stage {
            Stage::Vertex => all.extend(hints.input_places().into_iter().map(InputNumber::Attribute)),
            Stage::Fragment => all.extend(hints.input_places().into_iter().map(InputNumber::Varying)),
            _ => {}
        }
        all.extend(system_values(shader));
        all.push(InputNumber::Memory);
        let launch = Launch::of(shader);
        Self { hints, launch, all, words }
    }

    /// All of them.
    pub fn all(&self) -> &[InputNumber] {
        &self.all
    }

    /// The words of the constant file and of uniform buffers.
    pub fn words(&self) -> &[InputNumber] {
        &self.all[..self.words]
    }

    /// The hints of the program.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// The environment in which the words of the constant file and of uniform buffers are given: the same whatever
    /// memory is filled with.
    pub fn with_words_given(&self, env: &Env) -> Env {
        let addresses = self.hints.address_words().map(InputNumber::Const);
        let words = self.words().iter().copied().chain(addresses);
        words.fold(env.clone(), |given, word| self.with(&given, word, self.value(word, env)).unwrap_or(given))
    }

    /// The type with which an input is read.
    pub fn usage(&self, input: InputNumber) -> Usage {
        match input {
            InputNumber::Const(word) => self.hints.const_usage(word),
            InputNumber::Ubo(_, word) => self.hints.ubo_usage(word),
            InputNumber::Attribute(place) | InputNumber::Varying(place) => self.hints.input_usage(place),
            InputNumber::System(..) => Usage::Int,
            InputNumber::Memory => self.hints.memory_usage(),
        }
    }

    /// The value of an input; that of the first lane if lanes have several.
    pub fn value(&self, input: InputNumber, env: &Env) -> u32 {
        let mut row = [0; LANES];
        match input {
            InputNumber::Const(word) => return env.const_word(word),
            InputNumber::Ubo(binding, word) => return env.ubo_word(binding, word),
            InputNumber::Varying(place) => return env.varying(place, 0)[0],
            InputNumber::Memory => return env.memory_word(Space::Ssbo, Binding::NONE, 0),
            InputNumber::Attribute(place) => env.attribute(place / 4, place % 4, &mut row),
            InputNumber::System(value, component) => {
                env.system_value(self.launch, value, component.into(), &mut row);
            }
        }
        row[0]
    }

    /// The environment with another value of an input. `None` if no environment has this value with the others
    /// unchanged.
    pub fn with(&self, env: &Env, input: InputNumber, word: u32) -> Option<Env> {
        let mut env = env.clone();
        match input {
            InputNumber::Const(at) => {
                env.consts.insert(at, word);
            }
            InputNumber::Ubo(binding, at) => {
                // By default nothing aliases if words of memory are given by name.
                env.aliases = Some(env.aliasing());
                env.memory.entry(format!("ubo {binding}")).or_default().insert(at, word);
            }
            InputNumber::Varying(place) => {
                // A slope of the other sign would take the sign of a zero away.
                let zero = word & 0x8000_0000;
                env.varyings.insert(place, [word, zero, zero]);
            }
            InputNumber::Attribute(place) => {
                env.attributes.insert(format!("{}.{}", place / 4, place % 4), vec![word]);
            }
            InputNumber::System(value, component) => {
                let name = |value: SystemValue| format!("{value:?}.{component}");
                let other = |value| self.value(InputNumber::System(value, component), &env);
                // A workgroup has a number below that of all of them.
                let beside = match value {
                    SystemValue::WorkgroupId if word < 0xffff => {
                        Some((SystemValue::NumWorkgroups, other(SystemValue::NumWorkgroups).max(word + 1)))
                    }
                    SystemValue::NumWorkgroups if (1..=0xffff).contains(&word) => {
                        Some((SystemValue::WorkgroupId, other(SystemValue::WorkgroupId).min(word - 1)))
                    }
                    SystemValue::WorkgroupId | SystemValue::NumWorkgroups => return None,
                    _ => None,
                };
                env.system.extend(beside.map(|(value, word)| (name(value), vec![word])));
                env.system.insert(name(value), vec![word]);
            }
            InputNumber::Memory => {
                env = self.with_words_given(&env);
                env.fill = Some(word);
            }
        }
        Some(env)
    }
}

/// The system values that a program reads, of those that are numbers of a dispatch or draw.
fn system_values(shader: &Shader) -> Vec<InputNumber> {
    use SystemValue::{
        BaseInstance, BaseVertex, BaseWorkgroupId, InstanceId, NumWorkgroups, VertexIdZeroBase, WorkgroupId,
    };
    let mut found = BTreeSet::new();
    for data in shader.entry.instrs.values() {
        let InstrData::Intrinsic(intrinsic) = data else { continue };
        let (Some(value), Some(def)) = (system_value_of(intrinsic.op), intrinsic.def) else { continue };
        let is_free = matches!(
            value,
            WorkgroupId | NumWorkgroups | BaseWorkgroupId | BaseVertex | BaseInstance | InstanceId | VertexIdZeroBase
        );
        if is_free {
            found.extend(
                (0..shader.entry.defs[def].num_components).map(|component| InputNumber::System(value, component)),
            );
        }
    }
    found.into_iter().collect()
}
