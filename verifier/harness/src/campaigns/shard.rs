//! Parts of a campaign for several machines.

use std::fmt;
use std::str::FromStr;

/// One of several parts of a campaign, of equal size: the programs whose numbers leave one remainder. All parts
/// together are the campaign, for any number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    /// The whole campaign.
    pub const ALL: Self = Self { index: 1, count: 1 };

    /// Returns true if the program of a number is in this part.
    pub const fn has(self, number: u64) -> bool {
        number % self.count == self.index - 1
    }

    /// The number of this part, from 1 on.
    pub const fn index(self) -> u64 {
        self.index
    }

    /// The number of parts.
    pub const fn count(self) -> u64 {
        self.count
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The text is no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected I/N, the number of a part from 1 on and the number of parts, such as 2/8")]
pub struct NoShard;

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (index, count) = text.split_once('/').ok_or(NoShard)?;
        let (index, count) = (index.parse().map_err(|_| NoShard)?, count.parse().map_err(|_| NoShard)?);
        if (1..=count).contains(&index) { Ok(Self { index, count }) } else { Err(NoShard) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_in_one_part() {
        for count in 1..7u64 {
            let parts: Vec<Shard> =
                (1..=count).map(|index| format!("{index}/{count}").parse().expect("a part")).collect();
            for number in 0..50 {
                assert_eq!(parts.iter().filter(|part| part.has(number)).count(), 1, "{number} of {count}");
            }
            assert!(parts.iter().all(|part| part.to_string().parse() == Ok(*part)));
        }
        assert!((0..50).all(|number| Shard::ALL.has(number)));
        for wrong in ["", "1", "0/4", "5/4", "0/0", "1/0", "a/4", "1/4/2", "-1/4"] {
            assert_eq!(wrong.parse::<Shard>(), Err(NoShard), "{wrong}");
        }
    }
}
