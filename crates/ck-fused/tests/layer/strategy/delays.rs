//! Members that come late, and barriers that are not there.

use super::team::{Run, name};
use crate::sample::Sample;
use ck_fused::{Phase, Runner, Strategy};
use ck_quant::Isa;
use ck_testing::run::all_or_few;
use ck_threadpool::ThreadPool;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Waits up to 50 us, another time at every call.
fn delay(state: &AtomicU64) {
    let random = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    let random = (random ^ (random >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
    let until = Instant::now() + Duration::from_nanos(random % 50_000);
    while Instant::now() < until {
        std::thread::yield_now();
    }
}

// Case B43: a missing barrier shows once in hundreds of thousands of calls, or when members are delayed.
#[test]
fn delays_at_the_ends_of_phases_change_no_bit() {
    let pool = ThreadPool::new(4).unwrap();
    let sample = Sample::small(9);
    let layer = sample.layer();
    let state = AtomicU64::new(1);
    let observer = |_: Phase, _: usize| delay(&state);
    let calls = all_or_few(500, 20);
    for stored in [3, 270] {
        let capacity = stored + 1;
        let mut run = Run::<f32>::new(&sample, stored, capacity);
        let right = run.sequence(&sample, &layer, &Runner::serial(Isa::Scalar), 1);
        for &strategy in super::team::PARALLEL {
            let runner =
                Runner::new(Isa::detect(), &pool).with_strategy(strategy).with_observer(&observer);
            let mut run = Run::<f32>::new(&sample, stored, capacity);
            for call in 0..calls {
                let got = run.sequence(&sample, &layer, &runner, 1);
                assert!(got == right, "{stored} stored, call {call}: {}", name(&runner));
                run.cache.truncate(stored);
            }
        }
    }
}

#[test]
fn the_observer_hears_of_every_phase_from_every_member() {
    let pool = ThreadPool::new(3).unwrap();
    let sample = Sample::small(9);
    let layer = sample.layer();
    let all = [Phase::Project, Phase::Attend, Phase::Merge, Phase::Output];
    for (strategy, phases) in [
        (Strategy::Serial, &all[..]),
        (Strategy::Barrier, &all),
        (Strategy::MultiDispatch, &[Phase::Project, Phase::Attend, Phase::Output]),
        (Strategy::Redundant, &[Phase::Project, Phase::Attend, Phase::Output]),
        (Strategy::Unfused, &all),
    ] {
        let heard = Mutex::new(HashSet::new());
        let observer = |phase, member| {
            heard.lock().unwrap().insert((phase, member));
        };
        let runner =
            Runner::new(Isa::detect(), &pool).with_strategy(strategy).with_observer(&observer);
        Run::<f32>::new(&sample, 3, 4).decode(&layer, &runner, &sample.input(0)).unwrap();
        let members = 0..runner.team();
        let right: HashSet<_> =
            members.flat_map(|member| phases.iter().map(move |phase| (*phase, member))).collect();
        assert_eq!(heard.into_inner().unwrap(), right, "{strategy}");
    }
}
