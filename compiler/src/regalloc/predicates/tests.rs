//! Errors. The placement of predicates is tested by the file tests, `corpus/file/predicates`.

use super::*;
use crate::ir3::text::read;
use crate::regalloc::predicates_within;

/// The predicate is undefined on one of the two paths to its reader.
#[test]
fn what_is_not_defined_is_an_error() {
    let text = "block1 {
\t0001:0000:000: \t_meta:in ssa_1
\t0002:0000:000: \tcmps.u.lt pssa_2, ssa_1, imm[0.000000,1,0x1]
\t0003:0000:000: \tbr pssa_2
\t/* succs: block2, block3 */
}
block2 {
\tpred: block1
\t0004:0000:000: \tcmps.u.lt pssa_4, ssa_1, imm[0.000000,2,0x2]
\t0005:0000:000: \tjump
\t/* succs: block3 */
}
block3 {
\tpred: block1, block2
\t0006:0000:000: \tkill pssa_4
\t0007:0000:000: \tend
}
";
    let mut program = read(text).expect("a program");
    let target = Target::by_name("a660").unwrap();
    let error = predicates_within(&mut program, &target, 4).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}
