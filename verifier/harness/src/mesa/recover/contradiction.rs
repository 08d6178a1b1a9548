//! Statements of a log that cannot all hold.

use ir3_programs::mesa::Section;
use std::fmt;

/// Two statements of a log that cannot both hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The titles of the sections that state them.
    pub sections: Vec<String>,
    message: String,
}

impl Contradiction {
    /// A contradiction between sections of passes.
    pub(super) fn between(sections: impl Into<Vec<String>>, message: String) -> Self {
        Self { sections: sections.into(), message }
    }

    /// A contradiction between lists of the log.
    pub(super) fn of_lists(message: String) -> Self {
        Self { sections: Vec::new(), message }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A section as a message names it.
pub(super) fn place(section: &Section) -> String {
    format!("`{}` (line {})", section.title(), section.place(0, 0).0)
}
