//! The guarantee of SSA-based allocation: the number of registers that a program needs is known before any is assigned,
//! and met exactly. Random programs of every profile, on every generation, with limits from a handful of registers to
//! all:
//!
//! - spilling refuses a program by an error that names the reason, or leaves one whose pressure fits the limit;
//! - assignment never fails when the pressure fits;
//! - inputs and outputs have the registers that are given, as some are in a third of the programs;
//! - assignment uses no register above the size that was computed before, and where that is all registers, none above
//!   the pressure itself.
//!
//! `IR3_PROPERTY_PROGRAMS=100000 cargo test --release -p ir3-verifier --test suite allocation_property:: --
//! --nocapture` prints the counts. The default is 1,200 programs.

use ir3_compiler::ir3::{Dst, Opcode, PhysReg, Place, Program, RegClass, RegFile, Src, SrcOperand};
use ir3_compiler::pipeline::{ErrorKind, Options, RegisterLimit, Stage, run_stage, select};
use ir3_compiler::regalloc::pressure::{Analysis, Pressure};
use ir3_compiler::regalloc::{run_within, target_size};
use ir3_compiler::target::{RegisterFiles, Target};
use ir3_programs::generator::{Features, Profile, Seeded, assign_fixed_registers, from_seed};
use ir3_programs::seeds::program_seed;
use ir3_semantics::support::threads;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One or two of each generation.
const GPUS: [&str; 8] = ["a320", "a420", "a540", "a610", "a640", "a660", "a740", "a750"];

/// The default number of programs.
const PROGRAMS: u64 = 1200;

/// The end, in half registers, of the registers that an operand names in its file: in the full file, which includes the
/// half registers where files are merged, or in the half file.
fn extent(place: &Place, class: RegClass, components: u32) -> u32 {
    let units = u32::from(class.component_units());
    match *place {
        Place::Reg(reg) | Place::Assigned(_, reg) => (u32::from(reg.0) + components) * units,
        // An element of an array, whose offset does not determine the end of the array: `used` counts arrays.
        Place::Relative { .. } | Place::Value(_) | Place::Array(_) => 0,
    }
}

/// The sizes of the general registers that a program uses: units of the full and of the half file.
fn used(program: &Program, merged: bool) -> (u32, u32) {
    let (mut full, mut half) = (0, 0);
    let mut see = |place: &Place, class: RegClass, components: u32| {
        if class.file != RegFile::General {
            return;
        }
        let end = extent(place, class, components);
        if class.half {
            half = half.max(end);
        }
        if !class.half || merged {
            full = full.max(end);
        }
    };
    for array in program.arrays.values() {
        array.base.iter().for_each(|&base| see(&Place::Reg(base), array.class, array.length.into()));
    }
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        data.dsts.iter().for_each(|Dst { place, class, mask, .. }| see(place, *class, mask.span()));
        for Src { operand, class, mask, .. } in &data.srcs {
            if let SrcOperand::Place(place) = operand {
                see(place, *class, mask.span());
            }
        }
    }
    (full, half)
}

/// The second half of the property: the program uses no register above its limit.
fn check_extent(program: &Program, merged: bool, full: u32, half: u32) -> Result<(), String> {
    let (used_full, used_half) = used(program, merged);
    if used_full > full.next_multiple_of(2) || used_half > half {
        return Err(format!("{used_full} and {used_half} half units are used, {full} and {half} were allowed"));
    }
    Ok(())
}

/// From a handful of registers to all, small numbers more often.
fn draw_limit(seed: u64) -> RegisterLimit {
    let drawn = program_seed(seed ^ 0x6c69_6d69, 0);
    let scale = 1u64 << (drawn >> 8 & 7);
    match drawn % 8 {
        0 => RegisterLimit::Minimum(0),
        1 => RegisterLimit::Minimum((drawn >> 16) as u16 % 8),
        2 => RegisterLimit::Target,
        // 2 to 3, 3 to 6, … 129 to 256, of which 192 are all.
        _ => RegisterLimit::Registers((1 + scale + (drawn >> 16) % (scale + 1)).min(192) as u16),
    }
}

/// The result for a program.
struct Tried {
    limit: RegisterLimit,
    /// The number of inputs and outputs that had a given register.
    given: usize,
    /// The error, if it was refused.
    refused: Option<String>,
    spilled: bool,
    /// With exactly the registers that it needs, it used the last one.
    used_last: bool,
    /// The check against the pressure, after every general register was moved up by one.
    shifted: Result<(), String>,
}

fn is_reload(program: &Program) -> bool {
    program.iter_instrs().any(|(_, instr)| program.instrs[instr].opcode == Opcode::ReloadMacro)
}

/// The registers of inputs and outputs, where they are assigned.
fn interface(program: &Program) -> Vec<Option<PhysReg>> {
    let mut list = Vec::new();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        match data.opcode {
            Opcode::Input => list.extend(data.dsts.iter().map(|dst| dst.place.reg())),
            Opcode::End => list.extend(data.srcs.iter().map(|src| src.place().and_then(Place::reg))),
            _ => {}
        }
    }
    list
}

/// A planted bug: an allocator that uses one register more. Moves every general register up by one.
fn shift(program: &mut Program, merged: bool) {
    let move_up = |place: &mut Place, class: RegClass| {
        let by = if class.half && merged { 2 } else { 1 };
        match place {
            Place::Reg(reg) if class.file == RegFile::General => reg.0 += by,
            Place::Relative { offset, .. } => *offset += by as i16,
            _ => {}
        }
    };
    for array in program.arrays.values_mut() {
        array.base.iter_mut().for_each(|base| base.0 += if array.class.half && merged { 2 } else { 1 });
    }
    for data in program.instrs.values_mut() {
        data.dsts.iter_mut().for_each(|dst| move_up(&mut dst.place, dst.class));
        for src in data.srcs.iter_mut() {
            if let SrcOperand::Place(place) = &mut src.operand {
                move_up(place, src.class);
            }
        }
    }
}

/// The facts that are known before any register is assigned: the pressure, and the number of registers that cost no
/// wave.
fn known_before(program: &Program, target: &Target, files: RegisterFiles) -> (Pressure, RegisterFiles) {
    let mut copy = program.clone();
    let analysis = Analysis::new(&mut copy, target).expect("a program that can be analysed");
    let pressure = analysis.max_pressure(&copy);
    (pressure, target_size(&copy, &pressure, target, files))
}

/// Tries one program. `None` if selection refuses it.
fn try_program(seed: u64, profile: Profile, target: &Target) -> Option<Tried> {
    let generated = from_seed(seed, profile, Features::of(target));
    let mut program = select(&generated.shader, target).ok()?;
    let limit = draw_limit(seed);
    let options = Options { registers: limit, ..Options::default() };
    let given = match seed % 3 {
        0 => assign_fixed_registers(&mut Seeded::new(seed), &mut program, target.merged_regs, limit.files(target).full),
        _ => 0,
    };
    let place = format!("{}, {}, seed {seed}, limit {limit}", target.name, profile.name());
    let stages = Stage::ALL.into_iter().filter(|&stage| stage > Stage::Select && stage < Stage::RegisterAllocation);
    for stage in stages {
        if let Err(error) = run_stage(stage, &mut program, target, &options) {
            assert_eq!(error.kind, ErrorKind::NeedsSpilling, "{place}: {error}");
            let why = error.reason.to_string();
            let named = why.contains("with all else in memory") || why.contains("no private memory");
            assert!(named && stage == Stage::Spill, "{place}: {error}");
            let reason = if why.contains("no private memory") { "no private memory" } else { "below the least" };
            let refused = Some(reason.to_owned());
            return Some(Tried { limit, given: 0, refused, spilled: false, used_last: false, shifted: Ok(()) });
        }
    }
    let files = limit.files(target);
    let (pressure, size) = known_before(&program, target, files);
    assert!(pressure.full <= files.full && pressure.half <= files.half, "{place}: {pressure:?} was not made to fit");
    // In the files of the limit, the number of registers that cost no wave.
    let mut roomy = program.clone();
    run_within(&mut roomy, target, files).unwrap_or_else(|error| panic!("{place}: {error}, with {pressure:?}"));
    if let Err(error) = check_extent(&roomy, target.merged_regs, size.full, size.half) {
        panic!("{place}: {error}, with {pressure:?}");
    }
    // With exactly the registers that the program needs.
    let exact = RegisterFiles { full: pressure.full.next_multiple_of(2), half: pressure.half, ..files };
    let mut tight = program.clone();
    run_within(&mut tight, target, exact).unwrap_or_else(|error| panic!("{place}: {error}, with exactly {pressure:?}"));
    if let Err(error) = check_extent(&tight, target.merged_regs, pressure.full, pressure.half) {
        panic!("{place}: {error}");
    }
    let wanted = interface(&program);
    for after in [interface(&roomy), interface(&tight)] {
        let kept = wanted.iter().zip(&after).all(|(before, after)| before.is_none() || before == after);
        assert!(kept && wanted.len() == after.len(), "{place}: {wanted:?} became {after:?}");
    }
    let (full, half) = used(&tight, target.merged_regs);
    // The pressure counts arrays to the end of the last one that is live, with dead ones below it.
    let has_half_arrays = tight.arrays.values().any(|array| array.class.half && array.base.is_some());
    let used_last = full + 1 >= pressure.full && (half >= pressure.half || has_half_arrays);
    shift(&mut tight, target.merged_regs);
    let shifted = check_extent(&tight, target.merged_regs, pressure.full, pressure.half);
    Some(Tried { limit, given, refused: None, spilled: is_reload(&program), used_last, shifted })
}

#[derive(Default)]
struct LimitCounts {
    programs: u64,
    not_selected: u64,
    refused: BTreeMap<String, u64>,
    spilled: u64,
    with_given: u64,
    used_last: u64,
    shift_seen: u64,
}

impl LimitCounts {
    fn add(&mut self, tried: Option<&Tried>) {
        self.programs += 1;
        let Some(tried) = tried else {
            self.not_selected += 1;
            return;
        };
        if let Some(reason) = &tried.refused {
            *self.refused.entry(reason.clone()).or_default() += 1;
            return;
        }
        self.spilled += u64::from(tried.spilled);
        self.with_given += u64::from(tried.given > 0);
        self.used_last += u64::from(tried.used_last);
        self.shift_seen += u64::from(tried.shifted.is_err());
    }

    fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    fn assigned(&self) -> u64 {
        self.programs - self.not_selected - self.refused()
    }
}

/// The row of a limit in the table.
fn bucket(limit: RegisterLimit) -> String {
    match limit {
        RegisterLimit::Target => "all".to_owned(),
        RegisterLimit::Minimum(0) => "min".to_owned(),
        RegisterLimit::Minimum(_) => "min+n".to_owned(),
        RegisterLimit::Registers(n) => {
            let first = n.next_power_of_two() / 2 + 1;
            format!("{first:>3} to {}", n.next_power_of_two().min(192))
        }
    }
}

#[test]
fn what_fits_is_assigned_and_in_no_more_registers() {
    let programs = std::env::var("IR3_PROPERTY_PROGRAMS").map_or(PROGRAMS, |text| text.parse().expect("a number"));
    let next = AtomicU64::new(0);
    type CountTable = BTreeMap<(u8, String), LimitCounts>;
    let table: Mutex<CountTable> = Mutex::new(BTreeMap::new());
    threads::run(threads::default_jobs(), || {
        let mut local: CountTable = BTreeMap::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= programs {
                break;
            }
            let seed = program_seed(0xa110c, number);
            let profile = Profile::ALL[number as usize % Profile::ALL.len()];
            let gpu = GPUS[number as usize / Profile::ALL.len() % GPUS.len()];
            let target = Target::by_name(gpu).expect("a known GPU");
            let tried = try_program(seed, profile, &target);
            let limit = bucket(tried.as_ref().map_or_else(|| draw_limit(seed), |tried| tried.limit));
            let rows = [(0, "all".to_owned()), (1, profile.name().to_owned()), (2, gpu.to_owned()), (3, limit)];
            for row in rows {
                local.entry(row).or_default().add(tried.as_ref());
            }
        }
        let mut table = table.lock().expect("no other thread failed");
        for (row, counts) in local {
            let sum = table.entry(row).or_default();
            sum.programs += counts.programs;
            sum.not_selected += counts.not_selected;
            sum.spilled += counts.spilled;
            sum.with_given += counts.with_given;
            sum.used_last += counts.used_last;
            sum.shift_seen += counts.shift_seen;
            counts.refused.into_iter().for_each(|(why, n)| *sum.refused.entry(why).or_default() += n);
        }
    });
    let table = table.into_inner().expect("no thread failed");
    println!(
        "{:<12} {:>9} {:>9} {:>9} {:>9} {:>9}  refused",
        "", "programs", "assigned", "spilled", "given", "used last"
    );
    let titles = ["", "profile", "GPU", "registers"];
    let mut last = 0;
    for ((kind, name), counts) in &table {
        if *kind != last {
            println!("{}", titles[usize::from(*kind)]);
            last = *kind;
        }
        let LimitCounts { programs, spilled, with_given, used_last, .. } = counts;
        let refused: Vec<String> = counts.refused.iter().map(|(why, n)| format!("{n} {why}")).collect();
        println!(
            "{name:<12} {programs:>9} {:>9} {spilled:>9} {with_given:>9} {used_last:>9}  {}",
            counts.assigned(),
            refused.join(", ")
        );
    }
    let all = &table[&(0, "all".to_owned())];
    assert_eq!(all.not_selected, 0);
    assert_eq!(all.shift_seen, all.assigned(), "an allocator that uses one register more is not always seen");
    assert!(all.used_last == all.assigned(), "needed registers are used: {} of {}", all.used_last, all.assigned());
    assert!(all.with_given * 8 > all.assigned(), "{} programs have given registers", all.with_given);
    // Before a5xx nothing can be spilled, and with many registers nothing is.
    assert!(all.spilled * 4 > all.assigned(), "{} of {} programs spilled", all.spilled, all.assigned());
    assert!(all.refused() * 2 < all.programs && table.len() > 12 + 8 + 8);
}
