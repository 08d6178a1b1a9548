//! The rows. An opcode is one row; its columns are, in order: mnemonic, category, number of destinations, range of
//! source counts, numeric kind, latency class, effect, lanes, sources, immediates (with the slots that take them, where
//! not all do), traits, and the form, of an opcode whose sources have roles. [`OpcodeInfo`] says what each means.

use super::{Category, Effect, Immediates, Lanes, Latency, Numeric, OpcodeInfo, Sources, Traits};
use crate::words;

opcodes! {
    // cat0: control flow.
    /// Does nothing for an issue slot.
    Nop = "nop", Flow, 0, 0..=0, None, Alu, Control, Divergent, General, No, [REPEATS];
    /// Branch on a predicate.
    Br = "br", Flow, 0, 1..=1, None, Flow, Branch, Own, General, No, [PREDICATES UNCOUNTED];
    /// Branch if both predicates hold.
    Braa = "braa", Flow, 0, 2..=2, None, Flow, Branch, Own, General, No, [PREDICATES UNCOUNTED];
    /// Branch if one of two predicates holds.
    Brao = "brao", Flow, 0, 2..=2, None, Flow, Branch, Own, General, No, [PREDICATES UNCOUNTED];
    /// Branch on an indexed convergence condition.
    Brac = "brac", Flow, 0, 0..=0, None, Flow, Branch, Divergent, General, No, [];
    /// Branch on the address register.
    Brax = "brax", Flow, 0, 0..=0, None, Flow, Branch, Divergent, General, No, [];
    /// Branch if the predicate holds in any active lane.
    Bany = "bany", Flow, 0, 1..=1, None, Flow, Branch, Uniform, General, No, [PREDICATES];
    /// Branch if the predicate holds in all active lanes.
    Ball = "ball", Flow, 0, 1..=1, None, Flow, Branch, Uniform, General, No, [PREDICATES];
    /// One active lane branches.
    Getone = "getone", Flow, 0, 0..=0, None, Flow, Branch, Divergent, General, No, [ELECTS];
    /// The last active lane branches.
    Getlast = "getlast", Flow, 0, 0..=0, None, Flow, Branch, Divergent, General, No, [ELECTS];
    /// Start of the preamble: branches where it need not run.
    Shps = "shps", Flow, 0, 0..=0, None, Flow, Branch, Uniform, General, No, [];
    /// Unconditional jump.
    Jump = "jump", Flow, 0, 0..=0, None, Flow, Jump, Uniform, General, No, [UNCOUNTED];
    /// Lanes where the predicate fails sleep until `predf` or `prede`.
    Predt = "predt", Flow, 0, 1..=1, None, Flow, Branch, Divergent, General, No, [PREDICATES PREDICATION];
    /// Lanes where the predicate holds sleep until `predt` or `prede`.
    Predf = "predf", Flow, 0, 1..=1, None, Flow, Branch, Divergent, General, No, [PREDICATES PREDICATION];
    /// End of predication.
    Prede = "prede", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// End of the preamble.
    Shpe = "shpe", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [UNPREDICATED];
    /// Lanes whose predicate holds end and have no outputs.
    Kill = "kill", Flow, 0, 1..=1, None, Flow, EndsLanes, Divergent, General, No, [PREDICATES UNPREDICATED];
    /// Lanes whose predicate holds turn into helper lanes.
    Demote = "demote", Flow, 0, 1..=1, None, Flow, EndsLanes, Divergent, General, No, [PREDICATES UNPREDICATED];
    /// End of the program; its sources are the outputs.
    End = "end", Flow, 0, 0..=255, None, Flow, End, Divergent, General, No, [OUTPUTS];
    /// End of a geometry-pipeline stage that is followed by another.
    Chmask = "chmask", Flow, 0, 0..=255, None, Flow, End, Divergent, General, No, [OUTPUTS];
    /// Goes on in the next shader of a chain.
    Chsh = "chsh", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Calls a subroutine.
    Call = "call", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [UNPREDICATED];
    /// Returns from a subroutine.
    Ret = "ret", Flow, 0, 0..=0, None, Flow, End, Divergent, General, No, [UNPREDICATED];
    /// Emits a vertex.
    Emit = "emit", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Ends a primitive.
    Cut = "cut", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Reverses the control flow.
    FlowRev = "flow_rev", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Reserved flow operation 16.
    Bkt = "bkt", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Saves the branch stack.
    Stks = "stks", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Restores the branch stack.
    Stkr = "stkr", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Sets the execution mask.
    Xset = "xset", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Clears the execution mask.
    Xclr = "xclr", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];
    /// Debugger break.
    Dbg = "dbg", Flow, 0, 0..=0, None, Flow, Control, Divergent, General, No, [];

    // cat1: moves, and macros that expand to them.
    /// Move or conversion (`mov` and `cov`), by its types.
    Mov = "mov", Move, 1, 1..=3, Typed, Alu, None, Own, Move, Any, [SCALAR REPEATS];
    /// Two moves at once: a swap.
    Swz = "swz", Move, 2, 2..=2, Typed, Alu, None, Own, Registers, No, [REPEATS];
    /// Gathers four registers into a vector.
    Gat = "gat", Move, 1, 4..=4, Typed, Alu, None, Own, Registers, No, [];
    /// Scatters a vector to four registers.
    Sct = "sct", Move, 4, 1..=1, Typed, Alu, None, Own, Registers, No, [];
    /// Mask of active lanes, into shared registers.
    Movmsk = "movmsk", Move, 1, 0..=0, Typed, Alu, None, Uniform, Registers, No, [VECTOR_ONLY REPEATS ACTIVE UNPREDICATED];
    /// Moves a predicate.
    Movp = "movp", Move, 1, 1..=1, Typed, Alu, None, Own, Any, Any, [];
    /// Mask of the lanes where the predicate holds.
    BallotMacro = "ballot.macro", Move, 1, 1..=1, Typed, Macro, None, Uniform, Any, Any, [ACTIVE UNPREDICATED];
    /// True if the predicate holds in any active lane.
    AnyMacro = "any.macro", Move, 1, 1..=1, Typed, Macro, None, Uniform, Any, Any, [ACTIVE UNPREDICATED];
    /// True if the predicate holds in all active lanes.
    AllMacro = "all.macro", Move, 1, 1..=1, Typed, Macro, None, Uniform, Any, Any, [ACTIVE UNPREDICATED];
    /// True in the one elected lane.
    ElectMacro = "elect.macro", Move, 1, 0..=0, Typed, Macro, None, Divergent, Any, Any, [ACTIVE UNPREDICATED];
    /// The second source of the lane where the predicate holds.
    ReadCondMacro = "read_cond.macro", Move, 1, 2..=2, Typed, Macro, None, Uniform, Any, Any, [ACTIVE UNPREDICATED];
    /// The source of the first active lane.
    ReadFirstMacro = "read_first.macro", Move, 1, 1..=1, Typed, Macro, None, Uniform, Any, Any, [ACTIVE UNPREDICATED];
    /// The source of the last active lane.
    ReadGetlastMacro = "read_getlast.macro", Move, 1, 1..=1, Typed, Macro, None, Uniform, Any, Any, [ACTIVE UNPREDICATED];
    /// True if the preamble runs.
    ShpsMacro = "shps.macro", Move, 1, 0..=0, Typed, Macro, None, Divergent, Any, Any, [ACTIVE UNPREDICATED];
    /// Reduction, inclusive and exclusive scan over the active lanes.
    ScanMacro = "scan.macro", Move, 3, 1..=2, Typed, Macro, None, UniformThird, FirstGeneral, Any [1], [VECTOR_ONLY ACTIVE UNPREDICATED];
    /// Scan over clusters whose members have been combined already.
    ScanClustersMacro = "scan_clusters.macro", Move, 3, 2..=3, Typed, Macro, None, UniformFirst, FirstShared, Any [0], [VECTOR_ONLY ACTIVE UNPREDICATED];
    /// Loads push constants into the constant file.
    PushConstsLoadMacro = "push_consts_load.macro", Move, 0, 0..=0, None, Macro, LoadConsts, Own, Any, Any, [UNPREDICATED];

    // cat2: one or two sources.
    AddF = "add.f", Alu2, 1, 2..=3, Float, Alu, None, Own, Cat2, FloatTable, [COMMUTES SATURATES NEG ABS SCALAR REPEATS];
    MinF = "min.f", Alu2, 1, 2..=3, Float, Alu, None, Own, Cat2, FloatTable, [COMMUTES SATURATES NEG ABS SCALAR REPEATS];
    MaxF = "max.f", Alu2, 1, 2..=3, Float, Alu, None, Own, Cat2, FloatTable, [COMMUTES SATURATES NEG ABS SCALAR REPEATS];
    MulF = "mul.f", Alu2, 1, 2..=3, Float, Alu, None, Own, Cat2, FloatTable, [COMMUTES SATURATES NEG ABS SCALAR REPEATS];
    SignF = "sign.f", Alu2, 1, 1..=2, Float, Alu, None, Own, Cat2, FloatTable, [SATURATES NEG ABS SCALAR REPEATS];
    /// Comparison, 0 or 1 or a predicate.
    CmpsF = "cmps.f", Alu2, 1, 2..=3, Float, Alu, None, Own, Cat2, FloatTable, [COMMUTES COMPARES GIVES_BOOL NEG ABS SCALAR REPEATS];
    AbsnegF = "absneg.f", Alu2, 1, 1..=2, Float, Alu, None, Own, Cat2, FloatTable, [SATURATES NEG ABS SCALAR REPEATS];
    CmpvF = "cmpv.f", Alu2, 1, 2..=3, Float, Alu, None, Own, Cat2, FloatTable, [COMPARES NEG ABS SCALAR REPEATS COPIES_BITS];
    FloorF = "floor.f", Alu2, 1, 1..=2, Float, Alu, None, Own, Cat2, FloatTable, [SATURATES NEG ABS SCALAR REPEATS];
    CeilF = "ceil.f", Alu2, 1, 1..=2, Float, Alu, None, Own, Cat2, FloatTable, [SATURATES NEG ABS SCALAR REPEATS];
    RndneF = "rndne.f", Alu2, 1, 1..=2, Float, Alu, None, Own, Cat2, FloatTable, [SATURATES NEG ABS SCALAR REPEATS];
    RndazF = "rndaz.f", Alu2, 1, 1..=2, Float, Alu, None, Own, Cat2, FloatTable, [SATURATES NEG ABS SCALAR REPEATS];
    TruncF = "trunc.f", Alu2, 1, 1..=2, Float, Alu, None, Own, Cat2, FloatTable, [SATURATES NEG ABS SCALAR REPEATS];
    AddU = "add.u", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    AddS = "add.s", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    SubU = "sub.u", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [SCALAR REPEATS];
    SubS = "sub.s", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [SCALAR REPEATS];
    CmpsU = "cmps.u", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES COMPARES GIVES_BOOL SCALAR REPEATS];
    CmpsS = "cmps.s", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES COMPARES GIVES_BOOL SCALAR REPEATS];
    MinU = "min.u", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    MinS = "min.s", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    MaxU = "max.u", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    MaxS = "max.s", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    AbsnegS = "absneg.s", Alu2, 1, 1..=2, Int, Alu, None, Own, Cat2, Bits10, [NEG ABS SCALAR REPEATS];
    AndB = "and.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [COMMUTES NOT SCALAR REPEATS LOGIC];
    OrB = "or.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [COMMUTES NOT SCALAR REPEATS LOGIC];
    NotB = "not.b", Alu2, 1, 1..=2, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS LOGIC];
    XorB = "xor.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [COMMUTES NOT SCALAR REPEATS LOGIC];
    CmpvU = "cmpv.u", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMPARES SCALAR REPEATS];
    CmpvS = "cmpv.s", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMPARES SCALAR REPEATS];
    MulU24 = "mul.u24", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    MulS24 = "mul.s24", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    /// Product of the low 16 bits of both.
    MullU = "mull.u", Alu2, 1, 2..=3, Int, Alu, None, Own, Cat2, Bits10, [COMMUTES SCALAR REPEATS];
    BfrevB = "bfrev.b", Alu2, 1, 1..=2, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    /// Leading bits equal to the sign bit; all ones for 0 and -1.
    ClzS = "clz.s", Alu2, 1, 1..=2, Int, Alu, None, Own, Cat2, Bits10, [SCALAR REPEATS];
    /// Leading zeros; all ones for zero.
    ClzB = "clz.b", Alu2, 1, 1..=2, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    ShlB = "shl.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    ShrB = "shr.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    AshrB = "ashr.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    /// Interpolates a varying: its number, barycentric i and j.
    BaryF = "bary.f", Alu2, 1, 2..=3, Float, Alu, None, Divergent, Cat2, Bits10, [NEG ABS REPEATS ACTIVE UNCLAMPED COPIES_BITS];
    /// Reads a flat varying.
    FlatB = "flat.b", Alu2, 1, 2..=3, Bits, Alu, None, Divergent, Flat, Bits10, [REPEATS ACTIVE UNCLAMPED];
    MgenB = "mgen.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    GetbitB = "getbit.b", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    /// Sets the rounding mode.
    Setrm = "setrm", Alu2, 0, 1..=2, Bits, Alu, Machine, Own, Cat2, Bits10, [REPEATS];
    CbitsB = "cbits.b", Alu2, 1, 1..=2, Bits, Alu, None, Own, Cat2, Bits10, [NOT SCALAR REPEATS];
    Shb = "shb", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [REPEATS];
    Msad = "msad", Alu2, 1, 2..=3, Bits, Alu, None, Own, Cat2, Bits10, [REPEATS];

    // cat3: three sources.
    /// Product of the low 16 bits, plus the third source.
    MadU16 = "mad.u16", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [COMMUTES LATE_THIRD HALF_SRCS SCALAR REPEATS];
    /// 16-bit product shifted left by 16, plus the third source, unsigned.
    MadshU16 = "madsh.u16", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [LATE_THIRD FULL_SRCS SCALAR REPEATS];
    /// Signed product of the low 16 bits, plus the third source.
    MadS16 = "mad.s16", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [COMMUTES LATE_THIRD HALF_SRCS SCALAR REPEATS];
    /// Low half of the first times high half of the second, shifted left by 16, plus the third source.
    MadshM16 = "madsh.m16", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [LATE_THIRD FULL_SRCS SCALAR REPEATS];
    /// 24-bit unsigned multiply and add.
    MadU24 = "mad.u24", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [COMMUTES LATE_THIRD FULL_SRCS FULL_DST SCALAR REPEATS];
    /// 24-bit signed multiply and add.
    MadS24 = "mad.s24", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [COMMUTES LATE_THIRD FULL_SRCS FULL_DST SCALAR REPEATS];
    /// Fused multiply and add.
    MadF16 = "mad.f16", Alu3, 1, 3..=4, Float, Alu, None, Own, Cat3, No, [COMMUTES SATURATES NEG LATE_THIRD HALF_SRCS SCALAR REPEATS];
    /// Fused multiply and add.
    MadF32 = "mad.f32", Alu3, 1, 3..=4, Float, Alu, None, Own, Cat3, No, [COMMUTES SATURATES NEG LATE_THIRD FULL_SRCS SCALAR REPEATS];
    /// The first source if the second is not zero, else the third.
    SelB16 = "sel.b16", Alu3, 1, 3..=4, Bits, Alu, None, Own, Cat3, No, [NEG_CHOICES HALF_SRCS SCALAR REPEATS UNCLAMPED];
    /// The first source if the second is not zero, else the third.
    SelB32 = "sel.b32", Alu3, 1, 3..=4, Bits, Alu, None, Own, Cat3, No, [NEG_CHOICES FULL_SRCS SCALAR REPEATS UNCLAMPED];
    /// The first source if the second is not negative, else the third.
    SelS16 = "sel.s16", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [HALF_SRCS SCALAR REPEATS UNCLAMPED];
    /// The first source if the second is not negative, else the third.
    SelS32 = "sel.s32", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [FULL_SRCS SCALAR REPEATS UNCLAMPED];
    /// The first source if the second is not negative, else the third.
    SelF16 = "sel.f16", Alu3, 1, 3..=4, Float, Alu, None, Own, Cat3, No, [NEG HALF_SRCS SCALAR REPEATS UNCLAMPED COPIES_BITS];
    /// The first source if the second is not negative, else the third.
    SelF32 = "sel.f32", Alu3, 1, 3..=4, Float, Alu, None, Own, Cat3, No, [NEG FULL_SRCS SCALAR REPEATS UNCLAMPED COPIES_BITS];
    /// |a - b| + c; a + b + c in the form that the back-end emits.
    SadS16 = "sad.s16", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [NEG_SECOND HALF_SRCS SCALAR REPEATS];
    /// |a - b| + c; a + b + c in the form that the back-end emits.
    SadS32 = "sad.s32", Alu3, 1, 3..=4, Int, Alu, None, Own, Cat3, No, [NEG_SECOND FULL_SRCS SCALAR REPEATS];
    /// (second >> first) & third.
    Shrm = "shrm", Alu3, 1, 3..=4, Bits, Alu, None, Own, Cat3Alternative, Bits12 [0 2], [SCALAR REPEATS];
    /// (second << first) & third.
    Shlm = "shlm", Alu3, 1, 3..=4, Bits, Alu, None, Own, Cat3Alternative, Bits12 [0 2], [SCALAR REPEATS];
    /// (second >> first) | third.
    Shrg = "shrg", Alu3, 1, 3..=4, Bits, Alu, None, Own, Cat3Alternative, Bits12 [0 2], [SCALAR REPEATS];
    /// (second << first) | third.
    Shlg = "shlg", Alu3, 1, 3..=4, Bits, Alu, None, Own, Cat3Alternative, Bits12 [0 2], [SCALAR REPEATS];
    /// (first & second) | third.
    Andg = "andg", Alu3, 1, 3..=4, Bits, Alu, None, Own, Cat3Alternative, Bits12 [0 2], [SCALAR REPEATS];
    /// Two 16-bit products and a sum.
    Dp2acc = "dp2acc", Alu3, 1, 3..=4, Int, Alu, None, Own, Dot, No, [];
    /// Four 8-bit products and a sum.
    Dp4acc = "dp4acc", Alu3, 1, 3..=4, Int, Alu, None, Own, Dot, No, [];
    /// Matrix multiply: four registers from each of the first two sources on, into 4 to 128 registers. Operands name the
    /// first of them only, so equal operands are no equal products.
    Wmm = "wmm", Alu3, 1, 3..=4, Float, Alu, None, Divergent, Matrix, No, [REPEATS ACTIVE];
    /// Matrix multiply, added to what the registers of the result held.
    WmmAccu = "wmm.accu", Alu3, 1, 3..=4, Float, Alu, None, Divergent, Matrix, No, [REPEATS ACTIVE];

    // cat4: special functions.
    /// 1/x
    Rcp = "rcp", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS SCALAR];
    /// 1/sqrt(x)
    Rsq = "rsq", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS FULL_DST SCALAR REPEATS];
    /// Binary logarithm.
    Log2 = "log2", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS FULL_DST SCALAR REPEATS];
    /// Power of two.
    Exp2 = "exp2", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS FULL_DST SCALAR REPEATS];
    /// Sine.
    Sin = "sin", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS SCALAR REPEATS];
    /// Cosine.
    Cos = "cos", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS SCALAR REPEATS];
    /// Square root.
    Sqrt = "sqrt", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS SCALAR REPEATS];
    /// 1/sqrt(x), half.
    Hrsq = "hrsq", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS HALF_DST SCALAR REPEATS];
    /// Binary logarithm, half.
    Hlog2 = "hlog2", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS HALF_DST SCALAR REPEATS];
    /// Power of two, half.
    Hexp2 = "hexp2", Sfu, 1, 1..=2, Float, Sfu, None, Own, Cat4, No, [NEG ABS HALF_DST SCALAR REPEATS];

    // cat5: textures, derivatives, quads.
    /// Texel fetch.
    Isam = "isam", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, Bits10, [ACTIVE], SAM;
    /// Texel fetch at a level.
    Isaml = "isaml", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAM_LEVEL;
    /// Texel fetch of a sample.
    Isamm = "isamm", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], ISAMM;
    /// Sample.
    Sam = "sam", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], SAM;
    /// Sample with bias.
    Samb = "samb", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], SAM_LEVEL;
    /// Sample at a level.
    Saml = "saml", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAM_LEVEL;
    /// Sample with explicit derivatives.
    Samgq = "samgq", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAMGQ;
    Getlod = "getlod", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], SAM;
    Conv = "conv", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], CONV;
    Convm = "convm", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], CONV;
    /// Size of a level.
    Getsize = "getsize", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], GETSIZE;
    Getbuf = "getbuf", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], GETINFO;
    Getpos = "getpos", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], GETSIZE;
    Getinfo = "getinfo", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], GETINFO;
    /// Coarse derivative in x.
    Dsx = "dsx", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], DSX;
    /// Coarse derivative in y.
    Dsy = "dsy", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], DSX;
    Gather4r = "gather4r", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAM;
    Gather4g = "gather4g", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAM;
    Gather4b = "gather4b", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAM;
    Gather4a = "gather4a", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAM;
    Samgp0 = "samgp0", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAMGP;
    Samgp1 = "samgp1", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAMGP;
    Samgp2 = "samgp2", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAMGP;
    Samgp3 = "samgp3", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], SAMGP;
    Dsxpp1 = "dsxpp.1", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], DSX;
    Dsypp1 = "dsypp.1", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], DSX;
    Rgetpos = "rgetpos", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], GETSIZE;
    Rgetinfo = "rgetinfo", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE], GETINFO;
    /// Value of the previous cluster's last active lane; else the tied source.
    BrcstActive = "brcst.active", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE UNPREDICATED], BRCST;
    QuadShuffleBrcst = "quad_shuffle.brcst", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], SHUFFLE_LANE;
    QuadShuffleHoriz = "quad_shuffle.horiz", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], SHUFFLE;
    QuadShuffleVert = "quad_shuffle.vert", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], SHUFFLE;
    QuadShuffleDiag = "quad_shuffle.diag", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], SHUFFLE;
    /// Invalidates the texture cache.
    Tcinv = "tcinv", Texture, 0, 0..=4, Typed, Texture, Machine, Divergent, General, No, [ACTIVE];
    /// Fine derivative in x.
    DsxppMacro = "dsxpp.macro", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], DSX;
    /// Fine derivative in y.
    DsyppMacro = "dsypp.macro", Texture, 1, 0..=4, Typed, Texture, None, Divergent, General, No, [ACTIVE QUAD], DSX;

    // No instructions of the machine.
    /// Texture sample that is issued before the program starts.
    TexPrefetch = "_meta:tex_prefetch", Meta, 1, 0..=2, Typed, Texture, None, Divergent, OfResult, Any, [PREFETCHED QUAD];

    // cat6: memory.
    Ldg = "ldg", Memory, 1, 0..=6, Typed, Memory, Load, Divergent, Memory, Any [1 2 3 4 5], [ACTIVE], LDG;
    LdgA = "ldg.a", Memory, 1, 0..=6, Typed, Memory, Load, Divergent, Memory, Any [2 3 4 5], [ACTIVE], LDG_A;
    LdgK = "ldg.k", Memory, 0, 0..=6, Typed, Memory, LoadConsts, Divergent, Memory, Bits8, [ACTIVE UNPREDICATED], UNKNOWN;
    Ldl = "ldl", Memory, 1, 0..=6, Typed, LocalMemory, Load, Divergent, Memory, Any [1 2 3 4 5], [ACTIVE], LDL;
    Ldp = "ldp", Memory, 1, 0..=6, Typed, Memory, Load, Divergent, Memory, Any [1 2 3 4 5], [ACTIVE], LDP;
    Stg = "stg", Memory, 0, 0..=6, Typed, Memory, Store, Divergent, Memory, Any [0 1 3 4 5], [ACTIVE], STG;
    StgA = "stg.a", Memory, 0, 0..=6, Typed, Memory, Store, Divergent, Memory, Any [0 2 3 5], [ACTIVE], STG_A;
    Stl = "stl", Memory, 0, 0..=6, Typed, LocalMemory, Store, Divergent, Memory, Any [2], [ACTIVE], STL;
    Stp = "stp", Memory, 0, 0..=6, Typed, Memory, Store, Divergent, Memory, Any [2], [ACTIVE], STP;
    Ldib = "ldib", Memory, 1, 0..=6, Typed, Memory, Load, Divergent, Memory, Bits8 [0 2], [ACTIVE], LDIB;
    Stib = "stib", Memory, 0, 0..=6, Typed, Memory, Store, Divergent, Memory, Bits8 [0 2], [ACTIVE], STIB;
    G2l = "g2l", Memory, 0, 0..=6, Typed, Memory, StoreAny, Divergent, Memory, Bits8 [0 2 3 4 5], [ACTIVE], UNKNOWN;
    L2g = "l2g", Memory, 0, 0..=6, Typed, Memory, StoreAny, Divergent, Memory, Bits8 [0 2 3 4 5], [ACTIVE], UNKNOWN;
    Prefetch = "prefetch", Memory, 0, 0..=6, Typed, Memory, StoreAny, Divergent, Memory, Bits8, [ACTIVE], UNKNOWN;
    Ldlw = "ldlw", Memory, 1, 0..=6, Typed, LocalMemory, LoadAny, Divergent, Memory, Any [1 2 3 4 5], [ACTIVE], LDL;
    Stlw = "stlw", Memory, 0, 0..=6, Typed, LocalMemory, StoreAny, Divergent, Memory, Any [2 3 4 5], [ACTIVE], STL;
    Resfmt = "resfmt", Memory, 1, 0..=6, Typed, Memory, None, Divergent, Memory, Bits8, [], UNKNOWN;
    Resinfo = "resinfo", Memory, 1, 0..=6, Typed, LocalMemory, None, Divergent, Memory, Bits8 [0], [], RESINFO;
    Ldgb = "ldgb", Memory, 1, 0..=6, Typed, Memory, Load, Divergent, Memory, Bits8, [ACTIVE], LDGB;
    Stgb = "stgb", Memory, 0, 0..=6, Typed, Memory, Store, Divergent, Memory, Bits8 [0 2 3 4 5], [ACTIVE], STGB;
    Ldc = "ldc", Memory, 1, 0..=6, Typed, Memory, None, Own, Memory, Bits8, [ACTIVE], LDC;
    LdcK = "ldc.k", Memory, 0, 0..=6, Typed, Memory, LoadConsts, Divergent, Memory, Bits8, [ACTIVE UNPREDICATED], LDC_K;
    Ldlv = "ldlv", Memory, 1, 0..=6, Typed, LocalMemory, None, Divergent, Memory, Any, [ACTIVE], LDLV;
    Getspid = "getspid", Memory, 1, 0..=6, Typed, Memory, None, Divergent, Memory, Bits8, [];
    Getwid = "getwid", Memory, 1, 0..=6, Typed, Memory, None, Divergent, Memory, Bits8, [];
    Getfiberid = "getfiberid", Memory, 1, 0..=6, Typed, LocalMemory, None, Divergent, Memory, Bits10, [ACTIVE UNPREDICATED];
    Stc = "stc", Memory, 0, 0..=6, Typed, Memory, StoreConsts, Divergent, MemorySecondShared, Bits8 [0], [ACTIVE UNPREDICATED], STC;
    Stsc = "stsc", Memory, 0, 0..=6, Typed, Memory, StoreConsts, Divergent, Memory, Bits8, [ACTIVE UNPREDICATED], STSC;
    Shfl = "shfl", Memory, 1, 0..=6, Typed, LocalMemory, None, Divergent, MemorySecondShared, Bits8 [1 2 3 4 5], [ACTIVE], SHFL;
    AtomicAdd = "atomic.add", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicSub = "atomic.sub", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicXchg = "atomic.xchg", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicInc = "atomic.inc", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicDec = "atomic.dec", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicCmpxchg = "atomic.cmpxchg", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicMin = "atomic.min", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicMax = "atomic.max", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicAnd = "atomic.and", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicOr = "atomic.or", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicXor = "atomic.xor", Memory, 1, 2..=5, Typed, LocalMemory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC;
    AtomicBAdd = "atomic.b.add", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBSub = "atomic.b.sub", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBXchg = "atomic.b.xchg", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBInc = "atomic.b.inc", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBDec = "atomic.b.dec", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBCmpxchg = "atomic.b.cmpxchg", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBMin = "atomic.b.min", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBMax = "atomic.b.max", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBAnd = "atomic.b.and", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBOr = "atomic.b.or", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicBXor = "atomic.b.xor", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_B;
    AtomicSAdd = "atomic.s.add", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSSub = "atomic.s.sub", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSXchg = "atomic.s.xchg", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSInc = "atomic.s.inc", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSDec = "atomic.s.dec", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSCmpxchg = "atomic.s.cmpxchg", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSMin = "atomic.s.min", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSMax = "atomic.s.max", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSAnd = "atomic.s.and", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSOr = "atomic.s.or", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicSXor = "atomic.s.xor", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, Bits8 [0], [ACTIVE], ATOMIC_S;
    AtomicGAdd = "atomic.g.add", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGSub = "atomic.g.sub", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGXchg = "atomic.g.xchg", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGInc = "atomic.g.inc", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGDec = "atomic.g.dec", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGCmpxchg = "atomic.g.cmpxchg", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGMin = "atomic.g.min", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGMax = "atomic.g.max", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGAnd = "atomic.g.and", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGOr = "atomic.g.or", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    AtomicGXor = "atomic.g.xor", Memory, 1, 2..=5, Typed, Memory, Atomic, Divergent, Memory, No, [ACTIVE], ATOMIC_G;
    /// Stores a value to its spill slot.
    SpillMacro = "spill.macro", Memory, 0, 3..=3, Typed, Memory, Store, Divergent, Memory, Any, [ACTIVE], STP;
    /// Loads a value from its spill slot.
    ReloadMacro = "reload.macro", Memory, 1, 3..=3, Typed, Memory, Load, Divergent, Memory, Any, [ACTIVE], LDP;

    // cat7: barriers and caches.
    /// Workgroup barrier.
    Bar = "bar", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [UNPREDICATED];
    /// Memory fence.
    Fence = "fence", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Sleeps.
    Sleep = "sleep", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Invalidates the instruction cache.
    Icinv = "icinv", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Cleans the data cache.
    Dccln = "dccln", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Invalidates the data cache.
    Dcinv = "dcinv", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Flushes the data cache.
    Dcflu = "dcflu", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Invalidates the constant cache.
    Ccinv = "ccinv", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Takes the lock.
    Lock = "lock", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Releases the lock.
    Unlock = "unlock", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];
    /// Aliases a register.
    Alias = "alias", Barrier, 0, 0..=3, None, Memory, Barrier, Divergent, General, No, [];

    // No instructions of the machine.
    /// One source for each predecessor, in their order.
    Phi = "_meta:phi", Meta, 1, 0..=255, None, Meta, None, Edge, OfResult, Any, [STARTS PLACED];
    /// Puts scalars together to a vector.
    Collect = "_meta:collect", Meta, 1, 0..=255, None, Meta, None, Own, OfResult, Any, [COPIES];
    /// Takes one component of a vector.
    Split = "_meta:split", Meta, 1, 0..=1, None, Meta, None, Own, OfResult, Any, [COPIES];
    /// Copies all sources to all destinations at once.
    ParallelCopy = "_meta:parallel_copy", Meta, 255, 0..=255, None, Meta, None, Pairs, OfResult, Any, [COPIES PLACED];
    /// A value that is there when the program starts.
    Input = "_meta:in", Meta, 1, 0..=0, None, Meta, None, Divergent, OfResult, Any, [STARTS PLACED];
}
