//! Layered drawing of a control-flow graph (Sugiyama's method).
//!
//! Edges that close a cycle in depth-first order are back edges; the others point down. A node's layer is the length of
//! the longest path to it. Edges over several layers get a point in each layer between. Layers are ordered by the mean
//! positions of their neighbours, which avoids most crossings, and then moved towards them.

use std::collections::VecDeque;

/// A directed graph; node 0 is the entry.
pub(super) struct BlockGraph {
    /// The successors of each node.
    pub successors: Vec<Vec<usize>>,
}

/// A drawn edge.
pub(super) struct DrawnEdge {
    pub from: usize,
    pub to: usize,
    /// It closes a cycle.
    pub back: bool,
    /// The columns of its points in the layers between those of its ends.
    pub bends: Vec<i32>,
}

/// The places of nodes and edges.
pub(super) struct GraphLayout {
    /// The layer of each node.
    pub layers: Vec<usize>,
    /// The horizontal position of the middle of each node.
    pub columns: Vec<i32>,
    pub edges: Vec<DrawnEdge>,
}

/// A node in a layer: one of the graph, or a point of an edge.
#[derive(Clone, Copy)]
struct LayoutItem {
    width: i32,
    column: i32,
}

impl BlockGraph {
    /// The nodes within `count` steps of breadth-first search from a node, along edges of both directions, in order.
    pub fn near(&self, node: usize, count: usize) -> Vec<usize> {
        let mut neighbours = self.successors.clone();
        for (from, list) in self.successors.iter().enumerate() {
            list.iter().for_each(|&to| neighbours[to].push(from));
        }
        let mut seen = vec![false; neighbours.len()];
        let mut waiting = VecDeque::from([node]);
        let mut near = Vec::new();
        seen[node] = true;
        while let Some(node) = waiting.pop_front().filter(|_| near.len() < count) {
            near.push(node);
            for &next in &neighbours[node] {
                if !std::mem::replace(&mut seen[next], true) {
                    waiting.push_back(next);
                }
            }
        }
        near.sort_unstable();
        near
    }

    /// The nodes in reverse postorder, and for each edge if it closes a cycle.
    fn order(&self) -> (Vec<usize>, Vec<Vec<bool>>) {
        let count = self.successors.len();
        let mut back: Vec<Vec<bool>> = self.successors.iter().map(|list| vec![false; list.len()]).collect();
        // Not visited, on the path, done.
        let mut state = vec![0u8; count];
        let mut order = Vec::with_capacity(count);
        for root in 0..count {
            let mut stack = if state[root] == 0 { vec![(root, 0)] } else { Vec::new() };
            while let Some((node, next)) = stack.pop() {
                state[node] = 1;
                let Some(&to) = self.successors[node].get(next) else {
                    state[node] = 2;
                    order.push(node);
                    continue;
                };
                stack.push((node, next + 1));
                match state[to] {
                    0 => stack.push((to, 0)),
                    1 => back[node][next] = true,
                    _ => {}
                }
            }
        }
        order.reverse();
        (order, back)
    }

    /// Draws the graph with nodes of a width, and a gap between them.
    pub fn layout(&self, width: i32, gap: i32) -> GraphLayout {
        let (order, back) = self.order();
        let mut layers = vec![0; self.successors.len()];
        for &node in &order {
            for (&to, _) in self.successors[node].iter().zip(&back[node]).filter(|(_, back)| !**back) {
                layers[to] = layers[to].max(layers[node] + 1);
            }
        }
        let mut items: Vec<LayoutItem> = vec![LayoutItem { width, column: 0 }; layers.len()];
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers.iter().max().map_or(0, |last| last + 1)];
        order.iter().for_each(|&node| rows[layers[node]].push(node));
        // Links between neighbouring layers, and each edge with its points.
        let mut links: Vec<(usize, usize)> = Vec::new();
        let mut edges: Vec<(usize, usize, bool, Vec<usize>)> = Vec::new();
        for &node in &order {
            for (&to, &back) in self.successors[node].iter().zip(&back[node]) {
                let mut points = Vec::new();
                if !back {
                    let mut last = node;
                    for row in &mut rows[layers[node] + 1..layers[to]] {
                        items.push(LayoutItem { width: gap / 2, column: 0 });
                        let point = items.len() - 1;
                        row.push(point);
                        points.push(point);
                        links.push((last, point));
                        last = point;
                    }
                    links.push((last, to));
                }
                edges.push((node, to, back, points));
            }
        }
        let (mut above, mut below) = (vec![Vec::new(); items.len()], vec![Vec::new(); items.len()]);
        for &(from, to) in &links {
            below[from].push(to);
            above[to].push(from);
        }
        rows.iter().for_each(|row| pack(row, &mut items, gap));
        for round in 0..12 {
            let down = round % 2 == 0;
            let neighbours = if down { &above } else { &below };
            let count = rows.len();
            for number in 0..count {
                let row = &mut rows[if down { number } else { count - 1 - number }];
                let wanted = |item: usize| mean(&neighbours[item], &items).unwrap_or(items[item].column);
                if round < 6 {
                    let keys: Vec<(i32, usize)> = row.iter().map(|&item| (wanted(item), item)).collect();
                    let mut keys: Vec<_> = keys.into_iter().enumerate().collect();
                    keys.sort_by_key(|&(position, (key, _))| (key, position));
                    *row = keys.into_iter().map(|(_, (_, item))| item).collect();
                    pack(row, &mut items, gap);
                } else {
                    let wanted: Vec<i32> = row.iter().map(|&item| wanted(item)).collect();
                    move_towards(row, &wanted, &mut items, gap);
                }
            }
        }
        let left = items.iter().map(|item| item.column - item.width / 2).min().unwrap_or(0);
        items.iter_mut().for_each(|item| item.column -= left);
        let column = |&point: &usize| items[point].column;
        let drawn = |(from, to, back, points): (_, _, _, Vec<usize>)| DrawnEdge {
            from,
            to,
            back,
            bends: points.iter().map(column).collect(),
        };
        let edges = edges.into_iter().map(drawn).collect();
        GraphLayout { columns: items[..layers.len()].iter().map(|item| item.column).collect(), layers, edges }
    }
}

fn mean(list: &[usize], items: &[LayoutItem]) -> Option<i32> {
    let sum: i32 = list.iter().map(|&item| items[item].column).sum();
    (!list.is_empty()).then(|| sum / list.len() as i32)
}

/// Puts the items of a row next to each other, around 0.
fn pack(row: &[usize], items: &mut [LayoutItem], gap: i32) {
    let total: i32 = row.iter().map(|&item| items[item].width + gap).sum();
    let mut at = -total / 2;
    for &item in row {
        at += items[item].width / 2 + gap / 2;
        items[item].column = at;
        at += items[item].width - items[item].width / 2 + gap - gap / 2;
    }
}

/// Moves the items of a row as near to the wanted columns as their order and widths allow: the mean of the packing from
/// the left and the packing from the right.
fn move_towards(row: &[usize], wanted: &[i32], items: &mut [LayoutItem], gap: i32) {
    let apart = |a: usize, b: usize| (items[a].width + items[b].width) / 2 + gap;
    let mut from_left = wanted.to_vec();
    for i in 1..row.len() {
        from_left[i] = from_left[i].max(from_left[i - 1] + apart(row[i - 1], row[i]));
    }
    let mut from_right = wanted.to_vec();
    for i in (1..row.len()).rev() {
        from_right[i - 1] = from_right[i - 1].min(from_right[i] - apart(row[i - 1], row[i]));
    }
    for (i, &item) in row.iter().enumerate() {
        items[item].column = (from_left[i] + from_right[i]) / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_point_down_but_for_those_of_loops() {
        // A diamond, a loop around its end, and an edge over layers.
        let graph = BlockGraph { successors: vec![vec![1, 2, 5], vec![3], vec![3], vec![4], vec![3, 5], vec![]] };
        let layout = graph.layout(100, 20);
        let backs: Vec<_> = layout.edges.iter().filter(|edge| edge.back).map(|edge| (edge.from, edge.to)).collect();
        assert_eq!(backs, [(4, 3)]);
        for edge in layout.edges.iter().filter(|edge| !edge.back) {
            assert_eq!(layout.layers[edge.from] + edge.bends.len() + 1, layout.layers[edge.to]);
        }
        // Nodes of one layer do not overlap.
        assert_eq!(layout.layers[1], layout.layers[2]);
        assert!((layout.columns[1] - layout.columns[2]).abs() >= 120);
        assert_eq!(graph.near(0, 3).len(), 3);
    }

    #[test]
    fn an_empty_graph_and_a_node_that_loops() {
        assert!(BlockGraph { successors: Vec::new() }.layout(100, 20).edges.is_empty());
        assert!(BlockGraph { successors: vec![vec![0]] }.layout(100, 20).edges[0].back);
    }
}
