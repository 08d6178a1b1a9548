//! Shaders as SPIR-V, GLSL or WGSL, compiled by Mesa's turnip as a distribution ships it: its log is the input of
//! `mesa`.
//!
//! The driver runs in a process of its own, `ir3-turnip` (verifier/turnip), which answers for the kernel's device:
//! there is no GPU. This module finds the driver ([`Driver`]), has modules compiled ([`Worker`]), and adds the machine
//! code that release builds do not print (`words`).

pub mod driver;
mod words;
mod worker;

pub use driver::{Driver, NoDriver};
pub use words::Found;
pub use worker::{Compilation, Setup, Worker, WorkerError};

use std::fmt;
use std::path::Path;

/// Returns true for files that are compiled: by their extension.
#[must_use]
pub fn is_shader(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| matches!(extension, "spv" | "comp" | "vert" | "frag" | "wgsl"))
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $text:literal;)*) => {
        /// The end of a compilation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its name in answers of the worker.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => $text,)*
                })
            }
        }
    };
}

kinds! {
    /// The driver made all pipelines, and printed.
    Compiled = "compiled", "compiled";
    /// A call of the driver returned an error.
    Refused = "refused", "refused by the driver";
    /// The device lacks capabilities that the module needs; the driver has not seen it.
    Unsupported = "unsupported", "not supported";
    /// The module does not parse, or is none of Vulkan.
    Invalid = "invalid", "no valid module";
    /// The text is not translated to SPIR-V.
    Untranslated = "untranslated", "not translated to SPIR-V";
    /// The file cannot be read.
    Unreadable = "unreadable", "cannot be read";
    /// A signal ended the driver.
    Crashed = "crashed", "the driver crashed";
    /// The driver took more time than it may.
    Hung = "hung", "the driver hangs";
    /// The driver took more memory than it may.
    Memory = "memory", "the driver takes too much memory";
    /// The driver printed more than it may.
    Flooded = "flooded", "the driver prints too much";
    /// The driver made all pipelines, and printed no shader.
    Silent = "silent", "the driver prints nothing";
    /// The driver ended the process.
    Exited = "exited", "the driver exits";
    /// The worker, not the driver, did not do its work.
    Failed = "failed", "the worker failed";
}

impl Kind {
    /// The kind of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns true if the driver is at fault, for any module.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        matches!(self, Self::Crashed | Self::Hung | Self::Memory | Self::Flooded | Self::Silent | Self::Exited)
    }
}
