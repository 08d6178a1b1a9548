//! What all engines say of one program.
//!
//! Each engine is a way to find out what the program does in one environment; wherever two of them may be compared,
//! they must agree. One that disagrees with the others has a bug. Today there are five:
//!
//! - the interpreter of nir, which the others are held against;
//! - the same on the program's text, written and read again: the very same run;
//! - the same in an environment in which all lanes are one and the same lane: each lane must come out as that lane did
//!   among the others, where the program has nothing that makes lanes depend on each other;
//! - the interpreter of ir3 on the selected program and on the program with registers, which may define more;
//! - the same on the texts of these programs: the very same runs.
//!
//! Reading a text takes several times as long as running what is in it, so the others take turns: which one is asked beside
//! the first is a matter of the input ([`Turn`]), and every sixteenth input is put to all of them. An engine that comes
//! later (the register checker, symbolic execution) takes its turn in [`engines_with`].

use crate::harness::check::{DEFAULT_FUEL, target_fuel};
use crate::harness::fuzz_targets::program::{ProgramInput, with_checker};
use crate::harness::fuzz_targets::{Failure, stats};
use crate::semantics::arithmetic::rows::LANES;
use crate::semantics::environment::env::{Env, Launch, lanes};
use crate::semantics::interp;
use crate::semantics::interp::{Compared, End, Outcome};
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3::{self, SystemValue};
use ir3_compiler::nir::{self, InstrData, IntrinsicOp, Shader, Stage, TexOp};
use ir3_compiler::pipeline::{self, Options};
use ir3_compiler::target::Target;

/// A text that an engine is about to read, for a test that changes it: whose it is, and what it says.
pub type TextPlant<'a> = &'a mut dyn FnMut(&str, &mut String);

/// Who is asked what the program does, beside the interpreter of nir.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The interpreter of nir on the text.
    NirText,
    /// The interpreter of nir on one lane alone.
    Lane,
    /// The interpreter of ir3 on the selected program.
    Selected,
    /// The same, and on its text.
    SelectedText,
    /// The interpreter of ir3 on the program with registers.
    Registers,
    /// The same, and on its text.
    RegistersText,
    /// Everyone.
    All,
}

impl Turn {
    const ALONE: [Self; 6] =
        [Self::NirText, Self::Lane, Self::Selected, Self::SelectedText, Self::Registers, Self::RegistersText];

    /// Whose turn an input is.
    fn of(input: &ProgramInput) -> Self {
        match (input.env_seed >> 8) as usize % 16 {
            0 => Self::All,
            number => Self::ALONE[number % Self::ALONE.len()],
        }
    }

    /// Whether it is the turn of one of these.
    fn is(self, turns: &[Self]) -> bool {
        self == Self::All || turns.contains(&self)
    }
}

/// Asks the engines whose turn it is. The input is worth keeping where the program's run has a meaning.
///
/// # Errors
/// The first engine that does not agree with those before it.
pub fn engines(input: &ProgramInput) -> Result<bool, Failure> {
    engines_with(input, &mut |_, _| {})
}

/// A compilation after selection, if that supports the shader.
fn selected<'s>(shader: &'s Shader, target: &Target) -> Option<Compilation<'s, 'static>> {
    let mut compilation = Compilation::new(shader, target, &Options::default());
    compilation.run_through(pipeline::Stage::Select).ok()?;
    Some(compilation)
}

/// The same, with a change planted in the texts that are read again.
///
/// # Errors
/// The same.
pub fn engines_with(input: &ProgramInput, plant: TextPlant<'_>) -> Result<bool, Failure> {
    let turn = Turn::of(input);
    let ProgramInput { shader, target, .. } = input;
    let env = input.env();
    let Some(source) = run_nir(input, shader, &env) else { return Ok(false) };
    let finished = source.end == End::Finished;
    let mut asked = false;
    if turn.is(&[Turn::Lane]) && finished && lanes_are_alone(shader) {
        asked |= lane_alone(input, &env)?;
    }
    if turn.is(&[Turn::Selected, Turn::SelectedText, Turn::Registers, Turn::RegistersText])
        && let Some(compilation) = selected(shader, target)
    {
        let plant = &mut *plant;
        if turn.is(&[Turn::Selected, Turn::SelectedText])
            && let ProgramRef::Ir3(program) = compilation.program()
        {
            let text = turn.is(&[Turn::SelectedText]);
            asked |= ir3_opinions(input, "selected", program, &source, &env, text, plant)?;
        }
        if turn.is(&[Turn::Registers, Turn::RegistersText])
            && let Ok(Some(program)) = compilation.finish()
        {
            let text = turn.is(&[Turn::RegistersText]);
            asked |= ir3_opinions(input, "with registers", &program, &source, &env, text, plant)?;
        }
    }
    // No input goes without a second opinion.
    if turn.is(&[Turn::NirText]) || !asked {
        nir_text(input, &source, &env, plant)?;
    }
    if finished {
        stats::compared();
    }
    Ok(finished)
}

fn run_nir(input: &ProgramInput, shader: &Shader, env: &Env) -> Option<Outcome> {
    with_scratch(input, |scratch| {
        interp::nir::Decoded::new(shader).ok().map(|decoded| decoded.run(env, DEFAULT_FUEL, scratch))
    })
}

/// What the interpreter of nir says of the program's text.
fn nir_text(input: &ProgramInput, source: &Outcome, env: &Env, plant: TextPlant<'_>) -> Result<(), Failure> {
    let engine = "nir interpreter, of the text";
    let mut text = nir::text::write(&input.shader);
    plant(engine, &mut text);
    let again = nir::text::read(&text).map_err(|error| Failure::new(engine, error))?;
    match run_nir(input, &again, env) {
        Some(outcome) => same_run(engine, source, &outcome),
        None => Err(Failure::new(engine, "refused what it runs without the text")),
    }
}

/// What the interpreter of nir says of one lane alone. Says whether it said anything.
fn lane_alone(input: &ProgramInput, env: &Env) -> Result<bool, Failure> {
    let shader = &input.shader;
    let lane = (input.env_seed % LANES as u64) as usize;
    let engine = format!("nir interpreter, of lane {lane} alone");
    let alone = Env { helpers: Some(0), ..one_lane(shader, env, launch(shader), lane) };
    // Helpers write no outputs that anybody sees.
    let among = run_nir(input, shader, &Env { helpers: Some(0), ..env.clone() });
    let (Some(among), Some(alone)) = (among, run_nir(input, shader, &alone)) else { return Ok(false) };
    same_lane(&engine, &among, &alone, lane)?;
    Ok(true)
}

/// What the interpreter of ir3 says of a program, and of its text. Says whether it said anything.
fn ir3_opinions(
    input: &ProgramInput,
    which: &str,
    program: &ir3::Program,
    source: &Outcome,
    env: &Env,
    of_text: bool,
    plant: TextPlant<'_>,
) -> Result<bool, Failure> {
    let fuel = target_fuel(source.executed);
    let run = |program: &ir3::Program| {
        with_scratch(input, |scratch| {
            interp::ir3::Decoded::new(program, &input.target).map(|decoded| decoded.run(env, fuel, scratch))
        })
    };
    let engine = format!("ir3 interpreter, {which}");
    let Ok(outcome) = run(program) else { return Ok(false) };
    match source.compare(&outcome) {
        Err(difference) => return Err(Failure::new(engine, difference)),
        Ok(Compared::OutOfFuel) if source.end == End::Finished => {
            return Err(Failure::new(engine, "does not end"));
        }
        Ok(_) => {}
    }
    if !of_text {
        return Ok(true);
    }
    let engine = format!("{engine}, of the text");
    let mut text = ir3::text::write(program);
    plant(&engine, &mut text);
    let again = ir3::text::read(&text).map_err(|error| Failure::new(&engine, format_args!("{error}\n{text}")))?;
    let again = run(&again).map_err(|error| Failure::new(&engine, error))?;
    same_run(&engine, &outcome, &again)?;
    Ok(true)
}

fn with_scratch<T>(input: &ProgramInput, work: impl FnOnce(&mut interp::Scratch) -> T) -> T {
    with_checker(&input.target, Options::default(), |checker| work(checker.scratch()))
}

/// Two runs of what must be the same program.
fn same_run(engine: &str, first: &Outcome, second: &Outcome) -> Result<(), Failure> {
    match (&first.end, &second.end) {
        // The place has another line or number in the text.
        (End::Undefined { reason: a, .. }, End::Undefined { reason: b, .. }) if a == b => {}
        (a, b) if a == b => {}
        (a, b) => return Err(Failure::new(engine, format_args!("ends with {b:?}, not with {a:?}"))),
    }
    if let Err(difference) = first.compare(second).and_then(|_| second.compare(first)) {
        return Err(Failure::new(engine, difference));
    }
    let equal = first.outputs == second.outputs
        && first.memory == second.memory
        && (first.killed, first.helpers, first.executed) == (second.killed, second.helpers, second.executed);
    // A run without a meaning has no results either.
    if equal || matches!(first.end, End::Undefined { .. }) {
        Ok(())
    } else {
        Err(Failure::new(engine, "leaves other lanes undefined, or runs for another time"))
    }
}

/// Each lane of `alone` against one lane of `among`.
fn same_lane(engine: &str, among: &Outcome, alone: &Outcome, lane: usize) -> Result<(), Failure> {
    match (&among.end, &alone.end) {
        (End::Finished, End::Finished) => {}
        // Another lane made the run what it is, or other lanes the fuel.
        (End::Undefined { .. } | End::OutOfFuel, _) => return Ok(()),
        (_, end) => return Err(Failure::new(engine, format_args!("ends with {end:?}"))),
    }
    let killed = among.killed >> lane & 1 != 0;
    if alone.killed != if killed { alone.lanes } else { 0 } {
        let found = alone.killed;
        return Err(Failure::new(engine, format_args!("killed is {killed} among others, {found:#018x} alone")));
    }
    if killed {
        return Ok(());
    }
    for row in among.outputs.rows() {
        if row.poison >> lane & 1 != 0 {
            continue;
        }
        let found =
            alone.outputs.rows().iter().find(|other| (other.base, other.component) == (row.base, row.component));
        let expected = row.values[lane];
        let differs = |other: usize| match found {
            Some(found) => found.poison >> other & 1 != 0 || found.values[other] != expected,
            None => true,
        };
        if let Some(other) = lanes(alone.lanes).find(|&other| differs(other)) {
            let got = found.map(|row| row.values[other]);
            let (base, component) = (row.base, row.component);
            return Err(Failure::new(
                engine,
                format_args!("output {base}.{component} in lane {other}: expected {expected:#x}, got {got:x?}"),
            ));
        }
    }
    Ok(())
}

fn launch(shader: &Shader) -> Launch {
    Launch {
        fragment: shader.stage == Stage::Fragment,
        workgroup_size: shader.info.workgroup_size.unwrap_or([64, 1, 1]),
        ..Launch::default()
    }
}

/// Whether no lane can see what another does: nothing is written that others read, nothing goes across lanes.
fn lanes_are_alone(shader: &Shader) -> bool {
    use IntrinsicOp::*;
    shader.entry.instrs_in_order().all(|(_, instr)| match &shader.entry.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => matches!(
            intrinsic.op,
            LoadBarycentricCentroid
                | LoadBarycentricPixel
                | LoadBarycentricSample
                | LoadBaseInstance
                | LoadBaseVertex
                | LoadConstIr3
                | LoadDrawId
                | LoadFirstVertex
                | LoadFragCoord
                | LoadFrontFace
                | LoadGlobalIr3
                | LoadInput
                | LoadInstanceId
                | LoadInterpolatedInput
                | LoadLocalInvocationId
                | LoadLocalInvocationIndex
                | LoadNumWorkgroups
                | LoadPrimitiveId
                | LoadSampleId
                | LoadSampleMaskIn
                | LoadSamplePos
                | LoadSsboIr3
                | LoadUboVec4
                | LoadVertexId
                | LoadVertexIdZeroBase
                | LoadWorkgroupId
                | LoadWorkgroupSize
                | DeclReg
                | LoadReg
                | LoadRegIndirect
                | StoreReg
                | StoreRegIndirect
                | StoreOutput
                | TerminateIf
                | DemoteIf
        ),
        // Derivatives are those of the quad.
        InstrData::Tex(tex) => {
            shader.stage != Stage::Fragment
                || !matches!(tex.op, TexOp::Tex | TexOp::TexPrefetch | TexOp::Txb | TexOp::Lod)
        }
        _ => true,
    })
}

/// System values that may differ from lane to lane, with the number of their components.
const OF_LANES: [(SystemValue, u32); 18] = [
    (SystemValue::LocalInvocationId, 3),
    (SystemValue::LocalInvocationIndex, 1),
    (SystemValue::SubgroupInvocation, 1),
    (SystemValue::VertexIdZeroBase, 1),
    (SystemValue::VertexId, 1),
    (SystemValue::InstanceId, 1),
    (SystemValue::PrimitiveId, 1),
    (SystemValue::FragCoord, 4),
    (SystemValue::FrontFace, 1),
    (SystemValue::PointCoord, 2),
    (SystemValue::SampleId, 1),
    (SystemValue::SamplePos, 2),
    (SystemValue::SampleMaskIn, 1),
    (SystemValue::HelperInvocation, 1),
    (SystemValue::BarycentricPixel, 2),
    (SystemValue::BarycentricCentroid, 2),
    (SystemValue::BarycentricSample, 2),
    (SystemValue::BarycentricPixelLinear, 2),
];

/// The environment in which every lane is `lane` of `env`.
fn one_lane(shader: &Shader, env: &Env, launch: Launch, lane: usize) -> Env {
    let mut alone = env.clone();
    let mut row = [0; LANES];
    for (value, components) in OF_LANES {
        for component in 0..components {
            env.system_value(launch, value, component, &mut row);
            alone.system.insert(format!("{value:?}.{component}"), vec![row[lane]]);
        }
    }
    for (_, instr) in shader.entry.instrs_in_order() {
        let InstrData::Intrinsic(intrinsic) = &shader.entry.instrs[instr] else { continue };
        if !matches!(intrinsic.op, IntrinsicOp::LoadInput | IntrinsicOp::LoadInterpolatedInput) {
            continue;
        }
        // The offset may move the base by a few.
        for base in (0..4).map(|offset| intrinsic.indices.base() as u32 + offset) {
            for component in 0..4 {
                if launch.fragment {
                    let location = 4 * base + component;
                    alone.varyings.insert(location, env.varying(location, env.primitive(lane)));
                    continue;
                }
                env.attribute(base, component, &mut row);
                alone.attributes.insert(format!("{base}.{component}"), vec![row[lane]]);
            }
        }
    }
    alone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_alone_are_found_and_tried() {
        let mut tried = 0;
        for seed in 0..400_u64 {
            let bytes: Vec<u8> = (0..300).map(|i| crate::support::random::hash(&[seed, i]) as u8).collect();
            let input = ProgramInput::from_bytes(&bytes);
            tried += u32::from(lanes_are_alone(&input.shader));
        }
        assert!(tried >= 20, "only {tried} of 400 programs");
    }

    #[test]
    fn a_lane_that_differs_is_seen() {
        let text = "shader: MESA_SHADER_VERTEX\ninputs: 1\noutputs: 1\nimpl main {\n  block b0:  // preds:\n  \
                    con 32 %0 = load_const (0x00000000)\n  div 32 %1 = @load_vertex_id\n  \
                    @store_output (%1, %0 (0x0)) (base=0, range=1, wrmask=x, component=0, src_type=uint32)\n  // succs: b1\n  block b1:\n}\n";
        let shader = nir::text::read(text).unwrap();
        assert!(lanes_are_alone(&shader));
        let env = Env::from_seed(3);
        let decoded = interp::nir::Decoded::new(&shader).unwrap();
        let mut scratch = interp::Scratch::default();
        let among = decoded.run(&env, DEFAULT_FUEL, &mut scratch);
        let alone = decoded.run(&one_lane(&shader, &env, launch(&shader), 5), DEFAULT_FUEL, &mut scratch);
        assert_eq!(same_lane("test", &among, &alone, 5), Ok(()));
        assert!(same_lane("test", &among, &alone, 6).is_err());
        assert!(same_lane("test", &among, &among, 5).is_err());
    }
}
