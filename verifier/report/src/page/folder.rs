//! A folder of pages with an index.

use super::document::document;
use crate::bundle::title;
use crate::pair::PairEvidence;
use ir3_harness::case::{self, ReadError};
use ir3_prove::rewrite_rules::{Claim, ClaimVerdict};
use maud::html;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A page that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Bundle(#[from] ReadError),
    /// The file system refuses.
    #[error("{path}: the page cannot be written: {cause}", path = path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
}

/// The page of a refuted pair.
#[derive(Debug)]
pub struct PairPage {
    /// The name of its file, without the extension.
    pub name: String,
    /// Its title in the index.
    pub title: String,
    /// The document.
    pub html: String,
}

impl PairPage {
    /// Makes the page.
    pub fn of(evidence: &PairEvidence<'_>) -> Self {
        Self { name: evidence.name(), title: evidence.title.clone(), html: super::pair::of_pair(evidence) }
    }
}

/// A folder of pages. Its index is complete after each page, so an interrupted run leaves one that can be used.
#[derive(Debug)]
pub struct PageFolder {
    path: PathBuf,
    /// File names and titles.
    pages: Vec<(String, String)>,
}

impl PageFolder {
    /// Creates a folder, if it does not exist, and an index without pages.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn create(path: &Path) -> Result<Self, PageError> {
        fs::create_dir_all(path).map_err(|cause| PageError::Write { path: path.to_owned(), cause })?;
        let folder = Self { path: path.to_owned(), pages: Vec::new() };
        folder.write_index()?;
        Ok(folder)
    }

    /// Adds the page of a bundle, and returns its path.
    ///
    /// # Errors
    /// If the bundle cannot be read, or the file system refuses.
    pub fn add_bundle(&mut self, path: &Path) -> Result<PathBuf, PageError> {
        let case = case::read(path)?;
        let page = super::of_case(&case, &path.display().to_string());
        self.add(&case.folder_name(), title(&case), &page)
    }

    /// Adds the page of a refuted pair of texts, and returns its path.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn add_pair(&mut self, evidence: &PairEvidence<'_>) -> Result<PathBuf, PageError> {
        self.add_page(&PairPage::of(evidence))
    }

    /// Adds a page that was made before, and returns its path.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn add_page(&mut self, page: &PairPage) -> Result<PathBuf, PageError> {
        self.add(&page.name, page.title.clone(), &page.html)
    }

    /// Adds the page of a rewrite rule that is refuted, and returns its path. `command` shows the refutation again.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn add_rule(&mut self, claim: &Claim, verdict: &ClaimVerdict, command: &str) -> Result<PathBuf, PageError> {
        let page = super::of_rule(claim, verdict, command);
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
        let name: String = format!("{}-{}-{}", claim.table, claim.rule, claim.width).chars().map(plain).collect();
        self.add(&name, super::rule::title(claim), &page)
    }

    fn add(&mut self, name: &str, title: String, page: &str) -> Result<PathBuf, PageError> {
        let file = format!("{name}.html");
        let path = self.path.join(&file);
        fs::write(&path, page).map_err(|cause| PageError::Write { path: path.clone(), cause })?;
        self.pages.retain(|(other, _)| *other != file);
        self.pages.push((file, title));
        self.write_index()?;
        Ok(path)
    }

    fn write_index(&self) -> Result<(), PageError> {
        let count = self.pages.len();
        let heading = match count {
            0 => "No failures".to_owned(),
            1 => "1 failure".to_owned(),
            _ => format!("{count} failures"),
        };
        let body = html! {
            header {
                p.kind { "ir3-equiv " (env!("CARGO_PKG_VERSION")) }
                h1 { (heading) }
            }
            main {
                @if count > 0 {
                    ol { @for (file, title) in &self.pages { li { a href=(format!("./{file}")) { (title) } } } }
                }
            }
        };
        let path = self.path.join("index.html");
        let text = document(&heading, body).into_string();
        fs::write(&path, text).map_err(|cause| PageError::Write { path, cause })
    }
}
