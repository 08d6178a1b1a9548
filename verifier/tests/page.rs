//! Pages of failures and of refuted rules: well-formed HTML with every part, escaped, and without other files.

use super::common::folder::{Folder, planted, planted_in, refused};
use html5gum::{Token, Tokenizer};
use ir3_compiler::nir;
use ir3_harness::case::{Case, ProgramOrigin};
use ir3_programs::generator::Profile;
use ir3_programs::planted_bugs::rules;
use ir3_prove::rewrite_rules::{ClaimVerdict, tables};
use ir3_prove::solver::{Budget, Z3};
use ir3_report::bundle;
use ir3_report::page;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Elements without an end tag.
const VOID: [&str; 2] = ["meta", "br"];

/// The parts of a page.
#[derive(Default)]
struct Parsed {
    ids: BTreeSet<String>,
    /// The targets of links within the page.
    links: BTreeSet<String>,
    /// The text of each element, by its name and classes (`td.a`), in order.
    texts: Vec<(String, String)>,
    scripts: usize,
}

impl Parsed {
    /// Parses a page. Panics if it is malformed, an id occurs twice, or it needs another file.
    fn new(html: &str) -> Self {
        let mut parsed = Self::default();
        // The names of the open elements, and their positions in the texts.
        let mut open: Vec<(String, usize)> = Vec::new();
        let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        for Ok(token) in Tokenizer::new(html) {
            match token {
                Token::StartTag(tag) => {
                    let name = utf8(&tag.name);
                    assert!(
                        !["link", "img", "iframe", "object", "embed", "base", "foreignobject"].contains(&&*name),
                        "<{name}> needs another file"
                    );
                    let mut class = String::new();
                    for (key, value) in &tag.attributes {
                        let (key, value) = (utf8(key), utf8(value));
                        match &*key {
                            "id" => assert!(parsed.ids.insert(value.clone()), "id {value} occurs twice"),
                            "class" => class = value.replace(' ', "."),
                            "href" => match value.strip_prefix('#') {
                                Some(id) => drop(parsed.links.insert(id.to_owned())),
                                None => assert!(value.starts_with("./"), "a link to {value}"),
                            },
                            "src" | "srcset" | "xlink:href" | "action" => panic!("{key} needs another file: {value}"),
                            _ => assert!(!key.starts_with("on"), "a handler {key}"),
                        }
                    }
                    parsed.scripts += usize::from(name == "script");
                    parsed.texts.push((format!("{name}.{class}"), String::new()));
                    if !VOID.contains(&&*name) {
                        open.push((name, parsed.texts.len() - 1));
                    }
                }
                Token::EndTag(tag) => {
                    let name = utf8(&tag.name);
                    let (opened, _) = open.pop().unwrap_or_else(|| panic!("</{name}> without a start"));
                    assert_eq!(opened, name, "elements overlap");
                }
                Token::String(text) => {
                    let text = utf8(&text);
                    open.iter().for_each(|(_, at)| parsed.texts[*at].1.push_str(&text));
                }
                Token::Error(error) => panic!("{error:?}"),
                Token::Comment(_) | Token::Doctype(_) => {}
            }
        }
        assert!(open.is_empty(), "{open:?} are not closed");
        let dead: Vec<_> = parsed.links.difference(&parsed.ids).collect();
        assert!(dead.is_empty(), "links to nothing: {dead:?}");
        let style = parsed.text("style.");
        assert!(!style.contains("url(") && !style.contains("@import"), "the style needs another file");
        assert_eq!(parsed.scripts, 1, "scripts");
        parsed
    }

    /// The text of the first element with this name and class.
    fn text(&self, element: &str) -> &str {
        let found = self.texts.iter().find(|(name, _)| name == element);
        &found.unwrap_or_else(|| panic!("there is no {element}")).1
    }

    fn count(&self, element: &str) -> usize {
        self.texts.iter().filter(|(name, _)| name == element).count()
    }

    /// The text of a part of the page, up to the next heading.
    fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }
}

fn page_of(case: &Case) -> Parsed {
    Parsed::new(&page::of_case(case, "a/bundle"))
}

/// All parts, for a stage that selects instructions (nir and ir3), one on SSA form, one that allocates registers, and
/// one after it.
#[test]
fn refutations_have_every_part() {
    for (bug, stage, registers) in [
        ("wrong-condition", "select", false),
        ("lost-store", "dead-code", false),
        ("live-range", "register-allocation", true),
        ("dropped-copy", "lower-copies", true),
    ] {
        let case = planted(bug);
        let page = page_of(&case);
        assert!(page.text("h1.").starts_with(&format!("{stage}: wrong code on ")), "{}", page.text("h1."));
        assert!(page.text("p.plant").contains(bug));
        let facts = page.text("dl.facts");
        for word in [stage, case.target.name, "seed"] {
            assert!(facts.contains(word), "{bug}: {word}: {facts}");
        }
        // The run may not end, or end at an instruction without a meaning: then there are no two values.
        if !facts.contains("First observable that differs") || facts.contains("(instruction ") {
            assert_eq!(bug, "dropped-copy", "{facts}");
        } else {
            let [expected, actual] = ["div.expected", "div.actual"].map(|side| page.text(side));
            assert!(expected.contains("0x") && actual.contains("0x"), "{bug}: {expected}, {actual}");
        }
        for id in ["programs", "control-flow", "values", "checks", "input"] {
            assert!(page.has(id), "{bug}: there is no {id}");
        }
        assert_eq!(page.has("registers"), registers, "{bug}");
        assert!(page.text("li.failed") == stage, "{bug}");
        // One first difference in the programs and one in the trace, and the block with it on both sides.
        assert_eq!(page.count("tr.here"), 2, "{bug}");
        let diverging =
            page.texts.iter().filter(|(name, _)| name.starts_with("g.block") && name.ends_with("diverging"));
        assert!((1..=2).contains(&diverging.count()), "{bug}");
        assert_eq!(page.texts.iter().any(|(name, _)| name.starts_with("g.bar.")), registers, "{bug}");
    }
}

/// The chart of an allocation bug marks the use with the wrong register, as the register checker finds it.
#[test]
fn a_wrong_register_is_marked() {
    let page = page_of(&planted_in("live-range", &[Profile::Branchy]));
    let said = page.text("strong.");
    assert!(said.contains("which should hold ssa_") && said.contains("and holds"), "{said}");
    assert!(page.count("rect.ring") > 0, "no register is marked");
    assert!(page.text("li.wrong").contains('r'), "no instruction is marked");
}

#[test]
fn refusals_and_crashes_have_pages() {
    let page = page_of(&refused());
    assert!(page.text("h1.").contains("refuses a valid program") && page.text("p.note").contains("See it again"));
    assert!(page.has("programs") && page.has("control-flow") && page.has("checks") && !page.has("values"));
    assert!(!page.text("p.message.mono").is_empty() && page.count("div.pair") == 0);
    let page = page_of(&planted("crash"));
    assert!(page.text("h1.").contains("copy-propagation: panic"));
    assert!(page.text("p.message.mono").contains("planted_bugs/ssa.rs:"), "{}", page.text("p.message.mono"));
    assert_eq!(page.count("div.sides"), 1);
}

/// A bug that has been fixed: the page reports that nothing differs any more, and shows both programs.
#[test]
fn a_failure_that_is_gone_is_said_to_be() {
    let case = Case { plant: None, ..planted("lost-store") };
    let page = page_of(&case);
    assert!(page.text("p.warning").contains("did not fail when it was run again"));
    assert!(page.has("programs") && page.has("control-flow") && !page.has("values"));
    assert_eq!((page.count("tr.here"), page.count("div.sides"), page.count("div.pair")), (0, 1, 0));
}

/// Names of shaders come from applications.
#[test]
fn text_is_escaped() {
    let mut case = planted("lost-store");
    let name = "<script>alert(\"1\")</script><img src=x onerror='alert(2)'>&amp;";
    case.program.info.other.push(("name".to_owned(), name.to_owned()));
    case.symptom.message = name.to_owned();
    case.origin = ProgramOrigin::File(format!("{name}.nir"));
    let html = page::of_case(&case, name);
    let page = Parsed::new(&html);
    assert_eq!(page.scripts, 1);
    assert!(
        page.texts.iter().any(|(element, text)| element == "pre." && text.contains(name)),
        "the name is in the program"
    );
    assert!(page.text("div.command.mono").contains(name));
    assert!(nir::text::write(&case.program).contains(name));
}

#[test]
fn refuted_rules_have_pages() {
    for rule in &rules::RULES {
        let claim = tables::of_rule(rules::TABLE, rule).expect("an operation");
        let verdict = claim.verdict(&mut Z3::default(), &Budget::default());
        let ClaimVerdict::Refuted { left, right, .. } = &verdict else { panic!("{} is not refuted", rule.name) };
        let page = Parsed::new(&page::of_rule(&claim, &verdict, "ir3-equiv rules"));
        assert!(page.text("h1.").contains(rule.name) && page.text("h1.").contains(&rule.bits.to_string()));
        let digits = usize::from(rule.bits) / 4 + 2;
        assert!(page.text("div.expected").contains(&format!("{left:#0digits$x}")));
        assert!(page.text("div.actual").contains(&format!("{right:#0digits$x}")));
        assert_eq!(page.count("figure."), 2);
        let terms: Vec<_> =
            page.texts.iter().filter(|(name, _)| name == "td.").map(|(_, text)| text.as_str()).collect();
        for term in [claim.left.to_string(), claim.right.to_string()] {
            assert!(terms.contains(&term.as_str()), "{term}: {terms:?}");
        }
    }
}

/// Runs `ir3-equiv` in a folder.
fn ir3_equiv(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ir3-equiv")).args(arguments).current_dir(folder).output();
    let output = output.expect("the program of this package");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), stdout, stderr)
}

#[test]
fn the_command_line_writes_pages() {
    let root = Folder::new("page");
    let path = bundle::write(root.path(), &planted("lost-store")).expect("a folder");
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let (code, stdout, _) = ir3_equiv(root.path(), &["show", name]);
    assert_eq!((code, stdout.trim()), (Some(0), &*format!("{name}/report.html")));
    let written = std::fs::read_to_string(path.join("report.html")).expect("the page");
    Parsed::new(&written);
    let (code, stdout, _) = ir3_equiv(root.path(), &["show", name, "-o", "-"]);
    assert_eq!((code, stdout), (Some(0), written));
    let (code, _, stderr) = ir3_equiv(root.path(), &["show", "nothing"]);
    assert!(code == Some(2) && stderr.contains("found no such folder, expected a bundle"), "{code:?} {stderr}");
    let (code, _, stderr) = ir3_equiv(root.path(), &["show", name, "-o", "no/such/folder.html"]);
    assert!(code == Some(74) && stderr.contains("no/such/folder.html: cannot be written"), "{code:?} {stderr}");
    // A page for each failure, and an index of them.
    let (code, ..) = ir3_equiv(root.path(), &["verify", name, "--html", "pages"]);
    assert_eq!(code, Some(1));
    let index = Parsed::new(&std::fs::read_to_string(root.path().join("pages/index.html")).expect("an index"));
    assert_eq!((index.text("h1."), index.count("li.")), ("1 failure", 1));
    Parsed::new(&std::fs::read_to_string(root.path().join("pages").join(format!("{name}.html"))).expect("a page"));
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/control-flow/fibonacci.nir");
    let (code, ..) = ir3_equiv(root.path(), &["verify", corpus.to_str().expect("UTF-8"), "--html", "none"]);
    assert_eq!(code, Some(0));
    let index = Parsed::new(&std::fs::read_to_string(root.path().join("none/index.html")).expect("an index"));
    assert_eq!((index.text("h1."), index.count("li.")), ("No failures", 0));
}

#[test]
fn refuted_rules_have_an_index() {
    let root = Folder::new("rule-pages");
    let (code, stdout, _) =
        ir3_equiv(root.path(), &["rules", "--no-lemmas", "--plant", "not-and-as-and", "--html", "pages"]);
    assert!(code == Some(1) && stdout.contains("1 refuted"), "{code:?} {stdout}");
    let index = Parsed::new(&std::fs::read_to_string(root.path().join("pages/index.html")).expect("an index"));
    assert_eq!((index.text("h1."), index.count("li.")), ("1 failure", 1));
    let file = root.path().join("pages/planted-not-and-as-and-32.html");
    Parsed::new(&std::fs::read_to_string(file).expect("a page"));
}
