//! What all cases reached, under what memory and arithmetic allow.

use super::{Area, COLORS, legend, plain, titled};
use crate::case::{Heat, Kind};
use crate::measured::Measured;
use crate::record::Record;
use anyhow::{Context, Result};
use plotters::prelude::*;

/// The least operations per byte that are drawn, and the most.
const INTENSITIES: (f64, f64) = (0.1, 200.0);

/// Every case's rate over its intensity, under what memory and arithmetic allow one thread.
pub(super) fn draw(area: &Area<'_>, record: &Record) -> Result<()> {
    let machine = &record.machine;
    let peaks = machine.peaks.context("the record has no peaks of its machine's arithmetic")?;
    let state = machine.state.context("the record has no bandwidth of its machine's memory")?;
    let (f32_roof, int_roof) = (2.0 * peaks.f32_macs_per_ns, 2.0 * peaks.int_macs_per_ns);
    let below = "Lines: what one thread reads from memory, and computes on registers. Rings: data in cache; discs: \
                 data streams from memory.";
    let body = titled(area, "Roofline of one thread, and what every case reached", below)?;
    let groups = [
        (Kind::Gemv, false, RGBColor(0x7a, 0x3e, 0x9d), "matrix times vector"),
        (Kind::Attention, false, COLORS[2], "attention"),
        (Kind::Layer, false, COLORS[0], "layer, 1 thread"),
        (Kind::Layer, true, COLORS[1], "layer, team"),
    ];
    let cases = |kind: Kind, team: bool| {
        let of = move |one: &&Measured| one.case.kind == kind && (one.case.threads > 1) == team;
        record.cases.iter().filter(of)
    };
    let there = groups.iter().filter(|(kind, team, ..)| cases(*kind, *team).next().is_some());
    legend(area, &there.map(|(_, _, color, name)| (*color, *name)).collect::<Vec<_>>())?;
    let mut chart = ChartBuilder::on(&body)
        .margin(10)
        .margin_right(30)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (INTENSITIES.0..INTENSITIES.1).log_scale(),
            (0.5..2.0 * int_roof).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("operations (2 per multiply-add) per byte of weights and cache")
        .y_desc("10^9 operations per second")
        .x_label_formatter(&plain)
        .y_label_formatter(&plain)
        .label_style(("sans-serif", 12))
        .light_line_style(RGBColor(0xf0, 0xf0, 0xf0))
        .draw()?;
    for (top, name) in [(f32_roof, "f32 multiply-adds"), (int_roof, "8-bit multiply-adds")] {
        let edge = top / state.read_gbps;
        let roof = [(INTENSITIES.0, INTENSITIES.0 * state.read_gbps), (edge, top)];
        let roof = roof.into_iter().chain([(INTENSITIES.1, top)]);
        chart.draw_series(LineSeries::new(roof, BLACK))?;
        let words = format!("{name}, {top:.0}");
        chart.draw_series([Text::new(words, (40.0, top * 1.25), ("sans-serif", 12))])?;
    }
    let memory = format!("memory, {:.1} GB/s", state.read_gbps);
    let at = (0.13, 0.115 * state.read_gbps);
    chart.draw_series([Text::new(memory, at, ("sans-serif", 12))])?;
    for (kind, team, color, _) in groups {
        for one in cases(kind, team) {
            let style = match one.case.heat {
                Heat::Hot => ShapeStyle::from(color),
                Heat::Streaming => color.filled(),
            };
            chart.draw_series([Circle::new(point(one), 4, style)])?;
        }
    }
    Ok(())
}

/// Operations per byte, and per nanosecond.
fn point(one: &Measured) -> (f64, f64) {
    let work = one.case.work;
    let operations = 2.0 * (work.int_macs + work.f32_macs);
    (operations / work.bytes, operations / one.primary().median())
}
