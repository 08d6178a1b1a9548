//! Reader for Mesa's logs, and discovery of input files.
//!
//! A log of Mesa's compiler is a sequence of sections, each begun by a headline: the nir that ir3 receives, the program
//! after each pass, the final assembly, statistics, the listing. [`Log`] splits a log into [`Section`]s whose text the
//! readers of nir and ir3 accept unchanged: log prefixes and colours are removed, and no line is dropped or added, so
//! that a position in the text maps back to one in the file ([`Section::place`]).
//!
//! [`input`] turns paths from the command line into texts with a kind, and describes the errors of the others.

pub mod damage;
pub mod fragment;
pub mod input;
pub mod log;
pub mod mixed;
pub mod native;
pub mod origin;
pub mod pair_file;
mod paste;
pub mod shader;
pub mod statistics;
pub mod stream;

pub use input::{FilePosition, InputError, InputKind, Source};
pub use log::{Log, Section, SectionKind};
pub use statistics::{Statistics, Waves, mesa_counts};
