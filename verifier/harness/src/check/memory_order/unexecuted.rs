//! Operations that no run executes, compared in the order of the code.

use super::lane::{Operation, Suspect};
use super::report::OrderChange;
use ir3_semantics::environment::aliases::may_be_one;
use ir3_semantics::environment::memory::{AccessKind, AccessTrace, OrderedCode, Space, TracedEvent};
use ir3_semantics::environment::sync::{BarrierFlags, Sync};
use rustc_hash::FxHashSet;

/// The operations that runs execute, by their numbers: accesses, and barriers and fences, of both programs.
#[derive(Debug, Default)]
pub struct Executed([[FxHashSet<u32>; 2]; 2]);

impl Executed {
    /// Adds the operations of a run of each program.
    pub fn add(&mut self, traces: &[AccessTrace; 2]) {
        for ([accesses, syncs], trace) in self.0.iter_mut().zip(traces) {
            for event in &trace.events {
                match event {
                    TracedEvent::Access(access) => accesses.insert(access.site),
                    TracedEvent::Sync(sync) => syncs.insert(sync.site),
                };
            }
        }
    }

    fn has(&self, side: usize, operation: &OrderedCode) -> bool {
        let [accesses, syncs] = &self.0[side];
        match operation {
            OrderedCode::Access { site, .. } => accesses.contains(site),
            OrderedCode::Sync { site, .. } => syncs.contains(site),
        }
    }
}

/// The part of an operation that the other program has, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Load,
    VolatileLoad,
    Store,
    Atomic,
    Barrier(BarrierFlags),
    Fence,
}

/// Finds an operation with another place in the second program.
pub fn find(code: &[Vec<OrderedCode>; 2], executed: &Executed) -> Option<Suspect> {
    // If one text does not mark volatile loads, they are treated as plain loads.
    let are_marked = code.iter().all(|code| code.iter().any(|operation| operation.is_volatile_load()));
    [Space::Ssbo, Space::Shared, Space::Image].into_iter().find_map(|space| {
        let [before, after] = [0, 1].map(|side| {
            let unexecuted = code[side].iter().filter(|operation| !executed.has(side, operation));
            tokens(unexecuted.copied(), space, are_marked)
        });
        // Without anything that loads have an order with, it does not matter which of them there are.
        let is_ordered = |tokens: &[(Token, Operation)]| tokens.iter().any(|(token, _)| *token != Token::Load);
        if !is_ordered(&before) && !is_ordered(&after) {
            return None;
        }
        let same = before.iter().zip(&after).take_while(|((a, _), (b, _))| a == b).count();
        let (_, first) = *before.get(same).or(after.get(same))?;
        let is_of_after = same == before.len();
        Some(Suspect { change: OrderChange::Unexecuted, first, is_of_after, second: None })
    })
}

/// The operations of a memory; several in a row are one, since an access may be split by components.
fn tokens(code: impl Iterator<Item = OrderedCode>, memory: Space, are_marked: bool) -> Vec<(Token, Operation)> {
    let mut tokens: Vec<(Token, Operation)> = Vec::new();
    for operation in code {
        let (token, operation) = match operation {
            OrderedCode::Access { space, .. } if !may_be_one(space, memory) => continue,
            OrderedCode::Access { site, kind, volatile, .. } => {
                let token = match kind {
                    AccessKind::Load if volatile && are_marked => Token::VolatileLoad,
                    AccessKind::Load => Token::Load,
                    AccessKind::Store => Token::Store,
                    AccessKind::Atomic => Token::Atomic,
                };
                (token, Operation::Access(site))
            }
            OrderedCode::Sync { sync, .. } if !sync.orders(memory) => continue,
            OrderedCode::Sync { site, sync } => {
                let token = match sync {
                    Sync::Barrier(flags) => Token::Barrier(flags),
                    Sync::Fence(_) => Token::Fence,
                };
                (token, Operation::Sync(site, sync))
            }
        };
        if tokens.last().is_none_or(|(last, _)| *last != token) {
            tokens.push((token, operation));
        }
    }
    tokens
}
