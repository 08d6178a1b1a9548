//! The results of a compilation.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The end of a compilation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Its name in answers.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The kind of a name.
            pub fn by_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// The driver made all pipelines, and printed.
    Compiled = "compiled",
    /// A call of the driver returned an error.
    Refused = "refused",
    /// The device lacks capabilities that the module needs; the driver has not seen it.
    Unsupported = "unsupported",
    /// The module does not parse.
    Invalid = "invalid",
    /// The text is not translated to SPIR-V.
    Untranslated = "untranslated",
    /// The file cannot be read.
    Unreadable = "unreadable",
    /// A signal ended the driver.
    Crashed = "crashed",
    /// The driver took more time than it may.
    Hung = "hung",
    /// The driver took more memory than it may.
    Memory = "memory",
    /// The driver printed more than it may.
    Flooded = "flooded",
    /// The driver made all pipelines, and printed no shader.
    Silent = "silent",
    /// The driver ended the process.
    Exited = "exited",
    /// A program was executed, twice with the same result.
    Executed = "executed",
    /// The second execution has another result.
    Unstable = "unstable",
    /// The device was lost.
    Lost = "lost",
    /// This program, not the driver, did not do its work.
    Failed = "failed",
}

/// The result of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub kind: Kind,
    /// The reason, in a line.
    pub detail: String,
}

impl Outcome {
    /// A result. Its reason becomes one line.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let detail: String = detail.into();
        Self { kind, detail: detail.split_whitespace().collect::<Vec<_>>().join(" ") }
    }
}
