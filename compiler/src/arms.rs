//! Arms: the cases of passes, which are counted, and some of which can be skipped.
//!
//! An arm is a case of a pass: a rule that it applies, or a reason for which it does not transform the code. [`Arm`]
//! lists them. The code of a pass has one call for each, of the [`Counter`] of the compilation: [`may`](Counter::may)
//! for a change that the pass can do without, and [`count`](Counter::count) otherwise. So the counts of a compilation
//! are the coverage of its passes, and [`Skip`] leaves out a rule, or some of its applications, to find the one that
//! breaks a program.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

macro_rules! arms {
    ($($pass:literal { $($variant:ident = $name:literal $kind:ident $text:literal,)* })*) => {
        /// A case of a pass.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Arm { $($(#[doc = concat!("`", $pass, "`: ", $text)] $variant,)*)* }

        static TABLE: &[ArmInfo] = &[$($(
            ArmInfo { arm: Arm::$variant, name: $name, pass: $pass, kind: ArmKind::$kind, text: $text },
        )*)*];
    };
}

/// The effect of a pass in an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmKind {
    /// It changes the program, and can be skipped.
    Changes,
    /// It changes the program, which would be wrong without the change.
    Required,
    /// It does not transform the code.
    Declines,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct ArmInfo {
    /// The arm.
    pub arm: Arm,
    /// Its name.
    pub name: &'static str,
    /// The pass, by the name of its stage.
    pub pass: &'static str,
    /// Its effect.
    pub kind: ArmKind,
    /// The case, in words.
    pub text: &'static str,
}

arms! {
    "de-morgan" {
        DeMorganAnd = "de-morgan-and" Changes "the negation of a conjunction becomes a disjunction",
        DeMorganOr = "de-morgan-or" Changes "the negation of a disjunction becomes a conjunction",
    }
    "inline-preamble" {
        PreambleValue = "preamble-value" Required "a load of a word reads the value that was stored",
        PreambleDriver = "preamble-driver" Required "a load of a word that the driver fills stays a load",
        PreambleBuffer = "preamble-buffer" Required "a load of a copied word reads the buffer",
    }
    "scalar-alu" {
        ScalarWithdrawn = "scalar-withdrawn" Declines "a source of a uniform operation is in no shared register",
        ScalarUseless = "scalar-useless" Declines "a uniform value would only be copied back",
        ScalarCopyConstant = "scalar-copy-constant" Required "a constant is moved to the other file",
        ScalarCopyToShared = "scalar-copy-to-shared" Required "a uniform value is copied to a shared register",
        ScalarCopyToGeneral = "scalar-copy-to-general" Required "a shared value is copied to a general register",
        ScalarPhi = "scalar-phi" Changes "a phi becomes shared",
        ScalarInput = "scalar-input" Changes "an input becomes shared",
        ScalarOperation = "scalar-operation" Changes "an operation becomes scalar",
    }
    "copy-propagation" {
        CopyTied = "copy-tied" Declines "a constant for a tied source or a macro",
        CopyShared = "copy-shared" Declines "a shared register that the reader cannot read, or that may have changed",
        CopyImmediateMods = "copy-immediate-mods" Declines "modifiers of the reader that fit no immediate",
        CopyConvertedOther = "copy-converted-other" Declines "a converted word whose reader would convert it differently",
        CopyModifiedOther = "copy-modified-other" Declines "modifiers of another type than the reader",
        CopyModifiedUnfit = "copy-modified-unfit" Declines "modifiers that the reader does not have",
        CopyIllegal = "copy-illegal" Declines "an operand that the reader cannot encode",
        CopyRegister = "copy-register" Changes "a source reads the register that was copied",
        CopyWord = "copy-word" Changes "a source reads the word of the constant file",
        CopyImmediate = "copy-immediate" Changes "a source reads the immediate",
        CopyConverted = "copy-converted" Changes "a half source reads a word that was converted",
        CopyFloatMods = "copy-float-mods" Changes "modifiers of a float move to the reader",
        CopyIntMods = "copy-int-mods" Changes "modifiers of an integer move to the reader",
        CopyOutput = "copy-output" Required "an output reads the source of a copy",
        CopySplit = "copy-split" Changes "a split of a collect becomes a move",
        CopyVector = "copy-vector" Changes "a collect of all splits of a vector is that vector",
    }
    "value-numbering" {
        NumberAddress = "number-address" Changes "an address is there already",
        NumberComparison = "number-comparison" Changes "a comparison was computed before",
        NumberOther = "number-other" Changes "another operation was computed before",
        NumberLooks = "number-looks" Declines "more candidates than are looked at",
        NumberTests = "number-tests" Changes "tests of one value are gathered at its definition",
    }
    "constants" {
        ConstantNew = "constant-new" Changes "an immediate gets a word of the constant file",
        ConstantFull = "constant-full" Declines "no word of the constant file is free",
        ConstantKnown = "constant-known" Changes "an immediate has a word of the constant file",
        ConstantDeclared = "constant-declared" Required "words are declared before relative reads",
    }
    "saturation" {
        SaturationOther = "saturation-other" Declines "a clamp of a value that has other readers, or no clamp of its own",
        SaturationFolded = "saturation-folded" Changes "the operation clamps its result itself",
    }
    "fold" {
        FoldInvertedBranch = "fold-inverted-branch" Changes "a branch on a negation is inverted",
        FoldSelection = "fold-selection" Changes "a selection by a negation swaps its operands",
        FoldWideSelectionOther = "fold-wide-selection-other" Declines "a widened negation with readers that are no selections",
        FoldWideSelection = "fold-wide-selection" Changes "selections by a widened negation swap their operands",
        FoldNegatedOperand = "fold-negated-operand" Changes "a conjunction reads an operand with (not)",
        FoldVoteOutvoted = "fold-vote-outvoted" Declines "a vote after which lanes end",
        FoldVote = "fold-vote" Changes "a branch on a vote votes",
        FoldVoteElsewhere = "fold-vote-elsewhere" Declines "a vote of another block",
        FoldTwoOther = "fold-two-other" Declines "a conjunction or disjunction that is not read by branches alone",
        FoldTwoSeveral = "fold-two-several" Changes "several branches read it, or branches of other blocks",
        FoldTwoUnfit = "fold-two-unfit" Declines "an operand of it is no bool, or not current",
        FoldTwoCosts = "fold-two-costs" Declines "two tests cost more than they save",
        FoldTwo = "fold-two" Changes "a branch reads two predicates",
        FoldTwoNegations = "fold-two-negations" Declines "operands that are read with (not)",
        FoldPredicateUntested = "fold-predicate-untested" Declines "a result that is not tested, or no bool",
        FoldPredicateFixed = "fold-predicate-fixed" Declines "an operation that cannot be computed elsewhere",
        FoldPredicateCopy = "fold-predicate-copy" Changes "a copy of an operation writes a predicate",
        FoldPredicateBitop = "fold-predicate-bitop" Changes "a bitwise operation writes a predicate",
        FoldPredicateComparison = "fold-predicate-comparison" Changes "a comparison writes a predicate",
        FoldEarlyTest = "fold-early-test" Changes "a value is tested where it is defined",
        FoldSingleBit = "fold-single-bit" Changes "a test of one bit is getbit.b",
        FoldConversionOther = "fold-conversion-other" Declines "a result with other readers than one conversion",
        FoldConversionFloat = "fold-conversion-float" Changes "a float operation converts its result",
        FoldConversionWiden = "fold-conversion-widen" Changes "an integer operation widens its result",
        FoldConversionNarrow = "fold-conversion-narrow" Changes "an integer operation narrows its result",
        FoldConversionUnfit = "fold-conversion-unfit" Declines "an operation that does not convert its result",
    }
    "predication" {
        PredicationUniform = "predication-uniform" Declines "an if on which lanes do not diverge",
        PredicationSwapped = "predication-swapped" Required "the arms are swapped, as the first one is empty",
        Predicated = "predicated" Changes "an if is predicated",
        PredicationArm = "predication-arm" Declines "an arm with an instruction that cannot be predicated",
    }
    "register-allocation" {
        AssignEvict = "assign-evict" Changes "live values are moved to free registers",
        AssignEvictShared = "assign-evict-shared" Declines "shared values are not moved",
        AssignSwap = "assign-swap" Required "a live value swaps places with a dying source",
        AssignPreferred = "assign-preferred" Required "a result is placed next to the values that it is merged with",
        AssignSet = "assign-set" Required "a gap for a whole merge set",
        AssignDying = "assign-dying" Required "a result takes the place of a dying source",
        AssignGap = "assign-gap" Required "any gap",
        AssignCompact = "assign-compact" Required "a whole file is compacted",
    }
    "lower-copies" {
        CopiesHalfFree = "copies-half-free" Required "a copy is split, as one half of its destination is free",
        CopiesCycle = "copies-cycle" Required "a cycle of copies becomes swaps",
        CopiesAcross = "copies-across" Declines "a cycle of general and shared registers",
        CopiesBeyond = "copies-beyond" Required "a copy to a half beyond reach",
        CopiesSwapBeyond = "copies-swap-beyond" Required "a swap of a half beyond reach",
        CopiesLowHalf = "copies-low-half" Required "the low half of a register that half operands do not name",
        CopiesNarrow = "copies-narrow" Required "the high half of a general register moves to a shared one",
        CopiesHighHalf = "copies-high-half" Required "the high half of a register is shifted down",
        CopiesSwz = "copies-swz" Changes "a swap is swz",
        CopiesXor = "copies-xor" Required "a swap is three xor.b",
    }
    "repeat" {
        Repeated = "repeated" Changes "an instruction joins a group",
        RepeatReads = "repeat-reads" Declines "an instruction that reads a result of its group",
        RepeatSource = "repeat-source" Declines "sources that neither stay nor count up",
    }
}

impl Arm {
    /// The number of arms.
    pub const COUNT: usize = TABLE.len();

    /// Every arm with its row, in order.
    pub fn every() -> &'static [ArmInfo] {
        TABLE
    }

    /// The arms that can be skipped.
    pub fn skippable() -> impl Iterator<Item = Self> {
        TABLE.iter().filter(|info| info.kind == ArmKind::Changes).map(|info| info.arm)
    }

    /// Its row.
    pub fn info(self) -> &'static ArmInfo {
        &TABLE[self as usize]
    }

    /// The name that the command line and the reports use.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

/// The applications of arms that are skipped: all of some arms, and a range of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Skip {
    /// The arms that are skipped as a whole, a bit for each.
    whole: u128,
    /// The applications of one arm, from the first number to before the last one.
    range: Option<(Arm, u32, u32)>,
}

const _: () = assert!(Arm::COUNT <= u128::BITS as usize, "more arms than bits");

impl Skip {
    /// Skips an arm as a whole.
    #[must_use]
    pub fn and(self, arm: Arm) -> Self {
        let range = self.range.filter(|&(other, ..)| other != arm);
        Self { whole: self.whole | 1 << arm as u32, range }
    }

    /// Skips the applications of an arm from number `first` on, and before number `end`, instead of another range.
    #[must_use]
    pub fn and_range(self, arm: Arm, first: u32, end: u32) -> Self {
        Self { whole: self.whole & !(1 << arm as u32), range: Some((arm, first, end)) }
    }

    /// Returns true if an arm is skipped as a whole.
    pub fn has(self, arm: Arm) -> bool {
        self.whole >> arm as u32 & 1 != 0
    }

    /// The arm of the range, and the first of its applications.
    pub fn range(self) -> Option<(Arm, u32)> {
        self.range.map(|(arm, first, _)| (arm, first))
    }

    /// Returns true if application number `number` of an arm is skipped.
    fn skips(self, arm: Arm, number: u32) -> bool {
        self.has(arm) || self.range.is_some_and(|(other, first, end)| other == arm && (first..end).contains(&number))
    }

    /// The applications that either skips. The range of the other one replaces the own range.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { whole: self.whole | other.whole, range: other.range.or(self.range) }
    }
}

/// The names of the arms, with commas between them; an arm with a range is `NAME:FIRST..END`, or `NAME:FIRST..`.
impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for info in TABLE.iter().filter(|info| self.has(info.arm)) {
            write!(f, "{separator}{}", info.name)?;
            separator = ",";
        }
        match self.range {
            Some((arm, first, u32::MAX)) => write!(f, "{separator}{}:{first}..", arm.name()),
            Some((arm, first, end)) => write!(f, "{separator}{}:{first}..{end}", arm.name()),
            None => Ok(()),
        }
    }
}

impl FromStr for Skip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, range) = part.split_once(':').map_or((part, None), |(name, range)| (name, Some(range)));
            let Some(arm) = Arm::skippable().find(|arm| arm.name() == name) else {
                let names: Vec<&str> = Arm::skippable().map(Arm::name).collect();
                return Err(format!("found `{name}`, expected one of {}", names.join(", ")));
            };
            let one = match range {
                None => Self::default().and(arm),
                Some(range) => {
                    let numbers = range.split_once("..").and_then(|(first, end)| {
                        let end = if end.is_empty() { u32::MAX } else { end.parse().ok()? };
                        Some((first.parse().ok()?, end))
                    });
                    let Some((first, end)) = numbers else {
                        return Err(format!("found `{range}` after {name}, expected a range such as 3.. or 3..5"));
                    };
                    Self::default().and_range(arm, first, end)
                }
            };
            all = all.with(one);
        }
        Ok(all)
    }
}

/// The counts of the arms of one compilation.
#[derive(Clone, Debug)]
pub struct Counter {
    counts: [Cell<u32>; Arm::COUNT],
    skip: Skip,
}

impl Default for Counter {
    fn default() -> Self {
        Self::new(Skip::default())
    }
}

impl Counter {
    /// No arm has been counted yet.
    pub fn new(skip: Skip) -> Self {
        Self { counts: [const { Cell::new(0) }; Arm::COUNT], skip }
    }

    /// Counts an arm. Returns false if this application is skipped: then the pass makes no change.
    #[inline]
    pub fn may(&self, arm: Arm) -> bool {
        debug_assert!(arm.info().kind == ArmKind::Changes, "{arm:?}");
        let number = self.counts[arm as usize].get();
        self.count(arm);
        !self.skip.skips(arm, number)
    }

    /// Counts an arm that is not skipped.
    #[inline]
    pub fn count(&self, arm: Arm) {
        let count = &self.counts[arm as usize];
        count.set(count.get().saturating_add(1));
    }

    /// Returns true if an arm is skipped as a whole.
    pub fn skips(&self, arm: Arm) -> bool {
        self.skip.has(arm)
    }

    /// The counts that were added to those of an earlier state of the same compilation.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = std::array::from_fn(|arm| Cell::new(self.counts[arm].get() - earlier.counts[arm].get()));
        Self { counts, skip: self.skip }
    }

    /// The arms that were counted, and their counts.
    pub fn counts(&self) -> impl Iterator<Item = (Arm, u32)> {
        TABLE.iter().zip(&self.counts).map(|(info, count)| (info.arm, count.get())).filter(|&(_, count)| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_differ() {
        for (i, info) in TABLE.iter().enumerate() {
            assert_eq!(info.arm as usize, i);
            let same = |other: &&ArmInfo| other.name == info.name || (other.pass, other.text) == (info.pass, info.text);
            assert_eq!(TABLE.iter().filter(same).count(), 1, "{}", info.name);
        }
    }

    #[test]
    fn what_is_skipped_is_read_as_it_is_written() {
        for text in ["", "fold-two", "fold-two:3..", "copy-word,fold-vote,fold-two:3..5"] {
            assert_eq!(text.parse::<Skip>().expect(text).to_string(), text);
        }
        for wrong in ["fold", "fold-two:", "fold-two:x..", "fold-two-unfit", "copies-cycle", "fold-two:1.2"] {
            assert!(wrong.parse::<Skip>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn applications_are_counted_and_skipped() {
        let taken = |skip: &str| {
            let counter = Counter::new(skip.parse().expect(skip));
            let taken: Vec<bool> = (0..4).map(|_| counter.may(Arm::FoldTwo)).collect();
            assert!(counter.may(Arm::FoldVote));
            counter.count(Arm::FoldTwoUnfit);
            let counts: Vec<(Arm, u32)> = counter.counts().collect();
            assert_eq!(counts, [(Arm::FoldVote, 1), (Arm::FoldTwoUnfit, 1), (Arm::FoldTwo, 4)]);
            taken
        };
        assert_eq!(taken(""), [true; 4]);
        assert_eq!(taken("fold-two"), [false; 4]);
        assert_eq!(taken("fold-two:2.."), [true, true, false, false]);
        assert_eq!(taken("fold-two:1..2"), [true, false, true, true]);
    }
}
