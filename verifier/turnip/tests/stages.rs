//! Tessellation and geometry shaders with the stock driver, if it is installed: alone, and with the stages of their
//! module.

#![cfg(target_os = "linux")]

mod common;

use common::{compile, stock};
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl, MemoryModel,
    StorageClass, Word,
};
use std::path::PathBuf;

const LOCATION: Decoration = Decoration::Location;

/// A module under construction.
struct Maker {
    b: Builder,
    float: Word,
    vec4: Word,
    int: Word,
}

impl Maker {
    fn new() -> Self {
        let mut b = Builder::new();
        b.set_version(1, 5);
        for capability in [Capability::Shader, Capability::Tessellation, Capability::Geometry] {
            b.capability(capability);
        }
        b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
        let (float, int) = (b.type_float(32, None), b.type_int(32, 1));
        let vec4 = b.type_vector(float, 4);
        Self { b, float, vec4, int }
    }

    fn array(&mut self, element: Word, length: u32) -> Word {
        let length = self.b.constant_bit32(self.int, length);
        self.b.type_array(element, length)
    }

    fn variable(&mut self, class: StorageClass, ty: Word, decoration: Decoration, operand: Operand) -> Word {
        let pointer = self.b.type_pointer(None, class, ty);
        let variable = self.b.variable(pointer, None, class, None);
        self.b.decorate(variable, decoration, [operand]);
        variable
    }

    fn at(&mut self, class: StorageClass, ty: Word, location: u32) -> Word {
        self.variable(class, ty, LOCATION, Operand::LiteralBit32(location))
    }

    fn built_in(&mut self, class: StorageClass, ty: Word, built_in: BuiltIn) -> Word {
        self.variable(class, ty, Decoration::BuiltIn, Operand::BuiltIn(built_in))
    }

    /// An entry point with the code of a closure.
    fn entry(
        &mut self,
        model: ExecutionModel,
        variables: &[Word],
        modes: &[(ExecutionMode, &[u32])],
        code: impl FnOnce(&mut Self),
    ) {
        let void = self.b.type_void();
        let ty = self.b.type_function(void, []);
        let main = self.b.begin_function(void, None, FunctionControl::NONE, ty).expect("a function");
        self.b.begin_block(None).expect("a block");
        code(self);
        self.b.ret().expect("an end");
        self.b.end_function().expect("an end");
        self.b.entry_point(model, main, format!("{model:?}"), variables);
        for (mode, operands) in modes {
            self.b.execution_mode(main, *mode, operands);
        }
    }

    fn element(&mut self, class: StorageClass, ty: Word, base: Word, index: Word) -> Word {
        let pointer = self.b.type_pointer(None, class, ty);
        self.b.access_chain(pointer, None, base, [index]).expect("a pointer")
    }

    fn load(&mut self, ty: Word, pointer: Word) -> Word {
        self.b.load(ty, None, pointer, None, []).expect("a value")
    }

    fn store(&mut self, pointer: Word, value: Word) {
        self.b.store(pointer, value, None, []).expect("a store");
    }

    /// A control shader that scales its inputs, with an output of the patch.
    fn control(&mut self) {
        let (vec4, float, int) = (self.vec4, self.float, self.int);
        let (inputs, outputs) = (self.array(vec4, 32), self.array(vec4, 3));
        let input = self.at(StorageClass::Input, inputs, 0);
        let output = self.at(StorageClass::Output, outputs, 0);
        let patch = self.at(StorageClass::Output, float, 1);
        self.b.decorate(patch, Decoration::Patch, []);
        let index = self.built_in(StorageClass::Input, int, BuiltIn::InvocationId);
        let model = ExecutionModel::TessellationControl;
        let variables = [input, output, patch, index];
        self.entry(model, &variables, &[(ExecutionMode::OutputVertices, &[3])], |it| {
            let index = it.load(int, index);
            let from = it.element(StorageClass::Input, vec4, input, index);
            let value = it.load(vec4, from);
            let first = it.b.composite_extract(float, None, value, [0]).expect("a value");
            let scaled = it.b.vector_times_scalar(vec4, None, value, first).expect("a value");
            let to = it.element(StorageClass::Output, vec4, output, index);
            it.store(to, scaled);
            it.store(patch, first);
        });
    }

    /// An evaluation shader that adds the vertices of the patch.
    fn evaluation(&mut self) {
        let (vec4, float, int) = (self.vec4, self.float, self.int);
        let inputs = self.array(vec4, 32);
        let input = self.at(StorageClass::Input, inputs, 0);
        let patch = self.at(StorageClass::Input, float, 1);
        self.b.decorate(patch, Decoration::Patch, []);
        let place = self.built_in(StorageClass::Output, vec4, BuiltIn::Position);
        let modes = [ExecutionMode::Triangles, ExecutionMode::SpacingEqual, ExecutionMode::VertexOrderCcw];
        let model = ExecutionModel::TessellationEvaluation;
        self.entry(model, &[input, patch, place], &modes.map(|mode| (mode, &[][..])), |it| {
            let values = [0, 1].map(|at| {
                let index = it.b.constant_bit32(int, at);
                let from = it.element(StorageClass::Input, vec4, input, index);
                it.load(vec4, from)
            });
            let sum = it.b.f_add(vec4, None, values[0], values[1]).expect("a value");
            let factor = it.load(float, patch);
            let sum = it.b.vector_times_scalar(vec4, None, sum, factor).expect("a value");
            it.store(place, sum);
        });
    }

    /// A geometry shader that emits a point for each triangle.
    fn geometry(&mut self) {
        let (vec4, float, int) = (self.vec4, self.float, self.int);
        let inputs = self.array(vec4, 3);
        let colors = self.b.type_struct([vec4, float]);
        self.b.decorate(colors, Decoration::Block, []);
        let blocks = self.array(colors, 3);
        let input = self.at(StorageClass::Input, inputs, 3);
        let block = self.at(StorageClass::Input, blocks, 0);
        let output = self.at(StorageClass::Output, float, 0);
        let place = self.built_in(StorageClass::Output, vec4, BuiltIn::Position);
        let modes: [(ExecutionMode, &[u32]); 4] = [
            (ExecutionMode::Triangles, &[]),
            (ExecutionMode::Invocations, &[1]),
            (ExecutionMode::OutputPoints, &[]),
            (ExecutionMode::OutputVertices, &[1]),
        ];
        self.entry(ExecutionModel::Geometry, &[input, block, output, place], &modes, |it| {
            let two = it.b.constant_bit32(int, 2);
            let one = it.b.constant_bit32(int, 1);
            let from = it.element(StorageClass::Input, vec4, input, two);
            let value = it.load(vec4, from);
            it.store(place, value);
            let pointer = it.b.type_pointer(None, StorageClass::Input, float);
            let from = it.b.access_chain(pointer, None, block, [two, one]).expect("a pointer");
            let value = it.load(float, from);
            it.store(output, value);
            it.b.emit_vertex().expect("a vertex");
            it.b.end_primitive().expect("an end");
        });
    }
}

/// The log of a module.
fn log(name: &str, gpu: &str, make: impl FnOnce(&mut Maker)) -> Option<String> {
    let command = stock(gpu)?;
    let mut maker = Maker::new();
    make(&mut maker);
    let bytes: Vec<u8> = maker.b.module().assemble().iter().flat_map(|word| word.to_le_bytes()).collect();
    let path: PathBuf = std::env::temp_dir().join(format!("ir3-turnip-{name}-{gpu}-{}.spv", std::process::id()));
    std::fs::write(&path, bytes).expect("a file");
    let (_, mut answers) = compile(command, std::slice::from_ref(&path));
    std::fs::remove_file(&path).expect("to remove it");
    let answer = answers.remove(0);
    assert_eq!((&*answer.kind, &*answer.reason), ("compiled", ""), "{name} {gpu}: {}", answer.log);
    Some(answer.log)
}

/// The stages of a log whose code still has the stores or emits of the module: none was removed.
fn stages(log: &str) -> Vec<&str> {
    let heads = log.lines().filter_map(|line| line.split_once("NIR (final form) for ").map(|(_, rest)| rest));
    heads.filter_map(|rest| rest.split(' ').next()).collect()
}

#[test]
fn a_control_shader_has_a_vertex_and_an_evaluation_shader() {
    for gpu in ["a660", "a750", "a830"] {
        let Some(log) = log("control", gpu, Maker::control) else { return };
        let stages = stages(&log);
        assert!(stages.contains(&"TCS") && stages.contains(&"TES") && stages.contains(&"VERT"), "{gpu}: {stages:?}");
    }
}

#[test]
fn an_evaluation_shader_has_a_control_shader() {
    for gpu in ["a660", "a750", "a830"] {
        let Some(log) = log("evaluation", gpu, Maker::evaluation) else { return };
        let stages = stages(&log);
        assert!(stages.contains(&"TCS") && stages.contains(&"TES"), "{gpu}: {stages:?}");
    }
}

#[test]
fn both_of_a_module_are_compiled_together() {
    let make = |maker: &mut Maker| {
        maker.control();
        maker.evaluation();
    };
    let Some(log) = log("both", "a660", make) else { return };
    assert_eq!(stages(&log).iter().filter(|stage| **stage == "TES").count(), 1, "{log}");
}

#[test]
fn a_geometry_shader_has_a_vertex_shader_that_writes_its_inputs() {
    for gpu in ["a660", "a750", "a830"] {
        let Some(log) = log("geometry", gpu, Maker::geometry) else { return };
        let stages = stages(&log);
        assert!(stages.contains(&"GEOM") && stages.contains(&"VERT"), "{gpu}: {stages:?}");
    }
}
