//! Cases of images and textures.

use super::builder::{Cases, HANDLES, Handle, case, vertex_case};
use ir3_compiler::nir::{Access, AluType, BaseType, Def, Format, ImageDim, Index, IntrinsicOp, TexOp, TexSrcKind};

pub fn images(cases: &mut Cases) {
    let dims = [
        (ImageDim::Dim1D, false),
        (ImageDim::Dim1D, true),
        (ImageDim::Buf, false),
        (ImageDim::Dim2D, false),
        (ImageDim::Dim2D, true),
        (ImageDim::Dim3D, false),
        (ImageDim::Cube, false),
        (ImageDim::Cube, true),
    ];
    for &handle in HANDLES {
        for (dim, array) in dims {
            for (base, bits) in
                [(BaseType::Float, 32), (BaseType::Float, 16), (BaseType::Int, 16), (BaseType::Uint, 32)]
            {
                for access in [Access::empty(), Access::REORDERABLE] {
                    let name = format!("image {handle:?} {} {array} {base:?}{bits} {access:?}", dim.name());
                    case(cases, name, |s| {
                        let image = s.handle(handle);
                        let zero = s.constant(0);
                        let coordinates: Vec<Def> = (0..4).map(|_| s.below(8)).collect();
                        let coordinates = s.b.vec(&coordinates);
                        let ty = AluType::new(base, bits);
                        let [dim, array] = [Index::ImageDim(dim), Index::ImageArray(array)];
                        if access.is_empty() {
                            let value = s.random_vec(bits, 4);
                            let srcs = [image, coordinates, zero, value, zero];
                            let indices = [dim.clone(), array.clone(), Index::SrcType(ty)];
                            s.b.intrinsic(IntrinsicOp::ImageStore, 4, bits, &srcs, indices);
                        }
                        let srcs = [image, coordinates, zero, zero];
                        let indices = [dim, array, Index::DestType(ty), Index::Access(access)];
                        let def = s.b.intrinsic(IntrinsicOp::ImageLoad, 4, bits, &srcs, indices);
                        s.result(def);
                    });
                }
            }
        }
        for format in [Format::R32Float, Format::R16G16Float, Format::R11G11B10Float, Format::R8G8B8A8Unorm] {
            case(cases, format!("image {handle:?} {}", format.name()), |s| {
                let image = s.handle(handle);
                let zero = s.constant(0);
                let coordinates: Vec<Def> = (0..4).map(|_| s.below(8)).collect();
                let coordinate = s.b.vec(&coordinates);
                let value = s.random_vec(32, 4);
                let ty = AluType::new(BaseType::Float, 32);
                let dim = Index::ImageDim(ImageDim::Buf);
                let indices = [dim.clone(), Index::Format(format), Index::SrcType(ty)];
                let srcs = [image, coordinate, zero, value, zero];
                s.b.intrinsic(IntrinsicOp::ImageStore, 4, 32, &srcs, indices);
                let indices = [dim, Index::Format(format), Index::DestType(ty)];
                let def = s.b.intrinsic(IntrinsicOp::ImageLoad, 4, 32, &[image, coordinate, zero, zero], indices);
                s.result(def);
            });
        }
        for components in 1..=3 {
            case(cases, format!("image_size {handle:?} {components}"), |s| {
                let image = s.handle(handle);
                let zero = s.constant(0);
                let dim = [ImageDim::Dim1D, ImageDim::Dim2D, ImageDim::Dim3D][components - 1];
                let indices = [Index::ImageDim(dim)];
                let def = s.b.intrinsic(IntrinsicOp::ImageSize, components as u8, 32, &[image, zero], indices);
                s.result(def);
            });
        }
    }
}

/// The form in which a texture and its sampler are named.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Names {
    Numbers(u32, u32),
    Offsets,
    Handles(Handle, Handle),
}

pub fn textures(cases: &mut Cases) {
    use TexSrcKind as S;
    let names = [
        Names::Numbers(1, 2),
        Names::Numbers(20, 3),
        Names::Offsets,
        Names::Handles(Handle::Bindless(1, 3), Handle::Bindless(1, 5)),
        Names::Handles(Handle::Bindless(1, 3), Handle::Bindless(2, 5)),
        Names::Handles(Handle::Bindless(1, 77), Handle::Varying(1)),
        Names::Handles(Handle::Varying(0), Handle::Varying(3)),
    ];
    let ops = [
        TexOp::Tex,
        TexOp::TexPrefetch,
        TexOp::Txb,
        TexOp::Txl,
        TexOp::Txd,
        TexOp::Txf,
        TexOp::TxfMs,
        TexOp::Tg4,
        TexOp::Lod,
        TexOp::Txs,
        TexOp::QueryLevels,
        TexOp::TextureSamples,
    ];
    for name in names {
        for op in ops {
            for coords in 1..=4u8 {
                for extras in 0..8 {
                    for half in [false, true] {
                        let (comparator, offset, projector) = (extras & 1 != 0, extras & 2 != 0, extras & 4 != 0);
                        let query = matches!(op, TexOp::Txs | TexOp::QueryLevels | TexOp::TextureSamples);
                        if (query || op == TexOp::Lod) && (extras != 0 || (query && half)) {
                            continue;
                        }
                        let bits = if half { 16 } else { 32 };
                        let text = format!("{} {name:?} {coords} {comparator} {offset} {projector} {bits}", op.name());
                        vertex_case(cases, text, |s| {
                            let mut srcs = Vec::new();
                            if !query {
                                srcs.push((S::Coord, s.random_vec(bits, coords)));
                            }
                            if comparator {
                                srcs.push((S::Comparator, s.random_of(bits)));
                            }
                            if projector {
                                srcs.push((S::Projector, s.random_of(bits)));
                            }
                            let dims = if coords > 2 { coords - 1 } else { coords };
                            match op {
                                TexOp::Txb => srcs.push((S::Bias, s.random_of(bits))),
                                TexOp::Txl => srcs.push((S::Lod, s.random_of(bits))),
                                TexOp::Txf if coords != 2 => {
                                    let zero = s.b.constant(bits, 0);
                                    srcs.push((S::Lod, zero));
                                }
                                TexOp::Txs if coords != 1 => srcs.push((S::Lod, s.random())),
                                TexOp::TxfMs => srcs.push((S::MsIndex, s.random_of(bits))),
                                TexOp::Txd => {
                                    srcs.push((S::Ddx, s.random_vec(bits, dims)));
                                    srcs.push((S::Ddy, s.random_vec(bits, dims)));
                                }
                                _ => {}
                            }
                            if offset {
                                srcs.push((S::Offset, s.random_vec(bits, dims)));
                            }
                            let (mut texture, mut sampler) = (0, 0);
                            match name {
                                Names::Numbers(t, p) => (texture, sampler) = (t, p),
                                Names::Offsets => {
                                    texture = 3;
                                    srcs.push((S::TextureOffset, s.below(4)));
                                    srcs.push((S::SamplerOffset, s.below(4)));
                                }
                                Names::Handles(t, p) => {
                                    srcs.push((S::TextureHandle, s.handle(t)));
                                    if op.needs_sampler() {
                                        srcs.push((S::SamplerHandle, s.handle(p)));
                                    }
                                }
                            }
                            if !op.needs_sampler() {
                                sampler = 0;
                            }
                            let ty = match op {
                                _ if query => AluType::INT32,
                                TexOp::Lod | TexOp::Tex => AluType::new(BaseType::Float, bits),
                                TexOp::Txf => AluType::new(BaseType::Uint, bits),
                                _ => AluType::FLOAT32,
                            };
                            let components = match op {
                                TexOp::Lod => 2,
                                TexOp::QueryLevels | TexOp::TextureSamples => 1,
                                TexOp::Txs => coords.min(3),
                                _ if comparator && op != TexOp::Tg4 => 1,
                                _ => 4,
                            };
                            let def = s.b.tex(op, ty, components, |tex| {
                                tex.srcs.extend(srcs);
                                tex.texture_index = texture;
                                tex.sampler_index = sampler;
                                tex.component = coords - 1;
                                // Lanes have different numbers.
                                let varies = name == Names::Offsets;
                                (tex.texture_non_uniform, tex.sampler_non_uniform) = (varies, varies);
                            });
                            s.result(Some(def));
                        });
                    }
                }
            }
        }
    }
}
