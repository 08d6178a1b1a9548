//! Jobs: a module, its dispatch or its draw, and the contents of its resources, as words of 32 bits, the least
//! significant byte first.
//!
//! In order: the number of all words after this one; the number of words of the module; the numbers of workgroups in x,
//! y and z; the number of words of push constants; the number of resources; the number of words of the vertex shader, 0
//! for a dispatch; the number of colour attachments; the scissor rectangle of the draw (x, y, width, height); 1 if the
//! triangle faces the front, else 0; for a draw that is captured its vertices, its instances, its first vertex, and the
//! words that are captured of a vertex, else zeros; the number of its attributes and of their words. Then for each
//! resource its set, its binding, its element in an array of descriptors, its kind ([`Kind`]), its number of words, its
//! format as a number of Vulkan, its type of view as a number of Vulkan, its width, height, depth and layers. After
//! these the words of the module, of the push constants, of the vertex shader, the locations and the words of
//! attributes, and the words of the resources.

use std::io::{self, Read};

/// The most words of a job.
const MOST_WORDS: u32 = 1 << 26;
/// The words that describe a resource.
const OF_RESOURCE: usize = 11;

/// The kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Uniform,
    Storage,
    /// A storage image.
    Image,
    /// A sampled image.
    Texture,
    /// A sampler with the nearest filter, whose coordinates are clamped to the edge.
    Sampler,
    /// A storage texel buffer.
    TexelBuffer,
}

impl Kind {
    fn by_number(number: u32) -> Option<Self> {
        let all = [Self::Uniform, Self::Storage, Self::Image, Self::Texture, Self::Sampler, Self::TexelBuffer];
        all.get(number as usize).copied()
    }

    /// Returns true if a program writes it: its contents are a part of the answer.
    pub const fn is_written(self) -> bool {
        matches!(self, Self::Storage | Self::Image | Self::TexelBuffer)
    }
}

/// A resource of a descriptor.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    pub set: u32,
    pub binding: u32,
    /// The element of an array of descriptors.
    pub element: u32,
    pub kind: Kind,
    /// The format of texels.
    pub format: u32,
    /// The type of the view of an image.
    pub view: u32,
    /// Width, height and depth of an image.
    pub extent: [u32; 3],
    pub layers: u32,
    pub words: Vec<u32>,
}

/// A draw of one triangle on a framebuffer of 2 × 2 pixels.
#[derive(Debug, PartialEq, Eq)]
pub struct Draw {
    /// The vertex shader.
    pub vertex: Vec<u32>,
    /// Colour attachments, each of four words a pixel.
    pub attachments: u32,
    pub scissor: [u32; 4],
    pub is_front: bool,
}

/// A draw of lines whose vertices are captured by transform feedback.
#[derive(Debug, PartialEq, Eq)]
pub struct Capture {
    pub vertices: u32,
    pub instances: u32,
    /// The number of the first vertex.
    pub first: u32,
    /// The words that are captured of a vertex.
    pub stride: u32,
    /// The locations of attributes, of four words each.
    pub attributes: Vec<u32>,
    /// The words of attributes, by vertex.
    pub data: Vec<u32>,
}

impl Capture {
    /// The bytes that are captured of all vertices; none if they are too many.
    pub fn bytes(&self) -> Option<u64> {
        let words = self.vertices.checked_mul(self.instances)?.checked_mul(self.stride)?;
        (words <= MOST_WORDS).then_some(4 * u64::from(words))
    }
}

/// A job.
#[derive(Debug, PartialEq, Eq)]
pub struct Job {
    pub module: Vec<u32>,
    pub groups: [u32; 3],
    pub pushed: Vec<u32>,
    pub resources: Vec<Resource>,
    pub draw: Option<Draw>,
    pub capture: Option<Capture>,
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
    parse(&words)
        .map(Some)
        .ok_or_else(|| io::Error::other("a job that is too short, or has a resource of no known kind"))
}

fn parse(words: &[u32]) -> Option<Job> {
    let (&[module, x, y, z, pushed, resources], rest) = words.split_first_chunk::<6>()?;
    let (&[vertex, attachments, left, top, width, height, front], rest) = rest.split_first_chunk::<7>()?;
    let (&[vertices, instances, first, stride, attributes, data], mut rest) = rest.split_first_chunk::<6>()?;
    let mut take = |count: u32| {
        let (taken, left) = rest.split_at_checked(count as usize)?;
        rest = left;
        Some(taken.to_vec())
    };
    let heads = take(resources.checked_mul(OF_RESOURCE as u32)?)?;
    let (module, pushed, vertex) = (take(module)?, take(pushed)?, take(vertex)?);
    let (attributes, data) = (take(attributes)?, take(data)?);
    let mut list = Vec::new();
    for head in heads.as_chunks::<OF_RESOURCE>().0 {
        let [set, binding, element, kind, count, format, view, width, height, depth, layers] = *head;
        list.push(Resource {
            set,
            binding,
            element,
            kind: Kind::by_number(kind)?,
            format,
            view,
            extent: [width, height, depth],
            layers,
            words: take(count)?,
        });
    }
    let draw = Draw { vertex, attachments, scissor: [left, top, width, height], is_front: front != 0 };
    let draw = (!draw.vertex.is_empty()).then_some(draw);
    let capture = Capture { vertices, instances, first, stride, attributes, data };
    let capture = (vertices != 0).then_some(capture);
    if capture.as_ref().is_some_and(|capture| capture.bytes().is_none()) {
        return None;
    }
    Some(Job { module, groups: [x, y, z], pushed, resources: list, draw, capture })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read() {
        let head = [0, 2, 1, 2, 3, 1, 1, 2, 1, 0, 1, 2, 1, 1, 6, 2, 3, 4, 1, 2];
        let resource = [0, 64, 5, 1, 1, 0, 0, 0, 0, 0, 0];
        let mut words = [&head[..], &resource, &[10, 11, 12, 14, 15, 7, 16, 17, 13_u32]].concat();
        words[0] = words.len() as u32 - 1;
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let job = read(&mut &bytes(&words)[..]).expect("a job").expect("no end");
        let resource = Resource {
            set: 0,
            binding: 64,
            element: 5,
            kind: Kind::Storage,
            format: 0,
            view: 0,
            extent: [0; 3],
            layers: 0,
            words: vec![13],
        };
        let draw = Draw { vertex: vec![14, 15], attachments: 1, scissor: [0, 1, 2, 1], is_front: true };
        let capture =
            Capture { vertices: 6, instances: 2, first: 3, stride: 4, attributes: vec![7], data: vec![16, 17] };
        assert_eq!(capture.bytes(), Some(192));
        let expected = Job {
            module: vec![10, 11],
            groups: [1, 2, 3],
            pushed: vec![12],
            resources: vec![resource],
            draw: Some(draw),
            capture: Some(capture),
        };
        assert_eq!(job, expected);
        let all = bytes(&words);
        assert_eq!(read(&mut &all[..0]).expect("an end"), None);
        assert!(read(&mut &all[..all.len() - 1]).is_err());
        let mut short = all.clone();
        short[4] = 200;
        assert!(read(&mut &short[..]).is_err());
        words[23] = 9;
        assert!(read(&mut &bytes(&words)[..]).is_err());
    }
}
