//! Bugs of devices that are known.
//!
//! A wrong result is a change of programs: the changed program means what the device does with the program. A
//! difference is a known one if all words of the device are those of the changed program, and the words that differ are
//! decided by it. A crash is known for the programs that a bug names.

mod uniform;

use ir3_compiler::nir::{Block, Def, Function, Indices, Instr, InstrData, Intrinsic, IntrinsicOp, Op, Shader, Stage};
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use uniform::{Assumed, Uniform};

/// A bug of a device.
pub struct KnownBug {
    /// Its name, as docs/findings.md has it.
    pub name: &'static str,
    /// A part of the name of the device.
    device: &'static str,
    effect: Effect,
}

/// The wrong behaviour of a device.
enum Effect {
    /// It executes one of these programs instead.
    Imitates(fn(&Shader) -> Vec<Shader>),
    /// It crashes on the programs for which this is true.
    Crashes(fn(&Shader) -> bool),
}

/// The known bugs.
pub const KNOWN: [KnownBug; 2] = [
    KnownBug { name: "store-of-first-lane", device: "llvmpipe", effect: Effect::Imitates(store_of_first_lane) },
    KnownBug { name: "crash-of-half-functions", device: "llvmpipe", effect: Effect::Crashes(has_half_function) },
];

impl KnownBug {
    /// The bugs of a device with this name.
    pub fn of_device(name: &str) -> impl Iterator<Item = &'static Self> {
        KNOWN.iter().filter(move |bug| name.contains(bug.device))
    }

    /// The programs that do what the device may do with a program; none if it has not the shape that the bug needs.
    #[must_use]
    pub fn imitations(&self, shader: &Shader) -> Vec<Shader> {
        match self.effect {
            Effect::Imitates(programs) => programs(shader),
            Effect::Crashes(_) => Vec::new(),
        }
    }

    /// Returns true if the device crashes on a program.
    #[must_use]
    pub fn crashes(&self, shader: &Shader) -> bool {
        matches!(self.effect, Effect::Crashes(names) if names(shader))
    }
}

/// llvmpipe: sines, cosines, powers of two and logarithms of 16 bits.
fn has_half_function(shader: &Shader) -> bool {
    let function = &shader.entry;
    function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
        InstrData::Alu(alu) => {
            matches!(alu.op, Op::Fsin | Op::Fcos | Op::Fexp2 | Op::Flog2 | Op::Fpow)
                && function.defs[alu.def].bit_size == 16
        }
        _ => false,
    })
}

/// llvmpipe, a store of a fragment shader to a storage buffer at an address that its compiler shows to be the same in
/// all lanes: the word is that of the first lane of the quad, though that is a helper lane, or ended.
///
/// The compiler may know less than [`Uniform`] does of loads and of operations of several lanes, so all are tried.
fn store_of_first_lane(shader: &Shader) -> Vec<Shader> {
    if shader.stage != Stage::Fragment {
        return Vec::new();
    }
    let all = [false, true].into_iter().flat_map(|loads| [false, true].map(|lanes| Assumed { loads, lanes }));
    all.filter_map(|assumed| with_stores_of_first_lane(shader, assumed)).collect()
}

fn with_stores_of_first_lane(shader: &Shader, assumed: Assumed) -> Option<Shader> {
    let uniform = Uniform::of(&shader.entry, assumed);
    let stores: Vec<(Block, Instr)> = shader
        .entry
        .instrs_in_order()
        .filter(|&(_, instr)| match &shader.entry.instrs[instr] {
            InstrData::Intrinsic(store) if store.op == IntrinsicOp::StoreSsboIr3 => {
                store.srcs[1..].iter().all(|&src| uniform.contains(src)) && !uniform.contains(store.srcs[0])
            }
            _ => false,
        })
        .collect();
    if stores.is_empty() {
        return None;
    }
    let mut shader = shader.clone();
    // A lane that has ended computes what it would compute: a helper lane does the same.
    for data in shader.entry.instrs.values_mut() {
        if let InstrData::Intrinsic(it) = data {
            match it.op {
                IntrinsicOp::TerminateIf => it.op = IntrinsicOp::DemoteIf,
                IntrinsicOp::Terminate => it.op = IntrinsicOp::Demote,
                _ => {}
            }
        }
    }
    let mut first: FxHashMap<Def, Def> = FxHashMap::default();
    for (_, store) in stores {
        let InstrData::Intrinsic(it) = &shader.entry.instrs[store] else { continue };
        let value = it.srcs[0];
        let new = match first.get(&value) {
            Some(&new) => new,
            None => {
                let new = of_first_lane(&mut shader.entry, value)?;
                first.insert(value, new);
                new
            }
        };
        if let InstrData::Intrinsic(it) = &mut shader.entry.instrs[store] {
            it.srcs[0] = new;
        }
    }
    Some(shader)
}

/// Inserts a read of the value in the quad's first lane after its definition: the first lane may not be active at the
/// store.
fn of_first_lane(function: &mut Function, value: Def) -> Option<Def> {
    let definition = function.defs[value].instr;
    let (block, _) = function.instrs_in_order().find(|&(_, instr)| instr == definition)?;
    let is_phi = |function: &Function, instr: Instr| matches!(function.instrs[instr], InstrData::Phi { .. });
    let instrs = &function.blocks[block].instrs;
    let mut at = instrs.iter().position(|&it| it == definition)? + 1;
    while instrs.get(at).is_some_and(|&it| is_phi(function, it)) {
        at += 1;
    }
    let number = function.new_def(1, 32, None);
    function.insert(block, at, InstrData::Const { def: number, values: smallvec![0] });
    let shape = function.defs[value].clone();
    let new = function.new_def_like(&shape);
    let read = Intrinsic {
        op: IntrinsicOp::QuadBroadcast,
        def: Some(new),
        srcs: smallvec![value, number],
        indices: Indices::new(),
        variable: None,
    };
    function.insert(block, at + 1, InstrData::Intrinsic(read));
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shader(stage: &str, address: &str) -> Shader {
        let text = format!(
            "shader: MESA_SHADER_{stage}\nnum_ssbos: 1\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:\n    \
             32 %0 = load_const (0x00000000)\n    32x4 %1 = @load_frag_coord\n    32 %2 = f2i32 %1.x\n    32 %3 = f2i32 %1.y\n    1 %4 = ine %2, %0\n    \
             @terminate_if (%4)\n    @store_ssbo_ir3 (%3, %0, {address}, {address}) (base=0, wrmask=x)\n    block b1:\n}}\n"
        );
        ir3_compiler::nir::read(&text).expect("a program")
    }

    #[test]
    fn stores_at_one_address_are_of_the_first_lane() {
        let bug = KnownBug::of_device("llvmpipe (LLVM 22.1.8, 256 bits)").next().expect("a bug");
        let imitations = bug.imitations(&shader("FRAGMENT", "%0"));
        assert_eq!(imitations.len(), 4);
        for imitation in imitations {
            assert_eq!(ir3_compiler::nir::validate(&imitation), Ok(()));
            let text = ir3_compiler::nir::text::write(&imitation);
            assert!(
                text.contains("quad_broadcast") && text.contains("demote_if") && !text.contains("terminate_if"),
                "{text}"
            );
        }
        assert_eq!(bug.imitations(&shader("FRAGMENT", "%2")), []);
        assert!(KNOWN.iter().all(|bug| !bug.crashes(&shader("COMPUTE", "%0"))));
        assert_eq!(KnownBug::of_device("Turnip Adreno (TM) 750").count(), 0);
    }

    /// An address that is a phi: of a loop that all lanes leave in one iteration, or of an `if` on this condition.
    fn store_at_phi(condition: &str) -> Shader {
        let text = format!(
            "shader: MESA_SHADER_FRAGMENT\nnum_ssbos: 1\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:\n    \
             32 %0 = load_const (0x00000000)\n    32 %1 = load_const (0x00000004)\n    32x4 %2 = @load_frag_coord\n    \
             32 %3 = f2i32 %2.x\n    32 %4 = @load_const_ir3 (%0) (base=0)\n    1 %5 = ine {condition}, %0\n    \
             if %5 {{\n    block b1:\n    }} else {{\n    block b2:\n    }}\n    block b3:\n    32 %6 = phi b1: %0, b2: %1\n    \
             loop {{\n    block b4:\n    32 %7 = phi b3: %6, b7: %8\n    32 %8 = iadd %7, %1\n    1 %9 = ult %8, %1\n    \
             if %9 {{\n    block b5:\n    break\n    }} else {{\n    block b6:\n    }}\n    block b7:\n    \
             @store_ssbo_ir3 (%3, %0, %7, %7) (base=0, wrmask=x)\n    }}\n    block b8:\n    block b9:\n}}\n"
        );
        ir3_compiler::nir::read(&text).expect("a program")
    }

    #[test]
    fn a_phi_is_the_same_in_all_lanes_where_its_conditions_are() {
        let is_uniform = |condition: &str| !KNOWN[0].imitations(&store_at_phi(condition)).is_empty();
        assert!(is_uniform("%4") && !is_uniform("%3"));
    }

    #[test]
    fn derivatives_and_absorbed_values_are_the_same_in_all_lanes() {
        let is_uniform = |address: &str| {
            let text = format!(
                "shader: MESA_SHADER_FRAGMENT\nnum_ssbos: 1\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:\n    \
                 32 %0 = load_const (0x00000000)\n    32x4 %1 = @load_frag_coord\n    32 %2 = f2i32 %1.x\n    32 %3 = @load_const_ir3 (%0) (base=0)\n    \
                 {address}\n    @store_ssbo_ir3 (%2, %0, %4, %4) (base=0, wrmask=x)\n    block b1:\n}}\n"
            );
            let shader = ir3_compiler::nir::read(&text).expect("a program");
            !KNOWN[0].imitations(&shader).is_empty()
        };
        for address in ["32 %4 = @ddx (%3)", "32 %4 = iand %2, %0", "32 %4 = imul %2, %0", "32 %4 = ixor %2, %2"] {
            assert!(is_uniform(address), "{address}");
        }
        for address in ["32 %4 = @ddx (%2)", "32 %4 = ior %2, %0", "32 %4 = isub %2, %3"] {
            assert!(!is_uniform(address), "{address}");
        }
    }
}
