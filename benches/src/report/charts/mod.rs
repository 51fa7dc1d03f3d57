//! The charts of a run, as SVG: times per case, times over the length of the context, and the roofline.

use crate::case::Heat;
use crate::contender::Side;
use crate::measured::{Measured, Sampled};
use crate::peaks::Peaks;
use crate::state::State;
use crate::stats::Summary;
use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;
use std::path::{Path, PathBuf};

/// A drawing area.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Ours, our unfused baseline, and the best peer.
const COLORS: [RGBColor; 3] =
    [RGBColor(0x1b, 0x6c, 0xa8), RGBColor(0x9a, 0xa5, 0xb1), RGBColor(0xd9, 0x5f, 0x02)];

/// Draws what there is data for into files in `folder`, and returns these.
///
/// # Errors
///
/// A file that cannot be written.
pub fn draw(folder: &Path, all: &[Measured], peaks: &Peaks, state: &State) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let layers = |heat| {
        let wanted = move |one: &&Measured| one.case.kind == "layer" && one.case.heat == heat;
        all.iter().filter(wanted).collect::<Vec<&Measured>>()
    };
    for heat in Heat::ALL {
        let cases = layers(heat);
        if !cases.is_empty() {
            let file = folder.join(format!("layers-{heat}.svg"));
            on(&file, (1200, 520), |area| bars(area, &cases, heat))?;
            files.push(file);
            let file = folder.join(format!("context-{heat}.svg"));
            if on(&file, (1200, 620), |area| over_context(area, &cases, heat))? {
                files.push(file);
            }
        }
    }
    let file = folder.join("roofline.svg");
    on(&file, (900, 600), |area| roofline(area, all, peaks, state))?;
    files.push(file);
    Ok(files)
}

/// Draws a file.
fn on<R>(file: &Path, size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<R>) -> Result<R> {
    let area = SVGBackend::new(file, size).into_drawing_area();
    let result = area
        .fill(&WHITE)
        .map_err(|error| anyhow!("{error}"))
        .and_then(|()| draw(&area))
        .and_then(|result| area.present().map(|()| result).map_err(|error| anyhow!("{error}")));
    result.with_context(|| format!("cannot draw {}", file.display()))
}

/// The contenders of a case that a chart shows: this project's, its baseline, the best peer.
fn shown(one: &Measured) -> [Option<&Sampled>; 3] {
    let unfused = one.best(Side::Ours, &["unfused"]);
    [Some(one.primary()), unfused, one.best(Side::Peer, &[])]
}

const SHOWN: [&str; 3] = ["ck", "ck unfused", "best peer"];

/// Bars of the median with a line from the 10th to the 90th percentile, in units of our own median.
fn bars(area: &Area<'_>, cases: &[&Measured], heat: Heat) -> Result<()> {
    let relative = |one: &Measured, of: &Sampled| {
        let unit = one.primary().median();
        Summary::of(of.ns.iter().map(|ns| ns / unit).collect())
    };
    let most = cases.iter().flat_map(|one| {
        shown(one).into_iter().flatten().filter_map(|of| Some(relative(one, of)?.p90))
    });
    let most = most.fold(1.0, f64::max) * 1.15;
    let width = cases.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(
            format!("Attention block, {heat}: time in units of ck's median"),
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(120)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..width, 0.0..most)?;
    let name = |x: &f64| {
        let one = cases.get(*x as usize).filter(|_| (x.fract() - 0.5).abs() < 0.26);
        one.map_or_else(String::new, |one| {
            let context = one.case.context.unwrap_or_default();
            format!("{} {context} {}T", one.case.subject, one.case.threads)
        })
    };
    chart.configure_mesh().disable_x_mesh().disable_x_axis().y_desc("times ck's median").draw()?;
    for (index, one) in cases.iter().enumerate() {
        for (place, of) in shown(one).into_iter().enumerate() {
            let Some(summary) = of.and_then(|of| relative(one, of)) else { continue };
            let left = index as f64 + 0.1 + 0.27 * place as f64;
            let bar = [(left, 0.0), (left + 0.24, summary.median)];
            chart.draw_series([Rectangle::new(bar, COLORS[place].filled())])?;
            let middle = left + 0.12;
            let whisker = [(middle, summary.p10), (middle, summary.p90)];
            chart.draw_series([PathElement::new(whisker, BLACK)])?;
        }
        let turned = ("sans-serif", 12).into_font().transform(FontTransform::Rotate90);
        let (x, y) = chart.backend_coord(&(index as f64 + 0.6, 0.0));
        area.draw(&Text::new(name(&(index as f64 + 0.5)), (x, y + 6), turned))?;
    }
    legend(area, &SHOWN.map(str::to_owned))
}

/// Time over the length of the context, a line for every model and team. False if no model has two lengths.
fn over_context(area: &Area<'_>, cases: &[&Measured], heat: Heat) -> Result<bool> {
    let points = |pick: usize, subject: &str, threads: usize| -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = cases
            .iter()
            .filter(|one| one.case.subject == subject && one.case.threads == threads)
            .filter_map(|one| Some((one.case.context? as f64, shown(one)[pick]?.median() / 1e3)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let mut lines = Vec::new();
    for one in cases {
        let key = (&one.case.subject[..], one.case.threads);
        if !lines.contains(&key) {
            lines.push(key);
        }
    }
    lines.retain(|(subject, threads)| points(0, subject, *threads).len() > 1);
    if lines.is_empty() {
        return Ok(false);
    }
    let contexts = cases.iter().filter_map(|one| one.case.context);
    let (first, last) = contexts.fold((usize::MAX, 0), |(a, b), c| (a.min(c), b.max(c)));
    let times = cases.iter().flat_map(|one| shown(one).into_iter().flatten().map(Sampled::median));
    let (low, high) = times.fold((f64::MAX, 0f64), |(a, b), t| (a.min(t), b.max(t)));
    let mut chart = ChartBuilder::on(area)
        .caption(format!("Attention block, {heat}: time over context"), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (first as f64..3.0 * last as f64).log_scale(),
            (low / 1.5e3..high * 1.5 / 1e3).log_scale(),
        )?;
    chart.configure_mesh().x_desc("positions").y_desc("microseconds").draw()?;
    for (subject, threads) in lines {
        for pick in [0, 2] {
            let points = points(pick, subject, threads);
            let Some(end) = points.last().copied() else { continue };
            let style = COLORS[pick].stroke_width(if threads == 1 { 1 } else { 3 });
            chart.draw_series(LineSeries::new(points, style))?;
            let label = format!("  {subject} {threads}T, {}", SHOWN[pick]);
            chart.draw_series([Text::new(label, end, ("sans-serif", 12))])?;
        }
    }
    Ok(true)
}

/// Every case's rate over its intensity, under what memory and arithmetic allow one thread.
fn roofline(area: &Area<'_>, all: &[Measured], peaks: &Peaks, state: &State) -> Result<()> {
    let point = |one: &Measured| {
        let work = one.case.work;
        let flops = 2.0 * (work.int_macs + work.f32_macs);
        (flops / work.bytes, flops / one.primary().median())
    };
    let (f32_roof, int_roof) = (2.0 * peaks.f32_macs_per_ns, 2.0 * peaks.int_macs_per_ns);
    let mut chart = ChartBuilder::on(area)
        .caption(
            "Roofline of one thread, and what all cases reached (hot: rings, streaming: discs)",
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d((0.1..200.0).log_scale(), (0.5..2.0 * int_roof).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("operations (2 per multiply-add) per byte of weights and cache")
        .y_desc("10^9 operations per second")
        .draw()?;
    let roof = |top: f64| {
        let edge = top / state.read_gbps;
        [(0.1, 0.1 * state.read_gbps), (edge, top), (200.0, top)]
    };
    for (top, name) in [(f32_roof, "f32 multiply-adds"), (int_roof, "8-bit multiply-adds")] {
        chart.draw_series(LineSeries::new(roof(top), BLACK))?;
        chart.draw_series([Text::new(name, (70.0, top * 1.1), ("sans-serif", 12))])?;
    }
    let groups = [("gemv", 1), ("attention", 1), ("layer", 1), ("layer", 2)];
    let colors = [RGBColor(0x7a, 0x3e, 0x9d), COLORS[2], COLORS[0], COLORS[1]];
    for ((kind, threads), color) in groups.into_iter().zip(colors) {
        let of = |one: &&Measured| one.case.kind == kind && (one.case.threads > 1) == (threads > 1);
        for one in all.iter().filter(of) {
            let style = match one.case.heat {
                Heat::Hot => ShapeStyle::from(color),
                Heat::Streaming => color.filled(),
            };
            chart.draw_series([Circle::new(point(one), 4, style)])?;
        }
    }
    let names = ["gemv", "attention", "layer, 1 thread", "layer, team"].map(str::to_owned);
    legend_of(area, &names, &colors)
}

fn legend(area: &Area<'_>, names: &[String]) -> Result<()> {
    legend_of(area, names, &COLORS)
}

/// Names with their colors, from the top left on.
fn legend_of(area: &Area<'_>, names: &[String], colors: &[RGBColor]) -> Result<()> {
    for (index, (name, color)) in names.iter().zip(colors).enumerate() {
        let (x, y) = (90, 44 + 18 * index as i32);
        area.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], color.filled()))?;
        area.draw(&Text::new(name.clone(), (x + 18, y), ("sans-serif", 13)))?;
    }
    Ok(())
}
