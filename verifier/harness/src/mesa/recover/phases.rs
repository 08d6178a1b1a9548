//! The position of a section in Mesa's pipeline. A log may lack any section, so the form of a program follows from the
//! name of its own section, not from the sections around it.

use super::contradiction::{Contradiction, place};
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

/// Two sections that cannot follow each other in one shader: threads that compile at the same time print whole sections
/// in turn. Passes from the first scheduler on run once, and in the order of the pipeline.
pub(super) fn mixed(sections: &[Section]) -> Option<Contradiction> {
    let mut last: Option<(Phase, &Section)> = None;
    let late = sections.iter().filter_map(|section| Some((Phase::named(section)?, section)));
    let late: Vec<(Phase, &Section)> = late.collect();
    late.iter().enumerate().find_map(|(at, &(phase, section))| {
        let is_twice = |&&(_, other): &&(Phase, &Section)| phase >= Phase::Scheduled && other.kind == section.kind;
        let earlier = late[..at].iter().find(is_twice).map(|&(_, earlier)| earlier);
        let later = last.filter(|&(its, _)| its > phase).map(|(_, later)| later);
        if last.is_none_or(|(its, _)| its < phase) {
            last = Some((phase, section));
        }
        let before = earlier.or(later)?;
        let message = format!(
            "sections of two shaders are mixed: {} cannot follow {} in one shader",
            place(section),
            place(before)
        );
        Some(Contradiction::between([before.title(), section.title()], message))
    })
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

    #[test]
    fn passes_in_another_order_are_of_two_shaders() {
        let found = |names: &[&str]| {
            let text: String = names.iter().map(|name| format!("AFTER: {name}:\nblock0 {{\n}}\n")).collect();
            mixed(&Log::read(Path::new("x.log"), &text).expect("a log").sections).map(|it| it.sections)
        };
        let titles = |names: [&str; 2]| Some(names.map(|name| format!("AFTER: {name}")).to_vec());
        assert_eq!(found(&["nir->ir3", "ir3_cp", "ir3_dce", "ir3_cp", "ir3_sched", "ir3_legalize"]), None);
        assert_eq!(found(&["ir3_cp", "ir3_dce"]), None);
        let back = found(&["ir3_cp", "register allocation", "nir->ir3", "ir3_legalize"]);
        assert_eq!(back, titles(["register allocation", "nir->ir3"]));
        let twice = found(&["ir3_lower_copies", "ir3_postsched", "ir3_lower_copies"]);
        assert_eq!(twice, titles(["ir3_lower_copies", "ir3_lower_copies"]));
    }
}
