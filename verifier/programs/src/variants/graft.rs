//! Pieces of a donor in a program, each instead of a source of an operation.
//!
//! The inputs of a piece become values that are available at the place, with the width that the piece needs, in any of
//! their components. The place is never in a preamble, whose lanes compute values that all read.

use super::piece::Piece;
use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::preamble::Preamble;
use ir3_compiler::nir::{
    Alu, AluSrc, Block, BlockData, CfNode, Cfg, Def, DefData, Dominance, Function, If, Instr, InstrData, Intrinsic,
    IntrinsicOp, Op, SelectionControl,
};
use ir3_semantics::support::random::Random;
use smallvec::SmallVec;

/// A source of an operation, which is replaced.
#[derive(Clone, Copy)]
struct Place {
    block: Block,
    /// The operation.
    instr: Instr,
    /// Its index in the block.
    index: usize,
    /// The number of the source.
    source: usize,
    /// The value that it reads.
    def: Def,
}

/// A piece instead of a source: the program means something else.
pub(super) fn replace(function: &mut Function, donor: &Function, random: &mut Random) -> bool {
    let Some((mut place, piece)) = choose(function, donor, random) else { return false };
    let value = insert(function, &mut place, &piece, random);
    set_source(function, &place, value);
    true
}

/// A piece that an opaque condition does not choose: the program means the same.
pub(super) fn keep(function: &mut Function, donor: &Function, random: &mut Random) -> bool {
    let Some((mut place, piece)) = choose(function, donor, random) else { return false };
    let Some((condition, is_true)) = opaque(function, &mut place, random) else { return false };
    let value = insert(function, &mut place, &piece, random);
    let (old, condition) = (AluSrc::identity(place.def), AluSrc::scalar(condition, 0));
    let sides = if is_true { [old, value.into()] } else { [value.into(), old] };
    let shape = function.defs[place.def].clone();
    let chosen = operation(function, &mut place, Op::Bcsel, &[condition, sides[0], sides[1]], &shape);
    set_source(function, &place, chosen);
    true
}

/// A piece in one side of a new branch, and a phi of it and of the original value. The condition is opaque, or a
/// boolean of the program.
pub(super) fn branch(function: &mut Function, donor: &Function, random: &mut Random) -> bool {
    let Some((mut place, piece)) = choose(function, donor, random) else { return false };
    let condition = if random.chance(50) { value(function, &place, 1, random) } else { None };
    let (condition, is_true) = match condition {
        Some((def, component)) => {
            let shape = DefData { num_components: 1, ..function.defs[def].clone() };
            let mov = operation(function, &mut place, Op::Mov, &[AluSrc::scalar(def, component)], &shape);
            (mov, random.chance(50))
        }
        None => match opaque(function, &mut place, random) {
            // The piece runs, or it does not.
            Some((condition, is_true)) => (condition, is_true ^ random.chance(50)),
            None => return false,
        },
    };
    let [with, without, after] = [(); 3].map(|()| function.blocks.push(BlockData::default()));
    let rest = function.blocks[place.block].instrs.split_off(place.index);
    let mut inner = Place { block: with, index: 0, ..place };
    // Values before the branch are available, too: they are looked up from the block that was split.
    let inserted = insert_from(function, &place, &mut inner, &piece, random);
    let shape = function.defs[place.def].clone();
    let phi = function.new_def_like(&shape);
    let data = InstrData::Phi { def: phi, srcs: SmallVec::from_slice(&[(with, inserted), (without, place.def)]) };
    function.append(after, data);
    function.blocks[after].instrs.extend(rest);
    for instr in function.instrs.keys() {
        if let InstrData::Phi { srcs, .. } = &mut function.instrs[instr] {
            srcs.iter_mut().filter(|(from, _)| *from == place.block).for_each(|(from, _)| *from = after);
        }
    }
    let sides = [with, without].map(|block| vec![CfNode::Block(block)]);
    let [then, otherwise] = if is_true {
        sides
    } else {
        let [with, without] = sides;
        [without, with]
    };
    let node = If { condition, control: SelectionControl::None, then, otherwise };
    let is_split = split(&mut function.body, place.block, &mut Some(node), after);
    debug_assert!(is_split, "the block is in the tree");
    set_source(function, &place, phi);
    is_split
}

/// Inserts a branch and a block after a block of the tree; returns false if the block is not in the tree.
fn split(list: &mut Vec<CfNode>, block: Block, node: &mut Option<If>, after: Block) -> bool {
    if let Some(at) = list.iter().position(|node| *node == CfNode::Block(block)) {
        let Some(node) = node.take() else { return false };
        list.splice(at + 1..at + 1, [CfNode::If(Box::new(node)), CfNode::Block(after)]);
        return true;
    }
    list.iter_mut().any(|inner| match inner {
        CfNode::Block(_) => false,
        CfNode::If(inner) => {
            split(&mut inner.then, block, node, after) || split(&mut inner.otherwise, block, node, after)
        }
        CfNode::Loop(inner) => {
            split(&mut inner.body, block, node, after)
                || inner.continuing.as_mut().is_some_and(|list| split(list, block, node, after))
        }
    })
}

/// A place, and a piece whose result has the width of the value there.
fn choose<'a>(function: &Function, donor: &'a Function, random: &mut Random) -> Option<(Place, Piece<'a>)> {
    let mut places = Vec::new();
    let preamble = preamble_blocks(function);
    for block in function.blocks_in_order().filter(|block| !preamble.contains(block)) {
        for (index, &instr) in function.blocks[block].instrs.iter().enumerate() {
            let InstrData::Alu(alu) = &function.instrs[instr] else { continue };
            let sources = alu.srcs.iter().enumerate();
            places.extend(sources.map(|(source, src)| Place { block, instr, index, source, def: src.def }));
        }
    }
    let place = random.pick(&places)?;
    let bits = function.defs[place.def].bit_size;
    // A few tries: most values have 32 bits.
    let mut pieces = (0..8).filter_map(|_| Piece::cut(donor, random));
    let piece = pieces.find(|piece| donor.defs[piece.result()].bit_size == bits)?;
    Some((place, piece))
}

/// The blocks of the preamble, and those before it.
fn preamble_blocks(function: &Function) -> Vec<Block> {
    match Preamble::of(function) {
        Some(preamble) => function.blocks_in_order().take_while(|&block| block != preamble.after).collect(),
        None => Vec::new(),
    }
}

/// A condition that is always true, or always false, of available values: `v >= (v & w)`, unsigned, or its inverse.
/// None if the program has no value of 32 bits there.
fn opaque(function: &mut Function, place: &mut Place, random: &mut Random) -> Option<(Def, bool)> {
    let [v, w] = [value(function, place, 32, random)?, value(function, place, 32, random)?]
        .map(|(def, component)| AluSrc::scalar(def, component));
    let shape =
        |bit_size| DefData { num_components: 1, bit_size, divergent: None, instr: Instr::from_u32(0), index: 0 };
    let both = operation(function, place, Op::Iand, &[v, w], &shape(32));
    let is_true = random.chance(50);
    let op = if is_true { Op::Uge } else { Op::Ult };
    Some((operation(function, place, op, &[v, both.into()], &shape(1)), is_true))
}

/// A value of a width that is available at a place, and one of its components.
fn value(function: &Function, place: &Place, bits: u8, random: &mut Random) -> Option<(Def, u8)> {
    let cfg = Cfg::new(function);
    let dominance = Dominance::new(function, &cfg);
    let preamble = preamble_blocks(function);
    let mut values = Vec::new();
    for block in function.blocks_in_order() {
        let instrs = &function.blocks[block].instrs;
        let there = match block == place.block {
            true => &instrs[..place.index],
            false if dominance.dominates(block, place.block) && !preamble.contains(&block) => instrs,
            false => continue,
        };
        let data = there.iter().map(|&instr| &function.instrs[instr]).filter(|data| !is_handle(data));
        values.extend(data.filter_map(InstrData::def));
    }
    values.retain(|&def| function.defs[def].bit_size == bits);
    let def = random.pick(&values)?;
    Some((def, random.below(function.defs[def].num_components.into()) as u8))
}

/// Returns true for a local array or a descriptor: only accesses may read it.
fn is_handle(data: &InstrData) -> bool {
    use IntrinsicOp::{BindlessResourceIr3, DeclReg};
    matches!(data, InstrData::Intrinsic(Intrinsic { op: DeclReg | BindlessResourceIr3, .. }))
}

/// Inserts a piece at a place, and returns its result with as many components as the value there.
fn insert(function: &mut Function, place: &mut Place, piece: &Piece<'_>, random: &mut Random) -> Def {
    let from = *place;
    insert_from(function, &from, place, piece, random)
}

/// Inserts a piece at `place`; its inputs are values that are available at `from`.
fn insert_from(
    function: &mut Function,
    from: &Place,
    place: &mut Place,
    piece: &Piece<'_>,
    random: &mut Random,
) -> Def {
    let donor = piece.donor;
    let mut defs: SecondaryMap<Def, Def> = SecondaryMap::with_default(place.def);
    for &input in &piece.inputs {
        let shape = DefData { divergent: None, ..donor.defs[input].clone() };
        let source = value(function, from, shape.bit_size, random);
        defs[input] = match source {
            Some((def, component)) => operation(function, place, Op::Mov, &[AluSrc::scalar(def, component)], &shape),
            None => constant(function, place, &shape, random.next()),
        };
    }
    for &instr in &piece.instrs {
        let mut data = donor.instrs[instr].clone();
        data.for_each_src_mut(|src| *src = defs[*src]);
        if let Some(def) = data.def() {
            defs[def] = function.new_def_like(&DefData { divergent: None, ..donor.defs[def].clone() });
            data.def_mut().into_iter().for_each(|def| *def = defs[*def]);
        }
        add(function, place, data);
    }
    let result = piece.result();
    let shape = function.defs[place.def].clone();
    let component = random.below(donor.defs[result].num_components.into()) as u8;
    operation(function, place, Op::Mov, &[AluSrc::scalar(defs[result], component)], &shape)
}

fn constant(function: &mut Function, place: &mut Place, shape: &DefData, bits: u64) -> Def {
    let def = function.new_def_like(shape);
    let value = bits & u64::MAX >> (64 - u32::from(shape.bit_size));
    let values = SmallVec::from_elem(value, shape.num_components.into());
    add(function, place, InstrData::Const { def, values });
    def
}

fn operation(function: &mut Function, place: &mut Place, op: Op, srcs: &[AluSrc], shape: &DefData) -> Def {
    let def = function.new_def_like(shape);
    let srcs = SmallVec::from_slice(srcs);
    let alu = Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs };
    add(function, place, InstrData::Alu(alu));
    def
}

/// Inserts an instruction at a place, and moves the place after it.
fn add(function: &mut Function, place: &mut Place, data: InstrData) {
    function.insert(place.block, place.index, data);
    place.index += 1;
}

fn set_source(function: &mut Function, place: &Place, value: Def) {
    if let InstrData::Alu(alu) = &mut function.instrs[place.instr] {
        alu.srcs[place.source].def = value;
    }
}
