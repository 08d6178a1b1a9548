//! Instructions: the number of operands of an opcode, and the combinations of widths and register files.

use super::operands::class_name;
use super::{Checker, Form, Operand, Rule};
use crate::ir3::access::MemoryAction;
use crate::ir3::aliases::MAX_ALIASES;
use crate::ir3::opcode::{Coordinates, Memory, Role, Sources};
use crate::ir3::{
    AddressSpace, Attrs, Category, Dst, Instr, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, RegClass,
    RegFile, RepeatLink, ShaderStage, Src, SrcOperand, Type, WriteMask,
};

fn width(half: bool) -> String {
    if half { "16 bits".into() } else { "32 bits".into() }
}

fn is_tied(src: &Src) -> bool {
    src.flags.contains(OperandFlags::TIED)
}

/// Returns true for the address register that another operand is relative to: any but the first source.
fn is_address(i: usize, src: &Src) -> bool {
    i > 0 && src.class.file == RegFile::Address
}

/// Returns true for one of several components of a group.
fn is_component_of_group(src: &Src) -> bool {
    src.is_of_group() && src.mask == WriteMask::SCALAR
}

/// Returns true if the scalar ALU can read the source.
fn is_uniform(src: &Src) -> bool {
    src.class.file == RegFile::Shared
        || matches!(src.operand, SrcOperand::Const(_) | SrcOperand::ConstRelative(_) | SrcOperand::Immediate(_))
}

/// The kind of some attributes.
const fn attributes_name(attrs: &Attrs) -> &'static str {
    match attrs {
        Attrs::None => "none",
        Attrs::Move { .. } => "the types of a move",
        Attrs::Compare(_) => "the condition of a comparison",
        Attrs::Split { .. } => "the component of a split",
        Attrs::Branch { .. } => "the target of a branch",
        Attrs::Outputs(_) => "the outputs of an end",
        Attrs::Input(_) => "an input",
        Attrs::Texture(_) => "those of a texture instruction",
        Attrs::Memory(_) => "those of a memory access",
        Attrs::Scan { .. } => "the operation of a scan",
        Attrs::Shuffle { .. } => "the mode of a shuffle",
        Attrs::PushConsts { .. } => "a range of push constants",
        Attrs::Alias { .. } => "those of an alias",
        Attrs::Fence { .. } => "the memories of a fence",
    }
}

impl Checker<'_> {
    /// Checks one instruction with all its operands.
    pub(super) fn instr(&mut self, instr: Instr) {
        let data = &self.program.instrs[instr];
        for (i, dst) in data.dsts.iter().enumerate() {
            self.dst(i, dst);
        }
        for (i, src) in data.srcs.iter().enumerate() {
            self.src(data, i, src);
        }
        self.tied(data);
        self.place.operand = None;
        self.attributes(data);
        if !self.counts(data) {
            return;
        }
        self.form(data);
        self.generation(data);
        self.local_memory(data);
        self.encoded_flags(data);
        self.address(data);
        self.prefetch(data);
        self.repeat(instr, data);
        self.scalar(data);
        match data.opcode.category() {
            Category::Flow | Category::Barrier => self.flow(data),
            Category::Move => self.moves(data),
            Category::Alu2 | Category::Sfu => self.alu(data),
            Category::Alu3 => self.alu(data),
            Category::Texture => self.texture(data),
            Category::Memory => self.memory(data),
            Category::Meta => self.meta(data),
        }
    }

    fn attributes(&mut self, data: &InstrData) {
        use Opcode::*;
        let fits = match (&data.attrs, data.opcode) {
            (Attrs::Move { .. }, op) => op.category() == Category::Move,
            (Attrs::Compare(_), op) => op.has_condition(),
            (_, op) if op.has_condition() => false,
            (Attrs::Split { .. }, Split) => true,
            (_, Split) => false,
            (Attrs::Branch { .. }, op) => op.category() == Category::Flow,
            (Attrs::Outputs(_), op) if op.is_output() => true,
            (Attrs::Input(_), Input) => true,
            (Attrs::Texture(_), TexPrefetch) => true,
            (Attrs::Texture(_), op) => op.category() == Category::Texture,
            (Attrs::Memory(_), op) => op.category() == Category::Memory,
            (Attrs::Scan { .. }, ScanMacro | ScanClustersMacro) => true,
            (Attrs::Shuffle { .. }, Shfl) => true,
            (Attrs::PushConsts { .. }, PushConstsLoadMacro) => true,
            (Attrs::Alias { .. }, op) => op == Alias,
            (Attrs::Fence { .. }, op) => op.category() == Category::Barrier,
            (Attrs::None, Mov) => false,
            (Attrs::None, _) => true,
            _ => false,
        };
        self.require(
            fits,
            Rule::Attributes,
            || format!("attributes of {}", data.opcode),
            || attributes_name(&data.attrs).to_owned(),
        );
    }

    /// Checks the numbers of operands; returns true if they are right.
    fn counts(&mut self, data: &InstrData) -> bool {
        use Opcode::*;
        let info = data.opcode.info();
        let dsts = data.dsts.len();
        let dsts_fit = match data.opcode {
            ParallelCopy => dsts == data.srcs.len(),
            ScanClustersMacro => (2..=4).contains(&dsts),
            // Prefetches of descriptors write nothing.
            Resinfo | Ldc => dsts <= 1,
            op if op.category() == Category::Texture => dsts <= usize::from(info.dsts),
            _ => dsts == usize::from(info.dsts),
        };
        let expected = || match data.opcode {
            ParallelCopy => format!("{} destinations, one for each source", data.srcs.len()),
            _ => format!("{} destinations", info.dsts),
        };
        let dsts_fit = self.require(dsts_fit, Rule::Destinations, expected, || format!("{dsts}"));
        let srcs = data.operands().count();
        let most = if info.max_srcs == 255 { usize::MAX } else { usize::from(info.max_srcs) };
        // Relative accesses add the address register, and writes to arrays the array's previous version.
        let added = data.srcs.iter().enumerate().filter(|&(i, src)| is_address(i, src) || is_tied(src)).count();
        let srcs_fit = srcs >= usize::from(info.min_srcs) && srcs <= most.saturating_add(added);
        let srcs_fit = self.require(
            srcs_fit,
            Rule::Sources,
            || match (info.min_srcs, info.max_srcs) {
                (least, 255) => format!("{least} sources or more"),
                (least, most) if least == most => format!("{least} sources"),
                (least, most) => format!("{least} to {most} sources"),
            },
            || format!("{srcs}"),
        );
        let groups = data.srcs.iter().filter(|src| src.is_of_group()).count();
        let groups_fit = self.require(
            groups == 0
                || groups <= MAX_ALIASES
                    && (data.opcode.category() == Category::Texture || data.opcode == End)
                    && self.target.generation.number() >= 7
                    && data.operands().all(|group| group.len() == 1 || group.iter().all(is_component_of_group)),
            Rule::Sources,
            || format!("a texture instruction or `end` of a7xx with up to {MAX_ALIASES} components in groups"),
            || format!("{groups} in `{}`", data.opcode),
        );
        dsts_fit && srcs_fit && groups_fit
    }

    fn form(&mut self, data: &InstrData) {
        let possible = match self.form {
            // They write a destination in parts.
            Form::Ssa => data.form().coordinates != Coordinates::GradientsInParts,
            Form::Registers => true,
            Form::Machine => !data.opcode.is_meta() || matches!(data.opcode, Opcode::Input | Opcode::TexPrefetch),
        };
        let form = self.form;
        self.require(possible, Rule::Form, || format!("an instruction of {form}"), || format!("{}", data.opcode));
    }

    /// The registers that the command of a prefetch can name.
    fn prefetch(&mut self, data: &InstrData) {
        if !data.opcode.is_prefetched() {
            return;
        }
        if let Some(&Place::Reg(reg)) = data.srcs.first().and_then(Src::place) {
            let fits = reg == PhysReg::PREFETCH_COORDINATES;
            self.require(fits, Rule::Prefetch, || "coordinates in r0.x".into(), || format!("{reg}"));
        }
        for (place, mask) in data.dsts.iter().map(|dst| (&dst.place, dst.mask)) {
            if let &Place::Reg(reg) = place {
                let fits = u32::from(reg.0) + mask.span() <= PhysReg::PREFETCH_RESULTS_END.into();
                let found = || format!("{} from {reg} on", mask.span());
                self.require(fits, Rule::Prefetch, || "a result up to r15.w".into(), found);
            }
        }
    }

    /// Relative accesses have `a0.x` among their sources, `.a1en` has `a1.x`, and nothing has both.
    fn address(&mut self, data: &InstrData) {
        let wants_a0 = data.is_relative();
        let registers = data.srcs.iter().filter(|src| src.class.file == RegFile::Address).count();
        if wants_a0 {
            let a0 = data.srcs.iter().any(|src| {
                let reg = src.place().and_then(Place::reg);
                src.class.file == RegFile::Address && reg.is_none_or(|reg| reg == PhysReg::A0_X)
            });
            self.require(a0, Rule::Address, || "a0.x among the sources".into(), || "none".into());
        }
        if data.flags.contains(InstrFlags::A1EN) {
            let a1 = data.srcs.iter().any(|src| {
                let reg = src.place().and_then(Place::reg);
                src.class.file == RegFile::Address && reg.is_none_or(|reg| reg == PhysReg::A1_X)
            });
            self.require(a1, Rule::Address, || "a1.x among the sources".into(), || "none".into());
        }
        self.require(registers <= 1, Rule::Address, || "one address register".into(), || format!("{registers}"));
    }

    /// The table of opcodes that not every GPU has.
    fn generation(&mut self, data: &InstrData) {
        use Opcode::*;
        let target = self.target;
        let has = match data.opcode {
            Swz => target.generation.number() >= 5,
            SadS16 | SadS32 => target.has_sad,
            Dp2acc => target.has_dp2acc,
            Dp4acc => target.has_dp4acc,
            Braa | Brao => target.has_branch_and_or,
            Predt | Predf | Prede => target.has_predication,
            Shfl => target.has_shfl,
            Getfiberid => target.has_getfiberid,
            Isam if data.flags.contains(InstrFlags::VECTOR) => target.has_isam_v,
            Ldib | Stib if data.flags.contains(InstrFlags::IMM_OFFSET) => target.has_ssbo_imm_offsets,
            TexPrefetch => target.has_fs_tex_prefetch,
            op if op.info().sources == Sources::Cat3Alternative => target.has_bitwise_triops,
            op if op.is_logic() => {
                let is_predicate = data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate);
                !is_predicate || target.bitops_can_write_predicates
            }
            _ => true,
        };
        let expected = || format!("an instruction of {target}");
        self.require(has, Rule::Generation, expected, || data.opcode.to_string());
    }

    /// The memory through which a stage passes its outputs to the next one has loads and stores of its own (`ldlw`,
    /// `stlw`). Where a control shader reads what a vertex shader has stored, some GPUs have it in the memory of
    /// the workgroup (`emit_intrinsic_load_shared_ir3`, `emit_intrinsic_store_shared_ir3`).
    fn local_memory(&mut self, data: &InstrData) {
        use Opcode::{Ldl, Ldlw, Stl, Stlw};
        let Some(stage) = self.program.stage else { return };
        if data.form().memory != Memory::Space(AddressSpace::Shared) || data.opcode.is_atomic() {
            return;
        }
        let is_shared = self.target.tess_use_shared;
        let fits = match (stage, data.opcode) {
            (ShaderStage::Vertex, Stlw) => true,
            (ShaderStage::Vertex, Stl) | (ShaderStage::TessControl, Ldl) => is_shared,
            (ShaderStage::TessControl, Ldlw) => !is_shared,
            (ShaderStage::TessEval, Stlw) | (ShaderStage::Geometry, Ldlw) => true,
            (ShaderStage::Compute | ShaderStage::Fragment, Ldl | Stl) => true,
            _ => false,
        };
        let target = self.target;
        let expected = || format!("an access to the local memory of a {} shader on {target}", stage.name());
        self.require(fits, Rule::Generation, expected, || data.opcode.to_string());
    }

    /// Only arithmetic of two and three sources has `(sat)`, but varyings and selections (`is_sat_compatible` in Mesa's
    /// instr-a3xx.h), and `(nopN)`, of two bits.
    fn encoded_flags(&mut self, data: &InstrData) {
        use Category::*;
        let category = data.opcode.category();
        let may_clamp = data.opcode.takes_sat() || !data.flags.contains(InstrFlags::SAT);
        self.require(may_clamp, Rule::Form, || "no (sat)".into(), || format!("(sat){}", data.opcode));
        let may_wait = data.nop == 0 || matches!(category, Alu2 | Alu3) && data.nop <= 3;
        let found = || format!("(nop{}){}", data.nop, data.opcode);
        self.require(
            may_wait,
            Rule::Form,
            || "no (nop), or up to (nop3) on an operation of two or three sources".into(),
            found,
        );
    }

    fn repeat(&mut self, instr: Instr, data: &InstrData) {
        if data.repeat != 0 {
            let repeatable = data.opcode.can_repeat() && (data.opcode != Opcode::BaryF || self.target.has_rpt_bary_f);
            // What the words have bits for.
            let most = if data.opcode == Opcode::Nop { 7 } else { 3 };
            self.require(
                data.repeat <= most,
                Rule::Repeat,
                || format!("up to (rpt{most})"),
                || format!("(rpt{}){}", data.repeat, data.opcode),
            );
            self.require(
                repeatable && data.nop == 0,
                Rule::Repeat,
                || "an instruction that can be repeated, without (nop)".into(),
                || format!("(rpt{})(nop{}){}", data.repeat, data.nop, data.opcode),
            );
        }
        if let RepeatLink::After(previous) = data.link() {
            let block = self.place.block.map(|block| &self.program.blocks[block].instrs);
            let here = block.is_some_and(|instrs| {
                instrs.contains(&previous) && self.program.instrs[previous].link() != RepeatLink::None
            });
            self.require(
                here && previous != instr,
                Rule::Repeat,
                || "a repeat group within one block".into(),
                || format!("{previous}"),
            );
        }
    }

    /// Operations with a shared result run on the scalar ALU, which reads uniform operands.
    fn scalar(&mut self, data: &InstrData) {
        use Opcode::*;
        let shared = data.dsts.first().is_some_and(|dst| dst.class.file == RegFile::Shared);
        let alu = data.opcode.is_alu();
        if !shared || !alu && data.opcode.category() != Category::Sfu {
            return;
        }
        if data.opcode == Swz {
            self.place.operand = Some(Operand::Dst(0));
            let expected = || "a general register: two shared ones do not change places at once".into();
            self.require(false, Rule::File, expected, || "a shared one".into());
        }
        if data.opcode.category() != Category::Move {
            self.place.operand = Some(Operand::Dst(0));
            let target = self.target;
            self.require(
                target.has_scalar_alu,
                Rule::File,
                || format!("a general register, {target} having no scalar ALU"),
                || "a shared one".into(),
            );
        }
        let moves = data.opcode.category() == Category::Move && !matches!(data.opcode, Gat | Sct | Movp);
        let scalar = self.target.has_scalar_alu
            && alu
            && !data.opcode.is_vector_only()
            && (!moves || data.srcs.first().is_some_and(is_uniform));
        if !scalar {
            self.place.operand = None;
            return;
        }
        for (i, src) in data.srcs.iter().enumerate().filter(|&(i, src)| !is_address(i, src)) {
            self.place.operand = Some(Operand::Src(i));
            self.require(
                is_uniform(src),
                Rule::File,
                || "a shared register, a constant or an immediate".into(),
                || class_name(src.class),
            );
        }
        self.place.operand = None;
    }

    fn src_width(&mut self, i: usize, src: &Src, half: bool) {
        self.place.operand = Some(Operand::Src(i));
        self.require(src.class.half == half, Rule::Width, || width(half), || width(src.class.half));
    }

    fn dst_width(&mut self, i: usize, dst: &Dst, half: bool) {
        self.place.operand = Some(Operand::Dst(i));
        self.require(dst.class.half == half, Rule::Width, || width(half), || width(dst.class.half));
    }

    fn file(&mut self, operand: Operand, class: RegClass, file: RegFile) {
        self.place.operand = Some(operand);
        self.require(
            class.file == file,
            Rule::File,
            || class_name(RegClass { file, half: class.half }),
            || class_name(class),
        );
    }

    /// Branches and kills read predicates.
    fn flow(&mut self, data: &InstrData) {
        if data.opcode.reads_predicates() {
            for (i, src) in data.srcs.iter().enumerate() {
                self.file(Operand::Src(i), src.class, RegFile::Predicate);
                // These read the register of all lanes, and can encode no other.
                let reg = src.place().and_then(|place| place.reg());
                if !data.opcode.is_predication() {
                    continue;
                }
                if let Some(reg) = reg {
                    self.require(reg == PhysReg::P0_X, Rule::RegisterFile, || "p0.x".into(), || format!("{reg}"));
                }
                // Nor an inverted one: that is the other of the two.
                let plain = || format!("a predicate as `{}` reads it", data.opcode);
                self.require(src.mods.is_empty(), Rule::Modifiers, plain, || "an inverted one".into());
            }
        }
        if let Attrs::Outputs(outputs) = &data.attrs {
            self.place.operand = None;
            self.require(
                outputs.is_empty() || outputs.len() == data.srcs.len(),
                Rule::Attributes,
                || format!("{} outputs, one for each source", data.srcs.len()),
                || format!("{}", outputs.len()),
            );
        }
    }

    fn moves(&mut self, data: &InstrData) {
        use Opcode::*;
        match data.opcode {
            Mov | Swz | Gat | Sct => {
                let Some((src_type, dst_type)) = data.move_types() else { return };
                // Mesa converts through 16 bits: such a `cov` does not compute what its types say.
                let is_byte = |ty: Type| matches!(ty, Type::U8 | Type::U8In32);
                self.require(
                    !(src_type.is_float() && is_byte(dst_type) || is_byte(src_type) && dst_type.is_float()),
                    Rule::Attributes,
                    || "a conversion through 16 bits between a float and a byte".into(),
                    || format!("cov.{}{}", src_type.name(), dst_type.name()),
                );
                for (i, dst) in data.dsts.iter().enumerate() {
                    self.dst_width(i, dst, dst_type.is_half());
                }
                for (i, src) in data.srcs.iter().enumerate() {
                    if !is_tied(src) && !is_address(i, src) {
                        self.src_width(i, src, src_type.is_half());
                    }
                }
            }
            ReadCondMacro | ReadFirstMacro | ReadGetlastMacro => self.lanes_share(0, &data.dsts[0]),
            Movmsk | BallotMacro => {
                self.lanes_share(0, &data.dsts[0]);
                for (i, dst) in data.dsts.iter().enumerate() {
                    self.dst_width(i, dst, false);
                    let mask = dst.mask.0;
                    self.require(
                        mask & mask.wrapping_add(1) == 0,
                        Rule::Components,
                        || "components without a hole".into(),
                        || format!("{mask:#x}"),
                    );
                    // Each repetition writes a word.
                    let words = 1 + u32::from(data.repeat);
                    let is_written = data.opcode != Movmsk || dst.mask.span() == words;
                    let expected = || format!("{words} components, one for each repetition");
                    self.require(is_written, Rule::Components, expected, || format!("{mask:#x}"));
                }
            }
            ScanMacro => {
                self.lanes_share(2, &data.dsts[2]);
                for i in [0, 1] {
                    let (dst, src) = (data.dsts[i].class, data.srcs[0].class);
                    self.place.operand = Some(Operand::Dst(i));
                    self.require(dst == src, Rule::Width, || class_name(src), || class_name(dst));
                }
            }
            ScanClustersMacro => {
                self.lanes_share(0, &data.dsts[0]);
                let scanned = data.srcs[1].class;
                for (i, dst) in data.dsts.iter().enumerate().skip(1) {
                    self.place.operand = Some(Operand::Dst(i));
                    self.require(dst.class == scanned, Rule::Width, || class_name(scanned), || class_name(dst.class));
                }
            }
            _ => {}
        }
    }

    /// What is read from other lanes gets into a register that all of them share, and into no other.
    fn lanes_share(&mut self, i: usize, dst: &Dst) {
        self.place.operand = Some(Operand::Dst(i));
        let class = dst.class;
        self.require(class.file == RegFile::Shared, Rule::File, || "a shared register".into(), || class_name(class));
    }

    /// cat2, cat3 and cat4: the sources have one width, which some operations have in their name.
    fn alu(&mut self, data: &InstrData) {
        let mut first = None;
        for (i, src) in data.srcs.iter().enumerate().filter(|&(i, src)| !is_address(i, src) && !is_tied(src)) {
            match first {
                None => first = Some(src.class.half),
                Some(half) => self.src_width(i, src, half),
            }
        }
        let width = match data.opcode {
            // It counts wrongly in a full register.
            Opcode::CbitsB if self.target.generation.number() >= 5 => Some(true),
            opcode => opcode.source_width(),
        };
        if let (Some(half), Some(src)) = (width, data.srcs.first()) {
            self.src_width(0, src, half);
        }
        if let (Some(half), Some(dst)) = (data.opcode.result_width(), data.dsts.first()) {
            self.dst_width(0, dst, half);
        }
    }

    fn texture(&mut self, data: &InstrData) {
        if let (Some(ty), Some(dst)) = (data.texture().and_then(|texture| texture.ty), data.dsts.first()) {
            self.dst_width(0, dst, ty.is_half());
        }
        let s2en = data.flags.contains(InstrFlags::S2EN);
        if let (true, Some(src)) = (s2en, data.srcs.first()) {
            // Texture and sampler: two indices, or a bindless descriptor.
            self.src_width(0, src, !data.flags.contains(InstrFlags::BINDLESS));
        }
        let mut before: Option<bool> = None;
        for (i, src) in data.srcs.iter().enumerate().skip(usize::from(s2en)) {
            if is_tied(src) || is_address(i, src) {
                continue;
            }
            if let Some(half) = before {
                self.src_width(i, src, half);
            }
            before = Some(src.class.half);
        }
    }

    /// Addresses, offsets and sizes are 32 bits wide; data is as wide as its type, if known.
    fn memory(&mut self, data: &InstrData) {
        use Opcode::*;
        let ty = match data.attrs {
            Attrs::Shuffle { ty, .. } => Some(ty),
            _ => data.memory().and_then(|memory| memory.ty),
        };
        let half = ty.filter(|&ty| ty != Type::U64).map(Type::is_half);
        for ((i, src), &role) in data.srcs.iter().enumerate().zip(data.form().srcs) {
            let expected = match role {
                Role::Data => half,
                Role::Address1 | Role::To => None,
                _ => Some(false),
            };
            if let Some(expected) = expected {
                self.src_width(i, src, expected);
            }
        }
        if let (Some(half), Some(dst)) = (half, data.dsts.first()) {
            self.dst_width(0, dst, half);
        }
        if data.opcode == LdcK {
            let copied = data.memory().and_then(|memory| memory.components);
            self.require(
                copied.is_none_or(|copied| (1..=MemoryAction::MAX_COPY).contains(&copied)),
                Rule::Attributes,
                || format!("1 to {} vec4s", MemoryAction::MAX_COPY),
                || format!("{}", copied.unwrap_or(0)),
            );
        }
        // A prefetch has no result, which is `r63.x` in final code.
        let result = data.dsts.first().filter(|dst| dst.place.reg() != Some(PhysReg::INVALID));
        if let (Ldc, Some(dst)) = (data.opcode, result) {
            let shared = dst.class.file == RegFile::Shared;
            self.place.operand = Some(Operand::Dst(0));
            self.require(
                shared == data.flags.contains(InstrFlags::UNIFORM),
                Rule::File,
                || "a shared register for .u, and no other".into(),
                || class_name(dst.class),
            );
        }
    }

    fn meta(&mut self, data: &InstrData) {
        use Opcode::*;
        match data.opcode {
            ParallelCopy => {
                for (i, (dst, src)) in data.dsts.iter().zip(&data.srcs).enumerate() {
                    self.src_width(i, src, dst.class.half);
                    // A copy between registers may cross files.
                    if !matches!(dst.place, Place::Reg(_)) {
                        self.same_file(i, dst.class, src);
                    }
                    self.components(i, src, dst.mask.span());
                }
            }
            Phi => {
                let dst = &data.dsts[0];
                for (i, src) in data.srcs.iter().enumerate() {
                    self.src_width(i, src, dst.class.half);
                    self.same_file(i, dst.class, src);
                    self.components(i, src, dst.mask.span());
                }
            }
            Collect => {
                let dst = &data.dsts[0];
                let count = data.srcs.len() as u32;
                self.require(
                    count == dst.mask.span(),
                    Rule::Components,
                    || format!("{} sources, one for each component", dst.mask.span()),
                    || format!("{count}"),
                );
                for (i, src) in data.srcs.iter().enumerate() {
                    self.src_width(i, src, dst.class.half);
                    self.same_file(i, dst.class, src);
                    self.components(i, src, 1);
                }
            }
            Split => {
                let (dst, Some(src)) = (&data.dsts[0], data.srcs.first()) else { return };
                self.src_width(0, src, dst.class.half);
                self.same_file(0, dst.class, src);
                if let Attrs::Split { offset } = data.attrs {
                    let end = u32::from(offset) + dst.mask.span();
                    self.require(
                        end <= src.mask.span(),
                        Rule::Components,
                        || format!("a component below {}", src.mask.span()),
                        || format!("component {offset}"),
                    );
                }
            }
            _ => {}
        }
    }

    /// Copies stay in their file; constants and immediates become moves.
    fn same_file(&mut self, i: usize, dst: RegClass, src: &Src) {
        if matches!(src.operand, SrcOperand::Place(_) | SrcOperand::Undef) {
            self.file(Operand::Src(i), src.class, dst.file);
        }
    }

    fn components(&mut self, i: usize, src: &Src, count: u32) {
        self.place.operand = Some(Operand::Src(i));
        self.require(
            src.mask.span() == count,
            Rule::Components,
            || format!("{count} components"),
            || format!("{:#x}", src.mask.0),
        );
    }
}
