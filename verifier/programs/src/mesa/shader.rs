//! Shaders of a log: sections put together, as they come.
//!
//! A shader begins with its final-form nir, and has the program after each pass, the final assembly, and the
//! statistics. The binning variant of a vertex shader is a shader of its own. The listing with the words is printed
//! later, after the variants: its headline repeats the hash of the code that it belongs to. So a shader is complete
//! when the next one begins that is not its binning variant; no more than these two are kept.
//!
//! Mesa's text names the generation of the GPU only. Its name may be in the output of drivers and applications between
//! shaders (`GL_RENDERER: FD618`, `Turnip Adreno (TM) 618`); otherwise it is guessed.

use super::damage::without_start;
use super::input::{FilePosition, InputError, Lines};
use super::log::{LogReader, generation};
use super::native::{assembled_words, listed_words};
use super::statistics::statistics;
use super::{Section, SectionKind, Statistics};
use ir3_compiler::target::{Backend, Generation, Target};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// A shader of a log: one variant.
#[derive(Debug, Default)]
pub struct LogShader {
    /// The stage in the log: `VERT`, `BVERT`, `FRAG`, `CL` …
    pub stage: String,
    /// Its number in the log, from 0.
    pub number: u32,
    /// The line of its first headline.
    pub line: u32,
    /// The final-form nir, if the log has it complete.
    pub nir: Option<Section>,
    /// The programs after passes, in order. One that is cut off is not among them.
    pub passes: Vec<Section>,
    /// The final assembly.
    pub assembly: Option<Section>,
    /// The statistics of the final program.
    pub statistics: Option<Section>,
    /// The statistics after the second print of the assembly: they have the line about waves.
    pub repeated: Option<Section>,
    /// The words of the final program.
    pub listing: Option<Section>,
    /// The generation of the GPU, if the log names it.
    pub generation: Option<Generation>,
    /// The GPU that the log names between shaders, before this one or right after it.
    pub gpu: Option<Target>,
    /// The faults of sections that are missing here, with the number of passes before each.
    pub broken: Vec<(usize, InputError)>,
    /// The error of a log whose beginning is missing; of its first shader.
    pub without_start: Option<InputError>,
    /// The error of sections that may be of two shaders, which two threads printed in turn.
    pub mixed: Option<InputError>,
    /// The line of the shader before it, if the final code of that one was missing when this one began.
    open_before: Option<u32>,
}

impl LogShader {
    /// The statistics that Mesa printed, if any.
    #[must_use]
    pub fn printed_statistics(&self) -> Option<Statistics> {
        statistics(self.statistics.iter().chain(&self.repeated)).into_iter().next()
    }

    /// The GPU of the shader: the given one, else the one that the log names, else that of the generation, else the
    /// likeliest.
    #[must_use]
    pub fn target(&self, given: Option<Target>) -> Target {
        self.targets(given).into_iter().next().unwrap_or_default()
    }

    /// The GPUs that the shader may be for, the likeliest first. Where the log names neither GPU nor generation, there
    /// is one of each generation that has all instructions of the final assembly, with the listed words if there are
    /// any.
    #[must_use]
    pub fn targets(&self, given: Option<Target>) -> Vec<Target> {
        if let Some(known) = given.or(self.named_gpu()).or(self.generation.map(Target::of_generation)) {
            return vec![known];
        }
        let likeliest = Target::default();
        let Some(assembly) = &self.assembly else { return vec![likeliest] };
        let assembled = |generation| Some((generation, assembled_words(assembly, generation).ok()?));
        let mut generations: Vec<(Generation, Vec<u64>)> = Generation::ALL.into_iter().filter_map(assembled).collect();
        let listed = self.listing.as_ref().map(listed_words).unwrap_or_default();
        // Only from a7xx on, instructions have groups of aliases.
        if self.passes.iter().any(|pass| pass.text.contains("@{")) {
            generations.retain(|&(generation, _)| generation >= Generation::A7xx);
        }
        if generations.iter().any(|(_, words)| *words == listed) {
            generations.retain(|(_, words)| *words == listed);
        }
        generations.sort_by_key(|&(generation, _)| generation != likeliest.generation);
        if generations.is_empty() {
            return vec![likeliest];
        }
        generations.into_iter().map(|(generation, _)| Target::of_generation(generation)).collect()
    }

    /// Returns true if nothing determines the GPU: [`target`](Self::target) is one of the generation that may not be
    /// the right one.
    #[must_use]
    pub fn is_target_guessed(&self, given: Option<Target>) -> bool {
        given.or(self.named_gpu()).is_none()
    }

    /// The GPU that the log names, unless it is of another generation than the code.
    fn named_gpu(&self) -> Option<Target> {
        self.gpu.filter(|gpu| self.generation.is_none_or(|generation| gpu.generation == generation))
    }

    /// The section printed after the last pass with this name.
    #[must_use]
    pub fn after(&self, name: &str) -> Option<&Section> {
        let is_it = |section: &&Section| matches!(&section.kind, SectionKind::Ir3After { pass } if pass == name);
        self.passes.iter().rev().find(is_it)
    }

    /// The number of bytes of its text.
    #[must_use]
    pub fn size(&self) -> usize {
        self.sections().map(|section| section.text.len() + section.headline.len()).sum()
    }

    /// The error of a shader of another generation than a GPU of ir3; `None` if the log does not name a generation.
    #[must_use]
    pub fn other_generation(&self, path: &Path, gpu: &Target) -> Option<InputError> {
        let found = self.generation.filter(|&its| its != gpu.generation && gpu.backend == Backend::Ir3)?;
        let line = self.sections().find_map(|section| {
            let (number, _) = (1..).zip(section.text.lines()).find(|(_, line)| generation(line) == Some(found))?;
            Some(section.place(number, 1).0)
        });
        let place = FilePosition { path: path.to_owned(), line: line.unwrap_or(self.line), column: 1 };
        Some(InputError::OtherGeneration { place, found, expected: gpu.generation, gpu: gpu.name })
    }

    /// All sections, in the order of the log.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        let last = [&self.assembly, &self.statistics, &self.repeated, &self.listing];
        self.nir.iter().chain(&self.passes).chain(last.into_iter().flatten())
    }

    /// The error that says that lines or sections of it may be another shader's.
    #[must_use]
    pub fn mixture(&self) -> Option<&InputError> {
        let mut lines = self.broken.iter().map(|(_, error)| error);
        self.mixed.as_ref().or_else(|| lines.find(|error| matches!(error, InputError::Mixed { .. })))
    }

    /// The hash of the code in the headline of the assembly.
    fn hash(&self) -> Option<&str> {
        hash_of(self.assembly.as_ref()?)
    }
}

/// Returns true after legalization, which only the passes that insert aliases follow.
fn is_legalized(section: &Section) -> bool {
    matches!(&section.kind, SectionKind::Ir3After { pass } if pass == "ir3_legalize")
}

/// `Native code for unnamed BVERT shader …`; empty if the headline has no stage.
fn stage_of(section: &Section) -> &str {
    let before = section.headline.split_once(" shader").map_or("", |(before, _)| before);
    before.rsplit(' ').next().unwrap_or_default()
}

/// `… with sha1 6b91…:`, since 25.1 `… with blake3 6b91…:`.
fn hash_of(section: &Section) -> Option<&str> {
    let hash = [" with sha1 ", " with blake3 "].iter().find_map(|with| section.headline.rsplit_once(with));
    Some(hash?.1.trim_end_matches(':'))
}

/// The GPU that a line of a driver or an application names: `FD618`, `Adreno (TM) 618`, `Adreno 618`.
fn gpu_name(line: &str) -> Option<Target> {
    ["FD", "Adreno (TM) ", "Adreno ", "Adreno"].into_iter().find_map(|start| {
        line.match_indices(start).find_map(|(at, _)| {
            let (before, rest) = (&line[..at], &line[at + start.len()..]);
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let is_word = !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && !rest[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            (is_word && end == 3).then(|| Target::by_name(&rest[..end]).ok())?
        })
    })
}

/// The bytes of text after which a shader is cut into two.
const MOST_SHADER: usize = 128 << 20;

/// Puts sections together to shaders.
#[derive(Debug)]
pub struct ShaderReader {
    reader: LogReader,
    /// The shaders that may get more sections.
    pending: Vec<LogShader>,
    /// The shaders that are complete.
    complete: Vec<LogShader>,
    /// The number of shaders so far.
    count: u32,
    /// The pending shader that the sections after the last headline of assembly belong to.
    current: usize,
    generation: Option<Generation>,
    /// The GPU that was named last.
    gpu: Option<Target>,
    /// The error of a log whose beginning is missing, until the first shader.
    without_start: Option<InputError>,
}

impl ShaderReader {
    /// A reader of a log that has not begun.
    pub fn new(path: &Path) -> Self {
        Self {
            reader: LogReader::new(path),
            pending: Vec::new(),
            complete: Vec::new(),
            count: 0,
            current: 0,
            generation: None,
            gpu: None,
            without_start: None,
        }
    }

    /// Reads a line.
    pub fn line(&mut self, raw: &str) {
        if !self.reader.is_in_program() {
            self.gpu = gpu_name(raw).or(self.gpu);
        }
        match self.reader.line(raw) {
            Ok(section) => section.into_iter().for_each(|section| self.section(section)),
            Err(error) => self.broken(error, true),
        }
    }

    /// The error of a log that has no shader.
    fn nothing(&self) -> InputError {
        self.reader.nothing()
    }

    /// Takes the next shader that is complete.
    pub fn next_complete(&mut self) -> Option<LogShader> {
        (!self.complete.is_empty()).then(|| self.complete.remove(0))
    }

    /// Completes the shaders that have all their sections, if the log is between two shaders. Returns false if it is in
    /// the middle of one.
    pub fn settle(&mut self) -> bool {
        let Some(section) = self.reader.between() else { return false };
        self.section(section);
        self.flush();
        true
    }

    /// Returns the shaders that are left at the end.
    #[must_use]
    pub fn end(mut self) -> Vec<LogShader> {
        let reader = std::mem::replace(&mut self.reader, LogReader::new(Path::new("")));
        match reader.end() {
            Ok(section) => section.into_iter().for_each(|section| self.section(section)),
            Err(error) => self.broken(error, false),
        }
        self.flush();
        self.complete
    }

    fn flush(&mut self) {
        for mut shader in self.pending.drain(..) {
            shader.generation = shader.generation.or(self.generation);
            shader.gpu = shader.gpu.or(self.gpu);
            self.complete.push(shader);
        }
        self.current = 0;
    }

    /// Notes a section that begins a shader without nir.
    ///
    /// Two threads that compile print their sections in turn. Then a shader begins before the final code of the one
    /// before it, and sections are left when both have ended: a shader without nir, in a log that has nir.
    fn left_over(&mut self, section: &Section) {
        if let Some(LogShader { mixed, nir: Some(_), open_before: Some(other), line, .. }) = self.pending.last_mut() {
            *mixed = Some(InputError::MixedSections {
                place: FilePosition {
                    path: self.reader.path().to_owned(),
                    line: section.first_line.saturating_sub(1),
                    column: 1,
                },
                section: section.headline.trim().to_owned(),
                shaders: [*other, *line],
            });
        }
    }

    fn begin(&mut self, stage: &str, line: u32) -> &mut LogShader {
        let is_open = |shader: &&LogShader| shader.nir.is_some() && shader.assembly.is_none();
        let open_before = self.pending.last().filter(is_open).map(|shader| shader.line);
        let is_binning = stage.strip_prefix('B').is_some_and(|of| self.pending.iter().any(|it| it.stage == of));
        if !is_binning || self.pending.len() > 1 {
            self.flush();
        }
        self.current = self.pending.len();
        let (stage, gpu, without_start) = (stage.to_owned(), self.gpu, self.without_start.take());
        let number = self.count;
        self.pending.push(LogShader { stage, number, line, gpu, without_start, open_before, ..LogShader::default() });
        self.count += 1;
        &mut self.pending[self.current]
    }

    /// The shader that a section belongs to that is not the first one.
    fn current(&mut self, line: u32) -> &mut LogShader {
        if self.pending.is_empty() {
            self.begin("", line);
        }
        &mut self.pending[self.current]
    }

    /// An incomplete section: another headline is inside it if it is `interrupted`, otherwise the log ends.
    fn broken(&mut self, error: InputError, interrupted: bool) {
        let (line, section) = match &error {
            InputError::CutOff { place, section, .. } | InputError::Mixed { place, section, .. } => {
                (place.line, &**section)
            }
            _ => (1, ""),
        };
        // Cut-off nir begins a shader, too: the next sections are not those of the one before.
        if let Some(rest) = section.strip_prefix("NIR (final form) for ") {
            let stage = rest.split(' ').next().unwrap_or_default().to_owned();
            self.begin(&stage, line);
        }
        let error = match error {
            InputError::CutOff { place, section, expected, .. } if interrupted => {
                InputError::Interrupted { place, section, expected }
            }
            other => other,
        };
        let shader = self.current(line);
        let at = shader.passes.len();
        shader.broken.push((at, error));
    }

    fn section(&mut self, section: Section) {
        let line = section.first_line.saturating_sub(1);
        // Passes without an end: no compiler prints this many.
        if self.pending.iter().map(LogShader::size).sum::<usize>() > MOST_SHADER {
            self.flush();
        }
        if let Some(found) = section.text.lines().find_map(generation) {
            self.generation = Some(found);
            self.current(line).generation = Some(found);
        }
        match section.kind.clone() {
            SectionKind::NirFinal { stage } => self.begin(&stage, line).nir = Some(section),
            SectionKind::Ir3After { pass } => {
                // A log that begins in the middle, or without nir.
                let follows = self.pending.get(self.current).is_some_and(|shader| {
                    shader.assembly.is_none()
                        && (pass != "nir->ir3" || shader.passes.is_empty())
                        && !shader.passes.last().is_some_and(|last| is_legalized(last) && !pass.contains("alias"))
                });
                if !follows {
                    self.left_over(&section);
                    self.begin("", line);
                }
                self.current(line).passes.push(section);
            }
            SectionKind::NativeCode => {
                // Both variants may have the same code: it is that of the shader that has none yet, if that is of the
                // same stage.
                let stage = stage_of(&section).to_owned();
                let is_open = self.pending.get(self.current).is_some_and(|shader| {
                    shader.assembly.is_none() && (shader.stage.is_empty() || stage.is_empty() || shader.stage == stage)
                });
                let known = self.pending.iter().position(|it| it.hash().is_some() && it.hash() == hash_of(&section));
                match known.filter(|_| !is_open) {
                    Some(known) => self.current = known,
                    None if is_open => self.current(line).assembly = Some(section),
                    None => {
                        self.left_over(&section);
                        self.begin(&stage, line).assembly = Some(section);
                    }
                }
            }
            SectionKind::Statistics => {
                let shader = self.current(line);
                match &shader.statistics {
                    None => shader.statistics = Some(section),
                    Some(_) => shader.repeated = Some(section),
                }
            }
            SectionKind::Listing => self.current(line).listing = Some(section),
            SectionKind::Other => {
                if self.count == 0 {
                    self.without_start = without_start(self.reader.path(), &section);
                }
            }
        }
    }
}

/// A shader of a file.
#[derive(Debug)]
pub struct FileShader {
    /// The file.
    pub path: PathBuf,
    /// The shader.
    pub shader: LogShader,
}

/// The shaders of the text of a log.
pub fn shaders_of(path: &Path, text: &str) -> Vec<LogShader> {
    let mut reader = ShaderReader::new(path);
    let mut all = Vec::new();
    for line in text.lines() {
        reader.line(line);
        all.extend(std::iter::from_fn(|| reader.next_complete()));
    }
    all.extend(reader.end());
    all
}

/// The shaders of files, one after the other, while they are read: at most two are in memory.
///
/// An error is that of a file that cannot be read, or has no section; the next one follows.
pub fn shaders(paths: Vec<PathBuf>) -> impl Iterator<Item = Result<FileShader, InputError>> + Send {
    let mut files = paths.into_iter();
    let mut current: Option<OpenLog> = None;
    let mut ready: VecDeque<Result<FileShader, InputError>> = VecDeque::new();
    std::iter::from_fn(move || {
        loop {
            if let Some(next) = ready.pop_front() {
                return Some(next);
            }
            let Some(log) = &mut current else {
                match OpenLog::new(&files.next()?) {
                    Ok(log) => current = Some(log),
                    Err(error) => return Some(Err(error)),
                }
                continue;
            };
            if !log.advance(&mut ready) {
                current = None;
            }
        }
    })
}

/// The shaders of one log, as its lines come.
pub fn shaders_in(lines: Lines) -> impl Iterator<Item = Result<FileShader, InputError>> + Send {
    let mut log = Some(OpenLog::of(lines));
    let mut ready = VecDeque::new();
    std::iter::from_fn(move || {
        while ready.is_empty() {
            if !log.as_mut()?.advance(&mut ready) {
                log = None;
            }
        }
        ready.pop_front()
    })
}

/// A log that is being read.
struct OpenLog {
    lines: Lines,
    reader: ShaderReader,
    /// The number of shaders so far.
    found: usize,
}

impl OpenLog {
    fn new(path: &Path) -> Result<Self, InputError> {
        Ok(Self::of(Lines::open(path)?))
    }

    fn of(lines: Lines) -> Self {
        let reader = ShaderReader::new(&lines.path);
        Self { lines, reader, found: 0 }
    }

    /// Reads on until a shader is complete; returns false at the end of the file.
    fn advance(&mut self, ready: &mut VecDeque<Result<FileShader, InputError>>) -> bool {
        let path = self.lines.path.clone();
        let mut put = |shader| ready.push_back(Ok(FileShader { path: path.clone(), shader }));
        let mut failure = None;
        for line in &mut self.lines {
            match line {
                Ok(line) => self.reader.line(line.trim_end_matches('\n')),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
            if let Some(shader) = self.reader.next_complete() {
                put(shader);
                self.found += 1;
                return true;
            }
        }
        let nothing = self.reader.nothing();
        for shader in std::mem::replace(&mut self.reader, ShaderReader::new(&path)).end() {
            put(shader);
            self.found += 1;
        }
        let nothing = (self.found == 0).then_some(nothing);
        ready.extend(failure.or(nothing).map(Err));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_gpus_are_found() {
        let name = |line| gpu_name(line).map(|gpu| gpu.name);
        assert_eq!(name("GL_RENDERER: FD618"), Some("a618"));
        assert_eq!(name("MESA: info:  GPU-id:          FD630"), Some("a630"));
        assert_eq!(name("    deviceName     = Turnip Adreno (TM) 750"), Some("a750"));
        assert_eq!(name("Qualcomm, Adreno 540, 1.1"), Some("a540"));
        for line in ["FD6180", "aFD618", "FD61", "FD999", "FD 618", "0xFD618", "FD618_x", "fd618", "Adreno"] {
            assert_eq!(name(line), None, "{line}");
        }
    }

    #[test]
    fn sections_of_two_shaders_in_turn_are_noticed() {
        let nir = "NIR (final form) for VERT shader (null):\nimpl main {\n}\n";
        let pass = |name: &str| format!("AFTER: {name}:\nblock1 {{\n}}\n");
        let code = |hash: u32| {
            format!("Native code for unnamed VERT shader (null) with sha1 {hash}:\nend\n; VERT: outputs:\n")
        };
        let [select, copy] = ["nir->ir3", "ir3_cp"].map(pass);
        let mixed = |sections: &[&str]| -> Vec<bool> {
            let shaders = shaders_of(Path::new("x.log"), &sections.concat());
            shaders.iter().map(|shader| shader.mixed.is_some()).collect()
        };
        let (one, two) = (code(1), code(2));
        assert_eq!(mixed(&[nir, &select, &copy, &one, nir, &select, &copy, &two]), [false, false]);
        assert_eq!(mixed(&[nir, nir, &select, &copy, &one, &select, &copy, &two]), [false, true, false]);
        assert_eq!(mixed(&[nir, &select, nir, &select, &copy, &copy, &one, &two]), [false, true, false]);
        // A compilation that fails prints no final code, and a log may lack nir, or final code.
        assert_eq!(mixed(&[nir, &select, nir, &select, &copy, &one, nir, &select, &two]), [false; 3]);
        assert_eq!(mixed(&[&select, &copy, &select, &copy]), [false, false]);
        assert_eq!(mixed(&[nir, &select, &copy, nir, &select, &copy]), [false, false]);
    }

    /// The GPUs of the shaders of a log, and whether they are guesses.
    fn gpus(text: &str) -> Vec<(&'static str, bool)> {
        let shaders = shaders_of(Path::new("x.log"), text);
        shaders.iter().map(|shader| (shader.target(None).name, shader.is_target_guessed(None))).collect()
    }

    #[test]
    fn a_log_says_its_gpu_between_shaders() {
        let shader = |generation: u32, inside: &str| {
            format!(
                "NIR (final form) for VERT shader (null):\n{inside}impl main {{\n}}\nAFTER: nir->ir3:\nblock1 {{\n}}\n\
                 Native code for unnamed VERT shader (null) with sha1 1:\nend\n; VERT: outputs:\n; gpu gen {generation}, x\n"
            )
        };
        assert_eq!(gpus(&shader(6, "")), [("a660", true)]);
        assert_eq!(gpus(&format!("GL_RENDERER: FD618\n{}", shader(6, ""))), [("a618", false)]);
        // After the shader, and another one before the next.
        let two = format!("{}FD618\n{}FD630\n", shader(6, ""), shader(6, ""));
        assert_eq!(gpus(&two), [("a618", false), ("a618", false)]);
        // A name in a program is none, nor is that of a GPU of another generation.
        assert_eq!(gpus(&shader(6, "FD618\n")), [("a660", true)]);
        assert_eq!(gpus(&format!("FD618\n{}", shader(7, ""))), [("a750", true)]);
        let given = Target::by_name("a630").ok();
        let shader = &shaders_of(Path::new("x.log"), &format!("FD618\n{}", shader(6, "")))[0];
        assert_eq!((shader.target(given).name, shader.is_target_guessed(given)), ("a630", false));
    }
}
