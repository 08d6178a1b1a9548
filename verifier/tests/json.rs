//! The output of `--format json` conforms to docs/json.schema.json, and `--format junit` is XML.

use crate::common::folder::{Folder, command};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The fault of a value, by the keywords that our schema uses.
fn fault(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    for (keyword, wanted) in schema.as_object()? {
        let is_fine = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let path = wanted.as_str()?.strip_prefix('#')?;
                return fault(root, root.pointer(path).unwrap_or_else(|| panic!("{wanted}")), value);
            }
            "oneOf" => {
                let fitting = wanted.as_array()?.iter().filter(|one| fault(root, one, value).is_none());
                fitting.count() == 1
            }
            "const" => value == wanted,
            "enum" => wanted.as_array()?.contains(value),
            "minimum" => value.as_f64() >= wanted.as_f64(),
            "maximum" => value.as_f64() <= wanted.as_f64(),
            "type" => {
                let is = |name: &Value| match name.as_str().expect("a name") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("{other}"),
                };
                wanted.as_array().map_or_else(|| is(wanted), |names| names.iter().any(is))
            }
            "items" => value.as_array()?.iter().all(|item| fault(root, wanted, item).is_none()),
            "required" => wanted.as_array()?.iter().all(|name| value.get(name.as_str().expect("a name")).is_some()),
            "properties" => {
                let of = |(name, field): (&String, &Value)| value.get(name).and_then(|it| fault(root, field, it));
                match wanted.as_object()?.iter().find_map(of) {
                    Some(fault) => return Some(fault),
                    None => true,
                }
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object()?;
                value.as_object()?.keys().all(|name| known.contains_key(name))
            }
            "pattern" => {
                assert_eq!(wanted, "^[0-9a-f]{16}$", "the checker knows one pattern");
                let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                value.as_str().is_some_and(|text| text.len() == 16 && text.as_bytes().iter().all(is_digit))
            }
            other => panic!("the checker does not know `{other}`"),
        };
        if !is_fine {
            return Some(format!("{value}: {keyword} {wanted}"));
        }
    }
    None
}

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.schema.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON")
}

fn run(folder: &Path, arguments: &str) -> String {
    let output = command(folder, arguments.split_whitespace()).output().expect("our own program");
    assert!(output.stderr.is_empty(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    fs::copy(corpus.join("control-flow/fibonacci.nir"), folder.path().join("x.nir")).expect("a file");
    let log = fs::read_to_string(corpus.join("mesa/copies.log")).expect("a log");
    fs::write(folder.path().join("lost.log"), log.replacen("(neg)ssa_3", "ssa_3", 1)).expect("a file");
    fs::write(folder.path().join("x.log"), log).expect("a file");
    fs::write(folder.path().join("bad.nir"), "shader: what\n").expect("a file");
    fs::write(folder.path().join("code.txt"), "0000[03000000_00000000] end\n").expect("a file");
    let early = "block0 {\n\t0001:0000:000: \trcp r1.x, r0.x\n\t0002:0000:000: \tend r1.x\n}\n";
    fs::write(folder.path().join("early.ir3"), early).expect("a file");
    folder
}

#[test]
fn every_line_is_as_the_schema_says() {
    let (folder, schema) = (folder("json"), schema());
    let mut types = BTreeSet::new();
    for arguments in [
        "verify x.nir --engine interpreter,registers,smt",
        "verify x.nir bad.nir --plant inverted-branch --failures found",
        "verify found/",
        "triage found",
        "fuzz --seed 1 --plant inverted-branch --jobs 1 --programs 20 --no-reduce --failures campaign",
        "fuzz --seed 1 --jobs 1 --programs 2 --fuel 1",
        "check x.nir x.nir",
        "check x.nir nothing.nir",
        "compile x.nir",
        "run x.nir",
        "generate",
        "generate --bytes bytes --count 1",
        "reduce x.nir --plant inverted-branch",
        "show x.bundle",
        "reduce x.nir --test true",
        "reduce x.nir --test false",
        "rules --no-lemmas --timeout 1ms",
        "stats x.nir",
        "mesa x.log --compile",
        "mesa lost.log --failures found",
        "mesa x.log none.log --explain",
        "mesa --watch x.log --cache kept --compile",
        "mesa --watch x.log --cache kept --compile",
        "hazards early.ir3",
        "hazards x.nir",
        "ir3-selftest hazard-mutants early.ir3 --mutants 1",
        "ir3-selftest vec4 --programs 200 --plant lost-inverse --engine interpreter",
        "completions fish",
        "man",
        "ir3-selftest kill-matrix --mutants 2 --engine registers",
        "ir3-selftest kill-matrix --show 0 --engine registers",
        "ir3-selftest pairs --count 2 --engine registers --list",
        "ir3-selftest agreement --programs 1 --engine registers --list",
        "ir3-selftest planted-bugs inverted-branch --findings 1 --runs 1",
        "ir3-selftest missed-bugs x.nir --matter 1",
        "ir3-selftest prover-mutants",
        "ir3-selftest words --random 100",
        "disassemble code.txt",
        "assemble code.txt",
        "spirv x.nir",
        "spirv x.nir -o x.spv",
        "verify x.nir --runs 0",
        "nonsense",
        "pairs",
    ] {
        let text = run(folder.path(), &format!("--format json {arguments}"));
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        for line in &lines {
            let of_type = line["type"].as_str().and_then(|name| schema["$defs"].get(name));
            let of_type = of_type.unwrap_or_else(|| panic!("{arguments}: {line}: no such type"));
            assert_eq!(fault(&schema, of_type, line), None, "{arguments}");
            assert_eq!(fault(&schema, &schema, line), None, "{arguments}");
            types.insert(line["type"].as_str().expect("a type").to_owned());
        }
        let ends = [lines.first(), lines.last()].map(|line| line.map(|line| line["type"].clone()));
        assert_eq!(ends, [Some("run".into()), Some("end".into())], "{arguments}: {text}");
    }
    assert!(types.len() > 20, "{types:?}");
}

#[test]
fn the_checker_finds_faults() {
    let schema = schema();
    let good = serde_json::json!({ "type": "end", "code": 0, "result": "passed" });
    assert_eq!(fault(&schema, &schema, &good), None);
    for bad in [
        serde_json::json!({ "type": "end", "code": 0, "result": "fine" }),
        serde_json::json!({ "type": "end", "code": -1, "result": "passed" }),
        serde_json::json!({ "type": "end", "code": 0 }),
        serde_json::json!({ "type": "end", "code": 0, "result": "passed", "more": 1 }),
        serde_json::json!({ "type": "other" }),
    ] {
        assert!(fault(&schema, &schema, &bad).is_some(), "{bad}");
    }
}

#[test]
fn junit_has_a_case_for_each_boundary() {
    let folder = folder("junit");
    let text = run(folder.path(), "--format junit verify x.nir --plant inverted-branch");
    assert!(text.starts_with("<?xml") && text.trim_end().ends_with("</testsuites>"), "{text}");
    assert_eq!(text.matches("<failure").count(), 1, "{text}");
    assert!(text.matches("<testcase").count() > 2, "{text}");
    let text = run(folder.path(), "--format junit mesa x.log lost.log --compile --gpu a660");
    assert!(text.starts_with("<?xml") && text.trim_end().ends_with("</testsuites>"), "{text}");
    assert_eq!(text.matches("<testsuite ").count(), 4, "{text}");
    assert!(text.contains("lost.log#0 on a660") && text.contains("name=\"ir3_cp (smt)\""), "{text}");
    assert!(text.matches("<failure").count() >= 1 && !text.contains("<error"), "{text}");
    let text = run(folder.path(), "--format junit mesa --watch x.log --verbose --gpu a660");
    assert!(text.matches("<testcase").count() == 8 && text.matches("<failure").count() == 0, "{text}");
    // Bad inputs are errors, together with good ones or alone, and --quiet leaves out no case.
    let report = |arguments: &str| {
        let output = command(folder.path(), arguments.split(' ')).output().expect("our own program");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = report("--format junit verify --quiet x.nir nothing.nir");
    assert!(text.matches("<testcase").count() > 2 && text.matches("type=\"input\"").count() == 1, "{text}");
    let text = report("--format junit verify nothing.nir");
    assert!(text.contains("errors=\"1\"") && text.contains("nothing.nir"), "{text}");
    let text = report("--format junit mesa --quiet x.log --gpu a660");
    assert!(text.matches("<testcase").count() == 8, "{text}");
    // A refuted rule has its operands.
    let text = report("--format junit rules --no-lemmas --timeout 1s --plant negated-absolute");
    assert!(text.contains("<failure message=\"for 0x"), "{text}");
    let text = run(folder.path(), "--format junit rules --no-lemmas --timeout 1s");
    assert!(text.contains("<testcase") && text.starts_with("<?xml"), "{text}");
}
