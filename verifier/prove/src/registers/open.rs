//! Assumptions about undefined values that are joined with defined ones.
//!
//! An undefined value that is joined with a defined one (in a phi) is *one* value from there on. So a fact `(l, x)`
//! that holds on one of the paths because `x` is undefined there is *open*: `x` may be the content of one piece of the
//! target, not of two different ones have. The first use of `x` takes the value of the piece that it reads, and the
//! facts that assume something else end.
//!
//! An open fact has *choices*: for each phi whose operand is undefined, the content that the phi is assumed to have.
//! Facts contradict each other if they assume different contents of one phi. Contents are numbered as a global value
//! numbering does it. Where paths meet, facts that assume the same on each of the paths are a group, and the first of
//! them names the content of the group. A fact that assumes nothing on one of the paths is in the group of the other
//! path, if there is only one. A content that is the same on both paths and was named elsewhere keeps its name. (One
//! that was named at this block is of an earlier visit.) Meeting one more path only splits groups, so the names at a
//! block change finitely often.

use super::location::Piece;
use ir3_compiler::ir3::Block;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// A fact: a piece of the target, and the piece of the source whose value it holds.
pub type Fact = (Piece, Piece);

/// An undefined value that meets a defined one: a piece of the source at the start of a block.
type Phi = (Piece, Block);

/// The content that is assumed for an undefined value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Content {
    /// The block at whose start facts got this content.
    block: Block,
    /// The first of these facts.
    of: Fact,
}

/// One assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    phi: Phi,
    content: Content,
}

/// The assumptions of one fact: at most one for each phi, in the order of the phis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices(SmallVec<[Choice; 1]>);

impl Choices {
    /// Returns true if nothing is assumed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn content(&self, phi: Phi) -> Option<Content> {
        let found = self.0.binary_search_by_key(&phi, |choice| choice.phi);
        found.ok().map(|at| self.0[at].content)
    }

    /// Returns true if some phi has two contents.
    fn contradicts(&self, other: &Self) -> bool {
        let differs = |choice: &Choice| other.content(choice.phi).is_some_and(|content| content != choice.content);
        self.0.iter().any(differs)
    }
}

/// One of the two sides of a meet, for one fact.
#[derive(Clone, Copy)]
pub enum OnPath<'a> {
    /// The fact is known, with these assumptions.
    Known(Option<&'a Choices>),
    /// The piece of the source is undefined.
    Undefined,
}

/// The open facts at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFacts(FxHashMap<Fact, Choices>);

impl OpenFacts {
    /// Returns true if no fact is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The assumptions of a fact, if it is open.
    pub fn get(&self, fact: Fact) -> Option<&Choices> {
        if self.0.is_empty() { None } else { self.0.get(&fact) }
    }

    /// Opens a fact.
    pub fn insert(&mut self, fact: Fact, choices: Choices) {
        self.0.insert(fact, choices);
    }

    /// Removes the assumptions of a fact.
    pub fn remove(&mut self, fact: Fact) {
        if !self.0.is_empty() {
            self.0.remove(&fact);
        }
    }

    /// The open facts among these.
    pub fn among(&self, facts: &[Fact]) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        Self(facts.iter().filter_map(|fact| Some((*fact, self.get(*fact)?.clone()))).collect())
    }

    /// Assumes what a fact assumes from here on. Returns the facts that assume something else.
    pub fn settle(&mut self, fact: Fact) -> SmallVec<[Fact; 8]> {
        let mut ended = SmallVec::new();
        let Some(settled) = self.0.remove(&fact) else { return ended };
        self.0.retain(|&fact, choices| {
            if choices.contradicts(&settled) {
                ended.push(fact);
            }
            choices.0.retain(|choice| settled.content(choice.phi) != Some(choice.content));
            !choices.is_empty()
        });
        ended
    }

    /// The open facts where two paths meet at the start of a block: see the module.
    pub fn meet<'a>(block: Block, facts: impl IntoIterator<Item = (Fact, [OnPath<'a>; 2])>) -> Self {
        let mut assumed: Vec<Assumed> = Vec::new();
        for (fact, paths) in facts {
            let here = [Choice { phi: (fact.1, block), content: Content { block, of: fact } }];
            let mut left = paths.map(|path| match path {
                OnPath::Known(choices) => choices.map_or(&[][..], |choices| &choices.0),
                OnPath::Undefined => &here,
            });
            while let Some(phi) = left.iter().filter_map(|choices| Some(choices.first()?.phi)).min() {
                let contents = left.each_mut().map(|choices| {
                    let (first, rest) = choices.split_first().filter(|(first, _)| first.phi == phi)?;
                    *choices = rest;
                    Some(first.content)
                });
                assumed.push(Assumed { phi, contents, fact });
            }
        }
        assumed.sort_unstable_by_key(|it| it.phi);
        let mut open = Self::default();
        for of_phi in assumed.chunk_by_mut(|a, b| a.phi == b.phi) {
            of_phi.sort_unstable();
            open.meet_phi(block, of_phi);
        }
        open
    }

    /// Adds the assumptions of facts about one phi. `assumed` is sorted.
    fn meet_phi(&mut self, block: Block, assumed: &[Assumed]) {
        let equal: Vec<&[Assumed]> = assumed.chunk_by(|a, b| a.contents == b.contents).collect();
        let mut groups: Vec<SmallVec<[&[Assumed]; 2]>> = equal.iter().map(|&facts| smallvec![facts]).collect();
        // The only group with a content on one path, of those with assumptions on both paths; `None` if there are
        // several.
        let mut only = FxHashMap::<(usize, Content), Option<usize>>::default();
        for (at, facts) in equal.iter().enumerate() {
            if let [Some(first), Some(second)] = facts[0].contents {
                for key in [(0, first), (1, second)] {
                    only.entry(key).and_modify(|group| *group = None).or_insert(Some(at));
                }
            }
        }
        for (at, facts) in equal.iter().enumerate() {
            let key = match facts[0].contents {
                [Some(first), None] => (0, first),
                [None, Some(second)] => (1, second),
                _ => continue,
            };
            if let Some(&Some(wider)) = only.get(&key) {
                groups[at].clear();
                groups[wider].push(facts);
            }
        }
        for group in groups {
            let members = || group.iter().flat_map(|facts| facts.iter());
            let Some(first) = members().map(|it| it.fact).min() else { continue };
            let mut contents = members().flat_map(|it| it.contents).flatten();
            let content = match contents.next() {
                Some(content) if content.block != block && contents.all(|other| other == content) => content,
                _ => Content { block, of: first },
            };
            for it in members() {
                self.0.entry(it.fact).or_default().0.push(Choice { phi: it.phi, content });
            }
        }
    }
}

/// The contents that a fact assumes of a phi on two paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Assumed {
    phi: Phi,
    contents: [Option<Content>; 2],
    fact: Fact,
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    fn meet(block: usize, facts: &[(Fact, [OnPath<'_>; 2])]) -> OpenFacts {
        OpenFacts::meet(Block::new(block), facts.iter().copied())
    }

    fn is_open(facts: &OpenFacts, fact: Fact) -> bool {
        facts.get(fact).is_some()
    }

    const SURE: OnPath<'static> = OnPath::Known(None);
    const UNDEFINED: OnPath<'static> = OnPath::Undefined;

    #[test]
    fn an_undefined_value_has_one_content() {
        let mut open =
            meet(1, &[((1, 9), [SURE, UNDEFINED]), ((2, 9), [SURE, UNDEFINED]), ((3, 8), [SURE, UNDEFINED])]);
        assert_eq!(open.settle((1, 9)).to_vec(), [(2, 9)]);
        assert!(!is_open(&open, (1, 9)) && is_open(&open, (3, 8)));
    }

    #[test]
    fn copies_of_one_content_stay_together_where_paths_meet() {
        let at_1 = meet(1, &[((1, 9), [SURE, UNDEFINED])]);
        let at_2 = meet(2, &[((3, 9), [UNDEFINED, SURE])]);
        let (first, second) = (OnPath::Known(at_1.get((1, 9))), OnPath::Known(at_2.get((3, 9))));
        // Two copies of one content on each path, and one that has the content of the first path only.
        let mut open = meet(3, &[((4, 9), [first, second]), ((5, 9), [first, second]), ((6, 9), [first, SURE])]);
        assert!(open.settle((4, 9)).is_empty());
        assert!(!is_open(&open, (5, 9)));
    }

    #[test]
    fn contents_that_differ_on_one_path_contradict() {
        let at_1 = meet(1, &[((1, 9), [SURE, UNDEFINED]), ((2, 9), [SURE, UNDEFINED])]);
        let [first, second] = [(1, 9), (2, 9)].map(|fact| OnPath::Known(at_1.get(fact)));
        let mut open = meet(3, &[((4, 9), [first, first]), ((5, 9), [first, second])]);
        assert_eq!(open.settle((4, 9)).to_vec(), [(5, 9)]);
        // Nor does a fact that assumes nothing on one path agree with both.
        let mut open = meet(3, &[((4, 9), [first, first]), ((5, 9), [second, first]), ((6, 9), [SURE, second])]);
        assert_eq!(open.settle((6, 9)).len(), 2);
    }

    #[test]
    fn a_content_of_an_earlier_visit_is_named_again() {
        let before = meet(1, &[((1, 9), [SURE, UNDEFINED]), ((3, 9), [SURE, UNDEFINED])]);
        let [earlier, other] = [(1, 9), (3, 9)].map(|fact| OnPath::Known(before.get(fact)));
        // The content of register 1 is in register 2 now, and register 1 has another one.
        let mut open = meet(1, &[((2, 9), [earlier, earlier]), ((1, 9), [other, SURE])]);
        assert_eq!(open.settle((1, 9)).to_vec(), [(2, 9)]);
    }
}
