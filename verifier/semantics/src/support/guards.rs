//! The side conditions of the provers, by name, and provers that leave one of them out.
//!
//! A proof is only as good as the side conditions of its rules. `ir3-selftest prover-mutants` tests that the campaigns
//! detect a missing condition: it leaves out one *guard* at a time and searches for a wrong proof (`prover_mutants` of
//! the package ir3-selftest). So every condition of the table below has a hook at its check:
//!
//! ```text
//! if !paths_are_equal && !left_out(Guard::EventPath) { … no proof … }
//! ```
//!
//! [`left_out`] is the last operand, so it is evaluated only where the condition changes the result; [`observe`]
//! collects those guards.
//!
//! A normal build leaves nothing out: [`left_out`] is the constant `false`, and the hooks are compiled away. With the
//! feature `prover-mutants` a guard is left out only on the thread and during the call of [`without`]. Verdicts of such
//! a prover are not cached ([`any_left_out`]).

use ir3_compiler::words;

words! {
    /// The component of the provers that a guard belongs to.
    pub enum ProverPart {
        /// The register checker, `ir3_prove::registers`.
        Registers = "registers",
        /// The order of the instructions of a block, and of the blocks of a wave, in the register checker.
        Order = "order",
        /// The simulation proof, `ir3_prove::simulation`.
        Equivalence = "equivalence",
        /// Events: operations that depend on other lanes, or whose effects other lanes see.
        Events = "events",
        /// Symbolic execution, `ir3_prove::symbolic`.
        Symbolic = "symbolic",
        /// Values that several lanes have in common.
        Lanes = "lanes",
        /// Memory, the constant file and textures.
        Memory = "memory",
    }
}

macro_rules! guards {
    ($($(#[$text:meta])* $guard:ident $name:literal $part:ident $holds:literal;)*) => {
        words! {
            /// A side condition of a prover.
            #[repr(u8)]
            pub enum Guard { $(#[doc = $holds] $guard = $name,)* }
        }

        impl Guard {
            /// The component of the provers that it belongs to.
            pub const fn part(self) -> ProverPart {
                match self { $(Self::$guard => ProverPart::$part),* }
            }

            /// The fact that is not checked if the guard is left out.
            pub const fn holds(self) -> &'static str {
                match self { $(Self::$guard => $holds),* }
            }
        }
    };
}

guards! {
    RegistersHeader "registers-header" Registers "Stage, workgroup size, shared memory, outputs, constants and given registers are the same.";
    RegistersBlockOrder "registers-block-order" Registers "Blocks that both programs have are in the same order.";
    RegistersSuccessors "registers-successors" Registers "A block has the same successors, in the same order.";
    RegistersEdgeBlock "registers-edge-block" Registers "A block that only the target has delays no lane past others that take the same edge.";
    UniformTogether "uniform-together" Registers "A condition of shared registers is the same only in lanes that computed it in the same iteration.";
    RegistersWaveStraight "registers-wave-straight" Registers "A lane's own value in a shared register is known only if the wave comes directly from its write.";
    RegistersWaveEnds "registers-wave-ends" Registers "A fact on a shared register holds at the end of every block that the wave may come from.";
    RegistersEndsWithin "registers-ends-within" Registers "The last lane of a wave may end in the middle of a block.";
    WaveDiverges "wave-diverges" Order "Lanes may diverge at a branch.";
    WaveTurns "wave-turns" Order "A wave continues in a block in which other lanes wait.";
    RegistersHeld "registers-held" Registers "An operand that has a value and its register reads a register that still holds the value.";
    RegistersLane "registers-lane" Registers "The lane whose value a shared register has may be another one after the next operation.";
    RegistersMeet "registers-meet" Registers "A fact holds where paths join if it holds on each of them.";
    RegistersMeetUndefined "registers-meet-undefined" Registers "A register is undefined where paths join if it is undefined on each of them.";
    RegistersOpenOnce "registers-open-once" Registers "A value that is undefined on some path is in one register after that path, not in two.";
    RegistersTargetWrites "registers-target-writes" Registers "A write of the target replaces the value of the register.";
    RegistersSourceWrites "registers-source-writes" Registers "No register has a value that the source has overwritten, or not yet computed.";
    RegistersConstants "registers-constants" Registers "A write to the constant file changes its words.";
    RegistersOpcode "registers-opcode" Registers "An instruction of both programs has one opcode.";
    RegistersFlags "registers-flags" Registers "An instruction of both programs has the same flags.";
    RegistersAttributes "registers-attributes" Registers "An instruction of both programs has the same attributes: types, offsets, spaces.";
    RegistersResults "registers-results" Registers "The results of an instruction have the same class and write mask.";
    RegistersSourceClass "registers-source-class" Registers "An operand has the same class and components.";
    RegistersModifiers "registers-modifiers" Registers "An operand has the same modifiers.";
    RegistersOperand "registers-operand" Registers "An operand that is no register is the same immediate, or the same word of the constant file.";
    RegistersHolds "registers-holds" Registers "An operand has the value that the source reads there.";
    RegistersSuspect "registers-suspect" Registers "A value computed from other operands is another value.";
    RegistersTwoResults "registers-two-results" Registers "Two results of an instruction are not in one register.";
    RegistersRelative "registers-relative" Registers "A relative operand is the same in both programs.";
    RegistersArray "registers-array" Registers "An array has its declared registers, and an access to it begins at the same element.";
    RegistersRegion "registers-region" Registers "After a relative write, elements are equal only if they were equal before it.";
    RegistersRecomputed "registers-recomputed" Registers "A rematerialised value has the operands of its definition.";
    RegistersRemoved "registers-removed" Registers "An instruction that only the source has, has no effect but its results.";
    RegistersAdded "registers-added" Registers "An instruction that only the target has, has no effect but its result.";
    RegistersSharedOnce "registers-shared-once" Registers "A shared value is rematerialised only if its definition is run once.";
    RegistersKeeps "registers-keeps" Registers "The operands of a rematerialised value do not change after its definition.";
    RegistersCopyModifiers "registers-copy-modifiers" Registers "A copy has no source modifiers.";
    RegistersMoveTypes "registers-move-types" Registers "A move is a copy only if it converts nothing.";
    RegistersApart "registers-apart" Registers "Parallel copies have different destinations.";
    RegistersEdgeShared "registers-edge-shared" Registers "No shared register is written on an edge that divergent lanes take.";
    RegistersSlotBase "registers-slot-base" Registers "The base register of a spill or reload holds a known constant.";
    RegistersElementIndex "registers-element-index" Registers "The address of an element in scratch memory is computed from the index that the source moves to `a0.x`.";
    RegistersElementAddress "registers-element-address" Registers "That index is multiplied by the size of an element.";
    RegistersOwnScratch "registers-own-scratch" Registers "No spill slot is in the scratch memory of the shader itself.";
    OrderCounts "order-counts" Order "In another order, each instruction has the same writes before it.";
    OrderMemory "order-memory" Order "Accesses keep their order with writes of the same memory.";
    OrderLanes "order-lanes" Order "No operation that depends on the set of active lanes moves across a kill or a demote.";
    OrderRegisters "order-registers" Order "Reads of a register file, or of a value, keep their order with its writes.";
    OrderArrays "order-arrays" Order "Accesses to an array keep their order with its writes.";
    Exits "exits" Equivalence "Both programs leave a segment by the same exits under the same conditions.";
    Fixpoint "fixpoint" Equivalence "Every segment preserves the relation at the loop headers.";
    Header "header" Equivalence "The headers are equal: stage, workgroup size, memory, buffers, inputs, outputs and given registers.";
    ScratchSize "scratch-size" Memory "A lane has as much scratch memory as in the source.";
    EventTorn "event-torn" Events "An event of the target is one of the source's in all segments or in none.";
    EventSegments "event-segments" Events "Lanes reach an event in the same segments in both programs.";
    Stores "stores" Memory "Every store of the source is one of the target, and the final memory is the same.";
    Demoted "demoted" Equivalence "The same lanes are demoted at the end.";
    Outputs "outputs" Equivalence "Outputs are the same at the end.";
    RelationWays "relation-ways" Equivalence "Locations of one class have the same term on every edge to the header, back edges included.";
    RegistersCommuted "registers-commuted" Registers "Sources are in another order only where the operation commutes.";
    RelationNarrow "relation-narrow" Equivalence "A word of which a class holds the low bits has no others on any edge to the header.";
    RelationLasting "relation-lasting" Equivalence "A location that is constant in a loop is a term of values computed before all loops.";
    RelationTogether "relation-together" Lanes "A class is uniform only if the lanes at the header reached it convergently.";
    RelationUniform "relation-uniform" Lanes "A class is uniform only if its terms are, on every edge.";
    Settled "settled" Lanes "The shared registers after a loop are the same for lanes that left another loop only if that had ended by then.";
    Kept "kept" Lanes "A shared register has the same value in all iterations only if the loop does not write it.";
    RelationMixed "relation-mixed" Lanes "Lanes that left a loop in different iterations have different values of it.";
    Behind "after-loop" Lanes "Shared registers that are equal after a loop are equal on every path past it.";
    Divergence "divergence" Lanes "Convergent lanes at a cut point may take different exits.";
    UndefinedTarget "undefined-target" Equivalence "An undefined value of the target may be anything, separately for each use.";
    FreeCorrelated "free-correlated" Symbolic "A bit that an operation uses twice is not free in its result.";
    FreeOfTwo "free-of-two" Symbolic "The sum or exclusive or of two free bits is not free.";
    FreeSign "free-sign" Symbolic "The copies of a free sign bit are not free.";
    PromisedSum "promised-sum" Symbolic "A sum that promises not to overflow is poison where it does.";
    PromisedAlignment "promised-alignment" Memory "An access of the target promises no alignment that the source does not have.";
    PromisedExact "promised-exact" Symbolic "An exact operation on floats stays exact.";
    FreeOnce "free-once" Symbolic "A value that an operation computes from an undefined one is the same at each of its uses.";
    AgreementBits "agreement-bits" Equivalence "Values that must agree have the same bits.";
    WrittenEverywhere "written-everywhere" Lanes "A shared register is uniform after a write only if all segments write the same.";
    EventPath "event-path" Events "The same lanes take part in an event in both programs.";
    SelectionWrites "selection-writes" Lanes "A lane that an event selects writes a shared register only after it in the same block, on the same path.";
    ScanAlone "scan-alone" Lanes "No other block runs while a loop over lanes computes a scan, and none leads into it.";
    ScanApart "scan-apart" Lanes "A loop over lanes that is a scan does not overwrite values that lanes read later.";
    EventOperands "event-operands" Events "An event has the same operands in both programs.";
    EventAdded "event-added" Events "Every store of the target is one of the source.";
    TargetDemands "target-demands" Equivalence "The target has no undefined behaviour where the source is defined.";
    EventSamePath "event-same-path" Events "Equal operations are one event only if the same lanes are active.";
    EventSameOperands "event-same-operands" Events "Operations are one event only if their operands are the same.";
    EventSameVersion "event-same-version" Memory "Two stores, or two atomics, are never one.";
    EventWhat "event-what" Events "An event is the same operation in both programs.";
    EventLoops "event-loops" Events "An event is in the same loops in both programs.";
    EventPartner "event-partner" Events "An event of the target is one event of the source, on all paths and in all segments.";
    EventOrder "event-order" Memory "Stores are in the order of the source.";
    SweepUnknown "sweep-unknown" Equivalence "Terms are not equal where the solver gives up.";
    SameCode "same-code" Equivalence "Programs with the same code have the same operations, operands and edges.";
    SweepInvalid "sweep-invalid" Equivalence "Terms that are equal on the samples may differ elsewhere.";
    SweepSamples "sweep-samples" Equivalence "Terms that differ on a sample are not equal.";
    GoalUnknown "goal-unknown" Equivalence "A goal does not hold where the solver gives up.";
    Mixed "mixed" Lanes "Lanes that left a loop in different iterations have different values of it.";
    Met "met" Lanes "Lanes from other segments may be in the same block.";
    ComeAsOne "come-as-one" Lanes "Lanes that diverge at a cut point do not execute the following code together.";
    ComeByLoops "come-by-loops" Lanes "Lanes that leave loops by several exits do not execute the following code together.";
    StayAsOne "stay-as-one" Lanes "Lanes may leave a loop in different iterations.";
    WholeWave "whole-wave" Lanes "Other lanes may be in a loop that this one bypasses.";
    LoopVersions "loop-versions" Memory "Other lanes may store in a loop that this one bypasses.";
    OthersStore "others-store" Memory "Other lanes may store in a block that this one does not reach.";
    OthersWrite "others-write" Lanes "Other lanes may write shared registers in a block that this one does not reach.";
    SharedUniform "shared-uniform" Lanes "A shared register has this lane's value only if all lanes write the same.";
    SharedPath "shared-path" Lanes "A shared register is written for all lanes only if all of them are active.";
    SharedDisagree "shared-disagree" Lanes "A shared register is undefined where lanes write different values.";
    ScanWidth "scan-width" Lanes "A scan over lanes is as wide as the values of all lanes.";
    BroadcastWidth "broadcast-width" Lanes "A value that other lanes broadcast is as wide as theirs.";
    SharedSplit "shared-split" Lanes "Only uniform conditions decide for all lanes that some lane writes a shared register.";
    SharedSplitMet "shared-split-met" Lanes "Lanes from other segments may write a shared register where this one does not.";
    SharedRead "shared-read" Lanes "A reader has the last write to a shared register only if it took part in it.";
    LoopEntry "loop-entry" Symbolic "A loop is entered by its header only.";
    LoopBack "loop-back" Lanes "Lanes take a back edge from the last block of a loop only.";
    OwnAddress "own-address" Memory "Scratch memory is modelled as registers only if every address is known.";
    OwnBytes "own-bytes" Memory "Overlapping accesses to scratch memory affect each other.";
    OwnHalf "own-half" Memory "A store of 16 bits keeps the other half of a word of scratch memory.";
    KilledPath "killed-path" Symbolic "A killed lane executes nothing more.";
    PredicationEnd "predication-end" Symbolic "Predication ends with the predicate with which it began.";
    HalfWrite "half-write" Symbolic "A write to one half of a register keeps the other one.";
    LaneWidth "lane-width" Lanes "A value of another lane is as narrow as that of this one only if all lanes run this segment.";
    BlockEnds "block-ends" Events "The ends of two blocks are two sites, also where one of the blocks is empty.";
    AssumedBefore "assumed-before" Equivalence "Behaviour before an assumption of the source is the same without the assumption.";
    LostBefore "lost-before" Equivalence "The target stays defined until it has the source's effects from before the source becomes undefined.";
    Vacuous "vacuous" Equivalence "There is an input on which the source is defined.";
    WaveKind "wave-kind" Lanes "Only values of the wave are the same in all of its lanes.";
    LastingKind "lasting-kind" Lanes "A value of a moment or of a cut point is not the same elsewhere.";
    ConstantStored "constant-stored" Memory "A word of the constant file that the program stores is not the driver's.";
    ConstantNames "constant-names" Memory "A computed word of the constant file may be one that the program stores.";
    KeptOnce "kept-once" Memory "A word that a preamble stores has that value from then on only if nothing else stores it.";
    KeptElected "kept-elected" Lanes "A word has a value in all lanes only if the elected lane stores it.";
    KeptUniform "kept-uniform" Lanes "A word that the elected lane stores is this lane's value only if the value is the same in all lanes.";
    KeptBefore "kept-before" Memory "A word has the value of a store only after it.";
    CopiedWords "copied-words" Memory "A copy to the constant file has as many words.";
    ConstantApart "constant-apart" Memory "A word of the constant file is that of an earlier version only if no store in between changes it.";
    StoredApart "stored-apart" Memory "A store to the constant file overtakes stores to other words only.";
    StoredBlock "stored-block" Memory "A store to the constant file overtakes stores of its own block only.";
    StoredRead "stored-read" Memory "A store to the constant file without a partner is to a word that neither program reads.";
    CopiedPlace "copied-place" Memory "A copy to the constant file goes to the same word.";
    StoredNumber "stored-number" Memory "An address register has the immediate that was moved to it last, if it was one.";
    HelperStores "helper-stores" Memory "Stores of helper lanes have no effect on memory that others see.";
    LoadVersion "load-version" Memory "A load reads earlier stores.";
    Binding "binding" Memory "Accesses to different buffers are different.";
    TextureKind "texture-kind" Memory "A sample is of the same kind, and has the same operands.";
    InputClash "input-clash" Symbolic "Two inputs in one register are undefined.";
    MemoryAlias "memory-alias" Memory "Buffers, global memory and images may be one memory.";
    BarrierOrder "barrier-order" Memory "Accesses keep their order with barriers and fences.";
    FenceCovers "fence-covers" Memory "A fence of the target orders every access that the source's orders.";
    VolatileLoads "volatile-loads" Memory "Volatile loads are neither merged nor dropped.";
    TextureQuad "texture-quad" Lanes "A sample with implicit derivatives depends on the other lanes of its quad.";
    TextureShape "texture-shape" Memory "A sample is from a texture of the same shape, and has the same type.";
    FlatInputs "flat-inputs" Lanes "A flat input may differ between the lanes of a wave.";
    WaveSize "wave-size" Lanes "A wave has 64 lanes or 128.";
    EventFreeOnce "event-free-once" Events "An undefined operand of an event has one value in two events that replace it.";
    RelationUnited "relation-united" Equivalence "Different terms of a class are one only if they are equal on the edge to the header.";
    HeaderFacts "header-facts" Equivalence "A bound of a counter is used only if it holds on every edge to the header.";
    LaneTerms "lane-terms" Lanes "The value of another lane is a term of this segment only if all lanes there run it, in one iteration of each loop.";
    LaneAbsent "lane-absent" Lanes "The value of an inactive lane may be anything.";
    LaneFirst "lane-first" Lanes "The first lane is another one where other lanes are active.";
    PlainStores "plain-stores" Memory "A store that is volatile or coherent is not dropped, moved or forwarded.";
    StoreJoined "store-joined" Memory "A store is looked up, or paired with several, only if all lanes that take part run the segment.";
    StoreCovered "store-covered" Memory "A store is dropped only if its lanes store to the same place later.";
    StoreLanes "store-lanes" Memory "Stores change their order only if no two lanes store different values to one place.";
    StoreCounted "store-counted" Memory "Stores of other lanes are counted only where both programs have the same ones.";
    ForwardedAgree "forwarded-agree" Memory "A load has the value that the lane has stored only if no other lane stores another one there.";
    ForwardedPath "forwarded-path" Memory "A load has the value that the lane has stored only if the lane has stored it.";
    ForwardedApart "forwarded-apart" Memory "A load is looked up before a store only if that is to another place.";
    LanesApart "lanes-apart" Lanes "A store is to other places only if that holds of the stores of all lanes.";
    SunkObserved "sunk-observed" Memory "Stores are moved out of a loop only if nothing in it observes them.";
    SunkPlace "sunk-place" Memory "Stores are moved out of a loop only if they are to one place in all iterations.";
    Beyond "beyond" Symbolic "A loop is replaced by copies of its blocks only if no lane has more iterations.";
    RotatedEntry "rotated-entry" Symbolic "A loop is rotated only to a block that all lanes pass that stay in it.";
}

/// A set of guards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guards([u128; 2]);

impl Guards {
    /// Returns true if the set contains `guard`.
    pub const fn contains(self, guard: Guard) -> bool {
        self.0[guard as usize / 128] >> (guard as usize % 128) & 1 != 0
    }

    /// Inserts a guard.
    pub const fn insert(&mut self, guard: Guard) {
        self.0[guard as usize / 128] |= 1 << (guard as usize % 128);
    }

    /// The guards of the set, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = Guard> {
        Guard::ALL.into_iter().filter(move |&guard| self.contains(guard))
    }
}

const _: () = assert!(Guard::ALL.len() <= 256, "a set of guards has 256 bits");

/// The error of a build that cannot leave guards out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the conditions of the provers cannot be left out in this build: it needs `--features prover-mutants`")]
pub struct NotBuilt;

#[cfg(not(feature = "prover-mutants"))]
mod hooks {
    use super::{Guard, Guards, NotBuilt};

    /// Returns true if this condition is left out: never, in this build.
    #[inline(always)]
    pub const fn left_out(_: Guard) -> bool {
        false
    }

    /// Returns true if any condition is left out: never, in this build.
    #[inline(always)]
    pub const fn any_left_out() -> bool {
        false
    }

    /// Runs a function with a condition left out. This build cannot do so.
    ///
    /// # Errors
    /// Always.
    pub fn without<T>(_: Guard, _: impl FnOnce() -> T) -> Result<T, NotBuilt> {
        Err(NotBuilt)
    }

    /// Runs a function, and returns the guards that changed a result. This build cannot do so.
    ///
    /// # Errors
    /// Always.
    pub fn observe<T>(_: impl FnOnce() -> T) -> Result<(T, Guards), NotBuilt> {
        Err(NotBuilt)
    }
}

#[cfg(feature = "prover-mutants")]
mod hooks {
    use super::{Guard, Guards, NotBuilt};
    use std::cell::Cell;

    thread_local! {
        static LEFT_OUT: Cell<Option<Guard>> = const { Cell::new(None) };
        static DECIDED: Cell<Guards> = const { Cell::new(Guards([0; 2])) };
    }

    /// Returns true if this condition is left out.
    #[inline]
    pub fn left_out(guard: Guard) -> bool {
        let mut decided = DECIDED.get();
        decided.insert(guard);
        DECIDED.set(decided);
        LEFT_OUT.get() == Some(guard)
    }

    /// Returns true if any condition is left out.
    pub fn any_left_out() -> bool {
        LEFT_OUT.get().is_some()
    }

    /// Restores the guards at the end of [`without`], whether its function returns or panics.
    struct Restore;

    impl Drop for Restore {
        fn drop(&mut self) {
            LEFT_OUT.set(None);
        }
    }

    /// Runs a function with a condition left out, on this thread.
    ///
    /// # Errors
    /// None in this build.
    pub fn without<T>(guard: Guard, run: impl FnOnce() -> T) -> Result<T, NotBuilt> {
        let _restore = Restore;
        LEFT_OUT.set(Some(guard));
        Ok(run())
    }

    /// Runs a function, and returns the guards that changed a result: leaving out any other guard has no effect.
    ///
    /// # Errors
    /// None in this build.
    pub fn observe<T>(run: impl FnOnce() -> T) -> Result<(T, Guards), NotBuilt> {
        DECIDED.set(Guards::default());
        let result = run();
        Ok((result, DECIDED.get()))
    }
}

pub use hooks::{any_left_out, left_out, observe, without};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = Guard::ALL.iter().map(|guard| guard.name()).collect();
        assert_eq!(names.len(), Guard::ALL.len());
        assert!(Guard::ALL.iter().all(|&guard| Guard::from_name(guard.name()) == Some(guard)));
        assert!(Guard::ALL.len() >= 60, "{}", Guard::ALL.len());
    }

    /// A normal build cannot leave out a condition.
    #[cfg(not(feature = "prover-mutants"))]
    #[test]
    fn a_normal_build_has_every_condition() {
        const { assert!(!any_left_out()) }
        for guard in Guard::ALL {
            assert!(!left_out(guard));
            assert_eq!(without(guard, || left_out(guard)), Err(NotBuilt));
        }
        assert_eq!(observe(|| ()), Err(NotBuilt));
    }

    /// With the feature, a condition is left out during one call on one thread.
    #[cfg(feature = "prover-mutants")]
    #[test]
    fn one_condition_is_left_out_at_a_time() {
        let all = || Guard::ALL.into_iter().filter(|&guard| left_out(guard)).collect::<Vec<_>>();
        assert_eq!(all(), []);
        for guard in Guard::ALL {
            assert_eq!(without(guard, all), Ok(vec![guard]));
            let elsewhere = without(guard, || std::thread::spawn(all).join().unwrap());
            assert_eq!(elsewhere, Ok(Vec::new()));
            let caught = std::panic::catch_unwind(|| without(guard, || panic!("on purpose")));
            assert!(caught.is_err() && !any_left_out());
            let (_, decided) = observe(|| left_out(guard)).unwrap();
            assert_eq!(decided.iter().collect::<Vec<_>>(), [guard]);
        }
    }
}
