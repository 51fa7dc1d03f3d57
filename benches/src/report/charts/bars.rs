//! A group of bars for every case.

use super::{Area, COLORS, legend, present, shown, titled};
use crate::case::Heat;
use crate::measured::{Measured, Sampled};
use crate::stats::Summary;
use anyhow::Result;
use plotters::prelude::*;

/// Bars of the median with a line from the 10th to the 90th percentile, in units of our own median.
pub(super) fn draw(area: &Area<'_>, cases: &[&Measured], heat: Heat) -> Result<()> {
    let title = format!("The attention block of a layer, weights {heat}: time relative to ck");
    let below = "Median of each contender over the median of ck (1.0); black lines from the 10th to the 90th \
                 percentile, cut off at the top.";
    let body = titled(area, &title, below)?;
    let picks = present(cases);
    let entries: Vec<_> = picks.iter().map(|(pick, name)| (COLORS[*pick], &name[..])).collect();
    legend(area, &entries)?;

    let tops = cases.iter().flat_map(|one| {
        shown(one).into_iter().flatten().filter_map(|of| Some(relative(one, of)?.median))
    });
    // A few samples of a bad moment would flatten everything else.
    let top = tops.fold(1.0, f64::max) * 1.25;
    let mut chart = ChartBuilder::on(&body)
        .margin(10)
        .x_label_area_size(170)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..cases.len() as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(0)
        .y_desc("time / median time of ck")
        .label_style(("sans-serif", 13))
        .draw()?;
    for (index, one) in cases.iter().enumerate() {
        let width = 0.84 / picks.len() as f64;
        for (place, (pick, _)) in picks.iter().enumerate() {
            let Some(summary) = shown(one)[*pick].and_then(|of| relative(one, of)) else {
                continue;
            };
            let left = index as f64 + 0.08 + width * place as f64;
            let bar = [(left, 0.0), (left + 0.92 * width, summary.median)];
            chart.draw_series([Rectangle::new(bar, COLORS[*pick].filled())])?;
            let middle = left + 0.46 * width;
            chart.draw_series([PathElement::new(
                [(middle, summary.p10), (middle, summary.p90.min(top))],
                BLACK,
            )])?;
        }
        let turned = ("sans-serif", 13).into_font().transform(FontTransform::Rotate90);
        let (x, y) = chart.backend_coord(&(index as f64 + 0.5, 0.0));
        let (left, top) = body.get_base_pixel();
        body.draw(&Text::new(name(one), (x - left + 6, y - top + 8), turned))?;
    }
    Ok(())
}

/// A contender's times in units of ours.
fn relative(one: &Measured, of: &Sampled) -> Option<Summary> {
    let unit = one.primary().median();
    Summary::of(of.ns.iter().map(|ns| ns / unit).collect())
}

fn name(one: &Measured) -> String {
    let context = one.case.context.unwrap_or_default();
    format!("{}, {context} pos., {}T", one.case.subject, one.case.threads)
}
