//! The register limits that a campaign compiles its programs with.
//!
//! With all registers, programs neither spill nor evict values; with the fewest, every value is in memory. Bugs are
//! between these, so limits are drawn: from the fewest registers of the program upwards, small ones more often.

use ir3_compiler::pipeline::RegisterLimit;
use ir3_programs::generator::Profile;
use ir3_programs::seeds::program_seed;

/// More registers than any program needs beyond the fewest: a limit of this is the need of the program without
/// spilling.
const ALL_REGISTERS: u16 = 192;

/// The register limits of the programs of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// All programs have this limit.
    Fixed(RegisterLimit),
    /// A random limit for each program, from the fewest registers to all.
    Drawn,
    /// All registers; for four in five programs of the profile `pressure` and for two in five of the others as few as
    /// it needs: in three of eight cases without spilling, otherwise the fewest that are possible, and up to 7 or,
    /// rarely, 27 more.
    ByProfile,
}

impl Limits {
    /// Returns the limit of a program.
    pub fn of(self, profile: Profile, program: u64) -> RegisterLimit {
        match self {
            Self::Fixed(limit) => limit,
            Self::Drawn => program_registers(program),
            Self::ByProfile => {
                let drawn = program_seed(program ^ 0x7265_6773, 0);
                // Programs of `pressure` with all registers reach the upper half of the file; the others are short of
                // registers now and then.
                let is_short = match profile {
                    Profile::Pressure => !drawn.is_multiple_of(5),
                    _ => drawn % 5 < 2,
                };
                match drawn / 512 % 8 {
                    _ if !is_short => RegisterLimit::Target,
                    // No more than the program needs without spilling: vectors stay together, and have to be moved.
                    0..=2 => RegisterLimit::Minimum(ALL_REGISTERS),
                    3 => RegisterLimit::Minimum((drawn / 4096 % 28) as u16),
                    _ => RegisterLimit::Minimum((drawn / 4096 % 8) as u16),
                }
            }
        }
    }
}

/// One program of this many is compiled with further register limits, in a campaign that draws them by profile.
const SEVERAL_LIMITS: u64 = 8;

/// The further register limits of a program: some from the fewest registers to all. The one of the program may be among
/// them.
pub(super) fn further_limits(program: u64) -> Vec<RegisterLimit> {
    let drawn = program_seed(program ^ 0x6675_7274, 0);
    if !drawn.is_multiple_of(SEVERAL_LIMITS) {
        return Vec::new();
    }
    let few = RegisterLimit::Minimum((drawn / 4096 % 8) as u16);
    vec![few, RegisterLimit::Minimum(ALL_REGISTERS), RegisterLimit::Target]
}

/// Draws the register limit of a program: from as few registers as it needs to all, small limits more often than large
/// ones.
pub fn program_registers(program: u64) -> RegisterLimit {
    let drawn = program_seed(program ^ 0x7265_6773, 0);
    match drawn % 8 {
        0 => RegisterLimit::Minimum(0),
        7 => RegisterLimit::Target,
        // 1 to 126 more; mostly 7 to 30, with which many programs just fit: then vectors are not split for spilling,
        // and have to be moved.
        _ => {
            let scale = 1 << [1, 2, 3, 3, 4, 4, 5, 6][(drawn >> 8 & 7) as usize];
            RegisterLimit::Minimum((scale + (drawn >> 16) % scale) as u16 - 1)
        }
    }
}
