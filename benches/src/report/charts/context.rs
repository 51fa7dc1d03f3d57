//! Times over the length of the context, a panel for every model.

use super::{Area, COLORS, HEAD, legend, plain, present, shown, titled};
use crate::case::Heat;
use crate::measured::Measured;
use crate::stats::Summary;
use anyhow::Result;
use plotters::prelude::*;

/// A model and its cases.
pub(super) type Model<'a> = (&'a str, Vec<&'a Measured>);

/// The size of a panel.
const PANEL: (u32, u32) = (560, 380);

/// The models that were measured at more than one length.
pub(super) fn models<'a>(cases: &[&'a Measured]) -> Vec<Model<'a>> {
    let mut models: Vec<Model<'a>> = Vec::new();
    for one in cases.iter().copied().filter(|one| one.case.context.is_some()) {
        match models.iter_mut().find(|(name, _)| *name == one.case.subject) {
            Some((_, cases)) => cases.push(one),
            None => models.push((&one.case.subject, vec![one])),
        }
    }
    models.retain(|(_, cases)| cases.iter().any(|one| one.case.context != cases[0].case.context));
    models
}

/// The size of a chart of so many models.
pub(super) fn size(models: usize) -> (u32, u32) {
    let columns = models.min(2) as u32;
    (PANEL.0 * columns, HEAD + PANEL.1 * (models as u32).div_ceil(columns))
}

/// A line for ours and one for the best peer, thin for one thread and thick for a team.
pub(super) fn draw(area: &Area<'_>, models: &[Model<'_>], heat: Heat) -> Result<()> {
    let title = format!("The attention block of a layer, weights {heat}: time over context");
    let below = "Median, and a line from the 10th to the 90th percentile. Thin lines and rings: one thread; thick \
                 lines and discs: a team.";
    let body = titled(area, &title, below)?;
    let all: Vec<&Measured> = models.iter().flat_map(|(_, cases)| cases.iter().copied()).collect();
    // The baseline would hide ours: it is in the bars.
    let present = present(&all).into_iter().filter(|(pick, _)| *pick != 1);
    let (picks, names): (Vec<usize>, Vec<String>) = present.unzip();
    let entries = picks.iter().zip(&names).map(|(pick, name)| (COLORS[*pick], &name[..]));
    legend(area, &entries.collect::<Vec<_>>())?;
    let columns = models.len().min(2);
    let panels = body.split_evenly((models.len().div_ceil(columns), columns));
    for ((name, cases), panel) in models.iter().zip(panels) {
        draw_panel(&panel, name, cases, &picks)?;
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, name: &str, cases: &[&Measured], picks: &[usize]) -> Result<()> {
    let contexts = cases.iter().filter_map(|one| one.case.context);
    let (first, last) = contexts.fold((usize::MAX, 0), |(a, b), c| (a.min(c), b.max(c)));
    let times = cases.iter().flat_map(|one| picks.iter().filter_map(|pick| shown(one)[*pick]));
    let times = times.filter_map(|of| Summary::of(of.ns.clone()));
    let (low, high) = times.fold((f64::MAX, 0f64), |(a, b), t| (a.min(t.p10), b.max(t.p90)));
    let mut chart = ChartBuilder::on(area)
        .caption(name, ("sans-serif", 16))
        .margin(10)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (first as f64 / 1.3..1.3 * last as f64).log_scale(),
            (low / 1.3e3..1.3 * high / 1e3).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("positions")
        .y_desc("microseconds")
        .x_label_formatter(&plain)
        .y_label_formatter(&plain)
        .label_style(("sans-serif", 12))
        .light_line_style(RGBColor(0xf0, 0xf0, 0xf0))
        .draw()?;
    let mut teams: Vec<usize> = cases.iter().map(|one| one.case.threads).collect();
    teams.sort_unstable();
    teams.dedup();
    for (team, pick) in teams.iter().flat_map(|team| picks.iter().map(move |pick| (*team, *pick))) {
        let points = points(cases, team, pick);
        let width = if team == 1 { 1 } else { 3 };
        let line = points.iter().map(|(x, t)| (*x, t.median / 1e3));
        chart.draw_series(LineSeries::new(line, COLORS[pick].stroke_width(width)))?;
        for (x, t) in points {
            let spread = [(x, t.p10 / 1e3), (x, t.p90 / 1e3)];
            chart.draw_series([PathElement::new(spread, BLACK)])?;
            let style =
                if team == 1 { ShapeStyle::from(COLORS[pick]) } else { COLORS[pick].filled() };
            chart.draw_series([Circle::new((x, t.median / 1e3), 4, style)])?;
        }
    }
    Ok(())
}

/// A contender's times with a team, in the order of their contexts.
fn points(cases: &[&Measured], team: usize, pick: usize) -> Vec<(f64, Summary)> {
    let cases = cases.iter().filter(|one| one.case.threads == team);
    let mut points: Vec<(f64, Summary)> = cases
        .filter_map(|one| {
            Some((one.case.context? as f64, Summary::of(shown(one)[pick]?.ns.clone())?))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
