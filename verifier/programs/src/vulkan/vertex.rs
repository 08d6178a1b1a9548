//! The vertex shader of a draw: a triangle that covers the framebuffer, and the values of inputs at its corners.

use crate::spirv::StageInput;
use ir3_semantics::environment::env::Env;
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionModel, FunctionControl, MemoryModel, StorageClass, Word,
};

/// The corners of the triangle, in pixels from the center of the first one.
const CORNERS: [[f32; 2]; 3] = [[-2.0, -2.0], [6.0, -2.0], [-2.0, 6.0]];
/// Its depth.
const DEPTH: f32 = 0.5;

/// The values of an input's component at the corners: those of its plane in the environment, or its word at each of
/// them.
fn at_corners(env: &Env, input: StageInput, component: u32) -> [u32; 3] {
    let planes = env.varying(4 * input.location + component, 0);
    if !input.is_float {
        return [planes[0]; 3];
    }
    let [first, x, y] = planes.map(f32::from_bits);
    CORNERS.map(|[to_x, to_y]| (first + to_x * x + to_y * y).to_bits())
}

/// The words of the vertex shader.
#[must_use]
pub(super) fn shader(inputs: &[StageInput], env: &Env) -> Vec<u32> {
    let mut b = Builder::new();
    b.set_version(1, 3);
    b.capability(Capability::Shader);
    b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
    let (void, boolean, word, float) = (b.type_void(), b.type_bool(), b.type_int(32, 0), b.type_float(32, None));
    let vectors = [b.type_vector(word, 4), b.type_vector(float, 4)];
    let signed = b.type_int(32, 1);
    let variable = |b: &mut Builder, class: StorageClass, ty: Word| {
        let pointer = b.type_pointer(None, class, ty);
        b.variable(pointer, None, class, None)
    };
    let number = variable(&mut b, StorageClass::Input, signed);
    b.decorate(number, Decoration::BuiltIn, [Operand::BuiltIn(BuiltIn::VertexIndex)]);
    let position = variable(&mut b, StorageClass::Output, vectors[1]);
    b.decorate(position, Decoration::BuiltIn, [Operand::BuiltIn(BuiltIn::Position)]);
    let mut interface = vec![number, position];
    // The viewport has 16 × 16 pixels around the center of the triangle's sides: the triangle is within it, so a device
    // does not clip it to several ones, which do not share quads.
    let place = |of: [f32; 2]| [(of[0] - 2.0) / 8.0, (of[1] - 2.0) / 8.0, DEPTH, 1.0].map(f32::to_bits);
    let mut outputs = vec![(position, true, CORNERS.map(place))];
    for &input in inputs {
        let id = variable(&mut b, StorageClass::Output, vectors[usize::from(input.is_float)]);
        b.decorate(id, Decoration::Location, [Operand::LiteralBit32(input.location)]);
        if !input.is_float {
            b.decorate(id, Decoration::Flat, []);
        }
        interface.push(id);
        let components = [0, 1, 2, 3].map(|component| at_corners(env, input, component));
        let corners = [0, 1, 2].map(|corner| components.map(|values| values[corner]));
        outputs.push((id, input.is_float, corners));
    }
    let function = b.type_function(void, []);
    let mut constants = Vec::new();
    for (id, is_float, corners) in outputs {
        let scalar = if is_float { float } else { word };
        let vector = vectors[usize::from(is_float)];
        let corners = corners.map(|values| {
            let parts: Vec<Word> = values.iter().map(|&value| b.constant_bit32(scalar, value)).collect();
            b.constant_composite(vector, parts)
        });
        constants.push((id, scalar, vector, corners));
    }
    let [zero, one] = [0, 1].map(|value| b.constant_bit32(signed, value));
    // Only a module without a function or a block refuses these.
    let expected = "a block is open";
    let main = b.begin_function(void, None, FunctionControl::NONE, function).expect("no function is open");
    b.begin_block(None).expect("a function is open");
    let number = b.load(signed, None, number, None, []).expect(expected);
    let is_first = b.i_equal(boolean, None, number, zero).expect(expected);
    let is_second = b.i_equal(boolean, None, number, one).expect(expected);
    for (id, scalar, vector, corners) in constants {
        let mut parts = Vec::new();
        for component in 0..4 {
            let [first, second, third] =
                corners.map(|it| b.composite_extract(scalar, None, it, [component]).expect(expected));
            let other = b.select(scalar, None, is_second, second, third).expect(expected);
            parts.push(b.select(scalar, None, is_first, first, other).expect(expected));
        }
        let value = b.composite_construct(vector, None, parts).expect(expected);
        b.store(id, value, None, []).expect(expected);
    }
    b.ret().expect(expected);
    b.end_function().expect("a function is open");
    b.entry_point(ExecutionModel::Vertex, main, "main", interface);
    b.module().assemble()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_are_of_the_plane() {
        let planes = [1.5_f32, 0.25, -0.5].map(f32::to_bits);
        let env = Env { varyings: [(5, planes)].into(), ..Env::from_seed(1) };
        let corners = |is_float| at_corners(&env, StageInput { location: 1, is_float }, 1);
        assert_eq!(corners(true).map(f32::from_bits), [2.0, 4.0, -2.0]);
        assert_eq!(corners(false), [1.5_f32.to_bits(); 3]);
    }

    #[test]
    fn the_module_has_all_inputs() {
        let inputs = [StageInput { location: 0, is_float: true }, StageInput { location: 3, is_float: false }];
        let module = rspirv::dr::load_words(shader(&inputs, &Env::from_seed(1))).expect("a module");
        let locations = module.annotations.iter().filter_map(|it| match &it.operands[1..] {
            [Operand::Decoration(Decoration::Location), Operand::LiteralBit32(location)] => Some(*location),
            _ => None,
        });
        assert_eq!(locations.collect::<Vec<_>>(), [0, 3]);
    }
}
