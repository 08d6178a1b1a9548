//! Compares the map of ARCHITECTURE.md with the sources: a module uses only modules above it there, so there is no
//! cycle.
//!
//! A line of the map that begins with a path under `src/` names a module, a folder or a file, of the package above it.
//! Every path in code that begins with `crate::` or goes up by `super::` leads from the module of its file to that of
//! its target. Comments do not count, nor do tests, which may use everything. The order of packages is that of their
//! manifests, which cargo checks.

use ir3_compiler::ir3::Opcode;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A package: the folder of its sources, and its modules in the order of the map.
struct Package {
    sources: PathBuf,
    modules: Vec<String>,
}

/// The packages of a map. A line of the map names a package (`    verifier/prove/ …`) or a module of it (`
/// src/solver/ …`).
fn packages(map: &str, root: &Path) -> Vec<Package> {
    let mut packages: Vec<Package> = Vec::new();
    for line in map.lines().filter(|line| !line.ends_with("a package of its own")) {
        let Some(word) = line.split_whitespace().next().filter(|_| line.starts_with("    ")) else { continue };
        if let Some(path) = word.strip_prefix("src/") {
            let path = path.trim_end_matches('/').trim_end_matches(".rs");
            let package = packages.last_mut().expect("a package before its modules");
            package.modules.push(path.to_owned());
        } else if let Some(name) = word.strip_suffix('/').filter(|name| root.join(name).join("src").is_dir()) {
            packages.push(Package { sources: root.join(name).join("src"), modules: Vec::new() });
        }
    }
    packages
}

impl Package {
    /// The number of the module of a path of names. A re-export of the root belongs to the module that it comes from.
    fn module_of(&self, path: &[String]) -> Option<usize> {
        let name = path.first()?;
        let module = |name: &str| self.modules.iter().position(|module| module == name);
        module(name).or_else(|| {
            let text = fs::read_to_string(self.sources.join("lib.rs")).ok()?;
            let mut exports =
                text.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';')?.0.split_once("::"));
            let (from, _) = exports.find(|(_, names)| {
                names.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|exported| exported == name)
            })?;
            module(from)
        })
    }

    /// All uses that the order does not allow, and sources that belong to no module of the map.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for file in rust_files(&self.sources) {
            // A program of its own, which uses the library from outside.
            let mut folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.sources));
            if folders.any(|folder| folder.join("main.rs").exists()) {
                continue;
            }
            let path = file.strip_prefix(&self.sources).expect("a source of the package").with_extension("");
            let mut names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            if names.last().is_some_and(|name| name == "mod") {
                names.pop();
            }
            let is_test = |name: &String| name == "tests" || name.ends_with("_tests");
            if names.iter().any(is_test) || names == ["lib"] {
                continue;
            }
            let Some(own) = self.module_of(&names) else {
                faults.push(format!("{}: in no module of the map", file.display()));
                continue;
            };
            let text = fs::read_to_string(&file).expect("a source");
            for target in used(&text, &names) {
                let at = format!("{}: uses {}", file.display(), target.join("::"));
                match self.module_of(&target) {
                    Some(used) if used <= own => {}
                    Some(_) => faults.push(format!("{at}, which is below {}", self.modules[own])),
                    None => faults.push(format!("{at}, which is in no module of the map")),
                }
            }
        }
        faults
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The paths from the root of the package that the code of a file names.
fn used(text: &str, file: &[String]) -> BTreeSet<Vec<String>> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut test = false;
    let code: String = code
        .lines()
        .filter(|line| {
            let skipped = std::mem::replace(&mut test, line.trim() == "#[cfg(test)]");
            !skipped && !line.trim_start().starts_with("//")
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut paths = BTreeSet::new();
    for (start, word) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        if code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let mut rest = &code[start..];
        let mut base = Vec::new();
        if word == "super::" {
            base = file.to_vec();
            // In a module within the file, the first step up leads to the file.
            if code[..start].ends_with("    use ") {
                base.push(String::new());
            }
            while let Some(after) = rest.strip_prefix("super::") {
                base.pop();
                rest = after;
            }
        } else {
            rest = &rest[word.len()..];
        }
        leaves(rest, base, &mut paths);
    }
    paths
}

/// The paths of a tree of names, as `a::{b, c::d}` is one, that begins a text.
fn leaves(tree: &str, base: Vec<String>, paths: &mut BTreeSet<Vec<String>>) {
    if let Some(group) = tree.strip_prefix('{') {
        let mut depth = 0;
        let mut start = 0;
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    leaves(group[start..i].trim(), base.clone(), paths);
                    start = i + 1;
                    if c == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = tree.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(tree.len());
    let mut path = base;
    match &tree[..end] {
        "" => {}
        "super" => drop(path.pop()),
        name => path.push(name.to_owned()),
    }
    match tree[end..].strip_prefix("::") {
        Some(rest) => leaves(rest, path, paths),
        None => {
            if !path.is_empty() {
                paths.insert(path);
            }
        }
    }
}

#[test]
fn modules_use_what_stands_above_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the map");
    let packages = packages(&map, &root);
    assert_eq!(packages.len(), 10, "packages of the map");
    let mut message = String::new();
    // The others are programs and campaigns, whose modules are not listed.
    let listed: Vec<&Package> = packages.iter().filter(|package| !package.modules.is_empty()).collect();
    assert_eq!(listed.len(), 6, "packages with modules");
    for package in listed {
        assert!(package.modules.len() > 5, "modules of {}", package.sources.display());
        for fault in package.faults() {
            let _ = writeln!(message, "{fault}");
        }
    }
    assert!(message.is_empty(), "{} faults:\n{message}", message.lines().count());
}

#[test]
fn paths_are_found() {
    let text = "use crate::b::{self, c::D};\nuse super::{e};\nuse super::super::f;\n// crate::comment::x\nfn g() { crate::h::i() }\n#[cfg(test)]\nmod tests {\n use crate::z::y;\n}\n";
    let file = ["a", "here"].map(str::to_owned);
    let found: Vec<String> = used(text, &file).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a::e", "b::c::D", "b::self", "f", "h::i"]);
}

#[test]
fn an_arrow_that_points_up_is_found() {
    let sources = std::env::temp_dir().join(format!("ir3-layers-{}", std::process::id()));
    fs::create_dir_all(sources.join("high")).expect("a folder");
    fs::write(sources.join("lib.rs"), "pub mod low;\npub mod high;\n").expect("written");
    fs::write(sources.join("low.rs"), "use crate::high::X;\n").expect("written");
    fs::write(sources.join("high/mod.rs"), "use crate::low::Y;\n").expect("written");
    fs::write(sources.join("other.rs"), "").expect("written");
    let modules = ["low", "high"].map(str::to_owned).to_vec();
    let faults = Package { sources: sources.clone(), modules }.faults();
    fs::remove_dir_all(&sources).expect("removed");
    assert!(faults.len() == 2, "{faults:?}");
    assert!(faults[0].contains("low.rs: uses high::X, which is below low"), "{faults:?}");
    assert!(faults[1].contains("other.rs: in no module"), "{faults:?}");
}

/// Calls that compare two programs by one engine.
const ENGINE_CALLS: [&str; 9] = [
    ".answers(&",
    ".answer(",
    "answers_until_decided(",
    "compare_snapshots(",
    "compare_on_machine(",
    "compare_within(",
    "Comparison::new(",
    "registers::prove(",
    "simulation::prove(",
];

/// Files that may have them: the judge, the engines, and the campaigns that test the engines one by one. (A page shows
/// the message of the register checker next to a failure that was judged.)
const CALLERS: [&str; 11] = [
    "harness/src/check/judge.rs",
    "harness/src/check/memory_order/mod.rs",
    "harness/src/check/engine.rs",
    "harness/src/check/smt.rs",
    "harness/src/check/interpreter.rs",
    "report/src/page/mod.rs",
    "selftest/src/cases.rs",
    "selftest/src/kill_matrix.rs",
    "selftest/src/machine.rs",
    "selftest/src/prover_mutants.rs",
    "src/selftest/pairs.rs",
];

/// Every command and campaign compares programs by `Judge::judge`, so that one policy holds for all.
#[test]
fn only_the_judge_calls_engines() {
    let verifier = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Not the engines themselves, which are in `prove`.
    let sources = ["semantics/src", "programs/src", "harness/src", "report/src", "selftest/src", "cli/src", "src"];
    let mut faults = Vec::new();
    let mut callers = BTreeSet::new();
    for file in sources.iter().flat_map(|sources| rust_files(&verifier.join(sources))) {
        let path = file.strip_prefix(verifier).expect("a source").to_string_lossy().into_owned();
        if path.split('/').any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for call in ENGINE_CALLS.iter().filter(|call| line.contains(**call)) {
                match CALLERS.iter().find(|caller| **caller == path) {
                    Some(caller) => drop(callers.insert(*caller)),
                    None => faults.push(format!("{path}: {call}: {}", line.trim())),
                }
            }
        }
    }
    assert!(faults.is_empty(), "only the judge compares programs:\n{}", faults.join("\n"));
    assert!(callers.contains("harness/src/check/judge.rs"), "the test has lost the judge: {callers:?}");
}

/// Files of the compiler with a list of four or more opcodes: tables that give each opcode something of its own, where
/// several have the same. Everything else that opcodes have in common is a column of `ir3/opcode/table.rs`.
const LISTS: [(&str, usize); 6] = [
    // The request that a texture instruction makes.
    ("ir3/access/texture.rs", 1),
    // Moves with types, not macros.
    ("ir3/validate/opcodes.rs", 1),
    // Mesa's estimate of the time of a wait, and its counters of branches.
    ("stats/waits.rs", 1),
    ("stats/branches.rs", 1),
    // Which operations fold which conversion, proved for each.
    ("opt/fold/conversions.rs", 3),
    // `samgq` becomes these four.
    ("lower_samgq.rs", 1),
];

/// The lists of four or more opcodes in code: alternatives of patterns, and elements of arrays.
fn lists_of_opcodes(code: &str, opcodes: &BTreeSet<String>) -> Vec<String> {
    let mut lists: Vec<Vec<&str>> = vec![Vec::new()];
    // Separator of the elements of the last list, and punctuation before the name. Elements with commas are an array's.
    let (mut separator, mut before, mut is_array) = (' ', ' ', false);
    for part in code.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':' || c.is_whitespace())) {
        let end = part.chars().next_back().filter(char::is_ascii_punctuation).unwrap_or(' ');
        let name = part.trim_end_matches(end).trim();
        let (qualifier, last) = name.rsplit_once("::").unwrap_or(("", name));
        let is_opcode = matches!(qualifier, "" | "Opcode" | "O") && opcodes.contains(last);
        let list = lists.last().expect("a list");
        let continues = is_opcode && (before == '|' || before == ',' && is_array);
        if !continues {
            lists.push(Vec::new());
            is_array = before == '[';
        } else if list.len() > 1 && separator != before {
            lists.push(list[list.len() - 1..].to_vec());
        }
        if is_opcode {
            separator = before;
            lists.last_mut().expect("a list").push(last);
        }
        before = end;
    }
    lists.into_iter().filter(|list| list.len() >= 4).map(|list| list.join(" ")).collect()
}

/// A property of opcodes is a column of their table. A list of its own is forgotten when an opcode is added.
#[test]
fn opcodes_are_listed_in_their_table() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/src");
    let opcodes: BTreeSet<String> = Opcode::ALL.iter().map(|opcode| format!("{opcode:?}")).collect();
    let (mut found, mut faults) = (BTreeMap::new(), Vec::new());
    for file in rust_files(&sources) {
        let path = file.strip_prefix(&sources).expect("a source").to_string_lossy().into_owned();
        // The other languages have opcodes of their own, some of the same names.
        let is_other = ["nir/", "nir_passes/", "i965/", "ir3/opcode"].iter().any(|it| path.starts_with(it));
        if is_other || path.split('/').any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code: String =
            code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        for list in lists_of_opcodes(&code, &opcodes) {
            *found.entry(path.clone()).or_insert(0) += 1;
            if found[&path] > LISTS.iter().find(|(known, _)| *known == path).map_or(0, |&(_, count)| count) {
                faults.push(format!("{path}: {list}"));
            }
        }
    }
    assert!(faults.is_empty(), "lists of opcodes that are no column of their table:\n{}", faults.join("\n"));
    let expected: BTreeMap<String, usize> = LISTS.iter().map(|&(path, count)| (path.to_owned(), count)).collect();
    assert_eq!(found, expected, "lists that are gone");
}

#[test]
fn a_list_of_opcodes_is_found() {
    let opcodes: BTreeSet<String> = ["Br", "Jump", "End", "Ret"].map(str::to_owned).into();
    let lists = |code| lists_of_opcodes(code, &opcodes);
    assert_eq!(lists("matches!(op, Opcode::Br | Opcode::Jump | Opcode::End\n | Opcode::Ret)"), ["Br Jump End Ret"]);
    assert_eq!(lists("const ENDS: [Opcode; 4] = [Br, Jump, End, Ret];"), ["Br Jump End Ret"]);
    assert_eq!(lists("(Br | Jump | End | Ret, Br) => x"), ["Br Jump End Ret"]);
    assert!(lists("Br | Jump | End => 1, Ret => 2").is_empty());
    assert!(lists("(Br, Jump | End, Ret)").is_empty());
    assert!(lists("Effect::Br | Effect::Jump | Effect::End | Effect::Ret").is_empty());
}
