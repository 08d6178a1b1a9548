//! The kinds of input files, and the messages for files that cannot be read.

use super::*;

fn error_of(name: &str, bytes: &[u8]) -> String {
    Source::from_bytes(Path::new(name), bytes.to_vec()).unwrap_err().to_string()
}

#[test]
fn kinds_come_from_the_name_or_the_text() {
    for (name, text, kind) in [
        ("a.nir", "x", InputKind::Nir),
        ("a.ir3", "x", InputKind::Ir3),
        ("a.vec4", "x", InputKind::Vec4),
        ("a", "shader: MESA_SHADER_VERTEX\n\nvec4 {\n}\n", InputKind::Vec4),
        ("a.log", "x", InputKind::Log),
        ("a.asm", "x", InputKind::Code),
        ("a.log", "x\n\t\t:0:0000:0000[03000000x_00000000x] end\n", InputKind::Code),
        ("a.ir3", "  0[03000000_00000000] end\n", InputKind::Code),
        ("a", "@localsize 1, 1, 1\nend\n", InputKind::Code),
        ("a", "nop(sy)\nend\n", InputKind::Code),
        ("a", "(rpt1)add.f r0.x, r1.x, what is this\n", InputKind::Code),
        ("a.txt", "// comment\nshader: MESA_SHADER_COMPUTE\n", InputKind::Nir),
        ("a", "MESA: info: block0 {\n", InputKind::Ir3),
        ("a", "(jp)block12 {\n", InputKind::Ir3),
        ("a", "shader: MESA_SHADER_COMPUTE\nMESA: info: AFTER: ir3_cp:\n", InputKind::Log),
        ("a", "MESA: info: NIR (final form) for FRAG shader (null):\n", InputKind::Log),
    ] {
        let source = Source::from_bytes(Path::new(name), text.as_bytes().to_vec()).unwrap();
        assert_eq!((source.kind, &*source.text), (kind, text), "{name}");
    }
}

#[test]
fn bad_files_have_a_message() {
    assert_eq!(error_of("a.nir", b""), "a.nir:1:1: found an empty file, expected a program");
    assert_eq!(error_of("a.nir", b" \n\n"), "a.nir:1:1: found an empty file, expected a program");
    assert_eq!(
        error_of("a.nir", b"shader\nimp\xffl"),
        "a.nir:2:4: found the byte 0xff at offset 10, expected UTF-8 text"
    );
    assert!(error_of("a.txt", b"hello\nthere").starts_with("a.txt:1:1: found `hello`, expected a nir program"));
}

#[test]
fn missing_paths_have_a_message() {
    let path = Path::new("no/such/file.nir");
    let message = Source::read(path).unwrap_err().to_string();
    assert!(message.starts_with("no/such/file.nir: found no such file or folder, expected"), "{message}");
    assert!(matches!(collect_paths(&[path.to_owned()]), Err(InputError::Missing { .. })));
    let folder = std::env::temp_dir();
    assert!(matches!(Source::read(&folder), Err(InputError::Unreadable { .. })));
}

#[test]
fn a_folder_without_programs_stands_for_its_shaders() {
    let folder = std::env::temp_dir().join(format!("ir3-equiv-shaders-{}", std::process::id()));
    fs::create_dir_all(folder.join("below")).expect("a folder");
    for name in ["b.spv", "below/a.frag", "below/c.txt"] {
        fs::write(folder.join(name), "").expect("a file");
    }
    let names = || -> Vec<PathBuf> { find_shaders(std::slice::from_ref(&folder)).files };
    assert_eq!(names(), [folder.join("b.spv"), folder.join("below/a.frag")]);
    assert_eq!(find_paths(std::slice::from_ref(&folder)).problems.len(), 1);
    fs::write(folder.join("below/a.log"), "").expect("a file");
    assert_eq!(names(), [folder.join("below/a.log")]);
    fs::remove_dir_all(folder).expect("to remove it");
}

#[test]
fn folders_are_walked_in_order() {
    let root = std::env::temp_dir().join(format!("ir3-equiv-walk-{}", std::process::id()));
    fs::create_dir_all(root.join("b/empty")).unwrap();
    for name in ["c.nir", "b/z.log", "b/a.ir3", "a.nir", "b/README.md", "notes.txt", "p.before.nir", "p.after.ir3"] {
        fs::write(root.join(name), "x").unwrap();
    }
    fs::write(root.join("b/t.ir3"), "// test fold gpu=a660\n").unwrap();
    let found = collect_paths(&[root.clone(), root.join("notes.txt")]).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.nir", "b/a.ir3", "b/z.log", "c.nir", "notes.txt"]);
    assert!(matches!(collect_paths(&[root.join("b/empty")]), Err(InputError::NoPrograms { .. })));
    let Found { files, problems } = find_paths(&[root.join("absent"), root.join("c.nir"), root.join("b/empty")]);
    assert_eq!(files, [root.join("c.nir")]);
    assert!(matches!(&problems[..], [InputError::Missing { .. }, InputError::NoPrograms { .. }]), "{problems:?}");
    fs::remove_dir_all(&root).unwrap();
}
