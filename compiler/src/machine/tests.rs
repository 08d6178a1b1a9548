//! Flattening and its inverse.

use super::{Code, Ip};
use crate::ir3::text;
use cranelift_entity::EntityRef;
use std::fs;
use std::path::Path;

/// A loop around a pair of branches, a predication, and an end.
const FINAL: &str = "block1 {
\t0001:0001:001: \t_meta:in r0.x
\t0002:0002:001: \tcmps.s.lt pp0.x, r0.x, c0.x
\t0003:0003:000: \t(rpt5)nop
\t0004:0004:000: \tbr !pp0.x target=block3
\t0005:0005:000: \tbr pp0.x target=block2
\t/* succs: block2, block3 (div) */
}
block2 {
\tpred: block1, block2
\t0006:0006:001: \tadd.s r0.x, r0.x, imm[0.000000,1,0x1]
\t0007:0007:000: \tbr pp0.x target=block2
\t/* succs: block2, block3 (div) */
}
(jp)block3 {
\tpred: block1, block2
\t0008:0008:000: \t(jp)predt pp0.x target=block4
\t/* succs: block4, block5 (div) */
}
block4 {
\tpred: block3
\t0009:0009:001: \tmov.u32u32 r0.x, c0.y
\t0010:0010:000: \tpredf pp0.x target=block6
\t/* succs: block6 */
}
block5 {
\tpred: block3
\t0011:0011:001: \tmov.u32u32 r0.x, c0.z
\t0012:0012:000: \tprede
\t/* succs: block6 */
}
block6 {
\tpred: block4, block5
\t0013:0013:000: \tend r0.x (0)
}
";

fn flatten(text: &str) -> Result<Code, String> {
    let program = text::read(text).map_err(|error| error.to_string())?;
    Code::from_program(&program).map_err(|error| error.to_string())
}

#[test]
fn targets_are_positions() {
    let code = flatten(FINAL).unwrap();
    let targets: Vec<_> = code.instrs.iter().filter_map(|(ip, i)| Some((ip.index(), i.target?.index()))).collect();
    assert_eq!(targets, [(2, 6), (3, 4), (5, 4)]);
    assert_eq!(code.instrs.len(), 12);
    assert_eq!((code.interface.inputs.len(), code.interface.outputs.len()), (1, 1));
}

/// The second branch of a pair is not the first of another: the third is a block of its own.
#[test]
fn three_branches_are_a_pair_and_one() {
    let branch = |serial: u32, not: &str| format!("\t{serial:04}:{serial:04}:000: \tbr {not}pp0.x target=block2\n");
    let block =
        |name: &str, lines: &str, next: &str| format!("{name} {{\n{lines}\t/* succs: block2, {next} (div) */\n}}\n");
    let compare = "\t0001:0001:000: \tcmps.s.lt pp0.x, c0.y, c0.x\n";
    let text = [
        block("block1", &format!("{compare}{}", branch(2, "!")), "block3"),
        block("block3", &branch(3, ""), "block4"),
        block("block4", &branch(4, "!"), "block5"),
        "block5 {\n\t0005:0005:000: \tnop\n\t/* succs: block2 */\n}\n".to_owned(),
        "(jp)block2 {\n\t0006:0006:000: \t(jp)end\n}\n".to_owned(),
    ];
    let program = flatten(&text.concat()).unwrap().to_program().unwrap();
    let terminators = program.layout.iter().map(|&block| {
        let instrs = program.blocks[block].instrs.iter();
        instrs.filter(|&&instr| program.instrs[instr].opcode.is_terminator()).count()
    });
    assert_eq!(terminators.collect::<Vec<_>>(), [2, 1, 0, 1]);
}

#[test]
fn blocks_come_back() {
    let code = flatten(FINAL).unwrap();
    let program = code.to_program().unwrap();
    let edges: Vec<Vec<usize>> =
        program.layout.iter().map(|&b| program.blocks[b].successors().map(EntityRef::index).collect()).collect();
    assert_eq!(edges, [vec![1, 2], vec![1, 2], vec![3, 4], vec![5], vec![5], vec![]]);
    assert!(program.blocks[program.layout[2]].reconvergence_point);
    assert_eq!(Code::from_program(&program).unwrap(), code);
}

/// Each row changes the program above in one place, and has a part of the error.
#[test]
fn contradictions_are_errors() {
    for (from, to, said) in [
        (
            " target=block2\n\t/* succs: block2, block3 (div) */\n}\n(jp)",
            "\n\t/* succs: block2, block3 (div) */\n}\n(jp)",
            "without a target",
        ),
        ("(jp)predt", "predt", "no (jp)"),
        ("/* succs: block6 */\n}\nblock6", "/* succs: block1 */\n}\nblock6", "no instruction leads there"),
        (
            "\t0002:0002:001: \tcmps.s.lt pp0.x, r0.x, c0.x",
            "\t0002:0002:001: \tcmps.s.lt ssa_2, r0.x, c0.x",
            "has no register",
        ),
        ("mov.u32u32 r0.x, c0.y", "_meta:collect r0.x, c0.y", "no instruction of the machine"),
    ] {
        let text = FINAL.replacen(from, to, 1);
        assert_ne!(text, FINAL, "{from}");
        let error = flatten(&text).unwrap_err();
        assert!(error.contains(said), "{error}, instead of {said}");
    }
    for (change, said) in [
        (
            (|code: &mut Code| code.instrs[Ip::new(11)].data = code.instrs[Ip::new(1)].data.clone()) as fn(&mut Code),
            "falls through",
        ),
        (|code| code.instrs[Ip::new(5)].target = Some(Ip::new(8)), "under predication"),
        (|code| code.instrs[Ip::new(5)].target = Some(Ip::new(12)), "ends before it"),
        (|code| code.instrs[Ip::new(10)].data = code.instrs[Ip::new(4)].data.clone(), "under predication"),
    ] {
        let mut code = flatten(FINAL).unwrap();
        change(&mut code);
        let error = code.to_program().unwrap_err().to_string();
        assert!(error.contains(said), "{error}, instead of {said}");
    }
}

/// The final programs of Mesa's logs, if the logs are installed.
#[test]
fn final_programs_of_mesa() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/mesa/train/a660");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!("skipped: {} is absent", folder.display());
        return;
    };
    let mut count = 0;
    let every = if std::env::var_os("IR3_ALL").is_some() { 1 } else { 16 };
    for entry in entries.flatten().step_by(every) {
        let log = fs::read_to_string(entry.path()).unwrap_or_default();
        for section in log.split("AFTER: ir3_legalize:\n").skip(1) {
            let text = section.split("MESA: info: Native code").next().unwrap_or_default();
            let program = text::read(text).unwrap_or_else(|error| panic!("{:?}: {error}", entry.path()));
            let code = Code::from_program(&program).unwrap_or_else(|error| panic!("{:?}: {error}", entry.path()));
            let back = code.to_program().unwrap_or_else(|error| panic!("{:?}: {error}", entry.path()));
            assert_eq!(Code::from_program(&back).as_ref(), Ok(&code), "{:?}", entry.path());
            count += 1;
        }
    }
    println!("{count} programs");
    assert!(count > 0);
}
