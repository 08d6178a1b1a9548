//! A cache of verdicts that persists between runs, in a folder.
//!
//! A verdict's key is the hash of its inputs: the texts of the two programs, normalised by the caller, and all
//! other inputs of the verdict. The hash also covers `SOURCES`, so a verdict of another version of the prover, which
//! may have been wrong, is not found.
//!
//! A file is written under a temporary name and renamed, so readers see all of it or nothing, even if other processes
//! write or crash. A file that does not parse, or has another key, is ignored.

use ir3_semantics::support::guards::any_left_out;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::Xxh3;

/// A hash of the sources of this package and of the compiler that verdicts depend on (`build.rs`): any change of the
/// semantics or of the provers changes it, a change of a page does not.
const SOURCES: &str = env!("IR3_SOURCES");

/// The key of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VerdictKey(u128);

impl VerdictKey {
    /// The key of these texts, in this order.
    pub fn of(texts: &[&str]) -> Self {
        Self::by(SOURCES, texts)
    }

    /// The key of these texts, for a prover with these sources.
    fn by(sources: &str, texts: &[&str]) -> Self {
        let mut hash = Xxh3::new();
        for text in [sources].iter().chain(texts) {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        Self(hash.digest128())
    }
}

impl std::fmt::Display for VerdictKey {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A folder of verdicts.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// The first error of a write.
    failure: Arc<OnceLock<String>>,
}

/// A file. It contains the key, in case it has been copied to a wrong place.
#[derive(Serialize, Deserialize)]
struct CacheEntry<V> {
    key: String,
    verdict: V,
}

impl Cache {
    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_owned(), failure: Arc::default() })
    }

    /// Reads a verdict, if there is one.
    pub fn get<V: DeserializeOwned>(&self, key: VerdictKey) -> Option<V> {
        self.read(key).ok().flatten()
    }

    /// Reads a verdict. `None` if there is no file of the key.
    ///
    /// # Errors
    /// If there is one that is no entry of the key: the file, and its error.
    pub fn read<V: DeserializeOwned>(&self, key: VerdictKey) -> Result<Option<V>, String> {
        if any_left_out() {
            return Ok(None);
        }
        let path = self.path(key);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let entry: CacheEntry<V> =
            serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if entry.key != key.to_string() {
            return Err(format!("{}: found the entry of {}", path.display(), entry.key));
        }
        Ok(Some(entry.verdict))
    }

    /// The first error of a write, in this cache or a clone of it.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Writes a verdict, replacing any other. The verdict is valid even if it cannot be written, so this returns no
    /// error: see [`failure`](Self::failure).
    pub fn put<V: Serialize>(&self, key: VerdictKey, verdict: &V) {
        if let Err(error) = self.write(key, verdict) {
            self.failure.get_or_init(|| format!("{}: {error}", self.folder.display()));
        }
    }

    fn write<V: Serialize>(&self, key: VerdictKey, verdict: &V) -> io::Result<()> {
        // A prover without one of its side conditions proves nothing.
        if any_left_out() {
            return Ok(());
        }
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        let text = serde_json::to_vec(&CacheEntry { key: key.to_string(), verdict })?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
        let written = OpenOptions::new().write(true).create_new(true).open(&beside).and_then(|mut file| {
            file.write_all(&text)?;
            fs::rename(&beside, &path)
        });
        if written.is_err() {
            // A temporary file that remains after a failed write does no harm.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Some 256 folders, so that none gets too large.
    fn path(&self, key: VerdictKey) -> PathBuf {
        let name = key.to_string();
        self.folder.join(&name[..2]).join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("ir3-equiv-cache-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn verdicts_are_kept() {
        let folder = Folder::new("kept");
        let cache = Cache::new(&folder.0).expect("a folder");
        let (one, other) = (VerdictKey::of(&["a", "b"]), VerdictKey::of(&["ab", ""]));
        assert_ne!(one, other);
        assert_eq!(cache.get::<String>(one), None);
        cache.put(one, &"proved");
        assert_eq!(cache.get::<String>(one).as_deref(), Some("proved"));
        assert_eq!(cache.get::<String>(other), None);
        cache.put(one, &"unknown");
        let again = Cache::new(&folder.0).expect("the same folder");
        assert_eq!(again.get::<String>(one).as_deref(), Some("unknown"));
    }

    #[test]
    fn another_prover_has_other_keys() {
        assert_eq!(SOURCES.len(), 32);
        assert_eq!(VerdictKey::of(&["a"]), VerdictKey::by(SOURCES, &["a"]));
        assert_ne!(VerdictKey::of(&["a"]), VerdictKey::by(&SOURCES.replace(|digit| digit != '0', "0"), &["a"]));
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        let folder = Folder::new("broken");
        let cache = Cache::new(&folder.0).expect("a folder");
        let [one, other] = ["one", "other"].map(|text| VerdictKey::of(&[text]));
        cache.put(one, &1u32);
        let text = fs::read(cache.path(one)).expect("a file");
        for length in 0..text.len() {
            fs::write(cache.path(one), &text[..length]).expect("cut");
            assert_eq!(cache.get::<u32>(one), None, "{length}");
        }
        fs::write(cache.path(one), &text).expect("whole");
        assert_eq!(cache.get::<u32>(one), Some(1));
        assert_eq!(cache.get::<Vec<u32>>(one), None);
        // A copy in the place of another.
        cache.put(other, &2u32);
        fs::copy(cache.path(one), cache.path(other)).expect("copied");
        assert_eq!(cache.get::<u32>(other), None);
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let folder = Folder::new("unwritable");
        let cache = Cache::new(&folder.0).expect("a folder");
        cache.put(VerdictKey::of(&["one"]), &1u32);
        assert_eq!(cache.failure(), None);
        fs::remove_dir_all(&folder.0).expect("ours");
        fs::write(&folder.0, "a file in its place").expect("written");
        let clone = cache.clone();
        clone.put(VerdictKey::of(&["one"]), &1u32);
        let failure = cache.failure().expect("it is not there");
        assert!(failure.contains("unwritable"), "{failure}");
        fs::remove_file(&folder.0).expect("ours");
        fs::create_dir(&folder.0).expect("for the end of the test");
    }

    /// Concurrent writes of one place: each reader sees one of the values, and no temporary file remains.
    #[test]
    fn writers_do_not_meet() {
        let folder = Folder::new("writers");
        let cache = Cache::new(&folder.0).expect("a folder");
        let key = VerdictKey::of(&["key"]);
        std::thread::scope(|scope| {
            for value in 0..4u64 {
                let cache = &cache;
                scope.spawn(move || {
                    for _ in 0..50 {
                        cache.put(key, &vec![value; 1000]);
                        let found: Vec<u64> = cache.get(key).expect("a whole file");
                        assert!(found.len() == 1000 && found.iter().all(|value| *value == found[0]));
                    }
                });
            }
        });
        let files = fs::read_dir(cache.path(key).parent().expect("a folder")).expect("a folder").count();
        assert_eq!(files, 1);
    }
}
