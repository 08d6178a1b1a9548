//! The version of the program, and the commit that it was built from.

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit of the library, with `-dirty` after it if its sources had changes; `None` if it was built without git.
pub const COMMIT: Option<&str> = option_env!("IR3_COMMIT");

/// The version and the commit, in one line.
pub const LINE: &str = env!("IR3_VERSION");
