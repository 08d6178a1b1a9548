//! Tests: a table for each language with values worked out by hand, properties compared with plain arithmetic, and the
//! loops of kernels compared with their meanings.

mod commutes;
mod ir3_table;
mod meanings;
mod nir_constants;
mod nir_table;
mod properties;
mod world;

/// The bits of a word of a table in an operand of `width` bits.
fn bits(word: &str, width: u8) -> u64 {
    let mask = u64::MAX >> (64 - width);
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse::<i128>().ok().map(|value| value as u64),
    };
    if let (false, Some(value)) = (word.contains('.'), number(word)) {
        return value & mask;
    }
    let value: f64 = word.trim_end_matches('.').parse().unwrap_or_else(|_| panic!("{word} is no number"));
    match width {
        _ if value.is_nan() => match width {
            16 => 0x7e00,
            32 => 0x7fc0_0000,
            _ => 0x7ff8_0000_0000_0000,
        },
        16 => half::f16::from_f64(value).to_bits().into(),
        32 => (value as f32).to_bits().into(),
        64 => value.to_bits(),
        _ => panic!("{word} in {width} bits"),
    }
}

/// The non-empty lines of a table without their comments.
fn lines(table: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    table
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()))
        .filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
}
