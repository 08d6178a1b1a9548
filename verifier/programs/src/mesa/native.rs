//! The last program of a log: its words, and the registers that the lines around them list.
//!
//! The words are preceded by the values that the driver puts into the constant file (`@const(c8.x)`, and under
//! `offsets:` the start of groups of words), and followed by the registers of inputs and outputs by their locations.

use super::input::{FilePosition, InputError};
use super::{Log, Section, SectionKind};
use ir3_compiler::ir3::{PhysReg, RegClass};
use ir3_compiler::machine::listing;
use ir3_compiler::target::Generation;
use std::fmt;
use std::path::Path;

/// An input of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeInput {
    /// Its location, as `VERT_ATTRIB_POS`, `VARYING_SLOT_VAR0` or `SYSTEM_VALUE_FRAG_COORD`.
    pub location: String,
    /// The register of its first component; `r63.x` if it has none.
    pub register: PhysReg,
    /// The registers.
    pub class: RegClass,
    /// One bit for each component that the program uses.
    pub components: u32,
    /// The number of a varying's first component in `bary.f`.
    pub varying: Option<u32>,
}

/// A texture that the driver samples before the program starts, by its command (`@tex`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativePrefetch {
    /// The first register of the result, and its class.
    pub register: PhysReg,
    /// The registers.
    pub class: RegClass,
    /// The components of the result.
    pub mask: u8,
    /// The number of the varying that has the coordinates.
    pub varying: u16,
    /// True if the descriptors are bindless.
    pub bindless: bool,
    /// The sampler.
    pub sampler: u16,
    /// The texture.
    pub texture: u16,
}

impl NativePrefetch {
    /// Reads the text after `@tex(`; `None` if it has another form.
    fn read(text: &str) -> Option<Self> {
        let (name, fields) = text.split_once(')')?;
        let class = RegClass::general(name.starts_with('h'));
        let register = register(name.trim_start_matches('h').strip_prefix('r')?)?;
        let mut fields = fields.trim().split(", ").filter_map(|field| field.split_once('='));
        let mut next = |name: &str| fields.next().filter(|(its, _)| *its == name).map(|(_, value)| value);
        let varying = next("src")?.parse().ok()?;
        let bindless = next("bindless")? == "1";
        let sampler = next("samp")?.parse().ok()?;
        let texture = next("tex")?.parse().ok()?;
        let mask = u8::from_str_radix(next("wrmask")?.strip_prefix("0x")?, 16).ok()?;
        (next("opc")? == "sam").then_some(Self { register, class, mask, varying, bindless, sampler, texture })
    }
}

/// An output of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeOutput {
    /// Its location, as `FRAG_RESULT_COLOR`.
    pub location: String,
    /// The register of its first component.
    pub register: PhysReg,
    /// The registers.
    pub class: RegClass,
}

/// A list of registers after the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// `; FRAG: inputs:`.
    Inputs,
    /// `; FRAG: outputs:`.
    Outputs,
}

impl Lists {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Inputs, Self::Outputs];
}

impl fmt::Display for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inputs => "inputs",
            Self::Outputs => "outputs",
        })
    }
}

/// The reason why the lists around the final code cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// A line with a register in another notation, or that ends within an entry.
    #[error("a line of another form, or that is cut: `{0}`")]
    Line(String),
    /// A list that is missing.
    #[error("the line with the list of {0} is missing after the final assembly")]
    NoList(Lists),
}

/// The last program of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Native {
    /// The stage in the log: `VERT`, `FRAG`, `CL` …
    pub stage: String,
    /// The inputs.
    pub inputs: Vec<NativeInput>,
    /// The outputs.
    pub outputs: Vec<NativeOutput>,
    /// The textures that are sampled before the program starts.
    pub prefetches: Vec<NativePrefetch>,
    /// Words of the constant file that the driver fills with these bits.
    pub immediates: Vec<(u16, u32)>,
    /// The first words of groups in the constant file, by name, and their lengths in vec4, if they are printed.
    pub groups: Vec<(String, u16, Option<u16>)>,
    /// True if the list of these groups is printed, though it may be empty.
    pub has_groups: bool,
    /// The number of words that the driver fills with system values, if it is printed.
    pub driver_params: Option<u32>,
    /// The registers of the inputs before the code, and those of them that are half registers: the list after the code
    /// does not distinguish them.
    pub entry_registers: Vec<(PhysReg, bool)>,
    /// The code.
    pub words: Vec<u64>,
}

impl Log {
    /// Reads the last program of the log: `None` if it has no words.
    ///
    /// # Errors
    /// As [`Native::read`].
    pub fn native(&self) -> Result<Option<Native>, ListError> {
        let last = |kind: &SectionKind| self.sections.iter().rposition(|section| section.kind == *kind);
        let Some(listing) = last(&SectionKind::Listing) else { return Ok(None) };
        let words = listed_words(&self.sections[listing]);
        if words.is_empty() {
            return Ok(None);
        }
        let before =
            |kind: SectionKind| self.sections[..listing].iter().rev().find(move |section| section.kind == kind);
        Native::read(before(SectionKind::NativeCode), before(SectionKind::Statistics), words).map(Some)
    }
}

/// The words of the first program in a listing.
pub fn listed_words(listing: &Section) -> Vec<u64> {
    let code = listing::listings(&listing.text).into_iter().next();
    code.map(|code| code.lines.iter().map(|line| line.word).collect()).unwrap_or_default()
}

/// The fault of a listing that lost lines: a line whose number is not the one after that of the line before it, or fewer
/// words than the assembly has.
pub fn listing_fault(path: &Path, listing: &Section, assembly: &Section, generation: Generation) -> Option<InputError> {
    let all = listing::listings(&listing.text);
    let lines = &all.first()?.lines;
    let lost = |line: u32, found: String, expected: usize| {
        let (line, column) = listing.place(line + 1, 1);
        let place = FilePosition { path: path.to_owned(), line, column };
        Some(InputError::LostWords { place, found, expected })
    };
    let numbered = lines.iter().enumerate();
    if let Some((expected, line)) = numbered.into_iter().find(|&(at, line)| line.ip as usize != at) {
        return lost(line.line, format!("word {}", line.ip), expected);
    }
    if assembled_words(assembly, generation).is_ok_and(|words| words.len() > lines.len()) {
        let again = all.get(1).and_then(|next| next.lines.first());
        let line = again.or(lines.last())?.line;
        let found = again.map_or("the end of the listing".to_owned(), |line| format!("word {}", line.ip));
        return lost(line, found, lines.len());
    }
    None
}

/// The first word of a listing that is another instruction than the assembly has in its place: its line in the log, and
/// its number. `None` if the assembly cannot be read.
pub fn other_word(listing: &Section, assembly: &Section, generation: Generation) -> Option<(u32, usize)> {
    let assembled = assembled_words(assembly, generation).ok()?;
    let code = listing::listings(&listing.text).into_iter().next()?;
    let (number, (line, _)) =
        code.lines.iter().zip(&assembled).enumerate().find(|(_, (line, word))| line.word != **word)?;
    Some((listing.place(line.line + 1, 1).0, number))
}

/// The words of the final assembly.
///
/// # Errors
/// The first line that is no instruction of the generation.
pub fn assembled_words(assembly: &Section, generation: Generation) -> Result<Vec<u64>, String> {
    let lines: String =
        assembly.text.lines().filter(|line| !line.starts_with('@')).flat_map(|line| [line, "\n"]).collect();
    listing::assemble(generation, &lines)
        .map_err(|error| format!("the final assembly, line {}: expected {}", error.line, error.expected))
}

impl Native {
    /// Reads a program from the sections of its assembly and its statistics, and its words.
    ///
    /// # Errors
    /// A line with a register in an unknown notation, or that is cut; a missing list.
    pub fn read(assembly: Option<&Section>, statistics: Option<&Section>, words: Vec<u64>) -> Result<Self, ListError> {
        let mut native = Self { words, ..Self::default() };
        for line in assembly.into_iter().flat_map(|section| section.text.lines()) {
            native.head(line).ok_or_else(|| ListError::Line(line.to_owned()))?;
        }
        let mut lists = [false; 2];
        for line in statistics.into_iter().flat_map(|section| section.text.lines()) {
            let list = native.registers(line).ok_or_else(|| ListError::Line(line.to_owned()))?;
            lists.iter_mut().zip(Lists::ALL).for_each(|(has, its)| *has |= list == Some(its));
        }
        // Mesa prints both, though they may be empty.
        match Lists::ALL.into_iter().zip(lists).find(|(_, has)| !has) {
            Some((list, _)) if statistics.is_some() => Err(ListError::NoList(list)),
            _ => Ok(native),
        }
    }

    /// The groups of the constant file that the driver fills, by name.
    #[must_use]
    pub fn filled_groups(&self) -> Vec<String> {
        // The program stores the words of its preamble; lines of the form `offset: c4.x` are no groups.
        let filled = self.groups.iter().filter(|(name, ..)| name != "preamble" && !name.ends_with(':'));
        let mut groups: Vec<String> = filled
            .map(|(name, word, vec4s)| {
                let length = vec4s.map(|vec4s| format!(" ({vec4s} vec4)")).unwrap_or_default();
                format!("{name} {}{length}", constant_name(*word))
            })
            .collect();
        groups.sort();
        groups
    }

    /// The first word of a group of the constant file.
    pub fn group(&self, name: &str) -> Option<u16> {
        self.groups.iter().find(|(its, ..)| its == name).map(|&(_, word, _)| word)
    }

    /// The length of a group in vec4.
    pub fn vec4s(&self, name: &str) -> Option<u16> {
        self.groups.iter().find(|(its, ..)| its == name)?.2
    }

    /// The first line before the code that is missing, of those that describe the constant file. Mesa places the
    /// immediates after all groups, and prints all of their vec4s.
    pub fn missing_constants(&self) -> Option<String> {
        if self.driver_params.is_some_and(|count| count > 0) && self.has_groups && self.group("driver_params").is_none()
        {
            return Some("no line for `driver_params`".to_owned());
        }
        let ends: Option<Vec<u16>> = self.groups.iter().map(|&(_, word, vec4s)| Some(word + vec4s? * 4)).collect();
        let end = ends.filter(|_| self.has_groups).map(|ends| ends.into_iter().max().unwrap_or(0));
        let words = self.immediates.iter().map(|&(word, _)| word);
        let mut expected = end.or_else(|| words.clone().next())?;
        for word in words {
            if word > expected {
                return Some(format!("no line for {}", constant_name(expected)));
            }
            expected = word + 1;
        }
        None
    }

    /// Reads a line before the code; `None` if it has another form.
    fn head(&mut self, line: &str) -> Option<()> {
        if let Some(rest) = line.strip_prefix("@const(") {
            let (word, values) = rest.split_once(')')?;
            let first = register(word.strip_prefix('c')?)?;
            for (i, value) in (0..).zip(values.split(',')) {
                let bits = u32::from_str_radix(value.trim().strip_prefix("0x")?, 16).ok()?;
                self.immediates.push((first.0 + i, bits));
            }
        } else if let Some(rest) = line.strip_prefix("@in(") {
            let (name, _) = rest.split_once(')')?;
            let half = name.starts_with('h');
            if let Some(number) = name.trim_start_matches('h').strip_prefix('r').and_then(register) {
                self.entry_registers.push((number, half));
            }
        } else if let Some(rest) = line.strip_prefix("@tex(") {
            self.prefetches.push(NativePrefetch::read(rest)?);
        } else if line == "; offsets:" {
            self.has_groups = true;
        } else if let Some(count) = line.strip_prefix("; num_driver_params:") {
            self.driver_params = count.trim().parse().ok();
        } else if let Some(rest) = line.strip_prefix(";   ") {
            // Other lines of the same form have no register.
            let mut parts = rest.split_whitespace();
            if let (Some(name), Some(word)) = (parts.next(), parts.next().and_then(|word| word.strip_prefix('c')))
                && let Some(word) = register(word)
            {
                let length = parts.next().and_then(|length| length.strip_prefix('(')?.parse().ok());
                self.groups.push((name.to_owned(), word.0, length));
            }
        }
        Some(())
    }

    /// Reads a line after the code, and returns the list that it is; `None` if it has another form.
    fn registers(&mut self, line: &str) -> Option<Option<Lists>> {
        let Some((stage, rest)) = line.strip_prefix("; ").and_then(|rest| rest.split_once(": ")) else {
            return Some(None);
        };
        let (list, items) = match rest.split_once(':') {
            Some(("inputs", items)) => (Lists::Inputs, items.trim()),
            Some(("outputs", items)) => (Lists::Outputs, items.trim()),
            _ => return Some(None),
        };
        stage.clone_into(&mut self.stage);
        if !items.is_empty() && !items.ends_with(')') {
            return None;
        }
        for item in items.split(')').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, rest) = item.split_once(" (")?;
            let half = name.starts_with('h');
            let number = register(name.trim_start_matches('h').strip_prefix('r')?)?;
            let shared = (PhysReg::SHARED_FIRST..PhysReg::new(56, 0)).contains(&number);
            let class = match (shared, half) {
                (false, half) => RegClass::general(half),
                (true, false) => RegClass::SHARED,
                (true, true) => RegClass::SHARED_HALF,
            };
            let mut parts = rest.split([' ', ',']);
            let location = parts.next()?.to_owned();
            if list == Lists::Outputs {
                self.outputs.push(NativeOutput { location, register: number, class });
                continue;
            }
            let mut fields = parts.filter_map(|part| part.split_once('='));
            let mut field = |name: &str| fields.find(|(its, _)| *its == name).map(|(_, value)| value);
            let components = u32::from_str_radix(field("cm")?, 16).ok()?;
            let first = field("il")?.parse().ok()?;
            let varying = (field("b")? == "1").then_some(first);
            let mut entries = self.entry_registers.iter().filter(|(its, _)| *its == number);
            let is_half = varying.is_none() && matches!((entries.next(), entries.next()), (Some((_, true)), None));
            let class = if is_half { RegClass { half: true, ..class } } else { class };
            self.inputs.push(NativeInput { location, register: number, class, components, varying });
        }
        Some(Some(list))
    }
}

/// The name of a word of the constant file, as `c12.y`.
#[must_use]
pub fn constant_name(word: u16) -> String {
    PhysReg(word).to_string().replacen('r', "c", 1)
}

/// A register by its number and component, as `12.y`.
fn register(text: &str) -> Option<PhysReg> {
    let (number, component) = text.split_once('.')?;
    let component = ["x", "y", "z", "w"].iter().position(|&name| name == component)?;
    Some(PhysReg::new(number.parse().ok()?, component as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const LOG: &str = "\
Native code for unnamed FRAG shader (null) with sha1 00:
; num_ubos:           0
; offsets:
;   ubo_ranges                 c4.x (4 vec4)
;   driver_params              c1.y (1 vec4)
; ubo_state:
;   num_enabled:      1
@in(r0.x)\tin0 (wrmask=0x3)
@const(c8.x)\t0x3f000000, 0x00000001
end
; FRAG: outputs: r0.w (FRAG_RESULT_COLOR) hr63.x (FRAG_RESULT_DATA1)
; FRAG: inputs: hr1.x (VARYING_SLOT_TEX0 slot=4 cm=f,il=8,b=1) r48.y (SYSTEM_VALUE_WORKGROUP_ID slot=45 cm=7,il=0,b=0)
; FRAG prog 1/1: 5 instr, 0 nops
; gpu gen 6, mergedregs 1
; hex listing: index[hi_lo] disasm
0000[03000000_00000000] end
";

    #[test]
    fn registers_are_read() {
        let native = Log::read(Path::new("x.log"), LOG).unwrap().native().unwrap().unwrap();
        assert_eq!(native.stage, "FRAG");
        assert_eq!(native.words, [0x0300_0000_0000_0000]);
        assert_eq!(native.immediates, [(32, 0x3f00_0000), (33, 1)]);
        assert_eq!(
            (native.group("ubo_ranges"), native.group("driver_params"), native.group("x")),
            (Some(16), Some(5), None)
        );
        assert_eq!((native.vec4s("ubo_ranges"), native.vec4s("x")), (Some(4), None));
        let [varying, workgroup] = &native.inputs[..] else { panic!() };
        assert_eq!((varying.register, varying.class, varying.varying), (PhysReg::new(1, 0), RegClass::HALF, Some(8)));
        assert_eq!((workgroup.class, workgroup.components, workgroup.varying), (RegClass::SHARED, 7, None));
        let [color, none] = &native.outputs[..] else { panic!() };
        assert_eq!((&*color.location, color.register), ("FRAG_RESULT_COLOR", PhysReg::new(0, 3)));
        assert_eq!(none.register, PhysReg::INVALID);
    }

    #[test]
    fn lost_lines_about_constants_are_noticed() {
        let lost =
            |log: &str| Log::read(Path::new("x.log"), log).unwrap().native().unwrap().unwrap().missing_constants();
        let next = "@const(c9.x)\t0x4, 0x5, 0x6, 0x7\n";
        let whole = LOG.replace("0x3f000000, 0x00000001\n", &format!("0x0, 0x1, 0x2, 0x3\n{next}@const(c10.x)\t0x4\n"));
        let whole = whole.replace("; offsets:", "; num_driver_params:  4\n; offsets:");
        assert_eq!(lost(&whole), None);
        assert_eq!(lost(&whole.replace(next, "")).as_deref(), Some("no line for c9.x"));
        let first = "@const(c8.x)\t0x0, 0x1, 0x2, 0x3\n";
        assert_eq!(lost(&whole.replace(first, "")).as_deref(), Some("no line for c8.x"));
        let params = ";   driver_params              c1.y (1 vec4)\n";
        assert_eq!(lost(&whole.replace(params, "")).as_deref(), Some("no line for `driver_params`"));
        // Older texts do not list the groups.
        assert_eq!(lost(&LOG.replace("; offsets:\n", "")), None);
    }

    #[test]
    fn another_form_is_an_error_with_the_line() {
        let cut = LOG.replace("cm=f,", "");
        let error = |log: &str| Log::read(Path::new("x.log"), log).unwrap().native().unwrap_err();
        assert!(error(&cut).to_string().contains("VARYING_SLOT_TEX0"));
        // An entry without its end, and a line that is missing: an empty list has its line.
        let open = LOG.replace(" (FRAG_RESULT_DATA1)", " (FRAG_RES");
        assert!(matches!(error(&open), ListError::Line(line) if line.ends_with("(FRAG_RES")));
        for (list, name) in [(Lists::Inputs, "inputs"), (Lists::Outputs, "outputs")] {
            let start = format!("; FRAG: {name}:");
            let without: Vec<&str> = LOG.lines().filter(|line| !line.starts_with(&start)).collect();
            assert_eq!(error(&without.join("\n")), ListError::NoList(list));
        }
        let none = LOG.split("0000[").next().unwrap();
        assert_eq!(Log::read(Path::new("x.log"), none).unwrap().native(), Ok(None));
    }
}
