//! Which CPUs a thread may run on, where the system can be asked.

#[cfg(all(target_os = "linux", not(loom)))]
mod linux {
    use std::mem::{MaybeUninit, size_of};

    /// The CPUs that the calling thread may run on, in ascending order; none if that is not known.
    pub(crate) fn allowed() -> Vec<usize> {
        let Some(set) = get() else { return Vec::new() };
        let all = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: the index is below CPU_SETSIZE, the number of bits in the set.
        all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
    }

    /// The CPU that the calling thread is on, at this moment.
    pub(crate) fn current() -> Option<u32> {
        // SAFETY: the function takes nothing, and reads only what the system shows of this thread.
        u32::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Moves the calling thread from `cpu` to another CPU that it may run on, and says whether there is
    /// one. What it may run on stays as it is.
    pub(crate) fn leave(cpu: u32) -> bool {
        let (cpu, allowed) = (cpu as usize, get());
        let Some(allowed) = allowed.filter(|_| cpu < libc::CPU_SETSIZE as usize) else {
            return false;
        };
        let mut others = allowed;
        // SAFETY: the index is below CPU_SETSIZE, as checked above.
        unsafe { libc::CPU_CLR(cpu, &mut others) };
        // The system refuses an empty set, and moves the thread before it returns.
        let moved = set(&others);
        // Unless somebody else has set another one meanwhile.
        // SAFETY: the function compares two sets that live.
        if moved && get().is_some_and(|now| unsafe { libc::CPU_EQUAL(&now, &others) }) {
            set(&allowed);
        }
        moved
    }

    /// Keeps the calling thread on one CPU. Failing to is not an error: it runs where it may.
    pub(crate) fn pin(cpu: usize) {
        if cpu >= libc::CPU_SETSIZE as usize {
            return;
        }
        let mut one = nothing();
        // SAFETY: the index is below CPU_SETSIZE, as checked above.
        unsafe { libc::CPU_SET(cpu, &mut one) };
        set(&one);
    }

    fn nothing() -> libc::cpu_set_t {
        // SAFETY: all zeros is a valid cpu_set_t, an array of integers.
        unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() }
    }

    /// What the calling thread may run on.
    fn get() -> Option<libc::cpu_set_t> {
        let mut set = nothing();
        // SAFETY: the kernel writes at most the given number of bytes, which is the set's own size.
        let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
        (status == 0).then_some(set)
    }

    /// Lets the calling thread run on these CPUs alone; says whether it will.
    fn set(set: &libc::cpu_set_t) -> bool {
        // SAFETY: the kernel reads the given number of bytes, which is the set's own size.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) == 0 }
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use linux::{allowed, current, leave, pin};

/// Not known on this system.
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) fn allowed() -> Vec<usize> {
    Vec::new()
}

/// Not known on this system.
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) fn current() -> Option<u32> {
    None
}

/// Not possible on this system.
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) fn leave(_cpu: u32) -> bool {
    false
}

/// Not possible on this system.
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) fn pin(_cpu: usize) {}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_leaves_its_cpu_may_run_where_it_might_before() {
        let before = allowed();
        let cpu = current().expect("Linux says which CPU a thread is on");
        assert!(before.contains(&(cpu as usize)));
        assert_eq!(leave(cpu), before.len() > 1);
        assert_eq!(allowed(), before);
        assert!(!leave(u32::MAX));
    }

    #[test]
    fn a_pinned_thread_stays() {
        let stayed = std::thread::spawn(|| {
            let cpu = *allowed().last().expect("a thread may run somewhere");
            pin(cpu);
            assert_eq!(allowed(), [cpu]);
            let here = current().expect("Linux says which CPU a thread is on");
            assert_eq!(here as usize, cpu);
            leave(here)
        });
        assert!(!stayed.join().expect("no assertion failed"));
    }
}
