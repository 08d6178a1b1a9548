//! One side of a difference: its trace, and the text and role of its instructions.

use super::is_word;
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{Opcode, SrcOperand};
use ir3_compiler::nir::{self, InstrData};
use ir3_compiler::{ir3, nir::Shader};
use ir3_semantics::Snapshot;
use ir3_semantics::interp::trace::{Trace, TracePoint, TraceStep};
use ir3_semantics::interp::{Difference, OutputSlot};
use ir3_semantics::vec4;
use rustc_hash::FxHashMap;

/// The role of an instruction in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Computes a value.
    Value,
    /// A constant or a name without a value of its own, visible in the text of its users.
    Name,
    /// A constant in a register, which nir has as an immediate.
    Constant,
    /// Copies several values at once.
    Copies,
    /// A branch.
    Branch,
    /// Ends lanes.
    Kill,
}

/// The printed form of an instruction.
#[derive(Clone, Debug)]
pub(crate) struct PrintedInstr {
    pub text: String,
    /// Its opcode.
    pub word: String,
    pub role: Role,
    /// Part of an exchange by three `xor.b`, or a `swz`.
    pub exchange: bool,
}

/// The trace of one side.
#[derive(Clone, Debug)]
pub(super) struct TraceSide {
    pub steps: Vec<TraceStep>,
    /// The trace is truncated.
    pub cut: bool,
    /// The program is ir3.
    pub machine: bool,
    lines: FxHashMap<TracePoint, PrintedInstr>,
}

impl TraceSide {
    /// Builds the side of a program and a trace of it.
    pub fn new(program: &Snapshot, trace: Trace) -> Self {
        let (machine, lines) = (program.as_ir3().is_some(), printed(program));
        let mut side = Self { steps: Vec::new(), cut: trace.cut, machine, lines };
        side.expand(trace.steps);
        side
    }

    /// Splits a parallel copy (or an exchange) into one step for each copy, all of which read at the same time: later
    /// stages lower it to single copies, too.
    fn expand(&mut self, steps: Vec<TraceStep>) {
        // The index of each step in the new list.
        let mut starts = Vec::with_capacity(steps.len());
        for step in steps {
            let start = self.steps.len() as u32;
            starts.push(start);
            let time = starts.get(step.time as usize).copied().unwrap_or(start);
            let copies = step.pairwise && step.writes.len() > 1 && step.reads.len() == step.writes.len();
            let copies = copies && self.known(&step).is_some_and(|line| line.role == Role::Copies);
            if !copies {
                self.steps.push(TraceStep { time, ..step });
                continue;
            }
            for (read, write) in step.reads.iter().zip(&step.writes) {
                self.steps.push(TraceStep { reads: vec![*read], writes: vec![*write], time, ..step.clone() });
            }
        }
    }

    /// The printed form of the instruction of a step.
    pub fn known(&self, step: &TraceStep) -> Option<&PrintedInstr> {
        self.lines.get(&step.at)
    }

    /// The role of the instruction of a step.
    pub fn role(&self, step: &TraceStep) -> Role {
        self.known(step).map_or(Role::Value, |line| line.role)
    }

    /// The text of the instruction of a step, or of one copy of it.
    pub fn text(&self, step: &TraceStep) -> String {
        let Some(line) = self.known(step) else { return "?".to_owned() };
        if let (Role::Copies, [write]) = (line.role, &step.writes[..])
            && let Some((name, operands)) = line.text.split_once(' ')
        {
            let operands: Vec<&str> = operands.split(", ").collect();
            let (dsts, srcs) = operands.split_at(operands.len() / 2);
            let (dst, src) = match (line.exchange, write.operand) {
                (true, 0) => (dsts.first(), srcs.first()),
                (true, _) => (srcs.first(), dsts.first()),
                (false, number) => (dsts.get(usize::from(number)), srcs.get(usize::from(number))),
            };
            if let (Some(dst), Some(src)) = (dst, src) {
                return format!("{name}: {dst}, {src}");
            }
        }
        line.text.clone()
    }

    /// A step as a line: the instruction, and its values.
    pub fn line(&self, step: &TraceStep) -> String {
        format!("{}  {}", self.text(step), values(step))
    }

    /// The index of the step with the observed effect.
    pub fn culprit(&self, observed: &Difference) -> Option<usize> {
        match observed {
            Difference::Output { base, component, .. }
            | Difference::OtherOutput(OutputSlot { base, component, .. }) => self
                .steps
                .iter()
                .rposition(|step| step.reads.iter().any(|cell| cell.output == Some((*base, *component)))),
            Difference::Memory { .. } => {
                self.steps.iter().rposition(|step| step.stored.iter().any(|stored| is_word(observed, stored)))
            }
            Difference::Killed { .. } => self.steps.iter().rposition(|step| self.role(step) == Role::Kill),
            Difference::Undefined { origin, .. } => {
                // The last step of the side after; there is no such instruction in the source.
                let last = self.steps.iter().rposition(|step| step.at == TracePoint::Instr(origin.instr));
                last.filter(|_| self.machine)
            }
            // The text of the difference names it.
            Difference::Synchronization { .. } | Difference::Loads { .. } => None,
            Difference::Endless { .. } => self.steps.iter().rposition(|step| self.role(step) == Role::Branch),
            Difference::Header(_) => None,
        }
    }
}

/// The values that a step writes or, if it writes none, reads.
pub(super) fn values(step: &TraceStep) -> String {
    let cells = if step.writes.is_empty() { &step.reads } else { &step.writes };
    let mut words: Vec<String> = cells
        .iter()
        .take(4)
        .map(|cell| cell.value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:08x}")))
        .collect();
    if cells.len() > 4 {
        words.push("…".to_owned());
    }
    words.join(" ")
}

/// The printed form of each instruction and condition of a program.
pub(crate) fn printed(program: &Snapshot) -> FxHashMap<TracePoint, PrintedInstr> {
    match program {
        Snapshot::Nir(shader) => nir_lines(shader),
        // The trace is that of the nir that the program means.
        Snapshot::Vec4(program) => vec4::lift(program).map(|shader| nir_lines(&shader)).unwrap_or_default(),
        Snapshot::Ir3(program) => ir3_lines(program),
    }
}

/// The instructions of a shader. Its text is read back to get the line of each.
fn nir_lines(shader: &Shader) -> FxHashMap<TracePoint, PrintedInstr> {
    let text = nir::text::write(shader);
    let lines: Vec<&str> = text.lines().collect();
    let Ok(read) = nir::text::read(&text) else { return FxHashMap::default() };
    let function = &shader.entry;
    let mut known = FxHashMap::default();
    for ((_, instr), (_, again)) in function.instrs_in_order().zip(read.entry.instrs_in_order()) {
        let data = &function.instrs[instr];
        let line = (read.entry.lines[again] as usize).checked_sub(1).and_then(|line| lines.get(line));
        let role = match data {
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => Role::Name,
            InstrData::Intrinsic(intrinsic) => {
                let name = intrinsic.op.name();
                let ends = ["demote", "terminate", "discard"].iter().any(|word| name.starts_with(word));
                if ends { Role::Kill } else { Role::Value }
            }
            _ => Role::Value,
        };
        let text = line.map_or_else(|| data.name().to_owned(), |line| nir_text(line));
        known.insert(
            TracePoint::Instr(instr.index() as u32),
            PrintedInstr { text, word: data.name().to_owned(), role, exchange: false },
        );
    }
    for (def, data) in &function.defs {
        let text = format!("if %{}", data.index);
        known.insert(
            TracePoint::If(def.index() as u32),
            PrintedInstr { text, word: "if".to_owned(), role: Role::Branch, exchange: false },
        );
    }
    known
}

/// The text of an instruction without widths and most indices.
fn nir_text(line: &str) -> String {
    let line = line.split(" // ").next().unwrap_or(line).trim();
    let text = collapse(&line[line.find(['%', '@']).unwrap_or(0)..]);
    // The indices are in the last parentheses.
    let Some((call, indices)) = text.rsplit_once(" (").filter(|(_, indices)| indices.contains('=')) else {
        return text;
    };
    let telling = |index: &&str| match index.split_once('=') {
        Some(("base" | "component", value)) => value != "0",
        Some((key, _)) => matches!(key, "reduction_op" | "atomic_op" | "image_dim"),
        None => false,
    };
    let kept: Vec<&str> = indices.trim_end_matches(')').split(", ").filter(telling).collect();
    if kept.is_empty() { call.to_owned() } else { format!("{call} ({})", kept.join(", ")) }
}

/// Prints immediates in hexadecimal only: `imm[0.000000,12,0xc]` as `0xc`.
fn immediates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("imm[") {
        let front = &rest[..at];
        out.push_str(front.strip_suffix('h').unwrap_or(front));
        let inside = &rest[at + 4..];
        let end = inside.find(']').unwrap_or(inside.len());
        out.push_str(inside[..end].rsplit(',').next().unwrap_or_default());
        rest = inside.get(end + 1..).unwrap_or_default();
    }
    out + rest
}

/// The instructions of a program: one line each, in layout order.
fn ir3_lines(program: &ir3::Program) -> FxHashMap<TracePoint, PrintedInstr> {
    let text = ir3::text::write(program);
    let is_instr =
        |line: &&str| line.strip_prefix('\t').is_some_and(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let lines = text.lines().filter(is_instr);
    let mut known = FxHashMap::default();
    for ((_, instr), line) in program.iter_instrs().zip(lines) {
        let opcode = program.instrs[instr].opcode;
        let role = match opcode {
            Opcode::Kill | Opcode::Demote => Role::Kill,
            Opcode::ParallelCopy => Role::Copies,
            Opcode::End | Opcode::Chmask => Role::Value,
            _ if opcode.is_terminator() => Role::Branch,
            _ => Role::Value,
        };
        let line = line.split(" // {").next().unwrap_or(line);
        // `0012:0004:001: \tadd.u …`
        let text = immediates(&collapse(line.splitn(4, ':').nth(3).unwrap_or(line)));
        let exchange = matches!(opcode, Opcode::XorB | Opcode::Swz);
        let constant =
            || matches!(program.instrs[instr].srcs[..], [ref src] if matches!(src.operand, SrcOperand::Immediate(_)));
        let role = match opcode {
            Opcode::Swz => Role::Copies,
            Opcode::Mov if constant() => Role::Constant,
            _ => role,
        };
        known.insert(
            TracePoint::Instr(instr.index() as u32),
            PrintedInstr { text, word: opcode.name().to_owned(), role, exchange },
        );
    }
    known
}

/// Replaces white space by single blanks.
fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
