//! Seeds of the programs and environments of a campaign, the same on every machine.

use crate::support::random::Random;

/// The seed of program `number` of a campaign: that number of its stream.
pub fn program_seed(campaign: u64, number: u64) -> u64 {
    Random::from_number(campaign, number).next()
}

/// The seeds of the environments of a program.
pub fn env_seeds(program: u64, runs: u32) -> Vec<u64> {
    (0..u64::from(runs)).map(|i| program_seed(program ^ 0x656e_7673, i)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports and tests name seeds: these are what they have always been.
    #[test]
    fn seeds_stay_what_they_are() {
        let seeds = [(1, 0), (1, 1), (0xb06, 59), (u64::MAX, u64::MAX)]
            .map(|(campaign, number)| program_seed(campaign, number));
        assert_eq!(seeds, [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67, 0x00fa_8228_c174_61c9, 0xb4d0_55fc_f2cb_bd7b]);
    }
}
