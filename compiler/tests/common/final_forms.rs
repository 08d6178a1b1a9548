//! The nir of a log.

/// The final-form sections of a log, without the heading.
pub fn final_forms(log: &str) -> Vec<String> {
    let mut sections = Vec::new();
    let mut current: Option<String> = None;
    for line in log.lines() {
        let plain = line.strip_prefix("MESA: info: ").unwrap_or(line);
        if plain.starts_with("NIR (final form)") {
            sections.extend(current.replace(String::new()));
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
