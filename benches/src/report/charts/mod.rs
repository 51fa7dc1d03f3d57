//! The charts of a run, as SVG: times per case, times over the length of the context, and the roofline.

mod bars;
mod context;
mod roofline;

use crate::case::{Heat, Kind};
use crate::contender::Side;
use crate::measured::{Measured, Sampled};
use crate::record::Record;
use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;
use std::path::{Path, PathBuf};

/// A drawing area.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Ours, our unfused baseline, and the best peer.
const COLORS: [RGBColor; 3] =
    [RGBColor(0x1b, 0x6c, 0xa8), RGBColor(0x9a, 0xa5, 0xb1), RGBColor(0xd9, 0x5f, 0x02)];

/// The height of a chart's title and legend.
const HEAD: u32 = 76;

/// Draws what a record has data for into files in `folder`, and returns these.
///
/// # Errors
///
/// A file that cannot be written; a record that does not say what its machine could do.
pub fn draw(folder: &Path, record: &Record) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for heat in Heat::ALL {
        let layers = record.cases.iter();
        let layers = layers.filter(|one| one.case.kind == Kind::Layer && one.case.heat == heat);
        let layers: Vec<&Measured> = layers.collect();
        if !layers.is_empty() {
            files.push(folder.join(format!("layers-{heat}.svg")));
            let width = 180 + 30 * layers.len().max(22) as u32;
            on(&files[files.len() - 1], (width, 560), |area| bars::draw(area, &layers, heat))?;
        }
        let models = context::models(&layers);
        if !models.is_empty() {
            files.push(folder.join(format!("context-{heat}.svg")));
            let size = context::size(models.len());
            on(&files[files.len() - 1], size, |area| context::draw(area, &models, heat))?;
        }
    }
    files.push(folder.join("roofline.svg"));
    on(&files[files.len() - 1], (960, 640), |area| roofline::draw(area, record))?;
    Ok(files)
}

/// Draws a file.
fn on(file: &Path, size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<()> {
    let area = SVGBackend::new(file, size).into_drawing_area();
    let result = area
        .fill(&WHITE)
        .map_err(|error| anyhow!("{error}"))
        .and_then(|()| draw(&area))
        .and_then(|()| area.present().map_err(|error| anyhow!("{error}")));
    result.with_context(|| format!("cannot draw {}", file.display()))
}

/// The contenders of a case that a chart shows: this project's, its baseline, the best peer.
fn shown(one: &Measured) -> [Option<&Sampled>; 3] {
    let unfused = one.best(Side::Ours, &["unfused"]);
    [Some(one.primary()), unfused, one.best(Side::Peer, &[])]
}

/// Which of those that can be [`shown`] some of the cases have, each with its name.
fn present(cases: &[&Measured]) -> Vec<(usize, String)> {
    let peer = cases.iter().find_map(|one| shown(one)[2]?.name.split([' ', ',']).next());
    let names = [
        "ck, strategy auto".to_owned(),
        "ck, unfused".to_owned(),
        format!("best mode of {}", peer.unwrap_or_default()),
    ];
    let is_there = |pick: usize| cases.iter().any(|one| shown(one)[pick].is_some());
    names.into_iter().enumerate().filter(|(pick, _)| is_there(*pick)).collect()
}

/// Writes a title and a line below it, and returns the area below both.
fn titled<'a>(area: &Area<'a>, title: &str, below: &str) -> Result<Area<'a>> {
    let (_, rest) = area.split_vertically(HEAD);
    area.draw(&Text::new(title.to_owned(), (16, 12), ("sans-serif", 20)))?;
    area.draw(&Text::new(below.to_owned(), (16, 36), ("sans-serif", 13)))?;
    Ok(rest)
}

/// A number of an axis, without a fraction that is zero.
fn plain(number: &f64) -> String {
    format!("{number}")
}

/// Marks with their names, from left to right below the title.
fn legend(area: &Area<'_>, entries: &[(RGBColor, &str)]) -> Result<()> {
    let mut x = 16;
    for (color, name) in entries {
        let y = HEAD as i32 - 20;
        area.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], color.filled()))?;
        area.draw(&Text::new((*name).to_owned(), (x + 18, y), ("sans-serif", 13)))?;
        x += 44 + 8 * name.len() as i32;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::peaks::Peaks;
    use crate::record::Work;
    use crate::state::State;

    /// A record of one layer at two lengths, with a peer.
    fn record() -> Record {
        let mut record = Record::new();
        record.machine.peaks = Some(Peaks { f32_macs_per_ns: 100.0, int_macs_per_ns: 400.0 });
        let read_gbps = 10.0;
        record.machine.state =
            Some(State { round_trip_ns: None, read_gbps, read_all_gbps: 20.0, clock_ghz: 3.0 });
        for (context, ns) in [(6, 1e4 + 1.0 / 3.0), (1024, 5e4)] {
            let work = Work { bytes: 1e6, int_macs: 1e6, f32_macs: 1e5 };
            let (subject, heat) = ("Model & more".to_owned(), Heat::Hot);
            let context = Some(context);
            let case = Case { kind: Kind::Layer, subject, context, heat, threads: 1, work };
            let sampled = |name: &str, side, ns: f64| Sampled {
                name: name.to_owned(),
                side,
                ns: vec![ns, 1.1 * ns, 20.0 * ns],
            };
            let contenders =
                vec![sampled("ck serial", Side::Ours, ns), sampled("peer", Side::Peer, 2.0 * ns)];
            Measured { case, contenders, moved: vec!["clock".to_owned()] }.keep(&mut record);
        }
        record
    }

    #[test]
    fn a_kept_record_is_drawn_as_it_was_when_it_was_taken() {
        let folder = std::env::temp_dir().join(format!("ck-charts-{}", std::process::id()));
        let [first, again] = ["first", "again"].map(|name| folder.join(name));
        for folder in [&first, &again] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let (taken, file) = (record(), folder.join("record.json"));
        taken.save(&file).unwrap();
        let kept = Record::load(&file).unwrap();
        assert_eq!(
            (&kept.cases, &kept.results, &kept.ratios),
            (&taken.cases, &taken.results, &taken.ratios)
        );
        let drawn = draw(&first, &taken).unwrap();
        let redrawn = draw(&again, &kept).unwrap();
        let names = ["layers-hot.svg", "context-hot.svg", "roofline.svg"];
        assert_eq!(drawn, names.map(|name| first.join(name)));
        for (one, other) in drawn.iter().zip(&redrawn) {
            let [one, other] = [one, other].map(|file| std::fs::read_to_string(file).unwrap());
            assert_eq!(one, other);
            assert!(one.contains("</svg>") && !one.contains("NaN"), "{one}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_record_without_the_machines_limits_is_refused() {
        let mut record = record();
        record.machine.state = None;
        record.cases.clear();
        let error = draw(&std::env::temp_dir(), &record).unwrap_err();
        assert!(format!("{error:#}").contains("no bandwidth"), "{error:#}");
    }
}
