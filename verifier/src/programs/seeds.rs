//! Seeds of the programs and environments of a campaign, the same on every machine.

/// The seed of program `number` of a campaign (SplitMix64).
pub fn program_seed(campaign: u64, number: u64) -> u64 {
    let mut z = campaign.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The seeds of the environments of a program.
pub fn env_seeds(program: u64, runs: u32) -> Vec<u64> {
    (0..u64::from(runs)).map(|i| program_seed(program ^ 0x656e_7673, i)).collect()
}
