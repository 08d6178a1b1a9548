//! `ir3-selftest machine`: a log, its nir and its words, as a program.

use crate::common::folder::{Folder, command};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A boolean of the constant file decides the stored value; as in Mesa, `b2b1` reads the low 16 bits.
const LOG: &str = "\
NIR (final form) for CL shader (null):
shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = @load_const_ir3 (%0) (base=4)
    1      %2 = b2b1 %1
    32     %3 = load_const (0x00000005)
    32     %4 = bcsel %2, %3, %0
                @store_ssbo_ir3 (%4, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}

Native code for unnamed CL shader (null) with sha1 00:
; num_ubos:           0
@const(c2.x)\t0x00000005, 0x00000000
end
; CL: outputs:
; CL: inputs:
; CL prog 1/1: 12 instr, 0 nops
; gpu gen 6, mergedregs 1
; hex listing: index[hi_lo] disasm
0000[43504010_00005004] absneg.s hr4.x, (neg)c1.x
0001[204cc001_00000000] mov.u32u32 r0.y, 0
0002[00000200_00000000] (rpt2)nop
0003[42a500f8_20000010] cmps.s.ne p0.x, hr4.x, h(0)
0004[00000100_00000000] (rpt1)nop
0005[202cc000_00000009] mov.u32u32 r0.x, c2.y
0006[00000500_00000000] (rpt5)nop
0007[00900000_00000002] br !p0.x, #l9
0008[202cc000_00000008] mov.u32u32 r0.x, c2.x
0009[08000500_00000000] l9:
0009[08000500_00000000] (jp)(rpt5)nop
0010[c0260000_01674000] stib.b.untyped.1d.u32.1.imm r0.x, r0.y, 0
0011[03000000_00000000] end
";

/// The exit code, and the lines of JSON.
fn run(folder: &Path, log: &str) -> (Option<i32>, Vec<Value>) {
    fs::write(folder.join("x.log"), log).expect("a file");
    let arguments = ["--format", "json", "ir3-selftest", "machine", "--gpu", "a660", "x.log"];
    let output = command(folder, arguments).output().expect("our own program");
    let text = String::from_utf8(output.stdout).expect("text");
    (output.status.code(), text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

#[test]
fn exit_codes_and_rows_say_what_a_program_does() {
    let folder = Folder::new("machine-programs");
    let empty = LOG.replace("    32     %4", "    // 32 %4").replace("    @store_ssbo_ir3", "    // @store_ssbo_ir3");
    let nothing = LOG.replace("0010[c0260000_01674000] stib", "0010[00000000_00000000] nop //");
    for (change, log, code, verdict) in [
        ("none", LOG.to_owned(), 0, "equal"),
        // The store, or its data, its address, the branch.
        ("no store", nothing.clone(), 1, "different"),
        ("another constant", LOG.replace("@const(c2.x)\t0x00000005", "@const(c2.x)\t0x00000006"), 1, "different"),
        ("another address", LOG.replace("204cc001_00000000", "204cc001_00000004"), 1, "different"),
        ("inverted branch", LOG.replace("00900000_00000002", "00800000_00000002"), 1, "different"),
        ("two slots less", LOG.replace("00000200_00000000", "00000000_00000000"), 1, "hazard"),
        // All lanes go one way, so that none has to be joined.
        ("no (jp)", LOG.replace("08000500_00000000", "00000500_00000000"), 0, "equal"),
        // A store that the nir does not have, and no store on either side.
        ("the nir has no store", empty.clone(), 1, "different"),
        ("no instruction", LOG.replace("c0260000_01674000", "ffffffff_ffffffff"), 4, "refused"),
    ] {
        let (found, rows) = run(folder.path(), &log);
        let [_, program, counts, _] = &rows[..] else { panic!("{change}: {rows:?}") };
        assert_eq!((found, program["verdict"].as_str()), (Some(code), Some(verdict)), "{change}: {program}");
        assert_eq!(counts["programs"], 1, "{change}: {counts}");
        assert_eq!(counts["compared"], u64::from(verdict != "refused"), "{change}: {counts}");
    }
    // Programs without effects are compared, and are no reason to pass.
    let none = empty.replace("0010[c0260000_01674000] stib", "0010[00000000_00000000] nop //");
    let (found, rows) = run(folder.path(), &none);
    assert_eq!((found, rows[1]["verdict"].as_str()), (Some(4), Some("empty")), "{rows:?}");
    // No file.
    let missing = command(folder.path(), ["ir3-selftest", "machine", "nothing.log"]).output().expect("our own program");
    assert_eq!(missing.status.code(), Some(2));
}
