//! Serial numbers of instructions, for texts of release builds, which print none.
//!
//! Before allocation a result prints the serial number of its instruction (`ssa_12`), so only instructions without
//! results have none. After it no instruction has one. Each section is aligned with the one before it, block by block:
//! by the printed positions where no pass between them counts anew, otherwise by opcode and operands, in order, unless
//! a scheduler ran. Two instructions are paired if each longest common subsequence pairs them. An instruction that is
//! paired with no other gets a number of its own: facts of other sections do not apply to it.

use super::phases::Phase;
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::text::ReadProgram;
use ir3_compiler::ir3::{
    Block, Category, Dst, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegFile, Src, SrcOperand,
};
use ir3_programs::mesa::{Section, SectionKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// The passes that do not count instructions anew.
const KEEP_POSITIONS: [&str; 5] =
    ["ir3_lower_spill", "ir3_lower_copies", "ir3_postsched", "ir3_legalize_relative", "ir3_lower_subgroups"];

/// The passes that add a part of an offset to an address, or expand macros.
const CHANGE_OPERANDS: [&str; 3] = ["ir3_lower_spill", "ir3_legalize_relative", "ir3_lower_subgroups"];

/// The pass that gives registers to values of the shared file.
const SHARED_REGISTERS: &str = "shared register allocation";

/// The second scheduler.
const POSTSCHED: &str = "ir3_postsched";

/// The last sections before it.
const BEFORE_POSTSCHED: [&str; 3] = ["register allocation", "ir3_lower_spill", "ir3_lower_copies"];

/// The most entries of a table of common subsequences.
const MOST_ENTRIES: usize = 1 << 24;

/// Gives the instructions of sections without serial numbers those of the instructions before the pass. Returns a line
/// about them.
pub(super) fn complete<E>(
    sections: &[Section],
    phases: &[Phase],
    reads: &mut [Result<ReadProgram, E>],
) -> Option<String> {
    if reads.iter().flatten().all(|read| read.has_serials) {
        return None;
    }
    let all = reads.iter().flatten().flat_map(|read| read.program.serials.values());
    let mut next = all.copied().max().unwrap_or(0) + 1;
    let mut before: Option<usize> = None;
    let (mut aligned, mut count) = (0, 0);
    for at in 0..reads.len() {
        let (earlier, rest) = reads.split_at_mut(at);
        let Ok(read) = &mut rest[0] else { continue };
        let before = before.replace(at).and_then(|before| Some((before, earlier[before].as_ref().ok()?)));
        let pairs = before.map_or_else(Default::default, |(number, before)| {
            let change = Change { from: number, to: at, sections, phases };
            align(before, read, &change)
        });
        let mut taken: FxHashSet<u32> = read.program.serials.values().copied().filter(|&serial| serial != 0).collect();
        let instrs: Vec<Instr> = read.program.instrs.keys().filter(|&instr| read.program.serials[instr] == 0).collect();
        for instr in instrs {
            let known = pairs.get(&instr).copied().filter(|serial| taken.insert(*serial));
            count += usize::from(before.is_some());
            aligned += usize::from(known.is_some());
            read.program.serials[instr] = known.unwrap_or_else(|| {
                next += 1;
                next - 1
            });
        }
    }
    Some(format!(
        "the text has no serial numbers (a release build): {aligned} of {count} instructions without a name are aligned with one of the section before"
    ))
}

/// Adds the jump after a `shpe` that ends its block: since 26, legalization adds it, and before it is the end of a
/// block only.
pub(super) fn jump_after_preamble(program: &mut Program) {
    for block in program.layout.clone() {
        let data = &program.blocks[block];
        let last = data.instrs.last().copied();
        let Some(last) =
            last.filter(|&last| program.instrs[last].opcode == Opcode::Shpe && data.successors().count() == 1)
        else {
            continue;
        };
        let jump = program.instrs.push(InstrData::new(Opcode::Jump));
        // A text with serial numbers has no such large one.
        program.serials[jump] =
            program.serials[last].checked_add(1 << 30).filter(|_| program.serials[last] != 0).unwrap_or(0);
        program.blocks[block].instrs.push(jump);
    }
}

/// Two sections, and their positions.
struct Change<'a> {
    from: usize,
    to: usize,
    sections: &'a [Section],
    phases: &'a [Phase],
}

impl Change<'_> {
    fn name(&self, at: usize) -> &str {
        match &self.sections[at].kind {
            SectionKind::Ir3After { pass } => pass,
            _ => "",
        }
    }

    /// Returns true if instructions may be in another order: a scheduler ran in between, or may have.
    fn reorders(&self) -> bool {
        let is_scheduler = |at: usize| self.name(at) == POSTSCHED;
        let [from, to] = [self.from, self.to].map(|at| self.phases[at]);
        let is_first = from < Phase::Scheduled && to >= Phase::Scheduled;
        // `ir3_merge_rpt` is before it or after it.
        let is_before =
            (self.to..self.sections.len()).any(is_scheduler) || BEFORE_POSTSCHED.contains(&self.name(self.to));
        let is_second = !(0..=self.from).any(is_scheduler) && !is_before;
        is_first || to >= Phase::Allocated && (is_scheduler(self.to) || is_second)
    }
}

/// The serial numbers of instructions that have none, by the instructions before the pass that are the same.
fn align(before: &ReadProgram, after: &ReadProgram, change: &Change<'_>) -> FxHashMap<Instr, u32> {
    let mut pairs = FxHashMap::default();
    let mut used = FxHashSet::default();
    let name = change.name(change.to);
    if KEEP_POSITIONS.contains(&name) && change.phases[change.from] >= Phase::Allocated {
        for (instr, same) in by_positions(before, after, CHANGE_OPERANDS.contains(&name)) {
            used.insert(same);
            pairs.insert(instr, before.program.serials[same]);
        }
    }
    let [was_allocated, is_allocated] = [change.from, change.to].map(|at| change.phases[at] >= Phase::Allocated);
    let reorders = change.reorders();
    let kept = match () {
        () if was_allocated => Kept::Registers,
        () if is_allocated => Kept::Shapes,
        () if name == SHARED_REGISTERS => Kept::GeneralNames,
        () if reorders => Kept::NamesWithOperands,
        () => Kept::Names,
    };
    let old_blocks = blocks(&before.program);
    for (number, block) in blocks(&after.program) {
        let Some(&old) = old_blocks.get(&number) else { continue };
        let rest = |program: &Program, block: Block, is_left: &dyn Fn(Instr) -> bool| -> Vec<(Instr, String)> {
            let instrs = program.blocks[block].instrs.iter().copied().filter(|&instr| is_left(instr));
            let key = |instr| (instr, key(program, instr, kept));
            instrs.map(key).collect()
        };
        let old = rest(&before.program, old, &|instr| !used.contains(&instr));
        let new = rest(&after.program, block, &|instr| !pairs.contains_key(&instr));
        let [old_keys, new_keys] = [&old, &new].map(|list| list.iter().map(|(_, key)| &**key).collect::<Vec<_>>());
        let found = if reorders { unique(&old_keys, &new_keys) } else { common(&old_keys, &new_keys) };
        for (i, j) in found {
            if after.program.serials[new[j].0] == 0 {
                pairs.insert(new[j].0, before.program.serials[old[i].0]);
            }
        }
    }
    pairs
}

/// The blocks of a program by their numbers.
fn blocks(program: &Program) -> FxHashMap<u32, Block> {
    let mut all: FxHashMap<Block, u32> = program.layout.iter().copied().zip(1..).collect();
    all.extend(program.block_names.iter().copied());
    all.into_iter().map(|(block, number)| (number, block)).collect()
}

/// The instructions of equal positions; none if two of them are not the same: then the pass has counted anew
/// (`ir3_postsched` of 25.0).
fn by_positions(before: &ReadProgram, after: &ReadProgram, changes_operands: bool) -> Vec<(Instr, Instr)> {
    let unique = |read: &ReadProgram| -> FxHashMap<u32, Option<Instr>> {
        let mut all: FxHashMap<u32, Option<Instr>> = FxHashMap::default();
        for (_, instr) in read.program.iter_instrs().filter(|&(_, instr)| read.positions[instr] != 0) {
            all.entry(read.positions[instr]).and_modify(|it| *it = None).or_insert(Some(instr));
        }
        all
    };
    let old = unique(before);
    let pairs = unique(after).into_iter().filter_map(|(position, instr)| Some((instr?, (*old.get(&position)?)?)));
    let pairs: Vec<(Instr, Instr)> = pairs.collect();
    let is_same = |&(instr, same): &(Instr, Instr)| {
        let (new, old) = (&after.program.instrs[instr], &before.program.instrs[same]);
        let is_lowered =
            matches!((old.opcode, new.opcode), (Opcode::SpillMacro, Opcode::Stp) | (Opcode::ReloadMacro, Opcode::Ldp));
        (new.opcode == old.opcode || is_lowered)
            && (changes_operands || operands(&after.program, new, true) == operands(&before.program, old, true))
    };
    if pairs.iter().all(is_same) { pairs } else { Vec::new() }
}

/// The properties of an instruction that a pass keeps.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    /// Names of results, and operands that are registers.
    Names,
    /// Names and operands; the order may differ.
    NamesWithOperands,
    /// Names of results in registers that are not shared.
    GeneralNames,
    /// Opcodes, constants, immediates and classes.
    Shapes,
    /// Registers.
    Registers,
}

/// A text that is the same of an instruction before and after a pass.
fn key(program: &Program, instr: Instr, kept: Kept) -> String {
    let data = &program.instrs[instr];
    let is_shared = data.dsts.iter().any(|dst| dst.class.file == RegFile::Shared);
    if kept == Kept::Shapes || kept == Kept::GeneralNames && is_shared {
        return shape(data);
    }
    if kept != Kept::Registers && data.dsts.iter().any(|dst| dst.value().is_some()) {
        return program.serials[instr].to_string();
    }
    // Constants take the place of sources before allocation.
    let has_operands = matches!(kept, Kept::Registers | Kept::NamesWithOperands);
    if has_operands || !data.dsts.is_empty() {
        operands(program, data, has_operands)
    } else {
        data.opcode.name().to_owned()
    }
}

/// The opcode and the operands up to their registers.
fn shape(data: &InstrData) -> String {
    let mut out = data.opcode.name().to_owned();
    for dst in &data.dsts {
        let _ = write!(out, " {:?}{:x}", dst.class, dst.mask.0);
    }
    // The old state of an array is no source after allocation.
    for src in data.srcs.iter().filter(|src| !src.flags.contains(OperandFlags::TIED)) {
        let _ = match src.operand {
            SrcOperand::Immediate(bits) => write!(out, " #{bits:x}"),
            SrcOperand::Const(word) => write!(out, " c{word}"),
            _ => write!(out, " {:?}", src.class),
        };
    }
    out
}

/// The opcode, the results and the sources: values by the serial numbers of their instructions, without marks of
/// liveness.
fn operands(program: &Program, data: &InstrData, with_srcs: bool) -> String {
    let mut out = data.opcode.name().to_owned();
    let place = |out: &mut String, place: &Place| {
        let _ = match (place, place.value()) {
            (_, Some(value)) => {
                let its = &program.values[value];
                write!(out, " ssa_{}.{}", program.serials[its.instr], its.dst)
            }
            (Place::Array(access), None) => write!(out, " {}+{}", program.arrays[access.array].id, access.offset),
            (other, None) => write!(out, " {other:?}"),
        };
    };
    for Dst { place: its, class, mask, .. } in &data.dsts {
        place(&mut out, its);
        let _ = write!(out, "{class:?}{:x}", mask.0);
    }
    if !with_srcs {
        return out;
    }
    // Aliases make vectors of groups, in other registers.
    if data.opcode.category() == Category::Texture && !data.dsts.is_empty() {
        for src in &data.with_vectors().srcs {
            let _ = write!(out, " {:?}{:x}", src.class, src.mask.0);
        }
        return out;
    }
    for Src { operand, class, mask, mods, .. } in &data.srcs {
        match operand {
            SrcOperand::Place(its) => place(&mut out, its),
            other => {
                let _ = write!(out, " {other:?}");
            }
        }
        let _ = write!(out, "{class:?}{:x}{mods:?}", mask.0);
    }
    out
}

/// The pairs of equal keys that occur once in each list.
fn unique(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let once = |list: &[&str]| -> FxHashMap<String, Option<usize>> {
        let mut all: FxHashMap<String, Option<usize>> = FxHashMap::default();
        for (at, &key) in list.iter().enumerate() {
            all.entry(key.to_owned()).and_modify(|it| *it = None).or_insert(Some(at));
        }
        all
    };
    let before = once(old);
    let pairs = once(new).into_iter().filter_map(|(key, at)| Some(((*before.get(&key)?)?, at?)));
    pairs.collect()
}

/// The pairs that are in every longest common subsequence.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old == new {
        return (0..old.len()).map(|at| (at, at)).collect();
    }
    let width = new.len() + 1;
    if width.saturating_mul(old.len() + 1) > MOST_ENTRIES {
        return unique(old, new);
    }
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut number = |key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    };
    let old: Vec<u32> = old.iter().map(|&key| number(key)).collect();
    let new: Vec<u32> = new.iter().map(|&key| number(key)).collect();
    // The lengths for the first `i` and `j` entries, and for those from `i` and `j` on.
    let mut fronts = vec![0_u16; width * (old.len() + 1)];
    let mut backs = fronts.clone();
    for i in 0..old.len() {
        for j in 0..new.len() {
            fronts[(i + 1) * width + j + 1] = if old[i] == new[j] {
                fronts[i * width + j] + 1
            } else {
                fronts[i * width + j + 1].max(fronts[(i + 1) * width + j])
            };
        }
    }
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            backs[i * width + j] = if old[i] == new[j] {
                backs[(i + 1) * width + j + 1] + 1
            } else {
                backs[(i + 1) * width + j].max(backs[i * width + j + 1])
            };
        }
    }
    let longest = backs[0];
    // One pair may be at each place of a longest subsequence, or several.
    let mut places: SecondaryMap<Instr, (u32, (usize, usize))> = SecondaryMap::new();
    for i in 0..old.len() {
        for j in 0..new.len() {
            let front = fronts[i * width + j];
            if old[i] == new[j] && front + 1 + backs[(i + 1) * width + j + 1] == longest {
                let place = &mut places[Instr::from_u32(front.into())];
                *place = (place.0 + 1, (i, j));
            }
        }
    }
    places.values().filter(|(count, _)| *count == 1).map(|&(_, pair)| pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::{Category, text};
    use ir3_programs::mesa::Log;
    use std::path::Path;

    #[test]
    fn only_what_all_alignments_pair_is_paired() {
        let pairs = |old: &[&str], new: &[&str]| common(old, new);
        assert_eq!(pairs(&["a", "b"], &["a", "b"]), [(0, 0), (1, 1)]);
        assert_eq!(pairs(&["a", "b", "c"], &["a", "x", "c"]), [(0, 0), (2, 2)]);
        // It is ambiguous which of two equal ones was removed.
        assert_eq!(pairs(&["a", "s", "s", "b"], &["a", "s", "b"]), [(0, 0), (3, 2)]);
        // One of two that are exchanged.
        assert_eq!(pairs(&["a", "s", "t", "b"], &["a", "t", "s", "b"]), [(0, 0), (3, 3)]);
        assert_eq!(pairs(&["s", "s"], &["s", "s", "n"]), [(0, 0), (1, 1)]);
        let mut unordered = unique(&["a", "s", "s", "b"], &["b", "s", "a"]);
        unordered.sort_unstable();
        assert_eq!(unordered, [(0, 2), (3, 0)]);
    }

    /// The serial numbers of the instructions of each section, in order.
    fn completed(sections: &[(&str, &str)]) -> Vec<Vec<u32>> {
        let block = |(name, lines): &(&str, &str)| {
            let lines: String = lines.lines().map(|line| format!("\t{}\n", line.trim())).collect();
            format!("AFTER: {name}:\nblock2387275136 {{\n{lines}}}\n")
        };
        let text: String = sections.iter().map(block).collect();
        let log = Log::read(Path::new("x.log"), &text).expect("a log");
        let phases = Phase::of(&log.sections);
        let mut reads: Vec<_> = log.sections.iter().map(|it| text::read_with_positions(&it.text)).collect();
        assert!(reads.iter().all(Result::is_ok), "{reads:?}");
        assert!(complete(&log.sections, &phases, &mut reads).is_some());
        let serials = |program: &Program| program.iter_instrs().map(|(_, instr)| program.serials[instr]).collect();
        reads.iter().flatten().map(|read| serials(&read.program)).collect()
    }

    const SCHEDULED: &str = "0000:001: _meta:in ssa_9
        0001:001: add.u ssa_2, ssa_9, c0.x
        0002:000: stib.base0 imm[0.000000,0,0x0], ssa_2, ssa_9
        0003:000: stib.base0 imm[0.000000,0,0x0], ssa_9, ssa_2
        0004:000: end";

    #[test]
    fn instructions_are_followed_through_allocation_and_the_second_scheduler() {
        let allocated = "0000:001: _meta:in r0.x
            0001:001: add.u r0.y, r0.x, c0.x
            0000:000: mov.u32u32 r1.x, r0.y
            0002:000: stib.base0 imm[0.000000,0,0x0], r1.x, r0.x
            0003:000: stib.base0 imm[0.000000,0,0x0], r0.x, r1.x
            0004:000: end";
        let scheduled = "0000:001: _meta:in r0.x
            0001:001: add.u r0.y, r0.x, c0.x
            0000:000: mov.u32u32 r1.x, r0.y
            0003:000: stib.base0 imm[0.000000,0,0x0], r0.x, r1.x
            0002:000: stib.base0 imm[0.000000,0,0x0], r1.x, r0.x
            0004:000: end";
        let last = "0001:001: add.u r0.y, r0.x, c0.x
            0002:000: (nop2)mov.u32u32 r1.x, r0.y
            0003:000: nop
            0004:000: stib.base0 imm[0.000000,0,0x0], r0.x, r1.x
            0005:000: stib.base0 imm[0.000000,0,0x0], r1.x, r0.x
            0006:000: (jp)end"
            .replace("(nop2)", "");
        let serials = completed(&[
            ("ir3_sched", SCHEDULED),
            ("register allocation", allocated),
            ("ir3_postsched", scheduled),
            ("ir3_legalize", &last),
        ]);
        let [input, sum, first, second, end] = serials[0][..] else { panic!("{serials:?}") };
        assert_eq!((input, sum), (9, 2));
        let copy = serials[1][2];
        assert_eq!(serials[1], [input, sum, copy, first, second, end]);
        assert_eq!(serials[2], [input, sum, copy, second, first, end]);
        let nop = serials[3][2];
        assert_eq!(serials[3], [sum, copy, nop, second, first, end]);
        assert!(!serials[..3].iter().flatten().any(|&serial| serial == nop));
    }

    #[test]
    fn two_instructions_that_may_be_exchanged_have_new_numbers() {
        // If the order may differ, opcodes do not distinguish two stores.
        let allocated = "0000:001: _meta:in r0.x
            0001:001: add.u r0.y, r0.x, c0.x
            0003:000: stib.base0 imm[0.000000,0,0x0], r0.x, r0.y
            0002:000: stib.base0 imm[0.000000,0,0x0], r0.y, r0.x
            0004:000: end";
        let serials = completed(&[("ir3_cp", SCHEDULED), ("register allocation", allocated)]);
        assert_eq!((serials[1][0], serials[1][1], serials[1][4]), (9, 2, serials[0][4]));
        assert!(!serials[0].contains(&serials[1][2]) && !serials[0].contains(&serials[1][3]));
    }

    #[test]
    fn the_end_of_a_preamble_jumps() {
        let read = |text: &str| text::read_with_positions(text).expect("a program");
        let mut release =
            read("block1 {\n\t0001:000: \tshpe\n\t/* succs: block2 */\n}\nblock2 {\n\t0002:000: \tend\n}\n");
        jump_after_preamble(&mut release.program);
        let opcodes: Vec<Opcode> =
            release.program.iter_instrs().map(|(_, instr)| release.program.instrs[instr].opcode).collect();
        assert_eq!(opcodes, [Opcode::Shpe, Opcode::Jump, Opcode::End]);
    }

    /// The text without serial numbers.
    fn stripped(text: &str) -> String {
        let line = |line: &str| {
            let bare = line.trim_start_matches('\t');
            let tabs = &line[..line.len() - bare.len()];
            let is_instr = !tabs.is_empty() && bare.starts_with(|c: char| c.is_ascii_digit());
            match bare.split_once(':').filter(|_| is_instr) {
                Some((_, rest)) => format!("{tabs}{rest}\n"),
                None => format!("{line}\n"),
            }
        };
        text.lines().map(line).collect()
    }

    /// Returns true for instructions of which something is recovered: accesses, inputs, and elements of arrays.
    fn is_completed(data: &InstrData) -> bool {
        let mut places = data.dsts.iter().map(|dst| &dst.place).chain(data.srcs.iter().filter_map(|src| src.place()));
        matches!(data.opcode.category(), Category::Memory | Category::Texture | Category::Barrier)
            || data.opcode == Opcode::Input
            || places.any(|place| place.is_relative() || matches!(place, Place::Array(_)))
    }

    /// Logs of debug builds, if they are installed: the numbers that are found without those that the text has name the
    /// same instructions.
    #[test]
    fn instructions_of_debug_logs_are_not_taken_for_others() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/mesa/train");
        if !folder.exists() {
            println!("skipped: {} is absent", folder.display());
            return;
        }
        let (mut right, mut wrong, mut unknown) = (0, Vec::new(), 0);
        for name in ["a660", "a660-spillall", "a750-spillall", "a630"] {
            let mut files: Vec<_> = std::fs::read_dir(folder.join(name)).expect("a folder").flatten().collect();
            files.sort_by_key(|file| file.path());
            for file in files.iter().step_by(3) {
                let text = std::fs::read_to_string(file.path()).expect("a log");
                for shader in ir3_programs::mesa::shader::shaders_of(&file.path(), &text) {
                    let phases = Phase::of(&shader.passes);
                    let read = |text: &str| text::read_with_positions(text);
                    let debug: Vec<_> = shader.passes.iter().map(|section| read(&section.text)).collect();
                    let mut release: Vec<_> =
                        shader.passes.iter().map(|section| read(&stripped(&section.text))).collect();
                    complete(&shader.passes, &phases, &mut release);
                    let mut true_numbers: FxHashMap<u32, u32> = FxHashMap::default();
                    let mut sections: FxHashMap<u32, usize> = FxHashMap::default();
                    for (at, (debug, release)) in debug.iter().zip(&release).enumerate() {
                        let (Ok(debug), Ok(release)) = (debug, release) else { continue };
                        let pairs = debug.program.iter_instrs().zip(release.program.iter_instrs());
                        for ((_, instr), (_, own)) in pairs {
                            // Passes make new branches for those that they replace; nothing is recovered of these.
                            if debug.program.instrs[instr].opcode.category() == Category::Flow {
                                continue;
                            }
                            let (known, found) = (debug.program.serials[instr], release.program.serials[own]);
                            match true_numbers.insert(found, known) {
                                Some(same) if same == known => right += 1,
                                // A move matches any other with the same operands: nothing is recovered for it.
                                Some(_) if !is_completed(&debug.program.instrs[instr]) => {}
                                Some(_) => wrong.push(format!(
                                    "{}: {} {:04} {}",
                                    file.path().display(),
                                    shader.passes[at].title(),
                                    known,
                                    debug.program.instrs[instr].opcode
                                )),
                                None => unknown += usize::from(sections.contains_key(&known)),
                            }
                            sections.insert(known, at);
                        }
                    }
                }
            }
        }
        println!("{right} right, {unknown} not found, {} wrong", wrong.len());
        wrong.iter().take(40).for_each(|line| println!("{line}"));
        assert!(wrong.is_empty() && right > 20 * unknown);
    }
}
