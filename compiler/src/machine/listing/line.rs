//! Lines of listings, as Mesa's tools print them.
//!
//! An instruction has its position, its word as two halves, and its text:
//!
//! - `ir3-disasm`: `  0[202cc000_00000000] mov.u32u32 r0.x, c0.x`, the position in three columns;
//! - the hex listing of a log: the same, the position with four digits;
//! - `cffdump` and `crashdec`: `:1:0000:0000[202cc000x_00000000x] …`, with tabs before it: the category, the position,
//!   and the position in cycles.
//!
//! A label, and the empty line before a function, have a line of their own, with the position and the word of the
//! instruction that follows.

use crate::target::Generation;

/// The tool that printed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `ir3-disasm`, or the hex listing of a log.
    Disasm,
    /// `cffdump` or `crashdec`.
    Dump,
}

/// A line of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub format: Format,
    pub ip: u32,
    pub word: u64,
    /// The text, without blanks around it.
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// Reads a line; `None` if it is not a line of a listing.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let (before, rest) = line.split_once('[')?;
        let (word, text) = rest.split_once(']')?;
        let (high, low) = word.split_once('_')?;
        let (high, low, format) = match (high.strip_suffix('x'), low.strip_suffix('x')) {
            (Some(high), Some(low)) => (high, low, Format::Dump),
            (None, None) => (high, low, Format::Disasm),
            _ => return None,
        };
        let digits = |text: &str| text.len() == 8 && text.bytes().all(|c| c.is_ascii_hexdigit());
        if !digits(high) || !digits(low) {
            return None;
        }
        let before = before.trim();
        let category = before.strip_prefix(':');
        let mut numbers = category.unwrap_or(before).split(':');
        let is_number = |text: &&str| !text.is_empty() && text.len() <= 9 && text.bytes().all(|c| c.is_ascii_digit());
        if category.is_some() {
            numbers.next().filter(is_number)?;
        }
        let ip = numbers.next().filter(is_number)?.parse().ok()?;
        if numbers.next().is_some_and(|cycles| !is_number(&cycles)) || numbers.next().is_some() {
            return None;
        }
        let half = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(Self { format, ip, word: half(high)? << 32 | half(low)?, text: text.trim() })
    }
}

pub(super) fn is_label(text: &str) -> bool {
    text.is_empty() || text.strip_suffix(':').is_some_and(|name| !name.contains([' ', '\t']))
}

/// The generation that a line names: `; gpu gen 6, …` of a log; `gpu_id: 630` and `chip_id: 0x43050a01` of `cffdump`;
/// `revision: 630 (6.3.0.2)` and `Got chip_id=0x6030002` of a dump and `crashdec`.
pub fn generation(line: &str) -> Option<Generation> {
    let digits =
        |text: &str| text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse::<u32>().ok();
    let line = line.trim();
    let number = if let Some((_, rest)) = line.split_once("; gpu gen ") {
        digits(rest)?
    } else if let Some(rest) = line.strip_prefix("gpu_id: ").or_else(|| line.strip_prefix("revision: ")) {
        let id = digits(rest)?;
        if id >= 100 { id / 100 } else { return None }
    } else {
        let rest = line.strip_prefix("chip_id: 0x").or_else(|| line.strip_prefix("Got chip_id=0x"))?;
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        // The upper half has the patch level and the speed, or masks of these.
        let id = u64::from_str_radix(&rest[..end], 16).ok()? as u32;
        // From the a740 on, the first byte is 0x40 and the generation less 4.
        match id >> 24 {
            first @ 0x43..=0x4f => 4 + (first & 0xf),
            first => first,
        }
    };
    Generation::ALL.into_iter().find(|generation| generation.number() == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_tools_are_read() {
        for (line, format, ip) in [
            ("  7[03000000_00000001] end", Format::Disasm, 7),
            ("0007[03000000_00000001] end", Format::Disasm, 7),
            ("1234[03000000_00000001] end", Format::Disasm, 1234),
            ("\t\t\t:0:0007:0019[03000000x_00000001x] end", Format::Dump, 7),
            (":0:0007:0019[03000000x_00000001x]   end  ", Format::Dump, 7),
            ("0007:0019[03000000x_00000001x] end", Format::Dump, 7),
            ("0007[03000000x_00000001x] end", Format::Dump, 7),
        ] {
            assert_eq!(Line::read(line), Some(Line { format, ip, word: 0x0300_0000_0000_0001, text: "end" }), "{line}");
        }
        for line in [
            "\t- iova: [03000000_00000001] end",
            "7[0300000_00000001] end",
            "7[03000000x_00000001] end",
            "7[03000000_00000001 end",
            ":0:0007:0019:3[03000000x_00000001x] end",
            "SP_VS_OUT[0].REG",
            "",
        ] {
            assert_eq!(Line::read(line), None, "{line}");
        }
        assert!(is_label("l4:") && is_label("") && is_label("fxn12:") && !is_label("end") && !is_label("a b:"));
    }

    #[test]
    fn generations_are_named_in_several_ways() {
        for (line, expected) in [
            ("; gpu gen 7, mergedregs 1", Some(Generation::A7xx)),
            ("gpu_id: 630", Some(Generation::A6xx)),
            ("gpu_id: 540", Some(Generation::A5xx)),
            ("revision: 618 (6.1.8.0)", Some(Generation::A6xx)),
            ("Got chip_id=0x6030002", Some(Generation::A6xx)),
            ("chip_id: 0x43050a01", Some(Generation::A7xx)),
            ("chip_id: 0xffff43051401", Some(Generation::A7xx)),
            ("Got chip_id=0x44050000", Some(Generation::A8xx)),
            ("gpu_id: 2", None),
            ("gpu-initialized: 1", None),
            ("revision: 3", None),
        ] {
            assert_eq!(generation(line), expected, "{line}");
        }
    }
}
