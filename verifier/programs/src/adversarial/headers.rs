//! Pairs about the properties of a whole program: stage, workgroup size, the sizes of shared and of scratch memory, the
//! number of buffers.

use super::PairPlan;
use super::shader::Shader;
use ir3_compiler::ir3::ShaderStage;
use ir3_compiler::pipeline;
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::support::random::Random;
use std::borrow::Cow;

/// A program of a few instructions with this header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    machine_language: bool,
    stage: Option<ShaderStage>,
    workgroup: [u32; 3],
    shared: u32,
    scratch: u32,
    buffers: u32,
    /// The accesses to shared memory: 0 none, 1 a store, 2 a store and a load.
    accesses: usize,
    /// The immediate of the addition.
    adds: u8,
    added: bool,
}

impl PairPlan for Headers {
    fn random(random: &mut Random) -> Self {
        Self {
            machine_language: random.chance(60),
            stage: Some(ShaderStage::Compute),
            workgroup: [[64, 1, 1], [32, 2, 1], [128, 1, 1], [8, 8, 1]][random.below(4)],
            shared: [512, 1024][random.below(2)],
            scratch: [0, 64, 128][random.below(3)],
            buffers: 2 + random.below(3) as u32,
            accesses: random.below(3),
            adds: random.below(2) as u8,
            added: random.chance(50),
        }
    }

    fn change(&mut self, random: &mut Random) -> Option<&'static str> {
        let change = match random.below(7) {
            0 | 1 => {
                self.workgroup = [[64, 1, 1], [32, 2, 1], [128, 1, 1], [8, 8, 1]][random.below(4)];
                "workgroup size"
            }
            2 => {
                self.shared = [512, 1024, 2048][random.below(3)];
                "shared memory"
            }
            3 => {
                self.scratch = [0, 64, 128, 256][random.below(4)];
                "scratch memory"
            }
            4 if self.machine_language => {
                self.stage = [Some(ShaderStage::Vertex), Some(ShaderStage::Fragment)][random.below(2)];
                "stage"
            }
            5 if !self.machine_language => {
                self.buffers += 1;
                "number of buffers"
            }
            _ => {
                self.added = !self.added;
                "an addition"
            }
        };
        Some(change)
    }

    fn differs(&self, target: &Self) -> bool {
        self.stage != target.stage
            || self.workgroup != target.workgroup
            || target.shared < self.shared
            || target.buffers < self.buffers
    }

    fn program(&self, machine: &Target) -> Option<Snapshot> {
        let mut s = Shader::compute(64);
        let info = &mut s.b.shader_mut().info;
        info.workgroup_size = Some(self.workgroup);
        (info.shared_size, info.scratch_size, info.num_ssbos) = (self.shared, self.scratch, self.buffers);
        let lane = s.lane();
        let buffer = s.number(0);
        let mut value = s.load(buffer, lane);
        if self.accesses > 0 {
            s.store_shared(lane, value);
        }
        if self.accesses > 1 {
            value = s.load_shared(lane);
        }
        if self.added {
            value = s.with(ir3_compiler::nir::Op::Iadd, value, self.adds.into());
        }
        let out = s.number(1);
        s.store(out, lane, value);
        let Snapshot::Nir(shader) = s.finish()? else { return None };
        if !self.machine_language {
            return Some(Snapshot::Nir(shader));
        }
        let mut program = pipeline::select(&Cow::Borrowed(&*shader), machine).ok()?;
        program.stage = self.stage;
        Some(Snapshot::Ir3(Box::new(program)))
    }
}
