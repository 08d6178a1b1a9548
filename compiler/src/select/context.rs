//! What all of selection works on: the program that grows, and which ir3 value each nir component is.

use super::SelectError;
use super::outputs::Outputs;
use crate::ir3::legality::valid_source;
use crate::ir3::{
    Array, Attrs, Block, Builder, Category, Condition, InputKind, Instr, InstrData, Opcode, PhysReg, Place, Program,
    RegClass, Round, ShaderStage, Src, SrcOperand, SystemValue, Type, Value, WriteMask,
};
use crate::nir;
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// One register's worth of a nir value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// An ir3 value.
    Value(Value),
    /// A constant that is no value yet.
    Immediate(u32),
    /// Nothing in particular.
    Undef,
}

/// The components of a vector operand.
pub(super) type Srcs = SmallVec<[Src; 4]>;

/// The components of a vector result.
pub(super) type Values = SmallVec<[Value; 4]>;

/// The state of selection.
pub(super) struct Context<'a> {
    /// The shader that is translated.
    pub shader: &'a nir::Shader,
    /// Its function.
    pub function: &'a nir::Function,
    /// The GPU.
    pub target: &'a Target,
    /// The program so far.
    pub program: Program,
    /// The block that instructions go to.
    pub block: Block,
    /// The nir instruction that is translated, for messages.
    pub instr: Option<nir::Instr>,
    /// Values of the outputs that have been stored.
    pub outputs: Outputs,
    /// Arrays by the value of their `decl_reg`.
    pub arrays: FxHashMap<nir::Def, Array>,
    /// How conversions round.
    pub controls: nir::FloatControls,
    /// How many ifs and loops are around the current place.
    pub depth: u32,
    words: Vec<Word>,
    first_word: SecondaryMap<nir::Def, u32>,
    /// Immediates that the current block has in registers.
    materialised: FxHashMap<(u32, bool), Value>,
    /// Inputs and their values.
    inputs: FxHashMap<InputKind, Value>,
    /// The instructions of the inputs, which go to the start of the program.
    input_instrs: Vec<Instr>,
    /// What takes vector inputs apart, which goes behind them.
    input_splits: Vec<Instr>,
    /// The components of vector inputs.
    input_parts: FxHashMap<Value, Values>,
}

impl<'a> Context<'a> {
    /// Starts an empty program with one block.
    pub fn new(shader: &'a nir::Shader, target: &'a Target) -> Self {
        let function = &shader.entry;
        let mut program = Program { stage: stage(shader.stage), ..Program::default() };
        program.workgroup_size = shader.info.workgroup_size.map(|size| size.map(|n| n.min(0xffff) as u16));
        program.shared_size = shader.info.shared_size;
        program.scratch_size = shader.info.scratch_size;
        let block = program.blocks.push(Default::default());
        program.layout.push(block);
        let mut first_word = SecondaryMap::with_capacity(function.defs.len());
        let mut count = 0;
        for (def, data) in &function.defs {
            first_word[def] = count;
            count += u32::from(data.num_components) * words_per_component(data.bit_size) as u32;
        }
        Context {
            shader,
            function,
            target,
            program,
            block,
            instr: None,
            outputs: Outputs::default(),
            arrays: FxHashMap::default(),
            controls: nir::FloatControls::OPEN,
            depth: 0,
            words: vec![Word::Undef; count as usize],
            first_word,
            materialised: FxHashMap::default(),
            inputs: FxHashMap::default(),
            input_instrs: Vec::new(),
            input_splits: Vec::new(),
            input_parts: FxHashMap::default(),
        }
    }

    /// The finished program: inputs come first in it.
    pub fn finish(mut self) -> Program {
        let entry = self.program.entry();
        let inputs = self.input_instrs.into_iter().chain(self.input_splits);
        self.program.blocks[entry].instrs.splice(0..0, inputs);
        self.program
    }

    // Errors.

    /// The error that says why the current instruction is refused.
    pub fn unsupported(&self, reason: impl Into<String>) -> SelectError {
        let operation = match self.instr {
            Some(instr) => self.function.instrs[instr].name().to_owned(),
            None => "shader".to_owned(),
        };
        let line = self.instr.map(|instr| self.function.lines[instr]).filter(|&line| line != 0);
        SelectError { operation, reason: reason.into(), line, instr: self.instr }
    }

    // What is known of nir values.

    /// Components of a nir value.
    pub fn components(&self, def: nir::Def) -> u8 {
        self.function.defs[def].num_components
    }

    /// Width of a nir value.
    pub fn bits(&self, def: nir::Def) -> u8 {
        self.function.defs[def].bit_size
    }

    /// Whether values of that width live in half registers.
    pub fn is_half(&self, bits: u8) -> bool {
        match bits {
            1 => self.target.bools_are_half(),
            8 | 16 => true,
            _ => false,
        }
    }

    /// The register class of values of that width (of one of the two words of 64 bits).
    pub fn class(&self, bits: u8) -> RegClass {
        RegClass::general(self.is_half(bits))
    }

    /// The register class of bools.
    pub fn bool_class(&self) -> RegClass {
        RegClass::general(self.target.bools_are_half())
    }

    /// The instruction that defines a nir value.
    pub fn producer(&self, def: nir::Def) -> &'a nir::InstrData {
        &self.function.instrs[self.function.defs[def].instr]
    }

    /// The bits of one component of a constant nir value.
    pub fn constant(&self, def: nir::Def, component: u8) -> Option<u64> {
        self.function.as_const(def).map(|values| values[usize::from(component)])
    }

    // Sources.

    /// One register's worth of a nir value, as it is known.
    pub fn word(&self, def: nir::Def, index: usize) -> Word {
        self.words[self.first_word[def] as usize + index]
    }

    /// One component of a nir value of at most 32 bits (the low word of one of 64 bits), in a register.
    pub fn scalar(&mut self, def: nir::Def, component: u8) -> Src {
        let index = usize::from(component) * words_per_component(self.bits(def));
        self.word_src(def, index)
    }

    /// Both words of one 64-bit component, low first.
    pub fn pair(&mut self, def: nir::Def, component: u8) -> [Src; 2] {
        let index = usize::from(component) * 2;
        [self.word_src(def, index), self.word_src(def, index + 1)]
    }

    /// All registers of a nir value: its components in order, two words for each of 64 bits.
    pub fn vector(&mut self, def: nir::Def) -> Srcs {
        let count = usize::from(self.components(def)) * words_per_component(self.bits(def));
        (0..count).map(|index| self.word_src(def, index)).collect()
    }

    fn word_src(&mut self, def: nir::Def, index: usize) -> Src {
        let half = self.is_half(self.bits(def));
        let word = self.word(def, index);
        self.src_of_word(word, half)
    }

    /// A word in a register; one that is undefined is 0.
    pub fn src_of_word(&mut self, word: Word, half: bool) -> Src {
        match word {
            Word::Value(value) => self.src(value),
            Word::Immediate(bits) => self.immediate(bits, half),
            Word::Undef => self.immediate(0, half),
        }
    }

    /// Reads all of an ir3 value.
    pub fn src(&self, value: Value) -> Src {
        let data = &self.program.values[value];
        Src::reg(Place::Value(value), data.class, WriteMask::first(u32::from(data.components)))
    }

    /// A constant in a register: a move, once for each block.
    pub fn immediate(&mut self, bits: u32, half: bool) -> Src {
        let bits = if half { bits & 0xffff } else { bits };
        if let Some(&value) = self.materialised.get(&(bits, half)) {
            return self.src(value);
        }
        let ty = if half { Type::U16 } else { Type::U32 };
        let value = self.convert(ty, ty, Src::immediate(bits, half));
        self.materialised.insert((bits, half), value);
        self.src(value)
    }

    /// A constant as an integer operand of cat2: in the instruction if it fits, else in a register.
    pub fn small(&mut self, bits: u32, half: bool) -> Src {
        if bits < 0x200 { Src::immediate(bits, half) } else { self.immediate(bits, half) }
    }

    /// Puts scalars of one class together to a vector, which is one source. A single scalar stays as it is.
    pub fn collect(&mut self, srcs: &[Src]) -> Src {
        if let [src] = srcs {
            return *src;
        }
        let class = srcs.first().map_or(RegClass::FULL, |src| src.class);
        let value = self.builder().define(Opcode::Collect, class, srcs.len() as u16, srcs, Attrs::None);
        self.src(value)
    }

    /// All components of a nir value as one source.
    pub fn collect_def(&mut self, def: nir::Def) -> Src {
        let srcs = self.vector(def);
        self.collect(&srcs)
    }

    /// `a0.x` with a value (its low 16 bits), for one use right behind.
    pub fn address(&mut self, src: Src) -> Src {
        let src = if src.class.half { src } else { self.convert_src(Type::S32, Type::S16, src) };
        let value = self.builder().define(
            Opcode::Mov,
            RegClass::ADDRESS,
            1,
            &[src],
            Attrs::Move { src: Type::S16, dst: Type::S16, round: Round::Default },
        );
        let instr = self.program.values[value].instr;
        self.program.instrs[instr].dsts[0].place = Place::Assigned(value, PhysReg::A0_X);
        Src::reg(Place::Assigned(value, PhysReg::A0_X), RegClass::ADDRESS, WriteMask::SCALAR)
    }

    // Results.

    /// Says which values a nir value is: one for each of its registers, in order.
    pub fn define(&mut self, def: nir::Def, values: &[Value]) {
        for (index, &value) in values.iter().enumerate() {
            self.set_word(def, index, Word::Value(value));
        }
    }

    /// Says what one register's worth of a nir value is.
    pub fn set_word(&mut self, def: nir::Def, index: usize, word: Word) {
        let slot = self.first_word[def] as usize + index;
        self.words[slot] = word;
    }

    /// Says which value one register's worth of a nir value is.
    pub fn define_word(&mut self, def: nir::Def, index: usize, value: Value) {
        self.set_word(def, index, Word::Value(value));
    }

    /// Says what one component of at most 32 bits is.
    pub fn set(&mut self, def: nir::Def, component: u8, value: Value) {
        debug_assert_eq!(self.program.values[value].class, self.class(self.bits(def)), "class of a component");
        self.set_word(def, usize::from(component), Word::Value(value));
    }

    /// Says what both words of a 64-bit component are.
    pub fn set_pair(&mut self, def: nir::Def, component: u8, low: Value, high: Value) {
        let index = usize::from(component) * 2;
        self.set_word(def, index, Word::Value(low));
        self.set_word(def, index + 1, Word::Value(high));
    }

    /// The components of a vector value as scalars.
    pub fn split(&mut self, value: Value) -> Values {
        let data = &self.program.values[value];
        let (class, components) = (data.class, data.components);
        if components == 1 {
            return SmallVec::from_slice(&[value]);
        }
        let src = self.src(value);
        (0..components)
            .map(|offset| self.builder().define(Opcode::Split, class, 1, &[src], Attrs::Split { offset }))
            .collect()
    }

    // Instructions.

    /// Appends to the current block.
    pub fn builder(&mut self) -> Builder<'_> {
        Builder::new(&mut self.program, self.block)
    }

    /// Appends an instruction. An immediate that a memory or texture instruction cannot encode where it stands goes through a register.
    pub fn push(&mut self, mut data: InstrData) -> Instr {
        if matches!(data.opcode.category(), Category::Memory | Category::Texture) {
            for slot in 0..data.srcs.len() {
                let src = data.srcs[slot];
                if let SrcOperand::Immediate(bits) = src.operand
                    && !valid_source(self.target, &data, slot, &src)
                {
                    data.srcs[slot].operand = self.immediate(bits, src.class.half).operand;
                }
            }
        }
        self.builder().push(data)
    }

    /// Appends an operation with one scalar result.
    pub fn alu(&mut self, opcode: Opcode, class: RegClass, srcs: &[Src]) -> Value {
        self.builder().alu(opcode, class, srcs)
    }

    /// Like [`alu`](Self::alu), as a source of the next operation.
    pub fn alu_src(&mut self, opcode: Opcode, class: RegClass, srcs: &[Src]) -> Src {
        let value = self.alu(opcode, class, srcs);
        self.src(value)
    }

    /// Appends a comparison that gives a bool.
    pub fn compare(&mut self, opcode: Opcode, condition: Condition, a: Src, b: Src) -> Value {
        let class = self.bool_class();
        self.builder().compare(opcode, condition, class, a, b)
    }

    /// Like [`compare`](Self::compare), as a source of the next operation.
    pub fn compare_src(&mut self, opcode: Opcode, condition: Condition, a: Src, b: Src) -> Src {
        let value = self.compare(opcode, condition, a, b);
        self.src(value)
    }

    /// Appends a move or a conversion, by its types.
    pub fn convert(&mut self, from: Type, to: Type, src: Src) -> Value {
        self.builder().convert(from, to, RegClass::general(to.is_half()), src)
    }

    /// Like [`convert`](Self::convert), as a source of the next operation.
    pub fn convert_src(&mut self, from: Type, to: Type, src: Src) -> Src {
        let value = self.convert(from, to, src);
        self.src(value)
    }

    /// An integer in a full register, zero-extended if it is in a half one.
    pub fn widened(&mut self, src: Src) -> Src {
        if src.class.half { self.convert_src(Type::U16, Type::U32, src) } else { src }
    }

    /// The low 16 bits of an integer in a half register.
    pub fn narrowed(&mut self, src: Src) -> Src {
        if src.class.half { src } else { self.convert_src(Type::U32, Type::U16, src) }
    }

    /// An integer in a register of that class.
    pub fn resize(&mut self, src: Src, half: bool) -> Src {
        if half { self.narrowed(src) } else { self.widened(src) }
    }

    /// A predicate that holds where a bool does.
    pub fn predicate(&mut self, condition: nir::Def) -> Src {
        let src = self.scalar(condition, 0);
        self.predicate_of(src)
    }

    /// A predicate that holds where an integer is not 0.
    pub fn predicate_of(&mut self, src: Src) -> Src {
        let zero = Src::immediate(0, src.class.half);
        let value = self.builder().compare(Opcode::CmpsS, Condition::Ne, RegClass::PREDICATE, src, zero);
        self.src(value)
    }

    // Inputs.

    /// The value of an input that takes `components` registers; the first use of it adds it to the program.
    pub fn input(&mut self, kind: InputKind, class: RegClass, components: u16) -> Value {
        if let Some(&value) = self.inputs.get(&kind) {
            return value;
        }
        let instr =
            self.program.instrs.push(InstrData { attrs: Attrs::Input(Some(kind)), ..InstrData::new(Opcode::Input) });
        let value = self.builder().add_dst(instr, class, WriteMask::first(u32::from(components)));
        self.inputs.insert(kind, value);
        self.input_instrs.push(instr);
        value
    }

    /// A system value that is an input of the program.
    pub fn system_value(&mut self, value: SystemValue, class: RegClass, components: u16) -> Value {
        self.input(InputKind::System(value), class, components)
    }

    /// The components of an input as scalars, taken apart once for the program, right behind the input.
    pub fn split_input(&mut self, value: Value) -> Values {
        let data = &self.program.values[value];
        let (class, components) = (data.class, data.components);
        if components == 1 {
            return SmallVec::from_slice(&[value]);
        }
        if let Some(found) = self.input_parts.get(&value) {
            return found.clone();
        }
        let src = self.src(value);
        let parts: Values = (0..components)
            .map(|offset| {
                let mut data = InstrData::new(Opcode::Split);
                data.srcs.push(src);
                data.attrs = Attrs::Split { offset };
                let instr = self.program.instrs.push(data);
                self.input_splits.push(instr);
                self.builder().add_dst(instr, class, WriteMask::SCALAR)
            })
            .collect();
        self.input_parts.insert(value, parts.clone());
        parts
    }

    // Blocks.

    /// Adds a block that has no place yet.
    pub fn new_block(&mut self) -> Block {
        self.program.blocks.push(Default::default())
    }

    /// Places a block behind all others and goes on there.
    pub fn place_block(&mut self, block: Block) {
        self.program.layout.push(block);
        self.go_to(block);
    }

    /// Appends to that block from now on.
    pub fn go_to(&mut self, block: Block) {
        self.block = block;
        self.materialised.clear();
    }

    /// A register for a word at the end of a finished block, before its terminator: a source of a phi.
    pub fn word_at_end(&mut self, block: Block, word: Word, class: RegClass) -> Src {
        let bits = match word {
            Word::Value(value) => return self.src(value),
            Word::Immediate(bits) => bits,
            Word::Undef => return Src::new(SrcOperand::Undef, class, WriteMask::SCALAR),
        };
        let ty = if class.half { Type::U16 } else { Type::U32 };
        let bits = if class.half { bits & 0xffff } else { bits };
        let value = Builder::new(&mut self.program, block).convert(ty, ty, class, Src::immediate(bits, class.half));
        let instrs = &mut self.program.blocks[block].instrs;
        if let Some(moved) = instrs.pop() {
            let terminators =
                (instrs.iter().rev()).take_while(|&&instr| self.program.instrs[instr].opcode.is_terminator()).count();
            instrs.insert(instrs.len() - terminators, moved);
        }
        self.src(value)
    }
}

/// Registers that a component takes.
pub(super) fn words_per_component(bits: u8) -> usize {
    if bits == 64 { 2 } else { 1 }
}

fn stage(stage: nir::Stage) -> Option<ShaderStage> {
    Some(match stage {
        nir::Stage::Vertex => ShaderStage::Vertex,
        nir::Stage::TessCtrl => ShaderStage::TessControl,
        nir::Stage::TessEval => ShaderStage::TessEval,
        nir::Stage::Geometry => ShaderStage::Geometry,
        nir::Stage::Fragment => ShaderStage::Fragment,
        nir::Stage::Compute | nir::Stage::Kernel => ShaderStage::Compute,
        nir::Stage::Task | nir::Stage::Mesh => return None,
    })
}
