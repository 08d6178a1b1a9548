//! Builds a shader in source order.
//!
//! The builder has one cursor, the end of the current block. Structured control flow opens and closes lists around it,
//! so blocks are numbered in source order, and the lists have nir's shape by construction. Widths come from the tables.
//! The builder checks only what the tables need; the validator checks the rest.

use smallvec::SmallVec;

use super::function::{
    Alu, AluSrc, Block, CfNode, Def, DefData, Function, If, Instr, InstrData, Intrinsic, JumpKind, Loop, LoopControl,
    SelectionControl,
};
use super::index::{Index, Indices};
use super::intrinsic::{Components, IntrinsicOp};
use super::op::Op;
use super::shader::{Shader, Stage};
use super::tex::Tex;
use super::types::AluType;

/// An open if or loop, with the list that contains it.
enum Frame {
    Then { outer: Vec<CfNode>, condition: Def, control: SelectionControl },
    Else { outer: Vec<CfNode>, condition: Def, control: SelectionControl, then: Vec<CfNode> },
    Body { outer: Vec<CfNode>, divergent: Option<bool>, control: LoopControl },
    Continuing { outer: Vec<CfNode>, divergent: Option<bool>, control: LoopControl, body: Vec<CfNode> },
}

/// Builds one shader.
pub struct Builder {
    shader: Shader,
    list: Vec<CfNode>,
    frames: Vec<Frame>,
    block: Block,
}

impl Builder {
    /// Creates a builder at the start of an empty function.
    pub fn new(stage: Stage) -> Builder {
        Builder::with_shader(Shader::new(stage))
    }

    /// Creates a builder for a shader whose function is still empty.
    pub fn with_shader(mut shader: Shader) -> Builder {
        let block = shader.entry.blocks.push(Default::default());
        Builder { shader, list: Vec::new(), frames: Vec::new(), block }
    }

    /// The shader so far. Its tree is complete only after [`finish`](Builder::finish).
    pub fn shader(&self) -> &Shader {
        &self.shader
    }

    /// The shader so far, for its header and variables.
    pub fn shader_mut(&mut self) -> &mut Shader {
        &mut self.shader
    }

    /// The function so far.
    pub fn function(&self) -> &Function {
        &self.shader.entry
    }

    /// The block that instructions are appended to.
    pub fn current_block(&self) -> Block {
        self.block
    }

    /// The number of open ifs and loops.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Ends the shader.
    ///
    /// # Panics
    /// If an if or a loop is still open.
    pub fn finish(mut self) -> Shader {
        assert!(self.frames.is_empty(), "an if or a loop is still open");
        self.list.push(CfNode::Block(self.block));
        self.shader.entry.body = self.list;
        self.shader
    }

    fn close_list(&mut self) -> Vec<CfNode> {
        self.list.push(CfNode::Block(self.block));
        self.block = self.shader.entry.blocks.push(Default::default());
        std::mem::take(&mut self.list)
    }

    /// Opens an if on a scalar boolean.
    pub fn begin_if(&mut self, condition: Def) {
        self.begin_if_with(condition, SelectionControl::None);
    }

    /// Opens an if with a selection control.
    pub fn begin_if_with(&mut self, condition: Def, control: SelectionControl) {
        let outer = self.close_list();
        self.frames.push(Frame::Then { outer, condition, control });
    }

    /// Switches from the then side to the else side.
    ///
    /// # Panics
    /// If the innermost open construct is not the then side of an if.
    pub fn begin_else(&mut self) {
        let then = self.close_list();
        match self.frames.pop() {
            Some(Frame::Then { outer, condition, control }) => {
                self.frames.push(Frame::Else { outer, condition, control, then });
            }
            _ => panic!("else without if"),
        }
    }

    /// Closes an if; an else side that was not opened is one empty block.
    ///
    /// # Panics
    /// If the innermost open construct is not an if.
    pub fn end_if(&mut self) {
        if matches!(self.frames.last(), Some(Frame::Then { .. })) {
            self.begin_else();
        }
        let otherwise = self.close_list();
        match self.frames.pop() {
            Some(Frame::Else { outer, condition, control, then }) => {
                self.list = outer;
                self.list.push(CfNode::If(Box::new(If { condition, control, then, otherwise })));
            }
            _ => panic!("end of if without if"),
        }
    }

    /// Opens a loop.
    pub fn begin_loop(&mut self) {
        self.begin_loop_with(None, LoopControl::None);
    }

    /// Opens a loop with the result of divergence analysis for it.
    pub fn begin_loop_with(&mut self, divergent: Option<bool>, control: LoopControl) {
        let outer = self.close_list();
        self.frames.push(Frame::Body { outer, divergent, control });
    }

    /// Switches from the body of a loop to its continue construct, which runs before each further iteration.
    ///
    /// # Panics
    /// If the innermost open construct is not the body of a loop.
    pub fn begin_continuing(&mut self) {
        let body = self.close_list();
        match self.frames.pop() {
            Some(Frame::Body { outer, divergent, control }) => {
                self.frames.push(Frame::Continuing { outer, divergent, control, body });
            }
            _ => panic!("continue part without loop"),
        }
    }

    /// Closes a loop.
    ///
    /// # Panics
    /// If the innermost open construct is not a loop.
    pub fn end_loop(&mut self) {
        let last = self.close_list();
        let (outer, body, continuing, divergent, control) = match self.frames.pop() {
            Some(Frame::Body { outer, divergent, control }) => (outer, last, None, divergent, control),
            Some(Frame::Continuing { outer, divergent, control, body }) => {
                (outer, body, Some(last), divergent, control)
            }
            _ => panic!("end of loop without loop"),
        };
        self.list = outer;
        self.list.push(CfNode::Loop(Box::new(Loop { control, body, continuing, divergent })));
    }

    /// Creates a value of the given shape with the next index; the caller appends its instruction at once.
    pub(crate) fn new_def(&mut self, num_components: u8, bit_size: u8) -> Def {
        let function = &mut self.shader.entry;
        let instr = function.instrs.next_key();
        let index = function.defs.len() as u32;
        function.defs.push(DefData { num_components, bit_size, divergent: None, instr, index })
    }

    /// Appends an instruction to the current block.
    pub(crate) fn append(&mut self, data: InstrData) -> Instr {
        let instr = self.shader.entry.instrs.push(data);
        self.shader.entry.blocks[self.block].instrs.push(instr);
        instr
    }

    /// Appends an arithmetic instruction on whole values. The result has as many components as the first per-component
    /// source.
    pub fn alu(&mut self, op: Op, srcs: &[Def]) -> Def {
        let info = op.info();
        let components = match info.output.components {
            0 => {
                let vector = info.inputs.iter().position(|input| input.components == 0);
                self.shader.entry.defs[srcs[vector.unwrap_or(0)]].num_components
            }
            fixed => fixed,
        };
        let srcs: SmallVec<[AluSrc; 4]> = srcs.iter().map(|&def| AluSrc::identity(def)).collect();
        self.alu_swizzled(op, components, &srcs)
    }

    /// Appends an arithmetic instruction with a result of `components`.
    pub fn alu_swizzled(&mut self, op: Op, components: u8, srcs: &[AluSrc]) -> Def {
        let info = op.info();
        let bit_size = match info.output.ty.size {
            0 => self.shader.entry.defs[srcs[info.width_source().unwrap_or(0)].def].bit_size,
            fixed => fixed,
        };
        let def = self.new_def(components, bit_size);
        let srcs = (srcs.iter().enumerate())
            .map(|(index, &src)| canonical(src, info.source_components(index, components)))
            .collect();
        self.append(InstrData::Alu(Alu {
            op,
            exact: false,
            no_signed_wrap: false,
            no_unsigned_wrap: false,
            def,
            srcs,
        }));
        def
    }

    /// Returns one component of a vector as a scalar.
    pub fn channel(&mut self, def: Def, component: u8) -> Def {
        if self.shader.entry.defs[def].num_components == 1 {
            return def;
        }
        self.alu_swizzled(Op::Mov, 1, &[AluSrc::scalar(def, component)])
    }

    /// Builds a vector from 1 to 5, 8 or 16 scalars.
    ///
    /// # Panics
    /// If no vector has that many components.
    pub fn vec(&mut self, scalars: &[Def]) -> Def {
        if let &[scalar] = scalars {
            return scalar;
        }
        let op = Op::vec(scalars.len() as u8).expect("a vector has 1 to 5, 8 or 16 components");
        self.alu(op, scalars)
    }

    /// Appends a scalar constant.
    pub fn constant(&mut self, bit_size: u8, value: u64) -> Def {
        self.constants(bit_size, &[value])
    }

    /// Appends a constant with one value per component.
    pub fn constants(&mut self, bit_size: u8, values: &[u64]) -> Def {
        let def = self.new_def(values.len() as u8, bit_size);
        let mask = u64::MAX >> (64 - bit_size);
        let values = values.iter().map(|value| value & mask).collect();
        self.append(InstrData::Const { def, values });
        def
    }

    /// Appends a scalar 32-bit float constant.
    pub fn float(&mut self, value: f32) -> Def {
        self.constant(32, value.to_bits().into())
    }

    /// Appends an undefined value.
    pub fn undef(&mut self, num_components: u8, bit_size: u8) -> Def {
        let def = self.new_def(num_components, bit_size);
        self.append(InstrData::Undef { def });
        def
    }

    /// Appends a phi to the phis of the current block. [`set_phi_src`](Builder::set_phi_src) sets its sources later.
    pub fn phi(&mut self, num_components: u8, bit_size: u8) -> Def {
        let def = self.new_def(num_components, bit_size);
        let function = &mut self.shader.entry;
        let instr = function.instrs.push(InstrData::Phi { def, srcs: SmallVec::new() });
        let instrs = &mut function.blocks[self.block].instrs;
        let is_phi = |&i: &Instr| matches!(function.instrs[i], InstrData::Phi { .. });
        let at = instrs.iter().rposition(is_phi).map_or(0, |last| last + 1);
        instrs.insert(at, instr);
        def
    }

    /// Sets the value of a phi for the edge from `pred`.
    ///
    /// # Panics
    /// If `phi` is not a phi.
    pub fn set_phi_src(&mut self, phi: Def, pred: Block, value: Def) {
        let function = &mut self.shader.entry;
        match &mut function.instrs[function.defs[phi].instr] {
            InstrData::Phi { srcs, .. } => match srcs.iter_mut().find(|(block, _)| *block == pred) {
                Some(src) => src.1 = value,
                None => srcs.push((pred, value)),
            },
            other => panic!("a source of a phi for {}", other.name()),
        }
    }

    /// Appends an intrinsic. `components` and `bit_size` are those of the result where the table leaves them open.
    /// Indices that `indices` lacks get their defaults; all are put into print order.
    pub fn intrinsic(
        &mut self,
        op: IntrinsicOp,
        components: u8,
        bit_size: u8,
        srcs: &[Def],
        indices: impl Into<Indices>,
    ) -> Option<Def> {
        let info = op.info();
        let given = indices.into();
        let indices = Indices(
            (info.indices.iter())
                .map(|&kind| given.get(kind).cloned().unwrap_or_else(|| Index::default_of(kind)))
                .collect(),
        );
        let def = info.dest.map(|dest| {
            let components = match dest {
                Components::Fixed(fixed) => fixed,
                Components::Vector | Components::Any => components,
            };
            self.new_def(components, bit_size)
        });
        let srcs = SmallVec::from_slice(srcs);
        self.append(InstrData::Intrinsic(Intrinsic { op, def, srcs, indices, variable: None }));
        def
    }

    /// Appends a texture operation; `shape` sets its sources and flags.
    pub fn tex(
        &mut self,
        op: super::tex::TexOp,
        dest_type: AluType,
        components: u8,
        shape: impl FnOnce(&mut Tex),
    ) -> Def {
        let def = self.new_def(components, dest_type.size.max(1));
        let mut tex = Tex::new(op, dest_type, def);
        shape(&mut tex);
        self.append(InstrData::Tex(tex));
        def
    }

    /// Ends the current block with a jump. No instruction may follow in this list.
    pub fn jump(&mut self, kind: JumpKind) {
        self.append(InstrData::Jump(kind));
    }
}

/// Clears the swizzle entries that the operation does not read, so that equal programs compare equal.
pub(crate) fn canonical(mut src: AluSrc, used: u8) -> AluSrc {
    src.swizzle[usize::from(used)..].fill(0);
    src
}
