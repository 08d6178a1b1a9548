//! Single operations on words of the environment.
//!
//! Most operands in a program are results of other operations, and so neither the ends of ranges nor their neighbours.
//! Here an operation reads words of the environment, where corner cases are frequent, and its result is observed.

use super::super::config::CONFIG;
use ir3_compiler::nir::{AluSrc, AluType, BaseType, Def, Index, IntrinsicOp, Op, Stage};

use super::super::Generator;
use super::super::accepted::{operations, part_bits, part_operations};
use super::super::choices::Choices;
use super::super::effects::semantics;
use super::super::expression::CONVERT;
use super::READ_ONLY;
use super::operands::source;

impl<C: Choices> Generator<'_, C> {
    /// Loads four words that differ between lanes: of an attribute, or of a buffer that is only read.
    pub(in crate::generator) fn raw_inputs(&mut self) {
        let stage = self.b.shader().stage;
        if self.weights.operation == 0
            || stage != Stage::Vertex && !self.features.compute
            || !self.c.chance(CONFIG.raw_inputs)
        {
            return;
        }
        let zero = self.b.constant(32, 0);
        let words = if stage == Stage::Vertex {
            let indices = [
                Index::Base(3),
                Index::Range(1),
                Index::DestType(AluType::FLOAT32),
                Index::IoSemantics(Some(semantics("VERT_ATTRIB_GENERIC3"))),
            ];
            self.b.intrinsic(IntrinsicOp::LoadInput, 4, 32, &[zero], indices)
        } else {
            let Some(lane) = self.number_of_lane() else { return };
            let [two, buffer] = [2, READ_ONLY as u64].map(|number| self.b.constant(32, number));
            let element = self.b.alu(Op::Ishl, &[lane, two]);
            let bytes = self.b.alu(Op::Ishl, &[element, two]);
            self.own_place = Some(element);
            self.b.intrinsic(IntrinsicOp::LoadSsboIr3, 4, 32, &[buffer, bytes, element], [Index::AlignMul(16)])
        };
        let Some(words) = words else { return };
        self.raw = (0..4).map(|component| self.b.channel(words, component)).collect();
        for word in self.raw.clone() {
            self.define(word);
        }
    }

    /// A number that most lanes have to themselves.
    fn number_of_lane(&mut self) -> Option<Def> {
        if self.b.shader().stage == Stage::Compute {
            return self.lane;
        }
        let place = self.b.intrinsic(IntrinsicOp::LoadFragCoord, 4, 32, &[], [])?;
        let [x, y] = [0, 1].map(|component| self.b.channel(place, component));
        let [x, y] = [x, y].map(|number| self.b.alu(Op::F2u32, &[number]));
        let [three, seven] = [3, 7].map(|number| self.b.constant(32, number));
        let [x, y] = [x, y].map(|number| self.b.alu(Op::Iand, &[number, seven]));
        let row = self.b.alu(Op::Ishl, &[y, three]);
        Some(self.b.alu(Op::Iadd, &[row, x]))
    }

    /// Many operations in a row, whose results are stored unmodified.
    pub(in crate::generator) fn row_of_probes(&mut self) {
        if self.weights.operation == 0 || self.raw.is_empty() || !self.c.chance(CONFIG.row_of_probes) {
            return;
        }
        let mut words = Vec::new();
        for _ in 0..4 + self.c.below(14) {
            let def = self.probed();
            self.add_words(def, &mut words);
        }
        words.chunks(4).for_each(|four| self.store_words(four));
    }

    /// An operation on a word of the constant file, and the same with the same immediate on its low half.
    pub(super) fn twins(&mut self) {
        let zero = self.b.constant(32, 0);
        let base = [self.any_constant_base()];
        let Some(word) = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], base) else { return };
        let op = self.c.pick(&[Op::Ilt, Op::Ige, Op::Ieq, Op::Ine, Op::Ult, Op::Uge, Op::Iadd, Op::Imax, Op::Ixor]);
        let number = self.c.below(64) as u64;
        let mut widths = [32, 16];
        widths.rotate_left(self.c.below(2));
        for bits in widths {
            let x = if bits == 32 { word } else { self.b.alu(Op::U2u16, &[word]) };
            let number = self.b.constant(bits, number);
            if operations(&self.target).contains(&(op, bits)) {
                let def = self.b.alu(op, &[x, number]);
                self.define_seen(def, 256);
            }
        }
    }

    /// Adds the words of a value, each component separately.
    pub(super) fn add_words(&mut self, def: Def, words: &mut Vec<Def>) {
        let data = &self.b.function().defs[def];
        let (bits, count) = (data.bit_size, data.num_components);
        for component in 0..count {
            let part = if count == 1 { def } else { self.b.channel(def, component) };
            match bits {
                1 => words.push(self.b.alu(Op::B2i32, &[part])),
                64 => {
                    let halves = [Op::Unpack64_2x32SplitX, Op::Unpack64_2x32SplitY];
                    words.extend(halves.map(|op| self.b.alu(op, &[part])));
                }
                32 => words.push(part),
                _ => words.push(self.b.alu(Op::U2u32, &[part])),
            }
        }
    }

    /// Any operation, on words of the environment and on constants.
    pub(super) fn probe(&mut self) {
        let def = self.probed();
        self.define_seen(def, 256);
    }

    fn probed(&mut self) -> Def {
        let all = self.drawn_operations();
        let parts = part_operations(&self.target);
        let (op, bits) = if self.c.chance(CONFIG.probe_of_parts) { self.c.pick(parts) } else { self.c.pick(all) };
        let info = op.info();
        let components = if info.output.components == 0 { 1 } else { info.output.components };
        let mut srcs: Vec<AluSrc> = Vec::new();
        for (i, input) in info.inputs.iter().enumerate() {
            let width = input.ty.width_or(bits);
            let count = info.source_components(i, components);
            srcs.push(match part_bits(op) {
                Some(_) if i == 1 => self.any_part(op, width),
                _ if i > 0 && width != 1 && self.c.chance(CONFIG.component_of_same_vector) => {
                    self.beside(srcs[0], input.ty.base, width, count)
                }
                _ if self.c.chance(CONFIG.any_operand) => self.any_operand(input.ty.base, width, count),
                _ => self.raw_operand(input.ty.base, width, count),
            });
        }
        let def = self.b.alu_swizzled(op, components, &srcs);
        if self.c.chance(CONFIG.read_alone) { self.read_alone(def).unwrap_or(def) } else { def }
    }

    /// An operation with one operand on a value that nothing else reads: passes make one instruction of both. None if
    /// none was drawn that takes this width.
    fn read_alone(&mut self, def: Def) -> Option<Def> {
        let data = &self.b.function().defs[def];
        let (bits, components) = (data.bit_size, data.num_components);
        let fits = |op: Op, of: u8| op.info().inputs[0].ty.width_or(of) == bits;
        let conversion = if self.c.even() { Some(self.c.pick(CONVERT)) } else { None };
        let accepted = |it: &(Op, u8)| it.1 == bits && operations(&self.target).contains(it);
        let (op, _) = match conversion.filter(accepted) {
            Some(conversion) => conversion,
            None => self.unary(fits)?,
        };
        Some(self.b.alu_swizzled(op, components, &[source(def, components)]))
    }

    /// An operation with one operand, with the width of its unsized operand, that fits; none if a few draws have none.
    fn unary(&mut self, fits: impl Fn(Op, u8) -> bool) -> Option<(Op, u8)> {
        const DRAWS: usize = 16;
        let all = self.drawn_operations();
        let is_unary = |op: Op| op.info().inputs.len() == 1 && op.info().is_per_component();
        (0..DRAWS).map(|_| self.c.pick(all)).find(|&(op, bits)| is_unary(op) && fits(op, bits))
    }

    /// An operand that has something to do with another one, if that has the same width: the same, or with another
    /// sign, or next to it.
    fn beside(&mut self, first: AluSrc, base: BaseType, bits: u8, components: u8) -> AluSrc {
        if self.b.function().defs[first.def].bit_size != bits {
            return self.raw_operand(base, bits, components);
        }
        let bit = match self.c.below(4) {
            0 => return first,
            1 => 1 << (bits - 1),
            2 => u64::MAX,
            _ => 1u64 << self.c.below(bits.into()),
        };
        let bit = AluSrc::scalar(self.b.constant(bits, bit), 0);
        let op = self.c.pick(&[Op::Ixor, Op::Ixor, Op::Iadd]);
        source(self.b.alu_swizzled(op, components, &[first, bit]), components)
    }

    /// Words of the environment as an operand of a type, sometimes as any components of a longer vector.
    fn raw_operand(&mut self, base: BaseType, bits: u8, components: u8) -> AluSrc {
        if self.raw.is_empty() {
            return self.any_operand(base, bits, components);
        }
        let more = if self.c.chance(CONFIG.longer_vector) { 1 + self.c.below(3) as u8 } else { 0 };
        let count = components.max((components + more).min(4));
        let parts: Vec<Def> = (0..count).map(|_| self.raw_part(base, bits)).collect();
        let mut src = match parts[..] {
            [part] => source(part, 1),
            _ => AluSrc::identity(self.b.vec(&parts)),
        };
        if count > components {
            for component in &mut src.swizzle[..usize::from(components)] {
                *component = self.c.below(count.into()) as u8;
            }
        }
        src
    }

    /// A value of a type: of the environment, or one of two numbers of interest in each lane, or the result of one
    /// operation on it.
    fn raw_part(&mut self, base: BaseType, bits: u8) -> Def {
        match self.c.below(16) {
            0 | 1 if bits != 1 => {
                let condition = self.raw_value(1);
                let numbers = [0, 1].map(|_| self.any_bits(base, bits)).map(|number| self.b.constant(bits, number));
                self.b.alu(Op::Bcsel, &[condition, numbers[0], numbers[1]])
            }
            2 => match self.unary(|op, of| op.info().output.ty.width_or(of) == bits) {
                Some((op, of)) => {
                    let value = self.raw_value(op.info().inputs[0].ty.width_or(of));
                    self.b.alu(op, &[value])
                }
                None => self.raw_value(bits),
            },
            _ => self.raw_value(bits),
        }
    }

    /// A value of a width, of one word of the environment or of two.
    fn raw_value(&mut self, bits: u8) -> Def {
        let words = [0, 1].map(|_| self.raw[self.c.below(self.raw.len())]);
        // Words next to each other may be one number.
        let at = self.c.below(self.raw.len() / 2) * 2;
        let pair = [self.raw[at], self.raw[at + 1]];
        match bits {
            1 => self.b.alu(Op::Ult, &words),
            8 => self.b.alu(Op::U2u8, &words[..1]),
            16 => self.b.alu(Op::U2u16, &words[..1]),
            64 if self.c.chance(CONFIG.known_half) => {
                let known = self.c.pick(&[0, 0, 1, 0x8000_0000, 0xffff_ffff, 0x7ff0_0000]);
                let mut words = [words[0], self.b.constant(32, known)];
                words.rotate_left(self.c.below(2));
                self.b.alu(Op::Pack64_2x32Split, &words)
            }
            64 if self.c.chance(CONFIG.packed_pair) => self.b.alu(Op::Pack64_2x32Split, &pair),
            64 => self.b.alu(Op::Pack64_2x32Split, &words),
            _ => words[0],
        }
    }
}
