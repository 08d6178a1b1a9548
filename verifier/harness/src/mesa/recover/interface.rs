//! Stage, sizes, constants, inputs and outputs.
//!
//! `_meta:in` names no input. The list of inputs after the code has them in the order in which the compiler made them,
//! with their final registers; after register allocation `_meta:in` has these registers, and its serial number is the
//! same in all sections. A source of `end` is printed with its number in the list of outputs.

use super::contradiction::{Contradiction, place};
use ir3_compiler::ir3::aliases::{self, AliasError, Aliased, Stored};
use ir3_compiler::ir3::{
    Attrs, ConstLayout, InputKind, InstrData, Opcode, Output, PhysReg, Place, Program, RegClass, ShaderStage, WriteMask,
};
use ir3_compiler::machine::{EntryRegister, Interface};
use ir3_compiler::nir::{Shader, Stage};
use ir3_programs::input::natives;
use ir3_programs::mesa::Section;
use ir3_programs::mesa::native::{Native, NativeInput};
use rustc_hash::{FxHashMap, FxHashSet};

/// The first serial number of inputs that no section prints; no text has such a number.
const FIRST_SERIAL: u32 = 1 << 24;

/// The interface of a shader.
pub(super) struct Recovered {
    stage: Option<ShaderStage>,
    workgroup_size: Option<[u16; 3]>,
    shared_size: u32,
    scratch_size: u32,
    consts: ConstLayout,
    /// The inputs by the serial number of `_meta:in`.
    inputs: FxHashMap<u32, InputKind>,
    /// The last `_meta:in` of each serial number, if all have registers.
    entry: Vec<(u32, InstrData)>,
    /// The outputs by their numbers in the list, with the components that nir stores; `None` for those that it does
    /// not.
    outputs: Vec<Option<(Output, WriteMask)>>,
    /// The color outputs: render targets with the number in the list.
    render_targets: Vec<(u16, u16)>,
    pub inferred: Vec<String>,
    pub problems: Vec<String>,
    /// Facts that two sections state differently.
    pub contradictions: Vec<Contradiction>,
    /// The list of inputs or outputs that lacks an entry.
    pub short_list: Option<String>,
}

impl Recovered {
    pub fn of(native: &Native, nir: &Shader, sections: &[Section], passes: &[Result<Program, String>]) -> Self {
        let mut own = Self {
            stage: natives::stage(nir.stage),
            workgroup_size: nir.info.workgroup_size_in_ir3(),
            shared_size: nir.info.shared_size,
            scratch_size: nir.info.scratch_size,
            consts: natives::consts(native, nir.stage),
            inputs: FxHashMap::default(),
            entry: Vec::new(),
            outputs: Vec::new(),
            render_targets: Vec::new(),
            inferred: Vec::new(),
            problems: Vec::new(),
            contradictions: Vec::new(),
            short_list: None,
        };
        own.inputs(native, nir, sections, passes);
        own.render_targets = render_targets(native);
        for (output, at) in native.outputs.iter().zip(natives::outputs(native, nir)) {
            match &at {
                Some((Output { base, .. }, mask)) => own.inferred.push(format!(
                    "output {} of `end` is {}, base {base} of nir, components {:#x}",
                    own.outputs.len(),
                    output.location,
                    mask.0
                )),
                None => own.inferred.push(format!(
                    "output {} of `end` is {}, which nir does not store",
                    own.outputs.len(),
                    output.location
                )),
            }
            own.outputs.push(at);
        }
        let listed: Vec<&str> = native.outputs.iter().map(|output| &*output.location).collect();
        own.listed_outputs(&listed, sections, passes);
        own
    }

    /// Checks that the list after the code has all outputs of `end`.
    fn listed_outputs(&mut self, listed: &[&str], sections: &[Section], passes: &[Result<Program, String>]) {
        for (section, program) in sections.iter().zip(passes) {
            let Ok(program) = program else { continue };
            let numbers = program.instrs.values().filter_map(|data| match &data.attrs {
                Attrs::Outputs(numbers) => numbers.iter().max().copied(),
                _ => None,
            });
            if let Some(last) = numbers.max().filter(|&last| usize::from(last) >= self.outputs.len()) {
                let (place, number) = (place(section), usize::from(last) + 1);
                let entries = match listed {
                    [] => "none".to_owned(),
                    names => format!("{} ({})", names.len(), names.join(", ")),
                };
                let message = format!(
                    "{place} has at least {number} outputs, the list of outputs after the final assembly has {entries}"
                );
                self.short_list.get_or_insert_with(|| message.clone());
                self.contradictions.push(Contradiction::between([section.title()], message));
            }
        }
    }

    fn inputs(&mut self, native: &Native, nir: &Shader, sections: &[Section], passes: &[Result<Program, String>]) {
        // Varyings have no `_meta:in`, and neither has an input without components.
        let has_instr = |input: &&NativeInput| input.varying.is_none() && input.components != 0;
        let listed: Vec<&NativeInput> = native.inputs.iter().filter(has_instr).collect();
        let Some(first) = passes.iter().flatten().next() else { return };
        let serials: Vec<u32> = first.inputs().map(|(instr, _)| first.serials[instr]).collect();
        let mut registers: FxHashMap<u32, (PhysReg, RegClass)> = FxHashMap::default();
        let mut said_by: FxHashMap<u32, &Section> = FxHashMap::default();
        for (section, program) in sections.iter().zip(passes) {
            let Ok(program) = program else { continue };
            for (instr, _) in program.inputs() {
                let Some(dst) = program.instrs[instr].dsts.first() else { continue };
                let Some(register) = dst.place.reg() else { continue };
                let serial = program.serials[instr];
                let known = registers.insert(serial, (register, dst.class));
                if let (Some((other, _)), Some(by)) = (known, said_by.insert(serial, section))
                    && other != register
                {
                    let (first, second) = (place(by), place(section));
                    let message =
                        format!("the input ssa_{serial} is in {other} in {first}, and in {register} in {second}");
                    self.contradictions.push(Contradiction::between([by.title(), section.title()], message));
                }
            }
        }
        let has_registers = |data: &InstrData| data.dsts.iter().all(|dst| dst.place.reg().is_some());
        let last = passes.iter().rev().flatten().find(|program| program.inputs().next().is_some());
        if let Some(last) = last.filter(|last| last.inputs().all(|(instr, _)| has_registers(&last.instrs[instr]))) {
            self.entry = last.inputs().map(|(instr, _)| (last.serials[instr], last.instrs[instr].clone())).collect();
        }
        // Inputs that a pass has removed are in the list, without a register.
        let used: Vec<&NativeInput> = if serials.len() == listed.len() {
            listed.clone()
        } else {
            listed.iter().copied().filter(|input| input.register != PhysReg::INVALID).collect()
        };
        // A pass that adds a preamble makes inputs anew (`ir3_create_empty_preamble`).
        let later: FxHashSet<u32> =
            passes.iter().flatten().flat_map(|it| it.inputs().map(|(instr, _)| it.serials[instr])).collect();
        let mut later: Vec<u32> = later.into_iter().filter(|serial| !serials.contains(serial)).collect();
        later.sort_unstable();
        let count = serials.len();
        for (number, &serial) in serials.iter().chain(&later).enumerate() {
            // The same register if it has one; two inputs that are not used have none.
            let by_register = registers.get(&serial).and_then(|&(register, class)| {
                let mut found =
                    listed.iter().filter(|input| input.register == register && input.class.half == class.half);
                let one = found.next()?;
                found.next().is_none().then_some(*one)
            });
            let by_order = used.get(number).copied().filter(|_| number < count && serials.len() == used.len());
            let input = match (by_register, by_order) {
                (Some(one), Some(other)) if one.location != other.location => {
                    // Registers are filled by the driver.
                    Some(one)
                }
                (one, other) => one.or(other),
            };
            let Some(input) = input else {
                if let Some(&(register, class)) = registers.get(&serial) {
                    let half = if class.half { "h" } else { "" };
                    let message = format!(
                        "the list of inputs after the final assembly has none in {half}{register}, where ssa_{serial} is"
                    );
                    self.short_list.get_or_insert_with(|| message.clone());
                    self.problems.push(message);
                }
                continue;
            };
            match kind(input, nir) {
                Some(kind) => {
                    self.inferred.push(format!("ssa_{serial} is the input {}", input.location));
                    self.inputs.insert(serial, kind);
                }
                None => self.problems.push(format!("ssa_{serial}: the input {}", input.location)),
            }
        }
    }

    /// Takes the inputs of final programs from the lists after the code, where no section with registers has
    /// `_meta:in`.
    pub fn complete_entry(&mut self, of_code: &Interface) {
        if self.entry.is_empty() {
            let input = |entry: &EntryRegister| {
                let mut data = InstrData::new(Opcode::Input);
                data.attrs = Attrs::Input(entry.input);
                data.dsts.push(entry.dst);
                data
            };
            self.entry = (FIRST_SERIAL..).zip(of_code.inputs.iter().map(input)).collect();
        }
    }

    /// Fills in the interface of a section.
    pub fn complete(&self, program: &mut Program) {
        program.stage = self.stage;
        program.workgroup_size = self.workgroup_size;
        program.shared_size = self.shared_size;
        program.scratch_size = self.scratch_size;
        program.consts = self.consts.clone();
        self.enter(program);
        for (instr, data) in &mut program.instrs {
            if let Attrs::Input(kind) = &mut data.attrs {
                *kind = kind.or(self.inputs.get(&program.serials[instr]).copied());
            }
        }
        self.end(program);
    }

    /// Adds the inputs of a program of which legalization has removed them.
    fn enter(&self, program: &mut Program) {
        if program.inputs().next().is_some() || self.entry.is_empty() || !is_final(program) {
            return;
        }
        let block = program.entry();
        let mut added = Vec::new();
        for (serial, data) in &self.entry {
            let instr = program.instrs.push(data.clone());
            // Readers after allocation read the register.
            for dst in &mut program.instrs[instr].dsts {
                if let Some(register) = dst.place.reg() {
                    dst.place = Place::Reg(register);
                }
            }
            program.serials[instr] = *serial;
            added.push(instr);
        }
        program.blocks[block].instrs.splice(0..0, added);
    }

    /// Folds aliases into their users: texture instructions, and the outputs of `end`. A component that nir does not
    /// store is none of the output.
    pub fn fold_aliases(&self, program: &mut Program, stored: Stored) -> Result<(), AliasError> {
        let output = |rt: u16, component: u16| {
            let &(_, number) = self.render_targets.iter().find(|(known, _)| *known == rt)?;
            match self.outputs.get(usize::from(number)).copied().flatten() {
                Some((output, mask)) if mask.contains(component.into()) => Some(Aliased::Output(output)),
                Some(_) => Some(Aliased::NotStored),
                None => Some(Aliased::Output(unknown_output(number))),
            }
        };
        aliases::fold(program, stored, &output)
    }

    /// The sources of `end`, by their numbers in the list. A component that nir does not store is undefined: it is none
    /// of the output.
    fn end(&self, program: &mut Program) {
        let mut used: Vec<u16> = Vec::new();
        for data in program.instrs.values_mut() {
            if !matches!(data.opcode, Opcode::End | Opcode::Chmask) {
                continue;
            }
            let Attrs::Outputs(numbers) = &mut data.attrs else { continue };
            for (number, src) in numbers.iter_mut().zip(&mut data.srcs) {
                if let Some((_, stored)) = self.outputs.get(usize::from(*number)).copied().flatten() {
                    src.mask.0 &= stored.0;
                }
                let at = used.iter().position(|known| known == number).unwrap_or_else(|| {
                    used.push(*number);
                    used.len() - 1
                });
                *number = at as u16;
            }
        }
        let output = |number: &u16| {
            let known = self.outputs.get(usize::from(*number)).copied().flatten();
            known.map_or(unknown_output(*number), |(output, _)| output)
        };
        program.outputs = used.iter().map(output).collect();
    }
}

/// The output of a number that nir does not store: the same unknown one in all sections.
const fn unknown_output(number: u16) -> Output {
    Output { base: 0x4000 + number, component: 0 }
}

/// The color outputs in the list after the code.
fn render_targets(native: &Native) -> Vec<(u16, u16)> {
    let rt = |location: &str| location.strip_prefix("FRAG_RESULT_DATA").and_then(|rest| rest.parse().ok());
    let numbered = native.outputs.iter().enumerate();
    numbered.filter_map(|(number, output)| Some((rt(&output.location)?, number as u16))).collect()
}

/// Returns true for a program whose branches name their targets, or which has no branches: one after legalization.
fn is_final(program: &Program) -> bool {
    program.iter_instrs().all(|(_, instr)| {
        let data = &program.instrs[instr];
        data.dsts.iter().all(|dst| dst.value().is_none()) && data.srcs.iter().all(|src| src.value().is_none())
    })
}

/// The input that a line of the list is.
fn kind(input: &NativeInput, nir: &Shader) -> Option<InputKind> {
    match input.location.strip_prefix("SYSTEM_VALUE_") {
        Some(name) => natives::system_value(name).map(InputKind::System),
        None if nir.stage == Stage::Fragment => None,
        None => {
            // One that nir does not load is never read.
            let (location, component) = natives::first_component(&input.location);
            let base = natives::loaded(nir, location).unwrap_or(0x4000);
            Some(InputKind::Attribute { base, component })
        }
    }
}
