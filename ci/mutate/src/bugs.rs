//! The patches of corpus/bugs, all in one tree.
//!
//! A patch may change bodies of functions and nothing else. Each body that it changes is kept, and the patched one is
//! inserted at its beginning, guarded by the switch: `fn f(…) { if crate::mutant(3) { return { patched }; } original
//! }`. The numbers are those of the patches in the order of their names, from 1.

use crate::check;
use crate::splice::{self, Splice};
use quote::ToTokens;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The splices of all patches by file, numbered from `first` on, and the names of the patches.
pub fn splices(tree: &Path, first: u32) -> Result<(BTreeMap<String, Vec<Splice>>, Vec<String>), Box<dyn Error>> {
    let mut patches: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir("corpus/bugs")? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "patch") {
            patches.push(path);
        }
    }
    patches.sort();
    let mut splices: BTreeMap<String, Vec<Splice>> = BTreeMap::new();
    let mut names = Vec::new();
    let mut problems = String::new();
    for (number, patch) in (first..).zip(&patches) {
        let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match changes(patch, number, &tree.with_file_name("patched")) {
            Ok(changes) => changes.into_iter().for_each(|(file, splice)| splices.entry(file).or_default().push(splice)),
            Err(error) => problems += &format!("{name}: {error}\n"),
        }
        names.push(name);
    }
    match problems.is_empty() {
        true => Ok((splices, names)),
        false => Err(problems.trim_end().into()),
    }
}

/// The list of bugs: number and name, separated by a tab.
pub fn list(first: u32, names: &[String]) -> String {
    (first..).zip(names).map(|(number, name)| format!("{number}\t{name}\n")).collect()
}

/// Writes all bugs into the tree, and the list of them.
pub fn run(tree: &Path, list: &Path) -> Result<(), Box<dyn Error>> {
    let (splices, names) = splices(tree, 1)?;
    crate::write_switch(tree, names.len())?;
    let mut placed = BTreeMap::new();
    for path in crate::rust_files(Path::new(crate::SOURCES))? {
        let name = path.to_string_lossy().into_owned();
        if path.ends_with("lib.rs") {
            continue;
        }
        let none = Vec::new();
        let (new, places) = splice::splice(&fs::read_to_string(&path)?, splices.get(&name).unwrap_or(&none));
        crate::write(&tree.join(&path), &new)?;
        placed.insert(name, places);
    }
    let errors = check::errors(tree)?;
    for error in &errors {
        let number = error.spans.iter().find_map(|(file, span)| {
            let within = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
            placed.get(file)?.iter().find(|place| within(&place.all)).map(|place| place.number)
        });
        let name = number.and_then(|number| names.get(number as usize - 1)).map_or("no patch", String::as_str);
        eprintln!("{name}:\n{}", error.rendered);
    }
    if !errors.is_empty() {
        return Err(format!("{} errors", errors.len()).into());
    }
    crate::write(list, &self::list(1, &names))
}

/// The functions of a file, by path and name: the bytes of the body's inside. And everything else as tokens.
struct Functions<'a> {
    text: &'a str,
    path: Vec<String>,
    found: BTreeMap<String, Range<usize>>,
    constant: Vec<String>,
}

impl Functions<'_> {
    fn add(&mut self, sig: &syn::Signature, block: &syn::Block) {
        let range = block.span().byte_range();
        let mut name = format!("{}::{}", self.path.join("::"), sig.ident);
        while self.found.contains_key(&name) {
            name.push('\'');
        }
        if sig.constness.is_some() {
            self.constant.push(name.clone());
        }
        self.found.insert(name, range.start + 1..range.end - 1);
    }

    /// The text without the bodies.
    fn rest(&self) -> String {
        let mut bodies: Vec<_> = self.found.values().cloned().collect();
        bodies.sort_by_key(|range| range.start);
        let mut rest = String::new();
        let mut done = 0;
        for body in bodies {
            rest += &self.text[done..body.start];
            done = body.end;
        }
        rest + &self.text[done..]
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().map(|(_, path, _)| path.to_token_stream().to_string()).unwrap_or_default();
        self.path.push(format!("{of} {}", item.self_ty.to_token_stream()));
        visit::visit_item_impl(self, item);
        self.path.pop();
    }
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.path.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.path.pop();
    }
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
    }
    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
    }
    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
    }
}

fn functions(text: &str) -> Result<Functions<'_>, Box<dyn Error>> {
    let mut functions = Functions { text, path: Vec::new(), found: BTreeMap::new(), constant: Vec::new() };
    let file = syn::parse_file(text)?;
    functions.visit_file(&file);
    Ok(functions)
}

/// The changes of a patch: files, and a splice for each body.
fn changes(patch: &Path, number: u32, scratch: &Path) -> Result<Vec<(String, Splice)>, Box<dyn Error>> {
    let words = fs::read_to_string(patch)?;
    let files: Vec<&str> = words.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    for file in &files {
        crate::write(&scratch.join(file), &fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?)?;
    }
    // `git apply` takes only paths inside of the tree, and ci/mutants names its folders from the root.
    let here = std::env::current_dir()?;
    let folder = scratch.strip_prefix(&here).unwrap_or(scratch);
    let output =
        Command::new("git").arg("apply").arg(format!("--directory={}", folder.display())).arg(patch).output()?;
    if !output.status.success() {
        return Err(format!("does not apply: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let mut changes = Vec::new();
    for file in files {
        let (old, new) = (fs::read_to_string(file)?, fs::read_to_string(scratch.join(file))?);
        let (old, new) = (functions(&old)?, functions(&new)?);
        if old.rest() != new.rest() {
            return Err(format!("it changes more of {file} than bodies of functions").into());
        }
        let mut any = false;
        for (name, body) in &old.found {
            let patched = &new.text[new.found[name].clone()];
            if &old.text[body.clone()] == patched {
                continue;
            }
            any = true;
            if old.constant.contains(name) {
                return Err(format!("{file}: {name} is a `const fn`, which has no switch").into());
            }
            let before = format!(" if crate::mutant({number}) {{ return {{{patched}}}; }}");
            changes.push((file.to_string(), Splice { number, around: body.start..body.start, before, after: "" }));
        }
        if !any {
            return Err(format!("it changes nothing of {file}").into());
        }
    }
    Ok(changes)
}
