//! The real logs of `../shared/mesa` are cut into sections, and damaged logs are handled.

use super::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ir3_programs::mesa::{Log, SectionKind, Source};
use proptest::prelude::*;

static LOGS: LazyLock<Option<Vec<PathBuf>>> = LazyLock::new(common::logs);

#[test]
fn every_real_log_falls_into_sections() {
    let Some(paths) = &*LOGS else { return };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        let source = Source::read(path).unwrap();
        let log = Log::read(path, &source.text).unwrap();
        let headlines = source.text.lines().filter(|line| line.contains("NIR (final form) for")).count();
        assert_eq!(log.nir(path).unwrap().len(), headlines, "{}", path.display());
        let passes = source.text.lines().filter(|line| line.contains("AFTER: ")).count();
        let after = |s: &&_| matches!(s, &&SectionKind::Ir3After { .. });
        assert_eq!(log.sections.iter().map(|s| &s.kind).filter(after).count(), passes, "{}", path.display());
        for section in &log.sections {
            let kind = match section.kind {
                SectionKind::NirFinal { .. } => "nir",
                SectionKind::Ir3After { .. } => "ir3",
                SectionKind::NativeCode => "native code",
                SectionKind::Statistics => "statistics",
                SectionKind::Listing => "listing",
                // Warnings of the SPIR-V reader.
                SectionKind::Other => "other",
            };
            *counts.entry(kind).or_default() += 1;
        }
    }
    println!("{} logs: {counts:?}", paths.len());
    assert_eq!(counts["native code"], counts["statistics"]);
    assert_eq!(counts["listing"], paths.len());
}

/// A small log to damage, where the real ones are absent.
const SMALL: &str = "\
MESA: info: NIR (final form) for CL shader (null):
MESA: info: shader: MESA_SHADER_COMPUTE
MESA: info: impl main {
MESA: info:     block b0:
MESA: info: }
MESA: info: AFTER: nir->ir3:
MESA: info: block0 {
MESA: info: \t0001:0000:000: \tend
MESA: info: }
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Damage of any kind gives sections or an error within the file, never a panic.
    #[test]
    fn damaged_logs_never_panic(which in any::<prop::sample::Index>(), edits in prop::collection::vec(
        (any::<prop::sample::Index>(), 0u8..3, any::<u8>()), 1..8)) {
        let mut bytes = match &*LOGS {
            Some(paths) => std::fs::read(which.get(paths)).unwrap(),
            None => SMALL.as_bytes().to_vec(),
        };
        for (place, kind, byte) in edits {
            let at = place.index(bytes.len().max(1));
            match kind {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.insert(at.min(bytes.len()), byte),
                _ => { if at < bytes.len() { bytes[at] = byte & 0x7f; } }
            }
        }
        let lines = bytes.split(|&b| b == b'\n').count() as u32;
        if let Ok(source) = Source::from_bytes(Path::new("damaged.log"), bytes)
            && let Err(error) = Log::read(&source.path, &source.text) {
            let message = error.to_string();
            let line: u32 = message.split(':').nth(1).unwrap().parse().unwrap();
            prop_assert!(line >= 1 && line <= lines, "{message}");
        }
    }
}
