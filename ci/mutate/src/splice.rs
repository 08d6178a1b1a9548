//! Changes as text around parts of a file, and the file with all of them.

use std::ops::Range;

/// One change: around a part of the text, `before` (with the changed text in it) and `after`.
#[derive(Clone, Debug)]
pub struct Splice {
    /// The number that switches it on.
    pub number: u32,
    /// The part of the file, in bytes.
    pub around: Range<usize>,
    pub before: String,
    pub after: &'static str,
}

/// The bytes of a splice in the new text: its `before`, and all of it.
#[derive(Clone, Debug)]
pub struct Placed {
    pub number: u32,
    pub changed: Range<usize>,
    pub all: Range<usize>,
}

/// Returns the text with the splices, which have to be nested, and where they are in it.
pub fn splice(text: &str, splices: &[Splice]) -> (String, Vec<Placed>) {
    // At one position: ends come first, the inner before the outer; then beginnings, the outer before the inner. Of two
    // splices around the same part, the first is the outer one.
    let mut points: Vec<(usize, bool, isize, isize, usize)> = Vec::new();
    for (index, splice) in splices.iter().enumerate() {
        let (length, order) = (splice.around.len() as isize, index as isize);
        if splice.around.is_empty() {
            points.push((splice.around.start, true, isize::MIN, order, index));
        } else {
            points.push((splice.around.start, true, -length, order, index));
            points.push((splice.around.end, false, length, -order, index));
        }
    }
    points.sort();
    let mut new = String::with_capacity(text.len() * 4);
    let mut placed: Vec<Placed> =
        splices.iter().map(|splice| Placed { number: splice.number, changed: 0..0, all: 0..0 }).collect();
    let mut done = 0;
    for (at, begins, _, _, index) in points {
        new.push_str(&text[done..at]);
        done = at;
        if begins {
            placed[index].changed.start = new.len();
            placed[index].all.start = new.len();
            new.push_str(&splices[index].before);
            placed[index].changed.end = new.len();
        }
        if !begins || splices[index].around.is_empty() {
            new.push_str(splices[index].after);
            placed[index].all.end = new.len();
        }
    }
    new.push_str(&text[done..]);
    (new, placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splices_nest() {
        let of = |number, around, before: &str, after| Splice { number, around, before: before.into(), after };
        let splices = [
            of(1, 0..5, "<", ">"),
            of(2, 0..1, "[", "]"),
            of(3, 0..1, "{", "}"),
            of(4, 4..5, "(", ")"),
            of(5, 2..2, "!", ""),
        ];
        let (text, placed) = splice("a + b", &splices);
        assert_eq!(text, "<[{a}] !+ (b)>");
        assert_eq!(&text[placed[2].all.clone()], "{a}");
        assert_eq!(&text[placed[0].all.clone()], text);
        assert_eq!(&text[placed[4].changed.clone()], "!");
    }
}
