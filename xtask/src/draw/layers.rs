//! A drawing order for a graph without circles: layers from bottom to top, and places in them.

use std::collections::{BTreeMap, BTreeSet};

/// What depends on what: each node with those below it.
pub(super) type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// What stands in a layer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place<'a> {
    /// A node.
    Node(&'a str),
    /// An edge between two nodes that passes the layer.
    Passing(&'a str, &'a str),
}

/// Takes away the edges that follow from others: `a -> c` where there is `a -> b -> c`.
pub(super) fn reduced<'a>(graph: &Graph<'a>) -> Graph<'a> {
    let implied = |node: &str, below: &str| {
        graph[node].iter().any(|other| *other != below && reaches(graph, other, below))
    };
    let rest = |(node, below): (&&'a str, &BTreeSet<&'a str>)| {
        (*node, below.iter().copied().filter(|one| !implied(node, one)).collect())
    };
    graph.iter().map(rest).collect()
}

fn reaches(graph: &Graph<'_>, from: &str, to: &str) -> bool {
    graph[from].iter().any(|below| *below == to || reaches(graph, below, to))
}

/// The layers from bottom to top. A node lies above all that it depends on, and as near as it can to what
/// depends on it; an edge passes through all layers between its ends.
pub(super) fn layers<'a>(graph: &Graph<'a>) -> Vec<Vec<Place<'a>>> {
    let mut heights: BTreeMap<&str, usize> =
        graph.keys().map(|node| (*node, height(graph, node))).collect();
    let mut downwards: Vec<&str> = graph.keys().copied().collect();
    downwards.sort_by_key(|node| std::cmp::Reverse(heights[node]));
    for node in downwards {
        let above = graph.iter().filter(|(_, below)| below.contains(node));
        if let Some(lowest) = above.map(|(above, _)| heights[above]).min() {
            heights.insert(node, lowest - 1);
        }
    }
    let top = heights.values().copied().max().unwrap_or(0);
    let mut layers = vec![Vec::new(); top + 1];
    for (node, below) in graph {
        layers[heights[node]].push(Place::Node(node));
        for to in below {
            for layer in &mut layers[heights[to] + 1..heights[node]] {
                layer.push(Place::Passing(node, to));
            }
        }
    }
    order(graph, &mut layers);
    layers
}

fn height(graph: &Graph<'_>, node: &str) -> usize {
    graph[node].iter().map(|below| height(graph, below) + 1).max().unwrap_or(0)
}

/// Moves every place of a layer towards the middle of what it is connected with in the layer beside it, from
/// the bottom up and from the top down in turn.
fn order<'a>(graph: &Graph<'a>, layers: &mut [Vec<Place<'a>>]) {
    for turn in 0..8 {
        let mut pairs: Vec<(usize, usize)> = (1..layers.len()).map(|i| (i - 1, i)).collect();
        if turn % 2 == 1 {
            pairs = pairs.into_iter().rev().map(|(low, high)| (high, low)).collect();
        }
        for (fixed, moved) in pairs {
            let beside = layers[fixed].clone();
            let middle = |place: &Place<'a>| {
                let connected = beside.iter().enumerate().filter(|(_, other)| {
                    connected(graph, place, other) || connected(graph, other, place)
                });
                let places: Vec<usize> = connected.map(|(index, _)| index).collect();
                let sum: usize = places.iter().sum();
                // In thousandths of the layer's width, so that layers of different lengths compare.
                (2 * sum + places.len()) * 500 / (places.len() * beside.len()).max(1)
            };
            layers[moved].sort_by_key(middle);
        }
    }
}

/// Whether a line goes down from `above` to `below`.
pub(super) fn connected(graph: &Graph<'_>, above: &Place<'_>, below: &Place<'_>) -> bool {
    match (above, below) {
        (Place::Node(a), Place::Node(b)) => graph[a].contains(b),
        (Place::Node(a), Place::Passing(from, _)) => a == from,
        (Place::Passing(_, to), Place::Node(b)) => to == b,
        (Place::Passing(..), Place::Passing(..)) => above == below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph<'static> {
        let edges = [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d"), ("c", "e"), ("d", "e")];
        let mut graph: Graph<'_> =
            ["a", "b", "c", "d", "e", "f"].map(|node| (node, BTreeSet::new())).into();
        for (from, to) in edges {
            graph.entry(from).or_default().insert(to);
        }
        graph
    }

    #[test]
    fn edges_that_follow_from_others_are_left_out() {
        let graph = reduced(&graph());
        assert_eq!(graph["a"], BTreeSet::from(["b", "d"]));
        assert_eq!(graph["b"], BTreeSet::from(["c"]));
    }

    #[test]
    fn every_edge_goes_down_and_passes_each_layer_between() {
        let graph = reduced(&graph());
        let layers = layers(&graph);
        let place = |wanted| {
            layers.iter().position(|layer| layer.contains(&wanted)).expect("a layer has it")
        };
        let heights = ["a", "b", "c", "d", "e"].map(|node| place(Place::Node(node)));
        assert_eq!(heights, [3, 2, 1, 2, 0]);
        assert_eq!(place(Place::Passing("d", "e")), 1);
        let nodes = layers.iter().flatten().filter(|place| matches!(place, Place::Node(_)));
        assert_eq!(nodes.count(), graph.len());
    }
}
