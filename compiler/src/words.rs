//! Enums whose variants have names: words of a text format, or names on the command line and in reports.
//!
//! [`words!`](crate::words!) is the only way to define one. All variants, their names, and the conversion from a name
//! come from one list, so none of them can lack a variant.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Variants by their names.
#[doc(hidden)]
pub type Names<T> = LazyLock<FxHashMap<&'static str, T>>;

/// Maps names to variants.
#[doc(hidden)]
pub fn by_name<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> FxHashMap<&'static str, T> {
    let names: FxHashMap<_, _> = all.iter().map(|&variant| (name(variant), variant)).collect();
    assert_eq!(names.len(), all.len(), "two variants have one name");
    names
}

/// Defines an enum in which each variant has a name: `ALL`, `name`, `from_name` and `Display`.
///
/// ```
/// ir3_compiler::words! {
///     /// A direction.
///     pub enum Direction {
///         /// To the left.
///         Left = "left",
///         /// To the right.
///         Right = "right",
///     }
/// }
/// assert_eq!(Direction::from_name("left"), Some(Direction::Left));
/// assert_eq!(Direction::ALL.map(Direction::name), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$attr:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$attr])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $name {
            $(#[doc = concat!("`", $text, "`")] $(#[$doc])* $variant,)*
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The variant of a name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                static NAMES: $crate::words::Names<$name> =
                    $crate::words::Names::new(|| $crate::words::by_name(&$name::ALL, $name::name));
                NAMES.get(name).copied()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    words! {
        /// Two variants of one name.
        enum Twice {
            A = "a",
            B = "a",
        }
    }

    #[test]
    #[should_panic(expected = "two variants have one name")]
    fn a_name_is_of_one_variant() {
        let _ = Twice::from_name("a");
    }
}
