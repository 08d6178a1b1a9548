//! Our own backend's programs as a log of Mesa's compiler, in the format that `mesa` reads.
//!
//! The sections have the names of Mesa's passes where a stage of ours corresponds to that pass ([`pass`]), else those
//! of our stages. The text is Mesa's: the attributes that it leaves out (types of spilled values, inputs, outputs,
//! memories) are left out here, too, and have to be recovered from the lists after the code and from the words. An
//! instruction has one serial number in all sections.
//!
//! Mesa's lists have one register for all components of an input or an output; where ours are in registers that do not
//! follow each other, the location has the component after it (`FRAG_RESULT_DATA0.y`). A program whose inputs or driver
//! parameters Mesa's lists cannot express is refused ([`PrintError`]).

use cranelift_entity::EntityRef;
use ir3_compiler::compilation::{Compilation, ProgramMut, ProgramRef};
use ir3_compiler::ir3::const_words::NamedConstWords;
use ir3_compiler::ir3::{
    self, ConstLayout, DriverParam, InputKind, PhysReg, Program, RegClass, SystemValue, WriteMask, branchstack,
    workload,
};
use ir3_compiler::machine::{Code, CodeError, listing};
use ir3_compiler::nir::{self, InstrData, IntrinsicOp, Shader};
use ir3_compiler::pipeline::{Change, CompileError, Options, Stage};
use ir3_compiler::stats::Stats;
use ir3_compiler::target::occupancy::Workload;
use ir3_compiler::target::{Backend, Generation, Target};
use ir3_programs::input::natives;
use ir3_programs::mesa::native::NativePrefetch;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::support::random::text_hash;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Why a compilation has no log.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// The compiler refuses the program.
    #[error(transparent)]
    Refused(#[from] CompileError),
    /// The final program has no words.
    #[error(transparent)]
    NotFinal(#[from] CodeError),
    /// The target has no ir3.
    #[error("{0}: Mesa's logs have programs of ir3 only")]
    NoIr3(&'static str),
    /// A place that the lists after the code cannot express.
    #[error("Mesa's lists cannot express {0}")]
    Inexpressible(String),
}

/// The name of the section with the result of a stage.
#[must_use]
pub fn pass(stage: Stage) -> &'static str {
    match stage {
        Stage::Select => "nir->ir3",
        Stage::CopyPropagation => "ir3_cp",
        Stage::ValueNumbering => "ir3_cse",
        Stage::DeadCode => "ir3_dce",
        Stage::Schedule => "ir3_sched",
        Stage::Predicates => "ir3_opt_predicates",
        Stage::SharedRegisters => "shared register allocation",
        Stage::Spill => "ir3_spill",
        Stage::RegisterAllocation => "register allocation",
        Stage::LowerSpills => "ir3_lower_spill",
        Stage::LowerCopies => "ir3_lower_copies",
        Stage::Repeat => "ir3_merge_rpt",
        Stage::PostSchedule => "ir3_postsched",
        Stage::LowerSubgroups => "ir3_lower_subgroups",
        Stage::Legalize => "ir3_legalize",
        other => other.name(),
    }
}

/// Compiles a shader with a planted bug, or none, and prints the log of the compilation.
///
/// # Errors
/// If the compiler refuses the program, or Mesa's format has no form for the result.
pub fn log(
    shader: &Shader,
    target: &Target,
    options: &Options,
    plant: Option<&PlantedBug>,
) -> Result<String, PrintError> {
    if target.backend != Backend::Ir3 {
        return Err(PrintError::NoIr3(target.name));
    }
    let mut hook = |stage, program: ProgramMut<'_, '_>| match (plant, program) {
        (Some(plant), ProgramMut::Ir3(program)) => {
            plant.apply(stage, program);
            Change::Something
        }
        _ => Change::Nothing,
    };
    let options = Options { last: Stage::LAST, ..*options };
    let mut compilation = Compilation::new(shader, target, &options).with_hook(Some(&mut hook));
    compilation.run_until(Stage::Select)?;
    let name =
        stage_name(shader.stage).ok_or_else(|| PrintError::Inexpressible(format!("the stage {}", shader.stage)))?;
    let source = compilation.shader().clone();
    let mut out = format!("NIR (final form) for {name} shader (null):\n{}\n", nir::text::write(&source));
    let mut inputs: Vec<(InputKind, RegClass, WriteMask)> = Vec::new();
    let mut named = NamedConstWords::default();
    let mut last = String::new();
    let mut assembly = None;
    while let Some(step) = compilation.step() {
        let step = step?;
        let ProgramRef::Ir3(program) = compilation.program() else { continue };
        if step.stage == Stage::Select {
            let params = &program.consts.driver_params;
            named = NamedConstWords::of(program, target, |word| params.iter().any(|param| param.word == word));
            inputs = program
                .inputs()
                .filter_map(|(instr, kind)| {
                    let dst = program.instrs[instr].dsts.first()?;
                    Some((kind?, dst.class, dst.mask))
                })
                .collect();
        }
        if step.stage == Stage::Encode {
            assembly = Some(program.clone());
            continue;
        }
        let text = section(program);
        if text != last {
            let _ = write!(out, "AFTER: {}:\n{text}", pass(step.stage));
            last = text;
        }
    }
    let Some(program) = assembly else { return Err(PrintError::Inexpressible("a program without words".to_owned())) };
    let code = Code::from_program(&program)?;
    let words = code.encode(target.generation)?;
    final_sections(
        &mut out,
        name,
        &Final { source: &source, program: &program, code: &code, target, inputs, named },
        &words,
    )?;
    Ok(out)
}

/// The stage in headlines.
const fn stage_name(stage: nir::Stage) -> Option<&'static str> {
    Some(match stage {
        nir::Stage::Vertex => "VERT",
        nir::Stage::Fragment => "FRAG",
        nir::Stage::Compute | nir::Stage::Kernel => "CL",
        _ => return None,
    })
}

/// The text of a program as Mesa prints it: without our comments, and with serial numbers that do not depend on the
/// stage.
fn section(program: &Program) -> String {
    let mut numbered = program.clone();
    for (_, instr) in program.iter_instrs() {
        numbered.serials[instr] = instr.index() as u32 + 1;
    }
    let kept = program.layout.iter().flat_map(|&block| &program.blocks[block].keeps);
    for &instr in kept {
        numbered.serials[instr] = instr.index() as u32 + 1;
    }
    let text = ir3::text::write(&numbered);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.split_once("// {").map_or(line, |(line, _)| line).trim_end();
        if !line.is_empty() {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The final program and the data of the lists around it.
struct Final<'a> {
    source: &'a Shader,
    program: &'a Program,
    code: &'a Code,
    target: &'a Target,
    /// The inputs of the first program.
    inputs: Vec<(InputKind, RegClass, WriteMask)>,
    /// The words of the constant file that the first program names, without those of the driver.
    named: NamedConstWords,
}

fn final_sections(out: &mut String, name: &str, of: &Final<'_>, words: &[u64]) -> Result<(), PrintError> {
    let items = listing::disassemble(of.target.generation, words);
    let assembly = listing::write_plain(&items);
    let hash = text_hash(&assembly);
    let _ = writeln!(out, "Native code for unnamed {name} shader (null) with sha1 {hash:016x}{:024x}:", words.len());
    let consts = &of.code.interface.consts;
    let _ = writeln!(out, "; num_ubos:           {}", of.source.info.num_ubos);
    let _ = writeln!(out, "; num_driver_params:  {}", consts.driver_params.len());
    out.push_str("; offsets:\n");
    let params = driver_params(consts, of.source.stage, of.named)?;
    let placed = consts.immediates.iter().map(|&(word, _)| word).chain(params.map(|(first, _)| first));
    if let Some(uniforms) = placed.min().filter(|&uniforms| uniforms > 0) {
        let _ = writeln!(out, ";   ubo_ranges                 c0.x ({} vec4)", uniforms.div_ceil(4));
    }
    if let Some((first, vec4s)) = params {
        let _ = writeln!(out, ";   driver_params              c{} ({vec4s} vec4)", number(PhysReg(first)));
    }
    let _ = writeln!(out, "; ubo_state:\n;   num_enabled:      0");
    for &(word, bits) in &consts.immediates {
        let _ = writeln!(out, "@const(c{})\t0x{bits:08x}", number(PhysReg(word)));
    }
    for prefetch in &of.code.interface.prefetches {
        prefetch_command(out, prefetch)?;
    }
    out.push_str(&assembly);
    lists(out, name, of)?;
    statistics(out, name, of);
    out.push_str("; hex listing: index[hi_lo] disasm\n");
    out.push_str(&listing::write(&items));
    out.push('\n');
    Ok(())
}

/// The command of a sample before the program starts.
fn prefetch_command(out: &mut String, data: &ir3::InstrData) -> Result<(), PrintError> {
    let NativePrefetch { register, class, mask, varying, bindless, sampler, texture } = natives::prefetch_command(data)
        .ok_or_else(|| PrintError::Inexpressible("a sample before the program starts".to_owned()))?;
    let (name, bindless) = (register_name(register, class), u32::from(bindless));
    let _ = writeln!(
        out,
        "@tex({name})\tsrc={varying}, bindless={bindless}, samp={sampler}, tex={texture}, wrmask=0x{mask:x}, opc=sam"
    );
    Ok(())
}

/// The first word of the driver parameters, and their number of vec4. Mesa's driver fills all of them, where ours fills
/// those that the program reads: none of the others may be in a word that the program names.
fn driver_params(
    consts: &ConstLayout,
    stage: nir::Stage,
    named: NamedConstWords,
) -> Result<Option<(u16, u16)>, PrintError> {
    let all = natives::driver_params(stage);
    let (mut first, mut end) = (None, 0);
    for &DriverParam { word, value, component } in &consts.driver_params {
        let not_said = || PrintError::Inexpressible(format!("the driver parameter {value:?} in word {word}"));
        let known = all.iter().find(|(_, its, _)| *its == value).ok_or_else(not_said)?;
        let start = word.checked_sub(known.0 + u16::from(component)).ok_or_else(not_said)?;
        if *first.get_or_insert(start) != start {
            return Err(not_said());
        }
        end = end.max(word + 1);
    }
    let is_named = |start: u16| u32::from(start) < named.end || named.is_relative || named.has_unknown_stores;
    match first {
        Some(start) if is_named(start) => {
            Err(PrintError::Inexpressible(format!("driver parameters from word {start}, in words of the program")))
        }
        first => Ok(first.map(|start| (start, (end - start).div_ceil(4)))),
    }
}

/// The lines about outputs and inputs.
fn lists(out: &mut String, name: &str, of: &Final<'_>) -> Result<(), PrintError> {
    let interface = &of.code.interface;
    let _ = write!(out, "; {name}: outputs:");
    for (index, output) in interface.outputs_at.iter().enumerate() {
        let place = format!("the output {}.{}", output.base, output.component);
        let location = location(of.source, IntrinsicOp::StoreOutput, output.base);
        let location = location.ok_or_else(|| PrintError::Inexpressible(place.clone()))?;
        let is_whole =
            output.component == 0 && interface.outputs_at.iter().filter(|other| other.base == output.base).count() == 1;
        // Mesa has all components of an output in registers that follow each other.
        let first = ["", ".x", ".y", ".z", ".w"].get(if is_whole { 0 } else { usize::from(output.component) + 1 });
        let first = first.ok_or(PrintError::Inexpressible(place))?;
        let found = interface.outputs.iter().find(|it| it.index.map(usize::from) == Some(index));
        let register = found.and_then(|it| Some((it.src.place()?.reg()?, it.src.class)));
        let (register, class) = register.unwrap_or((PhysReg::INVALID, RegClass::general(false)));
        let _ = write!(out, " {} ({location}{first})", register_name(register, class));
    }
    let _ = write!(out, "\n; {name}: inputs:");
    for (kind, class, mask) in &of.inputs {
        input(out, of, *kind, *class, *mask)?;
    }
    for (location, base) in varyings(of.source) {
        let _ = write!(out, " r63.x ({location} slot=0 cm=f,il={},b=1)", u32::from(base) * 4);
    }
    out.push('\n');
    Ok(())
}

/// An input that has a register.
fn input(
    out: &mut String,
    of: &Final<'_>,
    kind: InputKind,
    class: RegClass,
    mask: WriteMask,
) -> Result<(), PrintError> {
    let interface = &of.code.interface;
    let found = interface.inputs.iter().find(|entry| entry.input == Some(kind));
    let register = found.and_then(|entry| entry.dst.place.reg()).unwrap_or(PhysReg::INVALID);
    let location = match kind {
        InputKind::System(value) => system_location(value).map(|name| format!("SYSTEM_VALUE_{name}")),
        InputKind::Attribute { base, component } => {
            let location = location(of.source, IntrinsicOp::LoadInput, base);
            let location = location.unwrap_or_else(|| format!("VERT_ATTRIB_UNKNOWN{base}"));
            ["", ".y", ".z", ".w"].get(usize::from(component)).map(|first| location + first)
        }
    };
    let location = location.ok_or_else(|| PrintError::Inexpressible(format!("the input {kind:?}")))?;
    let mask = found.map_or(mask, |entry| entry.dst.mask);
    let _ = write!(out, " {} ({location} slot=0 cm={:x},il=0,b=0)", register_name(register, class), mask.0);
    Ok(())
}

/// The locations of the varyings that nir loads, with their numbers.
fn varyings(source: &Shader) -> BTreeMap<String, u16> {
    let is_load = |op| matches!(op, IntrinsicOp::LoadInput | IntrinsicOp::LoadInterpolatedInput);
    if source.stage != nir::Stage::Fragment {
        return BTreeMap::new();
    }
    locations(source, is_load).collect()
}

/// The location of the input or output of a number.
fn location(source: &Shader, op: IntrinsicOp, base: u16) -> Option<String> {
    locations(source, |its| its == op).find(|(_, its)| *its == base).map(|(location, _)| location)
}

/// All locations that nir accesses by some intrinsics, with their numbers.
fn locations(source: &Shader, is_access: impl Fn(IntrinsicOp) -> bool) -> impl Iterator<Item = (String, u16)> {
    let mut all = Vec::new();
    for data in source.entry.instrs.values() {
        let InstrData::Intrinsic(intrinsic) = data else { continue };
        let Some(io) = intrinsic.indices.io_semantics().filter(|_| is_access(intrinsic.op)) else { continue };
        let digits = io.location.len() - io.location.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (kind, number) = io.location.split_at(io.location.len() - digits);
        for slot in 0..io.slots.max(1) {
            let location = match number.parse::<u32>() {
                Ok(number) => format!("{kind}{}", number + slot),
                Err(_) if slot == 0 => io.location.to_string(),
                Err(_) => continue,
            };
            if let Ok(base) = u16::try_from(i64::from(intrinsic.indices.base()) + i64::from(slot)) {
                all.push((location, base));
            }
        }
    }
    all.into_iter()
}

/// Mesa's name of a system value in a register.
fn system_location(value: SystemValue) -> Option<&'static str> {
    natives::SYSTEM_VALUES.iter().find(|(_, its)| *its == value).map(|(name, _)| *name)
}

/// A register by its number and component.
fn number(register: PhysReg) -> String {
    format!("{}.{}", register.register(), ['x', 'y', 'z', 'w'][usize::from(register.component())])
}

fn register_name(register: PhysReg, class: RegClass) -> String {
    format!("{}r{}", if class.half { "h" } else { "" }, number(register))
}

/// The statistics, in the format of Mesa's lines.
fn statistics(out: &mut String, name: &str, of: &Final<'_>) {
    let stats = Stats::of_final(of.program, of.target);
    let _ = writeln!(
        out,
        "; {name} prog 1/1: {} instr, {} nops, {} non-nops, {} mov, {} cov, {} dwords",
        stats.instructions,
        stats.nops,
        stats.non_nops(),
        stats.mov,
        stats.cov,
        stats.dwords
    );
    let _ = writeln!(
        out,
        "; {name} prog 1/1: {} last-baryf, {} last-helper, {} half, {} full, {} constlen",
        stats.last_baryf, stats.last_helper, stats.half, stats.full, stats.constlen
    );
    let categories: Vec<String> =
        stats.categories.iter().enumerate().map(|(number, count)| format!("{count} cat{number}")).collect();
    let _ = writeln!(out, "; {name} prog 1/1: {}", categories.join(", "));
    let waits = &stats.waits;
    let _ = writeln!(
        out,
        "; {name} prog 1/1: {} sstall, {} (ss), {} systall, {} (sy), 0 loops\n",
        waits.sstall, waits.ss, waits.systall, waits.sy
    );
    let work = Workload { branchstack: branchstack(of.program), ..workload(of.program) };
    let is_double = of.target.occupancy(&work, stats.full).double;
    let _ = writeln!(
        out,
        "; gpu gen {}, mergedregs {}, double_threadsize {}, constlen {}, pvtmem_size {}, shared_size {}, branchstack {}, size {} bytes",
        of.target.generation.number(),
        u32::from(of.target.generation >= Generation::A6xx),
        u32::from(is_double),
        stats.constlen,
        of.program.scratch_size,
        of.program.shared_size,
        branchstack(of.program),
        stats.dwords * 4
    );
}
