//! Divergence: which values may differ between the lanes that compute them together.
//!
//! A walk over the tree of control flow, loops until nothing changes. A value diverges if what computes it reads the lane
//! (or memory that other lanes write), or if one of its sources diverges where it is read. Beside that
//!
//! - a phi behind an if diverges if the condition does and at least two of its sources are defined;
//! - a phi of a loop's header diverges if lanes go back from different places;
//! - lanes leave a loop in different iterations if a `break`, or a `continue` in front of it, stands in a branch where
//!   lanes have parted inside the loop: then the phis behind the loop diverge, and so does any read from outside of a
//!   value from inside.

use super::function::{Block, CfNode, Def, Function, InstrData, Intrinsic, JumpKind, Loop};
use super::index::Access;
use super::intrinsic::IntrinsicOp;
use cranelift_entity::SecondaryMap;

/// What diverges in a function.
#[derive(Clone, Debug)]
pub struct Divergence {
    divergent: SecondaryMap<Def, bool>,
    /// The loop that defines a value, plus one: an index of `loops`.
    home: SecondaryMap<Def, u32>,
    loops: Vec<LoopState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LoopState {
    /// The loop around, plus one.
    outer: u32,
    /// Lanes have parted inside the loop where the walk is.
    parted: bool,
    /// Some lanes go on to the next iteration while others are still in this one.
    continues: bool,
    /// Lanes leave in different iterations.
    breaks: bool,
}

impl Divergence {
    /// Analyses a function.
    pub fn new(function: &Function) -> Self {
        let mut this = Self {
            divergent: SecondaryMap::with_capacity(function.defs.len()),
            home: SecondaryMap::with_capacity(function.defs.len()),
            loops: Vec::new(),
        };
        let mut walk = Walk { function, this: &mut this, next_loop: 0, current: 0, changed: false };
        walk.list(&function.body, Join::Straight);
        // Values that are read outside of their loop may have been known to diverge too late.
        while std::mem::take(&mut walk.changed) {
            (walk.next_loop, walk.current) = (0, 0);
            walk.list(&function.body, Join::Straight);
        }
        this
    }

    /// Whether lanes may have different values where `def` is computed.
    pub fn is_divergent(&self, def: Def) -> bool {
        self.divergent[def]
    }
}

/// How control came to a block with phis.
#[derive(Clone, Copy)]
enum Join {
    /// From one place, or from several that no lanes parted for.
    Straight,
    /// From the arms of an if.
    If { divergent: bool },
    /// From in front of a loop, and from inside.
    Header,
    /// From a loop, by its number.
    Exit(u32),
}

struct Walk<'a> {
    function: &'a Function,
    this: &'a mut Divergence,
    /// Loops are numbered in source order, in each walk anew.
    next_loop: u32,
    /// The loop around, plus one.
    current: u32,
    changed: bool,
}

impl Walk<'_> {
    fn list(&mut self, list: &[CfNode], first: Join) {
        let mut join = first;
        for node in list {
            join = match node {
                CfNode::Block(block) => {
                    self.block(*block, join);
                    Join::Straight
                }
                CfNode::If(node) => {
                    let divergent = self.reads_divergent(node.condition);
                    let around = self.current.checked_sub(1).map(|index| index as usize);
                    let parted = around.map(|index| self.this.loops[index].parted);
                    if let Some(index) = around {
                        self.this.loops[index].parted |= divergent;
                    }
                    self.list(&node.then, Join::Straight);
                    self.list(&node.otherwise, Join::Straight);
                    if let (Some(index), Some(parted)) = (around, parted) {
                        self.this.loops[index].parted = parted;
                    }
                    Join::If { divergent }
                }
                CfNode::Loop(node) => Join::Exit(self.repeat(node)),
            };
        }
    }

    /// Walks over a loop until nothing changes; returns its number.
    fn repeat(&mut self, node: &Loop) -> u32 {
        let number = self.next_loop;
        let outer = std::mem::replace(&mut self.current, number + 1);
        if self.this.loops.len() <= number as usize {
            self.this.loops.push(LoopState { outer, ..LoopState::default() });
        }
        let changed = self.changed;
        loop {
            self.changed = false;
            self.next_loop = number + 1;
            self.this.loops[number as usize].parted = false;
            self.list(&node.body, Join::Header);
            if let Some(continuing) = &node.continuing {
                self.list(continuing, Join::Straight);
            }
            if !self.changed {
                break;
            }
        }
        self.changed = changed;
        self.current = outer;
        number
    }

    fn block(&mut self, block: Block, join: Join) {
        let function = self.function;
        for &instr in &function.blocks[block].instrs {
            let data = &function.instrs[instr];
            if let InstrData::Jump(kind) = data {
                self.jump(*kind);
            }
            let Some(def) = data.def() else { continue };
            self.this.home[def] = self.current;
            if !self.this.divergent[def] && self.computes_divergent(data, join) {
                self.this.divergent[def] = true;
                self.changed = true;
            }
        }
    }

    fn jump(&mut self, kind: JumpKind) {
        let Some(index) = self.current.checked_sub(1) else { return };
        let state = &mut self.this.loops[index as usize];
        let flag = match kind {
            JumpKind::Continue if state.parted => &mut state.continues,
            JumpKind::Break if state.parted || state.continues => &mut state.breaks,
            _ => return,
        };
        self.changed |= !std::mem::replace(flag, true);
    }

    /// Whether a read of `def` here may find different values in different lanes.
    fn reads_divergent(&self, def: Def) -> bool {
        if self.this.divergent[def] {
            return true;
        }
        // From the loop that defines it outwards, until one is around the reader too.
        let mut home = self.this.home[def];
        while let Some(index) = home.checked_sub(1) {
            if self.is_inside(home) {
                return false;
            }
            let state = &self.this.loops[index as usize];
            if state.breaks {
                return true;
            }
            home = state.outer;
        }
        false
    }

    /// Whether the walk is inside a loop (its number plus one).
    fn is_inside(&self, other: u32) -> bool {
        let mut at = self.current;
        while let Some(index) = at.checked_sub(1) {
            if at == other {
                return true;
            }
            at = self.this.loops[index as usize].outer;
        }
        false
    }

    fn computes_divergent(&self, data: &InstrData, join: Join) -> bool {
        let any_src = |walk: &Self| {
            let mut any = false;
            data.for_each_src(|def| any |= walk.reads_divergent(def));
            any
        };
        match data {
            InstrData::Phi { srcs, .. } => {
                let undefined =
                    |def: Def| matches!(self.function.instrs[self.function.defs[def].instr], InstrData::Undef { .. });
                let defined = srcs.iter().filter(|&&(_, def)| !undefined(def)).count();
                let parted = match join {
                    Join::Straight => false,
                    Join::If { divergent } => divergent && defined > 1,
                    Join::Header => self.state(self.current).is_some_and(|state| state.continues),
                    Join::Exit(number) => self.state(number + 1).is_some_and(|state| state.breaks),
                };
                // A source is read where it comes from: in the loop, if the phi is behind one.
                parted
                    || srcs.iter().any(|&(_, def)| match join {
                        Join::Exit(_) => self.this.divergent[def],
                        _ => self.reads_divergent(def),
                    })
            }
            InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Jump(_) => false,
            InstrData::Alu(_) | InstrData::Tex(_) => any_src(self),
            InstrData::Intrinsic(intrinsic) => match origin(intrinsic) {
                Origin::Uniform => false,
                Origin::Sources => any_src(self),
                Origin::Lane => true,
            },
        }
    }

    fn state(&self, number: u32) -> Option<&LoopState> {
        self.this.loops.get(number.checked_sub(1)? as usize)
    }
}

/// Where the result of an intrinsic comes from.
enum Origin {
    /// It is the same in all lanes.
    Uniform,
    /// It is the same if the sources are.
    Sources,
    /// It is the lane's, or may be.
    Lane,
}

fn origin(intrinsic: &Intrinsic) -> Origin {
    use IntrinsicOp::*;
    let whole_wave = || matches!(intrinsic.indices.cluster_size(), 0 | 64..);
    match intrinsic.op {
        LoadWorkgroupId
        | LoadBaseWorkgroupId
        | LoadNumWorkgroups
        | LoadWorkgroupSize
        | LoadSubgroupSize
        | LoadSubgroupId
        | LoadNumSubgroups
        | LoadSubgroupIdShiftIr3
        | LoadBaseVertex
        | LoadBaseInstance
        | LoadFirstVertex
        | LoadDrawId
        | LoadPreamble
        | PreambleStartIr3
        | LoadFragSize
        | LoadPatchVerticesIn
        | VoteAny
        | VoteAll
        | VoteIeq
        | VoteFeq
        | Ballot
        | BallotRelaxed
        | FirstInvocation
        | LastInvocation
        | ReadFirstInvocation
        | ReadInvocationCondIr3
        | ReadGetlastIr3
        | ReadInvocation => Origin::Uniform,
        Reduce if whole_wave() => Origin::Uniform,
        ReduceClustersIr3 => Origin::Uniform,
        LoadConstIr3
        | LoadUniform
        | LoadPushConstant
        | LoadConstant
        | LoadGlobalConstant
        | LoadUbo
        | LoadUboVec4
        | BindlessResourceIr3
        | GetSsboSize
        | GetUboSize
        | ImageSize
        | ImageSamples
        | ImageLevels
        | ImageFormat
        | BallotFindLsb
        | BallotFindMsb
        | BallotBitCountReduce
        | BallotBitfieldExtract => Origin::Sources,
        LoadSsbo | LoadSsboIr3 | LoadGlobal | LoadGlobalIr3 | ImageLoad
            if intrinsic.indices.access().contains(Access::REORDERABLE) =>
        {
            Origin::Sources
        }
        _ => Origin::Lane,
    }
}
