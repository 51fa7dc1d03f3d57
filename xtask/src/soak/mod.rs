//! `cargo xtask soak`: decoding for a long time in every way at random, against serial scalar code by bits, in
//! memory that must not grow.

mod memory;
mod pair;
mod sample;

use anyhow::{Context as _, Result, bail, ensure};
use ck_ops::Q8_0;
use ck_testing::generate::Rng;
use ck_threadpool::{ThreadPool, WaitPolicy};
use half::f16;
use memory::{Memory, time_on_cpu};
use pair::{AnyPair, Tally};
use sample::Sample;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Arguments of `cargo xtask soak`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long to decode: the time of the calling thread on a CPU, so that a run that is held up, or
    /// shares its CPUs, does as much as any.
    #[arg(long, value_name = "MINUTES", default_value_t = 30.0)]
    minutes: f64,
    /// The time between two lines of the log.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    interval: f64,
    /// Another number gives another sequence of calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Makes a pair of contexts for a layer, with a capacity at random.
type MakePair = for<'w> fn(&'w Sample, &mut Rng) -> Result<Box<dyn AnyPair + 'w>>;

/// Every type of cache elements.
const CACHES: &[MakePair] = &[pair::make::<f32>, pair::make::<f16>, pair::make::<Q8_0>];

/// The largest pool. More threads than CPUs, on most machines.
pub(crate) const MOST_THREADS: usize = 4;

/// Between two looks at the clock.
const ACTIONS: usize = 16;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.minutes > 0.0 && args.interval > 0.0, "minutes and interval must be above 0");
    soak(
        Duration::from_secs_f64(60.0 * args.minutes),
        Duration::from_secs_f64(args.interval),
        args.seed,
    )
}

/// The time since a start.
struct Clock {
    start: Instant,
    on_cpu: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Self { start: Instant::now(), on_cpu: time_on_cpu() }
    }

    /// The time of this thread on a CPU, or where that is unknown, all time.
    fn elapsed(&self) -> Duration {
        let on_cpu = time_on_cpu().zip(self.on_cpu).map(|(now, start)| now.saturating_sub(start));
        on_cpu.unwrap_or_else(|| self.start.elapsed())
    }
}

/// Decodes for `length`, with a line of the log after every `interval`.
pub(crate) fn soak(length: Duration, interval: Duration, seed: u64) -> Result<ExitCode> {
    let samples = Sample::all();
    let mut rng = Rng::new(seed);
    let mut pairs = Vec::new();
    for sample in &samples {
        for make in CACHES {
            pairs.push((sample, make, make(sample, &mut rng)?));
        }
    }
    let mut pool = any_pool(&mut rng)?;
    let (mut tally, mut memory) = (Tally::default(), Memory::default());
    let clock = Clock::start();
    let mut next = interval;
    while clock.elapsed() < length {
        for _ in 0..ACTIONS {
            let index = rng.below(pairs.len());
            let (sample, make, pair) = &mut pairs[index];
            pair.act(&pool, &mut rng, &mut tally)
                .with_context(|| format!("seed {seed}, after {tally}"))?;
            match rng.below(400) {
                0 => *pair = make(sample, &mut rng)?,
                1 => pool = any_pool(&mut rng)?,
                2 => pool.pause(),
                3 => pool.resume(),
                _ => {}
            }
        }
        if clock.elapsed() >= next {
            next += interval;
            let (seconds, all) = (clock.elapsed().as_secs(), clock.start.elapsed().as_secs());
            println!("soak: {seconds:5} s, {all} s in all: {tally}; {}", memory.look());
        }
    }
    println!(
        "soak: {} log lines, {tally}, every result the bits of serial scalar code",
        memory.looks()
    );
    match memory.growth() {
        None => println!("soak: memory was not looked at"),
        Some(Ok(flat)) => println!("soak: {flat}"),
        Some(Err(grown)) => bail!("{grown}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// A pool of any size, with any way of waiting.
fn any_pool(rng: &mut Rng) -> Result<ThreadPool> {
    let policy = rng.choose(&[
        WaitPolicy::DEFAULT,
        WaitPolicy::SLEEP,
        WaitPolicy::DEFAULT.with_idle(Duration::from_micros(20)),
        WaitPolicy::DEFAULT.with_busy(Duration::ZERO).with_yields(3),
    ]);
    let threads = 1 + rng.below(MOST_THREADS);
    Ok(ThreadPool::builder().threads(threads).wait_policy(policy).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_soaking_finds_nothing() {
        let code = soak(Duration::from_millis(300), Duration::from_millis(100), 7).unwrap();
        assert_eq!(code, ExitCode::SUCCESS);
    }
}
