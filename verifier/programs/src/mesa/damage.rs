//! Signs of a damaged log: lines that a terminal or a mail program has wrapped, and a beginning that is missing.

use super::fragment::{is_ir3_line, is_nir_line};
use super::shader::LogShader;
use super::{FilePosition, InputError, Section};
use std::path::Path;

/// The least length of a line that is wrapped.
const LEAST_WIDTH: u32 = 40;

/// The least number of lines of a shader that are wrapped.
const LEAST_LINES: usize = 3;

/// The error of a shader whose lines are wrapped: the first such line, and the length of the longest line. `None` if
/// there is no sign of it.
///
/// A wrapped line is followed by one without the prefix that the others have; or, if lines have no prefix, several
/// lines have the same length, which no line exceeds.
#[must_use]
pub fn wrapped(path: &Path, shader: &LogShader) -> Option<InputError> {
    let programs = || shader.nir.iter().chain(&shader.passes);
    let longest = programs().flat_map(Section::widths).max().filter(|&width| width >= LEAST_WIDTH)?;
    let mut lines = Vec::new();
    for section in programs() {
        let all: Vec<(u32, &str)> = section.widths().zip(section.text.lines()).collect();
        let is_prefixed = section.is_prefixed();
        for (number, pair) in (1..).zip(all.windows(2)) {
            let ((width, _), (next_width, next)) = (pair[0], pair[1]);
            let is_broken = match is_prefixed {
                // A line without a prefix has no text.
                true => next_width == 0 && 4 * width > 3 * longest,
                false => width == longest && !begins_line(next),
            };
            if is_broken {
                lines.push(section.place(number, 1).0);
            }
        }
    }
    let line = *lines.first().filter(|_| lines.len() >= LEAST_LINES)?;
    Some(InputError::Wrapped {
        place: FilePosition { path: path.to_owned(), line, column: longest + 1 },
        count: lines.len(),
    })
}

/// Returns true for a line that does not go on from the one before: a definition, an instruction, a block, a branch.
fn begins_line(line: &str) -> bool {
    const STARTS: [&str; 14] = [
        "}",
        "block",
        "(jp)block",
        "//",
        "/*",
        "*/",
        "if ",
        "loop ",
        "con ",
        "div ",
        "break",
        "continue",
        "@",
        "pred:",
    ];
    let start = line.trim_start();
    start.is_empty() || is_ir3_line(line) || is_nir_line(line) || STARTS.iter().any(|its| start.starts_with(its))
}

/// The error of a log that begins inside of a program, by the text before its first headline. `None` if that is another
/// program's output.
#[must_use]
pub fn without_start(path: &Path, before: &Section) -> Option<InputError> {
    // A program ends directly before the next headline, except for blank lines.
    let (last, _) = (1..).zip(before.text.lines()).filter(|(_, line)| !line.trim().is_empty()).last()?;
    let is_program = |line: &str| is_ir3_line(line) || is_nir_line(line);
    let mut lines = (1..=last).zip(before.text.lines());
    let ends = before.text.trim_end().ends_with('}');
    let (number, line) = lines.find(|(_, line)| is_program(line) && ends)?;
    let (line_number, column) = before.place(number, 1);
    let place = FilePosition { path: path.to_owned(), line: line_number, column };
    Some(InputError::NoStart { place, found: line.trim().chars().take(60).collect() })
}

#[cfg(test)]
mod tests {
    use super::super::shader::shaders_of;
    use super::*;

    const NIR: &str = "NIR (final form) for VERT shader (null):\nshader: MESA_SHADER_VERTEX\nimpl main {\n    block b0:\n    \
        32    %0 = load_const (0x00000000)\n    32    %1 = @load_input (%0) (base=0, range=1, component=0, dest_type=float32)\n    \
        32    %2 = @load_input (%0) (base=1, range=1, component=0, dest_type=float32)\n    \
        32    %3 = @load_input (%0) (base=2, range=1, component=0, dest_type=float32)\n    block b1:\n}\n";

    /// Lines of at most `width` characters.
    fn wrap(text: &str, width: usize) -> String {
        let pieces = text.lines().flat_map(|line| {
            let line: Vec<char> = line.chars().collect();
            let pieces: Vec<String> = line.chunks(width).map(|piece| piece.iter().collect()).collect();
            if pieces.is_empty() { vec![String::new()] } else { pieces }
        });
        pieces.map(|piece| piece + "\n").collect()
    }

    fn message(text: &str) -> Option<String> {
        let shader = shaders_of(Path::new("a.log"), text).into_iter().next().expect("a shader");
        wrapped(Path::new("a.log"), &shader).map(|error| error.to_string())
    }

    #[test]
    fn wrapped_lines_are_named() {
        let prefixed = |text: &str| text.lines().map(|line| format!("MESA: info: {line}\n")).collect::<String>();
        assert_eq!(message(NIR), None);
        assert_eq!(message(&prefixed(NIR)), None);
        for text in [wrap(NIR, 60), wrap(&prefixed(NIR), 70)] {
            let message = message(&text).expect("an error");
            assert!(message.starts_with("a.log:6:") && message.contains("3 lines"), "{message}\n{text}");
        }
    }

    #[test]
    fn a_log_without_its_beginning_is_named() {
        let rest = "AFTER: nir->ir3:\nblock1 {\n\t0001:0000:000: end\n}\n";
        let lost = |text: &str| {
            let shaders = shaders_of(Path::new("a.log"), text);
            let error = shaders.first().and_then(|shader| shader.without_start.as_ref());
            error.map(ToString::to_string)
        };
        let cut: String = NIR.lines().skip(4).map(|line| format!("{line}\n")).collect();
        let message = lost(&format!("{cut}\n{rest}")).expect("an error");
        assert!(message.starts_with("a.log:1:1: found `32    %0 = load_const"), "{message}");
        assert_eq!(lost(&format!("GL_RENDERER: FD618\n{rest}")), None);
        assert_eq!(lost(&format!("{NIR}{rest}")), None);
    }
}
