//! Members that share a CPU find that out, and part.
//!
//! The system may put a new thread, or one that it wakes, on the CPU of the very thread that it works
//! with while another CPU is idle, and it takes tens of milliseconds to part them. Until then members
//! that poll for each other pay a slice of polling for every step (measured: `docs/threadpool.md`).
//! So a member that has polled for a while shows where it sits before it yields. Another member that
//! runs on that CPU and polls there knows then that both wait for one CPU, and the worker of the two
//! moves to another one, or sleeps where it may run on no other. The caller's thread is not this crate's to move.

use crate::affinity;
use crate::sync::{AtomicU32, Ordering, yield_now};

/// What came of a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Yielded {
    /// The thread is where it was, or where the system put it.
    Stayed,
    /// It has moved away from a CPU that another member waits for.
    Moved,
    /// It is on a CPU that another member waits for, and may run on no other one.
    Stuck,
}

/// The CPU of a member that polls for long.
///
/// Relaxed everywhere: what is read decides only where threads run.
#[derive(Debug)]
pub(crate) struct Seat(AtomicU32);

impl Seat {
    /// The member works, sleeps, or has not polled for long.
    const NOT_SHOWN: u32 = u32::MAX;
    /// The member shows a CPU, and another one asks it to leave that.
    const ASKED: u32 = u32::MAX - 1;

    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(Self::NOT_SHOWN))
    }

    /// Yields as member `index`, which has one of `seats`.
    pub(crate) fn yield_cpu<'a>(
        index: usize,
        seats: impl Iterator<Item = &'a Self> + Clone,
    ) -> Yielded {
        let (Some(own), Some(cpu)) = (seats.clone().nth(index), affinity::current()) else {
            yield_now();
            return Yielded::Stayed;
        };
        own.0.store(cpu, Ordering::Relaxed);
        if !Self::must_leave(index, cpu, seats) {
            yield_now();
            if own.0.load(Ordering::Relaxed) != Self::ASKED {
                return Yielded::Stayed;
            }
        }
        if affinity::leave(cpu) { Yielded::Moved } else { Yielded::Stuck }
    }

    /// Whether a lower member waits for `cpu`, on which member `index` runs. Higher ones that do are
    /// asked to leave it.
    fn must_leave<'a>(index: usize, cpu: u32, seats: impl Iterator<Item = &'a Self>) -> bool {
        for (member, seat) in seats.enumerate() {
            if member == index || seat.0.load(Ordering::Relaxed) != cpu {
                continue;
            }
            if member < index {
                return true;
            }
            // It fails if the member has just stopped polling, and then it is not meant any more.
            let _ = seat.0.compare_exchange(cpu, Self::ASKED, Ordering::Relaxed, Ordering::Relaxed);
        }
        false
    }

    /// To be called by a member that has ended polling.
    pub(crate) fn hide(&self) {
        if self.0.load(Ordering::Relaxed) != Self::NOT_SHOWN {
            self.0.store(Self::NOT_SHOWN, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn seats(values: [u32; 4]) -> [Seat; 4] {
        values.map(|value| Seat(AtomicU32::new(value)))
    }

    fn values(seats: &[Seat; 4]) -> [u32; 4] {
        seats.each_ref().map(|seat| seat.0.load(Ordering::Relaxed))
    }

    #[test]
    fn the_higher_of_two_members_on_one_cpu_leaves_it() {
        let seats = seats([7, 7, Seat::NOT_SHOWN, 3]);
        assert!(Seat::must_leave(1, 7, seats.iter()));
        assert_eq!(values(&seats), [7, 7, Seat::NOT_SHOWN, 3]);
        assert!(!Seat::must_leave(0, 7, seats.iter()));
        assert_eq!(values(&seats), [7, Seat::ASKED, Seat::NOT_SHOWN, 3]);
    }

    #[test]
    fn members_on_other_cpus_are_left_alone() {
        let seats = seats([2, 7, Seat::ASKED, Seat::NOT_SHOWN]);
        assert!(!Seat::must_leave(1, 7, seats.iter()));
        assert!(!Seat::must_leave(3, 1, seats.iter()));
        assert_eq!(values(&seats), [2, 7, Seat::ASKED, Seat::NOT_SHOWN]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_member_that_may_run_nowhere_else_is_stuck() {
        let stuck = std::thread::spawn(|| {
            let cpu = *affinity::allowed().first().expect("a thread may run somewhere");
            affinity::pin(cpu);
            let cpu = u32::try_from(cpu).expect("a CPU's number");
            Seat::yield_cpu(1, seats([cpu, Seat::NOT_SHOWN, cpu, cpu]).iter())
        });
        assert_eq!(stuck.join().expect("no panic"), Yielded::Stuck);
    }

    #[test]
    fn a_seat_is_shown_until_it_is_hidden() {
        let seats = seats([Seat::NOT_SHOWN; 4]);
        // Nobody else is there, so nobody has to move.
        assert_eq!(Seat::yield_cpu(2, seats.iter()), Yielded::Stayed);
        let known = affinity::current().is_some();
        assert_eq!(values(&seats)[2] != Seat::NOT_SHOWN, known);
        seats[2].hide();
        assert_eq!(values(&seats), [Seat::NOT_SHOWN; 4]);
    }
}
