//! Every tree of `and`, `or` and `not` up to a depth over three comparisons, as the condition of a branch: compiled for
//! a GPU of each generation, run on all eight assignments, and never longer than without folding.
//!
//! The trees of depth 0 are the three comparisons. A tree of depth d + 1 is a comparison, or the negation of a tree of
//! depth d, or the conjunction or disjunction of two of them, in this order: 3, 24, 1,179 and 2,781,264 trees. No two
//! of them are identified, not even those with exchanged operands. Each is built without sharing, with a value of its
//! own for each of its operations, and no nir pass simplifies it.
//!
//! [`PER_PROGRAM`] trees make a program, with consecutive ifs. A tree has its own three comparisons, which differ from
//! all others in their constant. The arms of if k give bit k of the result, which is right only if exactly the right
//! arm has run, in each of the eight lanes; so both arms are observable. The instructions of a tree are those of the
//! block that ends with its branch, and of the two arms.
//!
//! `IR3_TRUTH_TABLES=all` runs all trees (depth 3, in release), on all cores, and the name of a GPU runs them for that
//! GPU; without it the test runs those of depth 2, and a sample of those of depth 3 that is spread over all of them.

use cpu_time::ProcessTime;
use ir3_compiler::compilation;
use ir3_compiler::ir3::{Block, Opcode, Program};
use ir3_compiler::nir::{self, Builder, Def, Index, IntrinsicOp, Op, Stage};
use ir3_compiler::pipeline::{self, Feature, Options};
use ir3_compiler::stats::Stats;
use ir3_compiler::target::Target;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use ir3_semantics::interp::{End, Scratch};
use ir3_semantics::support::threads;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One GPU of each generation.
const GPUS: [&str; 5] = ["a306", "a420", "a540", "a660", "a750"];

/// The number of ifs of a program: the bits of its result.
const PER_PROGRAM: u64 = 32;

/// A tree by its number among those of its depth.
#[derive(Clone, Copy, Debug)]
struct Tree {
    depth: u32,
    number: u64,
}

/// The operation at the root.
enum Root {
    Comparison(usize),
    Not(Tree),
    And(Tree, Tree),
    Or(Tree, Tree),
}

/// The number of trees of a depth.
fn count(depth: u32) -> u64 {
    match depth {
        0 => 3,
        _ => {
            let smaller = count(depth - 1);
            3 + smaller + 2 * smaller * smaller
        }
    }
}

impl Tree {
    fn root(self) -> Root {
        if self.number < 3 {
            return Root::Comparison(self.number as usize);
        }
        let depth = self.depth - 1;
        let smaller = count(depth);
        let tree = |number: u64| Tree { depth, number };
        let pair = |rest: u64| (tree(rest / smaller), tree(rest % smaller));
        let rest = self.number - 3;
        if rest < smaller {
            return Root::Not(tree(rest));
        }
        let rest = rest - smaller;
        if rest < smaller * smaller {
            let (a, b) = pair(rest);
            return Root::And(a, b);
        }
        let (a, b) = pair(rest - smaller * smaller);
        Root::Or(a, b)
    }

    /// The truth table of the tree: in assignment i comparison k is true if bit k of i is set.
    fn truth(self) -> u8 {
        match self.root() {
            Root::Comparison(k) => [0b1010_1010, 0b1100_1100, 0b1111_0000][k],
            Root::Not(a) => !a.truth(),
            Root::And(a, b) => a.truth() & b.truth(),
            Root::Or(a, b) => a.truth() | b.truth(),
        }
    }

    fn build(self, b: &mut Builder, leaf: &mut dyn FnMut(&mut Builder, usize) -> Def) -> Def {
        match self.root() {
            Root::Comparison(k) => leaf(b, k),
            Root::Not(x) => {
                let x = x.build(b, leaf);
                b.alu(Op::Inot, &[x])
            }
            Root::And(x, y) => {
                let srcs = [x.build(b, leaf), y.build(b, leaf)];
                b.alu(Op::Iand, &srcs)
            }
            Root::Or(x, y) => {
                let srcs = [x.build(b, leaf), y.build(b, leaf)];
                b.alu(Op::Ior, &srcs)
            }
        }
    }

    fn text(self) -> String {
        match self.root() {
            Root::Comparison(k) => ["a", "b", "c"][k].to_owned(),
            Root::Not(x) => format!("!{}", x.text()),
            Root::And(x, y) => format!("({} & {})", x.text(), y.text()),
            Root::Or(x, y) => format!("({} | {})", x.text(), y.text()),
        }
    }
}

/// A value far from all constants of comparisons.
const LARGE: u32 = 1000;

/// The shader: one if for each tree.
fn shader(trees: &[Tree]) -> nir::Shader {
    let mut b = Builder::new(Stage::Vertex);
    let zero = b.constant(32, 0);
    let inputs = [0, 1, 2]
        .map(|base| b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[zero], [Index::Base(base)]).expect("it has a result"));
    let mut result = zero;
    for (bit, tree) in trees.iter().enumerate() {
        // 0 or LARGE, compared with a constant in between.
        let mut comparisons = [None; 3];
        let constant = b.constant(32, 1 + bit as u64);
        let condition = tree.build(&mut b, &mut |b, k| {
            *comparisons[k].get_or_insert_with(|| match k {
                0 => b.alu(Op::Ult, &[constant, inputs[0]]),
                1 => b.alu(Op::Ige, &[inputs[1], constant]),
                _ => b.alu(Op::Ilt, &[constant, inputs[2]]),
            })
        });
        b.begin_if(condition);
        let yes = b.constant(32, 1 << bit);
        let then = b.current_block();
        b.begin_else();
        let no = b.constant(32, 0);
        let otherwise = b.current_block();
        b.end_if();
        let phi = b.phi(1, 32);
        b.set_phi_src(phi, then, yes);
        b.set_phi_src(phi, otherwise, no);
        result = b.alu(Op::Ior, &[result, phi]);
    }
    b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[result, zero], [Index::Base(0), Index::WriteMask(1)]);
    b.finish()
}

/// The eight assignments, one per lane.
fn assignments() -> Env {
    let mut env = Env { lanes: Some(0xff), ..Env::from_seed(1) };
    for k in 0..3 {
        let value = |lane: u32| if lane >> k & 1 == 1 { LARGE } else { 0 };
        env.attributes.insert(format!("{k}.0"), (0..64).map(value).collect());
    }
    env
}

/// The number of instructions of each tree.
fn lengths(program: &Program, trees: usize) -> Vec<u32> {
    let of_block = |block: &Block| {
        let opcodes = program.blocks[*block].instrs.iter().map(|&instr| program.instrs[instr].opcode);
        // The layout of the code decides whether a jump is needed.
        opcodes.filter(|&opcode| !opcode.is_meta() && opcode != Opcode::Jump).count() as u32
    };
    assert_eq!(program.layout.len(), 3 * trees + 1, "the blocks are not those of the source");
    program.layout.chunks_exact(3).map(|blocks| blocks.iter().map(of_block).sum()).collect()
}

/// The counters.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    trees: u64,
    /// Trees that folding has made shorter.
    shorter: u64,
    /// Instructions with folding, and without.
    folded: u64,
    unfolded: u64,
    /// Two terminators of a kind that reads two predicates or is inverted, with folding.
    two: u64,
    wrong: u64,
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.trees += other.trees;
        self.shorter += other.shorter;
        self.folded += other.folded;
        self.unfolded += other.unfolded;
        self.two += other.two;
        self.wrong += other.wrong;
    }
}

/// All features, up to registers: the instructions that legalization adds depend on the code around a tree.
fn with_folding() -> Options {
    Options { last: pipeline::Stage::LowerCopies, ..Options::default() }
}

/// Options without folds of conditions.
fn without_folding() -> Options {
    let arms = "fold-inverted-branch,fold-selection,fold-wide-selection,fold-negated-operand,fold-two,fold-predicate-comparison,\
                fold-predicate-bitop,fold-predicate-copy";
    Options { skip: arms.parse().expect("arms"), ..with_folding().without(Feature::DeMorgan) }
}

/// Compiles trees and runs them.
fn check(target: &Target, trees: &[Tree], scratch: &mut Scratch, wrong: &mut dyn FnMut(String)) -> Counters {
    let shader = shader(trees);
    let env = assignments();
    let mut counters = Counters { trees: trees.len() as u64, ..Counters::default() };
    let mut compiled = Vec::new();
    for options in [with_folding(), without_folding()] {
        let program = compilation::compile(&shader, target, &options, &mut |_, _| {}).expect("it fits");
        let decoded = interp::ir3::Decoded::new(&program, target).expect("it can be run");
        let outcome = decoded.run(&env, 100_000, scratch);
        assert!(matches!(outcome.end, End::Finished), "{:?}", outcome.end);
        let row = &outcome.outputs.rows()[0];
        for assignment in 0..8 {
            let expected =
                (0..).zip(trees).fold(0, |bits, (k, tree)| bits | u32::from(tree.truth() >> assignment & 1) << k);
            let found = row.values[assignment];
            if row.poison >> assignment & 1 != 0 || found != expected {
                let which =
                    (0..).zip(trees).find(|(k, _)| (found ^ expected) >> k & 1 != 0).map(|(_, tree)| tree.text());
                counters.wrong += 1;
                wrong(format!("{}: {which:?} in assignment {assignment}", target.name));
            }
        }
        compiled.push(program);
    }
    let [folded, unfolded] = [0, 1].map(|i| lengths(&compiled[i], trees.len()));
    for ((tree, &folded), &unfolded) in trees.iter().zip(&folded).zip(&unfolded) {
        counters.folded += u64::from(folded);
        counters.unfolded += u64::from(unfolded);
        counters.shorter += u64::from(folded < unfolded);
        if folded > unfolded {
            counters.wrong += 1;
            wrong(format!(
                "{}: {} takes {folded} instructions, and {unfolded} without folding",
                target.name,
                tree.text()
            ));
        }
    }
    let [total, without] = [0, 1].map(|i| Stats::of(&compiled[i], target).non_nops());
    if total > without {
        counters.wrong += 1;
        wrong(format!("{}: {total} instructions, and {without} without folding", target.name));
    }
    let two = |instr| matches!(compiled[0].instrs[instr].opcode, Opcode::Braa | Opcode::Brao);
    counters.two += compiled[0].iter_instrs().filter(|&(_, instr)| two(instr)).count() as u64;
    counters
}

/// Runs trees `number(0)` to `number(count - 1)` of a depth for all GPUs, on all cores.
fn run(gpus: &[&str], depth: u32, count: u64, number: impl Fn(u64) -> u64 + Sync) {
    let programs = count.div_ceil(PER_PROGRAM);
    let start = ProcessTime::now();
    for gpu in gpus {
        let target = Target::by_name(gpu).expect("it is known");
        let next = AtomicU64::new(0);
        let shared = Mutex::new((Counters::default(), Vec::<String>::new()));
        threads::run(threads::default_jobs(), || {
            let mut scratch = Scratch::new();
            let mut local = (Counters::default(), Vec::new());
            loop {
                let program = next.fetch_add(1, Ordering::Relaxed);
                if program >= programs {
                    break;
                }
                let numbers = program * PER_PROGRAM..count.min((program + 1) * PER_PROGRAM);
                let trees: Vec<Tree> = numbers.map(|n| Tree { depth, number: number(n) }).collect();
                let counters = check(&target, &trees, &mut scratch, &mut |message| {
                    if local.1.len() < 20 {
                        local.1.push(message);
                    }
                });
                local.0.add(&counters);
            }
            let mut shared = shared.lock().expect("nobody panicked");
            shared.0.add(&local.0);
            shared.1.append(&mut local.1);
        });
        let (counters, mut wrong) = shared.into_inner().expect("nobody panicked");
        wrong.sort();
        println!(
            "{gpu}, depth {depth}: {} trees, {} compilations, {} wrong; {} instructions, {} without folding; {} trees \
             shorter, {} branches on two predicates; {:.1} s of CPU time so far",
            counters.trees,
            2 * counters.trees.div_ceil(PER_PROGRAM),
            counters.wrong,
            counters.folded,
            counters.unfolded,
            counters.shorter,
            counters.two,
            start.elapsed().as_secs_f64(),
        );
        assert_eq!(counters.trees, count);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn numbers_of_trees() {
    assert_eq!([0, 1, 2, 3].map(count), [3, 24, 1179, 2_781_264]);
    let texts: std::collections::BTreeSet<String> =
        (0..count(2)).map(|number| Tree { depth: 2, number }.text()).collect();
    assert_eq!(texts.len() as u64, count(2));
}

#[test]
fn all_trees_of_depth_two() {
    run(&GPUS, 2, count(2), |n| n);
}

#[test]
fn trees_of_depth_three() {
    let all = count(3);
    match std::env::var("IR3_TRUTH_TABLES").as_deref() {
        Ok("all") => run(&GPUS, 3, all, |n| n),
        Ok(gpu) => run(&[gpu], 3, all, |n| n),
        // A step that is coprime to the number of trees reaches all of them.
        Err(_) => run(&GPUS, 3, 2048, |n| n * 1_234_567 % all),
    }
}
