//! Jobs: a module, its dispatch, and the contents of its buffers, as words of 32 bits, the least significant byte first.
//!
//! In order: the number of all words after this one; the number of words of the module; the numbers of workgroups in x, y and z; the number of
//! words of push constants; the number of buffers; then for each buffer its set, its binding, its element in an array of descriptors, 1 if
//! it is a storage buffer and 0 if it is a uniform one, and its number of words. After these the words of the module, of the push constants and
//! of the buffers.

use std::io::{self, Read};

/// The most words of a job.
const MOST_WORDS: u32 = 1 << 26;

/// A buffer of a descriptor.
#[derive(Debug, PartialEq, Eq)]
pub struct Buffer {
    pub set: u32,
    pub binding: u32,
    /// The element of an array of descriptors.
    pub element: u32,
    pub is_storage: bool,
    pub words: Vec<u32>,
}

/// A job.
#[derive(Debug, PartialEq, Eq)]
pub struct Job {
    pub module: Vec<u32>,
    pub groups: [u32; 3],
    pub pushed: Vec<u32>,
    pub buffers: Vec<Buffer>,
}

/// Reads a job; none at the end of the input.
///
/// # Errors
/// If the input ends within a job, or is none.
pub fn read(from: &mut impl Read) -> io::Result<Option<Job>> {
    let mut head = [0; 4];
    // The end of the input is the end of the work.
    if let Err(error) = from.read_exact(&mut head) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let count = u32::from_le_bytes(head);
    if count > MOST_WORDS {
        return Err(io::Error::other(format!("a job of {count} words")));
    }
    let mut bytes = vec![0; count as usize * 4];
    from.read_exact(&mut bytes)?;
    let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    parse(&words).map(Some).ok_or_else(|| io::Error::other("a job that is too short"))
}

fn parse(words: &[u32]) -> Option<Job> {
    let (&[module, x, y, z, pushed, buffers], mut rest) = words.split_first_chunk::<6>()?;
    let mut take = |count: u32| {
        let (taken, left) = rest.split_at_checked(count as usize)?;
        rest = left;
        Some(taken.to_vec())
    };
    let heads = take(buffers.checked_mul(5)?)?;
    let (module, pushed) = (take(module)?, take(pushed)?);
    let mut list = Vec::new();
    for &[set, binding, element, is_storage, count] in heads.as_chunks().0 {
        list.push(Buffer { set, binding, element, is_storage: is_storage != 0, words: take(count)? });
    }
    Some(Job { module, groups: [x, y, z], pushed, buffers: list })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read() {
        let words = [14, 2, 1, 2, 3, 1, 1, 0, 64, 5, 1, 1, 10, 11, 12, 13_u32];
        let mut words = words.to_vec();
        words[0] = words.len() as u32 - 1;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let job = read(&mut &bytes[..]).expect("a job").expect("no end");
        let buffer = Buffer { set: 0, binding: 64, element: 5, is_storage: true, words: vec![13] };
        assert_eq!(job, Job { module: vec![10, 11], groups: [1, 2, 3], pushed: vec![12], buffers: vec![buffer] });
        assert_eq!(read(&mut &bytes[..0]).expect("an end"), None);
        assert!(read(&mut &bytes[..bytes.len() - 1]).is_err());
        let mut short = bytes.clone();
        short[4] = 200;
        assert!(read(&mut &short[..]).is_err());
    }
}
