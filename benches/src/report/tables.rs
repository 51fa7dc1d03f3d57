//! The tables of a run: one for each kind of case.

use super::{time, times};
use crate::case::Kind;
use crate::contender::Side;
use crate::measured::{Measured, Sampled};
use crate::peaks::Peaks;
use crate::stats::Summary;
use comfy_table::{Table, presets};

/// All tables, as text.
#[must_use]
pub fn tables(all: &[Measured], peaks: &Peaks) -> String {
    format!("{}{}\n", summaries(all, peaks), contenders(all))
}

/// The tables with one row for every case, as text.
#[must_use]
pub fn summaries(all: &[Measured], peaks: &Peaks) -> String {
    let mut text = String::new();
    for kind in Kind::ALL {
        let of_kind: Vec<&Measured> =
            all.iter().filter(|measured| measured.case.kind == kind).collect();
        if !of_kind.is_empty() {
            text += &format!("{}\n\n", summary(&of_kind, peaks));
        }
    }
    text + RATIOS
}

/// What the numbers with an x, and those called ratio or time of ours, are.
const RATIOS: &str = "\
A ratio is the median of the ratios of each turn, which the quotient of two medians is not: `ratio` is the peer's time over
ours, the others are a contender's time over ours, below 1 if it was faster. `moved`: the machine's state changed meanwhile.
";

/// One row for every case: what this project stands for, and how it compares.
fn summary(cases: &[&Measured], peaks: &Peaks) -> Table {
    let mut table = table(&[
        "case",
        "ours",
        "median",
        "min",
        "max",
        "GB/s",
        "of the read loop",
        "of the arithmetic peak",
        "best of ours (its time)",
        "best peer",
        "peer, median",
        "ratio",
        "min",
        "max",
        "state",
    ]);
    for measured in cases {
        let primary = measured.primary();
        let Some(ns) = Summary::of(primary.ns.clone()) else { continue };
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let best = measured.best(Side::Ours, &[]).unwrap_or(primary);
        let peer = measured.best(Side::Peer, &[]);
        let ratio = peer.and_then(|peer| primary.ratio_of(peer));
        let number = |value: Option<f64>| value.map_or_else(String::new, |x| format!("{x:.2}"));
        table.add_row([
            measured.case.name(),
            primary.name.clone(),
            time(ns.median),
            time(ns.min),
            time(ns.max),
            format!("{:.1}", measured.case.work.bytes / ns.median),
            measured.share_of_read_loop(primary).map_or_else(String::new, percent),
            percent(measured.share_of_arithmetic(primary, peaks)),
            if best.name == primary.name {
                String::new()
            } else {
                format!("{} ({})", best.name, times(best, primary))
            },
            peer.map_or_else(String::new, |peer| peer.name.clone()),
            peer.map_or_else(String::new, |peer| time(peer.median())),
            number(ratio.map(|ratio| ratio.median)),
            number(ratio.map(|ratio| ratio.min)),
            number(ratio.map(|ratio| ratio.max)),
            if measured.moved.is_empty() { String::new() } else { "moved".to_owned() },
        ]);
    }
    table
}

/// One row for every contender of every case.
fn contenders(all: &[Measured]) -> Table {
    let mut table =
        table(&["case", "contender", "median", "min", "max", "GB/s", "GFLOP/s", "time of ours"]);
    for measured in all {
        let work = measured.case.work;
        for Sampled { name, ns, .. } in &measured.contenders {
            let ratio = Summary::of_ratios(ns, &measured.primary().ns);
            let (Some(ns), Some(ratio)) = (Summary::of(ns.clone()), ratio) else { continue };
            table.add_row([
                measured.case.name(),
                name.clone(),
                time(ns.median),
                time(ns.min),
                time(ns.max),
                format!("{:.1}", work.bytes / ns.median),
                format!("{:.1}", 2.0 * (work.int_macs + work.f32_macs) / ns.median),
                format!("{:.2}", ratio.median),
            ]);
        }
    }
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header);
    table
}
