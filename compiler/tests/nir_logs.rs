//! Every `NIR (final form)` section of the real logs reads, validates, and survives a round trip.

use std::fs;
use std::path::{Path, PathBuf};

use ir3_compiler::nir;

/// `../shared` of the workspace, or where `IR3_SHARED` says.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = std::env::var_os("IR3_SHARED").map_or(beside, PathBuf::from);
    path.is_dir().then_some(path)
}

fn logs(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            logs(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "log") {
            found.push(path);
        }
    }
}

/// The final-form sections of a log, without the headline.
fn sections(text: &str) -> Vec<String> {
    let mut sections = Vec::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let plain = line.strip_prefix("MESA: info: ").unwrap_or(line);
        if plain.starts_with("NIR (final form)") {
            current = Some(String::new());
        } else if plain.starts_with("AFTER: ") {
            sections.extend(current.take());
        } else if let Some(section) = &mut current {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections.extend(current);
    sections
}

/// A text with padding and log prefixes gone, for comparing with Mesa's.
fn squeeze(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.strip_prefix("MESA: info:").unwrap_or(line))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn every_section_survives_a_round_trip() {
    let Some(shared) = shared() else {
        println!("skipped: ../shared is absent");
        return;
    };
    let mut paths = Vec::new();
    logs(&shared.join("mesa"), &mut paths);
    let (mut count, mut instructions, mut blocks, mut as_mesa, mut exactly) = (0, 0, 0, 0, 0);
    let mut failures = Vec::new();
    for path in &paths {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        for section in sections(&text) {
            count += 1;
            let shader = match nir::read(&section) {
                Ok(shader) => shader,
                Err(error) => {
                    failures.push(format!("{}: {error}", path.display()));
                    continue;
                }
            };
            instructions += shader.instruction_count();
            blocks += shader.entry.blocks.len();
            if let Err(errors) = nir::validate(&shader) {
                failures.push(format!("{}: {}", path.display(), errors[0]));
            }
            let written = nir::write(&shader);
            match nir::read(&written) {
                Ok(again) if again == shader => {}
                Ok(_) => failures.push(format!("{}: reads differently after writing", path.display())),
                Err(error) => failures.push(format!("{}: own text: {error}", path.display())),
            }
            let (ours, mesas) = (squeeze(&written), squeeze(&section));
            as_mesa += usize::from(ours == mesas);
            if let Some((ours, mesas)) = ours.iter().zip(&mesas).find(|(ours, mesas)| ours != mesas) {
                failures.push(format!("{}: wrote\n    {ours}\n  but Mesa wrote\n    {mesas}", path.display()));
            }
            let plain: String =
                section.lines().map(|l| l.strip_prefix("MESA: info: ").unwrap_or(l).to_owned() + "\n").collect();
            exactly += usize::from(plain.trim_end() == written.trim_end());
        }
    }
    println!(
        "{} logs, {count} nir sections, {instructions} instructions in {blocks} blocks; \
         text as Mesa's: {as_mesa} up to padding, {exactly} to the byte",
        paths.len()
    );
    assert!(
        failures.is_empty(),
        "{} failures, the first:\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
    assert!(count > 0);
}
