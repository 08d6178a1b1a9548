//! The origin of a log as far as its text shows it: the compiler that prints it, and the versions of Mesa that print
//! so.

use super::input::{FilePosition, InputError};
use super::shader::LogShader;
use super::{Section, SectionKind};
use std::fmt;
use std::path::Path;

/// A line that another compiler of Mesa prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    line: u32,
    column: u32,
    found: String,
    printer: &'static str,
    /// Other compilers print such a line, too.
    is_common: bool,
}

/// The compiler that prints a line, and whether others do, too. ir3 prints none of these outside of its sections.
fn printer(line: &str) -> Option<(&'static str, bool)> {
    const INTEL: &str = "Mesa's compiler for Intel (`INTEL_DEBUG`)";
    const NVIDIA: &str = "Mesa's NAK for NVIDIA (`NAK_DEBUG`)";
    const AMD: &str = "Mesa's radv or ACO for AMD (`RADV_DEBUG`)";
    const ANY: &str = "Mesa for nir without a headline of ir3 (`NIR_DEBUG`, or another compiler)";
    // Intel has the names of stages in full, ir3 short ones in capitals.
    let stage = |start| line.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    let simd = line.strip_prefix("SIMD").is_some_and(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(" shader: ") && rest.contains(" instructions")
    });
    if stage("NIR (final form) for ") || stage("NIR (SSA form) for ") || simd {
        return Some((INTEL, false));
    }
    if line.starts_with("NAK IR") {
        return Some((NVIDIA, false));
    }
    let amd = ["*** SHADER STATS ***", "ACO shader stage", "ACO IR", "NIR shader before instruction selection"];
    if amd.iter().any(|start| line.starts_with(start)) || line.split_whitespace().next() == Some("s_endpgm") {
        return Some((AMD, false));
    }
    line.starts_with("shader: MESA_SHADER_").then_some((ANY, true))
}

impl Foreign {
    /// The sign in a line, with its number and the length of its prefix.
    #[must_use]
    pub fn of_line(line: &str, number: u32, prefix: u32) -> Option<Self> {
        let (printer, is_common) = printer(line)?;
        let found = line.trim_end().chars().take(60).collect();
        Some(Self { line: number, column: prefix + 1, found, printer, is_common })
    }

    /// Keeps the first line that one compiler alone prints, or else the first one.
    #[must_use]
    pub fn or(first: Option<Self>, next: Option<Self>) -> Option<Self> {
        match (&first, &next) {
            (Some(known), Some(found)) if known.is_common && !found.is_common => next,
            (Some(_), _) => first,
            (None, _) => next,
        }
    }

    /// The error of a log that has nothing of ir3.
    #[must_use]
    pub fn error(foreign: Option<Self>, path: &Path) -> InputError {
        let path = path.to_owned();
        match foreign {
            Some(Self { line, column, found, printer, .. }) => {
                InputError::OtherCompiler { place: FilePosition { path, line, column }, found, printer }
            }
            None => InputError::NoNir { path },
        }
    }
}

/// The versions of Mesa that print a text, each by its year and number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Versions {
    /// The first one.
    pub first: (u8, u8),
    /// The last one; `None` for all that follow.
    pub last: Option<(u8, u8)>,
}

impl Versions {
    /// All versions that are read.
    const ALL: Self = Self { first: (23, 1), last: None };

    /// The versions that print a program in nir. `None` if its parts exclude each other.
    #[must_use]
    pub fn of_nir(text: &str) -> Option<Self> {
        let mut versions = Self::ALL;
        let mut from = |first| versions.first = versions.first.max(first);
        let mut until: Option<(u8, u8)> = None;
        let mut up_to = |last| until = Some(until.map_or(last, |known| known.min(last)));
        for line in text.lines() {
            let line = line.trim_start();
            if line.starts_with("block block_") {
                up_to((23, 1));
            } else if line.contains("block b") && !line.contains("block_") {
                from((23, 2));
            }
            if let Some((_, access)) = line.split_once("access=") {
                match access.starts_with(|c: char| c.is_ascii_digit()) {
                    true => up_to((23, 2)),
                    false => from((23, 3)),
                }
            }
            if ["load_input (", "store_output ("].iter().any(|name| line.contains(name)) {
                match line.contains("range=") {
                    true => from((23, 3)),
                    false => up_to((23, 2)),
                }
            }
            if line.contains("_ssbo_ir3 (") && line.contains("(base=") {
                from((24, 1));
            }
            if line.starts_with("max_subgroup_size:") {
                from((26, 0));
            }
            if ["= fmad", "= ffma_weak"].iter().any(|op| line.contains(op)) {
                from((26, 2));
            }
        }
        versions.last = until;
        (until.is_none_or(|last| versions.first <= last)).then_some(versions)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, number) = self.first;
        match self.last {
            None => write!(f, "{year}.{number} or later"),
            Some(last) if last == self.first => write!(f, "{year}.{number}"),
            Some((to, last)) => write!(f, "{year}.{number} to {to}.{last}"),
        }
    }
}

/// The origin of a shader's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The versions, if it has nir.
    pub versions: Option<Versions>,
    /// The programs after passes have no serial numbers.
    pub lacks_serials: bool,
    /// There is final assembly, and no words.
    pub lacks_words: bool,
}

impl Origin {
    /// The origin of a shader of a log.
    #[must_use]
    pub fn of(shader: &LogShader) -> Self {
        Self {
            versions: shader.nir.as_ref().and_then(|nir| Versions::of_nir(&nir.text)),
            lacks_serials: lacks_serials(shader),
            lacks_words: shader.assembly.is_some() && shader.listing.is_none(),
        }
    }
}

/// Returns true if the programs after passes have no serial numbers: release builds of Mesa print none.
#[must_use]
pub fn lacks_serials(shader: &LogShader) -> bool {
    shader.passes.iter().any(has_positions_only)
}

/// Returns true if the first instruction of a section has its position and uses only.
fn has_positions_only(section: &Section) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_instr = |numbers: &&str| numbers.starts_with(|c: char| c.is_ascii_digit());
    let mut lines =
        section.text.lines().filter_map(|line| Some(line.strip_prefix('\t')?.trim_start().split_once(": ")?.0));
    matches!(section.kind, SectionKind::Ir3After { .. })
        && lines
            .find(is_instr)
            .and_then(|numbers| numbers.split_once(':'))
            .is_some_and(|(position, uses)| is_number(position) && (is_number(uses) || uses == "XXX"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesa::Log;
    use crate::mesa::input::Lines;
    use crate::mesa::shader::shaders_in;
    use std::io::Cursor;

    /// The error of a log without a shader, both read whole and as it comes.
    fn refusal(text: &str) -> String {
        let path = Path::new("x.log");
        let whole = Log::read(path, text).and_then(|log| log.nir(path).map(|_| ())).expect_err("no nir");
        let lines = Lines::of(path, Cursor::new(text.to_owned()));
        let all: Vec<_> = shaders_in(lines).collect();
        let [Err(error)] = &all[..] else { panic!("{} shaders", all.len()) };
        assert_eq!(error.to_string(), whole.to_string());
        error.to_string()
    }

    #[test]
    fn a_log_of_another_compiler_is_refused_by_its_name() {
        let nir = "shader: MESA_SHADER_FRAGMENT\nname: fs\nimpl main {\n    block b0:  // preds:\n}\n";
        for (text, place, name) in [
            (format!("hello\nNIR (final form) for fragment shader:\n{nir}"), "x.log:2:1", "INTEL_DEBUG"),
            (
                "Native code for unnamed fragment shader (null)\nSIMD16 shader: 9 instructions. 0 loops.\n".into(),
                "x.log:2:1",
                "INTEL_DEBUG",
            ),
            (format!("{nir}NAK IR:\nfn 0 {{\n"), "x.log:6:1", "NAK_DEBUG"),
            (format!("{nir}ACO shader stage: fragment\n"), "x.log:6:1", "RADV_DEBUG"),
            (format!("{nir}    s_endpgm   ; bf810000\n"), "x.log:6:1", "RADV_DEBUG"),
            (format!("MESA: info: {}", nir.replace('\n', "\nMESA: info: ")), "x.log:1:13", "NIR_DEBUG"),
        ] {
            let error = refusal(&text);
            assert!(error.starts_with(place) && error.contains(name) && error.contains("IR3_SHADER_DEBUG"), "{error}");
        }
        assert!(refusal("hello\nexit\n").contains("no `NIR (final form)` section"));
    }

    #[test]
    fn versions_are_those_that_print_so() {
        let versions = |text: &str| Versions::of_nir(text).map(|versions| versions.to_string());
        let input = |rest: &str| format!("    block b0:  // preds:\n    32 %1 = @load_input (%0) (base=0, {rest})\n");
        assert_eq!(versions("\tblock block_0:\n\tvec1 32 ssa_0 = undefined\n").as_deref(), Some("23.1"));
        assert_eq!(versions("block b0:\n@store_ssbo_ir3 (access=16)").as_deref(), Some("23.2"));
        assert_eq!(versions(&input("component=0")).as_deref(), Some("23.2"));
        assert_eq!(versions(&input("range=1, component=0")).as_deref(), Some("23.3 or later"));
        assert_eq!(versions("@store_ssbo_ir3 (%1, %2, %3, %4) (base=0, wrmask=x)").as_deref(), Some("24.1 or later"));
        assert_eq!(
            versions(&format!("max_subgroup_size: 128\n{}", input("range=1"))).as_deref(),
            Some("26.0 or later")
        );
        assert_eq!(versions("    32 %2 = fmad %0, %0, %1\n").as_deref(), Some("26.2 or later"));
        assert_eq!(versions(&format!("max_subgroup_size: 128\n{}", input("component=0"))), None);
    }
}
