//! Programs on lavapipe, where `ci/stock-mesa --lavapipe` has unpacked it and `ir3-vulkan` is built.

use ir3_harness::vulkan::mistakes::Mistake;
use ir3_harness::vulkan::oracle::{Verdict, observe};
use ir3_programs::vulkan::{Device, Library};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use std::collections::BTreeSet;
use std::time::Duration;

/// A fragment shader: a derivative, an input that is flat, a lane that ends, a texel, and two outputs.
const FRAGMENT: &str = "shader: MESA_SHADER_FRAGMENT
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32    %0 = load_const (0x00000000)
    32x2  %1 = @load_barycentric_pixel (interp_mode=INTERP_MODE_SMOOTH)
    32x4  %2 = @load_interpolated_input (%1, %0) (base=0, component=0, dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    32    %14 = mov %2.x
    32    %15 = mov %2.y
    32    %3 = @ddx_fine (%14)
    32    %4 = @ddy (%15)
    32x4  %5 = @load_frag_coord
    32    %6 = load_const (0x3f800000)
    32x2  %7 = f2i32 %5.xy
    32x4  %8 = (float32)txf %7 (coord), %0 (lod), 0 (texture)
    32    %9 = fadd %3, %4
    1     %10 = flt %5.x, %6
    1     %11 = flt %5.y, %6
    1     %12 = iand %10, %11
    @terminate_if (%12)
    32x3  %13 = vec3 %9, %2.z, %8.y
    @store_output (%13, %0) (base=0, range=1, wrmask=xyz, component=0, src_type=float32, io location=FRAG_RESULT_DATA0 slots=1)
    block b1:
}
";

/// A compute shader: sums of the texels of a storage image and their coordinates are stored to another one.
const IMAGES: &str = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
num_images: 2
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32    %0 = load_const (0x00000000)
    32x3  %1 = @load_local_invocation_id
    32    %2 = load_const (0x00000003)
    32    %3 = iand %1.x, %2
    32    %7 = load_const (0x00000002)
    32    %8 = ushr %1.x, %7
    32    %9 = iand %8, %2
    32    %10 = load_const (0x00000004)
    32    %11 = ushr %1.x, %10
    32x4  %4 = vec4 %3, %9, %11, %0
    32x4  %5 = @image_load (%0, %4, %0, %0) (image_dim=3D, image_array=false, format=r32g32b32a32_uint, access=none, range_base=0, dest_type=uint32)
    32    %6 = load_const (0x00000001)
    32x4  %12 = iadd %5, %4
    @image_store (%6, %4, %0, %12, %0) (image_dim=3D, image_array=false, format=r32g32b32a32_uint, access=none, range_base=0, src_type=uint32)
    block b1:
}
";

/// A vertex shader: an attribute, the numbers of the vertex and of the instance, and two outputs, of which one is the
/// position.
const VERTEX: &str = "shader: MESA_SHADER_VERTEX
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32    %0 = load_const (0x00000000)
    32x4  %1 = @load_input (%0) (base=0, range=1, component=0, dest_type=float32, io location=VERT_ATTRIB_GENERIC0 slots=1)
    32    %2 = @load_vertex_id
    32    %3 = @load_instance_id
    32    %4 = iadd %1.x, %2
    32    %5 = ixor %4, %3
    32x2  %6 = vec2 %5, %1.y
    32    %7 = iadd %2, %3
    32x4  %8 = vec4 %1.w, %7, %1.z, %5
    @store_output (%8, %0) (base=0, range=1, wrmask=xyzw, component=0, src_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    @store_output (%6, %0) (base=1, range=1, wrmask=xy, component=1, src_type=float32, io location=VARYING_SLOT_VAR1 slots=1)
    block b1:
}
";

/// A fragment shader: lanes of a quad read each other, also helper lanes.
const QUADS: &str = "shader: MESA_SHADER_FRAGMENT
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32    %0 = load_const (0x00000000)
    32x4  %1 = @load_frag_coord
    32x2  %2 = f2i32 %1.xy
    32    %3 = load_const (0x00000003)
    32    %8 = mov %2.x
    32    %4 = @quad_broadcast (%8, %3)
    32    %5 = mov %2.y
    32    %6 = @quad_swap_vertical (%5)
    32x2  %7 = vec2 %4, %6
    @store_output (%7, %0) (base=0, range=1, wrmask=xy, component=0, src_type=float32, io location=FRAG_RESULT_DATA0 slots=1)
    block b1:
}
";

/// A fragment shader that stores an input at an address that is the same in all lanes.
const UNIFORM_STORE: &str = "shader: MESA_SHADER_FRAGMENT
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32    %0 = load_const (0x00000000)
    32x2  %1 = @load_barycentric_pixel (interp_mode=INTERP_MODE_SMOOTH)
    32x4  %2 = @load_interpolated_input (%1, %0) (base=0, component=0, dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    32    %3 = mov %2.x
    @store_ssbo_ir3 (%3, %0, %0, %0) (base=0, wrmask=x)
    block b1:
}
";

fn lavapipe() -> Option<Device> {
    let device = Library::find(Some("lavapipe"))
        .ok()
        .and_then(|library| Device::open(&library, Duration::from_secs(10)).ok())
        .filter(|device| device.name().contains("llvmpipe"));
    if device.is_none() {
        eprintln!("no lavapipe, or no ir3-vulkan: nothing is tested (`ci/stock-mesa --lavapipe` unpacks it)");
    }
    device
}

/// The wrong store of llvmpipe is known where the quad's first pixel is not covered, and only what it explains.
#[test]
fn a_known_bug_of_llvmpipe_is_no_difference() {
    let Some(mut device) = lavapipe() else { return };
    let mut scratch = Scratch::default();
    let shader = ir3_compiler::nir::read(UNIFORM_STORE).expect("a program");
    let mistake = Mistake::by_name("load_interpolated_input-of-another-component");
    let mut found = BTreeSet::new();
    for (seed, helpers) in (0..8).flat_map(|seed| [0b1110, 0b1101, 0b1011, 0b0111].map(|helpers| (seed, helpers))) {
        let env = Env { helpers: Some(helpers), ..Env::from_seed(seed) };
        let seen = observe(&mut device, &shader, &env, None, &mut scratch).expect("a device").verdict;
        let is_known = matches!(seen, Verdict::Known("store-of-first-lane", _));
        assert!(seen == Verdict::Equal || is_known && helpers != 0b1110, "{seed}, {helpers:#x}: {seen}");
        found.insert((helpers == 0b1110, seen.name()));
        // With a mistake here nothing is known.
        let seen = observe(&mut device, &shader, &env, mistake.as_ref(), &mut scratch).expect("a device").verdict;
        assert!(!matches!(seen, Verdict::Known(..)), "{seen}");
    }
    assert!(found.contains(&(true, "equal")), "{found:?}");
    // A version without the bug has only equal words.
    if !found.contains(&(false, "known")) {
        eprintln!("{}: the store is right: docs/findings.md and the bug's row may be removed", device.name());
    }
}

#[test]
fn programs_of_all_stages_agree_with_lavapipe() {
    let Some(mut device) = lavapipe() else { return };
    let mut scratch = Scratch::default();
    let programs = [
        (VERTEX, &["load_vertex_id-is-load_instance_id", "load_input-of-another-component"][..]),
        (QUADS, &["quad_swap_vertical-is-quad_swap_horizontal"]),
        (FRAGMENT, &["ddx_fine-is-ddy_fine", "terminate_if-inverted", "txf-coordinates-exchanged"][..]),
        (IMAGES, &["image-coordinates-exchanged"]),
    ];
    for (text, mistakes) in programs {
        let shader = ir3_compiler::nir::read(text).expect("a program");
        let mut found = vec![false; mistakes.len()];
        for seed in 0..8 {
            let env = Env::from_seed(seed);
            let seen = observe(&mut device, &shader, &env, None, &mut scratch).expect("a device");
            assert_eq!(seen.verdict, Verdict::Equal, "{text}{seed}");
            assert!(seen.words.exact > 0 && seen.replaced.is_empty(), "{seed}: {:?}", seen.replaced);
            for (found, name) in found.iter_mut().zip(mistakes) {
                let mistake = Mistake::by_name(name).expect("a mistake");
                let seen = observe(&mut device, &shader, &env, Some(&mistake), &mut scratch).expect("a device");
                *found |= matches!(seen.verdict, Verdict::Differs(..));
            }
        }
        assert_eq!(found, vec![true; mistakes.len()], "{mistakes:?}");
    }
}
