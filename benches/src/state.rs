//! What the machine can do at the moment: this changes while a benchmark runs, so it is measured beside it.

use crate::case::{Case, Heat};
use crate::contender::Contender;
use crate::memory::{Buffer, Copies, PageKind, ReadLoop};
use crate::{round_trip, stats};
use ck_isa::Isa;
use ck_threadpool::ThreadPool;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::time::Instant;

/// The state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Nanoseconds in which a cache line goes to another CPU and back; none on one CPU.
    pub round_trip_ns: Option<f64>,
    /// Read from memory by one thread, in GB/s.
    pub read_gbps: f64,
    /// Read from memory by all threads together, in GB/s.
    pub read_all_gbps: f64,
    /// Clock of the CPU in GHz, estimated.
    pub clock_ghz: f64,
}

/// Measures the state now and then.
pub struct Observer {
    base: Rc<Buffer>,
    large: Rc<Buffer>,
    isa: Isa,
    pool: ThreadPool,
    next: usize,
}

/// Bytes of one reading.
const WINDOW: usize = 32 << 20;

impl Observer {
    /// An observer with `bytes` bytes of memory to read from, in base pages and as many in large ones.
    ///
    /// # Errors
    ///
    /// Threads that are not to be had.
    pub fn new(isa: Isa, bytes: usize) -> anyhow::Result<Self> {
        let [base, large] =
            [PageKind::Base, PageKind::Large].map(|kind| Rc::new(Buffer::new(bytes, kind)));
        let pool = ThreadPool::new(ck_threadpool::available_cpus())?;
        pool.pause();
        Ok(Self { base, large, isa, pool, next: 0 })
    }

    /// Memory to read from, in pages of one kind. Nobody writes it.
    #[must_use]
    pub fn buffer(&self, kind: PageKind) -> &Rc<Buffer> {
        match kind {
            PageKind::Base => &self.base,
            PageKind::Large => &self.large,
        }
    }

    /// The state, in about 40 ms.
    pub fn observe(&mut self) -> State {
        let copies = Copies::windows(&self.large, PageKind::Large, WINDOW);
        let [mut one, mut all] =
            [ReadLoop::new(&copies, self.isa), ReadLoop::new(&copies, self.isa).on(&self.pool)];
        let mut gbps = |readers: &mut ReadLoop<'_>| {
            readers.start();
            let rates = (0..5).map(|_| {
                self.next += 1;
                let start = Instant::now();
                readers.run(self.next);
                WINDOW as f64 / start.elapsed().as_nanos() as f64
            });
            let rate = stats::median(rates.collect());
            readers.stop();
            rate
        };
        let (read_gbps, read_all_gbps) = (gbps(&mut one), gbps(&mut all));
        let two = ck_threadpool::available_cpus() > 1;
        State {
            round_trip_ns: two.then(|| round_trip::nanoseconds(2_000)),
            read_gbps,
            read_all_gbps,
            clock_ghz: clock_ghz(),
        }
    }
}

impl State {
    /// What changed from `self` to `after` by more than it may, among what `case` depends on; empty if nothing did.
    ///
    /// The round trip may change by half, since it is either near or far and nothing in between; bandwidth by a
    /// fifth; the clock by a twentieth.
    #[must_use]
    pub fn moved(&self, after: &Self, case: &Case) -> Vec<String> {
        let trips = self.round_trip_ns.zip(after.round_trip_ns).unwrap_or((1.0, 1.0));
        let (streams, team) = (case.heat == Heat::Streaming, case.threads > 1);
        let (one, all) =
            ((self.read_gbps, after.read_gbps), (self.read_all_gbps, after.read_all_gbps));
        [
            (team, "round trip", "ns", trips, 1.5),
            (streams && !team, "read bandwidth", "GB/s", one, 1.2),
            (streams && team, "read bandwidth of all", "GB/s", all, 1.2),
            (true, "clock", "GHz", (self.clock_ghz, after.clock_ghz), 1.05),
        ]
        .into_iter()
        .filter(|(matters, _, _, (a, b), limit)| *matters && a.max(*b) > limit * a.min(*b))
        .map(|(_, what, unit, (a, b), _)| format!("{what} {a:.2} -> {b:.2} {unit}"))
        .collect()
    }
}

/// The clock, from a chain of operations that wait for each other and take six cycles a turn on current CPUs:
/// an estimate, of which above all the changes count.
fn clock_ghz() -> f64 {
    const TURNS: u32 = 200_000;
    let samples = (0..3).map(|_| {
        let start = Instant::now();
        let mut x = std::hint::black_box(0x9E37_79B9_7F4A_7C15u64);
        for _ in 0..TURNS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        std::hint::black_box(x);
        6.0 * f64::from(TURNS) / start.elapsed().as_nanos() as f64
    });
    samples.fold(0.0, f64::max)
}

/// CPU time spent, in units of the system's clock tick.
#[derive(Clone, Copy, Debug)]
pub struct CpuTimes {
    all_busy: f64,
    own: f64,
    total: f64,
}

impl CpuTimes {
    /// Up to now; `None` where the system does not tell.
    #[must_use]
    pub fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let numbers = stat.lines().next()?.split_whitespace().skip(1);
        let times: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
        let total: f64 = times.iter().take(8).sum();
        let idle = times.get(3)? + times.get(4)?;
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name, in parentheses, may contain anything; user and system time are fields 14 and 15.
        let own: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let own = own.get(11)?.parse::<f64>().ok()? + own.get(12)?.parse::<f64>().ok()?;
        Some(Self { all_busy: total - idle, own, total })
    }

    /// The share of all CPUs that others took from `self` to `later`.
    #[must_use]
    pub fn foreign_load(&self, later: &Self) -> f64 {
        let foreign = (later.all_busy - self.all_busy) - (later.own - self.own);
        (foreign / (later.total - self.total).max(1.0)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Kind;
    use crate::record::Work;

    #[test]
    fn a_state_that_moved_is_told() {
        let state = State {
            round_trip_ns: Some(60.0),
            read_gbps: 10.0,
            read_all_gbps: 20.0,
            clock_ghz: 3.0,
        };
        let moved = |after: &State, heat, threads| {
            let (subject, work) = (String::new(), Work::default());
            let case = Case { kind: Kind::Layer, subject, context: None, heat, threads, work };
            assert_eq!(state.moved(after, &case).len(), after.moved(&state, &case).len());
            state.moved(after, &case)
        };
        let little = State { read_gbps: 11.0, clock_ghz: 2.95, ..state };
        assert!(moved(&little, Heat::Streaming, 2).is_empty());
        let far = State { round_trip_ns: Some(300.0), ..state };
        assert_eq!(moved(&far, Heat::Hot, 2), ["round trip 60.00 -> 300.00 ns"]);
        assert!(moved(&far, Heat::Hot, 1).is_empty());
        let slow = State { read_gbps: 5.0, read_all_gbps: 10.0, clock_ghz: 2.5, ..state };
        assert_eq!([1, 2].map(|threads| moved(&slow, Heat::Streaming, threads).len()), [2, 2]);
        assert_eq!(moved(&slow, Heat::Hot, 1).len(), 1);
    }

    #[test]
    fn load_of_others_is_what_is_neither_idle_nor_ours() {
        let before = CpuTimes { all_busy: 100.0, own: 10.0, total: 1000.0 };
        let after = CpuTimes { all_busy: 200.0, own: 60.0, total: 1200.0 };
        assert_eq!(before.foreign_load(&after), 0.25);
    }
}
