//! Readers of programs: files, sections of logs, machine code.
//!
//! [`load`] reads the program of a file, [`parse`] that of a text. [`native`] reads the words of a log, with the
//! interface that the lines around them have; [`machine_code`] the words of a dump.

pub mod machine_code;
pub mod natives;
pub mod programs;

pub use natives::{NativeError, NativeProgram, native};
pub use programs::{Named, Unread, load, load_pair, load_source, parse, read_log_nir, unread, unread_of};
