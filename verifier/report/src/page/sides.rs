//! Both programs side by side.
//!
//! Instructions are paired by their identity (passes change ir3 in place), by the aligned traces, and by unique equal
//! texts. Of these pairs, the heaviest list that is in order on both sides makes the rows.

use super::listing::{ListedLine, Listing};
use super::run::LaneRun;
use maud::{Markup, html};
use rustc_hash::FxHashMap;

/// The number of equal rows that stay visible next to a row that differs.
const CONTEXT: usize = 4;

/// Fewer equal rows than these are not collapsed.
const COLLAPSED: usize = 6;

/// The comparison of the two cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowChange {
    /// Both lines have the same text.
    Same,
    /// Both lines are the same instruction on other places: values in registers, or translated from nir.
    Renamed,
    /// Both lines are the same instruction with other operands or another opcode.
    Changed,
    /// Cells that do not belong together.
    Unpaired,
}

/// A row: a line of each program, or of one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideRow {
    pub before: Option<usize>,
    pub after: Option<usize>,
    pub change: RowChange,
}

/// Aligns two programs.
pub(super) fn align(before: &Listing, after: &Listing, run: &LaneRun) -> Vec<SideRow> {
    let mut rows = Vec::new();
    let (mut i, mut j) = (0, 0);
    let ends = (before.lines.len(), after.lines.len());
    for (a, b) in in_order(candidates(before, after, run), ends.1).into_iter().chain([ends]) {
        // The unpaired lines of both sides share rows.
        while i < a || j < b {
            let row =
                SideRow { before: (i < a).then_some(i), after: (j < b).then_some(j), change: RowChange::Unpaired };
            rows.push(row);
            (i, j) = ((i + 1).min(a), (j + 1).min(b));
        }
        if (a, b) == ends {
            break;
        }
        let change = match before.machine == after.machine {
            true => compare(&before.lines[a].text, &after.lines[b].text),
            false => RowChange::Renamed,
        };
        rows.push(SideRow { before: Some(a), after: Some(b), change });
        (i, j) = (a + 1, b + 1);
    }
    rows
}

/// Pairs of lines with their weights.
fn candidates(before: &Listing, after: &Listing, run: &LaneRun) -> FxHashMap<(usize, usize), u32> {
    let by_point = |listing: &Listing| -> FxHashMap<_, usize> {
        listing.lines.iter().zip(0..).map(|(line, number)| (line.at, number)).collect()
    };
    let (points_a, points_b) = (by_point(before), by_point(after));
    let mut pairs = FxHashMap::default();
    for (a, b) in run.pairs.keys() {
        if let (Some(&a), Some(&b)) = (points_a.get(a), points_b.get(b)) {
            *pairs.entry((a, b)).or_default() += 4;
        }
    }
    if before.machine == after.machine {
        for (a, line) in before.lines.iter().enumerate() {
            if let Some(&b) = points_b.get(&line.at)
                && after.lines[b].word == line.word
            {
                *pairs.entry((a, b)).or_default() += 6;
            }
        }
    }
    let by_text = |listing: &Listing| {
        let mut lines: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        let texts = listing.lines.iter().zip(0..);
        texts.for_each(|(line, number)| lines.entry(line.text.clone()).or_default().push(number));
        lines
    };
    let texts_b = by_text(after);
    for (text, lines) in by_text(before) {
        if let ([a], Some([b])) = (&lines[..], texts_b.get(&text).map(Vec::as_slice)) {
            *pairs.entry((*a, *b)).or_default() += 3;
        }
    }
    pairs
}

/// The heaviest list of pairs that is increasing on both sides, by a tree of maxima over prefixes.
fn in_order(pairs: FxHashMap<(usize, usize), u32>, count: usize) -> Vec<(usize, usize)> {
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_unstable_by_key(|&((a, b), _)| (a, std::cmp::Reverse(b)));
    // The greatest weight of a list that ends in a prefix, and its last pair.
    let mut tree: Vec<(u64, usize)> = vec![(0, usize::MAX); count + 1];
    let mut links = vec![usize::MAX; pairs.len()];
    let mut best = (0, usize::MAX);
    for (number, &((_, b), weight)) in pairs.iter().enumerate() {
        let (mut at, mut found) = (b, (0, usize::MAX));
        while at > 0 {
            found = if tree[at].0 > found.0 { tree[at] } else { found };
            at &= at - 1;
        }
        links[number] = found.1;
        let own = (found.0 + u64::from(weight), number);
        best = if own.0 > best.0 { own } else { best };
        let mut at = b + 1;
        while at <= count {
            tree[at] = if own.0 > tree[at].0 { own } else { tree[at] };
            at += at & at.wrapping_neg();
        }
    }
    let mut list = Vec::new();
    let mut at = best.1;
    while let Some(&(pair, _)) = pairs.get(at) {
        list.push(pair);
        at = links[at];
    }
    list.reverse();
    list
}

/// The words of an instruction, with their separators.
fn tokens(text: &str) -> Vec<&str> {
    text.split_inclusive([' ', ',', '(', ')']).collect()
}

/// Compares two texts of one language. Marks of last uses are no difference.
fn compare(before: &str, after: &str) -> RowChange {
    if before == after {
        return RowChange::Same;
    }
    let without_kills = |text: &str| text.replace("(kill)", "").replace("(last)", "");
    let (a, b) = (without_kills(before), without_kills(after));
    let (a, b) = (tokens(&a), tokens(&b));
    let equal = |(a, b): (&&str, &&str)| a == b || is_place(a) && is_place(b);
    if a.len() == b.len() && a.iter().zip(&b).all(equal) { RowChange::Renamed } else { RowChange::Changed }
}

/// Returns true for the name of an SSA value or of a register.
fn is_place(token: &str) -> bool {
    let name = token.trim_end_matches([' ', ',', '(', ')']).trim_start_matches(['h', '!', '-', '|']);
    let register = |name: &str| {
        name.split_once('.').is_some_and(|(number, component)| {
            number.parse::<u32>().is_ok() && matches!(component, "x" | "y" | "z" | "w")
        })
    };
    let value = name.trim_start_matches(['p', 'a', 's']);
    name.contains("ssa_")
        || ["r", "p", "pp", "a", "sr"].iter().any(|file| name.strip_prefix(file).is_some_and(register))
        || value.starts_with('%')
}

/// Renders the comparison.
pub(super) fn render(before: &Listing, after: &Listing, run: &LaneRun, rows: &[SideRow], stage: &str) -> Markup {
    let wrong = |row: &SideRow| {
        let of = |side: usize, listing: &Listing, line: Option<usize>| {
            line.and_then(|line| run.sides[side].get(&listing.lines[line].at))
                .is_some_and(|known| known.wrong || known.first)
        };
        of(0, before, row.before) || of(1, after, row.after)
    };
    let class = |row: &SideRow| match row.change {
        _ if wrong(row) => None,
        RowChange::Same | RowChange::Renamed => Some(Unremarkable::Equal),
        RowChange::Changed => None,
        RowChange::Unpaired => Some(Unremarkable::Alone),
    };
    let parts = parts(&rows.iter().map(class).collect::<Vec<_>>());
    let sides = Sides { before, after, run };
    html! {
        p.legend {
            span.key.changed { "changed" } " "
            span.key.removed { "only before" } " "
            span.key.added { "only after" } " "
            span.key.wrong { "other values in the traced lane" }
        }
        div.sides {
            div.sidehead aria-hidden="true" {
                span { "before " code { (stage) } }
                span { "after " code { (stage) } }
            }
            @for part in parts {
                @let range = part.range.clone();
                @if let Some(class) = part.collapsed {
                    details.equal {
                        summary {
                            (range.len())
                            @match class {
                                Unremarkable::Equal => " instructions without a difference",
                                Unremarkable::Alone => " rows without a partner on the other side",
                            }
                        }
                        (sides.table(&rows[range.clone()], range.start, rows))
                    }
                } @else {
                    (sides.table(&rows[range.clone()], range.start, rows))
                }
            }
        }
    }
}

/// The reason why a row need not be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unremarkable {
    /// Both sides are equal.
    Equal,
    /// It has no partner, and the traced lane has no wrong value there.
    Alone,
}

/// A range of rows that are shown together, or collapsed for one reason.
pub(super) struct RowGroup<K> {
    pub range: std::ops::Range<usize>,
    pub collapsed: Option<K>,
}

/// Splits rows, given why they need not be seen: long runs with one reason are collapsed, but for some context.
pub(super) fn parts<K: Copy + PartialEq>(plain: &[Option<K>]) -> Vec<RowGroup<K>> {
    let mut parts: Vec<RowGroup<K>> = Vec::new();
    let mut start = 0;
    for run in plain.chunk_by(|a, b| a == b) {
        let end = start + run.len();
        let from = if start == 0 { 0 } else { start + CONTEXT };
        let to = if end == plain.len() { end } else { end.saturating_sub(CONTEXT) };
        if run[0].is_some() && to >= from + COLLAPSED && run.len() < plain.len() {
            parts.push(RowGroup { range: from..to, collapsed: run[0] });
        }
        start = end;
    }
    let mut all = Vec::new();
    let mut at = 0;
    for part in parts {
        if at < part.range.start {
            all.push(RowGroup { range: at..part.range.start, collapsed: None });
        }
        at = part.range.end;
        all.push(part);
    }
    if at < plain.len() {
        all.push(RowGroup { range: at..plain.len(), collapsed: None });
    }
    all
}

struct Sides<'a> {
    before: &'a Listing,
    after: &'a Listing,
    run: &'a LaneRun,
}

impl Sides<'_> {
    /// Renders rows; `start` is the number of the first one.
    fn table(&self, rows: &[SideRow], start: usize, all: &[SideRow]) -> Markup {
        let blocks = |row: &SideRow| {
            let of = |listing: &Listing, line: Option<usize>| line.map(|line| listing.lines[line].block);
            [of(self.before, row.before), of(self.after, row.after)]
        };
        // Each row with the blocks that begin at it.
        let mut current = [None; 2];
        let mut enter = |row: &SideRow| {
            let here = blocks(row);
            let new = [0, 1].map(|side| here[side].filter(|_| here[side] != current[side]));
            (0..2).for_each(|side| current[side] = here[side].or(current[side]));
            new
        };
        all[..start].iter().for_each(|row| {
            enter(row);
        });
        let rows: Vec<_> = rows.iter().map(|row| (row, enter(row))).collect();
        html! {
            table.code {
                @for (row, new) in rows {
                    @if new != [None; 2] {
                        tr class=(if self.is_one_name(new) { "head once" } else { "head" }) {
                            th id=[new[0].map(|block| format!("before-{}", self.before.blocks[block].name))] {
                                @if let Some(block) = new[0] { (self.before.blocks[block].name) }
                            }
                            th id=[new[1].map(|block| format!("after-{}", self.after.blocks[block].name))] {
                                @if let Some(block) = new[1] { (self.after.blocks[block].name) }
                            }
                        }
                    }
                    (self.row(row))
                }
            }
        }
    }

    /// Returns true if blocks of one name begin on both sides.
    fn is_one_name(&self, blocks: [Option<usize>; 2]) -> bool {
        matches!(blocks, [Some(a), Some(b)] if self.before.blocks[a].name == self.after.blocks[b].name)
    }

    fn row(&self, row: &SideRow) -> Markup {
        let lines = [row.before.map(|line| &self.before.lines[line]), row.after.map(|line| &self.after.lines[line])];
        let known = |side: usize| lines[side].and_then(|line: &ListedLine| self.run.sides[side].get(&line.at));
        let first = (0..2).any(|side| known(side).is_some_and(|known| known.first));
        let wrong = (0..2).any(|side| known(side).is_some_and(|known| known.wrong));
        let change = match (row.change, row.before, row.after) {
            (RowChange::Same, ..) => "same",
            (RowChange::Renamed, ..) => "renamed",
            (RowChange::Changed, ..) => "changed",
            (RowChange::Unpaired, Some(_), Some(_)) => "unpaired",
            (RowChange::Unpaired, Some(_), None) => "unpaired gone",
            (RowChange::Unpaired, ..) => "unpaired new",
        };
        let class = format!("{change}{}{}", if wrong { " wrong" } else { "" }, if first { " first" } else { "" });
        let texts = lines.map(|line| line.map(|line| line.text.as_str()));
        let marked = match (row.change, texts) {
            (RowChange::Changed, [Some(a), Some(b)]) => changed_parts(a, b),
            _ => texts.map(|text| text.map_or_else(|| html! {}, |text| html! { (text) })),
        };
        html! {
            tr class=(class) {
                @for (side, text) in marked.iter().enumerate() {
                    td class=(["a", "b"][side]) {
                        @if lines[side].is_some() {
                            code { (text) }
                            @if let Some(known) = known(side) {
                                " " span.v {
                                    (known.values)
                                    @if known.count > 1 { span.times { " ×" (known.count) } }
                                }
                            }
                        }
                    }
                }
            }
            @if first { tr.here { td colspan="2" { "▲ first difference in the traced lane" } } }
        }
    }
}

/// Two texts with marks around the parts that differ, without the common words at both ends.
fn changed_parts(before: &str, after: &str) -> [Markup; 2] {
    let (a, b) = (tokens(before), tokens(after));
    let shared = a.len().min(b.len());
    let head = (0..shared).take_while(|&i| a[i] == b[i]).count();
    let tail = (0..shared - head).take_while(|&i| a[a.len() - 1 - i] == b[b.len() - 1 - i]).count();
    [a, b].map(|words| {
        let (middle, end) = (head, words.len() - tail);
        html! { (words[..middle].concat()) mark { (words[middle..end].concat()) } (words[end..].concat()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_in_place_of_values_are_no_change() {
        assert_eq!(compare("add.u ssa_3, ssa_1, 0x1", "add.u ssa_3, ssa_1, 0x1"), RowChange::Same);
        assert_eq!(compare("add.u ssa_3, (kill)ssa_1, 0x1", "add.u r0.x, hr12.w, 0x1"), RowChange::Renamed);
        assert_eq!(compare("add.u r0.x, r0.y, 0x1", "add.u r0.x, r0.y, 0x2"), RowChange::Changed);
        assert_eq!(compare("cmps.s.lt r0.x, r0.y", "cmps.s.le r0.x, r0.y"), RowChange::Changed);
        assert_eq!(compare("mov r0.x, c1.x", "mov r0.x, r1.x"), RowChange::Changed);
    }

    #[test]
    fn pairs_are_in_order() {
        let pairs = [((0, 2), 5), ((1, 0), 4), ((2, 1), 4), ((3, 3), 1), ((1, 1), 1)];
        assert_eq!(in_order(pairs.into_iter().collect(), 4), [(1, 0), (2, 1), (3, 3)]);
        assert_eq!(in_order(FxHashMap::default(), 0), []);
    }

    #[test]
    fn long_equal_regions_are_collapsed() {
        use Unremarkable::{Alone, Equal};
        let split = |plain: &[_]| parts(plain).into_iter().map(|part| (part.range, part.collapsed)).collect::<Vec<_>>();
        let plain: Vec<_> = (0..40).map(|row| (row != 20).then_some(Equal)).collect();
        assert_eq!(split(&plain), [(0..16, Some(Equal)), (16..25, None), (25..40, Some(Equal))]);
        // Rows without a partner are collapsed separately from equal ones; a program of only such rows is shown.
        let plain: Vec<_> = (0..40).map(|row| Some(if row < 20 { Equal } else { Alone })).collect();
        assert_eq!(split(&plain), [(0..16, Some(Equal)), (16..24, None), (24..40, Some(Alone))]);
        assert_eq!(split(&plain[20..]), [(0..20, None)]);
    }
}
