//! Every `NIR (final form)` section of the real logs is read, is valid, and is the same after writing and reading it
//! back.

use crate::common::final_forms::final_forms;
use crate::common::logs::{logs, text};
use ir3_compiler::nir;

/// A text without padding and log prefixes, for comparison with Mesa's.
fn squeeze(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.strip_prefix("MESA: info:").unwrap_or(line))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn every_section_survives_a_round_trip() {
    let folders = logs();
    let paths: Vec<_> = folders.values().flatten().collect();
    let (mut count, mut instructions, mut blocks, mut as_mesa, mut exactly) = (0, 0, 0, 0, 0);
    let mut failures = Vec::new();
    for path in &paths {
        for section in final_forms(&text(path)) {
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
    assert!(paths.is_empty() || count > 0);
}
