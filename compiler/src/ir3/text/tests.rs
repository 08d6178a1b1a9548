//! Texts of Mesa, texts that the writer writes, and invalid texts.

use super::{read, read_with_positions, write};
use crate::ir3::legality::FLUT;
use crate::ir3::{
    AddressSpace, AliasScope, Array, ArrayAccess, ArrayData, Attrs, Block, BlockData, Builder, Condition, DriverParam,
    InputKind, InstrData, InstrFlags, MemoryAttrs, Mods, Opcode, OperandFlags, Output, PhysReg, Place, Program,
    RegClass, RepeatLink, ResourceWords, Round, ShaderStage, ShuffleMode, Src, SrcOperand, SystemValue, TextureAttrs,
    Type, Value, WriteMask,
};

const SAMPLE: &str = include_str!("sample.ir3");

/// A program of one block with these lines, numbered by the caller.
fn block(lines: &[&str]) -> String {
    let mut text = "block1 {\n".to_owned();
    for line in lines {
        text += &format!("\t{line}\n");
    }
    text + "}\n"
}

/// The first instruction of a program of one line.
fn one(line: &str) -> InstrData {
    let program = read(&block(&[&format!("0001:0000:000: \t{line}")])).unwrap();
    program.instrs.values().next().unwrap().clone()
}

#[test]
fn the_sample_is_written_as_it_stands() {
    let program = read(SAMPLE).unwrap();
    assert_eq!(write(&program), SAMPLE);
    assert_eq!(program.canonical().as_ref(), Some(&program));
    assert_eq!((program.layout.len(), program.instruction_count()), (4, 17));
    assert_eq!(program.stage, Some(ShaderStage::Fragment));
    assert_eq!(program.outputs, [Output { base: 0, component: 0 }]);
    assert_eq!(program.consts.immediates, [(61 << 2, 0x3f99_999a)]);
    let second = program.layout[1];
    assert_eq!(program.blocks[program.entry()].successors[0], Some(second));
    assert_eq!(program.blocks[program.entry()].divergent, Some(true));
    assert!(program.blocks[program.layout[3]].reconvergence_point);
}

#[test]
fn prefixes_and_colours_are_skipped() {
    let plain = read(SAMPLE).unwrap();
    let log: String = SAMPLE.lines().map(|line| format!("MESA: info: {line}\n")).collect();
    assert_eq!(read(&log).unwrap(), plain);
    let coloured = SAMPLE.replace("ssa_", "\x1b[0;34mssa_").replace(',', "\x1b[0m,").replace('\n', "\x1b[0m\r\n");
    assert_eq!(read(&coloured).unwrap(), plain);
    assert_eq!(read(&format!("AFTER: ir3_cp:\n\n{log}")).unwrap(), plain);
}

#[test]
fn operands() {
    let add = one("(ss)(rpt2)(ul)(sat)add.f (unused)hr3.y, (absneg)(kill)(r)hr0.x, (neg)hc<a0.x + -3>, hr61.x");
    assert_eq!(add.flags, InstrFlags::SS | InstrFlags::UL | InstrFlags::SAT);
    assert_eq!((add.repeat, add.nop), (2, 0));
    assert_eq!(add.dsts[0].place, Place::Reg(PhysReg::new(3, 1)));
    assert_eq!((add.dsts[0].class, add.dsts[0].flags), (RegClass::HALF, OperandFlags::UNUSED));
    assert_eq!(add.srcs[0].mods, Mods::NEG | Mods::ABS);
    assert!(add.srcs[0].flags.contains(OperandFlags::FIRST_KILL | OperandFlags::KILL | OperandFlags::R));
    assert_eq!((add.srcs[1].operand, add.srcs[1].class), (SrcOperand::ConstRelative(-3), RegClass::HALF));
    assert_eq!(add.srcs[2].class, RegClass::ADDRESS);
    let and = one("and.b shr49.z, (neg)shr48.x, himm[0.000000,65535,0xffff]");
    assert_eq!((and.dsts[0].class, and.srcs[0].mods), (RegClass::SHARED_HALF, Mods::NOT));
    assert_eq!(and.srcs[1].operand, SrcOperand::Immediate(0xffff));
    let br = one("brao !pp0.x, pp0.w");
    assert_eq!(br.srcs[1].place(), Some(&Place::Reg(PhysReg::P0_X.offset(3))));
    assert_eq!((br.srcs[0].mods, br.srcs[1].mods), (Mods::NOT, Mods::empty()));
    let store = one("mov.u32u32 (tied)r<a0.x + 10> (4), imm[0.0,0,0x0], (tied)r<a0.x + 10> (4), hr61.x");
    assert_eq!(store.dsts[0].place, Place::Relative { offset: 10, size: 4 });
    let undefined = one("_meta:phi shssa_1, shundef, hundef");
    assert_eq!((undefined.srcs[0].operand, undefined.srcs[0].class), (SrcOperand::Undef, RegClass::SHARED_HALF));
    let prefetch = one("_meta:tex_prefetch ssa_1 (wrmask=0xf), r0.x (wrmask=0x3), tex=3, samp=2, input_offset=1");
    let texture = prefetch.texture().unwrap();
    assert_eq!((texture.texture, texture.sampler, texture.input_offset), (Some(3), Some(2), Some(1)));
}

#[test]
fn what_dies_dies_at_every_read() {
    let mul = one("mad.f32 r0.x, (kill)r1.x, r1.x, hr1.x");
    assert!(mul.srcs[0].flags.contains(OperandFlags::FIRST_KILL));
    assert_eq!(mul.srcs[1].flags, OperandFlags::KILL);
    assert_eq!(mul.srcs[2].flags, OperandFlags::empty());
}

#[test]
fn opcodes_without_names() {
    assert_eq!(one("(sy)(null)").opcode, Opcode::Ccinv);
    assert_eq!(one("(null).u32u32 sr48.x, r0.x").opcode, Opcode::ReadGetlastMacro);
}

#[test]
fn float_immediates_are_floats() {
    for (i, &(f32, f16)) in FLUT.iter().enumerate() {
        let mul = one(&format!("mul.f r0.x, r0.x, imm[0.0,{i},{i:#x}]"));
        assert_eq!(mul.srcs[1].operand, SrcOperand::Immediate(f32));
        let mul = one(&format!("mul.f hr0.x, hr0.x, himm[0.0,{i},{i:#x}]"));
        assert_eq!(mul.srcs[1].operand, SrcOperand::Immediate(u32::from(f16)));
        let add = one(&format!("add.u r0.x, r0.x, imm[0.0,{i},{i:#x}]"));
        assert_eq!(add.srcs[1].operand, SrcOperand::Immediate(i as u32));
    }
    // Bits that look like an index are marked, and come back.
    for bits in [1, 11, 12, 0x4040_0000] {
        let mut program = program();
        let mut builder = builder(&mut program);
        let class = RegClass::FULL;
        builder.alu(Opcode::MulF, class, &[Src::constant(0, false), Src::immediate(bits, false)]);
        let text = write(&program);
        assert_eq!(text.contains("{raw}"), bits < 12, "{text}");
        assert_eq!(read(&text).unwrap(), program.canonical().unwrap());
    }
}

#[test]
fn votes_are_inverted_towards_the_second_successor() {
    let text = "block1 {\n\t0001:0000:000: \tball pp0.x target=block3\n\t0002:0000:000: \tbany pp0.x target=block2\n\
                \t/* succs: block2, block3 (div) */\n}\nblock2 {\n\tpred: block1\n}\nblock3 {\n\tpred: block1\n}\n";
    let program = read(text).unwrap();
    let mods: Vec<Mods> = program.instrs.values().map(|instr| instr.srcs[0].mods).collect();
    assert_eq!(mods, [Mods::NOT, Mods::empty()]);
    assert_eq!(read(&write(&program)).unwrap(), program);
}

#[test]
fn votes_that_are_not_inverted_say_so() {
    let text = "block1 {\n\t0001:0000:000: \tball !!(last)pp0.x target=block3\n\t/* succs: block2, block3 (div) */\n}\n\
                block2 {\n\tpred: block1\n}\nblock3 {\n\tpred: block1\n}\n";
    let program = read(text).unwrap();
    assert_eq!(program.instrs.values().next().unwrap().srcs[0].mods, Mods::empty());
    assert_eq!(read(&write(&program)).unwrap(), program);
    assert!(write(&program).contains("ball !!(last)pp0.x"));
    let pair = text.replace("\t/* succs", "\t0002:0000:000: \tbany !pp0.x target=block2\n\t/* succs").replace("!!", "");
    let program = read(&pair).unwrap();
    let mods: Vec<Mods> = program.instrs.values().map(|instr| instr.srcs[0].mods).collect();
    assert_eq!(mods, [Mods::empty(), Mods::NOT]);
    assert_eq!(read(&write(&program)).unwrap(), program);
}

#[test]
fn scans_name_the_result_that_is_used() {
    let text = block(&[
        "0001:0000:000: \tscan_clusters.macro.mul.u.f16f16 (tied)sssa_1, (early_clobber)ssa_1, (early_clobber)ssa_1, (tied)sr48.x, r0.x",
        "0002:0000:000: \tmov.u32u32 ssa_2, ssa_1",
        "0003:0000:000: \tmov.u32u32 ssa_3, sssa_1",
    ]);
    let program = read(&text).unwrap();
    let read_by = |i: usize| program.instrs.values().nth(i).unwrap().srcs[0].value().unwrap();
    assert_eq!(program.values[read_by(1)].dst, 1);
    assert_eq!(program.values[read_by(2)].dst, 0);
    assert_eq!(read(&write(&program)).unwrap(), program);
    assert!(write(&program).contains("ssa_2, ssa_1\n"));
}

#[test]
fn removed_instructions_are_kept() {
    let text = "block1 {\n\t0002:0000:000: \tend\n\t/* keeps:\n\t\t0001:0000:000: \t_meta:in r0.x\n\t\t0002:0000:000: \tend\n\t */\n}\n";
    let program = read(text).unwrap();
    assert_eq!((program.instrs.len(), program.instruction_count()), (2, 1));
    assert_eq!(program.blocks[program.entry()].keeps.len(), 2);
    assert_eq!(read(&write(&program)).unwrap(), program);
}

/// Text, the error's line and column, and a part of its message.
#[test]
fn errors_point_at_the_place() {
    let cases: &[(&str, usize, usize, &str)] = &[
        ("", 1, 1, "expected a block, found the end of the line"),
        ("block1 {", 1, 9, "expected `}`"),
        ("blok1 {", 1, 1, "expected a block, found `blok1`"),
        ("block1 {\n}\nblock1 {\n}", 3, 6, "the number of no other block"),
        ("block1 {\n\tpred: block9\n}", 2, 8, "expected a block that there is, found `block9`"),
        ("block1 {\n\t/* succs: block1, block1, block1 */\n}", 2, 28, "at most two successors"),
        ("block1 {\n\t0001:0000:000: \tfrobnicate r0.x\n}", 2, 18, "expected an opcode, found `frobnicate`"),
        ("block1 {\n\t0001:0000:000: \tmov.u32u99 r0.x, r0.x\n}", 2, 18, "expected an opcode"),
        ("block1 {\n\t0001:0000:000: \tadd.u r0.x, r0.q\n}", 2, 33, "expected a component, found `q`"),
        ("block1 {\n\t0001:0000:000: \tadd.u r0.x r0.x\n}", 2, 29, "expected `,`"),
        ("block1 {\n\t0001:0000:000: \tadd.u r0.x, ssa_7, r1.x\n}", 2, 30, "expected a value that is defined"),
        ("block1 {\n\t0001:0000:000: \tadd.u ssa_2, r0.x, r1.x\n}", 2, 24, "ssa_1, the instruction's own number"),
        ("block1 {\n\t0001:0000:000: \tadd.u c0.x, r0.x, r1.x\n}", 2, 24, "a register to write"),
        ("block1 {\n\t0001:0000:000: \tadd.u r0.x, imm[0.0,1,0x2], r1.x\n}", 2, 38, "expected 2, as in hexadecimal"),
        ("block1 {\n\t0001:0000:000: \tnop\n\t0001:0000:000: \tnop\n}", 3, 2, "no other instruction"),
        ("block1 {\n\t0001:0000:000: \tnop, rpt: 5\n}", 2, 28, "an instruction that there is"),
        ("block1 {\n\t0001:0000:000: \tnop, false-deps:ssa_5\n}", 2, 34, "an instruction that there is"),
        ("block1 {\n\t0001:0000:000: \tjump target=block4\n}", 2, 23, "a block that there is"),
        ("block1 {\n\t0001:0000:000: \t_meta:parallel_copy r0.x, r0.y, r0.z\n}", 2, 54, "as many operands"),
        ("block1 {\n\t0001:0000:000: \tmov.u32u32 r0.x, r1.x // {space=ssbo}\n}", 2, 44, "an attribute of mov"),
        ("block1 {\n\t0001:0000:000: \tldl r0.x, r1.x // {space=moon}\n}", 2, 43, "an address space"),
        ("// {stage=kitchen}\nblock1 {\n}", 1, 11, "a shader stage"),
        ("// {stage=compute}\n// {stage=fragment}\nblock1 {\n}", 2, 11, "the stage once"),
        ("// {workgroup=1x1x1}\n// {workgroup=2x1x1}\nblock1 {\n}", 2, 15, "the workgroup once"),
        ("// {immediate=c1.x:0x1}\n// {immediate=c1.x:0x1}\nblock1 {\n}", 2, 15, "that holds nothing else"),
        ("block1 {\n\t0001:0000:000: \tadd.u r0.x, imm[2.5,1,0x1], r1.x\n}", 2, 34, "expected 0.000000, as in hex"),
        (
            "block1 {\n\t0001:0000:000: \tsam (f32)(xyz)r1.x (wrmask=0xf), r0.x, s#0, t#0\n}",
            2,
            28,
            "expected the components of the destination, whose mask is 0xf",
        ),
        ("block1 {\n\t0001:0000:000: \tldl r0.x, r1.x // {type=u32, type=u16}\n}", 2, 47, "not given before"),
        ("block1 {\n\t0001:0000:000: \tldib.base1 r0.x, r1.x // {base=2}\n}", 2, 49, "expected 1, as the line says"),
        (
            "block1 {\n\t0001:0000:000: \tmov.u32u32 arr[id=1, offset=0, size=4], arr[id=1, offset=0, size=5]\n}",
            2,
            58,
            "an array of 4 elements, as elsewhere",
        ),
        ("MESA: info: block1 {\nMESA: info: \tnop\nMESA: info: }", 2, 14, "an instruction, a list of blocks"),
        ("block1 {\n\t0001:0000:000: \tadd.u \x1b[0;31mr0.x\x1b[0m, r9\n}", 2, 43, "expected `.`"),
    ];
    for &(text, line, column, message) in cases {
        let error = read(text).unwrap_err();
        assert!(error.message.contains(message), "{text:?}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        assert!(error.to_string().starts_with(&format!("{line}:{column}: ")));
    }
    let error = read("block1 {\n\t0001:0000:000: \tadd.u r0.x, r0.x, oops, r1\n}").unwrap_err();
    assert_eq!((error.found.as_str(), error.expected.as_str()), ("`oops`", "an operand"));
}

fn program() -> Program {
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    program
}

fn builder(program: &mut Program) -> Builder<'_> {
    let block = program.entry();
    Builder::new(program, block)
}

/// All attributes that the types allow for an instruction of one opcode.
fn attributes(opcode: Opcode) -> Vec<(Attrs, InstrFlags)> {
    use crate::ir3::Category;
    let plain = |attrs| (attrs, InstrFlags::empty());
    match opcode {
        Opcode::CmpsF | Opcode::CmpvU => {
            vec![plain(Attrs::Compare(Condition::Ge)), plain(Attrs::Compare(Condition::Ne))]
        }
        Opcode::Split => vec![plain(Attrs::Split { offset: 3 })],
        Opcode::ScanMacro | Opcode::ScanClustersMacro => {
            vec![plain(Attrs::Scan { op: Opcode::MulU24 }), plain(Attrs::Scan { op: Opcode::MaxS })]
        }
        Opcode::Shfl => vec![plain(Attrs::Shuffle { mode: ShuffleMode::RotateDown, ty: Type::U16 })],
        Opcode::PushConstsLoadMacro => vec![plain(Attrs::PushConsts { dst: 4, src: 8, size: 16 })],
        Opcode::Input => vec![
            plain(Attrs::Input(None)),
            plain(Attrs::Input(Some(InputKind::Attribute { base: 7, component: 3 }))),
            plain(Attrs::Input(Some(InputKind::System(SystemValue::Opaque(9))))),
        ],
        Opcode::End | Opcode::Chmask => vec![plain(Attrs::None)],
        _ => match opcode.category() {
            Category::Move => vec![
                plain(Attrs::Move { src: Type::U8In32, dst: Type::U8, round: Round::Even }),
                plain(Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default }),
            ],
            Category::Barrier if opcode == Opcode::Alias => vec![
                plain(Attrs::None),
                plain(Attrs::Alias { scope: AliasScope::Texture, float: true, size: 3, register: PhysReg::new(40, 1) }),
                plain(Attrs::Alias {
                    scope: AliasScope::RenderTarget,
                    float: false,
                    size: 0,
                    register: PhysReg::new(2, 3),
                }),
            ],
            Category::Barrier => vec![plain(Attrs::None), plain(Attrs::Fence { r: true, w: false, g: true, l: true })],
            Category::Memory => vec![
                plain(Attrs::None),
                (
                    Attrs::Memory(MemoryAttrs {
                        ty: Some(Type::F16),
                        components: Some(3),
                        space: Some(AddressSpace::Global),
                        coords: Some(2),
                        base: Some(1),
                        offset: -12,
                        ..MemoryAttrs::default()
                    }),
                    InstrFlags::BINDLESS | InstrFlags::A1EN | InstrFlags::EI,
                ),
                (Attrs::Memory(MemoryAttrs { base: Some(2), offset: 5, ..Default::default() }), InstrFlags::GLOBAL),
            ],
            Category::Texture if opcode != Opcode::Tcinv => vec![
                plain(Attrs::None),
                (
                    Attrs::Texture(TextureAttrs {
                        ty: Some(Type::S16),
                        sampler: Some(1),
                        texture: Some(2),
                        base: Some(3),
                        input_offset: Some(4),
                        cluster: Some(8),
                        is_1d: true,
                        is_cube: true,
                        ..TextureAttrs::default()
                    }),
                    InstrFlags::BINDLESS | InstrFlags::ARRAY | InstrFlags::SHADOW,
                ),
                (
                    Attrs::Texture(TextureAttrs { texture: Some(2), sampler: Some(1), ..TextureAttrs::default() }),
                    InstrFlags::S2EN | InstrFlags::DIM_3D | InstrFlags::PROJ | InstrFlags::NONUNIFORM,
                ),
            ],
            _ => vec![plain(Attrs::None), (Attrs::None, InstrFlags::SAT | InstrFlags::EQ | InstrFlags::UNUSED)],
        },
    }
}

#[test]
fn every_opcode_with_every_attribute_reads_back() {
    for opcode in Opcode::ALL {
        for (attrs, flags) in attributes(opcode) {
            let mut program = program();
            let info = opcode.info();
            let mut data = InstrData::new(opcode);
            (data.attrs, data.flags, data.repeat) = (attrs, flags, 1);
            let srcs = match opcode {
                Opcode::ScanClustersMacro => 2,
                // The fewest operands that distinguish a load or a sample from a prefetch.
                Opcode::Sam => 1,
                Opcode::Resinfo | Opcode::Ldc => 2,
                _ => info.min_srcs,
            };
            data.srcs.extend((0..srcs).map(|i| Src::constant(u16::from(i), false)));
            let instr = builder(&mut program).push(data);
            let dsts = match opcode {
                Opcode::ParallelCopy => 0,
                Opcode::ScanClustersMacro => 3,
                _ => info.dsts,
            };
            for i in 0..dsts {
                let class =
                    if opcode == Opcode::ScanClustersMacro && i == 0 { RegClass::SHARED } else { RegClass::FULL };
                builder(&mut program).add_dst(instr, class, WriteMask::first(2));
            }
            let text = write(&program);
            let again = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(Some(&again), program.canonical().as_ref(), "{text}");
        }
    }
}

#[test]
fn a_built_program_reads_back() {
    let mut program = program();
    program.stage = Some(ShaderStage::Compute);
    program.workgroup_size = Some([8, 4, 1]);
    program.scratch_size = 400;
    program.shared_size = 70_000;
    program.outputs.push(Output { base: 3, component: 2 });
    program.consts.driver_params.push(DriverParam { word: 8, value: SystemValue::DrawId, component: 1 });
    program.consts.resources = Some(ResourceWords { first: 13, buffers: 2 });
    let last = program.blocks.push(BlockData::default());
    let unreachable = program.blocks.push(BlockData::default());
    program.layout = vec![program.layout[0], unreachable, last];
    program.block_names = vec![(last, 1), (unreachable, 0)];
    let entry = program.entry();
    program.add_edge(entry, 0, last);
    program.arrays.push(ArrayData { id: 0, class: RegClass::HALF, length: 4, base: None });
    let array = program.arrays.push(ArrayData { id: 0, class: RegClass::FULL, length: 6, base: None });
    let array_of = |array: Array, value: Option<Value>, relative| {
        Place::Array(ArrayAccess { array, offset: -2, relative, value: value.into(), base: None.into() })
    };
    // The last block is filled first, so that no entity is in the order of the text.
    let mut b = Builder::new(&mut program, last);
    let end = b.effect(Opcode::End, &[]);
    let mut b = Builder::new(&mut program, entry);
    let input = b.define(
        Opcode::Input,
        RegClass::FULL,
        3,
        &[],
        Attrs::Input(Some(InputKind::System(SystemValue::LocalInvocationId))),
    );
    let vector = b.src(input);
    let x = b.define(Opcode::Split, RegClass::FULL, 1, &[vector], Attrs::Split { offset: 0 });
    let mut dying = b.src(x);
    dying.flags |= OperandFlags::KILL;
    b.compare(Opcode::CmpsU, Condition::Lt, RegClass::HALF, dying, dying);
    // Two destinations without names.
    let copy = b.push(InstrData::new(Opcode::ParallelCopy));
    let first = b.add_dst(copy, RegClass::FULL, WriteMask::SCALAR);
    let second = b.add_dst(copy, RegClass::FULL, WriteMask::SCALAR);
    b.program.instrs[copy].srcs.extend([Src::constant(1, false), Src::immediate(7, false)]);
    let (first, second) = (b.src(first), b.src(second));
    let sum = b.alu(Opcode::AddU, RegClass::FULL, &[second, first]);
    // An access that the rule takes for a relative one, and one that it does not.
    let address = Src::reg(Place::Reg(PhysReg::A0_X), RegClass::ADDRESS, WriteMask::SCALAR);
    let read_array = Src::reg(array_of(array, None, false), RegClass::FULL, WriteMask::SCALAR);
    let mov = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
    b.define(Opcode::Mov, RegClass::FULL, 1, &[read_array, address], mov.clone());
    let relative = Src::reg(array_of(array, None, true), RegClass::FULL, WriteMask::SCALAR);
    b.define(Opcode::Mov, RegClass::FULL, 1, &[relative], mov);
    let jump = b.effect(Opcode::Jump, &[]);
    let removed = b.program.instrs.push(InstrData::new(Opcode::Nop));
    let sum_src = b.src(sum);
    program.instrs[end].srcs.push(sum_src);
    program.instrs[end].attrs = Attrs::Outputs([0].into_iter().collect());
    program.instrs[end].constrain(|constraints| constraints.false_deps.extend([jump, removed]));
    program.instrs[jump].constrain(|constraints| constraints.link = RepeatLink::After(removed));
    program.blocks[last].keeps.extend([end, jump]);
    let text = write(&program);
    let again = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(Some(&again), program.canonical().as_ref(), "{text}");
    assert_eq!(write(&again), text);
    assert_eq!(again.canonical().unwrap(), again);
    assert!(text.contains("block0 {") && text.contains("relative="), "{text}");
}

#[test]
fn what_is_not_there_has_no_canonical_form() {
    let mut program = program();
    let missing = Value::from_u32(9);
    let src = Src::reg(Place::Value(missing), RegClass::FULL, WriteMask::SCALAR);
    builder(&mut program).effect(Opcode::Kill, &[src]);
    assert_eq!(program.canonical(), None);
    assert!(read(&write(&program)).is_err());
    let mut program = self::program();
    let entry = program.entry();
    program.blocks[entry].predecessors.push(Block::from_u32(5));
    assert_eq!(program.canonical(), None);
}

/// A release build prints no serial numbers: a result has that of its name, and other instructions have none.
#[test]
fn texts_of_release_builds_are_read() {
    let debug = "block7 {
\t0001:0000:001: \tmov.u32u32 ssa_1, imm[0.000000,7,0x7]
\t0002:0000:001: \tadd.u ssa_2, ssa_1, c0.x
\t0003:0000:000: \tstc imm[0.000000,0,0x0], ssa_2, false-deps:ssa_2
\t0004:0000:XXX: \tend
\t/* keeps:
\t\t0003:0000:000: \tstc imm[0.000000,0,0x0], ssa_2, false-deps:ssa_2
\t\t0004:0000:XXX: \tend
\t */
}
";
    let release = [("0001:0", "0"), ("0002:0", "0"), ("0003:0", "0"), ("0004:0", "0")]
        .iter()
        .fold(debug.to_owned(), |text, (from, to)| text.replace(from, to))
        .replace("block7", "block2387275136");
    let with = read_with_positions(debug).expect("a program");
    let read = read_with_positions(&release).expect("a program");
    assert!(with.has_serials && !read.has_serials);
    let serials: Vec<u32> = read.program.iter_instrs().map(|(_, instr)| read.program.serials[instr]).collect();
    assert_eq!(serials, [1, 2, 0, 0]);
    // The code has the rest.
    let block = read.program.entry();
    assert_eq!(read.program.blocks[block].keeps, read.program.blocks[block].instrs[2..]);
    assert_eq!(read.program.instrs.len(), 4);
    // A dependency on an instruction whose number is not printed says nothing of the program.
    let other = release.replace("false-deps:ssa_2", "false-deps:ssa_9");
    assert!(read_with_positions(&other).is_ok_and(|read| read.program.instrs.len() == 4));
    assert!(read_with_positions(&debug.replace("false-deps:ssa_2", "false-deps:ssa_9")).is_err());
}

/// Text that 25.1 and 26 print.
#[test]
fn marks_of_newer_texts_are_read() {
    let line = |line: &str| {
        let text = format!("block1 {{\n\t0001:000: \t{line}\n\t0002:000: \tend\n}}\n");
        let program = read(&text).unwrap_or_else(|error| panic!("{error}"));
        let instr = program.blocks[program.entry()].instrs[0];
        program.instrs[instr].clone()
    };
    assert!(line("mul.f (sat)r0.x, r0.y, c0.x").flags.contains(InstrFlags::SAT));
    assert!(line("(eq)(eogm)(needs_helpers)nop").flags == InstrFlags::EQ);
    let prefetch = line("sam.base0 (f32)(xyzw)(dummy)r63.x (wrmask=0xf), (dummy)sr48.x, s#4, t#2");
    assert!(prefetch.dsts.is_empty() && prefetch.srcs.len() == 1);
    assert!(line("resinfo.base0 (dummy)r63.x, imm[0.000000,0,0x0]").dsts.is_empty());
    let uniform = line("cmps.s.eq upp0.x, sr48.x, c12.x");
    assert!(uniform.dsts[0].class == RegClass::PREDICATE && uniform.dsts[0].flags.contains(OperandFlags::UNIFORM));
}
