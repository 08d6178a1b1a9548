//! Alias classes: the buffers, images and parts of global memory that are one memory in a run.
//!
//! Descriptors with different names, and pointers to global memory, may refer to one memory unless the program promises
//! otherwise. An environment partitions them: nothing aliases, everything does, the names alias in pairs, or there are
//! a few classes. The class of a name is a function of the name and the seed, so a program with computed numbers has
//! the same classes as one with constants, and an environment needs no list of a program's accesses.
//!
//! Global memory takes part by regions of [`REGION_BYTES`]: the bits of an address above a region choose its class,
//! those below are the address in the class. So pointers into different regions of one class meet, as does a pointer to
//! the first bytes of a region with a buffer of its class, and two addresses whose distance is less than a region never
//! become one. Some regions are memory of their own.
//!
//! Images alias images only (docs/semantics.md, `no-alias:ssbo-image`).

use super::Binding;
use super::env::Env;
use super::memory::Space;
use crate::support::random::{hash, mix};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;

/// The number of bytes of a region of global memory.
pub const REGION_BYTES: u64 = 1 << 20;

/// The partition of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aliasing {
    /// Each name is a memory of its own; all of global memory is one.
    #[default]
    Disjoint,
    /// The names whose numbers differ by these bits are one memory each: with 1 the buffers 0 and 1, and 2 and 3.
    Pairs(u8),
    /// All storage buffers and global memory are one, and so are all images.
    One,
    /// This number of classes, in which the seed distributes the names.
    Classes(u8),
}

/// Numbers of names that [`Aliasing`] distinguishes; others have the class of a name below it.
const ORDINALS: u64 = 16;
/// The ordinals of most regions of global memory: buffers have low numbers.
const LOW_ORDINALS: u64 = 4;

impl Aliasing {
    /// The partition that follows from a hash.
    pub(super) const fn drawn(hash: u64) -> Self {
        let more = hash >> 8;
        match hash & 15 {
            0..=7 => Self::Disjoint,
            8 | 9 => Self::One,
            10..=12 => Self::Pairs(match more & 3 {
                0 => 1,
                1 => 2,
                2 => 3,
                _ => 4 + (more >> 2 & 3) as u8,
            }),
            _ => Self::Classes(2 + (more % 3) as u8),
        }
    }

    /// A number that is smaller for simpler partitions, for reducers.
    pub const fn complexity(self) -> u32 {
        match self {
            Self::Disjoint => 0,
            Self::Pairs(_) => 1,
            Self::One => 2,
            Self::Classes(_) => 3,
        }
    }
}

/// The name of a memory: a kind with the buffer or image, or all memories of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryName {
    /// The kind.
    pub space: Space,
    /// The buffer or image; `None` for all of the kind.
    pub binding: Option<Binding>,
}

/// The descriptor set in the names of classes. No program has as many.
const CLASS_SET: u32 = Binding::SETS - 1;

impl MemoryName {
    /// The name of a buffer or image, or of the only memory of its kind.
    pub const fn of(space: Space, binding: Binding) -> Self {
        Self { space, binding: Some(binding) }
    }

    /// The name of all memories of a kind.
    pub const fn all(space: Space) -> Self {
        Self { space, binding: None }
    }

    /// The buffer or image, as text.
    pub fn binding_text(self) -> String {
        let text = self.to_string();
        text.split_once(' ').map(|(_, binding)| binding.to_owned()).unwrap_or_default()
    }

    /// Returns true if every memory of the other name is one of this name.
    pub fn covers(self, other: Self) -> bool {
        self.space == other.space && (self.binding.is_none() || self.binding == other.binding)
    }
}

impl fmt::Display for MemoryName {
    /// Prints a key of [`Env::memory`]: `ssbo 0`, `image set 1 index 5`, `ssbo class 2`; a kind alone is all of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.space.name())?;
        match self.binding {
            None => Ok(()),
            Some(binding) if binding.bits() >> 32 == u64::from(CLASS_SET) + 1 => {
                write!(f, " class {}", binding.bits() as u32)
            }
            Some(binding) => write!(f, " {binding}"),
        }
    }
}

/// The error for a text that names no memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no memory: expected `ssbo`, `ssbo 3`, `image set 1 index 5`, …")]
pub struct NoMemoryName(String);

impl FromStr for MemoryName {
    type Err = NoMemoryName;

    fn from_str(text: &str) -> Result<Self, NoMemoryName> {
        let words: SmallVec<[&str; 5]> = text.split(' ').collect();
        let number = |word: &str| word.parse().ok();
        let binding = match words[1..] {
            [] => Some(None),
            [index] => number(index).map(|index| Some(Binding::bound(index))),
            ["class", index] => number(index).map(|index| Some(class(index))),
            ["set", set, "index", index] => number(set)
                .filter(|&set| set < CLASS_SET)
                .zip(number(index))
                .map(|(set, index)| Some(Binding::new(Some(set), index))),
            _ => None,
        };
        let space = Space::from_name(words[0]);
        let name = space.zip(binding).map(|(space, binding)| Self { space, binding });
        name.ok_or_else(|| NoMemoryName(text.to_owned()))
    }
}

impl Serialize for MemoryName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemoryName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Returns true if a memory of one kind may be one of the other kind.
pub fn may_be_one(a: Space, b: Space) -> bool {
    let is_buffer = |space| matches!(space, Space::Ssbo | Space::Global);
    a == b || is_buffer(a) && is_buffer(b)
}

/// The name of a class among the buffers or images.
const fn class(number: u32) -> Binding {
    Binding::new(Some(CLASS_SET), number)
}

/// The alias classes of a run.
#[derive(Clone, Debug, Default)]
pub struct AliasClasses {
    aliasing: Aliasing,
    seed: u64,
    /// Memories without aliases.
    alone: SmallVec<[MemoryName; 4]>,
}

/// A memory, and the bits of an address that count in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasedPlace {
    /// The kind of the array.
    pub space: Space,
    /// Its name.
    pub binding: Binding,
    /// The mask of the address.
    pub window: u64,
}

impl AliasClasses {
    /// The classes of an environment.
    pub fn of(env: &Env) -> Self {
        Self { aliasing: env.aliasing(), seed: env.seed, alone: env.alone.iter().copied().collect() }
    }

    /// Returns true if an address of global memory decides which array it is in.
    pub fn splits(&self, space: Space) -> bool {
        space == Space::Global && self.may_alias(MemoryName::of(space, Binding::NONE))
    }

    /// The memory of an access. Of buffers and images, the address does not matter.
    pub fn place(&self, space: Space, binding: Binding, address: u64) -> AliasedPlace {
        let own = AliasedPlace { space, binding, window: u64::MAX };
        if !self.may_alias(MemoryName::of(space, binding)) {
            return own;
        }
        match space {
            Space::Ssbo | Space::Image => AliasedPlace { binding: class(self.class(ordinal(binding))), ..own },
            Space::Global => match self.ordinal_of_region(address / REGION_BYTES) {
                Some(ordinal) => {
                    let binding = class(self.class(ordinal));
                    AliasedPlace { space: Space::Ssbo, binding, window: REGION_BYTES - 1 }
                }
                None => own,
            },
            Space::Shared | Space::Scratch => own,
        }
    }

    /// Returns true if a memory is in a class.
    fn may_alias(&self, name: MemoryName) -> bool {
        self.aliasing != Aliasing::Disjoint
            && matches!(name.space, Space::Ssbo | Space::Image | Space::Global)
            && !self.alone.iter().any(|alone| alone.covers(name))
    }

    fn class(&self, ordinal: u64) -> u32 {
        match self.aliasing {
            Aliasing::Disjoint | Aliasing::One => 0,
            Aliasing::Pairs(mask) => ordinal.min(ordinal ^ (u64::from(mask) % ORDINALS)) as u32,
            Aliasing::Classes(count) => (hash(&[self.seed, 0x636c_6173, ordinal]) % u64::from(count.max(1))) as u32,
        }
    }

    /// The name as which a region of global memory counts; `None` if it is memory of its own.
    fn ordinal_of_region(&self, region: u64) -> Option<u64> {
        let drawn = hash(&[self.seed, 0x7265_6769, region]);
        let ordinals = if drawn >> 60 < 12 { LOW_ORDINALS } else { ORDINALS };
        (self.aliasing == Aliasing::One || drawn >> 32 & 3 != 0).then(|| mix(drawn, 1) % ordinals)
    }
}

/// A small number for a name. Those of one descriptor set differ, as far as there are numbers.
const fn ordinal(binding: Binding) -> u64 {
    let (set, index) = (binding.bits() >> 32, binding.bits() & 0xffff_ffff);
    (index.wrapping_add(set.wrapping_mul(5))) % ORDINALS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn classes(aliasing: Aliasing, seed: u64, alone: &[MemoryName]) -> AliasClasses {
        let alone = alone.iter().copied().collect();
        AliasClasses::of(&Env { aliases: Some(aliasing), alone, ..Env::from_seed(seed) })
    }

    fn ssbo(of: &AliasClasses, index: u32) -> AliasedPlace {
        of.place(Space::Ssbo, Binding::bound(index), 0)
    }

    #[test]
    fn any_two_of_eight_buffers_are_a_pair_in_some_environment_and_the_others_are_not_in_it() {
        let all: Vec<AliasClasses> = (0..1600).map(|seed| AliasClasses::of(&Env::from_seed(seed))).collect();
        for (a, b) in (0..8).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let is_pair = |of: &&AliasClasses| {
                let class = ssbo(of, a);
                (0..8).all(|other| (ssbo(of, other) == class) == [a, b].contains(&other))
            };
            assert!(all.iter().filter(is_pair).count() >= 4, "{a} {b}");
        }
        let disjoint = all.iter().filter(|of| of.aliasing == Aliasing::Disjoint).count();
        assert!((700..900).contains(&disjoint), "{disjoint}");
        let one = |of: &&AliasClasses| (0..8).all(|index| ssbo(of, index) == ssbo(of, 0));
        assert!(all.iter().filter(one).count() > 20);
    }

    #[test]
    fn what_is_alone_is_in_no_class() {
        let name = |index| MemoryName::of(Space::Ssbo, Binding::bound(index));
        let of = classes(Aliasing::One, 1, &[name(3)]);
        assert_eq!(ssbo(&of, 3).binding, Binding::bound(3));
        assert_eq!(ssbo(&of, 1), ssbo(&of, 2));
        assert_ne!(ssbo(&of, 1).binding, Binding::bound(1));
        let of = classes(Aliasing::One, 1, &[MemoryName::all(Space::Ssbo), MemoryName::all(Space::Global)]);
        assert_ne!(ssbo(&of, 1), ssbo(&of, 2));
        assert!(!of.splits(Space::Global));
        let image = |index| of.place(Space::Image, Binding::bound(index), 0);
        assert_eq!(image(1), image(2));
        assert_ne!(image(1), ssbo(&classes(Aliasing::One, 1, &[]), 1));
    }

    #[test]
    fn pointers_meet_buffers_and_each_other() {
        let all: Vec<AliasClasses> = (0..400).map(|seed| AliasClasses::of(&Env::from_seed(seed))).collect();
        let pointer = |of: &AliasClasses, address: u64| of.place(Space::Global, Binding::NONE, address);
        let count = |holds: &dyn Fn(&AliasClasses) -> bool| all.iter().filter(|of| holds(of)).count();
        let (p, q) = (0x1234_5600_0010, 0x7_0000_0010);
        let meets = |of: &AliasClasses, a: AliasedPlace, b: AliasedPlace| of.splits(Space::Global) && a == b;
        assert!(count(&|of| meets(of, pointer(of, p), AliasedPlace { window: REGION_BYTES - 1, ..ssbo(of, 2) })) > 40);
        assert!(count(&|of| meets(of, pointer(of, p), pointer(of, q))) > 60);
        // Never two addresses of one region.
        for of in &all {
            let [a, b] = [p, p + 64].map(|address| pointer(of, address));
            assert!(a == b && p & a.window != (p + 64) & a.window);
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let names = [
            MemoryName::all(Space::Image),
            MemoryName::of(Space::Ssbo, Binding::bound(7)),
            MemoryName::of(Space::Ssbo, Binding::new(Some(2), 5)),
            MemoryName::of(Space::Ssbo, class(3)),
        ];
        let texts: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["image", "ssbo 7", "ssbo set 2 index 5", "ssbo class 3"].map(str::to_owned).into());
        assert!(names.iter().all(|name| name.to_string().parse() == Ok(*name)));
        let text = r#"{"seed": 1, "aliases": {"pairs": 3}, "alone": ["ssbo 2", "image"]}"#;
        let env = Env::from_json(text).expect("an environment");
        assert_eq!((env.aliasing(), env.alone.len()), (Aliasing::Pairs(3), 2));
        assert!(env.keeps_alone(MemoryName::of(Space::Image, Binding::bound(9))));
        assert_eq!(Env::from_json(&env.to_json()).ok(), Some(env));
        assert!(Env::from_json(&text.replace("ssbo 2", "ssbo two")).is_err());
        for wrong in ["", "buffer 1", "ssbo x", "ssbo set 1", "ssbo 1 2"] {
            assert!(wrong.parse::<MemoryName>().is_err(), "{wrong}");
        }
    }
}
