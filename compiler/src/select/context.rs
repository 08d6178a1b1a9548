//! The state of selection: the program under construction, and the ir3 value of each nir component.

use super::SelectError;
use super::driver_params::DriverParams;
use super::outputs::StoredOutputs;
use crate::ir3::legality::valid_source;
use crate::ir3::{
    Array, Attrs, Block, Builder, Category, Condition, InputKind, Instr, InstrData, Opcode, PhysReg, Place, Program,
    RegClass, Round, ShaderStage, Src, SrcOperand, SystemValue, Type, Value, WriteMask,
};
use crate::maps::map_of;
use crate::nir;
use crate::target::Target;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// One register of a nir value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// An ir3 value.
    Value(Value),
    /// A constant without an ir3 value yet.
    Immediate(u32),
    /// An undefined value.
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
    /// The block that instructions are appended to.
    pub block: Block,
    /// The nir instruction that is translated, for messages.
    pub instr: Option<nir::Instr>,
    /// Values of the stored outputs.
    pub outputs: StoredOutputs,
    /// Arrays by the value of their `decl_reg`.
    pub arrays: FxHashMap<nir::Def, Array>,
    /// The rounding of conversions.
    pub controls: nir::FloatControls,
    /// The number of ifs and loops around the current block.
    pub depth: u32,
    /// System values in the constant file.
    pub driver_params: DriverParams,
    /// In a preamble: the words of the constant file that it has stored so far.
    pub stored_consts: Option<Vec<Range<i64>>>,
    words: Vec<Word>,
    first_word: SecondaryMap<nir::Def, u32>,
    /// Immediates that are in registers in the current block.
    materialised: FxHashMap<(u32, bool), Value>,
    /// Inputs and their values.
    inputs: FxHashMap<InputKind, Value>,
    /// The instructions of the inputs, which are inserted at the start of the program.
    input_instrs: Vec<Instr>,
    /// The splits of vector inputs, which follow them.
    input_splits: Vec<Instr>,
    /// The components of vector inputs.
    input_parts: FxHashMap<Value, Values>,
}

impl<'a> Context<'a> {
    /// Creates an empty program with one block.
    pub fn new(shader: &'a nir::Shader, target: &'a Target) -> Self {
        let function = &shader.entry;
        let mut program = Program { stage: stage(shader.stage), ..Program::default() };
        program.workgroup_size = shader.info.workgroup_size_in_ir3();
        program.shared_size = shader.info.shared_size;
        program.scratch_size = shader.info.scratch_size;
        // Most operations become one or two instructions; later stages add some.
        program.instrs = PrimaryMap::with_capacity(2 * function.instrs.len());
        program.values = PrimaryMap::with_capacity(2 * function.instrs.len());
        let block = program.blocks.push(Default::default());
        program.layout.push(block);
        let mut first_word = map_of(function.defs.len());
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
            outputs: StoredOutputs::default(),
            arrays: FxHashMap::default(),
            controls: nir::FloatControls::OPEN,
            depth: 0,
            driver_params: DriverParams::default(),
            stored_consts: None,
            words: vec![Word::Undef; count as usize],
            first_word,
            materialised: FxHashMap::default(),
            inputs: FxHashMap::default(),
            input_instrs: Vec::new(),
            input_splits: Vec::new(),
            input_parts: FxHashMap::default(),
        }
    }

    /// Returns the finished program, with the inputs first.
    ///
    /// # Errors
    /// If the words that the driver fills do not fit in the constant file.
    pub fn finish(mut self) -> Result<Program, SelectError> {
        if !self.driver_params.place(&mut self.program, self.target, &self.shader.info) {
            self.instr = None;
            return Err(self.unsupported("the words that it names leave no space for those that the driver fills"));
        }
        let entry = self.program.entry();
        // A prefetch has written its registers when the first instruction is issued: no copy, which a split may become,
        // precedes it.
        let program = &mut self.program;
        let start = &mut program.blocks[entry].instrs;
        let prefetches = start.iter().take_while(|&&instr| program.instrs[instr].opcode == Opcode::TexPrefetch).count();
        start.splice(prefetches..prefetches, self.input_splits);
        start.splice(0..0, self.input_instrs);
        Ok(self.program)
    }

    // Errors.

    /// The error for an unsupported use of the current instruction.
    pub fn unsupported(&self, reason: impl Into<String>) -> SelectError {
        let operation = match self.instr {
            Some(instr) => self.function.instrs[instr].name().to_owned(),
            None => "shader".to_owned(),
        };
        let line = self.instr.map(|instr| self.function.lines[instr]).filter(|&line| line != 0);
        SelectError { operation, reason: reason.into(), line, instr: self.instr }
    }

    // Properties of nir values.

    /// Components of a nir value.
    pub fn components(&self, def: nir::Def) -> u8 {
        self.function.defs[def].num_components
    }

    /// Width of a nir value.
    pub fn bits(&self, def: nir::Def) -> u8 {
        self.function.defs[def].bit_size
    }

    /// Returns true if values of that width are in half registers.
    pub fn is_half(&self, bits: u8) -> bool {
        match bits {
            1 => self.target.bools_are_half(),
            8 | 16 => true,
            _ => false,
        }
    }

    /// The register class of values of that width (for 64 bits, of each word).
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

    /// One register of a nir value: its ir3 value or constant.
    pub fn word(&self, def: nir::Def, index: usize) -> Word {
        self.words[self.first_word[def] as usize + index]
    }

    /// One component of a nir value of at most 32 bits (the low word of a 64-bit one), in a register.
    pub fn scalar(&mut self, def: nir::Def, component: u8) -> Src {
        let index = usize::from(component) * words_per_component(self.bits(def));
        self.word_src(def, index)
    }

    /// Both words of one 64-bit component, low first.
    pub fn pair(&mut self, def: nir::Def, component: u8) -> [Src; 2] {
        let index = usize::from(component) * 2;
        [self.word_src(def, index), self.word_src(def, index + 1)]
    }

    /// All registers of a nir value: its components in order, two words for each 64-bit one.
    pub fn vector(&mut self, def: nir::Def) -> Srcs {
        let count = usize::from(self.components(def)) * words_per_component(self.bits(def));
        (0..count).map(|index| self.word_src(def, index)).collect()
    }

    fn word_src(&mut self, def: nir::Def, index: usize) -> Src {
        let half = self.is_half(self.bits(def));
        let word = self.word(def, index);
        self.src_of_word(word, half)
    }

    /// A word in a register; an undefined one is 0.
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

    /// A constant in a register: one move per block.
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

    /// A constant as an integer operand of cat2: an immediate if it fits, else in a register.
    pub fn small(&mut self, bits: u32, half: bool) -> Src {
        if bits < 0x200 { Src::immediate(bits, half) } else { self.immediate(bits, half) }
    }

    /// Collects scalars of one class into a vector, which is one source. A single scalar is returned unchanged.
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

    /// Sets `a0.x` to a value (its low 16 bits), for one use directly after it.
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

    /// Sets the ir3 values of a nir value: one for each of its registers, in order.
    pub fn define(&mut self, def: nir::Def, values: &[Value]) {
        for (index, &value) in values.iter().enumerate() {
            self.set_word(def, index, Word::Value(value));
        }
    }

    /// Sets one register of a nir value.
    pub fn set_word(&mut self, def: nir::Def, index: usize, word: Word) {
        let slot = self.first_word[def] as usize + index;
        self.words[slot] = word;
    }

    /// Sets one register of a nir value to an ir3 value.
    pub fn define_word(&mut self, def: nir::Def, index: usize, value: Value) {
        self.set_word(def, index, Word::Value(value));
    }

    /// Sets one component of at most 32 bits.
    pub fn set(&mut self, def: nir::Def, component: u8, value: Value) {
        debug_assert_eq!(self.program.values[value].class, self.class(self.bits(def)), "class of a component");
        self.set_word(def, usize::from(component), Word::Value(value));
    }

    /// Sets both words of a 64-bit component.
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

    /// A builder at the end of the current block.
    pub fn builder(&mut self) -> Builder<'_> {
        Builder::new(&mut self.program, self.block)
    }

    /// Appends an instruction. An immediate that a memory or texture instruction cannot encode is moved to a register
    /// first.
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

    /// Appends a comparison whose result is a bool.
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

    /// A word that may be undefined (the value of a lane that does not exist, or of an array element that was not set),
    /// for a value of this width: the register has any bits then, but those beyond the value are 0.
    pub fn in_width(&mut self, def: nir::Def, word: Value) -> Value {
        let bits = self.bits(def);
        if bits >= 16 {
            return word;
        }
        let word = self.src(word);
        let mask = self.immediate((1 << bits) - 1, word.class.half);
        self.alu(Opcode::AndB, word.class, &[word, mask])
    }

    /// An integer in a full register, zero-extended from a half one.
    pub fn widened(&mut self, src: Src) -> Src {
        if src.class.half { self.convert_src(Type::U16, Type::U32, src) } else { src }
    }

    /// The low 16 bits of an integer in a half register.
    pub fn narrowed(&mut self, src: Src) -> Src {
        if src.class.half { src } else { self.convert_src(Type::U32, Type::U16, src) }
    }

    /// An integer in a full or half register.
    pub fn resize(&mut self, src: Src, half: bool) -> Src {
        if half { self.narrowed(src) } else { self.widened(src) }
    }

    /// A predicate that is true if a bool is.
    pub fn predicate(&mut self, condition: nir::Def) -> Src {
        let src = self.scalar(condition, 0);
        self.predicate_of(src)
    }

    /// A predicate that is true if an integer is not 0.
    pub fn predicate_of(&mut self, src: Src) -> Src {
        let zero = Src::immediate(0, src.class.half);
        let value = self.builder().compare(Opcode::CmpsS, Condition::Ne, RegClass::PREDICATE, src, zero);
        self.src(value)
    }

    // Inputs.

    /// The value of an input with `components` registers; the first use adds it to the program.
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

    /// The components of an input as scalars, split once per program, directly after the input.
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

    /// Adds a block without a position in the layout.
    pub fn new_block(&mut self) -> Block {
        self.program.blocks.push(Default::default())
    }

    /// Appends a block to the layout and continues there.
    pub fn place_block(&mut self, block: Block) {
        self.program.layout.push(block);
        self.go_to(block);
    }

    /// Continues at the end of a block.
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
        if let Some(moved) = self.program.blocks[block].instrs.pop() {
            self.program.insert_before_terminators(block, moved);
        }
        self.src(value)
    }
}

/// The number of registers of a component.
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
