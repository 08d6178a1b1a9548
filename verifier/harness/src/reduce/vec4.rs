//! Reduction of vec4 programs.

use super::size::{Size, complexity};
use super::subject::{Kind, Subject};
use ir3_compiler::i965::vec4::{Instr, Mask, Opcode, Program, SrcFile, Structure, text, validate};

/// Makes a program smaller while it fails: steps one at a time, as long as one helps.
pub fn minimal_vec4(program: &Program, fails: &dyn Fn(&Program) -> bool) -> Program {
    let mut best = Vec4Subject::new(program.clone());
    loop {
        let before = best.size();
        for kind in 0..best.kinds().len() {
            let mut at = 0;
            // After a successful step the list is shorter, and the same index is the next step.
            while let Some(step) = best.list(kind).get(at) {
                let smaller = best.edited(&[step], true).and_then(|edited| edited.finished());
                match smaller.filter(|smaller| smaller.size() < best.size() && fails(&smaller.program())) {
                    Some(smaller) => best = smaller,
                    None => at += 1,
                }
            }
        }
        if best.size() == before {
            return best.program();
        }
    }
}

/// A vec4 program. Instructions that were removed keep their place until it is finished.
#[derive(Clone, PartialEq)]
pub struct Vec4Subject {
    /// The program, including removed instructions.
    program: Program,
    removed: Vec<bool>,
}

/// A change.
pub enum Vec4Step {
    /// Removes these instructions: one, the markers of a construct, or a construct as a whole.
    Remove(Vec<usize>),
    /// Removes the predicate, clamp, or limit to one vertex of an instruction.
    Plain(usize),
    /// Removes a channel from the writemask of an instruction.
    Narrow(usize, usize),
}

impl Vec4Subject {
    /// A program.
    pub fn new(program: Program) -> Self {
        Self { removed: vec![false; program.instrs.len()], program }
    }

    /// The program without the removed instructions.
    pub fn program(&self) -> Program {
        let mut program = self.program.clone();
        program.remove(&self.removed);
        program
    }

    fn left(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.removed.len()).filter(|&at| !self.removed[at])
    }

    /// The constructs: their markers, and the instructions from the first to the last.
    fn constructs(&self) -> Vec<(Vec<usize>, std::ops::RangeInclusive<usize>)> {
        let left: Vec<usize> = self.left().collect();
        let program = self.program();
        let Ok(structure) = Structure::of(&program) else { return Vec::new() };
        let mut all = Vec::new();
        for (at, instr) in program.instrs.iter().enumerate() {
            if matches!(instr.opcode, Opcode::If | Opcode::Do) {
                let mut markers = vec![at];
                while let Some(next) = structure.partner(markers[markers.len() - 1]).filter(|&next| next > at) {
                    markers.push(next);
                }
                let last = markers[markers.len() - 1];
                all.push((markers.iter().map(|&at| left[at]).collect(), left[at]..=left[last]));
            }
        }
        all
    }
}

/// Returns true if an instruction reads or writes the accumulator, which has 8 channels.
fn uses_accumulator(instr: &Instr) -> bool {
    instr.opcode == Opcode::Addc || instr.srcs.iter().any(|src| src.file == SrcFile::Acc)
}

impl Subject for Vec4Subject {
    type Step = Vec4Step;

    fn kinds(&self) -> Vec<Kind> {
        ["remove constructs", "remove instructions", "remove markers", "simplify", "narrow writemasks"]
            .map(|name| Kind { name, together: name != "remove markers" })
            .to_vec()
    }

    fn list(&self, kind: usize) -> Vec<Vec4Step> {
        let instrs = &self.program.instrs;
        match kind {
            0 => self
                .constructs()
                .into_iter()
                .map(|(_, range)| Vec4Step::Remove(range.filter(|&at| !self.removed[at]).collect()))
                .collect(),
            1 => self.left().map(|at| Vec4Step::Remove(vec![at])).collect(),
            2 => self.constructs().into_iter().map(|(markers, _)| Vec4Step::Remove(markers)).collect(),
            3 => self.left().map(Vec4Step::Plain).collect(),
            _ => self
                .left()
                .filter(|&at| instrs[at].dst.mask.single().is_none())
                .flat_map(|at| instrs[at].dst.mask.channels().map(move |channel| Vec4Step::Narrow(at, channel)))
                .collect(),
        }
    }

    fn edited(&self, steps: &[&Vec4Step], _sweep: bool) -> Option<Self> {
        let mut edited = self.clone();
        for step in steps {
            match step {
                Vec4Step::Remove(instrs) => instrs.iter().for_each(|&at| edited.removed[at] = true),
                Vec4Step::Plain(at) => {
                    let instr = &mut edited.program.instrs[*at];
                    instr.saturate = false;
                    if !uses_accumulator(instr) {
                        (instr.exec_size, instr.group) = (edited.program.mode.width(), 0);
                    }
                    if !matches!(instr.opcode, Opcode::Sel | Opcode::If) {
                        instr.predicate = None;
                    }
                }
                Vec4Step::Narrow(at, channel) => {
                    let dst = &mut edited.program.instrs[*at].dst;
                    dst.mask = dst.mask.without(Mask(1 << channel));
                }
            }
        }
        (edited != *self).then_some(edited)
    }

    fn swept(&self) -> Self {
        self.clone()
    }

    fn finished(&self) -> Option<Self> {
        let program = self.program();
        validate(&program).is_ok().then(|| Self::new(program))
    }

    fn size(&self) -> Size {
        let mut size = Size { instructions: 0, work: 0, operands: 0, bits: 0, constants: 0, attributes: 0 };
        for at in self.left() {
            let instr = &self.program.instrs[at];
            size.instructions += 1;
            size.work += u32::from(instr.opcode != Opcode::Mov);
            size.bits += instr.dst.mask.0.count_ones();
            for src in &instr.srcs {
                match src.file {
                    SrcFile::Imm(immediate) => size.constants += complexity(immediate.0.into()),
                    _ => size.operands += 1,
                }
            }
            let half = instr.exec_size != self.program.mode.width();
            let attributes = [instr.predicate.is_some(), instr.saturate, half];
            size.attributes += attributes.map(u32::from).iter().sum::<u32>();
        }
        size
    }

    fn text(&self) -> String {
        text::write(&self.program())
    }

    fn read(&self, text: &str) -> Option<Self> {
        text::read(text).ok().map(Self::new)
    }
}
