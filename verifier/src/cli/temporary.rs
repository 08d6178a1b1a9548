//! A temporary folder.

use crate::exit::Unwritten;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder for the files that another program reads, which is removed at the end.
pub struct Temporary(PathBuf);

impl Temporary {
    /// A folder of this process, by the name of its use.
    pub fn new(name: &str) -> Result<Self, Unwritten> {
        let folder = std::env::temp_dir().join(format!("ir3-equiv-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|cause| Unwritten::new(&folder, cause))?;
        Ok(Self(folder))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A folder in the system's folder for temporary files that remains does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
