//! The chips that turnip has, by the names of this project's targets.
//!
//! A chip is the number that the kernel's driver reports: generation, sub-generation, revision and patch, and on later
//! ones a fuse.

/// Names and chips. Where Mesa's table leaves the fuse open, it is 0xffff.
pub const CHIPS: &[(&str, u64)] = &[
    ("a605", 0x0600_0500),
    ("a608", 0x0600_0800),
    ("a610", 0x0601_0000),
    ("a612", 0x0601_0200),
    ("a615", 0x0601_0500),
    ("a616", 0x0601_0600),
    ("a618", 0x0601_0800),
    ("a619", 0x0601_0900),
    ("a620", 0x0602_0000),
    ("a621", 0xffff_0602_0100),
    ("a623", 0xffff_0602_0300),
    ("a630", 0x0603_0001),
    ("a635", 0xffff_0603_0500),
    ("a640", 0x0604_0001),
    ("a643", 0x00ac_0603_0500),
    ("a644", 0x0606_0201),
    ("a650", 0x0605_0002),
    ("a660", 0x0606_0001),
    ("a663", 0xffff_0606_0300),
    ("a680", 0x0608_0001),
    ("a690", 0xffff_0609_0000),
    ("a702", 0xffff_0700_0200),
    ("a725", 0xffff_0703_0002),
    ("a730", 0x0703_0001),
    ("a735", 0x4303_0b00),
    ("x1-45", 0xffff_4303_0c00),
    ("a740", 0x4305_0a01),
    ("a740v3", 0x4305_0b00),
    ("x1-85", 0xffff_4305_0c01),
    ("a32", 0x4305_0a00),
    ("a750", 0x4305_1401),
    ("a810", 0xffff_4401_0000),
    ("a829", 0x4403_0a20),
    ("a830", 0xffff_4405_0000),
    ("a840", 0xffff_4405_0a31),
    ("x2-85", 0xffff_4407_0031),
];

/// The chip of a name, or of a number (`0x06060001`).
///
/// # Errors
/// If there is none, with a list of the known chips.
pub fn chip(name: &str) -> Result<u64, String> {
    if let Some(digits) = name.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).map_err(|error| format!("{name}: {error}"));
    }
    match CHIPS.iter().find(|(known, _)| *known == name) {
        Some((_, chip)) => Ok(*chip),
        None => {
            let known: Vec<_> = CHIPS.iter().map(|(known, _)| *known).collect();
            Err(format!("turnip has no {name}: it has {} (or the number of a chip, as 0x06060001)", known.join(", ")))
        }
    }
}
