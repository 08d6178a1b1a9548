//! Programs on lavapipe, where `ci/stock-mesa --lavapipe` has unpacked it and `ir3-vulkan` is built.

use ir3_harness::vulkan::mistakes::Mistake;
use ir3_harness::vulkan::oracle::{Verdict, observe};
use ir3_programs::vulkan::{Device, Library};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
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

/// A compute shader: texels of a storage image are loaded, and stored to others.
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
    32x4  %4 = vec4 %1.x, %3, %0, %0
    32x4  %5 = @image_load (%0, %4, %0, %0) (image_dim=2D, image_array=false, format=r32g32b32a32_uint, access=none, range_base=0, dest_type=uint32)
    32    %6 = load_const (0x00000001)
    @image_store (%6, %4, %0, %5, %0) (image_dim=2D, image_array=false, format=r32g32b32a32_uint, access=none, range_base=0, src_type=uint32)
    block b1:
}
";

#[test]
fn fragments_and_images_agree_with_lavapipe() {
    let device = Library::find(Some("lavapipe"))
        .ok()
        .and_then(|library| Device::open(&library, Duration::from_secs(10)).ok())
        .filter(|device| device.name().contains("llvmpipe"));
    let Some(mut device) = device else {
        eprintln!("no lavapipe, or no ir3-vulkan: nothing is tested (`ci/stock-mesa --lavapipe` unpacks it)");
        return;
    };
    let mut scratch = Scratch::default();
    let programs = [
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
