//! A two-phase stencil: heat spreads along a rod, one dispatch for all steps, a barrier after each.
//!
//!     cargo run --release -p ck-threadpool --example stencil

use ck_threadpool::{SharedSlice, ThreadPool};

const CELLS: usize = 10_000;
const STEPS: usize = 1_000;

fn main() -> Result<(), ck_threadpool::BuildError> {
    let pool = ThreadPool::new(ck_threadpool::available_cpus())?;
    let (mut even, mut odd) = (vec![0.0f64; CELLS], vec![0.0f64; CELLS]);
    even[CELLS / 2] = 1.0;
    let rods = [SharedSlice::new(&mut even), SharedSlice::new(&mut odd)];
    pool.run(|team| {
        for step in 0..STEPS {
            let (from, to) = (&rods[step % 2], &rods[(step + 1) % 2]);
            // In this phase all read one rod and each writes its part of the other.
            let old = from.read(team);
            for (i, new) in to.range(team).zip(to.part(team)) {
                let left = old[i.saturating_sub(1)];
                let right = old[(i + 1).min(CELLS - 1)];
                *new = old[i] + 0.25 * (left - 2.0 * old[i] + right);
            }
            // Nobody may read the new rod, or write the old one, before all are here.
            team.barrier();
        }
    });
    let heat: f64 = even.iter().sum();
    println!("after {STEPS} steps: {heat} in all, {:.4} in the middle", even[CELLS / 2]);
    assert!((heat - 1.0).abs() < 1e-9);
    Ok(())
}
