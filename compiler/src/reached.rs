//! Coverage of the passes: counts of the cases ("arms") that a compilation reaches, if counting is enabled.
//!
//! An arm is a case of a pass: a rule that it applies, or a reason for which it does not transform the code. [`Arm`]
//! lists them, and the code of the pass marks each with one call of `reached`. While [`count`] is off, which is so
//! unless a campaign counts, a mark tests one flag of the thread and does nothing else.

use std::cell::Cell;

macro_rules! arms {
    ($($pass:literal { $($variant:ident $kind:ident $text:literal,)* })*) => {
        /// A case of a pass.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Arm { $($(#[doc = concat!("`", $pass, "`: ", $text)] $variant,)*)* }

        static TABLE: &[ArmInfo] = &[$($(ArmInfo { arm: Arm::$variant, pass: $pass, kind: ArmKind::$kind, text: $text },)*)*];
    };
}

/// The effect of a pass in an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmKind {
    /// It changes the program.
    Changes,
    /// It does not transform the code.
    Declines,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct ArmInfo {
    /// The arm.
    pub arm: Arm,
    /// The pass, by the name of its stage.
    pub pass: &'static str,
    /// Its effect.
    pub kind: ArmKind,
    /// The case, in words.
    pub text: &'static str,
}

arms! {
    "de-morgan" {
        DeMorganAnd Changes "the negation of a conjunction becomes a disjunction",
        DeMorganOr Changes "the negation of a disjunction becomes a conjunction",
    }
    "inline-preamble" {
        PreambleValue Changes "a load of a word reads the value that was stored",
        PreambleDriver Changes "a load of a word that the driver fills stays a load",
        PreambleBuffer Changes "a load of a copied word reads the buffer",
    }
    "scalar-alu" {
        ScalarWithdrawn Declines "a source of a uniform operation is in no shared register",
        ScalarUseless Declines "a uniform value would only be copied back",
        ScalarCopyConstant Changes "a constant is moved to the other file",
        ScalarCopyToShared Changes "a uniform value is copied to a shared register",
        ScalarCopyToGeneral Changes "a shared value is copied to a general register",
        ScalarPhi Changes "a phi becomes shared",
        ScalarInput Changes "an input becomes shared",
        ScalarOperation Changes "an operation becomes scalar",
    }
    "copy-propagation" {
        CopyTied Declines "a constant for a tied source or a macro",
        CopyShared Declines "a shared register that the reader cannot read, or that may have changed",
        CopyImmediateMods Declines "modifiers of the reader that fit no immediate",
        CopyConvertedOther Declines "a converted word whose reader would convert it differently",
        CopyModifiedOther Declines "modifiers of another type than the reader",
        CopyModifiedUnfit Declines "modifiers that the reader does not have",
        CopyIllegal Declines "an operand that the reader cannot encode",
        CopyRegister Changes "a source reads the register that was copied",
        CopyWord Changes "a source reads the word of the constant file",
        CopyImmediate Changes "a source reads the immediate",
        CopyConverted Changes "a half source reads a word that was converted",
        CopyFloatMods Changes "modifiers of a float move to the reader",
        CopyIntMods Changes "modifiers of an integer move to the reader",
        CopyOutput Changes "an output reads the source of a copy",
        CopySplit Changes "a split of a collect becomes a move",
        CopyVector Changes "a collect of all splits of a vector is that vector",
    }
    "value-numbering" {
        NumberAddress Changes "an address is there already",
        NumberComparison Changes "a comparison was computed before",
        NumberOther Changes "another operation was computed before",
        NumberLooks Declines "more candidates than are looked at",
        NumberTests Changes "tests of one value are gathered at its definition",
    }
    "constants" {
        ConstantNew Changes "an immediate gets a word of the constant file",
        ConstantFull Declines "no word of the constant file is free",
        ConstantKnown Changes "an immediate has a word of the constant file",
        ConstantDeclared Changes "words are declared before relative reads",
    }
    "saturation" {
        SaturationOther Declines "a clamp of a value that has other readers, or no clamp of its own",
        SaturationFolded Changes "the operation clamps its result itself",
    }
    "fold" {
        FoldInvertedBranch Changes "a branch on a negation is inverted",
        FoldSelection Changes "a selection by a negation swaps its operands",
        FoldWideSelectionOther Declines "a widened negation with readers that are no selections",
        FoldWideSelection Changes "selections by a widened negation swap their operands",
        FoldNegatedOperand Changes "a conjunction reads an operand with (not)",
        FoldVoteOutvoted Declines "a vote after which lanes end",
        FoldVote Changes "a branch on a vote votes",
        FoldVoteElsewhere Declines "a vote of another block",
        FoldTwoOther Declines "a conjunction or disjunction that is not read by branches alone",
        FoldTwoUnfit Declines "an operand of it is no bool, or not current",
        FoldTwoCosts Declines "two tests cost more than they save",
        FoldTwo Changes "a branch reads two predicates",
        FoldTwoNegations Declines "operands that are read with (not)",
        FoldPredicateUntested Declines "a result that is not tested, or no bool",
        FoldPredicateFixed Declines "an operation that cannot be computed elsewhere",
        FoldPredicateCopy Changes "a copy of an operation writes a predicate",
        FoldPredicateBitop Changes "a bitwise operation writes a predicate",
        FoldPredicateComparison Changes "a comparison writes a predicate",
        FoldEarlyTest Changes "a value is tested where it is defined",
        FoldSingleBit Changes "a test of one bit is getbit.b",
        FoldConversionOther Declines "a result with other readers than one conversion",
        FoldConversionFloat Changes "a float operation converts its result",
        FoldConversionWiden Changes "an integer operation widens its result",
        FoldConversionNarrow Changes "an integer operation narrows its result",
        FoldConversionUnfit Declines "an operation that does not convert its result",
    }
    "predication" {
        PredicationUniform Declines "an if on which lanes do not diverge",
        PredicationSwapped Changes "the arms are swapped, as the first one is empty",
        Predicated Changes "an if is predicated",
        PredicationArm Declines "an arm with an instruction that cannot be predicated",
    }
    "register-allocation" {
        AssignEvict Changes "live values are moved to free registers",
        AssignEvictShared Declines "shared values are not moved",
        AssignSwap Changes "a live value swaps places with a dying source",
        AssignPreferred Changes "a result is placed next to the values that it is merged with",
        AssignSet Changes "a gap for a whole merge set",
        AssignDying Changes "a result takes the place of a dying source",
        AssignGap Changes "any gap",
        AssignCompact Changes "a whole file is compacted",
    }
    "lower-copies" {
        CopiesHalfFree Changes "a copy is split, as one half of its destination is free",
        CopiesCycle Changes "a cycle of copies becomes swaps",
        CopiesAcross Declines "a cycle of general and shared registers",
        CopiesBeyond Changes "a copy to a half beyond reach",
        CopiesSwapBeyond Changes "a swap of a half beyond reach",
        CopiesLowHalf Changes "the low half of a register that half operands do not name",
        CopiesNarrow Changes "the high half of a general register moves to a shared one",
        CopiesHighHalf Changes "the high half of a register is shifted down",
        CopiesSwz Changes "a swap is swz",
        CopiesXor Changes "a swap is three xor.b",
    }
    "spill" {
        SpillPhiCycle Changes "scalar phis form a cycle",
    }
    "repeat" {
        Repeated Changes "an instruction joins a group",
        RepeatReads Declines "an instruction that reads a result of its group",
        RepeatSource Declines "sources that neither stay nor count up",
    }
    "lower-subgroups" {
        SubgroupBallot Changes "a ballot",
        SubgroupAny Changes "a vote of any lane",
        SubgroupAll Changes "a vote of all lanes",
        SubgroupElect Changes "an election",
        SubgroupReadCond Changes "a read of a chosen lane",
        SubgroupReadFirst Changes "a read of the first lane",
        SubgroupReadLast Changes "a read of the last lane",
        SubgroupPreamble Changes "the start of a preamble",
        SubgroupScan Changes "a scan",
        SubgroupScanClusters Changes "a scan over clusters",
    }
}

impl Arm {
    /// The number of arms.
    pub const COUNT: usize = TABLE.len();

    /// Every arm with its row, in order.
    pub fn every() -> &'static [ArmInfo] {
        TABLE
    }
}

thread_local! {
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static COUNTS: [Cell<u32>; Arm::COUNT] = const { [const { Cell::new(0) }; Arm::COUNT] };
}

/// Marks an arm.
#[inline]
pub(crate) fn reached(arm: Arm) {
    if COUNTING.get() {
        add(arm);
    }
}

#[cold]
fn add(arm: Arm) {
    COUNTS.with(|counts| {
        let count = &counts[arm as usize];
        count.set(count.get().saturating_add(1));
    });
}

/// Turns counting in this thread on or off.
pub fn count(on: bool) {
    COUNTING.set(on);
}

/// Calls a function with each arm that this thread has reached since the last call, and its count.
pub fn take(mut visit: impl FnMut(Arm, u32)) {
    COUNTS.with(|counts| {
        for (info, count) in TABLE.iter().zip(counts) {
            let count = count.take();
            if count > 0 {
                visit(info.arm, count);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_differ() {
        for (i, info) in TABLE.iter().enumerate() {
            assert_eq!(info.arm as usize, i);
            let same = TABLE.iter().filter(|other| (other.pass, other.text) == (info.pass, info.text)).count();
            assert_eq!(same, 1, "{}: {}", info.pass, info.text);
        }
    }

    #[test]
    fn arms_are_counted_while_asked_for() {
        let arm = TABLE[0].arm;
        let taken = || {
            let mut all = Vec::new();
            take(|arm, count| all.push((arm, count)));
            all
        };
        reached(arm);
        assert_eq!(taken(), []);
        count(true);
        reached(arm);
        reached(arm);
        count(false);
        reached(arm);
        assert_eq!(taken(), [(arm, 2)]);
        assert_eq!(taken(), []);
    }
}
