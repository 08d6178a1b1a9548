//! Dispatch of intrinsics to the files that translate them.

use super::context::{Context, Word};
use super::{SelectError, arrays, atomic, consts, image, inputs, memory, outputs, subgroups, system_values, texture};
use crate::ir3::{Attrs, InstrData, InstrFlags, Opcode};
use crate::nir::{Intrinsic, IntrinsicOp, MemoryModes, MemorySemantics, Scope};

/// Translates one intrinsic.
pub(super) fn emit<'a>(ctx: &mut Context<'a>, intrinsic: &'a Intrinsic) -> Result<(), SelectError> {
    use IntrinsicOp::*;
    match intrinsic.op {
        LoadInput
        | LoadInterpolatedInput
        | LoadBarycentricPixel
        | LoadBarycentricCentroid
        | LoadBarycentricSample
        | LoadBarycentricModel
        | LoadBarycentricAtOffset
        | LoadBarycentricAtSample
        | LoadPerspCenterRhwIr3 => inputs::emit(ctx, intrinsic),
        StoreOutput | StorePerViewOutput => outputs::store(ctx, intrinsic),
        DeclReg | LoadReg | LoadRegIndirect | StoreReg | StoreRegIndirect => arrays::emit(ctx, intrinsic),
        LoadConstIr3 | StoreConstIr3 => consts::emit(ctx, intrinsic),

        GetSsboSize
        | GetUboSize
        | LoadConstant
        | LoadGlobal
        | LoadGlobalConstant
        | LoadPushConstant
        | LoadScratch
        | LoadShared
        | LoadSsbo
        | LoadUbo
        | LoadUboVec4
        | LoadUniform
        | StoreGlobal
        | StoreScratch
        | StoreShared
        | StoreSsbo
        | LoadGlobalIr3
        | LoadSharedIr3
        | LoadSsboIr3
        | StoreGlobalIr3
        | StoreSharedIr3
        | StoreSsboIr3
        | CopyUboToUniformIr3
        | CopyGlobalToUniformIr3
        | CopyPushConstToUniformIr3
        | PrefetchUboIr3 => memory::emit(ctx, intrinsic),
        GlobalAtomic
        | GlobalAtomicSwap
        | SharedAtomic
        | SharedAtomicSwap
        | SsboAtomic
        | SsboAtomicSwap
        | GlobalAtomicIr3
        | GlobalAtomicSwapIr3
        | SsboAtomicIr3
        | SsboAtomicSwapIr3
        | ImageAtomic
        | ImageAtomicSwap
        | BindlessImageAtomic
        | BindlessImageAtomicSwap => atomic::emit(ctx, intrinsic),
        ImageFormat | ImageLevels | ImageLoad | ImageSamples | ImageSize | ImageStore | BindlessImageLoad
        | BindlessImageSize | BindlessImageStore => image::emit(ctx, intrinsic),
        LoadSamplePosFromId => texture::emit_sample_position(ctx, intrinsic),
        PrefetchTexIr3 | PrefetchSamIr3 => texture::emit_prefetch(ctx, intrinsic),
        // A handle is its descriptor's index; its users read the set from this instruction.
        BindlessResourceIr3 => {
            if let Some(def) = intrinsic.def {
                let word = ctx.word(intrinsic.srcs[0], 0);
                ctx.set_word(def, 0, word);
            }
            Ok(())
        }

        Ddx
        | DdxCoarse
        | DdxFine
        | Ddy
        | DdyCoarse
        | DdyFine
        | Ballot
        | BallotRelaxed
        | Elect
        | ElectAnyIr3
        | VoteAll
        | VoteAny
        | ReadFirstInvocation
        | ReadInvocation
        | ReadInvocationCondIr3
        | ReadGetlastIr3
        | BrcstActiveIr3
        | InclusiveScanClustersIr3
        | ExclusiveScanClustersIr3
        | ReduceClustersIr3
        | Reduce
        | InclusiveScan
        | ExclusiveScan
        | QuadBroadcast
        | QuadSwapHorizontal
        | QuadSwapVertical
        | QuadSwapDiagonal
        | Rotate
        | Shuffle
        | ShuffleUp
        | ShuffleDown
        | ShuffleXor
        | ShuffleUpUniformIr3
        | ShuffleDownUniformIr3
        | ShuffleXorUniformIr3
        | VoteIeq
        | VoteFeq
        | InverseBallot
        | FirstInvocation
        | LastInvocation => subgroups::emit(ctx, intrinsic),

        Demote => kill(ctx, Opcode::Demote, None),
        DemoteIf => kill(ctx, Opcode::Demote, Some(intrinsic)),
        Terminate => kill(ctx, Opcode::Kill, None),
        TerminateIf => kill(ctx, Opcode::Kill, Some(intrinsic)),
        Barrier => {
            barrier(ctx, intrinsic);
            Ok(())
        }
        Nop => Ok(()),
        // The branch that reads it becomes `shps`.
        PreambleStartIr3 => {
            ctx.stored_consts = Some(Vec::new());
            if let Some(def) = intrinsic.def {
                ctx.set_word(def, 0, Word::Immediate(1));
            }
            Ok(())
        }
        PreambleEndIr3 => {
            ctx.stored_consts = None;
            ctx.builder().effect(Opcode::Shpe, &[]);
            Ok(())
        }
        _ => system_values::emit(ctx, intrinsic),
    }
}

/// `kill` or `demote`, of all active lanes or of those where a bool is true.
fn kill(ctx: &mut Context<'_>, opcode: Opcode, condition: Option<&Intrinsic>) -> Result<(), SelectError> {
    let predicate = match condition {
        Some(intrinsic) => ctx.predicate(intrinsic.srcs[0]),
        None => {
            let one = ctx.immediate(1, ctx.target.bools_are_half());
            ctx.predicate_of(one)
        }
    };
    ctx.builder().effect(opcode, &[predicate]);
    Ok(())
}

/// A barrier is a fence for the memories that it orders and, if it synchronizes a workgroup, `bar`.
fn barrier(ctx: &mut Context<'_>, intrinsic: &Intrinsic) {
    let modes = intrinsic.indices.memory_modes();
    let older = ctx.target.generation.number() < 6;
    let views = modes.intersects(MemoryModes::SSBO | MemoryModes::IMAGE);
    let buffers = views || modes.contains(MemoryModes::GLOBAL);
    let shared = modes.contains(MemoryModes::SHARED);
    let orders = intrinsic.indices.memory_semantics().intersects(MemorySemantics::ACQUIRE | MemorySemantics::RELEASE);
    if orders && (buffers || shared) {
        let mut data = InstrData::new(Opcode::Fence);
        data.attrs = Attrs::Fence { r: true, w: true, g: buffers, l: views || (shared && older) };
        ctx.push(data);
    }
    // A wider scope than a workgroup waits for that, too.
    if matches!(intrinsic.indices.execution_scope(), Scope::Workgroup | Scope::QueueFamily | Scope::Device) {
        let mut data = InstrData::new(Opcode::Bar);
        data.flags = InstrFlags::SS | InstrFlags::SY;
        data.attrs = Attrs::Fence { r: false, w: false, g: true, l: older };
        ctx.push(data);
    }
}
