//! The sequences, run on simulated register files and compared with what a parallel copy means.

use super::*;
use std::collections::HashMap;

/// Register files in units of 16 bits: general (merged or full), half (separate), shared.
#[derive(Clone, PartialEq)]
struct Files {
    merged: bool,
    units: [Vec<u16>; 3],
}

impl Files {
    fn new(merged: bool) -> Self {
        let file = |salt: u16| (0..UNITS as u16).map(|i| i.wrapping_mul(0x9e37) ^ salt).collect();
        Self { merged, units: [file(0), file(0x5a5a), file(0x3c3c)] }
    }

    fn space(&self, class: RegClass) -> usize {
        match class.file {
            RegFile::Shared => 2,
            _ if class.half && !self.merged => 1,
            _ => 0,
        }
    }

    fn read(&self, class: RegClass, reg: PhysReg) -> u32 {
        let file = &self.units[self.space(class)];
        let unit = usize::from(unit_of(class, reg));
        if class.half {
            let reach = if class.file == RegFile::Shared { 32 } else { 192 };
            assert!(unit < reach, "half register {reg} is out of reach");
            u32::from(file[unit])
        } else {
            u32::from(file[unit]) | u32::from(file[unit + 1]) << 16
        }
    }

    fn write(&mut self, class: RegClass, reg: PhysReg, bits: u32) {
        let space = self.space(class);
        let unit = usize::from(unit_of(class, reg));
        let file = &mut self.units[space];
        file[unit] = bits as u16;
        if !class.half {
            file[unit + 1] = (bits >> 16) as u16;
        }
    }

    fn operand(&self, src: &Src) -> u32 {
        match src.operand {
            SrcOperand::Place(Place::Reg(reg)) => self.read(src.class, reg),
            SrcOperand::Const(word) => constant(word, src.class.half),
            SrcOperand::Immediate(bits) => bits,
            other => panic!("{other:?}"),
        }
    }

    fn run(&mut self, data: &InstrData) {
        let reg = |i: usize| data.dsts[i].place.reg().unwrap();
        if data.dsts.iter().any(|dst| dst.class.half && dst.class.file == RegFile::General) {
            assert!(reg(0).0 < 192);
        }
        let srcs: Vec<u32> = data.srcs.iter().map(|src| self.operand(src)).collect();
        match data.opcode {
            Opcode::Mov => self.write(data.dsts[0].class, reg(0), srcs[0]),
            Opcode::Swz => {
                self.write(data.dsts[0].class, reg(0), srcs[0]);
                self.write(data.dsts[1].class, reg(1), srcs[1]);
            }
            Opcode::XorB => self.write(data.dsts[0].class, reg(0), srcs[0] ^ srcs[1]),
            Opcode::ShrB => self.write(data.dsts[0].class, reg(0), srcs[0] >> srcs[1]),
            other => panic!("{other}"),
        }
    }
}

fn constant(word: u16, half: bool) -> u32 {
    let bits = u32::from(word).wrapping_mul(0x0101_2345);
    if half { bits & 0xffff } else { bits }
}

/// Checks one parallel copy between registers of `class`es; returns the number of instructions.
fn check(target: &Target, copies: &[(RegClass, PhysReg, SrcOperand)]) -> usize {
    let mut sequencer = Sequencer::new(target);
    let before = Files::new(target.merged_regs);
    let mut expected = before.clone();
    for &(class, dst, operand) in copies {
        assert!(sequencer.add(class, dst, &operand));
        if operand != SrcOperand::Undef {
            let bits = before.operand(&Src::new(operand, class, WriteMask::SCALAR));
            expected.write(class, dst, if class.half { bits & 0xffff } else { bits });
        }
    }
    let mut files = before.clone();
    let mut count = 0;
    sequencer.finish(&mut |data| {
        files.run(&data);
        count += 1;
    });
    assert!(files == expected, "{}: {copies:?}", target.name);
    assert!(sequencer.pending.iter().all(Vec::is_empty));
    count
}

fn targets() -> [Target; 3] {
    ["a660", "a540", "a420"].map(|name| Target::by_name(name).unwrap())
}

fn reg(unit: u16, class: RegClass) -> SrcOperand {
    SrcOperand::Place(Place::Reg(reg_of(class, unit)))
}

/// A random number generator that needs no crate.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u16) -> u16 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % u64::from(n)) as u16
    }
}

#[test]
fn all_maps_of_four_full_registers() {
    for target in targets() {
        for map in 0..4u16.pow(4) {
            for class in [RegClass::FULL, RegClass::HALF, RegClass::SHARED] {
                let copies: Vec<_> = (0..4u16)
                    .map(|i| {
                        let from = map / 4u16.pow(u32::from(i)) % 4;
                        let units = class.component_units();
                        (class, reg_of(class, i * units), reg(from * units, class))
                    })
                    .collect();
                check(&target, &copies);
            }
        }
    }
}

#[test]
fn a_swap_is_one_instruction_where_there_is_swz() {
    let class = RegClass::FULL;
    let swap = [(class, PhysReg(0), reg(2, class)), (class, PhysReg(1), reg(0, class))];
    let [a660, a540, a420] = targets();
    assert_eq!([check(&a660, &swap), check(&a540, &swap), check(&a420, &swap)], [1, 1, 3]);
    let rotate: Vec<_> = (0..5).map(|i| (class, PhysReg(i), reg((i + 1) % 5 * 2, class))).collect();
    assert_eq!(check(&a660, &rotate), 4);
    let chain: Vec<_> = (0..5).map(|i| (class, PhysReg(i), reg((i + 1) * 2, class))).collect();
    assert_eq!(check(&a420, &chain), 5);
}

/// Every way to cover six units with destinations of 16 and 32 bits, and every choice of sources for them.
#[test]
fn all_mixed_maps_of_six_merged_units() {
    let target = &targets()[0];
    // Bit `i`: units `2i` and `2i + 1` are two halves.
    for shape in 0..8u16 {
        let mut dsts = Vec::new();
        for i in 0..3 {
            if shape >> i & 1 == 0 {
                dsts.push((RegClass::FULL, 2 * i));
            } else {
                dsts.extend([(RegClass::HALF, 2 * i), (RegClass::HALF, 2 * i + 1)]);
            }
        }
        let choices = |class: RegClass| if class.half { 6 } else { 3 };
        let total: u32 = dsts.iter().map(|&(class, _)| choices(class)).product();
        for mut code in 0..total {
            let copies: Vec<_> = dsts
                .iter()
                .map(|&(class, unit)| {
                    let from = (code % choices(class)) as u16 * class.component_units();
                    code /= choices(class);
                    (class, reg_of(class, unit), reg(from, class))
                })
                .collect();
            check(target, &copies);
        }
    }
}

/// Random parallel copies among registers on both sides of what half registers reach, with constants and immediates.
#[test]
fn random_mixtures() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for round in 0..40_000 {
        let target = &targets()[round % 3];
        let spots: Vec<u16> = {
            // Small windows at places that matter: the bounce registers, the edge of the reach, far out.
            let windows = [0, 8, 188, 192, 380];
            let (a, b) = (windows[usize::from(random.below(5))], windows[usize::from(random.below(5))]);
            (a..a + 4).chain(b..b + 4).collect()
        };
        let mut taken: HashMap<(usize, u16), ()> = HashMap::new();
        let files = Files::new(target.merged_regs);
        let mut copies = Vec::new();
        for _ in 0..1 + random.below(9) {
            let shared = random.below(8) == 0;
            let half = random.below(2) == 0;
            let class = RegClass { file: if shared { RegFile::Shared } else { RegFile::General }, half };
            let limit = match (shared, half) {
                (true, true) => 32,
                (true, false) => 64,
                (false, true) => 192,
                (false, false) => 384,
            };
            let mut pick = || {
                let unit = spots[usize::from(random.below(spots.len() as u16))] % if shared { 64 } else { 384 };
                if half { unit } else { unit & !1 }
            };
            let (dst, src) = (pick(), pick());
            if dst >= limit || src >= limit {
                continue;
            }
            let space = files.space(class);
            let units = dst..dst + class.component_units();
            if units.clone().any(|unit| taken.contains_key(&(space, unit))) {
                continue;
            }
            units.for_each(|unit| {
                taken.insert((space, unit), ());
            });
            let operand = match random.below(8) {
                0 => SrcOperand::Immediate(if half { 0xbeef } else { 0xdead_beef }),
                1 => SrcOperand::Const(random.below(64)),
                2 => SrcOperand::Undef,
                _ => reg(src, class),
            };
            copies.push((class, reg_of(class, dst), operand));
        }
        check(target, &copies);
    }
}

/// Whole registers move in cycles that reach far out, together with halves that share registers with them.
#[test]
fn cycles_through_what_halves_do_not_reach() {
    let target = &targets()[0];
    let (full, half) = (RegClass::FULL, RegClass::HALF);
    // r0.x and r40.x change places; the halves of r1.x go to both, and come from both.
    let copies = [
        (full, reg_of(full, 320), reg(0, full)),
        (half, PhysReg(0), reg(8, half)),
        (half, PhysReg(1), reg(9, half)),
        (full, reg_of(full, 8), reg(320, full)),
    ];
    check(target, &copies);
    // A permutation of 16-bit units in which 32-bit registers are written from 16-bit neighbours' places.
    for far in [192, 320, 382] {
        let copies = [
            (full, reg_of(full, far), reg(0, full)),
            (full, reg_of(full, 0), reg(2, full)),
            (half, PhysReg(2), reg(4, half)),
            (half, PhysReg(3), reg(7, half)),
            (full, reg_of(full, 4), reg(far, full)),
            (half, PhysReg(6), reg(3, half)),
            (half, PhysReg(7), reg(2, half)),
        ];
        check(target, &copies);
    }
}
