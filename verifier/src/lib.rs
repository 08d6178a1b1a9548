//! Checks that the passes of a shader compiler keep the meaning of programs.
//!
//! A pass is checked by comparing the program before it with the program after it: an interpreter runs both, a register
//! checker proves that every use reads the value that it read before, and an SMT proof covers all inputs. Programs are
//! nir or ir3 texts, logs of Mesa, generated ones; failures are reduced, reported as a folder, and grouped by cause.
//! The [`prelude`] has the items that these examples need, and is the public interface: the rest of the library serves
//! the program `ir3-equiv` and the tests, and may change.
//!
//! # Check two texts
//!
//! ```
//! use ir3_verifier::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let machine = Target::by_name("a660")?;
//! let times_two = |operation: &str| {
//!     let text = format!(
//!         "shader: MESA_SHADER_COMPUTE
//! workgroup_size: 64, 1, 1
//! num_ssbos: 1
//! subgroup_size: 1
//! decl_function main () (entrypoint)
//!
//! impl main {{
//!     block b0:
//!     32 %0 = @load_local_invocation_index
//!     32 %1 = load_const (0x00000002)
//!     32 %2 = load_const (0x00000001)
//!     32 %3 = load_const (0x00000000)
//!     32 %4 = {operation}
//!             @store_ssbo_ir3 (%4, %3, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
//!     block b1:
//! }}
//! "
//!     );
//!     parse(&text, &machine)
//! };
//! let (before, after, wrong) = (times_two("imul %0, %1")?, times_two("ishl %0, %2")?, times_two("ishl %0, %1")?);
//! // For all inputs; and an input on which they differ.
//! assert!(matches!(compare(&before, &after, &machine), Verdict::Proved { .. }));
//! assert!(matches!(compare(&before, &wrong, &machine), Verdict::Refuted(_)));
//! // Selected engines, on given inputs.
//! let boundary = Boundary::of_texts((&before).into(), (&wrong).into());
//! let judgment = Engines::interpreter().judge(&boundary, &machine, &Env::from_seeds(&[1, 2, 3]));
//! assert!(matches!(judgment.verdict, Verdict::Refuted(_)));
//! # Ok(())
//! # }
//! ```
//!
//! # Test a pass of one's own on generated programs
//!
//! ```
//! use ir3_verifier::prelude::*;
//! use std::sync::atomic::AtomicBool;
//!
//! /// `a | a` and `a & a` are `a`.
//! fn idempotence(program: &mut ir3::Program) {
//!     for data in program.instrs.values_mut() {
//!         if matches!(data.opcode, ir3::Opcode::OrB | ir3::Opcode::AndB) && data.srcs[0] == data.srcs[1] {
//!             data.opcode = ir3::Opcode::AndB;
//!         }
//!     }
//! }
//!
//! let own_pass = Some(OwnPass::new("idempotence", idempotence));
//! let options = Options { own_pass, ..Options::default() };
//! let campaign = Campaign { options, programs: Some(20), ..Campaign::default() };
//! let mut failures = 0;
//! campaign.run(&AtomicBool::new(false), &mut |finding: &Finding<'_>| failures += u32::from(finding.failed), &mut |_| ());
//! assert_eq!(failures, 0);
//! ```
//!
//! `examples/own_pass.rs` continues from here: a pass with a bug, the bundles of its failures, reduced and grouped.
//!
//! # Reduce a failure
//!
//! ```
//! use ir3_verifier::prelude::*;
//! use std::sync::atomic::AtomicBool;
//!
//! /// A wrong pass: the complement of a conjunction is no disjunction.
//! fn wrong(program: &mut ir3::Program) {
//!     for data in program.instrs.values_mut().filter(|data| data.opcode == ir3::Opcode::AndB) {
//!         data.opcode = ir3::Opcode::OrB;
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options { own_pass: Some(OwnPass::new("wrong", wrong)), ..Options::default() };
//! let campaign = Campaign { options, profiles: vec![Profile::Mixed], jobs: 1, ..Campaign::default() };
//! let mut case = None;
//! let mut found = |finding: &Finding<'_>| {
//!     if finding.failed {
//!         case = campaign.case(finding);
//!     }
//! };
//! campaign.run(&AtomicBool::new(false), &mut found, &mut |_| ());
//! let case = case.expect("a failure");
//! assert_eq!(case.symptom.stage, Stage::OwnPass);
//!
//! let mut oracle = case.oracle().expect("it fails again");
//! let reduction = reduce(&case.program, &mut oracle, 1, &Default::default(), &mut |_| true)?;
//! assert!(reduction.reduced.program.instruction_count() <= 6);
//! # Ok(())
//! # }
//! ```
pub mod prelude;
