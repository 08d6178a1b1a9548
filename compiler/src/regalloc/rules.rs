//! Ablation switches of the SSA allocator.
//!
//! Each rule is a [feature](crate::pipeline::Feature), so that its effect can be measured. Spilling and register
//! assignment get the same rules: the pressure that spilling guarantees is the one that assignment keeps.

/// The values that are put into one [merge set](super::merge_sets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coalescing {
    /// No value is merged: each is alone. Copies remain, but the assigner still chooses the register of a source for a
    /// copy if that is free, and a tied result takes the register of its operand.
    Nothing,
    /// Phis and their sources, copies, tied operands, and the operands of instructions that may be repeated: values of one size.
    Variables,
    /// Vectors and their parts, too: the results of splits and the sources of collects are pieces of their vector.
    #[default]
    Vectors,
}

/// The rules of the SSA allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocationRules {
    /// The values that are merged.
    pub coalescing: Coalescing,
    /// Live values are moved to free registers for others. Otherwise a value keeps its registers; if no gap is long
    /// enough, more registers are taken, and if there are no more, more values are spilled.
    pub splitting: bool,
    /// A part of a live range is spilled, and single components of a vector. Otherwise a merge set is spilled as a
    /// whole: each value in it is stored after its definition, and reloaded before each instruction that reads it.
    pub partial_spilling: bool,
    /// More registers than the program needs are taken if that costs no waves.
    pub occupancy: bool,
}

impl Default for AllocationRules {
    fn default() -> Self {
        Self { coalescing: Coalescing::Vectors, splitting: true, partial_spilling: true, occupancy: true }
    }
}
