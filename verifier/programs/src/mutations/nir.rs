//! Mutations of a program in nir.

use ir3_compiler::nir::{Block, Def, Function, Instr, InstrData, Op};

/// An instruction to be mutated, and the random number for the choices.
struct NirMutationSite {
    block: Block,
    index: usize,
    instr: Instr,
    random: u64,
}

impl NirMutationSite {
    fn pick<T: Copy>(&self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[(self.random >> 8) as usize % items.len()])
    }
}

/// A kind of mutation of nir.
pub struct NirMutationKind {
    /// Its name in tables.
    pub name: &'static str,
    change: fn(&mut Function, &NirMutationSite) -> bool,
}

impl NirMutationKind {
    /// Mutates the first instruction that the kind applies to, starting at a random one; returns false if it applies to
    /// none.
    pub fn apply(&self, function: &mut Function, random: u64) -> bool {
        let mut sites = Vec::new();
        for block in function.blocks_in_order() {
            for (index, &instr) in function.blocks[block].instrs.iter().enumerate() {
                sites.push(NirMutationSite { block, index, instr, random });
            }
        }
        let start = random as usize % sites.len().max(1);
        (0..sites.len()).any(|i| (self.change)(function, &sites[(start + i) % sites.len()]))
    }
}

/// All kinds.
pub static KINDS: &[NirMutationKind] = &[
    NirMutationKind { name: "nir: other operation", change: operation },
    NirMutationKind { name: "nir: other source", change: source },
    NirMutationKind { name: "nir: negation left out", change: negation },
    NirMutationKind { name: "nir: constant +-1", change: constant },
    NirMutationKind { name: "nir: swap in phi", change: swap_in_phi },
    NirMutationKind { name: "nir: drop store", change: drop_store },
];

fn operation(function: &mut Function, site: &NirMutationSite) -> bool {
    use Op::*;
    const GROUPS: &[&[Op]] = &[
        &[Iand, Ior, Ixor],
        &[Iadd, Isub],
        &[Ilt, Ige, Ieq, Ine],
        &[Ult, Uge],
        &[Imin, Imax, Umin, Umax],
        &[Ishl, Ishr, Ushr],
        &[Fadd, Fmul, Fmin, Fmax],
        &[Flt, Fge, Feq, Fneu],
    ];
    let InstrData::Alu(alu) = &mut function.instrs[site.instr] else { return false };
    let Some(group) = GROUPS.iter().find(|group| group.contains(&alu.op)) else { return false };
    let others: Vec<Op> = group.iter().copied().filter(|&op| op != alu.op).collect();
    let Some(op) = site.pick(&others) else { return false };
    alu.op = op;
    true
}

/// Replaces a source by another value of the same block and size.
fn source(function: &mut Function, site: &NirMutationSite) -> bool {
    let before = &function.blocks[site.block].instrs[..site.index];
    let InstrData::Alu(alu) = &function.instrs[site.instr] else { return false };
    let i = (site.random >> 32) as usize % alu.srcs.len().max(1);
    let Some(current) = alu.srcs.get(i).map(|src| src.def) else { return false };
    let size = |def: Def| (function.defs[def].bit_size, function.defs[def].num_components);
    let others: Vec<Def> = before
        .iter()
        .rev()
        .filter_map(|&instr| function.instrs[instr].def())
        .filter(|&def| def != current && size(def) == size(current))
        .take(8)
        .collect();
    let Some(other) = site.pick(&others) else { return false };
    if let InstrData::Alu(alu) = &mut function.instrs[site.instr] {
        alu.srcs[i].def = other;
    }
    true
}

fn negation(function: &mut Function, site: &NirMutationSite) -> bool {
    match &mut function.instrs[site.instr] {
        InstrData::Alu(alu) if matches!(alu.op, Op::Inot | Op::Ineg | Op::Fneg) => {
            alu.op = Op::Mov;
            true
        }
        _ => false,
    }
}

fn constant(function: &mut Function, site: &NirMutationSite) -> bool {
    let InstrData::Const { def, values } = &mut function.instrs[site.instr] else { return false };
    let mask = u64::MAX >> (64 - u32::from(function.defs[*def].bit_size));
    let i = (site.random >> 32) as usize % values.len().max(1);
    let Some(value) = values.get_mut(i) else { return false };
    let step = if site.random >> 40 & 1 != 0 { 1 } else { mask };
    *value = value.wrapping_add(step) & mask;
    true
}

fn swap_in_phi(function: &mut Function, site: &NirMutationSite) -> bool {
    let InstrData::Phi { srcs, .. } = &mut function.instrs[site.instr] else { return false };
    if srcs.len() < 2 || srcs[0].1 == srcs[1].1 {
        return false;
    }
    let first = srcs[0].1;
    srcs[0].1 = srcs[1].1;
    srcs[1].1 = first;
    true
}

fn drop_store(function: &mut Function, site: &NirMutationSite) -> bool {
    let is_store = match &function.instrs[site.instr] {
        InstrData::Intrinsic(intrinsic) => intrinsic.def.is_none() && intrinsic.op.name().contains("store"),
        _ => false,
    };
    if is_store {
        function.blocks[site.block].instrs.remove(site.index);
    }
    is_store
}
