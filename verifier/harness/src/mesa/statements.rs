//! Checks of the lists that Mesa prints after the code: duplicate statements of one fact must agree; the others are not
//! compared.
//!
//! The assembly of a log is followed by lists (`; VERT: outputs: r0.x (VARYING_SLOT_POS)`) and by lines for some of
//! their entries (`; pos: r0.x`). Numbers for the driver are before the code, in the statistics, and in the line about
//! waves. `reserved` compares some of these with the code.

use ir3_compiler::ir3::{PhysReg, RegClass};
use ir3_compiler::nir::Shader;
use ir3_compiler::target::Target;
use ir3_programs::mesa::Section;
use ir3_programs::mesa::native::{Native, other_word};
use ir3_programs::mesa::shader::LogShader;

/// The lines for entries of the lists of outputs and of inputs, by their names, with the locations
/// (`ir3_shader_disasm`). `data` has a number.
const NAMED: [(&str, &str); 9] = [
    ("pos", "VARYING_SLOT_POS"),
    ("psize", "VARYING_SLOT_PSIZ"),
    ("posz", "FRAG_RESULT_DEPTH"),
    ("color", "FRAG_RESULT_COLOR"),
    ("pos (ij_pixel)", "SYSTEM_VALUE_BARYCENTRIC_PERSP_PIXEL"),
    ("pos (ij_centroid)", "SYSTEM_VALUE_BARYCENTRIC_PERSP_CENTROID"),
    ("pos (center_rhw)", "SYSTEM_VALUE_BARYCENTRIC_PERSP_CENTER_RHW"),
    ("fragcoord", "SYSTEM_VALUE_FRAG_COORD"),
    ("fragface", "SYSTEM_VALUE_FRONT_FACE"),
];

/// Lines for entries of the lists of inputs and outputs that differ from the lists.
pub(super) fn of_lists(shader: &LogShader, native: &Native) -> Vec<String> {
    let mut found = Vec::new();
    for section in [&shader.statistics, &shader.repeated].into_iter().flatten() {
        found.extend(section.text.lines().filter_map(|line| named_twice(line, native)));
    }
    found.dedup();
    found
}

/// A size of the scratch memory that is less than nir declares.
pub(super) fn of_scratch(shader: &LogShader, nir: &Shader) -> Option<String> {
    let declared = nir.info.scratch_size;
    let size = shader.printed_statistics()?.waves?.pvtmem_size.filter(|&size| size < declared)?;
    Some(format!("nir declares {declared} bytes of scratch memory, `pvtmem_size` is {size}"))
}

/// A word that differs from the assembly before it.
pub(super) fn of_words(shader: &LogShader, target: &Target) -> Option<String> {
    let (listing, assembly) = (shader.listing.as_ref()?, shader.assembly.as_ref()?);
    let (line, number) = other_word(listing, assembly, target.generation)?;
    Some(format!(
        "word {number} of the hex listing (line {line}) is another instruction than the final assembly has there"
    ))
}

/// The difference between a line for an entry of a list and the list.
fn named_twice(line: &str, native: &Native) -> Option<String> {
    let (name, register) = line.strip_prefix("; ")?.rsplit_once(": ")?;
    let (register, half) = register_of(register)?;
    let location = match name.strip_prefix("data").filter(|number| number.parse::<u8>().is_ok()) {
        Some(number) => format!("FRAG_RESULT_DATA{number}"),
        None => NAMED.iter().find(|(its, _)| *its == name)?.1.to_owned(),
    };
    let outputs = native.outputs.iter().map(|output| (&output.location, output.register, output.class));
    let inputs = native.inputs.iter().map(|input| (&input.location, input.register, input.class));
    let listed: Vec<(PhysReg, RegClass)> = outputs
        .chain(inputs)
        .filter(|(its, ..)| **its == location)
        .map(|(_, register, class)| (register, class))
        .collect();
    let written = |register: PhysReg, half: bool| format!("{}{register}", if half { "h" } else { "" });
    let said = written(register, half);
    match listed.first() {
        None => Some(format!("`{name}` is in {said}, and no list has {location}")),
        // The line for an input does not distinguish half registers.
        Some(_) if listed.iter().any(|&(its, class)| its == register && (class.half == half || name == "fragface")) => {
            None
        }
        Some(&(its, class)) => {
            Some(format!("`{name}` is in {said}, the list has {location} in {}", written(its, class.half)))
        }
    }
}

/// A register as `r0.x` or `hr1.y`.
fn register_of(text: &str) -> Option<(PhysReg, bool)> {
    let (half, text) = text.strip_prefix('h').map_or((false, text), |rest| (true, rest));
    let (number, component) = text.strip_prefix('r')?.split_once('.')?;
    let component = ["x", "y", "z", "w"].iter().position(|&its| its == component)?;
    Some((PhysReg::new(number.parse().ok().filter(|&number| number < 64)?, component as u16), half))
}

/// Numbers for the driver, as lines or groups before the code or as words of the statistics, that are compared with
/// nothing.
const NOT_COMPARED: [&str; 9] = [
    "num_ubos",
    "num_driver_params",
    "push_consts",
    "ubo_ranges",
    "ubo_state",
    "primitive_param",
    "last-baryf",
    "last-helper",
    "loops",
];

/// The numbers of a shader that are not compared. With `c<a0.x + n>` the length of the constant file is among them: the
/// extent of such a read is not printed.
#[must_use]
pub fn not_compared(shader: &LogShader) -> Vec<&'static str> {
    let lines = |section: &Option<Section>| -> Vec<String> {
        section.iter().flat_map(|section| section.text.lines()).map(str::to_owned).collect()
    };
    let (assembly, statistics) = (lines(&shader.assembly), lines(&shader.statistics));
    let stands_in_assembly = |name: &str| {
        let starts = |line: &String| {
            let rest = line.trim_start_matches([';', ' ']).strip_prefix(name);
            line.starts_with(';') && rest.is_some_and(|rest| rest.starts_with([':', ' ']))
        };
        assembly.iter().any(starts)
    };
    let stands_in_statistics = |name: &str| {
        statistics
            .iter()
            .filter(|line| line.contains(" prog "))
            .any(|line| line.split([',', ' ']).any(|its| its == name))
    };
    let named = NOT_COMPARED.into_iter().filter(|name| stands_in_assembly(name) || stands_in_statistics(name));
    let computed = assembly.iter().any(|line| line.contains("c<a0.x")).then_some("constlen (computed reads)");
    named.chain(computed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_programs::mesa::shader::shaders_of;
    use std::path::Path;

    const LOG: &str = "\
NIR (final form) for FRAG shader (null):
shader: MESA_SHADER_FRAGMENT
scratch: 64
Native code for unnamed FRAG shader (null) with sha1 00:
; num_driver_params:  8
; offsets:
;   ubo_ranges                 c4.x (4 vec4)
add.f r0.x, r0.x, c<a0.x + 16>
end
; FRAG: outputs: r0.w (FRAG_RESULT_DEPTH) hr1.x (FRAG_RESULT_DATA1)
; FRAG: inputs: r2.x (SYSTEM_VALUE_FRAG_COORD slot=45 cm=f,il=0,b=0)
; FRAG prog 1/1: 5 instr, 0 nops, 3 last-baryf
; posz: r0.w
; data1: hr1.x
; fragcoord: r2.x
; gpu gen 6, mergedregs 1, double_threadsize 0, constlen 8, pvtmem_size 64, shared_size 0, branchstack 0, max_waves 16
";

    fn found(log: &str) -> Vec<String> {
        let shader = shaders_of(Path::new("x.log"), log).into_iter().next().expect("a shader");
        let native = Native::read(shader.assembly.as_ref(), shader.statistics.as_ref(), Vec::new()).expect("registers");
        let mut nir = Shader::new(ir3_compiler::nir::Stage::Fragment);
        nir.info.scratch_size = 64;
        of_lists(&shader, &native).into_iter().chain(of_scratch(&shader, &nir)).collect()
    }

    #[test]
    fn an_entry_of_a_list_is_in_one_register() {
        assert_eq!(found(LOG), [""; 0]);
        for (from, to, what) in [
            ("posz: r0.w", "posz: r0.z", "`posz` is in r0.z, the list has FRAG_RESULT_DEPTH in r0.w"),
            ("data1: hr1.x", "data1: r1.x", "`data1` is in r1.x, the list has FRAG_RESULT_DATA1 in hr1.x"),
            ("data1: hr1.x", "data2: hr1.x", "`data2` is in hr1.x, and no list has FRAG_RESULT_DATA2"),
            (
                "fragcoord: r2.x",
                "fragcoord: r3.x",
                "`fragcoord` is in r3.x, the list has SYSTEM_VALUE_FRAG_COORD in r2.x",
            ),
            ("pvtmem_size 64", "pvtmem_size 32", "nir declares 64 bytes of scratch memory, `pvtmem_size` is 32"),
        ] {
            assert_eq!(found(&LOG.replace(from, to)), [what], "{from}");
        }
    }

    #[test]
    fn numbers_without_a_comparison_are_listed() {
        let shaders = shaders_of(Path::new("x.log"), LOG);
        let names = ["num_driver_params", "ubo_ranges", "last-baryf", "constlen (computed reads)"];
        assert_eq!(not_compared(&shaders[0]), names);
        let direct = LOG.replace("c<a0.x + 16>", "c4.x").replace(", 3 last-baryf", "");
        assert_eq!(not_compared(&shaders_of(Path::new("x.log"), &direct)[0]), names[..2]);
    }
}
