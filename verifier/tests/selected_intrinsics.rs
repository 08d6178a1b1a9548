//! Every intrinsic about lanes, inputs and system values: the compiled program has the behaviour of the nir, after
//! every stage; for all lanes, and where some of them are inactive.

use ir3_compiler::compilation;
use ir3_compiler::nir::{self, Builder, Def, Index, InterpMode, IntrinsicOp, Op, Stage};
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use ir3_semantics::interp::{Compared, Outcome, Scratch};

use IntrinsicOp::*;

/// The lanes that run the intrinsic under test.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    Everywhere,
    InSomeLanes,
}

fn intrinsic(b: &mut Builder, op: IntrinsicOp, components: u8, bits: u8, srcs: &[Def], indices: &[Index]) -> Def {
    let indices = nir::Indices(indices.iter().cloned().collect());
    b.intrinsic(op, components, bits, srcs, indices).unwrap()
}

/// A value that differs between lanes, of any width.
fn value(b: &mut Builder, number: i32, bits: u8) -> Def {
    let attribute = |b: &mut Builder, base: i32| {
        let zero = b.constant(32, 0);
        intrinsic(b, LoadInput, 1, 32, &[zero], &[Index::Base(base)])
    };
    let word = attribute(b, number);
    match bits {
        1 => {
            let one = b.constant(32, 1);
            let bit = b.alu(Op::Iand, &[word, one]);
            let zero = b.constant(32, 0);
            b.alu(Op::Ine, &[bit, zero])
        }
        8 => b.alu(Op::U2u8, &[word]),
        16 => b.alu(Op::U2u16, &[word]),
        32 => word,
        _ => {
            let high = attribute(b, number + 16);
            b.alu(Op::Pack64_2x32Split, &[word, high])
        }
    }
}

/// A value as words of 32 bits.
fn words(b: &mut Builder, def: Def) -> Vec<Def> {
    let data = &b.function().defs[def];
    let (components, bits) = (data.num_components, data.bit_size);
    let mut words = Vec::new();
    for component in 0..components {
        let x = b.channel(def, component);
        match bits {
            1 => words.push(b.alu(Op::B2i32, &[x])),
            8 | 16 => words.push(b.alu(Op::U2u32, &[x])),
            32 => words.push(x),
            _ => {
                words.push(b.alu(Op::Unpack64_2x32SplitX, &[x]));
                words.push(b.alu(Op::Unpack64_2x32SplitY, &[x]));
            }
        }
    }
    words
}

/// A shader that outputs the result of `make`.
fn shader(stage: Stage, lanes: Where, make: &dyn Fn(&mut Builder) -> Def) -> nir::Shader {
    let mut b = Builder::new(stage);
    let zero = b.constant(32, 0);
    let results = match lanes {
        Where::Everywhere => {
            let def = make(&mut b);
            words(&mut b, def)
        }
        Where::InSomeLanes => {
            let condition = value(&mut b, 9, 1);
            b.begin_if(condition);
            let def = make(&mut b);
            let inside = words(&mut b, def);
            let then = b.current_block();
            b.begin_else();
            let otherwise = b.current_block();
            b.end_if();
            inside
                .into_iter()
                .map(|word| {
                    let phi = b.phi(1, 32);
                    b.set_phi_src(phi, then, word);
                    b.set_phi_src(phi, otherwise, zero);
                    phi
                })
                .collect()
        }
    };
    for (base, word) in results.into_iter().enumerate() {
        let indices = [Index::Base(base as i32), Index::WriteMask(1)];
        b.intrinsic(StoreOutput, 1, 32, &[word, zero], indices);
    }
    b.finish()
}

/// Compiles, and compares each stage with the one before, nir first. Returns the number of comparisons.
fn check(name: &str, gpu: &str, shader: &nir::Shader, failures: &mut Vec<String>) -> usize {
    let target = Target::by_name(gpu).unwrap();
    let mut scratch = Scratch::new();
    let envs: Vec<Env> = (0..6).map(Env::from_seed).collect();
    if let Err(errors) = nir::validate(shader) {
        failures.push(format!("{name}: {}", errors[0]));
        return 0;
    }
    let decoded = match interp::nir::Decoded::new(shader) {
        Ok(decoded) => decoded,
        Err(error) => {
            failures.push(format!("{name}: nir: {} in {}", error.what, error.place));
            return 0;
        }
    };
    let mut before: Vec<Outcome> = envs.iter().map(|env| decoded.run(env, 100_000, &mut scratch)).collect();
    let mut same = 0;
    let mut problems = Vec::new();
    let result = compilation::compile(shader, &target, &Options::default(), &mut |stage, program| {
        let decoded = match interp::ir3::Decoded::new(program, &target) {
            Ok(decoded) => decoded,
            Err(error) => return problems.push(format!("{name}: {stage}: {} in {}", error.what, error.place)),
        };
        let after: Vec<Outcome> = envs.iter().map(|env| decoded.run(env, 100_000, &mut scratch)).collect();
        for (source, result) in before.iter().zip(&after) {
            match source.compare(result) {
                Ok(Compared::Same) => same += 1,
                Ok(_) => {}
                Err(difference) => return problems.push(format!("{name}: {gpu}: {stage}: {difference}")),
            }
        }
        before = after;
    });
    if let Err(error) = result {
        problems.push(format!("{name}: {gpu}: {error}"));
    }
    failures.extend(problems);
    same
}

type Make = Box<dyn Fn(&mut Builder) -> Def>;

struct Cases(Vec<(String, Stage, Make)>);

impl Cases {
    fn add(&mut self, name: impl Into<String>, stage: Stage, make: impl Fn(&mut Builder) -> Def + 'static) {
        self.0.push((name.into(), stage, Box::new(make)));
    }

    fn run(&self, gpus: &[&str]) {
        let (mut failures, mut same) = (Vec::new(), 0);
        for (name, stage, make) in &self.0 {
            for lanes in [Where::Everywhere, Where::InSomeLanes] {
                let shader = shader(*stage, lanes, make);
                for gpu in gpus {
                    let here = check(&format!("{name}, {lanes:?}"), gpu, &shader, &mut failures);
                    if here == 0 {
                        failures.push(format!("{name}, {lanes:?}: {gpu}: nothing was compared"));
                    }
                    same += here;
                }
            }
        }
        println!("{} cases, {same} comparisons", self.0.len());
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

#[test]
fn lanes() {
    let mut cases = Cases(Vec::new());
    let vertex = Stage::Vertex;
    for op in [Ddx, DdxCoarse, DdxFine, Ddy, DdyCoarse, DdyFine] {
        for bits in [16, 32] {
            cases.add(format!("{op:?} {bits}"), vertex, move |b| {
                let x = value(b, 0, 32);
                let x = b.alu(if bits == 16 { Op::U2f16 } else { Op::U2f32 }, &[x]);
                intrinsic(b, op, 1, bits, &[x], &[])
            });
        }
    }
    for op in [VoteAny, VoteAll] {
        cases.add(format!("{op:?}"), vertex, move |b| {
            let x = value(b, 0, 1);
            intrinsic(b, op, 1, 1, &[x], &[])
        });
    }
    for (op, bits) in [(VoteIeq, 32), (VoteIeq, 16), (VoteIeq, 64), (VoteFeq, 32), (VoteFeq, 16)] {
        cases.add(format!("{op:?} {bits}"), vertex, move |b| {
            let x = value(b, 0, bits);
            let differs = intrinsic(b, op, 1, 1, &[x], &[]);
            let first = intrinsic(b, ReadFirstInvocation, 1, bits, &[x], &[]);
            let equal = intrinsic(b, op, 1, 1, &[first], &[]);
            b.vec(&[differs, equal])
        });
    }
    for (components, bits) in [(1, 32), (2, 32), (4, 32), (1, 64)] {
        cases.add(format!("ballot {bits}x{components}"), vertex, move |b| {
            let x = value(b, 0, 1);
            intrinsic(b, Ballot, components, bits, &[x], &[])
        });
        cases.add(format!("inverse_ballot {bits}x{components}"), vertex, move |b| {
            let x = value(b, 0, 1);
            let mask = intrinsic(b, Ballot, components, bits, &[x], &[]);
            intrinsic(b, InverseBallot, 1, 1, &[mask], &[])
        });
    }
    for op in [Elect, FirstInvocation, LastInvocation] {
        let bits = if op == Elect { 1 } else { 32 };
        cases.add(format!("{op:?}"), vertex, move |b| intrinsic(b, op, 1, bits, &[], &[]));
    }
    for bits in [1, 8, 16, 32, 64] {
        for op in [ReadFirstInvocation, ReadGetlastIr3, QuadSwapHorizontal, QuadSwapVertical, QuadSwapDiagonal] {
            cases.add(format!("{op:?} {bits}"), vertex, move |b| {
                let x = value(b, 0, bits);
                intrinsic(b, op, 1, bits, &[x], &[])
            });
        }
        cases.add(format!("read_invocation {bits}"), vertex, move |b| {
            let x = value(b, 0, bits);
            let lane = b.constant(32, 5);
            intrinsic(b, ReadInvocation, 1, bits, &[x, lane], &[])
        });
        cases.add(format!("read_invocation_cond_ir3 {bits}"), vertex, move |b| {
            let (x, condition) = (value(b, 0, bits), value(b, 1, 1));
            intrinsic(b, ReadInvocationCondIr3, 1, bits, &[x, condition], &[])
        });
        for lane in 0..4 {
            cases.add(format!("quad_broadcast {bits} {lane}"), vertex, move |b| {
                let x = value(b, 0, bits);
                let lane = b.constant(32, lane);
                intrinsic(b, QuadBroadcast, 1, bits, &[x, lane], &[])
            });
        }
        for op in [Rotate, ShuffleUpUniformIr3, ShuffleDownUniformIr3, ShuffleXorUniformIr3, ShuffleUp, ShuffleXor] {
            for distance in [0, 1, 5, 63] {
                cases.add(format!("{op:?} {bits} {distance}"), vertex, move |b| {
                    let x = value(b, 0, bits);
                    let distance = b.constant(32, distance);
                    intrinsic(b, op, 1, bits, &[x, distance], &[])
                });
            }
        }
    }
    cases.run(&["a660"]);
}

#[test]
fn reductions() {
    let mut cases = Cases(Vec::new());
    let integers = [Op::Iadd, Op::Imul, Op::Imin, Op::Imax, Op::Umin, Op::Umax, Op::Iand, Op::Ior, Op::Ixor];
    for bits in [16, 32] {
        for reduction in integers.into_iter().chain([Op::Fmin, Op::Fmax]) {
            for op in [Reduce, InclusiveScan, ExclusiveScan, InclusiveScanClustersIr3, ReduceClustersIr3] {
                cases.add(format!("{op:?} {} {bits}", reduction.name()), Stage::Vertex, move |b| {
                    let x = value(b, 0, bits);
                    intrinsic(b, op, 1, bits, &[x], &[Index::ReductionOp(reduction)])
                });
            }
        }
    }
    for reduction in [Op::Iand, Op::Ior, Op::Ixor] {
        for op in [Reduce, InclusiveScan, ExclusiveScan, InclusiveScanClustersIr3, ReduceClustersIr3] {
            cases.add(format!("{op:?} {} of bools", reduction.name()), Stage::Vertex, move |b| {
                let x = value(b, 0, 1);
                intrinsic(b, op, 1, 1, &[x], &[Index::ReductionOp(reduction)])
            });
        }
    }
    for bits in [1, 16, 32] {
        for cluster in [2, 4, 8] {
            cases.add(format!("brcst_active_ir3 {bits} {cluster}"), Stage::Vertex, move |b| {
                let (kept, x) = (value(b, 0, bits), value(b, 1, bits));
                intrinsic(b, BrcstActiveIr3, 1, bits, &[kept, x], &[Index::ClusterSize(cluster)])
            });
        }
    }
    cases.run(&["a660", "a750"]);
}

#[test]
fn system_values() {
    let mut cases = Cases(Vec::new());
    for (op, components) in [
        (LoadWorkgroupId, 3),
        (LoadBaseWorkgroupId, 3),
        (LoadNumWorkgroups, 3),
        (LoadWorkgroupSize, 3),
        (LoadLocalInvocationId, 3),
        (LoadLocalInvocationIndex, 1),
        (LoadSubgroupSize, 1),
        (LoadSubgroupInvocation, 1),
        (LoadSubgroupId, 1),
        (LoadVertexId, 1),
        (LoadVertexIdZeroBase, 1),
        (LoadBaseVertex, 1),
        (LoadFirstVertex, 1),
        (LoadBaseInstance, 1),
        (LoadDrawId, 1),
        (LoadIsIndexedDraw, 1),
        (LoadSubgroupIdShiftIr3, 1),
        (LoadWorkDim, 1),
        (LoadViewIndex, 1),
        (LoadFragShadingRate, 1),
        (LoadFragInvocationCount, 1),
        (LoadPerspCenterRhwIr3, 1),
        (LoadInstanceId, 1),
        (LoadPrimitiveId, 1),
        (LoadSampleId, 1),
        (LoadSampleMaskIn, 1),
        (LoadSamplePos, 2),
        (LoadFragCoord, 4),
    ] {
        cases.add(format!("{op:?}"), Stage::Vertex, move |b| intrinsic(b, op, components, 32, &[], &[]));
    }
    for plane in [0, 7] {
        cases.add(format!("clip plane {plane}"), Stage::Vertex, move |b| {
            intrinsic(b, LoadUserClipPlane, 4, 32, &[], &[Index::UcpId(plane)])
        });
    }
    for (base, offset, components) in [(0, 0, 1), (8, 4, 4), (0, 4092, 1)] {
        cases.add(format!("kernel input {base} + {offset}"), Stage::Vertex, move |b| {
            let offset = b.constant(32, offset);
            intrinsic(b, LoadKernelInput, components, 32, &[offset], &[Index::Base(base), Index::Range(64)])
        });
    }
    for op in [LoadFragSizeIr3, LoadFragOffsetIr3] {
        cases.add(format!("{op:?}"), Stage::Fragment, move |b| {
            let view = b.constant(32, 3);
            intrinsic(b, op, 2, 32, &[view], &[Index::Range(8)])
        });
    }
    cases.add("sample position", Stage::Fragment, |b| {
        let sample = intrinsic(b, LoadSampleId, 1, 32, &[], &[]);
        intrinsic(b, LoadSamplePosFromId, 2, 32, &[sample], &[])
    });
    for op in [LoadFrontFace, LoadHelperInvocation] {
        cases.add(format!("{op:?}"), Stage::Vertex, move |b| intrinsic(b, op, 1, 1, &[], &[]));
    }
    cases.run(&["a660", "a420"]);
}

#[test]
fn inputs() {
    let (mut fragment, mut vertex) = (Cases(Vec::new()), Cases(Vec::new()));
    for bits in [16, 32] {
        vertex.add(format!("attribute {bits}"), Stage::Vertex, move |b| {
            let offset = b.constant(32, 1);
            intrinsic(b, LoadInput, 3, bits, &[offset], &[Index::Base(4), Index::Component(1)])
        });
        fragment.add(format!("flat {bits}"), Stage::Fragment, move |b| {
            let offset = b.constant(32, 1);
            intrinsic(b, LoadInput, 3, bits, &[offset], &[Index::Base(4), Index::Component(1)])
        });
        for (op, mode) in [
            (LoadBarycentricPixel, InterpMode::Smooth),
            (LoadBarycentricPixel, InterpMode::NoPerspective),
            (LoadBarycentricCentroid, InterpMode::Smooth),
            (LoadBarycentricSample, InterpMode::NoPerspective),
        ] {
            fragment.add(format!("{op:?} {mode:?} {bits}"), Stage::Fragment, move |b| {
                let coordinates = intrinsic(b, op, 2, 32, &[], &[Index::InterpMode(mode)]);
                let offset = b.constant(32, 0);
                let indices = [Index::Base(2), Index::Component(1)];
                intrinsic(b, LoadInterpolatedInput, 3, bits, &[coordinates, offset], &indices)
            });
        }
        fragment.add(format!("computed coordinates and offset {bits}"), Stage::Fragment, move |b| {
            let coordinates = intrinsic(b, LoadBarycentricPixel, 2, 32, &[], &[Index::InterpMode(InterpMode::Smooth)]);
            let coordinates = b.alu(Op::Fadd, &[coordinates, coordinates]);
            let one = b.constant(32, 1);
            let id = intrinsic(b, LoadSampleId, 1, 32, &[], &[]);
            let id = intrinsic(b, ReadFirstInvocation, 1, 32, &[id], &[]);
            let offset = b.alu(Op::Iand, &[id, one]);
            intrinsic(b, LoadInterpolatedInput, 2, bits, &[coordinates, offset], &[Index::Base(1)])
        });
    }
    vertex.run(&["a660", "a540"]);
    // The value that chooses the lanes is an attribute, which the fragment stage reads as a flat varying.
    fragment.run(&["a660", "a540"]);
}

#[test]
fn constants_and_arrays() {
    let mut cases = Cases(Vec::new());
    for bits in [16, 32, 64] {
        cases.add(format!("load_const_ir3 {bits}"), Stage::Vertex, move |b| {
            let offset = b.constant(32, 3);
            intrinsic(b, LoadConstIr3, 2, bits, &[offset], &[Index::Base(5)])
        });
        for base in [5, 700] {
            cases.add(format!("load_const_ir3 {bits} at {base}, indirect"), Stage::Vertex, move |b| {
                let x = value(b, 0, 32);
                let mask = b.constant(32, 63);
                let offset = b.alu(Op::Iand, &[x, mask]);
                intrinsic(b, LoadConstIr3, 2, bits, &[offset], &[Index::Base(base)])
            });
        }
    }
    for (bits, components) in [(1, 1), (8, 2), (16, 3), (32, 1), (32, 3), (32, 4), (64, 2)] {
        cases.add(format!("array {bits}x{components}"), Stage::Vertex, move |b| {
            let shape = [Index::NumComponents(components), Index::NumArrayElems(6), Index::BitSize(bits)];
            let array = intrinsic(b, DeclReg, 1, 32, &[], &shape);
            let mask = Index::WriteMask((1 << components) - 1);
            for element in 0..6 {
                let scalars: Vec<Def> = (0..i32::from(components)).map(|c| value(b, element * 2 + c, bits)).collect();
                let vector = b.vec(&scalars);
                b.intrinsic(StoreReg, components, bits, &[vector, array], [Index::Base(element), mask.clone()]);
            }
            let index = |b: &mut Builder, number: i32| {
                let x = value(b, number, 32);
                let three = b.constant(32, 3);
                b.alu(Op::Iand, &[x, three])
            };
            let at = index(b, 3);
            let scalars: Vec<Def> = (0..i32::from(components)).map(|c| value(b, 20 + c, bits)).collect();
            let vector = b.vec(&scalars);
            let only_first = Index::WriteMask(1);
            b.intrinsic(StoreRegIndirect, components, bits, &[vector, array, at], [Index::Base(1), only_first]);
            let at = index(b, 4);
            intrinsic(b, LoadRegIndirect, components, bits, &[array, at], &[Index::Base(2)])
        });
    }
    cases.run(&["a660", "a420"]);
}
