//! What is assumed about undefined values that meet defined ones.
//!
//! An undefined value that meets a defined one (in a phi) is *one* value from there on. So a fact `(l, x)` that holds on
//! one of the paths because `x` is undefined there is *open*: `x` may be what one piece of the target has, not what two
//! different ones have. The first use of `x` takes the value of the piece that it reads, and the facts that assume
//! something else end.
//!
//! An open fact has *choices*: for each undefined value that it depends on, the content that this value is assumed to have.
//! Contents are numbered as a global value numbering does it. Where paths meet, two facts assume the same of a value
//! if they did so on each of the paths; such facts are a group, and the first fact of the group names its content. A
//! content that both paths know by one name from elsewhere keeps that name. (A name from the same block is of an earlier
//! visit, and is given again.) Meeting one more path only splits groups, so the names at a block change finitely often.

use super::location::Piece;
use ir3_compiler::ir3::Block;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A fact: a piece of the target, and the piece of the source whose value it holds.
pub type Fact = (Piece, Piece);

/// The content that is assumed for an undefined value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Content {
    /// The block at whose start facts got this content.
    block: Block,
    /// The first of these facts.
    of: Fact,
}

/// One assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    undefined: Piece,
    content: Content,
}

/// The assumptions of one fact: at most one for each undefined value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices(SmallVec<[Choice; 1]>);

impl Choices {
    /// Returns true if nothing is assumed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn content(&self, undefined: Piece) -> Option<Content> {
        self.0.iter().find(|choice| choice.undefined == undefined).map(|choice| choice.content)
    }

    /// Returns true if some undefined value has two contents.
    fn contradicts(&self, other: &Self) -> bool {
        let differs =
            |choice: &Choice| other.content(choice.undefined).is_some_and(|content| content != choice.content);
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

impl OnPath<'_> {
    fn content(self, undefined: Piece, fact: Fact, block: Block) -> Option<Content> {
        match self {
            Self::Known(choices) => choices?.content(undefined),
            Self::Undefined => (undefined == fact.1).then_some(Content { block, of: fact }),
        }
    }
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
            choices.0.retain(|choice| !settled.0.contains(choice));
            !choices.is_empty()
        });
        ended
    }

    /// The open facts where two paths meet at the start of a block: see the module.
    pub fn meet<'a>(block: Block, facts: impl IntoIterator<Item = (Fact, [OnPath<'a>; 2])>) -> Self {
        let mut assumed: Vec<(Piece, [Option<Content>; 2], Fact)> = Vec::new();
        for (fact, paths) in facts {
            let mut values = SmallVec::<[Piece; 4]>::new();
            for path in paths {
                match path {
                    OnPath::Known(choices) => {
                        values.extend(choices.iter().flat_map(|choices| choices.0.iter().map(|it| it.undefined)));
                    }
                    OnPath::Undefined => values.push(fact.1),
                }
            }
            values.sort_unstable();
            values.dedup();
            let contents = |undefined| paths.map(|path| path.content(undefined, fact, block));
            assumed.extend(values.into_iter().map(|undefined| (undefined, contents(undefined), fact)));
        }
        assumed.sort_unstable();
        let mut open = Self::default();
        for group in assumed.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (undefined, contents, first) = group[0];
            let content = match contents {
                [Some(content), Some(same)] if content == same && content.block != block => content,
                _ => Content { block, of: first },
            };
            for &(.., fact) in group {
                open.0.entry(fact).or_default().0.push(Choice { undefined, content });
            }
        }
        open
    }
}
