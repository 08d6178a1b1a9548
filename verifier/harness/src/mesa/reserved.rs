//! Checks of the resources that a driver reserves for a program against its code.
//!
//! Mesa prints the resources that it reports to the driver: the size of the code, registers, the part of the constant
//! file that is loaded, scratch and shared memory, the branch stack (checked with the hazards), the width of waves. Too
//! much costs speed. With too little, the registers or the memory of another wave are written, and no run or proof of
//! the program alone shows it.

use super::recover::scratch;
use crate::check::final_code;
use ir3_compiler::ir3::{ArrayAccess, Opcode, Place, Program, SrcOperand, workload};
use ir3_compiler::stats::const_vectors;
use ir3_compiler::target::occupancy::{WaveWidth, WorkKind, Workload};
use ir3_compiler::target::{ALL, Target};
use ir3_programs::mesa::{Statistics, Waves, mesa_counts};

/// The first resource of which a final program uses more than Mesa's statistics report (`full registers: 14 used, 12
/// reserved`), or that the first statistic that contradicts the code.
pub(super) fn exceeded(program: &Program, said: &Statistics, target: &Target) -> Option<String> {
    let (plain, ..) = final_code(program).ok()?;
    let counted = mesa_counts(&with_starts(program, plain.clone()), target);
    let code = program.iter_instrs().filter(|&(_, instr)| !program.instrs[instr].opcode.is_meta());
    let limits = [
        ("dwords of code", 2 * code.count() as u64, said.get("dwords")),
        ("full registers", u64::from(counted.full), said.get("full")),
        ("half registers", u64::from(counted.half), said.get("half")),
        ("vectors of constants", u64::from(const_vectors(&plain, target)), said.get("constlen")),
    ];
    let of_waves = said.waves.map(|waves| {
        [
            ("vectors of constants", u64::from(const_vectors(&plain, target)), waves.constlen.map(u64::from)),
            ("bytes of scratch memory", u64::from(scratch::accessed(program)), waves.pvtmem_size.map(u64::from)),
            ("bytes of shared memory", u64::from(program.shared_size), waves.shared_size.map(u64::from)),
        ]
    });
    let beyond = |(what, used, said): (&str, u64, Option<u64>)| {
        let said = said.filter(|&said| used > said)?;
        Some(format!("{what}: {used} used, {said} reserved"))
    };
    let used = limits.into_iter().chain(of_waves.into_iter().flatten()).find_map(beyond);
    used.or_else(|| differs(program, said, target))
}

/// The first statement that the code, the GPU or another statement contradicts.
fn differs(program: &Program, said: &Statistics, target: &Target) -> Option<String> {
    let has_preamble = program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::Shps);
    if said.early_preamble() == Some(true) && !has_preamble {
        return Some("early-preamble: 1, and the code has no preamble".to_owned());
    }
    let waves = said.waves?;
    if let (Some(length), Some(other)) = (waves.constlen, said.get("constlen"))
        && u64::from(length) != other
    {
        return Some(format!("constlen: {length}, and {other} among the statistics"));
    }
    if let (Some(size), Some(dwords)) = (waves.size, said.get("dwords"))
        && u64::from(size) < 4 * dwords
    {
        return Some(format!("size: {size} bytes, and {dwords} dwords among the statistics"));
    }
    if let Some(merged) = waves.merged_registers.filter(|&merged| merged != target.merged_regs) {
        let generation = target.generation;
        return Some(format!("mergedregs: {}, and {} on {generation}", u8::from(merged), u8::from(target.merged_regs)));
    }
    let full = u32::try_from(said.get("full")?).ok()?;
    // Any GPU of the generation may be meant, unless the target is not the default of its generation.
    let is_named = *target != Target::of_generation(target.generation);
    let gpus = ALL.iter().filter(|gpu| if is_named { *gpu == target } else { gpu.generation == target.generation });
    let fitting = gpus.filter_map(|gpu| fitting_waves(program, full, &waves, gpu)).max();
    match fitting {
        None => {
            let double = u8::from(waves.double);
            Some(format!(
                "double_threadsize: {double}, and the registers or the branch stack fit no wave of this width"
            ))
        }
        Some(most) if waves.max_waves > most => {
            Some(format!("max_waves: {}, and the registers and the memory hold {most}", waves.max_waves))
        }
        _ => None,
    }
}

/// The waves of the printed width that fit into a GPU with the reserved resources; `None` if waves of this width do not
/// exist there.
fn fitting_waves(program: &Program, full: u32, waves: &Waves, gpu: &Target) -> Option<u32> {
    let kind = match workload(program).kind {
        WorkKind::Compute { threads, barrier, .. } => {
            WorkKind::Compute { threads, shared_size: waves.shared_size.unwrap_or(program.shared_size), barrier }
        }
        kind => kind,
    };
    let width = if waves.double { WaveWidth::Double } else { WaveWidth::Single };
    let branchstack = waves.branchstack.unwrap_or(0);
    let is_too_deep = branchstack.min(2 * gpu.threadsize_base) > gpu.branchstack_size;
    if waves.double && (!gpu.double_threadsize || kind == WorkKind::Geometry || is_too_deep) {
        return None;
    }
    let work = Workload { kind, branchstack, width };
    Some(gpu.occupancy(&work, full).waves).filter(|&waves| waves > 0)
}

/// The program with accesses to arrays that start where they do: the text names the register of some element.
fn with_starts(program: &Program, mut plain: Program) -> Program {
    let started = |place: Option<&Place>| match place {
        Some(&Place::Array(ArrayAccess { array, relative: true, base, .. })) => {
            base.expand().map(|start| Place::Relative { offset: start.0 as i16, size: program.arrays[array].length })
        }
        _ => None,
    };
    for (instr, data) in &mut plain.instrs {
        let said = &program.instrs[instr];
        for (dst, said) in data.dsts.iter_mut().zip(&said.dsts) {
            dst.place = started(Some(&said.place)).unwrap_or(dst.place);
        }
        for (src, said) in data.srcs.iter_mut().zip(&said.srcs) {
            if let (SrcOperand::Place(place), Some(start)) = (&mut src.operand, started(said.place())) {
                *place = start;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::text;
    use ir3_programs::mesa::Log;
    use std::path::Path;

    const CODE: &str =
        "// {stage=fragment}\nblock1 {\n\t0001:0000:000: \tadd.f r7.x, c4.x, c4.y\n\t0002:0000:000: \tend\n}\n";
    const LOG: &str = "\
; FRAG prog 1/1: 5 instr, 0 nops, 5 non-nops, 4 mov, 0 cov, 32 dwords
; FRAG prog 1/1: 0 last-baryf, 0 last-helper, 0 half, 8 full, 8 constlen
; gpu gen 6, mergedregs 1, double_threadsize 1, constlen 8, pvtmem_size 0, shared_size 0, branchstack 0, size 128 bytes, max_waves 12
";

    fn found(log: &str, gpu: &str) -> Option<String> {
        let log = format!("Native code for unnamed FRAG shader (null) with sha1 00:\nend\n{log}");
        let statistics = Log::read(Path::new("x.log"), &log).unwrap().statistics();
        let program = text::read(&CODE.replace("c4.x, c4.y", "r0.x, c4.y")).unwrap();
        exceeded(&program, &statistics[0], &Target::by_name(gpu).unwrap())
    }

    #[test]
    fn shared_constants_are_loaded_on_their_own() {
        let log = format!("Native code for unnamed FRAG shader (null) with sha1 00:\nend\n{LOG}");
        let statistics = Log::read(Path::new("x.log"), &log).unwrap().statistics();
        let found = |constant: &str, gpu| {
            let program = text::read(&CODE.replace("c4.x, c4.y", &format!("{constant}, c4.y"))).unwrap();
            exceeded(&program, &statistics[0], &Target::by_name(gpu).unwrap())
        };
        assert_eq!(found("c504.x", "a618"), None);
        assert_eq!(found("c511.w", "a618"), None);
        let exceeded = |used| Some(format!("vectors of constants: {used} used, 8 reserved"));
        assert_eq!(found("c503.w", "a618"), exceeded(504));
        assert_eq!(found("c504.x", "a750"), exceeded(505));
    }

    #[test]
    fn statements_agree_with_the_code_and_the_gpu() {
        // The default for a6xx is the a660; other GPUs of a6xx hold more waves of eight registers.
        assert_eq!(found(LOG, "a660"), None);
        assert_eq!(found(LOG, "a618"), None);
        assert_eq!(found(LOG, "a650").as_deref(), Some("max_waves: 12, and the registers and the memory hold 8"));
        let changed = |from: &str, to: &str| found(&LOG.replacen(from, to, 1), "a618").unwrap_or_default();
        for (from, to, what) in [
            ("mergedregs 1", "mergedregs 0", "mergedregs: 0, and 1 on a6xx"),
            ("constlen 8", "constlen 12", "constlen: 12, and 8 among the statistics"),
            ("constlen 8", "constlen 4", "vectors of constants: 5 used, 4 reserved"),
            ("32 dwords", "2 dwords", "dwords of code: 4 used, 2 reserved"),
            ("size 128 bytes", "size 16 bytes", "size: 16 bytes, and 32 dwords among the statistics"),
            ("max_waves 12", "max_waves 16", "max_waves: 16, and the registers and the memory hold 12"),
            (
                "8 full",
                "64 full",
                "double_threadsize: 1, and the registers or the branch stack fit no wave of this width",
            ),
            ("8 full", "7 full", "full registers: 8 used, 7 reserved"),
        ] {
            assert_eq!(changed(from, to), what, "{from}");
        }
        assert_eq!(changed("max_waves 12", "max_waves 10"), "", "fewer waves cost time only");
        let early = format!("{LOG}; 7 preamble instr, 1 early-preamble\n");
        assert_eq!(found(&early, "a618").as_deref(), Some("early-preamble: 1, and the code has no preamble"));
    }
}
