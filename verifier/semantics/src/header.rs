//! The declarations of two programs: stage, workgroup size, memory, buffers, inputs and outputs.
//!
//! The driver launches a shader as its header declares, so a difference there is a difference between the programs,
//! even if the code is equal: every engine checks [`difference`] first, and none proves a pair that has one. A
//! declaration that a text omits is not compared. A text of Mesa's ir3 omits all declarations of the program; one of
//! ours begins with the stage, and then a size that it omits is 0. nir declares more than ir3 (numbers of buffers and
//! textures), and that is compared between two programs in nir.
//!
//! An input or an output whose register is given (`ssa_1(r0.x)`) has that register in every later form.
//!
//! These differences are allowed, by name:
//! - scratch memory grows where values are spilled, and shrinks where nothing accesses it any more;
//! - immediates are added to the constant file, and driver parameters move there: the values of the words are part of
//!   the meaning;
//! - facts about the code that Mesa collects (`DERIVED`), the names of the shader, and whether its divergence analysis
//!   has run.

use crate::assumptions;
use crate::interface::{Interface, Undeclared};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::i965::vec4;
use ir3_compiler::ir3::access::MemoryAccess;
use ir3_compiler::ir3::reconvergence;
use ir3_compiler::ir3::{self, Attrs, Category, InputKind, Opcode, PhysReg, Place, ShaderStage, SystemValue};
use ir3_compiler::nir::{self, IntrinsicOp};
use std::collections::BTreeMap;
use std::fmt;

/// A difference between the headers of two programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderDifference {
    /// The declaration that differs.
    pub what: String,
    /// The declaration of the program before.
    pub expected: String,
    /// The declaration of the program after.
    pub actual: String,
}

impl fmt::Display for HeaderDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the header has another {}: expected {}, got {}", self.what, self.expected, self.actual)
    }
}

/// Lines of nir's header that Mesa derives from the code, and names: a pass may change them.
const DERIVED: &[&str] = &[
    "name",
    "label",
    "internal",
    "source_blake3",
    "source_sha1",
    "bit_sizes_int",
    "bit_sizes_float",
    "system_values_read",
    "textures_used",
    "textures_used_by_txf",
    "samplers_used",
    "images_used",
    "image_buffers",
    "msaa_images",
    "inputs_read",
    "dual_slot_inputs",
    "inputs_read_indirectly",
    "outputs_written",
    "outputs_read",
    "outputs_accessed_indirectly",
    "per_primitive_inputs",
    "per_primitive_outputs",
    "per_view_outputs",
    "patch_inputs_read",
    "patch_outputs_written",
    "patch_outputs_read",
    "writes_memory",
    "needs_quad_helper_invocations",
    "needs_coarse_quad_helper_invocations",
    "needs_all_helper_invocations",
    "uses_discard",
    "uses_demote",
    "uses_fbfetch_output",
    "uses_wide_subgroup_intrinsics",
    "uses_texture_gather",
    "uses_resource_info_query",
    "uses_control_barrier",
    "uses_memory_barrier",
    "uses_bindless",
    "flrp_lowered",
    "io_lowered",
    "writes_point_size",
];

/// Returns the first difference between the declarations of two programs.
pub fn difference(before: ProgramRef<'_>, after: ProgramRef<'_>) -> Option<HeaderDifference> {
    Header::of(before).difference(&Header::of(after))
}

/// The declarations of a text; `None` for those that it omits.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The name of the stage, in ir3's spelling if ir3 has the stage.
    stage: Option<String>,
    workgroup: Option<Workgroup>,
    shared: Option<u32>,
    scratch: Option<u32>,
    accesses_scratch: bool,
    /// The reconvergence points of ir3.
    reconvergence: Reconvergence,
    outputs: Option<Outputs>,
    /// The instructions of ir3 that access the memory of the workgroup, or that between stages: loads and stores.
    local: [Option<String>; 2],
    /// The registers of inputs and outputs of ir3. True for those that are given: the allocator may not choose another
    /// register.
    registers: BTreeMap<String, (PhysReg, bool)>,
    /// The declarations that only nir has, by the names in its text.
    of_nir: Option<BTreeMap<String, String>>,
    /// The interface of a program in nir: its inputs and outputs.
    interface: Interface,
    /// The accesses of nir beyond its declarations.
    undeclared: Undeclared,
}

/// The size of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workgroup {
    Fixed([u32; 3]),
    Variable([u32; 3]),
}

impl fmt::Display for Workgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed([x, y, z]) => write!(f, "{x}x{y}x{z}"),
            Self::Variable([x, y, z]) => write!(f, "{x}x{y}x{z} (variable)"),
        }
    }
}

/// The outputs of ir3, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outputs {
    components: Vec<(u16, u8)>,
    /// Aliases may have components of any output: only the outputs themselves are comparable.
    has_aliases: bool,
}

impl Outputs {
    fn of(program: &ir3::Program) -> Self {
        let mut components: Vec<_> = program.outputs.iter().map(|output| (output.base, output.component)).collect();
        components.sort_unstable();
        let has_aliases = program.instrs.values().any(|data| data.opcode == Opcode::Alias);
        Self { components, has_aliases }
    }

    fn text(&self, without_components: bool) -> String {
        let letter = |component: u8| ['x', 'y', 'z', 'w'].get(usize::from(component)).copied().unwrap_or('?');
        let names = self.components.iter().map(|&(base, component)| match without_components {
            true => base.to_string(),
            false => format!("{base}.{}", letter(component)),
        });
        let mut names: Vec<String> = names.collect();
        names.dedup();
        names.join(", ")
    }

    /// The texts of two lists, if they are comparable.
    fn texts(before: Option<&Self>, after: Option<&Self>) -> [Option<String>; 2] {
        let sides = [before, after];
        let without_components = sides.into_iter().flatten().any(|outputs| outputs.has_aliases);
        sides.map(|outputs| outputs.map(|outputs| outputs.text(without_components)))
    }
}

/// The reconvergence points in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reconvergence {
    /// The program has no reconvergence points, and lanes wait for others in no block.
    #[default]
    NotNeeded,
    /// The program has no reconvergence points, though lanes wait for others.
    Unmarked,
    /// Some block is a reconvergence point.
    Marked,
}

impl Header {
    /// The header of a program.
    pub fn of(side: ProgramRef<'_>) -> Self {
        match side {
            ProgramRef::Nir(shader) => Self::of_nir(shader),
            ProgramRef::Vec4(program) => {
                let mut shader = nir::Shader::new(program.stage);
                shader.info = program.info.clone();
                Self::of_nir(&shader)
            }
            ProgramRef::Ir3(program) => Self::of_ir3(program),
        }
    }

    fn of_nir(shader: &nir::Shader) -> Self {
        use nir::Stage;
        let info = &shader.info;
        let stage = match shader.stage {
            Stage::Vertex => name_of(ShaderStage::Vertex),
            Stage::TessCtrl => name_of(ShaderStage::TessControl),
            Stage::TessEval => name_of(ShaderStage::TessEval),
            Stage::Geometry => name_of(ShaderStage::Geometry),
            Stage::Fragment => name_of(ShaderStage::Fragment),
            Stage::Compute | Stage::Kernel => name_of(ShaderStage::Compute),
            stage @ (Stage::Task | Stage::Mesh) => stage.name().to_owned(),
        };
        let workgroup = info.workgroup_size.map(|size| match info.workgroup_size_variable {
            true => Workgroup::Variable(size),
            false => Workgroup::Fixed(size),
        });
        let mut of_nir: BTreeMap<String, String> = [
            ("kind of shader", shader.stage.name().to_owned()),
            ("number of textures", info.num_textures.to_string()),
            ("number of uniform buffers", info.num_ubos.to_string()),
            ("number of storage buffers", info.num_ssbos.to_string()),
            ("number of images", info.num_images.to_string()),
            ("subgroup size", info.subgroup_size.to_string()),
            ("number of inputs", info.inputs.to_string()),
            ("number of outputs", info.outputs.to_string()),
            ("number of uniforms", info.uniforms.to_string()),
            ("workgroup size", workgroup.map_or("none".to_owned(), |size| size.to_string())),
        ]
        .map(|(what, value)| (what.to_owned(), value))
        .into();
        of_nir.extend(info.other.iter().filter(|(key, _)| !DERIVED.contains(&key.as_str())).cloned());
        Self {
            stage: Some(stage),
            workgroup,
            shared: Some(info.shared_size),
            scratch: Some(info.scratch_size),
            accesses_scratch: intrinsics(shader)
                .any(|op| matches!(op, IntrinsicOp::LoadScratch | IntrinsicOp::StoreScratch)),
            reconvergence: Reconvergence::NotNeeded,
            outputs: None,
            local: [None, None],
            registers: BTreeMap::new(),
            of_nir: Some(of_nir),
            interface: Interface::of(shader),
            undeclared: Undeclared::of(shader),
        }
    }

    fn of_ir3(program: &ir3::Program) -> Self {
        use Opcode::{Ldl, Ldlw, Ldp, ReloadMacro, SpillMacro, Stl, Stlw, Stp};
        let is_said = program.stage.is_some();
        let memory = [Ldl, Ldlw, Stl, Stlw, Ldp, Stp, SpillMacro, ReloadMacro];
        let mut accesses = [false; 8];
        for (_, instr) in program.iter_instrs() {
            let opcode = program.instrs[instr].opcode;
            if let Some(at) = memory.iter().position(|&access| access == opcode) {
                accesses[at] = true;
            }
        }
        let has = |wanted: Opcode| memory.iter().zip(accesses).any(|(&opcode, found)| found && opcode == wanted);
        let said = if program.layout.iter().any(|&block| program.blocks[block].reconvergence_point) {
            Reconvergence::Marked
        } else {
            let points = reconvergence::points(program);
            match program.layout.iter().any(|&block| points.is_point(block)) {
                true => Reconvergence::Unmarked,
                false => Reconvergence::NotNeeded,
            }
        };
        Self {
            stage: program.stage.map(name_of),
            workgroup: program.workgroup_size.map(|size| Workgroup::Fixed(size.map(u32::from))),
            shared: is_said.then_some(program.shared_size),
            scratch: is_said.then_some(program.scratch_size),
            accesses_scratch: [Ldp, Stp, SpillMacro, ReloadMacro].into_iter().any(has),
            reconvergence: said,
            outputs: is_said.then(|| Outputs::of(program)),
            local: [[Ldl, Ldlw], [Stl, Stlw]].map(|opcodes| {
                let found = opcodes.into_iter().filter(|&opcode| has(opcode)).map(Opcode::name);
                Some(found.collect::<Vec<_>>().join(" and ")).filter(|names| !names.is_empty())
            }),
            registers: registers(program),
            of_nir: None,
            interface: Interface::default(),
            undeclared: Undeclared::default(),
        }
    }

    /// Returns the first declaration in which a program that was made from this one differs.
    pub fn difference(&self, after: &Self) -> Option<HeaderDifference> {
        differs("stage", self.stage.clone(), after.stage.clone())
            .or_else(|| {
                // A variable size cannot be declared in ir3.
                let size = |header: &Self, other: &Self| match header.workgroup {
                    Some(Workgroup::Variable(_)) if other.of_nir.is_none() => None,
                    size => size.map(|size| size.to_string()),
                };
                differs("workgroup size", size(self, after), size(after, self))
            })
            .or_else(|| differs("size of shared memory", bytes(self.shared), bytes(after.shared)))
            .or_else(|| {
                let fits = after.scratch >= self.scratch || !after.accesses_scratch;
                if fits {
                    return None;
                }
                differs("size of scratch memory", bytes(self.scratch), bytes(after.scratch))
            })
            .or_else(|| {
                let [own, other] = Outputs::texts(self.outputs.as_ref(), after.outputs.as_ref());
                differs("list of outputs", own, other)
            })
            .or_else(|| {
                let differs = |(what, before, after): (&str, &Option<String>, &Option<String>)| {
                    differs(&format!("kind of {what} local memory"), before.clone(), after.clone())
                };
                let (before, after) = (&self.local, &after.local);
                differs(("loads from", &before[0], &after[0])).or_else(|| differs(("stores to", &before[1], &after[1])))
            })
            .or_else(|| {
                self.registers.iter().filter(|(_, (_, is_given))| *is_given).find_map(|(what, (given, _))| {
                    let found = after.registers.get(what).map(|(register, _)| register.to_string());
                    differs(&format!("register of {what}"), Some(given.to_string()), found)
                })
            })
            .or_else(|| {
                let lost =
                    (self.reconvergence, after.reconvergence) == (Reconvergence::Marked, Reconvergence::Unmarked);
                let said = |text: &str| Some(text.to_owned());
                lost.then(|| differs("set of reconvergence points", said("blocks with `(jp)`"), said("none"))).flatten()
            })
            .or_else(|| {
                let (before, after) = (self.of_nir.as_ref()?, after.of_nir.as_ref()?);
                let value = |lines: &BTreeMap<String, String>, key: &str| {
                    Some(lines.get(key).map_or("nothing".to_owned(), String::clone))
                };
                before.keys().chain(after.keys()).find_map(|key| differs(key, value(before, key), value(after, key)))
            })
            .or_else(|| {
                let [what, expected, actual] = self.interface.difference(&after.interface)?;
                Some(HeaderDifference { what, expected, actual })
            })
            .or_else(|| {
                self.of_nir.as_ref().and(after.of_nir.as_ref())?;
                let added = self.undeclared.added(&after.undeclared)?.to_owned();
                let what = "access beyond its declarations".to_owned();
                Some(HeaderDifference { what, expected: "none".to_owned(), actual: added })
            })
    }
}

/// The registers of inputs and outputs. True for those that are given. A second input of a kind is another entry.
fn registers(program: &ir3::Program) -> BTreeMap<String, (PhysReg, bool)> {
    let mut all = BTreeMap::new();
    let mut note = |what: String, place: &Place| {
        let register = match *place {
            Place::Assigned(_, register) => Some((register, true)),
            ref place => place.reg().map(|register| (register, false)),
        };
        if let Some(register) = register {
            all.insert(what, register);
        }
    };
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for (instr, kind) in program.inputs() {
        let Some(kind) = kind.map(|kind| format!("{kind:?}")) else { continue };
        let count = kinds.entry(kind.clone()).or_default();
        *count += 1;
        if let Some(dst) = program.instrs[instr].dsts.first() {
            note(format!("input {kind} ({count})"), &dst.place);
        }
    }
    for (_, instr) in program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode == Opcode::End) {
        for (output, src) in program.outputs.iter().zip(&program.instrs[instr].srcs) {
            if let Some(place) = src.place() {
                note(format!("output {}.{}", output.base, output.component), place);
            }
        }
    }
    all
}

fn name_of(stage: ShaderStage) -> String {
    format!("{stage:?}").to_lowercase()
}

fn bytes(size: Option<u32>) -> Option<String> {
    size.map(|size| format!("{size} bytes"))
}

/// Returns a difference if both texts have the declaration and they differ.
fn differs(what: &str, before: Option<String>, after: Option<String>) -> Option<HeaderDifference> {
    let (expected, actual) = (before?, after?);
    (expected != actual).then(|| HeaderDifference { what: what.to_owned(), expected, actual })
}

fn intrinsics(shader: &nir::Shader) -> impl Iterator<Item = IntrinsicOp> + '_ {
    shader.entry.instrs.values().filter_map(|instr| match instr {
        nir::InstrData::Intrinsic(intrinsic) => Some(intrinsic.op),
        _ => None,
    })
}

/// The assumptions of a proof about two programs on declarations that a text omits, where they matter to the meaning.
pub fn omitted_declarations(before: ProgramRef<'_>, after: ProgramRef<'_>) -> Vec<&'static str> {
    let sides = [before, after];
    let mut list = Vec::new();
    let silent = |side: &ProgramRef<'_>| matches!(side, ProgramRef::Ir3(program) if program.stage.is_none());
    if sides.iter().any(silent) {
        list.push(assumptions::STAGE);
    }
    let of_compute = |side: &ProgramRef<'_>| match side {
        ProgramRef::Nir(nir::Shader { info, .. }) | ProgramRef::Vec4(vec4::Program { info, .. }) => {
            info.workgroup_size.is_some()
        }
        ProgramRef::Ir3(program) => program.stage.is_none_or(|stage| stage == ShaderStage::Compute),
    };
    let is_unsaid = |side: &ProgramRef<'_>| match side {
        ProgramRef::Nir(nir::Shader { info, .. }) | ProgramRef::Vec4(vec4::Program { info, .. }) => {
            info.workgroup_size_variable
        }
        ProgramRef::Ir3(program) => program.workgroup_size.is_none(),
    };
    if sides.iter().all(of_compute) && sides.iter().any(|side| is_unsaid(side) && depends_on_workgroup(side)) {
        list.push(assumptions::WORKGROUP_SIZE);
    }
    if sides.iter().any(|side| matches!(side, ProgramRef::Ir3(program) if has_unprinted(program))) {
        list.push(assumptions::UNPRINTED);
    }
    list
}

/// Returns true if the behaviour of a program depends on the size of the workgroup.
fn depends_on_workgroup(side: &ProgramRef<'_>) -> bool {
    let depends = |op: IntrinsicOp| {
        use IntrinsicOp::{
            LoadLocalInvocationId, LoadLocalInvocationIndex, LoadNumSubgroups, LoadSubgroupId, LoadWorkgroupSize,
        };
        matches!(
            op,
            LoadLocalInvocationId | LoadLocalInvocationIndex | LoadNumSubgroups | LoadSubgroupId | LoadWorkgroupSize
        )
    };
    match side {
        ProgramRef::Nir(shader) => intrinsics(shader).any(depends),
        // Those of vertex shaders have no messages.
        ProgramRef::Vec4(program) => {
            program.instrs.iter().filter_map(|instr| instr.message.as_ref()).any(|message| depends(message.op))
        }
        ProgramRef::Ir3(program) => {
            use SystemValue::{LocalInvocationId, LocalInvocationIndex, SubgroupId, WorkgroupSize};
            let depends = |value: SystemValue| {
                matches!(value, LocalInvocationId | LocalInvocationIndex | SubgroupId | WorkgroupSize)
            };
            program.consts.driver_params.iter().any(|param| depends(param.value))
                || program.inputs().any(|(_, kind)| matches!(kind, Some(InputKind::System(value)) if depends(value)))
        }
    }
}

/// Returns true if a program was read from a text that omits attributes that the meaning of an instruction depends on.
fn has_unprinted(program: &ir3::Program) -> bool {
    program.iter_instrs().any(|(_, instr)| {
        let data = &program.instrs[instr];
        is_unprinted(data) || program.stage.is_none() && data.opcode.category() == Category::Texture
    })
}

/// An instruction whose text omits attributes that its meaning depends on, as printed in messages.
pub fn unprinted(program: &ir3::Program) -> Option<String> {
    let mut instrs = program.iter_instrs().map(|(_, instr)| instr);
    let instr = instrs.find(|&instr| is_unprinted(&program.instrs[instr]))?;
    let name = program.instrs[instr].opcode.name();
    Some(format!("`{name}` ({:04}): the text does not print its type", program.serials[instr]))
}

/// Returns true if the text of an instruction omits attributes that its meaning depends on: these are unknown, so the
/// instruction is equal only to itself. (A load from a uniform buffer has the width of its register.)
pub fn is_unprinted(data: &ir3::InstrData) -> bool {
    use Opcode::{Ldc, LdcK, Ldlv, Resinfo, Stc};
    match &data.attrs {
        Attrs::Memory(memory) => {
            let has_elements =
                MemoryAccess::covers(data.opcode) && !matches!(data.opcode, Ldc | LdcK | Ldlv | Resinfo | Stc);
            has_elements && memory.ty.is_none()
        }
        Attrs::Input(kind) => kind.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;

    const NIR: &str = "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 64, 1, 1\nnum_ssbos: 2\nshared_size: 64\n\
        subgroup_size: 1\nscratch: 16\ndecl_function main () (entrypoint)\n\nimpl main {\n    block b0:\n    block b1:\n}\n";
    const IR3: &str = "// {stage=compute}\n// {workgroup=64x1x1}\n// {shared=64}\n// {scratch=16}\nblock1 {\n\
        \t0001:0000:000: \tmov.u32u32 r0.x, c0.x\n\t0002:0000:000: \tend\n}\n";

    fn nir(text: &str) -> Snapshot {
        Snapshot::Nir(Box::new(nir::text::read(text).unwrap()))
    }

    fn ir3(text: &str) -> Snapshot {
        Snapshot::Ir3(Box::new(ir3::text::read(text).unwrap()))
    }

    fn between(before: &Snapshot, after: &Snapshot) -> Option<String> {
        difference(before.into(), after.into()).map(|difference| difference.what)
    }

    #[test]
    fn each_line_of_nir_counts() {
        for (from, to, what) in [
            ("64, 1, 1", "8, 8, 1", "workgroup size"),
            ("64, 1, 1", "64, 1, 1 (variable)", "workgroup size"),
            ("workgroup_size: 64, 1, 1\n", "", "workgroup size"),
            ("num_ssbos: 2", "num_ssbos: 1", "number of storage buffers"),
            ("num_ssbos: 2", "num_ssbos: 2\nnum_ubos: 1", "number of uniform buffers"),
            ("num_ssbos: 2", "num_ssbos: 2\nnum_textures: 1", "number of textures"),
            ("num_ssbos: 2", "num_ssbos: 2\nnum_images: 1", "number of images"),
            ("shared_size: 64", "shared_size: 32", "size of shared memory"),
            ("subgroup_size: 1", "subgroup_size: 2", "subgroup size"),
            ("subgroup_size: 1", "subgroup_size: 1\ninputs: 1", "number of inputs"),
            ("subgroup_size: 1", "subgroup_size: 1\noutputs: 1", "number of outputs"),
            ("subgroup_size: 1", "subgroup_size: 1\nuniforms: 1", "number of uniforms"),
            ("subgroup_size: 1", "subgroup_size: 1\norigin_upper_left: true", "origin_upper_left"),
            ("MESA_SHADER_COMPUTE", "MESA_SHADER_KERNEL", "kind of shader"),
            ("MESA_SHADER_COMPUTE", "MESA_SHADER_VERTEX", "stage"),
        ] {
            assert_eq!(between(&nir(NIR), &nir(&NIR.replace(from, to))).as_deref(), Some(what), "{from} as {to}");
        }
    }

    #[test]
    fn what_a_pass_may_change_is_no_difference() {
        for (from, to) in [
            ("scratch: 16\n", "scratch: 64\n"),
            ("scratch: 16\n", ""),
            ("subgroup_size: 1\n", "subgroup_size: 1\nwrites_memory: true\n"),
            ("subgroup_size: 1\n", "subgroup_size: 1\ndivergence_analysis_run: true\n"),
        ] {
            assert_eq!(between(&nir(NIR), &nir(&NIR.replace(from, to))), None, "{from} as {to}");
        }
        for (from, to) in [
            ("{scratch=16}", "{scratch=64}"),
            ("// {scratch=16}\n", ""),
            ("// {scratch=16}\n", "// {scratch=16}\n// {immediate=c4.x:0x7}\n"),
        ] {
            assert_eq!(between(&ir3(IR3), &ir3(&IR3.replace(from, to))), None, "{from} as {to}");
        }
    }

    #[test]
    fn each_line_of_ir3_counts_in_both_languages() {
        for (from, to, what) in [
            ("stage=compute", "stage=fragment", "stage"),
            ("64x1x1", "32x1x1", "workgroup size"),
            ("{shared=64}", "{shared=32}", "size of shared memory"),
            ("// {shared=64}\n", "", "size of shared memory"),
        ] {
            let after = ir3(&IR3.replace(from, to));
            assert_eq!(between(&ir3(IR3), &after).as_deref(), Some(what), "{from} as {to}");
            assert_eq!(between(&nir(NIR), &after).as_deref(), Some(what), "{from} as {to}");
        }
        assert_eq!(between(&nir(NIR), &ir3(IR3)), None);
        let with_output = IR3.replace("block1", "// {output=1.x}\nblock1");
        assert_eq!(between(&ir3(IR3), &ir3(&with_output)).as_deref(), Some("list of outputs"));
        // Aliases may have another component of an output first, and some in addition to those in registers.
        let of = |base: u16, components: &[u8], has_aliases| {
            let components = components.iter().map(|&component| (base, component)).collect();
            Some(Outputs { components, has_aliases })
        };
        let is_equal = |before: Option<Outputs>, after: Option<Outputs>| {
            let [before, after] = Outputs::texts(before.as_ref(), after.as_ref());
            before == after
        };
        assert!(is_equal(of(1, &[0], false), of(1, &[2, 3], true)));
        assert!(!is_equal(of(1, &[0], false), of(1, &[2, 3], false)));
        assert!(!is_equal(of(1, &[0], false), of(2, &[0], true)));
        // The memory between stages is another one than that of the workgroup.
        let store = "stl r0.x, r0.x, imm[0.000000,1,0x1] // {type=u32, components=1, space=shared}";
        let stores = IR3.replace("stage=compute", "stage=vertex").replace("// {workgroup=64x1x1}\n", "");
        let stores =
            stores.replace("\t0002:0000:000: \tend", &format!("\t0002:0000:000: \t{store}\n\t0003:0000:000: \tend"));
        assert_eq!(between(&ir3(&stores), &ir3(&stores)), None);
        let between_stages = ir3(&stores.replace("stl", "stlw"));
        assert_eq!(between(&ir3(&stores), &between_stages).as_deref(), Some("kind of stores to local memory"));
        // Less scratch memory is a difference where something accesses it.
        let load = "mov.u32u32 r0.x, imm[0.000000,0,0x0]\n\t0003:0000:000: \tldp r0.y, r0.x, imm[0.000000,0,0x0], \
            imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch}";
        let loads = IR3.replace("mov.u32u32 r0.x, c0.x", load);
        let less = loads.replace("scratch=16", "scratch=8");
        assert_eq!(between(&ir3(&loads), &ir3(&less)).as_deref(), Some("size of scratch memory"));
    }

    #[test]
    fn a_text_of_mesa_says_nothing() {
        let silent: String =
            IR3.lines().filter(|line| !line.starts_with("//")).map(|line| format!("{line}\n")).collect();
        for (before, after) in [(ir3(IR3), ir3(&silent)), (ir3(&silent), ir3(IR3)), (nir(NIR), ir3(&silent))] {
            assert_eq!(between(&before, &after), None);
            assert_eq!(omitted_declarations((&before).into(), (&after).into()), [assumptions::STAGE]);
        }
        // An omitted declaration is assumed where it matters.
        let reads = silent.replace("mov.u32u32 r0.x, c0.x", "_meta:in r0.x // {input=local_invocation_id}");
        let reads = ir3(&reads);
        assert_eq!(
            omitted_declarations((&reads).into(), (&reads).into()),
            [assumptions::STAGE, assumptions::WORKGROUP_SIZE]
        );
        let unprinted =
            ir3(&silent.replace("mov.u32u32 r0.x, c0.x", "ldl r0.x, r0.y, imm[0.000000,0,0x0], imm[0.000000,1,0x1]"));
        assert_eq!(
            omitted_declarations((&unprinted).into(), (&unprinted).into()),
            [assumptions::STAGE, assumptions::UNPRINTED]
        );
        assert_eq!(omitted_declarations((&ir3(IR3)).into(), (&ir3(IR3)).into()), [""; 0]);
    }

    #[test]
    fn reconvergence_points_are_not_lost() {
        let text = |points: &str, end: &str| {
            let way = if end == "br" { "div" } else { "con" };
            ir3(&format!(
                "// {{stage=compute}}\nblock1 {{\n\t0001:0000:000: \t{end} pp0.x\n\t/* succs: block2, block3 ({way}) */\n}}\n\
                 block2 {{\n\tpred: block1\n\t0002:0000:000: \tjump\n\t/* succs: block3 */\n}}\n\
                 {points}block3 {{\n\tpred: block1, block2\n\t0003:0000:000: \tend\n}}\n"
            ))
        };
        let lost = between(&text("(jp)", "br"), &text("", "br"));
        assert_eq!(lost.as_deref(), Some("set of reconvergence points"));
        assert_eq!(between(&text("", "br"), &text("(jp)", "br")), None);
        // Lanes that all take one edge do not wait.
        assert_eq!(between(&text("(jp)", "br"), &text("", "bany")), None);
    }
}
