//! Reading one instruction.

use smallvec::SmallVec;

use super::ParseError;
use super::cursor::LineCursor;
use super::operands::{constant, fp_math, index, is_at, swizzle};
use super::reader::{PendingPhi, Reader};
use crate::nir::function::{Alu, AluSrc, Def, InstrData, Intrinsic, JumpKind};
use crate::nir::index::{FpMath, ImageDim, Index, Indices};
use crate::nir::intrinsic::{Components, IntrinsicOp};
use crate::nir::op::Op;
use crate::nir::shader::Stage;
use crate::nir::tex::{Tex, TexOp, TexSrcKind};
use crate::nir::types::AluType;

/// The result of an instruction, as the text declares it.
struct NewValue {
    divergent: Option<bool>,
    bit_size: u8,
    components: u8,
    index: u32,
}

/// `con ` or `div `, which precede values, blocks and loops after divergence analysis.
pub(super) fn divergence(cursor: &mut LineCursor<'_>) -> Option<bool> {
    if cursor.eat_word("con") {
        Some(false)
    } else if cursor.eat_word("div") {
        Some(true)
    } else {
        None
    }
}

impl Reader<'_> {
    /// Reads an instruction and appends it to the current block.
    pub(super) fn instruction(
        &mut self,
        cursor: &mut LineCursor<'_>,
        divergent: Option<bool>,
    ) -> Result<(), ParseError> {
        if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            let result = self.result(cursor, divergent)?;
            return self.with_result(cursor, result);
        }
        if divergent.is_some() {
            return Err(cursor.error("a value, `block` or `loop`"));
        }
        if cursor.peek() == Some(b'@') {
            let op = intrinsic_name(cursor, false)?;
            let data = self.intrinsic(cursor, op, None)?;
            return self.append(cursor, data, None);
        }
        let word = cursor.peek_word();
        match JumpKind::from_name(word) {
            Some(kind) => {
                cursor.take(word);
                self.append(cursor, InstrData::Jump(kind), None)
            }
            None => Err(cursor.error("an instruction, `if`, `loop`, `block` or `}`")),
        }
    }

    /// `32x4  %12 = `
    fn result(&mut self, cursor: &mut LineCursor<'_>, divergent: Option<bool>) -> Result<NewValue, ParseError> {
        let at = cursor.clone();
        let expected = "a width of 1, 8, 16, 32 or 64 bits";
        let bit_size = cursor.number(64, expected)? as u8;
        if !matches!(bit_size, 1 | 8 | 16 | 32 | 64) {
            return Err(at.error(expected));
        }
        let mut components = 1;
        if cursor.peek() == Some(b'x') {
            cursor.take_exact("x");
            let at = cursor.clone();
            let expected = "2, 3, 4, 5, 8 or 16 components";
            components = cursor.number(16, expected)? as u8;
            if !matches!(components, 1..=5 | 8 | 16) {
                return Err(at.error(expected));
            }
        }
        cursor.spaces();
        let at = cursor.clone();
        let index = value_index(cursor)?;
        if self.defs.contains_key(&index) {
            return Err(at.error("a value that is not defined yet"));
        }
        cursor.spaces();
        cursor.expect("=")?;
        Ok(NewValue { divergent, bit_size, components, index })
    }

    fn with_result(&mut self, cursor: &mut LineCursor<'_>, result: NewValue) -> Result<(), ParseError> {
        // The sources are read before the value exists, so an instruction cannot read its own result.
        let def = self.builder.function().defs.next_key();
        let data = if cursor.peek() == Some(b'(') {
            self.tex(cursor, def, result.components)?
        } else if cursor.peek() == Some(b'@') {
            let op = intrinsic_name(cursor, true)?;
            self.intrinsic(cursor, op, Some((def, result.components)))?
        } else {
            let word = cursor.peek_word();
            match word {
                "load_const" => {
                    cursor.take(word);
                    let values = constant(cursor, result.components, result.bit_size)?;
                    InstrData::Const { def, values }
                }
                "undefined" => {
                    cursor.take(word);
                    InstrData::Undef { def }
                }
                "phi" => {
                    cursor.take(word);
                    self.phi(cursor)?;
                    InstrData::Phi { def, srcs: SmallVec::new() }
                }
                _ => match (Op::from_name(word), former_derivative(word)) {
                    (Some(op), _) => {
                        cursor.take_exact(word);
                        self.alu(cursor, op, def, result.components)?
                    }
                    (None, Some(op)) => {
                        cursor.take_exact(word);
                        self.derivative(cursor, op, &result)?
                    }
                    (None, None) => return Err(cursor.error("an operation")),
                },
            }
        };
        self.append(cursor, data, Some(result))
    }

    fn append(
        &mut self,
        cursor: &mut LineCursor<'_>,
        mut data: InstrData,
        result: Option<NewValue>,
    ) -> Result<(), ParseError> {
        let comment = cursor.end()?;
        if let InstrData::Intrinsic(intrinsic) = &mut data {
            intrinsic.variable = comment.filter(|comment| !comment.is_empty()).map(Into::into);
        }
        if let Some(result) = result {
            let def = self.builder.new_def(result.components, result.bit_size);
            let data = &mut self.builder.shader_mut().entry.defs[def];
            data.divergent = result.divergent;
            data.index = result.index;
            self.defs.insert(result.index, def);
        }
        let instr = self.builder.append(data);
        self.builder.shader_mut().entry.lines[instr] = cursor.line();
        Ok(())
    }

    /// A source: a value defined above, and the constant after it, if any.
    pub(super) fn source(&mut self, cursor: &mut LineCursor<'_>) -> Result<Def, ParseError> {
        let def = self.plain_source(cursor)?;
        skip_annotation(cursor)?;
        Ok(def)
    }

    fn plain_source(&mut self, cursor: &mut LineCursor<'_>) -> Result<Def, ParseError> {
        let at = cursor.clone();
        let index = value_index(cursor)?;
        match self.defs.get(&index) {
            Some(def) => Ok(*def),
            None => Err(at.error("a value that is defined above")),
        }
    }

    fn alu(&mut self, cursor: &mut LineCursor<'_>, op: Op, def: Def, components: u8) -> Result<InstrData, ParseError> {
        let exact = cursor.eat("!");
        let no_signed_wrap = cursor.eat(".nsw");
        let no_unsigned_wrap = cursor.eat(".nuw");
        cursor.spaces();
        let info = op.info();
        let mut srcs = SmallVec::new();
        for index in 0..info.inputs.len() {
            if index > 0 {
                cursor.expect(",")?;
            }
            let src = self.plain_source(cursor)?;
            skip_annotation(cursor)?;
            let live = self.builder.function().defs[src].num_components;
            let swizzle = swizzle(cursor, info.source_components(index, components), live)?;
            cursor.spaces();
            srcs.push(AluSrc { def: src, swizzle });
        }
        let exact = exact || forbids_changes(cursor);
        Ok(InstrData::Alu(Alu { op, exact, no_signed_wrap, no_unsigned_wrap, def, srcs }))
    }

    /// A derivative that was an operation: its source has a swizzle, which a move takes.
    fn derivative(
        &mut self,
        cursor: &mut LineCursor<'_>,
        op: IntrinsicOp,
        result: &NewValue,
    ) -> Result<InstrData, ParseError> {
        let moved = self.builder.function().defs.next_key();
        let data = self.alu(cursor, Op::Mov, moved, result.components)?;
        self.builder.new_def(result.components, result.bit_size);
        self.unnamed.push(moved);
        let instr = self.builder.append(data);
        self.builder.shader_mut().entry.lines[instr] = cursor.line();
        let def = Some(self.builder.function().defs.next_key());
        Ok(InstrData::Intrinsic(Intrinsic {
            op,
            def,
            srcs: SmallVec::from_slice(&[moved]),
            indices: Indices::default(),
            variable: None,
        }))
    }

    fn phi(&mut self, cursor: &mut LineCursor<'_>) -> Result<(), ParseError> {
        let instr = self.builder.function().instrs.next_key();
        let mut srcs = Vec::new();
        while !cursor.at_end() {
            if !srcs.is_empty() {
                cursor.expect(",")?;
            }
            let block = cursor.place();
            let label = block_label(cursor)?;
            cursor.expect(":")?;
            let value = cursor.place();
            let index = value_index(cursor)?;
            skip_annotation(cursor)?;
            srcs.push((label, block, index, value));
        }
        self.phis.push(PendingPhi { instr, srcs });
        Ok(())
    }

    fn intrinsic(
        &mut self,
        cursor: &mut LineCursor<'_>,
        op: IntrinsicOp,
        result: Option<(Def, u8)>,
    ) -> Result<InstrData, ParseError> {
        let info = op.info();
        let mut srcs: SmallVec<[Def; 4]> = SmallVec::new();
        if !info.srcs.is_empty() {
            cursor.expect("(")?;
            for index in 0..info.srcs.len() {
                if index > 0 {
                    cursor.expect(",")?;
                }
                srcs.push(self.source(cursor)?);
                cursor.spaces();
            }
            cursor.expect(")")?;
        }
        // The vector that a write mask applies to: the result, or the first source with a variable number of
        // components.
        let vector = info.srcs.iter().position(|&components| components == Components::Vector);
        let components = match (info.dest, result, vector) {
            (Some(Components::Vector), Some((_, components)), _) => components,
            (_, _, Some(vector)) => self.builder.function().defs[srcs[vector]].num_components,
            _ => 1,
        };
        let mut indices = Indices::new();
        let open = !info.indices.is_empty() && cursor.eat("(");
        let mut first = true;
        if open && op == IntrinsicOp::Rotate {
            former_scope(cursor);
        }
        for &kind in info.indices {
            if !open || cursor.peek() == Some(b')') {
                if op.may_leave_out(kind) {
                    indices.0.push(Index::default_of(kind));
                    continue;
                }
                return Err(cursor.error(format!("`{}`", kind.name())));
            }
            if !first {
                let mut ahead = cursor.clone();
                if !ahead.eat(",") {
                    return Err(cursor.error("`,` or `)`"));
                }
                if !is_at(&ahead, kind) && op.may_leave_out(kind) {
                    indices.0.push(Index::default_of(kind));
                    continue;
                }
                cursor.expect(",")?;
            } else if !is_at(cursor, kind) && op.may_leave_out(kind) {
                indices.0.push(Index::default_of(kind));
                continue;
            }
            let at = cursor.clone();
            let index = index(cursor, kind, components)?;
            if let Index::IoSemantics(Some(io)) = &index
                && io.location.bytes().all(|c| c.is_ascii_digit())
                && names_locations(op, self.builder.shader().stage)
            {
                return Err(at.error("the name of a location, which Mesa prints since 23.1"));
            }
            indices.0.push(index);
            cursor.spaces();
            first = false;
        }
        if open {
            // Mesa printed it of `reduce` for a while.
            cursor.eat(", include_helpers=0");
            cursor.expect(")")?;
        }
        let def = result.map(|(def, _)| def);
        Ok(InstrData::Intrinsic(Intrinsic { op, def, srcs, indices, variable: None }))
    }

    fn tex(&mut self, cursor: &mut LineCursor<'_>, def: Def, components: u8) -> Result<InstrData, ParseError> {
        cursor.expect("(")?;
        let word = cursor.peek_word();
        let dest_type = AluType::from_name(word).ok_or_else(|| cursor.error("a type"))?;
        cursor.take(word);
        cursor.expect(")")?;
        let word = cursor.peek_word();
        let mut op = TexOp::from_name(word).ok_or_else(|| cursor.error("a texture operation"))?;
        cursor.take(word);
        if op == TexOp::Tex && cursor.eat("(pre-dispatchable)") {
            op = TexOp::TexPrefetch;
        }
        let mut tex = Tex::new(op, dest_type, def);
        let mut texture = false;
        let mut sampler = false;
        let mut first = true;
        while !cursor.at_end() {
            // nir_print prints the comma even if there are no sources.
            if !cursor.eat(",") && !first {
                return Err(cursor.error("`,`"));
            }
            first = false;
            match cursor.peek() {
                Some(b'%') => {
                    let src = self.plain_source(cursor)?;
                    cursor.spaces();
                    let kind = tex_src_kind(cursor)?;
                    tex.srcs.push((kind, src));
                }
                Some(b'{') => tex.gather_offsets = Some(gather_offsets(cursor)?),
                Some(_) if tex.dim.is_none() && dimension(cursor).is_some() => {
                    tex.dim = dimension(cursor).inspect(|dim| cursor.take(dim.name()));
                }
                Some(c) if c.is_ascii_digit() => {
                    let at = cursor.clone();
                    let number = cursor.number(u32::MAX.into(), "a number")? as u32;
                    cursor.spaces();
                    if cursor.eat("(texture)") {
                        tex.texture_index = number;
                        texture = true;
                    } else if cursor.eat("(sampler)") && op.needs_sampler() {
                        tex.sampler_index = number;
                        sampler = true;
                    } else if cursor.eat("(gather_component)") && op == TexOp::Tg4 {
                        if number > 3 {
                            return Err(at.error("a component of at most 3"));
                        }
                        tex.component = number as u8;
                    } else {
                        return Err(cursor.error("`(texture)`, `(sampler)` or `(gather_component)`"));
                    }
                }
                _ if cursor.eat("implicit lod") => tex.implicit_lod = true,
                _ if cursor.eat("texture non-uniform") => tex.texture_non_uniform = true,
                _ if cursor.eat("sampler non-uniform") => tex.sampler_non_uniform = true,
                _ if cursor.eat("sparse") => tex.sparse = true,
                _ => return Err(cursor.error("a source of a texture operation")),
            }
        }
        if !texture && op != TexOp::TxfMsFb {
            return Err(cursor.error("`, … (texture)`"));
        }
        if !sampler && op.needs_sampler() {
            return Err(cursor.error("`, … (sampler)`"));
        }
        if let Some(dim) = tex.dim {
            let array = |count: u8, plain: u8| count == 2 && plain == 1;
            let coord = tex.src(TexSrcKind::Coord).map(|coord| self.builder.function().defs[coord].num_components);
            let count = if op == TexOp::Txs { Some(components) } else { coord };
            tex.is_array = count.is_some_and(|count| array(count, dim.coordinates(false)));
        }
        Ok(InstrData::Tex(tex))
    }
}

/// The dimension of a texture, its last word: `2D`, `Cube`.
fn dimension(cursor: &LineCursor<'_>) -> Option<ImageDim> {
    let text = cursor.peek_while(|c| c.is_ascii_alphanumeric() || c == '-');
    ImageDim::from_name(text)
}

/// Returns true if the comment after a float operation is its control, as Mesa prints it since 26.0, and forbids an
/// optimisation. Its flags for zeros, infinities and NaNs are ignored: they are always preserved here.
fn forbids_changes(cursor: &LineCursor<'_>) -> bool {
    let mut comment = cursor.clone();
    comment.eat("//") && fp_math(&mut comment).is_some_and(|math| comment.at_end() && math.intersects(FpMath::EXACT))
}

/// Returns true if all versions that are read name the locations of these inputs and outputs.
fn names_locations(op: IntrinsicOp, stage: Stage) -> bool {
    use IntrinsicOp::{LoadInput, LoadInterpolatedInput, StoreOutput};
    matches!(stage, Stage::Vertex | Stage::Fragment) && matches!(op, LoadInput | LoadInterpolatedInput | StoreOutput)
}

/// The intrinsic that Mesa had under another name: `discard` until 24.1 (ir3 compiled it as `kill`), `scoped_barrier`
/// until 23.2.
fn former_name(word: &str) -> Option<IntrinsicOp> {
    match word {
        "discard" => Some(IntrinsicOp::Terminate),
        "discard_if" => Some(IntrinsicOp::TerminateIf),
        "scoped_barrier" => Some(IntrinsicOp::Barrier),
        _ => None,
    }
}

/// The scope of `rotate`, which Mesa printed until the index was dropped: only rotations in a subgroup are compiled.
fn former_scope(cursor: &mut LineCursor<'_>) {
    if cursor.eat("execution_scope=SUBGROUP") {
        cursor.eat(",");
    }
}

/// The derivative that was an operation until Mesa 24.2.
fn former_derivative(word: &str) -> Option<IntrinsicOp> {
    let name = word.strip_prefix('f')?;
    let op = IntrinsicOp::from_name(name)?;
    (name.starts_with("ddx") || name.starts_with("ddy")).then_some(op)
}

/// `@name` of an intrinsic with or without a result.
fn intrinsic_name(cursor: &mut LineCursor<'_>, result: bool) -> Result<IntrinsicOp, ParseError> {
    let at = cursor.clone();
    cursor.take_exact("@");
    let word = cursor.peek_word();
    let Some(op) = IntrinsicOp::from_name(word).or_else(|| former_name(word)) else {
        return Err(at.error("an intrinsic"));
    };
    cursor.take(word);
    if op.info().dest.is_some() == result {
        return Ok(op);
    }
    Err(at.error(if result { "an intrinsic that has a result" } else { "a value and `=` before it" }))
}

/// `%12`
fn value_index(cursor: &mut LineCursor<'_>) -> Result<u32, ParseError> {
    if cursor.peek() != Some(b'%') {
        return Err(cursor.error("a value like `%1`"));
    }
    cursor.take_exact("%");
    // Bounded so that the writer can count one further.
    cursor.number(u32::MAX as u64 - 1, "a number of a value").map(|number| number as u32)
}

/// `b12`
pub(super) fn block_label(cursor: &mut LineCursor<'_>) -> Result<u32, ParseError> {
    let rest = cursor.rest().strip_prefix('b');
    if !rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Err(cursor.error("a block like `b1`"));
    }
    cursor.take_exact("b");
    cursor.number(u32::MAX.into(), "a number of a block").map(|number| number as u32)
}

/// The value of a constant that nir_print repeats after a source.
fn skip_annotation(cursor: &mut LineCursor<'_>) -> Result<(), ParseError> {
    if cursor.rest().starts_with(" (") {
        cursor.spaces();
        cursor.take_exact("(");
        let rest = cursor.rest();
        match rest.find(')') {
            Some(end) => cursor.take_exact(&rest[..end + 1]),
            None => return Err(cursor.error("a constant and `)`")),
        }
    }
    Ok(())
}

/// `(0x1) (lod)` or `(lod)`
fn tex_src_kind(cursor: &mut LineCursor<'_>) -> Result<TexSrcKind, ParseError> {
    let at = cursor.clone();
    let expected = "a kind of texture source in parentheses";
    cursor.expect("(")?;
    if let Some(kind) = TexSrcKind::from_name(cursor.group()?) {
        return Ok(kind);
    }
    if !cursor.eat("(") {
        return Err(at.error(expected));
    }
    TexSrcKind::from_name(cursor.group()?).ok_or_else(|| at.error(expected))
}

/// `{ (0, 0), (1, 0), (1, 1), (0, 1) } (offsets)`
fn gather_offsets(cursor: &mut LineCursor<'_>) -> Result<Box<[[i8; 2]; 4]>, ParseError> {
    let mut offsets = Box::new([[0; 2]; 4]);
    cursor.expect("{")?;
    for (index, offset) in offsets.iter_mut().enumerate() {
        if index > 0 {
            cursor.expect(",")?;
        }
        for (coordinate, open) in offset.iter_mut().zip(["(", ","]) {
            cursor.expect(open)?;
            let at = cursor.clone();
            let expected = "an offset of 8 bits";
            *coordinate = i8::try_from(cursor.signed(expected)?).map_err(|_| at.error(expected))?;
            cursor.spaces();
        }
        cursor.expect(")")?;
    }
    cursor.expect("}")?;
    cursor.expect("(offsets)")?;
    Ok(offsets)
}
