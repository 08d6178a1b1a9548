//! Branches and loops of generators that keep a list of available values: definitions in a scope are available after it
//! only through phis.

use ir3_compiler::nir::{Builder, Def, JumpKind, Op};

/// A generator with such a list.
pub(super) trait Scopes {
    /// The kind of a value.
    type Kind: Copy;
    /// The required kind of a phi, perhaps with a size.
    type Wanted: Copy;

    /// The kind of a loop's counter.
    const COUNTER: Self::Kind;

    fn builder(&mut self) -> &mut Builder;
    fn values(&mut self) -> &mut Vec<(Self::Kind, Def)>;
    /// A choice of one of `count`.
    fn below(&mut self, count: usize) -> usize;
    fn statement(&mut self, depth: u32);
    fn condition(&mut self) -> Def;
    /// The phis of a branch or a loop.
    fn wanted(&mut self) -> Vec<Self::Wanted>;
    fn kind(wanted: Self::Wanted) -> Self::Kind;
    /// A value that is available, or a new one.
    fn source(&mut self, wanted: Self::Wanted) -> Def;
    fn phi(&mut self, wanted: Self::Wanted) -> Def;

    /// The condition to leave a loop, if only `done` need be one.
    fn leaves(&mut self, done: Def) -> Def {
        done
    }

    /// A few statements in a scope; returns values of these kinds from it.
    fn scope(&mut self, depth: u32, wanted: &[Self::Wanted]) -> Vec<Def> {
        for _ in 0..self.below(4) {
            self.statement(depth + 1);
        }
        wanted.iter().map(|&wanted| self.source(wanted)).collect()
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.condition();
        let wanted = self.wanted();
        let kept = self.values().len();
        self.builder().begin_if(condition);
        let then = self.scope(depth, &wanted);
        let then_block = self.builder().current_block();
        self.values().truncate(kept);
        self.builder().begin_else();
        let otherwise = self.scope(depth, &wanted);
        let else_block = self.builder().current_block();
        self.values().truncate(kept);
        self.builder().end_if();
        for (i, &wanted) in wanted.iter().enumerate() {
            let phi = self.phi(wanted);
            self.builder().set_phi_src(phi, then_block, then[i]);
            self.builder().set_phi_src(phi, else_block, otherwise[i]);
            self.values().push((Self::kind(wanted), phi));
        }
    }

    /// A loop of at most four iterations.
    fn repeat(&mut self, depth: u32) {
        let wanted = self.wanted();
        let initial: Vec<Def> = wanted.iter().map(|&wanted| self.source(wanted)).collect();
        let (zero, one) = (self.builder().constant(32, 0), self.builder().constant(32, 1));
        let most = 1 + self.below(4) as u64;
        let most = self.builder().constant(32, most);
        let before = self.builder().current_block();
        let kept = self.values().len();
        self.builder().begin_loop();
        let counter = self.builder().phi(1, 32);
        self.builder().set_phi_src(counter, before, zero);
        let mut phis = Vec::new();
        for (&wanted, &value) in wanted.iter().zip(&initial) {
            let phi = self.phi(wanted);
            self.builder().set_phi_src(phi, before, value);
            phis.push((Self::kind(wanted), phi));
        }
        self.values().extend(&phis);
        self.values().push((Self::COUNTER, counter));
        let done = self.builder().alu(Op::Ige, &[counter, most]);
        let leaves = self.leaves(done);
        self.builder().begin_if(leaves);
        self.builder().jump(JumpKind::Break);
        self.builder().end_if();
        let next = self.scope(depth, &wanted);
        let counted = self.builder().alu(Op::Iadd, &[counter, one]);
        let end = self.builder().current_block();
        self.builder().set_phi_src(counter, end, counted);
        for (&(_, phi), &value) in phis.iter().zip(&next) {
            self.builder().set_phi_src(phi, end, value);
        }
        self.builder().end_loop();
        self.values().truncate(kept);
        self.values().extend(phis);
    }
}
