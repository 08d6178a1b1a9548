//! Fuzz target that compares all engines on one program.
//!
//! Each engine computes the behaviour of the program in one environment. If two of them are comparable, they must
//! agree; otherwise one of them has a bug. There are five:
//!
//! - the interpreter of nir, the reference;
//! - the interpreter of nir on the program's text, written and read again: the run must be identical;
//! - the interpreter of nir in an environment in which all lanes are copies of one lane: each lane must behave as that
//!   lane did among the others, if nothing in the program makes lanes depend on each other;
//! - the interpreter of ir3 on the selected program and on the program with registers, which may be more defined;
//! - the interpreter of ir3 on the texts of these programs: the runs must be identical.
//!
//! Reading a text takes several times as long as running the program, so only one engine is compared with the reference
//! for most inputs: the input selects it ([`Selection`]), and every sixteenth input selects all. Another engine (the
//! register checker, symbolic execution) is to be added in [`engines_with`].

use crate::check::{DEFAULT_FUEL, target_fuel};
use crate::fuzz_targets::program::{ProgramInput, with_checker};
use crate::fuzz_targets::{TargetFailure, stats};
use ir3_compiler::compilation::{Compilation, ProgramRef};
use ir3_compiler::ir3::{self, SystemValue};
use ir3_compiler::nir::{self, InstrData, IntrinsicOp, Shader, Stage, TexOp};
use ir3_compiler::pipeline::{self, Options};
use ir3_compiler::target::Target;
use ir3_semantics::arithmetic::rows::LANES;
use ir3_semantics::environment::env::{Env, Launch, lanes};
use ir3_semantics::interp;
use ir3_semantics::interp::filling::{self, Agreement};
use ir3_semantics::interp::{Compared, End, Outcome};

/// A hook for tests that changes a text before an engine reads it: the name of the engine, and the text.
pub type TextPlant<'a> = &'a mut dyn FnMut(&str, &mut String);

/// The engine that is compared with the interpreter of nir.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selection {
    /// The interpreter of nir on the text.
    NirText,
    /// The interpreter of nir on copies of one lane.
    Lane,
    /// The interpreter of ir3 on the selected program.
    Selected,
    /// The interpreter of ir3 on the selected program and on its text.
    SelectedText,
    /// The interpreter of ir3 on the program with registers.
    Registers,
    /// The interpreter of ir3 on the program with registers and on its text.
    RegistersText,
    /// All of them.
    All,
}

impl Selection {
    const ALONE: [Self; 6] =
        [Self::NirText, Self::Lane, Self::Selected, Self::SelectedText, Self::Registers, Self::RegistersText];

    /// Returns the engine that an input selects.
    fn of(input: &ProgramInput) -> Self {
        match (input.env_seed >> 8) as usize % 16 {
            0 => Self::All,
            number => Self::ALONE[number % Self::ALONE.len()],
        }
    }

    /// Returns true if one of these is selected.
    fn includes(self, any_of: &[Self]) -> bool {
        self == Self::All || any_of.contains(&self)
    }
}

/// Runs the selected engines. The input is interesting if the program's run is defined.
///
/// # Errors
/// The first engine that disagrees with those before it.
pub fn engines(input: &ProgramInput) -> Result<bool, TargetFailure> {
    engines_with(input, &mut |_, _| {})
}

/// The compilation of a shader through selection, if that is supported.
fn selected<'s>(shader: &'s Shader, target: &Target) -> Option<Compilation<'s, 'static>> {
    let mut compilation = Compilation::new(shader, target, &Options::default());
    compilation.run_through(pipeline::Stage::Select).ok()?;
    Some(compilation)
}

/// Like [`engines`], with a hook that changes the texts.
///
/// # Errors
/// The first engine that disagrees with those before it.
pub fn engines_with(input: &ProgramInput, plant: TextPlant<'_>) -> Result<bool, TargetFailure> {
    let selection = Selection::of(input);
    let ProgramInput { shader, target, .. } = input;
    let env = input.env();
    let Some(source) = run_nir(input, shader, &env) else { return Ok(false) };
    let finished = source.end == End::Finished;
    let mut compared = false;
    if selection.includes(&[Selection::Lane]) && finished && lanes_are_alone(shader) {
        compared |= lane_alone(input, &env)?;
    }
    if selection.includes(&[
        Selection::Selected,
        Selection::SelectedText,
        Selection::Registers,
        Selection::RegistersText,
    ]) && let Some(compilation) = selected(shader, target)
    {
        let plant = &mut *plant;
        if selection.includes(&[Selection::Selected, Selection::SelectedText])
            && let ProgramRef::Ir3(program) = compilation.program()
        {
            let text = selection.includes(&[Selection::SelectedText]);
            compared |= compare_ir3(input, "selected", program, &source, &env, text, plant)?;
        }
        if selection.includes(&[Selection::Registers, Selection::RegistersText])
            && let Ok(Some(program)) = compilation.finish()
        {
            let text = selection.includes(&[Selection::RegistersText]);
            compared |= compare_ir3(input, "with registers", &program, &source, &env, text, plant)?;
        }
    }
    // At least one engine is compared for every input.
    if selection.includes(&[Selection::NirText]) || !compared {
        nir_text(input, &source, &env, plant)?;
    }
    if finished {
        stats::compared();
    }
    Ok(finished)
}

fn run_nir(input: &ProgramInput, shader: &Shader, env: &Env) -> Option<Outcome> {
    with_scratch(input, |scratch| {
        interp::nir::Decoded::of_target(shader, &input.target)
            .ok()
            .map(|decoded| decoded.run(env, DEFAULT_FUEL, scratch))
    })
}

/// Compares the interpreter of nir on the program's text.
fn nir_text(input: &ProgramInput, source: &Outcome, env: &Env, plant: TextPlant<'_>) -> Result<(), TargetFailure> {
    let engine = "nir interpreter, of the text";
    let mut text = nir::text::write(&input.shader);
    plant(engine, &mut text);
    let again = nir::text::read(&text).map_err(|error| TargetFailure::new(engine, error))?;
    match run_nir(input, &again, env) {
        Some(outcome) => same_run(engine, source, &outcome),
        None => Err(TargetFailure::new(engine, "refused a program that it runs without the text")),
    }
}

/// Compares the interpreter of nir on copies of one lane. Returns false if the program cannot be run.
fn lane_alone(input: &ProgramInput, env: &Env) -> Result<bool, TargetFailure> {
    let shader = &input.shader;
    let lane = (input.env_seed % LANES as u64) as usize;
    let engine = format!("nir interpreter, of lane {lane} alone");
    let alone = Env { helpers: Some(0), ..one_lane(shader, env, Launch::of(shader), lane) };
    // The outputs of helper lanes are not observable.
    let among = run_nir(input, shader, &Env { helpers: Some(0), ..env.clone() });
    let (Some(among), Some(alone)) = (among, run_nir(input, shader, &alone)) else { return Ok(false) };
    same_lane(&engine, &among, &alone, lane)?;
    Ok(true)
}

/// Compares the interpreter of ir3 on a program, and on its text. Returns false if the program cannot be run.
fn compare_ir3(
    input: &ProgramInput,
    which: &str,
    program: &ir3::Program,
    source: &Outcome,
    env: &Env,
    of_text: bool,
    plant: TextPlant<'_>,
) -> Result<bool, TargetFailure> {
    let fuel = target_fuel(source.executed);
    let decode = |program: &ir3::Program| interp::ir3::Decoded::new(program, &input.target);
    let engine = format!("ir3 interpreter, {which}");
    let Ok(decoded) = decode(program) else { return Ok(false) };
    let run = |scratch: &mut interp::Scratch| decoded.run(env, fuel, scratch);
    let outcome = with_scratch(input, run);
    match with_scratch(input, |scratch| filling::compare(source, &outcome, scratch, run)) {
        Err(difference) => return Err(TargetFailure::new(engine, difference)),
        Ok(Agreement::Plain(Compared::OutOfFuel)) if source.end == End::Finished => {
            return Err(TargetFailure::new(engine, "does not end"));
        }
        Ok(_) => {}
    }
    if !of_text {
        return Ok(true);
    }
    let engine = format!("{engine}, of the text");
    let mut text = ir3::text::write(program);
    plant(&engine, &mut text);
    let again = ir3::text::read(&text).map_err(|error| TargetFailure::new(&engine, format_args!("{error}\n{text}")))?;
    let again = decode(&again).map_err(|error| TargetFailure::new(&engine, error))?;
    let again = with_scratch(input, |scratch| again.run(env, fuel, scratch));
    same_run(&engine, &outcome, &again)?;
    Ok(true)
}

fn with_scratch<T>(input: &ProgramInput, work: impl FnOnce(&mut interp::Scratch) -> T) -> T {
    with_checker(&input.target, Options::default(), |checker| work(checker.scratch()))
}

/// Compares two runs that must be identical.
fn same_run(engine: &str, first: &Outcome, second: &Outcome) -> Result<(), TargetFailure> {
    match (&first.end, &second.end) {
        // The origin has another line or number in the text.
        (End::Undefined { reason: a, .. }, End::Undefined { reason: b, .. }) if a == b => {}
        (a, b) if a == b => {}
        (a, b) => return Err(TargetFailure::new(engine, format_args!("ends with {b:?}, not with {a:?}"))),
    }
    if let Err(difference) = first.compare(second).and_then(|_| second.compare(first)) {
        return Err(TargetFailure::new(engine, difference));
    }
    let equal = first.outputs == second.outputs
        && first.memory == second.memory
        && (first.killed, first.helpers, first.executed) == (second.killed, second.helpers, second.executed);
    // A run with undefined behaviour has no results.
    if equal || matches!(first.end, End::Undefined { .. }) {
        Ok(())
    } else {
        Err(TargetFailure::new(engine, "leaves other lanes undefined, or runs for another time"))
    }
}

/// Compares each lane of `alone` with one lane of `among`.
fn same_lane(engine: &str, among: &Outcome, alone: &Outcome, lane: usize) -> Result<(), TargetFailure> {
    match (&among.end, &alone.end) {
        (End::Finished, End::Finished) => {}
        // Another lane caused the undefined behaviour, or other lanes used up the fuel.
        (End::Undefined { .. } | End::OutOfFuel, _) => return Ok(()),
        (_, end) => return Err(TargetFailure::new(engine, format_args!("ends with {end:?}"))),
    }
    let killed = among.killed >> lane & 1 != 0;
    if alone.killed != if killed { alone.lanes } else { 0 } {
        let found = alone.killed;
        return Err(TargetFailure::new(engine, format_args!("killed is {killed} among others, {found:#018x} alone")));
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
            return Err(TargetFailure::new(
                engine,
                format_args!("output {base}.{component} in lane {other}: expected {expected:#x}, got {got:x?}"),
            ));
        }
    }
    Ok(())
}

/// Returns true if lanes are independent: no lane reads a word that another writes, and there are no operations across
/// lanes.
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
        // Implicit derivatives depend on the quad.
        InstrData::Tex(tex) => {
            shader.stage != Stage::Fragment
                || !matches!(tex.op, TexOp::Tex | TexOp::TexPrefetch | TexOp::Txb | TexOp::Lod)
        }
        _ => true,
    })
}

/// System values that may differ between lanes, with the number of their components.
const OF_LANES: [(SystemValue, u32); 20] = [
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
    (SystemValue::BarycentricCentroidLinear, 2),
    (SystemValue::BarycentricSampleLinear, 2),
];

/// The environment in which every lane is a copy of `lane` of `env`.
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
        // An offset may add a little to the base.
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
            let bytes: Vec<u8> = (0..300).map(|i| ir3_semantics::support::random::hash(&[seed, i]) as u8).collect();
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
        let alone = decoded.run(&one_lane(&shader, &env, Launch::of(&shader), 5), DEFAULT_FUEL, &mut scratch);
        assert_eq!(same_lane("test", &among, &alone, 5), Ok(()));
        assert!(same_lane("test", &among, &alone, 6).is_err());
        assert!(same_lane("test", &among, &among, 5).is_err());
    }
}
