//! The opcodes, one table.
//!
//! Each row gives the mnemonic, the category (the encoding family), the number of destinations, the range of source
//! counts (address register sources included), what the operands are numerically (which decides the modifiers that
//! they may take), and the latency class (which decides delay slots and synchronisation).

mod classes;
mod effects;

pub use classes::{Category, Latency, Numeric, OpcodeInfo};

use std::fmt;

macro_rules! opcodes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $cat:ident, $dsts:literal, $lo:literal..=$hi:literal, $num:ident, $lat:ident;)*) => {
        /// An opcode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Opcode {
            $($(#[$doc])* $variant,)*
        }

        impl Opcode {
            /// Every opcode, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            const TABLE: &'static [OpcodeInfo] = &[$(OpcodeInfo {
                name: $name, category: Category::$cat, dsts: $dsts, min_srcs: $lo, max_srcs: $hi,
                numeric: Numeric::$num, latency: Latency::$lat,
            },)*];
        }
    };
}

opcodes! {
    /// Does nothing for an issue slot.
    Nop = "nop", Flow, 0, 0..=0, None, Alu;
    /// Branch on a predicate.
    Br = "br", Flow, 0, 1..=1, None, Flow;
    /// Branch if both predicates hold.
    Braa = "braa", Flow, 0, 2..=2, None, Flow;
    /// Branch if one of two predicates holds.
    Brao = "brao", Flow, 0, 2..=2, None, Flow;
    /// Branch on an indexed convergence condition.
    Brac = "brac", Flow, 0, 0..=0, None, Flow;
    /// Branch on the address register.
    Brax = "brax", Flow, 0, 0..=0, None, Flow;
    /// Branch if the predicate holds in any active lane.
    Bany = "bany", Flow, 0, 1..=1, None, Flow;
    /// Branch if the predicate holds in all active lanes.
    Ball = "ball", Flow, 0, 1..=1, None, Flow;
    /// One active lane branches.
    Getone = "getone", Flow, 0, 0..=0, None, Flow;
    /// The last active lane branches.
    Getlast = "getlast", Flow, 0, 0..=0, None, Flow;
    /// Start of the preamble: branches where it need not run.
    Shps = "shps", Flow, 0, 0..=0, None, Flow;
    /// Unconditional jump.
    Jump = "jump", Flow, 0, 0..=0, None, Flow;
    /// Lanes where the predicate fails sleep until `predf` or `prede`.
    Predt = "predt", Flow, 0, 1..=1, None, Flow;
    /// Lanes where the predicate holds sleep until `predt` or `prede`.
    Predf = "predf", Flow, 0, 1..=1, None, Flow;
    /// End of predication.
    Prede = "prede", Flow, 0, 0..=0, None, Flow;
    /// End of the preamble.
    Shpe = "shpe", Flow, 0, 0..=0, None, Flow;
    /// Lanes whose predicate holds end and have no outputs.
    Kill = "kill", Flow, 0, 1..=1, None, Flow;
    /// Lanes whose predicate holds turn into helper lanes.
    Demote = "demote", Flow, 0, 1..=1, None, Flow;
    /// End of the program; its sources are the outputs.
    End = "end", Flow, 0, 0..=255, None, Flow;
    /// End of a geometry-pipeline stage that is followed by another.
    Chmask = "chmask", Flow, 0, 0..=255, None, Flow;
    /// Goes on in the next shader of a chain.
    Chsh = "chsh", Flow, 0, 0..=0, None, Flow;
    /// Calls a subroutine.
    Call = "call", Flow, 0, 0..=0, None, Flow;
    /// Returns from a subroutine.
    Ret = "ret", Flow, 0, 0..=0, None, Flow;
    /// Emits a vertex.
    Emit = "emit", Flow, 0, 0..=0, None, Flow;
    /// Ends a primitive.
    Cut = "cut", Flow, 0, 0..=0, None, Flow;
    /// Reverses the control flow.
    FlowRev = "flow_rev", Flow, 0, 0..=0, None, Flow;
    /// Reserved flow operation 16.
    Bkt = "bkt", Flow, 0, 0..=0, None, Flow;
    /// Saves the branch stack.
    Stks = "stks", Flow, 0, 0..=0, None, Flow;
    /// Restores the branch stack.
    Stkr = "stkr", Flow, 0, 0..=0, None, Flow;
    /// Sets the execution mask.
    Xset = "xset", Flow, 0, 0..=0, None, Flow;
    /// Clears the execution mask.
    Xclr = "xclr", Flow, 0, 0..=0, None, Flow;
    /// Debugger break.
    Dbg = "dbg", Flow, 0, 0..=0, None, Flow;
    /// Move or conversion (`mov` and `cov`), by its types.
    Mov = "mov", Move, 1, 1..=3, Typed, Alu;
    /// Two moves at once: a swap.
    Swz = "swz", Move, 2, 2..=2, Typed, Alu;
    /// Gathers four registers into a vector.
    Gat = "gat", Move, 1, 4..=4, Typed, Alu;
    /// Scatters a vector to four registers.
    Sct = "sct", Move, 4, 1..=1, Typed, Alu;
    /// Mask of active lanes, into shared registers.
    Movmsk = "movmsk", Move, 1, 0..=0, Typed, Alu;
    /// Moves a predicate.
    Movp = "movp", Move, 1, 1..=1, Typed, Alu;
    /// Mask of the lanes where the predicate holds.
    BallotMacro = "ballot.macro", Move, 1, 1..=1, Typed, Macro;
    /// Whether the predicate holds in any active lane.
    AnyMacro = "any.macro", Move, 1, 1..=1, Typed, Macro;
    /// Whether the predicate holds in all active lanes.
    AllMacro = "all.macro", Move, 1, 1..=1, Typed, Macro;
    /// Whether this is the one elected lane.
    ElectMacro = "elect.macro", Move, 1, 0..=0, Typed, Macro;
    /// The second source of the lane where the predicate holds.
    ReadCondMacro = "read_cond.macro", Move, 1, 2..=2, Typed, Macro;
    /// The source of the first active lane.
    ReadFirstMacro = "read_first.macro", Move, 1, 1..=1, Typed, Macro;
    /// The source of the last active lane.
    ReadGetlastMacro = "read_getlast.macro", Move, 1, 1..=1, Typed, Macro;
    /// Whether the preamble runs.
    ShpsMacro = "shps.macro", Move, 1, 0..=0, Typed, Macro;
    /// Reduction, inclusive and exclusive scan over the active lanes.
    ScanMacro = "scan.macro", Move, 3, 1..=2, Typed, Macro;
    /// Scan over clusters whose members have been combined already.
    ScanClustersMacro = "scan_clusters.macro", Move, 3, 2..=3, Typed, Macro;
    /// Loads push constants into the constant file.
    PushConstsLoadMacro = "push_consts_load.macro", Move, 0, 0..=0, None, Macro;
    /// Float operation.
    AddF = "add.f", Alu2, 1, 2..=3, Float, Alu;
    /// Float operation.
    MinF = "min.f", Alu2, 1, 2..=3, Float, Alu;
    /// Float operation.
    MaxF = "max.f", Alu2, 1, 2..=3, Float, Alu;
    /// Float operation.
    MulF = "mul.f", Alu2, 1, 2..=3, Float, Alu;
    /// Float operation.
    SignF = "sign.f", Alu2, 1, 1..=2, Float, Alu;
    /// Comparison, 0 or 1 or a predicate.
    CmpsF = "cmps.f", Alu2, 1, 2..=3, Float, Alu;
    /// Float operation.
    AbsnegF = "absneg.f", Alu2, 1, 1..=2, Float, Alu;
    /// Float operation.
    CmpvF = "cmpv.f", Alu2, 1, 2..=3, Float, Alu;
    /// Float operation.
    FloorF = "floor.f", Alu2, 1, 1..=2, Float, Alu;
    /// Float operation.
    CeilF = "ceil.f", Alu2, 1, 1..=2, Float, Alu;
    /// Float operation.
    RndneF = "rndne.f", Alu2, 1, 1..=2, Float, Alu;
    /// Float operation.
    RndazF = "rndaz.f", Alu2, 1, 1..=2, Float, Alu;
    /// Float operation.
    TruncF = "trunc.f", Alu2, 1, 1..=2, Float, Alu;
    /// Integer operation.
    AddU = "add.u", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    AddS = "add.s", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    SubU = "sub.u", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    SubS = "sub.s", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    CmpsU = "cmps.u", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    CmpsS = "cmps.s", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    MinU = "min.u", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    MinS = "min.s", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    MaxU = "max.u", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    MaxS = "max.s", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    AbsnegS = "absneg.s", Alu2, 1, 1..=2, Int, Alu;
    /// Bitwise operation.
    AndB = "and.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Bitwise operation.
    OrB = "or.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Bitwise operation.
    NotB = "not.b", Alu2, 1, 1..=2, Bits, Alu;
    /// Bitwise operation.
    XorB = "xor.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Integer operation.
    CmpvU = "cmpv.u", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    CmpvS = "cmpv.s", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    MulU24 = "mul.u24", Alu2, 1, 2..=3, Int, Alu;
    /// Integer operation.
    MulS24 = "mul.s24", Alu2, 1, 2..=3, Int, Alu;
    /// Product of the low 16 bits of both.
    MullU = "mull.u", Alu2, 1, 2..=3, Int, Alu;
    /// Bitwise operation.
    BfrevB = "bfrev.b", Alu2, 1, 1..=2, Bits, Alu;
    /// Leading bits equal to the sign bit; all ones for 0 and -1.
    ClzS = "clz.s", Alu2, 1, 1..=2, Int, Alu;
    /// Leading zeros; all ones for zero.
    ClzB = "clz.b", Alu2, 1, 1..=2, Bits, Alu;
    /// Bitwise operation.
    ShlB = "shl.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Bitwise operation.
    ShrB = "shr.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Bitwise operation.
    AshrB = "ashr.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Interpolates a varying: its number, barycentric i and j.
    BaryF = "bary.f", Alu2, 1, 2..=3, Float, Alu;
    /// Reads a flat varying.
    FlatB = "flat.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Bitwise operation.
    MgenB = "mgen.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Bitwise operation.
    GetbitB = "getbit.b", Alu2, 1, 2..=3, Bits, Alu;
    /// Sets the rounding mode.
    Setrm = "setrm", Alu2, 0, 1..=2, Bits, Alu;
    /// Bitwise operation.
    CbitsB = "cbits.b", Alu2, 1, 1..=2, Bits, Alu;
    /// Bitwise operation.
    Shb = "shb", Alu2, 1, 2..=3, Bits, Alu;
    /// Bitwise operation.
    Msad = "msad", Alu2, 1, 2..=3, Bits, Alu;
    /// Product of the low 16 bits, plus the third source.
    MadU16 = "mad.u16", Alu3, 1, 3..=4, Int, Alu;
    /// 16-bit product shifted left by 16, plus the third source, unsigned.
    MadshU16 = "madsh.u16", Alu3, 1, 3..=4, Int, Alu;
    /// Signed product of the low 16 bits, plus the third source.
    MadS16 = "mad.s16", Alu3, 1, 3..=4, Int, Alu;
    /// Low half of the first times high half of the second, shifted left by 16, plus the third source.
    MadshM16 = "madsh.m16", Alu3, 1, 3..=4, Int, Alu;
    /// 24-bit unsigned multiply and add.
    MadU24 = "mad.u24", Alu3, 1, 3..=4, Int, Alu;
    /// 24-bit signed multiply and add.
    MadS24 = "mad.s24", Alu3, 1, 3..=4, Int, Alu;
    /// Fused multiply and add.
    MadF16 = "mad.f16", Alu3, 1, 3..=4, Float, Alu;
    /// Fused multiply and add.
    MadF32 = "mad.f32", Alu3, 1, 3..=4, Float, Alu;
    /// The first source if the second is not zero, else the third.
    SelB16 = "sel.b16", Alu3, 1, 3..=4, Bits, Alu;
    /// The first source if the second is not zero, else the third.
    SelB32 = "sel.b32", Alu3, 1, 3..=4, Bits, Alu;
    /// The first source if the second is not negative, else the third.
    SelS16 = "sel.s16", Alu3, 1, 3..=4, Int, Alu;
    /// The first source if the second is not negative, else the third.
    SelS32 = "sel.s32", Alu3, 1, 3..=4, Int, Alu;
    /// The first source if the second is not negative, else the third.
    SelF16 = "sel.f16", Alu3, 1, 3..=4, Float, Alu;
    /// The first source if the second is not negative, else the third.
    SelF32 = "sel.f32", Alu3, 1, 3..=4, Float, Alu;
    /// |a - b| + c; a + b + c in the form that the back-end emits.
    SadS16 = "sad.s16", Alu3, 1, 3..=4, Int, Alu;
    /// |a - b| + c; a + b + c in the form that the back-end emits.
    SadS32 = "sad.s32", Alu3, 1, 3..=4, Int, Alu;
    /// (second >> first) & third.
    Shrm = "shrm", Alu3, 1, 3..=4, Bits, Alu;
    /// (second << first) & third.
    Shlm = "shlm", Alu3, 1, 3..=4, Bits, Alu;
    /// (second >> first) | third.
    Shrg = "shrg", Alu3, 1, 3..=4, Bits, Alu;
    /// (second << first) | third.
    Shlg = "shlg", Alu3, 1, 3..=4, Bits, Alu;
    /// (first & second) | third.
    Andg = "andg", Alu3, 1, 3..=4, Bits, Alu;
    /// Two 16-bit products and a sum.
    Dp2acc = "dp2acc", Alu3, 1, 3..=4, Int, Alu;
    /// Four 8-bit products and a sum.
    Dp4acc = "dp4acc", Alu3, 1, 3..=4, Int, Alu;
    /// Matrix multiply.
    Wmm = "wmm", Alu3, 1, 3..=4, Float, Alu;
    /// Matrix multiply and accumulate.
    WmmAccu = "wmm.accu", Alu3, 1, 3..=4, Float, Alu;
    /// 1/x
    Rcp = "rcp", Sfu, 1, 1..=2, Float, Sfu;
    /// 1/sqrt(x)
    Rsq = "rsq", Sfu, 1, 1..=2, Float, Sfu;
    /// Binary logarithm.
    Log2 = "log2", Sfu, 1, 1..=2, Float, Sfu;
    /// Power of two.
    Exp2 = "exp2", Sfu, 1, 1..=2, Float, Sfu;
    /// Sine.
    Sin = "sin", Sfu, 1, 1..=2, Float, Sfu;
    /// Cosine.
    Cos = "cos", Sfu, 1, 1..=2, Float, Sfu;
    /// Square root.
    Sqrt = "sqrt", Sfu, 1, 1..=2, Float, Sfu;
    /// 1/sqrt(x), half.
    Hrsq = "hrsq", Sfu, 1, 1..=2, Float, Sfu;
    /// Binary logarithm, half.
    Hlog2 = "hlog2", Sfu, 1, 1..=2, Float, Sfu;
    /// Power of two, half.
    Hexp2 = "hexp2", Sfu, 1, 1..=2, Float, Sfu;
    /// Texel fetch.
    Isam = "isam", Texture, 1, 0..=4, Typed, Texture;
    /// Texel fetch at a level.
    Isaml = "isaml", Texture, 1, 0..=4, Typed, Texture;
    /// Texel fetch of a sample.
    Isamm = "isamm", Texture, 1, 0..=4, Typed, Texture;
    /// Sample.
    Sam = "sam", Texture, 1, 0..=4, Typed, Texture;
    /// Sample with bias.
    Samb = "samb", Texture, 1, 0..=4, Typed, Texture;
    /// Sample at a level.
    Saml = "saml", Texture, 1, 0..=4, Typed, Texture;
    /// Sample with explicit derivatives.
    Samgq = "samgq", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `getlod`.
    Getlod = "getlod", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `conv`.
    Conv = "conv", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `convm`.
    Convm = "convm", Texture, 1, 0..=4, Typed, Texture;
    /// Size of a level.
    Getsize = "getsize", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `getbuf`.
    Getbuf = "getbuf", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `getpos`.
    Getpos = "getpos", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `getinfo`.
    Getinfo = "getinfo", Texture, 1, 0..=4, Typed, Texture;
    /// Coarse derivative in x.
    Dsx = "dsx", Texture, 1, 0..=4, Typed, Texture;
    /// Coarse derivative in y.
    Dsy = "dsy", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `gather4r`.
    Gather4r = "gather4r", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `gather4g`.
    Gather4g = "gather4g", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `gather4b`.
    Gather4b = "gather4b", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `gather4a`.
    Gather4a = "gather4a", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `samgp0`.
    Samgp0 = "samgp0", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `samgp1`.
    Samgp1 = "samgp1", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `samgp2`.
    Samgp2 = "samgp2", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `samgp3`.
    Samgp3 = "samgp3", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `dsxpp.1`.
    Dsxpp1 = "dsxpp.1", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `dsypp.1`.
    Dsypp1 = "dsypp.1", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `rgetpos`.
    Rgetpos = "rgetpos", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `rgetinfo`.
    Rgetinfo = "rgetinfo", Texture, 1, 0..=4, Typed, Texture;
    /// Value of the previous cluster's last active lane; else the tied source.
    BrcstActive = "brcst.active", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `quad_shuffle.brcst`.
    QuadShuffleBrcst = "quad_shuffle.brcst", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `quad_shuffle.horiz`.
    QuadShuffleHoriz = "quad_shuffle.horiz", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `quad_shuffle.vert`.
    QuadShuffleVert = "quad_shuffle.vert", Texture, 1, 0..=4, Typed, Texture;
    /// Texture operation `quad_shuffle.diag`.
    QuadShuffleDiag = "quad_shuffle.diag", Texture, 1, 0..=4, Typed, Texture;
    /// Invalidates the texture cache.
    Tcinv = "tcinv", Texture, 0, 0..=4, Typed, Texture;
    /// Fine derivative in x.
    DsxppMacro = "dsxpp.macro", Texture, 1, 0..=4, Typed, Texture;
    /// Fine derivative in y.
    DsyppMacro = "dsypp.macro", Texture, 1, 0..=4, Typed, Texture;
    /// Texture sample that is issued before the program starts.
    TexPrefetch = "_meta:tex_prefetch", Meta, 1, 0..=2, Typed, Texture;
    /// Memory operation `ldg`.
    Ldg = "ldg", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `ldg.a`.
    LdgA = "ldg.a", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `ldg.k`.
    LdgK = "ldg.k", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `ldl`.
    Ldl = "ldl", Memory, 1, 0..=6, Typed, LocalMemory;
    /// Memory operation `ldp`.
    Ldp = "ldp", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `stg`.
    Stg = "stg", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `stg.a`.
    StgA = "stg.a", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `stl`.
    Stl = "stl", Memory, 0, 0..=6, Typed, LocalMemory;
    /// Memory operation `stp`.
    Stp = "stp", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `ldib`.
    Ldib = "ldib", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `stib`.
    Stib = "stib", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `g2l`.
    G2l = "g2l", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `l2g`.
    L2g = "l2g", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `prefetch`.
    Prefetch = "prefetch", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `ldlw`.
    Ldlw = "ldlw", Memory, 1, 0..=6, Typed, LocalMemory;
    /// Memory operation `stlw`.
    Stlw = "stlw", Memory, 0, 0..=6, Typed, LocalMemory;
    /// Memory operation `resfmt`.
    Resfmt = "resfmt", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `resinfo`.
    Resinfo = "resinfo", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `ldgb`.
    Ldgb = "ldgb", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `stgb`.
    Stgb = "stgb", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `ldc`.
    Ldc = "ldc", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `ldc.k`.
    LdcK = "ldc.k", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `ldlv`.
    Ldlv = "ldlv", Memory, 1, 0..=6, Typed, LocalMemory;
    /// Memory operation `getspid`.
    Getspid = "getspid", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `getwid`.
    Getwid = "getwid", Memory, 1, 0..=6, Typed, Memory;
    /// Memory operation `getfiberid`.
    Getfiberid = "getfiberid", Memory, 1, 0..=6, Typed, LocalMemory;
    /// Memory operation `stc`.
    Stc = "stc", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `stsc`.
    Stsc = "stsc", Memory, 0, 0..=6, Typed, Memory;
    /// Memory operation `shfl`.
    Shfl = "shfl", Memory, 1, 0..=6, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `add`.
    AtomicAdd = "atomic.add", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `sub`.
    AtomicSub = "atomic.sub", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `xchg`.
    AtomicXchg = "atomic.xchg", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `inc`.
    AtomicInc = "atomic.inc", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `dec`.
    AtomicDec = "atomic.dec", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `cmpxchg`.
    AtomicCmpxchg = "atomic.cmpxchg", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `min`.
    AtomicMin = "atomic.min", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `max`.
    AtomicMax = "atomic.max", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `and`.
    AtomicAnd = "atomic.and", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `or`.
    AtomicOr = "atomic.or", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on shared memory, or on a buffer below a6xx: `xor`.
    AtomicXor = "atomic.xor", Memory, 1, 2..=5, Typed, LocalMemory;
    /// Atomic on a bindless buffer or image: `add`.
    AtomicBAdd = "atomic.b.add", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `sub`.
    AtomicBSub = "atomic.b.sub", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `xchg`.
    AtomicBXchg = "atomic.b.xchg", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `inc`.
    AtomicBInc = "atomic.b.inc", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `dec`.
    AtomicBDec = "atomic.b.dec", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `cmpxchg`.
    AtomicBCmpxchg = "atomic.b.cmpxchg", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `min`.
    AtomicBMin = "atomic.b.min", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `max`.
    AtomicBMax = "atomic.b.max", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `and`.
    AtomicBAnd = "atomic.b.and", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `or`.
    AtomicBOr = "atomic.b.or", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a bindless buffer or image: `xor`.
    AtomicBXor = "atomic.b.xor", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `add`.
    AtomicSAdd = "atomic.s.add", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `sub`.
    AtomicSSub = "atomic.s.sub", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `xchg`.
    AtomicSXchg = "atomic.s.xchg", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `inc`.
    AtomicSInc = "atomic.s.inc", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `dec`.
    AtomicSDec = "atomic.s.dec", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `cmpxchg`.
    AtomicSCmpxchg = "atomic.s.cmpxchg", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `min`.
    AtomicSMin = "atomic.s.min", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `max`.
    AtomicSMax = "atomic.s.max", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `and`.
    AtomicSAnd = "atomic.s.and", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `or`.
    AtomicSOr = "atomic.s.or", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic on a buffer or image of generation 4 and 5: `xor`.
    AtomicSXor = "atomic.s.xor", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `add`.
    AtomicGAdd = "atomic.g.add", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `sub`.
    AtomicGSub = "atomic.g.sub", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `xchg`.
    AtomicGXchg = "atomic.g.xchg", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `inc`.
    AtomicGInc = "atomic.g.inc", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `dec`.
    AtomicGDec = "atomic.g.dec", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `cmpxchg`.
    AtomicGCmpxchg = "atomic.g.cmpxchg", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `min`.
    AtomicGMin = "atomic.g.min", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `max`.
    AtomicGMax = "atomic.g.max", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `and`.
    AtomicGAnd = "atomic.g.and", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `or`.
    AtomicGOr = "atomic.g.or", Memory, 1, 2..=5, Typed, Memory;
    /// Atomic at a 64-bit address: `xor`.
    AtomicGXor = "atomic.g.xor", Memory, 1, 2..=5, Typed, Memory;
    /// Stores a value to its spill slot.
    SpillMacro = "spill.macro", Memory, 0, 3..=3, Typed, Memory;
    /// Loads a value from its spill slot.
    ReloadMacro = "reload.macro", Memory, 1, 3..=3, Typed, Memory;
    /// Workgroup barrier.
    Bar = "bar", Barrier, 0, 0..=3, None, Memory;
    /// Memory fence.
    Fence = "fence", Barrier, 0, 0..=3, None, Memory;
    /// Sleeps.
    Sleep = "sleep", Barrier, 0, 0..=3, None, Memory;
    /// Invalidates the instruction cache.
    Icinv = "icinv", Barrier, 0, 0..=3, None, Memory;
    /// Cleans the data cache.
    Dccln = "dccln", Barrier, 0, 0..=3, None, Memory;
    /// Invalidates the data cache.
    Dcinv = "dcinv", Barrier, 0, 0..=3, None, Memory;
    /// Flushes the data cache.
    Dcflu = "dcflu", Barrier, 0, 0..=3, None, Memory;
    /// Invalidates the constant cache.
    Ccinv = "ccinv", Barrier, 0, 0..=3, None, Memory;
    /// Takes the lock.
    Lock = "lock", Barrier, 0, 0..=3, None, Memory;
    /// Releases the lock.
    Unlock = "unlock", Barrier, 0, 0..=3, None, Memory;
    /// Aliases a register.
    Alias = "alias", Barrier, 0, 0..=3, None, Memory;
    /// One source for each predecessor, in their order.
    Phi = "_meta:phi", Meta, 1, 0..=255, None, Meta;
    /// Puts scalars together to a vector.
    Collect = "_meta:collect", Meta, 1, 0..=255, None, Meta;
    /// Takes one component of a vector.
    Split = "_meta:split", Meta, 1, 0..=1, None, Meta;
    /// Copies all sources to all destinations at once.
    ParallelCopy = "_meta:parallel_copy", Meta, 255, 0..=255, None, Meta;
    /// A value that is there when the program starts.
    Input = "_meta:in", Meta, 1, 0..=0, None, Meta;
}

impl Opcode {
    /// The opcode's row in the table.
    pub fn info(self) -> &'static OpcodeInfo {
        &Self::TABLE[self as usize]
    }

    /// The mnemonic, without types, conditions and suffixes.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The category.
    pub fn category(self) -> Category {
        self.info().category
    }

    /// The opcode of a mnemonic as [`Opcode::name`] gives it.
    pub fn from_name(name: &str) -> Option<Self> {
        use rustc_hash::FxHashMap;
        use std::sync::LazyLock;
        static NAMES: LazyLock<FxHashMap<&'static str, Opcode>> =
            LazyLock::new(|| Opcode::ALL.iter().map(|&op| (op.name(), op)).collect());
        NAMES.get(name).copied()
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for &op in Opcode::ALL {
            assert_eq!(Opcode::from_name(op.name()), Some(op));
        }
    }
}
