//! Results of a stage of allocation that the next stages of the same compilation use again.
//!
//! They hold for the current program: any change of it, other than by the stage that stored them, has to clear them.

use super::pressure::{Analysis, Pressure};
use super::{Coalescing, Error};
use crate::ir3::{Array, Program};
use crate::target::Target;

/// The analysis of a program that has been converted to conventional SSA, with its maximum need.
pub(crate) struct Analysed {
    pub(crate) analysis: Analysis,
    pub(crate) pressure: Pressure,
}

impl Analysed {
    /// Converts a program to conventional SSA and analyses it.
    pub(crate) fn new(program: &mut Program, target: &Target, coalescing: Coalescing) -> Result<Self, Error> {
        let analysis = Analysis::coalesced(program, target, coalescing)?;
        let pressure = analysis.max_pressure(program);
        Ok(Self { analysis, pressure })
    }
}

/// A program after spilling.
pub(crate) struct Spilled {
    pub(crate) program: Program,
    /// Its analysis, if spilling has computed it.
    pub(crate) analysed: Option<(Analysed, Option<Program>)>,
}

/// The results for the current program.
#[derive(Default)]
pub(crate) struct Carried {
    /// The arrays to spill.
    pub(crate) arrays: Vec<Array>,
    /// The result of the stage that spills values, after these arrays have been spilled.
    pub(crate) spilled: Option<Spilled>,
    /// The analysis, and the program converted to conventional SSA if the current program is not yet.
    pub(crate) analysed: Option<(Analysed, Option<Program>)>,
}

impl Carried {
    /// The need of the program without spilling.
    pub(crate) fn pressure(
        &mut self,
        program: &Program,
        target: &Target,
        coalescing: Coalescing,
    ) -> Result<Pressure, Error> {
        self.analysis(program, target, coalescing).map(|(analysed, _)| analysed.pressure)
    }

    /// The analysis of the program, and the program converted to conventional SSA.
    pub(crate) fn analysis<'a>(
        &'a mut self,
        program: &'a Program,
        target: &Target,
        coalescing: Coalescing,
    ) -> Result<(&'a Analysed, &'a Program), Error> {
        if self.analysed.is_none() {
            let mut converted = program.clone();
            let analysed = Analysed::new(&mut converted, target, coalescing)?;
            self.analysed = Some((analysed, Some(converted)));
        }
        match &self.analysed {
            Some((analysed, converted)) => Ok((analysed, converted.as_ref().unwrap_or(program))),
            None => unreachable!("it has been computed"),
        }
    }

    /// Removes the analysis, after it has converted the program to conventional SSA.
    pub(crate) fn take(
        &mut self,
        program: &mut Program,
        target: &Target,
        coalescing: Coalescing,
    ) -> Result<Analysed, Error> {
        match self.analysed.take() {
            Some((analysed, converted)) => {
                if let Some(converted) = converted {
                    *program = converted;
                }
                Ok(analysed)
            }
            None => Analysed::new(program, target, coalescing),
        }
    }
}
