//! What a run says: a line for every case as it goes, tables, a paragraph, charts.

mod charts;
mod compare;
mod findings;
mod tables;

pub use charts::draw;
pub use compare::compare;
pub use findings::findings;
pub use tables::{summaries, tables};

use crate::contender::Side;
use crate::measured::{Measured, Sampled};

/// A line on one case.
#[must_use]
pub fn line(measured: &Measured) -> String {
    let primary = measured.primary();
    let name = measured.case.name();
    let mut line = format!("{name}: {} in {}", primary.name, time(primary.median()));
    if let Some(peer) = measured.best(Side::Peer, &[]) {
        line += &format!(", {} of {}", times(primary, peer), peer.name);
    }
    if let Some(share) = measured.share_of_read_loop(primary) {
        line += &format!(", {:.0} % of the read loop", 100.0 * share);
    }
    if !measured.moved.is_empty() {
        line += &format!(" (while {})", measured.moved.join(", "));
    }
    line
}

/// How many times as fast as `other` a contender is: the median of the pairs.
fn times(contender: &Sampled, other: &Sampled) -> String {
    contender.ratio_of(other).map_or_else(String::new, |ratio| format!("{:.2}x", ratio.median))
}

/// A time in the unit that suits it.
fn time(ns: f64) -> String {
    match ns {
        0.0..1e4 => format!("{ns:.0} ns"),
        1e4..1e7 => format!("{:.1} us", ns / 1e3),
        _ => format!("{:.2} ms", ns / 1e6),
    }
}
