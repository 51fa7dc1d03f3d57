//! Compares thread pools and barriers in one interleaved run, and writes a record.
//!
//!     cargo run --release -p ck-bench --bin pool                        # rayon and std
//!     cargo run --release -p ck-bench --features peer-pools --bin pool  # and the peers
//!
//! In every round each contender of each case is set up afresh, warmed, timed and dropped, with the
//! cache line's round trip measured just before: compare ratios, since this time changes with where
//! the CPUs sit.

use anyhow::Result;
use ck_bench::machine::Machine;
use ck_bench::pool::{Case, cases};
use ck_bench::record::{Entry, Record};
use ck_bench::round_trip;
use ck_bench::stats::{Summary, median};
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
    let mut entries = Vec::new();
    for (case, samples) in cases.iter().zip(samples) {
        for ((contender, _), (times, ratios)) in case.contenders.iter().zip(samples) {
            let (Some(ns), Some(ratio)) = (Summary::of(times), Summary::of(ratios)) else {
                continue;
            };
            let host = if case.busy_host { ", busy host" } else { "" };
            entries.push(Entry {
                case: format!("{}{host}", case.name),
                threads: case.threads,
                contender: (*contender).to_owned(),
                ns,
                ratio,
            });
        }
    }
    print(&entries, median(trips.clone()));
    let Some(trip) = Summary::of(trips) else { return Ok(()) };
    if args.record {
        let reference = ("cache line round trip".to_owned(), trip);
        let record = Record { machine: Machine::this(), reference, entries };
        println!("record: {}", record.save("pool")?.display());
    }
    Ok(())
}

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

fn print(entries: &[Entry], trip: f64) {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header([
        "case",
        "threads",
        "contender",
        "median ns",
        "p10",
        "p90",
        "round trips",
        "of the first",
    ]);
    for entry in entries {
        let same = |other: &&Entry| (&other.case, other.threads) == (&entry.case, entry.threads);
        let first = entries.iter().find(same).map_or(f64::NAN, |first| first.ns.median);
        table.add_row([
            entry.case.clone(),
            entry.threads.to_string(),
            entry.contender.clone(),
            format!("{:.0}", entry.ns.median),
            format!("{:.0}", entry.ns.p10),
            format!("{:.0}", entry.ns.p90),
            format!("{:.2}", entry.ratio.median),
            format!("{:.2}", entry.ns.median / first),
        ]);
    }
    println!("{table}\nround trip: {trip:.0} ns");
}
