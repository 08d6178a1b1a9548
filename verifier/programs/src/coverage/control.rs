//! Shapes of control flow, as the tree of a shader has them.

use ir3_compiler::nir::{CfNode, Function, If, InstrData, JumpKind, Loop};

/// The shapes.
const SHAPES: [&str; 25] = [
    "if",
    "if with two arms",
    "if whose first arm is empty",
    "if on a constant",
    "if in an if",
    "if in the second arm of an if",
    "if in a loop",
    "loop in an if",
    "loop",
    "loop in a loop",
    "loop in a loop in a loop",
    "loop with a continue construct",
    "loop with 1 break",
    "loop with 2 breaks",
    "loop with 3 breaks or more",
    "loop with 1 continue",
    "loop with 2 continues or more",
    "loop whose last block leaves it",
    "break in two ifs",
    "continue in two ifs",
    "two loops, one after the other",
    "three ifs, one after the other",
    "depth 3",
    "depth 4",
    "depth 5 or more",
];

/// Phis after an if or at a loop, by number and by width.
const PHIS: [&str; 8] = [
    "phi of 1 bit",
    "phi of 8 bits",
    "phi of 16 bits",
    "phi of 32 bits",
    "phi of 64 bits",
    "phi of a vector",
    "phi of three sources or more",
    "phi of an undefined source",
];

pub(super) const SIZE: u32 = (SHAPES.len() + PHIS.len()) as u32;

pub(super) fn name(number: u32) -> Option<String> {
    SHAPES.iter().chain(&PHIS).nth(number as usize).map(|name| (*name).to_owned())
}

/// The place of a node.
#[derive(Clone, Copy, Default)]
struct Around {
    depth: u32,
    loops: u32,
    /// Ifs since the innermost loop.
    ifs: u32,
    /// The innermost construct is an if, or its second arm.
    in_if: bool,
    in_second: bool,
}

/// The jumps of a loop.
#[derive(Default)]
struct Jumps {
    breaks: u32,
    continues: u32,
}

struct Walk<'a, F> {
    function: &'a Function,
    visit: F,
}

pub(super) fn visit(function: &Function, visit: impl FnMut(u32)) {
    let mut walk = Walk { function, visit };
    walk.list(&function.body, Around::default(), &mut Jumps::default());
    walk.phis();
}

impl<F: FnMut(u32)> Walk<'_, F> {
    fn shape(&mut self, shape: &str) {
        if let Some(at) = SHAPES.iter().position(|&name| name == shape) {
            (self.visit)(at as u32);
        }
    }

    fn list(&mut self, nodes: &[CfNode], around: Around, jumps: &mut Jumps) {
        let (mut ifs, mut loops) = (0, 0);
        for node in nodes {
            match node {
                CfNode::Block(block) => {
                    let last = self.function.blocks[*block].instrs.last();
                    if let Some(InstrData::Jump(kind)) = last.map(|&instr| &self.function.instrs[instr]) {
                        let is_deep = around.ifs >= 2;
                        match kind {
                            JumpKind::Break => {
                                jumps.breaks += 1;
                                if is_deep {
                                    self.shape("break in two ifs");
                                }
                            }
                            JumpKind::Continue => {
                                jumps.continues += 1;
                                if is_deep {
                                    self.shape("continue in two ifs");
                                }
                            }
                            JumpKind::Return | JumpKind::Halt => {}
                        }
                    }
                }
                CfNode::If(node) => {
                    ifs += 1;
                    self.branch(node, around, jumps);
                }
                CfNode::Loop(node) => {
                    loops += 1;
                    self.repeat(node, around);
                }
            }
        }
        if ifs >= 3 {
            self.shape("three ifs, one after the other");
        }
        if loops >= 2 {
            self.shape("two loops, one after the other");
        }
    }

    fn depth(&mut self, depth: u32) {
        match depth {
            0..=2 => {}
            3 => self.shape("depth 3"),
            4 => self.shape("depth 4"),
            _ => self.shape("depth 5 or more"),
        }
    }

    fn is_empty(&self, arm: &[CfNode]) -> bool {
        matches!(arm, [CfNode::Block(block)] if self.function.blocks[*block].instrs.is_empty())
    }

    fn branch(&mut self, node: &If, around: Around, jumps: &mut Jumps) {
        self.shape("if");
        match (self.is_empty(&node.then), self.is_empty(&node.otherwise)) {
            (false, false) => self.shape("if with two arms"),
            (true, _) => self.shape("if whose first arm is empty"),
            (false, true) => {}
        }
        if self.function.as_const(node.condition).is_some() {
            self.shape("if on a constant");
        }
        if around.in_if {
            self.shape("if in an if");
        }
        if around.in_second {
            self.shape("if in the second arm of an if");
        }
        if around.loops > 0 {
            self.shape("if in a loop");
        }
        let depth = around.depth + 1;
        self.depth(depth);
        let inside = Around { depth, ifs: around.ifs + 1, in_if: true, in_second: false, ..around };
        self.list(&node.then, inside, jumps);
        self.list(&node.otherwise, Around { in_second: true, ..inside }, jumps);
    }

    fn repeat(&mut self, node: &Loop, around: Around) {
        self.shape("loop");
        match around.loops {
            0 => {}
            1 => self.shape("loop in a loop"),
            _ => self.shape("loop in a loop in a loop"),
        }
        if around.in_if {
            self.shape("loop in an if");
        }
        if node.continuing.is_some() {
            self.shape("loop with a continue construct");
        }
        let (depth, loops) = (around.depth + 1, around.loops + 1);
        self.depth(depth);
        let mut jumps = Jumps::default();
        self.list(&node.body, Around { depth, loops, ..Around::default() }, &mut jumps);
        if let Some(CfNode::Block(last)) = node.body.last()
            && let Some(&instr) = self.function.blocks[*last].instrs.last()
            && self.function.instrs[instr] == InstrData::Jump(JumpKind::Break)
        {
            self.shape("loop whose last block leaves it");
        }
        match jumps.breaks {
            0 => {}
            1 => self.shape("loop with 1 break"),
            2 => self.shape("loop with 2 breaks"),
            _ => self.shape("loop with 3 breaks or more"),
        }
        match jumps.continues {
            0 => {}
            1 => self.shape("loop with 1 continue"),
            _ => self.shape("loop with 2 continues or more"),
        }
    }

    fn phis(&mut self) {
        let first = SHAPES.len() as u32;
        for (_, instr) in self.function.instrs_in_order() {
            let InstrData::Phi { def, srcs } = &self.function.instrs[instr] else { continue };
            let data = &self.function.defs[*def];
            let width = [1, 8, 16, 32, 64].iter().position(|&bits| bits == data.bit_size);
            width.into_iter().for_each(|width| (self.visit)(first + width as u32));
            let is_undefined = |def| {
                let instr = self.function.defs[def].instr;
                matches!(self.function.instrs[instr], InstrData::Undef { .. })
            };
            let others = [data.num_components > 1, srcs.len() >= 3, srcs.iter().any(|&(_, def)| is_undefined(def))];
            (5..).zip(others).filter(|&(_, has)| has).for_each(|(number, _)| (self.visit)(first + number));
        }
    }
}
