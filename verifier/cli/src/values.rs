//! Parsers of the values of options, which list the possible values in the help.

use crate::AllocatorName;
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use ir3_compiler::pipeline::{Feature, Features, Rotation};
use ir3_compiler::target::{self, Target};
use ir3_programs::generator::Profile;
use ir3_programs::planted_bugs::{self, PlantedBug};
use std::ffi::OsStr;
use std::time::Duration;

/// A time with its unit.
///
/// # Errors
/// If it is no time, has no unit, or is zero.
pub fn time(text: &str) -> Result<Duration, String> {
    let expected = "expected a time with its unit, such as 300ms, 10s, 2m or 8h";
    let time = humantime::parse_duration(text).map_err(|_| format!("found `{text}`, {expected}"))?;
    if time.is_zero() { Err(format!("found a time of zero, {expected}")) } else { Ok(time) }
}

/// A size in bytes, with its unit.
///
/// # Errors
/// If it is no size, has no unit, or is zero.
pub fn memory(text: &str) -> Result<u64, String> {
    let wrong = || format!("found `{text}`, expected a size with its unit, such as 512M or 2G");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let shift = [('K', 10), ('M', 20), ('G', 30)].into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).filter(|&size| size > 0).ok_or_else(wrong)
}

/// A number of at least 1.
pub fn count<T: TryFrom<u64> + Clone + Send + Sync + 'static>() -> RangedU64ValueParser<T>
where
    <T as TryFrom<u64>>::Error: Send + Sync + 'static + std::error::Error,
{
    RangedU64ValueParser::new().range(1..)
}

/// The GPUs by their names. A number without the `a` is one, too.
pub fn gpu() -> impl TypedValueParser<Value = Target> {
    Gpus
}

#[derive(Clone)]
struct Gpus;

impl TypedValueParser for Gpus {
    type Value = Target;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Target, clap::Error> {
        if value == "list" {
            let names: Vec<&str> = names().collect();
            return Err(clap::Error::raw(clap::error::ErrorKind::DisplayVersion, names.join("\n") + "\n"));
        }
        match value.to_str().and_then(|name| Target::by_name(name).ok()) {
            Some(target) => Ok(target),
            // This parser makes the message, with the names.
            None => Err(PossibleValuesParser::new(names()).parse_ref(command, arg, value).map_or_else(
                |error| error,
                |_| clap::Error::new(clap::error::ErrorKind::InvalidValue).with_cmd(command),
            )),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(names().map(PossibleValue::new)))
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    target::ALL.iter().chain([&target::GEN7, &target::GEN7_SCALAR]).map(|target| target.name)
}

/// The features by their names.
pub fn features() -> impl TypedValueParser<Value = Feature> {
    PossibleValuesParser::new(Features::all().iter().map(Feature::name))
        .try_map(|name| Feature::from_name(&name).ok_or("found no such feature"))
}

/// The allocators by their names.
pub fn allocator() -> impl TypedValueParser<Value = AllocatorName> {
    PossibleValuesParser::new(AllocatorName::ALL.map(AllocatorName::name))
        .try_map(|name| AllocatorName::from_name(&name).ok_or("found no such allocator"))
}

/// The rules for round robin by their names.
pub fn rotation() -> impl TypedValueParser<Value = Rotation> {
    PossibleValuesParser::new(Rotation::ALL.map(Rotation::name))
        .try_map(|name| Rotation::from_name(&name).ok_or("found no such rule"))
}

/// The profiles of the program generator by their names.
pub fn profile() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name))
        .try_map(|name| name.parse::<Profile>().map_err(|_| "found no such profile"))
}

/// The planted bugs by their names, which the help lists.
pub fn plants() -> impl TypedValueParser<Value = &'static PlantedBug> {
    bugs(planted_bugs::every())
}

/// The planted bugs of ir3 programs.
pub fn ir3_plants() -> impl TypedValueParser<Value = &'static PlantedBug> {
    bugs(planted_bugs::ALL.iter())
}

fn bugs(all: impl Iterator<Item = &'static PlantedBug>) -> impl TypedValueParser<Value = &'static PlantedBug> {
    let names = all.map(|plant| PossibleValue::new(plant.name).help(plant.description));
    PossibleValuesParser::new(names).try_map(|name| planted_bugs::by_name(&name).ok_or("found no such bug"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["90", "3 fortnights", "-1s", "0s", "0", ""] {
            assert!(time(bad).is_err_and(|error| error.contains("300ms")), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(memory("512M"), Ok(512 << 20));
        assert_eq!(memory("2G"), Ok(2 << 30));
        assert_eq!(memory("4K"), Ok(4096));
        for bad in ["512", "M", "-1M", "0G", "1T", "", "2 G", "99999999999G"] {
            assert!(memory(bad).is_err_and(|error| error.contains("512M")), "{bad}");
        }
    }
}
