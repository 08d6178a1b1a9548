//! The statistics that Mesa prints for a program.
//!
//! The code of each variant is followed by lines like `; FRAG prog 1/1: 5 instr, 0 nops, 5 non-nops, 4 mov, 0 cov, 32
//! dwords`, and the code of the last variant also by a line about waves: `; gpu gen 6, …, branchstack 1, …, max_waves
//! 16`.

use super::{Log, Section, SectionKind};
use ir3_compiler::ir3::{Program, ShaderStage};
use ir3_compiler::stats::{Stats, Waits};
use ir3_compiler::target::{Generation, Target};

/// The statistics of one variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The stage in the line: `VERT`, `BVERT`, `FRAG`, `CL` …
    pub stage: String,
    numbers: Vec<(String, u64)>,
    /// The line about waves, if this variant has one.
    pub waves: Option<Waves>,
}

/// The numbers in the line about waves. Some are not printed by all versions of Mesa.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waves {
    /// The wave has double width.
    pub double: bool,
    /// Half registers are halves of full ones.
    pub merged_registers: Option<bool>,
    /// The vec4s of the constant file that are loaded.
    pub constlen: Option<u32>,
    /// Scratch memory of a lane, in bytes.
    pub pvtmem_size: Option<u32>,
    /// Shared memory of the workgroup, in bytes.
    pub shared_size: Option<u32>,
    /// The nesting depth of divergent branches.
    pub branchstack: Option<u32>,
    /// The bytes of code that the driver uploads.
    pub size: Option<u32>,
    /// The number of waves that run at a time.
    pub max_waves: u32,
}

impl Statistics {
    /// Returns a number by its name in the line, such as `non-nops` or `(ss)`; `preamble` is the one of `7 preamble
    /// instr`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.numbers.iter().find(|(its, _)| its == name).map(|&(_, value)| value)
    }

    /// True if the driver runs the preamble before the wave has registers.
    #[must_use]
    pub fn early_preamble(&self) -> Option<bool> {
        self.get("early-preamble").map(|count| count != 0)
    }

    /// The stage; `BVERT` is a vertex shader, too.
    #[must_use]
    pub fn shader_stage(&self) -> Option<ShaderStage> {
        Some(match self.stage.as_str() {
            "VERT" | "BVERT" => ShaderStage::Vertex,
            "TCS" => ShaderStage::TessControl,
            "TES" => ShaderStage::TessEval,
            "GEOM" => ShaderStage::Geometry,
            "FRAG" => ShaderStage::Fragment,
            "CL" => ShaderStage::Compute,
            _ => return None,
        })
    }

    /// Converts to our statistics. Private memory, the classes of moves and branches are not printed by
    /// Mesa: they are taken from `counted`, our count of the same program. So are the ends of varyings and helper lanes
    /// and the length of the constant file, which the text of the pass shows less precisely than the words.
    #[must_use]
    pub fn to_stats(&self, counted: &Stats) -> Stats {
        let get = |name: &str| self.get(name).unwrap_or(0) as u32;
        Stats {
            instructions: get("instr"),
            nops: get("nops"),
            mov: get("mov"),
            mov_immediate: counted.mov_immediate,
            mov_constant: counted.mov_constant,
            cov: get("cov"),
            full: get("full"),
            half: get("half"),
            stp: counted.stp,
            ldp: counted.ldp,
            categories: ["cat0", "cat1", "cat2", "cat3", "cat4", "cat5", "cat6", "cat7"].map(get),
            preamble: get("preamble"),
            predicates: counted.predicates,
            branches: counted.branches,
            waits: Waits { ss: get("(ss)"), sy: get("(sy)"), sstall: get("sstall"), systall: get("systall") },
            dwords: get("dwords"),
            last_baryf: counted.last_baryf,
            last_helper: counted.last_helper,
            constlen: counted.constlen,
        }
    }

    fn add(&mut self, list: &str) {
        for item in list.split(", ") {
            let mut words = item.split_whitespace();
            let (Some(value), Some(name)) = (words.next(), words.next()) else { continue };
            if let (Ok(value), None) = (value.parse(), self.get(name)) {
                self.numbers.push((name.to_owned(), value));
            }
        }
    }
}

/// The statistics that Mesa prints for its final program, by our count. After its last section, Mesa puts `lock`, which
/// waits, and `unlock` before the `end` of compute shaders for a7xx.
#[must_use]
pub fn mesa_counts(program: &Program, target: &Target) -> Stats {
    let mut stats = Stats::of_final(program, target);
    if target.generation == Generation::A7xx && program.stage == Some(ShaderStage::Compute) {
        stats.instructions += 2;
        stats.categories[7] += 2;
        stats.waits.ss += 1;
        stats.waits.sy += 1;
        let code = program.iter_instrs().filter(|&(_, instr)| !program.instrs[instr].opcode.is_meta());
        stats.dwords = target.dwords(code.count() as u32 + 2);
    }
    stats
}

impl Log {
    /// The statistics of the variants, in order. The second listing at the end of a log repeats one of them and only
    /// adds the line about waves.
    #[must_use]
    pub fn statistics(&self) -> Vec<Statistics> {
        statistics(self.sections.iter().filter(|section| section.kind == SectionKind::Statistics))
    }
}

/// The statistics of the variants in such sections.
pub(super) fn statistics<'a>(sections: impl Iterator<Item = &'a Section>) -> Vec<Statistics> {
    let mut all: Vec<Statistics> = Vec::new();
    // The index in `all` of the current variant.
    let mut current = None;
    for line in sections.flat_map(|section| section.text.lines()) {
        let Some(line) = line.strip_prefix("; ") else { continue };
        if let Some((stage, list)) = line.split_once(": ").and_then(|(head, list)| {
            let (stage, rest) = head.split_once(' ')?;
            rest.starts_with("prog ").then_some((stage, list))
        }) {
            let at = all.iter().position(|its| its.stage == stage).unwrap_or_else(|| {
                all.push(Statistics { stage: stage.to_owned(), ..Statistics::default() });
                all.len() - 1
            });
            all[at].add(list);
            current = Some(at);
        } else if let Some(at) = current {
            if line.contains(" preamble instr") {
                all[at].add(line);
            } else if line.contains(" preamble-instr") {
                // The name since 25.1.
                all[at].add(&line.replace("preamble-instr", "preamble"));
            } else if line.starts_with("gpu gen ") {
                all[at].waves = Some(waves(line));
            }
        }
    }
    all
}

fn waves(line: &str) -> Waves {
    let get = |name: &str| {
        let value = line.split(", ").find_map(|item| item.strip_prefix(name)?.strip_prefix(' '));
        // `size 256 bytes` has a unit.
        value.and_then(|value| value.split(' ').next()?.parse().ok())
    };
    Waves {
        double: get("double_threadsize") == Some(1),
        merged_registers: get("mergedregs").map(|merged| merged != 0),
        constlen: get("constlen"),
        pvtmem_size: get("pvtmem_size"),
        shared_size: get("shared_size"),
        branchstack: get("branchstack"),
        size: get("size"),
        max_waves: get("max_waves").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const LOG: &str = "\
MESA: info: Native code for unnamed VERT shader (null) with sha1 00:
MESA: info: end
MESA: info: ; VERT: outputs: r0.x
MESA: info: ; VERT prog 1/1: 20 instr, 0 nops, 20 non-nops, 1 mov, 0 cov, 64 dwords
MESA: info: ; VERT prog 1/1: 0 last-baryf, 0 last-helper, 2 half, 5 full, 12 constlen
MESA: info: ; VERT prog 1/1: 0 sstall, 3 (ss), 0 systall, 0 (sy), 0 loops
MESA: info: ; 7 preamble instr, 0 early-preamble
MESA: info: Native code for unnamed BVERT shader (null) with sha1 01:
MESA: info: ; BVERT: outputs: r0.x
MESA: info: ; BVERT prog 1/2: 18 instr, 0 nops, 18 non-nops, 1 mov, 0 cov, 64 dwords
Native code for unnamed VERT shader (null) with sha1 00:
; VERT: outputs: r0.x
; VERT prog 1/1: 20 instr, 0 nops, 20 non-nops, 1 mov, 0 cov, 64 dwords
; gpu gen 6, mergedregs 1, double_threadsize 1, constlen 12, pvtmem_size 64, shared_size 8192, branchstack 3, size 256 bytes, max_waves 14
; hex listing: index[hi_lo] disasm
";

    #[test]
    fn figures_are_read() {
        let log = Log::read(Path::new("x.log"), LOG).unwrap();
        let [vert, bvert] = &log.statistics()[..] else { panic!() };
        assert_eq!((vert.stage.as_str(), bvert.stage.as_str()), ("VERT", "BVERT"));
        let names = ["instr", "non-nops", "mov", "half", "full", "(ss)", "preamble", "none"];
        let expected = [Some(20), Some(20), Some(1), Some(2), Some(5), Some(3), Some(7), None];
        assert_eq!(names.map(|name| vert.get(name)), expected);
        assert_eq!((bvert.get("instr"), bvert.get("full"), bvert.waves), (Some(18), None, None));
        let waves = Waves {
            double: true,
            merged_registers: Some(true),
            constlen: Some(12),
            pvtmem_size: Some(64),
            shared_size: Some(8192),
            branchstack: Some(3),
            size: Some(256),
            max_waves: 14,
        };
        assert_eq!(vert.waves, Some(waves));
    }
}
