//! The position of a section in Mesa's pipeline. A log may lack any section, so the form of a program follows from the
//! name of its own section, not from the sections around it.

use ir3_programs::mesa::{Section, SectionKind};

/// The parts of the pipeline, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// After instruction selection: arrays have no versions, and all instructions are in the order of nir.
    Selected,
    /// After optimizations: some instructions are gone or new.
    Optimized,
    /// Scheduled: the order of instructions is another one.
    Scheduled,
    /// The program has registers.
    Allocated,
    /// The program has registers; a part of an offset relative to `a0.x` may be in the address.
    Lowered,
    /// After legalization: the instructions are those of the words, in their order.
    Final,
}

impl Phase {
    /// The phase of each section. A pass of an unknown name is in the phase of the section before it, or after
    /// selection.
    pub fn of(sections: &[Section]) -> Vec<Self> {
        let mut last = Self::Selected;
        let mut phases = Vec::with_capacity(sections.len());
        for section in sections {
            last = Self::named(section).unwrap_or(last.max(Self::Optimized));
            phases.push(last);
        }
        phases
    }

    fn named(section: &Section) -> Option<Self> {
        let SectionKind::Ir3After { pass } = &section.kind else { return None };
        Some(match &**pass {
            "nir->ir3" | "ir3_remove_unreachable" => Self::Selected,
            "ir3_sched" | "ir3_cleanup_rpt" | "create_parallel_copies" | "shared register allocation" | "ir3_spill" => {
                Self::Scheduled
            }
            "register allocation" | "ir3_lower_spill" | "ir3_lower_copies" | "ir3_merge_rpt" | "ir3_postsched" => {
                Self::Allocated
            }
            "ir3_legalize_relative" | "ir3_lower_subgroups" => Self::Lowered,
            "ir3_legalize" => Self::Final,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_programs::mesa::Log;
    use std::path::Path;

    #[test]
    fn sections_have_the_phase_of_their_names() {
        let phases = |names: &[&str]| {
            let text: String = names.iter().map(|name| format!("AFTER: {name}:\nblock0 {{\n}}\n")).collect();
            Phase::of(&Log::read(Path::new("x.log"), &text).expect("a log").sections)
        };
        use Phase::*;
        assert_eq!(phases(&["nir->ir3", "ir3_cp", "ir3_sched"]), [Selected, Optimized, Scheduled]);
        assert_eq!(phases(&["ir3_cp", "ir3_legalize"]), [Optimized, Final]);
        assert_eq!(phases(&["ir3_lower_subgroups", "ir3_legalize"]), [Lowered, Final]);
        // A pass of another version.
        assert_eq!(phases(&["register allocation", "ir3_new", "ir3_legalize"]), [Allocated, Allocated, Final]);
        assert_eq!(phases(&["ir3_new"]), [Optimized]);
    }
}
