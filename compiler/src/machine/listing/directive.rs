//! The lines with `@` before the instructions: the setup of a program for `computerator`, and the inputs that logs
//! list.

use crate::ir3::PhysReg;

/// A line that begins with `@`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// `@localsize 32, 1, 1`: the workgroup.
    LocalSize([u32; 3]),
    /// `@buf 32`: a storage buffer, by its number of words; it is the next one. `@buf 32 (c2.x)`: its address is in two
    /// constants.
    Buffer {
        /// The number of words.
        words: u32,
        /// The first of two constants that hold the address.
        address: Option<u16>,
    },
    /// `@invocationid(r0.x)`: the local invocation, three registers.
    InvocationId(PhysReg),
    /// `@wgid(r48.x)`: the workgroup, three registers.
    WorkgroupId(PhysReg),
    /// `@wgid(c2.x)`: before a5xx it is in constants.
    WorkgroupIdConst(u16),
    /// `@numwg(c2.x)`: the number of workgroups, three constants.
    NumWorkgroups(u16),
    /// `@const(c0.x) 1.0, 0, 0xff, 2`: words of the constant file.
    Const(u16, Vec<u32>),
    /// `@branchstack 1`: the depth of the branch stack.
    BranchStack(u32),
    /// `@pvtmem 4`: scratch memory of a lane, in bytes.
    PrivateMemory(u32),
    /// `@localmem 4`: shared memory of a workgroup, in bytes.
    LocalMemory(u32),
    /// `@earlypreamble`: the preamble is executed before the wave has registers.
    EarlyPreamble,
    /// `@in(r0.x)`: registers with a value at the start.
    Input {
        /// The first register.
        register: PhysReg,
        /// True for half registers.
        half: bool,
        /// The registers.
        mask: u8,
    },
    /// `@out(r0.x)`.
    Output,
    /// `@tex(r0.x) …`: a sample before the start of the program; the rest of the line.
    Texture(String),
    /// `@fullnopstart`, `@fullnopend`: `(rpt5)nop` before each instruction between.
    FullNop(bool),
    /// `@fullsyncstart`, `@fullsyncend`: `(ss)(sy)nop` before each instruction between.
    FullSync(bool),
}

/// The expectation that a directive did not meet, and its byte in the line.
pub type DirectiveError = (usize, &'static str);

/// The names, as an error lists them.
const NAMES: &str = "@localsize, @buf, @const, @invocationid, @wgid, @numwg, @branchstack, @pvtmem, @localmem, @earlypreamble, \
                     @in, @out, @tex, @fullnopstart, @fullnopend, @fullsyncstart or @fullsyncend";

impl Directive {
    /// Returns true for a directive between instructions.
    pub const fn is_section(&self) -> bool {
        matches!(self, Self::FullNop(_) | Self::FullSync(_))
    }

    /// Reads a line without its comment.
    ///
    /// # Errors
    /// The byte in the line, and the expected token.
    pub fn read(line: &str) -> Result<Self, DirectiveError> {
        let rest = line.strip_prefix('@').ok_or((0, "`@`"))?;
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        let arguments = rest[name.len()..].trim();
        let at = if arguments.is_empty() { line.len() } else { line.len() - rest[name.len()..].trim_start().len() };
        // The operand in parentheses, and the text after it.
        let operand = || -> Result<(&str, &str), DirectiveError> {
            let inner = arguments.strip_prefix('(').ok_or((at, "`(`"))?;
            let (inner, rest) = inner.split_once(')').ok_or((line.len(), "`)`"))?;
            Ok((inner.trim(), rest.trim()))
        };
        let register = |text: &str| general(text).ok_or((at + 1, "a register"));
        let constant = |text: &str| constant(text).ok_or((at + 1, "a constant, as `c0.x`"));
        let number = |text: &str| value(text).ok_or((at, "a number"));
        Ok(match name {
            "localsize" => {
                let mut sizes = arguments.split(',').map(value);
                let mut size = || sizes.next().flatten().ok_or((at, "three numbers"));
                Self::LocalSize([size()?, size()?, size()?])
            }
            "buf" => {
                let words = arguments.split([' ', '\t', '(', ',']).next().unwrap_or_default();
                let address = match arguments.split_once('(') {
                    Some((_, rest)) => Some(constant(rest.split(')').next().unwrap_or_default())?),
                    None => None,
                };
                Self::Buffer { words: number(words)?, address }
            }
            "const" => {
                let (word, values) = operand()?;
                let values: Option<Vec<u32>> = values.split(',').map(value).collect();
                Self::Const(constant(word)?, values.ok_or((at, "numbers after the constant"))?)
            }
            "invocationid" => Self::InvocationId(register(operand()?.0)?),
            "wgid" => match operand()?.0 {
                word if word.starts_with('c') => Self::WorkgroupIdConst(constant(word)?),
                word => Self::WorkgroupId(register(word)?),
            },
            "numwg" => Self::NumWorkgroups(constant(operand()?.0)?),
            "branchstack" => Self::BranchStack(number(arguments)?),
            "pvtmem" => Self::PrivateMemory(number(arguments)?),
            "localmem" => Self::LocalMemory(number(arguments)?),
            "earlypreamble" => Self::EarlyPreamble,
            "in" => {
                let (name, rest) = operand()?;
                let half = name.starts_with('h');
                let mask = match rest.split_once("(wrmask=0x") {
                    Some((_, mask)) => u8::from_str_radix(mask.trim_end_matches(')'), 16).ok(),
                    None => Some(1),
                };
                let mask = mask.ok_or((at, "a mask"))?;
                Self::Input { register: register(name.trim_start_matches('h'))?, half, mask }
            }
            "out" => Self::Output,
            "tex" => Self::Texture(arguments.to_owned()),
            "fullnopstart" | "fullnopend" => Self::FullNop(name.ends_with("start")),
            "fullsyncstart" | "fullsyncend" => Self::FullSync(name.ends_with("start")),
            _ => return Err((0, NAMES)),
        })
    }
}

/// `12.y` as a number of components.
fn component(text: &str) -> Option<u16> {
    let (number, component) = text.split_once('.')?;
    let component = ["x", "y", "z", "w"].iter().position(|&name| name == component)?;
    number.parse::<u16>().ok()?.checked_mul(4)?.checked_add(component as u16)
}

fn general(text: &str) -> Option<PhysReg> {
    component(text.strip_prefix('r')?).filter(|&number| number < 256).map(PhysReg)
}

fn constant(text: &str) -> Option<u16> {
    component(text.strip_prefix('c')?)
}

/// A number as `computerator` has them: an integer, negative, in hexadecimal, or a float, which is its bits.
fn value(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).ok();
    }
    if text.contains('.') {
        return text.parse::<f32>().ok().map(f32::to_bits);
    }
    text.parse::<u32>().ok().or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read() {
        for (line, expected) in [
            ("@localsize 32, 2, 1", Directive::LocalSize([32, 2, 1])),
            ("@buf 32", Directive::Buffer { words: 32, address: None }),
            ("@buf 128 (c2.x)", Directive::Buffer { words: 128, address: Some(8) }),
            ("@buf 8 1, 2, 3", Directive::Buffer { words: 8, address: None }),
            ("@invocationid(r0.y)", Directive::InvocationId(PhysReg(1))),
            ("@wgid(r48.x)", Directive::WorkgroupId(PhysReg(192))),
            ("@wgid(c3.x)", Directive::WorkgroupIdConst(12)),
            ("@numwg(c2.x)", Directive::NumWorkgroups(8)),
            ("@const(c1.x)  1.0, -1, 0xff, 2", Directive::Const(4, vec![0x3f80_0000, u32::MAX, 255, 2])),
            ("@branchstack 3", Directive::BranchStack(3)),
            ("@pvtmem 16", Directive::PrivateMemory(16)),
            ("@localmem 0x20", Directive::LocalMemory(32)),
            ("@earlypreamble", Directive::EarlyPreamble),
            ("@in(hr0.x)\tin1 (wrmask=0x3)", Directive::Input { register: PhysReg(0), half: true, mask: 3 }),
            ("@in(r1.x)\tin0", Directive::Input { register: PhysReg(4), half: false, mask: 1 }),
            ("@fullnopstart", Directive::FullNop(true)),
            ("@fullsyncend", Directive::FullSync(false)),
        ] {
            assert_eq!(Directive::read(line), Ok(expected), "{line}");
        }
        for (line, at) in [
            ("@nothing", 0),
            ("@localsize 32, 2", 11),
            ("@invocationid r0.x", 14),
            ("@invocationid(c0.x)", 14),
            ("@const(c0.x) a", 6),
        ] {
            assert_eq!(Directive::read(line).map_err(|(at, _)| at), Err(at), "{line}");
        }
    }
}
