//! What programs look like after selection. What they compute is tested where the interpreters are.

use super::{SelectError, run};
use crate::ir3::{Attrs, Block, InputKind, Opcode, Output, PhysReg, Place, Program, Round, SrcOperand, SystemValue};
use crate::nir::{AluType, BaseType, Builder, Def, Format, ImageDim, Index, IntrinsicOp, JumpKind, Op, Shader, Stage};
use crate::target::Target;

fn a660() -> Target {
    Target::by_name("a660").unwrap()
}

/// Selects, and checks what holds of every program: edges go both ways, phis have a source for each predecessor and
/// come first, a block ends with its one terminator, what is read has been defined.
fn select(shader: &Shader) -> Program {
    let program = run(shader, &a660()).unwrap();
    for (position, &block) in program.layout.iter().enumerate() {
        let data = &program.blocks[block];
        for successor in data.successors() {
            assert!(program.layout.contains(&successor), "{block} goes to a block that has no place");
            assert!(program.blocks[successor].predecessors.contains(&block));
        }
        for &predecessor in &data.predecessors {
            assert!(program.blocks[predecessor].successors().any(|s| s == block));
        }
        assert_eq!(position == 0, data.predecessors.is_empty(), "{block}");
        let mut phis_are_over = false;
        for (i, &instr) in data.instrs.iter().enumerate() {
            let instr_data = &program.instrs[instr];
            let is_phi = instr_data.opcode == Opcode::Phi;
            assert!(!(is_phi && phis_are_over), "a phi behind other instructions");
            phis_are_over |= !is_phi;
            if is_phi {
                assert_eq!(instr_data.srcs.len(), data.predecessors.len());
            }
            assert_eq!(instr_data.opcode.is_terminator(), i + 1 == data.instrs.len(), "{block}");
            for src in &instr_data.srcs {
                if let Some(value) = src.value() {
                    let by = program.values[value].instr;
                    assert!(program.iter_instrs().any(|(_, other)| other == by), "{value} has no definition");
                    assert_eq!(program.values[value].class, src.class);
                }
            }
        }
    }
    program
}

fn refusal(shader: &Shader) -> SelectError {
    run(shader, &a660()).unwrap_err()
}

fn opcodes(program: &Program, block: Block) -> Vec<Opcode> {
    program.blocks[block].instrs.iter().map(|&instr| program.instrs[instr].opcode).collect()
}

fn count(program: &Program, opcode: Opcode) -> usize {
    program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode == opcode).count()
}

fn attribute(b: &mut Builder, base: i32) -> Def {
    let zero = b.constant(32, 0);
    b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[zero], [Index::Base(base)]).unwrap()
}

fn store(b: &mut Builder, value: Def, base: i32, component: u8, mask: u16) {
    let zero = b.constant(32, 0);
    let indices = [Index::Base(base), Index::WriteMask(mask), Index::Component(component)];
    b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[value, zero], indices);
}

/// `loop { if a == 0 { break } if a == i { continue } body }`, with a counter.
fn loop_with_continue() -> Shader {
    let mut b = Builder::new(Stage::Vertex);
    let a = attribute(&mut b, 0);
    let zero = b.constant(32, 0);
    let one = b.constant(32, 1);
    let before = b.current_block();
    b.begin_loop();
    let i = b.phi(1, 32);
    b.set_phi_src(i, before, zero);
    let done = b.alu(Op::Ieq, &[a, zero]);
    b.begin_if(done);
    b.jump(JumpKind::Break);
    b.end_if();
    let next = b.alu(Op::Iadd, &[i, one]);
    let skip = b.alu(Op::Ieq, &[a, i]);
    b.begin_if(skip);
    let early = b.current_block();
    b.jump(JumpKind::Continue);
    b.end_if();
    let twice = b.alu(Op::Iadd, &[next, next]);
    let last = b.current_block();
    b.set_phi_src(i, early, next);
    b.set_phi_src(i, last, twice);
    b.end_loop();
    store(&mut b, i, 0, 0, 1);
    b.finish()
}

#[test]
fn back_edges_meet_in_a_continue_block() {
    let program = select(&loop_with_continue());
    let header = program.layout[1];
    let back: Vec<Block> = program.blocks[header].predecessors[1..].to_vec();
    assert_eq!(back.len(), 1, "one back edge");
    let through = back[0];
    assert_eq!(program.blocks[through].predecessors.len(), 2);
    assert_eq!(opcodes(&program, through), [Opcode::Phi, Opcode::Jump]);
    // It is last in the loop: only the block behind the loop follows.
    assert_eq!(program.layout[program.layout.len() - 2], through);
}

#[test]
fn one_back_edge_at_the_end_needs_no_continue_block() {
    let mut b = Builder::new(Stage::Vertex);
    let a = attribute(&mut b, 0);
    let zero = b.constant(32, 0);
    b.begin_loop();
    let done = b.alu(Op::Ieq, &[a, zero]);
    b.begin_if(done);
    b.jump(JumpKind::Break);
    b.end_if();
    b.end_loop();
    let program = select(&b.finish());
    // Before, header, break, else, after the if, after the loop.
    assert_eq!(program.layout.len(), 6);
    assert_eq!(program.blocks[program.layout[1]].predecessors.as_slice(), [program.layout[0], program.layout[4]]);
}

#[test]
fn one_back_edge_from_the_middle_needs_a_continue_block() {
    let mut b = Builder::new(Stage::Vertex);
    let a = attribute(&mut b, 0);
    let zero = b.constant(32, 0);
    b.begin_loop();
    let again = b.alu(Op::Ieq, &[a, zero]);
    b.begin_if(again);
    b.jump(JumpKind::Continue);
    b.end_if();
    b.jump(JumpKind::Break);
    b.end_loop();
    let program = select(&b.finish());
    let header = program.layout[1];
    let back = program.blocks[header].predecessors[1];
    assert_eq!(program.layout[program.layout.len() - 2], back);
}

#[test]
fn blocks_that_nothing_reaches_are_left_out() {
    let mut b = Builder::new(Stage::Vertex);
    let a = attribute(&mut b, 0);
    let zero = b.constant(32, 0);
    let condition = b.alu(Op::Ieq, &[a, zero]);
    b.begin_loop();
    b.begin_if(condition);
    b.jump(JumpKind::Break);
    b.begin_else();
    b.jump(JumpKind::Break);
    b.end_if();
    let unreached = b.alu(Op::Imul, &[a, a]);
    let other = b.alu(Op::Ieq, &[unreached, zero]);
    b.begin_if(other);
    b.end_if();
    b.end_loop();
    let program = select(&b.finish());
    assert_eq!(program.layout.len(), 5);
    assert_eq!(count(&program, Opcode::MullU), 0);
}

#[test]
fn phi_sources_follow_the_predecessors() {
    let mut b = Builder::new(Stage::Vertex);
    let a = attribute(&mut b, 0);
    let zero = b.constant(32, 0);
    let seven = b.constant(32, 7);
    let condition = b.alu(Op::Ilt, &[a, zero]);
    b.begin_if(condition);
    let then = b.current_block();
    b.begin_else();
    let undefined = b.undef(1, 32);
    let otherwise = b.current_block();
    b.end_if();
    let phi = b.phi(1, 32);
    b.set_phi_src(phi, otherwise, undefined);
    b.set_phi_src(phi, then, seven);
    store(&mut b, phi, 0, 0, 1);
    let program = select(&b.finish());
    let merge = program.layout[3];
    let phi = &program.instrs[program.blocks[merge].instrs[0]];
    assert_eq!(program.blocks[merge].predecessors.as_slice(), [program.layout[1], program.layout[2]]);
    let constant = phi.srcs[0].value().unwrap();
    let moved = &program.instrs[program.values[constant].instr];
    assert_eq!(moved.srcs[0].operand, SrcOperand::Immediate(7));
    assert_eq!(opcodes(&program, program.layout[1]), [Opcode::Mov, Opcode::Jump]);
    assert_eq!(phi.srcs[1].operand, SrcOperand::Undef);
}

#[test]
fn stores_to_outputs_merge_and_the_last_one_wins() {
    let mut b = Builder::new(Stage::Vertex);
    let x = attribute(&mut b, 0);
    let y = attribute(&mut b, 1);
    let pair = b.vec(&[x, y]);
    store(&mut b, pair, 3, 1, 0b11);
    store(&mut b, y, 3, 1, 1);
    let program = select(&b.finish());
    assert_eq!(program.outputs, [Output { base: 3, component: 1 }, Output { base: 3, component: 2 }]);
    let (_, end) = program.iter_instrs().last().unwrap();
    let end = &program.instrs[end];
    assert_eq!(end.opcode, Opcode::End);
    assert_eq!(end.attrs, Attrs::Outputs([0, 1].into_iter().collect()));
    assert_eq!(end.srcs[0].value(), end.srcs[1].value());
}

#[test]
fn a_store_to_an_output_in_an_if_is_refused_with_its_place() {
    let mut b = Builder::new(Stage::Vertex);
    let x = attribute(&mut b, 0);
    let zero = b.constant(32, 0);
    let condition = b.alu(Op::Ilt, &[x, zero]);
    b.begin_if(condition);
    store(&mut b, x, 0, 0, 1);
    b.end_if();
    let error = refusal(&b.finish());
    assert_eq!(error.operation, "store_output");
    assert!(error.instr.is_some() && error.line.is_none());
    assert!(error.to_string().ends_with("store_output: a store to an output inside of an if or a loop"), "{error}");
}

#[test]
fn an_early_return_gets_a_block_for_the_end() {
    let mut b = Builder::new(Stage::Vertex);
    let x = attribute(&mut b, 0);
    let y = attribute(&mut b, 1);
    store(&mut b, x, 0, 0, 1);
    let zero = b.constant(32, 0);
    let condition = b.alu(Op::Ilt, &[x, zero]);
    b.begin_if(condition);
    b.jump(JumpKind::Return);
    b.end_if();
    store(&mut b, y, 0, 0, 1);
    store(&mut b, y, 1, 0, 1);
    let program = select(&b.finish());
    let end = *program.layout.last().unwrap();
    assert_eq!(opcodes(&program, end), [Opcode::Phi, Opcode::Phi, Opcode::End]);
    let second = &program.instrs[program.blocks[end].instrs[1]];
    assert_eq!(second.srcs[0].operand, SrcOperand::Undef);
}

#[test]
fn preambles_branch_by_shps_and_getone() {
    let mut b = Builder::new(Stage::Fragment);
    let start = b.intrinsic(IntrinsicOp::PreambleStartIr3, 1, 1, &[], []).unwrap();
    b.begin_if(start);
    let elected = b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []).unwrap();
    b.begin_if(elected);
    let value = b.constants(32, &[1, 2]);
    b.intrinsic(IntrinsicOp::StoreConstIr3, 2, 32, &[value], [Index::Base(260)]);
    b.intrinsic(IntrinsicOp::PreambleEndIr3, 1, 32, &[], []);
    b.end_if();
    b.end_if();
    let program = select(&b.finish());
    assert_eq!(opcodes(&program, program.layout[0]), [Opcode::Shps]);
    assert_eq!(opcodes(&program, program.layout[1]).last(), Some(&Opcode::Getone));
    let inner = opcodes(&program, program.layout[2]);
    assert_eq!(inner[inner.len() - 3..], [Opcode::Stc, Opcode::Shpe, Opcode::Jump]);
    let (_, stc) = program.iter_instrs().find(|&(_, i)| program.instrs[i].opcode == Opcode::Stc).unwrap();
    let stc = &program.instrs[stc];
    assert_eq!(stc.srcs[0].operand, SrcOperand::Immediate(4));
    assert_eq!(stc.srcs.len(), 3, "a1.x has the high part");
}

/// The base counts words of the constant file, the range and the offset vec4s.
#[test]
fn a_copy_to_the_constant_file_begins_at_a1() {
    let select_copy = |base: i32, range: u32| {
        let mut b = Builder::new(Stage::Fragment);
        let (buffer, offset) = (b.constant(32, 3), b.constant(32, 12));
        let indices = [Index::Base(base), Index::Range(range)];
        b.intrinsic(IntrinsicOp::CopyUboToUniformIr3, 0, 0, &[buffer, offset], indices);
        run(&b.finish(), &a660())
    };
    let program = select_copy(80, 200).unwrap();
    let (_, copy) = program.iter_instrs().find(|&(_, i)| program.instrs[i].opcode == Opcode::LdcK).unwrap();
    let copy = &program.instrs[copy];
    assert_eq!(copy.memory().unwrap().components, Some(200));
    let operands = [copy.srcs[0].operand, copy.srcs[1].operand];
    assert_eq!(operands, [SrcOperand::Immediate(3), SrcOperand::Immediate(12)]);
    let a1 = &program.instrs[program.values[copy.srcs[2].value().unwrap()].instr];
    assert_eq!(
        (copy.srcs[2].place().unwrap().reg(), a1.srcs[0].operand),
        (Some(PhysReg::A1_X), SrcOperand::Immediate(80))
    );
    for (base, range, problem) in
        [(0, 257, "257 vec4s"), (0, 0, "0 vec4s"), (1900, 200, "outside of the constant file"), (-4, 1, "outside")]
    {
        let error = select_copy(base, range).unwrap_err().to_string();
        assert!(error.contains("copy_ubo_to_uniform_ir3") && error.contains(problem), "{error}");
    }
}

#[test]
fn an_elected_lane_that_may_end_is_no_getone() {
    let mut b = Builder::new(Stage::Fragment);
    let elected = b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []).unwrap();
    b.intrinsic(IntrinsicOp::TerminateIf, 1, 32, &[elected], []);
    b.begin_if(elected);
    b.end_if();
    let program = select(&b.finish());
    assert_eq!(opcodes(&program, program.layout[0]).last(), Some(&Opcode::Br));
    assert_eq!(count(&program, Opcode::ElectMacro), 1);
}

#[test]
fn an_input_is_one_value_however_often_it_is_read() {
    let mut b = Builder::new(Stage::Compute);
    let one = b.intrinsic(IntrinsicOp::LoadWorkgroupId, 3, 32, &[], []).unwrap();
    let two = b.intrinsic(IntrinsicOp::LoadWorkgroupId, 3, 32, &[], []).unwrap();
    b.alu(Op::Iadd, &[one, two]);
    let program = select(&b.finish());
    let inputs: Vec<_> = program.inputs().map(|(_, kind)| kind).collect();
    assert_eq!(inputs, [Some(InputKind::System(SystemValue::WorkgroupId))]);
    assert_eq!(count(&program, Opcode::Split), 3);
    assert_eq!(program.instrs[program.blocks[program.entry()].instrs[0]].opcode, Opcode::Input);
}

#[test]
fn driver_parameters_are_at_the_end_of_the_constant_file() {
    let mut b = Builder::new(Stage::Compute);
    let groups = b.intrinsic(IntrinsicOp::LoadNumWorkgroups, 3, 32, &[], []).unwrap();
    let base = b.intrinsic(IntrinsicOp::LoadBaseWorkgroupId, 3, 32, &[], []).unwrap();
    b.alu(Op::Iadd, &[groups, base]);
    let program = select(&b.finish());
    let words: Vec<_> = (program.consts.driver_params.iter()).map(|p| (p.word, p.value, p.component)).collect();
    assert_eq!(words[..3], [0, 1, 2].map(|c| (2044 + c, SystemValue::NumWorkgroups, c as u8)));
    assert_eq!(words[3..], [0, 1, 2].map(|c| (2040 + c, SystemValue::BaseWorkgroupId, c as u8)));
}

#[test]
fn arrays_are_accessed_word_by_word() {
    let mut b = Builder::new(Stage::Vertex);
    let indices = [Index::NumComponents(2), Index::NumArrayElems(4), Index::BitSize(32)];
    let array = b.intrinsic(IntrinsicOp::DeclReg, 1, 32, &[], indices).unwrap();
    let index = attribute(&mut b, 0);
    let value = b.constants(32, &[1, 2]);
    b.intrinsic(IntrinsicOp::StoreReg, 2, 32, &[value, array], [Index::Base(3), Index::WriteMask(0b10)]);
    let loaded = b.intrinsic(IntrinsicOp::LoadRegIndirect, 2, 32, &[array, index], [Index::Base(1)]).unwrap();
    store(&mut b, loaded, 0, 0, 0b11);
    let program = select(&b.finish());
    let array = &program.arrays[program.arrays.keys().next().unwrap()];
    assert_eq!((array.length, array.id), (8, 1));
    let accesses: Vec<(i16, bool)> = (program.iter_instrs())
        .flat_map(|(_, i)| {
            let data = &program.instrs[i];
            let srcs = data.srcs.iter().filter_map(|src| src.place().copied());
            data.dsts.iter().map(|dst| dst.place).chain(srcs).collect::<Vec<_>>()
        })
        .filter_map(|place| match place {
            Place::Array(access) => Some((access.offset, access.relative)),
            _ => None,
        })
        .collect();
    assert_eq!(accesses, [(7, false), (2, true), (3, true)]);
}

#[test]
fn an_element_outside_of_its_array_is_refused() {
    let mut b = Builder::new(Stage::Vertex);
    let indices = [Index::NumComponents(1), Index::NumArrayElems(4), Index::BitSize(16)];
    let array = b.intrinsic(IntrinsicOp::DeclReg, 1, 32, &[], indices).unwrap();
    b.intrinsic(IntrinsicOp::LoadReg, 1, 16, &[array], [Index::Base(4)]);
    assert_eq!(refusal(&b.finish()).reason, "the element is outside of the array");
}

#[test]
fn immediates_are_moved_once_a_block() {
    let mut b = Builder::new(Stage::Vertex);
    let x = attribute(&mut b, 0);
    let big = b.constant(32, 0x1234_5678);
    let sum = b.alu(Op::Iadd, &[x, big]);
    let sum = b.alu(Op::Iadd, &[sum, big]);
    store(&mut b, sum, 0, 0, 1);
    assert_eq!(count(&select(&b.finish()), Opcode::Mov), 1);
}

/// An image has the components of its format, and no others are stored.
#[test]
fn images_store_what_their_format_has() {
    for (format, components) in [
        (Format::None, 4),
        (Format::R32Uint, 1),
        (Format::R16G16Float, 2),
        (Format::R11G11B10Float, 3),
        (Format::B8G8R8A8Unorm, 4),
    ] {
        let mut b = Builder::new(Stage::Vertex);
        let (x, zero) = (attribute(&mut b, 0), b.constant(32, 0));
        let data = b.vec(&[x, x, x, x]);
        let ty = AluType::new(BaseType::Uint, 32);
        let indices = [Index::ImageDim(ImageDim::Buf), Index::Format(format), Index::SrcType(ty)];
        b.intrinsic(IntrinsicOp::ImageStore, 4, 32, &[zero, x, zero, data, zero], indices);
        let program = select(&b.finish());
        let stores = program.iter_instrs().filter(|&(_, instr)| program.instrs[instr].opcode == Opcode::Stib);
        let stored: Vec<_> = stores.map(|(_, i)| program.instrs[i].memory().and_then(|m| m.components)).collect();
        assert_eq!(stored, [Some(components)], "{}", format.name());
    }
}

#[test]
fn what_ir3_does_not_have_is_refused_by_name() {
    let mut b = Builder::new(Stage::Vertex);
    let x = attribute(&mut b, 0);
    let wide = b.alu(Op::F2f64, &[x]);
    b.alu(Op::Fadd, &[wide, wide]);
    assert_eq!(refusal(&b.finish()).to_string(), "instr2: f2f64: floats of 64 bits, which the machine does not have");

    let mut b = Builder::new(Stage::Vertex);
    let x = attribute(&mut b, 0);
    let wide = b.alu(Op::Pack64_2x32Split, &[x, x]);
    b.alu(Op::Fadd, &[wide, wide]);
    let error = refusal(&b.finish()).to_string();
    assert!(error.ends_with("fadd: floats of 64 bits, which the machine does not have"), "{error}");

    let mut shader = Builder::new(Stage::Vertex).finish();
    shader.info.other.push(("float_controls_execution_mode".to_owned(), "0x00080000".to_owned()));
    let error = refusal(&shader).to_string();
    assert!(error.contains("ROUNDING_MODE_RTZ_FP32 is not supported"), "{error}");

    let mut b = Builder::new(Stage::Compute);
    b.intrinsic(IntrinsicOp::EmitVertex, 1, 32, &[], []);
    assert_eq!(refusal(&b.finish()).operation, "emit_vertex");
}

/// The rounding modes of the conversions that a shader becomes.
fn roundings(mode: Option<&str>, ops: &[Op]) -> Vec<Round> {
    let mut b = Builder::new(Stage::Vertex);
    let x = attribute(&mut b, 0);
    for &op in ops {
        b.alu(op, &[x]);
    }
    let mut shader = b.finish();
    shader.info.other.extend(mode.map(|text| ("float_controls_execution_mode".to_owned(), text.to_owned())));
    let program = run(&shader, &Target::default()).expect("supported");
    let round = |instr| match program.instrs[instr].attrs {
        Attrs::Move { round, dst, src } if src != dst && dst.is_float() => Some(round),
        _ => None,
    };
    program.iter_instrs().filter_map(|(_, instr)| round(instr)).collect()
}

/// Plain conversions round as the header says, or as the machine does; the others say it themselves.
#[test]
fn conversions_have_their_rounding_modes() {
    let ops = [Op::I2f32, Op::U2f32, Op::F2f16, Op::I2f16, Op::F2f16Rtne, Op::F2f16Rtz];
    use Round::{Default as Zero, Even};
    assert_eq!(roundings(None, &ops), [Zero, Zero, Zero, Zero, Even, Zero]);
    assert_eq!(roundings(Some("0x00008000"), &ops), [Zero, Zero, Even, Even, Even, Zero]);
    assert_eq!(roundings(Some("0x00010000"), &ops), [Even, Even, Zero, Zero, Even, Zero]);
}
