//! `ir3-selftest words`: machine code from words to text and back.

use crate::{Exit, Failure, Format, interrupt, output};
use clap::Args;
use ir3_harness::campaigns::words::{self, Counts};
use ir3_programs::mesa::input::collect_paths;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Options of `words`.
#[derive(Args)]
pub struct Words {
    /// Logs with listings, or folders of logs: every line must equal the output of the disassembler for its word, and
    /// every text must assemble to the word on its line.
    #[arg(value_name = "LOG", required_unless_present = "random")]
    logs: Vec<PathBuf>,
    /// Try this many words instead, random ones and changed ones of the table: each is an instruction that comes back
    /// from its text, or is refused.
    #[arg(long, value_name = "N", conflicts_with = "logs")]
    random: Option<u64>,
    /// The seed of random words.
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random")]
    seed: u64,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    counts: Counts,
    opcodes: usize,
    seconds: f64,
}

impl Words {
    /// Runs the subcommand.
    pub fn run(&self, _: Format) -> Result<Exit, Failure> {
        let start = Instant::now();
        let mut counts = Counts::default();
        let mut opcodes = std::collections::BTreeSet::new();
        if let Some(count) = self.random {
            for chunk in 0..count.div_ceil(words::CHUNK) {
                if interrupt::is_set() {
                    break;
                }
                let size = words::CHUNK.min(count - chunk * words::CHUNK);
                words::random(self.seed.wrapping_add(chunk), size, &mut counts);
            }
        } else {
            for path in collect_paths(&self.logs)? {
                let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                words::listings(&path.display().to_string(), &text, &mut counts, &mut opcodes);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        for failure in &counts.failures {
            output::line(failure);
        }
        output::line(&format!(
            "{} words, {} instructions ({} of ir3, {} encoded again), {} mnemonics, {} wrong, {:.1} million a second",
            counts.words,
            counts.instructions,
            counts.decoded,
            counts.encoded,
            opcodes.len(),
            counts.wrong,
            counts.words as f64 / seconds.max(1e-9) / 1e6,
        ));
        if counts.words == 0 {
            output::problem("found no word in the listings");
        }
        let exit = Exit::Refuted.when(counts.wrong > 0).max(Exit::Nothing.when(counts.words == 0));
        output::json("words", &Report { counts, opcodes: opcodes.len(), seconds });
        Ok(exit)
    }
}
