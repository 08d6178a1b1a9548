//! Reading what Mesa prints, and finding input files.
//!
//! A log of the real compiler is a run of sections, each begun by a headline: the nir that enters ir3, the program after
//! each pass, the final assembly, statistics, the listing. [`Log`] cuts a log into [`Section`]s whose text the readers of
//! nir and ir3 take as it is: log prefixes and colours are gone, and no line is lost or added, so that a place in the text
//! leads back to a place in the file ([`Section::place`]).
//!
//! [`input`] turns the paths that a person names into texts with a kind, and says what is wrong with those that are none.

pub mod input;
pub mod log;
pub mod statistics;

pub use input::{InputError, InputKind, Place, Source};
pub use log::{Log, Section, SectionKind};
pub use statistics::{Statistics, Waves};
