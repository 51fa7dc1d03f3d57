//! The packages of the workspace and what they depend on, as cargo tells.

use super::layers::{Graph, Place, layers, reduced};
use super::picture::{Align, Fill, Picture, Rect, Style, wrap};
use crate::cargo::cargo;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What `cargo metadata` says, as far as it is drawn.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    /// An empty list if the package may not be published.
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`, or nothing for the ordinary kind.
    kind: Option<String>,
}

/// The width and height of a package.
const BOX: (i32, i32) = (226, 106);
/// The width that a line takes which passes between packages.
const PASSING: i32 = 30;
/// Between neighbours, and between layers.
const GAP: (i32, i32) = (24, 46);
const TOP: i32 = 78;

pub(super) fn draw() -> Result<Picture> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps"]).output();
    let output = output.context("cannot start cargo")?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .context("cargo metadata did not write what was expected")?;
    Ok(picture(&metadata.packages))
}

fn picture(packages: &[Package]) -> Picture {
    let graph = reduced(&graph(packages));
    let layers = layers(&graph);
    let (places, width) = places(&layers);
    let height = TOP + (BOX.1 + GAP.1) * layers.len() as i32 - GAP.1 + 20;
    let mut picture = Picture::new(width, height, "The crates, each above what it depends on");
    let legend = "Green: published. Grey: of this workspace alone. What follows from other lines has none of its own.";
    picture.text((20, 54), Align::Left, Style::QUIET, legend);
    for (from, below) in &graph {
        for to in below {
            picture.arrow_down(&line(&places, from, to));
        }
    }
    for package in packages {
        let rect = places.iter().find(|(_, place, _)| *place == Place::Node(&package.name));
        if let Some((_, _, rect)) = rect {
            node(&mut picture, package, *rect);
        }
    }
    picture
}

/// What each package depends on within the workspace, dependencies of its tests left out.
fn graph(packages: &[Package]) -> Graph<'_> {
    let names: BTreeMap<&str, &Package> =
        packages.iter().map(|package| (&package.name[..], package)).collect();
    let below = |package: &Package| {
        let ordinary = package.dependencies.iter().filter(|one| one.kind.is_none());
        ordinary.filter_map(|one| Some(*names.get_key_value(&one.name[..])?.0)).collect()
    };
    names.iter().map(|(name, package)| (*name, below(package))).collect()
}

/// Where everything stands, layer by layer from the bottom, and the picture's width.
fn places<'a>(layers: &[Vec<Place<'a>>]) -> (Vec<(usize, Place<'a>, Rect)>, i32) {
    let width = |place: &Place<'_>| match place {
        Place::Node(_) => BOX.0,
        Place::Passing(..) => PASSING,
    };
    let row = |layer: &[Place<'_>]| layer.iter().map(|one| width(one) + GAP.0).sum::<i32>() - GAP.0;
    let widest = layers.iter().map(|layer| row(layer)).max().unwrap_or(0) + 40;
    let mut places = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let y = TOP + (BOX.1 + GAP.1) * (layers.len() - 1 - index) as i32;
        let mut x = (widest - row(layer)) / 2;
        for place in layer {
            places.push((index, *place, Rect::new(x, y, width(place), BOX.1)));
            x += width(place) + GAP.0;
        }
    }
    (places, widest)
}

/// The points of the line that leads from one package down to another.
fn line(places: &[(usize, Place<'_>, Rect)], from: &str, to: &str) -> Vec<(i32, i32)> {
    let on_the_way = [Place::Node(from), Place::Passing(from, to), Place::Node(to)];
    let mut stops: Vec<_> = places.iter().filter(|(_, one, _)| on_the_way.contains(one)).collect();
    stops.sort_by_key(|(layer, ..)| std::cmp::Reverse(*layer));
    let points = stops
        .iter()
        .flat_map(|(_, _, rect)| [(rect.middle(), rect.y), (rect.middle(), rect.bottom())]);
    // From the bottom of the first to the top of the last.
    let mut points: Vec<(i32, i32)> = points.skip(1).collect();
    points.pop();
    points
}

fn node(picture: &mut Picture, package: &Package, rect: Rect) {
    let published = package.publish.is_none();
    let about = package.description.as_deref().unwrap_or_default();
    let about = wrap(about, Style::SMALL, rect.width - 12);
    let mut lines = vec![(Style::NAME, &package.name[..])];
    lines.extend(about.iter().map(|line| (Style::SMALL, &line[..])));
    picture.labelled(rect, if published { Fill::Green } else { Fill::Grey }, &lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lead_from_the_bottom_of_a_package_to_the_top_of_another() {
        let graph = Graph::from([
            ("a", ["b", "c"].into()),
            ("b", ["c"].into()),
            ("c", [].into()),
            ("d", ["c"].into()),
            ("e", ["a", "d"].into()),
        ]);
        let (places, _) = places(&layers(&reduced(&graph)));
        let rect = |name| places.iter().find(|(_, one, _)| *one == Place::Node(name)).unwrap().2;
        let points = line(&places, "d", "c");
        assert_eq!(points.first(), Some(&(rect("d").middle(), rect("d").bottom())));
        assert_eq!(points.last(), Some(&(rect("c").middle(), rect("c").y)));
        assert_eq!(points.len(), 4, "it passes the layer of b");
        assert!(points.is_sorted_by_key(|(_, y)| *y));
    }
}
