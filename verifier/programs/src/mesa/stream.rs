//! Shaders of a live stream: the output of a game or a test run, while it runs, in bounded memory.
//!
//! The stream is cut into lines for any contents: bytes that are no UTF-8 are replaced, and a line that is too long is
//! cut. It may stop for a while after a shader: [`settle`](ShaderStream::settle) then completes the shader that waits
//! for the next headline.

use super::shader::{LogShader, ShaderReader};
use std::path::Path;

/// The length of a line, in bytes, from which on it is cut.
const MOST_LINE: usize = 1 << 20;

/// Puts the bytes of a stream together to shaders.
#[derive(Debug)]
pub struct ShaderStream {
    reader: ShaderReader,
    line: Vec<u8>,
    /// The number of lines that were cut.
    cut: u64,
}

impl ShaderStream {
    /// A stream that has not begun; messages call it by this name.
    pub fn new(path: &Path) -> Self {
        Self { reader: ShaderReader::new(path), line: Vec::new(), cut: 0 }
    }

    /// Reads bytes. `each` receives the shaders that they complete.
    pub fn read(&mut self, bytes: &[u8], each: &mut dyn FnMut(LogShader)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = MOST_LINE.saturating_sub(self.line.len());
            if part.len() > room && self.line.len() < MOST_LINE {
                self.cut += 1;
            }
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.end_of_line(each);
            }
        }
    }

    fn end_of_line(&mut self, each: &mut dyn FnMut(LogShader)) {
        let line = String::from_utf8_lossy(&self.line);
        self.reader.line(line.trim_end_matches('\n'));
        self.line.clear();
        while let Some(shader) = self.reader.next_complete() {
            each(shader);
        }
    }

    /// Completes the shaders that have all their sections but wait for the next headline: nothing came for a while.
    pub fn settle(&mut self, each: &mut dyn FnMut(LogShader)) {
        if self.line.is_empty() && self.reader.settle() {
            while let Some(shader) = self.reader.next_complete() {
                each(shader);
            }
        }
    }

    /// The number of lines that were cut because of their length.
    pub const fn cut_lines(&self) -> u64 {
        self.cut
    }

    /// The shaders that are left at the end of the stream.
    #[must_use]
    pub fn end(mut self) -> Vec<LogShader> {
        let mut last = Vec::new();
        if !self.line.is_empty() {
            self.end_of_line(&mut |shader| last.push(shader));
        }
        last.extend(self.reader.end());
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = include_str!("../../../../corpus/mesa/copies.log");

    /// The shaders of a stream that comes in pieces of a length.
    fn shaders(text: &[u8], length: usize) -> Vec<LogShader> {
        let mut stream = ShaderStream::new(Path::new("x"));
        let mut all = Vec::new();
        for bytes in text.chunks(length) {
            stream.read(bytes, &mut |shader| all.push(shader));
        }
        all.extend(stream.end());
        all
    }

    #[test]
    fn pieces_of_any_length_are_the_same_shaders() {
        let text = LOG.repeat(2);
        let whole = shaders(text.as_bytes(), usize::MAX);
        assert_eq!(whole.len(), 2);
        assert!(whole.iter().all(|shader| shader.broken.is_empty() && shader.passes.len() == 6));
        for length in [1, 7, 4096] {
            let all = shaders(text.as_bytes(), length);
            let sections = |all: &[LogShader]| -> Vec<String> {
                all.iter().flat_map(LogShader::sections).map(|section| section.text.clone()).collect()
            };
            assert_eq!(sections(&all), sections(&whole), "{length}");
        }
    }

    #[test]
    fn a_shader_is_complete_when_nothing_follows_for_a_while() {
        for end in [LOG.len(), LOG.find("; gpu gen").expect("a line")] {
            let mut stream = ShaderStream::new(Path::new("x"));
            let mut all = Vec::new();
            stream.read(&LOG.as_bytes()[..end], &mut |shader| all.push(shader));
            assert!(all.is_empty());
            stream.settle(&mut |shader| all.push(shader));
            assert_eq!(all.len(), 1);
            // The next one is not mixed with it.
            stream.read(LOG.as_bytes(), &mut |shader| all.push(shader));
            all.extend(stream.end());
            assert_eq!(all.iter().filter(|shader| shader.nir.is_some()).count(), 2);
            assert!(all.iter().all(|shader| shader.broken.is_empty()));
        }
        // In the middle of a program nothing is complete.
        for cut in ["AFTER: ir3_legalize", "Native code", "; VERT: outputs"] {
            let mut stream = ShaderStream::new(Path::new("x"));
            let at = LOG.find(cut).expect("a line");
            stream.read(&LOG.as_bytes()[..at], &mut |_| panic!("{cut}"));
            stream.settle(&mut |_| panic!("{cut}"));
        }
    }

    #[test]
    fn other_bytes_and_long_lines_do_not_end_it() {
        let mut text = b"\xff\xfe game \x80\n".to_vec();
        text.extend(vec![b'x'; 3 * MOST_LINE]);
        text.extend(b"\n");
        text.extend(LOG.as_bytes());
        let mut stream = ShaderStream::new(Path::new("x"));
        text.chunks(1000).for_each(|bytes| stream.read(bytes, &mut |_| {}));
        assert_eq!((stream.cut_lines(), stream.line.capacity() < 2 * MOST_LINE + 2000), (1, true));
        let all = stream.end();
        assert!(all.len() == 1 && all[0].broken.is_empty());
    }

    /// A stream without an end of a shader, or without any.
    #[test]
    fn memory_is_bounded() {
        let mut stream = ShaderStream::new(Path::new("x"));
        let chatter = "a line of the application\n".repeat(1000);
        let mut all = Vec::new();
        stream.read(LOG.as_bytes(), &mut |shader| all.push(shader));
        for _ in 0..2000 {
            stream.read(chatter.as_bytes(), &mut |shader| all.push(shader));
        }
        let size: usize = stream.end().iter().chain(&all).map(LogShader::size).sum();
        assert!(size < 20 << 20, "{size}");
    }
}
