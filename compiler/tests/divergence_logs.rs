//! Divergence of the values of the final form of nir, beside Mesa's own `con` and `div`.

mod common {
    pub mod files;
    pub mod final_forms;
    pub mod logs;
}

use common::final_forms::final_forms;
use common::logs::{logs, text};
use ir3_compiler::nir::{self, Divergence};
use std::collections::BTreeMap;

#[test]
fn as_mesa_says() {
    let (mut values, mut same, mut bolder, mut shyer) = (0u32, 0u32, 0u32, 0u32);
    let mut names: BTreeMap<(&str, bool), u32> = BTreeMap::new();
    for (_, files) in logs() {
        for file in &files {
            for section in final_forms(&text(file)) {
                let Ok(shader) = nir::read(&section) else { continue };
                let function = &shader.entry;
                let found = Divergence::new(function);
                for (_, instr) in function.instrs_in_order() {
                    let data = &function.instrs[instr];
                    let Some(def) = data.def() else { continue };
                    let Some(mesa) = function.defs[def].divergent else { continue };
                    values += 1;
                    match (found.is_divergent(def), mesa) {
                        (false, true) => bolder += 1,
                        (true, false) => shyer += 1,
                        _ => {
                            same += 1;
                            continue;
                        }
                    }
                    *names.entry((data.name(), mesa)).or_default() += 1;
                }
            }
        }
    }
    println!("{values} values: {same} the same, {bolder} uniform for us only, {shyer} for Mesa only");
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    for ((name, mesa), count) in names.iter().take(20) {
        println!("{count} {name}: Mesa says {}", if *mesa { "div" } else { "con" });
    }
    assert!(u64::from(same) * 1000 >= u64::from(values) * 995, "{same} of {values}");
}
