//! Limits on the number of registers of a program.

use crate::target::{RegisterFiles, Target};
use std::fmt;
use std::str::FromStr;

/// A limit on the number of registers of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RegisterLimit {
    /// All registers of the target.
    #[default]
    Target,
    /// This many full general registers, counted by components: 4 are one vec4. If half registers have a file of their
    /// own, the same number of these.
    Registers(u16),
    /// The minimum for the program (every value that no instruction needs in a register is in memory, if there is any),
    /// plus this many, counted as above.
    Minimum(u16),
}

impl RegisterLimit {
    /// The register files that the program may use. The minimum depends on the program; for it, the result is the
    /// target's files.
    ///
    /// The same limit applies to shared registers, but it is never below 4, which is enough for every program.
    pub fn files(self, target: &Target) -> RegisterFiles {
        let mut all = target.register_files();
        let shared = match self {
            Self::Target => all.shared,
            Self::Registers(count) => (2 * u32::from(count)).max(8),
            Self::Minimum(more) => 8 + 2 * u32::from(more),
        };
        all.shared = all.shared.min(shared);
        all.shared_half = all.shared_half.min(shared);
        let Self::Registers(count) = self else { return all };
        let full = (2 * u32::from(count)).min(all.full);
        let half = if target.merged_regs { full } else { u32::from(count) };
        RegisterFiles { full, half: half.min(all.half), ..all }
    }
}

impl fmt::Display for RegisterLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => f.write_str("target"),
            Self::Registers(count) => write!(f, "{count}"),
            Self::Minimum(0) => f.write_str("min"),
            Self::Minimum(more) => write!(f, "min+{more}"),
        }
    }
}

impl FromStr for RegisterLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let limit = match (text, text.strip_prefix("min+")) {
            ("target", _) => Some(Self::Target),
            ("min", _) => Some(Self::Minimum(0)),
            (_, Some(more)) => more.parse().ok().map(Self::Minimum),
            _ => text.parse().ok().map(Self::Registers),
        };
        limit.ok_or_else(|| format!("found `{text}`, expected a number, `min`, or `min+` and a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_counted_in_full_registers() {
        let [a660, a540] = ["a660", "a540"].map(|name| Target::by_name(name).unwrap());
        let files = |target, limit: RegisterLimit| {
            let files = limit.files(target);
            (files.full, files.half)
        };
        assert_eq!(files(&a660, RegisterLimit::Registers(10)), (20, 20));
        assert_eq!(files(&a660, RegisterLimit::Registers(150)), (300, 192));
        assert_eq!(files(&a540, RegisterLimit::Registers(10)), (20, 10));
        assert_eq!(files(&a540, RegisterLimit::Registers(1000)), (384, 192));
        assert_eq!(files(&a660, RegisterLimit::Target), (384, 192));
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        for limit in
            [RegisterLimit::Target, RegisterLimit::Registers(24), RegisterLimit::Minimum(0), RegisterLimit::Minimum(3)]
        {
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        assert!(
            "max".parse::<RegisterLimit>().is_err()
                && "min+".parse::<RegisterLimit>().is_err()
                && "-1".parse::<RegisterLimit>().is_err()
        );
    }
}
