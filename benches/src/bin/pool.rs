//! Compares thread pools and barriers in one interleaved run, and writes a record.
//!
//!     cargo run --release -p ck-bench --bin pool                        # rayon and std
//!     cargo run --release -p ck-bench --features peer-pools --bin pool  # and the peers
//!
//! In every round each contender of each case is set up afresh, warmed, timed and dropped, with the
//! cache line's round trip measured just before: compare ratios, since this time changes with where
//! the CPUs sit.

use anyhow::Result;
use ck_bench::pool::{Case, cases};
use ck_bench::record::{Outcome, Ratio, Record, Work};
use ck_bench::round_trip;
use ck_bench::stats::Summary;
use clap::Parser;
use comfy_table::Table;
use std::sync::atomic::{AtomicBool, Ordering};

/// Compares thread pools and barriers.
#[derive(Parser)]
struct Args {
    /// How often every contender is sampled.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Only cases whose name contains this.
    #[arg(long)]
    case: Option<String>,
    /// Write a record beside the benchmarks.
    #[arg(long)]
    record: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let wanted = |case: &Case| args.case.as_ref().is_none_or(|text| case.name.contains(text));
    let cases: Vec<Case> = cases().into_iter().filter(wanted).collect();
    let mut samples: Vec<Vec<(Vec<f64>, Vec<f64>)>> =
        cases.iter().map(|case| vec![Default::default(); case.contenders.len()]).collect();
    let mut trips = Vec::new();
    for _ in 0..args.rounds {
        for (case, samples) in cases.iter().zip(&mut samples) {
            let trip = round_trip::nanoseconds(2_000);
            trips.push(trip);
            busy_if(case.busy_host, || {
                for ((_, setup), (times, ratios)) in case.contenders.iter().zip(samples) {
                    let time = case.sample(*setup);
                    times.push(time);
                    ratios.push(time / trip);
                }
            });
        }
    }
    let mut record = Record::new();
    let mut table = table();
    for (case, samples) in cases.iter().zip(&samples) {
        let host = if case.busy_host { ", busy host" } else { "" };
        let name = format!("{}{host}, {} threads", case.name, case.threads);
        let ours = (case.contenders[0].0, &samples[0].0[..]);
        for ((contender, _), (times, trips)) in case.contenders.iter().zip(samples) {
            let (Some(ns), Some(trips)) = (Summary::of(times.clone()), Summary::of(trips.clone()))
            else {
                continue;
            };
            let Some(ratio) = Ratio::new(&name, ours, (*contender, times)) else { continue };
            table.add_row([
                name.clone(),
                (*contender).to_owned(),
                format!("{:.0}", ns.median),
                format!("{:.0}", ns.p10),
                format!("{:.0}", ns.p90),
                format!("{:.2}", trips.median),
                format!("{:.2}", ratio.median),
            ]);
            record.results.push(Outcome::new(&name, contender, &ns, Work::default()));
            record.ratios.extend((*contender != ours.0).then_some(ratio));
        }
    }
    let Some(trip) = Summary::of(trips) else { return Ok(()) };
    println!("{table}\nround trip: {:.0} ns", trip.median);
    record.results.push(Outcome::new(ROUND_TRIP, "two threads", &trip, Work::default()));
    if args.record {
        println!("record: {}", record.keep("pool")?.display());
    }
    Ok(())
}

/// The reference's name among the cases.
const ROUND_TRIP: &str = "cache line round trip";

/// Runs `work` while as many other threads as there are CPUs are busy, if asked to.
fn busy_if(busy: bool, work: impl FnOnce()) {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..if busy { ck_threadpool::available_cpus() } else { 0 } {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        work();
        ended.store(true, Ordering::Relaxed);
    });
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header([
        "case",
        "contender",
        "median ns",
        "p10",
        "p90",
        "round trips",
        "of the first",
    ]);
    table
}
