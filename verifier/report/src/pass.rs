//! The folder of a refuted pass: the files for a bug report of Mesa.
//!
//! - `README.md`: the pass, the difference, and the command that shows it again;
//! - `before.txt`, `after.txt`: both sections as the log has them;
//! - `before.ir3` or `before.nir`, and `after.ir3`: the same programs with the recovered attributes;
//! - `env.json`: the input;
//! - `difference.txt`: the traces of both sides up to their first difference;
//! - `pair.json`: the title and the GPU, which [`PairFolder`](crate::pair::PairFolder) reads.

use crate::difference::FirstDifference;
use crate::pair::metadata;
use ir3_harness::case::folder;
use ir3_harness::check::{Boundary, Engines, Refutation, Unknown, Verdict};
use ir3_harness::mesa::RefutedPass;
use ir3_programs::mesa::Section;
use ir3_programs::mesa::input::PAIR_FILE;
use ir3_semantics::Snapshot;
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::random::text_hash;
use std::io;
use std::path::{Path, PathBuf};

/// Writes the folder of a refuted pass below `root`.
///
/// # Errors
/// If the file system refuses.
pub fn write(root: &Path, shader: &str, pass: &RefutedPass) -> io::Result<PathBuf> {
    let path = root.join(folder_name(shader, pass));
    folder::write(&path, &files(shader, pass))?;
    Ok(path)
}

/// The files of such a folder.
pub fn files(shader: &str, pass: &RefutedPass) -> Vec<(&'static str, String)> {
    let RefutedPass { name, sections, refutation, target } = pass;
    let Refutation { before, after, env, difference, .. } = &**refutation;
    let before_name = before_name(before);
    let mut files = vec![
        ("README.md", readme(shader, pass)),
        (before_name, before.text()),
        ("after.ir3", after.text()),
        ("env.json", env.to_json() + "\n"),
    ];
    for (file, section) in ["before.txt", "after.txt"].into_iter().zip(sections) {
        if let Some(Section { headline, text, .. }) = section {
            files.push((file, format!("{headline}\n{text}")));
        }
    }
    let first = catch(|| FirstDifference::find(before, after, target, env, difference));
    if let Ok(Ok(first)) = first {
        files.push(("difference.txt", first.to_string()));
    }
    files.push((PAIR_FILE, metadata(&format!("{shader}: {name}"), target)));
    files
}

fn folder_name(shader: &str, pass: &RefutedPass) -> String {
    let file = shader.rsplit(['/', '\\']).next().unwrap_or_default();
    // Shaders of different streams have the same name.
    let texts: Vec<&str> = pass.sections.iter().flatten().map(|section| &*section.text).collect();
    let line = pass.sections[1].as_ref().map_or(0, |section| section.first_line);
    let hash = text_hash(&format!("{shader} {line} {}", texts.concat())) as u32;
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    format!("mesa-{}-{file}-{hash:08x}", pass.name).chars().map(plain).collect()
}

/// The command that reproduces a refutation, in its folder. `check` runs programs whose results are available at once;
/// a result that is used too early is shown by the hazard checker.
pub fn command_again(RefutedPass { refutation, target, .. }: &RefutedPass) -> String {
    let Refutation { before, after, env, .. } = &**refutation;
    let gpu = target.name;
    let boundary = Boundary::of_texts(before.into(), after.into());
    match Engines::interpreter().judge(&boundary, target, std::slice::from_ref(env)).verdict {
        Verdict::Refuted(_) | Verdict::Unknown(Unknown::Crashed(_)) => {
            format!("ir3-equiv check --gpu {gpu} --env env.json {} after.ir3", before_name(before))
        }
        _ => format!("ir3-equiv hazards --gpu {gpu} after.ir3"),
    }
}

fn before_name(before: &Snapshot) -> &'static str {
    if before.as_nir().is_some() { "before.nir" } else { "before.ir3" }
}

fn readme(shader: &str, pass: &RefutedPass) -> String {
    let RefutedPass { name, sections, refutation, target } = pass;
    let at = |side: usize| sections[side].as_ref().map_or(0, |section| section.first_line.saturating_sub(1));
    format!(
        "# {pass} changes what the shader does\n\n\
         `{shader}`, GPU {gpu}: the program after `{pass}` (line {after} of the log) is not that before it (line {before}).\n\n\
         {difference}\n\n\
         Both sections are in `before.txt` and `after.txt` as the log has them. `{before_name}` and `after.ir3` are the same programs with \
         the types, inputs and outputs that the text leaves out, `env.json` is the input, and `difference.txt` has the runs up \
         to the first difference. To see it again:\n\n    \
         {again}\n",
        before_name = before_name(&refutation.before),
        again = command_again(pass),
        pass = name,
        gpu = target.name,
        before = at(0),
        after = at(1),
        difference = refutation.difference,
    )
}
